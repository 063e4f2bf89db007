//! Names of runs that no file system knows. Stores take them as paths, and specs and reports hold them: only this file spells
//! and parses them.
//!
//! ```text
//!   memory:/run-00007-0-0000       in the memory of this process, beside its disk (layered.rs)
//!   agent:                         in a plan: where the agent that runs the task keeps runs
//!   agent:2/0/run-00007-0-0000     in the memory of agent 2
//!   agent:2/1/run-00007-0-0000     in its first folder
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The place of runs that is in memory: no path of a file system begins like this.
pub const MEMORY_PLACE: &str = "memory:";

/// The place of runs in a plan whose tasks run in agents.
pub const AGENT_PLACE: &str = "agent:";

/// The number of the place that is an agent's memory: its folders come after it.
pub const MEMORY_FOLDER: u32 = 0;

/// Whether a run is in memory, of this process or of an agent.
///
/// ```
/// use gristmill_storage::run_name::is_in_memory;
/// let in_memory = ["memory:/run-00007-0-0000", "agent:2/0/run-00007-0-0000"];
/// assert!(in_memory.iter().all(|run| is_in_memory(run.as_ref())));
/// assert!(!is_in_memory("agent:2/1/run-00007-0-0000".as_ref()));
/// ```
pub fn is_in_memory(run: &Path) -> bool {
    let of_agent = || RunName::of(run).is_some_and(|run| run.folder == MEMORY_FOLDER);
    run.starts_with(MEMORY_PLACE) || of_agent()
}

/// The name of a run on the cluster.
///
/// ```
/// use gristmill_storage::run_name::RunName;
/// let run = RunName::of("agent:2/0/run-00007-0-0000".as_ref()).unwrap();
/// assert_eq!((run.agent, run.folder, run.name.as_str()), (2, 0, "run-00007-0-0000"));
/// assert_eq!(run.path().as_os_str(), "agent:2/0/run-00007-0-0000");
/// assert_eq!(serde_json::to_string(&run).unwrap(), "\"agent:2/0/run-00007-0-0000\"");
/// assert!(["agent:", "agent:2/0/../a", "agent:2/0/", "/agent:2/0/run"].iter().all(|path| RunName::of(path.as_ref()).is_none()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "PathBuf", try_from = "PathBuf")]
pub struct RunName {
    /// The number of the agent that made it.
    pub agent: u32,
    /// The number of the folder there; [`MEMORY_FOLDER`] is its memory.
    pub folder: u32,
    /// Its name in that folder.
    pub name: String,
}

impl RunName {
    /// The run of this name in a folder of an agent.
    pub fn new(agent: u32, folder: u32, name: impl Into<String>) -> Self {
        let name = name.into();
        RunName {
            agent,
            folder,
            name,
        }
    }

    /// The run that a path names, if it names one.
    pub fn of(path: &Path) -> Option<Self> {
        let mut parts = path.to_str()?.strip_prefix(AGENT_PLACE)?.splitn(3, '/');
        let (agent, folder, name) = (parts.next()?, parts.next()?, parts.next()?);
        (!name.is_empty() && !name.contains('/')).then_some(())?;
        let (agent, folder) = (agent.parse().ok()?, folder.parse().ok()?);
        Some(RunName::new(agent, folder, name))
    }

    /// The path that names it.
    pub fn path(&self) -> PathBuf {
        let (agent, folder) = (self.agent, self.folder);
        format!("{AGENT_PLACE}{agent}/{folder}/{}", self.name).into()
    }
}

impl From<RunName> for PathBuf {
    fn from(run: RunName) -> Self {
        run.path()
    }
}

impl TryFrom<PathBuf> for RunName {
    type Error = &'static str;

    fn try_from(path: PathBuf) -> Result<Self, Self::Error> {
        RunName::of(&path).ok_or("not the name of a run")
    }
}
