//! The heartbeat, which errors and Python call the pulse: a page shared by a worker and its driver, in which the worker keeps saying where it stands.
//!
//! ```text
//!   a file of 4096 bytes without a name, mapped by both; u64s in the machine's byte order (little-endian on all we build for)
//!     0  number of the record worked on, counted by this attempt
//!     8  bytes of input done
//!    16  offset of that record in its file
//!    24  index of the file, among those of the split
//!    32  beats: anything else that is progress
//!    40  requests to stores that the worker has sent, 48 those of them that it sent again, 56 those that were too many
//!    64  calls on files that are under way, eight rows of 504 bytes (sys/file_calls.rs)
//! ```
//!
//! One side writes with relaxed stores, a handful for a record; the other looks every 20 ms. The fields may be seen
//! out of step by a record: what they are for bears that. The page survives the worker, which is the point: after a
//! crash it names the record. The driver sets the first five to zero before each task, while the worker waits. Requests grow as
//! long as the worker lives, and are added to: children of user code send some, too.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gristmill_base::error::{Error, Result};
use gristmill_base::sys::descriptors::inherited;
use gristmill_base::sys::file_calls::{
    PAGE_WORDS, PULSE_WORDS, Page, look_at, rows_of, share_rows,
};
use gristmill_base::sys::mapping::SHARED_BYTES;
use gristmill_storage::net::requests::RequestCounts;

/// The size of the file.
pub const PULSE_BYTES: usize = SHARED_BYTES;

const RECORD: usize = 0;
const BYTES_DONE: usize = 1;
const OFFSET: usize = 2;
const FILE: usize = 3;
const BEATS: usize = 4;
/// Those before are looked at.
const LOOKED_AT: usize = 5;
const SENT: usize = 5;
const RETRIED: usize = 6;
const THROTTLED: usize = PULSE_WORDS - 1;

/// Where a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordPosition {
    /// Number of the record, counted by this attempt.
    pub record: u64,
    /// Where it begins in its file.
    pub offset: u64,
    /// Which file of the split.
    pub file: u64,
    /// Bytes of input done.
    pub bytes_done: u64,
}

/// The page, mapped.
///
/// ```
/// use gristmill_tasks::worker::{Heartbeat, RecordPosition};
/// let folder = std::path::Path::new("/tmp"); // where there is no /dev/shm
/// let (driver, file) = Heartbeat::create(folder)?;
/// let worker = Heartbeat::open(file)?;
/// worker.write(&RecordPosition { record: 7, offset: 700, file: 0, bytes_done: 600 });
/// assert_eq!(driver.place().map(|place| place.offset), Some(700));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub struct Heartbeat(Arc<Page>);

/// The fields that say of progress, at one look: equal if nothing was written in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look([u64; LOOKED_AT]);

impl Look {
    pub(super) fn bytes_done(&self) -> u64 {
        self.0[BYTES_DONE]
    }
}

impl Heartbeat {
    /// A new pulse and its file: in /dev/shm, where a write costs no disk a thing, or else in `scratch`. The file has no
    /// name: a worker inherits it open.
    pub fn create(scratch: &Path) -> Result<(Self, OwnedFd)> {
        let memory = Path::new("/dev/shm");
        match create_in(memory) {
            Ok(made) => Ok(made),
            Err(_) => create_in(scratch)
                .map_err(|error| Error::from_io("create the pulse of a worker", scratch, &error)),
        }
    }

    /// Maps the pulse that a driver made.
    pub fn open(file: OwnedFd) -> Result<Self> {
        let page = Page::open(file).map_err(|error| unopened(&error))?;
        Ok(Heartbeat(Arc::new(page)))
    }

