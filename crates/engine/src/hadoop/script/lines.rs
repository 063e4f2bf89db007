//! Lines as Hadoop reads them: ended by LF, CR or CR LF, or by a delimiter that was named; the last one may have no
//! end.
//!
//! ```text
//!   source ──read──▶ | lines gone by | line | ... to be looked at ... | room |
//!                                    from   next                      to
//! ```
//!
//! A line may be as long as memory holds: the buffer doubles. Of a line that is longer than anybody wants to see, only
//! the end is kept ([`Lines::advance_keeping`]).

use memchr::{memchr, memchr2, memmem, memrchr};

use crate::error::Result;

/// Where bytes come from: fills the beginning of a buffer, 0 at the end.
pub trait Source {
    /// Reads some bytes.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize>;
}

impl<F: FnMut(&mut [u8]) -> Result<usize>> Source for F {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self(buffer)
    }
}

/// How much is asked for at once.
const BUFFER_BYTES: usize = 128 << 10;

/// Lines of a source.
#[derive(Debug)]
pub struct Lines<S> {
    source: S,
    delimiter: Option<Vec<u8>>,
    buffer: Vec<u8>,
    /// The present line, without its end.
    line: std::ops::Range<usize>,
    /// Where the next line begins.
    next: usize,
    /// Where the bytes that were read end.
    to: usize,
    over: bool,
}

impl<S: Source> Lines<S> {
    /// The lines of `source`; `delimiter` stands for LF, CR and CR LF.
    ///
    /// ```
    /// use gristmill_engine::hadoop::script::lines::Lines;
    /// let mut text = &b"a\r\nb\n\nc"[..];
    /// let mut lines = Lines::new(|buffer: &mut [u8]| {
    ///     let count = text.len().min(buffer.len()).min(2);
    ///     buffer[..count].copy_from_slice(&text[..count]);
    ///     text = &text[count..];
    ///     Ok(count)
    /// }, None);
    /// let mut found = Vec::new();
    /// while lines.advance()?.is_some() {
    ///     found.push(lines.line().to_vec());
    /// }
    /// assert_eq!(found, [&b"a"[..], b"b", b"", b"c"]);
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(source: S, delimiter: Option<Vec<u8>>) -> Self {
        Lines {
            source,
            delimiter,
            buffer: vec![0; 2 * BUFFER_BYTES],
            line: 0..0,
            next: 0,
            to: 0,
            over: false,
        }
    }

    /// Goes on to the next line; gives its length with its end, or `None` after the last.
    #[inline]
    pub fn advance(&mut self) -> Result<Option<usize>> {
        let mut looked = 0;
        loop {
            let rest = self.buffer.get(self.next..self.to).unwrap_or_default();
            match find_end(rest, looked, self.delimiter.as_deref(), self.over) {
                Some((line, end)) => {
                    self.line = self.next..self.next + line;
                    self.next += end;
                    return Ok(Some(end));
                }
                None if self.over => {
                    let length = rest.len();
                    self.line = self.next..self.to;
                    self.next = self.to;
                    return Ok((length > 0).then_some(length));
                }
                None => {
                    // What was looked at need not be again, but for a beginning of the delimiter.
                    let back = self.delimiter.as_ref().map_or(1, Vec::len);
                    looked = rest.len().saturating_sub(back);
                    self.fill()?;
                }
            }
        }
    }

    /// As [`Lines::advance`]; of a line longer than `most` bytes, about that many of its last are kept in memory. Gives
    /// the line's length with its end, and how many of its first bytes are gone.
    pub fn advance_keeping(&mut self, most: usize) -> Result<Option<(u64, u64)>> {
        let back = self.delimiter.as_ref().map_or(1, Vec::len);
        let (mut looked, mut gone) = (0, 0);
        loop {
            let rest = self.buffer.get(self.next..self.to).unwrap_or_default();
            if find_end(rest, looked, self.delimiter.as_deref(), self.over).is_some() || self.over {
                break;
            }
            let surplus = rest.len().saturating_sub(most.saturating_add(back));
            looked = rest.len().saturating_sub(surplus).saturating_sub(back);
            self.next += surplus;
            gone += surplus as u64;
            self.fill()?;
        }
        let length = self.advance()?;
        Ok(match length {
            Some(length) => Some((gone + length as u64, gone)),
            None => (gone > 0).then_some((gone, gone)),
        })
    }

