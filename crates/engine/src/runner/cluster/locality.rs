//! Which agents are near to tasks: those on nodes that hold blocks of their input, in HDFS, or most of the runs that they read.
//!
//! ```text
//!   tasks of a stage ── their pieces ──▶ name node: which nodes hold their blocks
//!                    ── a slice of a shuffle ──▶ the node of that slice
//!   a task begins    ──▶ on an agent of these nodes, if one has room             (placement.rs)
//!   an agent is free ──▶ a task whose input its node holds comes before others   (next_for); all are when a stage begins
//! ```
//!
//! A task waits for no agent: where none near has room, it runs on any. Tasks without such input are not known here.
//!
//! Decision: docs/decisions/agent-choice.md.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::map_output_tracker::MapOutputTracker;
use gristmill_storage::hdfs::BlockPlace;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::{JobShared, TaskSpec};

/// So many hosts of a task are kept at most; HDFS has three copies, if nobody says otherwise.
const HOSTS_MAX: usize = 10;

/// So many files are looked for at most, before a stage begins: each is a call to the name node, and slots wait. Tasks with
/// others run anywhere.
const FILES_MAX: usize = 20_000;

/// The agents, by the hosts that they are on.
pub(super) type AgentsByHost = BTreeMap<String, Vec<u32>>;

/// Where a task may belong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TaskPlace {
    /// A host, which may have several agents.
    Host(String),
    Agent(u32),
}

/// Where the input of tasks is.
#[derive(Debug, Default)]
pub(super) struct InputLocality {
    /// The numbers of places, and the places by them.
    numbers: BTreeMap<TaskPlace, u32>,
    places: Vec<TaskPlace>,
    /// The places of each task, the one with most bytes of it first.
    hosts: BTreeMap<u32, Box<[u32]>>,
    /// By place: its tasks, in order.
    waiting: Vec<VecDeque<u32>>,
    begun: BTreeSet<u32>,
}

impl InputLocality {
    /// Looks where the input of tasks is. Their numbers may have been those of others.
    pub(super) fn look(
        &mut self,
        tasks: &[(u32, Arc<TaskSpec>)],
        (stores, job): (&Stores, &JobShared),
        agents: &AgentsByHost,
    ) {
        for (task, _) in tasks {
            self.hosts.remove(task);
            self.begun.remove(task);
        }
        let has_blocks = |(file, _): &(Location, Range<u64>)| stores.has_blocks(file);
        let pieces = tasks.iter().filter_map(|(task, spec)| {
            let pieces: Vec<_> = spec
                .input_pieces(job)
                .into_iter()
                .filter(has_blocks)
                .collect();
            (!pieces.is_empty()).then_some((*task, pieces))
        });
        let pieces: Vec<_> = pieces.collect();
        let files = pieces.iter().flat_map(|(_, pieces)| pieces);
        let files: BTreeSet<&Location> = files.map(|(file, _)| file).collect();
        let files: Vec<Location> = files.into_iter().take(FILES_MAX).cloned().collect();
        if files.is_empty() {
            return;
        }
        let places = stores.block_places(&files);
        let places: BTreeMap<_, _> = files.iter().zip(&places).collect();
        for (task, pieces) in pieces {
            let mut blocks = Vec::new();
            for (file, range) in &pieces {
                let of_file = places
                    .get(file)
                    .into_iter()
                    .flat_map(|blocks| blocks.iter());
                blocks.extend(of_file.map(|block| (block, overlap(&block.range, range))));
            }
            blocks.retain(|(_, bytes)| *bytes > 0);
            self.plan(task, blocks.into_iter(), agents);
        }
    }

    /// Notes the blocks that a task reads, and how much of each.
    fn plan<'b>(
        &mut self,
        task: u32,
        blocks: impl Iterator<Item = (&'b BlockPlace, u64)>,
        agents: &AgentsByHost,
    ) {
        let mut bytes_of: BTreeMap<u32, u64> = BTreeMap::new();
        for (block, bytes) in blocks {
            for [address, name] in &block.hosts {
                // An agent says by which of them it is reached.
                let is_name = !agents.contains_key(address) && agents.contains_key(name);
                let host = TaskPlace::Host(if is_name { name } else { address }.clone());
                let host = self.number(host);
                *bytes_of.entry(host).or_default() += bytes;
            }
        }
        let mut hosts: Vec<(u64, u32)> = bytes_of
            .into_iter()
            .map(|(host, bytes)| (bytes, host))
            .collect();
        hosts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let most = hosts.first().map_or(0, |(bytes, _)| *bytes);
        hosts.retain(|(bytes, _)| *bytes * 2 >= most);
        hosts.truncate(HOSTS_MAX);
        if hosts.is_empty() {
            return;
        }
        for (_, host) in &hosts {
            if let Some(waiting) = self.waiting.get_mut(*host as usize) {
                waiting.push_back(task);
            }
        }
        self.hosts
            .insert(task, hosts.into_iter().map(|(_, host)| host).collect());
    }

