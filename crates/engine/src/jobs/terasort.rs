//! `terasort`: sorts 100-byte records by their first ten bytes, and proves the result.
//!
//! ```text
//!   sample ──cut points──▶ map ──bucket counts──▶ reduce ──proof──▶ commit
//! ```

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::explain::of_terasort;
use super::resume::Places;
use super::runs::{Borders, RunOutcome, RunSort, Step, Targets, count_runs, lock};
use super::success::OutputProof;
use super::{Job, lies_in};
use crate::commit::CommitOptions;
use crate::driver::{Plan, Stage};
use crate::error::{Error, Kind, Result};
use crate::order::CutPoints;
use crate::plan::explain::Explanation;
use crate::plan::options::TerasortSpec;
use crate::plan::sort::{SortPlan, part_name};
use crate::plan::spill::SpillNumbers;
use crate::record::arena::Arena;
use crate::record::checksum::Hex;
use crate::record::shape::{Fixed, Shape};
use crate::record::{KEY_BYTES, RECORD_BYTES};
use crate::reduce::RangeProof;
use crate::split::{check_unchanged, check_whole_records, input_files};
use crate::storage::input::InputFile;
use crate::storage::{Caching, Store};
use crate::task::{
    MapReport, MapSpec, MergeTarget, OutputFile, RangeSpec, ReduceSpec, RunPlan, SampleSpec,
    SpillInput, TaskContext, TaskReport, TaskSpec,
};

/// What a job would work on, and how.
fn plan_of(
    job: &Job<'_>,
    spec: &TerasortSpec,
) -> Result<(Vec<InputFile>, SortPlan, Option<SpillNumbers>)> {
    check_apart(spec)?;
    let files = input_files(job.store(), &spec.inputs)?;
    check_whole_records(&files, RECORD_BYTES)?;
    let file_bytes = files.iter().map(|file| file.stat.bytes).collect();
    let plan = SortPlan::new(RECORD_BYTES, file_bytes, spec.partitions)?;
    let numbers = if plan.fits(job.memory_bytes, job.workers) {
        None
    } else {
        let record_bytes = RECORD_BYTES as u64;
        Some(SpillNumbers::new(
            job.memory_bytes,
            job.workers,
            record_bytes,
            record_bytes,
        )?)
    };
    Ok((files, plan, numbers))
}

/// What [`run`] would do.
pub(super) fn explain(job: &Job<'_>, spec: &TerasortSpec) -> Result<Explanation> {
    let (_, plan, numbers) = plan_of(job, spec)?;
    of_terasort(job, &plan, numbers.as_ref(), &spec.output, &spec.spill_dir)
}

pub(super) fn run(job: &mut Job<'_>, spec: &TerasortSpec) -> Result<()> {
    let environment = job.environment;
    let store = &*environment.store;
    let (files, plan, numbers) = plan_of(job, spec)?;
    let names: Vec<String> = (0..plan.parts).map(|part| part_name('r', part)).collect();
    let options = CommitOptions {
        overwrite: spec.overwrite,
        sync: !spec.no_sync,
    };
    job.watched
        .planned(|| of_terasort(job, &plan, numbers.as_ref(), &spec.output, &spec.spill_dir));
    let input_bytes = plan.input_bytes();
    job.take_inputs(&files, None)?;
    let staging = job.staging(store, &spec.output, (&names, input_bytes), options)?;
    let paths = || names.iter().map(|name| staging.path_of(name));
    let outputs = paths().map(|path| OutputFile { path, bytes: 0 }).collect();
    let mut places = Places {
        runs: Vec::new(),
        output: staging.staged(),
        names: names.clone(),
        shape: SHAPE.kind(),
        unique: false,
        attempts: None,
    };
    let proof = match numbers {
        None => sort_in_memory(job, &plan, files, outputs, &places)?,
        Some(numbers) => {
            let spill = job.spill_places(store, &spec.spill_dir)?;
            places.runs = spill.folders().to_vec();
            if places.runs.is_empty() {
                places.runs.push(staging.spill_place()?);
            }
            job.check_room(store, &places.runs, input_bytes)?;
            let durable = job.durable(spec.no_sync);
            sort_by_runs(job, &plan, (files, outputs), numbers, &places, durable)?
        }
    };
    let success = proof.success(&environment.job_id, "terasort", &names, RECORD_BYTES as u64);
    job.begin_phase("commit");
    job.check_cancelled()?;
    fill_report(job, &plan, &proof);
    job.publishing(&staging.staged())?;
    staging.publish(&names, &success.to_bytes()?)
}