    /// The present line.
    #[inline]
    pub fn line(&self) -> &[u8] {
        self.buffer.get(self.line.clone()).unwrap_or_default()
    }

    /// Whole lines that are ended by LF alone, as they lie in memory: all that are at hand, in `most` bytes.
    /// Empty where there are none; then [`Lines::advance`] goes on.
    pub fn many(&mut self, most: u64) -> Result<&[u8]> {
        if self.delimiter.is_some() {
            return Ok(&[]);
        }
        if self.next == self.to && !self.over {
            self.fill()?;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let end = self.to.min(self.next.saturating_add(most));
        let rest = self.buffer.get(self.next..end).unwrap_or_default();
        let plain = match memchr(b'\r', rest) {
            Some(at) => rest.get(..at).unwrap_or_default(),
            None => rest,
        };
        let len = memrchr(b'\n', plain).map_or(0, |last| last + 1);
        let start = self.next;
        self.next += len;
        Ok(self.buffer.get(start..start + len).unwrap_or_default())
    }

    fn fill(&mut self) -> Result<()> {
        if self.next > 0 {
            self.buffer.copy_within(self.next..self.to, 0);
            self.to -= self.next;
            self.next = 0;
        }
        if self.buffer.len() - self.to < BUFFER_BYTES {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self
            .buffer
            .get_mut(self.to..self.to + BUFFER_BYTES)
            .unwrap_or_default();
        let count = self.source.read(room)?;
        self.to += count;
        self.over = count == 0;
        Ok(())
    }
}

/// The length of the first line of `data`, without and with its end; `None` where its end is not there yet. The
/// first `looked` bytes hold no end.
#[inline]
fn find_end(
    data: &[u8],
    looked: usize,
    delimiter: Option<&[u8]>,
    over: bool,
) -> Option<(usize, usize)> {
    let unseen = data.get(looked..)?;
    if let Some(delimiter) = delimiter {
        let at = looked + memmem::find(unseen, delimiter)?;
        return Some((at, at + delimiter.len()));
    }
    let at = looked + memchr2(b'\n', b'\r', unseen)?;
    if data.get(at) == Some(&b'\n') {
        return Some((at, at + 1));
    }
    match data.get(at + 1) {
        Some(b'\n') => Some((at, at + 2)),
        Some(_) => Some((at, at + 1)),
        None if over => Some((at, at + 1)),
        None => None, // an LF may follow
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

    fn in_steps(mut text: &[u8], step: usize) -> impl Source {
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
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), None);
            let mut found = Vec::new();
            while let Some(length) = lines.advance().unwrap() {
                found.push((lines.line().to_vec(), length));
            }
            prop_assert_eq!(found, naive(text.as_bytes()));
        }

        #[test]
        fn many_lines_at_once_are_the_same(text in "[ab\r\n]{0,60}", step in 1_usize..20, most in 0_u64..30) {
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), None);
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
            let delimiter = marked.then(|| b"##".to_vec());
            let mut whole = Lines::new(in_steps(text.as_bytes(), step), delimiter.clone());
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), delimiter);
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
            let mut lines = Lines::new(in_steps(text.as_bytes(), step), Some(b"##".to_vec()));
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
        let mut left = 200 * BUFFER_BYTES;
        let source = |buffer: &mut [u8]| {
            let count = buffer.len().min(left);
            left -= count;
            buffer[..count].fill(b'x');
            Ok(count)
        };
        let mut lines = Lines::new(source, None);
        let (length, gone) = lines.advance_keeping(10).unwrap().unwrap();
        assert_eq!(length, 200 * BUFFER_BYTES as u64);
        assert_eq!(gone + lines.line().len() as u64, length);
        assert!(lines.buffer.len() <= 4 * BUFFER_BYTES);
    }

    #[test]
    fn a_line_longer_than_the_buffer() {
        let text = [vec![b'x'; 3 * BUFFER_BYTES], b"\nend".to_vec()].concat();
        let mut lines = Lines::new(in_steps(&text, BUFFER_BYTES), None);
        assert_eq!(lines.advance().unwrap(), Some(3 * BUFFER_BYTES + 1));
        assert_eq!(lines.line().len(), 3 * BUFFER_BYTES);
        assert_eq!(lines.advance().unwrap(), Some(3));
        assert_eq!(lines.line(), b"end");
    }
}
