//! Lines of a split: TextInputFormat, NLineInputFormat, KeyValueTextInputFormat. Hadoop's rule says which they are; our
//! own inputs have another (`lines.rs` says why). Both look for delimiters that overlap themselves in the same way
//! (`lines/scan_start.rs`).
//!
//! Lines can be passed over for their length (`mapreduce.input.linerecordreader.line.maxlength`), which is counted with
//! the line's end and has to be less. Hadoop's reader of such a line stops at the split's end, and what it finds behind
//! it is a line of its own, if that is short enough:
//!
//! ```text
//!   split 0 ..... a line too | long\n next ....        records: `long`, with the border as its offset; the next split
//!                     border                           passes over it as over any line that it begins in
//! ```

use super::{FileSource, Pair, RecordReader};
use crate::hadoop::value::WritableClass;
use gristmill_base::error::Result;
use gristmill_storage::input::FileRange;
use gristmill_storage::lines::scan_start::scan_start;
use gristmill_storage::lines::{BYTE_ORDER_MARK, Ends, Lines, Terminator};
use gristmill_storage::{Caching, Store};

/// The lines of a split.
#[derive(Debug)]
pub struct TextRecords {
    lines: Lines<FileSource>,
    /// Between key and value, in lines that have both.
    separator: Option<u8>,
    /// Where the present line begins.
    here: [u8; 8],
    /// Where the next one begins.
    next: u64,
    /// Where the split ends: a line that begins here is its last.
    end: u64,
    /// The bytes of the present line that are not shown.
    skip: usize,
    cut: Option<usize>,
    /// Lines of so many bytes, their ends included, are passed over.
    longest: Option<u64>,
    /// The next line is what lies behind the split's end of one that was passed over.
    in_tail: bool,
}

impl TextRecords {
    /// The lines of `piece`, ended by `delimiter` or as usual; cut into keys and values by `separator`. Those of `longest`
    /// bytes and more are passed over.
    pub fn open(
        store: &dyn Store,
        piece: &FileRange,
        delimiter: Option<&str>,
        separator: Option<u8>,
        longest: Option<u64>,
    ) -> Result<Self> {
        let ends = match delimiter {
            None => Ends::Hadoop,
            Some(text) => Ends::new(&Terminator::Bytes(text.into()))?,
        };
        let start = if piece.file.codec.is_some() {
            0
        } else {
            piece.offset
        };
        let from = match &ends {
            Ends::Bytes(delimiter) if start > 0 => {
                scan_start(delimiter, &*piece.file.open(store, Caching::Cached)?, start)?
            }
            _ => start,
        };
        let source = FileSource::open(store, piece, from)?;
        let mut records = TextRecords {
            end: if source.is_decoded() {
                u64::MAX
            } else {
                piece.range().end
            },
            lines: Lines::new(source, ends),
            separator,
            here: [0; 8],
            next: from,
            skip: 0,
            cut: None,
            longest,
            in_tail: false,
        };
        if start > 0 {
            records.pass_over_others(start)?;
        }
        Ok(records)
    }

    /// Lines up to the one that the split begins in, at `start`, belong to the splits before.
    fn pass_over_others(&mut self, start: u64) -> Result<()> {
        while self.next <= start {
            let kept = self.longest.map_or(0, kept);
            let Some((length, gone)) = self.lines.advance_keeping(kept)? else {
                return Ok(());
            };
            let begin = self.next;
            self.next += length;
            self.in_tail = match self.longest {
                Some(longest) => self.take_tail(begin, length, gone, longest),
                None => false,
            };
        }
        Ok(())
    }

