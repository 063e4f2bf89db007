//! What `explain` says of a MapReduce job: its stages, its memory, and whether it spills runs.

use crate::jobs::steps::RunningJob;
use crate::jobs::steps::explain::{PlannedRuns, memory};
use crate::plan::explain::{Explanation, PlannedStage};
use crate::plan::mapreduce::{MapReduceSpec, OutputForm, UserCodeCommand};
use crate::plan::shuffle::PlannedShuffle;
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::{Result, show_bytes};

/// Explains the plan of a MapReduce job. How much user code puts out is unknown before it runs, so no stage says what it
/// writes. The first memory layout is that of tasks, the second that of merge passes.
pub(super) fn of_plan(
    job: &RunningJob<'_>,
    spec: &MapReduceSpec,
    (memory_layout, pass_layout): &(MemoryLayout, MemoryLayout),
) -> Result<Explanation> {
    let (bytes, splits) = (spec.input_bytes(), spec.splits.len());
    let partitions = spec.partitions as usize;
    let reduces = partitions > 0;
    let stage = |name, tasks, reads| PlannedStage {
        name,
        tasks,
        reads,
        writes: None,
    };
    let mut stages = vec![stage("map", splits as u64, Some(bytes))];
    if spec.regroups.is_some() {
        stages.push(stage("regroup", partitions as u64, None));
    }
    if reduces {
        stages.push(stage("reduce", partitions as u64, None));
    }
    let reason = match (reduces, spec.command) {
        (true, _) => "map tasks leave their pairs in runs",
        (false, UserCodeCommand::Native) => {
            "each map task holds the inputs but the first, which are small, and writes its rows in the order of the first"
        }
        (false, _) => "the files of the map tasks are the output",
    };
    let again = match &spec.regroups {
        Some(_) => format!(
            "; the order of the input takes a second crossing of all that is kept, up to {} of runs more, which the order of the \
             keys does not (--sorted)",
            show_bytes(bytes)
        ),
        None => String::new(),
    };
    let (parts, joined) = match spec.form {
        OutputForm::NamedFiles(_) => (0, ""),
        OutputForm::Directory => (if reduces { partitions } else { splits }, ""),
        OutputForm::File | OutputForm::Stream(_) => {
            (1, "; what the tasks write is put together at the end")
        }
    };
    let runs = match reduces {
        true => PlannedRuns::Unknown,
        false => PlannedRuns::None,
    };
    let pairs_bytes = memory_layout.chunk_bytes as u64 * job.workers as u64;
    let mut reservations = vec![memory("pairs and their entries", pairs_bytes)];
    let merge_bytes = pass_layout.merge_memory(usize::MAX) * job.workers as u64;
    if reduces && merge_bytes > pairs_bytes {
        reservations.push(memory(
            "more, should runs be merged in passes",
            merge_bytes - pairs_bytes,
        ));
    }
    let explained = Explanation {
        shuffles: shuffles_of(job, spec, pass_layout),
        mode: if reduces { "runs" } else { "maps" },
        reason: format!("{reason}{again}{joined}"),
        reservations,
        runs: (!reduces).then_some(0),
        parts,
        fan_in: memory_layout.fan_in(),
        passes: (!reduces).then_some(0),
        stages,
        disks: job.disks(None, runs)?,
        ..job.explanation(spec.files.len(), bytes)
    };
    Ok(match spec.command {
        UserCodeCommand::Mapreduce => explained, // tasks have processes of their own: what this one holds takes no room
        UserCodeCommand::Streaming | UserCodeCommand::Native => job.with_process(explained),
    })
}

/// The plans of the shuffle, as if user code put out as many bytes as it reads.
fn shuffles_of(
    job: &RunningJob<'_>,
    spec: &MapReduceSpec,
    memory_layout: &MemoryLayout,
) -> Vec<PlannedShuffle> {
    if spec.partitions == 0 {
        return Vec::new();
    }
    let bytes = spec.input_bytes();
    let runs = memory_layout.runs(bytes).max(spec.splits.len() as u64);
    let numbers = (bytes, runs, u64::from(spec.partitions));
    job.shuffle().alternatives(memory_layout, numbers)
}
