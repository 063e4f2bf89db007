//! The inputs of a native job: files, and streams, which are saved to files before the job is planned.
//!
//! ```text
//!   a.csv   -   b.csv
//!           └── standard input ──block by block──▶ DIR/.gristmill-spill-JOB-input/0-saved ──▶ a file like the others
//! ```
//!
//! A stream can be read once, and cannot be cut into splits. So it is saved where runs go, to its end. The folder goes with the job;
//! that of a job that was killed goes with the next one that spills there. Users see the name that they gave.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::jobs::report::JobReport;
use crate::jobs::steps::refusal::FROM_STREAM;
use crate::jobs::steps::{JobOutput, RunningJob};
use crate::plan::explain::Explanation;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::Caching;
use gristmill_storage::input::InputFile;
use gristmill_storage::io::sequential::Sequential;
use gristmill_storage::io::stream::{File, is_special, open_to_read, read_some, standard};
use gristmill_storage::location::{DASH, Location, parent_of};
use gristmill_tasks::commit::{Ownership, SpillDirs};
use gristmill_tasks::split::{ResolvedInput, files_of, input_files, not_a_file};

/// What errors call standard input.
const STDIN: &str = "standard input";

/// Bytes that are read of a stream at once, and those of each buffer of the file.
const BLOCK_BYTES: usize = 256 << 10;

/// What `explain` says of streams.
const SAVED: &str =
    "what comes from a pipe is saved to disk first, where runs go, as it can be read only once";

/// The inputs of a job.
#[derive(Debug, Default)]
pub(super) struct NativeInputs<'env> {
    /// The files of each.
    pub(super) files: Vec<Vec<InputFile>>,
    /// What users call the streams.
    pub(super) streams: Vec<String>,
    /// Where each of them is saved, if they are.
    saved: Vec<PathBuf>,
    /// The folder of these. Dropping it removes them.
    _folder: Option<SpillDirs<'env>>,
}

/// Whether some inputs cannot be read again, as far as their names say: a job that read them cannot be resumed.
pub(super) fn names_stream(inputs: &[&[Location]]) -> bool {
    let is_dash = |name: &Location| name.as_typed() == Path::new(DASH);
    let names_it = |names: &&[Location]| names.is_empty() || names.iter().any(is_dash);
    inputs.iter().any(names_it)
}

/// Whether an input is a stream.
fn is_stream(name: &Location) -> bool {
    name.as_typed() == Path::new(DASH) || name.local().is_some_and(is_special)
}

/// What a stream is called.
fn name_of(stream: &Location) -> String {
    match stream.as_typed() {
        path if path == Path::new(DASH) => STDIN.to_owned(),
        path => show_path(path),
    }
}

impl<'env> NativeInputs<'env> {
    /// The files alone, and the names of the streams: none is read.
    ///
    /// # Errors
    /// A file cannot be found, or a stream is named twice.
    pub(super) fn look(job: &RunningJob<'env>, inputs: &[&[Location]]) -> Result<Self> {
        Self::find(job, inputs, |_, _| Ok(None))
    }

    /// The same with the streams as files, to which they are saved here. An output directory that is there is refused before.
    ///
    /// # Errors
    /// As of [`Self::look`]; a stream cannot be read, or the disk is full; or the job cannot read streams.
    pub(super) fn save(job: &mut RunningJob<'env>, inputs: &[&[Location]]) -> Result<Self> {
        let has_streams = |names: &&[Location]| names.is_empty() || names.iter().any(is_stream);
        if !inputs.iter().any(has_streams) {
            return Self::look(job, inputs);
        }
        Self::look(job, inputs)?;
        check_reads_streams(job)?;
        if let Some(output @ (JobOutput::Directory(_) | JobOutput::NamedFiles(_))) =
            job.asked.output
        {
            drop(job.committer(output, (&[], 0))?); // a file takes the place of what is there
        }
        job.begin_phase("save");
        let folder = SpillDirs::begin(
            &**job.environment.store.disk(),
            &[place_of(job)],
            &Ownership::of_new_job(&format!("{}-input", job.environment.job_id)),
        )?;
        let paths = folder.folders();
        let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
        let mut saved = Self::find(job, inputs, |stream, number| {
            let path = path.join(format!("{number}-saved"));
            save(job, stream, &path)?;
            Ok(Some(path))
        })?;
        saved._folder = Some(folder);
        Ok(saved)
    }

