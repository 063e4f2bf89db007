//! Places for files that the tasks of a process copy at once: as many as are found to be best, as far as there is memory.
//!
//! ```text
//!   tasks ── next file ──▶ waits for a place, and for memory ──▶ is copied ──▶ place is free: the rate is looked at
//!                                   ▲                                                      │
//!                                   └────── so many places ◀── StreamCount ◀───────────────┘
//! ```
//!
//! Short files and longer ones are counted apart, as many of the short ones go at once. Each task that runs brings its memory, and
//! as many streams as are worth beginning with. The rules that must hold: no more files are under way than there are places, but
//! for the moment after there are fewer; what they hold is within the memory of the tasks that run.
//!
//! Decision: docs/decisions/copy-streams.md.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stream_count::{StreamCount, StreamProgress};
use crate::task::TaskAttempt;
use gristmill_base::error::Result;
use gristmill_base::sync::lock;
use gristmill_base::sys::descriptors::open_files;

/// Most streams of a process, where its tasks do not begin with more.
const STREAMS_MAX: usize = 512;

/// Descriptors that a stream may need at once: a connection for each side, two files, one to spare.
const STREAM_DESCRIPTORS: u64 = 5;

/// What a file costs beside its bytes, in bytes: about what one stream carries while a far store answers.
const FILE_COST_BYTES: u64 = 64 << 10;

/// How often a stream that waits for a place looks whether its task is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Which streams count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Short,
    Long,
}

/// What a task brings.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskStreams {
    pub(super) kind: StreamKind,
    /// Streams that it would begin with.
    pub(super) first: usize,
    /// Memory of them all.
    pub(super) bytes: u64,
}

/// The streams of a process.
#[derive(Debug)]
pub struct CopyStreams {
    state: Mutex<StreamsState>,
    left: Condvar,
    began: Instant,
}

#[derive(Debug, Default)]
struct StreamsState {
    short: KindState,
    long: KindState,
    /// Memory of the tasks that run, and what of it is used.
    bytes: u64,
    used_bytes: u64,
}

/// The streams of one kind.
#[derive(Debug, Default)]
struct KindState {
    /// Nothing before the first task.
    count: Option<StreamCount>,
    tasks: usize,
    under_way: usize,
    waiting: usize,
    /// What was copied so far.
    files: u64,
    work: u64,
}

impl Default for CopyStreams {
    fn default() -> Self {
        CopyStreams {
            state: Mutex::default(),
            left: Condvar::new(),
            began: Instant::now(),
        }
    }
}

impl StreamsState {
    fn of(&mut self, kind: StreamKind) -> &mut KindState {
        match kind {
            StreamKind::Short => &mut self.short,
            StreamKind::Long => &mut self.long,
        }
    }

    /// Whether a file that takes so much memory may begin. One may always.
    fn may_begin(&mut self, kind: StreamKind, bytes: u64) -> bool {
        let has_memory = self.used_bytes == 0 || self.used_bytes + bytes <= self.bytes;
        let of_kind = self.of(kind);
        has_memory && of_kind.under_way < of_kind.now()
    }
}

impl KindState {
    fn now(&self) -> usize {
        self.count.as_ref().map_or(1, StreamCount::now)
    }

    fn join(&mut self, first: usize) {
        self.tasks += 1;
        let all = first * self.tasks;
        let count = self.count.get_or_insert_with(|| {
            let open_files = open_files().unwrap_or(u64::MAX) / STREAM_DESCRIPTORS;
            let most = usize::try_from(open_files).unwrap_or(usize::MAX);
            StreamCount::new(all, (1, most.clamp(1, STREAMS_MAX)))
        });
        count.begin_with(all);
    }
}

impl CopyStreams {
    fn state(&self) -> MutexGuard<'_, StreamsState> {
        lock(&self.state)
    }

    /// Adds what a task brings, for as long as it runs.
    pub(super) fn join(&self, task: TaskStreams) -> JoinedStreams<'_> {
        let mut state = self.state();
        state.bytes += task.bytes;
        state.of(task.kind).join(task.first);
        JoinedStreams {
            streams: self,
            task,
        }
    }

    /// How many streams there are, of the kind of which there are more; 0 where files are copied one after another.
    pub(super) fn now(&self) -> usize {
        let state = self.state();
        let begun = [&state.short, &state.long].map(|kind| kind.count.as_ref());
        let now = begun.into_iter().flatten().map(StreamCount::now);
        now.max().unwrap_or(0)
    }
}

/// The streams of a task that runs.
#[derive(Debug)]
pub(super) struct JoinedStreams<'s> {
    streams: &'s CopyStreams,
    task: TaskStreams,
}

impl<'s> JoinedStreams<'s> {
    /// How many threads the task wants for so many files: twice its share of the streams, as these may become more meanwhile.
    pub(super) fn threads(&self, files: usize) -> usize {
        let mut state = self.streams.state();
        let kind = state.of(self.task.kind);
        files.min(2 * kind.now().div_ceil(kind.tasks.max(1)))
    }

