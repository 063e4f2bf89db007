//! Runs that the agents of a cluster keep: named by who keeps them, read where they are or over HTTP.
//!
//! ```text
//!   reader ── its own run ──────────────────────▶ its memory, or a file of this machine
//!          ── a folder that it sees, by a nonce ─▶ the same
//!          ── any other ─────────────────────────▶ GET http://ADDRESS/runs/0/run-00007-0-0000: a range, with the job's token
//! ```
//!
//! A run that was made again, as its agent was lost, is found under its first name ([`AgentTable::moved`]). The rules that must
//! hold: an error of a run names the run, so that the driver can have it made again; and who waits for an agent that does
//! not answer hears at once that the agent is lost. An agent knows what it was told, even where it cannot write that down for the
//! processes below it. A run in memory is gone with its agent: nothing that outlives one may name it ([`is_in_memory`]).
//!
//! Decision: docs/decisions/runs-in-node-memory.md.

mod disk;
mod fetch;
mod reads;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::disk::AgentDisk;
pub use self::reads::{ReadOf, Reads};
use super::run_name::{RunName, is_in_memory};
use super::{Caching, LocalDisk, Stat};
use crate::net::http_client::{HttpClient, TransportPolicy};
use crate::net::trust::Bundle;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// The file in each folder of an agent by which another one knows that it sees the same folder.
pub const NONCE: &str = "nonce";

/// How long an agent may take to accept a connection, and to answer: who waits asks again ([`fetch`]).
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// Requests of one process that are under way at once, however many merges read.
const REQUESTS_AT_ONCE: usize = 64;

/// How often a run may have been made again: a chain of names that is longer is a circle.
const MOVES_MAX: usize = 1000;

/// Where an agent is, and what it keeps runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPlace {
    /// `HOST:PORT` of its server.
    pub address: String,
    /// Its places by their numbers: its memory, and its folders.
    #[serde(with = "gristmill_base::names")]
    pub folders: Vec<PathBuf>,
    /// What stands in the file [`NONCE`] of each folder.
    pub nonce: String,
    /// Whether its server speaks TLS.
    #[serde(default)]
    pub tls: bool,
}

impl AgentPlace {
    /// What the addresses of all that its server has begin with.
    ///
    /// ```
    /// use gristmill_storage::agents::AgentPlace;
    /// let place = AgentPlace { address: "10.0.0.7:81".into(), tls: true, ..AgentPlace::default() };
    /// assert_eq!(place.url(), "https://10.0.0.7:81");
    /// ```
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// How agents are reached: straight, and with TLS only those that these certificates vouch for.
pub fn agent_transport(authorities: Option<PathBuf>) -> TransportPolicy {
    TransportPolicy {
        bundle: authorities.map(|file| Bundle {
            named_by: "RAY_TLS_CA_CERT",
            file,
        }),
        ..TransportPolicy::with_secrets()
    }
}

/// What is known of the agents of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTable {
    /// All that began, by number.
    pub agents: BTreeMap<u32, AgentPlace>,
    /// Those of them that are lost.
    pub lost: BTreeSet<u32>,
    /// Runs that were made again: what each is called now.
    pub moved: BTreeMap<RunName, RunName>,
}

/// What a process that Gristmill's own process has begun, such as a worker with Python functions, is told of the agents.
#[derive(Debug, Serialize, Deserialize)]
struct AgentsForChild {
    own: u32,
    token: String,
    #[serde(default, with = "gristmill_base::names")]
    authorities: Option<PathBuf>,
    table: AgentTable,
}

/// Where a run is for this process.
enum RunLocation {
    /// In a file.
    File(PathBuf),
    /// With the agent whose addresses begin with this.
    Remote(String, RunName),
}

