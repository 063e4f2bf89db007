//! What a search selects, and how that is written.

use crate::pattern::Pattern;

/// What is written of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// Its selected lines.
    #[default]
    Lines,
    /// The matches in them.
    Matches,
    /// How many there are.
    Count,
    /// Its name, if there is one.
    Names,
    /// Its name, if there is none.
    NamesWithout,
    /// Nothing: the first line ends the search.
    Quiet,
}

/// What holds for a selected line besides the pattern: it matches this one, too, or it does not.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The pattern.
    pub pattern: Pattern,
    /// Whether the line must match; if not, it must not.
    pub must_match: bool,
}

/// What is selected, and how it is written.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What is written.
    pub show: Show,
    /// What holds for a selected line besides the pattern.
    pub conditions: Vec<Condition>,
    /// All other lines are selected: those that do not match, or miss a condition.
    pub invert: bool,
    /// Numbers of lines stand before them.
    pub numbers: bool,
    /// The offset in its file stands before what is written.
    pub offsets: bool,
    /// Names of files stand before lines and counts.
    pub names: bool,
    /// How many lines before and after a selected one are written, too.
    pub context: Option<(usize, usize)>,
    /// How many lines of a file are selected at most.
    pub max: Option<u64>,
    /// Files with NUL bytes are text, too.
    pub text: bool,
    /// Of binary files no line is selected.
    pub skip_binary: bool,
    /// How it is written.
    pub style: Style,
}

/// How lines and names are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Matches, names, numbers and what stands between are coloured, as by GNU grep.
    pub colour: bool,
    /// A NUL stands behind names, in place of a colon or a line feed.
    pub null_names: bool,
    /// The line between groups of lines that do not touch.
    pub separator: Option<Vec<u8>>,
    /// It is for programs.
    pub framed: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            colour: false,
            null_names: false,
            separator: Some(b"--".to_vec()),
            framed: false,
        }
    }
}

impl Options {
    /// Whether all conditions hold for a line that matches the pattern.
    pub(crate) fn hold_for(&self, line: &[u8]) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.all(|one| one.pattern.is_match(line) == one.must_match)
    }

    /// What is coloured in selected lines beside the matches of the pattern.
    pub(crate) fn also_coloured(&self) -> Vec<Pattern> {
        let conditions = self.conditions.iter();
        let coloured = conditions.filter(|one| self.style.colour && one.must_match);
        coloured.map(|one| one.pattern.clone()).collect()
    }

    /// Whether line feeds are counted.
    pub(crate) fn counts_lines(&self) -> bool {
        self.numbers || (self.max.is_some() && self.show == Show::Matches)
    }

    /// Whether lines are looked for, not the matches in them: those around a line are of lines.
    pub(crate) fn finds_lines(&self) -> bool {
        self.show == Show::Lines || (self.show == Show::Matches && self.context.is_some())
    }

    /// Whether lines that follow each other are written as one.
    pub(crate) fn joins_lines(&self) -> bool {
        let prefixed = self.numbers || self.offsets || self.names;
        let styled = self.style.colour || self.style.framed;
        let prefixed = prefixed || styled;
        self.show == Show::Lines && !prefixed && self.max.is_none() && self.context.is_none()
    }

    /// Whether the first selected line says all of a file.
    pub(crate) fn wants_one(&self) -> bool {
        matches!(self.show, Show::Names | Show::NamesWithout | Show::Quiet)
    }
}
