//! Merges of runs on other machines: requests at once, beside reads of this machine's disk, and before all has come.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::*;
use gristmill_storage::{ReadFile, Stat, Store};

/// How long a test waits for what should be there at once.
const LONGEST: Duration = Duration::from_secs(20);

type Before = Arc<dyn Fn(u64) -> Result<()> + Send + Sync>;

/// Runs on another machine, or on this one, whose reads wait for what a test says.
#[derive(Clone)]
pub(super) struct Elsewhere {
    memory: Memory,
    is_far: bool,
    /// Is told where each read begins, once the runs are open.
    before: Before,
    is_open: Arc<AtomicBool>,
}

impl Elsewhere {
    /// What is in `memory`, as on another machine.
    pub(super) fn of(memory: &Memory) -> Self {
        Elsewhere::waiting(memory, true, |_| Ok(()))
    }

    fn waiting(
        memory: &Memory,
        is_far: bool,
        before: impl Fn(u64) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Elsewhere {
            memory: memory.clone(),
            is_far,
            before: Arc::new(before),
            is_open: Arc::default(),
        }
    }

    pub(super) fn opened(&self, runs: &[RunFile]) -> Vec<RunFile> {
        let paths: Vec<&Path> = runs.iter().map(RunFile::path).collect();
        let opened = RunFile::open_all(self, &paths).unwrap();
        self.is_open.store(true, Ordering::Relaxed);
        opened
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere").finish_non_exhaustive()
    }
}

impl Store for Elsewhere {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        self.memory.stat(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.memory.list(directory)
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        Ok(Box::new(Waiting {
            file: self.memory.open(path, caching)?,
            of: self.clone(),
        }))
    }

    fn is_remote(&self, _path: &Path) -> bool {
        self.is_far
    }
}

#[derive(Debug)]
struct Waiting {
    file: Box<dyn ReadFile>,
    of: Elsewhere,
}

impl ReadFile for Waiting {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if self.of.is_open.load(Ordering::Relaxed) {
            (self.of.before)(offset)?;
        }
        self.file.read_at(buffer, offset)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_remote(&self) -> bool {
        self.of.is_far
    }
}

/// A number that reads wait for.
#[derive(Default)]
struct Count {
    now: Mutex<usize>,
    changed: Condvar,
}

impl Count {
    fn add(&self) {
        *self.now.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    /// Waits until it is so many.
    fn reaches(&self, wanted: usize) -> Result<()> {
        let less = |now: &mut usize| *now < wanted;
        let now = self.now.lock().unwrap();
        let (now, waited) = self.changed.wait_timeout_while(now, LONGEST, less).unwrap();
        if waited.timed_out() {
            return Err(Error::bug("wait", format!("{} of {wanted}", *now)));
        }
        Ok(())
    }
}

/// Merges runs whose reads wait until so many are under way.
fn merges_with(runs: [usize; 3], buffer_bytes: usize, at_once: usize) {
    let memory = Memory::with_room_for(u64::MAX);
    let under_way = Count::default();
    let far = Elsewhere::waiting(&memory, true, move |_| {
        under_way.add();
        under_way.reaches(at_once)
    });
    let runs = far.opened(&runs_of_1000(&memory, runs).unwrap());
    let merged = merge_by(LINES, &whole(&runs), buffer_bytes, &Budget::new(0)).unwrap();
    assert_eq!(merged.len(), 960);
}

#[test]
fn requests_for_far_segments_are_under_way_at_once() {
    // Two buffers of each of three runs are asked for at first.
    merges_with([0, 3, 6], 1, 6);
    // What decompresses has its memory from a third buffer, where there is one.
    for buffer_bytes in [1, 8 * BLOCK_BYTES] {
        merges_with([0, 1, 2], buffer_bytes, 1);
    }
}

#[test]
fn far_segments_keep_nothing_of_this_machine_waiting() {
    let memory = Memory::with_room_for(u64::MAX);
    let read = Arc::<Count>::default();
    let reads = Arc::clone(&read);
    let here = Elsewhere::waiting(&memory, false, move |_| {
        reads.add();
        Ok(())
    });
    let far = Elsewhere::waiting(&memory, true, move |_| read.reaches(2));
    let here_and_far =
        [far, here].map(|place| place.opened(&runs_of_1000(&memory, [0, 3, 6]).unwrap()));
    let [far, here] = here_and_far;
    let segments = [&far[0], &here[1], &far[2]].map(|run| segment(run, 0..320));
    let merged = merge(LINES, &segments, &Budget::new(0)).unwrap();
    assert_eq!(merged.len(), 960);
}

/// Segments of five blocks in buffers that would hold all of them: they come in parts of four blocks.
#[test]
fn a_merge_begins_when_the_first_part_of_far_segments_has_come() {
    let memory = Memory::with_room_for(u64::MAX);
    let begun = Arc::<Count>::default();
    let begins = Arc::clone(&begun);
    let far = Elsewhere::waiting(&memory, true, move |at| match at {
        ..=4096 => Ok(()), // behind the header
        _ => begun.reaches(1),
    });
    let runs = far.opened(&lines_of_1000(&memory).unwrap());
    let mut merged = 0;
    let (buffer_bytes, budget) = (8 * BLOCK_BYTES, Budget::new(0));
    let take = |_: &[u8]| {
        merged += 1;
        begins.add();
        Ok(())
    };
    let segments = whole(&runs);
    merge_segments(
        LINES,
        &segments,
        buffer_bytes,
        &mut Vec::new(),
        &budget,
        take,
    )
    .unwrap();
    assert_eq!(merged, 960);
}

/// As large as those of runs of this machine: what a plan has counted.
#[test]
fn buffers_of_far_segments_take_no_more_memory() {
    let memory = Memory::with_room_for(u64::MAX);
    let here = lines_of_1000(&memory).unwrap();
    let far = Elsewhere::of(&memory).opened(&here);
    let mut buffers = Vec::new();
    for buffer_bytes in [1, 5 * BLOCK_BYTES, 64 * BLOCK_BYTES] {
        let places = [[&far[0], &here[1], &far[2]], [&far[0], &far[1], &here[2]]];
        for segments in places.map(|runs| runs.map(|run| segment(run, 0..320))) {
            let budget = Budget::new(0);
            merge_segments(
                LINES,
                &segments,
                buffer_bytes,
                &mut buffers,
                &budget,
                |_| Ok(()),
            )
            .unwrap();
            let held: usize = buffers.iter().map(|buffer| buffer.len()).sum();
            assert!(
                held > 0 && held as u64 <= merge_bytes(3, buffer_bytes),
                "{held}"
            );
        }
    }
}

#[test]
fn a_far_run_that_cannot_be_had_ends_the_merge() {
    let memory = Memory::with_room_for(u64::MAX);
    let asked = Count::default();
    let far = Elsewhere::waiting(&memory, true, move |_| {
        asked.add();
        match *asked.now.lock().unwrap() {
            4 => Err(Error::new(Kind::Io, "read", "its machine is gone")),
            _ => Ok(()),
        }
    });
    let runs = far.opened(&lines_of_1000(&memory).unwrap());
    let error = merge(LINES, &whole(&runs), &Budget::new(0)).unwrap_err();
    assert!(error.to_string().contains("its machine is gone"), "{error}");
}
