//! History: what happened in a job, appended event by event to a file of its own, and read again.
//!
//! ```text
//!   <home>/jobs/<job>/events.jsonl     one event to a line; locked as long as the job lives
//!                    /logs.jsonl       what attempts printed: a line for each that did
//!                    /failed/          what user code failed at (task/user/failed.rs)
//! ```
//!
//! Jobs of less than a second leave nothing, unless they are asked to, have printed something, or failed in user code:
//! events wait in memory until then. A history that cannot be written is no reason for a job to fail; the reason is
//! kept for a warning. A job that leaves a history removes old ones at its end.
//!
//! Decision: docs/decisions/history-lines.md.

pub mod event;
mod hidden;
mod locked;
mod logs;
mod old;
mod reader;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Instant;

pub use self::hidden::Hidden;
pub use self::locked::{LockedHistory, lock};
pub use self::old::remove_old;
pub use self::reader::{is_live, read};

use self::event::{Event, JobOrigin, Timed};
use self::logs::Logs;
use gristmill_base::names::{show_path, without_signatures};
use gristmill_base::sync;
use gristmill_base::sys::files::create_private_directory;

/// The file in a job's folder.
pub const EVENTS: &str = "events.jsonl";

/// How long a job must last to be worth a file.
const WORTH_MS: u64 = 1000;

/// Where a job's history goes.
#[derive(Debug, Clone, Default)]
pub struct HistoryConfig {
    /// The folder with a folder for each job; no history without one.
    pub jobs: Option<PathBuf>,
    /// Whether short jobs are kept, too.
    pub keep_short: bool,
    /// Whether the files of the user's code go with the job: nothing is kept then that is to be tried again with them.
    pub code_goes: bool,
    /// The job's options as they were given, to be kept with it.
    pub options: serde_json::Value,
    /// Where it was begun.
    pub origin: JobOrigin,
    /// What of the command line may be secret, and must not come back in an error.
    pub hidden: Hidden,
}

/// Writes a job's history.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    /// What had gone by before this process.
    before_ms: u64,
    folder: PathBuf,
    worth_ms: u64,
    hidden: OnceLock<Hidden>,
    state: Mutex<RecorderState>,
    logs: Mutex<Logs>,
}

#[derive(Debug)]
enum RecorderState {
    /// Nobody wants it.
    Off,
    /// Not yet worth a file.
    Waiting(Vec<u8>),
    /// A dead job's file, which stays as it is until its successor has taken over.
    Held(Vec<u8>, File),
    Writing(File),
    /// It could not be written: why.
    Failed(String),
}

impl Recorder {
    /// A recorder for the job of this name.
    ///
    /// ```
    /// use gristmill_engine::history::{HistoryConfig, Recorder, event::Event, is_live, read};
    /// let home = tempfile::tempdir().unwrap();
    /// let place = HistoryConfig { jobs: Some(home.path().into()), keep_short: true, ..HistoryConfig::default() };
    /// let recorder = Recorder::new(&place, "job_1");
    /// recorder.record(Event::PhaseStarted { name: "map".into(), tasks: 2, bytes: 100, kept: 0 });
    /// let folder = recorder.folder().unwrap();
    /// assert!(is_live(&folder).unwrap());
    /// assert_eq!(read(&folder).unwrap().len(), 1);
    /// drop(recorder);
    /// assert!(!is_live(&folder).unwrap());
    /// ```
    pub fn new(place: &HistoryConfig, job_id: &str) -> Self {
        let state = match place.jobs {
            Some(_) => RecorderState::Waiting(Vec::new()),
            None => RecorderState::Off,
        };
        Recorder {
            began: Instant::now(),
            before_ms: 0,
            folder: place.jobs.clone().unwrap_or_default().join(job_id),
            worth_ms: if place.keep_short { 0 } else { WORTH_MS },
            hidden: OnceLock::from(place.hidden.clone()),
            state: Mutex::new(state),
            logs: Mutex::default(),
        }
    }

    /// A recorder that continues the history of a dead job. Until [`take_over`](Self::take_over) nothing is
    /// written, and nothing ever if it is not called.
    pub fn resume(held: LockedHistory) -> Self {
        Recorder {
            began: Instant::now(),
            before_ms: held.events.last().map_or(0, |event| event.t_ms),
            folder: held.folder,
            worth_ms: 0,
            hidden: OnceLock::new(),
            state: Mutex::new(RecorderState::Held(Vec::new(), held.file)),
            logs: Mutex::default(),
        }
    }

