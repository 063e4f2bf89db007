use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use gristmill_base::error::Kind;

/// A far file in memory, and what was asked of it.
#[derive(Debug)]
struct Remote {
    bytes: Vec<u8>,
    remote: RemoteFile,
    asked: Mutex<Vec<Range<u64>>>,
    /// A read of this byte fails.
    broken: Option<u64>,
    /// Reads beside the first wait for each other.
    together: Option<Barrier>,
}

/// No two ranges that a test asks for are equal.
fn bytes(count: usize) -> Vec<u8> {
    const PERIOD: usize = 65_521; // a prime
    let period: Vec<u8> = (0..PERIOD).map(|at| ((at * 7) ^ (at >> 8)) as u8).collect();
    let mut bytes = period.repeat(count / PERIOD + 1);
    bytes.truncate(count);
    bytes
}

impl Remote {
    fn new(count: usize, share: u64) -> Self {
        let memory = Arc::new(WindowMemory::default());
        memory.set_bytes(share);
        Remote {
            bytes: bytes(count),
            remote: RemoteFile {
                bytes: count as u64,
                memory,
            },
            asked: Mutex::default(),
            broken: None,
            together: None,
        }
    }

    fn asked(&self) -> Vec<Range<u64>> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort_unstable_by_key(|range| range.start);
        asked
    }
}

/// What a window has of it.
#[derive(Debug)]
struct Opened(Arc<Remote>);

impl ReadFile for Opened {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let (file, end) = (&self.0, offset + buffer.len() as u64);
        file.asked.lock().unwrap().push(offset..end);
        assert!(file.remote.memory.used_bytes() <= file.remote.memory.each_bytes());
        if let Some(together) = &file.together {
            together.wait();
        }
        if file.broken.is_some_and(|at| (offset..end).contains(&at)) {
            return Err(Error::new(Kind::Io, "read the input", "it is broken"));
        }
        let there = file.bytes.get(offset as usize..).unwrap_or_default();
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn remote(&self) -> Option<RemoteFile> {
        Some(self.0.remote.clone())
    }
}

fn opened(remote: &Arc<Remote>) -> Box<dyn ReadFile> {
    Box::new(Opened(Arc::clone(remote)))
}

