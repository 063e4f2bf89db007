//! Commit: an output appears whole, under its name, or not at all.
//!
//! ```text
//!   parent/.out.gristmill-JOB/lock            held while the job lives
//!   parent/.out.gristmill-JOB/definition      of people's own code: what it is, for its user alone
//!   parent/.out.gristmill-JOB/output/         parts are written here, then _SUCCESS
//!   parent/out                                ◀── one rename of output/ (an exchange when overwriting)
//! ```
//!
//! A job killed at any moment leaves its job folder, and the folder's lock is free: the next job to the same
//! output removes it. The lock goes last, so that this also holds of a job that is killed while it clears up. Where
//! nothing can be created beside the output (its parent is not writable, or the output is a mount point) the job
//! folder lies inside it and parts are renamed one by one, `_SUCCESS` last; only then can a kill between two renames
//! leave parts without `_SUCCESS`.

mod adopt;
mod file;
mod folder;
mod places;
mod within;

use std::path::{Path, PathBuf};

pub use adopt::{Taken, clear_published, definition_of};
pub use file::FileStaging;
pub use places::{ARCHIVES, SCRIPT_FOLDER, SpillPlaces, check_room, is_of_scripts};

use self::folder::{create, lock, remove_folder, sweep};
use crate::error::{Error, JobOption, Kind, Result};
use crate::storage::local::parent_of;
use crate::storage::{Caching, FileKind, Lock, Store};

/// The file that says that a directory holds a finished job's output, and what that job proved.
pub const SUCCESS: &str = "_SUCCESS";

const LOCK: &str = "lock";
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

/// An output being made: its job folder, locked.
#[derive(Debug)]
pub struct Staging<'a> {
    store: &'a dyn Store,
    target: PathBuf,
    folder: PathBuf,
    options: CommitOptions,
    /// The folder lies inside the target.
    inside: bool,
    _lock: Box<dyn Lock>,
    published: bool,
    /// The folder holds the only copy of the old output, and must stay.
    holds_old: bool,
    /// The folder was a dead job's.
    adopted: Option<Taken>,
}

