//! A request to an object store that is asked over HTTP: what is asked of what, before somebody signs it; and what is said where
//! no answer comes.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use object_store::client::HttpRequest;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::retry::{replaced, unanswered};
use crate::location::Location;
use crate::net::http_client::{HttpReply, TransportError, bytes_of_range};
use crate::net::trust::Bundle;
use crate::store_kind::StoreKind;
use crate::version::ReadVersion;
use crate::{ListingEntry, Stat};
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
    /// A request to an object of a kind of store.
    ///
    /// # Errors
    /// It cannot be named there.
    pub fn new(
        kind: &StoreKind,
        operation: &'static str,
        method: Method,
        path: &'p Path,
    ) -> Result<Self> {
        let bucket = Location::from(path).authority().to_owned();
        Call::in_bucket(kind, operation, method, (path, bucket))
    }

    /// The same, where the authority of the location holds more than the bucket.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn in_bucket(
        kind: &StoreKind,
        operation: &'static str,
        method: Method,
        (path, bucket): (&'p Path, String),
    ) -> Result<Self> {
        let (location, name) = (Location::from(path), kind.name);
        let refuse = |message: String| {
            let error = Error::new(Kind::BadOption, operation, message).with_path(path);
            match kind.advised {
                Some(advised) => error.advise(format!("name {advised}")),
                None => error,
            }
        };
        let key = location.path().to_str();
        let key = key.ok_or_else(|| refuse(format!("keys in {name} are UTF-8")))?;
        let key = key.trim_matches('/').to_owned();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(refuse("it names no bucket".to_owned()));
        }
        if key.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(refuse(format!(
                "a key in {name} cannot be sent with `.` or `..` as a part of it"
            )));
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

    /// The same, to the bucket.
    #[must_use]
    pub fn of_bucket(self) -> Self {
        Call {
            of_bucket: true,
            ..self
        }
    }

    /// What is done to it.
    pub fn method(&self) -> &Method {
        &self.method
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

    /// The error of a reply that does not name the bytes that were sent.
    pub fn not_kept(&self) -> Error {
        let message = "the store does not say that it has the bytes that were sent";
        Error::new(Kind::Io, self.operation, message)
            .with_path(self.path)
            .retryable_error()
    }

    /// The request, without its length, to where the keys of the bucket are.
    ///
    /// # Errors
    /// That is no address.
    pub fn request(&self, root: &str) -> Result<HttpRequest, http::Error> {
        let key = if self.of_bucket { "" } else { &*self.key };
        let uri = format!("{root}/{}{}", encoded(key, true), self.query);
        self.request_to(&uri)
    }

    /// The request, without its length, to an address that has the key and the question.
    ///
    /// # Errors
    /// It is no address.
    pub fn request_to(&self, uri: &str) -> Result<HttpRequest, http::Error> {
        let mut request = Request::builder().method(self.method.clone()).uri(uri);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(self.body.clone().into())
    }

    /// Says how long what is sent is, where something is, or could be.
    pub fn say_length(&self, request: &mut HttpRequest) {
        let length = self.body.len();
        if length > 0 || self.method == Method::POST {
            let headers = request.headers_mut();
            headers.insert("content-length", HeaderValue::from(length));
        }
    }

    /// What lies right below a directory, of a listing of the keys that begin as the keys below it do. A key that is the
    /// directory's own stands for it.
    ///
    /// # Errors
    /// A key has two slashes in a row there: no path can name it, and it must not be left out without a word.
    pub fn entries(
        &self,
        directory: &Path,
        named: impl Iterator<Item = (String, Option<Stat>)>,
    ) -> Result<Vec<ListingEntry>> {
        let prefix = self.prefix();
        let mut found = Vec::new();
        for (key, stat) in named {
            let rest = key.strip_prefix(&prefix).unwrap_or_default();
            let name = rest.strip_suffix('/').unwrap_or(rest);
            if !name.is_empty() {
                let path = directory.join(name);
                found.push(ListingEntry { path, stat });
            } else if !rest.is_empty() {
                let message = format!("keys begin with {key:?}, and paths have no empty names");
                return Err(Error::new(Kind::BadInput, self.operation, message)
                    .with_path(directory)
                    .advise("rename these objects"));
            }
        }
        Ok(found)
    }

    /// How much of a range a reply has, which says of which version it is; nothing where the store refused.
    ///
    /// # Errors
    /// It is another version, or another range.
    pub fn read_of(
        &self,
        reply: &HttpReply,
        (version, said): (&ReadVersion, Option<&str>),
        (offset, bytes): (u64, u64),
    ) -> Result<Option<usize>> {
        let wrong = |message: &str| Error::new(Kind::Io, self.operation, message);
        let error = match reply.status {
            StatusCode::PARTIAL_CONTENT if !said.is_some_and(|said| version.is(said)) => {
                replaced(self.path)
            }
            StatusCode::PARTIAL_CONTENT => {
                let wanted = bytes_of_range(&reply.headers, offset);
                if wanted == Some(reply.read as u64) && reply.read as u64 <= bytes {
                    return Ok(Some(reply.read));
                }
                wrong("the store sent another range than it was asked for")
                    .with_path(self.path)
                    .retryable_error()
            }
            // It is shorter than it was.
            StatusCode::RANGE_NOT_SATISFIABLE => replaced(self.path),
            status if status.is_success() => {
                wrong("the store does not send ranges of objects").with_path(self.path)
            }
            _ => return Ok(None),
        };
        Err(error.with("offset", offset))
    }

    /// The question, behind its mark.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The error of a request that got no answer from an endpoint, which this variable or option names.
    pub fn unanswered(
        &self,
        broken: TransportError,
        (endpoint, named_by): (&str, &str),
        (bundle, bundle_named_by): (Option<&Bundle>, &'static str),
    ) -> Error {
        let new = |message| Error::new(Kind::Io, self.operation, message).with_path(self.path);
        let what = match broken {
            TransportError::Here(error) => return self.here(error),
            TransportError::There(what) => what,
            TransportError::Stopped => "the job is to end".to_owned(),
            // To ask again does not help.
            TransportError::Untrusted(distrust) => {
                let (what, advice) = distrust.says(bundle, bundle_named_by);
                return new(format!("no connection to {endpoint}: {what}"))
                    .advise(format!("{advice} ({named_by})"));
            }
        };
        let error = new(format!("no answer from {endpoint}: {what}"));
        unanswered(error.advise(format!(
            "check the endpoint ({named_by}) and the network, then run again"
        )))
    }

    /// The error of a request that could not be sent.
    pub fn here(&self, error: Error) -> Error {
        error.during(self.operation).with_path(self.path)
    }
}

/// All but what RFC 3986 leaves as it is.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes all but what RFC 3986 leaves as it is, and perhaps slashes.
pub fn encoded(text: &str, is_path: bool) -> String {
    const IN_PATHS: &AsciiSet = &RESERVED.remove(b'/');
    utf8_percent_encode(text, if is_path { IN_PATHS } else { RESERVED }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::s3::KIND;

    #[test]
    fn a_location_is_a_bucket_and_a_key() {
        let call = Call::new(&KIND, "read", Method::GET, "s3://b/a key/ü+%".as_ref()).unwrap();
        assert_eq!((&*call.bucket, &*call.key), ("b", "a key/ü+%"));
        assert_eq!(encoded(&call.key, true), "a%20key/%C3%BC%2B%25");
        assert_eq!(call.prefix(), "a key/ü+%/");
        let call = Call::new(&KIND, "list", Method::GET, "s3://b".as_ref()).unwrap();
        assert_eq!(
            call.ask("prefix", "a/b").ask("uploads", "").query,
            "?prefix=a%2Fb&uploads="
        );
        for wrong in ["s3:///a", "s3://b/a/../c", "s3://b@host/a"] {
            let error = Call::new(&KIND, "read", Method::GET, wrong.as_ref()).unwrap_err();
            assert_eq!(error.kind(), Kind::BadOption, "{wrong}");
        }
    }
}
