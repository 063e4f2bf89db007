//! The agents of a job as the place where its attempts run.
//!
//! ```text
//!   launch ──▶ an agent with room (placement.rs)
//!   next   ◀── an attempt is over │ an agent is silent: what it kept is lost, then what it ran
//!                                 │ a run cannot be had: after two that say so, what made it is done again
//!                                 │ tasks are short: more may be launched, which wait there (dispatch_depth.rs)
//! ```
//!
//! The rules that must hold: the driver hears that an output is lost before it hears of attempts that are lost with it, so that none
//! of them begins again before the output is there; and no agent is waited for longer than it may take to stop an attempt, or without
//! a word (`cluster_backend/waits.rs`).

mod failed;
mod over;
mod waits;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::changes::Changes;
use super::collector::OutputReceiver;
use super::dispatch_depth::DispatchDepth;
use super::inbox::AgentMessage;
use super::links::{Agent, Links, host_of};
use super::locality::InputLocality;
use super::map_output_tracker::MapOutputTracker;
use super::messages::{AgentOrder, Events, Launch};
use super::shared_fs_check::Marker;
use super::stragglers::Stragglers;
use crate::runner::running::{BackendEvent, ExecutionBackend};
use crate::runner::shared::JobSetup;
use crate::runner::{Control, RunnerHooks};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::location::Location;
use gristmill_storage::net::waiting::Awaited;
use gristmill_storage::run_name::RunName;
use gristmill_tasks::spill::SpilledRun;
use gristmill_tasks::task::wire::{self, Sender};
use gristmill_tasks::task::{AttemptId, ReleasedSpace, Side, TaskContext, TaskSpec};

/// Attempts that are launched after events that came together go to agents together, so many at most: the first is not to
/// wait for the last.
const LAUNCHED_TOGETHER: usize = 16;

/// Stragglers are looked for so often.
const LOOKS_APART: Duration = Duration::from_millis(500);

/// An attempt under way.
struct RunningAttempt {
    agent: u32,
    number: u64,
    spec: Arc<TaskSpec>,
    bytes: u64,
    /// Whether it was told to stop: what it makes all the same counts for nothing.
    stops: bool,
}

/// An attempt at which user code failed.
struct RemoteFailure {
    id: AttemptId,
    agent: u32,
    spec: Arc<TaskSpec>,
    /// What the agent said of it.
    kept: String,
}

/// The agents, while they run one part of a job.
pub(super) struct ClusterBackend<'a> {
    pub(super) links: &'a mut Links,
    pub(super) changes: &'a Changes,
    pub(super) context: &'a TaskContext,
    control: &'a Control,
    /// A name of a file of the output, which nodes are to see.
    pub(super) output: Option<Location>,
    /// Where files of the output come to, if they are collected.
    receiver: Option<OutputReceiver>,
    /// The memory of each worker, and what each adds to that of its node for runs.
    pub(super) worker_bytes: u64,
    pub(super) runs_bytes: u64,
    /// Whether the agents that there were at first have begun.
    pub(super) has_begun: bool,
    /// What agents that join look for.
    pub(super) markers: BTreeMap<u32, Marker<'a>>,
    running: BTreeMap<AttemptId, RunningAttempt>,
    /// Attempts that were told to stop, and when: the first was told first.
    stopping: VecDeque<(Instant, AttemptId)>,
    /// What agents wait for, by their numbers.
    awaited: BTreeMap<(u32, String), Awaited>,
    /// Agents that are still to be sent what was launched there, and how many attempts that is.
    unsent: (BTreeSet<u32>, usize),
    /// How long the tasks of the stage take.
    depth: DispatchDepth,
    /// Which attempts take too long, and when that was looked at last.
    stragglers: Stragglers,
    began: Instant,
    looked: Duration,
    outputs: MapOutputTracker,
    /// Where the last attempt at a task failed.
    failed_on: BTreeMap<u32, u32>,
    /// What user code failed at in the last attempt at a task.
    failed: BTreeMap<u32, RemoteFailure>,
    complaints: BTreeMap<RunName, u32>,
    repeats: BTreeMap<u32, u32>,
    /// The agents that keep most of the runs that were looked for last, by the task that reads these and the version of `outputs`.
    nearest: Option<(Arc<TaskSpec>, u64, Vec<u32>)>,
    /// Where the input of tasks is.
    inputs: InputLocality,
    /// Agents on which an attempt has ended since the driver last launched some; when a stage begins, each as often as it
    /// has slots that are free.
    freed: Vec<u32>,
    pub(super) backend_events: VecDeque<BackendEvent>,
}

