//! A reduce task: the pairs of a partition, merged, through the reducer, to a part of the output.
//!
//! A script whose partition is empty is run without input, and what it writes is dropped: so it is in Hadoop.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};

use super::definition::StreamingStep;
use super::keys::PairCodec;
use super::output::PartWriter;
use super::skip::Skipper;
use super::{ScriptAttempt, StreamingExecutor};
use crate::hadoop::aggregate::{GroupAggregate, split};
use crate::hadoop::script::pipes::{Stdin, Stdout};
use crate::hadoop::script::protocol::{Protocol, ScriptReader, ScriptWriter};
use crate::hadoop::select::FieldSelection;
use crate::hadoop::text;
use crate::merge::feed::{FeedRun, MergedPairs, Partition};
use crate::spill::collect::partition_bytes;
use crate::task::runs::MergeRun;
use crate::task::user::spec::UserTaskReport;
use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Kind, Result};

/// Groups of equal keys, counted. Whole keys tell groups apart, also where fields order them: the comparators of
/// Hadoop's old interface are asked for whole keys there.
#[derive(Default)]
struct GroupCounter {
    /// The present group's key.
    key: Vec<u8>,
    count: u64,
}

impl GroupCounter {
    /// Whether the next key begins a group.
    #[inline]
    fn begins(&mut self, key: &[u8]) -> bool {
        if self.count > 0 && key == self.key {
            return false;
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.count += 1;
        true
    }
}

/// Pairs of a partition, one after another.
struct PartitionPairs {
    feed: MergedPairs,
    keys: PairCodec,
    groups: GroupCounter,
}

impl PartitionPairs {
    /// Goes on to the next pair; whether it begins a group, or `None` at the end.
    #[inline]
    fn advance(&mut self) -> Result<Option<bool>> {
        if !self.feed.advance()? {
            return Ok(None);
        }
        let (key, value) = self.feed.pair();
        let (key, _) = self.keys.take(key, value)?;
        Ok(Some(self.groups.begins(key)))
    }

    /// Goes on to the next pair that is not left out.
    fn advance_past(&mut self, skipper: &mut Option<Skipper<'_>>) -> Result<Option<bool>> {
        let Some(skipper) = skipper else {
            return self.advance();
        };
        while let Some(is_new) = self.advance()? {
            if is_new && skipper.is_over() {
                return Ok(None);
            }
            let (key, value) = self.pair()?;
            if !skipper.leaves_out_pair(is_new, key, value)? {
                return Ok(Some(is_new));
            }
        }
        Ok(None)
    }

