//! User tasks whose code is ours: an operator over the readers, collectors and groups that serve user code.
//!
//! ```text
//!   map      lines of a split ──▶ LineKeys ──▶ Counts ──▶ PairCollector ──▶ runs
//!   reduce   a partition of all runs ──▶ MergedGroups ──key, count──▶ OutputLine ──▶ part-r-NNNNN
//! ```
//!
//! Keys are bytes as they are, so that parts are in the order of bytes.
//!
//! Decision: docs/decisions/short-keys.md.

use std::ops::Range;
use std::sync::Arc;

use gristmill_grep::encoding_of;
use serde::Deserialize;

use super::executor::UserTaskExecutor;
use super::executor_spec::{ExecutorKind, ExecutorSpec};
use super::largest::Largest;
use super::operator::Operator;
use super::spec::{UserAttemptSpec, UserTaskFile, UserTaskKind, UserTaskReport, feed_of};
use super::split::SplitData;
use crate::hadoop::partition::HadoopPartitioner;
use crate::merge::groups::{KeyForm, MergedGroups};
use crate::spill::collect::PairCollector;
use crate::spill::counts::Counts;
use crate::split::lines::LineOptions;
use crate::split::text::{TextSplit, open_lines};
use crate::task::attempt::TaskAttempt;
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::{Error, Result};
use gristmill_base::value::{Token, ValueReader};
use gristmill_storage::Caching;
use gristmill_storage::io::sequential::Sequential;
use gristmill_storage::stores::Stores;

/// Bytes of lines that are mapped at once: in the first-level cache while they are.
const LINES_BYTES: u64 = 16 << 10;

/// Bytes of input, or pairs of a reduce, between two signs of life.
const BYTES_A_BEAT: u64 = 1 << 20;
const GROUPS_A_BEAT: u64 = 1 << 12;

/// The counters' group of files that are not UTF-8, nor anything like it. The job tells them as warnings.
pub const NOT_DECODED: &str = "Files that are not decoded";

/// Runs the tasks of an operator.
#[derive(Debug)]
pub struct NativeExecutor {
    store: Arc<Stores>,
    operator: Operator,
    /// The options of its job, as JSON.
    options: String,
}

/// What a split of text is.
#[derive(Deserialize)]
struct TextRanges {
    pieces: TextSplit,
}

impl NativeExecutor {
    /// Work by `operator`, on files of `store`, for the job with these options: another process makes it again from them.
    pub fn new(store: Arc<Stores>, operator: Operator, options: &str) -> Self {
        NativeExecutor {
            store,
            operator,
            options: options.to_owned(),
        }
    }

    fn map(
        &self,
        spec: &UserAttemptSpec,
        what: &SplitData,
        attempt: &TaskAttempt<'_>,
    ) -> Result<UserTaskReport> {
        let TextRanges { pieces } = what.parse()?;
        let mut plan = spec.collect_plan();
        let partitions = plan.partitions;
        plan.chunk_bytes /= 2; // the counts have the other half
        let mut counts = Counts::new(plan.chunk_bytes)?;
        let mut collector = PairCollector::new(
            self.store.disk().clone(),
            plan,
            spec.run_name(),
            Default::default(),
        )?;
        let alive = |_| attempt.progress(0);
        let part = |key: &[u8]| HadoopPartitioner::Hash.part(key, partitions);
        let mut count = |text: &[u8], key: Range<usize>| {
            if counts.add(text, key, part)? {
                counts.give(&mut collector, part, &alive)?;
            }
            Ok(())
        };
        let mut report = UserTaskReport::default();
        for piece in &pieces {
            let mut lines = open_lines(&self.store, piece, &LineOptions::default())?;
            let (mut told, mut before) = (0, 0);
            let mut begins = piece.offset == 0;
            while let Some(some) = lines.next_lines(LINES_BYTES)? {
                if std::mem::take(&mut begins)
                    && let Some(encoding) = encoding_of(some)
                {
                    let group = report.counters.entry(NOT_DECODED.into()).or_default();
                    group.insert(format!("{} looks like {encoding}", piece.file.path), 1);
                }
                self.operator.keys.each(some, &mut count)?;
                if lines.consumed() - before >= BYTES_A_BEAT {
                    before = lines.consumed();
                    // Of a compressed file nothing is told, but it is asked whether it should stop.
                    let done = if lines.is_decoded() { 0 } else { before };
                    attempt.progress(done - told)?;
                    told = done;
                }
            }
            report.records_in += lines.lines();
            // A compressed file was decoded to its end.
            let done = if lines.is_decoded() {
                piece.bytes
            } else {
                lines.consumed()
            };
            attempt.progress(done - told)?;
            report.bytes_in += done;
        }
        counts.give(&mut collector, part, &alive)?;
        report.bytes_out = counts.key_bytes();
        report.records_out = counts.added();
        (report.combine_in, report.combine_out) = (counts.added(), counts.given());
        (report.runs, _) = collector.finish(&alive)?;
        Ok(report)
    }

