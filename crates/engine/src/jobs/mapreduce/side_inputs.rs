//! Whether each map task of a native job holds all inputs but the first, and writes what becomes of its split: no pair is shuffled, then.
//!
//! ```text
//!   files of more than 1 MiB ──▶ no
//!   others ── read, held as a task would ──▶ do they take more than a task of the least memory has for them?
//! ```
//!
//! The rule that must hold: input and options alone decide, as the order of the output follows from it.

use crate::jobs::steps::RunningJob;
use gristmill_base::error::Result;
use gristmill_tasks::task::{
    NativeSplit, Operator, RecordForm, SplitData, UserTaskSplit, read_records,
};

/// Bytes of files that may be read before the job begins: more would hardly be held, compressed or not.
const STORED_MAX: u64 = 1 << 20;

/// Whether maps have room for the inputs but the first, which are these splits.
pub(super) fn are_small(
    job: &RunningJob<'_>,
    (operator, forms): (&dyn Operator, &[RecordForm]),
    sides: &[NativeSplit],
) -> Result<bool> {
    let pieces = sides.iter().flat_map(|side| side.pieces.iter());
    if pieces.map(|piece| piece.bytes).sum::<u64>() > STORED_MAX {
        return Ok(false);
    }
    let mut mapper = operator.part_mapper()?;
    let progress = |_| job.check_cancelled();
    let held = read_records(job.store(), forms, sides, &progress, &mut |records| {
        mapper.hold(records)
    });
    job.check_cancelled()?;
    Ok(held.is_ok()) // a record that is none stops the job where it is mapped
}

/// Splits as tasks get them.
///
/// # Errors
/// One cannot be kept: a defect of Gristmill.
pub(super) fn user_splits(
    splits: impl IntoIterator<Item = NativeSplit>,
) -> Result<Vec<UserTaskSplit>> {
    let bytes_of =
        |split: &NativeSplit| -> u64 { split.pieces.iter().map(|piece| piece.bytes).sum() };
    let split = |split: NativeSplit| {
        Ok(UserTaskSplit {
            bytes: bytes_of(&split),
            what: SplitData::of(&split)?,
        })
    };
    splits.into_iter().map(split).collect()
}

/// The same where each has the side inputs, whose bytes are counted with the first.
///
/// # Errors
/// As of [`user_splits`].
pub(super) fn splits_with(
    splits: Vec<NativeSplit>,
    sides: &[NativeSplit],
) -> Result<Vec<UserTaskSplit>> {
    let side_bytes = sides.iter().flat_map(|side| side.pieces.iter());
    let side_bytes: u64 = side_bytes.map(|piece| piece.bytes).sum();
    let with_sides = splits.into_iter().map(|split| NativeSplit {
        sides: sides.to_vec(),
        ..split
    });
    let mut splits = user_splits(with_sides)?;
    if let Some(first) = splits.first_mut() {
        first.bytes += side_bytes;
    }
    Ok(splits)
}
