//! What to start: two workers are interchangeable if their commands are equal.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// A program with all that decides what it is once it runs. Two arguments are added: the descriptors of a pipe for what
/// user code prints, and of the pulse.
///
/// ```
/// use gristmill_tasks::worker::WorkerCommand;
/// let command = WorkerCommand::new("python3", "/var/tmp").argument("-m").argument("gristmill.worker");
/// assert_eq!(command, command.clone());
/// assert_ne!(command, command.clone().variable("LANG", "C"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program: a path, or a name to be found on the PATH.
    pub program: PathBuf,
    /// Its arguments, without the pulse.
    pub arguments: Vec<OsString>,
    /// Environment variables, in addition to those of this process, or alone.
    pub environment: BTreeMap<OsString, OsString>,
    /// Whether `environment` is all there is. A caller whose environment can change says so and gives all of it:
    /// then no worker of an earlier environment is taken for one of the present.
    pub whole_environment: bool,
    /// The folder to start in; `None`: that of this process when the worker starts.
    pub folder: Option<PathBuf>,
    /// Where the pulse may lie if there is no /dev/shm with room: a folder for temporary files.
    pub scratch: PathBuf,
}

impl WorkerCommand {
    /// A program without arguments, in the environment and folder of this process.
    pub fn new(program: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        WorkerCommand {
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            whole_environment: false,
            folder: None,
            scratch: scratch.into(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// The same for the standard library, with some arguments more.
    pub(super) fn prepare(&self, more: &[OsString]) -> std::process::Command {
        let mut prepared = std::process::Command::new(&self.program);
        prepared.args(&self.arguments).args(more);
        if self.whole_environment {
            prepared.env_clear();
        }
        prepared.envs(&self.environment);
        if let Some(folder) = &self.folder {
            prepared.current_dir(folder);
        }
        prepared
    }
}
