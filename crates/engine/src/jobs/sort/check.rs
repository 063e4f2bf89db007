//! `sort --check`: whether an input is in order; where it is not, the first record that is not.

use std::cmp::Ordering;

use super::SortInput;
use super::SortSpec;
use super::keys::SortKeys;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::shape::Shape;
use gristmill_storage::codec::Codec;
use gristmill_storage::input::{InputFile, InputRange};
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_tasks::spill::SharedStream;
use gristmill_tasks::spill::in_order::InOrder;
use gristmill_tasks::spill::record_assembler::{RecordAssembler, too_long};

/// Bytes of a disordered record that are shown.
const SHOWN_BYTES: usize = 200;

/// What a check holds at once of its longest lines: the one before, the next one and their keys, in memory that grows by halves.
const HELD_SHARE: u64 = 8;

/// Below this no line is too long, however little memory there is.
const LONGEST_MIN: u64 = 1 << 20;

/// How much a check holds.
pub(super) struct Bound {
    /// Bytes that are read at once.
    pub(super) block_bytes: usize,
    /// Bytes of the longest line, row or record.
    pub(super) longest: usize,
    /// Bytes of the budget that are for something else.
    held_bytes: u64,
}

impl Bound {
    pub(super) fn of(job: &RunningJob<'_>) -> Self {
        let (block_bytes, room) = (2 * TRANSFER_BYTES, job.room());
        let held_bytes = room.held_bytes + block_bytes as u64;
        let longest = room.budget_bytes.saturating_sub(held_bytes) / HELD_SHARE;
        Bound {
            block_bytes,
            longest: longest.max(LONGEST_MIN) as usize,
            held_bytes,
        }
    }

    /// The error of a line, row or record that is longer.
    pub(super) fn too_long(&self, what: &str, bytes: u64) -> Error {
        let needed = self.held_bytes + bytes * HELD_SHARE;
        too_long(what, bytes, self.longest, (needed, false))
    }
}

/// Begins a check, of one input.
pub(super) fn begin(job: &mut RunningJob<'_>, spec: &SortSpec, input: &SortInput) -> Result<()> {
    job.begin_phase("check");
    if input.files.len() + input.streams.len() != 1 || spec.output.is_some() {
        let message = "a check takes one input and no output";
        return Err(Error::new(Kind::BadOption, "read the options", message));
    }
    Ok(())
}

/// Checks lines or records.
pub(super) fn run<S: Shape>(
    job: &mut RunningJob<'_>,
    shape: S,
    spec: &SortSpec,
    input: SortInput,
) -> Result<()> {
    begin(job, spec, &input)?;
    if let Some(keys) = SortKeys::of(spec)? {
        let mut check = SortednessCheck::new(keys.lines(), spec.unique, Bound::of(job));
        check.keys = Some(keys);
        return run_check(job, check, input);
    }
    run_check(
        job,
        SortednessCheck::new(shape, spec.unique, Bound::of(job)),
        input,
    )
}

fn run_check<S: Shape>(
    job: &mut RunningJob<'_>,
    mut check: SortednessCheck<S>,
    input: SortInput,
) -> Result<()> {
    let codec = input.codecs.first().copied().flatten();
    let stop = || job.check_cancelled();
    if let Some(stream) = input.streams.into_iter().next() {
        check.name.clone_from(&stream.name);
        let stream = SharedStream::new(stream.name, stream.file);
        blocks(job, InOrder::Stream(&stream), &stop, &mut check)?;
    } else if let Some(file) = input.files.first() {
        check.name = file.path.to_string();
        let source = source_of(file, codec);
        blocks(job, source, &stop, &mut check)?;
    }
    check.end()?;
    job.report.records = check.records;
    job.report.input_bytes = check.bytes;
    Ok(())
}

fn blocks<S: Shape>(
    job: &RunningJob<'_>,
    source: InOrder<'_>,
    stop: &dyn Fn() -> Result<()>,
    check: &mut SortednessCheck<S>,
) -> Result<()> {
    let (progress, bytes) = (|_| stop(), check.bound.block_bytes);
    source.read(job.store(), bytes, &progress, &mut |block| {
        check.block(block)
    })
}