    /// Makes the pulse that this process inherited as `descriptor`, which is closed, its own: what [`Heartbeat::mine`] gives.
    /// The first one stays.
    pub fn adopt(descriptor: i32) -> Result<&'static Self> {
        if let Some(pulse) = MINE.get() {
            return Ok(pulse);
        }
        let pulse = Self::open(inherited(descriptor).map_err(|error| unopened(&error))?)?;
        let pulse = MINE.get_or_init(|| pulse);
        share_rows(rows_of(pulse.fields()));
        Ok(pulse)
    }

    /// The pulse of this process, if it is a worker.
    pub fn mine() -> Option<&'static Self> {
        MINE.get()
    }

    /// Says which record is worked on from now on, and how much is done.
    #[inline]
    pub fn write(&self, place: &RecordPosition) {
        let fields = self.fields();
        fields[RECORD].store(place.record, Ordering::Relaxed);
        fields[OFFSET].store(place.offset, Ordering::Relaxed);
        fields[FILE].store(place.file, Ordering::Relaxed);
        fields[BYTES_DONE].store(place.bytes_done, Ordering::Relaxed);
    }

    /// Says that there is progress of some kind. One thread at a time may call it.
    #[inline]
    pub fn beat(&self) {
        let beats = &self.fields()[BEATS];
        // Not `fetch_add`: a locked instruction costs more than the record it would count.
        beats.store(beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Where the worker stands; `None` as long as it has not said so.
    pub fn place(&self) -> Option<RecordPosition> {
        let Look(fields) = self.look();
        let place = RecordPosition {
            record: fields[RECORD],
            offset: fields[OFFSET],
            file: fields[FILE],
            bytes_done: fields[BYTES_DONE],
        };
        (fields != [0; LOOKED_AT]).then_some(place)
    }

    /// Says that requests were sent.
    pub fn count_requests(&self, counts: RequestCounts) {
        let fields = self.fields();
        for (field, count) in [
            (SENT, counts.sent),
            (RETRIED, counts.retried),
            (THROTTLED, counts.throttled),
        ] {
            fields[field].fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The requests that the worker has sent since it began.
    pub fn requests(&self) -> RequestCounts {
        let of = |field: usize| self.fields()[field].load(Ordering::Relaxed);
        RequestCounts {
            sent: of(SENT),
            retried: of(RETRIED),
            throttled: of(THROTTLED),
        }
    }

    pub(super) fn look(&self) -> Look {
        Look(std::array::from_fn(|field| {
            self.fields()[field].load(Ordering::Relaxed)
        }))
    }

    /// Nothing done, for the next task.
    pub(super) fn reset(&self) {
        for field in self.fields().iter().take(LOOKED_AT) {
            field.store(0, Ordering::Relaxed);
        }
    }

    fn fields(&self) -> &[AtomicU64; PAGE_WORDS] {
        self.0.words()
    }
}

static MINE: OnceLock<Heartbeat> = OnceLock::new();

fn unopened(error: &io::Error) -> Error {
    Error::from_io("open the pulse of this worker", Path::new(""), error)
}

fn create_in(folder: &Path) -> io::Result<(Heartbeat, OwnedFd)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("gristmill-pulse-{}-{number}", std::process::id()));
        match Page::create(&path) {
            // Of a process of the same number, which was killed just then, or is in another container.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                let (page, file) = made?;
                let page = Arc::new(page);
                look_at(&page);
                return Ok((Heartbeat(page), file));
            }
        }
    }
}

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pulse({:?})", self.place())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn both_sides_see_one_page_and_a_short_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (driver, file) = create_in(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = std::fs::File::from(file);
        let opened = || Heartbeat::open(file.try_clone().unwrap().into());
        let worker = opened().unwrap();
        assert_eq!(driver.place(), None);
        worker.beat();
        let beaten = driver.look();
        assert_eq!(driver.place(), Some(RecordPosition::default()));
        worker.beat();
        assert_ne!(driver.look(), beaten);
        let place = RecordPosition {
            record: 3,
            offset: 1 << 40,
            file: 2,
            bytes_done: 9,
        };
        worker.write(&place);
        assert_eq!(driver.place(), Some(place));
        let counts = RequestCounts {
            sent: 3,
            retried: 2,
            throttled: 1,
        };
        worker.count_requests(counts);
        driver.reset();
        assert_eq!((worker.place(), driver.requests()), (None, counts));
        // The bytes are where the page above says.
        worker.write(&place);
        let mut bytes = [0; PULSE_BYTES];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!((bytes[0], bytes[8], bytes[24]), (3, 9, 2));
        file.set_len(5).unwrap();
        assert!(opened().is_err());
    }
}
