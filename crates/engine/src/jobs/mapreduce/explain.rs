//! What `explain` says of a MapReduce job.

use crate::error::Result;
use crate::jobs::steps::Job;
use crate::jobs::steps::explain::{PlannedRuns, memory};
use crate::plan::explain::{Explanation, PlannedStage};
use crate::plan::mapreduce::{Command, MapReduceSpec};
use crate::plan::spill::MemoryLayout;

/// The plan of a MapReduce job: how much its code puts out is not known beforehand.
pub(super) fn of_plan(
    job: &Job<'_>,
    spec: &MapReduceSpec,
    (numbers, of_passes): &(MemoryLayout, MemoryLayout),
) -> Result<Explanation> {
    let (bytes, splits) = (spec.input_bytes(), spec.splits.len());
    let partitions = spec.partitions as usize;
    let reduces = partitions > 0;
    let unknown = |name, tasks, reads| PlannedStage {
        name,
        tasks,
        reads,
        writes: None,
    };
    let mut stages = vec![unknown("map", splits as u64, Some(bytes))];
    if reduces {
        stages.push(unknown("reduce", partitions as u64, None));
    }
    let reason = if reduces {
        "map tasks leave their pairs in runs"
    } else {
        "the files of the map tasks are the output"
    };
    let runs = match reduces {
        true => PlannedRuns::Unknown,
        false => PlannedRuns::None,
    };
    let pairs_bytes = numbers.chunk_bytes as u64 * job.workers as u64;
    let mut reservations = vec![memory("pairs and their entries", pairs_bytes)];
    let merge_bytes = of_passes.merge_memory(usize::MAX) * job.workers as u64;
    if reduces && merge_bytes > pairs_bytes {
        reservations.push(memory(
            "more, should runs be merged in passes",
            merge_bytes - pairs_bytes,
        ));
    }
    let explained = Explanation {
        mode: if reduces { "runs" } else { "maps" },
        reason: reason.to_owned(),
        reservations,
        runs: (!reduces).then_some(0),
        parts: if reduces { partitions } else { splits },
        fan_in: numbers.fan_in(),
        passes: (!reduces).then_some(0),
        stages,
        disks: job.disks(None, runs)?,
        ..job.explanation(spec.files.len(), bytes)
    };
    Ok(match spec.command {
        Command::Mapreduce => explained, // worker processes have the budget
        Command::Streaming | Command::Native => job.with_process(explained),
    })
}
