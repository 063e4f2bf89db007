//! Lines of a source of bytes: what ends them, and the buffer that they lie in. The one reader of lines.
//!
//! ```text
//!   source ──read──▶ | lines gone by | line | ... to be looked at ... | room |
//!                                    from   next                      to
//! ```
//!
//! Two rules say which lines of a file belong to a range of it, each on top of this:
//!
//! ```text
//!   split/lines.rs                 our inputs     lines that start in the range
//!   hadoop/script/input/text.rs    streaming      lines that start behind its first byte, or at its end
//! ```
//!
//! Streaming keeps Hadoop's rule, as a job without a reduce has an output file for each split. The output of a script is
//! read here directly.
//!
//! A line may be as long as memory holds: the buffer doubles. Of a line that is longer than anybody wants to see, only
//! the end is kept ([`Lines::advance_keeping`]).

mod line_end;
pub mod scan_start;
pub mod words;

use std::ops::Range;

use memchr::{memchr, memchr2, memmem, memrchr};

pub use self::line_end::{LineEnd, lines_of};
use gristmill_base::error::{Error, Kind, Result};
pub use gristmill_base::record::BYTE_ORDER_MARK;

/// Bytes that are read at once, unless somebody knows better.
pub const BLOCK_BYTES: usize = 128 << 10;

/// Where bytes come from: fills the beginning of a buffer, 0 at the end.
pub trait ByteSource {
    /// Reads some bytes.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize>;
}

impl<F: FnMut(&mut [u8]) -> Result<usize>> ByteSource for F {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self(buffer)
    }
}

/// What ends a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terminator {
    /// LF; and, if asked, one CR before it is not part of the line either.
    Lf {
        /// Whether a CR before the LF goes too.
        strip_cr: bool,
    },
    /// CR, LF, or CR LF, as in Hadoop's `LineReader`.
    Hadoop,
    /// NUL.
    Nul,
    /// These bytes, of which there is at least one.
    Bytes(Vec<u8>),
}

/// Lines of a source.
#[derive(Debug)]
pub struct Lines<S> {
    source: S,
    ends: Ends,
    buffer: Vec<u8>,
    block_bytes: usize,
    /// A line is not looked for any further than this.
    line_bytes_max: usize,
    /// The present line, without its end.
    line: Range<usize>,
    /// Where the next line begins.
    next: usize,
    /// Where the bytes that were read end.
    to: usize,
    over: bool,
}

