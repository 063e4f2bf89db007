//! Commits a single output file in place. The user may write the file, but cannot rename another one over it: its directory
//! refuses that, or the file is a mount point.
//!
//! ```text
//!   SPILL_DIR/.NAME-CRC.gristmill-JOB/lock        held while the job lives
//!   SPILL_DIR/.NAME-CRC.gristmill-JOB/output      written here, ranges in parallel
//!   SPILL_DIR/.NAME-CRC.gristmill-JOB/complete    the same once it is proved and durable
//!   the file                                      ◀── the bytes of complete, which goes when they are durable there
//! ```
//!
//! The rule that must hold: while `complete` exists, the file may be half written; `complete` is removed only once the file has
//! all its bytes. A resumed job copies it again. Any other job to the same file compares the two, and is refused if they
//! differ.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::file::FileStaging;
use super::job_folder::{FolderPlace, JobFolder, is_there, prefix_of};
use super::ownership::Ownership;
use super::{Committer, OutputManifest};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::location::Location;
use gristmill_storage::{Caching, LocalDisk, ReadFile};

/// The name of the whole output while it is copied to the file.
const COMPLETE: &str = "complete";

/// How many bytes of the file's name begin the name of its job folder.
const NAME_BYTES_MAX: usize = 40;

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// An output file that is being written, and will be copied to its place.
#[derive(Debug)]
pub struct InPlace<'a> {
    target: PathBuf,
    folder: JobFolder<'a>,
    sync: bool,
}

impl<'a> InPlace<'a> {
    /// Whether an output file can only be written in place.
    ///
    /// # Errors
    /// A link cannot be followed.
    ///
    /// ```
    /// use gristmill_storage::local::Local;
    /// use gristmill_tasks::commit::InPlace;
    /// let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("a");
    /// std::fs::write(&file, "a")?;
    /// assert!(!InPlace::is_needed(&Local, &file)?, "a new one can take its name");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_needed(store: &dyn LocalDisk, target: &Path) -> Result<bool> {
        Ok(store.only_in_place(&store.resolve(target)?))
    }

    /// Begins an output to the file `target`, with its job folder in `spill_dir`. Where the owner resumes a dead job, takes over
    /// that job's folder if there is one.
    ///
    /// # Errors
    /// Another job writes that file, or was killed while it did; or the folder cannot be made. Of a folder that is there: there is
    /// a link in it.
    pub fn begin(
        disk: &'a dyn LocalDisk,
        (target, spill_dir): (&Path, &Path),
        owner: &Ownership,
        sync: bool,
    ) -> Result<Self> {
        let (target, prefix) = names(disk, target)?;
        let place = FolderPlace {
            directory: spill_dir,
            prefix,
            output: Some(&target),
        };
        remove_copied(disk, &place, &target)?;
        let folder = place.begin(disk, owner)?;
        Ok(InPlace {
            target,
            folder,
            sync,
        })
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
    fn folder(&self) -> &JobFolder<'_> {
        &self.folder
    }

    fn path_of(&self, _name: &Path) -> Location {
        self.folder.staged().into()
    }

    fn write_in_place(&mut self) -> Result<Option<PathBuf>> {
        let (disk, staged) = (self.folder.disk(), self.folder.staged());
        let complete = self.folder.path().join(COMPLETE);
        if self.sync {
            disk.create(&staged, 0, Caching::Cached)?.sync()?;
        }
        disk.rename(&staged, &complete)?;
        self.folder.stay(); // until the file has all its bytes
        if self.sync {
            disk.sync_directory(self.folder.path())?;
        }
        copy(disk, &complete, &self.target, self.sync)?;
        Ok(Some(self.target.clone()))
    }

    /// Removes what is left of the job: the file is written.
    fn publish(self: Box<Self>, _made: &OutputManifest<'_>) -> Result<()> {
        self.folder.remove()
    }
}

/// Copies the complete output of a killed job to the file again; false if that job had not begun to copy.
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
            let _held = JobFolder::take_over(store, folder, &Ownership::of_resumed_job(job))?;
            copy(store, &complete, &store.resolve(target)?, sync)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The job folder, in `spill_dir`, of a job that writes `target` in place.
pub(super) fn folder_in(
    store: &dyn LocalDisk,
    spill_dir: &Path,
    target: &Path,
    job: &str,
) -> Result<PathBuf> {
    let (target, prefix) = names(store, target)?;
    let place = FolderPlace {
        directory: spill_dir,
        prefix,
        output: Some(&target),
    };
    Ok(place.folder_of(job))
}

/// Fails if a folder holds a complete output and the file has other bytes: it may be half written.
pub(super) fn check_copied(store: &dyn LocalDisk, folder: &Path, target: &Path) -> Result<()> {
    let complete = folder.join(COMPLETE);
    if is_there(store, &complete)? && !is_same(store, &complete, target)? {
        return Err(half_written(folder, target));
    }
    Ok(())
}

/// The target with its links followed, and the prefix of the names of its job folders. The prefix has a CRC of the whole path,
/// since folders for other files of the same name may lie in the same spill directory.
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

/// Removes the folders of dead jobs whose output was copied to the file; fails if one was not copied to its end.
fn remove_copied(disk: &dyn LocalDisk, place: &FolderPlace<'_>, target: &Path) -> Result<()> {
    for folder in disk.list(place.directory).unwrap_or_default() {
        // What cannot be looked at is another user's.
        let is_complete = || matches!(disk.stat(&folder.join(COMPLETE)), Ok(Some(_)));
        if place.is_one(&folder)
            && is_complete()
            && let Some(dead) = JobFolder::of_dead_job(disk, &folder)?
        {
            check_copied(disk, &folder, target)?;
            dead.remove()?;
        }
    }
    Ok(())
}

/// The absolute path, as messages show it.
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

/// Overwrites `target` with the bytes of `complete`; it keeps its owner, its mode and its names. Room for all bytes is reserved
/// before the first is written.
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

/// Reads a file from its beginning to its end, and calls `take` with each piece and its offset.
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
    use gristmill_storage::LOCK;
    use gristmill_storage::faulty::{Fault, FaultPlan, Faulty};
    use gristmill_storage::local::Local;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    const MADE: OutputManifest<'_> = OutputManifest {
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
            let mut made = InPlace::begin(
                store,
                (&self.target, &self.spill()),
                &Ownership::of_new_job("j"),
                true,
            )?;
            fs::write(made.folder().staged(), &self.new).unwrap();
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
        let (spill, k) = (place.spill(), Ownership::of_new_job("k"));
        drop(InPlace::begin(&Local, (&place.target, &spill), &k, true).unwrap());
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
        let (mut half_written, k) = (0, Ownership::of_new_job("k"));
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
                for owner in [&k, &Ownership::of_resumed_job("j")] {
                    let refused = InPlace::begin(&Local, (target, &spill), owner, true);
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
            drop(InPlace::begin(&Local, (target, &spill), &k, true).unwrap());
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
            let plan = FaultPlan {
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
