//! Memory in pages of its own, from the operating system: large, aligned to blocks, in huge pages where there are.
//!
//! The first touch of memory can cost more than sorting what lies in it (docs/decisions/mapped-input.md). So engine buffers are
//! few, large and reused.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use super::BLOCK_BYTES;
use super::available::map_limits;
use crate::error::{Error, JobOption, Kind, Result, show_bytes};

/// A type for which any bytes, all zeros included, are a value.
///
/// # Safety
/// The implementer must have no invalid bit patterns, no padding, no `Drop`, and an alignment of at most a page.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers take any bits.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Asks for the cache line at an address: nothing is read, and nothing can fault, whatever the address.
#[inline]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address; // elsewhere the processor's own prefetching has to do
}

/// As [`prefetch`], into the second-level cache only.
#[inline]
pub fn prefetch_second(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address; // as above
}

/// A huge page on x86-64 and, with 4 kB base pages, on aarch64.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A fixed number of values in memory of its own, zero at first.
///
/// ```
/// use gristmill_base::sys::pages::Pages;
/// let mut pages = Pages::<u8>::zeroed(10_000)?;
/// pages[9_999] = 7;
/// assert_eq!((pages[0], pages.len(), pages.as_ptr() as usize % 4096), (0, 10_000, 0));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub struct Pages<T: Plain> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: the memory is owned, and `Plain` values are `Send` and `Sync`.
unsafe impl<T: Plain> Send for Pages<T> {}
// SAFETY: as above; shared access is read-only.
unsafe impl<T: Plain> Sync for Pages<T> {}

impl Pages<u8> {
    /// Gives a range of whole blocks back to the operating system: it reads as zeros afterwards.
    ///
    /// ```
    /// use gristmill_base::sys::pages::Pages;
    /// let mut pages = Pages::<u8>::zeroed(20_000)?;
    /// pages.fill(7);
    /// pages.discard(4096..8192);
    /// assert_eq!((pages[4095], pages[4096], pages[8192]), (7, 0, 7));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn discard(&mut self, range: Range<usize>) {
        let range = range.start.min(self.len)..range.end.min(self.len);
        if range.is_empty() {
            return;
        }
        #[cfg(target_os = "linux")]
        if range.start.is_multiple_of(BLOCK_BYTES) && range.end.is_multiple_of(BLOCK_BYTES) {
            // SAFETY: whole pages of our own private mapping, borrowed exclusively; they become zeros.
            let start = unsafe { self.start.as_ptr().add(range.start) };
            // SAFETY: as above.
            if unsafe { libc::madvise(start.cast(), range.len(), libc::MADV_DONTNEED) } == 0 {
                return;
            }
        }
        self[range].fill(0);
    }
}

