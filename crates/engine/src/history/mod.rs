//! History: what happened in a job, appended event by event to a file of its own, and read again.
//!
//! ```text
//!   <home>/jobs/<job>/events.jsonl     one event to a line; locked as long as the job lives
//! ```
//!
//! Jobs of less than a second leave nothing, unless they are asked to: events wait in memory until then. A history
//! that cannot be written is no reason for a job to fail; the reason is kept for a warning.

pub mod event;
mod held;
mod reader;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub use self::held::{Held, hold};
pub use self::reader::{is_live, read};

use self::event::{Event, Timed};

/// The file in a job's folder.
pub const EVENTS: &str = "events.jsonl";

/// How long a job must last to be worth a file.
const WORTH_MS: u64 = 1000;

/// Where a job's history goes.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The folder with a folder for each job; no history without one.
    pub jobs: Option<PathBuf>,
    /// Whether short jobs are kept, too.
    pub keep_short: bool,
    /// The job's options as they were given, to be kept with it.
    pub options: serde_json::Value,
}

/// Writes a job's history.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    /// What had gone by before this process.
    before_ms: u64,
    folder: PathBuf,
    worth_ms: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
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
    /// use gristmill_engine::history::{Place, Recorder, event::Event, is_live, read};
    /// let home = tempfile::tempdir().unwrap();
    /// let place = Place { jobs: Some(home.path().into()), keep_short: true, ..Place::default() };
    /// let recorder = Recorder::new(&place, "job_1");
    /// recorder.record(Event::PhaseStarted { name: "map".into(), tasks: 2, bytes: 100, kept: 0 });
    /// let folder = recorder.folder().unwrap();
    /// assert!(is_live(&folder).unwrap());
    /// assert_eq!(read(&folder).unwrap().len(), 1);
    /// drop(recorder);
    /// assert!(!is_live(&folder).unwrap());
    /// ```
    pub fn new(place: &Place, job_id: &str) -> Self {
        let state = match place.jobs {
            Some(_) => State::Waiting(Vec::new()),
            None => State::Off,
        };
        Recorder {
            began: Instant::now(),
            before_ms: 0,
            folder: place.jobs.clone().unwrap_or_default().join(job_id),
            worth_ms: if place.keep_short { 0 } else { WORTH_MS },
            state: Mutex::new(state),
        }
    }

    /// A recorder that goes on with the history of a dead job. Until [`take_over`](Self::take_over) nothing is
    /// written, and nothing ever if it is not called.
    pub fn resume(held: Held) -> Self {
        Recorder {
            began: Instant::now(),
            before_ms: held.events.last().map_or(0, |event| event.t_ms),
            folder: held.folder,
            worth_ms: 0,
            state: Mutex::new(State::Held(Vec::new(), held.file)),
        }
    }

    /// From now on the history is this process's: what waited is written. Of a recorder of its own job: nothing.
    pub fn take_over(&self) {
        let mut state = self.lock();
        if !matches!(*state, State::Held(..)) {
            return;
        }
        if let State::Held(earlier, mut file) = std::mem::replace(&mut *state, State::Off) {
            *state = match file.write_all(&earlier) {
                Ok(()) => State::Writing(file),
                Err(error) => self.failed(&error),
            };
        }
    }

    /// Makes what was recorded durable, as far as there is a file: what it proves done may be given up then.
    pub fn sync(&self) {
        let mut state = self.lock();
        if let State::Writing(file) = &*state
            && let Err(error) = file.sync_data()
        {
            *state = self.failed(&error);
        }
    }

    fn failed(&self, error: &io::Error) -> State {
        let place = self.folder.display();
        State::Failed(format!("cannot keep the job's history in {place}: {error}"))
    }

    /// Appends what has just happened.
    pub fn record(&self, event: Event) {
        let t_ms = self.before_ms + self.began.elapsed().as_millis() as u64;
        let mut state = self.lock();
        if matches!(*state, State::Off | State::Failed(_)) {
            return;
        }
        let written = self.append(&mut state, &Timed { t_ms, event });
        if let Err(error) = written {
            *state = self.failed(&error);
        }
    }

    /// Whether anybody wants to know.
    pub fn is_on(&self) -> bool {
        !matches!(*self.lock(), State::Off | State::Failed(_))
    }

    /// Where the history is, if it is kept.
    pub fn folder(&self) -> Option<PathBuf> {
        match *self.lock() {
            State::Writing(_) | State::Held(..) => Some(self.folder.clone()),
            _ => None,
        }
    }

    /// Why it is not kept, if it should have been.
    pub fn failure(&self) -> Option<String> {
        match &*self.lock() {
            State::Failed(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    fn append(&self, state: &mut State, event: &Timed) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        match state {
            State::Off | State::Failed(_) => Ok(()),
            State::Writing(file) => file.write_all(&line),
            State::Held(earlier, _) => {
                earlier.extend_from_slice(&line);
                Ok(())
            }
            State::Waiting(earlier) => {
                earlier.extend_from_slice(&line);
                if event.t_ms < self.worth_ms {
                    return Ok(());
                }
                let mut file = begin(&self.folder)?;
                file.write_all(earlier)?;
                *state = State::Writing(file);
                Ok(())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves it whole: at worst with half a line at the file's end.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the folder, for nobody else to look into, and the file, locked.
fn begin(folder: &Path) -> io::Result<File> {
    let mut make = fs::DirBuilder::new();
    make.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
    make.create(folder)?;
    let file = File::options()
        .append(true)
        .create_new(true)
        .open(folder.join(EVENTS))?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests;
