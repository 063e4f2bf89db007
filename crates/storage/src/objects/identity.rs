//! What all object stores have in common about who asks: how their services are asked, and what is said where they give nothing.
//!
//! The rule that must hold: no text shows a secret, nor what a service answered but for its last cause.

use std::time::Duration;

use object_store::{ClientOptions, RetryConfig};

use crate::net::http_client::take_ring;

/// A service of a cloud answers by then.
pub(super) const IDENTITY_LIMIT: Duration = Duration::from_secs(10);

/// How often a service is asked that does not answer.
const RETRIES_MAX: usize = 3;

/// How a service that gives credentials is asked, which has so long for all.
pub(super) fn asked_shortly(limit: Duration) -> (RetryConfig, ClientOptions) {
    take_ring();
    let retries = RetryConfig {
        max_retries: RETRIES_MAX,
        retry_timeout: limit,
        ..RetryConfig::default()
    };
    let options = ClientOptions::new()
        .with_connect_timeout(limit)
        .with_timeout(limit);
    (retries, options)
}

/// What says why, and no more: a wrapper's text repeats that of what it wraps.
pub(super) fn last_cause(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Whether an address has no more than a server, and perhaps a path: what else it may hold is a secret, or lost.
pub(super) fn is_server(address: &str) -> bool {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    host.is_some_and(|host| !host.is_empty() && !host.contains(['@', '?', '#']))
}
