//! Files of so many records, or of so many bytes of whole records, in the order of the input.
//!
//! ```text
//!   lines, many at once; a row ──▶ key: their place in the input ── sorted, merged ──▶ part-00000 │ part-00001 │ ...
//! ```
//!
//! Where a file ends depends on all records before it, so one task writes all files: what it reads is in order already, and it holds
//! no more than a few records. How the input is cut, and how many tasks map it, changes nothing.

use super::{SplitSpec, wrong_option};
use crate::jobs::tables::RecordFields;
use crate::plan::amount::ByteAmount;
use gristmill_base::error::Result;
use gristmill_storage::lines::LineEnd;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{Mapper, Operator, Pairs, PartFiles, Records, Reducer};

/// Digits of the number of a file, at least.
const DIGITS_MIN: usize = 5;

/// How much a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSize {
    /// So many records.
    Records(u64),
    /// At most so many bytes, with the header; or one record that is longer.
    Bytes(u64),
}

impl FileSize {
    /// What the options say of it, if anything; files of values and parts exclude it.
    ///
    /// # Errors
    /// The options do not go together.
    pub(super) fn of(spec: &SplitSpec) -> Result<Option<Self>> {
        let size = match (spec.lines, spec.bytes) {
            (Some(_), Some(_)) => {
                return Err(wrong_option("bytes", "lines and bytes exclude each other")
                    .advise("give one of them"));
            }
            (Some(records), None) => FileSize::Records(records as u64),
            (None, Some(ByteAmount(0))) => {
                return Err(wrong_option("bytes", "a file of no bytes has no records")
                    .advise("give 1 or more, such as 64M"));
            }
            (None, Some(bytes)) => FileSize::Bytes(bytes.0),
            (None, None) => return Ok(None),
        };
        let excluded = [("by", !spec.by.is_empty()), ("parts", spec.parts.is_some())];
        if let Some((option, _)) = excluded.into_iter().find(|(_, is_given)| *is_given) {
            let message = format!("files of so many lines or bytes exclude {option}");
            return Err(wrong_option(option, &message).advise("leave one of them out"));
        }
        Ok(Some(size))
    }
}

/// Writes numbered files.
#[derive(Debug)]
pub(super) struct NumberedOperator {
    size: FileSize,
    header: Vec<u8>,
    suffix: String,
    files_max: u64,
    /// What ends lines that come many at once.
    many: Option<LineEnd>,
}

impl NumberedOperator {
    /// Lines that so end come `many` at once, or else records one by one.
    pub(super) fn new(
        spec: &SplitSpec,
        size: FileSize,
        (fields, many): (&RecordFields, Option<LineEnd>),
    ) -> Result<Self> {
        Ok(NumberedOperator {
            size,
            header: fields.header(),
            suffix: spec.ending()?,
            files_max: spec.most_files(),
            many,
        })
    }

    /// The name of a file: all have the same length, so that they are in order where names are.
    fn name(&self, number: u64) -> String {
        let digits = self.files_max.saturating_sub(1).to_string().len();
        let digits = digits.max(DIGITS_MIN);
        format!("part-{number:0digits$}{}", self.suffix)
    }
}

impl Operator for NumberedOperator {
    fn header(&self) -> &[u8] {
        &self.header
    }

    fn files_max(&self) -> Option<u64> {
        Some(self.files_max)
    }

    fn mapper(&self, _memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(PlaceMapper))
    }

    fn reducer(&self, _memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(NumberedReducer {
            files: self,
            next: 0,
            left: 0,
            line: Vec::new(),
        }))
    }
}

/// Gives records the place where they stand as their key.
struct PlaceMapper;

impl Mapper for PlaceMapper {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        pairs.give_to(0, &records.position.to_be_bytes(), b"", records.bytes)
    }
}

struct NumberedReducer<'o> {
    files: &'o NumberedOperator,
    /// The number of the file that is begun next.
    next: u64,
    /// What the one before it still takes.
    left: u64,
    line: Vec<u8>,
}

impl NumberedReducer<'_> {
    /// Writes a record, with its end.
    fn write(&mut self, record: &[u8], part: &mut PartFiles) -> Result<()> {
        let header = self.files.header.len() as u64;
        let (most, needed) = match self.files.size {
            FileSize::Records(most) => (most, 1),
            FileSize::Bytes(most) => (most.saturating_sub(header), record.len() as u64),
        };
        if self.next == 0 || self.left < needed {
            part.begin(self.files.name(self.next))?;
            self.next += 1;
            self.left = most;
        }
        self.left = self.left.saturating_sub(needed);
        part.record(record)
    }
}

impl Reducer for NumberedReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !groups.next_group()? {
            return Ok(false);
        }
        while groups.next_pair()? {
            let Some(end) = self.files.many else {
                self.write(groups.value(), part)?;
                continue;
            };
            for line in end.lines_of(groups.value()) {
                let mut record = std::mem::take(&mut self.line);
                record.clear();
                record.extend_from_slice(line);
                record.push(end.byte());
                self.write(&record, part)?;
                self.line = record;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        let named = |files_max, number| {
            let files = NumberedOperator {
                size: FileSize::Records(1),
                header: Vec::new(),
                suffix: ".txt".into(),
                files_max,
                many: Some(LineEnd::Lf),
            };
            files.name(number)
        };
        assert_eq!(named(10, 3), "part-00003.txt");
        assert_eq!(named(100_000, 99_999), "part-99999.txt");
        assert_eq!(named(100_001, 3), "part-000003.txt");
    }
}
