//! What the spill tasks of a sort read: shares of files, whole compressed files, and streams between them, in input order.
//!
//! ```text
//!   a.txt      b.txt.gz    -           c.txt
//!   [··][··]   [······]    stream      [··][··][··]
//! ```

use std::ops::Range;

use super::input::SortInput;
use super::plan::{Sort, spill_tasks};
use crate::jobs::steps::RunningJob;
use crate::jobs::tables::{InputTable, Starts};
use crate::plan::disk::RunDisk;
use gristmill_base::error::Result;
use gristmill_base::record::shape::Shape;
use gristmill_storage::input::InputFile;
use gristmill_tasks::split::records::{at_records, moved};
use gristmill_tasks::split::{Split, bytes_of, splits, stride};
use gristmill_tasks::task::SpillInput;

impl<S: Shape> Sort<'_, S> {
    /// What the tasks read.
    pub(super) fn inputs(
        &self,
        job: &RunningJob<'_>,
        input: &SortInput,
    ) -> Result<Vec<SpillInput>> {
        self.shares(job, input, true)
    }

    /// About what the tasks read: where rows begin in tables, nobody has looked yet.
    pub(super) fn about(&self, job: &RunningJob<'_>, input: &SortInput) -> Result<Vec<SpillInput>> {
        self.shares(job, input, self.table.is_none())
    }

    /// The disk that their runs need, as far as lengths of files tell.
    pub(super) fn disk(
        &self,
        job: &RunningJob<'_>,
        input: &SortInput,
        inputs: &[SpillInput],
    ) -> RunDisk {
        let share = self.grown as f64 / input.bytes().max(1) as f64;
        let run = |input_bytes: u64| (input_bytes as f64 * share) as u64;
        let runs = inputs.iter().map(|read| {
            run(match read {
                SpillInput::Ranges(split) => bytes_of(split),
                SpillInput::Decoded { file, .. } => {
                    input.files.get(*file).map_or(0, |file| file.stat.bytes)
                }
                SpillInput::Stream(_) => 0,
            })
        });
        let runs: Vec<u64> = runs.collect();
        let numbers = (self.grown, runs.len() as u64, self.merges(input.bytes()));
        let rounds = job.rounds(&self.memory_layout, numbers);
        let buckets = self.buckets as u64;
        RunDisk::of(&self.memory_layout, runs, buckets, job.workers).in_rounds(rounds)
    }

    fn shares(
        &self,
        job: &RunningJob<'_>,
        input: &SortInput,
        exactly: bool,
    ) -> Result<Vec<SpillInput>> {
        // Rows of a stream are told by one reader alone.
        let readers = self.table.as_ref().map_or(job.workers, |_| 1);
        let mut streams = input.streams.iter().enumerate().peekable();
        let (mut inputs, mut first) = (Vec::new(), 0);
        for number in 0..=input.files.len() {
            let codec = input.codecs.get(number).copied().flatten();
            let mut here = Vec::new();
            while let Some((stream, _)) = streams.next_if(|(_, stream)| stream.place == number) {
                here.extend((0..readers).map(|_| SpillInput::Stream(stream)));
            }
            let is_last = number == input.files.len();
            if !here.is_empty() || codec.is_some() || is_last {
                inputs.extend(self.between(job, input, first..number, exactly)?);
                inputs.append(&mut here);
                first = number;
            }
            if let Some(codec) = codec {
                let file = number;
                inputs.push(SpillInput::Decoded { file, codec });
                first = number + 1;
            }
        }
        Ok(inputs)
    }

    /// Shares of the files with these numbers.
    fn between(
        &self,
        job: &RunningJob<'_>,
        input: &SortInput,
        numbers: Range<usize>,
        exactly: bool,
    ) -> Result<Vec<SpillInput>> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let record_bytes = self.shape.kind().record_bytes().unwrap_or(1) as u64;
        let usable = self.share_bytes;
        let files = input.files.iter().enumerate();
        let sizes: Vec<u64> = files
            .map(|(number, file)| match numbers.contains(&number) {
                true => file.stat.bytes,
                false => 0,
            })
            .collect();
        let bytes: u64 = sizes.iter().sum();
        let tasks = spill_tasks(bytes, usable, job.workers).max(1);
        let target = bytes.div_ceil(tasks).clamp(usable.min(1 << 20), usable);
        let cut = splits(&sizes, target, stride(record_bytes));
        let cut: Vec<Split> = match (&self.table, &self.keys) {
            _ if !exactly => cut,
            (Some(table), _) => at_rows(table, job, &input.files, cut)?,
            (None, Some(keys)) => at_records(keys.lines(), job.store(), &input.files, cut)?,
            (None, None) => at_records(self.shape, job.store(), &input.files, cut)?,
        };
        Ok(cut.into_iter().map(SpillInput::Ranges).collect())
    }
}

/// Moves the borders of splits to where rows begin, which takes a look at all bytes before them.
fn at_rows(
    table: &InputTable,
    job: &RunningJob<'_>,
    files: &[InputFile],
    splits: Vec<Split>,
) -> Result<Vec<Split>> {
    let mut starts = Starts::default();
    moved(splits, |piece| {
        let file = (piece.file, &files[piece.file]);
        let start = starts.of(job, file, piece.offset, &table.keys)?;
        let end = starts.of(job, file, piece.offset + piece.bytes, &table.keys)?;
        Ok((start, end))
    })
}
