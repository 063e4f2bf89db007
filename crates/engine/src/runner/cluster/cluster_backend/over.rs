//! How attempts end, and what that means: a task that is done, one that failed, a run that is gone, an agent that is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{ClusterBackend, RunningAttempt, take_back};
use crate::runner::attempts::AttemptOutcome;
use crate::runner::cluster::links::Agent;
use crate::runner::cluster::map_output_tracker::OutputComparison;
use crate::runner::cluster::messages::{AgentOrder, AttemptOver};
use crate::runner::messages::reply_of;
use crate::runner::running::{BackendEvent, FinishedAttempt};
use gristmill_base::error::{Error, Result};
use gristmill_storage::agents::run_of;
use gristmill_storage::run_name::RunName;
use gristmill_tasks::task::{AttemptId, TaskReport};

/// How many that read a run must say that it cannot be had before it is made again.
const COMPLAINTS: u32 = 2;

/// How often a task may be done again since its runs could not be had.
const REPEATS_MAX: u32 = 5;

impl ClusterBackend<'_> {
    pub(super) fn over(&mut self, number: u32, over: &AttemptOver) {
        self.progress(over.launch, number, over.bytes);
        let id = over.launch.id;
        let this = (number, over.launch.number);
        let is_running = self.running.get(&id);
        let is_running = is_running.filter(|launched| (launched.agent, launched.number) == this);
        if is_running.is_none() {
            return self.over_late(this, over);
        }
        let stops = is_running.is_some_and(|launched| launched.stops);
        let ended = match reply_of(&over.reply) {
            Ok((used, outcome)) => {
                let node = &self.context.node;
                node.budget.count_peak_of_other(used.peak_bytes);
                node.store.requests().add(used.requests);
                if outcome.is_ok() && !stops {
                    let took = Duration::from_micros(over.took_us);
                    self.depth.note(took);
                    self.stragglers.end(id, Some(took));
                }
                match outcome {
                    // What an attempt reads that was told to stop may have been given back: its error says nothing.
                    Err(_) if stops => AttemptOutcome::Failed(Error::cancelled()),
                    outcome => self.judged((id, number), outcome),
                }
            }
            Err(error) => AttemptOutcome::Failed(error),
        };
        self.end(id, ended);
    }

    /// An attempt that was written off has ended: its slot is free, and what it made is of no use.
    fn over_late(&mut self, (number, launch): (u32, u64), over: &AttemptOver) {
        if !self.links.has_stopped(number, launch) {
            return;
        }
        self.freed.push(number);
        self.tell_slots();
        if let (Ok((_, Ok(report))), Some(agent)) =
            (reply_of(&over.reply), self.links.agents.get(&number))
        {
            agent
                .link
                .order(AgentOrder::ReleaseSpace(report.discarded_outputs()));
        }
    }

    /// An attempt is over, however it ended.
    fn end(&mut self, id: AttemptId, ended: AttemptOutcome) {
        let Some(launched) = self.running.remove(&id) else {
            return;
        };
        self.links.update(launched.agent, |agent| {
            agent.running = agent.running.saturating_sub(1);
        });
        self.stragglers.end(id, None);
        self.freed.push(launched.agent);
        self.report(id, launched, ended);
    }

    /// Has the driver hear how an attempt ended.
    pub(super) fn report(
        &mut self,
        id: AttemptId,
        launched: RunningAttempt,
        ended: AttemptOutcome,
    ) {
        let RunningAttempt { spec, bytes, .. } = launched;
        self.links.nodes.count(|counts| match &ended {
            AttemptOutcome::Done(_) | AttemptOutcome::Differs(_) => {
                counts.shuffled += spec.segments_read() as u64;
            }
            AttemptOutcome::Lost(_) => {
                counts.lost_attempts += 1;
                counts.lost_bytes += bytes;
            }
            AttemptOutcome::Failed(_) => {}
        });
        if !matches!(ended, AttemptOutcome::Done(_) | AttemptOutcome::Differs(_)) {
            take_back(&self.context.done_bytes, bytes);
        }
        let over = FinishedAttempt {
            id,
            spec,
            ended,
            bytes,
        };
        self.backend_events
            .push_back(BackendEvent::Over(Box::new(over)));
    }

    /// What an outcome means for the job.
    fn judged(
        &mut self,
        (id, number): (AttemptId, u32),
        outcome: Result<TaskReport>,
    ) -> AttemptOutcome {
        match outcome {
            Ok(report) => {
                self.links.update(number, |agent| agent.failures = 0);
                if self.running.get(&id).is_none_or(|launched| launched.stops) {
                    return AttemptOutcome::Done(report);
                }
                match self.outputs.note((id.task, number), report.runs()) {
                    OutputComparison::Same(moved) => {
                        self.tell_moved(moved);
                        AttemptOutcome::Done(report)
                    }
                    OutputComparison::Differs => AttemptOutcome::Differs(report),
                }
            }
            Err(mut error) => {
                let kept = error.details.on_agent.take();
                match run_of(&error) {
                    Some(run) => self.complained(&run, error),
                    None => {
                        self.links.update(number, |agent| agent.failures += 1);
                        self.failed_on.insert(id.task, number);
                        let error = self.of_node(number, error);
                        AttemptOutcome::Failed(self.note_failed((id, number), error, kept))
                    }
                }
            }
        }
    }

    fn tell_moved(&mut self, moved: BTreeMap<RunName, RunName>) {
        if !moved.is_empty() {
            self.links.moved.extend(moved.clone());
            let lost = BTreeSet::new();
            self.links.tell_all(&AgentOrder::Changed { lost, moved });
        }
    }

    /// A task could not read a run: that is no fault of the task. What made the run is done again if others say so, too, or
    /// the run is damaged.
    fn complained(&mut self, run: &RunName, error: Error) -> AttemptOutcome {
        self.links.nodes.count(|counts| counts.failed_reads += 1);
        let Some(task) = self.outputs.task_of(&run.path()) else {
            return AttemptOutcome::Failed(error);
        };
        let run = self.links.now(run).clone();
        let complaints = self.complaints.entry(run).or_default();
        *complaints += 1;
        let is_gone = *complaints >= COMPLAINTS || error.is_of_own_work();
        // However many say so: it is made again once.
        if is_gone && self.outputs.lose(task) {
            let repeats = self.repeats.entry(task).or_default();
            *repeats += 1;
            if *repeats > REPEATS_MAX {
                return AttemptOutcome::Failed(
                    error.with("repeated tasks", *repeats).final_error(),
                );
            }
            self.links.nodes.count(|counts| counts.lost_outputs += 1);
            self.backend_events
                .push_back(BackendEvent::OutputLost { task });
        }
        AttemptOutcome::Lost(error.to_string())
    }

    /// An agent says that it cannot do what it is told: the job does without it, and the user hears why.
    pub(super) fn give_up(&mut self, number: u32, error: &Error) {
        let living = |agent: &&Agent| !agent.is_lost;
        let Some(agent) = self.links.agents.get(&number).filter(living) else {
            return;
        };
        let (node, link) = (agent.node.clone(), Arc::clone(&agent.link));
        let notice = format!("node {node} is given up: {error}");
        self.control.notice(notice);
        link.leave(AgentOrder::End { runs_stay: false });
        self.lose(number, &format!("cannot do what it is told: {error}"));
    }

    /// An agent is gone: it is, or does, this.
    pub(in super::super) fn lose(&mut self, number: u32, why: &str) {
        let living = |agent: &&Agent| !agent.is_lost;
        let Some(agent) = self.links.agents.get(&number).filter(living) else {
            return;
        };
        let why = format!("node {} {why}", agent.node);
        self.links.update(number, |agent| {
            agent.is_lost = true;
            agent.stuck.clear();
            agent.link.cut();
        });
        self.note_waits(number, &[]);
        self.links.last_lost.clone_from(&why);
        if let Some(agent) = self.links.agents.get(&number) {
            self.links.nodes.note(number as usize, agent.sample());
        }
        self.links.nodes.count(|counts| counts.lost_agents += 1);
        self.markers.remove(&number);
        self.tell_slots();
        let lost = BTreeSet::from([number]);
        let moved = BTreeMap::new();
        self.links.tell_all(&AgentOrder::Changed { lost, moved });
        for task in self.outputs.lose_agent(number) {
            self.links.nodes.count(|counts| counts.lost_outputs += 1);
            self.backend_events
                .push_back(BackendEvent::OutputLost { task });
        }
        let is_there = |(_, launched): &(&AttemptId, &RunningAttempt)| launched.agent == number;
        let there: Vec<AttemptId> = self
            .running
            .iter()
            .filter(is_there)
            .map(|(id, _)| *id)
            .collect();
        let is_last = self.links.living().next().is_none();
        for id in there {
            self.end(
                id,
                if is_last {
                    AttemptOutcome::Failed(self.changes.none_left(&why))
                } else {
                    AttemptOutcome::Lost(why.clone())
                },
            );
        }
    }
}
