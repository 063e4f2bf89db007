//! Which files of a round are cut, and into which pieces.
//!
//! ```text
//!   round   | short files, in batches |  a  |  b  |     c     |      of 2 workers: c is longer than an eighth of all
//!   tasks   | ....................... |  a  |  b  | c0 | c1 | c2 |
//! ```
//!
//! A file is cut where workers would wait for the one that copies it, or where much would be lost with the task that copies it. Pieces
//! are about as long as each other, so that workers end together. It is a function of lengths, workers and options: a job that is
//! resumed cuts as the first one did.
//!
//! Decision: docs/decisions/cut-files.md.

use std::ops::Range;

/// Pieces for each worker, of a round that is one file.
const OF_WORKER: u64 = 4;

/// A file that is not longer than this is not cut: what a piece costs is little beside the time of so many bytes.
const LONG_LEAST: u64 = 128 << 20;

/// A longer one is always cut: a job that is killed loses no more than pieces.
const LONG_MOST: u64 = 8 << 30;

/// The longest pieces.
const PIECE_MOST: u64 = 1 << 30;

/// Pieces are made shorter, so that each worker has as many, if they are as long then.
const EVEN_LEAST: u64 = 32 << 20;

/// How long the pieces of a round are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceSizes {
    /// A longer file is cut.
    long: u64,
    /// A piece is about as long, at most.
    piece: u64,
    /// Each of so many workers is to have as many pieces.
    workers: u64,
}

impl PieceSizes {
    /// Those of a round of so many bytes, or as they are given.
    pub(super) fn of(round_bytes: u64, workers: usize, given: Option<u64>) -> Self {
        if let Some(bytes) = given {
            return PieceSizes {
                long: bytes,
                piece: bytes,
                workers: 1,
            };
        }
        let workers = workers.max(1) as u64;
        let share = match workers {
            1 => u64::MAX,
            workers => round_bytes / (workers * OF_WORKER),
        };
        PieceSizes {
            long: share.clamp(LONG_LEAST, LONG_MOST),
            piece: share.clamp(LONG_LEAST, PIECE_MOST),
            workers,
        }
    }

    /// The pieces of a file whose pieces begin at multiples of `unit`; one where it is not cut.
    pub(super) fn cut(self, bytes: u64, unit: u64) -> Vec<Range<u64>> {
        if bytes <= self.long {
            return vec![0..bytes];
        }
        let fewest = bytes.div_ceil(self.piece.max(1));
        let even = fewest.next_multiple_of(self.workers);
        let count = match bytes / even >= EVEN_LEAST {
            true => even,
            false => fewest,
        };
        let each = bytes.div_ceil(count).next_multiple_of(unit.max(1));
        let starts = (0..bytes).step_by(usize::try_from(each).unwrap_or(usize::MAX));
        starts.map(|start| start..bytes.min(start + each)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MB: u64 = 1 << 20;
    const GB: u64 = 1 << 30;

    /// How many pieces a file has, and the longest of them.
    fn pieces(round: u64, workers: usize, given: Option<u64>, bytes: u64) -> (usize, u64) {
        let cut = PieceSizes::of(round, workers, given).cut(bytes, 64 << 10);
        let longest = cut.iter().map(|piece| piece.end - piece.start).max();
        (cut.len(), longest.unwrap_or(0))
    }

    #[test]
    fn a_file_is_cut_where_workers_would_wait_or_much_would_be_lost() {
        assert_eq!(pieces(5 * GB, 2, None, 5 * GB), (8, 640 * MB));
        assert_eq!(pieces(5 * GB, 16, None, 5 * GB).0, 48, "as many for each");
        assert_eq!(pieces(200 * MB, 2, None, 200 * MB), (2, 100 * MB));
        assert_eq!(pieces(200 * MB, 16, None, 200 * MB).0, 2, "not too short");
        assert_eq!(pieces(100 * MB, 16, None, 100 * MB).0, 1);
        assert_eq!(pieces(5000 * GB, 2, None, GB).0, 1, "one of many");
        assert_eq!(pieces(5000 * GB, 2, None, 9 * GB), (10, 966_393_856));
        assert_eq!(pieces(5 * GB, 1, None, 5 * GB).0, 1, "nobody waits");
        assert_eq!(pieces(50 * GB, 1, None, 50 * GB), (50, GB));
        assert_eq!(pieces(GB, 8, Some(MB), 5 * MB + 1), (6, 896 << 10));
        assert_eq!(pieces(GB, 8, Some(GB), GB).0, 1);
    }

    proptest! {
        /// Whatever the numbers, pieces follow each other, are all of the file, and begin where they may.
        #[test]
        fn pieces_are_all_of_a_file(
            bytes in 0..40 * GB,
            more in 0..100 * GB,
            workers in 1..200_usize,
            given in proptest::option::of(102_400..4 * GB),
            unit in prop_oneof![Just(64_u64 << 10), Just(8 * MB), 8 * MB..20 * MB],
        ) {
            let cut = PieceSizes::of(bytes + more, workers, given).cut(bytes, unit);
            let mut end = 0;
            for piece in &cut {
                prop_assert_eq!(piece.start, end);
                prop_assert!(piece.end > piece.start || bytes == 0);
                prop_assert!(piece.start.is_multiple_of(unit));
                end = piece.end;
            }
            prop_assert_eq!(end, bytes);
        }
    }
}
