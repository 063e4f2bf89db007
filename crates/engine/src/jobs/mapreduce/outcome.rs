//! What a job of user code did, over all its tasks: the proof that it is whole, and its counters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::failures::StageFailures;
use super::idle::Finished;
use super::skew::uneven;
use crate::jobs::report::JobReport;
use crate::jobs::steps::RunningJob;
use crate::jobs::success::success_bytes;
use crate::plan::mapreduce::{MapReduceSpec, OutputForm, UserCodeCommand, joined_bytes};
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_storage::objects::Upload;
use gristmill_tasks::spill::SpilledRun;
use gristmill_tasks::task::{UserTaskFile, UserTaskReport, key_types, too_many_files};

/// What the tasks of a stage did, together.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Of all tasks; the files with the folder that each is in.
    pub(super) sum: UserTaskReport,
    /// That of the task with most to do.
    largest: UserTaskReport,
    files: Vec<(PathBuf, UserTaskFile)>,
}

impl Totals {
    pub(super) fn add(&mut self, report: UserTaskReport) {
        if report.records_in > self.largest.records_in {
            self.largest = UserTaskReport {
                records_in: report.records_in,
                files: report.files.clone(),
                largest_group: report.largest_group.clone(),
                ..Default::default()
            };
        }
        let sum = &mut self.sum;
        sum.uploads.extend(report.uploads);
        sum.records_in += report.records_in;
        sum.records_out += report.records_out;
        sum.bytes_in += report.bytes_in;
        sum.bytes_out += report.bytes_out;
        sum.groups += report.groups;
        sum.combine_in += report.combine_in;
        sum.combine_out += report.combine_out;
        sum.skipped += report.skipped;
        sum.skipped_records += report.skipped_records;
        key_types::add(&mut sum.kinds, &report.kinds);
        let folder = report.folder;
        let files = report.files.into_iter();
        self.files.extend(files.map(|file| (folder.clone(), file)));
    }
}

/// The runs that the tasks of a stage made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MadeRuns {
    number: u64,
    /// Pairs in them.
    pairs: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Bytes that are stored of them.
    stored_bytes: u64,
}

impl MadeRuns {
    /// Counts those of a task.
    pub(super) fn add(&mut self, runs: &[SpilledRun]) {
        self.number += runs.len() as u64;
        for run in runs {
            self.pairs += run.records;
            self.bytes += run.bytes;
            self.stored_bytes += run.stored_bytes;
        }
    }
}

/// What a job did.
#[derive(Debug, Default)]
pub(super) struct MapReduceOutcome {
    pub(super) maps: Totals,
    /// What made other pairs of those of the maps, if anything did.
    pub(super) regroups: Totals,
    pub(super) reduces: Totals,
    /// Runs that the maps left.
    pub(super) mapped: MadeRuns,
    /// Runs of other pairs.
    pub(super) regrouped: MadeRuns,
    /// Runs that passes made, of either.
    passed: MadeRuns,
    passes: u64,
    /// Of files of the output that were written anew.
    replaced_bytes: u64,
    pub(super) counters: BTreeMap<String, BTreeMap<String, i64>>,
    /// Tasks that the job is done without.
    pub(super) failures: StageFailures,
}

impl MapReduceOutcome {
    /// Counts the runs that a pass made.
    pub(super) fn count_pass(&mut self, runs: &[SpilledRun]) {
        self.passes += 1;
        self.passed.add(runs);
    }

    pub(super) fn count(&mut self, report: &UserTaskReport) {
        for (group, counters) in &report.counters {
            let sums = self.counters.entry(group.clone()).or_default();
            for (name, amount) in counters {
                let sum = sums.entry(name.clone()).or_default();
                *sum = sum.wrapping_add(*amount); // as within a task, and as Java's long
            }
        }
    }

    /// What the pairs of the maps came to.
    fn first_reduces(&self, spec: &MapReduceSpec) -> &Totals {
        match spec.regroups {
            Some(_) => &self.regroups,
            None => &self.reduces,
        }
    }

