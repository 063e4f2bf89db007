//! The search of `gristmill grep`: options as the command line gives them, files of all stores, lines to standard output.

mod bounds;
mod found;
mod inputs;
mod open;

pub use self::found::{Search, check_search};

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_engine::Error;
use gristmill_engine::storage::net::waiting::PendingWaits;
use gristmill_engine::storage::stores::Stores;
use gristmill_grep::{
    Condition, Note, Options, Pattern, PatternOptions, SearchSettings, Show, Style, Summary, search,
};
use pyo3::exceptions::{PyBrokenPipeError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;

use self::bounds::{line_bytes_max, told};
use self::inputs::{Globs, GlobsGiven, Inputs};
use self::open::Identity;
use crate::error::to_python;
use crate::stores::stores_of_job;

/// How often signals are checked. The end of the search is noticed at once.
const LOOK: Duration = Duration::from_millis(50);

/// Options as the command line has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchOptions {
    fixed: bool,
    ignore_case: bool,
    word: bool,
    whole_line: bool,
    crlf: bool,
    show: OutputMode,
    invert: bool,
    numbers: bool,
    offsets: bool,
    names: Option<bool>,
    before: Option<usize>,
    after: Option<usize>,
    max: Option<u64>,
    text: bool,
    skip_binary: bool,
    null_data: bool,
    colour: bool,
    null_names: bool,
    separator: Option<String>,
    label: String,
    globs: Vec<String>,
    files: Vec<(String, bool)>,
    folders: Vec<String>,
    hidden: bool,
    workers: usize,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    Lines,
    Matches,
    Count,
    Names,
    NamesWithout,
    Quiet,
}

impl SearchOptions {
    fn pattern(&self) -> PatternOptions {
        PatternOptions {
            fixed: self.fixed,
            ignore_case: self.ignore_case,
            word: self.word,
            whole_line: self.whole_line,
            crlf: self.crlf,
            null_data: self.null_data,
        }
    }

    /// The file that lines are written to. It must not be searched.
    fn output(&self) -> Option<Identity> {
        let writes = matches!(self.show, OutputMode::Lines | OutputMode::Matches);
        let goes_on = self.max.is_none_or(|max| max > 1);
        if !(writes && goes_on) {
            return None;
        }
        standard_output().ok().as_ref().and_then(open::identity)
    }

    fn globs(&self) -> Result<Globs, String> {
        Globs::new(&GlobsGiven {
            globs: &self.globs,
            files: &self.files,
            folders: &self.folders,
            hidden: self.hidden,
        })
    }

    fn options(&self, names: bool) -> Options {
        let context = (self.before.is_some() || self.after.is_some())
            .then(|| (self.before.unwrap_or(0), self.after.unwrap_or(0)));
        Options {
            show: match self.show {
                OutputMode::Lines => Show::Lines,
                OutputMode::Matches => Show::Matches,
                OutputMode::Count => Show::Count,
                OutputMode::Names => Show::Names,
                OutputMode::NamesWithout => Show::NamesWithout,
                OutputMode::Quiet => Show::Quiet,
            },
            invert: self.invert,
            numbers: self.numbers,
            offsets: self.offsets,
            names: self.names.unwrap_or(names),
            context,
            max: self.max,
            text: self.text || self.null_data, // a NUL that ends lines does not make a file binary
            skip_binary: self.skip_binary,
            style: Style {
                colour: self.colour,
                null_names: self.null_names,
                separator: self
                    .separator
                    .as_ref()
                    .map(|line| line.clone().into_bytes()),
                framed: false,
            },
            ..Options::default()
        }
    }
}

/// What comes from the search while it runs.
enum SearchMessage {
    Note(Note),
    Done(io::Result<Summary>),
}

/// A condition as given: what gave it, whether a line must match, and patterns, of which one is enough.
type ConditionGiven = (String, bool, Vec<Vec<u8>>);

/// A search whose options are checked, and that has not begun.
struct PreparedSearch {
    given: SearchOptions,
    pattern: Pattern,
    conditions: Vec<Condition>,
    globs: Globs,
    inputs: Vec<PathBuf>,
    stores: Arc<Stores>,
}

