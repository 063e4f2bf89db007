//! What a script says on standard error: counters, its status, and everything else, of which the last lines are kept.
//!
//! ```text
//!   reporter:counter:group,name,5     payload trimmed, three fields, a 64-bit number
//!   reporter:status:text
//!   anything else                     the task's log; the last lines stand in the report of a failure
//! ```
//!
//! A line with the prefix that is neither is noted as malformed and has no effect. A script that never stops writing,
//! or writes a line without end, costs a bounded amount of memory.

use std::collections::{BTreeMap, VecDeque};

/// Most lines that are kept.
const TAIL_LINES: usize = 20;

/// Most bytes of a line that are looked at: what is longer is no counter.
const LINE_BYTES: usize = 4096;

/// Most characters of a kept line.
const SHOWN_CHARS: usize = 300;

/// Reads standard error.
#[derive(Debug)]
pub struct Reporter {
    counter: Vec<u8>,
    status_prefix: Vec<u8>,
    prefix: Vec<u8>,
    line: Vec<u8>,
    /// Counters: groups, and in them names.
    pub counters: BTreeMap<String, BTreeMap<String, i64>>,
    /// The last status.
    pub status: Option<String>,
    /// Lines that had the prefix and made no sense.
    pub malformed: u64,
    tail: VecDeque<String>,
}

impl Reporter {
    /// A reader of lines that begin with `prefix`, by default `reporter:`.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::script::reporter::Reporter;
    /// let mut reporter = Reporter::new("reporter:");
    /// reporter.take(b"reporter:counter:words,long,2\nreporter:status: well \nTraceback");
    /// reporter.end();
    /// assert_eq!(reporter.counters["words"]["long"], 2);
    /// assert_eq!((reporter.status.as_deref(), reporter.tail()), (Some("well"), vec!["Traceback".to_owned()]));
    /// ```
    pub fn new(prefix: &str) -> Self {
        Reporter {
            counter: format!("{prefix}counter:").into_bytes(),
            status_prefix: format!("{prefix}status:").into_bytes(),
            prefix: prefix.as_bytes().to_vec(),
            line: Vec::new(),
            counters: BTreeMap::new(),
            status: None,
            malformed: 0,
            tail: VecDeque::new(),
        }
    }

    /// Takes more of what was written.
    pub fn take(&mut self, data: &[u8]) {
        let mut rest = data;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            self.extend(rest.get(..end).unwrap_or_default());
            self.end();
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        self.extend(rest);
    }

    /// What was begun is a whole line.
    pub fn end(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.line_read(&line);
        self.line = line;
        self.line.clear();
    }

    /// The last lines, the oldest first.
    pub fn tail(&self) -> Vec<String> {
        self.tail.iter().cloned().collect()
    }

    fn extend(&mut self, data: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line.len()).min(data.len());
        self.line
            .extend_from_slice(data.get(..room).unwrap_or_default());
    }

    fn line_read(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(line);
        if !line.starts_with(&self.prefix) {
            let shown: String = text.chars().take(SHOWN_CHARS).collect();
            if self.tail.len() == TAIL_LINES {
                self.tail.pop_front();
            }
            self.tail.push_back(shown);
        } else if line.starts_with(&self.counter) {
            let payload = text.get(self.counter.len()..).unwrap_or("");
            if self.count(payload).is_none() {
                self.malformed += 1;
            }
        } else if line.starts_with(&self.status_prefix) {
            let status = text.get(self.status_prefix.len()..).unwrap_or("");
            self.status = Some(status.trim().to_owned());
        } else {
            self.malformed += 1;
        }
    }

    fn count(&mut self, payload: &str) -> Option<()> {
        // Java's split drops empty fields at the end: "a,b,1,,": three fields.
        let payload = payload.trim().trim_end_matches(',');
        let mut fields = payload.split(',');
        let (group, name, amount) = (fields.next()?, fields.next()?, fields.next()?);
        if fields.next().is_some() {
            return None;
        }
        let amount: i64 = amount.parse().ok()?;
        let sum = self
            .counters
            .entry(group.to_owned())
            .or_default()
            .entry(name.to_owned())
            .or_default();
        *sum = sum.wrapping_add(amount);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Reporter {
        let mut reporter = Reporter::new("reporter:");
        for byte in text.chunks(3) {
            reporter.take(byte);
        }
        reporter.end();
        reporter
    }

    #[test]
    fn counters_add_up_and_malformed_lines_have_no_effect() {
        let reporter = read(
            b"reporter:counter:g,n,1\nreporter:counter: g,n,-3 \nreporter:counter:g,m,+2\nreporter:counter:g,n\n\
              reporter:counter:g,n,x\nreporter:counter:g,n,1,2\nreporter:counter:g,n, 1\nreporter:other\n",
        );
        assert_eq!(
            reporter.counters["g"],
            BTreeMap::from([("m".to_owned(), 2), ("n".to_owned(), -2)])
        );
        assert_eq!((reporter.malformed, reporter.tail()), (5, vec![]));
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let text: String = (0..100).map(|i| format!("line {i}\n")).collect();
        let tail = read(text.as_bytes()).tail();
        assert_eq!(
            (tail.len(), tail[0].as_str(), tail[19].as_str()),
            (TAIL_LINES, "line 80", "line 99")
        );
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut reporter = Reporter::new("reporter:");
        for _ in 0..1000 {
            reporter.take(&[b'x'; 1000]);
        }
        assert!(reporter.line.capacity() <= 2 * LINE_BYTES);
        reporter.end();
        assert_eq!(reporter.tail()[0].len(), SHOWN_CHARS);
    }

    #[test]
    fn status_of_any_bytes() {
        assert_eq!(
            read(b"reporter:status:\xff ok\n").status.as_deref(),
            Some("\u{fffd} ok")
        );
    }
}