impl<'a> ClusterBackend<'a> {
    /// Tells all agents what the tasks share, and hears that they can begin.
    ///
    /// # Errors
    /// Something of it cannot leave this process, or a node does not see the same files.
    pub(super) fn begin(
        links: &'a mut Links,
        (changes, context, planned): (&'a Changes, &'a TaskContext, usize),
        hooks: &RunnerHooks<'a, '_>,
    ) -> Result<Self> {
        let marker = Marker::of(&context.node.store, hooks.output.as_ref())?;
        let workers: usize = links.living().map(|agent| agent.workers).sum();
        let workers = workers.max(planned); // a job that is resumed may have fewer than it was planned for
        let budget = &context.node.budget;
        let free_bytes = budget.limit_bytes().saturating_sub(budget.used_bytes());
        let receiver = OutputReceiver::of(&context.node.store, hooks.output.as_ref(), links)?;
        let mut cluster = ClusterBackend {
            receiver,
            links,
            changes,
            context,
            control: hooks.control,
            output: hooks.output.clone(),
            worker_bytes: free_bytes / workers.max(1) as u64,
            runs_bytes: context.node.runs_bytes() / workers.max(1) as u64,
            has_begun: false,
            markers: BTreeMap::new(),
            running: BTreeMap::new(),
            stopping: VecDeque::new(),
            awaited: BTreeMap::new(),
            unsent: Default::default(),
            depth: DispatchDepth::default(),
            stragglers: Stragglers::default(),
            began: Instant::now(),
            looked: Duration::ZERO,
            outputs: MapOutputTracker::default(),
            failed_on: BTreeMap::new(),
            failed: BTreeMap::new(),
            complaints: BTreeMap::new(),
            repeats: BTreeMap::new(),
            nearest: None,
            inputs: InputLocality::default(),
            freed: Vec::new(),
            backend_events: VecDeque::new(),
        };
        let living = cluster
            .links
            .agents
            .iter()
            .filter(|(_, agent)| !agent.is_lost);
        let living: Vec<(u32, usize)> = living
            .map(|(number, agent)| (*number, agent.workers))
            .collect();
        // Functions with much data in them are there once, and not for each agent.
        let mut orders = BTreeMap::new();
        for (number, workers) in living {
            let begin = match orders.entry(workers) {
                Entry::Occupied(known) => AgentOrder::clone(known.get()),
                Entry::Vacant(new) => {
                    let begin = cluster.begin_order(workers, marker.as_ref())?;
                    new.insert(begin).clone()
                }
            };
            cluster.links.update(number, |agent| {
                agent.sender = Sender::default();
                agent.link.order(begin);
                agent.told += 1;
            });
            cluster.note_waits(number, &[]);
        }
        cluster.await_begun()?;
        cluster.has_begun = true;
        Ok(cluster)
    }

    /// The order to begin with the part that runs.
    pub(super) fn begin_order(
        &self,
        workers: usize,
        marker: Option<&Marker<'_>>,
    ) -> Result<AgentOrder> {
        let setup = JobSetup::of(self.context, self.worker_bytes * workers as u64)?;
        let setup = setup.holding_runs(self.runs_bytes * workers as u64);
        let setup = setup.collected_by(
            self.receiver
                .as_ref()
                .map(|receiver| receiver.collector.clone()),
        );
        let setup = Bytes::from(wire::to_bytes(&setup)?);
        let marker = marker.map(|marker| marker.upload.clone());
        Ok(AgentOrder::Begin { setup, marker })
    }

    /// An error of a machine, with the machine.
    fn of_node(&self, number: u32, error: Error) -> Error {
        match (error.kind(), self.links.agents.get(&number)) {
            (Kind::Io | Kind::NotFound | Kind::Permission | Kind::DiskFull, Some(agent)) => {
                error.with("node", agent.link.address())
            }
            _ => error,
        }
    }

    /// Looks which agents keep the runs that a task reads; the same list, which all reduces have, is looked at once.
    fn look_for_runs(&mut self, spec: &Arc<TaskSpec>) {
        let (runs, version) = (spec.reads(), self.outputs.version());
        let is_known = self.nearest.as_ref().is_some_and(|(before, looked, _)| {
            *looked == version && std::ptr::eq(before.reads(), runs) // they are kept: no others are there
        });
        if !is_known {
            self.nearest = Some((Arc::clone(spec), version, self.outputs.nearest(runs)));
        }
    }

