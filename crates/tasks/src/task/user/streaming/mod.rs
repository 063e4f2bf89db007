//! Tasks whose map and reduce are scripts, or what Hadoop has built in for scripts: native between the scripts.
//!
//! ```text
//!   map      split ──▶ records ──▶ mapper ──▶ pairs ──▶ [combiner] ──▶ runs        or, without a reduce, a part
//!   reduce   a partition of all runs ──▶ pairs ──▶ reducer ──▶ a part
//! ```
//!
//! Each attempt has a working directory of its own, with the job's files in it; what a script leaves there goes with
//! it. What it writes to the folder that `mapreduce_task_output_dir` names becomes output, if the attempt counts.

mod bad_records;
mod combine;
mod debug;
mod definition;
mod environment;
mod failure;
mod folder;
mod keys;
mod map;
mod output;
mod reduce;
mod retry;
mod sink;
mod skip;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Deserialize;

pub use definition::{StreamingDefinition, StreamingStep};
pub use environment::variable;
pub use folder::is_inside;
pub use retry::retry;

use self::definition::PartitionStep;
use self::failure::Failing;
use self::folder::{Folder, unpack};
use self::skip::{RangeSet, ScriptProgress};
use super::executor::UserTaskExecutor;
use super::executor_spec::{ExecutorKind, ExecutorSpec};
use super::failed::FailedAt;
use super::node_environment::NodeEnvironment;
use super::spec::{UserAttemptSpec, UserTaskFile, UserTaskKind, UserTaskReport};
use crate::commit::{ARCHIVES, SCRIPT_FOLDER};
use crate::hadoop::script::pipes::{ScriptDeadline, Stdin, Stdout};
use crate::hadoop::script::process::{ScriptProgram, run};
use crate::hadoop::sequence::SequenceReader;
use crate::hadoop::value::WritableClass;
use crate::spill::SpillScratch;
use crate::task::attempt::TaskAttempt;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_base::sync::lock;
use gristmill_storage::FileKind;
use gristmill_storage::input::FileRange;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;

/// Runs the tasks of one job with scripts.
#[derive(Debug)]
pub struct StreamingExecutor {
    definition: StreamingDefinition,
    /// The same as it was given.
    text: String,
    /// The environment that scripts inherit.
    inherited: BTreeMap<OsString, OsString>,
    store: Arc<Stores>,
    /// The archives, once they are unpacked: names for links, and the folders.
    archives: Mutex<Option<Vec<(PathBuf, PathBuf)>>>,
    /// The cut points of a total order.
    cuts: Vec<Vec<u8>>,
    /// Memory of collectors of earlier tasks.
    scratches: Mutex<Vec<SpillScratch>>,
    /// Where the last attempt of each task failed that no command line tries again alone.
    failures: Mutex<BTreeMap<u32, FailedAt>>,
}

/// What a split is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StreamSplit {
    /// Ranges of files.
    pub pieces: Vec<FileRange>,
    /// The split's number in the whole job, where this is another one.
    #[serde(default)]
    pub number: Option<u32>,
}

/// One attempt under way.
#[derive(Debug)]
struct ScriptAttempt<'a> {
    definition: &'a StreamingDefinition,
    store: Arc<Stores>,
    spec: &'a UserAttemptSpec,
    attempt: &'a TaskAttempt<'a>,
    is_map: bool,
    /// The number of the split or the partition.
    number: u32,
    folder: &'a Path,
    /// Records, or groups, that the script is not to see.
    left_out: Option<&'a RangeSet>,
    /// Who wants to know how far a run came that may fail.
    seen: Option<&'a ScriptProgress>,
    /// Records that the last script was given; more than there are of a run without scripts.
    fed: AtomicU64,
}

/// An attempt at a task, which may have several runs.
#[derive(Debug)]
struct ScriptTask<'a> {
    work: &'a StreamingExecutor,
    spec: &'a UserAttemptSpec,
    attempt: &'a TaskAttempt<'a>,
    number: u32,
    split: Option<&'a StreamSplit>,
}

