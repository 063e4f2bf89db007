//! What a search finds, for Python, piece by piece. The search runs in threads of its own, a few pieces ahead of its reader.
//!
//! ```text
//!   search ──▶ frames, in pieces of 64 kB ──▶ a channel of few pieces ──▶ `take`: tuples, in order
//! ```
//!
//! A piece holds whole frames. A search that nothing reads cannot write, and stops. A thread that waits for a FIFO stops
//! only when the FIFO's writer writes or ends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::{io, iter};

use gristmill_engine::Error;
use gristmill_grep::{InputError, Note, Summary};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::bounds::told;
use super::{ConditionGiven, LOOK, PreparedSearch, summary};
use crate::error::to_python;

/// Pieces that wait for their reader.
const AHEAD: usize = 4;

/// A longer piece, which a long line makes, is taken before the search goes on.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// What comes from the search while it runs.
enum ResultMessage {
    Frames(Vec<u8>),
    Note(Note),
    Done(io::Result<Summary>),
}

/// The output of a search.
struct ResultSender(SyncSender<ResultMessage>);

impl io::Write for ResultSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            // Empty pieces behind a long one take all places that are free, and one more.
            let empty = if bytes.len() > PIECE_BYTES_MAX {
                AHEAD
            } else {
                0
            };
            for piece in iter::once(bytes.to_vec()).chain(iter::repeat_n(Vec::new(), empty)) {
                let sent = self.0.send(ResultMessage::Frames(piece));
                let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "no reader");
                sent.map_err(gone)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A search that runs, and what it has found that is not taken yet.
#[pyclass(frozen)]
pub struct Search {
    state: Mutex<SearchResults>,
    stop: Arc<AtomicBool>,
}

struct SearchResults {
    /// None: the search is over.
    said: Option<Receiver<ResultMessage>>,
    summary: Option<(u64, u64, u64, u64)>,
}

/// Checks the patterns and options of a search, without starting it.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
pub fn check_search(
    patterns: Vec<Vec<u8>>,
    conditions: Vec<ConditionGiven>,
    options: &str,
) -> PyResult<()> {
    PreparedSearch::new(&patterns, &conditions, Vec::new(), options).map(drop)
}

#[pymethods]
impl Search {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
    fn new(
        patterns: Vec<Vec<u8>>,
        conditions: Vec<ConditionGiven>,
        inputs: Vec<PathBuf>,
        options: &str,
    ) -> PyResult<Self> {
        let asked = PreparedSearch::new(&patterns, &conditions, inputs, options)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (send, said) = sync_channel(AHEAD);
        let flag = Arc::clone(&stop);
        let begin = move || {
            let (out, send_note) = (ResultSender(send.clone()), send.clone());
            let note = move |note| drop(send_note.send(ResultMessage::Note(note)));
            let done = asked.search(None, true, flag, out, note);
            let _ = send.send(ResultMessage::Done(done)); // fails when the reader is gone
        };
        let begun = thread::Builder::new().spawn(begin);
        begun.map_err(|error| to_python(&Error::from_io("search", "".as_ref(), &error)))?;
        Ok(Search {
            state: Mutex::new(SearchResults {
                said: Some(said),
                summary: None,
            }),
            stop,
        })
    }

    /// What was found next, as a list of tuples; `None` at the end.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        loop {
            let Some(said) = self.state().said.take() else {
                return Ok(None);
            };
            let (said, next) = py.detach(move || {
                let next = said.recv_timeout(LOOK);
                (said, next)
            });
            if !matches!(
                next,
                Ok(ResultMessage::Done(_)) | Err(RecvTimeoutError::Disconnected)
            ) {
                self.state().said = Some(said);
            }
            match next {
                Ok(ResultMessage::Frames(bytes)) => return frames(py, &bytes).map(Some),
                Ok(ResultMessage::Note(note)) => {
                    return PyList::new(py, [noted(py, &note)?]).map(Some);
                }
                Ok(ResultMessage::Done(done)) => self.state().summary = Some(summary(done)?),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(to_python(&Error::bug("search", "a thread panicked")));
                }
            }
        }
    }

    /// Files, bytes, lines and files that could not be read; `None` before the end.
    #[getter]
    fn summary(&self) -> Option<(u64, u64, u64, u64)> {
        self.state().summary
    }

    /// Ends the search.
    fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.state().said = None;
    }
}

impl Search {
    /// The lock is held for a moment only, and never while other Python threads may run: that would deadlock.
    fn state(&self) -> MutexGuard<'_, SearchResults> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn noted<'py>(py: Python<'py>, note: &Note) -> PyResult<Bound<'py, PyTuple>> {
    match note {
        Note::Trouble(name, trouble) => {
            let kind = match trouble {
                InputError::Unread(Some(io::ErrorKind::NotFound), _) => "not_found",
                InputError::Unread(Some(io::ErrorKind::PermissionDenied), _) => "permission",
                _ => "io",
            };
            let message = told(name, trouble);
            ("trouble", PyBytes::new(py, name), kind, message).into_pyobject(py)
        }
        Note::Binary(name) => ("binary", PyBytes::new(py, name)).into_pyobject(py),
        Note::Suspected(name, encoding) => {
            ("suspected", PyBytes::new(py, name), *encoding).into_pyobject(py)
        }
    }
}

/// Frames as tuples.
fn frames<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let found = PyList::empty(py);
    let mut left = Left(bytes);
    while !left.0.is_empty() {
        let Some(tuple) = frame(py, &mut left)? else {
            return Err(to_python(&Error::bug("search", "a frame is cut")));
        };
        found.append(tuple)?;
    }
    Ok(found)
}

/// The next frame as a tuple; `None` where it is cut.
fn frame<'py>(py: Python<'py>, left: &mut Left<'_>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    Ok(match left.byte() {
        Some(b'F') => match left.text() {
            Some(name) => Some(("file", PyBytes::new(py, name)).into_pyobject(py)?),
            None => None,
        },
        Some(b'E') => match left.number() {
            Some(lines) => Some(("end", lines).into_pyobject(py)?),
            None => None,
        },
        Some(mark) => match left.line() {
            Some((number, offset, matches, line)) => {
                let (is_selected, line) = (mark == b':', PyBytes::new(py, line));
                let matches = PyTuple::new(py, matches)?;
                Some(("line", is_selected, number, offset, matches, line).into_pyobject(py)?)
            }
            None => None,
        },
        None => None,
    })
}

/// What is left of frames.
struct Left<'b>(&'b [u8]);

/// Its number, its offset, the matches in it, and the line.
type Line<'b> = (u64, u64, Vec<(u64, u64)>, &'b [u8]);

impl<'b> Left<'b> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    fn text(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    fn line(&mut self) -> Option<Line<'b>> {
        let (number, offset, count) = (self.number()?, self.number()?, self.number()?);
        if count > self.0.len() as u64 {
            return None;
        }
        let matches = (0..count).map(|_| Some((self.number()?, self.number()?)));
        let matches = matches.collect::<Option<Vec<_>>>()?;
        Some((number, offset, matches, self.text()?))
    }
}