impl<'a> Staging<'a> {
    /// Makes the job folder for an output directory `target` of `bytes` bytes; removes those of dead jobs.
    ///
    /// ```
    /// use gristmill_engine::commit::{CommitOptions, Staging};
    /// use gristmill_engine::storage::{Caching, Store, memory::Memory};
    /// let store = Memory::with_room_for(1000);
    /// let options = CommitOptions { overwrite: false, sync: true };
    /// let staging = Staging::begin(&store, "/out".as_ref(), "job_1", 3, options)?;
    /// store.create(&staging.path_of("part-r-00000"), 3, Caching::Direct)?.write_at(b"abc", 0)?;
    /// assert!(store.stat("/out".as_ref())?.is_none());
    /// staging.publish(&["part-r-00000".into()], b"{}")?;
    /// assert_eq!(store.bytes_of("/out/part-r-00000".as_ref()), Some(b"abc".to_vec()));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn begin(
        store: &'a dyn Store,
        target: &Path,
        job: &str,
        bytes: u64,
        options: CommitOptions,
    ) -> Result<Self> {
        let parent = parent_of(target);
        let name = check_target(store, target, options.overwrite)?;
        let exists = store.stat(target)?.is_some();
        let beside = parent.join(format!(".{name}.gristmill-{job}"));
        let mount_point = exists && device_of(store, target)? != device_of(store, parent)?;
        let within = target.join(format!(".gristmill-{job}"));
        sweep(store, parent, &format!(".{name}.gristmill-"), target, None)?;
        let made = if mount_point {
            Ok(false)
        } else {
            create(store, &beside)
        };
        let (folder, inside) = match made {
            Ok(true) => (beside, false),
            Err(error) if !exists || error.kind() != Kind::Permission => return Err(error),
            Ok(false) | Err(_) => {
                sweep(store, target, ".gristmill-", target, None)?;
                create(store, &within)?;
                (within, true)
            }
        };
        match lock(store, &folder) {
            Ok(lock) => {
                let target = target.to_owned();
                let staging = Staging {
                    store,
                    target,
                    folder,
                    options,
                    inside,
                    _lock: lock,
                    published: false,
                    holds_old: false,
                    adopted: None,
                };
                store.create_directory(&staging.folder.join(OUTPUT))?;
                check_space(store, &staging.folder, bytes)?;
                Ok(staging)
            }
            Err(error) => {
                remove_folder(store, &folder)?;
                Err(error)
            }
        }
    }

    /// A place for runs, on the output's file system; gone with the job.
    pub fn spill_place(&self) -> Result<PathBuf> {
        adopt::spill_place(self.store, &self.folder)
    }

    /// What gets the output's name: the directory with its files.
    pub fn staged(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    /// A place for files of attempts, of which only some count; gone with the job.
    pub fn attempts_place(&self) -> Result<PathBuf> {
        let place = self.folder.join(ATTEMPTS);
        adopt::make(self.store, &place)?;
        Ok(place)
    }

    /// Where the output file `name` is written.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.folder.join(OUTPUT).join(name)
    }

    /// Publishes the output: makes `parts` durable, writes `success` to `_SUCCESS`, gives the directory its name.
    pub fn publish(mut self, parts: &[String], success: &[u8]) -> Result<()> {
        let staged = self.folder.join(OUTPUT);
        if self.options.sync {
            parts
                .iter()
                .try_for_each(|part| self.sync_file(&staged.join(part)))?;
        }
        let path = staged.join(SUCCESS);
        let file = self
            .store
            .create(&path, success.len() as u64, Caching::Cached)?;
        file.write_at(success, 0)?;
        if self.options.sync {
            file.sync()?;
            within::sync(self.store, &staged, parts)?;
        }
        drop(file);
        if self.inside {
            self.publish_parts(parts)?;
        } else {
            self.publish_directory(&staged)?;
        }
        self.published = true;
        let names = if self.inside {
            &self.target
        } else {
            parent_of(&self.target)
        };
        let synced = if self.options.sync {
            self.store.sync_directory(names)
        } else {
            Ok(())
        };
        remove_folder(self.store, &self.folder).and(synced)
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        self.store.create(path, 0, Caching::Cached)?.sync()
    }

    /// One rename; with an old output in place, one exchange, so that there is never none.
    fn publish_directory(&mut self, staged: &Path) -> Result<()> {
        if !self.options.overwrite || self.store.stat(&self.target)?.is_none() {
            return self.store.rename(staged, &self.target);
        }
        if self.store.exchange(staged, &self.target)? {
            return Ok(()); // the old output is in the job folder now, and goes with it
        }
        let old = self.folder.join(OLD);
        self.store.rename(&self.target, &old)?;
        let renamed = self.store.rename(staged, &self.target);
        if renamed.is_err() {
            self.holds_old = self.store.rename(&old, &self.target).is_err();
        }
        renamed
    }

    /// File by file: the old `_SUCCESS` goes first, the new one comes last. An error moves all of them back.
    fn publish_parts(&mut self, parts: &[String]) -> Result<()> {
        let mut moved = Vec::new();
        let published = self.move_parts(parts, &mut moved);
        if published.is_err() {
            let back = |(from, to): (PathBuf, PathBuf)| self.store.rename(&to, &from);
            self.holds_old = moved.into_iter().rev().try_for_each(back).is_err();
        }
        published
    }

    fn move_parts(&self, parts: &[String], moved: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
        let old = self.folder.join(OLD);
        self.store.create_directory(&old)?;
        let mut entries = self.store.list(&self.target)?;
        entries.retain(|path| *path != self.folder);
        entries.sort_by_key(|path| !path.ends_with(SUCCESS));
        let aside = entries.into_iter().map(|path| {
            let to = old.join(path.file_name().unwrap_or_default());
            (path, to)
        });
        let names = parts.iter().map(String::as_str).chain([SUCCESS]);
        let new = names.map(|name| (self.path_of(name), self.target.join(name)));
        for (from, to) in aside.chain(new) {
            within::make_above(self.store, &to)?;
            self.store.rename(&from, &to)?;
            moved.push((from, to));
        }
        Ok(())
    }
}

