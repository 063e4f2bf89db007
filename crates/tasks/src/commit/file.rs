//! Commits a single output file: one rename gives it its name, in place of any file that had it, or nothing changes.
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

use super::job_folder::{FolderPlace, JobFolder, is_there, prefix_of};
use super::ownership::Ownership;
use super::{Committer, OutputManifest};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::location::{Location, parent_of};
use gristmill_storage::{Caching, FileKind, LocalDisk};

/// How many characters of the output's name begin the name of its job folder: file systems limit the length of a name.
const NAME_CHARS_MAX: usize = 40;

/// An output file that is being written, and not yet published.
#[derive(Debug)]
pub struct FileStaging<'a> {
    target: PathBuf,
    folder: JobFolder<'a>,
    sync: bool,
}

impl<'a> FileStaging<'a> {
    /// Begins an output that will be `target`: nothing has that name yet, or a regular file has it. Where the owner resumes a dead job,
    /// takes over that job's folder if there is one.
    ///
    /// # Errors
    /// Those of [`super::DirectoryStaging::begin`].
    pub fn begin(
        disk: &'a dyn LocalDisk,
        target: &Path,
        owner: &Ownership,
        sync: bool,
    ) -> Result<Self> {
        let (target, prefix) = Self::names(disk, target)?;
        let folder = Self::place_of(&target, prefix).begin(disk, owner)?;
        let staged = folder.staged();
        // Where the output replaces a file, the new one is its owner's alone until it has the old one's permissions.
        if is_there(disk, &target)? && !is_there(disk, &staged)? {
            disk.create_private(&staged, &[])?;
        }
        Ok(FileStaging {
            target,
            folder,
            sync,
        })
    }

    /// Where job folders for this file lie.
    pub(super) fn place_of(target: &Path, prefix: OsString) -> FolderPlace<'_> {
        FolderPlace {
            directory: parent_of(target),
            prefix,
            output: Some(target),
        }
    }

    /// The target with its links followed, and the prefix of the names of job folders beside it.
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
        let names_directory = target.as_os_str().as_bytes().ends_with(b"/");
        match store.stat(&target)?.map(|stat| stat.kind) {
            None if names_directory => {
                return Err(refuse("it ends with a slash, and the output is a file"));
            }
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

impl Committer for FileStaging<'_> {
    fn folder(&self) -> &JobFolder<'_> {
        &self.folder
    }

    fn path_of(&self, _name: &Path) -> Location {
        self.folder.staged().into()
    }

    /// Gives the file its name, with the permissions of the file that had it.
    fn publish(self: Box<Self>, _made: &OutputManifest<'_>) -> Result<()> {
        let (disk, path) = (self.folder.disk(), self.folder.staged());
        let file = disk.create(&path, 0, Caching::Cached)?;
        if self.sync {
            file.sync()?;
        }
        drop(file);
        disk.replace(&path, &self.target)?;
        let synced = match self.sync {
            true => disk.sync_directory(parent_of(&self.target)),
            false => Ok(()),
        };
        self.folder.remove().and(synced)
    }
}

/// The first [`NAME_CHARS_MAX`] characters of a name; of one that is not UTF-8, as many bytes.
fn beginning_of(name: &OsStr) -> OsString {
    match name.to_str() {
        Some(text) => text.chars().take(NAME_CHARS_MAX).collect::<String>().into(),
        None => {
            let bytes = name.as_bytes();
            OsString::from_vec(bytes.get(..NAME_CHARS_MAX).unwrap_or(bytes).to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::local::Local;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn replaces_at_once_keeps_permissions_and_follows_links() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        let staging =
            FileStaging::begin(&Local, &link, &Ownership::of_new_job("j"), false).unwrap();
        std::fs::write(staging.folder().staged(), "new").unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"old");
        let made = OutputManifest {
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
        let error = FileStaging::begin(&Local, folder.path(), &Ownership::of_new_job("j"), false)
            .unwrap_err();
        assert_eq!(error.kind(), Kind::BadOption);
    }
}
