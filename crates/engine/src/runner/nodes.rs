//! What the nodes of a cluster have used, as the runner hears of it, for who samples the job and counts at its end.
//!
//! ```text
//!   agents ──events──▶ place (runner/cluster) ──▶ Nodes ──▶ samples, twice a second     counters, at the end
//! ```

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::tree::ResourceUsage;
use crate::history::event::{NodeRead, NodeSample};
use gristmill_base::sync::lock;
use gristmill_base::sys::machine::MachineCpu;

/// Samples of one node are so far apart for each node that there is: 40 a second of all nodes, of 200 bytes each, are 30 MB
/// of history in an hour, however many nodes there are.
const APART: Duration = Duration::from_millis(25);

/// What a job did on a cluster, and what it lost there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterCounts {
    /// Segments of runs that tasks have merged or reduced.
    pub shuffled: u64,
    /// Reads of runs that failed for good, so that the task had to be done again.
    pub failed_reads: u64,
    /// Attempts at maps that ran on a node which holds their input; nothing where nobody knows where input is.
    pub data_local: Option<u64>,
    /// Agents that were lost.
    pub lost_agents: u64,
    /// Attempts that were lost with them, or with a run that they read.
    pub lost_attempts: u64,
    /// Bytes that these had worked on.
    pub lost_bytes: u64,
    /// Tasks that were over, whose output was lost.
    pub lost_outputs: u64,
}

/// The nodes of a job.
#[derive(Debug, Default)]
pub struct Nodes(Mutex<NodesState>);

#[derive(Debug, Default)]
struct NodesState {
    samples: Vec<NodeSample>,
    /// What each machine had used when it was first heard of, which may be in the middle of the job.
    machines_before: Vec<Option<MachineCpu>>,
    reads: Vec<Vec<NodeRead>>,
    counts: ClusterCounts,
    told: Option<Instant>,
}

