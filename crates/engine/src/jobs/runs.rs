//! Sorting by runs: what does not fit in memory is spilled as sorted runs, and merged.
//!
//! ```text
//!   [sample ──borders──▶] spill ──runs──▶ [merge runs, in rounds] ──▶ merge ──proof──▶ commit
//! ```
//!
//! Which stages there are follows from how many runs come out and how many can be merged at once.

use std::sync::{Arc, Mutex};

use super::shuffle::{MadeRun, Shuffle, Slice, last_tasks};
use super::steps::RunningJob;
use crate::driver::{Next, Reports, stage};
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::order::borders::Border;
use gristmill_base::record::shape::Shape;
use gristmill_base::record::table_keys::TableKeys;
use gristmill_base::sync::lock;
use gristmill_tasks::merge::output::MergeProof;
use gristmill_tasks::spill::{LeftOut, SpilledRun};
use gristmill_tasks::task::{MergeSpec, MergeTarget, SpillInput, SpillSpec};

/// What was read, spilled and merged.
#[derive(Debug, Default)]
pub(super) struct RunOutcome {
    /// Records read.
    pub(super) records_read: u64,
    /// Bytes of records read.
    pub(super) bytes_read: u64,
    /// The sum of their CRCs.
    pub(super) checksum_read: u128,
    /// What was read and is not to be written.
    pub(super) left_out: LeftOut,
    /// Records in the runs of the first generation.
    pub(super) first_records: u64,
    /// Their bytes.
    pub(super) first_bytes: u64,
    /// Bytes that are stored of them on disk.
    first_disk_bytes: u64,
    /// Those runs.
    pub(super) runs: u64,
    /// Passes that merged runs to runs.
    pub(super) passes: u64,
    /// Records written to runs, in all.
    pub(super) spilled_records: u64,
    /// Bytes of those runs that are not in memory.
    pub(super) disk_bytes: u64,
    /// Whether output may have been written.
    pub(super) merging: bool,
    /// What each merge task wrote, with what it was to write.
    pub(super) merged: Vec<(MergeTarget, Vec<MergeProof>)>,
}

impl RunOutcome {
    /// Bytes of the input that were read.
    pub(super) fn input_bytes(&self) -> u64 {
        (self.bytes_read + self.left_out.bytes).saturating_sub(self.left_out.added)
    }
}

/// Gives the tasks' targets, from the bytes and records of each bucket.
pub(super) type Targets = Box<dyn FnMut(&[(u64, u64)]) -> Result<Vec<MergeTarget>> + Send>;

/// The tasks of the last merge, and the bytes that they write.
struct LastMerge {
    targets: Vec<MergeTarget>,
    bytes: u64,
}

impl LastMerge {
    /// Where the buckets of each task end, of so many buckets.
    fn ends(&self, buckets: usize) -> Result<Vec<usize>> {
        let end_of = |target: &MergeTarget| Ok(target.stretch(0..buckets)?.end);
        self.targets.iter().map(end_of).collect()
    }
}

/// What a sort by runs does once it knows where its output is cut.
pub(super) struct RunSort {
    pub(super) input_bytes: u64,
    pub(super) shuffle: Shuffle,
    /// About how many tasks the last merge will have.
    pub(super) merges: u64,
    pub(super) inputs: Vec<SpillInput>,
    /// GNU sort's options for keys; none where lines have none.
    pub(super) keys: Vec<String>,
    /// How rows are keyed, where the input is a table.
    pub(super) table: Option<TableKeys>,
    pub(super) targets: Targets,
    pub(super) outcome: Arc<Mutex<RunOutcome>>,
}

impl RunSort {
    /// Spills the input as runs that are cut at these borders, and merges them.
    pub(super) fn begin(mut self, borders: Vec<Border>) -> Next {
        Arc::make_mut(&mut self.shuffle.plan).borders = borders;
        let memory_layout = &self.shuffle.memory_layout;
        let task = |input: &SpillInput| SpillSpec {
            keys: self.keys.clone(),
            table: self.table.clone(),
            input: input.clone(),
            runs: Arc::clone(&self.shuffle.plan),
            chunk_bytes: memory_layout.chunk_bytes,
            typical_bytes: memory_layout.typical_bytes as usize,
        };
        let spill = stage("spill", self.input_bytes, self.inputs.iter().map(task));
        spill.then(move |reports| self.spilled(reports))
    }

    fn spilled(mut self, reports: Reports<Vec<SpilledRun>>) -> Result<Next> {
        let mut runs = Vec::new();
        for ((by, of_task), input) in reports.of_tasks().zip(&self.inputs) {
            runs.extend(of_task.into_iter().map(|run| (input, run, by)));
        }
        // In input order: the tasks of a stream, which stand together, took turns.
        for same in
            runs.chunk_by_mut(|(a, ..), (b, ..)| matches!(a, SpillInput::Stream(_)) && a == b)
        {
            same.sort_by_key(|(_, run, _)| run.number);
        }
        let bytes = {
            let mut outcome = lock(&self.outcome);
            outcome.runs = runs.len() as u64;
            for (_, run, _) in &runs {
                outcome.count_read(run);
            }
            self.check_bad_rows(outcome.left_out.bad_rows)?;
            outcome.bytes_read
        };
        let made = |(_, run, by)| MadeRun::new(run, by);
        let runs: Vec<MadeRun> = runs.into_iter().map(made).collect();
        let outcome = Arc::clone(&self.outcome);
        let passed = move |runs: &[SpilledRun]| lock(&outcome).count_pass(runs);
        let mut rounds = self.shuffle.rounds(&runs, (bytes, self.merges));
        let mut planned = None;
        if rounds.are_planned() {
            let merges = self.targets_of(runs.iter())?;
            rounds = rounds.ending(merges.ends(self.shuffle.plan.borders.len() + 1)?);
            planned = Some(merges);
        }
        let shuffle = self.shuffle.clone();
        shuffle.merge(runs, (bytes, rounds), passed, |slices| {
            self.last_merge(slices, planned)
        })
    }

