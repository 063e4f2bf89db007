//! What `explain` says of a job: its plan, from the same code that the job itself would follow.

use std::path::{Path, PathBuf};

use super::sort::{Sort, explain_sort};
use super::{Job, mapreduce, terasort};
use crate::error::{Error, Kind, Result};
use crate::plan::JobSpec;
use crate::plan::explain::{Explanation, PlannedDisk, PlannedMemory, PlannedStage};
use crate::plan::sort::{SortPlan, reduce_bytes};
use crate::plan::spill::SpillNumbers;
use crate::record::arena::layout_bytes;
use crate::storage::Store;
use crate::storage::local::parent_of;

/// Explains what a job would do. Looks at the input's names and sizes, and writes nothing.
pub(super) fn explain(job: &Job<'_>, spec: &JobSpec) -> Result<Explanation> {
    match spec {
        JobSpec::Terasort(spec) => terasort::explain(job, spec),
        JobSpec::Sort(spec) => explain_sort(job, spec),
        JobSpec::Mapreduce(spec) => mapreduce::explain(job, spec),
        JobSpec::Teragen(_) | JobSpec::Teravalidate(_) | JobSpec::Resume(_) => {
            let message = format!("{} has no plan to explain", spec.command());
            Err(Error::new(Kind::BadOption, "explain the job", message)
                .advise("explain sort or terasort"))
        }
    }
}

/// The plan of a terasort.
pub(super) fn of_terasort(
    job: &Job<'_>,
    plan: &SortPlan,
    numbers: Option<&SpillNumbers>,
    output: &Path,
    spill_dirs: &[PathBuf],
) -> Result<Explanation> {
    let bytes = plan.input_bytes();
    let mut explained = Explanation {
        command: "terasort",
        workers: job.workers,
        memory_bytes: job.memory_bytes,
        files: plan.file_bytes.len(),
        input_bytes: bytes,
        records: Some(plan.records()),
        parts: plan.parts,
        buckets: plan.buckets(),
        ..Explanation::default()
    };
    let needed = plan.memory_bytes(job.workers);
    let stage = |name, tasks: usize, reads, writes| PlannedStage {
        name,
        tasks: tasks as u64,
        reads,
        writes,
    };
    match numbers {
        None => {
            explained.mode = "memory";
            explained.reason =
                format!("sorted in memory it needs {needed} bytes, which the budget has");
            let arena = layout_bytes(&plan.file_bytes);
            let ranges = bytes.div_ceil(reduce_bytes(bytes, job.workers)).max(1);
            explained.reservations = vec![
                memory("input, mapped or read", arena),
                memory("entries, indexes, workers", needed.saturating_sub(arena)),
            ];
            explained.stages = vec![
                stage("sample", plan.sample().len(), 0, 0),
                stage("map", plan.splits.len(), bytes, 0),
                stage("reduce", ranges as usize, 0, bytes),
            ];
        }
        Some(numbers) => {
            explained.reason =
                format!("sorted in memory it needs {needed} bytes, more than the budget has");
            let tasks = plan.spill_splits(numbers.task_bytes(), job.workers).len();
            explained.buckets = plan.coarse().buckets();
            by_runs(&mut explained, numbers, tasks as u64, bytes);
            explained
                .stages
                .insert(0, stage("sample", plan.sample().len(), 0, 0));
        }
    }
    explained.disks = disks(
        job.store(),
        parent_of(output),
        spill_dirs,
        bytes,
        explained.mode == "runs",
    )?;
    Ok(explained)
}

/// The plan of a sort.
pub(super) fn of_sort<S: crate::record::shape::Shape>(
    job: &Job<'_>,
    sort: &Sort<'_, S>,
    files: usize,
    bytes: u64,
    tasks: u64,
) -> Result<Explanation> {
    let (spec, numbers) = (sort.spec, &sort.numbers);
    let mut explained = Explanation {
        command: "sort",
        workers: job.workers,
        memory_bytes: job.memory_bytes,
        files,
        input_bytes: bytes,
        parts: 1,
        buckets: sort.buckets,
        reason: if sort.fits {
            "all runs have room in the budget".to_owned()
        } else if sort.memory_runs > 0 {
            "the length of a stream is not known: runs go to memory first, then to disk".to_owned()
        } else {
            "the runs have no room in the budget".to_owned()
        },
        ..Explanation::default()
    };
    by_runs(&mut explained, numbers, tasks, bytes);
    if sort.fits {
        explained.mode = "memory";
        explained
            .reservations
            .push(memory("runs in memory", sort.memory_runs));
        for stage in &mut explained.stages {
            stage.reads = if stage.name == "spill" { bytes } else { 0 };
            stage.writes = if stage.name == "merge" { bytes } else { 0 };
        }
    }
    let here = Path::new(".");
    let output = spec.output.as_deref().map_or(here, parent_of);
    explained.disks = disks(job.store(), output, &spec.spill_dir, bytes, !sort.fits)?;
    Ok(explained)
}

/// The stages of a sort by runs, and their memory.
fn by_runs(explained: &mut Explanation, numbers: &SpillNumbers, tasks: u64, bytes: u64) {
    let workers = explained.workers as u64;
    explained.mode = "runs";
    explained.runs = numbers.runs(bytes).max(tasks);
    explained.fan_in = numbers.fan_in();
    explained.passes = numbers.passes(explained.runs as usize);
    let spill = crate::spill::spill_bytes(numbers.chunk_bytes, numbers.buffer_bytes);
    let merged = (explained.runs as usize).min(numbers.fan_in());
    let merge = crate::merge::merge_bytes(merged, numbers.source_bytes(&vec![0; merged]))
        + crate::storage::overlap::writer_bytes(numbers.buffer_bytes);
    explained.reservations = vec![
        memory("to spill: records, entries, buffers", workers * spill),
        memory("to merge: buffers of runs and output", workers * merge),
    ];
    let stage = |name, tasks, reads, writes| PlannedStage {
        name,
        tasks,
        reads,
        writes,
    };
    explained.stages.push(stage("spill", tasks, bytes, bytes));
    let mut runs = explained.runs as usize;
    for _ in 0..explained.passes {
        runs = runs.div_ceil(numbers.fan_in());
        explained
            .stages
            .push(stage("merge runs", runs as u64, bytes, bytes));
    }
    let each = reduce_bytes(bytes, explained.workers);
    let ranges = (explained.buckets as u64).min(bytes.div_ceil(each).max(1));
    explained.stages.push(stage("merge", ranges, bytes, bytes));
}

fn memory(name: &'static str, bytes: u64) -> PlannedMemory {
    PlannedMemory { name, bytes }
}

/// Disk space for output and runs. On one file system they share: what is merged is given back.
fn disks(
    store: &dyn Store,
    output: &Path,
    spill_dirs: &[PathBuf],
    bytes: u64,
    runs: bool,
) -> Result<Vec<PlannedDisk>> {
    let disk = |path: &Path, purpose, needs| {
        let free = match store.stat(path)? {
            Some(_) => store.free_bytes(path)?,
            None => None,
        };
        let path = path.display().to_string();
        Ok(PlannedDisk {
            path,
            purpose,
            needs,
            free,
        })
    };
    let output = if output.as_os_str().is_empty() {
        Path::new(".")
    } else {
        output
    };
    let mut disks = vec![disk(output, "output", bytes)?];
    if runs && spill_dirs.is_empty() {
        disks.push(disk(output, "runs, given back as the output grows", bytes)?);
    }
    for directory in spill_dirs.iter().filter(|_| runs) {
        disks.push(disk(directory, "runs", bytes)?);
    }
    Ok(disks)
}
