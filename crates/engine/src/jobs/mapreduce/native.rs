//! Native jobs: an operator over the lines of files. How their inputs are split follows from the inputs and the options alone.

use std::fmt::Debug;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use gristmill_grep::{Pattern, PatternOptions};

use crate::jobs::kind::JobKind;
use crate::jobs::report::JobReport;
use crate::jobs::steps::{JobOutput, RunningJob};
use crate::plan::amount::check_count;
use crate::plan::explain::Explanation;
use crate::plan::mapreduce::{MapReduceSpec, PARTITIONS_MAX, UserCodeCommand};
use crate::plan::sort::default_parts;
use crate::plan::table::CommandOptions;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::name_of;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_tasks::split::text::{TextSplit, TextSplits, text_splits};
use gristmill_tasks::split::{check_outside, input_files};
use gristmill_tasks::task::{
    NOT_DECODED, NativeExecutor, Operator, SplitData, UserTaskExecutor, UserTaskSplit,
};

/// A job of an operator over lines. Its file has its options, and answers this; all else that a kind of job does follows.
pub(in crate::jobs) trait NativeJob: CommandOptions + Debug + Send + Sync {
    /// The files that are read.
    fn inputs(&self) -> &[Location];

    /// The directory that is made.
    fn directory(&self) -> &Location;

    /// How many parts it has, if not as many as its input calls for.
    ///
    /// # Errors
    /// Options do not go together.
    fn parts(&self) -> Result<Option<usize>>;

    /// What is done with the lines.
    ///
    /// # Errors
    /// An option makes no sense.
    fn operator(&self) -> Result<Operator>;
}

impl<J: NativeJob> JobKind for J {
    fn output(&self) -> Option<JobOutput<'_>> {
        Some(JobOutput::Directory(self.directory()))
    }

    fn work(&self, store: Arc<Stores>) -> Option<Arc<dyn UserTaskExecutor>> {
        let operator = self.operator().ok()?;
        Some(Arc::new(NativeExecutor::new(store, operator, "")))
    }

    fn explain(&self, job: &RunningJob<'_>) -> Result<Explanation> {
        super::explain(job, &plan(self, job)?)
    }

    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        let spec = plan(self, job)?;
        let store = Arc::clone(&job.environment.store);
        let work = NativeExecutor::new(store, self.operator()?, job.asked.options);
        super::run_native(job, spec, Arc::new(work))
    }
}

/// The error of an option that makes no sense.
pub(in crate::jobs) fn wrong_option(option: &str, what: &str) -> Error {
    let message = format!("{option}: {what}");
    Error::new(Kind::BadOption, "read the options", message).of_option(option)
}

/// A pattern that was given as this option.
///
/// # Errors
/// What is wrong with it.
pub(in crate::jobs) fn pattern_of(
    option: &str,
    given: &str,
    options: PatternOptions,
) -> Result<Pattern> {
    let text = name_of(given.to_owned());
    let pattern = Pattern::new(&[text.as_bytes()], options);
    pattern.map_err(|what| wrong_option(option, &what))
}

/// Splits for each worker: when one is late, the others have something left.
const SPLITS_EACH: u64 = 2;
const SPLIT_MIN_BYTES: u64 = 4 << 20;
const SPLIT_MAX_BYTES: u64 = 512 << 20;

/// Bytes of a split: many, as a key is given once by each split that has it, however often it occurs there.
fn good_split(input_bytes: u64, workers: usize) -> u64 {
    let even = input_bytes / (SPLITS_EACH * workers.max(1) as u64);
    even.clamp(SPLIT_MIN_BYTES, SPLIT_MAX_BYTES)
}

/// The plan. Its options are looked at first.
fn plan(native: &impl NativeJob, job: &RunningJob<'_>) -> Result<MapReduceSpec> {
    native.operator()?;
    let (parts, output) = (native.parts()?, native.directory());
    check_count("parts", parts, PARTITIONS_MAX)?;
    check_outside(job.store(), native.inputs(), output)?;
    let files = input_files(job.store(), native.inputs())?;
    let input_bytes: u64 = files.iter().map(|file| file.stat.bytes).sum();
    let split = good_split(input_bytes, job.workers);
    let how = TextSplits {
        split_min: split,
        split_max: split,
        cut: true,
        combine: true,
        stride: 1,
    };
    let splits = text_splits(job.store(), &files, &how)?.into_iter();
    let split = |pieces: TextSplit| -> Result<UserTaskSplit> {
        Ok(UserTaskSplit {
            bytes: pieces.iter().map(|piece| piece.bytes).sum(),
            what: SplitData::of(&serde_json::json!({ "pieces": pieces }))?,
        })
    };
    Ok(MapReduceSpec {
        command: UserCodeCommand::Native,
        splits: splits.map(split).collect::<Result<_>>()?,
        files: files.into_iter().map(|file| file.path).collect(),
        partitions: parts.unwrap_or_else(|| default_parts(input_bytes)) as u32,
        output: output.clone(),
        ..MapReduceSpec::default()
    })
}

/// Files that are told one by one.
const TOLD: usize = 3;

/// Moves what the tasks say of encodings from the counters to the warnings.
pub(super) fn tell_encodings(report: &mut JobReport) {
    let files = report.user_counters.remove(NOT_DECODED).unwrap_or_default();
    for file in files.keys().take(TOLD) {
        let encoding = file.rsplit(' ').next().unwrap_or_default();
        report.warnings.push(format!(
            "{file}, and its bytes are counted as they are. To decode it: iconv -f {encoding} -t UTF-8"
        ));
    }
    if let Some(more @ 1..) = files.len().checked_sub(TOLD) {
        let also = format!("{more} more file(s) look like UTF-16 or UTF-32");
        report.warnings.push(also);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_two_splits_each_within_bounds() {
        assert_eq!(good_split(1 << 30, 2), 256 << 20);
        assert_eq!(good_split(1 << 20, 2), SPLIT_MIN_BYTES);
        assert_eq!(good_split(1 << 40, 2), SPLIT_MAX_BYTES);
        assert_eq!(good_split(1 << 30, 0), SPLIT_MAX_BYTES);
    }
}
