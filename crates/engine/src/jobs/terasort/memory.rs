//! `terasort` of an input that fits: entries are scattered, records gathered from where they lie.
//!
//! Decision: docs/decisions/memory-or-runs.md.

use std::sync::{Arc, Mutex};

use super::stages::TeraSort;
use crate::jobs::steps::map_inputs::map_inputs;
use crate::jobs::steps::{OutputLocations, RunningJob};
use crate::jobs::success::OutputProof;
use crate::plan::sort::SortPlan;
use gristmill_base::error::Result;
use gristmill_base::sync::lock;
use gristmill_storage::input::InputFile;
use gristmill_tasks::task::{InMemory, InProcess, NodeContext, OutputFile, TaskContext};

/// Sorts an input that fits: entries are scattered, records gathered from where they lie.
pub(super) fn sort_in_memory(
    job: &mut RunningJob<'_>,
    plan: &SortPlan,
    (files, outputs): (Vec<InputFile>, Vec<OutputFile>),
    places: &OutputLocations,
) -> Result<OutputProof> {
    let environment = job.environment;
    let store = &*environment.store;
    let proven = Arc::new(Mutex::new(OutputProof::new(plan.parts)));
    let tera_sort = TeraSort {
        plan: plan.clone(),
        workers: job.workers,
        outputs,
        proof: Arc::clone(&proven),
    };
    let arena = map_inputs(store, &files)?;
    let node = NodeContext::new(environment.store.clone(), job.budget());
    let process = InProcess::Memory(InMemory::new(arena));
    let context = TaskContext::new(job.shared(files), node, process);
    let arena_bytes = gristmill_base::record::arena::layout_bytes(&plan.file_bytes);
    let _memory = context
        .node
        .budget
        .reserve("input and entries", arena_bytes + entry_bytes(plan))?;
    job.run_kept(tera_sort.plan(), &context, places)?;
    job.report.count("SPILLED_RECORDS", 0);
    job.report.count("FILE_BYTES_READ", plan.input_bytes());
    job.report.count("FILE_BYTES_WRITTEN", plan.input_bytes());
    Ok(std::mem::take(&mut *lock(&proven)))
}

fn entry_bytes(plan: &SortPlan) -> u64 {
    plan.records() * size_of::<gristmill_base::order::packed::Packed>() as u64
}
