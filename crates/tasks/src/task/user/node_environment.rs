//! What user code finds on a node of a cluster, in the place of what it was started with on the driver's machine.
//!
//! ```text
//!   driver's machine              this node
//!   /home/me/job/words.py         the same, if it is there; else /tmp/gristmill-0/1f0c…/words.py, which came along
//!   its Python, its environment   the same, if this is that machine; else the node's own
//! ```
//!
//! Decision: docs/decisions/shipped-code.md.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::worker::WorkerCommand;
use gristmill_base::error::Result;
use gristmill_storage::Store;

/// The variable by which user code finds what it read by a path of the driver's machine: pairs of paths, as JSON.
const MOVED_VARIABLE: &str = "GRISTMILL_MOVED";

/// What a node has in the place of what the driver's machine has.
///
/// ```
/// use gristmill_tasks::task::NodeEnvironment;
/// let here: NodeEnvironment = serde_json::from_str(r#"{"moved": [["/home/me", "/tmp/copy"]]}"#)?;
/// assert_eq!(here.path("/home/me/words.py".as_ref()).to_str(), Some("/tmp/copy/words.py"));
/// assert_eq!(here.path("/home/meg/words.py".as_ref()).to_str(), Some("/home/meg/words.py"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeEnvironment {
    /// What came along: where it is on the driver's machine, and where here.
    #[serde(with = "gristmill_base::names")]
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// The Python of this node.
    #[serde(with = "gristmill_base::names")]
    pub python: PathBuf,
    /// Where that finds modules.
    #[serde(with = "gristmill_base::names")]
    pub python_path: Vec<OsString>,
    /// The environment of this node, if it is another machine than the driver's.
    #[serde(with = "gristmill_base::names")]
    pub environment: BTreeMap<OsString, OsString>,
    /// What worker processes have in theirs besides.
    #[serde(skip)]
    pub variables: BTreeMap<OsString, OsString>,
    /// A folder that is there.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl NodeEnvironment {
    /// Where a file of the driver's machine is here.
    pub fn path(&self, path: &Path) -> PathBuf {
        let below = |(from, to): &(PathBuf, PathBuf)| match path.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => Some(to.clone()),
            Ok(rest) => Some(to.join(rest)),
            Err(_) => None,
        };
        let longest = self
            .moved
            .iter()
            .filter_map(|pair| Some((pair.0.as_os_str().len(), below(pair)?)));
        let longest = longest.max_by_key(|(length, _)| *length);
        longest.map_or_else(|| path.to_owned(), |(_, here)| here)
    }

    /// The environment of what was started with this one: what this node says comes first.
    pub fn environment(
        &self,
        of_driver: BTreeMap<OsString, OsString>,
    ) -> BTreeMap<OsString, OsString> {
        let mut environment = of_driver;
        environment.extend(self.environment.clone());
        environment
    }

    /// The command of a worker process with Python functions, as it is here.
    ///
    /// # Errors
    /// The disk of this node cannot be asked.
    pub fn command(&self, of_driver: WorkerCommand, disk: &dyn Store) -> Result<WorkerCommand> {
        let mut command = WorkerCommand {
            environment: self.environment(of_driver.environment),
            ..of_driver
        };
        command.environment.extend(self.variables.clone());
        let arguments = command.arguments.iter();
        let arguments: Vec<OsString> = arguments
            .map(|text| self.path(Path::new(text)).into())
            .collect();
        let is_here = disk.stat(&command.program)?.is_some();
        if !self.python.as_os_str().is_empty() && (!is_here || arguments != command.arguments) {
            command.program = self.python.clone();
            command.arguments = arguments;
            command.arguments.extend(self.python_path.clone());
        }
        if !self.moved.is_empty() {
            let moved = self.moved.iter().map(|(from, to)| {
                (
                    gristmill_base::names::spell(from),
                    gristmill_base::names::spell(to),
                )
            });
            let moved = serde_json::Value::from_iter(moved).to_string();
            command
                .environment
                .insert(MOVED_VARIABLE.into(), moved.into());
        }
        if self.folder.as_os_str().is_empty() {
            return Ok(command);
        }
        if let Some(folder) = command.folder.take() {
            let is_here = disk.stat(&folder)?.is_some();
            command.folder = Some(if is_here { folder } else { self.folder.clone() });
        }
        if disk.stat(&command.scratch)?.is_none() {
            command.scratch.clone_from(&self.folder);
        }
        Ok(command)
    }
}