/// The agents of a job, as one of their processes knows them.
#[derive(Debug)]
pub struct Agents {
    own: u32,
    token: String,
    client: HttpClient,
    policy: TransportPolicy,
    known: Mutex<KnownAgents>,
    /// Where another process says what has changed, or this one says it to others.
    file: Option<PathBuf>,
    /// Of an agent: how many changes are in the file. Held while it is written.
    shown: Option<Mutex<u64>>,
    /// Whether runs of other agents are read as files where they can be.
    reads_files: bool,
    reads: Reads,
    /// Whether the job is to end: nobody is waited for then. Where a task waits, its attempt ends with the process.
    cancel: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
struct KnownAgents {
    table: AgentTable,
    /// How often the table was changed here.
    changes: u64,
    /// Whether the folders of an agent are seen here, once that was tried.
    seen: BTreeMap<u32, bool>,
    /// The version of the file that this was read from.
    read: Option<(u64, i128)>,
    /// How long runs of other agents are, once that was asked: the length of a run does not change.
    lengths: BTreeMap<RunName, u64>,
}

impl Agents {
    /// As the agent of this number knows them, which is told of the others later. What it knows is kept in `file` for
    /// the processes that it begins.
    pub fn of_agent(own: u32, token: String, file: PathBuf, reads_files: bool) -> Self {
        Agents {
            own,
            token,
            client: client(),
            policy: agent_transport(None),
            known: Mutex::default(),
            file: Some(file),
            shown: Some(Mutex::new(0)),
            reads_files,
            reads: Reads::default(),
            cancel: None,
        }
    }

    /// As the driver of a job knows them, which reads what they say over HTTP; `own` is the number of none of them.
    pub fn of_driver(own: u32, token: String, agents: BTreeMap<u32, AgentPlace>) -> Self {
        let table = AgentTable {
            agents,
            ..AgentTable::default()
        };
        Agents {
            own,
            token,
            client: client(),
            policy: agent_transport(None),
            known: Mutex::new(KnownAgents {
                table,
                ..KnownAgents::default()
            }),
            file: None,
            shown: None,
            reads_files: false,
            reads: Reads::default(),
            cancel: None,
        }
    }

    /// As a process below an agent knows them, by the file that the agent keeps.
    ///
    /// # Errors
    /// The file is not there, or not one of this user's alone.
    pub fn of_file(disk: &dyn LocalDisk, file: PathBuf) -> Result<Self> {
        let shown = shown_in(disk, &file)?;
        let agents = Agents {
            own: shown.own,
            token: shown.token,
            client: client(),
            policy: agent_transport(shown.authorities),
            known: Mutex::default(),
            file: Some(file),
            shown: None,
            reads_files: true,
            reads: Reads::default(),
            cancel: None,
        };
        agents.known().table = shown.table;
        Ok(agents)
    }

    /// The same, where the certificates of others are signed by one of these.
    #[must_use]
    pub fn trusting(self, authorities: Option<PathBuf>) -> Self {
        let policy = agent_transport(authorities);
        Agents { policy, ..self }
    }

    /// The same, for a job that ends by this flag.
    #[must_use]
    pub fn ended_by(self, flag: Arc<AtomicBool>) -> Self {
        let cancel = Some(flag);
        Agents { cancel, ..self }
    }

    fn is_cancelled(&self) -> bool {
        let cancel = self.cancel.as_ref();
        cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// The number of the agent that this process belongs to.
    pub fn own(&self) -> u32 {
        self.own
    }

    /// What this process has read of runs, and what was added of others.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    fn known(&self) -> MutexGuard<'_, KnownAgents> {
        lock(&self.known)
    }

    /// Takes in what has changed.
    pub fn change(&self, change: impl FnOnce(&mut AgentTable)) {
        let mut known = self.known();
        change(&mut known.table);
        known.changes += 1;
    }

    /// Tells the processes below what has changed since they were told. No one who reads runs waits for the disk meanwhile.
    ///
    /// # Errors
    /// The file for them cannot be written. They can still be told later.
    pub fn show(&self, disk: &dyn LocalDisk) -> Result<()> {
        let (Some(file), Some(shown)) = (&self.file, &self.shown) else {
            return Ok(());
        };
        let mut shown = lock(shown);
        let (table, changes) = {
            let known = self.known();
            if known.changes == *shown {
                return Ok(());
            }
            (known.table.clone(), known.changes)
        };
        let authorities = self
            .policy
            .bundle
            .as_ref()
            .map(|bundle| bundle.file.clone());
        let told = AgentsForChild {
            own: self.own,
            token: self.token.clone(),
            authorities,
            table,
        };
        let json = serde_json::to_vec(&told)
            .map_err(|error| Error::bug("tell workers of agents", error.to_string()))?;
        let new = file.with_extension("new");
        disk.remove(&new)?;
        disk.create_private(&new, &json)?;
        if disk.stat(file)?.is_some() {
            disk.replace(&new, file)?;
        } else {
            disk.rename(&new, file)?;
        }
        *shown = changes;
        Ok(())
    }

    /// Whether an agent is lost, as far as this process can know.
    fn has_lost(&self, disk: &dyn LocalDisk, agent: u32) -> bool {
        self.refresh(disk);
        self.known().table.lost.contains(&agent)
    }

