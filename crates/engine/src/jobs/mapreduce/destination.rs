//! Where the files of a job's tasks go: to a directory that has them, to one file, or to a stream.
//!
//! ```text
//!   directory   attempts/7-0/part-r-00000 ──rename──▶ output/part-r-00000 ──▶ commit                (promote.rs)
//!   file        attempts/*/part-r-*       ──read, compared──▶ output, or an upload ──▶ commit
//!   stream      attempts/*/part-r-*       ──read, compared──▶ the stream
//! ```
//!
//! The rules that must hold: a file or a stream has the tasks' files in the order of their names, each as its task reported
//! it; and nothing goes to a stream before the job is proved. The tasks' files stay until the output has its name: a job
//! that is killed while it puts them together does so again. On a cluster, tasks send their files to where the one file
//! will be, under its own name, so that whatever ends the uploads to it ends those, too; what is for a stream is collected
//! on the machine of the driver.
//!
//! Decision: docs/decisions/cluster-streams.md.

use std::path::{Path, PathBuf};

use super::definition::JobDefinition;
use super::joined::Joined;
use super::outcome::MapReduceOutcome;
use super::promote::promote;
use crate::jobs::steps::refusal::TO_STREAM;
use crate::jobs::steps::{JobOutput, RunningJob, stream_writer};
use crate::plan::mapreduce::{MapReduceSpec, OutputForm};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::input::InputFile;
use gristmill_storage::io::crc::crc_of;
use gristmill_storage::io::stream::StreamWriter;
use gristmill_storage::location::Location;
use gristmill_tasks::commit::{Committer, OutputManifest, SpillDirs, check_file_name};
use gristmill_tasks::task::UserTaskFile;

/// The folder of attempts beside the runs of a job without a folder of its own.
const ATTEMPTS: &str = "attempts";

/// Where runs of such a job go, where the user has not said.
const HERE: &str = ".";

/// Where the files go.
pub(super) struct Destination<'env> {
    /// What gives the output its name. What is collected for a stream never gets one; a stream of this machine has none.
    committer: Option<Box<dyn Committer + 'env>>,
    /// The stream, where it is one.
    stream: Option<StreamWriter>,
}

/// The folders of a job. Dropping the first gives back what is in them.
pub(super) struct JobFolders<'env> {
    _spill: SpillDirs<'env>,
    pub(super) runs: Vec<PathBuf>,
    pub(super) attempts: PathBuf,
}

/// Refuses an output that cannot be made where the job runs.
///
/// # Errors
/// It is one file in a store in which nobody can read what tasks send there before it has its name.
pub(super) fn check_form(job: &RunningJob<'_>, spec: &MapReduceSpec) -> Result<()> {
    let is_sealed = job.store().sends_parts(&spec.output);
    if spec.form != OutputForm::File || job.cluster().is_none() || !is_sealed {
        return Ok(());
    }
    let message = "on a cluster, one file cannot be put together in an object store";
    Err(Error::new(Kind::BadOption, "write the output", message)
        .with_path(spec.output.as_typed())
        .advise(
            "write a directory of parts, or name a file in a directory that all nodes see or in hdfs://",
        ))
}

impl<'env> Destination<'env> {
    /// Begins the output, with what the job is: kept before the history says so, and found unchanged before anything is.
    pub(super) fn begin(
        job: &RunningJob<'env>,
        definition: &JobDefinition,
        files: &[InputFile],
    ) -> Result<Self> {
        let spec = &definition.spec;
        let inputs = files.get(..spec.files.len()).unwrap_or(files);
        let stream = match &spec.form {
            OutputForm::Stream(_) if job.resumed.is_some() => return Err(job.refusal(TO_STREAM)),
            OutputForm::Stream(path) => Some(stream_writer(job, path.as_deref())?),
            OutputForm::Directory | OutputForm::NamedFiles(_) | OutputForm::File => None,
        };
        let output = match &spec.form {
            OutputForm::Directory => Some(JobOutput::Directory(&spec.output)),
            OutputForm::NamedFiles(_) => Some(JobOutput::NamedFiles(&spec.output)),
            OutputForm::File => Some(JobOutput::File(&spec.output)),
            OutputForm::Stream(_) => job.asked.output.filter(|_| job.cluster().is_some()),
        };
        let names = match job.resumed {
            None => {
                let committer = Self::committer(job, output, &[])?;
                if let Some(committer) = &committer {
                    definition.keep(&**committer)?;
                }
                job.take_inputs(inputs, definition.hash.clone())?;
                return Ok(Destination { committer, stream });
            }
            Some(replayed) => replayed.files_of_tasks(),
        };
        job.take_inputs(inputs, definition.hash.clone())?;
        names.iter().try_for_each(|name| check_file_name(name))?;
        let committer = Self::committer(job, output, &names)?;
        Ok(Destination { committer, stream })
    }

