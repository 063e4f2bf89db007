//! What `explain` says of a job of any kind: its plan, from the same code that the job itself would follow. What is
//! different of a kind stands in the kind's `explain.rs`.

use super::asked::Output;
use super::far::{far_names, planned_input, planned_output};
use super::job::Job;
use crate::commit::notice_of_runs;
use crate::error::Result;
use crate::names::spell;
use crate::plan::explain::{Explanation, PlannedDisk, PlannedMemory, PlannedStage, PlannedStore};
use crate::plan::sort::reduce_bytes;
use crate::plan::spill::MemoryLayout;
use crate::storage::location::Location;

const OUTPUT: &str = "output";

/// Why a job goes by runs whose tasks run in worker processes.
pub(in crate::jobs) const NOTHING_SHARED: &str =
    "worker processes share no memory, so that sorted runs go to disk";

impl<'a> Job<'a> {
    /// An explanation of a job with so many input files and bytes, as far as all kinds of jobs have one.
    pub(in crate::jobs) fn explanation(&self, files: usize, input_bytes: u64) -> Explanation {
        Explanation {
            command: self.report.command,
            runner: self.common.runner.name(),
            workers: self.workers,
            memory_bytes: self.memory_bytes,
            files,
            input_bytes,
            ..Explanation::default()
        }
    }

    /// Notes inputs of which only names and the sum of their bytes are known.
    pub(in crate::jobs) fn reads(&self, files: &[Location], bytes: u64) -> Result<()> {
        let found = far_names(self.store(), files, bytes)?;
        self.far.get_or_init(|| found);
        Ok(())
    }

    /// The stores of others that a job like `explained` reads from, which are tried, and writes to.
    pub(in crate::jobs) fn stores_of(&self, explained: &Explanation) -> Result<Vec<PlannedStore>> {
        let inputs = self.far.get().into_iter().flatten();
        let mut stores: Vec<_> = inputs
            .map(|far| planned_input(self.store(), far))
            .collect::<Result<_>>()?;
        let output = self.asked.output.map(Output::path);
        if let Some(output) = output.filter(|output| output.is_remote()) {
            stores.push(planned_output(self.store(), output, explained));
        }
        Ok(stores)
    }

    /// The same with what the process holds of the budget before the job's work begins.
    pub(in crate::jobs) fn with_process(&self, mut explained: Explanation) -> Explanation {
        let own_bytes = self.room().held_bytes.saturating_sub(self.runner_bytes);
        let held = [
            ("the program itself, and the names of files", own_bytes),
            ("worker processes with nothing to do", self.runner_bytes),
        ];
        let held = held.into_iter().filter(|(_, bytes)| *bytes > 0);
        let held = held.map(|(name, bytes)| memory(name, bytes));
        explained.reservations.splice(0..0, held);
        explained
    }

    /// Disk space for output and runs. On one file system they share: what is merged is given back.
    pub(in crate::jobs) fn disks(
        &self,
        needs: Option<u64>,
        runs: bool,
    ) -> Result<Vec<PlannedDisk>> {
        let (store, spill_dirs) = (self.store(), &self.common.spill_dir);
        let disk = |place: &Location, purpose| {
            let free = match place.local() {
                Some(path) if store.stat(place)?.is_some() => store.disk().free_bytes(path)?,
                _ => None,
            };
            Ok(PlannedDisk {
                path: spell(place.as_typed()),
                purpose,
                needs,
                free,
                notice: match place.local() {
                    Some(path) if purpose != OUTPUT => notice_of_runs(&**store.disk(), path),
                    _ => None,
                },
            })
        };
        let beside = |output: Output<'a>| output.path().parent();
        let output = self.asked.output.and_then(beside);
        let output = output.unwrap_or_else(|| ".".into());
        let mut disks = vec![disk(&output, OUTPUT)?];
        if runs && spill_dirs.is_empty() {
            // Runs of an output in an object store lie where the job was begun.
            let beside = if output.is_remote() {
                ".".into()
            } else {
                output
            };
            disks.push(disk(&beside, "runs, given back as the output grows")?);
        }
        for directory in spill_dirs.iter().filter(|_| runs) {
            disks.push(disk(&directory.as_path().into(), "runs")?);
        }
        Ok(disks)
    }
}

/// The stages of a sort by runs, and their memory.
pub(in crate::jobs) fn by_runs(
    explained: &mut Explanation,
    numbers: &MemoryLayout,
    tasks: u64,
    bytes: u64,
) {
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
