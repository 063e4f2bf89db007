//! The end of what a worker wrote to its stderr, or printed: read by a thread of its own, so that a worker that floods it is
//! never blocked, kept in 64 KiB, and passed on line by line to whoever keeps the log of the task.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gristmill_base::sync::lock;
use gristmill_base::sys::descriptors::{never_block, wait_for, waiting_bytes};

/// Takes the lines of a log, without their ends. It is called by the thread that reads: it must not wait for the
/// worker.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// What is kept.
const KEPT_BYTES: usize = 64 << 10;
/// Lines in a failure report.
const LINES: usize = 20;
/// Lines in a failure report once the worker wrote its stack: the innermost frames come first.
const STACK_LINES: usize = 40;
/// Longer lines go to the log in pieces.
const LINE_BYTES_MAX: usize = 16 << 10;
/// How long what a worker wrote may be on its way.
const SETTLING: Duration = Duration::from_millis(200);

/// The last 64 KiB of what a worker wrote to a pipe.
pub struct OutputTail {
    state: Mutex<TailState>,
    pipe: PipeReader,
}

#[derive(Default)]
struct TailState {
    kept: VecDeque<u8>,
    /// Bytes ever read.
    total: u64,
    /// The line that is not complete yet.
    line: Vec<u8>,
    log: Option<Log>,
    ended: bool,
}

impl OutputTail {
    /// Starts to read; `gone` wakes the thread when it has its other end closed, for when somebody else still holds
    /// the stderr of a worker that is dead. `on_end` is called at the end.
    pub(super) fn start(
        pipe: OwnedFd,
        gone: PipeReader,
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        never_block(pipe.as_fd())?;
        let tail = Arc::new(OutputTail {
            state: Mutex::default(),
            pipe: PipeReader::from(pipe),
        });
        let reader = Arc::clone(&tail);
        std::thread::Builder::new()
            .name("worker output".into())
            .spawn(move || {
                reader.read_all(&gone);
                on_end();
            })?;
        Ok(tail)
    }

    fn read_all(&self, gone: &PipeReader) {
        let mut bytes = vec![0; KEPT_BYTES];
        loop {
            let ready = wait_for(&[self.pipe.as_fd(), gone.as_fd()], None, None);
            // Read under the lock: whoever holds it knows that nothing is between the pipe and the tail.
            let mut state = self.lock();
            match (&self.pipe).read(&mut bytes) {
                Ok(0) => break state.end(),
                Ok(found) => state.take(bytes.get(..found).unwrap_or(&[])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let alone = wait_for(&[gone.as_fd()], None, Some(Duration::ZERO));
                    if ready.is_err() || alone.unwrap_or(true) {
                        break state.end();
                    }
                }
                Err(_) => break state.end(),
            }
        }
    }

    /// Passes on what comes from now on; `None`: to nobody.
    pub fn log_to(&self, log: Option<Log>) {
        let mut state = self.lock();
        state.finish_line();
        state.log = log;
    }

