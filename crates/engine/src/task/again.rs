//! Who runs people's code, as another process may need to know it: a job that is killed goes on with the same.
//!
//! All of it but the definition is JSON; the definition is bytes, and only whoever runs them looks into them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::processes::ProcessWork;
use super::streaming::StreamWork;
use super::work::Work;
use crate::error::{Error, Kind, Result};
use crate::storage::Store;
use crate::worker::{Command, Definition, Limits, Processes};

/// Who runs people's code.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkAgain {
    /// How.
    pub how: How,
    /// What: a pickle, or JSON.
    pub definition: Vec<u8>,
}

/// How people's code is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// In worker processes.
    Processes {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its whole environment.
        environment: BTreeMap<String, String>,
        /// The folder that it starts in.
        folder: Option<PathBuf>,
        /// Where its pulse may lie.
        scratch: PathBuf,
        /// The longest time without a sign of life.
        timeout: Option<Duration>,
        /// The most memory of a worker.
        memory_bytes: Option<u64>,
    },
    /// As scripts.
    Scripts {
        /// The environment that they inherit.
        environment: BTreeMap<String, String>,
    },
}

impl WorkAgain {
    /// Those who did the work, or others like them; `workers` at once.
    ///
    /// # Errors
    /// What they need is gone, or the definition is none.
    pub fn work(self, workers: usize, store: Arc<dyn Store>) -> Result<Arc<dyn Work>> {
        match self.how {
            How::Processes {
                program,
                arguments,
                environment,
                folder,
                scratch,
                timeout,
                memory_bytes,
            } => {
                let needed = [Some(&program), folder.as_ref(), Some(&scratch)];
                for path in needed.into_iter().flatten() {
                    is_there(&*store, path)?;
                }
                let command = Command {
                    program,
                    arguments: arguments.into_iter().map(OsString::from).collect(),
                    environment: environment
                        .into_iter()
                        .map(|(name, value)| (name.into(), value.into()))
                        .collect(),
                    whole_environment: true,
                    folder,
                    scratch,
                };
                let definition = Definition {
                    key: Sha256::digest(&self.definition).into(),
                    bytes: self.definition.into(),
                };
                let limits = Limits {
                    timeout,
                    memory_bytes,
                };
                Processes::shared().keep(workers);
                Ok(Arc::new(ProcessWork::new(command, definition, limits)))
            }
            How::Scripts { environment } => {
                let text = String::from_utf8(self.definition)
                    .map_err(|error| Error::bug("read a job's definition", error.to_string()))?;
                let work = StreamWork::new(&text, store)?.inheriting(environment);
                Ok(Arc::new(work))
            }
        }
    }
}

impl How {
    /// As these processes run it; nothing where a name is no text, which JSON does not hold.
    pub(super) fn processes(command: &Command, limits: Limits) -> Option<Self> {
        let text = |name: &OsString| name.clone().into_string().ok();
        let pair = |(name, value)| Some((text(name)?, text(value)?));
        Some(How::Processes {
            program: command.program.clone(),
            arguments: command.arguments.iter().map(text).collect::<Option<_>>()?,
            environment: command
                .environment
                .iter()
                .map(pair)
                .collect::<Option<_>>()?,
            folder: command.folder.clone(),
            scratch: command.scratch.clone(),
            timeout: limits.timeout,
            memory_bytes: limits.memory_bytes,
        })
    }
}

fn is_there(store: &dyn Store, path: &std::path::Path) -> Result<()> {
    if store.stat(path)?.is_some() {
        return Ok(());
    }
    let message = "what the job's functions ran with is gone";
    Err(Error::new(Kind::NotFound, "go on with a job", message)
        .with_path(path)
        .advise("put it back and resume again, or start the job anew"))
}