/// Sorts an input that fits: entries are scattered, records gathered from where they lie.
fn sort_in_memory(
    job: &mut Job<'_>,
    plan: &SortPlan,
    files: Vec<InputFile>,
    outputs: Vec<OutputFile>,
    places: &Places,
) -> Result<OutputProof> {
    let environment = job.environment;
    let store = &*environment.store;
    let proven = Arc::new(Mutex::new(OutputProof::new(plan.parts)));
    let tera_sort = TeraSort::new(plan.clone(), job.workers, outputs, Arc::clone(&proven));
    let arena = lay_out(store, &files)?;
    let context = TaskContext::new(environment.store.clone(), job.budget(), files, Some(arena));
    let arena_bytes = crate::record::arena::layout_bytes(&plan.file_bytes);
    let _memory = context
        .budget
        .reserve("input and entries", arena_bytes + entry_bytes(plan))?;
    let outcome = job.run_kept(Box::new(tera_sort), &context, places);
    finish(store, &context, outcome)?;
    job.report.count("SPILLED_RECORDS", 0);
    job.report.count("FILE_BYTES_READ", plan.input_bytes());
    job.report.count("FILE_BYTES_WRITTEN", plan.input_bytes());
    let mut proof = proven.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *proof))
}

/// Sorts an input that does not fit: sorted runs are spilled to their places, then merged.
fn sort_by_runs(
    job: &mut Job<'_>,
    plan: &SortPlan,
    (files, outputs): (Vec<InputFile>, Vec<OutputFile>),
    numbers: SpillNumbers,
    places: &Places,
    durable: bool,
) -> Result<OutputProof> {
    let environment = job.environment;
    let store = &*environment.store;
    let arena = Arena::reserve(&plan.file_bytes)?; // addresses only: nothing is read to there
    let mut context = TaskContext::new(environment.store.clone(), job.budget(), files, Some(arena));
    context.job_id.clone_from(&environment.job_id);
    context.durable = durable;
    let outcome = Arc::new(Mutex::new(RunOutcome::default()));
    let (buffer_bytes, needed) = (numbers.buffer_bytes, numbers.needed);
    let splits = plan.spill_splits(numbers.task_bytes(), job.workers);
    let run_sort = RunSort {
        store: environment.store.clone(),
        numbers,
        input_bytes: plan.input_bytes(),
        sample: Some(sample_stage(plan)),
        borders: borders_of(plan.clone()),
        run_plan: Arc::new(RunPlan {
            shape: SHAPE.kind(),
            unique: false,
            borders: Vec::new(),
            places: places.runs.clone(),
            buffer_bytes,
            needed,
        }),
        inputs: splits.into_iter().map(SpillInput::Pieces).collect(),
        targets: targets_of(plan.coarse(), job.workers, outputs),
        outcome: Arc::clone(&outcome),
        step: Step::default(),
    };
    let ended = job.run_kept(Box::new(run_sort), &context, places);
    finish(store, &context, ended)?;
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
                &RangeProof { check, checksum },
            )?;
        }
    }
    proof.check_against(outcome.records_read, outcome.checksum_read)?;
    Ok(proof)
}

/// Fails if the job did, or if the input is not what it was; says the latter rather than what followed from it.
fn finish(store: &dyn Store, context: &TaskContext, outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind() == Kind::Cancelled => Err(error),
        outcome => check_input(store, context).and(outcome),
    }
}

/// An output that is an input, or holds one, would lose it; one inside an input would become input of the next sort.
fn check_apart(spec: &TerasortSpec) -> Result<()> {
    let together = |input: &&PathBuf| lies_in(input, &spec.output) || lies_in(&spec.output, input);
    match spec.inputs.iter().find(together) {
        Some(input) => Err(Error::new(
            Kind::BadOption,
            "sort the input",
            "the output is the same as the input, or one holds the other",
        )
        .with("input", input.display())
        .with("output", spec.output.display())
        .advise("name another output")),
        None => Ok(()),
    }
}

/// Address space for the input: files that can be mapped are, others will be read.
fn lay_out(store: &dyn Store, files: &[InputFile]) -> Result<Arena> {
    let sizes: Vec<u64> = files.iter().map(|file| file.stat.bytes).collect();
    let mut arena = Arena::reserve(&sizes)?;
    for (number, InputFile { path, .. }) in files.iter().enumerate() {
        let file = store.open(path, Caching::Cached)?; // all of them can be read, or the job ends here
        if !file
            .descriptor()
            .is_some_and(|descriptor| arena.map(number, descriptor))
        {
            arena.make_writable(number)?;
        }
    }
    Ok(arena)
}

fn entry_bytes(plan: &SortPlan) -> u64 {
    plan.records() * size_of::<crate::order::packed::Packed>() as u64
}

/// Fails if the input is not what it was. Says so rather than what followed from it.
fn check_input(store: &dyn Store, context: &TaskContext) -> Result<()> {
    if let Some((file, offset)) = context.arena.as_ref().and_then(Arena::lost_at) {
        let message = "it became shorter, or its device failed, while the job read it";
        return Err(Error::new(Kind::InputChanged, "read the input", message)
            .with_path(&context.files[file].path)
            .with("offset", offset)
            .advise("let nobody write to the input, then run again"));
    }
    check_unchanged(store, &context.files)
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
    report.count("TOTAL_LAUNCHED_MAPS", plan.splits.len() as u64);
}

/// Which stage's reports come next.
enum MemoryStep {
    Begin,
    Sample,
    Map,
    Reduce {
        ranges_of: Vec<Vec<RangeSpec>>,
        records: u64,
        checksum: u128,
    },
}

