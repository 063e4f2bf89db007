//! A single output file that is written in place: it may be written, and no other file can take its name. Its directory
//! refuses that, or the file is a mount point.
//!
//! ```text
//!   SPILL_DIR/.NAME-CRC.gristmill-JOB/lock        held while the job lives
//!   SPILL_DIR/.NAME-CRC.gristmill-JOB/output      written here, ranges in parallel
//!   SPILL_DIR/.NAME-CRC.gristmill-JOB/complete    the same once it is proved and durable
//!   the file                                      ◀── the bytes of complete, which goes when they are durable there
//! ```
//!
//! The rule that must hold: while `complete` is there the file may be half written, and nothing but a copy that came to its
//! end removes it. A resumed job copies it again; any other job to the same file compares both, and is refused if they
//! differ.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::adopt::{Ownership, may_go, take};
use super::file::FileStaging;
use super::folder::{create, is_there, job_folder, prefix_of, remove_folder, sweep};
use super::{Committer, Made};
use crate::error::{Error, Kind, Result};
use crate::names::show_path;
use crate::storage::location::Location;
use crate::storage::{Caching, LocalDisk, Lock, Locked, MissingLock, ReadFile};

/// The whole output, from when the file is being written.
const COMPLETE: &str = "complete";

/// How much of the file's name the name of the job folder has.
const NAME_BYTES_MAX: usize = 40;

/// What is copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// An output file in the making that is written in place.
#[derive(Debug)]
pub struct InPlace<'a> {
    store: &'a dyn LocalDisk,
    target: PathBuf,
    folder: PathBuf,
    sync: bool,
    lock: Option<Box<dyn Lock>>,
    ownership: Option<Ownership>,
}

impl<'a> InPlace<'a> {
    /// Whether an output file can be written only so.
    ///
    /// # Errors
    /// A link cannot be followed.
    ///
    /// ```
    /// use gristmill_engine::{commit::InPlace, storage::local::Local};
    /// let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("a");
    /// std::fs::write(&file, "a")?;
    /// assert!(!InPlace::is_needed(&Local, &file)?, "a new one can take its name");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_needed(store: &dyn LocalDisk, target: &Path) -> Result<bool> {
        Ok(store.only_in_place(&store.resolve(target)?))
    }

    /// Begins an output that will be written into the file `target`, by way of a folder in `spill_dir`.
    ///
    /// # Errors
    /// Another job is writing that file, or was killed when it did; or no folder can be made.
    pub fn begin(
        store: &'a dyn LocalDisk,
        (target, spill_dir): (&Path, &Path),
        job: &str,
        sync: bool,
    ) -> Result<Self> {
        let (target, prefix) = names(store, target)?;
        remove_copied(store, spill_dir, &prefix, &target)?;
        sweep(store, spill_dir, &prefix, &target, None)?;
        let folder = spill_dir.join(job_folder(&prefix, job));
        let made = InPlace {
            lock: Some(create(store, &folder)?),
            store,
            target,
            folder,
            sync,
            ownership: None,
        };
        Ok(made)
    }

    /// Takes over the folder of the dead job `job`; begins anew where there is none.
    ///
    /// # Errors
    /// The folder's owner is alive, there is a link in it, or the file is half written.
    pub fn adopt(
        store: &'a dyn LocalDisk,
        (target, spill_dir): (&Path, &Path),
        job: &str,
        sync: bool,
        taken: &Ownership,
    ) -> Result<Self> {
        let folder = folder_in(store, spill_dir, target, job)?;
        if !is_there(store, &folder)? {
            return InPlace::begin(store, (target, spill_dir), job, sync);
        }
        let lock = take(store, &folder)?;
        let (target, prefix) = names(store, target)?;
        if is_there(store, &folder.join(COMPLETE))? {
            return Err(half_written(&folder, &target));
        }
        sweep(store, spill_dir, &prefix, &target, Some(&folder))?;
        Ok(InPlace {
            store,
            target,
            folder,
            sync,
            lock: Some(lock),
            ownership: Some(taken.clone()),
        })
    }

    /// With what says whether the folder goes at the end.
    #[must_use]
    pub fn owned(mut self, ownership: &Ownership) -> Self {
        self.ownership = Some(ownership.clone());
        self
    }

    /// What the user should know before the file is written.
    pub fn notice(target: &Path, spill_dir: &Path) -> String {
        format!(
            "no new file can take the name of {}, so the job writes into that file at its end. If it is killed at that moment, the \
             file is incomplete, and the complete output is in {}: `gristmill resume last` then finishes it.",
            show_path(target),
            shown(spill_dir)
        )
    }
}