/// A file, from its beginning to its end.
pub(super) fn source_of(file: &InputFile, codec: Option<Codec>) -> InOrder<'_> {
    match codec {
        Some(codec) => InOrder::Decoded(file, codec),
        None => {
            let range = InputRange {
                file: 0,
                offset: 0,
                bytes: file.stat.bytes,
            };
            InOrder::Range(file, range)
        }
    }
}

/// How far a check is.
struct SortednessCheck<S> {
    shape: S,
    unique: bool,
    /// Where lines are not compared as they are.
    keys: Option<SortKeys>,
    bound: Bound,
    name: String,
    feed: RecordAssembler,
    bytes: u64,
    records: u64,
    /// What the record before is compared by.
    last: Vec<u8>,
}

impl<S: Shape> SortednessCheck<S> {
    fn new(shape: S, unique: bool, bound: Bound) -> Self {
        SortednessCheck {
            shape,
            unique,
            keys: None,
            feed: RecordAssembler::new(bound.longest),
            bound,
            name: String::new(),
            bytes: 0,
            records: 0,
            last: Vec::new(),
        }
    }

    fn block(&mut self, block: &[u8]) -> Result<()> {
        self.bytes += block.len() as u64;
        let shape = self.shape;
        let mut ends = |begun, more: &[u8]| shape.rest_length(begun, more);
        let mut feed = std::mem::replace(&mut self.feed, RecordAssembler::new(0));
        let overlong = feed.block(block, &mut ends, &mut |record| self.record(record))?;
        self.feed = feed;
        overlong.map_or(Ok(()), |bytes| Err(self.too_long(bytes)))
    }

    fn end(&mut self) -> Result<()> {
        let rest = match self.feed.rest() {
            Ok(rest) => std::mem::take(rest),
            Err(bytes) => return Err(self.too_long(bytes)),
        };
        if rest.is_empty() {
            return Ok(());
        }
        if self.shape.length(&[self.shape.ending()]) != Some(1)
            && self.shape.length(&rest).is_none()
        {
            let message = format!("it ends {} bytes into a record", rest.len());
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", &self.name)
                .with("offset", self.bytes - rest.len() as u64)
                .with("record", self.records + 1)
                .advise("check that it was written whole, and that it holds such records"));
        }
        self.record(&rest)
    }

    fn too_long(&self, bytes: u64) -> Error {
        let what = self
            .shape
            .kind()
            .record_bytes()
            .map_or("line", |_| "record");
        let error = self.bound.too_long(what, bytes);
        error.with("file", &self.name).with(what, self.records + 1)
    }

    /// Compares a record with the one before.
    fn record(&mut self, record: &[u8]) -> Result<()> {
        let code = self.keys.as_ref().map(|keys| keys.code_of(record));
        let order = match &code {
            _ if self.records == 0 => Ordering::Less,
            None => self.shape.compare(&self.last, record),
            Some(code) => self.last.cmp(code),
        };
        let is_wrong = order.is_gt() || (order.is_eq() && self.unique);
        if is_wrong {
            let key = self.shape.key(record);
            return Err(disorder((&self.name, self.records + 1), key, order.is_eq()));
        }
        self.records += 1;
        match code {
            Some(code) => self.last = code,
            None => {
                self.last.clear();
                self.last.extend_from_slice(record);
            }
        }
        Ok(())
    }
}