    /// Places the tasks of a shuffle's slices: a merge where its slice belongs, and what reads its run with the agent that keeps
    /// most of what it reads, if one does.
    pub(super) fn place_slices(
        &mut self,
        tasks: &[(u32, Arc<TaskSpec>)],
        (living, outputs): (&[u32], &MapOutputTracker),
    ) {
        if living.len() < 2 {
            return;
        }
        let mut keeper: Option<(&Arc<TaskSpec>, Option<u32>)> = None;
        for (task, spec) in tasks {
            let agent = match (spec.home(), spec.reads(), keeper) {
                (Some(home), ..) => living.get(home as usize % living.len()).copied(),
                (None, [], _) => None,
                (None, runs, Some((before, agent))) if std::ptr::eq(before.reads(), runs) => agent,
                (None, runs, _) => {
                    let agent = outputs.keeper(runs);
                    keeper = Some((spec, agent));
                    agent
                }
            };
            agent.into_iter().for_each(|agent| self.place(*task, agent));
        }
    }

    /// Notes that a task belongs with this agent.
    fn place(&mut self, task: u32, agent: u32) {
        let number = self.number(TaskPlace::Agent(agent));
        if let Some(waiting) = self.waiting.get_mut(number as usize) {
            waiting.push_back(task);
        }
        self.hosts.insert(task, Box::from([number]));
    }

    fn number(&mut self, place: TaskPlace) -> u32 {
        if let Some(number) = self.numbers.get(&place) {
            return *number;
        }
        let number = self.places.len() as u32;
        self.numbers.insert(place.clone(), number);
        self.places.push(place);
        self.waiting.push(VecDeque::new());
        number
    }

    /// The agents that are near to a task, those with most of its input first; nothing where nobody knows.
    pub(super) fn agents_of(&self, task: u32, agents: &AgentsByHost) -> Option<Vec<u32>> {
        let hosts = self.hosts.get(&task)?.iter();
        let places = hosts.filter_map(|host| self.places.get(*host as usize));
        let near = places.filter_map(|place| match place {
            TaskPlace::Host(name) => agents.get(name).map(Vec::as_slice),
            TaskPlace::Agent(agent) => Some(std::slice::from_ref(agent)),
        });
        Some(near.flatten().copied().collect())
    }

    /// A task that has not begun, and belongs with this agent or whose input is on its host.
    pub(super) fn next_for(&mut self, agent: u32, host: &str) -> Option<u32> {
        let of_agent = self.next_at(&TaskPlace::Agent(agent));
        of_agent.or_else(|| self.next_at(&TaskPlace::Host(host.to_owned())))
    }

    fn next_at(&mut self, place: &TaskPlace) -> Option<u32> {
        let number = self.numbers.get(place)?;
        let waiting = self.waiting.get_mut(*number as usize)?;
        while let Some(task) = waiting.pop_front() {
            let hosts = self.hosts.get(&task).map_or(&[][..], |hosts| hosts);
            if !self.begun.contains(&task) && hosts.contains(number) {
                return Some(task);
            }
        }
        None
    }

    /// A task begins: it is not the next one for any host any more.
    pub(super) fn begin(&mut self, task: u32) {
        if self.hosts.contains_key(&task) {
            self.begun.insert(task);
        }
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    let (start, end) = (a.start.max(b.start), a.end.min(b.end));
    end.saturating_sub(start)
}

#[cfg(test)]
mod tests {
    use super::super::placement::{AgentSelector, Rank};
    use super::*;

    fn agents(count: u32) -> AgentsByHost {
        (0..count)
            .map(|agent| (format!("n{agent}"), vec![agent]))
            .collect()
    }

    fn block(range: Range<u64>, hosts: &[u64]) -> BlockPlace {
        let host = |host: &u64| [format!("10.0.0.{host}"), format!("n{host}")];
        BlockPlace {
            range,
            hosts: hosts.iter().map(host).collect(),
        }
    }

