//! Takes hold of a dead job's history, to continue it.
//!
//! The lock comes first, then the look at what is there: of two who would go on, one is told that the job is alive.
//! Nothing is written to a file that a link leads to, nor to one that is not where the job's folder is.

use std::fs::{self, File, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::EVENTS;
use super::event::Timed;
use super::reader::{parse, whole_bytes};
use gristmill_base::error::{Error, Kind, Result};

/// A process that checks whether a job lives holds a lock for a moment: the wait for it, in steps.
const LOCK_TRIES: u32 = 40;
const LOCK_WAIT: Duration = Duration::from_millis(10);

/// A dead job's history, locked.
#[derive(Debug)]
pub struct LockedHistory {
    /// The job's folder.
    pub folder: PathBuf,
    /// What happened in it.
    pub events: Vec<Timed>,
    /// The file, open for appending at the end of its last whole line.
    pub(super) file: File,
}

/// Locks the history in `folder` and reads it. A last line that is not whole is cut off.
///
/// # Errors
/// There is no history, its job is alive, it is damaged, or a later version wrote it.
pub fn lock(folder: &Path) -> Result<LockedHistory> {
    let path = folder.join(EVENTS);
    let failed = |error| Error::from_io("resume the job", &path, &error);
    let is_plain = |path: &Path| fs::symlink_metadata(path).map(|found| !found.is_symlink());
    if !is_plain(folder).map_err(failed)? || !is_plain(&path).map_err(failed)? {
        let message = "its history is a symbolic link, which might lead anywhere";
        return Err(Error::new(Kind::BadInput, "resume the job", message).with_path(&path));
    }
    let mut file = File::options()
        .read(true)
        .append(true)
        .open(&path)
        .map_err(failed)?;
    wait_for_lock(&file, &path)?;
    let read = fs::read(&path).map_err(failed)?;
    let events = parse(&path, &read)?;
    let whole = whole_bytes(&read);
    if whole < read.len() {
        file.set_len(whole as u64).map_err(failed)?;
    }
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    let folder = folder.to_owned();
    Ok(LockedHistory {
        folder,
        events,
        file,
    })
}

fn wait_for_lock(file: &File, path: &Path) -> Result<()> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_WAIT),
            Err(TryLockError::Error(error)) => {
                return Err(Error::from_io("resume the job", path, &error));
            }
        }
    }
    let message = "it is alive: its process, or one that resumed it, holds its history";
    Err(Error::new(Kind::Exists, "resume the job", message)
        .with_path(path)
        .advise("wait for it; `gristmill jobs watch` shows how far it is"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::event::Event;
    use crate::history::{HistoryConfig, Recorder, is_live, read};

    fn phase(name: &str) -> Event {
        Event::PhaseStarted {
            name: name.into(),
            tasks: 1,
            bytes: 2,
            kept: 0,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let of = |event: Timed| match event.event {
            Event::PhaseStarted { name, .. } => name,
            other => format!("{other:?}"),
        };
        read(folder).unwrap().into_iter().map(of).collect()
    }

    #[test]
    fn a_dead_history_goes_on_when_it_is_taken_over_and_not_before() {
        let home = tempfile::tempdir().unwrap();
        let place = HistoryConfig {
            jobs: Some(home.path().to_owned()),
            keep_short: true,
            ..HistoryConfig::default()
        };
        let recorder = Recorder::new(&place, "job_1");
        recorder.record(phase("one"));
        let folder = recorder.folder().unwrap();
        let error = lock(&folder).unwrap_err();
        assert!(error.to_string().contains("it is alive"), "{error}");
        drop(recorder);
        let torn = [fs::read(folder.join(EVENTS)).unwrap(), b"{\"t_ms".to_vec()].concat();
        fs::write(folder.join(EVENTS), torn).unwrap();
        for taken in [false, true] {
            let held = lock(&folder).unwrap();
            assert_eq!(held.events.len(), 1);
            let recorder = Recorder::resume(held);
            recorder.record(phase("two"));
            assert!(is_live(&folder).unwrap());
            if taken {
                recorder.take_over();
                recorder.record(phase("three"));
            }
            drop(recorder);
            let wanted: &[&str] = if taken {
                &["one", "two", "three"]
            } else {
                &["one"]
            };
            assert_eq!(names(&folder), wanted);
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let (real, job) = (home.path().join("real"), home.path().join("job_1"));
        fs::write(&real, "").unwrap();
        fs::create_dir(&job).unwrap();
        std::os::unix::fs::symlink(&real, job.join(EVENTS)).unwrap();
        assert_eq!(lock(&job).unwrap_err().kind(), Kind::BadInput);
        std::os::unix::fs::symlink(&job, home.path().join("job_2")).unwrap();
        let linked = lock(&home.path().join("job_2")).unwrap_err();
        assert_eq!(linked.kind(), Kind::BadInput);
    }
}