/// The stages of the sort.
struct TeraSort {
    plan: SortPlan,
    outputs: Vec<OutputFile>,
    proof: Arc<Mutex<OutputProof>>,
    workers: usize,
    step: MemoryStep,
    cuts: Arc<CutPoints>,
}

impl TeraSort {
    fn new(
        plan: SortPlan,
        workers: usize,
        outputs: Vec<OutputFile>,
        proof: Arc<Mutex<OutputProof>>,
    ) -> Self {
        TeraSort {
            plan,
            outputs,
            proof,
            workers,
            step: MemoryStep::Begin,
            cuts: Arc::new(CutPoints::from_sample(Vec::new(), 1)),
        }
    }

    fn map(&mut self, reports: Vec<TaskReport>) -> Result<Stage> {
        self.cuts = Arc::new(cut_points(reports, self.plan.buckets())?);
        let record_bytes = self.plan.record_bytes;
        let task = |split: &Vec<_>| {
            TaskSpec::Map(MapSpec {
                split: split.clone(),
                record_bytes,
                cuts: Arc::clone(&self.cuts),
            })
        };
        let tasks = self.plan.splits.iter().map(task).collect();
        Ok(Stage {
            name: "map",
            bytes: self.plan.input_bytes(),
            tasks,
        })
    }

    /// The input side of the proof is complete here: every byte was consumed once.
    fn reduce(&mut self, reports: Vec<TaskReport>) -> Result<Stage> {
        let mut counts = vec![0_u64; self.plan.buckets()];
        let mut inputs = Vec::new();
        let (mut records, mut bytes, mut checksum) = (0, 0, 0_u128);
        for report in reports {
            let TaskReport::Map(MapReport {
                output,
                bytes: b,
                records: r,
                checksum: c,
                bucket_counts,
            }) = report
            else {
                return Err(wrong_report());
            };
            inputs.push(output);
            (bytes, records, checksum) = (bytes + b, records + r, checksum + c);
            counts
                .iter_mut()
                .zip(bucket_counts)
                .for_each(|(sum, more)| *sum += u64::from(more));
        }
        let in_buckets: u64 = counts.iter().sum();
        if bytes != self.plan.input_bytes() || in_buckets != records {
            let message = format!(
                "{bytes} of {} bytes were consumed, {in_buckets} of {records} records are in buckets",
                self.plan.input_bytes()
            );
            return Err(Error::new(Kind::Proof, "prove the input", message));
        }
        let ranges_of = self
            .plan
            .reduce_tasks(&counts, self.workers, &|part| self.outputs[part].clone());
        let inputs = Arc::new(inputs);
        let task = |ranges: &Vec<RangeSpec>| {
            TaskSpec::Reduce(ReduceSpec {
                ranges: ranges.clone(),
                inputs: Arc::clone(&inputs),
                cuts: Arc::clone(&self.cuts),
                record_bytes: self.plan.record_bytes,
                batch_records: self.plan.batch_records(),
            })
        };
        let tasks = ranges_of.iter().map(task).collect();
        self.step = MemoryStep::Reduce {
            ranges_of,
            records,
            checksum,
        };
        Ok(Stage {
            name: "reduce",
            bytes,
            tasks,
        })
    }

    /// The output side: order within and across parts, counts, checksum.
    fn prove(&self, reports: Vec<TaskReport>, ranges_of: &[Vec<RangeSpec>]) -> Result<()> {
        let mut proof = self.proof.lock().unwrap_or_else(PoisonError::into_inner);
        for (report, ranges) in reports.into_iter().zip(ranges_of) {
            let TaskReport::Reduce(proofs) = report else {
                return Err(wrong_report());
            };
            if proofs.len() != ranges.len() {
                return Err(wrong_report());
            }
            for (range, found) in ranges.iter().zip(&proofs) {
                proof.add(range.buckets.start / self.plan.buckets_per_part, found)?;
            }
        }
        Ok(())
    }
}

impl Plan for TeraSort {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        match std::mem::replace(&mut self.step, MemoryStep::Begin) {
            MemoryStep::Begin => {
                self.step = MemoryStep::Sample;
                Ok(Some(sample_stage(&self.plan)))
            }
            MemoryStep::Sample => {
                self.step = MemoryStep::Map;
                self.map(reports).map(Some)
            }
            MemoryStep::Map => self.reduce(reports).map(Some),
            MemoryStep::Reduce {
                ranges_of,
                records,
                checksum,
            } => {
                self.prove(reports, &ranges_of)?;
                let proof = self.proof.lock().unwrap_or_else(PoisonError::into_inner);
                proof.check_against(records, checksum)?;
                Ok(None)
            }
        }
    }
}

fn sample_stage(plan: &SortPlan) -> Stage {
    let record_bytes = plan.record_bytes;
    let task = |stretches| {
        TaskSpec::Sample(SampleSpec {
            stretches,
            record_bytes,
        })
    };
    Stage {
        name: "sample",
        bytes: 0,
        tasks: plan.sample().into_iter().map(task).collect(),
    }
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

fn wrong_report() -> Error {
    Error::bug("sort the input", "a report of another kind")
}
