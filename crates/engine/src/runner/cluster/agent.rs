//! An agent: a process on a node that runs tasks of one job, and serves the runs that they made, from its memory or its folders.
//!
//! ```text
//!   serve ── folders, a port ──▶ Hello, to whoever began it
//!         ── slots: threads that run tasks    server: orders, events, runs
//!         ── until the driver says that the job is over: then nothing is left
//!         ── until the driver is not heard of, or whoever began it is gone: then its runs stay, for agents of a driver that
//!            resumes the job; the next job that spills there removes them. Those in its memory are gone with it.
//! ```
//!
//! Decision: docs/decisions/runs-in-node-memory.md.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::agent_queue::{AgentQueue, AgentResources, QueuedTask};
use super::secured::TlsFiles;
use super::server;
use crate::runner::shared::{BuildNativeExecutor, Host};
use crate::runner::threads::run_caught;
use gristmill_base::budget::available_bytes;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sys::descriptors::raise_open_files;
use gristmill_base::sys::memory::{keep_little_freed, resident_bytes};
use gristmill_base::sys::threads::begin;
use gristmill_storage::LocalDisk;
use gristmill_storage::agents::{AgentDisk, AgentPlace, Agents, NONCE};
use gristmill_storage::layered::Layered;
use gristmill_storage::run_name::{MEMORY_FOLDER, MEMORY_PLACE, RunName};
use gristmill_storage::stores::Stores;
use gristmill_tasks::commit::{Ownership, SpillDirs};
use gristmill_tasks::task::{
    AgentFolders, NodeEnvironment, Scratch, TaskAttempt, TaskContext, TaskReport, TaskSpec,
};
use gristmill_tasks::worker::ProcessPool;

/// The variable by which processes below an agent find the file with what it knows of the others.
pub const AGENTS_VARIABLE: &str = "GRISTMILL_AGENTS";

/// How long an agent stays that its driver does not ask for anything.
const DRIVER_SILENCE: Duration = Duration::from_secs(60);

/// The same before it has asked at all: other agents may take long to begin, and the job to list its input.
const DRIVER_SILENCE_AT_FIRST: Duration = Duration::from_secs(600);

/// How long tasks have to end when the job is over.
const GRACE: Duration = Duration::from_secs(2);

/// How long agents of a dead driver may take to give their folders up.
const LINGERING: Duration = Duration::from_secs(5);

/// Between two looks at whether the job is over.
const TICK: Duration = Duration::from_millis(50);

/// What an agent is told when it begins.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The job.
    pub job_id: String,
    /// The number of the agent in it.
    pub agent: u32,
    /// The secret that all requests must have.
    pub token: String,
    /// How many tasks run at once.
    pub workers: usize,
    /// The address that others reach this node by.
    pub host: String,
    /// Where runs go, on this node.
    #[serde(with = "gristmill_base::names")]
    pub spill_dir: Vec<PathBuf>,
    /// Whether runs of other agents are read as files where they can be.
    pub reads_files: bool,
    /// What it proves its name with, where agents use TLS.
    #[serde(default)]
    pub tls: Option<TlsFiles>,
    /// What user code finds on this node.
    #[serde(default)]
    pub here: NodeEnvironment,
    /// Whether the job had another driver before, whose agents may have left runs here.
    #[serde(default)]
    pub resumes: bool,
}

/// What an agent says of itself when it has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Where it is.
    pub place: AgentPlace,
    /// The version of the program.
    pub version: String,
    /// How many tasks run at once.
    pub workers: usize,
    /// Memory that the machine has to give.
    pub available_bytes: u64,
    /// Memory that the agent holds already.
    pub held_bytes: u64,
    /// Runs that earlier agents of the job left on the node, by the names that they have here.
    #[serde(default)]
    pub found: Vec<RunName>,
}

/// How the end of an agent comes about.
#[derive(Debug, Default)]
pub struct ShutdownFlags {
    /// The job is over.
    pub over: AtomicBool,
    /// Whoever began the agent is gone, and has not said that the job is over.
    pub alone: AtomicBool,
}

/// Runs an agent on files of `stores` until its end. `hello` is given what it says of itself.
///
/// # Errors
/// It cannot listen at its address, or write to its folders.
pub fn serve(
    spec: &AgentSpec,
    stores: &Stores,
    native: BuildNativeExecutor,
    end: &ShutdownFlags,
    hello: impl FnOnce(&Hello) -> Result<()>,
) -> Result<()> {
    keep_little_freed();
    raise_open_files();
    let disk = Arc::clone(stores.disk());
    let left = left_by_others(&*disk, spec)?;
    let owner = Ownership::of_new_job(&name_of(&*disk, spec)?);
    let spill = SpillDirs::begin(&*disk, &spec.spill_dir, &owner)?;
    let own = spill.folders();
    let folders = [own.clone(), left.folders()].concat();
    let outcome = serve_in(spec, stores, native, (&own, &folders), |queue, place| {
        hello(&Hello {
            place,
            version: crate::VERSION.to_owned(),
            workers: spec.workers,
            available_bytes: available_bytes().unwrap_or(0),
            held_bytes: resident_bytes().0,
            found: found_in(&*disk, spec.agent, &folders),
        })?;
        Ok(wait_for_the_end(queue, end))
    });
    let runs_stay = *outcome.as_ref().unwrap_or(&true);
    if runs_stay && !found_in(&*disk, spec.agent, &folders).is_empty() {
        left.leave();
        spill.leave();
    }
    outcome.map(drop)
}

