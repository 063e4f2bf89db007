//! What is between two marks: `StreamXmlRecordReader`.
//!
//! ```text
//!   file     ... </p> x <p>one</p> y <p>two <p>lines</p> z <p>three
//!   records             |--------|   |-----------------|             what begins and does not end is no record
//!   split                              ^ it scans from `y`, and leaves out "two", which begins before it
//! ```
//!
//! The rule that must hold: whatever the splits, the records are those of one split. Nothing that begins before an end
//! mark goes on behind it, so a split looks back to the last end mark before it, and scans from there. Where a begin mark can
//! begin within an end mark that is not so, and each split scans from the file's beginning. (Hadoop's reader scans
//! from the split's beginning, and goes on behind the first byte that does not match: `<<p>` hides a `<p>`. Here, and in
//! Hadoop, the end mark may lie within the begin mark.)

use std::ops::Range;

use memchr::memmem::{Finder, FinderRev};

use super::{FileSource, Pair, RecordReader};
use crate::hadoop::value::WritableClass;
use gristmill_base::error::Result;
use gristmill_storage::input::FileRange;
use gristmill_storage::lines::{BLOCK_BYTES, ByteSource};
use gristmill_storage::{Caching, ReadFile, Store};

/// The records of a split.
#[derive(Debug)]
pub struct XmlRecords {
    source: FileSource,
    buffer: Vec<u8>,
    /// The bytes of `buffer` that were read, from the present record on.
    rest: Range<usize>,
    /// Where they begin in the file.
    position: u64,
    /// Bytes of the present record.
    record_bytes: usize,
    begin: Finder<'static>,
    end: Finder<'static>,
    /// Where the records of the split begin.
    split: Range<u64>,
}

impl XmlRecords {
    /// The records of `piece` between `begin` and `end`, marks included.
    pub fn open(store: &dyn Store, piece: &FileRange, begin: &str, end: &str) -> Result<Self> {
        let mut split = piece.range();
        if piece.file.codec.is_some() {
            split.start = 0;
        }
        let position = match split.start {
            start if start > 0 && !begins_within(begin, end) => {
                let file = piece.file.open(store, Caching::Cached)?;
                behind_last(end.as_bytes(), &*file, start)?
            }
            _ => 0,
        };
        let source = FileSource::open(store, piece, position)?;
        if source.is_decoded() {
            split.end = u64::MAX;
        }
        Ok(XmlRecords {
            source,
            buffer: Vec::new(),
            rest: 0..0,
            position,
            record_bytes: 0,
            begin: Finder::new(begin).into_owned(),
            end: Finder::new(end).into_owned(),
            split,
        })
    }

    fn rest(&self) -> &[u8] {
        self.buffer.get(self.rest.clone()).unwrap_or_default()
    }

    fn pass_over(&mut self, bytes: usize) {
        self.rest.start += bytes;
        self.position += bytes as u64;
    }

    /// Reads more; false at the file's end.
    fn fill(&mut self) -> Result<bool> {
        if self.rest.start > 0 {
            self.buffer.copy_within(self.rest.clone(), 0);
            self.rest = 0..self.rest.len();
        }
        let room = self.rest.end + BLOCK_BYTES;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let read = self.source.read(&mut self.buffer[self.rest.end..])?;
        self.rest.end += read;
        Ok(read > 0)
    }

