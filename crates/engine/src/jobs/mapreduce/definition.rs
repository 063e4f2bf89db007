//! What a job of people's own code is: kept beside its output as long as it runs, so that another process can go on.
//!
//! ```text
//!   definition = a line of JSON: splits, files, code, how it is run │ the bytes that its workers are given
//!   history   ── its SHA-256                                  mode 0600, as there may be secrets in it
//! ```
//!
//! The rule that must hold: nothing of it is believed, let alone run, unless the file is this user's alone, its hash is
//! that of the history, and job, options, Python and the files of its code are what they were.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::commit::{Staging, definition_of};
use crate::error::{Error, Kind, Result};
use crate::history::event::Known;
use crate::jobs::resume::{OPERATION, Story, refusal};
use crate::jobs::{Environment, Job};
use crate::plan::mapreduce::MapReduceSpec;
use crate::storage::Store;
use crate::task::{How, Work, WorkAgain, WorkSplit};

/// The version of the file.
const FORMAT: u32 = 1;

/// A job with its splits, and with who runs its code.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) spec: MapReduceSpec,
    pub(super) work: Option<Arc<dyn Work>>,
    /// The hash of the file, in hexadecimal.
    pub(super) hash: Option<String>,
    /// The file, which is not there yet.
    written: Vec<u8>,
}

/// The file's first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: u32,
    job_id: String,
    /// Which Python, and where.
    host: String,
    /// The options that the history has, too.
    options: Value,
    files: Vec<PathBuf>,
    splits: Vec<WorkSplit>,
    /// The files of its code as they were.
    code: Vec<Known>,
    how: How,
}

impl Definition {
    /// Of a job that begins, as it was given; or of one that goes on, as it was kept.
    pub(super) fn of(job: &Job<'_>, spec: &MapReduceSpec) -> Result<Self> {
        match job.resumed {
            Some(story) => kept(job, spec, story),
            None => given(job, spec),
        }
    }

    /// Writes the file of a job that begins.
    pub(super) fn keep(&self, staging: &Staging<'_>) -> Result<()> {
        match self.hash {
            Some(_) => staging.keep_definition(&self.written),
            None => Ok(()),
        }
    }
}

fn given(job: &Job<'_>, spec: &MapReduceSpec) -> Result<Definition> {
    let environment = job.environment;
    let mut found = Definition {
        spec: spec.clone(),
        work: environment.work.clone(),
        hash: None,
        written: Vec::new(),
    };
    let again = environment.work.as_ref().and_then(|work| work.again());
    if let Some(again) = again
        && spec.once.is_none()
        && job.watched.recorder().is_on()
    {
        found.written = file_of(environment, spec, again)?;
        found.hash = Some(hash(&found.written));
    }
    Ok(found)
}

fn file_of(environment: &Environment, spec: &MapReduceSpec, again: WorkAgain) -> Result<Vec<u8>> {
    let absolute = |path: &PathBuf| {
        let found = std::path::absolute(path);
        found.map_err(|error| Error::from_io("find the input", path, &error))
    };
    let header = Header {
        format: FORMAT,
        job_id: environment.job_id.clone(),
        host: environment.host.clone(),
        options: environment.history.options.clone(),
        files: spec.files.iter().map(absolute).collect::<Result<_>>()?,
        splits: spec.splits.clone(),
        code: code_of(&*environment.store, spec)?,
        how: again.how,
    };
    let mut bytes = serde_json::to_vec(&header)
        .map_err(|error| Error::bug("keep a job's definition", error.to_string()))?;
    bytes.push(b'\n');
    bytes.extend(again.definition);
    Ok(bytes)
}

/// The files of a job's code as they are; one that is gone is not looked for again.
fn code_of(store: &dyn Store, spec: &MapReduceSpec) -> Result<Vec<Known>> {
    let mut found = Vec::with_capacity(spec.code.len());
    for path in &spec.code {
        if let Some(stat) = store.stat(path)? {
            found.push(Known::new(path, &stat));
        }
    }
    Ok(found)
}

fn kept(job: &Job<'_>, spec: &MapReduceSpec, story: &Story) -> Result<Definition> {
    let environment = job.environment;
    let store = &*environment.store;
    let refuse = |why: &str| Err(refusal(spec.command(), why, ""));
    let Some(began) = &story.began else {
        return refuse("it was killed before it had begun, and has left nothing");
    };
    let Some(wanted) = &began.definition else {
        return refuse("what its code is was not kept");
    };
    let job_id = &environment.job_id;
    let Some(bytes) = definition_of(store, &spec.output, job_id)? else {
        return refuse("its folder beside the output is gone, and what its code is with it");
    };
    if hash(&bytes) != *wanted {
        return refuse("the file that says what its code is has changed since it began");
    }
    let (header, definition) = split(&bytes)?;
    if header.job_id != *job_id || header.options != environment.history.options {
        return refuse("the file that says what its code is is that of another job");
    }
    let by_python = matches!(header.how, How::Processes { .. });
    if by_python && header.host != environment.host {
        let message = format!("{} began it, and this is {}", header.host, environment.host);
        return Err(Error::new(Kind::BadInput, OPERATION, message)
            .advise("go on with the Python that began it, or start it anew"));
    }
    check_code(store, &header.code)?;
    let work = match &environment.work {
        Some(work) => work.clone(), // of a caller who has it
        None => WorkAgain {
            how: header.how,
            definition,
        }
        .work(job.workers, environment.store.clone())?,
    };
    Ok(Definition {
        spec: MapReduceSpec {
            files: header.files,
            splits: header.splits,
            ..spec.clone()
        },
        work: Some(work),
        hash: Some(wanted.clone()),
        written: Vec::new(),
    })
}

fn split(bytes: &[u8]) -> Result<(Header, Vec<u8>)> {
    let wrong = |what: String| {
        Error::new(Kind::BadInput, "read a job's definition", what).advise("start the job anew")
    };
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = bytes.split_at(end.ok_or_else(|| wrong("it is not whole".into()))?);
    let header: Header = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
    if header.format != FORMAT {
        return Err(wrong(format!("it has format {}", header.format)));
    }
    Ok((header, rest.get(1..).unwrap_or_default().to_vec()))
}

/// Fails unless the files of the code are what they were: workers may load them anew.
fn check_code(store: &dyn Store, code: &[Known]) -> Result<()> {
    for then in code {
        let now = store.stat(&then.path)?;
        let why = match now.map(|stat| Known::new(&then.path, &stat)) {
            None => "a file of the job's code is gone",
            Some(now) if !now.is_same(then) => "the job's code changed since it began",
            Some(_) => continue,
        };
        return Err(Error::new(Kind::InputChanged, OPERATION, why)
            .with_path(&then.path)
            .advise("put the file back as it was and resume again, or start the job anew"));
    }
    Ok(())
}

fn hash(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
