//! A copy in the making: a directory with all below it, or a file, gets its name by one rename when all of it is there.
//!
//! Unlike an output it has no `_SUCCESS` and no list of names: what is copied is what the source has.

use std::path::{Path, PathBuf};

use super::job_folder::{FolderPlace, JobFolder, is_there};
use super::ownership::Ownership;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::LocalDisk;
use gristmill_storage::location::parent_of;

/// A copy being made.
#[derive(Debug)]
pub struct TreeStaging<'a> {
    target: PathBuf,
    folder: JobFolder<'a>,
}

impl<'a> TreeStaging<'a> {
    /// Makes the job folder for a copy named `target`; removes those of dead jobs. Where the owner resumes a dead job, takes over
    /// that job's folder; nothing if that job had published its copy.
    ///
    /// # Errors
    /// There is something of that name; another job writes it; there is no directory for it.
    ///
    /// ```
    /// use gristmill_base::Kind;
    /// use gristmill_tasks::commit::{Ownership, TreeStaging};
    /// use gristmill_storage::{Caching, LocalDisk, OutputStore, Store, memory::Memory};
    /// let store = Memory::with_room_for(1000);
    /// let begin = |job| TreeStaging::begin(&store, "/copy".as_ref(), &Ownership::of_new_job(job));
    /// let staging = begin("job_1")?.expect("it begins");
    /// store.create_directory(&staging.staged())?;
    /// store.create(&staging.staged().join("a"), 3, Caching::Direct)?.write_at(b"abc", 0)?;
    /// assert!(store.stat("/copy".as_ref())?.is_none());
    /// staging.publish(true)?;
    /// assert_eq!(store.bytes_of("/copy/a".as_ref()), Some(b"abc".to_vec()));
    /// assert_eq!(begin("job_2").map_err(|error| error.kind()).err(), Some(Kind::Exists));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn begin(
        disk: &'a dyn LocalDisk,
        target: &Path,
        owner: &Ownership,
    ) -> Result<Option<Self>> {
        let place = FolderPlace::beside(target);
        if is_there(disk, target)?
            && let Some(left) = place.left(disk, owner)?
            && !is_there(disk, &left.staged())?
        {
            return left.remove().map(|()| None);
        }
        Self::check(disk, target)?;
        Ok(Some(TreeStaging {
            target: target.to_owned(),
            folder: place.begin(disk, owner)?,
        }))
    }

    /// Whether a copy may be made.
    ///
    /// # Errors
    /// There is something of that name.
    pub fn check(disk: &dyn LocalDisk, target: &Path) -> Result<()> {
        if !is_there(disk, target)? {
            return Ok(());
        }
        Err(is_in_the_way(target))
    }

    /// The name that the copy has until it is published.
    pub fn staged(&self) -> PathBuf {
        self.folder.staged()
    }

    /// Gives the copy its name, and makes that durable if it `syncs`. A copy of nothing has none.
    pub fn publish(self, syncs: bool) -> Result<()> {
        let (disk, staged) = (self.folder.disk(), self.folder.staged());
        if is_there(disk, &staged)? {
            disk.rename(&staged, &self.target)?;
        }
        if syncs {
            disk.sync_directory(parent_of(&self.target))?;
        }
        self.folder.remove()
    }
}

/// That a copy would have the name of something.
///
/// ```
/// use gristmill_base::Kind;
/// let error = gristmill_tasks::commit::is_in_the_way("/copy".as_ref());
/// assert_eq!(error.kind(), Kind::Exists);
/// ```
pub fn is_in_the_way(target: &Path) -> Error {
    let what = "there is something of this name, and an atomic copy makes it anew";
    Error::new(Kind::Exists, "copy files", what)
        .with_path(target)
        .advise("name another target, or remove this one")
}