    /// From now on the history is this process's: what waited is written. Of a recorder of its own job: nothing.
    pub fn take_over(&self) {
        let mut state = self.lock();
        if !matches!(*state, RecorderState::Held(..)) {
            return;
        }
        if let RecorderState::Held(earlier, mut file) =
            std::mem::replace(&mut *state, RecorderState::Off)
        {
            *state = match file.write_all(&earlier) {
                Ok(()) => RecorderState::Writing(file),
                Err(error) => self.failed(&error),
            };
        }
    }

    /// Makes what was recorded durable, as far as there is a file: what it proves done may be given up then.
    pub fn sync(&self) {
        let mut state = self.lock();
        if let RecorderState::Writing(file) = &*state
            && let Err(error) = file.sync_data()
        {
            *state = self.failed(&error);
        }
    }

    fn failed(&self, error: &io::Error) -> RecorderState {
        let place = show_path(&self.folder);
        RecorderState::Failed(format!("cannot keep the job's history in {place}: {error}"))
    }

    /// From now on these words are not written. Of a job that goes on, whose first process knew them.
    pub fn hide(&self, hidden: Hidden) {
        let _ = self.hidden.set(hidden); // a recorder of its own job has them from the beginning
    }

    /// Appends what has just happened.
    pub fn record(&self, mut event: Event) {
        if let Some(hidden) = self.hidden.get() {
            hidden.take_out_of(&mut event);
        }
        let t_ms = self.before_ms + self.began.elapsed().as_millis() as u64;
        let mut state = self.lock();
        if matches!(*state, RecorderState::Off | RecorderState::Failed(_)) {
            return;
        }
        let written = self.append(&mut state, &Timed { t_ms, event });
        if let Err(error) = written {
            *state = self.failed(&error);
        }
    }

    /// Keeps what an attempt printed; a job that prints is worth a history.
    pub fn log(&self, task: u32, attempt: u32, stdout: &str, stderr: &str) {
        if stdout.is_empty() && stderr.is_empty() {
            return;
        }
        self.keep();
        if let Some(folder) = self.folder() {
            let [stdout, stderr] = [stdout, stderr].map(|text| {
                let mut text = text.to_owned();
                if let Some(hidden) = self.hidden.get() {
                    hidden.take_out_of_text(&mut text);
                }
                text
            });
            let mut logs = sync::lock(&self.logs);
            logs.append(&folder, task, attempt, &stdout, &stderr);
        }
    }

    /// Keeps the history, however short the job will be.
    pub fn keep(&self) {
        let mut state = self.lock();
        if let RecorderState::Waiting(earlier) = &*state {
            *state = match self.write_first(earlier) {
                Ok(file) => RecorderState::Writing(file),
                Err(error) => self.failed(&error),
            };
        }
    }

    /// Whether anybody wants to know.
    pub fn is_on(&self) -> bool {
        !matches!(*self.lock(), RecorderState::Off | RecorderState::Failed(_))
    }

    /// Where the history is, if it is kept.
    pub fn folder(&self) -> Option<PathBuf> {
        match *self.lock() {
            RecorderState::Writing(_) | RecorderState::Held(..) => Some(self.folder.clone()),
            _ => None,
        }
    }

    /// Why it is not kept, if it should have been.
    pub fn failure(&self) -> Option<String> {
        match &*self.lock() {
            RecorderState::Failed(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    fn append(&self, state: &mut RecorderState, event: &Timed) -> io::Result<()> {
        let line = serde_json::to_string(event)?;
        let mut line = without_signatures(&line).into_owned().into_bytes();
        line.push(b'\n');
        match state {
            RecorderState::Off | RecorderState::Failed(_) => Ok(()),
            RecorderState::Writing(file) => file.write_all(&line),
            RecorderState::Held(earlier, _) => {
                earlier.extend_from_slice(&line);
                Ok(())
            }
            RecorderState::Waiting(earlier) => {
                earlier.extend_from_slice(&line);
                if event.t_ms < self.worth_ms {
                    return Ok(());
                }
                let file = self.write_first(earlier)?;
                *state = RecorderState::Writing(file);
                Ok(())
            }
        }
    }

    /// The file, with what waited.
    fn write_first(&self, earlier: &[u8]) -> io::Result<File> {
        let mut file = begin(&self.folder)?;
        file.write_all(earlier)?;
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        // A panic elsewhere leaves it whole: at worst with half a line at the file's end.
        sync::lock(&self.state)
    }
}

/// Makes the folder, for nobody else to look into, and the file, locked.
fn begin(folder: &Path) -> io::Result<File> {
    create_private_directory(folder)?;
    let file = File::options()
        .append(true)
        .create_new(true)
        .open(folder.join(EVENTS))?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests;
