//! A single output file: it replaces what has its name at once, or not at all.
//!
//! ```text
//!   parent/.name.gristmill-JOB/lock       held while the job lives
//!   parent/.name.gristmill-JOB/output     written here, ranges in parallel
//!   parent/.name.gristmill-JOB/spill/     runs
//!   parent/name                           ◀── one rename, also over a file that is an input
//! ```

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::adopt::{Ownership, may_go, take};
use super::folder::{create, is_there, job_folder, prefix_of, remove_folder, sweep};
use super::{Committer, Made};
use crate::error::{Error, Kind, Result};
use crate::storage::location::{Location, parent_of};
use crate::storage::{Caching, FileKind, LocalDisk, Lock};

/// How much of the output's name its job folder has: both have to fit in what a file system takes.
const NAME_CHARS_MAX: usize = 40;

/// An output file in the making.
#[derive(Debug)]
pub struct FileStaging<'a> {
    store: &'a dyn LocalDisk,
    target: PathBuf,
    folder: PathBuf,
    sync: bool,
    lock: Option<Box<dyn Lock>>,
    published: bool,
    /// Whether it goes at the end; it does if nobody says so.
    ownership: Option<Ownership>,
}

impl<'a> FileStaging<'a> {
    /// Begins an output that will be `target`: a name that is free, or a regular file's.
    pub fn begin(store: &'a dyn LocalDisk, target: &Path, job: &str, sync: bool) -> Result<Self> {
        let (target, prefix) = Self::names(store, target)?;
        let parent = parent_of(&target);
        sweep(store, parent, &prefix, &target, None)?;
        let folder = parent.join(job_folder(&prefix, job));
        let lock = create(store, &folder)?;
        let staging = FileStaging {
            store,
            target,
            folder,
            sync,
            lock: Some(lock),
            published: false,
            ownership: None,
        };
        staging.keep_private()?;
        Ok(staging)
    }

    /// The file that is meant, where a link leads to it; and how the names of job folders beside it begin.
    pub(super) fn names(store: &dyn LocalDisk, target: &Path) -> Result<(PathBuf, OsString)> {
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
            Some(FileKind::DanglingLink) => {
                return Err(refuse("it is a dangling link to another link"));
            }
            Some(FileKind::Other) => return Err(refuse("it is not a regular file")),
        }
        let prefix = prefix_of(&beginning_of(name));
        Ok((target, prefix))
    }
}

impl<'a> FileStaging<'a> {
    /// With what says whether the folder goes at the end.
    #[must_use]
    pub fn owned(mut self, ownership: &Ownership) -> Self {
        self.ownership = Some(ownership.clone());
        self
    }

    /// Makes the file that is to replace another one, so that nobody else may read it before it has that one's permissions.
    fn keep_private(&self) -> Result<()> {
        let staged = self.staged();
        if !is_there(self.store, &self.target)? || is_there(self.store, &staged)? {
            return Ok(());
        }
        self.store.create_private(&staged, &[])
    }

    /// Takes over the folder of the dead job `job`; begins anew where there is none.
    ///
    /// # Errors
    /// As those of [`super::Staging::adopt`].
    pub fn adopt(
        store: &'a dyn LocalDisk,
        target: &Path,
        job: &str,
        sync: bool,
        taken: &Ownership,
    ) -> Result<Self> {
        let (target, prefix) = FileStaging::names(store, target)?;
        let folder = parent_of(&target).join(job_folder(&prefix, job));
        if !is_there(store, &folder)? {
            return FileStaging::begin(store, &target, job, sync);
        }
        let lock = take(store, &folder)?;
        sweep(store, parent_of(&target), &prefix, &target, Some(&folder))?;
        let staging = FileStaging {
            store,
            target,
            folder,
            sync,
            lock: Some(lock),
            published: false,
            ownership: Some(taken.clone()),
        };
        staging.keep_private()?;
        Ok(staging)
    }
}

impl Committer for FileStaging<'_> {
    fn disk(&self) -> &dyn LocalDisk {
        self.store
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn path_of(&self, _name: &Path) -> Location {
        self.staged().into()
    }

    /// Gives the file its name, with the permissions of the file that had it.
    fn publish(mut self: Box<Self>, _made: &Made<'_>) -> Result<()> {
        let path = self.staged();
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
        let lock = self.lock.take();
        remove_folder(self.store, &self.folder, lock).and(synced)
    }
}

/// So much of a name that the name of a job folder is not too long.
fn beginning_of(name: &OsStr) -> OsString {
    match name.to_str() {
        Some(text) => text.chars().take(NAME_CHARS_MAX).collect::<String>().into(),
        None => {
            let bytes = name.as_bytes();
            OsString::from_vec(bytes.get(..NAME_CHARS_MAX).unwrap_or(bytes).to_vec())
        }
    }
}

impl Drop for FileStaging<'_> {
    fn drop(&mut self) {
        if !self.published && may_go(self.ownership.as_ref()) {
            // The job's own error is what the user needs to see; the next job removes what stays.
            let _ = remove_folder(self.store, &self.folder, self.lock.take());
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
        std::fs::write(staging.staged(), "new").unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"old");
        let made = Made {
            names: &[],
            uploads: &[],
            success: b"",
        };
        Box::new(staging).publish(&made).unwrap();
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
