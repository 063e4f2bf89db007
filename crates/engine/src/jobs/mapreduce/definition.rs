//! What a job of user code is: kept beside its output as long as it runs, so that another process can resume it.
//!
//! ```text
//!   definition = a line of JSON: splits, files, code, how it is run │ the bytes that its workers are given
//!   history   ── its SHA-256                                  mode 0600, as there may be secrets in it
//! ```
//!
//! The rule that must hold: nothing of it is believed, let alone run, unless the file is this user's alone, its hash is
//! that of the history, and job, options, Python and the files of its code are what they were.
//!
//! Decision: docs/decisions/user-code-resume.md.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::contents::{self, FileSnapshot, contents};
use crate::history::Hidden;
use crate::jobs::environment::Environment;
use crate::jobs::registry::JobSpec;
use crate::jobs::steps::refusal::NOT_BEGUN;
use crate::jobs::steps::{OPERATION, ReplayedHistory, RunningJob};
use crate::plan::mapreduce::MapReduceSpec;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::location::Location;
use gristmill_tasks::commit::{Committer, definition_of, home_of};
use gristmill_tasks::task::{ExecutorKind, ExecutorSpec, UserTaskExecutor, UserTaskSplit};

/// The version of the file.
const FORMAT: u32 = 3;

/// A job with its splits, and with who runs its code.
#[derive(Debug, Default)]
pub(super) struct JobDefinition {
    pub(super) spec: MapReduceSpec,
    pub(super) work: Option<Arc<dyn UserTaskExecutor>>,
    /// The hash of the file, in hexadecimal.
    pub(super) hash: Option<String>,
    /// Whether its code is ours, so that its options alone say what it does.
    native: bool,
    /// The file, which is not there yet.
    written: Vec<u8>,
}

/// The file's first line.
#[derive(Debug, Serialize, Deserialize)]
struct DefinitionHeader {
    format: u32,
    job_id: String,
    /// Which Python, and where.
    host: String,
    /// The options that the history has, too.
    options: Value,
    files: Vec<Location>,
    splits: Vec<UserTaskSplit>,
    /// What must not come back in an error that the history keeps.
    #[serde(default)]
    hidden: Hidden,
    /// The files of its code as they were.
    code: Vec<FileSnapshot>,
    /// Its side files as they were.
    side_files: Vec<FileSnapshot>,
    how: ExecutorKind,
}

/// The files that the code of a job is in, which may have to go to other machines.
#[derive(Debug, Serialize)]
pub struct FilesOfCode {
    /// Whether it is Python.
    pub is_python: bool,
    /// Its modules, then.
    #[serde(with = "gristmill_base::names")]
    pub modules: Vec<PathBuf>,
    /// Files that it reads beside its input.
    #[serde(with = "gristmill_base::names")]
    pub files: Vec<PathBuf>,
}

impl FilesOfCode {
    /// Those of a dead job that kept what its code is, under this hash; nothing where that is not there any more.
    ///
    /// # Errors
    /// Somebody else may have written it.
    pub(in crate::jobs) fn kept(
        environment: &Environment,
        job: &JobSpec,
        hash_of_kept: &str,
    ) -> Result<Option<Self>> {
        let Some(output) = job.asked().output else {
            return Ok(None);
        };
        let store = &*environment.store;
        let home = home_of(store, output.path(), &job.common.spill_dir);
        let kept = definition_of(&**store.disk(), &home, &environment.job_id)?;
        let Some(kept) = kept.filter(|kept| hash(kept) == hash_of_kept) else {
            return Ok(None);
        };
        let (header, definition) = split(&kept)?;
        let local = |contents: &[FileSnapshot]| {
            let paths = contents.iter().map(FileSnapshot::path);
            paths
                .filter_map(|path| path.local().map(Path::to_owned))
                .collect()
        };
        let is_python = matches!(header.how, ExecutorKind::Processes { .. });
        let files = match is_python {
            true => local(&header.side_files),
            false => shipped(&definition)?,
        };
        Ok(Some(FilesOfCode {
            is_python,
            modules: local(&header.code),
            files,
        }))
    }
}

/// The files and archives that go along with scripts.
fn shipped(definition: &[u8]) -> Result<Vec<PathBuf>> {
    #[derive(Deserialize)]
    struct Shipped {
        #[serde(with = "gristmill_base::names")]
        links: Vec<(PathBuf, PathBuf)>,
        #[serde(with = "gristmill_base::names")]
        archives: Vec<(PathBuf, PathBuf)>,
    }
    let found: Shipped = serde_json::from_slice(definition)
        .map_err(|error| Error::bug("read a job's definition", error.to_string()))?;
    let all = found.links.into_iter().chain(found.archives);
    Ok(all.map(|(_, path)| path).collect())
}

impl JobDefinition {
    /// Of a job that begins, as it was given; or of a resumed one, as it was kept.
    pub(super) fn of(job: &RunningJob<'_>, spec: &MapReduceSpec) -> Result<Self> {
        match job.resumed {
            Some(replayed) => kept(job, spec, replayed),
            None => given(job, spec),
        }
    }

