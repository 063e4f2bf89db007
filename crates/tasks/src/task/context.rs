//! What tasks run with, in three parts that end at different walls.
//!
//! ```text
//!   JobShared     a value: the same for all tasks of a job, sent once to each process that runs some
//!   NodeContext   what a machine has: stores, memory, an executor of user code
//!   InProcess     what only the driver's process has: the input in memory, streams
//! ```
//!
//! A task that needs something [`InProcess`] runs in the driver's process; any other runs wherever there are a
//! `JobShared` and a `NodeContext`.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::attempt::AttemptId;
use super::kinds::copy::streams::CopyStreams;
use super::runs::{AgentFolders, KeptRuns};
use super::user::executor::UserTaskExecutor;
use super::user::failed::FailureFolder;
use crate::reduce::ReduceScratch;
use crate::reduce::lines::LineScratch;
use crate::spill::{SharedStream, SpillScratch, SpilledRun};
use gristmill_base::budget::{Budget, Reservation};
use gristmill_base::error::{Error, Result};
use gristmill_base::order::lines;
use gristmill_base::order::scatter::EntryStaging;
use gristmill_base::record::arena::{Arena, file_starts};
use gristmill_base::sync::lock;
use gristmill_storage::hdfs::BlockSettings;
use gristmill_storage::input::InputFile;
use gristmill_storage::io::overlap::Buffers;
use gristmill_storage::location::Location;
use gristmill_storage::objects::part_bytes;
use gristmill_storage::objects::part_uploader::{PARTS_AT_ONCE, PartUploader};
use gristmill_storage::options::StoreOptions;
use gristmill_storage::shared::SharedOutputs;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, LocalDisk, WriteFile};

/// What the tasks of a job share, as a value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobShared {
    /// The job's name.
    pub job_id: String,
    /// The input.
    pub files: Vec<InputFile>,
    /// Whether a task's output is made durable before the input of the task may go.
    pub durable: bool,
    /// Whether reports carry a CRC of each file of user code, so that a resumed job can check the file.
    pub checkpoint_outputs: bool,
    /// Memory that each task has for parts of uploads on their way, beside the part that it fills: the job holds it.
    pub parts_bytes: u64,
    /// Memory that each task has for reading a far store ahead, beside its buffers.
    pub ahead_bytes: u64,
    /// How the output is cut and kept in HDFS.
    pub blocks: BlockSettings,
    /// Where the records are kept that user code failed at, if anywhere.
    pub failures: Option<FailureFolder>,
    /// How its stores are reached.
    pub store_options: StoreOptions,
    /// How outputs at paths are written, if tasks on several machines write them.
    pub shared_outputs: Option<SharedOutputs>,
}

/// What a machine has for the tasks of a job.
#[derive(Debug)]
pub struct NodeContext {
    /// Where files are.
    pub store: Arc<Stores>,
    /// Where runs are: the disk of this machine, or memory.
    pub runs: Arc<dyn LocalDisk>,
    /// The job's memory on this machine.
    pub budget: Budget,
    /// What runs user code, in jobs that have some.
    pub executor: Option<Arc<dyn UserTaskExecutor>>,
    /// Where tasks write, on a machine of a cluster; elsewhere the plan says it.
    pub places: Option<AgentFolders>,
    /// How many files its copy tasks copy at once.
    pub streams: Arc<CopyStreams>,
    /// What runs may have of the budget to lie in memory: of the driver of a cluster, on all nodes.
    runs_memory: Option<Reservation>,
}

impl NodeContext {
    /// A machine with these stores, for jobs without user code.
    pub fn new(store: Arc<Stores>, budget: Budget) -> Self {
        NodeContext {
            runs: Arc::clone(store.disk()),
            store,
            budget,
            executor: None,
            places: None,
            streams: Arc::default(),
            runs_memory: None,
        }
    }

    /// How much memory it holds for runs.
    pub fn runs_bytes(&self) -> u64 {
        self.runs_memory.as_ref().map_or(0, Reservation::bytes)
    }