    /// Fails unless all was read, and all that the maps gave was reduced; but for tasks that the job is done without.
    pub(super) fn prove(&self, spec: &MapReduceSpec) -> Result<()> {
        let failed = |operation, message| Err(Error::new(Kind::Proof, operation, message));
        // A record belongs to the split in which it begins: only all splits together are as long as was said.
        let bytes = spec.input_bytes() - self.failures.maps.bytes;
        let read = self.maps.sum.bytes_in;
        if bytes != read {
            return failed(
                "prove the input",
                format!("{read} of {bytes} bytes were consumed"),
            );
        }
        let first = &self.first_reduces(spec).sum;
        let (mapped, reduced) = (self.mapped.pairs, first.records_in + first.skipped_records);
        // How many pairs lie in a partition that was not reduced is not known.
        let fewer = self.failures.reduces.count() > 0 && reduced < mapped;
        if spec.partitions > 0 && mapped != reduced && !fewer {
            let message = format!("the maps gave {mapped} pairs and {reduced} were reduced");
            return failed("prove the output", message);
        }
        let (again, reduced) = (self.regrouped.pairs, self.reduces.sum.records_in);
        if spec.regroups.is_some() && again != reduced {
            let message = format!("{again} pairs were grouped again and {reduced} were reduced");
            return failed("prove the output", message);
        }
        Ok(())
    }

    /// Fails where more rows cannot be read, in all, than may be left out: each task has counted its own.
    pub(super) fn check_bad_rows(&self, spec: &MapReduceSpec) -> Result<()> {
        let bad_rows = self.maps.sum.skipped;
        if spec.command != UserCodeCommand::Native || bad_rows <= spec.skip_bad {
            return Ok(());
        }
        let message = format!("{bad_rows} rows have more fields than the header, or fewer");
        let all = JobOption::SkipBad.count(bad_rows);
        Err(Error::new(Kind::BadInput, "read the input", message)
            .advise_options("correct the rows, or leave all of them out: give {}", [all]))
    }

