//! The steps that every job with an output directory shares: what the kind does stands between them.
//!
//! ```text
//!   take inputs ─▶ stage ─▶ spill places ─▶ │ the kind: run, prove, report │ ─▶ publish
//! ```

use std::path::PathBuf;

use super::job::RunningJob;
use super::job_request::JobOutput;
use super::output_locations::OutputLocations;
use crate::plan::disk::RunDisk;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::shape::ShapeKind;
use gristmill_storage::input::InputFile;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_tasks::commit::{Committer, OutputManifest};

/// What is known of an output directory before the job begins.
#[derive(Debug)]
pub(in crate::jobs) struct OutputDirectory<'a> {
    /// Where it will be.
    pub(in crate::jobs) path: &'a Location,
    /// The names of its files.
    pub(in crate::jobs) names: &'a [PathBuf],
    /// Their bytes, together.
    pub(in crate::jobs) bytes: u64,
    /// The input, which must not change meanwhile.
    pub(in crate::jobs) inputs: &'a [InputFile],
    /// What its records are.
    pub(in crate::jobs) shape: ShapeKind,
    /// The disk that runs need, if the job writes some.
    pub(in crate::jobs) runs: Option<RunDisk>,
}

/// What a job can say of its output when all is proved.
#[derive(Debug)]
pub(in crate::jobs) struct Proven {
    /// The bytes of `_SUCCESS`.
    pub(in crate::jobs) success: Vec<u8>,
    /// The files that tasks have uploaded.
    pub(in crate::jobs) uploads: Vec<Upload>,
}

impl OutputDirectory<'_> {
    /// Runs `work`, which is told where to write; then publishes what it wrote.
    pub(in crate::jobs) fn make(
        &self,
        job: &mut RunningJob<'_>,
        work: impl FnOnce(&mut RunningJob<'_>, &dyn Committer, &OutputLocations) -> Result<Proven>,
    ) -> Result<()> {
        job.take_inputs(self.inputs, None)?;
        let output = (self.names, self.bytes);
        let committer = job.committer(JobOutput::Directory(self.path), output)?;
        let (spill, runs) = if let Some(disk) = self.runs {
            let (spill, folders) = job.run_folders(&*committer)?;
            let is_apart = job.store().publisher(self.path).is_some();
            let local = (!is_apart).then(|| committer.folder().path());
            job.check_room(committer.folder().disk(), &folders, (disk, local))?;
            job.tell_of_runs(&folders);
            (Some(spill), folders)
        } else {
            (None, Vec::new())
        };
        let uploads = self.names.iter().map(|name| committer.path_of(name));
        let places = OutputLocations {
            runs,
            output: committer.folder().staged(),
            names: self.names.to_vec(),
            uploads: uploads.collect(),
            shape: self.shape,
            unique: false,
            codes: None,
            compression: job.common.compress_runs,
            attempts: None,
        };
        let proven = work(job, &*committer, &places)?;
        drop(spill); // gives the runs' folders back
        let made = OutputManifest {
            names: self.names,
            uploads: &proven.uploads,
            success: &proven.success,
        };
        job.publish(committer, &made)
    }
}

/// A directory that is an input, or holds one, would lose it; one inside an input would become input of the next sort.
///
/// # Errors
/// It is so.
pub(in crate::jobs) fn check_apart(inputs: &[Location], output: &Location) -> Result<()> {
    let together = |input: &&Location| input.lies_in(output) || output.lies_in(input);
    match inputs.iter().find(together) {
        Some(input) => Err(Error::new(
            Kind::BadOption,
            "sort the input",
            "the output is the same as the input, or one holds the other",
        )
        .with("input", input)
        .with("output", output)
        .advise("name another output")),
        None => Ok(()),
    }
}
