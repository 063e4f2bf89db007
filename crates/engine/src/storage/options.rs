//! Options of stores, as users give them: `--store-option KEY=VALUE`.
//!
//! They stand in the history of a job, so that a resumed job has them, and go to its worker processes. So they hold no
//! secret: keys that credentials have elsewhere are refused by name.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The keys, in the order of the help.
pub const KEYS: [&str; 7] = [
    ENDPOINT, REGION, PROFILE, ADDRESSING, CONNECT, REQUEST, AT_ONCE,
];
/// The server.
pub const ENDPOINT: &str = "endpoint";
/// The region of the buckets.
pub const REGION: &str = "region";
/// The profile of `~/.aws`.
pub const PROFILE: &str = "profile";
const ADDRESSING: &str = "addressing_style";
const CONNECT: &str = "connect_timeout";
const REQUEST: &str = "request_timeout";
const AT_ONCE: &str = "max_concurrent_requests";

/// Where the name of a bucket stands in an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// `https://host/bucket/key`
    Path,
    /// `https://bucket.host/key`
    Virtual,
}

/// What was given, each value of the form that its key wants.
///
/// ```
/// use gristmill_engine::storage::options::StoreOptions;
/// let options = StoreOptions::from_json(r#"["region=eu-west-1", "connect_timeout=2.5"]"#).unwrap();
/// assert_eq!(options, StoreOptions::from_json(r#"{"connect_timeout": "2.5", "region": "eu-west-1"}"#).unwrap());
/// assert_eq!(options.connect_limit().map(|limit| limit.as_millis()), Some(2500));
/// let error = StoreOptions::from_json(r#"["wings=2"]"#).unwrap_err();
/// assert!(error.contains("the options of stores are endpoint, region"), "{error}");
/// let error = StoreOptions::from_json(r#"["secret_access_key=hush"]"#).unwrap_err();
/// assert!(error.contains("AWS_SECRET_ACCESS_KEY") && !error.contains("hush"), "{error}");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct StoreOptions(BTreeMap<String, String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "options of stores are KEY=VALUE")]
enum Given {
    Words(Vec<String>),
    Pairs(BTreeMap<String, String>),
    /// Where formats have no maps of their own.
    Nothing,
}

impl<'de> Deserialize<'de> for StoreOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return BTreeMap::deserialize(deserializer).map(StoreOptions);
        }
        let pairs = match Given::deserialize(deserializer)? {
            Given::Nothing => BTreeMap::new(),
            Given::Pairs(pairs) => pairs,
            Given::Words(words) => words
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
    /// A key is not one of [`KEYS`], or a value not of the form that its key wants.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Whether none was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Where the name of a bucket stands in an address.
    pub fn addressing(&self) -> Option<Addressing> {
        self.get(ADDRESSING).and_then(addressing)
    }

    /// How long a connection may take to be there.
    pub fn connect_limit(&self) -> Option<Duration> {
        self.get(CONNECT).and_then(seconds)
    }

    /// How long a request may take, beside its bytes.
    pub fn request_limit(&self) -> Option<Duration> {
        self.get(REQUEST).and_then(seconds)
    }

    /// How many requests may be under way at once.
    pub fn requests_at_once(&self) -> Option<usize> {
        self.get(AT_ONCE).and_then(count)
    }
}

/// Fails with what is wrong, which does not quote the value of what may be a secret.
fn check(key: &str, value: &str) -> Result<(), String> {
    if !KEYS.contains(&key) {
        return Err(unknown(key));
    }
    let is_good = match key {
        ENDPOINT => is_endpoint(value),
        REGION => {
            !value.is_empty()
                && value
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        }
        PROFILE => !value.is_empty(),
        ADDRESSING => addressing(value).is_some(),
        CONNECT | REQUEST => seconds(value).is_some(),
        _ => count(value).is_some(),
    };
    let wanted = match key {
        ENDPOINT => "http://HOST:PORT or https://HOST:PORT",
        REGION => "the name of a region, such as eu-west-1",
        PROFILE => "the name of a profile of ~/.aws",
        ADDRESSING => "path or virtual",
        CONNECT | REQUEST => "a number of seconds, such as 30",
        _ => "a whole number from 1 to 10000",
    };
    match is_good {
        true => Ok(()),
        false => Err(format!("{key} takes {wanted}")),
    }
}

fn unknown(key: &str) -> String {
    let name = key.to_ascii_lowercase();
    let telling = ["key", "secret", "token", "credential", "passw"];
    if telling.iter().any(|word| name.contains(word)) {
        return "credentials are not given as options, which are kept and shown: set AWS_ACCESS_KEY_ID and \
                AWS_SECRET_ACCESS_KEY in the environment, or name a profile of ~/.aws (profile=NAME)"
            .to_owned();
    }
    format!(
        "there is no {key:?}: the options of stores are {}",
        KEYS.join(", ")
    )
}

/// Whether an address is that of a server and nothing more: what else it may hold is a secret, or lost.
pub(super) fn is_endpoint(address: &str) -> bool {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    host.is_some_and(|host| !host.is_empty() && !host.contains(['@', '?', '#']))
}

fn addressing(text: &str) -> Option<Addressing> {
    match text {
        "path" => Some(Addressing::Path),
        "virtual" => Some(Addressing::Virtual),
        _ => None,
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (0.001..=86_400.0)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

fn count(text: &str) -> Option<usize> {
    let count = text.parse().ok()?;
    (1..=10_000).contains(&count).then_some(count)
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