    fn committer(
        job: &RunningJob<'env>,
        output: Option<JobOutput<'_>>,
        names: &[PathBuf],
    ) -> Result<Option<Box<dyn Committer + 'env>>> {
        let begun = output.map(|output| job.committer(output, (names, 0)));
        begun.transpose()
    }

    /// The folders for runs and attempts.
    pub(super) fn folders(&self, job: &RunningJob<'env>) -> Result<JobFolders<'env>> {
        if let Some(committer) = &self.committer {
            let (spill, runs) = job.run_folders(&**committer)?;
            return Ok(JobFolders {
                _spill: spill,
                runs,
                attempts: committer.folder().attempts_place()?,
            });
        }
        let disk = &**job.environment.store.disk();
        let directories = match &*job.common.spill_dir {
            [] => vec![PathBuf::from(HERE)],
            given => given.to_vec(),
        };
        let spill = job.spill_places(disk, &directories)?;
        let runs = spill.folders();
        let first = runs.first().map_or(Path::new(HERE), PathBuf::as_path);
        let attempts = first.join(ATTEMPTS);
        disk.create_private_directory(&attempts)?;
        Ok(JobFolders {
            _spill: spill,
            runs,
            attempts,
        })
    }

    /// Where the output is put together: the folder, or the file.
    pub(super) fn staged(&self) -> PathBuf {
        let committer = self.committer.as_ref();
        committer.map_or_else(PathBuf::new, |committer| committer.folder().staged())
    }

    /// Where tasks send their files, if they do: what is one file on this machine stays here until it is put together.
    pub(super) fn sent_to(&self, job: &RunningJob<'_>, spec: &MapReduceSpec) -> Option<Location> {
        match spec.form {
            OutputForm::Directory | OutputForm::NamedFiles(_) => {
                let place = job.store().publisher(&spec.output);
                place.map(|_| spec.output.clone())
            }
            OutputForm::File | OutputForm::Stream(_) => {
                let committer = self.committer.as_ref().filter(|_| job.cluster().is_some());
                committer.map(|committer| committer.path_of("".as_ref()))
            }
        }
    }

    /// Publishes the files of the attempts that count.
    pub(super) fn commit(
        self,
        job: &mut RunningJob<'_>,
        definition: &JobDefinition,
        (attempts, outcome): (&Path, MapReduceOutcome),
    ) -> Result<()> {
        let spec = &definition.spec;
        job.begin_commit()?;
        match (self.committer, self.stream) {
            (committer, Some(stream)) => {
                outcome.fill_report(job, spec);
                Joined::of(job, spec, (attempts, &outcome))?.write_to_stream(&stream)?;
                drop(committer); // with what was collected
                Ok(())
            }
            (Some(committer), None) if spec.form == OutputForm::File => {
                let joined = Joined::of(job, spec, (attempts, &outcome))?;
                let upload = joined.write_file(&*committer)?;
                outcome.fill_report(job, spec);
                let made = OutputManifest {
                    names: &[],
                    uploads: upload.as_slice(),
                    success: &[],
                };
                job.publish(committer, &made)
            }
            (Some(committer), None) => {
                commit_directory(job, definition, committer, (attempts, outcome))
            }
            (None, None) => Err(Error::bug("publish the output", "it goes nowhere")),
        }
    }
}

/// Gives a directory with the files its name.
fn commit_directory(
    job: &mut RunningJob<'_>,
    definition: &JobDefinition,
    committer: Box<dyn Committer + '_>,
    (attempts, mut outcome): (&Path, MapReduceOutcome),
) -> Result<()> {
    let spec = &definition.spec;
    let uploads = outcome.uploads();
    let names = promote(&*committer, attempts, (&outcome, &uploads))?;
    // What is uploaded cannot be read before it is published.
    if let (true, Some(work)) = (spec.one_schema && uploads.is_empty(), &definition.work) {
        let (staged, stop) = (committer.folder().staged(), job.control.flag());
        let files: Vec<_> = outcome.files().map(|(_, file)| file).collect();
        for file in work.give_one_schema(&staged, &files, &stop)? {
            let crc = crc_of(committer.folder().disk(), &staged.join(&file.name))?;
            outcome.renew(UserTaskFile { crc, ..file });
        }
    }
    let success = outcome.success(&job.report)?;
    outcome.fill_report(job, spec);
    let made = OutputManifest {
        names: &names,
        uploads: &uploads,
        success: &success,
    };
    job.publish(committer, &made)
}