    fn reduce(
        &self,
        spec: &UserAttemptSpec,
        partition: u32,
        attempt: &TaskAttempt<'_>,
    ) -> Result<UserTaskReport> {
        let mut groups = MergedGroups::new(
            feed_of(spec, self.store.disk().clone())?,
            KeyForm::default(),
            |_, _| (),
        );
        let name = format!("part-r-{partition:05}");
        let path = spec.output.join(&name);
        self.store.disk().create_directory(&spec.output)?;
        let file = self.store.disk().create(&path, 0, Caching::Direct)?;
        let mut file = Sequential::new(file, spec.buffer_bytes);
        let (mut result, mut line) = (Vec::new(), Vec::new());
        let selection = self.operator.selection;
        let mut largest = Largest::new(selection.most, spec.chunk_bytes);
        let (mut told, mut records) = (0, 0);
        let mut write = |key: &[u8], number: i64| {
            line.clear();
            self.operator.line.write(key, number, &mut line);
            records += 1;
            file.append(&line)
        };
        while groups.next_aggregate(&Aggregate::Sum, spec.chunk_bytes, &mut result)? {
            let number = number_of(&result)?;
            if selection.takes(number) {
                match selection.largest_first {
                    true => largest.push(groups.key(), number)?,
                    false => write(groups.key(), number)?,
                }
            }
            if groups.number().is_multiple_of(GROUPS_A_BEAT) {
                let (_, bytes) = groups.seen();
                attempt.progress(bytes - told)?;
                told = bytes;
            }
        }
        for (key, number) in largest.sorted() {
            write(&key, number)?;
        }
        let whole = file.end()?;
        let (records_in, bytes_in) = groups.seen();
        attempt.progress(bytes_in - told)?;
        Ok(UserTaskReport {
            files: vec![UserTaskFile {
                name: name.into(),
                bytes: whole.bytes,
                records,
                crc: Some(whole.crc),
            }],
            records_in,
            bytes_in,
            records_out: records,
            bytes_out: whole.bytes,
            groups: groups.number(),
            ..UserTaskReport::default()
        })
    }
}

impl UserTaskExecutor for NativeExecutor {
    fn spec(&self) -> Option<ExecutorSpec> {
        Some(ExecutorSpec {
            kind: ExecutorKind::Native,
            definition: self.options.clone().into_bytes(),
        })
    }

    fn run(&self, spec: &UserAttemptSpec, attempt: &TaskAttempt<'_>) -> Result<UserTaskReport> {
        match &spec.work {
            UserTaskKind::Map { what, .. } => self.map(spec, what, attempt),
            UserTaskKind::Reduce { partition, .. } => self.reduce(spec, *partition, attempt),
        }
    }
}

/// The integer that an aggregate gave.
fn number_of(result: &[u8]) -> Result<i64> {
    match ValueReader::new(result).token()? {
        Some(Token::Int(number)) => Ok(number),
        _ => Err(Error::bug(
            "reduce a key",
            "its aggregate is not a 64-bit integer",
        )),
    }
}
