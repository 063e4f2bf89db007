//! What becomes of rows of a table whose number of fields is not that of the header.

use serde::de::{Deserialize, Deserializer};

use super::wrong;
use crate::plan::table::{OptionSpec, OptionValue, ValueKind, option};
use gristmill_base::error::Result;

/// What becomes of a ragged row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::jobs) enum Ragged {
    /// The job ends, unless some may be left out.
    #[default]
    Error,
    /// Cells that are missing are empty.
    Pad,
    /// It is left out.
    Drop,
}

impl OptionValue for Ragged {
    const KIND: ValueKind = ValueKind::Choice(&["error", "pad", "drop"]);

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Deserialize::deserialize(deserializer)
    }
}

impl Ragged {
    /// The option.
    pub(in crate::jobs) const fn option() -> OptionSpec {
        option(
            "error",
            "What becomes of a row with more or fewer fields than the header, or than the first row without a header. error: the job \
             ends. pad: empty cells are added to a short one; a long one is an error. drop: it is left out, as --skip-bad does it, but \
             without a limit.",
        )
    }

    /// How many rows may be left out, where so many are allowed, and whether short ones are filled.
    ///
    /// # Errors
    /// The options exclude each other.
    pub(in crate::jobs) fn rows(self, skip_bad: Option<usize>) -> Result<(u64, bool)> {
        let most = skip_bad.unwrap_or(0) as u64;
        match (self, skip_bad) {
            (Ragged::Error, _) => Ok((most, false)),
            (Ragged::Pad, _) => Ok((most, true)),
            (Ragged::Drop, None) => Ok((u64::MAX, false)),
            (Ragged::Drop, Some(_)) => Err(wrong(
                "ragged and skip_bad exclude each other where ragged is drop: it leaves out all such rows",
            )
            .of_option("skip_bad")
            .advise("give one of them")),
        }
    }
}
