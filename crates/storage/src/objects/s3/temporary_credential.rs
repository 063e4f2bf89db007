//! What a program ([`super::program`]) or a service ([`super::services`]) answers when asked for S3 credentials: a key with its
//! expiry, or the error that says why there is none.

use std::time::SystemTime;

use object_store::aws::AwsCredential;

use gristmill_base::error::{Error, Kind};

/// Credentials that may expire.
pub struct TemporaryCredential {
    pub credential: AwsCredential,
    /// When they expire; `None`: never.
    pub end: Option<SystemTime>,
}

/// The advice where there are no credentials.
pub const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws in \
    AWS_PROFILE";

/// The error that there are no credentials, and why.
pub fn none(why: &str) -> Error {
    let message = format!("there are no credentials for S3: {why}");
    let error = Error::new(Kind::Permission, "connect to the store", message);
    error.advise(NO_CREDENTIALS)
}
