//! What `explain` says of a job of any kind: its plan, from the same code that the job itself would follow. What is
//! different of a kind stands in the kind's `explain.rs`.

use super::job::RunningJob;
use super::job_request::JobOutput;
use super::remote_inputs::{RemoteInput, planned_input, planned_output};
use crate::plan::disk::RunDisk;
use crate::plan::explain::{Explanation, PlannedDisk, PlannedMemory, PlannedStage, PlannedStore};
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::Result;
use gristmill_base::names::spell;
use gristmill_storage::location::Location;
use gristmill_storage::sorted_run::RunCompression;

/// What runs of a job go to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::jobs) enum PlannedRuns {
    /// None.
    None,
    /// Nobody knows how many: user code decides.
    Unknown,
    /// Runs that need so much.
    Of(RunDisk),
}

/// The purpose of the disk that the output goes to.
pub(in crate::jobs) const OUTPUT: &str = "output";

/// That of the disk where an output is made that is written in place.
const COMPLETE: &str = "the complete output, before it is written in place";

/// Why a job goes by runs whose tasks run in worker processes.
const NOTHING_SHARED: &str = "worker processes share no memory, so that sorted runs go to disk";

/// The same of agents of a cluster.
const NODES_SHARE_NOTHING: &str = "nodes share no memory, so that sorted runs go to their disks";

/// Why no run of a job on a cluster goes to a disk.
pub(super) const ROOM_ON_NODES: &str =
    "sorted runs stay in the memory of the nodes, which has room for them";

/// What has room for runs on a cluster, where nobody has looked.
const OF_NODES: &str = "spill directories of the nodes";

impl<'a> RunningJob<'a> {
    /// An explanation of a job with so many input files and bytes, as far as all kinds of jobs have one.
    pub(in crate::jobs) fn explanation(&self, files: usize, input_bytes: u64) -> Explanation {
        Explanation {
            command: self.report.command,
            runner: match self.cluster() {
                Some(_) => "agents",
                None => self.common.runner.name(),
            },
            nodes: self.cluster().map_or(0, |cluster| cluster.agents.len()),
            compress_runs: self.common.compress_runs.name(),
            workers: self.workers,
            memory_bytes: self.memory_bytes,
            files,
            input_bytes,
            runs: Some(0),
            passes: Some(0),
            ..Explanation::default()
        }
    }

    /// The rounds of a shuffle of so many bytes, in so many runs, which so many tasks merge at last.
    pub(in crate::jobs) fn rounds(
        &self,
        memory_layout: &MemoryLayout,
        numbers: (u64, u64, u64),
    ) -> usize {
        self.shuffle().fan_outs(memory_layout, numbers).len() - 1
    }

    /// The same with the stores of others that the job reads from, which are tried, and writes to.
    pub(in crate::jobs) fn with_stores(
        &self,
        mut explained: Explanation,
        inputs: &[RemoteInput],
    ) -> Result<Explanation> {
        let inputs = inputs
            .iter()
            .map(|remote| planned_input(self.store(), remote));
        let mut stores: Vec<PlannedStore> = inputs.collect::<Result<_>>()?;
        let output = self.asked.output.map(JobOutput::path);
        if let Some(output) = output.filter(|output| output.is_remote()) {
            stores.push(planned_output(self.store(), output, &explained));
        }
        explained.stores = stores;
        Ok(explained)
    }

    /// The same with what the process holds of the budget before the job's work begins.
    pub(in crate::jobs) fn with_process(&self, mut explained: Explanation) -> Explanation {
        let compression_bytes = self.compression_bytes();
        let apart = self.runner_bytes + compression_bytes;
        let own_bytes = self.room().held_bytes.saturating_sub(apart);
        let idle = match self.cluster() {
            Some(_) => "agents with nothing to do",
            None => "worker processes with nothing to do",
        };
        let held = [
            ("the program itself, and the names of files", own_bytes),
            (idle, self.runner_bytes),
            ("to compress runs, and to read them", compression_bytes),
        ];
        let held = held.into_iter().filter(|(_, bytes)| *bytes > 0);
        let held = held.map(|(name, bytes)| memory(name, bytes));
        explained.reservations.splice(0..0, held);
        explained
    }

