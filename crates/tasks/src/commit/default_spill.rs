//! Where runs and job folders go that have no place beside an output, and for which the user named no directory.
//!
//! ```text
//!   the directory where the job was begun ─▶ TMPDIR ─▶ /tmp        the first in which a folder can be made
//! ```
//!
//! A directory is tried, not looked at: in /proc, say, root may write, and can make nothing.

use std::path::{Path, PathBuf};

use super::spill_dirs::shown_of;
use gristmill_base::error::Kind;
use gristmill_base::names::show_path;
use gristmill_storage::LocalDisk;
use gristmill_storage::stores::Stores;

/// A folder that is there for a moment.
const TRIED: &str = ".gristmill-try-";

/// The directory for what has no place beside an output, of a job that was begun in `directory`. That one, if none can be
/// written to: the error names it then.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_tasks::commit::default_spill_dir;
/// use gristmill_storage::{local::Local, stores::Stores};
/// let here = tempfile::tempdir()?;
/// let stores = Stores::new(Arc::new(Local)).with_temporary(vec![here.path().to_owned()]);
/// assert_eq!(default_spill_dir(&stores, "/proc".as_ref()), here.path());
/// let stores = stores.with_temporary(vec!["/no/such".into(), "/proc".into()]);
/// assert_eq!(default_spill_dir(&stores, "/proc".as_ref()).to_str(), Some("/proc"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn default_spill_dir(stores: &Stores, directory: &Path) -> PathBuf {
    let takes = |place: &&Path| takes_folders(&**stores.disk(), place);
    let temporary = stores.temporary().iter().map(PathBuf::as_path);
    let mut places = std::iter::once(directory).chain(temporary);
    places.find(takes).unwrap_or(directory).to_owned()
}

/// Whether a folder can be made in a directory. A full disk can take one once it has room: the job says so itself.
fn takes_folders(disk: &dyn LocalDisk, directory: &Path) -> bool {
    let folder = directory.join(format!("{TRIED}{}", std::process::id()));
    match disk.create_directory(&folder) {
        Ok(()) => disk.remove(&folder).is_ok(),
        Err(error) => matches!(error.kind(), Kind::Exists | Kind::DiskFull),
    }
}

/// What a user should know of a place for runs that nobody chose: nothing, where it is a disk.
pub fn notice_of_memory(disk: &dyn LocalDisk, place: &Path) -> Option<String> {
    let kind = disk.memory_disk(place)?;
    Some(format!(
        "nothing can be written in the current directory, so sorted runs go to {}, which is memory ({kind}): they take it beside \
         the budget. What to do: name a directory on a disk with --spill-dir (spill_dir in Python).",
        show_path(shown_of(place))
    ))
}