/// Reads from front to back, in blocks.
fn read_all(file: &dyn ReadFile, from: u64, block: usize) -> Result<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; block]);
    loop {
        let read = file.read_at(&mut buffer, from + all.len() as u64)?;
        all.extend_from_slice(&buffer[..read]);
        if read < block {
            return Ok(all);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any reads give what the file gives, through either window, with any memory.
    #[test]
    fn reads_are_those_of_the_file(
        count in 0_usize..6_000_000,
        share in prop_oneof![Just(0_u64), (1_u64 << 20)..(5 << 20)],
        range in prop::option::of((0.0..1.0, 0.0..1.2)),
        reads in prop::collection::vec((prop::option::weighted(0.2, 0.0..1.1), 1_usize..900_000), 1..12),
    ) {
        let remote = Arc::new(Remote::new(count, share));
        let place = |part: f64| (part * count as f64) as u64;
        let file = match range {
            Some((from, to)) => in_order(opened(&remote), place(from)..place(to).max(place(from))),
            None => in_any_order(opened(&remote)),
        };
        let mut at = range.map_or(0, |(from, _)| place(from));
        for (seek, bytes) in reads {
            at = seek.map_or(at, place);
            let mut buffer = vec![1; bytes];
            let read = file.read_at(&mut buffer, at).unwrap();
            let there = remote.bytes.get(at as usize..).unwrap_or_default();
            prop_assert!(buffer[..read] == there[..there.len().min(bytes)]);
            at += read as u64;
        }
    }
}

/// Front to back, nothing is asked for twice, and in no more requests than there are ranges.
#[test]
fn what_is_read_in_order_is_asked_for_once() {
    for (count, share, requests) in [
        (100, SHARE_BYTES_MAX, 1),
        (7_000_000, SHARE_BYTES_MAX, 1),
        (30_000_000, SHARE_BYTES_MAX, 4),
        (30_000_000, 4_000_000, 15),
        (5_000_000, 0, 5), // blocks of the reader: there is no memory
    ] {
        let remote = Arc::new(Remote::new(count, share));
        let file = in_order(opened(&remote), 0..count as u64);
        assert!(read_all(&*file, 0, 1_000_000).unwrap() == remote.bytes);
        drop(file);
        let mut asked = remote.asked();
        asked.retain(|range| range.start < count as u64); // the last block of all may ask behind the end
        assert_eq!(asked.len(), requests, "{asked:?}");
        assert!(
            asked.windows(2).all(|pair| pair[0].end == pair[1].start),
            "{asked:?}"
        );
    }
}

/// What nobody has announced is read ahead once it is read in order, and no further than as much again.
#[test]
fn a_guess_grows_with_what_was_read() {
    let remote = Arc::new(Remote::new(60_000_000, SHARE_BYTES_MAX));
    let file = in_any_order(opened(&remote));
    let mut buffer = vec![0; 1 << 20];
    for at in [50_000_000, 0] {
        file.read_at(&mut buffer, at).unwrap();
    }
    assert_eq!(remote.asked().len(), 2, "places that nobody reads on from");
    assert!(read_all(&*file, 0, 1 << 20).unwrap() == remote.bytes);
    assert!(remote.asked().len() < 20, "{:?}", remote.asked());
    let long = in_any_order(opened(&remote));
    let mut whole = vec![0; remote.bytes.len()];
    let before = remote.asked().len();
    assert_eq!(long.read_at(&mut whole, 0).unwrap(), whole.len());
    assert!(whole == remote.bytes);
    assert_eq!(remote.asked().len() - before, 7, "in ranges");
}

/// Two are under way from the beginning, or this hangs.
#[test]
fn ranges_are_under_way_together() {
    let mut remote = Remote::new(16_000_000, SHARE_BYTES_MAX);
    remote.together = Some(Barrier::new(2));
    let remote = Arc::new(remote);
    let file = in_order(opened(&remote), 0..16_000_000);
    for at in 0..16 {
        let read = file.read_at(&mut vec![0; 1_000_000], at * 1_000_000);
        assert_eq!(read.unwrap(), 1_000_000);
    }
}

/// An error comes when the reader comes to its range, and stays; what is before it was read.
#[test]
fn errors_come_where_they_belong() {
    let mut remote = Remote::new(40_000_000, SHARE_BYTES_MAX);
    remote.broken = Some(25_000_000);
    let remote = Arc::new(remote);
    let file = in_order(opened(&remote), 0..40_000_000);
    let (mut buffer, mut at) = (vec![0; 1_000_000], 0);
    let error = loop {
        match file.read_at(&mut buffer, at) {
            Ok(read) => at += read as u64,
            Err(error) => break error,
        }
    };
    assert_eq!((at, error.kind()), (24_000_000, Kind::Io));
    assert!(file.read_at(&mut buffer, 25_000_000).is_err());
    assert_eq!(file.read_at(&mut buffer, 30_000_000).unwrap(), 1_000_000);
}

/// A window that is dropped gives its memory back, at the latest when its requests end.
#[test]
fn nothing_is_held_by_a_window_that_is_gone() {
    let mut remote = Remote::new(40_000_000, SHARE_BYTES_MAX);
    remote.together = Some(Barrier::new(2));
    let remote = Arc::new(remote);
    let file = in_order(opened(&remote), 0..40_000_000);
    file.read_at(&mut [0; 10], 0).unwrap();
    assert!(remote.remote.memory.used_bytes() >= 16_000_000);
    drop(file);
    static LOOKS: AtomicUsize = AtomicUsize::new(0);
    while Arc::strong_count(&remote) > 1 {
        assert!(
            LOOKS.fetch_add(1, Ordering::Relaxed) < 10_000,
            "a thread holds it"
        );
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(remote.remote.memory.used_bytes(), 0);
}

/// A range that comes late has more under way; one that comes early, fewer.
#[test]
fn as_many_are_wanted_as_the_reader_passes_meanwhile() {
    let mut state = WindowState {
        left: 0..0,
        step: 1,
        wanted: 2,
        ranges: VecDeque::new(),
        spare: Vec::new(),
        came: Instant::now() - Duration::from_millis(50),
        waited: Duration::ZERO,
        next: None,
    };
    state.measure(Duration::from_millis(120)); // 2.4 passes
    assert_eq!(state.wanted, 4);
    state.came = Instant::now() - Duration::from_secs(60);
    state.measure(Duration::from_millis(120));
    assert_eq!(state.wanted, 3);
    state.measure(Duration::from_secs(60));
    assert_eq!(state.wanted, RANGES_AT_ONCE);
}