impl Drop for Staging<'_> {
    /// A job that fails leaves nothing behind.
    fn drop(&mut self) {
        if !self.published && !self.holds_old && adopt::may_go(self.adopted.as_ref()) {
            // The job's own error is what the user needs to see; the next job removes what stays.
            let _ = remove_folder(self.store, &self.folder);
        }
    }
}

/// Whether a job could begin to write `target` now, before anything is done for it.
///
/// # Errors
/// What [`Staging::begin`] would say: it exists, or there is no directory for it.
///
/// ```
/// use gristmill_engine::{Kind, commit::check_output};
/// use gristmill_engine::storage::{Store, memory::Memory};
/// let store = Memory::with_room_for(1000);
/// assert_eq!(check_output(&store, "/jobs/out".as_ref(), false).unwrap_err().kind(), Kind::NotFound);
/// store.create_directory("/jobs".as_ref())?;
/// assert!(check_output(&store, "/jobs/out".as_ref(), false).is_ok());
/// store.create_directory("/jobs/out".as_ref())?;
/// assert_eq!(check_output(&store, "/jobs/out".as_ref(), false).unwrap_err().kind(), Kind::Exists);
/// assert!(check_output(&store, "/jobs/out".as_ref(), true).is_ok());
/// # Ok::<(), gristmill_engine::Error>(())
/// ```
pub fn check_output(store: &dyn Store, target: &Path, overwrite: bool) -> Result<()> {
    check_target(store, target, overwrite)?;
    let parent = parent_of(target);
    if store.stat(parent)?.is_none() {
        return Err(folder::no_parent(parent));
    }
    Ok(())
}

/// Whether `target` may be written; returns its name.
fn check_target(store: &dyn Store, target: &Path, overwrite: bool) -> Result<String> {
    let refuse = |kind, what: &str| Error::new(kind, "write the output", what).with_path(target);
    let Some(name) = target.file_name() else {
        return Err(refuse(Kind::BadOption, "it has no name of its own")
            .advise("name a directory that does not exist yet"));
    };
    let Some(stat) = store.stat(target)? else {
        return Ok(name.to_string_lossy().into_owned());
    };
    let taken = match stat.kind {
        FileKind::Directory => None,
        FileKind::File => Some("there is a file of this name"),
        FileKind::Other => Some("there is something of this name that is no directory"),
    };
    if let Some(taken) = taken {
        return Err(refuse(Kind::Exists, taken).advise("name a directory that does not exist yet"));
    }
    let entries = store.list(target)?;
    let foreign = entries.iter().find(|path| !is_output(path));
    if overwrite && let Some(foreign) = foreign {
        let what = "the directory holds more than a job's output, and overwriting would remove it";
        return Err(refuse(Kind::Exists, what)
            .with("for example", foreign.display())
            .advise("name another output, or remove the directory yourself"));
    }
    if !overwrite {
        return Err(refuse(Kind::Exists, "the output exists").advise_options(
            "name another output, or give {} to replace it",
            [JobOption::Overwrite.named()],
        ));
    }
    Ok(name.to_string_lossy().into_owned())
}

/// Whether a name is one that jobs give: parts, `_SUCCESS` and the like, checksums and job folders.
fn is_output(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    let known = ["part-", "_", ".part-", "._", ".gristmill-"];
    known.iter().any(|prefix| name.starts_with(prefix)) || is_named_output(&name)
}

/// Whether a name is that of a task's further output: a name, `-m-` or `-r-`, five digits or more, a suffix.
fn is_named_output(name: &str) -> bool {
    ["-m-", "-r-"].iter().any(|kind| {
        let number = name.split_once(kind).map_or("", |(_, after)| after);
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        digits >= 5 && matches!(number.as_bytes().get(digits), None | Some(b'.'))
    })
}