    /// Goes on to the next line that is short enough.
    fn advance_within(&mut self, longest: u64) -> Result<bool> {
        if std::mem::take(&mut self.in_tail) {
            self.cut_line();
            return Ok(true);
        }
        while self.next <= self.end {
            let Some((length, gone)) = self.lines.advance_keeping(kept(longest))? else {
                return Ok(false);
            };
            let begin = self.next;
            self.next += length;
            let marked = begin == 0 && gone == 0 && self.lines.line().starts_with(BYTE_ORDER_MARK);
            self.skip = if marked { BYTE_ORDER_MARK.len() } else { 0 };
            self.here = begin.to_be_bytes();
            if length - (self.skip as u64) < longest || self.take_tail(begin, length, gone, longest)
            {
                self.cut_line();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether what lies behind the split's end, of a line that begins at `begin` and is too long, is a line.
    fn take_tail(&mut self, begin: u64, length: u64, gone: u64, longest: u64) -> bool {
        let text_end = begin + gone + self.lines.line().len() as u64;
        // Reading goes on where what is left of the split is short, and where the line's end lies across the border.
        let stops = self.end.saturating_sub(begin) >= longest && text_end >= self.end;
        let behind = (begin + length).saturating_sub(self.end);
        if !stops || behind == 0 || behind >= longest {
            return false;
        }
        self.here = self.end.to_be_bytes();
        self.skip = usize::try_from(self.end - begin - gone).unwrap_or(usize::MAX);
        true
    }

    #[inline]
    fn cut_line(&mut self) {
        if let Some(separator) = self.separator {
            let line = self.lines.line().get(self.skip..).unwrap_or_default();
            self.cut = memchr::memchr(separator, line);
        }
    }
}

/// How much of a line is kept that is too long: no tail of more bytes is a record.
fn kept(longest: u64) -> usize {
    usize::try_from(longest).unwrap_or(usize::MAX)
}

impl RecordReader for TextRecords {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if let Some(longest) = self.longest {
            return self.advance_within(longest);
        }
        if self.next > self.end {
            return Ok(false);
        }
        let Some(length) = self.lines.advance()? else {
            return Ok(false);
        };
        let marked = self.next == 0 && self.lines.line().starts_with(BYTE_ORDER_MARK);
        self.skip = if marked { BYTE_ORDER_MARK.len() } else { 0 };
        self.here = self.next.to_be_bytes();
        self.next += length as u64;
        self.cut_line();
        Ok(true)
    }

    #[inline]
    fn pair(&self) -> Pair<'_> {
        let line = self.lines.line().get(self.skip..).unwrap_or_default();
        if self.separator.is_none() {
            return (
                (WritableClass::Long, &self.here),
                (WritableClass::Text, line),
            );
        }
        let cut = self.cut.unwrap_or(line.len());
        let (key, rest) = line.split_at_checked(cut).unwrap_or((line, &[]));
        (
            (WritableClass::Text, key),
            (WritableClass::Text, rest.get(1..).unwrap_or_default()),
        )
    }

    fn offset(&self) -> u64 {
        u64::from_be_bytes(self.here)
    }

    fn many(&mut self) -> Result<(u64, &[u8])> {
        if self.separator.is_some() || self.longest.is_some() || self.next == 0 {
            return Ok((0, &[])); // the first line may begin with a mark
        }
        let bytes = self.lines.many(self.end.saturating_sub(self.next))?;
        self.next += bytes.len() as u64;
        Ok((memchr::memchr_iter(b'\n', bytes).count() as u64, bytes))
    }
}

#[cfg(test)]
mod tests {
    use gristmill_storage::OutputStore as _;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::super::plain;
    use super::*;
    use gristmill_storage::memory::Memory;

    fn stored(text: &[u8]) -> Memory {
        let store = Memory::with_room_for(1 << 20);
        let file = store
            .create("/f".as_ref(), text.len() as u64, Caching::Cached)
            .unwrap();
        file.write_at(text, 0).unwrap();
        store
    }

    fn lines(
        store: &Memory,
        start: u64,
        length: u64,
        delimiter: Option<&str>,
        many: bool,
    ) -> Vec<(u64, Vec<u8>)> {
        let piece = plain(start, length);
        let mut records = TextRecords::open(store, &piece, delimiter, None, None).unwrap();
        let mut found = Vec::new();
        loop {
            if many {
                let mut at = records.next;
                let (count, bytes) = records.many().unwrap();
                let split = bytes.split_inclusive(|&byte| byte == b'\n');
                assert_eq!(split.clone().count() as u64, count);
                for line in split {
                    found.push((at, line[..line.len() - 1].to_vec()));
                    at += line.len() as u64;
                }
            }
            if !records.advance().unwrap() {
                return found;
            }
            found.push((records.offset(), records.pair().1.1.to_vec()));
        }
    }

