//! Patterns: what the user typed, compiled to one matcher.
//!
//! A line of a pattern is a pattern of its own, as in grep. Bytes that are no UTF-8 stand for themselves.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use grep_matcher::{LineMatchKind, LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ParserBuilder;

/// A longer pattern is cut in errors.
const SHOWN_CHARS: usize = 100;

/// How patterns are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatternOptions {
    /// They are text, not regular expressions.
    pub fixed: bool,
    /// Case does not matter.
    pub ignore_case: bool,
    /// A match stands between what is no part of a word.
    pub word: bool,
    /// A match is a whole line.
    pub whole_line: bool,
    /// A carriage return before the line feed is no part of the line.
    pub crlf: bool,
    /// A line ends at a NUL; a line feed is a byte like others, which `.` matches.
    pub null_data: bool,
}

/// Compiled patterns.
///
/// ```
/// use gristmill_grep::{Pattern, PatternOptions};
/// let pattern = Pattern::new(&[b"colou?r"], PatternOptions::default()).unwrap();
/// assert!(pattern.is_match(b"the color"));
/// let error = Pattern::new(&[b"a(b"], PatternOptions::default()).unwrap_err();
/// assert_eq!(error, "unclosed group, at character 2 of a(b");
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    /// None: there are no patterns, and nothing matches.
    matcher: Option<RegexMatcher>,
    /// Whether a match cannot contain the end of a line, so that many lines may be searched at once.
    in_lines: bool,
    crlf: bool,
    /// The byte that ends lines.
    end: u8,
}

/// Where a line may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// The line around this offset matches.
    Sure(usize),
    /// The line around this offset may match.
    Maybe(usize),
}

impl Pattern {
    /// Compiles patterns: a line matches if it matches one of them.
    ///
    /// # Errors
    /// A pattern is wrong: the message shows the place in it.
    pub fn new(patterns: &[impl AsRef<[u8]>], options: PatternOptions) -> Result<Self, String> {
        let lines = patterns
            .iter()
            .flat_map(|pattern| pattern.as_ref().split(|&byte| byte == b'\n'));
        let is_text = lines.clone().all(|line| str::from_utf8(line).is_ok());
        // A whole line is told by the ends of the text there, not by line feeds.
        let wrapped = options.null_data && options.whole_line;
        let literal = options.fixed && is_text && !wrapped;
        let mut texts: Vec<String> = lines
            .map(|line| text_of(line, options.fixed && !literal))
            .collect();
        if !literal {
            texts.iter().try_for_each(|text| check(text))?;
        }
        let mut in_lines = !options.crlf;
        if options.null_data {
            in_lines &= literal || !texts.iter().any(|text| has_anchor(text)) && !wrapped;
        }
        if wrapped {
            for text in &mut texts {
                *text = format!("^(?:{text})$");
            }
        }
        if options.fixed {
            // The first alternative that matches wins: the longest stands first, which is POSIX's choice.
            texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(!options.null_data)
            .dot_matches_new_line(options.null_data)
            .fixed_strings(literal)
            .case_insensitive(options.ignore_case)
            .word(options.word)
            .whole_line(options.whole_line && !wrapped);
        let end = if options.null_data { 0 } else { b'\n' };
        builder.line_terminator(Some(end));
        let matcher = (!patterns.is_empty())
            .then(|| builder.build_many(&texts))
            .transpose()
            .map_err(|error| explained(&error))?;
        let terminator = LineTerminator::byte(end);
        let ends = matcher
            .as_ref()
            .and_then(|matcher| matcher.line_terminator());
        Ok(Pattern {
            // In a block a pattern would see the carriage returns that are no part of lines.
            in_lines: in_lines && ends == Some(terminator),
            matcher,
            crlf: options.crlf,
            end,
        })
    }

    /// The byte that ends lines.
    pub fn end(&self) -> u8 {
        self.end
    }

    /// Whether lines can be looked for by [`Pattern::candidate`]; if not, each is asked alone.
    pub(crate) fn is_in_lines(&self) -> bool {
        self.matcher.is_none() || self.in_lines
    }

    /// The first place in lines, from `at` on, where one may match.
    pub(crate) fn candidate(&self, lines: &[u8]) -> Option<Candidate> {
        let matcher = self.matcher.as_ref()?;
        // Its errors are never made; so below.
        let found = matcher.find_candidate_line(lines).ok().flatten();
        found.map(|found| match found {
            LineMatchKind::Confirmed(offset) => Candidate::Sure(offset),
            LineMatchKind::Candidate(offset) => Candidate::Maybe(offset),
        })
    }

    /// Whether a line, with its end or without, matches.
    pub fn is_match(&self, line: &[u8]) -> bool {
        let Some(matcher) = &self.matcher else {
            return false;
        };
        matcher.is_match(self.inner(line)).unwrap_or(false)
    }

    /// Hands on the matches in a line that are not empty, until there is an error.
    ///
    /// # Errors
    /// Those of `each`.
    ///
    /// ```
    /// use gristmill_grep::{Pattern, PatternOptions};
    /// let (pattern, mut found) = (Pattern::new(&["[a-z]+"], PatternOptions::default()).unwrap(), vec![]);
    /// pattern.try_matches(b"to be, or", |range| Ok::<_, ()>(found.push(range)))?;
    /// assert_eq!(found, [0..2, 3..5, 7..9]);
    /// # Ok::<(), ()>(())
    /// ```
    pub fn try_matches<E>(
        &self,
        line: &[u8],
        mut each: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(matcher) = &self.matcher else {
            return Ok(());
        };
        let found = matcher.try_find_iter(self.inner(line), |found| {
            if found.is_empty() {
                return Ok(true);
            }
            each(found.start()..found.end()).map(|()| true)
        });
        found.unwrap_or(Ok(()))
    }

    /// The first match in a line, from `at` on, that is not empty.
    pub(crate) fn match_from(&self, line: &[u8], at: usize) -> Option<Range<usize>> {
        let mut first = None;
        let matcher = self.matcher.as_ref()?;
        let searched = matcher.find_iter_at(self.inner(line), at, |found| {
            first = (!found.is_empty()).then(|| found.start()..found.end());
            first.is_none()
        });
        searched.ok().and(first)
    }

    /// A line without its end.
    fn inner<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        let line = line.strip_suffix(&[self.end]).unwrap_or(line);
        match line.strip_suffix(b"\r") {
            Some(inner) if self.crlf => inner,
            _ => line,
        }
    }
}

