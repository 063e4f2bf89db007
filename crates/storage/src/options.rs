//! Options of stores, as users give them: `--store-option KEY=VALUE`.
//!
//! The options are those of the table (`kinds.rs`). They stand in the history of a job, so that a resumed job has them, and go
//! to its worker processes. So they hold no secret: keys that credentials have elsewhere are refused by name.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::kinds::{KINDS, options};
use super::store_kind::OptionValues;

/// What was given, each value of the form that its key wants.
///
/// ```
/// use gristmill_storage::options::StoreOptions;
/// let options = StoreOptions::from_json(r#"["region=eu-west-1", "connect_timeout=2.5"]"#).unwrap();
/// assert_eq!(options, StoreOptions::from_json(r#"{"connect_timeout": "2.5", "region": "eu-west-1"}"#).unwrap());
/// assert_eq!(options.values().get("connect_timeout").map(|value| &**value), Some("2.5"));
/// let error = StoreOptions::from_json(r#"["wings=2"]"#).unwrap_err();
/// assert!(error.contains("the options of stores are endpoint, region"), "{error}");
/// let error = StoreOptions::from_json(r#"["secret_access_key=hush"]"#).unwrap_err();
/// assert!(error.contains("AWS_SECRET_ACCESS_KEY") && !error.contains("hush"), "{error}");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct StoreOptions(OptionValues);

#[derive(Deserialize)]
#[serde(untagged, expecting = "options of stores are KEY=VALUE")]
enum RawOptions {
    Words(Vec<String>),
    Pairs(OptionValues),
    /// Where formats have no maps of their own.
    Nothing,
}

impl<'de> Deserialize<'de> for StoreOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return OptionValues::deserialize(deserializer).map(StoreOptions);
        }
        let pairs = match RawOptions::deserialize(deserializer)? {
            RawOptions::Nothing => OptionValues::new(),
            RawOptions::Pairs(pairs) => pairs,
            RawOptions::Words(words) => words
                .iter()
                .map(|word| {
                    let (key, value) = word.split_once('=').unwrap_or((word, ""));
                    (key.to_owned(), value.to_owned())
                })
                .collect(),
        };
        for (key, value) in &pairs {
            check(key, value).map_err(D::Error::custom)?;
        }
        Ok(StoreOptions(pairs))
    }
}

impl StoreOptions {
    /// Reads them from JSON: an object, or a list of `KEY=VALUE`.
    ///
    /// # Errors
    /// A key is not one of an option, or a value not of the form that its key wants.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Whether none was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values by their keys.
    pub fn values(&self) -> &OptionValues {
        &self.0
    }
}

/// Fails with what is wrong, which does not quote the value of what may be a secret.
fn check(key: &str, value: &str) -> Result<(), String> {
    match options().into_iter().find(|option| option.key == key) {
        None => Err(unknown(key)),
        Some(option) if (option.is_good)(value) => Ok(()),
        Some(option) => Err(format!("{key} takes {}", option.takes)),
    }
}

fn unknown(key: &str) -> String {
    let name = key.to_ascii_lowercase();
    let telling = ["key", "secret", "token", "credential", "passw"];
    if telling.iter().any(|word| name.contains(word)) {
        let ways: Vec<_> = KINDS.iter().filter_map(|kind| kind.credentials).collect();
        return format!(
            "credentials are not given as options, which are kept and shown: {}",
            ways.join("; ")
        );
    }
    let keys: Vec<_> = options().iter().map(|option| option.key).collect();
    format!(
        "there is no {key:?}: the options of stores are {}",
        keys.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_form_that_their_key_wants() {
        for (good, wrong) in [
            (
                "endpoint=http://127.0.0.1:9000",
                "endpoint=http://me:hush@h",
            ),
            ("region=eu-west-1", "region=a b"),
            ("profile=me", "profile="),
            ("addressing_style=virtual", "addressing_style=auto"),
            ("request_timeout=0.5", "request_timeout=soon"),
            ("max_concurrent_requests=8", "max_concurrent_requests=0"),
        ] {
            let read = |word: &str| StoreOptions::from_json(&serde_json::json!([word]).to_string());
            assert!(read(good).is_ok(), "{good}");
            let error = read(wrong).unwrap_err();
            assert!(
                error.contains("takes") && !error.contains("hush"),
                "{error}"
            );
        }
        assert!(StoreOptions::from_json("null").unwrap().is_empty());
        assert!(StoreOptions::from_json("3").is_err());
    }
}
