//! What an agent is to do on its disk because the driver says so, in turn (`agent_queue/at_disk.rs`).

use std::collections::VecDeque;
use std::sync::Arc;

use gristmill_base::error::Result;
use gristmill_tasks::task::{ReleasedSpace, TaskContext};

/// Something to do.
pub(super) enum Chore {
    /// Gives space back, of this part of the job.
    ReleaseSpace(Arc<Result<TaskContext>>, Vec<ReleasedSpace>),
    /// Tells the processes below what has changed of other agents.
    Show,
}

/// What is to do.
#[derive(Default)]
pub(super) struct Chores {
    waiting: VecDeque<Chore>,
    done: u64,
    /// Whether the first of those that are not done is under way.
    under_way: bool,
}

impl Chores {
    pub(super) fn add(&mut self, chore: Chore) {
        self.waiting.push_back(chore);
    }

    /// How many there were so far.
    pub(super) fn added(&self) -> u64 {
        self.done + u64::from(self.under_way) + self.waiting.len() as u64
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next one is under way, if there is one.
    pub(super) fn begin(&mut self) -> Option<Chore> {
        let chore = self.waiting.pop_front()?;
        self.under_way = true;
        Some(chore)
    }

    /// The one that is under way is done.
    pub(super) fn end(&mut self) {
        self.done += 1;
        self.under_way = false;
    }
}
