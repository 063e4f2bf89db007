//! The agents of a job, as the driver knows them over all that the job runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Cluster;
use super::agent::Hello;
use super::found::NOBODY;
use super::inbox::Inbox;
use super::link::{Link, SILENCE};
use super::locality::AgentsByHost;
use super::messages::{AgentOrder, AgentUse, READS_MAX};
use super::placement::{AgentSelector, Rank};
use crate::history::event::{NodeRead, NodeSample};
use crate::runner::nodes::Nodes;
use gristmill_storage::agents::{AgentPlace, Agents, ReadOf, agent_transport};
use gristmill_storage::net::http_client::{HttpClient, TransportPolicy};
use gristmill_storage::net::waiting::Awaited;
use gristmill_storage::run_name::RunName;
use gristmill_tasks::task::wire::Sender;

/// How long the end of a job waits for agents to hear of it.
const FAREWELL: Duration = Duration::from_secs(2);

/// Failures in a row that make an agent the last choice.
const FAILURES: u32 = 3;

/// An agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) link: Arc<Link>,
    /// What its node is called in the history.
    pub(super) node: String,
    /// Whether it is the first agent on its host, which says what the machine uses.
    pub(super) is_first: bool,
    pub(super) workers: usize,
    /// What runs there, or waits there.
    pub(super) running: usize,
    /// Of these, by their numbers, those that were to stop and did not: their slots are not free until they have.
    pub(super) stuck: BTreeMap<u64, Awaited>,
    /// What it has been sent of what specs share.
    pub(super) sender: Sender,
    pub(super) is_lost: bool,
    /// It is given no more tasks.
    pub(super) is_drained: bool,
    pub(super) failures: u32,
    pub(super) used: AgentUse,
    /// How many parts of the job it was told of, and has begun with.
    pub(super) told: u64,
    pub(super) begun: u64,
}

impl Agent {
    /// What it has used, as samples say it.
    pub(super) fn sample(&self) -> NodeSample {
        let used = self.used;
        NodeSample {
            node: self.node.clone(),
            user_s: used.user_s,
            sys_s: used.sys_s,
            own_s: used.own_s,
            machine: self.is_first.then_some(used.machine),
            anon_bytes: used.anonymous_bytes,
            disk_read_bytes: used.read_bytes,
            disk_write_bytes: used.write_bytes,
            own_bytes: used.own_bytes,
            sent_bytes: used.sent_bytes,
            received_bytes: used.received_bytes,
            file_bytes: used.file_bytes,
            is_lost: self.is_lost,
        }
    }

    /// Whether it may be given tasks.
    fn is_schedulable(&self) -> bool {
        !self.is_lost && !self.is_drained && self.begun == self.told
    }

    /// How good a choice it is, where so many attempts may wait for each slot.
    fn rank(&self, ahead: usize) -> Rank {
        let load = self.running * 1000 / self.workers;
        Rank {
            is_full: self.running >= self.workers * (1 + ahead),
            is_last: self.failures >= FAILURES,
            load,
        }
    }
}

/// What the node of an agent at this address is called, and whether it is the first on its host: the host; after others
/// there also a number.
fn node_name<'a>(before: impl Iterator<Item = &'a str>, address: &str) -> (String, bool) {
    let host = host_of(address);
    match before.filter(|other| host_of(other) == host).count() {
        0 => (host.to_owned(), true),
        others => (format!("{host} ({})", others + 1), false),
    }
}

/// The host of `HOST:PORT`.
pub(super) fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']'])
}

/// What lasts as long as the job, over all that it runs.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) agents: BTreeMap<u32, Agent>,
    pub(super) selector: AgentSelector,
    /// The agents on each host.
    pub(super) by_host: AgentsByHost,
    /// How many agents live, and the memory that they have together.
    alive: usize,
    anonymous_bytes: u64,
    /// How many attempts wait for each slot beside what runs there.
    ahead: usize,
    /// Where all agents are, and were.
    pub(super) places: BTreeMap<u32, AgentPlace>,
    pub(super) token: String,
    client: Arc<HttpClient>,
    policy: TransportPolicy,
    pub(super) inbox: Arc<Inbox>,
    /// How many attempts were launched.
    pub(super) launched: u64,
    /// What became of the last agent that was lost.
    pub(super) last_lost: String,
    /// Runs that were made again.
    pub(super) moved: BTreeMap<RunName, RunName>,
    pub(super) peak_bytes: u64,
    pub(super) nodes: Arc<Nodes>,
}

