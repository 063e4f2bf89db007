//! What a kind of store is: the value that each has in its own file. `kinds.rs` is the table of all.
//!
//! ```text
//!   variables of the environment ─┐
//!   options of a job ─────────────┼─▶ StoreSetup ── open ──▶ OutputStore
//!   the process's requests ───────┘
//! ```
//!
//! The rule that must hold: what differs from kind to kind stands in its value, or is a method of the store that it opens.
//! Nothing else names a kind of store, in Rust or in Python.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::OutputStore;
use super::net::http_client::{HttpClient, RequestLimits};
use super::net::requests::Requests;

/// A kind of store.
#[derive(Debug)]
pub struct StoreKind {
    /// Its name, as people write it.
    pub name: &'static str,
    /// The schemes of its locations.
    pub schemes: &'static [&'static str],
    /// Whether a bucket or a host stands behind the scheme.
    pub has_authority: bool,
    /// Whether a location may be a pattern: the store lists names, and `?` and `*` mean nothing else there.
    pub has_patterns: bool,
    /// How a location is written, for advice; nothing of a store for reading, or for tests.
    pub advised: Option<&'static str>,
    /// How variables begin by which the store is found and asked: agents of a cluster have those of the job.
    pub variables: &'static [&'static str],
    /// Its options. A job that gives options has stores of its own, of the kinds that have some.
    pub options: &'static [StoreOption],
    /// How a user gives credentials, which are no options.
    pub credentials: Option<&'static str>,
    /// Whether a finished output is durable; nothing where that depends on whether a job waits for it.
    pub is_durable: Option<bool>,
    /// Whether files are sent in parts.
    pub sends_parts: bool,
    /// Opens it. Nothing is looked up before the first request.
    pub open: fn(&StoreSetup) -> Arc<dyn OutputStore>,
}

/// An option of a kind of store, given as `KEY=VALUE`.
#[derive(Debug, Clone, Copy)]
pub struct StoreOption {
    /// Its name.
    pub key: &'static str,
    /// What it takes, for errors.
    pub takes: &'static str,
    /// Whether a value is of that form.
    pub is_good: fn(&str) -> bool,
}

impl StoreOption {
    /// An option by its key.
    pub const fn new(key: &'static str, takes: &'static str, is_good: fn(&str) -> bool) -> Self {
        StoreOption {
            key,
            takes,
            is_good,
        }
    }

    /// The value that was given.
    pub fn of<'v>(&self, values: &'v OptionValues) -> Option<&'v str> {
        values.get(self.key).map(String::as_str)
    }
}

/// The values of options by their keys.
pub type OptionValues = BTreeMap<String, String>;

/// How long a connection may take to be there.
pub const CONNECT_TIMEOUT: StoreOption = StoreOption::new("connect_timeout", SECONDS, is_seconds);
/// How long a request may take, beside its bytes.
pub const REQUEST_TIMEOUT: StoreOption = StoreOption::new("request_timeout", SECONDS, is_seconds);
/// How many requests may be under way at once.
pub const REQUESTS_AT_ONCE: StoreOption = StoreOption::new(
    "max_concurrent_requests",
    "a whole number from 1 to 10000",
    |text| count(text).is_some(),
);
const SECONDS: &str = "a number of seconds, such as 30";

fn is_seconds(text: &str) -> bool {
    seconds(text).is_some()
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

/// Reads a variable of the environment: always the same, however often it is asked.
pub type ReadVariable = fn(&str) -> Option<String>;

/// What stores are opened with.
#[derive(Debug, Clone)]
pub struct StoreSetup {
    /// Variables of the environment.
    pub variable: ReadVariable,
    /// Options of the job.
    pub options: Arc<OptionValues>,
    /// The requests of the process.
    pub requests: Arc<Requests>,
    /// What sends requests over HTTP, within the limits that the options give.
    pub client: Arc<HttpClient>,
}

impl StoreSetup {
    /// With options of a job.
    pub fn new(variable: ReadVariable, options: OptionValues, requests: Arc<Requests>) -> Self {
        let usual = RequestLimits::default();
        let limit = |option: StoreOption| option.of(&options).and_then(seconds);
        let limits = RequestLimits {
            connect: limit(CONNECT_TIMEOUT).unwrap_or(usual.connect),
            request: limit(REQUEST_TIMEOUT).unwrap_or(usual.request),
            at_once: REQUESTS_AT_ONCE.of(&options).and_then(count),
        };
        StoreSetup {
            client: Arc::new(HttpClient::new(limits, Arc::clone(&requests))),
            variable,
            options: Arc::new(options),
            requests,
        }
    }
}
