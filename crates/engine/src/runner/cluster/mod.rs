//! The cluster runner: tasks run in agents, processes on the nodes of a cluster that somebody else placed and started.
//!
//! ```text
//!   driver ─ running.rs ─ cluster_backend.rs ── link.rs ──HTTP, a token──▶ server.rs ─ agent_queue.rs ─ agent.rs: slots
//!                         placement.rs, map_output_tracker.rs                ▲
//!                                                             other agents ──┘ ranges of runs
//! ```
//!
//! What begins agents (Ray) tells the driver where they are ([`Cluster`]). An agent that is silent for ten seconds is lost:
//! what it ran and what it kept is done again on the others. Agents may join while a job runs, and be given no more tasks
//! (`changes.rs`). Nothing of the job's data goes through the driver.
//!
//! Decision: docs/decisions/cluster-agents.md.

pub mod agent;
mod agent_queue;
mod changes;
mod cluster_backend;
mod collector;
mod connections;
mod dispatch_depth;
mod found;
mod inbox;
mod joining;
mod link;
mod links;
mod locality;
mod map_output_tracker;
mod messages;
mod placement;
pub mod sealing;
mod secured;
mod server;
mod shared_fs_check;
mod stragglers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use self::agent::Hello;
use self::changes::Changes;
use self::cluster_backend::ClusterBackend;
pub use self::found::FoundRuns;
use self::links::Links;
pub use self::placement::{AgentSelector, Rank};
use super::nodes::Nodes;
use super::running::run_in;
use super::{Runner, RunnerHooks};
use crate::driver::Driver;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;
use gristmill_tasks::commit::Ownership;
use gristmill_tasks::task::TaskContext;

/// What the heaps of an agent grow by for each task at once, tables of tasks apart.
const GROWTH_BYTES: u64 = 1 << 20;

/// Where the tasks of a job run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// On this machine.
    #[default]
    Local,
    /// On a Ray cluster.
    Ray,
}

impl On {
    /// Their names, as options have them.
    pub const NAMES: &'static [&'static str] = &["local", "ray"];
}

/// The agents of a job, as whoever began them knows them; others may join.
#[derive(Debug, Deserialize)]
pub struct Cluster {
    /// The secret of the job.
    pub token: String,
    /// The certificates of those who are trusted to have signed the agents', where agents use TLS.
    #[serde(default, with = "gristmill_base::names")]
    pub authorities: Option<PathBuf>,
    /// What each agent said of itself; its number is its place here.
    pub agents: Vec<Hello>,
    /// Whether it is only to plan with: no agent has begun, and each is what it would be.
    #[serde(default)]
    pub is_planned: bool,
    #[serde(skip)]
    changes: Changes,
}

impl Cluster {
    /// Reads what whoever began the agents says.
    ///
    /// # Errors
    /// There is none, or one is of another version.
    ///
    /// ```
    /// use gristmill_engine::runner::cluster::Cluster;
    /// let agent = |version: &str| format!(
    ///     r#"{{"place": {{"address": "127.0.0.1:9", "folders": ["/spill"], "nonce": "n"}}, "version": "{version}",
    ///          "workers": 2, "available_bytes": 1000, "held_bytes": 10}}"#
    /// );
    /// let cluster = |version| Cluster::from_json(&format!(r#"{{"token": "t", "agents": [{}]}}"#, agent(version)));
    /// assert_eq!(cluster(gristmill_engine::VERSION)?.workers(), 2);
    /// assert!(cluster("0.0.7").unwrap_err().to_string().contains("0.0.7"));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let cluster: Cluster = serde_json::from_str(text)
            .map_err(|error| Error::bug("read what agents there are", error.to_string()))?;
        if cluster.agents.is_empty() {
            return Err(Error::new(
                Kind::Io,
                "run the job on the cluster",
                "no agent could be started",
            )
            .advise("look at `ray status`: nodes, and CPUs that are free"));
        }
        cluster.agents.iter().try_for_each(check_version)?;
        Ok(cluster)
    }

    /// How many tasks run at once.
    pub fn workers(&self) -> usize {
        self.agents.iter().map(|agent| agent.workers).sum()
    }

    /// What a job takes of the memory that the machines of the agents have to give, if nobody says how much: each agent an equal
    /// part of the least that one has, as several may be on one machine.
    pub fn available_bytes(&self) -> u64 {
        let least = self.agents.iter().map(|agent| agent.available_bytes).min();
        let hosts: std::collections::BTreeSet<&str> = self
            .agents
            .iter()
            .map(|agent| {
                agent
                    .place
                    .address
                    .rsplit_once(':')
                    .map_or("", |(host, _)| host)
            })
            .collect();
        least.unwrap_or(0) * hosts.len() as u64
    }
}