/// A pattern as text: bytes that are no UTF-8 as escapes; with `escaped`, all else as letters that stand for themselves.
fn text_of(pattern: &[u8], escaped: bool) -> String {
    let mut text = String::with_capacity(pattern.len());
    for chunk in pattern.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if escaped && letter.is_ascii_punctuation() {
                text.push('\\');
            }
            text.push(letter);
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "(?-u:\\x{byte:02X})"); // a string takes all
        }
    }
    text
}

/// Reads a pattern alone, for the place of what is wrong in it: the matcher is of all patterns.
fn check(text: &str) -> Result<(), String> {
    let parsed = ParserBuilder::new().utf8(false).build().parse(text);
    let (what, at) = match parsed {
        Err(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), error.span().start),
        Err(regex_syntax::Error::Translate(error)) => {
            (error.kind().to_string(), error.span().start)
        }
        Ok(_) | Err(_) => return Ok(()), // what else may be wrong, the matcher says
    };
    let (column, shown) = (at.column, beginning(text));
    Err(format!("{what}, at character {column} of {shown}"))
}

/// What is shown of a text that may be long.
fn beginning(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

/// Whether a pattern asks for the beginning or the end of a line: `^`, `$`, `\A`, `\z`.
fn has_anchor(text: &str) -> bool {
    let parsed = ParserBuilder::new().utf8(false).build().parse(text);
    parsed.is_ok_and(|parsed| parsed.properties().look_set().contains_anchor())
}

/// What is wrong with a pattern.
fn explained(error: &grep_regex::Error) -> String {
    match error.kind() {
        grep_regex::ErrorKind::NotAllowed(what) => {
            format!("{what:?} ends a line, and a match lies in one line")
        }
        _ => error.to_string(),
    }
}