    /// Why the job goes by runs, where its tasks share no memory.
    pub(in crate::jobs) fn why_nothing_shared(&self) -> &'static str {
        match self.cluster() {
            Some(_) => NODES_SHARE_NOTHING,
            None => NOTHING_SHARED,
        }
    }

    /// Disk space for output, and for runs if there are some. On one file system they share: what is merged is given back. How
    /// far runs shrink that are compressed is not known.
    pub(in crate::jobs) fn disks(
        &self,
        output_bytes: Option<u64>,
        runs: PlannedRuns,
    ) -> Result<Vec<PlannedDisk>> {
        let (store, spill_dirs) = (self.store(), &self.common.spill_dir);
        let compressed = self.common.compress_runs != RunCompression::None;
        let (has_runs, of_runs) = match runs {
            PlannedRuns::None => (false, None),
            PlannedRuns::Of(disk) if !compressed => (true, Some(disk)),
            PlannedRuns::Of(_) | PlannedRuns::Unknown => (true, None),
        };
        let disk = |place: &Location, purpose| {
            let free = match place.local() {
                Some(path) if store.stat(place)?.is_some() => store.disk().free_bytes(path)?,
                _ => None,
            };
            Ok(PlannedDisk {
                path: spell(place.as_typed()),
                purpose,
                needs: match purpose {
                    OUTPUT => output_bytes,
                    _ => of_runs.map(RunDisk::bytes),
                },
                passes: of_runs
                    .filter(|_| purpose != OUTPUT)
                    .map(|disk| disk.passes_bytes),
                free,
                notice: match place.local() {
                    Some(path) if purpose != OUTPUT => self.notice_of_runs(&**store.disk(), path),
                    _ => None,
                },
            })
        };
        let beside = |output: JobOutput<'a>| output.path().parent();
        let output = self.asked.output.and_then(beside);
        let output = output.unwrap_or_else(|| ".".into());
        let mut disks = vec![disk(&output, OUTPUT)?];
        if let (Some(notice), Some(planned)) = (self.notice_in_place()?, disks.first_mut()) {
            planned.notice = Some(notice);
            disks.push(disk(&self.place_in_place().into(), COMPLETE)?);
        }
        if self.cluster().is_some() {
            disks.extend(has_runs.then(|| PlannedDisk {
                path: OF_NODES.to_owned(),
                purpose: "runs",
                needs: of_runs.map(RunDisk::bytes),
                passes: of_runs.map(|disk| disk.passes_bytes),
                free: None,
                notice: None,
            }));
            return Ok(disks);
        }
        if has_runs && spill_dirs.is_empty() {
            // Runs of an output whose files appear one by one lie where the job was begun.
            let beside = if store.publisher(&output).is_some() {
                ".".into()
            } else {
                output
            };
            disks.push(disk(&beside, "runs, given back as the output grows")?);
        }
        for directory in spill_dirs.iter().filter(|_| has_runs) {
            disks.push(disk(&directory.as_path().into(), "runs")?);
        }
        Ok(disks)
    }
}

/// The stages of a sort by runs, whose last merge has about so many tasks, and their memory. How many runs there will be is
/// not known where `bytes` are not all.
pub(in crate::jobs) fn by_runs(
    job: &RunningJob<'_>,
    explained: &mut Explanation,
    memory_layout: &MemoryLayout,
    (tasks, merges): (u64, u64),
    (bytes, are_all): (u64, bool),
) {
    let workers = explained.workers as u64;
    explained.mode = "runs";
    explained.fan_in = memory_layout.fan_in();
    let runs = memory_layout.runs(bytes).max(tasks) as usize;
    let numbers = (bytes, runs as u64, merges);
    let shuffles = job.shuffle().alternatives(memory_layout, numbers);
    let chosen = shuffles.iter().find(|plan| plan.chosen && are_all);
    let passes = chosen.map_or_else(Vec::new, |plan| plan.merges.clone());
    explained.shuffles = if are_all { shuffles } else { Vec::new() };
    explained.runs = are_all.then_some(runs as u64);
    explained.passes = are_all.then_some(passes.len());
    let spill =
        gristmill_tasks::spill::spill_bytes(memory_layout.chunk_bytes, memory_layout.buffer_bytes);
    let most = if are_all { runs } else { usize::MAX };
    let merge = memory_layout.merge_memory(most);
    explained.reservations = vec![
        memory("to spill: records, entries, buffers", workers * spill),
        memory("to merge: buffers of runs and output", workers * merge),
    ];
    explained.stages.push(stage("spill", tasks, bytes, bytes));
    for tasks in passes {
        explained
            .stages
            .push(stage("merge runs", tasks, bytes, bytes));
    }
    explained.stages.push(stage("merge", merges, bytes, bytes));
    if memory_layout.node_runs_bytes > 0 {
        (explained.mode, explained.reason) = ("memory", ROOM_ON_NODES.to_owned());
        let of_runs = memory("runs in memory", memory_layout.node_runs_bytes);
        explained.reservations.push(of_runs);
        for stage in &mut explained.stages {
            stage.reads = stage.reads.filter(|_| stage.name != "merge").or(Some(0));
            stage.writes = stage.writes.filter(|_| stage.name != "spill").or(Some(0));
        }
    }
}

pub(in crate::jobs) fn stage(
    name: &'static str,
    tasks: u64,
    reads: u64,
    writes: u64,
) -> PlannedStage {
    PlannedStage {
        name,
        tasks,
        reads: Some(reads),
        writes: Some(writes),
    }
}

pub(in crate::jobs) fn memory(name: &'static str, bytes: u64) -> PlannedMemory {
    PlannedMemory { name, bytes }
}
