//! The arena: the address space in which a job's input lies, in input order.
//!
//! ```text
//!   position   0                    2 MB multiples          ...
//!              | file 0 ......|gap  | file 1 ..........|gap | file 2 ...|
//!                 mapped               read                    mapped
//! ```
//!
//! A record's *position* is its offset here, and the locator of its entry. So positions ascend in input order
//! over all files, a record is found by one addition, and it is all the same to later stages whether a file is
//! mapped (no copy, and no fresh memory to touch) or read into huge pages.
//!
//! The rule that must hold: a byte is written by one claim, before `seal`, and read by anybody after it. Claims
//! are checked against each other; sealing checks that claims and mappings tile the input.
//!
//! Decision: docs/decisions/mapped-input.md.
//! Decision: docs/decisions/address-space.md.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use crate::error::{Error, Kind, Result};
use crate::record::POSITION_LIMIT;
use crate::sync::lock;
use crate::sys::BLOCK_BYTES;
use crate::sys::mapping::AddressSpace;
use crate::sys::pages::HUGE_PAGE_BYTES;

/// One file's place in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    start: u64,
    bytes: u64,
    mapped: bool,
}

/// Which ranges are claimed: for each its start, its end, and whether it is full.
#[derive(Debug, Default)]
struct Claims {
    ranges: BTreeMap<u64, (u64, bool)>,
    sealed: bool,
}

impl Claims {
    fn overlap(&self, range: &Range<u64>) -> bool {
        let before = self.ranges.range(..range.end).next_back();
        before.is_some_and(|(_, (end, _))| *end > range.start)
    }
}

/// A job's input in memory.
pub struct Arena {
    space: AddressSpace,
    regions: Vec<Region>,
    claims: Mutex<Claims>,
}

impl Arena {
    /// Address space for files of these sizes. No memory is used yet: it reads as zeros.
    pub fn reserve(file_bytes: &[u64]) -> Result<Self> {
        let region = |(start, &bytes)| Region {
            start,
            bytes,
            mapped: false,
        };
        let starts = file_starts(file_bytes).into_iter();
        let regions: Vec<Region> = starts.zip(file_bytes).map(region).collect();
        let end = regions.last().map_or(0, |last| {
            last.start + last.bytes.next_multiple_of(alignment(last.bytes))
        });
        if end > POSITION_LIMIT {
            return Err(Error::new(
                Kind::BadInput,
                "lay out the input",
                format!("one job sorts at most {POSITION_LIMIT} bytes"),
            ));
        }
        Ok(Arena {
            space: AddressSpace::new((end as usize).max(HUGE_PAGE_BYTES))?,
            regions,
            claims: Mutex::new(Claims::default()),
        })
    }

    /// Positions are below this.
    pub fn addresses(&self) -> u64 {
        self.space.bytes() as u64
    }

    /// Where file `file` begins.
    pub fn start_of(&self, file: usize) -> u64 {
        self.regions[file].start
    }

    /// The file that holds `position`, and the offset in it.
    pub fn file_at(&self, position: u64) -> (usize, u64) {
        let file = self
            .regions
            .partition_point(|region| region.start <= position)
            .max(1)
            - 1;
        (file, position - self.regions[file].start)
    }

    /// Maps file `file` at its place. False where it cannot be mapped, or is too small to be worth it: then read it.
    pub fn map(&mut self, file: usize, descriptor: BorrowedFd<'_>) -> bool {
        let region = self.regions[file];
        if region.bytes < HUGE_PAGE_BYTES as u64 {
            return false; // small files are read: mappings are counted, and 65,530 are all that Linux gives
        }
        let range = region.start as usize..(region.start + region.bytes) as usize;
        let mapped = self.space.map(range, descriptor);
        self.regions[file].mapped = mapped;
        mapped
    }

    /// Makes the place of file `file` writable, for claims.
    pub fn make_writable(&mut self, file: usize) -> Result<()> {
        let region = self.regions[file];
        if region.bytes == 0 {
            return Ok(());
        }
        // Whole blocks, so that direct reads may end behind the file's last byte.
        let bytes = region.bytes.next_multiple_of(alignment(region.bytes)) as usize;
        let start = region.start as usize;
        self.space.make_writable(start..start + bytes)
    }

