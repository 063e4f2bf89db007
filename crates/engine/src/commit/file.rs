//! A single output file: it replaces what has its name at once, or not at all.
//!
//! ```text
//!   parent/.name.gristmill-JOB/lock       held while the job lives
//!   parent/.name.gristmill-JOB/output     written here, ranges in parallel
//!   parent/.name.gristmill-JOB/spill/     runs
//!   parent/name                           ◀── one rename, also over a file that is an input
//! ```

use std::path::{Path, PathBuf};

use super::folder::{create, lock, remove_folder, sweep};
use super::{OUTPUT, Taken, adopt};
use crate::error::{Error, Kind, Result};
use crate::storage::local::parent_of;
use crate::storage::{Caching, FileKind, Lock, Store};

/// How much of the output's name its job folder has: both have to fit in what a file system takes.
const MOST_NAME_CHARS: usize = 40;

/// An output file in the making.
#[derive(Debug)]
pub struct FileStaging<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) target: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) sync: bool,
    pub(super) _lock: Box<dyn Lock>,
    pub(super) published: bool,
    /// The folder was a dead job's.
    pub(super) adopted: Option<Taken>,
}

impl<'a> FileStaging<'a> {
    /// Begins an output that will be `target`: a name that is free, or a regular file's.
    pub fn begin(store: &'a dyn Store, target: &Path, job: &str, sync: bool) -> Result<Self> {
        let (target, prefix) = Self::names(store, target)?;
        let parent = parent_of(&target);
        sweep(store, parent, &prefix, &target, None)?;
        let folder = parent.join(format!("{prefix}{job}"));
        create(store, &folder)?;
        match lock(store, &folder) {
            Ok(lock) => Ok(FileStaging {
                store,
                target,
                folder,
                sync,
                _lock: lock,
                published: false,
                adopted: None,
            }),
            Err(error) => {
                remove_folder(store, &folder)?;
                Err(error)
            }
        }
    }

    /// The file that is meant, where a link leads to it; and how the names of job folders beside it begin.
    pub(super) fn names(store: &dyn Store, target: &Path) -> Result<(PathBuf, String)> {
        let target = store.resolve(target)?;
        let refuse = |what: &str| {
            Error::new(Kind::BadOption, "write the output", what)
                .with_path(&target)
                .advise("name a file")
        };
        let Some(name) = target.file_name() else {
            return Err(refuse("it has no name of its own"));
        };
        match store.stat(&target)?.map(|stat| stat.kind) {
            None | Some(FileKind::File) => {}
            Some(FileKind::Directory) => return Err(refuse("it is a directory")),
            Some(FileKind::Other) => return Err(refuse("it is no regular file")),
        }
        let name: String = name
            .to_string_lossy()
            .chars()
            .take(MOST_NAME_CHARS)
            .collect();
        Ok((target, format!(".{name}.gristmill-")))
    }

    /// Where the file is written.
    pub fn path(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    /// A place for runs, on the output's file system; gone with the job.
    pub fn spill_place(&self) -> Result<PathBuf> {
        adopt::spill_place(self.store, &self.folder)
    }

    /// Gives the file its name, with the permissions of the file that had it.
    pub fn publish(mut self) -> Result<()> {
        let path = self.path();
        let file = self.store.create(&path, 0, Caching::Cached)?;
        if self.sync {
            file.sync()?;
        }
        drop(file);
        self.store.replace(&path, &self.target)?;
        self.published = true;
        let synced = if self.sync {
            self.store.sync_directory(parent_of(&self.target))
        } else {
            Ok(())
        };
        remove_folder(self.store, &self.folder).and(synced)
    }
}

impl Drop for FileStaging<'_> {
    fn drop(&mut self) {
        if !self.published && adopt::may_go(self.adopted.as_ref()) {
            // The job's own error is what the user needs to see; the next job removes what stays.
            let _ = remove_folder(self.store, &self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::local::Local;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn replaces_at_once_keeps_permissions_and_follows_links() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        let staging = FileStaging::begin(&Local, &link, "j", false).unwrap();
        std::fs::write(staging.path(), "new").unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"old");
        staging.publish().unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert_eq!(
            std::fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let error = FileStaging::begin(&Local, folder.path(), "j", false).unwrap_err();
        assert_eq!(error.kind(), Kind::BadOption);
    }
}
