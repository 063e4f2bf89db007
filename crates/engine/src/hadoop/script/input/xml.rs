//! What is between two marks: `StreamXmlRecordReader`.
//!
//! The search is Hadoop's, byte by byte: after a mismatch it goes on behind the byte that did not match, so that
//! `<<page>` hides a `<page>`. What begins and does not end is no record.

use super::{FileSource, Pair, Records};
use crate::error::Result;
use crate::hadoop::value::Class;
use crate::lines::Source;
use crate::storage::Store;
use crate::storage::input::FileRange;

/// The records of a split.
#[derive(Debug)]
pub struct XmlRecords {
    source: FileSource,
    buffer: Vec<u8>,
    /// The bytes of `buffer` that are still to be looked at.
    rest: std::ops::Range<usize>,
    begin: Vec<u8>,
    end_mark: Vec<u8>,
    /// Where the search stands in the file.
    position: u64,
    end: u64,
    record: Vec<u8>,
    here: u64,
    /// The last search found the mark that begins a record.
    begun: bool,
}

impl XmlRecords {
    /// The records of `piece` between `begin` and `end`, marks included.
    pub fn open(store: &dyn Store, piece: &FileRange, begin: &str, end: &str) -> Result<Self> {
        let start = if piece.file.codec.is_some() {
            0
        } else {
            piece.offset
        };
        let source = FileSource::open(store, piece, start)?;
        let mut records = XmlRecords {
            end: if source.is_decoded() {
                u64::MAX
            } else {
                start + piece.bytes
            },
            source,
            buffer: vec![0; 128 << 10],
            rest: 0..0,
            begin: begin.as_bytes().to_vec(),
            end_mark: end.as_bytes().to_vec(),
            position: start,
            record: Vec::new(),
            here: 0,
            begun: false,
        };
        records.begun = records.find_begin()?;
        Ok(records)
    }

    #[inline]
    fn byte(&mut self) -> Result<Option<u8>> {
        if self.rest.is_empty() {
            let count = self.source.read(&mut self.buffer)?;
            self.rest = 0..count;
        }
        let at = self.rest.start;
        let byte = if self.rest.is_empty() {
            None
        } else {
            self.buffer.get(at).copied()
        };
        self.rest.start += usize::from(byte.is_some());
        Ok(byte)
    }

    /// Goes to the end of the next begin mark; `position` is at its beginning.
    fn find_begin(&mut self) -> Result<bool> {
        let mut matched = 0;
        while let Some(byte) = self.byte()? {
            if self.begin.get(matched) == Some(&byte) {
                matched += 1;
                if matched == self.begin.len() {
                    return Ok(true);
                }
            } else {
                self.position += matched as u64 + 1;
                matched = 0;
            }
        }
        Ok(false)
    }

    /// Takes what is up to the end of the next end mark.
    fn take_record(&mut self) -> Result<bool> {
        self.record.clear();
        let mut matched = 0;
        // The begin mark's bytes are looked at again, as Hadoop does.
        let begin = std::mem::take(&mut self.begin);
        let mut again = begin.iter().copied();
        let found = loop {
            let next = match again.next() {
                Some(byte) => Some(byte),
                None => self.byte()?,
            };
            let Some(byte) = next else { break false };
            self.record.push(byte);
            if self.end_mark.get(matched) == Some(&byte) {
                matched += 1;
                if matched == self.end_mark.len() {
                    break true;
                }
            } else {
                matched = 0;
            }
        };
        self.begin = begin;
        self.position += self.record.len() as u64;
        Ok(found)
    }
}

impl Records for XmlRecords {
    fn advance(&mut self) -> Result<bool> {
        if self.position >= self.end || !self.begun {
            return Ok(false);
        }
        self.here = self.position;
        if !self.take_record()? {
            self.begun = false;
            return Ok(false);
        }
        self.begun = self.find_begin()?;
        Ok(true)
    }

    fn pair(&self) -> Pair<'_> {
        ((Class::Text, &self.record), (Class::Text, &[]))
    }

    fn offset(&self) -> u64 {
        self.here
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;
    use crate::storage::Caching;
    use crate::storage::Output as _;
    use crate::storage::memory::Memory;

    fn records(text: &str, start: u64, length: u64) -> Vec<(u64, String)> {
        let store = Memory::with_room_for(1 << 20);
        let file = store
            .create("/f".as_ref(), text.len() as u64, Caching::Cached)
            .unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        let piece = plain(start, length);
        let mut records = XmlRecords::open(&store, &piece, "<p>", "</p>").unwrap();
        let mut found = Vec::new();
        while records.advance().unwrap() {
            found.push((
                records.offset(),
                String::from_utf8_lossy(records.pair().0.1).into_owned(),
            ));
        }
        found
    }

    #[test]
    fn marks_bound_records_wherever_the_file_is_cut() {
        let text = "x<p>one</p> y <p>two\nlines</p><p>three</p>z<p>four";
        let all = records(text, 0, text.len() as u64);
        let texts: Vec<_> = all.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["<p>one</p>", "<p>two\nlines</p>", "<p>three</p>"]);
        for cut in 1..text.len() as u64 {
            let mut parts = records(text, 0, cut);
            parts.extend(records(text, cut, text.len() as u64 - cut));
            assert_eq!(parts, all, "cut at {cut}");
        }
    }

    #[test]
    fn a_mark_may_hide_behind_its_own_beginning() {
        assert_eq!(
            records("<<p>a</p><p>b</p>", 0, 17),
            [(9, "<p>b</p>".to_owned())]
        );
        assert_eq!(records("", 0, 0), []);
    }
}
