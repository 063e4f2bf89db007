//! `terasort`: sorts 100-byte records by their first ten bytes, and proves the result.
//!
//! ```text
//!   sample ──cut points──▶ map ──bucket counts──▶ reduce ──proof──▶ commit      in memory (memory.rs)
//!                       └▶ spill ──runs──▶ merge ──proof──▶ commit              by runs
//! ```

mod explain;
mod memory;
mod stages;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use self::memory::sort_in_memory;
use super::kind::{Described, JobKind};
use super::passes::Passes;
use super::runs::{Borders, RunOutcome, RunSort, Step, Targets, count_runs};
use super::steps::far::far_inputs;
use super::steps::{
    Directory, Job, Output, OutputLocations, Proven, check_apart, lock, wrong_report,
};
use super::success::{OutputProof, success_bytes};
use crate::driver::Stage;
use crate::error::{Error, Kind, Result};
use crate::order::CutPoints;
use crate::plan::amount::check_split_size;
use crate::plan::disk::RunDisk;
use crate::plan::explain::Explanation;
use crate::plan::sort::{SortPlan, part_name};
use crate::plan::spill::MemoryLayout;
use crate::plan::table::{CommandSpec, argument, option, options};
use crate::record::checksum::Hex;
use crate::record::shape::{Fixed, Shape};
use crate::record::{KEY_BYTES, RECORD_BYTES};
use crate::reduce::RangeProof;
use crate::split::{bytes_of, check_whole_records, input_files};
use crate::storage::Caps;
use crate::storage::input::InputFile;
use crate::storage::location::Location;
use crate::task::{
    InProcess, MergeTarget, Node, OutputFile, SampleSpec, SpillInput, TaskContext, TaskReport,
    TaskSpec,
};

options! {
    /// Options of `terasort`, as given.
    pub(in crate::jobs) struct TerasortSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .).",
        ),
        output: Location = argument("The directory to make."),
        partitions: Option<usize> = option(
            "one for each 256 MB",
            "How many part files the output is cut into, each with a range of the keys.",
        ),
    }
}

impl Described for TerasortSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "terasort",
        help: "Sort 100-byte records by their first ten bytes, and prove the result.",
        details: "",
        example: "gristmill terasort data/ sorted/ --memory 8G",
        python: r#"
>>> import tempfile, gristmill
>>> with tempfile.TemporaryDirectory() as folder:
...     made = gristmill.teragen("1k", f"{folder}/data")
...     report = gristmill.terasort(f"{folder}/data", f"{folder}/sorted", memory="100M")
>>> report.duplicate_keys, report.checksum == made.checksum
(0, True)
"#,
        explained: true,
        own: Self::OPTIONS,
        common: &[
            "memory",
            "workers",
            "runner",
            "on",
            "nodes",
            "collect",
            "spill_dir",
            "compress_runs",
            "split_size",
            "store_option",
            "overwrite",
            "no_sync",
            "replication",
            "block_size",
        ],
    };
}

impl JobKind for TerasortSpec {
    fn output(&self) -> Option<Output<'_>> {
        Some(Output::Directory(&self.output))
    }

    fn explain(&self, job: &Job<'_>) -> Result<Explanation> {
        let (files, plan, numbers) = plan_of(job, self)?;
        let far = far_inputs(&files);
        drop(files); // of a million, more than all that follows takes
        let explained = explain::of_plan(job, &plan, numbers.as_ref())?;
        job.with_stores(explained, &far)
    }

    fn run(&self, job: &mut Job<'_>) -> Result<()> {
        let (files, plan, numbers) = plan_of(job, self)?;
        let names: Vec<PathBuf> = (0..plan.parts)
            .map(|part| part_name('r', part).into())
            .collect();
        job.watched
            .planned(|| explain::of_plan(job, &plan, numbers.as_ref()));
        let directory = Directory {
            path: &self.output,
            names: &names,
            bytes: plan.input_bytes(),
            inputs: &files,
            shape: SHAPE.kind(),
            runs: numbers.as_ref().map(|numbers| disk_of(job, &plan, numbers)),
        };
        directory.make(job, |job, committer, places| {
            let paths = names.iter().map(|name| committer.path_of(name));
            let outputs = paths.map(|path| OutputFile { path, bytes: 0 }).collect();
            let both = (files.clone(), outputs);
            let proof = match numbers {
                None => sort_in_memory(job, &plan, both, places)?,
                Some(numbers) => sort_by_runs(job, &plan, both, numbers, places)?,
            };
            job.begin_commit()?;
            fill_report(job, &plan, &proof);
            let job_id = &job.environment.job_id;
            let success = proof.success(job_id, "terasort", &names, RECORD_BYTES as u64);
            Ok(Proven {
                success: success_bytes(&success)?,
                uploads: proof.uploads,
            })
        })
    }
}

/// What a job would work on, and how.
fn plan_of(
    job: &Job<'_>,
    spec: &TerasortSpec,
) -> Result<(Vec<InputFile>, SortPlan, Option<MemoryLayout>)> {
    check_apart(&spec.inputs, &spec.output)?;
    let files = input_files(job.store(), &spec.inputs)?;
    check_whole_records(&files, RECORD_BYTES)?;
    let file_bytes = files.iter().map(|file| file.stat.bytes).collect();
    let split_bytes = check_split_size(job.common.split_size)?;
    let plan = SortPlan::new(RECORD_BYTES, file_bytes, spec.partitions)?;
    let mut plan = plan.split_by(split_bytes);
    plan.whole = job.store().caps(&spec.output) == Caps::Whole;
    let fits = plan.fits(job.room_for(&files), job.workers);
    let numbers = if fits && job.runner.shares_memory() {
        None
    } else {
        let record_bytes = RECORD_BYTES as u64;
        let numbers = MemoryLayout::new(job.room(), job.workers, record_bytes, record_bytes)?;
        let numbers = numbers.opening(job.runs_at_once);
        Some(numbers.for_input(plan.input_bytes()))
    };
    Ok((files, plan, numbers))
}

