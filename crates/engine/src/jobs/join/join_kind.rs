//! The kinds of joins: which rows are written.

use serde::de::{Deserialize, Deserializer};

use crate::plan::table::{OptionValue, ValueKind};

/// Which rows are written.
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

    /// Whether a left row is written that has no match.
    pub(super) fn keeps_left(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full | JoinKind::Anti)
    }

    /// Whether a right row is written that has no match.
    pub(super) fn keeps_right(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }
}