/// Serves as long as `wait` waits, which is told where the agent is. Runs are written to its own folders, which are the first of all
/// that it has.
fn serve_in(
    spec: &AgentSpec,
    stores: &Stores,
    native: BuildNativeExecutor,
    (own, folders): (&[PathBuf], &[PathBuf]),
    wait: impl FnOnce(&AgentQueue, AgentPlace) -> Result<bool>,
) -> Result<bool> {
    let memory = Arc::new(Layered::new(Arc::clone(stores.disk()), 0)); // each part of the job says how much
    let disk: &Arc<dyn LocalDisk> = &(Arc::clone(&memory) as _);
    let with_memory = |folders: &[PathBuf]| [&[PathBuf::from(MEMORY_PLACE)], folders].concat();
    let Some(first) = own.first() else {
        return Err(Error::bug(
            "begin an agent",
            "it was given no spill directory",
        ));
    };
    let (listener, address) = listen(&spec.host)?;
    let place = AgentPlace {
        address,
        nonce: nonce(&**disk, folders, spec)?,
        folders: with_memory(folders),
        tls: spec.tls.is_some(),
    };
    let file = first.join("agents");
    let trusted = spec.tls.as_ref().map(|tls| tls.authorities.clone());
    let agents = Agents::of_agent(
        spec.agent,
        spec.token.clone(),
        file.clone(),
        spec.reads_files,
    );
    let agents = Arc::new(agents.trusting(trusted));
    let itself = place.clone();
    agents.change(|table| {
        drop(table.agents.insert(spec.agent, itself));
    });
    agents.show(&**disk)?;
    let attempts = first.join("attempts");
    disk.create_private_directory(&attempts)?;
    let with_agents: Arc<dyn LocalDisk> =
        Arc::new(AgentDisk::new(Arc::clone(disk), Arc::clone(&agents)));
    let mut here = spec.here.clone();
    here.variables.insert(AGENTS_VARIABLE.into(), file.into());
    here.folder.clone_from(&attempts);
    let queue = Arc::new(AgentQueue::new(AgentResources {
        stores: stores.on_disk(Arc::clone(&with_agents)),
        disk: Arc::clone(disk),
        agents,
        native,
        host: Host {
            workers: spec.workers,
            places: Some(AgentFolders {
                agent: spec.agent,
                runs: with_memory(own),
                attempts,
            }),
            memory: Some(memory),
            here,
        },
        folders: with_memory(folders),
    }));
    let runtime = server::serve(listener, spec.tls.as_ref(), &spec.token, Arc::clone(&queue))?;
    begin_threads(&queue, spec.workers)?;
    let outcome = wait(&queue, place);
    ProcessPool::shared().dismiss();
    runtime.shutdown_background();
    outcome
}

/// Begins what works for the driver; it ends with the process, if not before.
fn begin_threads(queue: &Arc<AgentQueue>, slots: usize) -> Result<()> {
    let chores = Arc::clone(queue);
    begin("chores", move || chores.do_chores())?;
    for _ in 0..slots {
        let queue = Arc::clone(queue);
        begin("slot", move || slot(&queue))?;
    }
    Ok(())
}

/// What agents of a dead driver of the job left here, taken over.
fn left_by_others<'a>(disk: &'a dyn LocalDisk, spec: &AgentSpec) -> Result<SpillDirs<'a>> {
    if !spec.resumes {
        return Ok(SpillDirs::default());
    }
    let round = round_of(spec);
    // A colleague of this agent has no such file yet, or one of this round.
    let is_left = |folder: &Path| {
        let text = disk.read_private(&folder.join(NONCE));
        text.is_ok_and(|text| text.len() >= round.len() && !text.starts_with(round.as_bytes()))
    };
    let deadline = Instant::now() + LINGERING;
    let (dirs, job) = (&spec.spill_dir, &spec.job_id);
    SpillDirs::adopt_all(disk, dirs, job, &is_left, deadline)
}