impl StreamingExecutor {
    /// The work of a job, defined in JSON.
    pub fn new(definition: &str, store: Arc<Stores>) -> Result<Self> {
        let text = definition.to_owned();
        let definition: StreamingDefinition =
            serde_json::from_str(definition).map_err(|error| {
                Error::bug(
                    "read the definition of a job with scripts",
                    error.to_string(),
                )
            })?;
        for (name, _) in definition.links.iter().chain(&definition.archives) {
            if !is_inside(name) {
                let message = format!(
                    "`{}` is not a name in a task's working directory",
                    show_path(name)
                );
                return Err(Error::new(Kind::BadOption, "ship files", message));
            }
        }
        let cuts = match &definition.partitioner {
            PartitionStep::Total(path) => read_cuts(&store, path)?,
            _ => Vec::new(),
        };
        Ok(StreamingExecutor {
            definition,
            text,
            inherited: BTreeMap::new(),
            store,
            archives: Mutex::default(),
            cuts,
            scratches: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    /// The same in this environment, whatever that of this process is; what is set for the job wins.
    #[must_use]
    pub fn inheriting(mut self, environment: BTreeMap<OsString, OsString>) -> Self {
        let first = environment.clone().into_iter();
        let then = std::mem::take(&mut self.definition.environment);
        self.definition.environment = first.chain(then).collect();
        self.inherited = environment;
        self
    }

    /// The same with its files where they are on this node.
    #[must_use]
    pub fn on(mut self, here: &NodeEnvironment) -> Self {
        let definition = &mut self.definition;
        for (_, file) in definition.links.iter_mut().chain(&mut definition.archives) {
            *file = here.path(file);
        }
        if let Some(path) = here.environment.get(OsStr::new("PATH")) {
            definition.search.clone_from(path);
        }
        self
    }

    /// Files and archives as links; the archives are unpacked by the first task that comes here.
    fn links(&self, spec: &UserAttemptSpec) -> Result<Vec<(PathBuf, PathBuf)>> {
        let mut links = self.definition.links.clone();
        if self.definition.archives.is_empty() {
            return Ok(links);
        }
        let mut archives = lock(&self.archives);
        if let Some(archives) = &*archives {
            links.extend(archives.iter().cloned());
            return Ok(links);
        }
        let home = place(spec)?.join(ARCHIVES);
        let mut unpacked = Vec::new();
        for (name, archive) in &self.definition.archives {
            let folder = home.join(name);
            unpack(archive, &folder)?;
            unpacked.push((name.clone(), folder));
        }
        links.extend(unpacked.iter().cloned());
        *archives = Some(unpacked);
        Ok(links)
    }

    fn scratch(&self) -> SpillScratch {
        let mut scratches = lock(&self.scratches);
        scratches.pop().unwrap_or_default()
    }

    fn failures(&self) -> MutexGuard<'_, BTreeMap<u32, FailedAt>> {
        lock(&self.failures)
    }

    fn keep(&self, scratch: SpillScratch) {
        lock(&self.scratches).push(scratch);
    }
}

impl UserTaskExecutor for StreamingExecutor {
    fn spec(&self) -> Option<ExecutorSpec> {
        let environment = self.inherited.clone();
        Some(ExecutorSpec {
            kind: ExecutorKind::Scripts { environment },
            definition: self.text.clone().into_bytes(),
        })
    }

    fn failed_at(&self, task: u32) -> Option<FailedAt> {
        self.failures().get(&task).cloned()
    }

    fn run(&self, spec: &UserAttemptSpec, attempt: &TaskAttempt<'_>) -> Result<UserTaskReport> {
        let (number, split) = match &spec.work {
            UserTaskKind::Map { number, what, .. } => {
                let split: StreamSplit = what.parse()?;
                (split.number.unwrap_or(*number), Some(split))
            }
            UserTaskKind::Reduce { partition, .. } | UserTaskKind::Regroup { partition, .. } => {
                (*partition, None)
            }
        };
        let task = ScriptTask {
            work: self,
            spec,
            attempt,
            number,
            split: split.as_ref(),
        };
        let left_out = task.bad_records()?;
        task.within(left_out.as_ref(), None, |attempted| {
            let done = match (&spec.work, &split) {
                (UserTaskKind::Map { bytes, .. }, Some(split)) => {
                    map::run(self, attempted, split, *bytes)
                }
                (
                    UserTaskKind::Reduce {
                        runs, source_bytes, ..
                    },
                    _,
                ) => reduce::run(self, attempted, runs, *source_bytes),
                _ => Err(Error::bug("run a script", "a map has no split")),
            };
            let mut report = done.map_err(|error| {
                if attempted.rerun_command().is_none() {
                    let fed = attempted.fed.load(Ordering::Relaxed);
                    let at = FailedAt::of_script((fed < u64::MAX).then_some(fed));
                    self.failures().insert(spec.task, at);
                }
                attempted.debugged(error)
            })?;
            attempted.add_side_files(&mut report)?;
            Ok(report)
        })
    }
}

impl ScriptTask<'_> {
    /// Makes the folders of a run, and calls `act` in them.
    fn within<T>(
        &self,
        left_out: Option<&RangeSet>,
        seen: Option<&ScriptProgress>,
        act: impl FnOnce(&ScriptAttempt<'_>) -> Result<T>,
    ) -> Result<T> {
        let (work, spec) = (self.work, self.spec);
        let path = place(spec)?.join(format!("{SCRIPT_FOLDER}{}-{}", spec.task, spec.attempt));
        let folder = Folder::make(path, &work.links(spec)?)?;
        let made = |path: &Path| {
            std::fs::create_dir_all(path)
                .map_err(|error| Error::from_io("make a task's directory", path, &error))
        };
        made(&folder.path().join("tmp"))?;
        made(&spec.output)?;
        act(&ScriptAttempt {
            definition: &work.definition,
            store: work.store.clone(),
            spec,
            attempt: self.attempt,
            is_map: self.split.is_some(),
            number: self.number,
            folder: folder.path(),
            left_out,
            seen,
            fed: AtomicU64::new(u64::MAX),
        })
    }
}

impl ScriptAttempt<'_> {
    /// The command line that does this task again, alone: of a map without a combiner, which would not be run.
    fn rerun_command(&self) -> Option<String> {
        let command = &self.definition.rerun_command;
        let mapper_alone = self.is_map && self.definition.combine.is_none();
        (mapper_alone && !command.is_empty()).then(|| format!("{command} {}", self.number))
    }

    fn program(&self, argv: &[OsString], piece: Option<&FileRange>) -> ScriptProgram {
        let mut environment = self.definition.environment.clone();
        let limit = self.definition.truncate.unwrap_or(usize::MAX);
        let own = environment::of_attempt(self, piece).into_iter();
        environment.extend(own.map(|(name, value)| (name.into(), cut(value, limit))));
        environment.extend(self.definition.variables.iter().cloned());
        environment.push(("TMPDIR".into(), self.folder.join("tmp").into()));
        ScriptProgram {
            argv: argv.to_vec(),
            environment,
            folder: self.folder.to_owned(),
            search: self.definition.search.clone(),
        }
    }

    /// Runs a script to its end. What it reported is added to `report`.
    fn script<T, F: Send>(
        &self,
        what: &'static str,
        argv: &[OsString],
        piece: Option<&FileRange>,
        report: &mut UserTaskReport,
        feed: impl FnOnce(&mut Stdin<'_>, &AtomicU64) -> Result<F> + Send,
        take: impl FnOnce(&mut Stdout<'_>) -> Result<T>,
    ) -> Result<(T, F)> {
        let timeout = self.definition.timeout_ms;
        let timeout = (timeout > 0).then(|| Duration::from_millis(timeout));
        let mut watch = ScriptDeadline::new(&self.attempt.stop, timeout);
        if !self.definition.exit_matters {
            watch = watch.with_any_exit();
        }
        let fed = AtomicU64::new(0);
        let program = self.program(argv, piece);
        let prefix = &self.definition.reporter_prefix;
        let ended = run(&program, prefix, &watch, |stdin| feed(stdin, &fed), take)?;
        let fed = fed.load(Ordering::Relaxed);
        self.fed.store(fed, Ordering::Relaxed);
        if let Some(seen) = self.seen {
            seen.ended(self.is_map, fed, &ended.stderr);
        }
        let failing = Failing {
            attempted: self,
            what,
            argv,
            piece,
            fed,
        };
        if let Some(error) = failing.of(&ended) {
            return Err(error);
        }
        add_counters(&mut report.counters, &ended.stderr.counters);
        add_stderr(&mut report.printed.stderr, &ended.stderr.tail());
        if let Some(status) = ended.stderr.status {
            report.status = status;
        }
        Ok((ended.stdout?, ended.stdin?))
    }

    /// What scripts wrote into the attempt's folder beside its parts.
    fn add_side_files(&self, report: &mut UserTaskReport) -> Result<()> {
        for path in self.store.disk().list(&self.spec.output)? {
            let name = PathBuf::from(path.file_name().unwrap_or_default());
            let is_known = |file: &UserTaskFile| file.name.starts_with(&name);
            if report.files.iter().any(is_known) {
                continue;
            }
            match self.store.disk().stat(&path)? {
                Some(stat) if stat.kind == FileKind::File => {
                    report.files.push(UserTaskFile {
                        name,
                        bytes: stat.bytes,
                        records: 0,
                        crc: None,
                    });
                }
                _ => {
                    let message = "only files can be written beside the parts";
                    return Err(Error::new(Kind::UserCode, "collect the output", message)
                        .with_path(&path)
                        .advise("let the script write files to mapreduce_task_output_dir itself, not to a directory in it"));
                }
            }
        }
        Ok(())
    }
}

/// A variable's value, no longer than so many characters, or bytes where it is not UTF-8.
fn cut(value: OsString, limit: usize) -> OsString {
    if value.len() <= limit {
        return value;
    }
    match value.to_str() {
        Some(text) => text.chars().take(limit).collect::<String>().into(),
        None => OsString::from_vec(value.into_vec().into_iter().take(limit).collect()),
    }
}

/// The job's first spill folder.
fn place(spec: &UserAttemptSpec) -> Result<&Path> {
    let place = spec
        .places
        .first()
        .ok_or_else(|| Error::bug("run a script", "the job has no directory"))?;
    Ok(place)
}

fn add_counters(
    sums: &mut BTreeMap<String, BTreeMap<String, i64>>,
    more: &BTreeMap<String, BTreeMap<String, i64>>,
) {
    for (group, counters) in more {
        let sums = sums.entry(group.clone()).or_default();
        for (name, amount) in counters {
            let sum = sums.entry(name.clone()).or_default();
            *sum = sum.wrapping_add(*amount);
        }
    }
}

/// Adds the last lines of a script's stderr: a task may run several.
fn add_stderr(printed: &mut String, lines: &[String]) {
    for line in lines {
        printed.extend([line, "\n"]);
    }
}

/// The keys of a partition file, which ascend.
fn read_cuts(stores: &Stores, file: &Location) -> Result<Vec<Vec<u8>>> {
    let (store, path) = stores.resolve(file)?;
    let mut reader = SequenceReader::open(store, path, 0..u64::MAX)?;
    let class = WritableClass::by_java(reader.classes().0);
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    while reader.advance()? {
        let key = class.map_or(Err("its class is not known"), |class| {
            class.deserialize(reader.pair().0)
        });
        let key = key.map_err(|what| {
            Error::new(Kind::BadInput, "read the partition file", what).with_path(path)
        })?;
        if cuts.last().is_some_and(|last| last.as_slice() >= key) {
            return Err(Error::new(
                Kind::BadInput,
                "read the partition file",
                "its keys do not ascend",
            )
            .with_path(path));
        }
        cuts.push(key.to_vec());
    }
    Ok(cuts)
}