    #[test]
    fn hosts_with_most_of_a_tasks_input_come_first() {
        let (mut near, agents) = (InputLocality::default(), agents(5));
        let blocks = [
            block(0..100, &[3, 1]),
            block(100..160, &[3, 2]),
            block(160..170, &[4]),
        ];
        let sized = || {
            blocks
                .iter()
                .map(|block| (block, block.range.end - block.range.start))
        };
        near.plan(7, sized(), &agents);
        // n2 has 60 of 170 bytes, less than half of what n3 has, as n4.
        assert_eq!(near.agents_of(7, &agents), Some(vec![3, 1]));
        assert_eq!(near.agents_of(8, &agents), None);
        assert_eq!(near.next_for(1, "n1"), Some(7));
        near.begin(7);
        assert_eq!(
            (near.next_for(3, "n3"), near.next_for(9, "n9")),
            (None, None)
        );
        near.place(8, 4);
        near.place(9, 4);
        assert_eq!(near.agents_of(8, &agents), Some(vec![4]));
        assert_eq!(near.next_for(4, "n4"), Some(8));
        assert_eq!(near.next_for(3, "n4"), None, "another agent of that host");
        near.begin(8);
        assert_eq!(near.next_for(4, "n4"), Some(9));
        assert_eq!(overlap(&(0..10), &(5..7)), 2);
        assert_eq!(overlap(&(0..10), &(10..20)), 0);
    }

    /// Agents by address, which is what the name node says first.
    #[test]
    fn agents_are_known_by_address_or_by_name() {
        let mut near = InputLocality::default();
        let by_address = AgentsByHost::from([("10.0.0.1".to_owned(), vec![0, 1])]);
        near.plan(0, [(&block(0..1, &[1, 2]), 1)].into_iter(), &by_address);
        assert_eq!(near.agents_of(0, &by_address), Some(vec![0, 1]));
        assert_eq!(near.next_for(0, "10.0.0.1"), Some(0));
    }

    /// What part of the tasks runs where its input is: ten nodes of four slots, three copies of each block, tasks that
    /// take more or less time. With `asks`, a node that is free asks for what it holds.
    fn share_near(asks: bool) -> f64 {
        const TASKS: u32 = 2_000;
        let (mut near, agents) = (InputLocality::default(), agents(10));
        let drawn = |task: u32, what: u64| {
            crc32fast::hash(&[task.to_le_bytes(), (what as u32).to_le_bytes()].concat())
        };
        for task in 0..TASKS {
            let first = u64::from(drawn(task, 0));
            let hosts = [
                first % 10,
                (first / 10 + 1 + first) % 10,
                (first / 100 + 5) % 10,
            ];
            near.plan(task, [(&block(0..1, &hosts), 1)].into_iter(), &agents);
        }
        let (mut selector, mut loads) = (AgentSelector::default(), [0_usize; 10]);
        let rank = |load: usize| {
            Some(Rank {
                is_full: load >= 4,
                is_last: false,
                load: load * 250,
            })
        };
        (0..10).for_each(|agent| selector.note(agent, rank(0)));
        let mut ready: BTreeSet<u32> = (0..TASKS).collect();
        let mut ends: BTreeSet<(u64, u32, u32)> = BTreeSet::new();
        let (mut now, mut at_home) = (0, 0);
        while !ready.is_empty() {
            let mut wish = None;
            if ends.len() == 40
                && let Some((end, _, agent)) = ends.pop_first()
            {
                now = end;
                loads[agent as usize] -= 1;
                selector.note(agent, rank(loads[agent as usize]));
                wish = near.next_for(agent, &format!("n{agent}")).filter(|_| asks);
            }
            let wish = wish.filter(|task| ready.remove(task));
            let task = wish.or_else(|| ready.pop_first()).unwrap();
            near.begin(task);
            let preferred = near.agents_of(task, &agents).unwrap();
            let agent = selector.pick(None, &preferred).unwrap();
            at_home += u32::from(preferred.contains(&agent));
            loads[agent as usize] += 1;
            selector.note(agent, rank(loads[agent as usize]));
            ends.insert((now + 50 + u64::from(drawn(task, 1) % 100), task, agent));
        }
        f64::from(at_home) / f64::from(TASKS)
    }

    #[test]
    fn most_tasks_run_where_their_input_is() {
        let (asked, by_chance) = (share_near(true), share_near(false));
        assert!(asked > 0.9, "{asked}");
        assert!(by_chance < 0.6, "{by_chance}");
    }
}
