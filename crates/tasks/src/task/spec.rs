//! All kinds of tasks: the one place that names each of them.
//!
//! A task is a value: [`TaskSpec`] in, [`TaskReport`] out, [`run_task`] does it. Its kind answers what is asked of it
//! ([`TaskKind`]); a report of another kind has no answer.

use serde::{Deserialize, Serialize};

use super::attempt::{AttemptId, TaskAttempt};
use super::checkpoint::Checkpoint;
use super::context::{JobShared, Scratch, TaskContext};
use super::fingerprint::Fingerprint;
use super::input::InputPiece;
use super::kind::{Counters, Side, TaskKind};
use super::kinds::copy::files::CopyFilesSpec;
use super::kinds::entries::EntryPlan;
use super::kinds::gather::GatherSpec;
use super::kinds::generate::GenerateSpec;
use super::kinds::lines::LinePlan;
use super::kinds::merge::MergeSpec;
use super::kinds::merge_runs::MergeRunsSpec;
use super::kinds::sample::SampleSpec;
use super::kinds::sample_keys::SampleKeysSpec;
use super::kinds::scatter::ScatterSpec;
use super::kinds::spill::SpillSpec;
use super::kinds::user_task::UserTaskSpec;
use super::kinds::validate::ValidateSpec;
use super::released_space::ReleasedSpace;
use super::runs::MergeRun;
use super::wire::Message;
use crate::spill::SpilledRun;
use crate::worker::TaskPrintout;
use gristmill_base::error::Result;
use gristmill_storage::Store;
use gristmill_storage::objects::Upload;

/// A task whose kind is known: it becomes one of any kind, and a report of its kind is told from others.
///
/// ```
/// use gristmill_tasks::task::{SampleSpec, TaskReport, TypedTask};
/// let report = TaskReport::Sample(Vec::new());
/// assert_eq!(SampleSpec::typed(report), Some(Vec::new()));
/// ```
pub trait TypedTask: TaskKind + Into<TaskSpec> {
    /// The report of a task of this kind; nothing if it is another's.
    fn typed(report: TaskReport) -> Option<Self::Report>;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($spec:ty),)*) => {
        /// What a task is to do.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum TaskSpec {
            $($(#[$doc])* $kind($spec),)*
        }

        /// What a task did.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum TaskReport {
            $(
                #[doc = concat!("What [`TaskSpec::", stringify!($kind), "`] did.")]
                $kind(<$spec as TaskKind>::Report),
            )*
        }

        /// Does a task. The same for every runner.
        ///
        /// # Errors
        /// It failed, or was told to stop.
        pub fn run_task(
            spec: &TaskSpec,
            context: &TaskContext,
            attempt: &TaskAttempt<'_>,
            scratch: &mut Scratch,
        ) -> Result<TaskReport> {
            match spec {
                $(TaskSpec::$kind(task) => {
                    task.run((context, attempt, scratch)).map(TaskReport::$kind)
                })*
            }
        }

        impl TaskSpec {
            /// What the task works on, in a few words for people.
            pub fn input(&self, context: &TaskContext) -> String {
                match self { $(TaskSpec::$kind(task) => task.input(context),)* }
            }

            /// The side that the task counts for, if any.
            pub fn side(&self) -> Option<Side> {
                match self { $(TaskSpec::$kind(task) => task.side(),)* }
            }

            /// How many runs it reads a segment of, to merge them.
            pub fn segments_read(&self) -> usize {
                match self { $(TaskSpec::$kind(task) => task.segments_read(),)* }
            }

            /// Whether it runs user code.
            pub fn runs_user_code(&self) -> bool {
                match self { $(TaskSpec::$kind(task) => task.runs_user_code(),)* }
            }

            /// Whether only the driver's process can do it.
            pub fn stays_here(&self) -> bool {
                match self { $(TaskSpec::$kind(task) => task.stays_here(),)* }
            }

            /// Whether two attempts may run at once.
            pub fn writes_apart(&self) -> bool {
                match self { $(TaskSpec::$kind(task) => task.writes_apart(),)* }
            }

            /// The runs that it reads.
            pub fn reads(&self) -> &[MergeRun] {
                match self { $(TaskSpec::$kind(task) => task.reads(),)* }
            }

            /// The node that should do it, of as many as there are.
            pub fn home(&self) -> Option<u32> {
                match self { $(TaskSpec::$kind(task) => task.home(),)* }
            }

            /// The pieces of the job's input that it reads.
            pub fn input_pieces(&self, job: &JobShared) -> Vec<InputPiece> {
                match self { $(TaskSpec::$kind(task) => task.input_pieces(job),)* }
            }

            /// Whether it uses up what other tasks made.
            pub fn uses_up(&self) -> bool {
                match self { $(TaskSpec::$kind(task) => task.uses_up(),)* }
            }

            /// Equal for tasks that write the same bytes to the same places of a job's folders.
            ///
            /// ```
            /// use gristmill_tasks::task::{SampleSpec, TaskSpec};
            /// let task = |record_bytes| TaskSpec::Sample(SampleSpec { stretches: Vec::new(), record_bytes });
            /// assert_eq!(task(100).fingerprint(), task(100).fingerprint());
            /// assert_ne!(task(100).fingerprint(), task(200).fingerprint());
            /// ```
            pub fn fingerprint(&self) -> u64 {
                let mut print = Fingerprint::default();
                // Writing to a fingerprint cannot fail.
                let _ = match self { $(TaskSpec::$kind(task) => task.fingerprint(&mut print),)* };
                print.value()
            }

            /// What a task has used up that gave this report.
            pub fn consumed(&self, report: &TaskReport) -> Vec<ReleasedSpace> {
                match (self, report) {
                    $((TaskSpec::$kind(task), TaskReport::$kind(report)) => task.consumed(report),)*
                    _ => Vec::new(),
                }
            }

            /// What of a report outlives the process; nothing where the task's output goes with it.
            pub fn checkpoint(&self, report: &TaskReport) -> Option<Checkpoint> {
                let checkpoint = match (self, report) {
                    $((TaskSpec::$kind(task), TaskReport::$kind(report)) => task.checkpoint(report),)*
                    _ => None,
                };
                let has_them = |kept: &Checkpoint| !kept.uploads().is_empty();
                if report.uploads().is_empty() || checkpoint.as_ref().is_some_and(has_them) {
                    return checkpoint;
                }
                serde_json::to_string(report).ok().map(Checkpoint::Uploaded)
            }
        }

        $(
            impl From<$spec> for TaskSpec {
                fn from(task: $spec) -> Self {
                    TaskSpec::$kind(task)
                }
            }

            impl TypedTask for $spec {
                fn typed(report: TaskReport) -> Option<Self::Report> {
                    match report {
                        TaskReport::$kind(report) => Some(report),
                        _ => None,
                    }
                }
            }
        )*

        impl TaskReport {
            /// What the task `spec` did, by Hadoop's names for it.
            pub fn counters(&self, spec: &TaskSpec) -> Counters {
                match (spec, self) {
                    $((TaskSpec::$kind(task), TaskReport::$kind(report)) => task.counters(report),)*
                    _ => Vec::new(),
                }
            }

            /// The uploads that a committer has to complete.
            pub fn uploads(&self) -> Vec<&Upload> {
                match self { $(TaskReport::$kind(report) => <$spec>::uploads(report),)* }
            }

            /// The runs that the task wrote.
            pub fn runs(&self) -> &[SpilledRun] {
                match self { $(TaskReport::$kind(report) => <$spec>::runs(report),)* }
            }

            /// What user code printed, where it ran.
            pub fn printed(&self) -> Option<&TaskPrintout> {
                match self { $(TaskReport::$kind(report) => <$spec>::printed(report),)* }
            }
        }
    };
}

