//! The combiner: a memory full of pairs, sorted, goes through a script or an aggregate, partition by partition, before
//! it is spilled.
//!
//! ```text
//!   pairs ──▶ CombineBatch ──full, sorted──▶ partition 0 ──▶ combiner ──▶ collector
//!                                            partition 1 ──▶ combiner ──▶ ...
//! ```
//!
//! As in Hadoop, a combiner's output stays in its partition, and a script is begun anew for each partition of each
//! memory full.

use std::ffi::OsString;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::ScriptAttempt;
use super::definition::StreamingStep;
use super::keys::PairCodec;
use super::reduce::aggregate_group;
use crate::hadoop::script::pipes::{Stdin, Stdout};
use crate::hadoop::script::protocol::{ScriptReader, ScriptWriter};
use crate::hadoop::value::WritableClass;
use crate::spill::collect::{CombineBatch, PairCollector};
use crate::task::user::spec::UserTaskReport;
use gristmill_base::error::Result;

/// A combiner, and what it is yet to combine.
pub(super) struct Combining<'a> {
    attempted: &'a ScriptAttempt<'a>,
    step: &'a StreamingStep,
    batch: CombineBatch,
    bytes: usize,
}

impl<'a> Combining<'a> {
    pub fn new(
        attempted: &'a ScriptAttempt<'a>,
        step: &'a StreamingStep,
        bytes: usize,
    ) -> Result<Self> {
        let mut combining = Combining {
            attempted,
            step,
            batch: CombineBatch::default(),
            bytes,
        };
        combining.batch.reserve(bytes, attempted.spec.partitions)?;
        Ok(combining)
    }

    /// Appends a pair; false where there is no room.
    #[inline]
    pub fn append(&mut self, partition: u32, key: &[u8], value: &[u8]) -> bool {
        self.batch.append(partition, key, b"", value)
    }

    /// Combines what there is, and hands it on.
    pub fn combine(
        &mut self,
        keys: &mut PairCodec,
        collector: &mut PairCollector,
        report: &mut UserTaskReport,
    ) -> Result<()> {
        self.batch.sort();
        let mut start = 0;
        while start < self.batch.len() {
            let (partition, ..) = self.batch.pair(start);
            let mut end = start + 1;
            while end < self.batch.len() && self.batch.pair(end).0 == partition {
                end += 1;
            }
            report.combine_in += (end - start) as u64;
            let combined = match self.step {
                StreamingStep::Script(argv) => {
                    self.by_script(argv, partition, start..end, keys, collector, report)?
                }
                StreamingStep::Aggregate => {
                    self.by_aggregate(partition, start..end, keys, collector)?
                }
                _ => self.unchanged(partition, start..end, collector)?,
            };
            report.combine_out += combined;
            start = end;
        }
        self.batch
            .reserve(self.bytes, self.attempted.spec.partitions)
    }

    fn by_script(
        &self,
        argv: &[OsString],
        partition: u32,
        range: Range<usize>,
        keys: &mut PairCodec,
        collector: &mut PairCollector,
        report: &mut UserTaskReport,
    ) -> Result<u64> {
        let attempted = self.attempted;
        let definition = attempted.definition;
        let streams = &definition.reduce_streams;
        let classes = definition.map_classes();
        let mut feeding_keys = keys.clone();
        let feed = |stdin: &mut Stdin<'_>, fed: &std::sync::atomic::AtomicU64| {
            let writer = ScriptWriter {
                protocol: streams.input,
                separator: streams.input_separator.as_bytes().to_vec(),
                ignore_key: false,
            };
            for number in range {
                let (_, key, value) = self.batch.pair(number);
                let (key, value) = feeding_keys.take(key, value)?;
                writer.write((classes.0, key), (classes.1, value), stdin.buffer());
                fed.fetch_add(1, Ordering::Relaxed);
                if !stdin.gathered() {
                    break;
                }
            }
            Ok(())
        };
        let take = |stdout: &mut Stdout<'_>| {
            let source = |buffer: &mut [u8]| Ok(stdout.read(buffer));
            let separator = streams.output_separator.as_bytes().to_vec();
            let mut reader =
                ScriptReader::new(source, streams.output, separator, streams.key_fields);
            let mut combined = 0;
            while reader.advance()? {
                let (key, value) = reader.pair();
                // Where it is stays where its partition was: so it is in Hadoop.
                let (_, sort_key, stored) = keys.put(key, value);
                collector.append(partition, sort_key, b"", stored, &|_| {
                    attempted.attempt.progress(0)
                })?;
                combined += 1;
            }
            Ok(combined)
        };
        let (combined, ()) = attempted.script("combiner", argv, None, report, feed, take)?;
        Ok(combined)
    }

    fn by_aggregate(
        &self,
        partition: u32,
        range: Range<usize>,
        keys: &mut PairCodec,
        collector: &mut PairCollector,
    ) -> Result<u64> {
        let mut combined = 0;
        let mut start = range.start;
        while start < range.end {
            let key = self.batch.pair(start).1.to_vec();
            let end = (start..range.end)
                .find(|&at| self.batch.pair(at).1 != key)
                .unwrap_or(range.end);
            let mut values = (start..end).map(|at| self.batch.pair(at).2);
            let (plain, _) = keys.take(&key, self.batch.pair(start).2)?;
            let plain = plain.to_vec();
            let mut taken = Vec::new();
            for stored in &mut values {
                taken.push(keys.take(&key, stored)?.1.to_vec());
            }
            let (_, aggregate) =
                aggregate_group(&plain, taken.iter().map(Vec::as_slice), self.attempted)?;
            for value in aggregate.combined() {
                let (_, sort_key, stored) = keys.put(&plain, value.as_bytes());
                collector.append(partition, sort_key, b"", stored, &|_| {
                    self.attempted.attempt.progress(0)
                })?;
                combined += 1;
            }
            start = end;
        }
        debug_assert!(keys.class() == WritableClass::Text);
        Ok(combined)
    }

    fn unchanged(
        &self,
        partition: u32,
        range: Range<usize>,
        collector: &mut PairCollector,
    ) -> Result<u64> {
        let count = range.len() as u64;
        for number in range {
            let (_, key, value) = self.batch.pair(number);
            collector.append(partition, key, b"", value, &|_| {
                self.attempted.attempt.progress(0)
            })?;
        }
        Ok(count)
    }
}
