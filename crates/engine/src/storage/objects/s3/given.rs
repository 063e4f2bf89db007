//! What programs and services give: credentials and their end, or an error that says why there are none.

use std::time::SystemTime;

use object_store::aws::AwsCredential;

use crate::error::{Error, Kind};

/// What was given.
pub struct Given {
    pub credential: AwsCredential,
    /// When it ends, if it does.
    pub end: Option<SystemTime>,
}

/// What to do where there are none.
pub const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws in \
    AWS_PROFILE";

/// The error of credentials that are not to be had.
pub fn none(why: &str) -> Error {
    let message = format!("there are no credentials for S3: {why}");
    let error = Error::new(Kind::Permission, "connect to the store", message);
    error.advise(NO_CREDENTIALS)
}