impl Links {
    /// Begins to talk to all agents.
    pub(super) fn begin(cluster: &Cluster, nodes: &Arc<Nodes>) -> Self {
        let mut links = Links {
            agents: BTreeMap::new(),
            selector: AgentSelector::default(),
            by_host: AgentsByHost::new(),
            alive: 0,
            anonymous_bytes: 0,
            ahead: 0,
            places: BTreeMap::new(),
            token: cluster.token.clone(),
            client: Arc::new(HttpClient::with_limits(SILENCE, SILENCE, None)),
            policy: agent_transport(cluster.authorities.clone()),
            inbox: Arc::default(),
            launched: 0,
            last_lost: "it was lost before".to_owned(),
            moved: BTreeMap::new(),
            peak_bytes: 0,
            nodes: Arc::clone(nodes),
        };
        for (number, hello) in (0..).zip(&cluster.agents) {
            links.add(number, hello, hello.workers.max(1));
        }
        links.tell_all(&AgentOrder::Agents(links.places.clone()));
        links
    }

    /// Begins to talk to an agent.
    pub(super) fn add(&mut self, number: u32, hello: &Hello, workers: usize) {
        let before = self.agents.values().map(|agent| agent.link.address());
        let (node, is_first) = node_name(before, &hello.place.address);
        let reached = (&hello.place, self.token.as_str());
        let agent = Agent {
            link: Link::begin(number, reached, (&self.client, &self.policy), &self.inbox),
            node,
            is_first,
            workers,
            running: 0,
            stuck: BTreeMap::new(),
            sender: Sender::default(),
            is_lost: false,
            is_drained: false,
            failures: 0,
            used: AgentUse::default(),
            told: 0,
            begun: 0,
        };
        let host = host_of(&hello.place.address).to_owned();
        self.by_host.entry(host).or_default().push(number);
        self.places.insert(number, hello.place.clone());
        self.agents.insert(number, agent);
        self.alive += 1;
        self.update(number, |_| ());
    }

    /// Changes what is known of an agent, and so how good a choice it is.
    pub(super) fn update(&mut self, number: u32, change: impl FnOnce(&mut Agent)) {
        if let Some(agent) = self.agents.get_mut(&number) {
            let was_lost = agent.is_lost;
            change(agent);
            if agent.is_lost && !was_lost {
                self.alive -= 1;
                self.anonymous_bytes -= agent.used.anonymous_bytes;
            }
            let rank = agent.is_schedulable().then(|| agent.rank(self.ahead));
            self.selector.note(number, rank);
        }
    }

    /// From now on so many attempts wait for each slot.
    pub(super) fn set_ahead(&mut self, ahead: usize) {
        if std::mem::replace(&mut self.ahead, ahead) != ahead {
            let all: Vec<u32> = self.agents.keys().copied().collect();
            all.into_iter()
                .for_each(|number| self.update(number, |_| ()));
        }
    }

    /// How many attempts wait for each slot.
    pub(super) fn ahead(&self) -> usize {
        self.ahead
    }

    /// How many attempts may run at once.
    pub(super) fn slots(&self) -> usize {
        let taking = self.agents.values().filter(|agent| agent.is_schedulable());
        let slots = |agent: &Agent| agent.workers.saturating_sub(agent.stuck.len());
        taking.map(slots).sum()
    }

    /// The agents with slots that are free, each as often as it has some: in turns.
    pub(super) fn free_slots(&self) -> impl Iterator<Item = u32> {
        let free = |agent: &Agent| agent.workers.saturating_sub(agent.running);
        let taking = self
            .agents
            .iter()
            .filter(|(_, agent)| agent.is_schedulable());
        let free: Vec<(u32, usize)> = taking
            .map(|(number, agent)| (*number, free(agent)))
            .collect();
        let most = free.iter().map(|(_, slots)| *slots).max().unwrap_or(0);
        (0..most).flat_map(move |turn| {
            let in_turn = free
                .clone()
                .into_iter()
                .filter(move |(_, slots)| turn < *slots);
            in_turn.map(|(number, _)| number)
        })
    }

    /// An attempt has stopped at last, if it is one that was not waited for any more.
    pub(super) fn has_stopped(&mut self, number: u32, launch: u64) -> bool {
        let mut was_stuck = false;
        self.update(number, |agent| {
            was_stuck = agent.stuck.remove(&launch).is_some();
            agent.running = agent.running.saturating_sub(usize::from(was_stuck));
        });
        was_stuck
    }

    /// Tells all agents that the job is over, or that another driver may resume it.
    pub(super) fn end(&mut self, runs_stay: bool) {
        let living: Vec<&Agent> = self.living().collect();
        let order = AgentOrder::End { runs_stay };
        living
            .iter()
            .for_each(|agent| agent.link.order(order.clone()));
        let began = Instant::now();
        for agent in living {
            agent.link.flush(FAREWELL.saturating_sub(began.elapsed()));
            agent.link.cut();
        }
    }

