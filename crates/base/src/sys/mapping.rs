//! Files in memory: at a place in address space of our own, or a few words that processes share.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::pages::{HUGE_PAGE_BYTES, advise_huge, anonymous, out_of_memory};
use super::shrink::ShrinkGuard;
use crate::error::Result;

/// Address space that begins at a huge page and reads as zeros. Files are mapped into it, or parts made writable.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    /// What the operating system gave; `base` is the first huge-page boundary inside.
    reserved: NonNull<u8>,
    reserved_bytes: usize,
    base: NonNull<u8>,
    bytes: usize,
    guard: Option<ShrinkGuard>,
}

// SAFETY: the memory is owned; what is read and written of it is its owner's to order.
unsafe impl Send for AddressSpace {}
// SAFETY: as above; shared access changes nothing.
unsafe impl Sync for AddressSpace {}

impl AddressSpace {
    /// Room for `bytes` bytes. No memory is used yet.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        let reserved_bytes = bytes + HUGE_PAGE_BYTES;
        let reserved = anonymous(reserved_bytes, libc::PROT_READ, libc::MAP_NORESERVE)?;
        let skip = reserved.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `skip` is less than a huge page, by which the reservation is longer.
        let base = unsafe { reserved.add(skip) };
        Ok(AddressSpace {
            reserved,
            reserved_bytes,
            base,
            bytes,
            guard: None,
        })
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of the byte at `offset`, which is inside if the caller means to touch it.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        self.base.as_ptr().wrapping_add(offset)
    }

    /// Maps a file, to be read, at a range of whole pages. False where that is not possible.
    pub(crate) fn map(&mut self, range: Range<usize>, file: BorrowedFd<'_>) -> bool {
        if self.guard.is_none() {
            self.guard = ShrinkGuard::register(self.base.as_ptr(), self.bytes);
        }
        if self.guard.is_none() || !self.holds(&range) {
            return false;
        }
        let at = self.at(range.start);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: inside our own reservation, to which no reference exists, since `self` is borrowed exclusively.
        let mapped = unsafe {
            let fd = file.as_raw_fd();
            libc::mmap(at.cast(), range.len(), libc::PROT_READ, flags, fd, 0) != libc::MAP_FAILED
        };
        if mapped {
            advise_huge(at, range.len()); // what is not cached yet will be read in huge pages
        }
        mapped
    }

    /// Lets a range of whole pages be written.
    pub(crate) fn make_writable(&mut self, range: Range<usize>) -> Result<()> {
        let at = self.at(range.start);
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: inside our own reservation; only the protection changes.
        let done =
            self.holds(&range) && unsafe { libc::mprotect(at.cast(), range.len(), writable) == 0 };
        if !done {
            return Err(out_of_memory(range.len()));
        }
        advise_huge(at, range.len());
        Ok(())
    }

    /// Where the first page is that a mapped file had and has no more, if any was touched.
    pub(crate) fn first_gone(&self) -> Option<u64> {
        self.guard.as_ref()?.first_gone()
    }

    fn holds(&self, range: &Range<usize>) -> bool {
        range.start <= range.end && range.end <= self.bytes
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        self.guard = None; // before the addresses can belong to somebody else
        // SAFETY: our own reservation, with all that was mapped into it; whoever reads it borrows `self`.
        unsafe { libc::munmap(self.reserved.as_ptr().cast(), self.reserved_bytes) };
    }
}

/// The length of the file of shared words.
pub const SHARED_BYTES: usize = 4096;

/// The first `N` words of a file, shared by all processes that map it.
#[derive(Debug)]
pub struct SharedWords<const N: usize>(NonNull<[AtomicU64; N]>);

// SAFETY: mapped as long as the value lives, and only reached through atomics.
unsafe impl<const N: usize> Send for SharedWords<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for SharedWords<N> {}

impl<const N: usize> SharedWords<N> {
    /// The words of a new file of [`SHARED_BYTES`] zeros, which no other user may open. It loses its name at once, so that
    /// none stays behind, however this process ends.
    pub fn create(path: &Path) -> io::Result<(Self, OwnedFd)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(path)?;
        std::fs::remove_file(path)?;
        // Written, not only made longer: a page that the file system has no room for must fail here.
        file.write_all(&[0; SHARED_BYTES])?;
        Ok((Self::map(&file)?, file.into()))
    }

    /// The words of a file that was created so.
    pub fn open(file: OwnedFd) -> io::Result<Self> {
        let file = File::from(file);
        if file.metadata()?.len() < SHARED_BYTES as u64 {
            return Err(io::Error::other("it is shorter than a page"));
        }
        Self::map(&file)
    }

    fn map(file: &File) -> io::Result<Self> {
        let (fd, access) = (file.as_raw_fd(), libc::PROT_READ | libc::PROT_WRITE);
        let (null, bytes) = (std::ptr::null_mut(), N * size_of::<AtomicU64>());
        // SAFETY: a new mapping, touching nothing that exists.
        let start = unsafe { libc::mmap(null, bytes, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(start.cast());
        words
            .map(SharedWords)
            .ok_or_else(|| io::Error::other("mapped at zero"))
    }

    /// The words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64; N] {
        // SAFETY: mapped as long as `self` lives, aligned to a page; any bits are a value.
        unsafe { self.0.as_ref() }
    }
}

impl<const N: usize> Drop for SharedWords<N> {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; no reference outlives `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), N * size_of::<AtomicU64>()) };
    }
}