/// The error of a record that follows one that it should not: at this line, with this text.
pub(super) fn disorder((name, line): (&str, u64), text: &[u8], is_equal: bool) -> Error {
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]).into_owned();
    let what = if is_equal {
        "is equal to the one before it"
    } else {
        "is out of order"
    };
    let message = format!("{name}:{line}: {shown:?} {what}");
    Error::new(Kind::Disorder, "call the input sorted", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::shape::{Fixed, LineShape};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn bound(longest: usize) -> Bound {
        Bound {
            block_bytes: 9,
            longest,
            held_bytes: 1000,
        }
    }

    /// Checks `data` in blocks that end at `cuts`; gives records and bytes.
    fn check<S: Shape>(shape: S, unique: bool, data: &[u8], cuts: &[usize]) -> Result<(u64, u64)> {
        let mut check = SortednessCheck::new(shape, unique, bound(1 << 20));
        check.name = "data".to_owned();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (data.len() + 1)).collect();
        ends.push(data.len());
        ends.sort_unstable();
        let mut start = 0;
        for end in ends {
            check.block(&data[start..end])?;
            start = end;
        }
        check.end()?;
        Ok((check.records, check.bytes))
    }

    /// The number of the first record, from one on, that is not in order behind the one before it.
    fn naive<S: Shape>(shape: S, unique: bool, records: &[Vec<u8>]) -> Option<usize> {
        let wrong = |pair: &[Vec<u8>]| {
            let order = shape.compare(&pair[0], &pair[1]);
            order.is_gt() || unique && order.is_eq()
        };
        records.windows(2).position(wrong).map(|before| before + 2)
    }

    fn agrees<S: Shape>(shape: S, unique: bool, records: &[Vec<u8>], cuts: &[usize]) {
        let data = records.concat();
        match (
            check(shape, unique, &data, cuts),
            naive(shape, unique, records),
        ) {
            (Ok(found), None) => {
                assert_eq!(found, (records.len() as u64, data.len() as u64));
            }
            (Err(error), Some(number)) => {
                assert_eq!(error.kind(), Kind::Disorder);
                let message = error.to_string();
                assert!(message.contains(&format!(" data:{number}: ")), "{message}");
            }
            (found, number) => panic!("{found:?}, {number:?}"),
        }
    }

    /// Records in order, but for some.
    fn mostly_sorted<S: Shape>(
        shape: S,
        mut records: Vec<Vec<u8>>,
        swap: Option<usize>,
    ) -> Vec<Vec<u8>> {
        records.sort_by(|a, b| shape.compare(a, b));
        if let Some(at) = swap.filter(|_| records.len() > 1) {
            let at = at % (records.len() - 1);
            records.swap(at, at + 1);
        }
        records
    }

    proptest! {
        #[test]
        fn lines_are_checked_whatever_the_blocks(
            keys in vec(vec(prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(0xFF)], 0..6), 0..40),
            swap in proptest::option::of(any::<usize>()),
            cuts in vec(any::<usize>(), 0..30),
            (unique, descending, ended) in any::<(bool, bool, bool)>(),
        ) {
            let shape = LineShape { descending };
            let line = |mut key: Vec<u8>| {
                key.push(b'\n');
                key
            };
            let mut lines = mostly_sorted(shape, keys.into_iter().map(line).collect(), swap);
            // A last line without an end is a line too, if there is anything in it.
            if let Some(last) = lines.last_mut().filter(|last| !ended && last.len() > 1) {
                last.pop();
            }
            agrees(shape, unique, &lines, &cuts);
        }

        #[test]
        fn records_are_checked_whatever_the_blocks(
            keys in vec(0_u8..4, 0..40),
            rest in 0_usize..9,
            swap in proptest::option::of(any::<usize>()),
            cuts in vec(any::<usize>(), 0..30),
            (unique, descending) in any::<(bool, bool)>(),
        ) {
            let shape = Fixed { record_bytes: 1 + rest, key_bytes: 1, descending };
            let record = |key: u8| [vec![key], vec![b'\n'; rest]].concat();
            let records = mostly_sorted(shape, keys.into_iter().map(record).collect(), swap);
            agrees(shape, unique, &records, &cuts);
        }
    }

    #[test]
    fn a_cut_off_record_is_no_record() {
        let shape = Fixed {
            record_bytes: 4,
            key_bytes: 2,
            descending: false,
        };
        let error = check(shape, false, b"aaaabbbbcc", &[1, 6]).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        let message = error.to_string();
        assert!(
            message.contains("2 bytes into a record") && message.contains("record 3"),
            "{message}"
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_told_with_the_memory_for_it() {
        let mut check = SortednessCheck::new(LineShape { descending: false }, false, bound(5));
        check.name = "data".to_owned();
        check.block(b"a\nbcd").unwrap();
        check.block(b"efghij").unwrap();
        let error = check.block(b"kl\n").unwrap_err().to_string();
        assert!(error.contains("a line has 12 bytes, and"), "{error}");
        assert!(error.contains("longest has 5"), "{error}");
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn a_long_key_is_shown_in_part() {
        let data = [b"b\n".to_vec(), vec![b'a'; 5_000], b"\n".to_vec()].concat();
        let error = check(LineShape { descending: false }, false, &data, &[3, 900]).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(&"a".repeat(SHOWN_BYTES)) && message.len() < 400,
            "{message}"
        );
    }
}