/// The disk that runs need.
fn disk_of(job: &Job<'_>, plan: &SortPlan, numbers: &MemoryLayout) -> RunDisk {
    let splits = plan.spill_splits(numbers.task_bytes(), job.workers);
    let runs = splits.iter().map(|split| bytes_of(split)).collect();
    RunDisk::of(numbers, runs, plan.coarse().buckets() as u64, job.workers)
}

/// Sorts an input that does not fit: sorted runs are spilled to their places, then merged.
fn sort_by_runs(
    job: &mut Job<'_>,
    plan: &SortPlan,
    (files, outputs): (Vec<InputFile>, Vec<OutputFile>),
    numbers: MemoryLayout,
    places: &OutputLocations,
) -> Result<OutputProof> {
    let node = Node::new(job.environment.store.clone(), job.budget());
    let context = TaskContext::new(job.shared(files), node, InProcess::Nothing);
    let outcome = Arc::new(Mutex::new(RunOutcome::default()));
    let splits = plan.spill_splits(numbers.task_bytes(), job.workers);
    let run_sort = RunSort {
        keys: Vec::new(),
        table: None,
        input_bytes: plan.input_bytes(),
        sample: Some(sample_stage(plan)),
        borders: borders_of(plan.clone()),
        passes: Passes::new(places, Vec::new(), numbers),
        inputs: splits.into_iter().map(SpillInput::Ranges).collect(),
        targets: targets_of(plan.coarse(), job.workers, outputs),
        outcome: Arc::clone(&outcome),
        step: Step::default(),
    };
    job.run_kept(Box::new(run_sort), &context, places)?;
    let outcome = lock(&outcome);
    count_runs(job, plan.input_bytes(), &outcome);
    prove(plan, &outcome)
}

/// The sort benchmark's records.
pub(super) const SHAPE: Fixed = Fixed {
    record_bytes: RECORD_BYTES,
    key_bytes: KEY_BYTES,
    descending: false,
};

/// The borders of runs, from the cut points that a sort in memory would have: parts begin at the same records.
fn borders_of(plan: SortPlan) -> Borders {
    Box::new(move |reports| {
        let cuts = cut_points(reports, plan.buckets())?;
        Ok(cuts.borders(plan.coarse_borders()))
    })
}

/// Merge tasks of ranges of parts, from the sizes of the buckets.
fn targets_of(plan: SortPlan, workers: usize, outputs: Vec<OutputFile>) -> Targets {
    Box::new(move |sizes| {
        let counts: Vec<u64> = sizes.iter().map(|(_, records)| *records).collect();
        let tasks = plan.reduce_tasks(&counts, workers, &|part| outputs[part].clone());
        Ok(tasks.into_iter().map(MergeTarget::Ranges).collect())
    })
}

/// The proof of the output from those of its ranges, against what was read.
fn prove(plan: &SortPlan, outcome: &RunOutcome) -> Result<OutputProof> {
    let buckets_per_part = plan.coarse().buckets_per_part;
    let mut proof = OutputProof::new(plan.parts);
    if outcome.bytes_read != plan.input_bytes() {
        let message = format!(
            "{} of {} bytes were consumed",
            outcome.bytes_read,
            plan.input_bytes()
        );
        return Err(Error::new(Kind::Proof, "prove the input", message));
    }
    for (target, proofs) in &outcome.merged {
        let MergeTarget::Ranges(ranges) = target else {
            return Err(wrong_report());
        };
        for (range, found) in ranges.iter().zip(proofs) {
            let check = found.check.clone().ok_or_else(wrong_report)?;
            let checksum = found.checksum;
            proof.add(
                range.buckets.start / buckets_per_part,
                &RangeProof {
                    check,
                    checksum,
                    upload: found.upload.clone(),
                },
            )?;
        }
    }
    proof.check_against(outcome.records_read, outcome.checksum_read)?;
    Ok(proof)
}

fn fill_report(job: &mut Job<'_>, plan: &SortPlan, proof: &OutputProof) {
    let (records, bytes) = (plan.records(), plan.input_bytes());
    let report = &mut job.report;
    (report.records, report.input_bytes, report.output_bytes) = (records, bytes, bytes);
    report.parts = plan.parts;
    report.duplicate_keys = proof.whole.duplicates;
    report.checksum = Hex(proof.checksum).to_string();
    for name in [
        "MAP_INPUT_RECORDS",
        "MAP_OUTPUT_RECORDS",
        "REDUCE_INPUT_RECORDS",
        "REDUCE_OUTPUT_RECORDS",
    ] {
        report.count(name, records);
    }
    report.count("REDUCE_INPUT_GROUPS", records - proof.whole.duplicates);
}

fn sample_stage(plan: &SortPlan) -> Stage {
    let record_bytes = plan.record_bytes;
    let task = |stretches| {
        TaskSpec::Sample(SampleSpec {
            stretches,
            record_bytes,
        })
    };
    Stage::new("sample", 0, plan.sample().into_iter().map(task).collect())
}

fn cut_points(reports: Vec<TaskReport>, buckets: usize) -> Result<CutPoints> {
    let mut sample = Vec::new();
    for report in reports {
        match report {
            TaskReport::Sample(entries) => sample.extend(entries),
            _ => return Err(wrong_report()),
        }
    }
    Ok(CutPoints::from_sample(sample, buckets))
}
