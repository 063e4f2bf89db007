//! Plans of native jobs: how their inputs are split, from the inputs and the options alone.

use crate::error::Result;
use crate::jobs::steps::Job;
use crate::plan::amount::check_count;
use crate::plan::mapreduce::{Command, MapReduceSpec, PARTITIONS_MAX};
use crate::plan::sort::default_parts;
use crate::split::text::{TextSplit, TextSplits, text_splits};
use crate::split::{check_outside, input_files};
use crate::storage::location::Location;
use crate::task::{SplitData, UserTaskSplit};

/// Splits for each worker: when one is late, the others have something left.
const SPLITS_EACH: u64 = 2;
const SPLIT_MIN_BYTES: u64 = 4 << 20;
const SPLIT_MAX_BYTES: u64 = 512 << 20;

/// Bytes of a split: many, as a key is given once by each split that has it, however often it occurs there.
fn good_split(input_bytes: u64, workers: usize) -> u64 {
    let even = input_bytes / (SPLITS_EACH * workers.max(1) as u64);
    even.clamp(SPLIT_MIN_BYTES, SPLIT_MAX_BYTES)
}

/// The plan of a job that maps the lines of text files and reduces to `parts` part files.
///
/// # Errors
/// An input cannot be found, or there are too many parts.
pub(in crate::jobs) fn text_job(
    job: &Job<'_>,
    inputs: &[Location],
    parts: Option<usize>,
    output: &Location,
) -> Result<MapReduceSpec> {
    check_count("parts", parts, PARTITIONS_MAX)?;
    check_outside(job.store(), inputs, output)?;
    let files = input_files(job.store(), inputs)?;
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
        command: Command::Native,
        splits: splits.map(split).collect::<Result<_>>()?,
        files: files.into_iter().map(|file| file.path).collect(),
        partitions: parts.unwrap_or_else(|| default_parts(input_bytes)) as u32,
        output: output.clone(),
        ..MapReduceSpec::default()
    })
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
