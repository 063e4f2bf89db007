//! Folders within an output: `_logs/skip/` for records that were left out, as in Hadoop.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::SUCCESS;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::LocalDisk;

/// The one folder within an output, for records that were left out.
const LEFT_OUT: &[u8] = b"_logs/skip/";

/// Whether a task's file may have this name in the output: it lies there itself, or among what was left out. This is
/// the one rule, for what tasks report and for what a history says that they reported.
///
/// ```
/// use gristmill_tasks::commit::is_file_name;
/// assert!(is_file_name("part-r-00000".as_ref()) && is_file_name("_logs/skip/attempt_1_m_000000_2".as_ref()));
/// assert!(!is_file_name("../x".as_ref()) && !is_file_name("_logs/skip/../x".as_ref()) && !is_file_name("_SUCCESS".as_ref()));
/// ```
pub fn is_file_name(name: &Path) -> bool {
    let name = name.as_os_str().as_bytes();
    let own = name.strip_prefix(LEFT_OUT).unwrap_or(name);
    let is_plain = !own.is_empty() && !own.contains(&b'/') && !own.contains(&0);
    is_plain && !own.starts_with(b".") && own != SUCCESS.as_bytes()
}

/// Fails unless a task's file may have this name.
pub fn check_file_name(name: &Path) -> Result<()> {
    if is_file_name(name) {
        return Ok(());
    }
    let message = "a task wrote a file that no output may have";
    Err(Error::new(Kind::BadInput, "collect the output", message)
        .with("name", show_path(name))
        .advise("give it a name without \"/\" that does not begin with a dot"))
}

/// Makes the folders that are missing above a file.
pub fn make_above(store: &dyn LocalDisk, file: &Path) -> Result<()> {
    let Some(folder) = file.parent() else {
        return Ok(());
    };
    if store.stat(folder)?.is_some() {
        return Ok(());
    }
    make_above(store, folder)?;
    store.create_directory(folder)
}

/// Makes the names of these files durable in a folder, and in the folders within it.
pub(super) fn sync(store: &dyn LocalDisk, folder: &Path, names: &[PathBuf]) -> Result<()> {
    let paths = names.iter().map(|name| folder.join(name));
    let above: BTreeSet<_> = paths
        .flat_map(|path| {
            let above = path.ancestors().skip(1);
            let within = above.take_while(|above| above.starts_with(folder));
            within.map(Path::to_owned).collect::<Vec<_>>()
        })
        .chain([folder.to_owned()])
        .collect();
    above
        .iter()
        .rev()
        .try_for_each(|path| store.sync_directory(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::Caching;
    use gristmill_storage::OutputStore as _;
    use gristmill_storage::memory::Memory;

    #[test]
    fn what_is_missing_above_a_file_is_made() {
        let store = Memory::with_room_for(1 << 20);
        store.create_directory("/out".as_ref()).unwrap();
        for _ in 0..2 {
            let file = Path::new("/out/_logs/skip/a");
            make_above(&store, file).unwrap();
            store.create(file, 0, Caching::Cached).unwrap();
            sync(
                &store,
                "/out".as_ref(),
                &["part-0".into(), "_logs/skip/a".into()],
            )
            .unwrap();
        }
    }
}