    fn heard(&mut self, number: u32, heard: AgentMessage) {
        match heard {
            AgentMessage::Events(events) => self.events(number, *events),
            AgentMessage::Gone(why) => self.lose(number, &why),
        }
    }

    fn events(&mut self, number: u32, events: Events) {
        self.links.note_use(number, events.used, &events.reads);
        self.begun(number, events.begun, events.refused);
        self.note_waits(number, &events.waits);
        for (launch, bytes) in events.running {
            self.progress(launch, number, bytes);
        }
        for over in events.over {
            self.over(number, &over);
        }
        if let Some(error) = events.broken {
            self.give_up(number, &error);
        }
        self.tell_ahead();
    }

    /// Has agents sent what was launched there.
    fn send_launched(&mut self) {
        let (agents, _) = std::mem::take(&mut self.unsent);
        for agent in agents
            .iter()
            .filter_map(|number| self.links.agents.get(number))
        {
            agent.link.send_kept();
        }
    }

    /// Tells the driver how many attempts may wait from now on, if that has changed.
    fn tell_ahead(&mut self) {
        let ahead = self.depth.queued_per_slot();
        if ahead != self.links.ahead() {
            self.links.set_ahead(ahead);
            let attempts = ahead * self.links.slots();
            self.backend_events
                .push_back(BackendEvent::Ahead { attempts });
        }
    }

    /// Tells the driver, now and then, which tasks may have a second attempt: those that straggle, where another agent has room.
    fn tell_stragglers(&mut self) {
        let now = self.began.elapsed();
        if now - self.looked < LOOKS_APART {
            return;
        }
        self.looked = now;
        for id in self.stragglers.look(now) {
            let here = self.running.get(&id).map(|launched| launched.agent);
            if here.is_some_and(|agent| self.links.selector.has_room_beside(agent)) {
                let task = id.task;
                self.backend_events
                    .push_back(BackendEvent::Straggles { task });
            }
        }
    }

    /// The agent on which an attempt at a task runs that was not told to stop.
    fn agent_of(&self, task: u32) -> Option<u32> {
        let id = |attempt| AttemptId { task, attempt };
        let mut attempts = self.running.range(id(0)..=id(u32::MAX));
        let goes_on = attempts.find(|(_, launched)| !launched.stops);
        goes_on.map(|(_, launched)| launched.agent)
    }

    /// Takes in how many bytes an attempt has done.
    fn progress(&mut self, launch: Launch, number: u32, bytes: u64) {
        let done = &self.context.done_bytes;
        if let Some(launched) = self.running.get_mut(&launch.id)
            && (launched.agent, launched.number) == (number, launch.number)
        {
            done.fetch_add(bytes, Ordering::Relaxed);
            take_back(done, launched.bytes);
            launched.bytes = bytes;
            self.stragglers.note(launch.id, bytes);
        }
    }
}