    /// What the last merge will do with what these runs hold.
    fn targets_of<'r>(&mut self, runs: impl Iterator<Item = &'r MadeRun>) -> Result<LastMerge> {
        let mut sizes = vec![(0, 0); self.shuffle.plan.borders.len() + 1];
        runs.for_each(|made| made.buckets.add_to(&mut sizes));
        Ok(LastMerge {
            targets: (self.targets)(&sizes)?,
            bytes: sizes.iter().map(|size| size.0).sum(),
        })
    }

    /// Fails if more rows cannot be read than may be left out, before anything is written: each task has counted its own.
    fn check_bad_rows(&self, bad_rows: u64) -> Result<()> {
        let Some(table) = self
            .table
            .as_ref()
            .filter(|table| bad_rows > table.skip_bad)
        else {
            return Ok(());
        };
        let first = table.first();
        let message = format!("{bad_rows} rows have more fields than the {first}, or fewer");
        let all = JobOption::SkipBad.count(bad_rows);
        Err(Error::new(Kind::BadInput, "read the input", message)
            .advise_options("correct the rows, or leave all of them out: give {}", [all]))
    }

    fn last_merge(mut self, slices: Vec<Slice>, planned: Option<LastMerge>) -> Result<Next> {
        let runs = slices.iter().flat_map(|slice| &slice.runs);
        let LastMerge { targets, bytes } = match planned {
            Some(planned) => planned,
            None => self.targets_of(runs)?,
        };
        let plan = &self.shuffle.plan;
        let numbers = (&self.shuffle.memory_layout, targets.len());
        let (tasks, needs) = last_tasks(slices, numbers, |number, runs, source_bytes| MergeSpec {
            plan: Arc::clone(plan),
            runs: Arc::clone(runs),
            source_bytes,
            target: targets[number].clone(),
        });
        let merge = stage("merge", bytes, tasks).needing(needs);
        lock(&self.outcome).merging = true;
        Ok(merge.then(move |reports| {
            let proofs = reports.into_iter().map(|report| report.proofs);
            lock(&self.outcome).merged = targets.into_iter().zip(proofs).collect();
            Ok(Next::end())
        }))
    }
}

impl RunOutcome {
    /// Counts a run of the first generation, and what was read for it.
    fn count_read(&mut self, run: &SpilledRun) {
        self.records_read += run.records_read;
        self.first_records += run.records;
        self.first_bytes += run.bytes;
        self.first_disk_bytes += run.disk_bytes();
        self.bytes_read += run.bytes_read;
        self.checksum_read += run.checksum_read;
        self.left_out += run.left_out.clone();
        self.count_spilled(run);
    }

    fn count_pass(&mut self, runs: &[SpilledRun]) {
        self.passes += 1;
        runs.iter().for_each(|run| self.count_spilled(run));
    }

    fn count_spilled(&mut self, run: &SpilledRun) {
        self.spilled_records += run.records;
        self.disk_bytes += run.disk_bytes();
    }

    fn merged_bytes(&self) -> u64 {
        let proofs = self.merged.iter().flat_map(|(_, proofs)| proofs);
        proofs.map(|proof| proof.bytes).sum()
    }

    /// Fails unless keys ascend from range to range.
    pub(super) fn check_order<S: Shape>(&self, shape: S) -> Result<()> {
        let proofs = self.merged.iter().flat_map(|(_, proofs)| proofs);
        let ends: Vec<_> = proofs.filter_map(|proof| proof.ends.as_ref()).collect();
        for pair in ends.windows(2) {
            if shape.compare_keys(&pair[0].1, &pair[1].0).is_gt() {
                let message = "a range begins below the end of the one before it";
                return Err(Error::new(Kind::Proof, "prove the output", message));
            }
        }
        Ok(())
    }

    /// Fails unless as many records and the same checksum were written as were read; where only one of equal
    /// records stays, unless those written and those left out are as many as were read.
    pub(super) fn check(&self, unique: bool) -> Result<()> {
        let proofs = || self.merged.iter().flat_map(|(_, proofs)| proofs);
        let records: u64 = proofs().map(|proof| proof.records).sum();
        let checksum: u128 = proofs().map(|proof| proof.checksum).sum();
        let left_out: u64 = proofs().map(|proof| proof.duplicates).sum();
        let proved = if unique {
            records + left_out == self.first_records
        } else {
            (records, checksum) == (self.records_read, self.checksum_read)
        };
        if proved {
            return Ok(());
        }
        let message = format!(
            "{} records with checksum {:x} were read, {records} with {checksum:x} were written",
            self.records_read, self.checksum_read
        );
        Err(Error::new(Kind::Proof, "prove the output", message))
    }
}

/// Counts what was spilled, with Hadoop's names where it has them.
pub(super) fn count_runs(job: &mut RunningJob<'_>, input_bytes: u64, outcome: &RunOutcome) {
    let written: u64 = outcome.merged_bytes();
    let report = &mut job.report;
    report.count("MAP_OUTPUT_BYTES", outcome.first_bytes);
    report.count("MAP_OUTPUT_MATERIALIZED_BYTES", outcome.first_disk_bytes);
    report.count("SPILLED_RECORDS", outcome.spilled_records);
    report.count("SPILLED_RUNS", outcome.runs);
    report.count("MERGE_PASSES", outcome.passes);
    report.count("FILE_BYTES_READ", input_bytes + outcome.disk_bytes);
    report.count("FILE_BYTES_WRITTEN", written + outcome.disk_bytes);
}