    /// Forgets what was read.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.kept.clear();
        state.finish_line();
    }

    /// Waits, though not for long, until all that was written has been read.
    pub fn settle(&self) {
        let start = Instant::now();
        while start.elapsed() < SETTLING {
            let state = self.lock();
            if state.ended || waiting_bytes(self.pipe.as_fd()) == 0 {
                return;
            }
            drop(state);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Bytes read so far: a mark for [`OutputTail::since`].
    pub fn total_bytes(&self) -> u64 {
        self.lock().total
    }

    /// What was read after a mark, as far as it is kept.
    pub fn since(&self, mark: u64) -> String {
        let state = self.lock();
        let wanted = usize::try_from(state.total.saturating_sub(mark)).unwrap_or(usize::MAX);
        let skipped = state.kept.len().saturating_sub(wanted);
        let bytes: Vec<u8> = state.kept.iter().skip(skipped).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last whole lines of so many bytes; all that was read, if that is not more.
    pub fn last_bytes(&self, most: usize) -> String {
        let text = self.since(0);
        let Some(start) = text.len().checked_sub(most).filter(|&start| start > 0) else {
            return text;
        };
        let mut bytes = text.as_bytes().iter().enumerate().skip(start - 1);
        let line = bytes.find(|&(_, &byte)| byte == b'\n');
        let start = match line {
            Some((end, _)) => end + 1,
            None => (start..text.len())
                .find(|&at| text.is_char_boundary(at))
                .unwrap_or(text.len()),
        };
        format!("[...]\n{}", text.get(start..).unwrap_or_default())
    }

    /// The last lines, for a report: 20, or a stack that stands there from its first line on.
    pub fn last_lines(&self) -> String {
        last_lines(&self.since(0))
    }

    fn lock(&self) -> MutexGuard<'_, TailState> {
        lock(&self.state)
    }
}

impl TailState {
    fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.kept.extend(bytes);
        let surplus = self.kept.len().saturating_sub(KEPT_BYTES);
        self.kept.drain(..surplus);
        if self.log.is_none() {
            return;
        }
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.last() == Some(&b'\n') || self.line.len() >= LINE_BYTES_MAX {
                self.finish_line();
            }
        }
    }

    fn finish_line(&mut self) {
        if let (Some(log), false) = (&self.log, self.line.is_empty()) {
            log(String::from_utf8_lossy(&self.line).trim_end_matches(['\n', '\r']));
        }
        self.line.clear();
    }

    fn end(&mut self) {
        self.finish_line();
        self.ended = true;
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    // What faulthandler writes, of a crash or of the threads.
    let stack = lines.iter().rposition(|line| {
        line.starts_with("Fatal Python error") || line.starts_with("Current thread 0x")
    });
    let last = lines.len().saturating_sub(LINES);
    let shown = match stack {
        Some(start) => {
            // "Current thread" follows the error it belongs to.
            let start = lines
                .iter()
                .take(start)
                .rposition(|line| line.starts_with("Fatal Python error"))
                .filter(|error| start - error <= 3)
                .unwrap_or(start)
                .min(last);
            lines.iter().skip(start).take(STACK_LINES.max(LINES))
        }
        None => lines.iter().skip(last).take(LINES),
    };
    shown.copied().collect::<Vec<_>>().join("\n")
}

impl fmt::Debug for OutputTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Tail")
            .field("kept_bytes", &state.kept.len())
            .field("total_bytes", &state.total)
            .field("ended", &state.ended)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_last_lines_or_the_stack() {
        let many: Vec<String> = (0..30).map(|i| format!("line {i}")).collect();
        assert_eq!(last_lines(&many.join("\n")), many[10..].join("\n"));
        let mut crash = vec!["Fatal Python error: Segmentation fault".to_owned()];
        crash.push(String::new());
        crash.push("Current thread 0x0001 (most recent call first):".to_owned());
        crash.extend((0..60).map(|i| format!("  File {i}")));
        let text = format!("{}\n{}", many.join("\n"), crash.join("\n"));
        assert_eq!(last_lines(&text), crash[..40].join("\n"));
        assert_eq!(last_lines(""), "");
    }

    #[test]
    fn memory_stays_bounded_and_lines_reach_the_log() {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&seen);
        let mut state = TailState {
            log: Some(Arc::new(move |line: &str| {
                log.lock().unwrap().push(line.to_owned());
            })),
            ..TailState::default()
        };
        state.take(b"one\nt");
        state.take(b"wo\r\nthree");
        state.end();
        assert_eq!(*seen.lock().unwrap(), ["one", "two", "three"]);
        for _ in 0..100 {
            state.take(&[b'x'; 10_000]);
        }
        assert_eq!(state.kept.len(), KEPT_BYTES);
        assert!(state.line.len() < LINE_BYTES_MAX + 10_000);
        assert!(
            seen.lock()
                .unwrap()
                .iter()
                .all(|line| line.len() <= LINE_BYTES_MAX + 10_000)
        );
    }
}
