//! What `explain` says of a sort.

use super::plan::Sort;
use crate::jobs::steps::RunningJob;
use crate::jobs::steps::explain::{OUTPUT, PlannedRuns, by_runs, memory, stage};
use crate::plan::disk::RunDisk;
use crate::plan::explain::Explanation;
use gristmill_base::error::{Result, show_bytes};
use gristmill_base::record::shape::Shape;

/// What is different of tasks with a stream.
const STREAMS_HERE: &str = "; tasks that read or write a stream run in the main process";

/// The plan of a sort.
pub(super) fn of_plan<S: Shape>(
    job: &RunningJob<'_>,
    sort: &Sort<'_, S>,
    files: usize,
    bytes: u64,
    streams: Vec<String>,
    (samples, tasks, disk): (u64, u64, RunDisk),
) -> Result<Explanation> {
    let (spec, memory_layout) = (sort.spec, &sort.memory_layout);
    let reason = sort_reason(job, sort, !streams.is_empty());
    let are_all = streams.is_empty() && sort.compressed == 0;
    let mut explained = Explanation {
        streams,
        parts: spec.parts.unwrap_or(1),
        buckets: sort.buckets,
        reason,
        ..job.explanation(files, bytes)
    };
    let merges = sort.merges(bytes);
    by_runs(
        job,
        &mut explained,
        memory_layout,
        (tasks, merges),
        (sort.grown, are_all),
    );
    if samples > 0 {
        explained.stages.insert(0, stage("sample", samples, 0, 0));
    }
    let runs = match sort.fits {
        true => PlannedRuns::None,
        false => PlannedRuns::Of(disk),
    };
    if sort.memory_runs > 0 && memory_layout.node_runs_bytes == 0 {
        explained
            .reservations
            .push(memory("runs in memory", sort.memory_runs));
    }
    for stage in &mut explained.stages {
        match stage.name {
            "spill" => stage.reads = Some(bytes),
            "merge" => stage.writes = Some(bytes),
            _ => {}
        }
    }
    if sort.fits {
        explained.mode = "memory";
        for stage in &mut explained.stages {
            stage.reads = Some(if stage.name == "spill" { bytes } else { 0 });
            stage.writes = Some(if stage.name == "merge" { bytes } else { 0 });
        }
    }
    explained.disks = job.disks(Some(bytes), runs)?;
    if !spec.writes_file() {
        explained.disks.retain(|disk| disk.purpose != OUTPUT); // a stream is on no disk
    }
    if sort.compressed > 0 {
        leave_unknown(&mut explained, sort.compressed);
    }
    Ok(job.with_process(explained))
}

/// What follows from the length of the input is not known where files are compressed: what they hold is longer.
fn leave_unknown(explained: &mut Explanation, compressed: usize) {
    explained.compressed = compressed;
    for stage in &mut explained.stages {
        stage.reads = stage.reads.filter(|_| stage.name == "spill");
        stage.writes = None;
    }
    for disk in &mut explained.disks {
        (disk.needs, disk.passes) = (None, None);
    }
}

/// Why a sort goes the way it does.
fn sort_reason<S: Shape>(job: &RunningJob<'_>, sort: &Sort<'_, S>, reads_stream: bool) -> String {
    if sort.fits {
        return "all runs have room in the budget".to_owned();
    }
    if !job.runner.shares_memory() {
        let writes_here = job.cluster().is_none() && !sort.spec.writes_file();
        let has_stream = reads_stream || writes_here;
        let here = if has_stream { STREAMS_HERE } else { "" };
        return format!("{}{here}", job.why_nothing_shared());
    }
    if sort.memory_runs > 0 {
        let what = if reads_stream {
            "the length of a stream is not known"
        } else {
            "how much compressed files hold is not known"
        };
        return format!("{what}: runs go to memory first, then to disk");
    }
    format!(
        "sorted runs of {} and the memory to sort them are more than the budget has",
        show_bytes(sort.grown)
    )
}