    /// Passes over what is before the next begin mark; false where none begins in the split.
    fn find_begin(&mut self) -> Result<bool> {
        while self.position < self.split.end {
            if let Some(at) = self.begin.find(self.rest()) {
                self.pass_over(at);
                return Ok(self.position < self.split.end);
            }
            // The last bytes may be the beginning of a mark.
            let kept = self.begin.needle().len() - 1;
            self.pass_over(self.rest.len().saturating_sub(kept));
            if !self.fill()? {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// How many bytes there are up to the end of the next end mark.
    fn find_end(&mut self) -> Result<Option<usize>> {
        let length = self.end.needle().len();
        let mut looked = 0;
        loop {
            if let Some(at) = self.end.find(&self.rest()[looked..]) {
                return Ok(Some(looked + at + length));
            }
            looked = self.rest.len().saturating_sub(length - 1);
            if !self.fill()? {
                return Ok(None);
            }
        }
    }
}

impl RecordReader for XmlRecords {
    fn advance(&mut self) -> Result<bool> {
        loop {
            let passed = std::mem::take(&mut self.record_bytes);
            self.pass_over(passed);
            if !self.find_begin()? {
                return Ok(false);
            }
            let Some(bytes) = self.find_end()? else {
                return Ok(false);
            };
            self.record_bytes = bytes;
            if self.position >= self.split.start {
                return Ok(true);
            }
        }
    }

    fn pair(&self) -> Pair<'_> {
        let record = self.rest().get(..self.record_bytes).unwrap_or_default();
        ((WritableClass::Text, record), (WritableClass::Text, &[]))
    }

    fn offset(&self) -> u64 {
        self.position
    }
}

/// Whether a begin mark can begin behind the first byte of an end mark.
fn begins_within(begin: &str, end: &str) -> bool {
    let (begin, end) = (begin.as_bytes(), end.as_bytes());
    (1..end.len()).any(|at| begin.starts_with(&end[at..]) || end[at..].starts_with(begin))
}

/// Where the last `mark` ends that ends at or before `offset`; without one, the file's beginning.
fn behind_last(mark: &[u8], file: &dyn ReadFile, offset: u64) -> Result<u64> {
    let finder = FinderRev::new(mark);
    let overlap = mark.len() as u64 - 1;
    let mut block = vec![0; BLOCK_BYTES + mark.len() - 1];
    let mut high = offset;
    while high > 0 {
        let low = high.saturating_sub(BLOCK_BYTES as u64);
        // Marks that begin before `high`.
        let count = ((high + overlap).min(offset) - low) as usize;
        let read = file.read_at(&mut block[..count], low)?;
        if let Some(at) = finder.rfind(&block[..read]) {
            return Ok(low + (at + mark.len()) as u64);
        }
        high = low;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::super::plain;
    use super::*;
    use gristmill_storage::OutputStore as _;
    use gristmill_storage::memory::Memory;

    fn stored(text: &str) -> Memory {
        let store = Memory::with_room_for(1 << 20);
        let file = store
            .create("/f".as_ref(), text.len() as u64, Caching::Cached)
            .unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        store
    }

    /// The records between `marks` of a text that is cut at `cuts`.
    fn records(text: &str, marks: (&str, &str), cuts: &[u64]) -> Vec<(u64, String)> {
        let store = stored(text);
        let borders = [&[0], cuts, &[text.len() as u64]].concat();
        let mut found = Vec::new();
        for pair in borders.windows(2) {
            let piece = plain(pair[0], pair[1] - pair[0]);
            let mut records = XmlRecords::open(&store, &piece, marks.0, marks.1).unwrap();
            while records.advance().unwrap() {
                let record = String::from_utf8(records.pair().0.1.to_vec()).unwrap();
                found.push((records.offset(), record));
            }
            assert!(!records.advance().unwrap());
        }
        found
    }

    fn naive(text: &str, (begin, end): (&str, &str)) -> Vec<(u64, String)> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(start) = text[at..].find(begin).map(|start| at + start)
            && let Some(length) = text[start..].find(end)
        {
            at = start + length + end.len();
            found.push((start as u64, text[start..at].to_owned()));
        }
        found
    }

    fn texts(marks: (&str, &str)) -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just(marks.0.to_owned()),
            Just(marks.1.to_owned()),
            "[<>/!p-]{0,3}",
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    fn marked() -> impl Strategy<Value = ((&'static str, &'static str), String)> {
        let marks = proptest::sample::select(vec![
            ("<p>", "</p>"),
            ("><", "-->"),
            ("||", "||"),
            ("p", "<p>"),
            ("<!--", "-->"),
            ("<<", ">>"),
            ("<p<p>", "--"),
        ]);
        marks.prop_flat_map(|marks| (Just(marks), texts(marks)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(18), ..ProptestConfig::default() })]

        #[test]
        fn records_are_those_of_one_split((marks, text) in marked()) {
            let all = naive(&text, marks);
            prop_assert_eq!(&records(&text, marks, &[]), &all);
            for cut in 1..text.len() as u64 {
                prop_assert_eq!(&records(&text, marks, &[cut]), &all, "cut at {}", cut);
            }
            let everywhere: Vec<_> = (1..text.len() as u64).collect();
            prop_assert_eq!(&records(&text, marks, &everywhere), &all);
        }
    }

    #[test]
    fn a_mark_may_come_behind_its_own_first_byte() {
        let texts = |text, marks| -> Vec<_> {
            let found = records(text, marks, &[]);
            found.into_iter().map(|(_, record)| record).collect()
        };
        assert_eq!(texts("<<a>x</a>", ("<a>", "</a>")), ["<a>x</a>"]);
        assert_eq!(texts("<!--x--->y", ("<!--", "-->")), ["<!--x--->"]);
        assert!(records("", ("<a>", "</a>"), &[]).is_empty());
    }

    #[test]
    fn marks_lie_across_blocks() {
        let marks = ("<begin>", "<end>");
        let long = "x".repeat(BLOCK_BYTES - 3);
        let text = format!("{long}<begin>{long}<end>{long}<begin>y<end>");
        let all = naive(&text, marks);
        assert_eq!(all.len(), 2);
        for cut in (1..text.len() as u64).step_by(BLOCK_BYTES / 3) {
            assert_eq!(records(&text, marks, &[cut]), all, "cut at {cut}");
        }
    }
}
