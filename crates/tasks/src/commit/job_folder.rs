//! A job's folder: made, locked, found by later jobs, taken over by those who resume the job, removed. One for each output, and
//! one in each directory for runs.
//!
//! ```text
//!   DIRECTORY/PREFIX-JOB/lock           held while the job lives
//!   DIRECTORY/PREFIX-JOB/definition     of user code: what it is, for its user alone
//!   DIRECTORY/PREFIX-JOB/output         what will be published
//!   DIRECTORY/PREFIX-JOB/spill/         runs, where the user named no directory for them
//!   DIRECTORY/PREFIX-JOB/attempts/      files of attempts, of which only some count
//! ```
//!
//! The rules that must hold: while anything is in a folder its lock is there, so that whoever finds it knows whether its
//! job lives (only between two calls, at both ends of its life, is a folder empty and without one). Only folders whose
//! names follow from a job's own options and id are taken over; nothing in them is a link; and until the job has taken over all of
//! them ([`Ownership`]), a refusal leaves them as they are, to be tried again.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::ownership::Ownership;
use super::{ATTEMPTS, OLD, OUTPUT, SPILL, SUCCESS};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::location::parent_of;
use gristmill_storage::{FileKind, LOCK, LocalDisk, Lock, Locked, MissingLock};

/// The file with what a job of user code needs to be resumed.
pub(super) const DEFINITION: &str = "definition";

/// Beside the runs of a job with scripts: its archives, unpacked.
pub const ARCHIVES: &str = "archives";

/// And how the names of the working directories of its attempts begin.
pub const SCRIPT_FOLDER: &str = "task-";

/// Whether what lies beside the runs is a folder for scripts: there are links in it, and no job goes on from it.
pub fn is_of_scripts(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == ARCHIVES || name.starts_with(SCRIPT_FOLDER)
}

/// A folder of this process's job, locked. It is removed with all in it when it is dropped, if it is the job's to remove.
#[derive(Debug)]
pub struct JobFolder<'a> {
    disk: &'a dyn LocalDisk,
    path: PathBuf,
    lock: Option<Box<dyn Lock>>,
    owner: Ownership,
    /// Whatever happens, it is not removed.
    stays: bool,
}

impl<'a> JobFolder<'a> {
    fn new(disk: &'a dyn LocalDisk, path: PathBuf, lock: Box<dyn Lock>, owner: &Ownership) -> Self {
        JobFolder {
            disk,
            path,
            lock: Some(lock),
            owner: owner.clone(),
            stays: false,
        }
    }

    /// Makes a folder.
    pub(super) fn create(
        disk: &'a dyn LocalDisk,
        path: PathBuf,
        owner: &Ownership,
    ) -> Result<Self> {
        let lock = disk.create_locked(&path)?;
        Ok(Self::new(disk, path, lock, owner))
    }

    /// Locks a dead job's folder, and checks that it is what it seems.
    pub(super) fn take_over(
        disk: &'a dyn LocalDisk,
        path: PathBuf,
        owner: &Ownership,
    ) -> Result<Self> {
        if disk.resolve(&path)? != path {
            return Err(has_link(&path));
        }
        let refuse = |kind, what: &str| Error::new(kind, "resume the job", what).with_path(&path);
        match disk.lock(&path, MissingLock::Make)? {
            Locked::Taken(lock) => {
                check_plain(disk, &path)?;
                Ok(Self::new(disk, path, lock, owner))
            }
            Locked::Held => Err(refuse(Kind::Exists, "another process has its directory")
                .advise("wait for that process")),
            Locked::Missing | Locked::Foreign => Err(refuse(
                Kind::Permission,
                "its directory, or the lock in it, does not belong to this user",
            )
            .advise("resume it as the user who began it, or remove the directory")),
        }
    }

    /// A dead job's folder, to be looked at and removed; none where its job lives, or nobody knows.
    pub(super) fn of_dead_job(disk: &'a dyn LocalDisk, path: &Path) -> Result<Option<Self>> {
        let Locked::Taken(lock) = disk.lock(path, MissingLock::Leave)? else {
            return Ok(None);
        };
        let owner = Ownership::of_resumed_job("");
        Ok(Some(Self::new(disk, path.to_owned(), lock, &owner)))
    }