/// Takes bytes out of what is done, which may have begun anew since they were added.
fn take_back(done: &AtomicU64, bytes: u64) {
    let less = |done: u64| Some(done.saturating_sub(bytes));
    let _ = done.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

impl ExecutionBackend for ClusterBackend<'_> {
    fn slots(&self) -> usize {
        self.links.slots()
    }

    fn nodes(&self) -> usize {
        self.links.alive()
    }

    fn launch(
        &mut self,
        id: AttemptId,
        spec: Arc<TaskSpec>,
        begins: &mut dyn FnMut(&TaskSpec, &str),
    ) -> Result<()> {
        let failed_on = self.failed_on.get(&id.task).copied();
        self.look_for_runs(&spec);
        self.await_one()?;
        let by_input = self.inputs.agents_of(id.task, &self.links.by_host);
        let by_runs = self.nearest.as_ref().map(|(_, _, near)| near);
        let near = by_input.as_ref().or(by_runs).map_or(&[][..], Vec::as_slice);
        let avoided = self.agent_of(id.task).or(failed_on);
        let choice = self.links.selector.pick(avoided, near);
        let drained = || self.links.living_numbers().next(); // there is no other
        let Some(number) = choice.or_else(drained) else {
            return Err(self.changes.none_left(&self.links.last_lost));
        };
        if let Some(near) = by_input.filter(|_| spec.side() == Some(Side::Map)) {
            let is_local = u64::from(near.contains(&number));
            self.links.nodes.count(|counts| {
                *counts.data_local.get_or_insert(0) += is_local;
            });
        }
        self.inputs.begin(id.task);
        self.links.launched += 1;
        let launch = Launch {
            id,
            number: self.links.launched,
        };
        if let Some(agent) = self.links.agents.get_mut(&number) {
            begins(&spec, &agent.node);
            let spec = Bytes::from(agent.sender.to_bytes(&*spec)?);
            agent.link.keep(AgentOrder::Run { launch, spec });
            self.unsent.0.insert(number);
            self.unsent.1 += 1;
        }
        self.links.update(number, |agent| agent.running += 1);
        self.stragglers.begin(id, &spec, self.began.elapsed());
        let launched = RunningAttempt {
            agent: number,
            number: launch.number,
            spec,
            bytes: 0,
            stops: false,
        };
        self.running.insert(id, launched);
        if self.unsent.1 >= LAUNCHED_TOGETHER {
            self.send_launched();
        }
        Ok(())
    }

    fn planned(&mut self, tasks: Vec<(u32, Arc<TaskSpec>)>) {
        let known = (&*self.context.node.store, &self.context.job);
        self.inputs.look(&tasks, known, &self.links.by_host);
        let living: Vec<u32> = self.links.living_numbers().collect();
        self.inputs.place_slices(&tasks, (&living, &self.outputs));
        self.freed.extend(self.links.free_slots());
    }

    fn wishes(&mut self) -> Vec<u32> {
        let (agents, inputs) = (&self.links.agents, &mut self.inputs);
        let freed = self.freed.drain(..);
        let freed = freed.filter_map(|number| Some((number, agents.get(&number)?)));
        let living = freed.filter(|(_, agent)| !agent.is_lost && !agent.is_drained);
        let wish =
            |(number, agent): (u32, &Agent)| inputs.next_for(number, host_of(agent.link.address()));
        living.filter_map(wish).collect()
    }

    fn begins_stage(&mut self) {
        self.depth = DispatchDepth::default();
        self.links.set_ahead(0);
        let of_stage = |event: &BackendEvent| matches!(event, BackendEvent::Ahead { .. });
        self.backend_events.retain(|event| !of_stage(event));
    }

    fn kept(&mut self, task: u32, runs: &[SpilledRun]) {
        self.outputs.keep(task, runs);
    }

    fn abort(&mut self, id: AttemptId) {
        let Some(launched) = self.running.get_mut(&id) else {
            return;
        };
        launched.stops = true;
        self.stragglers.end(id, None);
        self.stopping.push_back((Instant::now(), id));
        let number = launched.number;
        if let Some(agent) = self.links.agents.get(&launched.agent) {
            let launch = Launch { id, number };
            agent.link.order(AgentOrder::Stop { launch });
        }
    }

    fn release_space(&mut self, spent: Vec<ReleasedSpace>) -> Result<()> {
        let mut of_agents: BTreeMap<u32, Vec<ReleasedSpace>> = BTreeMap::new();
        for spent in spent {
            if let Some(run) = RunName::of(&spent.run) {
                let run = self.links.now(&run);
                let (agent, run) = (run.agent, run.path());
                let spent = ReleasedSpace { run, ..spent };
                self.outputs.spent(&spent);
                of_agents.entry(agent).or_default().push(spent);
            }
        }
        for (number, spent) in of_agents {
            let agent = self.links.agents.get(&number);
            if let Some(agent) = agent.filter(|agent| !agent.is_lost) {
                agent.link.order(AgentOrder::ReleaseSpace(spent));
            }
        }
        Ok(())
    }

    fn forget(&mut self, tasks: Vec<u32>) -> Result<()> {
        for (agent, runs) in tasks.into_iter().map(|task| self.outputs.forget(task)) {
            let spent = |run| ReleasedSpace { run, bytes: None };
            let spent: Vec<ReleasedSpace> = runs.into_iter().map(spent).collect();
            let agent = self.links.agents.get(&agent).filter(|agent| !agent.is_lost);
            if let Some(agent) = agent.filter(|_| !spent.is_empty()) {
                agent.link.order(AgentOrder::ReleaseSpace(spent));
            }
        }
        Ok(())
    }

    fn next(&mut self, longest: Duration) -> Option<BackendEvent> {
        self.take_changes();
        self.write_off();
        self.tell_stragglers();
        if self.backend_events.is_empty() {
            self.send_launched();
        }
        if self.backend_events.is_empty()
            && let Some((number, heard)) = self.links.inbox.next(longest)
        {
            self.heard(number, heard);
        }
        self.backend_events.pop_front()
    }
}