    /// The bytes at `range` where they are mapped; `None` where they must be claimed and read.
    pub fn mapped(&self, range: Range<u64>) -> Option<&[u8]> {
        let (file, _) = self.file_at(range.start);
        let region = self.regions.get(file).filter(|region| region.mapped)?;
        let inside = range.start >= region.start && range.end <= region.start + region.bytes;
        // SAFETY: a mapped region is never claimed, hence never written by us. (Another process may write the
        // file; the bytes are only ever read as bytes, and the proof finds what changed.)
        inside.then(|| unsafe { self.slice(range) })
    }

    /// The exclusive right to write `range`, rounded up to whole blocks at the end of a file.
    pub fn claim(&self, range: Range<u64>) -> Result<ArenaClaim<'_>> {
        let mut claims = self.lock_claims();
        if claims.sealed || claims.overlap(&range) {
            return Err(Error::bug(
                "claim memory",
                format!("{range:?} is taken or sealed"),
            ));
        }
        let (file, offset) = self.file_at(range.start);
        let region = self.regions[file];
        let room = region.bytes.next_multiple_of(alignment(region.bytes));
        if region.mapped || offset + (range.end - range.start) > room {
            return Err(Error::bug(
                "claim memory",
                format!("{range:?} is not writable"),
            ));
        }
        claims.ranges.insert(range.start, (range.end, false));
        Ok(ArenaClaim {
            arena: self,
            range,
            kept: false,
        })
    }

    /// Ends writing: from here on all bytes may be read. Checks that every byte of input is there, once.
    pub fn seal(&self) -> Result<()> {
        let mut claims = self.lock_claims();
        let full = claims.ranges.iter().filter(|(_, (_, full))| *full);
        let filled: u64 = full.map(|(start, (end, _))| end - start).sum();
        let open = claims.ranges.values().filter(|(_, full)| !full).count();
        let unmapped = self.regions.iter().filter(|region| !region.mapped);
        let wanted: u64 = unmapped.map(|region| region.bytes).sum();
        if open > 0 || filled != wanted {
            let message = format!("{filled} of {wanted} bytes were read, {open} ranges are open");
            return Err(Error::bug("seal the input", message));
        }
        claims.sealed = true;
        Ok(())
    }

    /// The whole arena, once sealed.
    pub fn sealed(&self) -> Result<&[u8]> {
        if !self.lock_claims().sealed {
            return Err(Error::bug("read the input", "it is not sealed"));
        }
        // SAFETY: sealed, so nobody writes; the whole reservation is readable (gaps as zeros).
        Ok(unsafe { self.slice(0..self.addresses()) })
    }

    /// Where a mapped file has lost pages since it was mapped: the file's number and the offset in it.
    pub fn lost_at(&self) -> Option<(usize, u64)> {
        let position = self.space.first_gone();
        position.map(|position| self.file_at(position))
    }

    /// Bytes of input that are mapped.
    pub fn mapped_bytes(&self) -> u64 {
        self.regions
            .iter()
            .filter(|region| region.mapped)
            .map(|region| region.bytes)
            .sum()
    }

    /// # Safety
    /// Nobody may write the range while the slice lives.
    unsafe fn slice(&self, range: Range<u64>) -> &[u8] {
        let bytes = (range.end - range.start) as usize;
        // SAFETY: inside the reservation, which is readable as a whole.
        unsafe { std::slice::from_raw_parts(self.space.at(range.start as usize), bytes) }
    }

    fn lock_claims(&self) -> std::sync::MutexGuard<'_, Claims> {
        // A panic elsewhere leaves the lists whole: each change is one push or one removal.
        lock(&self.claims)
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Arena({} bytes, {} files)",
            self.addresses(),
            self.regions.len()
        )
    }
}