impl<S: ByteSource> Lines<S> {
    /// The lines of `source`.
    ///
    /// ```
    /// use gristmill_storage::lines::{Ends, Lines};
    /// let mut text = &b"a\r\nb\n\nc"[..];
    /// let mut lines = Lines::new(|buffer: &mut [u8]| {
    ///     let count = text.len().min(buffer.len()).min(2);
    ///     buffer[..count].copy_from_slice(&text[..count]);
    ///     text = &text[count..];
    ///     Ok(count)
    /// }, Ends::Hadoop);
    /// let mut found = Vec::new();
    /// while lines.advance()?.is_some() {
    ///     found.push(lines.line().to_vec());
    /// }
    /// assert_eq!(found, [&b"a"[..], b"b", b"", b"c"]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(source: S, ends: Ends) -> Self {
        Lines::in_blocks(source, ends, BLOCK_BYTES, usize::MAX)
    }

    /// The lines of `source`, of which `block_bytes` are read at once, at most. [`Lines::advance`] gives up at a line of
    /// more than `line_bytes_max` bytes.
    pub fn in_blocks(source: S, ends: Ends, block_bytes: usize, line_bytes_max: usize) -> Self {
        let block_bytes = block_bytes.max(1);
        Lines {
            source,
            ends,
            buffer: vec![0; 2 * block_bytes],
            block_bytes,
            line_bytes_max,
            line: 0..0,
            next: 0,
            to: 0,
            over: false,
        }
    }

    /// Goes on to the next line; gives its length with its end, or `None` after the last. `None` too, with
    /// [`Lines::is_over`] false, where it is longer than it may be.
    #[inline]
    pub fn advance(&mut self) -> Result<Option<usize>> {
        let mut looked = 0;
        loop {
            let rest = self.buffer.get(self.next..self.to).unwrap_or_default();
            match self.ends.find(rest, looked, self.over) {
                Some((line, _)) if line > self.line_bytes_max => return Ok(None),
                Some((line, end)) => {
                    self.line = self.next..self.next + line;
                    self.next += end;
                    return Ok(Some(end));
                }
                None if self.over => {
                    let length = rest.len();
                    if length > self.line_bytes_max {
                        return Ok(None);
                    }
                    self.line = self.next..self.to;
                    self.next = self.to;
                    return Ok((length > 0).then_some(length));
                }
                None => {
                    // What was looked at need not be again, but for a beginning of the end.
                    looked = rest.len().saturating_sub(self.ends.overlap());
                    // One byte less: the last may be a CR that is no part of the line.
                    if looked.saturating_sub(1) > self.line_bytes_max {
                        return Ok(None);
                    }
                    self.fill()?;
                }
            }
        }
    }

    /// As [`Lines::advance`]; of a line longer than `most` bytes, about that many of its last are kept in memory. Gives
    /// the line's length with its end, and how many of its first bytes are gone.
    pub fn advance_keeping(&mut self, most: usize) -> Result<Option<(u64, u64)>> {
        self.advance_up_to(most, u64::MAX)
    }

    /// Passes over the next line, whatever its length, but gives up after about `most` bytes; gives how many it passed.
    pub fn pass_over(&mut self, most: u64) -> Result<Option<u64>> {
        let passed = self.advance_up_to(0, most)?;
        Ok(passed.map(|(length, _)| length))
    }

    fn advance_up_to(&mut self, keep: usize, most: u64) -> Result<Option<(u64, u64)>> {
        let back = self.ends.overlap();
        let (mut looked, mut gone) = (0, 0);
        let length = loop {
            let rest = self.buffer.get(self.next..self.to).unwrap_or_default();
            if let Some((line, end)) = self.ends.find(rest, looked, self.over) {
                self.line = self.next..self.next + line;
                break end;
            }
            if self.over {
                self.line = self.next..self.to;
                break rest.len();
            }
            let surplus = rest.len().saturating_sub(keep.saturating_add(back));
            looked = rest.len().saturating_sub(surplus).saturating_sub(back);
            self.next += surplus;
            gone += surplus as u64;
            if gone >= most {
                return Ok(Some((gone, gone)));
            }
            self.fill()?;
        };
        self.next += length;
        let all = gone + length as u64;
        Ok((all > 0).then_some((all, gone)))
    }

    /// The present line.
    #[inline]
    pub fn line(&self) -> &[u8] {
        self.buffer.get(self.line.clone()).unwrap_or_default()
    }

    /// The byte that ends lines of which [`Lines::many`] come at once.
    pub fn last_byte(&self) -> u8 {
        match self.ends {
            Ends::Nul => 0,
            Ends::Lf { .. } | Ends::Hadoop | Ends::Bytes(_) => b'\n',
        }
    }

    /// Whether all lines have been given.
    pub fn is_over(&self) -> bool {
        self.over && self.next == self.to
    }

    /// Passes over `mark` if the source begins with it; says whether it does. Before the first line.
    pub fn pass_over_mark(&mut self, mark: &[u8]) -> Result<bool> {
        while self.to < mark.len() && !self.over {
            self.fill()?;
        }
        let found = self
            .buffer
            .get(..self.to)
            .is_some_and(|there| there.starts_with(mark));
        self.next = if found { mark.len() } else { 0 };
        Ok(found)
    }

    /// The present line with its end, if it has one.
    #[inline]
    pub fn whole_line(&self) -> &[u8] {
        self.buffer
            .get(self.line.start..self.next)
            .unwrap_or_default()
    }

    /// Whole lines that are ended by LF alone, or by NUL where that ends lines, as they lie in memory: all that are at hand, in
    /// `most` bytes. Empty where there are none; then [`Lines::advance`] goes on.
    pub fn many(&mut self, most: u64) -> Result<&[u8]> {
        if matches!(self.ends, Ends::Bytes(_)) {
            return Ok(&[]);
        }
        if self.next == self.to && !self.over {
            self.fill()?;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let end = self.to.min(self.next.saturating_add(most));
        let rest = self.buffer.get(self.next..end).unwrap_or_default();
        let plain = match self.ends {
            Ends::Hadoop => memchr(b'\r', rest).and_then(|at| rest.get(..at)),
            Ends::Lf { .. } | Ends::Nul | Ends::Bytes(_) => None,
        };
        let plain = plain.unwrap_or(rest);
        let len = memrchr(self.last_byte(), plain).map_or(0, |last| last + 1);
        let start = self.next;
        self.next += len;
        self.line = start..self.next;
        Ok(self.buffer.get(start..start + len).unwrap_or_default())
    }

    fn fill(&mut self) -> Result<()> {
        if self.next > 0 {
            self.buffer.copy_within(self.next..self.to, 0);
            self.to -= self.next;
            self.next = 0;
        }
        if self.buffer.len() - self.to < self.block_bytes {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self
            .buffer
            .get_mut(self.to..self.to + self.block_bytes)
            .unwrap_or_default();
        let count = self.source.read(room)?;
        self.to += count;
        self.over = count == 0;
        Ok(())
    }
}

/// Finds the ends of lines.
#[derive(Debug, Clone)]
pub enum Ends {
    /// See [`Terminator::Lf`].
    Lf {
        /// Whether a CR before the LF goes too.
        strip_cr: bool,
    },
    /// See [`Terminator::Hadoop`].
    Hadoop,
    /// See [`Terminator::Nul`].
    Nul,
    /// See [`Terminator::Bytes`].
    Bytes(Box<memmem::Finder<'static>>),
}

impl Ends {
    /// The ends of lines that `terminator` ends.
    ///
    /// # Errors
    /// A delimiter of no bytes.
    pub fn new(terminator: &Terminator) -> Result<Self> {
        Ok(match terminator {
            Terminator::Lf { strip_cr } => Ends::Lf {
                strip_cr: *strip_cr,
            },
            Terminator::Hadoop => Ends::Hadoop,
            Terminator::Nul => Ends::Nul,
            Terminator::Bytes(bytes) if bytes.is_empty() => {
                let message = "the delimiter has no bytes";
                return Err(Error::new(Kind::BadOption, "read lines", message)
                    .advise("give at least one byte that ends a line"));
            }
            Terminator::Bytes(bytes) => {
                Ends::Bytes(Box::new(memmem::Finder::new(bytes).into_owned()))
            }
        })
    }

    /// The longest part of an end that can lie before what was not read yet.
    pub fn overlap(&self) -> usize {
        match self {
            Ends::Lf { .. } | Ends::Nul => 0,
            Ends::Hadoop => 1,
            Ends::Bytes(finder) => finder.needle().len() - 1,
        }
    }

    /// The length of the first line in `data`, without and with its end. There is no end before `looked`. Unless `whole`,
    /// more may follow: a CR as the last byte may have its LF there.
    #[inline]
    fn find(&self, data: &[u8], looked: usize, whole: bool) -> Option<(usize, usize)> {
        let rest = data.get(looked..)?;
        match self {
            Ends::Lf { strip_cr } => {
                let at = looked + memchr(b'\n', rest)?;
                let cr = *strip_cr && at > 0 && data.get(at - 1) == Some(&b'\r');
                Some((at - usize::from(cr), at + 1))
            }
            Ends::Hadoop => {
                let at = looked + memchr2(b'\n', b'\r', rest)?;
                match (data.get(at), data.get(at + 1)) {
                    (Some(b'\r'), Some(b'\n')) => Some((at, at + 2)),
                    (Some(b'\r'), None) if !whole => None,
                    _ => Some((at, at + 1)),
                }
            }
            Ends::Nul => {
                let at = looked + memchr(0, rest)?;
                Some((at, at + 1))
            }
            Ends::Bytes(finder) => {
                let at = looked + finder.find(rest)?;
                Some((at, at + finder.needle().len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hadoop's rule, byte by byte.
    fn naive(text: &[u8]) -> Vec<(Vec<u8>, usize)> {
        let mut lines = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let start = at;
            while at < text.len() && text[at] != b'\n' && text[at] != b'\r' {
                at += 1;
            }
            let line = text[start..at].to_vec();
            if text[at..].starts_with(b"\r\n") {
                at += 2;
            } else if at < text.len() {
                at += 1;
            }
            lines.push((line, at - start));
        }
        lines
    }

    fn marks() -> Ends {
        Ends::new(&Terminator::Bytes(b"##".to_vec())).unwrap()
    }

    fn in_steps(mut text: &[u8], step: usize) -> impl ByteSource {
        move |buffer: &mut [u8]| {
            let count = text.len().min(step).min(buffer.len());
            buffer[..count].copy_from_slice(&text[..count]);
            text = &text[count..];
            Ok(count)
        }
    }

    proptest! {
        #[test]
        fn lines_end_where_hadoops_do(text in "[a\r\n]{0,40}", step in 1_usize..6) {
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), Ends::Hadoop);
            let mut found = Vec::new();
            while let Some(length) = lines.advance().unwrap() {
                found.push((lines.line().to_vec(), length));
            }
            prop_assert_eq!(found, naive(text.as_bytes()));
        }

        #[test]
        fn many_lines_at_once_are_the_same(text in "[ab\r\n]{0,60}", step in 1_usize..20, most in 0_u64..30) {
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), Ends::Hadoop);
            let mut found = Vec::new();
            loop {
                let many = lines.many(most).unwrap();
                prop_assert!(many.len() as u64 <= most && !many.contains(&b'\r'));
                found.extend(naive(many));
                match lines.advance().unwrap() {
                    Some(length) => found.push((lines.line().to_vec(), length)),
                    None => break,
                }
            }
            prop_assert_eq!(found, naive(text.as_bytes()));
        }

        #[test]
        fn of_long_lines_the_end_is_kept(text in "[a\r\n#]{0,60}", step in 1_usize..6, most in 0_usize..8, marked: bool) {
            let ends = if marked { marks() } else { Ends::Hadoop };
            let mut whole = Lines::new(in_steps(text.as_bytes(), step), ends.clone());
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), ends);
            while let Some((length, gone)) = lines.advance_keeping(most).unwrap() {
                prop_assert_eq!(whole.advance().unwrap(), Some(length as usize));
                let kept = whole.line().get(gone as usize..).unwrap();
                prop_assert_eq!(lines.line(), kept);
                prop_assert!(gone == 0 || kept.len() >= most.min(whole.line().len()));
            }
            prop_assert_eq!(whole.advance().unwrap(), None);
        }

        #[test]
        fn a_delimiter_is_found_wherever_it_is_cut(text in "[a#]{0,40}", step in 1_usize..5) {
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), marks());
            let mut found = Vec::new();
            while lines.advance().unwrap().is_some() {
                found.push(String::from_utf8(lines.line().to_vec()).unwrap());
            }
            let mut expected: Vec<_> = text.split("##").map(str::to_owned).collect();
            if expected.last().is_some_and(String::is_empty) {
                expected.pop();
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut left = 200 * BLOCK_BYTES;
        let source = |buffer: &mut [u8]| {
            let count = buffer.len().min(left);
            left -= count;
            buffer[..count].fill(b'x');
            Ok(count)
        };
        let mut lines = Lines::new(source, Ends::Hadoop);
        let (length, gone) = lines.advance_keeping(10).unwrap().unwrap();
        assert_eq!(length, 200 * BLOCK_BYTES as u64);
        assert_eq!(gone + lines.line().len() as u64, length);
        assert!(lines.buffer.len() <= 4 * BLOCK_BYTES);
    }

    #[test]
    fn a_line_that_is_passed_over_is_read_as_far_as_it_matters() {
        let mut given = 0;
        let source = |buffer: &mut [u8]| {
            given += buffer.len();
            buffer.fill(b'x');
            Ok(buffer.len())
        };
        let mut lines = Lines::in_blocks(source, Ends::Hadoop, 100, 10);
        assert_eq!(lines.pass_over(250).unwrap(), Some(299));
        assert_eq!(lines.buffer.len(), 200);
        assert_eq!(given, 300);
    }

    #[test]
    fn a_line_longer_than_the_buffer() {
        let text = [vec![b'x'; 3 * BLOCK_BYTES], b"\nend".to_vec()].concat();
        let mut lines = Lines::new(in_steps(&text, BLOCK_BYTES), Ends::Hadoop);
        assert_eq!(lines.advance().unwrap(), Some(3 * BLOCK_BYTES + 1));
        assert_eq!(lines.line().len(), 3 * BLOCK_BYTES);
        assert_eq!(lines.advance().unwrap(), Some(3));
        assert_eq!(lines.line(), b"end");
    }
}