    /// The files, with those that `keep` makes of streams, each of which has a number.
    fn find(
        job: &RunningJob<'env>,
        inputs: &[&[Location]],
        mut keep: impl FnMut(&Location, usize) -> Result<Option<PathBuf>>,
    ) -> Result<Self> {
        let (mut found, dash) = (Self::default(), [Location::from(DASH)]);
        for names in inputs {
            let names = if names.is_empty() { &dash[..] } else { names };
            let mut files = Vec::new();
            for some in names.chunk_by(|one, next| !is_stream(one) && !is_stream(next)) {
                let Some(stream) = some.first().filter(|name| is_stream(name)) else {
                    files.append(&mut input_files(job.store(), some)?);
                    continue;
                };
                let (name, number) = (name_of(stream), found.streams.len());
                if found.streams.contains(&name) {
                    return Err(named_twice(&name));
                }
                found.streams.push(name);
                if let Some(path) = keep(stream, number)? {
                    files.append(&mut file_at(job, &path)?);
                    found.saved.push(path);
                }
            }
            found.files.push(files);
        }
        Ok(found)
    }

    /// The plan of a job with these inputs.
    pub(super) fn explain(self, explained: Explanation) -> Explanation {
        if self.streams.is_empty() {
            return explained;
        }
        Explanation {
            reason: format!("{}; {SAVED}", explained.reason),
            streams: self.streams,
            ..explained
        }
    }

    /// The same error, which calls streams as users do.
    pub(super) fn name_in(&self, error: Error) -> Error {
        let names = self.saved.iter().zip(&self.streams);
        names.fold(error, |error, (path, name)| {
            error.renamed(&show_path(path), name)
        })
    }

    /// The same of what the report tells.
    pub(super) fn name_in_report(&self, report: &mut JobReport) {
        for (path, name) in self.saved.iter().zip(&self.streams) {
            let path = show_path(path);
            for said in report.warnings.iter_mut().chain(&mut report.left_out) {
                *said = said.replace(&path, name);
            }
        }
    }
}

fn named_twice(name: &str) -> Error {
    let message = format!("{name} is named twice, and can be read only once");
    Error::new(Kind::BadOption, "read the input", message)
        .advise("save it to a file, and name that")
}

/// Refuses streams where they cannot be read.
fn check_reads_streams(job: &RunningJob<'_>) -> Result<()> {
    if job.resumed.is_some() {
        return Err(job.refusal(FROM_STREAM));
    }
    if job.cluster().is_none() {
        return Ok(());
    }
    let message = "a pipe is of this machine alone, and the tasks run on a cluster";
    Err(Error::new(Kind::BadOption, "read the input", message)
        .advise("save it to a file in a place that all nodes see, and name that"))
}

/// The directory for what is saved: the first for runs that the user named, or that of the output, or the current one.
fn place_of(job: &RunningJob<'_>) -> PathBuf {
    let beside = job.asked.output.map(JobOutput::path);
    let beside = beside.and_then(Location::local).map(parent_of);
    let given = job.common.spill_dir.first().map(PathBuf::as_path);
    given.or(beside).unwrap_or(Path::new(".")).to_owned()
}

/// The file of this path, which is there.
fn file_at(job: &RunningJob<'_>, path: &Path) -> Result<Vec<InputFile>> {
    let name = Location::from(path);
    match files_of(job.store(), &name)? {
        ResolvedInput::Files(files) => Ok(files),
        ResolvedInput::Other => Err(not_a_file(&name)),
    }
}

/// Saves a stream to its end.
fn save(job: &RunningJob<'_>, stream: &Location, path: &Path) -> Result<()> {
    let name = name_of(stream);
    let mut from = open(stream)?;
    let file = job.store().disk().create(path, 0, Caching::Cached)?;
    let mut file = Sequential::new(file, BLOCK_BYTES);
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        job.check_cancelled()?;
        let read = read_some(&mut from, &mut block)
            .map_err(|error| Error::from_io("read the input", Path::new(&name), &error))?;
        match read.map(|bytes| block.get(..bytes).unwrap_or_default()) {
            None => {}
            Some([]) => break,
            Some(bytes) => file.append(bytes)?,
        }
    }
    file.end().map(drop)
}

fn open(stream: &Location) -> Result<File> {
    match stream.as_typed() {
        path if path == Path::new(DASH) => standard(std::io::stdin().as_fd(), STDIN, false),
        path => open_to_read(path),
    }
}
