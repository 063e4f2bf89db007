//! The search for records that a script fails at: by halves, each of which the script is run on.
//!
//! ```text
//!   run on [0, end) fails  ─▶  the bad record is among those that were written to it and not reported as processed
//!      [low ........... high)
//!      [low .. mid)            run on the first half alone: fails ─▶ it is there;  passes ─▶ it is in the other
//!      ...                     until at most so many records are left: these are left out
//!   run on [high, end)         the same again, until it passes
//! ```
//!
//! So Hadoop's framework narrowed its ranges when it still had a tracker of jobs (`FailedRanges`), an attempt of the task
//! for each run. Records are taken to be bad by themselves: a script that fails at the hundredth record whatever it is, or
//! for two records together, is not helped.

use std::ops::Range;

use gristmill_base::error::{Error, Result};

/// What came of a run on some records.
#[derive(Debug)]
pub(crate) enum Trial {
    /// The script came to its end.
    Passed,
    /// It failed.
    Failed {
        /// How many of the records it had reported as processed.
        done: u64,
        /// How many had been written to it: the bad one is among them.
        fed: u64,
        /// With what.
        error: Error,
    },
}

/// Numbers in ascending ranges that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RangeSet(Vec<Range<u64>>);

impl RangeSet {
    /// All but those of a range.
    pub fn all_but(range: &Range<u64>) -> Self {
        let mut ranges = RangeSet::default();
        ranges.add(0..range.start);
        ranges.add(range.end..u64::MAX);
        ranges
    }

    /// Adds a range behind the others.
    pub fn add(&mut self, range: Range<u64>) {
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }

    /// Whether a number is in one of them.
    pub fn has(&self, number: u64) -> bool {
        let behind = self.0.partition_point(|range| range.start <= number);
        let range = behind.checked_sub(1).and_then(|at| self.0.get(at));
        range.is_some_and(|range| range.contains(&number))
    }

