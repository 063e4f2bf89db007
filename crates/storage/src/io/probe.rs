//! Looking at files and devices: what is in the page cache, and how fast a directory's device is.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::io::at_once::at_once;
use crate::io::overlap::TRANSFER_BYTES;
use crate::io::read_ahead::RANGES_AT_ONCE;
use crate::{Caching, LocalDisk, ReadFile, WriteFile};
use gristmill_base::error::Result;
use gristmill_base::sys::files;
use gristmill_base::sys::pages::Pages;
use gristmill_base::sys::threads::begin_in;

/// Windows that are looked at to estimate how much of a file is in the page cache.
const WINDOWS: u64 = 32;

/// Bytes of a window.
const WINDOW_BYTES: u64 = 1 << 20;

/// The share of a file's first `bytes` that is in the page cache, from 0 to 1, estimated from even windows. 0 where nothing
/// is known: then files are read.
pub fn resident_share(file: BorrowedFd<'_>, bytes: u64) -> f64 {
    let step = (bytes / WINDOWS)
        .next_multiple_of(WINDOW_BYTES)
        .max(WINDOW_BYTES);
    let (mut pages, mut resident) = (0_u64, 0_u64);
    let mut at = 0;
    while at < bytes {
        let window = WINDOW_BYTES.min(bytes - at);
        let Some(states) = files::page_states(file, at, window as usize) else {
            return 0.0;
        };
        pages += states.len() as u64;
        resident += states.iter().filter(|state| *state & 1 == 1).count() as u64;
        at += step;
    }
    if pages == 0 {
        0.0
    } else {
        resident as f64 / pages as f64
    }
}

/// How long the device below a directory took for plain transfers: the floor under any job there.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DeviceFloor {
    /// Bytes moved each way.
    pub bytes: u64,
    /// Seconds to write them directly in large blocks, made durable.
    pub write_s: f64,
    /// Seconds to read as much from the page cache into a reused buffer, at the rate of the first gigabyte.
    pub cached_read_s: f64,
}

/// Bytes that the rate of cached reads is measured on: more would only push other files out of the cache.
const CACHED_READ_BYTES: u64 = 1_000_000_000;

/// Writes `bytes` to a new file past the cache with `streams` streams, then reads a cached file of the same size. The
/// file is at `path` for a moment only: see `Unnamed`.
///
/// ```
/// use gristmill_storage::{local::Local, io::probe::device_floor};
/// let folder = tempfile::tempdir()?;
/// let floor = device_floor(&Local, &folder.path().join("probe"), 8 << 20, 2)?;
/// assert!(floor.write_s > 0.0 && floor.cached_read_s > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn device_floor(
    store: &dyn LocalDisk,
    path: &Path,
    bytes: u64,
    streams: u64,
) -> Result<DeviceFloor> {
    let file = Unnamed::create(store, path)?;
    let (write, read) = file.measure(bytes, streams.max(1))?;
    Ok(DeviceFloor {
        bytes,
        write_s: write.as_secs_f64(),
        cached_read_s: read.as_secs_f64(),
    })
}

/// How fast the device below a directory is at this moment, from a short try: bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DeviceRates {
    /// Direct writes with several streams, made durable.
    pub write: f64,
    /// Direct reads with several streams.
    pub read: f64,
    /// Reads from the page cache.
    pub cached_read: f64,
}

/// How fast a far store answers at this moment, from a short try of reading a file.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct StoreRates {
    /// Seconds until a short range is there.
    pub latency_s: f64,
    /// Bytes per second that come in ranges, several at once.
    pub read: f64,
}

/// The ranges of the try, and for how long another one is begun.
const TRIED_BYTES: usize = 1 << 20;
const TRIED_FOR: Duration = Duration::from_secs(1);

/// Reads some of the first `bytes` of a file, for a second or so.
///
/// ```
/// use gristmill_storage::{Caching, Store, local::Local, io::probe::store_rates};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a");
/// std::fs::write(&path, vec![7; 3 << 20])?;
/// let file = Local.open(&path, Caching::Cached)?;
/// let rates = store_rates(&*file, 3 << 20)?;
/// assert!(rates.latency_s >= 0.0 && rates.read > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn store_rates(file: &dyn ReadFile, bytes: u64) -> Result<StoreRates> {
    let mut latencies = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        file.read_at(&mut [0], 0)?;
        latencies.push(began.elapsed());
    }
    latencies.sort_unstable(); // the first one may have waited for a connection
    let began = Instant::now();
    let offsets: Vec<u64> = (0..bytes).step_by(TRIED_BYTES).take(1000).collect();
    let read = at_once(&offsets, RANGES_AT_ONCE, |offset| {
        if began.elapsed() > TRIED_FOR {
            return Ok(0);
        }
        file.read_at(&mut vec![0; TRIED_BYTES], *offset)
    })?;
    let read: usize = read.iter().sum();
    Ok(StoreRates {
        latency_s: latencies.get(1).map_or(0.0, Duration::as_secs_f64),
        read: read as f64 / began.elapsed().as_secs_f64().max(1e-9),
    })
}

