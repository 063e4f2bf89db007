//! What the driver waits for of agents, and how long: for none of them after the job is cancelled, and never without a word.
//!
//! ```text
//!   begins                  ── waits for all, says for which, looks at cancel
//!   an attempt is to stop   ── STOP_LIMIT ──▶ written off: lost for the driver; its slot is free when the agent says that it has ended
//!   an agent waits for FILE ── Control::waiting: "waiting 12 s for FILE on node 10.0.0.3"
//! ```

use std::time::Duration;

use super::ClusterBackend;
use crate::runner::attempts::AttemptOutcome;
use crate::runner::cluster::inbox::AgentMessage;
use crate::runner::cluster::links::Links;
use gristmill_base::error::{Error, Result};

/// Between two looks at whether the job is cancelled.
const TICK: Duration = Duration::from_millis(20);

/// How long an attempt may take to stop. An agent that lives answers within a second, and a little later on a slow link; with
/// what the end of the job takes (`links.rs`), no one who cancels a job waits longer than five seconds.
const STOP_LIMIT: Duration = Duration::from_secs(3);

impl ClusterBackend<'_> {
    /// Waits until all agents have begun.
    pub(super) fn await_begun(&mut self) -> Result<()> {
        let waits = |links: &Links| links.living().any(|agent| agent.begun < agent.told);
        while waits(self.links) {
            if let Some((number, heard)) = self.links.inbox.next(TICK) {
                if let AgentMessage::Events(events) = &heard
                    && let Some(error) = &events.refused
                {
                    return Err(self.of_node(number, error.clone()));
                }
                self.heard(number, heard);
            }
            self.check_cancelled()?;
        }
        match self.links.living().next() {
            Some(_) => Ok(()),
            None => Err(self.changes.none_left(&self.links.last_lost)),
        }
    }

    /// Waits for an agent that joins, if there is no other.
    pub(super) fn await_one(&mut self) -> Result<()> {
        let begins = |links: &Links| links.living().any(|agent| agent.begun < agent.told);
        while self.links.living_numbers().next().is_none() && begins(self.links) {
            if let Some((number, heard)) = self.links.inbox.next(TICK) {
                self.heard(number, heard);
            }
            self.check_cancelled()?;
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<()> {
        match self.control.is_cancelled() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    /// Notes what an agent waits for: these files, or to begin at all.
    pub(super) fn note_waits(&mut self, number: u32, files: &[String]) {
        let Some(agent) = self.links.agents.get(&number) else {
            return;
        };
        let node = &agent.node;
        let mut waits: Vec<String> = match agent.is_lost {
            true => Vec::new(),
            false => files
                .iter()
                .map(|file| format!("{file} on node {node}"))
                .collect(),
        };
        if waits.is_empty() && !agent.is_lost && agent.begun < agent.told {
            waits.push(format!("node {node} to begin"));
        }
        self.awaited
            .retain(|(of, what), _| *of != number || waits.contains(what));
        for what in waits {
            let begin = || self.control.waiting().begin(what.clone());
            self.awaited
                .entry((number, what.clone()))
                .or_insert_with(begin);
        }
    }

    /// Writes off attempts that were to stop and do not: the driver goes on without them.
    pub(super) fn write_off(&mut self) {
        while let Some((told, id)) = self.stopping.front().copied() {
            if told.elapsed() < STOP_LIMIT {
                return;
            }
            self.stopping.pop_front();
            let Some(launched) = self.running.remove(&id) else {
                continue;
            };
            let node = self.links.node(launched.agent);
            let what = format!("node {node} to stop task {}", id.task);
            let awaited = self.control.waiting().begin(what);
            self.links.update(launched.agent, |agent| {
                agent.stuck.insert(launched.number, awaited);
            });
            self.tell_slots();
            self.report(
                id,
                launched,
                AttemptOutcome::Lost(format!("node {node} did not stop it")),
            );
        }
    }
}
