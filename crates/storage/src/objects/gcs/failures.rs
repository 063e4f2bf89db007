//! What went wrong with a request to Google's storage: one paragraph, with what to do, and whether it helps to try again.

use http::StatusCode;

use super::replies::GcsRefusal;
use super::settings::CREDENTIALS;
use crate::net::http_client::HttpReply;
use crate::objects::call::Call;
use crate::objects::retry::{replaced, throttled};
use gristmill_base::error::{Error, Kind};

/// What to do where something is not permitted.
const RIGHTS: &str =
    "let the owner of the bucket give the role Storage Object User, or use other credentials";

/// Why the store refused, in its words.
fn message_of(reply: &HttpReply) -> String {
    let refused: GcsRefusal = serde_json::from_slice(&reply.body).unwrap_or_default();
    let message = match refused.error.message {
        message if message.is_empty() => String::from_utf8_lossy(&reply.body).into_owned(),
        message => message,
    };
    let line = message.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

/// Whether the bucket is not there, rather than what was looked for in it.
fn is_no_bucket(reply: &HttpReply) -> bool {
    message_of(reply).contains("bucket does not exist")
}

/// Whether the object is not there.
pub fn is_no_object(reply: &HttpReply) -> bool {
    reply.status == StatusCode::NOT_FOUND && !is_no_bucket(reply)
}

/// The error of a request that the store at an endpoint refused.
pub fn failure(endpoint: &str, call: &Call<'_>, reply: &HttpReply) -> Error {
    let new = |kind, message: &str| Error::new(kind, call.operation, message);
    let permit = |message: &str| new(Kind::Permission, message);
    let error = match reply.status {
        StatusCode::NOT_FOUND if is_no_bucket(reply) => {
            let message = format!("there is no bucket {} at {endpoint}", call.bucket);
            new(Kind::NotFound, &message).advise("check the name of the bucket")
        }
        StatusCode::NOT_FOUND => new(Kind::NotFound, "there is no such object"),
        StatusCode::PRECONDITION_FAILED => replaced(call.path),
        StatusCode::UNAUTHORIZED => {
            permit("the store does not accept the credentials").advise(CREDENTIALS)
        }
        StatusCode::FORBIDDEN => permit("the store does not permit it").advise(RIGHTS),
        status => {
            let message = format!(
                "the store answered {}: {}",
                status.as_u16(),
                message_of(reply)
            );
            let error = new(Kind::Io, message.trim_end_matches([':', ' ']));
            match status {
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                    throttled(error, &reply.headers)
                }
                StatusCode::REQUEST_TIMEOUT => error.retryable_error(),
                _ if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
                    error.retryable_error()
                }
                _ => error.advise("look up the error in the documentation of the store"),
            }
        }
    };
    error.with_path(call.path)
}
