//! Whether runs stay in the memory of the nodes of a cluster: if all of them have room there, none goes to a disk.
//!
//! ```text
//!   memory of the job ─┬─ runs: twice their bytes, or a quarter more than those: a node may make more than its share
//!                      └─ workers: enough to merge all runs at once
//! ```
//!
//! The rule that must hold: both together are the budget, so that what has no room in a node's memory goes to its disk. A job
//! that is resumed plans the same again: only its memory, its workers and its input decide.
//!
//! Decision: docs/decisions/runs-in-node-memory.md.

use super::spill::MemoryLayout;
use gristmill_base::budget::JobMemory;
use gristmill_base::error::Result;

/// What is kept for runs, in quarters of their bytes: the first that leaves enough is taken.
const QUARTERS: [u64; 2] = [8, 5];

/// What each of so many runs takes beside its records: a header, an index, whole blocks.
const RUNS: u64 = 64;
const BESIDE_BYTES: u64 = 16 << 10;

/// The numbers of a job with an input of so many bytes, whose runs stay in the memory of nodes if they have room there beside
/// the workers; `plan` gives those of the workers with so much memory.
///
/// ```
/// use gristmill_base::budget::JobMemory;
/// use gristmill_engine::plan::{node_runs::layout_on_nodes, spill::MemoryLayout};
/// let layout = |memory: u64| {
///     let plan = |room: JobMemory| MemoryLayout::new(room, 4, 100, 100);
///     layout_on_nodes(JobMemory::from(memory), 1_000_000_000, plan)
/// };
/// assert!(layout(4_000_000_000)?.node_runs_bytes >= 2_000_000_000);
/// assert!(layout(1_600_000_000)?.node_runs_bytes < 1_400_000_000);
/// assert_eq!(layout(1_000_000_000)?.node_runs_bytes, 0);
/// # Ok::<(), gristmill_engine::Error>(())
/// ```
pub fn layout_on_nodes(
    room: JobMemory,
    input_bytes: u64,
    plan: impl Fn(JobMemory) -> Result<MemoryLayout>,
) -> Result<MemoryLayout> {
    let files_bytes = input_bytes + input_bytes / 1000 + RUNS * BESIDE_BYTES;
    for quarters in QUARTERS {
        let runs_bytes = files_bytes.saturating_mul(quarters) / 4;
        let Ok(layout) = plan(room.less(runs_bytes)) else {
            continue; // the workers have too little beside
        };
        let layout = layout.with_runs_on_nodes(runs_bytes);
        let tasks = input_bytes.div_ceil(layout.task_bytes_of(input_bytes).max(1));
        // A pass would need room for all runs a second time.
        if layout.passes((tasks + tasks / 8) as usize) == 0 {
            return Ok(layout);
        }
    }
    plan(room)
}