    /// Of a job whose code is ours.
    pub(super) fn native(spec: MapReduceSpec, work: Arc<dyn UserTaskExecutor>) -> Self {
        JobDefinition {
            spec,
            work: Some(work),
            native: true,
            ..JobDefinition::default()
        }
    }

    /// Whether another process could find out what the job is.
    pub(super) fn is_known(&self) -> bool {
        self.native || self.hash.is_some()
    }

    /// Writes the file of a job that begins.
    pub(super) fn keep(&self, committer: &dyn Committer) -> Result<()> {
        match self.hash {
            Some(_) => committer.folder().keep_definition(&self.written),
            None => Ok(()),
        }
    }
}

fn given(job: &RunningJob<'_>, spec: &MapReduceSpec) -> Result<JobDefinition> {
    let environment = job.environment;
    let mut found = JobDefinition {
        spec: spec.clone(),
        work: environment.work.clone(),
        ..JobDefinition::default()
    };
    let executor = environment.work.as_ref().and_then(|work| work.spec());
    if let Some(executor) = executor
        && spec.not_resumable_reason.is_none()
        && job.watched.recorder().is_on()
    {
        found.written = file_of(environment, spec, executor)?;
        found.hash = Some(hash(&found.written));
    }
    Ok(found)
}

fn file_of(
    environment: &Environment,
    spec: &MapReduceSpec,
    executor: ExecutorSpec,
) -> Result<Vec<u8>> {
    let absolute = |location: &Location| {
        let Some(path) = location.local() else {
            return Ok(location.clone());
        };
        let found = std::path::absolute(path).map(Location::from);
        found.map_err(|error| Error::from_io("find the input", path, &error))
    };
    let store = &*environment.store;
    let side_files: Vec<_> = spec
        .side_files
        .iter()
        .map(absolute)
        .collect::<Result<_>>()?;
    let code: Vec<_> = spec.code.iter().map(|path| path.as_path().into()).collect();
    let header = DefinitionHeader {
        format: FORMAT,
        job_id: environment.job_id.clone(),
        host: environment.interpreter.clone(),
        options: environment.history.options.clone(),
        hidden: environment.history.hidden.clone(),
        files: spec.files.iter().map(absolute).collect::<Result<_>>()?,
        splits: spec.splits.clone(),
        code: contents(store, &code)?,
        side_files: contents(store, &side_files)?,
        how: executor.kind,
    };
    let mut bytes = serde_json::to_vec(&header)
        .map_err(|error| Error::bug("keep a job's definition", error.to_string()))?;
    bytes.push(b'\n');
    bytes.extend(executor.definition);
    Ok(bytes)
}

fn kept(
    job: &RunningJob<'_>,
    spec: &MapReduceSpec,
    replayed: &ReplayedHistory,
) -> Result<JobDefinition> {
    let environment = job.environment;
    let store = &*environment.store;
    let refuse = |why: &str| Err(job.refusal(why));
    let Some(wanted) = replayed.definition() else {
        return refuse(NOT_BEGUN);
    };
    let job_id = &environment.job_id;
    let home = home_of(store, &spec.output, &job.common.spill_dir);
    let Some(bytes) = definition_of(&**store.disk(), &home, job_id)? else {
        return refuse("its directory beside the output is gone, and its code was in there");
    };
    if hash(&bytes) != *wanted {
        return refuse("the saved job definition has changed since the job began");
    }
    let (header, definition) = split(&bytes)?;
    if header.job_id != *job_id || header.options != environment.history.options {
        return refuse("the saved job definition belongs to another job");
    }
    let by_python = matches!(header.how, ExecutorKind::Processes { .. });
    if by_python && header.host != environment.interpreter {
        let message = format!(
            "{} began it, and this is {}",
            header.host, environment.interpreter
        );
        return Err(Error::new(Kind::BadInput, OPERATION, message)
            .advise("resume it with the Python that began it, or start it anew"));
    }
    job.watched.recorder().hide(header.hidden);
    contents::check(store, &header.code, "a file of the job's code")?;
    contents::check(store, &header.side_files, "a side file")?;
    let side_files = header.side_files.iter().map(FileSnapshot::path).collect();
    let work = match &environment.work {
        Some(work) => work.clone(), // of a caller who has it
        None => ExecutorSpec {
            kind: header.how,
            definition,
        }
        .build(job.workers, environment.store.clone())?,
    };
    Ok(JobDefinition {
        spec: MapReduceSpec {
            files: header.files,
            side_files,
            splits: header.splits,
            ..spec.clone()
        },
        work: Some(work),
        hash: Some(wanted.to_owned()),
        ..JobDefinition::default()
    })
}

fn split(bytes: &[u8]) -> Result<(DefinitionHeader, Vec<u8>)> {
    let wrong = |what: String| {
        Error::new(Kind::BadInput, "read a job's definition", what).advise("start the job anew")
    };
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = bytes.split_at(end.ok_or_else(|| wrong("it is not whole".into()))?);
    let header: DefinitionHeader =
        serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
    if header.format != FORMAT {
        return Err(wrong(format!("it has format {}", header.format)));
    }
    Ok((header, rest.get(1..).unwrap_or_default().to_vec()))
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