    /// Where splits begin and end.
    fn borders(size: u64, cuts: Vec<u64>) -> Vec<u64> {
        let mut borders: Vec<_> = cuts
            .into_iter()
            .filter(|cut| (1..size).contains(cut))
            .collect();
        borders.extend([0, size]);
        borders.sort_unstable();
        borders.dedup();
        borders
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(12), ..ProptestConfig::default() })]

        #[test]
        fn splits_share_the_lines_however_they_are_cut(
            text in "(\u{feff})?[ab\r\n]{0,50}", cuts in proptest::collection::vec(0_u64..50, 0..4), many: bool,
        ) {
            let store = stored(text.as_bytes());
            let size = text.len() as u64;
            let whole = lines(&store, 0, size, None, false);
            let borders = borders(size, cuts);
            let parts = borders.windows(2).flat_map(|pair| lines(&store, pair[0], pair[1] - pair[0], None, many));
            prop_assert_eq!(parts.collect::<Vec<_>>(), whole);
        }

        #[test]
        fn records_are_those_of_one_split_whatever_the_delimiter(
            text in "[ab]{0,40}", delimiter in "[ab]{1,4}", cuts in proptest::collection::vec(1_u64..40, 0..4),
        ) {
            let store = stored(text.as_bytes());
            let size = text.len() as u64;
            let mut expected: Vec<_> = text.split(&delimiter).map(|line| line.as_bytes().to_vec()).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            let parts = |borders: &[u64]| -> Vec<_> {
                let each = borders.windows(2);
                each.flat_map(|pair| lines(&store, pair[0], pair[1] - pair[0], Some(&delimiter), false)).collect()
            };
            let whole = parts(&[0, size]);
            prop_assert_eq!(whole.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>(), expected);
            for cut in 1..size {
                prop_assert_eq!(parts(&[0, cut, size]), whole.clone(), "cut at {}", cut);
            }
            prop_assert_eq!(parts(&borders(size, cuts)), whole);
        }
    }

    /// Hadoop's LineRecordReader over its LineReader, whose buffer ends where the split does, byte by byte.
    fn naive_within(text: &[u8], start: u64, length: u64, longest: u64) -> Vec<(u64, Vec<u8>)> {
        let end = start + length;
        // One line from `pos`: its text, and how many bytes were consumed.
        let read = |pos: u64| {
            let limit = end.saturating_sub(pos).max(longest);
            let (mut at, mut line) = (pos as usize, Vec::new());
            while at < text.len() {
                let consumed = at as u64 - pos;
                if consumed >= limit && at as u64 >= end {
                    return (line, consumed); // at the split's end, or somewhere behind it
                }
                match text[at] {
                    b'\r' if text.get(at + 1) == Some(&b'\n') => return (line, consumed + 2),
                    b'\n' | b'\r' => return (line, consumed + 1),
                    byte => line.push(byte),
                }
                at += 1;
            }
            let consumed = at as u64 - pos;
            (line, consumed)
        };
        let mut pos = start;
        if start > 0 {
            pos += read(start).1;
        }
        let mut found = Vec::new();
        while pos <= end {
            let (mut line, consumed) = read(pos);
            if consumed == 0 {
                break;
            }
            let mark = if pos == 0 && line.starts_with(BYTE_ORDER_MARK) {
                3
            } else {
                0
            };
            line.drain(..mark);
            if consumed - (mark as u64) < longest {
                found.push((pos, line));
            }
            pos += consumed;
        }
        found
    }

    proptest! {
        #[test]
        fn long_lines_are_passed_over_as_hadoop_does(
            text in "[ab\r\n]{0,60}", start in 0_u64..40, length in 0_u64..40, longest in 1_u64..12,
        ) {
            let store = stored(text.as_bytes());
            let size = text.len() as u64;
            let start = start.min(size);
            let length = length.min(size - start);
            let piece = plain(start, length);
            let mut records = TextRecords::open(&store, &piece, None, None, Some(longest)).unwrap();
            let mut found = Vec::new();
            while records.advance().unwrap() {
                prop_assert_eq!(records.many().unwrap().0, 0);
                found.push((records.offset(), records.pair().1.1.to_vec()));
            }
            prop_assert_eq!(found, naive_within(text.as_bytes(), start, length, longest));
        }
    }

    #[test]
    fn keys_and_values() {
        let store = stored(b"a=1=2\nb\n=c\n");
        let piece = plain(0, 11);
        let mut records = TextRecords::open(&store, &piece, None, Some(b'='), None).unwrap();
        let mut found = Vec::new();
        while records.advance().unwrap() {
            let (key, value) = records.pair();
            found.push((
                String::from_utf8_lossy(key.1).into_owned(),
                String::from_utf8_lossy(value.1).into_owned(),
            ));
        }
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(found, [pair("a", "1=2"), pair("b", ""), pair("", "c")]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(
            lines(&stored(b"\xef\xbb\xbfa\nb\n"), 0, 7, None, true),
            [(0, b"a".to_vec()), (5, b"b".to_vec())]
        );
    }
}