    /// Fails where the tasks made more files, together, than there may be.
    pub(super) fn check_files(&self, spec: &MapReduceSpec) -> Result<()> {
        match spec.form {
            OutputForm::NamedFiles(most) if self.files().count() as u64 > most => {
                Err(too_many_files(most))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &(PathBuf, UserTaskFile)> {
        self.maps.files.iter().chain(&self.reduces.files)
    }

    /// Takes a file that was written anew in the place of the one of its name.
    pub(super) fn renew(&mut self, new: UserTaskFile) {
        let mut all = self.maps.files.iter_mut().chain(&mut self.reduces.files);
        if let Some((_, file)) = all.find(|(_, file)| file.name == new.name) {
            self.replaced_bytes += file.bytes;
            *file = new;
        }
    }

    /// Those of the files that their tasks have sent to an object store.
    pub(super) fn uploads(&self) -> Vec<Upload> {
        let all = self
            .maps
            .sum
            .uploads
            .iter()
            .chain(&self.reduces.sum.uploads);
        all.cloned().collect()
    }

    /// What `_SUCCESS` says (docs/internals/success.md).
    pub(super) fn success(&self, report: &JobReport) -> Result<Vec<u8>> {
        let parts: Vec<_> = self.files().map(|(_, file)| file).collect();
        success_bytes(&MapReduceSuccess {
            format: 1,
            gristmill: crate::VERSION,
            job_id: &report.job_id,
            command: report.command,
            input_records: self.maps.sum.records_in,
            input_bytes: self.maps.sum.bytes_in,
            shuffled_records: self.mapped.pairs,
            failed_maps: self.failures.maps.count(),
            failed_reduces: self.failures.reduces.count(),
            records: parts.iter().map(|file| file.records).sum(),
            bytes: parts.iter().map(|file| file.bytes).sum(),
            parts,
        })
    }

    pub(super) fn fill_report(&self, job: &mut RunningJob<'_>, spec: &MapReduceSpec) {
        let report = &mut job.report;
        let (maps, reduces) = (&self.maps.sum, &self.reduces.sum);
        report.input_bytes = maps.bytes_in;
        let parts = || self.files().map(|(_, file)| file.bytes);
        let parts_bytes: u64 = parts().sum();
        (report.output_bytes, report.parts) = match spec.form {
            OutputForm::Directory | OutputForm::NamedFiles(_) => (parts_bytes, parts().count()),
            OutputForm::File | OutputForm::Stream(_) => {
                (joined_bytes(parts(), spec.header_bytes), 1)
            }
        };
        report.records = if spec.partitions > 0 {
            reduces.records_out
        } else {
            maps.records_out
        };
        report.count("MAP_INPUT_RECORDS", maps.records_in);
        report.count("MAP_OUTPUT_RECORDS", maps.records_out);
        report.count("MAP_OUTPUT_BYTES", maps.bytes_out);
        report.count("MAP_SKIPPED_RECORDS", maps.skipped);
        // Each run is read once: by a pass, or by the reduces.
        let runs = [self.mapped, self.regrouped, self.passed];
        let runs: u64 = runs.iter().map(|runs| runs.stored_bytes).sum();
        let apart = runs + self.replaced_bytes;
        report.count("FILE_BYTES_READ", maps.bytes_in + apart);
        // By tasks: that their files are put together at the end is no work of theirs.
        report.count("FILE_BYTES_WRITTEN", parts_bytes + apart);
        report.count("LAUNCHED_MAPS", spec.splits.len() as u64);
        report.count("NUM_FAILED_MAPS", self.failures.maps.count());
        report.warnings.extend(self.failures.warnings(spec));
        report.warnings.extend(key_types::mixed(&maps.kinds));
        report.warnings.extend(key_types::apart(&maps.kinds));
        let finished = Finished {
            spec,
            workers: job.workers,
            maps,
            reduces,
        };
        report
            .warnings
            .extend(finished.warnings(job.clock.phases()));
        let skew = uneven(spec, &self.reduces.largest, reduces.records_in);
        report.warnings.extend(skew);
        if spec.partitions == 0 {
            return;
        }
        report.count("MAP_OUTPUT_MATERIALIZED_BYTES", self.mapped.stored_bytes);
        report.count("COMBINE_INPUT_RECORDS", maps.combine_in);
        report.count("COMBINE_OUTPUT_RECORDS", maps.combine_out);
        let made = self.mapped.pairs + self.regrouped.pairs;
        report.count("SPILLED_RECORDS", made + self.passed.pairs);
        report.count("SPILLED_RUNS", self.mapped.number + self.regrouped.number);
        report.count("MERGE_PASSES", self.passes);
        let first = &self.first_reduces(spec).sum;
        report.count("REDUCE_INPUT_GROUPS", first.groups);
        report.count("REDUCE_INPUT_RECORDS", first.records_in);
        report.count("REDUCE_OUTPUT_RECORDS", reduces.records_out);
        let regroups = &self.regroups.sum;
        report.count("REDUCE_SHUFFLE_BYTES", regroups.bytes_in + reduces.bytes_in);
        report.count("REDUCE_SKIPPED_GROUPS", reduces.skipped);
        report.count("REDUCE_SKIPPED_RECORDS", reduces.skipped_records);
        let rounds = 1 + u64::from(spec.regroups.is_some());
        report.count("LAUNCHED_REDUCES", rounds * u64::from(spec.partitions));
        if spec.regroups.is_some() {
            report.count("REGROUPED_RECORDS", self.regrouped.pairs);
        }
        report.count("NUM_FAILED_REDUCES", self.failures.reduces.count());
    }
}

/// What `_SUCCESS` says of a job of user code.
#[derive(Debug, Serialize)]
struct MapReduceSuccess<'a> {
    format: u32,
    gristmill: &'static str,
    job_id: &'a str,
    command: &'static str,
    input_records: u64,
    input_bytes: u64,
    shuffled_records: u64,
    #[serde(skip_serializing_if = "is_none")]
    failed_maps: u64,
    #[serde(skip_serializing_if = "is_none")]
    failed_reduces: u64,
    records: u64,
    bytes: u64,
    parts: Vec<&'a UserTaskFile>,
}

/// Whether there are none: what a job that is whole need not say.
fn is_none(count: &u64) -> bool {
    *count == 0
}