fn device_of(store: &dyn Store, path: &Path) -> Result<Option<u64>> {
    Ok(store.stat(path)?.map(|stat| stat.identity.0))
}

/// Refuses an output that cannot fit.
fn check_space(store: &dyn Store, folder: &Path, bytes: u64) -> Result<()> {
    match store.free_bytes(folder)? {
        Some(free) if free < bytes => {
            let message = format!("it needs {bytes} bytes and the file system has {free} free");
            Err(Error::new(Kind::DiskFull, "write the output", message)
                .with_path(folder)
                .advise("free some space, or name an output on another file system"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::local::Local;

    pub(super) const KEEP: CommitOptions = CommitOptions {
        overwrite: false,
        sync: false,
    };
    pub(super) const OVERWRITE: CommitOptions = CommitOptions {
        overwrite: true,
        sync: true,
    };

    /// What is in a folder, hidden names too, in order.
    pub(super) fn names(folder: &Path) -> Vec<String> {
        let paths = Local.list(folder).unwrap();
        paths
            .iter()
            .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    fn put(staging: &Staging<'_>, bytes: &[u8]) {
        let path = staging.path_of("part-r-00000");
        Local
            .create(&path, bytes.len() as u64, Caching::Direct)
            .unwrap()
            .write_at(bytes, 0)
            .unwrap();
    }

    #[test]
    fn nothing_stays_of_a_job_that_fails_and_all_of_one_that_ends() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let staging = Staging::begin(&Local, &out, "j1", 1, KEEP).unwrap();
        put(&staging, b"x");
        drop(staging);
        assert!(names(folder.path()).is_empty());
        for (job, options, bytes) in [("j2", KEEP, b"old"), ("j3", OVERWRITE, b"new")] {
            let staging = Staging::begin(&Local, &out, job, 1, options).unwrap();
            put(&staging, bytes);
            staging.publish(&["part-r-00000".into()], b"{}").unwrap();
            assert_eq!(names(folder.path()), ["out"]);
            assert_eq!(names(&out), ["_SUCCESS", "part-r-00000"]);
            assert_eq!(std::fs::read(out.join("part-r-00000")).unwrap(), bytes);
        }
        let error = Staging::begin(&Local, &out, "j4", 1, KEEP).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists);
        std::fs::write(out.join("diary.txt"), "mine").unwrap();
        let error = Staging::begin(&Local, &out, "j5", 1, OVERWRITE).unwrap_err();
        assert!(error.to_string().contains("diary.txt"), "{error}");
    }

    #[test]
    fn dead_folders_go_and_living_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let dead = folder.path().join(".out.gristmill-dead");
        std::fs::create_dir_all(dead.join("output")).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        let staging = Staging::begin(&Local, &out, "j1", 1, KEEP).unwrap();
        assert_eq!(names(folder.path()), [".out.gristmill-j1"]);
        let error = Staging::begin(&Local, &out, "j2", 1, KEEP).unwrap_err();
        assert!(
            error.to_string().contains("another job is writing"),
            "{error}"
        );
        put(&staging, b"still here");
    }

    #[test]
    fn an_old_output_that_a_dead_job_holds_is_not_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let dead = folder.path().join(".out.gristmill-dead");
        std::fs::create_dir_all(dead.join(OLD)).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        let error = Staging::begin(&Local, &out, "j1", 1, KEEP).unwrap_err();
        assert!(
            error.to_string().contains("holds the old output"),
            "{error}"
        );
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join(SUCCESS), "{}").unwrap();
        Staging::begin(&Local, &out, "j2", 1, OVERWRITE).unwrap();
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn an_output_beyond_the_free_space_is_refused_with_the_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            Staging::begin(&Local, &folder.path().join("o"), "j", 1 << 60, KEEP).unwrap_err();
        assert_eq!(error.kind(), Kind::DiskFull);
        assert!(error.to_string().contains("1152921504606846976"), "{error}");
        assert!(names(folder.path()).is_empty());
    }
}
