//! Map tasks of native jobs that have no partitions: each reads the side inputs, which are small, then its split, and writes a part.
//!
//! ```text
//!   side inputs, whole ──▶ PartMapper holds them │ split ──▶ PartMapper ──▶ part-m-NNNNN
//! ```
//!
//! The rule that must hold: the parts, one behind another, do not depend on how the input was cut.

use super::native::{NativeExecutor, ROWS_SHARE, form_of, with_files};
use super::native_split::NativeSplit;
use super::operator::{RecordForm, Records};
use super::record_reader::SplitReader;
use super::spec::{UserAttemptSpec, UserTaskReport};
use crate::spill::Progress;
use crate::task::attempt::TaskAttempt;
use gristmill_base::error::Result;
use gristmill_storage::stores::Stores;

/// Bytes that a row may have however little memory the job has.
const ROW_BYTES_LEAST: usize = 256 << 10;

impl NativeExecutor {
    /// Maps a split. What is read of side inputs is counted with the first split alone.
    pub(super) fn map_part(
        &self,
        spec: &UserAttemptSpec,
        (number, split): (u32, &NativeSplit),
        attempt: &TaskAttempt<'_>,
    ) -> Result<UserTaskReport> {
        let mut mapper = self.operator.part_mapper()?;
        let mut part = self.part_files(spec, Some(format!("part-m-{number:010}")))?;
        let mut reader = SplitReader {
            store: &self.store,
            form: form_of(&self.forms, split)?,
            input: split.input,
            file: 0,
            row_bytes: spec.chunk_bytes / ROWS_SHARE,
            position: 0,
            report: UserTaskReport::default(),
        };
        let progress = |bytes| attempt.progress(if number == 0 { bytes } else { 0 });
        for side in &split.sides {
            (reader.form, reader.input) = (form_of(&self.forms, side)?, side.input);
            reader.read_all(side, &progress, &mut |records| mapper.hold(records))?;
        }
        if number > 0 {
            reader.report = UserTaskReport::default();
        }
        (reader.form, reader.input) = (form_of(&self.forms, split)?, split.input);
        let progress = |bytes| attempt.progress(bytes);
        reader.read_all(split, &progress, &mut |records| {
            mapper.records(records, &mut part)
        })?;
        let report = reader.report;
        Ok(with_files(report, part.end()?))
    }
}

/// Hands on the records of splits, of inputs whose records have these forms, to be looked at before there are tasks.
///
/// # Errors
/// A file cannot be read, or has a record that is none; and those of `take` and of `progress`, which is told of bytes.
pub fn read_records(
    store: &Stores,
    forms: &[RecordForm],
    splits: &[NativeSplit],
    progress: Progress<'_>,
    take: &mut dyn FnMut(&Records<'_>) -> Result<()>,
) -> Result<()> {
    for split in splits {
        let mut reader = SplitReader {
            store,
            form: form_of(forms, split)?,
            input: split.input,
            file: 0,
            row_bytes: ROW_BYTES_LEAST,
            position: 0,
            report: UserTaskReport::default(),
        };
        reader.read_all(split, progress, take)?;
    }
    Ok(())
}
