//! Records that are left out on their way to a script: counted, and kept in a sequence file as they were.

use std::sync::atomic::{AtomicU64, Ordering};

use super::search::RangeSet;
use crate::hadoop::script::input::{Pair, RecordReader};
use crate::hadoop::script::reporter::Reporter;
use crate::task::user::streaming::output::PartWriter;
use gristmill_base::error::Result;

/// The group of the counters in which a script says how far it is, and their names for a mapper and a reducer.
const PROCESSED: (&str, &str, &str) = (
    "SkippingTaskCounters",
    "MapProcessedRecords",
    "ReduceProcessedGroups",
);

/// What is known of a run that may fail: in records of a map, in groups of a reduce.
#[derive(Debug, Default)]
pub(in crate::task::user::streaming) struct ScriptProgress {
    /// Written to the script.
    pub fed: AtomicU64,
    /// Processed, as the script says.
    pub done: AtomicU64,
}

impl ScriptProgress {
    /// A group's first pair is about to be written to a reducer.
    pub fn group(&self) {
        self.fed.fetch_add(1, Ordering::Relaxed);
    }

    /// What a run came to, of which so many records were written.
    pub fn ended(&self, is_map: bool, records: u64, said: &Reporter) {
        let (group, of_map, of_reduce) = PROCESSED;
        let name = if is_map { of_map } else { of_reduce };
        let done = said.counters.get(group).and_then(|names| names.get(name));
        let done = done.map_or(0, |done| u64::try_from(*done).unwrap_or(0));
        self.done.store(done, Ordering::Relaxed);
        if is_map {
            self.fed.store(records, Ordering::Relaxed);
        }
    }
}

/// Leaves records out, or groups.
#[derive(Debug)]
pub(in crate::task::user::streaming) struct Skipper<'a> {
    ranges: &'a RangeSet,
    /// Where they are kept.
    kept: Option<PartWriter>,
    /// The number of the next record, or of the next group.
    next: u64,
    /// How many were left out.
    pub skipped: u64,
    /// Of groups: their pairs.
    pub pairs: u64,
}

impl<'a> Skipper<'a> {
    pub fn new(ranges: &'a RangeSet, kept: Option<PartWriter>) -> Self {
        Skipper {
            ranges,
            kept,
            next: 0,
            skipped: 0,
            pairs: 0,
        }
    }

    /// Whether there is nothing behind what was read that is not left out.
    pub fn is_over(&self) -> bool {
        self.ranges.has_all_from(self.next)
    }

    /// Whether the next record is left out.
    fn leaves_out(&mut self) -> bool {
        let out = self.ranges.has(self.next);
        self.next += 1;
        self.skipped += u64::from(out);
        out
    }

    fn keep(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pairs += 1;
        match &mut self.kept {
            Some(kept) => kept.write(Some(key), Some(value)),
            None => Ok(()),
        }
    }

    /// Whether a pair of a reduce is left out; it may be the first of its group.
    pub fn leaves_out_pair(&mut self, is_first: bool, key: &[u8], value: &[u8]) -> Result<bool> {
        let out = if is_first {
            self.leaves_out()
        } else {
            self.next
                .checked_sub(1)
                .is_some_and(|group| self.ranges.has(group))
        };
        if out {
            self.keep(key, value)?;
        }
        Ok(out)
    }

    /// The file of what was left out.
    pub fn into_kept(self) -> Option<PartWriter> {
        self.kept
    }
}

/// The records of a split but for some.
pub(in crate::task::user::streaming) struct Fewer<'a, 'r> {
    records: Box<dyn RecordReader + 'a>,
    skipper: &'a mut Skipper<'r>,
}

impl<'a, 'r> Fewer<'a, 'r> {
    pub fn new(records: Box<dyn RecordReader + 'a>, skipper: &'a mut Skipper<'r>) -> Self {
        Fewer { records, skipper }
    }
}

impl RecordReader for Fewer<'_, '_> {
    fn advance(&mut self) -> Result<bool> {
        loop {
            if self.skipper.is_over() || !self.records.advance()? {
                return Ok(false);
            }
            if !self.skipper.leaves_out() {
                return Ok(true);
            }
            let ((_, key), (_, value)) = self.records.pair();
            self.skipper.keep(key, value)?;
        }
    }

    fn pair(&self) -> Pair<'_> {
        self.records.pair()
    }

    fn offset(&self) -> u64 {
        self.records.offset()
    }
}
