//! Commit: an output appears whole, under its name, or not at all.
//!
//! ```text
//!   parent/.out.gristmill-JOB/lock            held while the job lives
//!   parent/.out.gristmill-JOB/definition      of user code: what it is, for its user alone
//!   parent/.out.gristmill-JOB/output/         parts are written here, then _SUCCESS
//!   parent/out                                ◀── one rename of output/ (an exchange when overwriting)
//! ```
//!
//! A job killed at any moment leaves its job folder, and the folder's lock is free: the next job to the same
//! output removes it. The lock goes last, so that this also holds of a job that is killed while it clears up. Where
//! nothing can be created beside the output (its parent is not writable, or the output is a mount point) the job
//! folder lies inside it and parts are renamed one by one, `_SUCCESS` last; only then can a kill between two renames
//! leave parts without `_SUCCESS`. A file that no other can replace is written in place, from a complete copy (`in_place.rs`).

mod dead;
mod default_spill;
mod directory;
mod file;
mod in_place;
mod job_folder;
mod listed;
mod ownership;
mod send;
mod spill_dirs;
#[cfg(test)]
mod tests;
mod tree;
mod upload;
mod upload_target;
mod within;

use std::path::{Path, PathBuf};

pub use dead::{clear_dead, clear_published, definition_of};
pub use default_spill::{default_spill_dir, notice_of_memory};
pub use directory::DirectoryStaging;
pub use file::FileStaging;
pub use in_place::{InPlace, finish_in_place};
pub use job_folder::{ARCHIVES, JobFolder, SCRIPT_FOLDER, is_of_scripts};
pub use ownership::Ownership;
pub use send::{send_file, send_file_again, sent_again};
pub use spill_dirs::{SpillDirs, check_directory, check_room, notice_of_runs};
pub use tree::{TreeStaging, is_in_the_way};
pub use upload::{UploadCommitter, end_uploads_to};
pub use upload_target::home_of;
pub use within::{check_file_name, is_file_name, make_above};

use self::directory::check_target;
use self::job_folder::no_parent;
use gristmill_base::error::Result;
use gristmill_storage::location::{Location, parent_of};
use gristmill_storage::objects::Upload;
use gristmill_storage::stores::Stores;

/// The file that says that a directory holds a finished job's output, and what that job proved.
pub const SUCCESS: &str = "_SUCCESS";

const OUTPUT: &str = "output";
const SPILL: &str = "spill";
const ATTEMPTS: &str = "attempts";

/// Where an old output waits, on file systems that cannot exchange names, until the new one is in its place.
const OLD: &str = "old";

/// What the user wants of the output's name and durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitOptions {
    /// Replace an output that exists.
    pub overwrite: bool,
    /// Make the output durable before it is published.
    pub sync: bool,
}

/// What a job has made of its output when all is proved.
#[derive(Debug)]
pub struct OutputManifest<'a> {
    /// The names of the output's files.
    pub names: &'a [PathBuf],
    /// Those of them that are uploads, as the reports of their tasks have them.
    pub uploads: &'a [Upload],
    /// What `_SUCCESS` says.
    pub success: &'a [u8],
}

/// How an output appears: by a rename ([`DirectoryStaging`], [`FileStaging`]), in place ([`InPlace`]), or by uploads ([`UploadCommitter`]).
/// Each has a `begin`, by which a resumed job takes over what its predecessor left; to drop one that has not published is to
/// abandon the output.
pub trait Committer: std::fmt::Debug {
    /// The job's folder: its lock, its runs, the files of its attempts.
    fn folder(&self) -> &JobFolder<'_>;

    /// Where a task writes the output file `name`.
    fn path_of(&self, name: &Path) -> Location;

    /// Writes the output into the file that is meant, where no other can take its name; returns that file, which is as it will
    /// be. [`publish`](Self::publish) comes next.
    fn write_in_place(&mut self) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// What the user is to know of what else is where the output is to be.
    fn notice(&self) -> Option<String> {
        None
    }

    /// Publishes the output.
    fn publish(self: Box<Self>, made: &OutputManifest<'_>) -> Result<()>;
}

/// Whether a job could begin to write `target` now, before anything is done for it.
///
/// # Errors
/// What a committer would say: it exists, or there is no directory for it.
///
/// ```
/// use gristmill_base::Kind;
/// use gristmill_tasks::commit::check_output;
/// use gristmill_storage::{LocalDisk, memory::Memory, stores::Stores};
/// let disk = Memory::with_room_for(1000);
/// let stores = Stores::new(std::sync::Arc::new(disk.clone()));
/// let check = |overwrite| check_output(&stores, &"/jobs/out".into(), overwrite).map_err(|error| error.kind());
/// assert_eq!(check(false), Err(Kind::NotFound));
/// disk.create_directory("/jobs".as_ref())?;
/// assert_eq!(check(false), Ok(()));
/// disk.create_directory("/jobs/out".as_ref())?;
/// assert_eq!((check(false), check(true)), (Err(Kind::Exists), Ok(())));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn check_output(stores: &Stores, target: &Location, overwrite: bool) -> Result<()> {
    let Some(path) = target.local() else {
        return upload_target::check(stores, target, overwrite, false);
    };
    check_target(&**stores.disk(), path, overwrite)?;
    let parent = parent_of(path);
    if stores.disk().stat(parent)?.is_none() {
        return Err(no_parent(parent));
    }
    Ok(())
}