    /// How many live.
    pub(super) fn alive(&self) -> usize {
        self.alive
    }

    pub(super) fn living(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| !agent.is_lost)
    }

    /// The numbers of those that live and have begun.
    pub(super) fn living_numbers(&self) -> impl Iterator<Item = u32> {
        let living = self
            .agents
            .iter()
            .filter(|(_, agent)| !agent.is_lost && agent.begun == agent.told);
        living.map(|(number, _)| *number)
    }

    pub(super) fn tell_all(&self, order: &AgentOrder) {
        self.living()
            .for_each(|agent| agent.link.order(order.clone()));
    }

    /// The most memory that they had together.
    pub(super) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    pub(super) fn note_use(&mut self, number: u32, used: AgentUse, reads: &[ReadOf]) {
        if let Some(agent) = self.agents.get_mut(&number) {
            if !agent.is_lost {
                self.anonymous_bytes -= agent.used.anonymous_bytes;
                self.anonymous_bytes += used.anonymous_bytes;
            }
            agent.used = used;
            self.nodes.note(number as usize, agent.sample());
        }
        if self.agents.len() <= READS_MAX && !reads.is_empty() {
            let read = |read: &ReadOf| NodeRead {
                by: self.node(number),
                kept_by: self.node(read.agent),
                received_bytes: read.far_bytes,
                file_bytes: read.file_bytes,
            };
            let reads = reads.iter().map(read).collect();
            self.nodes.note_reads(number as usize, reads);
        }
        self.peak_bytes = self.peak_bytes.max(self.anonymous_bytes);
    }

    /// What the node of an agent is called in the history.
    pub(super) fn node(&self, number: u32) -> String {
        let agent = self.agents.get(&number);
        agent.map_or_else(|| number.to_string(), |agent| agent.node.clone())
    }

    /// An agent, for who reads its runs and no others.
    pub(super) fn reader_of(&self, number: u32) -> Agents {
        let place = self.places.get(&number).cloned();
        let known = place.map(|place| (number, place)).into_iter().collect();
        let is_lost = self.agents.get(&number).is_none_or(|agent| agent.is_lost);
        let authorities = self
            .policy
            .bundle
            .as_ref()
            .map(|bundle| bundle.file.clone());
        let agents = Agents::of_driver(NOBODY, self.token.clone(), known);
        agents.change(|table| table.lost.extend(is_lost.then_some(number)));
        agents.trusting(authorities)
    }

    /// What a run is called now.
    pub(super) fn now<'r>(&'r self, mut run: &'r RunName) -> &'r RunName {
        while let Some(next) = self.moved.get(run) {
            run = next;
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::net::waiting::PendingWaits;

    #[test]
    fn an_attempt_that_does_not_stop_keeps_its_slot_until_it_has() {
        let agent = format!(
            r#"{{"place": {{"address": "127.0.0.1:9", "folders": [], "nonce": ""}}, "version": "{}",
                "workers": 2, "available_bytes": 1, "held_bytes": 1}}"#,
            crate::VERSION
        );
        let cluster = Cluster::from_json(&format!(r#"{{"token": "t", "agents": [{agent}]}}"#));
        let mut links = Links::begin(&cluster.unwrap(), &Arc::default());
        let awaited = Arc::<PendingWaits>::default().begin("node 127.0.0.1 to stop task 3");
        links.update(0, |agent| {
            agent.running = 1;
            agent.stuck.insert(7, awaited);
        });
        assert_eq!(links.slots(), 1);
        assert_eq!(links.free_slots().count(), 1);
        assert!(!links.has_stopped(0, 8));
        assert!(links.has_stopped(0, 7) && !links.has_stopped(0, 7));
        assert_eq!((links.slots(), links.free_slots().count()), (2, 2));
        links.end(false);
    }

    #[test]
    fn nodes_are_called_by_their_hosts_and_told_apart_on_one_host() {
        let before = ["10.0.0.2:1000", "[fe80::1]:5", "10.0.0.2:7"];
        let name = |address| node_name(before.into_iter(), address);
        assert_eq!(name("10.0.0.3:1000"), ("10.0.0.3".to_owned(), true));
        assert_eq!(name("10.0.0.2:9"), ("10.0.0.2 (3)".to_owned(), false));
        assert_eq!(name("[fe80::1]:6"), ("fe80::1 (2)".to_owned(), false));
    }
}