/// The name of the agent's folders: another one than those of an agent with its number that are there.
fn name_of(disk: &dyn LocalDisk, spec: &AgentSpec) -> Result<String> {
    let first = format!("{}-{}", spec.job_id, spec.agent);
    let mut name = first.clone();
    for again in 2.. {
        let mut folders = spec
            .spill_dir
            .iter()
            .map(|dir| SpillDirs::folder_in(dir, &name));
        let is_free = |folder: PathBuf| Ok(disk.stat(&folder)?.is_none());
        if folders.try_fold(true, |free, folder| {
            Ok::<_, Error>(free && is_free(folder)?)
        })? {
            break;
        }
        name = format!("{first}-{again}");
    }
    Ok(name)
}

/// The runs in an agent's folders, which come after its memory.
fn found_in(disk: &dyn LocalDisk, agent: u32, folders: &[PathBuf]) -> Vec<RunName> {
    let of_folder = |(folder, path): (u32, &PathBuf)| {
        let files = disk.list(path).unwrap_or_default().into_iter();
        let named = files.filter_map(move |file| {
            let name = file.file_name()?.to_str()?;
            let is_run = name.starts_with("run-");
            is_run.then(|| RunName::new(agent, folder, name))
        });
        named.collect::<Vec<_>>()
    };
    let numbers = MEMORY_FOLDER + 1..;
    numbers.zip(folders).flat_map(of_folder).collect()
}

/// Waits until nobody wants the agent any more, and its tasks have ended; whether its runs stay.
fn wait_for_the_end(queue: &AgentQueue, end: &ShutdownFlags) -> bool {
    let is_over = || queue.runs_stay().is_some() || end.over.load(Ordering::Relaxed);
    let is_silent = || match queue.silence() {
        (silence, true) => silence >= DRIVER_SILENCE,
        (silence, false) => silence >= DRIVER_SILENCE_AT_FIRST,
    };
    let is_alone = || end.alone.load(Ordering::Relaxed) || is_silent();
    while !is_over() && !is_alone() {
        sleep(TICK);
    }
    let runs_stay = queue.runs_stay().unwrap_or_else(|| !is_over());
    queue.end();
    let began = Instant::now();
    while queue.open() > 0 && began.elapsed() < GRACE {
        sleep(TICK);
    }
    runs_stay
}

fn listen(host: &str) -> Result<(TcpListener, String)> {
    let failed = |error: std::io::Error| {
        Error::new(Kind::Io, "listen for other agents", error.to_string())
            .with("address", host)
            .advise("check that the node has this address")
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let listener = TcpListener::bind((bare, 0)).map_err(failed)?;
    let address: SocketAddr = listener.local_addr().map_err(failed)?;
    Ok((listener, address.to_string()))
}

/// Writes the file by which others know that they see the same folder.
fn nonce(disk: &dyn LocalDisk, folders: &[PathBuf], spec: &AgentSpec) -> Result<String> {
    let own = hex::encode(Sha256::digest(format!(
        "nonce {} {}",
        spec.agent, spec.token
    )));
    let nonce = format!("{}{own}", round_of(spec));
    for folder in folders {
        let file = folder.join(NONCE);
        disk.remove(&file)?; // of an earlier agent
        disk.create_private(&file, nonce.as_bytes())?;
    }
    Ok(nonce)
}

/// What the nonces of all agents that one driver has begin with.
fn round_of(spec: &AgentSpec) -> String {
    hex::encode(Sha256::digest(format!("round {}", spec.token)))
}

/// The life of a slot.
fn slot(queue: &AgentQueue) {
    let mut scratch = Scratch::default();
    let mut before: Option<Arc<Result<TaskContext>>> = None;
    while let Some(task) = queue.next() {
        if before
            .as_ref()
            .is_none_or(|before| !Arc::ptr_eq(before, &task.job))
        {
            scratch = Scratch::default();
            before = Some(Arc::clone(&task.job));
        }
        if task.spec.as_ref().is_ok_and(TaskSpec::runs_user_code)
            && let Err(error) = queue.tell_processes()
        {
            queue.breaks(&task, error);
            continue;
        }
        let began = Instant::now();
        let mut outcome = run(&task, &mut scratch);
        let took = began.elapsed();
        if let Ok(TaskReport::User(report)) = &mut outcome {
            let reads = std::mem::take(&mut report.reads);
            queue.resources.agents.reads().add(&reads);
        }
        if outcome.is_err() {
            scratch = Scratch::default(); // whatever state the attempt left it in
        }
        queue.over(&task, took, outcome);
    }
}

fn run(task: &QueuedTask, scratch: &mut Scratch) -> Result<TaskReport> {
    let spec = task.spec.as_ref().map_err(Error::clone)?;
    let context = (*task.job).as_ref().map_err(Error::clone)?;
    let attempt = TaskAttempt {
        id: task.launch.id,
        stop: Arc::clone(&task.flags.stop),
        done_bytes: &task.flags.done_bytes,
        own_bytes: AtomicU64::new(0),
    };
    let outcome = run_caught(spec, context, &attempt, scratch);
    if outcome.is_err() {
        attempt.take_back();
    }
    outcome
}