/// Writes `bytes` to a new file, reads them back past the cache and from it; `path` is as for [`device_floor`].
///
/// ```
/// use gristmill_storage::{local::Local, io::probe::device_rates};
/// let folder = tempfile::tempdir()?;
/// let rates = device_rates(&Local, &folder.path().join("probe"), 8 << 20, 2)?;
/// assert!(rates.write > 0.0 && rates.read > 0.0 && rates.cached_read > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn device_rates(
    store: &dyn LocalDisk,
    path: &Path,
    bytes: u64,
    streams: u64,
) -> Result<DeviceRates> {
    let streams = streams.max(1);
    let file = Unnamed::create(store, path)?;
    let (write, cached) = file.measure(bytes, streams)?;
    // The page cache holds the file now; direct reads go past it all the same.
    let read = file.read_directly(bytes, streams)?;
    let rate = |time: Duration| bytes as f64 / time.as_secs_f64().max(1e-9);
    Ok(DeviceRates {
        write: rate(write),
        read: rate(read),
        cached_read: rate(cached),
    })
}

/// A file whose name is removed before anything is written to it: whatever becomes of us, the system takes it back.
struct Unnamed {
    write: Box<dyn WriteFile>,
    direct: Box<dyn ReadFile>,
    cached: Box<dyn ReadFile>,
}

impl Unnamed {
    fn create(store: &dyn LocalDisk, path: &Path) -> Result<Self> {
        let opened = || {
            Ok(Unnamed {
                write: store.create(path, 0, Caching::Direct)?,
                direct: store.open(path, Caching::Direct)?,
                cached: store.open(path, Caching::Cached)?,
            })
        };
        let opened = opened();
        let removed = store.remove(path);
        let opened = opened?;
        removed?;
        Ok(opened)
    }

    fn read_directly(&self, bytes: u64, streams: u64) -> Result<Duration> {
        let step = TRANSFER_BYTES as u64;
        let read_stream = |stream: u64| {
            let mut buffer = Pages::<u8>::zeroed(TRANSFER_BYTES)?;
            (stream * step..bytes)
                .step_by((streams * step) as usize)
                .try_for_each(|at| self.direct.read_at(&mut buffer, at).map(drop))
        };
        let began = Instant::now();
        in_streams(streams, &read_stream)?;
        Ok(began.elapsed())
    }

    /// How long it takes to write `bytes`, and to read as many from the cache.
    fn measure(&self, bytes: u64, streams: u64) -> Result<(Duration, Duration)> {
        let mut buffer = Pages::<u8>::zeroed(TRANSFER_BYTES)?;
        buffer
            .iter_mut()
            .enumerate()
            .for_each(|(i, byte)| *byte = (i % 251) as u8);
        let step = TRANSFER_BYTES as u64;
        let write_stream = |stream: u64| {
            (stream * step..bytes)
                .step_by((streams * step) as usize)
                .try_for_each(|at| {
                    let piece = &buffer[..step.min(bytes - at) as usize];
                    self.write.write_at(piece, at)
                })
        };
        let began = Instant::now();
        self.write.reserve(bytes)?;
        in_streams(streams, &write_stream)?;
        self.write.sync()?;
        let write = began.elapsed();

        let sampled = bytes.min(CACHED_READ_BYTES);
        let mut read_all = || {
            (0..sampled)
                .step_by(TRANSFER_BYTES)
                .try_for_each(|at| self.cached.read_at(&mut buffer, at).map(drop))
        };
        read_all()?; // into the cache
        let began = Instant::now();
        read_all()?;
        let read = began.elapsed();
        Ok((write, read.mul_f64(bytes as f64 / sampled.max(1) as f64)))
    }
}

/// Calls `act` with each stream's number, on a thread for each.
fn in_streams(streams: u64, act: &(dyn Fn(u64) -> Result<()> + Sync)) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..streams)
            .map(|stream| begin_in(scope, "try", move || act(stream)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| match thread?.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::Faulty;
    use crate::local::Local;

    #[test]
    fn a_kill_at_any_moment_leaves_nothing_but_an_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        let (mut calls, mut left) = (0, 0);
        loop {
            let store = Faulty::dying(Local, calls);
            let path = folder.path().join(format!("probe-{calls}"));
            let is_over = device_rates(&store, &path, 8 << 20, 2).is_ok();
            if let Ok(found) = std::fs::metadata(&path) {
                assert_eq!(found.len(), 0, "after {calls} calls");
                left += 1;
            }
            if is_over {
                break;
            }
            calls += 1;
        }
        // Killed before its name was removed: when it was to be opened twice, and when it was to be removed.
        assert_eq!(left, 3);
        assert!(calls > 8);
    }

    #[test]
    fn nothing_is_left_where_it_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone").join("probe");
        assert!(device_floor(&Local, &gone, 1 << 20, 1).is_err());
    }
}