impl<T: Plain> Pages<T> {
    /// Memory for `len` values.
    pub fn zeroed(len: usize) -> Result<Self> {
        let bytes = len * size_of::<T>();
        if bytes == 0 {
            return Ok(Pages {
                start: NonNull::dangling(),
                len,
            });
        }
        let start = anonymous(bytes, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        advise_huge(start.as_ptr(), bytes);
        let start = start.cast();
        Ok(Pages { start, len })
    }

    /// The same in pages of the usual size, for what is written and read from one end to the other: there huge ones gain
    /// nothing, and where a virtual machine has given free ones back to its host, they cost more
    /// (docs/decisions/runs-in-node-memory.md).
    pub fn zeroed_small(len: usize) -> Result<Self> {
        let bytes = len * size_of::<T>();
        if bytes == 0 {
            return Pages::zeroed(len);
        }
        let start = anonymous(bytes, libc::PROT_READ | libc::PROT_WRITE, 0)?.cast();
        Ok(Pages { start, len })
    }
}

/// The bytes of values, to be read and written: any bytes are values.
///
/// ```
/// use gristmill_base::sys::pages::{bytes_of, bytes_of_mut};
/// let mut numbers = [0_u16; 2];
/// bytes_of_mut(&mut numbers)[2..].fill(0xFF);
/// assert_eq!((numbers, bytes_of(&numbers)), ([0, 0xFFFF], &[0, 0, 0xFF, 0xFF][..]));
/// ```
pub fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: the memory of `values`, borrowed as long; `Plain` types have no padding and take any bits.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// As [`bytes_of_mut`], to be read.
pub fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: as above; shared as `values` are.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The words of values that have whole ones, to be read and written: any words are values.
///
/// ```
/// use gristmill_base::sys::pages::{words_of, words_of_mut};
/// let mut words = [1_u64, 2, 3];
/// words_of_mut(&mut words)[1] = 7;
/// assert_eq!((words_of(&words), words_of(&[0_u8; 8]).len()), (&[1, 7, 3][..], 0));
/// ```
pub fn words_of_mut<T: Plain>(values: &mut [T]) -> &mut [u64] {
    let len = words(values);
    // SAFETY: as `bytes_of_mut`; the alignment and the length were looked at.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), len) }
}

/// As [`words_of_mut`], to be read.
pub fn words_of<T: Plain>(values: &[T]) -> &[u64] {
    let len = words(values);
    // SAFETY: as above; shared as `values` are.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), len) }
}

/// How many words there are: none in values that are smaller, or need not begin at one.
fn words<T: Plain>(values: &[T]) -> usize {
    let whole = align_of::<T>() >= align_of::<u64>() && size_of::<T>().is_multiple_of(8);
    if whole { size_of_val(values) / 8 } else { 0 }
}

/// A new private mapping of zeros, which the caller unmaps.
pub(super) fn anonymous(
    bytes: usize,
    access: libc::c_int,
    flags: libc::c_int,
) -> Result<NonNull<u8>> {
    let (null, flags) = (
        std::ptr::null_mut(),
        flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new private mapping, touching nothing that exists.
    let start = unsafe { libc::mmap(null, bytes, access, flags, -1, 0) };
    match NonNull::new(start.cast()) {
        Some(mapped) if start != libc::MAP_FAILED => Ok(mapped),
        _ => Err(out_of_memory(bytes)),
    }
}

/// The error of an allocation that the operating system refused.
pub(super) fn out_of_memory(bytes: usize) -> Error {
    let refused = format!("the operating system refused {}", show_bytes(bytes as u64));
    let error = |message| Error::new(Kind::Memory, "allocate memory", message);
    let limits = map_limits().into_iter();
    let mut over = limits.filter(|limit| limit.free_bytes() < bytes as u64);
    match over.next() {
        Some(limit) => error(format!(
            "{refused}: `{}` lets the process map {}, and {} are taken",
            limit.command,
            show_bytes(limit.bytes),
            show_bytes(limit.used_bytes)
        ))
        .advise_options(
            format!(
                "give a smaller {{}}, or raise the limit: `{}` or more",
                limit.raised_by(bytes as u64)
            ),
            [JobOption::Memory.named()],
        ),
        None => error(refused).advise_options(
            "give a smaller {}, or end other programs",
            [JobOption::Memory.named()],
        ),
    }
}

/// Asks for huge pages; where there are none this does nothing.
pub(super) fn advise_huge(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= HUGE_PAGE_BYTES {
        // SAFETY: advice about a mapping the caller owns; it changes no contents.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

impl<T: Plain> Default for Pages<T> {
    fn default() -> Self {
        Pages {
            start: NonNull::dangling(),
            len: 0,
        }
    }
}

impl<T: Plain> Drop for Pages<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if bytes > 0 {
            // SAFETY: exactly the mapping made in `zeroed`; no reference outlives `self`.
            unsafe { libc::munmap(self.start.as_ptr().cast(), bytes) };
        }
    }
}

impl<T: Plain> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` values lie in the owned mapping, and any bits are a value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pages({} x {} bytes)", self.len, size_of::<T>())
    }
}
