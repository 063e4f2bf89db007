//! What `--preserve` keeps.

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::plan::table::{OptionValue, ValueKind};

/// What files keep of the source, beside their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::jobs) struct Preserve {
    pub(super) times: bool,
    pub(super) mode: bool,
}

impl OptionValue for Preserve {
    const KIND: ValueKind = ValueKind::Choice(&["times", "mode", "times,mode"]);

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut kept = Preserve::default();
        let Some(given) = Option::<String>::deserialize(deserializer)? else {
            return Ok(kept);
        };
        for word in given.split(',') {
            match word.trim() {
                "times" => kept.times = true,
                "mode" => kept.mode = true,
                other => {
                    let message = format!("{other:?} is neither times nor mode");
                    return Err(D::Error::custom(message));
                }
            }
        }
        Ok(kept)
    }
}