impl PreparedSearch {
    fn new(
        patterns: &[Vec<u8>],
        conditions: &[ConditionGiven],
        inputs: Vec<PathBuf>,
        options: &str,
    ) -> PyResult<Self> {
        let given: SearchOptions = serde_json::from_str(options)
            .map_err(|error| to_python(&Error::bug("read the options", error.to_string())))?;
        let compiled = |patterns: &[Vec<u8>], of: &str| {
            Pattern::new(patterns, given.pattern()).map_err(|error| {
                PyValueError::new_err(format!("cannot read the pattern{of}: {error}"))
            })
        };
        let pattern = compiled(patterns, "")?;
        let conditions = conditions.iter().map(|(name, must_match, patterns)| {
            Ok(Condition {
                pattern: compiled(patterns, &format!(" of {name}"))?,
                must_match: *must_match,
            })
        });
        let conditions = conditions.collect::<PyResult<_>>()?;
        let globs = given.globs().map_err(PyValueError::new_err)?;
        Ok(PreparedSearch {
            given,
            pattern,
            conditions,
            globs,
            inputs,
            stores: stores_of_job().map_err(|error| to_python(&error))?,
        })
    }

    /// Searches until the end, or until `stop` is set. `output` is the file that is written.
    fn search<W: io::Write + Send + 'static>(
        self,
        output: Option<Identity>,
        framed: bool,
        stop: Arc<AtomicBool>,
        out: W,
        note: impl FnMut(Note) + Send + 'static,
    ) -> io::Result<Summary> {
        let _stopping = self.stores.requests().stop.by(Arc::clone(&stop));
        let label = self.given.label.clone().into_bytes();
        let stores = Arc::clone(&self.stores);
        let inputs = Inputs::new(stores, self.inputs, self.globs, output, label);
        let mut options = self.given.options(inputs.are_named());
        options.conditions = self.conditions;
        options.style.framed = framed;
        let run = SearchSettings {
            workers: self.given.workers,
            line_bytes_max: line_bytes_max(framed),
            stop,
        };
        search(inputs, self.pattern, options, &run, out, note)
    }
}

/// Searches files, and writes what is found to standard output. Returns files, bytes, lines and files that could not be read.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
pub fn grep(
    py: Python<'_>,
    patterns: Vec<Vec<u8>>,
    conditions: Vec<ConditionGiven>,
    inputs: Vec<PathBuf>,
    options: &str,
    note: &Bound<'_, PyAny>,
) -> PyResult<(u64, u64, u64, u64)> {
    let asked = PreparedSearch::new(&patterns, &conditions, inputs, options)?;
    let output = asked.given.output();
    let stop = Arc::new(AtomicBool::new(false));
    let (send, said) = channel();
    let flag = Arc::clone(&stop);
    let begin = move || {
        let send_note = send.clone();
        let note = move |note| drop(send_note.send(SearchMessage::Note(note)));
        let done = standard_output().and_then(|out| asked.search(output, false, flag, out, note));
        let _ = send.send(SearchMessage::Done(done)); // a signal ended the wait
    };
    let begun = thread::Builder::new().spawn(begin);
    begun.map_err(|error| to_python(&Error::from_io("search", "".as_ref(), &error)))?;
    let (mut said, awaited) = (said, PendingWaits::default());
    loop {
        let waiting = &mut said;
        match py.detach(move || waiting.recv_timeout(LOOK)) {
            Ok(SearchMessage::Note(found)) => {
                let (kind, text) = match &found {
                    Note::Trouble(name, trouble) => ("trouble", told(name, trouble).into_bytes()),
                    Note::Binary(name) => ("binary", name.clone()),
                    Note::Suspected(name, encoding) => {
                        ("suspected", [encoding.as_bytes(), b" ", name].concat())
                    }
                };
                note.call1((kind, PyBytes::new(py, &text)))?;
            }
            Ok(SearchMessage::Done(done)) => return summary(done),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()
                    .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                for line in awaited.notices(Instant::now()) {
                    note.call1(("waiting", PyBytes::new(py, line.as_bytes())))?;
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(to_python(&Error::bug("search", "a thread panicked")));
            }
        }
    }
}

fn summary(done: io::Result<Summary>) -> PyResult<(u64, u64, u64, u64)> {
    match done {
        Ok(done) => Ok((done.files, done.bytes, done.lines, done.troubles)),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(PyBrokenPipeError::new_err("the output has no reader"))
        }
        Err(error) => Err(PyOSError::new_err(
            Error::from_io("write the output", "standard output".as_ref(), &error).to_string(),
        )),
    }
}

/// Standard output, unbuffered.
fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}
