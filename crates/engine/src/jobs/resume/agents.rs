//! What whoever begins the agents of a job must know to resume it on a cluster, before it is resumed.
//!
//! Files are named, and not read: what is sent to nodes is compared with what the job was begun with when it is resumed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::prepare;
use crate::jobs::environment::Environment;
use crate::jobs::mapreduce::FilesOfCode;
use crate::jobs::steps::OPERATION;
use crate::runner::On;
use gristmill_base::error::{Error, Result};

/// What is to be known.
#[derive(Debug, Serialize)]
pub struct ResumedAgents {
    /// The job's whole name.
    pub job_id: String,
    /// How many tasks its plan has run at once, if it had come so far.
    pub workers: Option<usize>,
    /// How many nodes it may have.
    pub nodes: Option<usize>,
    /// The memory that it was given.
    pub memory: Option<u64>,
    /// Where its runs go, on the nodes.
    #[serde(with = "gristmill_base::names")]
    pub spill_dir: Vec<PathBuf>,
    /// What its own code is in, if it has some.
    pub code: Option<FilesOfCode>,
}

/// What of the options is for the nodes.
#[derive(Debug, Deserialize)]
struct NodeOptions {
    #[serde(default, with = "gristmill_base::names")]
    spill_dir: Vec<PathBuf>,
}

/// Finds the dead job that is meant by `name`; nothing if it ran on this machine.
///
/// # Errors
/// The job cannot be resumed.
pub fn resumed_agents(name: &str, environment: &Environment) -> Result<Option<ResumedAgents>> {
    let (job, environment, _, replayed) = prepare(name, environment)?;
    if job.common.on == On::Local {
        return Ok(None);
    }
    // Here the job keeps its folder where it was begun; what the user named is for the nodes.
    let begun_in = job.common.spill_dir.first();
    let given = BTreeMap::<String, NodeOptions>::deserialize(&environment.history.options);
    let given = given.map_err(|error| Error::bug(OPERATION, error.to_string()))?;
    let spill_dir = given.into_values().flat_map(|given| given.spill_dir);
    let rooted = |path: PathBuf| begun_in.map_or_else(|| path.clone(), |folder| folder.join(&path));
    let code = match replayed.definition() {
        Some(hash) => FilesOfCode::kept(&environment, &job, hash)?,
        None => None,
    };
    Ok(Some(ResumedAgents {
        job_id: environment.job_id,
        workers: replayed.began.as_ref().map(|began| began.workers),
        nodes: job.common.nodes,
        memory: job.common.memory.map(|memory| memory.0),
        spill_dir: spill_dir.map(rooted).collect(),
        code,
    }))
}
