//! Sorting by runs: what does not fit in memory is spilled as sorted runs, and merged.
//!
//! ```text
//!   [sample ──borders──▶] spill ──runs──▶ [merge runs, in passes] ──▶ merge ──proof──▶ commit
//! ```
//!
//! Which stages there are follows from how many runs come out and how many can be merged at once.

use std::sync::{Arc, Mutex};

use super::passes::{MadeRun, Next, Passes, longest_of, makers};
use super::steps::{Job, lock, wrong_report};
use crate::driver::{Needs, Plan, Stage};
use crate::error::{Error, JobOption, Kind, Result};
use crate::merge::output::MergeProof;
use crate::order::borders::Border;
use crate::record::shape::Shape;
use crate::record::table_keys::TableKeys;
use crate::spill::{LeftOut, SpilledRun};
use crate::task::{MergeSpec, MergeTarget, SpillInput, SpillSpec, TaskReport, TaskSpec};

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

/// Gives the tasks' targets, from the bytes and records of each bucket.
pub(super) type Targets = Box<dyn FnMut(&[(u64, u64)]) -> Result<Vec<MergeTarget>> + Send>;

/// Gives the borders, from the reports of the sample tasks.
pub(super) type Borders = Box<dyn FnMut(Vec<TaskReport>) -> Result<Vec<Border>> + Send>;

/// The stages of a sort by runs.
pub(super) struct RunSort {
    pub(super) input_bytes: u64,
    /// The stage that samples; none where there is nothing to cut.
    pub(super) sample: Option<Stage>,
    pub(super) borders: Borders,
    pub(super) passes: Passes,
    pub(super) inputs: Vec<SpillInput>,
    /// GNU sort's options for keys; none where lines have none.
    pub(super) keys: Vec<String>,
    /// How rows are keyed, where the input is a table.
    pub(super) table: Option<TableKeys>,
    pub(super) targets: Targets,
    pub(super) outcome: Arc<Mutex<RunOutcome>>,
    pub(super) step: Step,
}

/// Which stage's reports come next.
#[derive(Debug, Default)]
pub(super) enum Step {
    /// None yet.
    #[default]
    Begin,
    /// The sample's.
    Sample,
    /// The spill's.
    Spill,
    /// Those of a pass.
    Pass,
    /// The last merge's.
    Merge(Vec<MergeTarget>),
}

impl RunSort {
    fn spill(&mut self, reports: Vec<TaskReport>) -> Result<Stage> {
        let Passes { plan, numbers, .. } = &mut self.passes;
        Arc::make_mut(plan).borders = (self.borders)(reports)?;
        self.step = Step::Spill;
        let (keys, table) = (&self.keys, &self.table);
        let task = |input: &SpillInput| {
            TaskSpec::Spill(SpillSpec {
                keys: keys.clone(),
                table: table.clone(),
                input: input.clone(),
                runs: Arc::clone(plan),
                chunk_bytes: numbers.chunk_bytes,
                typical_bytes: numbers.typical_bytes as usize,
            })
        };
        let tasks = self.inputs.iter().map(task).collect();
        Ok(Stage::new("spill", self.input_bytes, tasks))
    }

    fn spilled(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let mut runs = Vec::new();
        for ((by, report), input) in (self.passes.tasks.first..).zip(reports).zip(&self.inputs) {
            let TaskReport::Spill(of_task) = report else {
                return Err(wrong_report());
            };
            runs.extend(of_task.into_iter().map(|run| (input, run, by)));
        }
        // In input order: the tasks of a stream, which stand together, took turns.
        for same in
            runs.chunk_by_mut(|(a, ..), (b, ..)| matches!(a, SpillInput::Stream(_)) && a == b)
        {
            same.sort_by_key(|(_, run, _)| run.number);
        }
        {
            let mut outcome = lock(&self.outcome);
            outcome.runs = runs.len() as u64;
            for (_, run, _) in &runs {
                outcome.records_read += run.records_read;
                outcome.first_records += run.records;
                outcome.first_bytes += run.bytes;
                outcome.first_disk_bytes += run.disk_bytes();
                outcome.bytes_read += run.bytes_read;
                outcome.checksum_read += run.checksum_read;
                outcome.left_out += run.left_out.clone();
                outcome.count_spilled(run);
            }
            self.check_bad_rows(outcome.left_out.bad_rows)?;
        }
        let made = |(_, run, by)| MadeRun::new(run, by);
        self.merge(runs.into_iter().map(made).collect())
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

    /// The next stage, whichever it is.
    fn merge(&mut self, runs: Vec<MadeRun>) -> Result<Option<Stage>> {
        let bytes = lock(&self.outcome).bytes_read;
        let stage = match self.passes.next(runs, bytes)? {
            Next::Last(runs) => self.last_merge(runs)?,
            Next::Pass(stage) => {
                lock(&self.outcome).passes += 1;
                self.step = Step::Pass;
                stage
            }
        };
        Ok(Some(stage))
    }

    fn passed(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let count = |run: &SpilledRun| lock(&self.outcome).count_spilled(run);
        let runs = self.passes.over(reports, count)?;
        self.merge(runs)
    }

    fn last_merge(&mut self, runs: Vec<MadeRun>) -> Result<Stage> {
        let mut sizes = vec![(0, 0); self.passes.plan.borders.len() + 1];
        runs.iter().for_each(|made| made.buckets.add_to(&mut sizes));
        let targets = (self.targets)(&sizes)?;
        let source_bytes = self.passes.numbers.source_bytes(&longest_of(&runs));
        let needs = Needs::All(makers(&runs));
        let runs = Arc::new(runs.into_iter().map(|made| made.run).collect());
        let task = |target: &MergeTarget| {
            TaskSpec::Merge(MergeSpec {
                plan: Arc::clone(&self.passes.plan),
                runs: Arc::clone(&runs),
                source_bytes,
                target: target.clone(),
            })
        };
        let tasks = targets.iter().map(task).collect();
        self.step = Step::Merge(targets);
        lock(&self.outcome).merging = true;
        let bytes = sizes.iter().map(|size| size.0).sum();
        Ok(Stage::new("merge", bytes, tasks).needing(needs))
    }

    fn merged(&mut self, reports: Vec<TaskReport>, targets: Vec<MergeTarget>) -> Result<()> {
        let mut outcome = lock(&self.outcome);
        for (report, target) in reports.into_iter().zip(targets) {
            let TaskReport::Merge(report) = report else {
                return Err(wrong_report());
            };
            outcome.merged.push((target, report.proofs));
        }
        Ok(())
    }
}

impl Plan for RunSort {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let stage = match std::mem::take(&mut self.step) {
            Step::Begin => match self.sample.take() {
                Some(stage) => {
                    self.step = Step::Sample;
                    Some(stage)
                }
                None => Some(self.spill(reports)?),
            },
            Step::Sample => Some(self.spill(reports)?),
            Step::Spill => self.spilled(reports)?,
            Step::Pass => self.passed(reports)?,
            Step::Merge(targets) => self.merged(reports, targets).map(|()| None)?,
        };
        self.passes.tasks.count(stage.as_ref());
        Ok(stage)
    }
}

impl RunOutcome {
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
pub(super) fn count_runs(job: &mut Job<'_>, input_bytes: u64, outcome: &RunOutcome) {
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