    /// The same, which holds so much memory for runs as long as it is there.
    ///
    /// # Errors
    /// The budget has too little.
    pub fn with_runs_in_memory(self, bytes: u64) -> Result<Self> {
        let memory = self.budget.reserve("runs in memory", bytes)?;
        Ok(NodeContext {
            runs_memory: Some(memory),
            ..self
        })
    }

    /// Where tasks write runs on this machine, where a plan says so.
    pub(super) fn run_folders<'n>(&'n self, planned: &'n [PathBuf]) -> &'n [PathBuf] {
        self.places.as_ref().map_or(planned, |places| &places.runs)
    }

    /// Gives runs the names by which tasks on all machines find them.
    pub(super) fn name_runs(&self, runs: &mut [SpilledRun]) {
        if let Some(places) = &self.places {
            runs.iter_mut().for_each(|run| places.name(run));
        }
    }

    /// The same with other places for what tasks write.
    #[must_use]
    pub fn with_places(self, places: Option<AgentFolders>) -> Self {
        NodeContext { places, ..self }
    }

    /// The same with runs in another store.
    #[must_use]
    pub fn with_runs(self, runs: Arc<dyn LocalDisk>) -> Self {
        NodeContext { runs, ..self }
    }

    /// The same, whose copy tasks go on from streams that others have found to be best.
    #[must_use]
    pub fn with_streams(self, streams: Arc<CopyStreams>) -> Self {
        NodeContext { streams, ..self }
    }

    /// The same with an executor of user code.
    #[must_use]
    pub fn with_executor(self, executor: Option<Arc<dyn UserTaskExecutor>>) -> Self {
        NodeContext { executor, ..self }
    }
}

/// What only the driver's process has.
#[derive(Debug, Default)]
pub enum InProcess {
    /// Nothing: the job's tasks run anywhere.
    #[default]
    Nothing,
    /// The input in memory, for jobs whose maps leave their output there.
    Memory(InMemory),
    /// Streams, which are read and written once.
    Streams {
        /// Those that are input.
        inputs: Vec<SharedStream>,
        /// The one that is output, if any.
        output: Option<Arc<dyn WriteFile>>,
    },
}

/// The input in memory, and what maps made of it.
#[derive(Debug)]
pub struct InMemory {
    /// Where the input lies.
    pub arena: Arena,
    /// What tasks have scattered, until the job ends.
    scattered: Mutex<BTreeMap<AttemptId, Arc<dyn Any + Send + Sync>>>,
}

impl InMemory {
    /// An input that no map has read yet.
    pub fn new(arena: Arena) -> Self {
        InMemory {
            arena,
            scattered: Mutex::default(),
        }
    }

    pub(super) fn keep<T: Send + Sync + 'static>(&self, id: AttemptId, scattered: T) {
        // A panic elsewhere leaves the map whole: inserting and reading are all that is done to it.
        lock(&self.scattered).insert(id, Arc::new(scattered));
    }

    /// What these tasks have scattered.
    pub(super) fn kept<T: Send + Sync + 'static>(&self, of: &[AttemptId]) -> Result<Vec<Arc<T>>> {
        let scattered = lock(&self.scattered);
        let kept = |id: &AttemptId| scattered.get(id)?.clone().downcast().ok();
        let kept = |id| kept(id).ok_or_else(|| gone(*id));
        of.iter().map(kept).collect()
    }
}

fn gone(id: AttemptId) -> Error {
    Error::bug("run a task", format!("the output of {id:?} is gone"))
}

/// What a task runs with.
#[derive(Debug)]
pub struct TaskContext {
    /// What the job's tasks share.
    pub job: JobShared,
    /// What this machine has.
    pub node: NodeContext,
    /// What this process has, where it is the driver's.
    process: InProcess,
    /// Where each input file begins in the job's address space.
    pub(super) starts: Vec<u64>,
    /// Bytes done, over all tasks of the stage.
    pub done_bytes: AtomicU64,
}