kinds! {
    /// Reads keys here and there.
    Sample(SampleSpec),
    /// Scatters a split.
    Map(ScatterSpec<EntryPlan>),
    /// Writes ranges of the output.
    Reduce(GatherSpec<EntryPlan>),
    /// Reads keys of any length here and there.
    SampleKeys(SampleKeysSpec),
    /// Sorts what fits, and writes it as runs.
    Spill(SpillSpec),
    /// Merges runs to the output.
    Merge(MergeSpec),
    /// Merges runs to a longer one.
    MergeRuns(MergeRunsSpec),
    /// Makes records.
    Generate(GenerateSpec),
    /// Checks records.
    Validate(ValidateSpec),
    /// Runs user code.
    User(UserTaskSpec),
    /// Scatters the lines of a split.
    ScatterLines(ScatterSpec<LinePlan>),
    /// Writes ranges of the output from scattered lines.
    GatherLines(GatherSpec<LinePlan>),
    /// Copies files.
    CopyFiles(CopyFilesSpec),
}

impl TaskSpec {
    /// Keeps, in the driver's process, what user code failed at in an attempt, of which its agent has `kept` this; `agents`
    /// reads the runs of the agent.
    ///
    /// # Errors
    /// It cannot be had, or written.
    pub fn take_failed(
        &self,
        id: AttemptId,
        (context, agents): (&TaskContext, &dyn Store),
        kept: &str,
    ) -> Result<()> {
        match self {
            TaskSpec::User(task) => task.take_failed(id, (context, agents), kept),
            _ => Ok(()), // it has none
        }
    }
}

impl TaskReport {
    /// What a task made, as space to give back where its report does not count.
    pub fn discarded_outputs(&self) -> Vec<ReleasedSpace> {
        let runs = self.runs().iter();
        runs.map(|run| ReleasedSpace::whole(&run.path)).collect()
    }

    /// Forgets what user code printed, which is in the job's log.
    pub fn forget_printed(&mut self) {
        if let TaskReport::User(report) = self {
            report.printed = TaskPrintout::default();
        }
    }
}

impl Message for TaskSpec {
    const KIND: [u8; 4] = *b"spec";
    const NAME: &'static str = "a task";
}

impl Message for TaskReport {
    const KIND: [u8; 4] = *b"rept";
    const NAME: &'static str = "a task's report";
}