    /// Waits until a file that takes so much memory may be copied.
    pub(super) fn enter(&self, bytes: u64, attempt: &TaskAttempt<'_>) -> Result<StreamPlace<'s>> {
        let (streams, kind) = (self.streams, self.task.kind);
        let mut state = streams.state();
        state.of(kind).waiting += 1;
        while !state.may_begin(kind, bytes) {
            let woken = streams.left.wait_timeout(state, LOOK);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            if let Err(ended) = attempt.progress(0) {
                state.of(kind).waiting -= 1;
                return Err(ended);
            }
        }
        state.used_bytes += bytes;
        let of_kind = state.of(kind);
        of_kind.waiting -= 1;
        of_kind.under_way += 1;
        Ok(StreamPlace {
            streams,
            kind,
            bytes,
            began: Instant::now(),
        })
    }
}

impl Drop for JoinedStreams<'_> {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        state.bytes -= self.task.bytes;
        state.of(self.task.kind).tasks -= 1;
    }
}

/// The place of a file that is copied, free again when dropped.
#[derive(Debug)]
pub(super) struct StreamPlace<'s> {
    streams: &'s CopyStreams,
    kind: StreamKind,
    bytes: u64,
    began: Instant,
}

impl StreamPlace<'_> {
    /// A file of so many bytes was copied, or was there; stores have turned away so many requests until now.
    pub(super) fn done(&self, file_bytes: u64, throttled: u64) {
        let at = self.streams.began.elapsed();
        let mut state = self.streams.state();
        let kind = state.of(self.kind);
        kind.files += 1;
        kind.work += file_bytes + FILE_COST_BYTES;
        let seen = StreamProgress {
            at,
            files: kind.files,
            work: kind.work,
            throttled,
            took: (self.kind == StreamKind::Short).then(|| self.began.elapsed()),
        };
        let is_full = kind.waiting > 0 || kind.under_way >= kind.now();
        match &mut kind.count {
            Some(count) if is_full => count.look(seen),
            Some(count) => count.not_full(seen),
            None => {}
        }
    }
}

impl Drop for StreamPlace<'_> {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        state.used_bytes -= self.bytes;
        let kind = state.of(self.kind);
        kind.under_way -= 1;
        if kind.waiting > 0 {
            self.streams.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::task::AttemptId;

    fn attempt(bytes: &AtomicU64) -> TaskAttempt<'_> {
        TaskAttempt {
            id: AttemptId {
                task: 0,
                attempt: 0,
            },
            stop: AtomicBool::new(false).into(),
            done_bytes: bytes,
            own_bytes: AtomicU64::new(0),
        }
    }

    /// The most files that were under way at once, of 400 that take a millisecond and so much memory each.
    fn peak(first: usize, (bytes, each): (u64, u64)) -> usize {
        let (streams, done) = (CopyStreams::default(), AtomicU64::new(0));
        let task = TaskStreams {
            kind: StreamKind::Short,
            first,
            bytes,
        };
        let (joined, attempt) = (streams.join(task), attempt(&done));
        let (now, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let place = joined.enter(each, &attempt).unwrap();
                        peak.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(1));
                        now.fetch_sub(1, Ordering::SeqCst);
                        place.done(1, 0);
                    }
                });
            }
        });
        drop(joined);
        let state = streams.state();
        assert_eq!((state.used_bytes, state.bytes), (0, 0));
        assert_eq!((state.short.under_way, state.short.waiting), (0, 0));
        assert_eq!((state.short.files, state.short.tasks), (400, 0));
        peak.into_inner()
    }

    #[test]
    fn no_more_are_under_way_than_there_is_memory_for() {
        assert!(peak(16, (1 << 30, 1)) >= 8);
        assert!(peak(16, (30, 10)) <= 3);
        assert_eq!(peak(16, (5, 10)), 1, "one always is");
    }

    #[test]
    fn tasks_begin_with_as_many_as_they_all_bring() {
        let streams = CopyStreams::default();
        let task = TaskStreams {
            kind: StreamKind::Long,
            first: 4,
            bytes: 100,
        };
        let joined = [streams.join(task), streams.join(task)];
        assert_eq!(streams.now(), 8);
        assert_eq!((joined[0].threads(100), joined[0].threads(3)), (8, 3));
        assert_eq!(streams.state().bytes, 200);
    }

    #[test]
    fn a_stream_that_waits_hears_that_its_task_is_to_end() {
        let (streams, done) = (CopyStreams::default(), AtomicU64::new(0));
        let task = TaskStreams {
            kind: StreamKind::Short,
            first: 1,
            bytes: 100,
        };
        let (joined, attempt) = (streams.join(task), attempt(&done));
        let _place = joined.enter(1, &attempt).unwrap();
        attempt.stop.store(true, Ordering::Relaxed);
        assert!(joined.enter(1, &attempt).is_err());
        assert_eq!(streams.state().short.waiting, 0);
    }
}
