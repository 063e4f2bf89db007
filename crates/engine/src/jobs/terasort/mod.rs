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
use super::runs::{RunOutcome, RunSort, Targets, count_runs};
use super::shuffle::Shuffle;
use super::steps::remote_inputs::remote_inputs;
use super::steps::{JobOutput, OutputDirectory, OutputLocations, Proven, RunningJob, check_apart};
use super::success::{OutputProof, success_bytes};
use crate::driver::{Reports, StagedPlan, TypedStage, stage};
use crate::plan::amount::check_split_size;
use crate::plan::disk::RunDisk;
use crate::plan::explain::Explanation;
use crate::plan::node_runs::layout_on_nodes;
use crate::plan::sort::{SortPlan, part_name, reduce_bytes};
use crate::plan::spill::MemoryLayout;
use crate::plan::table::{CommandSpec, argument, option, options};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::order::{CutPoints, Entry};
use gristmill_base::record::checksum::Hex;
use gristmill_base::record::shape::{Fixed, Shape};
use gristmill_base::record::{KEY_BYTES, RECORD_BYTES};
use gristmill_base::sync::lock;
use gristmill_base::sys::memory::give_back;
use gristmill_storage::Caps;
use gristmill_storage::input::InputFile;
use gristmill_storage::location::Location;
use gristmill_tasks::reduce::RangeProof;
use gristmill_tasks::split::{bytes_of, check_whole_records, input_files};
use gristmill_tasks::task::{
    InProcess, MergeTarget, NodeContext, OutputFile, SampleSpec, SpillInput, TaskContext,
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
        function: None,
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
            "shuffle",
            "rounds",
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
    fn output(&self) -> Option<JobOutput<'_>> {
        Some(JobOutput::Directory(&self.output))
    }

    fn explain(&self, job: &RunningJob<'_>) -> Result<Explanation> {
        let files = files_of(job, self)?;
        let (remote, file_bytes) = (remote_inputs(&files), lengths(&files));
        drop(files); // of a million, more than the plan takes, which is made next
        give_back();
        let (plan, memory_layout) = plan_of(job, self, file_bytes)?;
        let explained = explain::of_plan(job, &plan, memory_layout.as_ref())?;
        job.with_stores(explained, &remote)
    }

    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        let files = files_of(job, self)?;
        let (plan, memory_layout) = plan_of(job, self, lengths(&files))?;
        let names: Vec<PathBuf> = (0..plan.parts)
            .map(|part| part_name('r', part).into())
            .collect();
        job.watched
            .planned(|| explain::of_plan(job, &plan, memory_layout.as_ref()));
        let directory = OutputDirectory {
            path: &self.output,
            names: &names,
            bytes: plan.input_bytes(),
            inputs: &files,
            shape: SHAPE.kind(),
            runs: memory_layout
                .as_ref()
                .map(|memory_layout| disk_of(job, &plan, memory_layout)),
        };
        directory.make(job, |job, committer, places| {
            let paths = names.iter().map(|name| committer.path_of(name));
            let outputs = paths.map(|path| OutputFile { path, bytes: 0 }).collect();
            let both = (files.clone(), outputs);
            let proof = match memory_layout {
                None => sort_in_memory(job, &plan, both, places)?,
                Some(memory_layout) => sort_by_runs(job, &plan, both, memory_layout, places)?,
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

/// What a job would work on. The job's room is known from then on.
fn files_of(job: &RunningJob<'_>, spec: &TerasortSpec) -> Result<Vec<InputFile>> {
    check_apart(&spec.inputs, &spec.output)?;
    let files = input_files(job.store(), &spec.inputs)?;
    check_whole_records(&files, RECORD_BYTES)?;
    job.room_for(&files);
    Ok(files)
}

fn lengths(files: &[InputFile]) -> Vec<u64> {
    files.iter().map(|file| file.stat.bytes).collect()
}

/// How a job would work on files of these lengths.
fn plan_of(
    job: &RunningJob<'_>,
    spec: &TerasortSpec,
    file_bytes: Vec<u64>,
) -> Result<(SortPlan, Option<MemoryLayout>)> {
    let split_bytes = check_split_size(job.common.split_size)?;
    let plan = SortPlan::new(RECORD_BYTES, file_bytes, spec.partitions)?;
    let mut plan = plan.split_by(split_bytes);
    plan.whole = job.store().caps(&spec.output) == Caps::Whole;
    let fits = plan.fits(job.room(), job.workers);
    let memory_layout = if fits && job.sorts_in_memory() {
        None
    } else {
        let (record_bytes, input_bytes) = (RECORD_BYTES as u64, plan.input_bytes());
        let layout = |room| {
            let layout = MemoryLayout::new(room, job.workers, record_bytes, record_bytes)?;
            Ok(layout.opening(job.runs_at_once).for_input(input_bytes))
        };
        Some(match job.keeps_runs_on_nodes() {
            true => layout_on_nodes(job.room(), input_bytes, layout)?,
            false => layout(job.room())?,
        })
    };
    Ok((plan, memory_layout))
}

/// About how many tasks merge the output.
fn merges_of(plan: &SortPlan, workers: usize) -> u64 {
    let bytes = plan.input_bytes();
    let tasks = bytes.div_ceil(reduce_bytes(bytes, workers)).max(1);
    tasks.min(plan.coarse().buckets() as u64)
}

/// The disk that runs need.
fn disk_of(job: &RunningJob<'_>, plan: &SortPlan, memory_layout: &MemoryLayout) -> RunDisk {
    let splits = plan.spill_splits(memory_layout.task_bytes_of(plan.input_bytes()), job.workers);
    let runs: Vec<u64> = splits.iter().map(|split| bytes_of(split)).collect();
    let numbers = (
        plan.input_bytes(),
        runs.len() as u64,
        merges_of(plan, job.workers),
    );
    let rounds = job.rounds(memory_layout, numbers);
    let buckets = plan.coarse().buckets() as u64;
    RunDisk::of(memory_layout, runs, buckets, job.workers).in_rounds(rounds)
}

/// Sorts an input that does not fit: sorted runs are spilled to their places, then merged.
fn sort_by_runs(
    job: &mut RunningJob<'_>,
    plan: &SortPlan,
    (files, outputs): (Vec<InputFile>, Vec<OutputFile>),
    memory_layout: MemoryLayout,
    places: &OutputLocations,
) -> Result<OutputProof> {
    let node = NodeContext::new(job.environment.store.clone(), job.budget());
    let node = node.with_runs_in_memory(memory_layout.node_runs_bytes)?;
    job.note_node_memory(&memory_layout);
    let context = TaskContext::new(job.shared(files), node, InProcess::Nothing);
    let outcome = Arc::new(Mutex::new(RunOutcome::default()));
    let splits = plan.spill_splits(memory_layout.task_bytes_of(plan.input_bytes()), job.workers);
    let run_sort = RunSort {
        keys: Vec::new(),
        table: None,
        input_bytes: plan.input_bytes(),
        shuffle: Shuffle::new(job.shuffle(), places, Vec::new(), memory_layout),
        merges: merges_of(plan, job.workers),
        inputs: splits.into_iter().map(SpillInput::Ranges).collect(),
        targets: targets_of(plan.coarse(), job.workers, outputs),
        outcome: Arc::clone(&outcome),
    };
    // Parts begin at the same records as those of a sort in memory.
    let planned = plan.clone();
    let sample = sample_stage(plan).then(move |entries| {
        let cuts = cut_points(entries, planned.buckets());
        Ok(run_sort.begin(cuts.borders(planned.coarse_borders())))
    });
    job.run_kept(StagedPlan::new(sample), &context, places)?;
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
            return Err(Error::bug("prove the output", "it has no ranges"));
        };
        for (range, found) in ranges.iter().zip(proofs) {
            let check = found.check.clone();
            let check =
                check.ok_or_else(|| Error::bug("prove the output", "keys were not checked"))?;
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

fn fill_report(job: &mut RunningJob<'_>, plan: &SortPlan, proof: &OutputProof) {
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

fn sample_stage(plan: &SortPlan) -> TypedStage<SampleSpec> {
    let record_bytes = plan.record_bytes;
    let task = |stretches| SampleSpec {
        stretches,
        record_bytes,
    };
    stage("sample", 0, plan.sample().into_iter().map(task))
}

fn cut_points(reports: Reports<Vec<Entry>>, buckets: usize) -> CutPoints {
    CutPoints::from_sample(reports.into_iter().flatten().collect(), buckets)
}