/// Where a file of `bytes` bytes may begin: large ones at huge pages, small ones at the next block.
fn alignment(bytes: u64) -> u64 {
    if bytes < HUGE_PAGE_BYTES as u64 {
        BLOCK_BYTES as u64
    } else {
        HUGE_PAGE_BYTES as u64
    }
}

/// Where files of these sizes begin in the address space of their job.
///
/// ```
/// use gristmill_base::record::arena::file_starts;
/// assert_eq!(file_starts(&[100, 5_000, 3_000_000]), [0, 4096, 2_097_152]);
/// ```
pub fn file_starts(file_bytes: &[u64]) -> Vec<u64> {
    let mut end = 0_u64;
    let place = |bytes: &u64| {
        let start = end.next_multiple_of(alignment(*bytes));
        end = start + bytes.next_multiple_of(alignment(*bytes));
        start
    };
    file_bytes.iter().map(place).collect()
}

/// Memory for files of these sizes, were all of them read: what [`Arena::reserve`] lays out.
pub fn layout_bytes(file_bytes: &[u64]) -> u64 {
    file_bytes
        .iter()
        .map(|bytes| bytes.next_multiple_of(alignment(*bytes)))
        .sum()
}

/// The exclusive right to write one range. Dropped without [`ArenaClaim::keep`], the range is free to claim again.
#[derive(Debug)]
pub struct ArenaClaim<'a> {
    arena: &'a Arena,
    range: Range<u64>,
    kept: bool,
}

impl ArenaClaim<'_> {
    /// The bytes of the range.
    pub fn bytes(&mut self) -> &mut [u8] {
        let bytes = (self.range.end - self.range.start) as usize;
        // SAFETY: inside a writable region, and no other open or filled claim overlaps it.
        unsafe {
            let start = self.arena.space.at(self.range.start as usize);
            std::slice::from_raw_parts_mut(start, bytes)
        }
    }

    /// Says that the first `bytes` of the range are full.
    pub fn keep(mut self, bytes: u64) {
        self.kept = true;
        let end = self.range.start + bytes;
        self.arena
            .lock_claims()
            .ranges
            .insert(self.range.start, (end, true));
    }
}

impl Drop for ArenaClaim<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.arena.lock_claims().ranges.remove(&self.range.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_exclude_each_other_and_seal_wants_all() {
        let mut arena = Arena::reserve(&[100, 300]).unwrap();
        arena.make_writable(0).unwrap();
        arena.make_writable(1).unwrap();
        let second = arena.start_of(1);
        assert_eq!(arena.file_at(second + 7), (1, 7));

        let claim = arena.claim(0..100).unwrap();
        assert_eq!(arena.claim(50..150).unwrap_err().kind(), Kind::Bug);
        drop(claim);
        let mut claim = arena.claim(0..100).unwrap();
        claim.bytes().fill(1);
        claim.keep(100);
        assert!(arena.claim(0..10).is_err(), "a filled range stays taken");
        assert!(arena.seal().is_err(), "the second file is missing");
        assert!(arena.sealed().is_err());

        let mut claim = arena.claim(second..second + 300).unwrap();
        claim.bytes().fill(2);
        claim.keep(300);
        arena.seal().unwrap();
        let bytes = arena.sealed().unwrap();
        assert_eq!(
            (bytes[99], bytes[100], bytes[second as usize + 299]),
            (1, 0, 2)
        );
    }

    #[test]
    fn a_mapped_file_that_shrinks_is_noticed_and_survived() {
        use std::os::fd::AsFd;
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 << 20).unwrap();
        let mut arena = Arena::reserve(&[4 << 20]).unwrap();
        assert!(arena.map(0, file.as_fd()));
        assert_eq!(arena.lost_at(), None);
        file.set_len(8192).unwrap();
        let bytes = arena.mapped(0..4 << 20).unwrap();
        assert_eq!(
            bytes[500_000..]
                .iter()
                .map(|byte| u64::from(*byte))
                .sum::<u64>(),
            0
        );
        let (file_number, offset) = arena.lost_at().unwrap();
        assert_eq!((file_number, offset), (0, 500_000));
    }
}
