//! Lines of a split: TextInputFormat, NLineInputFormat, KeyValueTextInputFormat.

use super::{FileSource, Pair, Piece, Records};
use crate::error::Result;
use crate::hadoop::value::Class;
use crate::script::lines::Lines;
use crate::storage::Store;

/// A mark at a file's beginning that says "UTF-8", and is no part of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
}

impl TextRecords {
    /// The lines of `piece`, ended by `delimiter` or as usual; cut into keys and values by `separator`.
    pub fn open(
        store: &dyn Store,
        piece: &Piece,
        delimiter: Option<&str>,
        separator: Option<u8>,
    ) -> Result<Self> {
        let delimiter = delimiter.map(|text| text.as_bytes().to_vec());
        // The end of the line before may lie across the border.
        let back = delimiter
            .as_ref()
            .map_or(0, |text| text.len().saturating_sub(1) as u64);
        let from = if piece.coded {
            0
        } else {
            piece.start.saturating_sub(back)
        };
        let source = FileSource::open(store, &piece.path, from, piece.coded)?;
        let mut records = TextRecords {
            lines: Lines::new(source, delimiter),
            separator,
            here: [0; 8],
            next: from,
            end: if piece.coded {
                u64::MAX
            } else {
                piece.start + piece.length
            },
            skip: 0,
            cut: None,
        };
        if piece.start > 0 && !piece.coded {
            let length = records.lines.advance()?;
            records.next += length.unwrap_or(0) as u64;
        }
        Ok(records)
    }
}

impl Records for TextRecords {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
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
        if let Some(separator) = self.separator {
            let line = self.lines.line().get(self.skip..).unwrap_or_default();
            self.cut = memchr::memchr(separator, line);
        }
        Ok(true)
    }

    #[inline]
    fn pair(&self) -> Pair<'_> {
        let line = self.lines.line().get(self.skip..).unwrap_or_default();
        if self.separator.is_none() {
            return ((Class::Long, &self.here), (Class::Text, line));
        }
        let cut = self.cut.unwrap_or(line.len());
        let (key, rest) = line.split_at_checked(cut).unwrap_or((line, &[]));
        (
            (Class::Text, key),
            (Class::Text, rest.get(1..).unwrap_or_default()),
        )
    }

    fn offset(&self) -> u64 {
        u64::from_be_bytes(self.here)
    }

    fn many(&mut self) -> Result<(u64, &[u8])> {
        if self.separator.is_some() || self.next == 0 {
            return Ok((0, &[])); // the first line may begin with a mark
        }
        let bytes = self.lines.many(self.end.saturating_sub(self.next))?;
        self.next += bytes.len() as u64;
        Ok((memchr::memchr_iter(b'\n', bytes).count() as u64, bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::Caching;
    use crate::storage::memory::Memory;

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
        let piece = Piece {
            path: "/f".into(),
            start,
            length,
            coded: false,
        };
        let mut records = TextRecords::open(store, &piece, delimiter, None).unwrap();
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

    proptest! {
        #[test]
        fn splits_share_the_lines_however_they_are_cut(
            text in "(\u{feff})?[ab\r\n]{0,50}", cuts in proptest::collection::vec(0_u64..50, 0..4), many: bool,
        ) {
            let store = stored(text.as_bytes());
            let size = text.len() as u64;
            let whole = lines(&store, 0, size, None, false);
            let mut borders: Vec<_> = cuts.into_iter().filter(|cut| *cut < size && *cut > 0).collect();
            borders.extend([0, size]);
            borders.sort_unstable();
            borders.dedup();
            let parts = borders.windows(2).flat_map(|pair| lines(&store, pair[0], pair[1] - pair[0], None, many));
            prop_assert_eq!(parts.collect::<Vec<_>>(), whole);
        }

        #[test]
        fn records_are_found_where_the_delimiter_is_cut(text in "[a#|]{0,40}", at in 1_u64..40) {
            let store = stored(text.as_bytes());
            let size = text.len() as u64;
            let at = at.min(size);
            let whole = lines(&store, 0, size, Some("#|"), false);
            let mut parts = lines(&store, 0, at, Some("#|"), false);
            if at < size {
                parts.extend(lines(&store, at, size - at, Some("#|"), false));
            }
            prop_assert_eq!(parts, whole);
        }
    }

    #[test]
    fn keys_and_values() {
        let store = stored(b"a=1=2\nb\n=c\n");
        let piece = Piece {
            path: "/f".into(),
            start: 0,
            length: 11,
            coded: false,
        };
        let mut records = TextRecords::open(&store, &piece, None, Some(b'=')).unwrap();
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
