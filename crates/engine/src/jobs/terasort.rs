//! `terasort`: sorts 100-byte records by their first ten bytes, and proves the result.
//!
//! ```text
//!   sample ──cut points──▶ map ──bucket counts──▶ reduce ──proof──▶ commit
//! ```

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::success::OutputProof;
use super::{Job, lies_in};
use crate::commit::{CommitOptions, Staging};
use crate::driver::{Plan, Stage};
use crate::error::{Error, Kind, Result};
use crate::order::CutPoints;
use crate::plan::options::TerasortSpec;
use crate::plan::sort::{SortPlan, part_name};
use crate::record::RECORD_BYTES;
use crate::record::arena::Arena;
use crate::record::checksum::Hex;
use crate::split::{check_unchanged, check_whole_records, input_files};
use crate::storage::input::InputFile;
use crate::storage::{Caching, Store};
use crate::task::{
    MapReport, MapSpec, OutputFile, RangeSpec, ReduceSpec, SampleSpec, TaskContext, TaskReport,
    TaskSpec,
};

pub(super) fn run(job: &mut Job<'_>, spec: &TerasortSpec) -> Result<()> {
    let environment = job.environment;
    let store = &*environment.store;
    check_apart(spec)?;
    let files = input_files(store, &spec.inputs)?;
    check_whole_records(&files, RECORD_BYTES)?;
    let file_bytes = files.iter().map(|file| file.stat.bytes).collect();
    let plan = SortPlan::new(RECORD_BYTES, file_bytes, spec.partitions)?;
    plan.check_memory(job.memory_bytes, job.workers)?;

    let names: Vec<String> = (0..plan.parts).map(|part| part_name('r', part)).collect();
    let options = CommitOptions {
        overwrite: spec.overwrite,
        sync: !spec.no_sync,
    };
    let input_bytes = plan.input_bytes();
    let staging = Staging::begin(
        store,
        &spec.output,
        &environment.job_id,
        input_bytes,
        options,
    )?;
    let outputs = names.iter().map(|name| OutputFile {
        path: staging.path_of(name),
        bytes: 0,
    });
    let proven = Arc::new(Mutex::new(OutputProof::new(plan.parts)));
    let tera_sort = TeraSort::new(plan.clone(), outputs.collect(), Arc::clone(&proven));
    let arena = lay_out(store, &files)?;
    let context = TaskContext::new(environment.store.clone(), job.budget(), files, Some(arena));
    let arena_bytes = crate::record::arena::layout_bytes(&plan.file_bytes);
    let memory = context
        .budget
        .reserve("input and entries", arena_bytes + entry_bytes(&plan))?;
    let outcome = job.run_plan(Box::new(tera_sort), &context);
    match outcome {
        Err(error) if error.kind() == Kind::Cancelled => return Err(error),
        outcome => check_input(store, &context).and(outcome)?,
    }

    job.begin_phase("commit");
    job.check_cancelled()?;
    let proof = proven.lock().unwrap_or_else(PoisonError::into_inner);
    let success = proof.success(&environment.job_id, "terasort", &names, RECORD_BYTES as u64);
    staging.publish(&names, &success.to_bytes()?)?;
    fill_report(job, &plan, &proof);
    drop(memory);
    Ok(())
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
    report.count("SPILLED_RECORDS", 0);
    report.count("FILE_BYTES_READ", bytes);
    report.count("FILE_BYTES_WRITTEN", bytes);
    report.count("TOTAL_LAUNCHED_MAPS", plan.splits.len() as u64);
}

/// Which stage's reports come next.
enum Step {
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
    step: Step,
    cuts: Arc<CutPoints>,
}

impl TeraSort {
    fn new(plan: SortPlan, outputs: Vec<OutputFile>, proof: Arc<Mutex<OutputProof>>) -> Self {
        TeraSort {
            plan,
            outputs,
            proof,
            step: Step::Begin,
            cuts: Arc::new(CutPoints::from_sample(Vec::new(), 1)),
        }
    }

    fn sample(&self) -> Stage {
        let record_bytes = self.plan.record_bytes;
        let task = |stretches| {
            TaskSpec::Sample(SampleSpec {
                stretches,
                record_bytes,
            })
        };
        let tasks = self.plan.sample().into_iter().map(task).collect();
        Stage {
            name: "sample",
            bytes: 0,
            tasks,
        }
    }

    fn map(&mut self, reports: Vec<TaskReport>) -> Result<Stage> {
        let mut sample = Vec::new();
        for report in reports {
            match report {
                TaskReport::Sample(entries) => sample.extend(entries),
                _ => return Err(wrong_report()),
            }
        }
        self.cuts = Arc::new(CutPoints::from_sample(sample, self.plan.buckets()));
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
            .reduce_tasks(&counts, &|part| self.outputs[part].clone());
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
        self.step = Step::Reduce {
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
        match std::mem::replace(&mut self.step, Step::Begin) {
            Step::Begin => {
                self.step = Step::Sample;
                Ok(Some(self.sample()))
            }
            Step::Sample => {
                self.step = Step::Map;
                self.map(reports).map(Some)
            }
            Step::Map => self.reduce(reports).map(Some),
            Step::Reduce {
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

fn wrong_report() -> Error {
    Error::bug("sort the input", "a report of another kind")
}
