//! What went wrong with a request: one paragraph, with what to do, and whether it helps to try again.

use http::StatusCode;

use super::replies::{Refusal, refusal};
use crate::net::http_client::{HttpReply, header};
use crate::objects::call::Call;
use crate::objects::retry::{replaced, throttled};
use gristmill_base::error::{Error, Kind};

/// What to do where something is not permitted.
const RIGHTS: &str = "let the owner of the bucket permit s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket, \
    s3:ListBucketMultipartUploads, s3:ListMultipartUploadParts and s3:AbortMultipartUpload, or use other credentials \
    (AWS_PROFILE)";

/// Whether the bucket is not there, rather than what was looked for in it.
pub fn is_no_bucket(error: &Error) -> bool {
    error.details.s3_code.as_deref() == Some("NoSuchBucket")
}

/// The error of a request that was refused by the store at `place`, an endpoint and a region.
pub fn failure(place: (&str, &str), call: &Call<'_>, reply: &HttpReply) -> Error {
    let refused = refusal(&reply.body).unwrap_or_default();
    let (bucket, endpoint) = (&call.bucket, place.0);
    let new = |kind, message: &str| Error::new(kind, call.operation, message);
    let permit = |message: &str| new(Kind::Permission, message);
    let error = match (&*refused.code, reply.status) {
        ("NoSuchBucket", _) => new(
            Kind::NotFound,
            &format!("there is no bucket {bucket} at {endpoint}"),
        )
        .advise("check the name of the bucket and the endpoint (AWS_ENDPOINT_URL)"),
        ("NoSuchUpload", _) => new(Kind::NotFound, "there is no such upload"),
        ("InvalidAccessKeyId" | "XAdminUserNotFound", _) => {
            permit("the store does not know the access key")
                .advise("check AWS_ACCESS_KEY_ID, or the profile (AWS_PROFILE), and the endpoint")
        }
        ("SignatureDoesNotMatch", _) => permit("the secret key is not that of the access key")
            .advise("check AWS_SECRET_ACCESS_KEY, or the profile (AWS_PROFILE)"),
        ("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired", _) => {
            permit("the session token has expired, or is not one of the access key")
                .advise("get new credentials (AWS_SESSION_TOKEN), then resume the job")
        }
        ("RequestTimeTooSkewed", _) => {
            permit("the clock of this machine is more than 15 minutes away from the store's")
                .advise("set the clock")
        }
        ("PreconditionFailed", _) | (_, StatusCode::PRECONDITION_FAILED) => replaced(call.path),
        (
            "PermanentRedirect"
            | "TemporaryRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException"
            | "IncorrectEndpoint",
            _,
        )
        | (_, StatusCode::MOVED_PERMANENTLY | StatusCode::TEMPORARY_REDIRECT) => {
            elsewhere(place, call, reply, &refused)
        }
        (_, status) if status.is_redirection() => elsewhere(place, call, reply, &refused),
        ("QuotaExceeded" | "XMinioStorageFull", _) | (_, StatusCode::INSUFFICIENT_STORAGE) => {
            new(Kind::DiskFull, "the store is full, or the quota is used up")
                .advise("free some space there, then resume the job")
        }
        (_, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED) => {
            permit("the store does not permit it").advise(RIGHTS)
        }
        ("NoSuchKey", _) | ("", StatusCode::NOT_FOUND) => {
            new(Kind::NotFound, "there is no such object")
        }
        (code, status) => {
            let message = format!(
                "the store answered {} {code}: {}",
                status.as_u16(),
                refused.message
            );
            let error = new(Kind::Io, message.trim_end_matches([':', ' ']));
            if is_throttled(code, status) {
                throttled(error, &reply.headers)
            } else if may_pass(code, status) {
                error.retryable_error()
            } else {
                error.advise("look up the error in the documentation of the store")
            }
        }
    };
    error
        .with_path(call.path)
        .noting(|details| details.s3_code = Some(refused.code))
}

/// Whether the store has too many requests.
fn is_throttled(code: &str, status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    ) || matches!(
        code,
        "SlowDown" | "ServiceUnavailable" | "Throttling" | "RequestLimitExceeded"
    )
}

/// Errors that do not follow from what was asked.
fn may_pass(code: &str, status: StatusCode) -> bool {
    let of_the_way = [
        "BadDigest",
        "XAmzContentChecksumMismatch",
        "RequestTimeout",
        "IncompleteBody",
        "OperationAborted",
    ];
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || status == StatusCode::REQUEST_TIMEOUT
        || code == "InternalError"
        || of_the_way.contains(&code)
}

/// The bucket is in another region than the one that was asked, or the request is to go to another server, where it
/// does not go: it is signed for this one.
fn elsewhere(
    (endpoint, asked): (&str, &str),
    call: &Call<'_>,
    reply: &HttpReply,
    refused: &Refusal,
) -> Error {
    let region = header(&reply.headers, "x-amz-bucket-region").or(refused.region.as_deref());
    let region = region.filter(|region| *region != asked);
    let named = header(&reply.headers, "location").or(refused.endpoint.as_deref());
    let answered = named.map(|named| {
        let (status, server) = (reply.status.as_u16(), server_of(named));
        format!("{endpoint} answered {status} and names {server}")
    });
    let bucket = &call.bucket;
    let (message, advice) = match (region, answered) {
        (Some(region), answered) => {
            let what = format!("the bucket {bucket} is in the region {region}, not in {asked}");
            let answered = answered.map_or(String::new(), |answered| format!(": {answered}"));
            (what + &answered, format!("set AWS_REGION={region}"))
        }
        (None, Some(answered)) => (
            format!("{answered}, and a signed request goes to no other server than it was signed for"),
            "set AWS_REGION to the region of the bucket, or AWS_ENDPOINT_URL to the server that has the bucket, if you \
             trust it"
                .to_owned(),
        ),
        (None, None) => (
            format!("the bucket {bucket} is not in the region {asked}"),
            "set AWS_REGION to the region of the bucket".to_owned(),
        ),
    };
    Error::new(Kind::BadOption, call.operation, message).advise(advice)
}

/// The server that a URL or a name of a host names; no more of it, as the rest may be a secret.
fn server_of(url: &str) -> String {
    let no_query = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match no_query.split_once("//") {
        Some((scheme, rest)) => (format!("{scheme}//"), rest),
        None if no_query.starts_with('/') => return "another path of its own".to_owned(),
        None => (String::new(), no_query),
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    scheme + &host.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_redirect_no_more_than_the_server_is_named() {
        for (url, server) in [
            (
                "http://b.example:9000/a/b?token=hush",
                "http://b.example:9000",
            ),
            ("https://me:hush@b.example/a", "https://b.example"),
            ("//b.example/a", "//b.example"),
            (
                "b.s3.eu-west-1.amazonaws.com",
                "b.s3.eu-west-1.amazonaws.com",
            ),
            ("/minio/ui?hush", "another path of its own"),
            ("http://b.example\n/a", "http://b.example\\n"),
        ] {
            assert_eq!(server_of(url), server);
        }
    }
}
