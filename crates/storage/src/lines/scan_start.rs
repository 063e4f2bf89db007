//! Where to scan from for a delimiter, in the middle of a file.
//!
//! A delimiter that overlaps itself ("\n\n" in "\n\n\n") ends a line where a scan from the file's beginning finds it. So a
//! reader of a split looks back to where no occurrence lies across, and scans from there:
//!
//! ```text
//!   file       a LF LF LF b       delimiter LF LF
//!   delimiter    |---|            found by a scan from the beginning
//!                   |---|         found by a scan from the second LF, and wrong
//!   split      ------|------      looks back to `a`
//! ```

use memchr::memmem::Finder;

use crate::ReadFile;
use gristmill_base::error::Result;

/// An offset from which a scan for `delimiter` finds what a scan from the file's beginning finds: one before `offset` by a
/// delimiter, or more, over which no occurrence lies; or the beginning.
///
/// # Errors
/// The file's.
///
/// ```
/// use gristmill_storage::lines::scan_start::scan_start;
/// use gristmill_storage::{Caching, LocalDisk as _, OutputStore as _, Store as _, memory::Memory};
/// use memchr::memmem::Finder;
/// let store = Memory::with_room_for(100);
/// store.create("/a".as_ref(), 10, Caching::Cached)?.write_at(b"abc\n\n\nefgh", 0)?;
/// let file = store.open("/a".as_ref(), Caching::Cached)?;
/// let starts = [3, 6, 9].map(|offset| scan_start(&Finder::new("\n\n"), &*file, offset).unwrap());
/// assert_eq!(starts, [1, 3, 7]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn scan_start(delimiter: &Finder<'_>, file: &dyn ReadFile, offset: u64) -> Result<u64> {
    let length = delimiter.needle().len() as u64;
    let overlap = length.saturating_sub(1);
    let mut start = offset.saturating_sub(length);
    let mut around = vec![0; 2 * overlap as usize];
    while start > 0 {
        // In these bytes an occurrence begins before `start` and ends behind it, or is none.
        let low = start.saturating_sub(overlap);
        let count = (start - low + overlap) as usize;
        let read = file.read_at(&mut around[..count], low)?;
        match delimiter.find(&around[..read]) {
            Some(at) => start = low + at as u64,
            None => break,
        }
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::{Caching, OutputStore as _, Store as _};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn occurrences(text: &[u8], delimiter: &[u8], from: usize) -> Vec<usize> {
        let found = memchr::memmem::find_iter(&text[from..], delimiter);
        found.map(|at| from + at).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(12), ..ProptestConfig::default() })]

        #[test]
        fn a_scan_from_there_finds_what_one_from_the_beginning_does(
            text in "[ab]{0,40}", delimiter in "[ab]{1,5}", offset in 0_u64..40,
        ) {
            let (text, delimiter) = (text.as_bytes(), delimiter.as_bytes());
            let offset = offset.min(text.len() as u64);
            let store = Memory::with_room_for(1 << 20);
            let file = store.create("/a".as_ref(), text.len() as u64, Caching::Cached).unwrap();
            file.write_at(text, 0).unwrap();
            let file = store.open("/a".as_ref(), Caching::Cached).unwrap();
            let start = scan_start(&Finder::new(delimiter), &*file, offset).unwrap();
            prop_assert!(start <= offset.saturating_sub(delimiter.len() as u64));
            let mut all = occurrences(text, delimiter, 0);
            all.retain(|at| *at as u64 >= start);
            prop_assert_eq!(occurrences(text, delimiter, start as usize), all);
        }
    }
}
