//! What went wrong with a request to Azure: one paragraph, with what to do, and whether it helps to try again.

use http::StatusCode;
use quick_xml::de::from_reader;

use super::replies::AzureRefusal;
use super::settings::CREDENTIALS;
use crate::net::http_client::{HttpReply, header};
use crate::objects::call::Call;
use crate::objects::retry::{replaced, throttled};
use gristmill_base::error::{Error, Kind};

/// What to do where something is not permitted.
const RIGHTS: &str = "let the owner of the account give the role Storage Blob Data Contributor, or use other credentials";

/// Which error of Azure a reply has: in its head, where it can have no text.
fn code_of(reply: &HttpReply) -> (String, String) {
    let text = reply.body.strip_prefix(b"\xef\xbb\xbf");
    let refused: AzureRefusal = from_reader(text.unwrap_or(&reply.body)).unwrap_or_default();
    let code = header(&reply.headers, "x-ms-error-code").map(str::to_owned);
    let message = refused.message.lines().next().unwrap_or_default();
    (code.unwrap_or(refused.code), message.to_owned())
}

/// Whether the blob is not there, rather than its container.
pub fn is_no_blob(reply: &HttpReply) -> bool {
    reply.status == StatusCode::NOT_FOUND && code_of(reply).0 != "ContainerNotFound"
}

/// The error of a request that the store at an endpoint refused.
pub fn failure(endpoint: &str, call: &Call<'_>, reply: &HttpReply) -> Error {
    let (code, message) = code_of(reply);
    let new = |kind, message: &str| Error::new(kind, call.operation, message);
    let permit = |message: &str| new(Kind::Permission, message);
    let error = match (&*code, reply.status) {
        ("ContainerNotFound", _) => {
            let message = format!("there is no container {} at {endpoint}", call.bucket);
            new(Kind::NotFound, &message).advise(
                "check the name of the container and of the account (AZURE_STORAGE_ACCOUNT)",
            )
        }
        ("InvalidBlockList", _) => new(Kind::NotFound, "there is no such upload"),
        (
            "AuthenticationFailed" | "InvalidAuthenticationInfo" | "NoAuthenticationInformation",
            _,
        ) => permit(
            "the store does not accept the credentials, or the clock of this machine is wrong",
        )
        .advise(CREDENTIALS),
        ("ConditionNotMet", _) | (_, StatusCode::PRECONDITION_FAILED) => replaced(call.path),
        (_, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED) => {
            permit(&format!("the store does not permit it ({code})")).advise(RIGHTS)
        }
        ("BlobNotFound", _) | ("" | "ResourceNotFound", StatusCode::NOT_FOUND) => {
            new(Kind::NotFound, "there is no such object")
        }
        (code, status) => {
            let message = format!("the store answered {} {code}: {message}", status.as_u16());
            let error = new(Kind::Io, message.trim_end_matches([':', ' ']));
            match status {
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                    throttled(error, &reply.headers)
                }
                _ if may_pass(code, status) => error.retryable_error(),
                _ => error.advise("look up the error in the documentation of the store"),
            }
        }
    };
    error.with_path(call.path)
}

/// Errors that do not follow from what was asked.
fn may_pass(code: &str, status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || status == StatusCode::REQUEST_TIMEOUT
        || matches!(
            code,
            "Md5Mismatch" | "OperationTimedOut" | "ContainerBeingDeleted"
        )
}