/// Fails unless an agent is of this version.
fn check_version(agent: &Hello) -> Result<()> {
    if agent.version == crate::VERSION {
        return Ok(());
    }
    let message = format!(
        "the agent at {} is of version {}, and this is {}",
        agent.place.address,
        agent.version,
        crate::VERSION
    );
    let error = Error::new(Kind::BadOption, "run the job on the cluster", message);
    Err(error.advise("install the same version of Gristmill on all nodes"))
}

/// Runs tasks in the agents of a cluster.
#[derive(Debug)]
pub struct ClusterRunner {
    cluster: Arc<Cluster>,
    links: Mutex<Option<Links>>,
    /// Whether the runs that agents have go with the job.
    ownership: Ownership,
    /// What its nodes have used: looked at while the job runs.
    nodes: Arc<Nodes>,
}

impl ClusterRunner {
    /// Runs tasks in these agents, which end with the runner, and their runs with them if they are the job's then.
    ///
    /// They hear of it from now on: an agent that is not asked for a minute ends, and what is done before the first task may
    /// take longer, such as the proof of what a job that is resumed has finished.
    pub fn new(cluster: Arc<Cluster>, ownership: Ownership) -> Self {
        let nodes = Arc::default();
        let links = (!cluster.is_planned).then(|| Links::begin(&cluster, &nodes));
        ClusterRunner {
            cluster,
            links: Mutex::new(links),
            ownership,
            nodes,
        }
    }
}

impl Runner for ClusterRunner {
    fn shares_memory(&self) -> bool {
        false
    }

    fn held_bytes(&self, workers: usize) -> Result<u64> {
        let held: u64 = self
            .cluster
            .agents
            .iter()
            .map(|agent| agent.held_bytes)
            .sum();
        Ok(held + GROWTH_BYTES * workers as u64)
    }

    fn nodes(&self) -> Option<Arc<Nodes>> {
        Some(Arc::clone(&self.nodes))
    }

    fn peak_bytes(&self) -> u64 {
        let links = lock(&self.links);
        links.as_ref().map_or(0, Links::peak_bytes)
    }

    fn run(
        &self,
        driver: &mut Driver,
        context: &TaskContext,
        workers: usize,
        hooks: RunnerHooks<'_, '_>,
    ) -> Result<()> {
        if context.needs_this_process() {
            let message = "standard input and pipes are of this machine alone";
            return Err(
                Error::new(Kind::BadOption, "run the job on the cluster", message)
                    .of_option("on")
                    .advise("save the input to a file in a place that all nodes see, or leave out --on ray"),
            );
        }
        let outputs = context.job.shared_outputs.as_ref();
        if self.cluster.authorities.is_some() && outputs.is_some_and(|outputs| outputs.collects) {
            let message = "this cluster uses TLS, and outputs are collected without it";
            return Err(
                Error::new(Kind::BadOption, "run the job on the cluster", message)
                    .of_option("collect")
                    .advise("name an output in a place that all nodes see"),
            );
        }
        let mut links = lock(&self.links);
        let links = links.get_or_insert_with(|| Links::begin(&self.cluster, &self.nodes));
        let basis = (&self.cluster.changes, context, workers);
        let mut place = ClusterBackend::begin(links, basis, &hooks)?;
        let ended = run_in(&mut place, driver, context, hooks);
        ended.map_err(|error| place.with_failed_kept(error))
    }
}

impl Drop for ClusterRunner {
    fn drop(&mut self) {
        let runs_stay = !self.ownership.is_taken();
        let links = self.links.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(links) = links {
            links.end(runs_stay);
        }
    }
}
