//! Agents that join while a part of a job runs, and agents that are given no more tasks.
//!
//! ```text
//!   joins    ──▶ told of the others, of what is lost and what moved, and of the part that runs; then it is given tasks
//!   drained  ──▶ given nothing more; what runs there ends, and its runs are read as long as it lives
//! ```
//!
//! The rule that must hold: a worker has the memory that the plan gives each worker. So an agent whose machine has less
//! runs fewer tasks at once, or none.

use std::collections::BTreeSet;

use super::agent::Hello;
use super::changes::Change;
use super::cluster_backend::ClusterBackend;
use super::links::Links;
use super::messages::AgentOrder;
use super::shared_fs_check::Marker;
use crate::runner::running::BackendEvent;
use gristmill_base::error::{Error, Result};

impl ClusterBackend<'_> {
    /// Takes in what has changed.
    pub(super) fn take_changes(&mut self) {
        for change in self.changes.take() {
            match change {
                Change::Joined { number, hello } => {
                    if let Err(error) = self.join(number, &hello) {
                        self.lose(number, &format!("cannot join: {error}")); // the job does without it
                    }
                }
                Change::Drained { number } => {
                    self.links.update(number, |agent| agent.is_drained = true);
                    self.tell_slots();
                }
            }
        }
    }

    /// An agent joins: it is given tasks once it has begun.
    fn join(&mut self, number: u32, hello: &Hello) -> Result<()> {
        let free_bytes = hello.available_bytes.saturating_sub(hello.held_bytes);
        let workers = match free_bytes.checked_div(self.worker_bytes + self.runs_bytes) {
            Some(fitting) => hello.workers.min(fitting as usize),
            None => hello.workers,
        };
        if workers == 0 || self.links.agents.contains_key(&number) {
            return Ok(()); // whoever began it ends it with the job
        }
        self.links.join(number, hello, workers);
        let marker = Marker::of(&self.context.node.store, self.output.as_ref())?;
        let begin = self.begin_order(workers, marker.as_ref())?;
        self.markers.extend(marker.map(|marker| (number, marker)));
        self.links.update(number, |agent| {
            agent.link.order(begin);
            agent.told += 1;
        });
        Ok(())
    }

    /// An agent has begun with the part that runs, or says why it does not.
    pub(super) fn begun(&mut self, number: u32, begun: u64, refused: Option<Error>) {
        let waited = self
            .links
            .agents
            .get(&number)
            .is_some_and(|agent| agent.begun < agent.told);
        self.links.update(number, |agent| agent.begun = begun);
        if !waited
            || self
                .links
                .agents
                .get(&number)
                .is_some_and(|agent| agent.begun < agent.told)
        {
            return;
        }
        self.markers.remove(&number);
        match refused {
            // Its node does not see what the others see: the job does without it.
            Some(error) if self.has_begun => self.lose(number, &format!("cannot begin: {error}")),
            _ => self.tell_slots(),
        }
    }

    /// Tells the driver how many attempts may run at once from now on.
    pub(super) fn tell_slots(&mut self) {
        if self.has_begun {
            let slots = self.links.slots();
            self.backend_events.push_back(BackendEvent::Slots { slots });
            let attempts = self.links.ahead() * slots;
            self.backend_events
                .push_back(BackendEvent::Ahead { attempts });
        }
    }
}

impl Links {
    /// Begins to talk to an agent that joins; tells it of the others, and them of it.
    fn join(&mut self, number: u32, hello: &Hello, workers: usize) {
        self.add(number, hello, workers);
        let places = self.places.clone();
        let (lost, moved) = (self.lost(), self.moved.clone());
        self.update(number, |agent| {
            agent.link.order(AgentOrder::Agents(places));
            agent.link.order(AgentOrder::Changed { lost, moved });
        });
        let own = [(number, hello.place.clone())].into();
        self.tell_all(&AgentOrder::Agents(own));
    }

    /// The numbers of agents that are lost.
    fn lost(&self) -> BTreeSet<u32> {
        let lost = self.agents.iter().filter(|(_, agent)| agent.is_lost);
        lost.map(|(number, _)| *number).collect()
    }
}