    #[inline]
    fn pair(&mut self) -> Result<(&[u8], &[u8])> {
        let (key, value) = self.feed.pair();
        self.keys.take(key, value)
    }
}

pub(super) fn run(
    work: &StreamingExecutor,
    attempted: &ScriptAttempt<'_>,
    runs: &[MergeRun],
    source_bytes: usize,
) -> Result<UserTaskReport> {
    let definition = attempted.definition;
    let mut report = UserTaskReport::default();
    let mut output = PartWriter::new(attempted, definition.reduce_classes());
    match &definition.reduce {
        StreamingStep::Script(argv) if attempted.left_out.is_none() => {
            let runs = fed_runs(runs);
            let (number, prefix_bytes) = partition_of(attempted);
            let fed = Fed {
                partition: Partition::open(&**attempted.store.disk(), &runs, number, prefix_bytes)?,
                source_bytes,
                keys: PairCodec::new(definition, attempted.spec.partitions, &work.cuts)?,
            };
            by_script(attempted, argv, fed, &mut output, &mut report)?;
        }
        step => {
            let mut pairs = open(work, attempted, runs, source_bytes)?;
            match step {
                StreamingStep::Script(argv) => {
                    but_for_some(attempted, argv, &mut pairs, Some(&mut output), &mut report)?;
                }
                StreamingStep::Aggregate => by_aggregate(attempted, &mut pairs, &mut output)?,
                step => one_by_one(attempted, step, &mut pairs, &mut output)?,
            }
            report.groups = pairs.groups.count - report.skipped;
            (report.records_in, report.bytes_in) = pairs.feed.seen();
            report.records_in -= report.skipped_records;
        }
    }
    report.records_out = output.records();
    if let Some(file) = output.finish()? {
        report.bytes_out = file.bytes;
        report.files.push(file);
    }
    Ok(report)
}

/// A run of the script that does not count.
pub(super) fn trial(
    work: &StreamingExecutor,
    attempted: &ScriptAttempt<'_>,
    argv: &[OsString],
    runs: &[MergeRun],
    source_bytes: usize,
) -> Result<()> {
    let mut pairs = open(work, attempted, runs, source_bytes)?;
    let mut report = UserTaskReport::default();
    but_for_some(attempted, argv, &mut pairs, None, &mut report)
}

fn fed_runs(runs: &[MergeRun]) -> Vec<FeedRun> {
    let runs = runs.iter().map(|run| FeedRun {
        path: run.path.clone(),
        longest: run.longest,
    });
    runs.collect()
}

/// The number of the partition, and bytes of it before each key.
fn partition_of(attempted: &ScriptAttempt<'_>) -> (usize, usize) {
    let partitions = attempted.spec.partitions;
    (attempted.number as usize, partition_bytes(partitions))
}

fn open(
    work: &StreamingExecutor,
    attempted: &ScriptAttempt<'_>,
    runs: &[MergeRun],
    source_bytes: usize,
) -> Result<PartitionPairs> {
    let (number, prefix_bytes) = partition_of(attempted);
    let feed = MergedPairs::begin(
        attempted.store.disk().clone(),
        fed_runs(runs),
        number,
        prefix_bytes,
        source_bytes,
        Budget::new(u64::MAX), // the task's memory is reserved as a whole
    )?;
    Ok(PartitionPairs {
        feed,
        keys: PairCodec::new(attempted.definition, attempted.spec.partitions, &work.cuts)?,
        groups: GroupCounter::default(),
    })
}

fn one_by_one(
    attempted: &ScriptAttempt<'_>,
    step: &StreamingStep,
    pairs: &mut PartitionPairs,
    output: &mut PartWriter,
) -> Result<()> {
    let selection = match step {
        StreamingStep::Select(select) => Some((
            FieldSelection::parse(&select.spec, select.separator.as_bytes())?,
            select,
        )),
        _ => None,
    };
    let mut record = Vec::new();
    while pairs.advance()?.is_some() {
        let (key, value) = pairs.pair()?;
        match &selection {
            None if *step == StreamingStep::Inverse => output.write(Some(value), Some(key))?,
            None => output.write(Some(key), Some(value))?,
            Some((selection, select)) => {
                record.clear();
                let (key, value) = (text::decoded(key), text::decoded(value));
                for part in [&*key, &*select.separator, &*value] {
                    record.extend_from_slice(part.as_bytes());
                }
                let (key, value) = selection.select(&record, false);
                output.write(key.as_deref(), value.as_deref())?;
            }
        }
        note(attempted, pairs)?;
    }
    Ok(())
}

fn by_aggregate(
    attempted: &ScriptAttempt<'_>,
    pairs: &mut PartitionPairs,
    output: &mut PartWriter,
) -> Result<()> {
    let mut present: Option<(Vec<u8>, GroupAggregate)> = None;
    while let Some(is_new) = pairs.advance()? {
        let (key, value) = pairs.pair()?;
        if is_new {
            if let Some((name, aggregate)) = present.take() {
                output.write(Some(&name), Some(aggregate.report().as_bytes()))?;
            }
            let (name, aggregate) = aggregate_group(key, [value].into_iter(), attempted)?;
            present = Some((name, aggregate));
        } else if let Some((_, aggregate)) = &mut present {
            aggregate
                .add(value)
                .map_err(|wrong| not_aggregated(key, wrong.0))?;
        }
        note(attempted, pairs)?;
    }
    match present {
        Some((name, aggregate)) => output.write(Some(&name), Some(aggregate.report().as_bytes())),
        None => Ok(()),
    }
}

/// What a key's aggregate makes of some values; and what it is of.
pub(super) fn aggregate_group<'a>(
    key: &[u8],
    values: impl Iterator<Item = &'a [u8]>,
    attempted: &ScriptAttempt<'_>,
) -> Result<(Vec<u8>, GroupAggregate)> {
    let most = attempted.definition.most_unique;
    let named =
        split(key).and_then(|(name, rest)| Some((GroupAggregate::by_name(name, most)?, rest)));
    let Some((mut aggregate, rest)) = named else {
        return Err(not_aggregated(
            key,
            "it does not begin with the name of an aggregate and a colon".to_owned(),
        ));
    };
    for value in values {
        aggregate
            .add(value)
            .map_err(|wrong| not_aggregated(key, wrong.0))?;
    }
    Ok((rest.to_vec(), aggregate))
}

fn not_aggregated(key: &[u8], what: String) -> Error {
    let shown: String = String::from_utf8_lossy(key).chars().take(200).collect();
    Error::new(Kind::UserCode, "aggregate what the mapper wrote", what)
        .with("key", format!("{shown:?}"))
        .advise("let the mapper write lines such as LongValueSum:name, a TAB and a number; the names are LongValueSum, LongValueMax, LongValueMin, DoubleValueSum, StringValueMax, StringValueMin, UniqValueCount and ValueHistogram")
}

/// Notes progress every now and then, and whether to stop.
fn note(attempted: &ScriptAttempt<'_>, pairs: &PartitionPairs) -> Result<()> {
    let (records, _) = pairs.feed.seen();
    if records.is_multiple_of(4096) {
        attempted.attempt.progress(0)
    } else {
        Ok(())
    }
}

/// What a script is fed with.
struct Fed {
    partition: Partition,
    source_bytes: usize,
    keys: PairCodec,
}

