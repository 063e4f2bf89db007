//! What `explain` says of a terasort.

use super::{disk_of, merges_of};
use crate::jobs::steps::RunningJob;
use crate::jobs::steps::explain::{PlannedRuns, by_runs, memory, stage};
use crate::plan::explain::Explanation;
use crate::plan::sort::{SortPlan, reduce_bytes};
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::{Result, show_bytes};
use gristmill_base::record::arena::layout_bytes;

/// The plan of a terasort.
pub(super) fn of_plan(
    job: &RunningJob<'_>,
    plan: &SortPlan,
    memory_layout: Option<&MemoryLayout>,
) -> Result<Explanation> {
    let bytes = plan.input_bytes();
    let mut explained = Explanation {
        records: Some(plan.records()),
        parts: plan.parts,
        buckets: plan.buckets(),
        ..job.explanation(plan.file_bytes.len(), bytes)
    };
    let work_bytes = plan.memory_bytes(job.workers);
    let needed = job.room().held_bytes + work_bytes;
    let shown = show_bytes(needed);
    let mut runs = PlannedRuns::None;
    match memory_layout {
        None => {
            explained.mode = "memory";
            explained.reason = format!("sorted in memory it needs {shown}, which the budget has");
            let arena = layout_bytes(&plan.file_bytes);
            let ranges = bytes.div_ceil(reduce_bytes(bytes, job.workers)).max(1);
            explained.reservations = vec![
                memory("input, mapped or read", arena),
                memory(
                    "entries, indexes, workers",
                    work_bytes.saturating_sub(arena),
                ),
            ];
            explained.stages = vec![
                stage("sample", plan.sample().len() as u64, 0, 0),
                stage("map", plan.splits.len() as u64, bytes, 0),
                stage("reduce", ranges, 0, bytes),
            ];
        }
        Some(memory_layout) => {
            explained.reason = if needed <= job.memory_bytes {
                job.why_nothing_shared().to_owned()
            } else {
                format!("sorted in memory it needs {shown}, more than the budget has")
            };
            let tasks = plan
                .spill_splits(memory_layout.task_bytes_of(plan.input_bytes()), job.workers)
                .len();
            explained.buckets = plan.coarse().buckets();
            let tasks = (tasks as u64, merges_of(plan, job.workers));
            by_runs(job, &mut explained, memory_layout, tasks, (bytes, true));
            if memory_layout.node_runs_bytes == 0 {
                runs = PlannedRuns::Of(disk_of(job, plan, memory_layout));
            }
            explained
                .stages
                .insert(0, stage("sample", plan.sample().len() as u64, 0, 0));
        }
    }
    explained.disks = job.disks(Some(bytes), runs)?;
    Ok(job.with_process(explained))
}