    /// The disk that it is on.
    pub fn disk(&self) -> &'a dyn LocalDisk {
        self.disk
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where files of the output lie before they are published.
    pub fn staged(&self) -> PathBuf {
        self.path.join(OUTPUT)
    }

    /// A place for runs; gone with the job.
    pub fn spill_place(&self) -> Result<PathBuf> {
        self.private(SPILL)
    }

    /// A place for files of attempts, of which only some count; gone with the job.
    pub fn attempts_place(&self) -> Result<PathBuf> {
        self.private(ATTEMPTS)
    }

    fn private(&self, name: &str) -> Result<PathBuf> {
        let place = self.path.join(name);
        self.disk.create_private_directory(&place)?;
        Ok(place)
    }

    /// Keeps what the job is, for nobody else to read, where [`definition_of`](super::definition_of) finds it; gone with the job.
    pub fn keep_definition(&self, definition: &[u8]) -> Result<()> {
        let path = self.path.join(DEFINITION);
        self.disk.create_private(&path, definition)
    }

    /// Removes it. What a kill in between leaves has a lock that is free, by which the next job knows it for a dead one's.
    pub(super) fn remove(mut self) -> Result<()> {
        self.stays = true; // nobody tries twice
        remove_folder(self.disk, &self.path, self.lock.take())
    }

    /// It is not removed when it is dropped; the next job finds it.
    pub(super) fn stay(&mut self) {
        self.stays = true;
    }
}

impl Drop for JobFolder<'_> {
    fn drop(&mut self) {
        if !self.stays && self.owner.is_taken() {
            // The job's own outcome is what the user needs to see; the next job removes what stays.
            let _ = remove_folder(self.disk, &self.path, self.lock.take());
        }
    }
}

/// Where folders of jobs to one output lie, or those for runs, and how their names begin.
pub(super) struct FolderPlace<'p> {
    pub(super) directory: &'p Path,
    pub(super) prefix: OsString,
    /// The output, which only one job may write at a time; none of runs.
    pub(super) output: Option<&'p Path>,
}

impl<'p> FolderPlace<'p> {
    /// Beside an output.
    pub(super) fn beside(output: &'p Path) -> Self {
        FolderPlace {
            directory: parent_of(output),
            prefix: prefix_of(output.file_name().unwrap_or_default()),
            output: Some(output),
        }
    }

    /// Within an output directory.
    pub(super) fn within(output: &'p Path) -> Self {
        FolderPlace {
            directory: output,
            prefix: ".gristmill-".into(),
            output: Some(output),
        }
    }

    /// A job's folder.
    pub(super) fn folder_of(&self, job: &str) -> PathBuf {
        let mut name = self.prefix.clone();
        name.push(job);
        self.directory.join(name)
    }

