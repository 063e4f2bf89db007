//! Where a job's own plan puts what its tasks write: nothing else that a history names is looked at.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::refusal::OPERATION;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_base::record::shape::ShapeKind;
use gristmill_storage::location::Location;
use gristmill_storage::run_name::is_in_memory;
use gristmill_storage::sorted_run::RunCompression;
use gristmill_tasks::commit::is_file_name;
use gristmill_tasks::task::{Checkpoint, Codes};

/// How the names of all runs begin.
const RUN: &[u8] = b"run-";

/// The places.
#[derive(Debug)]
pub(in crate::jobs) struct OutputLocations {
    /// The folders of its runs.
    pub(in crate::jobs) runs: Vec<PathBuf>,
    /// The folder of its output files.
    pub(in crate::jobs) output: PathBuf,
    /// Their names.
    pub(in crate::jobs) names: Vec<PathBuf>,
    /// Where they are uploaded, in an object store; or the output itself, whose files user code names.
    pub(in crate::jobs) uploads: Vec<Location>,
    /// What the records are.
    pub(in crate::jobs) shape: ShapeKind,
    /// Whether of records with equal keys only the first stays.
    pub(in crate::jobs) unique: bool,
    /// What gives lines of the output the codes again that they were sorted by, if they were.
    pub(in crate::jobs) codes: Option<Codes>,
    /// How runs are compressed.
    pub(in crate::jobs) compression: RunCompression,
    /// The folder with a folder for each attempt that writes whole files, in jobs that have such.
    pub(in crate::jobs) attempts: Option<PathBuf>,
}

impl OutputLocations {
    /// Those of pairs, for tests of plans.
    #[cfg(test)]
    pub(in crate::jobs) fn of_pairs() -> Self {
        use gristmill_base::record::shape::{PairShape, Shape};
        OutputLocations {
            runs: vec!["/runs".into()],
            output: "/out".into(),
            names: Vec::new(),
            uploads: Vec::new(),
            shape: PairShape.kind(),
            unique: false,
            codes: None,
            compression: RunCompression::None,
            attempts: None,
        }
    }

    /// The folders of runs that outlive a process.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        let folders = self.runs.iter().map(|folder| &**folder);
        folders.filter(|folder| !is_in_memory(folder))
    }

    /// Whether an upload to `path` is one of the job's.
    pub(super) fn has_upload(&self, path: &Location) -> bool {
        let below = |place: &Location| path.as_typed().strip_prefix(place.as_typed());
        let is_within = |place| below(place).is_ok_and(is_file_name);
        let mut places = self.uploads.iter();
        places.any(|place| path == place || is_within(place))
    }

    /// Refuses names that are not the job's: a history that has such ones leads elsewhere.
    pub(super) fn check_names(&self, kept: &Checkpoint) -> Result<()> {
        let runs = kept.runs().iter().map(|run| &run.path);
        let mut runs = runs.chain(kept.sources()).map(|name| &**name);
        let strange_run = runs.find(|name| !is_run(name));
        let mut files = kept.ranges().iter().map(|range| &*range.file);
        let strange_file = || files.find(|file| !self.names.iter().any(|name| name == file));
        let strange_folder = || match kept {
            Checkpoint::User(task) if !is_of_attempt(&task.folder) => Some(&*task.folder),
            _ => None,
        };
        let mut whole_files = kept.files().iter().map(|file| &*file.name);
        let strange_whole = || whole_files.find(|name| !is_file_name(name));
        let strange = strange_run.or_else(strange_file).or_else(strange_folder);
        match strange.or_else(strange_whole) {
            None => Ok(()),
            Some(name) => {
                let message = format!(
                    "its history names a file that does not belong to the job: {}",
                    show_path(name)
                );
                Err(Error::new(Kind::BadInput, OPERATION, message)
                    .advise("start the job anew, and check who can write to its history"))
            }
        }
    }
}

/// Whether a name is that of an attempt's folder: the task's number and its own.
fn is_of_attempt(name: &Path) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.to_str().and_then(|name| name.split_once('-'));
    parts.is_some_and(|(task, attempt)| is_number(task) && is_number(attempt))
}

/// Whether a name is that of a run: of a file, without a folder.
pub(super) fn is_run(name: &Path) -> bool {
    let name = name.as_os_str().as_bytes();
    name.starts_with(RUN) && !name.contains(&b'/') && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_of_user_code_lie_right_in_the_output() {
        let places = OutputLocations {
            uploads: vec!["s3://b/out".into()],
            ..OutputLocations::of_pairs()
        };
        let has_upload = |path: &str| places.has_upload(&path.into());
        assert!(has_upload("s3://b/out") && has_upload("s3://b/out/part-r-00000"));
        let others = [
            "s3://b/out/_SUCCESS",
            "s3://b/out/a/b",
            "s3://b/other",
            "s3://b/out/../c",
            "/out/a",
        ];
        for path in others {
            assert!(!has_upload(path), "{path}");
        }
    }

    #[test]
    fn names_with_folders_are_not_names_of_runs() {
        let is_run = |name: &str| is_run(name.as_ref());
        assert!(is_run("run-00001-0-0000"));
        let others = [
            "",
            "..",
            ".",
            "/",
            "a/b",
            "../run-1",
            "/etc/passwd",
            "run-1/",
            "./run-1",
        ];
        for name in others {
            assert!(!is_run(name), "{name}");
        }
    }
}
