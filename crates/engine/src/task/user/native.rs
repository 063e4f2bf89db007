//! User tasks whose code is ours: a mapper of a few lines over the readers, collectors and groups that serve user code.
//!
//! ```text
//!   map      lines of a split ──▶ Mapper::map ──keys──▶ Counts ──▶ Collector ──▶ runs
//!   reduce   a partition of all runs ──▶ Groups ──key, count──▶ Mapper::write ──▶ part-r-NNNNN
//! ```
//!
//! Keys are bytes as they are, so that parts are in the order of bytes.
//!
//! Decision: docs/decisions/short-keys.md.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;

use super::executor::UserTaskExecutor;
use super::executor_spec::{ExecutorKind, ExecutorSpec};
use super::largest::Largest;
use super::spec::{UserAttemptSpec, UserTaskFile, UserTaskKind, UserTaskReport, feed_of};
use super::split::SplitData;
use crate::aggregate::Aggregate;
use crate::error::{Error, Result};
use crate::merge::groups::{Form, Groups};
use crate::spill::collect::Collector;
use crate::spill::counts::Counts;
use crate::split::lines::LineOptions;
use crate::split::text::{TextSplit, open_lines};
use crate::storage::Caching;
use crate::storage::sequential::Sequential;
use crate::storage::stores::Stores;
use crate::task::attempt::Attempt;
use crate::value::{Reader, Token};

/// Bytes of lines that are mapped at once: in the first-level cache while they are.
const LINES_BYTES: u64 = 16 << 10;

/// Bytes of input, or pairs of a reduce, between two signs of life.
const BYTES_A_BEAT: u64 = 1 << 20;
const GROUPS_A_BEAT: u64 = 1 << 12;

/// What a native job counts.
pub trait Mapper: Send + Sync + Debug {
    /// Gives the keys of whole lines, of which LF ends each but perhaps the last: a text and where in it a key lies.
    fn map(
        &self,
        lines: &[u8],
        count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
    ) -> Result<()>;

    /// The partition of a key.
    fn partition(&self, key: &[u8], partitions: u32) -> u32;

    /// Appends a key with its count to an output file, as a line.
    fn write(&self, key: &[u8], number: i64, out: &mut Vec<u8>);

    /// Which keys are written, and in which order.
    fn selection(&self) -> Selection {
        Selection::default()
    }
}

/// Which keys of a part are written, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    /// Only keys whose count is this or more.
    pub least: Option<i64>,
    /// Largest counts first; else in the order of bytes.
    pub largest_first: bool,
    /// So many at most, where the largest are first.
    pub most: Option<usize>,
}

/// Runs the tasks of a mapper.
#[derive(Debug)]
pub struct NativeExecutor<M> {
    store: Arc<Stores>,
    mapper: M,
    /// The options of its job, as JSON.
    options: String,
}

/// What a split of text is.
#[derive(Deserialize)]
struct Ranges {
    pieces: TextSplit,
}

impl<M: Mapper> NativeExecutor<M> {
    /// Work by `mapper`, on files of `store`.
    pub fn new(store: Arc<Stores>, mapper: M) -> Self {
        NativeExecutor {
            store,
            mapper,
            options: String::new(),
        }
    }

    /// The same for the job with these options: another process makes it again from them.
    #[must_use]
    pub fn of_job(self, options: &str) -> Self {
        NativeExecutor {
            options: options.to_owned(),
            ..self
        }
    }

    fn map(
        &self,
        spec: &UserAttemptSpec,
        what: &SplitData,
        attempt: &Attempt<'_>,
    ) -> Result<UserTaskReport> {
        let Ranges { pieces } = what.parse()?;
        let mut plan = spec.collect_plan();
        let partitions = plan.partitions;
        plan.chunk_bytes /= 2; // the counts have the other half
        let mut counts = Counts::new(plan.chunk_bytes)?;
        let mut collector = Collector::new(
            self.store.disk().clone(),
            plan,
            spec.run_name(),
            Default::default(),
        )?;
        let alive = |_| attempt.progress(0);
        let part = |key: &[u8]| self.mapper.partition(key, partitions);
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
            while let Some(some) = lines.next_lines(LINES_BYTES)? {
                self.mapper.map(some, &mut count)?;
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
        attempt: &Attempt<'_>,
    ) -> Result<UserTaskReport> {
        let mut groups = Groups::new(
            feed_of(spec, self.store.disk().clone())?,
            Form::default(),
            |_, _| (),
        );
        let name = format!("part-r-{partition:05}");
        let path = spec.output.join(&name);
        self.store.disk().create_directory(&spec.output)?;
        let file = self.store.disk().create(&path, 0, Caching::Direct)?;
        let mut file = Sequential::new(file, spec.buffer_bytes);
        let (mut result, mut line) = (Vec::new(), Vec::new());
        let Selection {
            least,
            largest_first,
            most,
        } = self.mapper.selection();
        let mut largest = Largest::new(most, spec.chunk_bytes);
        let (mut told, mut records) = (0, 0);
        let mut write = |key: &[u8], number: i64| {
            line.clear();
            self.mapper.write(key, number, &mut line);
            records += 1;
            file.append(&line)
        };
        while groups.next_aggregate(&Aggregate::Sum, spec.chunk_bytes, &mut result)? {
            let number = number_of(&result)?;
            match least {
                Some(least) if number < least => {}
                _ if largest_first => largest.push(groups.key(), number)?,
                _ => write(groups.key(), number)?,
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

impl<M: Mapper> UserTaskExecutor for NativeExecutor<M> {
    fn spec(&self) -> Option<ExecutorSpec> {
        Some(ExecutorSpec {
            kind: ExecutorKind::Native,
            definition: self.options.clone().into_bytes(),
        })
    }

    fn run(&self, spec: &UserAttemptSpec, attempt: &Attempt<'_>) -> Result<UserTaskReport> {
        match &spec.work {
            UserTaskKind::Map { what, .. } => self.map(spec, what, attempt),
            UserTaskKind::Reduce { partition, .. } => self.reduce(spec, *partition, attempt),
        }
    }
}

/// The integer that an aggregate gave.
fn number_of(result: &[u8]) -> Result<i64> {
    match Reader::new(result).token()? {
        Some(Token::Int(number)) => Ok(number),
        _ => Err(Error::bug(
            "reduce a key",
            "its aggregate is not a 64-bit integer",
        )),
    }
}
