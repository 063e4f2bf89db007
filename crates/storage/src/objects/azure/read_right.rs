//! The right to read one blob for some minutes, which the key of an account gives: a service SAS.
//!
//! Azure reads the source of a copy as anybody would who has its URL: the key that signs the copy does not count for it. The rule that
//! must hold: no text shows the key, or what it signs.
//!
//! Source: "Create a service SAS", version 2020-12-06 and later (learn.microsoft.com/rest/api/storageservices/create-service-sas).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use ring::hmac;

/// The version of what is signed.
const VERSION: &str = "2020-12-06";

/// A copy that is asked for takes no longer. Clocks may differ by as much as the right begins before now.
const LASTS: TimeDelta = TimeDelta::hours(1);
const CLOCKS: TimeDelta = TimeDelta::minutes(15);

/// The key of an account.
pub struct AccountKey(hmac::Key);

impl AccountKey {
    /// What is no base64 has been refused before.
    pub fn of(text: &str) -> Self {
        let bytes = BASE64.decode(text).unwrap_or_default();
        AccountKey(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
    }

    /// What the URL of a blob asks with, so that its reader may read it: an account, a container and a key name it.
    pub fn may_read(&self, blob: (&str, &str, &str)) -> Vec<(String, String)> {
        signed(&self.0, blob, Utc::now())
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey")
    }
}

fn signed(
    key: &hmac::Key,
    (account, container, name): (&str, &str, &str),
    now: DateTime<Utc>,
) -> Vec<(String, String)> {
    let time = |when: DateTime<Utc>| when.to_rfc3339_opts(SecondsFormat::Secs, true);
    let (start, end) = (time(now - CLOCKS), time(now + LASTS));
    let blob = format!("/blob/{account}/{container}/{name}");
    // What stands empty: an identifier, addresses, a protocol; a snapshot, a scope, and five headers of the reply.
    let text = format!("r\n{start}\n{end}\n{blob}\n\n\n\n{VERSION}\nb\n\n\n\n\n\n\n");
    let signature = BASE64.encode(hmac::sign(key, text.as_bytes()));
    let pairs = [
        ("sv", VERSION),
        ("st", &start),
        ("se", &end),
        ("sr", "b"),
        ("sp", "r"),
        ("sig", &signature),
    ];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}
