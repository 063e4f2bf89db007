//! A request to S3, and the reply to it: what is asked of what, as bytes that are signed.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequest;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::settings::Site;
use crate::location::Location;
pub use crate::net::http_client::HttpReply;
use gristmill_base::error::{Error, Kind, Result};

/// A request.
#[derive(Debug, Clone)]
pub struct Call<'p> {
    /// What is done, for messages.
    pub operation: &'static str,
    /// The location that it is done to.
    pub path: &'p Path,
    pub bucket: String,
    /// Without a slash at its beginning.
    pub key: String,
    method: Method,
    /// Whether it is made to the bucket: the key is a part of the question then.
    of_bucket: bool,
    query: String,
    headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

impl<'p> Call<'p> {
    /// A request to an object.
    pub fn new(operation: &'static str, method: Method, path: &'p Path) -> Result<Self> {
        let refuse = |message: &str| {
            Error::new(Kind::BadOption, operation, message)
                .with_path(path)
                .advise("name s3://BUCKET/KEY")
        };
        let location = Location::from(path);
        let bucket = location.authority().to_owned();
        let key = location.path().to_str();
        let key = key.ok_or_else(|| refuse("keys in S3 are UTF-8"))?;
        let key = key.trim_matches('/').to_owned();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(refuse("it names no bucket"));
        }
        if key.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(refuse(
                "a key in S3 cannot be sent with `.` or `..` as a part of it",
            ));
        }
        Ok(Call {
            operation,
            path,
            bucket,
            key,
            method,
            of_bucket: false,
            query: String::new(),
            headers: Vec::new(),
            body: Bytes::new(),
        })
    }

    /// A request to the bucket of a location.
    pub fn of_bucket(operation: &'static str, method: Method, path: &'p Path) -> Result<Self> {
        let call = Call::new(operation, method, path)?;
        Ok(Call {
            of_bucket: true,
            ..call
        })
    }

    /// What the keys below this one begin with.
    pub fn prefix(&self) -> String {
        match &*self.key {
            "" => String::new(),
            key => format!("{key}/"),
        }
    }

    /// Adds to the question.
    #[must_use]
    pub fn ask(mut self, name: &str, value: &str) -> Self {
        self.query
            .push(if self.query.is_empty() { '?' } else { '&' });
        self.query += &format!("{name}={}", encoded(value, false));
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Signed by who has the `credentials`, as the store at `site` wants it.
    pub fn request(&self, site: &Site, credentials: &AwsCredential) -> Result<HttpRequest> {
        let key = if self.of_bucket { "" } else { &*self.key };
        let uri = format!(
            "{}/{}{}",
            site.root_of(&self.bucket),
            encoded(key, true),
            self.query
        );
        let failed = |error: http::Error| {
            Error::new(Kind::BadOption, self.operation, error.to_string())
                .with_path(self.path)
                .with("endpoint", &site.endpoint)
                .advise("check the endpoint (AWS_ENDPOINT_URL)")
        };
        let mut request = Request::builder().method(self.method.clone()).uri(uri);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let mut request = request.body(self.body.clone().into()).map_err(failed)?;
        // The CRC of a part is among what is signed: its bytes need no second, slow sum.
        let is_part = self.method == Method::PUT;
        AwsAuthorizer::new(credentials, "s3", &site.region)
            .with_sign_payload(!is_part)
            .try_authorize(&mut request, None)
            .map_err(|error| Error::bug(self.operation, error.to_string()))?;
        let length = self.body.len();
        if length > 0 || self.method == Method::POST {
            let headers = request.headers_mut();
            headers.insert("content-length", HeaderValue::from(length));
        }
        Ok(request)
    }
}

/// All but what RFC 3986 leaves as it is.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes all but what RFC 3986 leaves as it is, and perhaps slashes.
fn encoded(text: &str, is_path: bool) -> String {
    const IN_PATHS: &AsciiSet = &RESERVED.remove(b'/');
    utf8_percent_encode(text, if is_path { IN_PATHS } else { RESERVED }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_bucket_and_a_key() {
        let call = Call::new("read", Method::GET, "s3://b/a key/ü+%".as_ref()).unwrap();
        assert_eq!((&*call.bucket, &*call.key), ("b", "a key/ü+%"));
        assert_eq!(encoded(&call.key, true), "a%20key/%C3%BC%2B%25");
        assert_eq!(call.prefix(), "a key/ü+%/");
        let call = Call::of_bucket("list", Method::GET, "s3://b".as_ref()).unwrap();
        assert_eq!(
            call.ask("prefix", "a/b").ask("uploads", "").query,
            "?prefix=a%2Fb&uploads="
        );
        for wrong in ["s3:///a", "s3://b/a/../c", "s3://b@host/a"] {
            let error = Call::new("read", Method::GET, wrong.as_ref()).unwrap_err();
            assert_eq!(error.kind(), Kind::BadOption, "{wrong}");
        }
    }
}