impl Nodes {
    fn lock(&self) -> MutexGuard<'_, NodesState> {
        lock(&self.0)
    }

    /// Takes in what a node has used; nodes are numbered in the order in which they are heard of.
    ///
    /// ```
    /// use gristmill_engine::history::event::NodeSample;
    /// use gristmill_engine::runner::nodes::Nodes;
    /// let nodes = Nodes::default();
    /// nodes.note(1, NodeSample { node: "b".into(), user_s: 2.0, ..NodeSample::default() });
    /// nodes.note(0, NodeSample { node: "a".into(), user_s: 1.0, ..NodeSample::default() });
    /// assert_eq!(nodes.sample(true).len(), 2);
    /// assert!(nodes.sample(false).is_empty(), "so soon after the last");
    /// assert_eq!(nodes.used().user_s, 3.0);
    /// ```
    pub fn note(&self, number: usize, sample: NodeSample) {
        let mut state = self.lock();
        if state.samples.len() <= number {
            state.samples.resize_with(number + 1, NodeSample::default);
            state.machines_before.resize(number + 1, None);
        }
        if let Some(before @ None) = state.machines_before.get_mut(number) {
            *before = sample.machine;
        }
        if let Some(known) = state.samples.get_mut(number) {
            *known = sample;
        }
    }

    /// Takes in what a node has read of runs so far.
    pub fn note_reads(&self, number: usize, reads: Vec<NodeRead>) {
        let mut state = self.lock();
        if state.reads.len() <= number {
            state.reads.resize_with(number + 1, Vec::new);
        }
        if let Some(known) = state.reads.get_mut(number) {
            *known = reads;
        }
    }

    /// What the nodes have used, for a sample; nothing so soon after the last time that it would be too much, unless it
    /// `is_last`.
    pub fn sample(&self, is_last: bool) -> Vec<NodeSample> {
        let mut state = self.lock();
        let apart = APART * state.samples.len() as u32;
        if !is_last && state.told.is_some_and(|told| told.elapsed() < apart) {
            return Vec::new();
        }
        state.told = Some(Instant::now());
        state.samples.clone()
    }

    /// Which nodes have read runs of which.
    pub fn reads(&self) -> Vec<NodeRead> {
        self.lock().reads.concat()
    }

    /// What the job has used on all nodes.
    pub fn used(&self) -> ResourceUsage {
        let mut sum = ResourceUsage::default();
        for node in &self.lock().samples {
            sum.user_s += node.user_s;
            sum.sys_s += node.sys_s;
            sum.own_s += node.own_s;
            sum.read_bytes += node.disk_read_bytes;
            sum.write_bytes += node.disk_write_bytes;
        }
        sum
    }

    /// What their machines have used since they were first heard of.
    pub fn machines(&self) -> MachineCpu {
        let (mut sum, state) = (MachineCpu::default(), self.lock());
        for (node, before) in state.samples.iter().zip(&state.machines_before) {
            let (Some(now), Some(before)) = (node.machine, *before) else {
                continue;
            };
            let machine = now.since(before);
            sum.user_s += machine.user_s;
            sum.sys_s += machine.sys_s;
            sum.iowait_s += machine.iowait_s;
            sum.steal_s += machine.steal_s;
            sum.idle_s += machine.idle_s;
        }
        sum
    }

    /// Changes what is counted.
    pub fn count(&self, count: impl FnOnce(&mut ClusterCounts)) {
        count(&mut self.lock().counts);
    }

    /// What was counted, by the names of counters: Hadoop's where it has them. Of what was lost, only what was.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let state = self.lock();
        let sum = |of: fn(&NodeSample) -> u64| state.samples.iter().map(of).sum::<u64>();
        let received = sum(|node| node.received_bytes);
        let counts = state.counts;
        let lost = [
            ("LOST_AGENTS", counts.lost_agents),
            ("LOST_TASK_ATTEMPTS", counts.lost_attempts),
            ("LOST_TASK_ATTEMPT_BYTES", counts.lost_bytes),
            ("LOST_TASK_OUTPUTS", counts.lost_outputs),
        ];
        let mut counters = vec![
            ("SHUFFLED_MAPS", counts.shuffled),
            ("FAILED_SHUFFLE", counts.failed_reads),
            ("SHUFFLE_BYTES_SAME_NODE", sum(|node| node.own_bytes)),
            (
                "SHUFFLE_BYTES_OTHER_NODES",
                received + sum(|node| node.file_bytes),
            ),
            ("SHUFFLE_BYTES_RECEIVED", received),
        ];
        let local = counts.data_local;
        counters.extend(local.map(|local| ("DATA_LOCAL_MAPS", local)));
        counters.extend(lost.into_iter().filter(|(_, amount)| *amount > 0));
        counters
    }

    /// What the user is told of agents that were lost, if some were.
    ///
    /// ```
    /// use gristmill_engine::history::event::NodeSample;
    /// use gristmill_engine::runner::nodes::Nodes;
    /// let nodes = Nodes::default();
    /// (0..3).for_each(|number| nodes.note(number, NodeSample::default()));
    /// assert_eq!(nodes.loss(), None);
    /// nodes.count(|counts| counts.lost_agents += 1);
    /// nodes.count(|counts| counts.lost_attempts += 2);
    /// assert_eq!(nodes.loss().as_deref(), Some("1 of 3 agents was lost; 2 tasks were done again"));
    /// ```
    pub fn loss(&self) -> Option<String> {
        let state = self.lock();
        let counts = state.counts;
        let (agents, lost) = (state.samples.len(), counts.lost_agents);
        let were = if lost == 1 { "was" } else { "were" };
        let again = match counts.lost_attempts + counts.lost_outputs {
            0 => "no task had to be done again".to_owned(),
            1 => "1 task was done again".to_owned(),
            tasks => format!("{tasks} tasks were done again"),
        };
        (lost > 0).then(|| format!("{lost} of {agents} agents {were} lost; {again}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, received_bytes: u64) -> NodeSample {
        NodeSample {
            node: name.to_owned(),
            received_bytes,
            file_bytes: 3,
            own_bytes: 5,
            ..NodeSample::default()
        }
    }

    #[test]
    fn what_nodes_read_and_what_was_lost_is_counted() {
        let nodes = Nodes::default();
        nodes.note(1, node("b", 10));
        nodes.note(0, node("a", 1));
        nodes.note(1, node("b", 20));
        nodes.count(|counts| counts.lost_bytes += 7);
        let counters: std::collections::BTreeMap<_, _> = nodes.counters().into_iter().collect();
        assert_eq!(counters["SHUFFLE_BYTES_SAME_NODE"], 10);
        assert_eq!(counters["SHUFFLE_BYTES_RECEIVED"], 21);
        assert_eq!(counters["SHUFFLE_BYTES_OTHER_NODES"], 27);
        assert_eq!(counters["LOST_TASK_ATTEMPT_BYTES"], 7);
        assert!(!counters.contains_key("LOST_AGENTS"));
        assert!(!counters.contains_key("DATA_LOCAL_MAPS"));
        nodes.count(|counts| counts.data_local = Some(0));
        assert!(nodes.counters().contains(&("DATA_LOCAL_MAPS", 0)));
    }

    #[test]
    fn machines_are_counted_once_and_from_when_they_were_heard_of() {
        let nodes = Nodes::default();
        let machine = |idle_s| MachineCpu {
            idle_s,
            ..MachineCpu::default()
        };
        let says = |idle_s| NodeSample {
            machine: Some(machine(idle_s)),
            ..node("a", 0)
        };
        nodes.note(0, says(4.0));
        nodes.note(1, node("a (2)", 0));
        assert_eq!(nodes.machines(), machine(0.0));
        nodes.note(0, says(7.0));
        nodes.note(2, says(9_000.0)); // joins after a long life
        assert_eq!(nodes.machines(), machine(3.0));
    }
}