impl Fed {
    /// Merges the pairs straight into the script's input; what it does not want to read is counted all the same, unless it
    /// failed. Gives pairs, their bytes and groups.
    fn feed(
        mut self,
        attempted: &ScriptAttempt<'_>,
        stdin: &mut Stdin<'_>,
        fed: &AtomicU64,
    ) -> Result<(u64, u64, u64)> {
        let streams = &attempted.definition.reduce_streams;
        let classes = attempted.definition.map_classes();
        let writer = ScriptWriter {
            protocol: streams.input,
            separator: streams.input_separator.as_bytes().to_vec(),
            ignore_key: false,
        };
        let (mut groups, mut open) = (GroupCounter::default(), true);
        let (mut records, mut bytes, mut noted) = (0_u64, 0_u64, 0_u64);
        let budget = Budget::new(u64::MAX); // the task's memory is reserved as a whole
        let all = self
            .partition
            .each(self.source_bytes, &budget, |key, value| {
                records += 1;
                bytes += (key.len() + value.len()) as u64;
                if records.is_multiple_of(4096) {
                    attempted.attempt.progress(bytes - noted)?;
                    noted = bytes;
                }
                let (key, value) = self.keys.take(key, value)?;
                groups.begins(key);
                if open {
                    writer.write((classes.0, key), (classes.1, value), stdin.buffer());
                    open = stdin.gathered();
                    fed.store(records, Ordering::Relaxed);
                } else {
                    stdin.check_wanted()?;
                }
                Ok(())
            })?;
        attempted.attempt.progress(all - noted)?;
        Ok((records, all, groups.count))
    }
}

fn by_script(
    attempted: &ScriptAttempt<'_>,
    argv: &[OsString],
    pairs: Fed,
    output: &mut PartWriter,
    report: &mut UserTaskReport,
) -> Result<()> {
    let is_any = pairs.partition.records()? > 0;
    let feed = |stdin: &mut Stdin<'_>, fed: &AtomicU64| pairs.feed(attempted, stdin, fed);
    let take = |stdout: &mut Stdout<'_>| take(attempted, stdout, is_any.then_some(output));
    let ((), counted) = attempted.script("reducer", argv, None, report, feed, take)?;
    (report.records_in, report.bytes_in, report.groups) = counted;
    Ok(())
}

/// The same in skip mode, pair by pair: bad groups are left out, or looked for.
fn but_for_some(
    attempted: &ScriptAttempt<'_>,
    argv: &[OsString],
    pairs: &mut PartitionPairs,
    output: Option<&mut PartWriter>,
    report: &mut UserTaskReport,
) -> Result<()> {
    let streams = &attempted.definition.reduce_streams;
    let classes = attempted.definition.map_classes();
    let mut skipper = attempted.skipper(classes)?;
    let is_any = pairs.advance_past(&mut skipper)?.is_some();
    let feed = |stdin: &mut Stdin<'_>, fed: &AtomicU64| {
        if !is_any {
            return Ok(skipper);
        }
        let writer = ScriptWriter {
            protocol: streams.input,
            separator: streams.input_separator.as_bytes().to_vec(),
            ignore_key: false,
        };
        let (mut open, mut noted, mut is_new) = (true, 0, true);
        loop {
            if open {
                if let Some(seen) = attempted.seen.filter(|_| is_new) {
                    seen.group();
                }
                let (key, value) = pairs.pair()?;
                writer.write((classes.0, key), (classes.1, value), stdin.buffer());
                fed.fetch_add(1, Ordering::Relaxed);
                open = stdin.gathered();
            } else {
                stdin.check_wanted()?;
            }
            let (records, bytes) = pairs.feed.seen();
            if records.is_multiple_of(4096) {
                attempted.attempt.progress(bytes - noted)?;
                noted = bytes;
            }
            match pairs.advance_past(&mut skipper)? {
                Some(next_is_new) => is_new = next_is_new,
                None => return Ok(skipper),
            }
        }
    };
    let take = |stdout: &mut Stdout<'_>| take(attempted, stdout, output.filter(|_| is_any));
    let ((), skipper) = attempted.script("reducer", argv, None, report, feed, take)?;
    match skipper {
        Some(skipper) => attempted.left_out(skipper, report),
        None => Ok(()),
    }
}

/// Writes what a script gives, whole blocks where they can stay as they are; without an output it is dropped.
fn take(
    attempted: &ScriptAttempt<'_>,
    stdout: &mut Stdout<'_>,
    mut output: Option<&mut PartWriter>,
) -> Result<()> {
    let streams = &attempted.definition.reduce_streams;
    let source = |buffer: &mut [u8]| Ok(stdout.read(buffer));
    let separator = streams.output_separator.as_bytes().to_vec();
    let mut reader = ScriptReader::new(source, streams.output, separator, streams.key_fields);
    let has_value = streams.output != Protocol::KeyOnlyText;
    loop {
        let block = reader.many()?;
        if !block.is_empty() {
            if let Some(output) = &mut output {
                output.write_block(block)?;
            }
            continue;
        }
        if !reader.advance()? {
            return Ok(());
        }
        if let Some(output) = &mut output {
            let (key, value) = reader.pair();
            output.write(Some(key), has_value.then_some(value))?;
        }
    }
}
