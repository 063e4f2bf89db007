//! What an executor of user code is made from: in a worker process, or when a killed job is resumed.
//!
//! All of it but the definition is JSON; the definition is bytes, and only the executor reads them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::worker::{WorkerCommand, WorkerLimits};

/// What an executor is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorSpec {
    /// How it runs user code.
    pub kind: ExecutorKind,
    /// The user code: a pickle, or JSON.
    pub definition: Vec<u8>,
}

/// How user code is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorKind {
    /// In worker processes.
    Processes {
        /// The program.
        #[serde(with = "gristmill_base::names")]
        program: PathBuf,
        /// Its arguments.
        #[serde(with = "gristmill_base::names")]
        arguments: Vec<OsString>,
        /// Its whole environment.
        #[serde(with = "gristmill_base::names")]
        environment: BTreeMap<OsString, OsString>,
        /// The folder that it starts in.
        #[serde(with = "gristmill_base::names")]
        folder: Option<PathBuf>,
        /// Where its pulse may lie.
        #[serde(with = "gristmill_base::names")]
        scratch: PathBuf,
        /// The longest time without a sign of life.
        timeout: Option<Duration>,
        /// The most memory of a worker.
        memory_bytes: Option<u64>,
    },
    /// By code of ours: the definition is the job's options.
    Native,
    /// As scripts.
    Scripts {
        /// The environment that they inherit.
        #[serde(with = "gristmill_base::names")]
        environment: BTreeMap<OsString, OsString>,
    },
}

impl ExecutorKind {
    /// As these processes run it.
    pub(super) fn processes(command: &WorkerCommand, limits: WorkerLimits) -> Self {
        ExecutorKind::Processes {
            program: command.program.clone(),
            arguments: command.arguments.clone(),
            environment: command.environment.clone(),
            folder: command.folder.clone(),
            scratch: command.scratch.clone(),
            timeout: limits.timeout,
            memory_bytes: limits.memory_bytes,
        }
    }
}
