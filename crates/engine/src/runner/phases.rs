//! What each phase of a job took and used: for the report and the history, which so say the same.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use super::nodes::Nodes;
use super::tree::{ResourceUsage, Tree};
use crate::history::Recorder;
use crate::history::event::{Event, PhaseUse};
use gristmill_base::sys::machine::{MachineCpu, machine_cpu};

/// What a phase took.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// Its tasks; 0 of a step that is not a stage of tasks.
    pub tasks: usize,
    /// Seconds from its beginning to its end.
    pub wall_s: f64,
    /// What was used meanwhile.
    #[serde(flatten)]
    pub used: PhaseUse,
}

/// Times phases one after another, and records the end of each.
#[derive(Debug)]
pub struct PhaseClock<'a> {
    tree: &'a Tree,
    recorder: &'a Recorder,
    phases: Vec<Phase>,
    current: Option<RunningPhase>,
    /// Where tasks run, if not in these processes.
    nodes: Option<Arc<Nodes>>,
}

/// The phase that runs.
#[derive(Debug)]
struct RunningPhase {
    name: &'static str,
    tasks: usize,
    slots: usize,
    began: Instant,
    used: ResourceUsage,
    machine: MachineCpu,
    user_code: bool,
    /// Attempts that run, since when, and the seconds of all attempts before that.
    running: usize,
    since: Instant,
    running_s: f64,
}

impl RunningPhase {
    fn count(&mut self, running: usize) {
        let now = Instant::now();
        self.running_s += self.running as f64 * now.duration_since(self.since).as_secs_f64();
        (self.running, self.since) = (running, now);
    }
}

impl<'a> PhaseClock<'a> {
    /// Before the first phase of a job with these processes.
    pub fn new(tree: &'a Tree, recorder: &'a Recorder) -> Self {
        PhaseClock {
            tree,
            recorder,
            phases: Vec::new(),
            current: None,
            nodes: None,
        }
    }

    /// From the next phase on, tasks run on these nodes: what is used there is the job's. The current one ends, as its
    /// figures are those of this machine.
    pub fn on_nodes(&mut self, nodes: Option<Arc<Nodes>>) {
        if nodes.is_some() {
            self.end();
        }
        self.nodes = nodes;
    }

    /// What the job has used so far, and the machines that its tasks run on.
    fn used(&self) -> (ResourceUsage, MachineCpu) {
        let used = self.tree.used();
        match &self.nodes {
            Some(nodes) => (used.with(nodes.used()), nodes.machines()),
            None => (used, machine_cpu()),
        }
    }

    /// Ends the phase before, and begins `name`, whose tasks run in so many slots.
    pub fn begin(&mut self, name: &'static str, tasks: usize, slots: usize) {
        self.end();
        let now = Instant::now();
        let (used, machine) = self.used();
        self.current = Some(RunningPhase {
            name,
            tasks,
            slots,
            began: now,
            used,
            machine,
            user_code: false,
            running: 0,
            since: now,
            running_s: 0.0,
        });
    }

    /// Whether this phase runs.
    pub fn is_in(&self, name: &str) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.name == name)
    }

    /// From now on so many attempts run.
    pub fn running(&mut self, attempts: usize) {
        if let Some(current) = &mut self.current {
            current.count(attempts);
        }
    }

    /// Tasks of the current phase run user code.
    pub fn runs_user_code(&mut self) {
        if let Some(current) = &mut self.current {
            current.user_code = true;
        }
    }

    /// Ends the current phase.
    pub fn end(&mut self) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        current.count(0);
        let (used, machine) = self.used();
        let is_spread = self.nodes.is_some() && current.tasks > 0;
        let processors = if is_spread {
            current.slots // an agent has as many as its node's CPUs, or fewer
        } else {
            available_parallelism().map_or(1, usize::from)
        };
        let used = since(&current, used, machine, processors);
        let wall_s = current.began.elapsed().as_secs_f64();
        self.recorder.record(Event::PhaseFinished {
            name: current.name.to_owned(),
            wall_s,
            used,
        });
        self.phases.push(Phase {
            name: current.name,
            tasks: current.tasks,
            wall_s,
            used,
        });
    }

    /// The phases that are over.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }
}

/// What was used since the phase began.
fn since(
    current: &RunningPhase,
    now: ResourceUsage,
    machine: MachineCpu,
    processors: usize,
) -> PhaseUse {
    let (before, machine_before) = (current.used, current.machine);
    PhaseUse {
        user_s: now.user_s - before.user_s,
        sys_s: now.sys_s - before.sys_s,
        own_s: now.own_s - before.own_s,
        read_bytes: now.read_bytes - before.read_bytes,
        write_bytes: now.write_bytes - before.write_bytes,
        machine: machine.since(machine_before),
        slots: current.slots,
        processors: current.slots.min(processors).max(1),
        running_s: current.running_s,
        user_code: current.user_code,
    }
}