    /// In a process below an agent: takes in what the agent has heard since.
    fn refresh(&self, disk: &dyn LocalDisk) {
        let Some(file) = self.file.as_ref().filter(|_| self.shown.is_none()) else {
            return;
        };
        let Ok(Some(stat)) = disk.stat(file) else {
            return;
        };
        let version = version_of(&stat);
        let mut known = self.known();
        if known.read != Some(version)
            && let Ok(shown) = shown_in(disk, file)
        {
            known.table = shown.table;
            known.read = Some(version);
        }
    }

    /// What a run is called now.
    fn now(&self, run: &RunName) -> RunName {
        let known = self.known();
        let mut now = run.clone();
        for _ in 0..MOVES_MAX {
            match known.table.moved.get(&now) {
                Some(next) => now = next.clone(),
                None => break,
            }
        }
        now
    }

    /// Where a run is.
    fn find(&self, disk: &dyn LocalDisk, run: &RunName) -> Result<RunLocation> {
        let now = self.now(run);
        let (place, is_lost, seen) = {
            let known = self.known();
            let place = known.table.agents.get(&now.agent).cloned();
            let is_lost = known.table.lost.contains(&now.agent);
            (place, is_lost, known.seen.get(&now.agent).copied())
        };
        let Some(place) = place else {
            return Err(lost_run(run, "no agent has its number"));
        };
        if is_lost {
            return Err(lost_run(run, "its agent is lost"));
        }
        let Some(folder) = place.folders.get(now.folder as usize) else {
            return Err(lost_run(run, "its agent has no such directory"));
        };
        let is_seen = if is_in_memory(folder) {
            now.agent == self.own && self.shown.is_some() // processes below the agent have another memory
        } else {
            now.agent == self.own
                || self.reads_files && seen.unwrap_or_else(|| self.sees(disk, now.agent, &place))
        };
        Ok(if is_seen {
            RunLocation::File(folder.join(&now.name))
        } else {
            RunLocation::Remote(place.url(), now)
        })
    }

    /// Whether the folders of an agent are seen here: a file in each of them says what the agent says.
    fn sees(&self, disk: &dyn LocalDisk, agent: u32, place: &AgentPlace) -> bool {
        let says_so = |folder: &PathBuf| {
            let mut text = vec![0; place.nonce.len() + 1];
            let read = disk
                .open(&folder.join(NONCE), Caching::Cached)
                .and_then(|file| file.read_at(&mut text, 0));
            read.is_ok_and(|read| text.get(..read) == Some(place.nonce.as_bytes()))
        };
        let mut folders = place.folders.iter();
        let sees = !place.nonce.is_empty()
            && folders.all(|folder| is_in_memory(folder) || says_so(folder));
        self.known().seen.insert(agent, sees);
        sees
    }
}

/// What tells the file of today from an earlier one.
fn version_of(stat: &Stat) -> (u64, i128) {
    (stat.identity.1, stat.modified_ns)
}

/// The connections of a process.
fn client() -> HttpClient {
    HttpClient::with_limits(CONNECT_LIMIT, REQUEST_LIMIT, Some(REQUESTS_AT_ONCE))
}

fn shown_in(disk: &dyn LocalDisk, file: &Path) -> Result<AgentsForChild> {
    let bytes = disk.read_private(file)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Error::bug("read what is known of agents", error.to_string()).with_path(file)
    })
}

/// The error of a run that cannot be had: the driver has it made again.
fn lost_run(run: &RunName, why: &str) -> Error {
    Error::new(Kind::Io, "read a run of another task", why)
        .with("run", run.path().display())
        .retryable_error()
}

/// The run that an error says cannot be had, or is damaged.
///
/// ```
/// use gristmill_storage::agents::run_of;
/// use gristmill_base::{Error, Kind};
/// let error = Error::new(Kind::Io, "read", "it is gone").with("run", "agent:2/0/run-00007-0-0000");
/// assert_eq!(run_of(&error).unwrap().agent, 2);
/// assert!(run_of(&Error::new(Kind::Io, "read", "it is gone").with("run", "run-00007-0-0000")).is_none());
/// ```
pub fn run_of(error: &Error) -> Option<RunName> {
    let names = matches!(error.kind(), Kind::Io | Kind::NotFound) || error.is_of_own_work();
    let mut values = error.context().iter().filter(|_| names);
    values.find_map(|(_, value)| RunName::of(value.as_ref()))
}

#[cfg(test)]
mod tests;