impl Committer for InPlace<'_> {
    fn disk(&self) -> &dyn LocalDisk {
        self.store
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn path_of(&self, _name: &Path) -> Location {
        self.staged().into()
    }

    fn write_in_place(&self) -> Result<Option<PathBuf>> {
        let (staged, complete) = (self.staged(), self.folder.join(COMPLETE));
        if self.sync {
            self.store.create(&staged, 0, Caching::Cached)?.sync()?;
        }
        self.store.rename(&staged, &complete)?;
        if self.sync {
            self.store.sync_directory(&self.folder)?;
        }
        copy(self.store, &complete, &self.target, self.sync)?;
        Ok(Some(self.target.clone()))
    }

    /// Removes what is left of the job: the file is written.
    fn publish(mut self: Box<Self>, _made: &Made<'_>) -> Result<()> {
        remove_folder(self.store, &self.folder, self.lock.take())
    }
}

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        let complete = self.folder.join(COMPLETE);
        let is_whole = matches!(self.store.stat(&complete), Ok(None));
        if self.lock.is_some() && is_whole && may_go(self.ownership.as_ref()) {
            // The job's own error is what the user needs to see; the next job removes what stays.
            let _ = remove_folder(self.store, &self.folder, self.lock.take());
        }
    }
}

/// Copies again what a job that was killed had begun to copy; false where it had not.
///
/// # Errors
/// The folder's owner is alive, there is a link in it, or the file cannot be written.
pub fn finish_in_place(
    store: &dyn LocalDisk,
    target: &Path,
    spill_dirs: &[PathBuf],
    job: &str,
    sync: bool,
) -> Result<bool> {
    for spill_dir in spill_dirs {
        let folder = folder_in(store, spill_dir, target, job)?;
        let complete = folder.join(COMPLETE);
        if is_there(store, &complete)? {
            let _held = take(store, &folder)?;
            copy(store, &complete, &store.resolve(target)?, sync)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The folder in a spill directory of a job that writes a file in place.
pub(super) fn folder_in(
    store: &dyn LocalDisk,
    spill_dir: &Path,
    target: &Path,
    job: &str,
) -> Result<PathBuf> {
    let (_, prefix) = names(store, target)?;
    Ok(spill_dir.join(job_folder(&prefix, job)))
}

/// Fails where a folder holds an output whose file is half written.
pub(super) fn check_copied(store: &dyn LocalDisk, folder: &Path, target: &Path) -> Result<()> {
    let complete = folder.join(COMPLETE);
    if is_there(store, &complete)? && !is_same(store, &complete, target)? {
        return Err(half_written(folder, target));
    }
    Ok(())
}

/// The file that is meant, and how the names of folders of jobs that write it begin: they may lie among those to others.
fn names(store: &dyn LocalDisk, target: &Path) -> Result<(PathBuf, OsString)> {
    let (target, _) = FileStaging::names(store, target)?;
    let whole = std::path::absolute(&target);
    let whole = whole.map_err(|error| Error::from_io("find a file", &target, &error))?;
    let name = target.file_name().unwrap_or_default().as_bytes();
    let mut short = OsStr::from_bytes(name.get(..NAME_BYTES_MAX).unwrap_or(name)).to_owned();
    short.push(format!(
        "-{:08x}",
        crc32fast::hash(whole.as_os_str().as_bytes())
    ));
    Ok((target, prefix_of(&short)))
}

/// Removes folders of dead jobs whose output is in the file.
fn remove_copied(
    store: &dyn LocalDisk,
    spill_dir: &Path,
    prefix: &OsStr,
    target: &Path,
) -> Result<()> {
    for folder in store.list(spill_dir).unwrap_or_default() {
        let name = folder.file_name().unwrap_or_default().as_bytes();
        // What cannot be looked at is another user's.
        if !name.starts_with(prefix.as_bytes())
            || !matches!(store.stat(&folder.join(COMPLETE)), Ok(Some(_)))
        {
            continue;
        }
        if let Locked::Taken(free) = store.lock(&folder, MissingLock::Leave)? {
            check_copied(store, &folder, target)?;
            remove_folder(store, &folder, Some(free))?;
        }
    }
    Ok(())
}

/// A path as it is found from any directory.
fn shown(path: &Path) -> String {
    let whole = std::path::absolute(path);
    show_path(whole.as_deref().unwrap_or(path)).to_string()
}

fn half_written(folder: &Path, target: &Path) -> Error {
    let message = "a job was killed while it wrote this file, which may be incomplete";
    let job = folder
        .to_string_lossy()
        .rsplit_once(".gristmill-")
        .map(|(_, job)| job.to_owned());
    Error::new(Kind::Exists, "write the output", message)
        .with_path(target)
        .with("complete output", shown(&folder.join(COMPLETE)))
        .advise(format!(
            "finish it with `gristmill resume {}`, or copy the complete output to the file; to give it up, remove its directory",
            job.unwrap_or_default()
        ))
}

/// Writes the bytes of a file into another one, which keeps its owner, its mode and its names. Before the first of them is
/// written there is room for all.
fn copy(store: &dyn LocalDisk, complete: &Path, target: &Path, sync: bool) -> Result<()> {
    let (bytes, before) = (bytes_of(store, complete)?, bytes_of(store, target)?);
    let from = store.open(complete, Caching::Cached)?;
    let write = || {
        let to = store.overwrite(target)?;
        if let Err(full) = to.reserve(bytes) {
            to.cut(before)?;
            return Err(full);
        }
        for_each_piece(&*from, |piece, offset| to.write_at(piece, offset))?;
        to.cut(bytes)?;
        to.hand_over()?;
        if sync { to.sync() } else { Ok(()) }
    };
    write().map_err(|error| {
        error
            .with("complete output", shown(complete))
            .advise("copy the complete output to the file, then remove its directory")
    })
}

/// Whether two files have the same bytes.
fn is_same(store: &dyn LocalDisk, one: &Path, other: &Path) -> Result<bool> {
    if bytes_of(store, one)? != bytes_of(store, other)? {
        return Ok(false);
    }
    let crc_of = |path: &Path| {
        let mut crc = crc32fast::Hasher::new();
        let file = store.open(path, Caching::Cached)?;
        for_each_piece(&*file, |piece, _| {
            crc.update(piece);
            Ok(())
        })?;
        Ok::<_, Error>(crc.finalize())
    };
    Ok(crc_of(one)? == crc_of(other)?)
}

fn bytes_of(store: &dyn LocalDisk, path: &Path) -> Result<u64> {
    Ok(store.stat(path)?.map_or(0, |stat| stat.bytes))
}

/// Reads a file from its beginning to its end.
fn for_each_piece(
    file: &dyn ReadFile,
    mut take: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let (mut piece, mut offset) = (vec![0; PIECE_BYTES], 0);
    loop {
        let read = file.read_at(&mut piece, offset)?;
        take(piece.get(..read).unwrap_or_default(), offset)?;
        offset += read as u64;
        if read < piece.len() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::LOCK;
    use crate::storage::faulty::{Fault, Faulty, Plan};
    use crate::storage::local::Local;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    const MADE: Made<'_> = Made {
        names: &[],
        uploads: &[],
        success: b"",
    };

    struct Place {
        folder: tempfile::TempDir,
        target: PathBuf,
        old: Vec<u8>,
        new: Vec<u8>,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("out");
            Place {
                target,
                folder,
                old: vec![b'o'; 2 * PIECE_BYTES + 5],
                new: vec![b'n'; PIECE_BYTES + 3],
            }
        }

        fn spill(&self) -> PathBuf {
            self.folder.path().join("spill")
        }

        /// A job that writes the file, as far as it comes.
        fn job(&self, store: &dyn LocalDisk) -> Result<()> {
            fs::write(&self.target, &self.old).unwrap();
            fs::create_dir_all(self.spill()).unwrap();
            let made = InPlace::begin(store, (&self.target, &self.spill()), "j", true)?;
            fs::write(made.staged(), &self.new).unwrap();
            assert_eq!(made.write_in_place()?.as_ref(), Some(&self.target));
            Box::new(made).publish(&MADE)
        }

        fn holds(&self, bytes: &[u8]) -> bool {
            fs::read(&self.target).unwrap() == bytes
        }

        fn left(&self) -> usize {
            fs::read_dir(self.spill()).unwrap().count()
        }
    }

    #[test]
    fn the_file_stays_the_same_file_and_nothing_else_stays() {
        let place = Place::new();
        fs::write(&place.target, "").unwrap();
        let before = fs::metadata(&place.target).unwrap();
        place.job(&Local).unwrap();
        let after = fs::metadata(&place.target).unwrap();
        assert!(place.holds(&place.new));
        assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()));
        assert_eq!(place.left(), 0);
        let spill = place.spill();
        drop(InPlace::begin(&Local, (&place.target, &spill), "k", true).unwrap());
        assert_eq!(place.left(), 0, "a job that fails leaves nothing");
    }

    /// Whenever a job is killed, the old bytes are in the file, or the new ones are somewhere.
    #[test]
    fn a_kill_at_any_call_loses_nothing() {
        let calls = {
            let (place, store) = (Place::new(), Faulty::dying(Local, u64::MAX));
            place.job(&store).unwrap();
            store.calls()
        };
        let mut half_written = 0;
        for call in 0..calls {
            let (place, store) = (Place::new(), Faulty::dying(Local, call));
            let died = place.job(&store).is_err();
            let (target, spill) = (&place.target, place.spill());
            let complete = folder_in(&Local, &spill, target, "j")
                .unwrap()
                .join(COMPLETE);
            if complete.exists() && !place.holds(&place.new) {
                half_written += 1;
                assert!(fs::read(&complete).unwrap() == place.new, "call {call}");
                for refused in [
                    InPlace::begin(&Local, (target, &spill), "k", true),
                    InPlace::adopt(&Local, (target, &spill), "j", true, &Ownership::default()),
                ] {
                    let error = refused.unwrap_err();
                    assert!(
                        error.to_string().contains(complete.to_str().unwrap()),
                        "{error}"
                    );
                }
                assert!(
                    finish_in_place(&Local, target, std::slice::from_ref(&spill), "j", true)
                        .unwrap()
                );
                assert!(place.holds(&place.new), "call {call}");
            }
            assert!(!died || place.holds(&place.old) || place.holds(&place.new));
            drop(InPlace::begin(&Local, (target, &spill), "k", true).unwrap());
            let empty = place.left() == 0 || !complete.with_file_name(LOCK).exists();
            assert!(empty, "call {call}");
        }
        assert!(half_written >= 3, "{half_written}");
    }

    /// A disk that fails once: the error says where the output is, if it is not where it belongs.
    #[test]
    fn an_error_at_any_call_loses_nothing() {
        for call in 0_u64.. {
            let fault = Fault::Code(28);
            let plan = Plan {
                fault,
                from: call,
                to: call + 1,
            };
            let (place, store) = (Place::new(), Faulty::new(Local, plan));
            let done = place.job(&store);
            if store.calls() <= call {
                return;
            }
            if let Err(error) = done
                && !place.holds(&place.old)
                && !place.holds(&place.new)
            {
                assert!(error.to_string().contains(COMPLETE), "call {call}: {error}");
                assert_eq!(place.left(), 1);
            }
        }
    }
}
