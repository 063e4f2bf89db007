//! A part of the input for a map of user code.
//!
//! What a split is, only the format knows that made it: JSON, kept as text. A tree of it takes ten times the memory,
//! and a stage has a million of them.

use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use gristmill_base::error::{Error, Result};

/// A part of the input, for one map task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserTaskSplit {
    /// Bytes of input in it.
    pub bytes: u64,
    /// What it is, for the executor.
    pub what: SplitData,
}

/// What a split is, as JSON. A clone shares the text.
///
/// ```
/// use gristmill_tasks::task::SplitData;
/// let split = SplitData::of(&serde_json::json!({"path": "a", "bytes": 3}))?;
/// assert_eq!(split.text(), r#"{"bytes":3,"path":"a"}"#);
/// assert_eq!(split.value()["path"], "a");
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Clone)]
pub struct SplitData(Arc<RawValue>);

impl SplitData {
    /// The split that `what` describes.
    ///
    /// # Errors
    /// It has no form in JSON: a defect of Gristmill.
    pub fn of(what: &impl Serialize) -> Result<Self> {
        // By way of a tree: fields are in the order of their names, so that equal splits have equal texts.
        serde_json::to_value(what)
            .and_then(|value| serde_json::value::to_raw_value(&value))
            .map(|text| SplitData(text.into()))
            .map_err(|error| Error::bug("describe a split", error.to_string()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The split as a tree.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default() // it was JSON when it was made
    }

    /// The split as a value of the format that made it.
    ///
    /// # Errors
    /// Another format made it: a defect of Gristmill.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.text())
            .map_err(|error| Error::bug("read a split", error.to_string()))
    }
}

impl std::fmt::Debug for SplitData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for SplitData {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for SplitData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.0.serialize(serializer)
        } else {
            serializer.serialize_str(self.text())
        }
    }
}

impl<'de> Deserialize<'de> for SplitData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let value = Value::deserialize(deserializer)?;
            return SplitData::of(&value).map_err(D::Error::custom);
        }
        let text = RawValue::from_string(String::deserialize(deserializer)?);
        let text = text.map_err(D::Error::custom)?;
        Ok(SplitData(text.into()))
    }
}