impl TaskContext {
    /// The context of a job's tasks on this machine, in this process.
    pub fn new(job: JobShared, node: NodeContext, process: InProcess) -> Self {
        let sizes: Vec<u64> = job.files.iter().map(|file| file.stat.bytes).collect();
        TaskContext {
            starts: file_starts(&sizes),
            job,
            node,
            process,
            done_bytes: AtomicU64::new(0),
        }
    }

    /// The input's memory, of jobs that have it there.
    pub fn in_memory(&self) -> Option<&InMemory> {
        match &self.process {
            InProcess::Memory(memory) => Some(memory),
            _ => None,
        }
    }

    pub(super) fn memory(&self) -> Result<&InMemory> {
        self.in_memory()
            .ok_or_else(|| Error::bug("run a task", "its input is not in this process's memory"))
    }

    /// The input stream of this number.
    pub(super) fn stream(&self, number: usize) -> Result<&SharedStream> {
        let stream = match &self.process {
            InProcess::Streams { inputs, .. } => inputs.get(number),
            _ => None,
        };
        stream.ok_or_else(|| Error::bug("run a task", "its input stream is not in this process"))
    }

    /// Whether input is read from streams.
    pub fn reads_streams(&self) -> bool {
        matches!(&self.process, InProcess::Streams { inputs, .. } if !inputs.is_empty())
    }

    /// Whether its tasks need what only this process has.
    pub fn needs_this_process(&self) -> bool {
        match &self.process {
            InProcess::Nothing => false,
            InProcess::Memory(_) => true,
            InProcess::Streams { inputs, output } => !inputs.is_empty() || output.is_some(),
        }
    }

    /// How parts of a file of `bytes` bytes, or of several as long, are sent: several at once, where it is an upload and
    /// the job has memory for them.
    pub(super) fn sending(&self, path: &Location, bytes: u64) -> Option<Arc<PartUploader>> {
        let granted = (self.job.parts_bytes / part_bytes(bytes)).min(PARTS_AT_ONCE) as usize;
        (granted > 0 && self.node.store.sends_parts(path)).then(|| PartUploader::new(granted))
    }

    /// Creates a file of the output, of which parts are sent so.
    pub(super) fn create(
        &self,
        path: &Location,
        bytes: u64,
        sending: Option<&Arc<PartUploader>>,
    ) -> Result<Arc<dyn WriteFile>> {
        let file = self.node.store.create(path, bytes, Caching::Direct)?;
        sending.iter().for_each(|sending| file.send_by(sending));
        Ok(Arc::from(file))
    }

    /// The output stream.
    pub(super) fn sink(&self) -> Result<Arc<dyn WriteFile>> {
        match &self.process {
            InProcess::Streams {
                output: Some(output),
                ..
            } => Ok(Arc::clone(output)),
            _ => Err(Error::bug(
                "run a task",
                "its output stream is not in this process",
            )),
        }
    }
}

/// What one worker reuses from task to task.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(super) staging: EntryStaging,
    pub(super) reduce: ReduceScratch,
    pub(super) spill: SpillScratch,
    pub(super) merge: Buffers,
    pub(super) buffers: Buffers,
    pub(super) runs: KeptRuns,
    pub(super) line_staging: lines::LineStaging,
    pub(super) lines: LineScratch,
}

impl Scratch {
    /// Gives back what spilling has no use for: stages have the memory in turn.
    pub(super) fn keep_for_spill(&mut self) {
        let spill = std::mem::take(&mut self.spill);
        *self = Scratch {
            spill,
            ..Scratch::default()
        };
    }

    /// Gives back what merging has no use for.
    pub(super) fn keep_for_merge(&mut self) {
        let before = std::mem::take(self);
        *self = Scratch {
            merge: before.merge,
            buffers: before.buffers,
            runs: before.runs,
            ..Scratch::default()
        };
    }
}
