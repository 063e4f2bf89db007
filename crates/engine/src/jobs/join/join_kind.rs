//! The kinds of joins: which rows are written.

use serde::de::{Deserialize, Deserializer};

use crate::plan::table::{OptionValue, ValueKind};

/// Which rows are written, as asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::jobs) enum JoinKind {
    #[default]
    Inner,
    Left,
    Right,
    Full,
    Semi,
    Anti,
}

impl OptionValue for JoinKind {
    const KIND: ValueKind = ValueKind::Choice(&["inner", "left", "right", "full", "semi", "anti"]);

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Deserialize::deserialize(deserializer)
    }
}

impl JoinKind {
    /// Whether rows of the left are chosen, and stay as they are.
    pub(super) fn selects(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
}

/// Which rows are written: of what is joined so far, the left, and of the next input, the right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowsWanted {
    /// Those that have a match.
    pub(super) matched: bool,
    /// Those of the left that have none, and those of the right.
    pub(super) left: bool,
    pub(super) right: bool,
}

impl From<JoinKind> for RowsWanted {
    fn from(how: JoinKind) -> Self {
        RowsWanted {
            matched: how != JoinKind::Anti,
            left: matches!(how, JoinKind::Left | JoinKind::Full | JoinKind::Anti),
            right: matches!(how, JoinKind::Right | JoinKind::Full),
        }
    }
}

impl RowsWanted {
    /// Joins the rows of a key from left to right, where `has_rows` says it of each input: the first input whose rows are written.
    /// Those before it have none by then. `None`: nothing is written.
    pub(super) fn first_input(self, has_rows: impl Iterator<Item = bool>) -> Option<usize> {
        let mut first = None;
        for (input, has_rows) in has_rows.enumerate() {
            first = match (first, has_rows) {
                (None, true) if input == 0 || self.right => Some(input),
                (Some(before), true) if self.matched => Some(before),
                (Some(before), false) if self.left => Some(before),
                _ => None,
            };
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_joined_from_left_to_right() {
        let first = |how: JoinKind, has_rows: &[u8]| {
            RowsWanted::from(how).first_input(has_rows.iter().map(|has| *has == b'1'))
        };
        for (how, has_rows, wanted) in [
            (JoinKind::Inner, b"111", Some(0)),
            (JoinKind::Inner, b"101", None),
            (JoinKind::Left, b"100", Some(0)),
            (JoinKind::Left, b"011", None),
            (JoinKind::Right, b"011", Some(1)),
            (JoinKind::Right, b"101", Some(2)),
            (JoinKind::Right, b"110", None),
            (JoinKind::Full, b"010", Some(1)),
            (JoinKind::Full, b"101", Some(0)),
            (JoinKind::Semi, b"111", Some(0)),
            (JoinKind::Semi, b"101", None),
            (JoinKind::Anti, b"100", Some(0)),
            (JoinKind::Anti, b"101", None),
        ] {
            assert_eq!(first(how, has_rows), wanted, "{how:?} {has_rows:?}");
        }
    }
}