    /// Whether all numbers from this one on are in them.
    pub fn has_all_from(&self, number: u64) -> bool {
        let last = self.0.last();
        last.is_some_and(|range| range.end == u64::MAX && range.start <= number)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Finds ranges of at most `most` records each without which a script passes; `run` runs it on the records of a range, and
/// may fail `runs` times.
///
/// # Errors
/// A run could not be made, the script fails without any record, or it failed as often as it may: with its last error.
pub(crate) fn search(
    most: u64,
    runs: u32,
    run: &mut dyn FnMut(Range<u64>) -> Result<Trial>,
) -> Result<RangeSet> {
    let mut left = runs;
    let mut bad = RangeSet::default();
    let mut from = 0;
    loop {
        let Some(mut range) = failing(&mut left, from..u64::MAX, run, &bad)? else {
            return Ok(bad);
        };
        while range.end - range.start > most.max(1) {
            let mid = range.start + (range.end - range.start) / 2;
            range = match failing(&mut left, range.start..mid, run, &bad)? {
                Some(found) => found,
                None => mid..range.end,
            };
        }
        from = range.end;
        bad.add(range);
    }
}

/// Where among the records of `range` the bad one is; nothing if the script passes.
fn failing(
    left: &mut u32,
    range: Range<u64>,
    run: &mut dyn FnMut(Range<u64>) -> Result<Trial>,
    bad: &RangeSet,
) -> Result<Option<Range<u64>>> {
    let (done, fed, error) = match run(range.clone())? {
        Trial::Passed => return Ok(None),
        Trial::Failed { done, fed, error } => (done, fed, error),
    };
    if fed == 0 {
        // Behind the last record: whether the script passes with the others is seen when it is run on them.
        return if range.start > 0 {
            Ok(None)
        } else {
            Err(error)
        };
    }
    *left = left.saturating_sub(1);
    if *left == 0 {
        return Err(error
            .with("ranges of records left out so far", bad.len())
            .final_error()
            .advise(
                "check whether the script fails at all records; the search for bad ones takes longer with a larger \
                 mapreduce.map.maxattempts",
            ));
    }
    let fed = range.end.min(range.start.saturating_add(fed));
    Ok(Some(range.start + done.min(fed - range.start - 1)..fed))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use gristmill_base::error::Kind;

    fn error() -> Error {
        Error::new(Kind::UserCode, "map a split", "it failed").retryable_error()
    }

    /// A script that fails at bad records, has read `ahead` more by then, and reports every so many records.
    fn script(
        bad: &BTreeSet<u64>,
        all: u64,
        range: &Range<u64>,
        ahead: u64,
        reports: Option<u64>,
    ) -> Trial {
        let end = range.end.min(all);
        match bad.range(range.start..end.max(range.start)).next() {
            None => Trial::Passed,
            Some(first) => {
                let before = first - range.start;
                Trial::Failed {
                    done: reports.map_or(0, |every| before / every * every),
                    fed: (before + 1 + ahead).min(end - range.start),
                    error: error(),
                }
            }
        }
    }

    proptest! {
        /// Against the naive model, which tries every record alone: what is left out holds all bad records, and each range
        /// is around one of them and no longer than was asked for.
        #[test]
        fn what_is_left_out_is_around_bad_records(
            bad in proptest::collection::btree_set(0_u64..300, 0..12), all in 0_u64..300, most in 1_u64..20,
            ahead in 0_u64..400, reports in proptest::option::of(1_u64..9),
        ) {
            let naive: BTreeSet<u64> = (0..all).filter(|record| bad.contains(record)).collect();
            let mut runs = 0;
            let found = search(most, 10_000, &mut |range| {
                runs += 1;
                Ok(script(&bad, all, &range, ahead, reports))
            }).unwrap();
            let out: BTreeSet<u64> = (0..all).filter(|record| found.has(*record)).collect();
            prop_assert!(naive.is_subset(&out));
            prop_assert!(out.len() as u64 <= most * naive.len() as u64);
            if most == 1 {
                prop_assert_eq!(&naive, &out);
            }
            // A run for each bad record and the end, and the halves of what was written.
            prop_assert!(runs <= (naive.len() + 1) * (1 + 300_usize.ilog2() as usize + 1), "{} runs", runs);
        }

        #[test]
        fn ranges_are_sets(cuts in proptest::collection::btree_set(0_u64..40, 0..12)) {
            let (mut ranges, mut naive) = (RangeSet::default(), BTreeSet::new());
            let cuts: Vec<_> = cuts.into_iter().collect();
            for pair in cuts.chunks_exact(2) {
                ranges.add(pair[0]..pair[1]);
                naive.extend(pair[0]..pair[1]);
            }
            for number in 0..50 {
                prop_assert_eq!(ranges.has(number), naive.contains(&number));
                prop_assert_eq!(RangeSet::all_but(&(7..20)).has(number), !(7..20).contains(&number));
            }
        }
    }

    #[test]
    fn reports_of_the_script_save_runs() {
        let bad = BTreeSet::from([200]);
        let runs = |reports| {
            let mut runs = 0;
            let found = search(1, 1000, &mut |range| {
                runs += 1;
                Ok(script(&bad, 1000, &range, 1000, reports))
            });
            let mut expected = RangeSet::default();
            expected.add(200..201);
            assert_eq!(found.unwrap(), expected);
            runs
        };
        assert_eq!((runs(None), runs(Some(10))), (12, 11));
    }

    #[test]
    fn a_script_that_always_fails_ends_the_search() {
        let mut runs = 0;
        let ended = search(1, 50, &mut |range| {
            runs += 1;
            Ok(Trial::Failed {
                done: 0,
                fed: (1000 - range.start).min(1),
                error: error(),
            })
        });
        let last = ended.unwrap_err();
        assert_eq!((runs, last.retryable()), (50, false));
        assert!(last.to_string().contains("left out so far 1"), "{last}");
        let without_input = search(1, 50, &mut |_| {
            Ok(Trial::Failed {
                done: 0,
                fed: 0,
                error: error(),
            })
        });
        assert!(without_input.is_err());
    }
}
