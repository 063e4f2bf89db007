//! `terasort` of an input that fits: entries are scattered, records gathered from where they lie.
//!
//! Decision: docs/decisions/memory-or-runs.md.

use std::sync::{Arc, Mutex};

use super::stages::TeraSort;
use crate::error::Result;
use crate::jobs::steps::lay_out::lay_out;
use crate::jobs::steps::{Job, OutputLocations, lock};
use crate::jobs::success::OutputProof;
use crate::plan::sort::SortPlan;
use crate::storage::input::InputFile;
use crate::task::{InMemory, InProcess, Node, OutputFile, TaskContext};

/// Sorts an input that fits: entries are scattered, records gathered from where they lie.
pub(super) fn sort_in_memory(
    job: &mut Job<'_>,
    plan: &SortPlan,
    (files, outputs): (Vec<InputFile>, Vec<OutputFile>),
    places: &OutputLocations,
) -> Result<OutputProof> {
    let environment = job.environment;
    let store = &*environment.store;
    let proven = Arc::new(Mutex::new(OutputProof::new(plan.parts)));
    let tera_sort = TeraSort::new(plan.clone(), job.workers, outputs, Arc::clone(&proven));
    let arena = lay_out(store, &files)?;
    let node = Node::new(environment.store.clone(), job.budget());
    let process = InProcess::Memory(InMemory::new(arena));
    let context = TaskContext::new(job.shared(files), node, process);
    let arena_bytes = crate::record::arena::layout_bytes(&plan.file_bytes);
    let _memory = context
        .node
        .budget
        .reserve("input and entries", arena_bytes + entry_bytes(plan))?;
    job.run_kept(Box::new(tera_sort), &context, places)?;
    job.report.count("SPILLED_RECORDS", 0);
    job.report.count("FILE_BYTES_READ", plan.input_bytes());
    job.report.count("FILE_BYTES_WRITTEN", plan.input_bytes());
    Ok(std::mem::take(&mut *lock(&proven)))
}

fn entry_bytes(plan: &SortPlan) -> u64 {
    plan.records() * size_of::<crate::order::packed::Packed>() as u64
}