    /// Takes over what a dead job left, where its owner resumes it; else makes a folder. Those of other dead jobs go.
    pub(super) fn begin<'a>(
        &self,
        disk: &'a dyn LocalDisk,
        owner: &Ownership,
    ) -> Result<JobFolder<'a>> {
        if let Some(left) = self.left(disk, owner)? {
            self.sweep(disk, Some(&left.path))?;
            return Ok(left);
        }
        self.create(disk, owner)
            .map_err(|error| match error.kind() {
                Kind::NotFound => no_parent(self.directory),
                Kind::Permission => error.advise(
                    "write to a directory in which you may make files: an output takes its name when it is whole",
                ),
                _ => error,
            })
    }

    /// What a dead job left that is resumed.
    pub(super) fn left<'a>(
        &self,
        disk: &'a dyn LocalDisk,
        owner: &Ownership,
    ) -> Result<Option<JobFolder<'a>>> {
        let path = self.folder_of(owner.job());
        if owner.resumes() && is_there(disk, &path)? {
            JobFolder::take_over(disk, path, owner).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Makes a job's folder; those of dead jobs go first.
    pub(super) fn create<'a>(
        &self,
        disk: &'a dyn LocalDisk,
        owner: &Ownership,
    ) -> Result<JobFolder<'a>> {
        self.sweep(disk, None)?;
        JobFolder::create(disk, self.folder_of(owner.job()), owner)
    }

    /// Removes the folders whose jobs are dead, but `own`. Of those to an output: fails where one is alive, or holds the only copy of
    /// it. Folders of other users are left alone, and so is what cannot be removed: neither is in the way of a job.
    pub(super) fn sweep(&self, disk: &dyn LocalDisk, own: Option<&Path>) -> Result<()> {
        // A directory that may be written, and not be read, has a job's folder as any other.
        for path in disk.list(self.directory).unwrap_or_default() {
            if !self.is_one(&path) || Some(&*path) == own {
                continue;
            }
            match (disk.lock(&path, MissingLock::Leave), self.output) {
                (Ok(Locked::Taken(_)), Some(output)) if holds_old(disk, &path, output)? => {
                    return Err(only_copy(&path));
                }
                (Ok(Locked::Taken(free)), _) => drop(remove_folder(disk, &path, Some(free))),
                (Ok(Locked::Held), Some(_)) => {
                    let what = "another job is writing this output now";
                    return Err(Error::new(Kind::Exists, "write the output", what)
                        .with("job directory", show_path(&path))
                        .advise("wait for it, or name another output"));
                }
                // Of another machine, which may be alive.
                (Err(error), Some(_)) if error.kind() == Kind::Exists => return Err(error),
                // One without a lock was made a moment ago, by a job that is about to lock it.
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a path has the name of such a folder.
    pub(super) fn is_one(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        name.as_bytes().starts_with(self.prefix.as_bytes())
    }
}

/// How the names of job folders beside an output of this name begin.
pub(super) fn prefix_of(name: &OsStr) -> OsString {
    let parts = [b".", name.as_bytes(), b".gristmill-"];
    OsString::from_vec(parts.concat())
}

/// The error of an output in no directory.
pub(super) fn no_parent(parent: &Path) -> Error {
    let what = "its parent does not exist";
    Error::new(Kind::NotFound, "write the output", what)
        .with_path(parent)
        .advise("make that directory first")
}

/// Removes a folder, its lock last. (Behind the lock nothing is left but an empty folder.) The lock is given back before its file
/// goes: on a shared mount a file that is removed while it is open stays in its folder, and the folder with it.
fn remove_folder(disk: &dyn LocalDisk, path: &Path, lock: Option<Box<dyn Lock>>) -> Result<()> {
    disk.remove_all_but(path, LOCK)?;
    drop(lock);
    disk.remove(path)
}

/// The error of a folder that has to stay.
pub(super) fn only_copy(folder: &Path) -> Error {
    let message = "the directory of a job that was killed holds the old output";
    Error::new(Kind::Exists, "write the output", message)
        .with("job directory", show_path(folder))
        .advise("move what is in its directory \"old\" back, or remove it")
}

/// Whether a dead job's folder holds an old output that nothing has taken the place of.
pub(super) fn holds_old(disk: &dyn LocalDisk, folder: &Path, output: &Path) -> Result<bool> {
    Ok(is_there(disk, &folder.join(OLD))? && !is_there(disk, &output.join(SUCCESS))?)
}

/// Fails where a folder, or anything in it down to the files of the output and the runs, is a link.
fn check_plain(disk: &dyn LocalDisk, folder: &Path) -> Result<()> {
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        if disk.resolve(&path)? != path {
            return Err(has_link(&path));
        }
        match disk.stat(&path)?.map(|stat| stat.kind) {
            // Links of scripts lead nowhere that is looked at: their folders go as they are.
            Some(FileKind::Directory) if is_of_scripts(&path) && path != folder => {}
            Some(FileKind::Directory) if !path.ends_with(OLD) => left.extend(disk.list(&path)?),
            Some(FileKind::DanglingLink | FileKind::Other) => return Err(has_link(&path)),
            _ => {}
        }
    }
    Ok(())
}

fn has_link(path: &Path) -> Error {
    let message = "the job's directory has a link in it, which no job makes";
    Error::new(Kind::BadInput, "resume the job", message)
        .with_path(path)
        .advise("check what it is, and remove the directory")
}

pub(super) fn is_there(disk: &dyn LocalDisk, path: &Path) -> Result<bool> {
    Ok(disk.stat(path)?.is_some())
}

pub(super) fn make(disk: &dyn LocalDisk, directory: &Path) -> Result<()> {
    if is_there(disk, directory)? {
        Ok(())
    } else {
        disk.create_directory(directory)
    }
}
