//! One request at a time: signed, sent, waited for.
//!
//! ```text
//!   any thread ── send ──▶ sign ─▶ HTTP ─▶ reply, or what went wrong on the way
//!                          the threads of one runtime keep the connections of the process
//! ```
//!
//! The runtime starts with the first request of the process that makes it; a fork of that process starts its own.
//! Every request has a time limit, by its size. Credentials are in signatures, and in no text.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use object_store::ClientOptions;
use object_store::aws::AwsAuthorizer;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, ReqwestConnector};
use tokio::runtime::Runtime;

use super::failures::{broken, unreached};
use super::settings::{Settings, Site};
use crate::error::{Error, Kind, Result};
use crate::storage::location::Location;

/// A connection that is not there by then will not come.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// A request may take so long, and longer by its bytes at [`SLOWEST`] of them a second.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
const SLOWEST: usize = 256 << 10;

/// Idle connections are closed by servers, too: sooner is better than in the middle of a request.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Threads that drive connections; those that wait for replies copy what comes.
const THREADS: usize = 2;

/// The longest reply that is no part of an object: a thousand names are a few hundred kB.
const REPLY_BYTES_MAX: usize = 64 << 20;

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
        let location = Location::of(path);
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

    fn request(&self, site: &Site) -> Result<HttpRequest> {
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
        AwsAuthorizer::new(&site.credentials, "s3", &site.region)
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

    fn limit(&self, reads: usize) -> Duration {
        let bytes = self.body.len().max(reads);
        REQUEST_LIMIT + Duration::from_secs((bytes / SLOWEST) as u64)
    }
}

/// Percent-encodes all but what RFC 3986 leaves as it is, and perhaps slashes.
fn encoded(text: &str, is_path: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte as char);
            }
            b'/' if is_path => encoded.push('/'),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

/// What the store answered.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Its text, unless that was read into the caller's buffer.
    pub body: Bytes,
    /// Bytes that were read into the buffer.
    pub read: usize,
}

/// What sends requests.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    line: Line,
}

/// The connections of one process, and behind it those of its forks.
#[derive(Debug, Default)]
struct Line {
    ours: OnceLock<Open>,
    of_fork: OnceLock<Box<Line>>,
}

#[derive(Debug)]
struct Open {
    process: u32,
    began: Result<Connections>,
}

#[derive(Debug)]
struct Connections {
    runtime: Runtime,
    http: HttpClient,
    site: Site,
}

impl Client {
    /// Requests go where `settings` say.
    pub fn new(settings: Settings) -> Self {
        Client {
            settings,
            line: Line::default(),
        }
    }

    /// The endpoint, for messages.
    pub fn endpoint(&self) -> &str {
        self.connections().map_or("", |open| &open.site.endpoint)
    }

    /// The region, for messages.
    pub fn region(&self) -> &str {
        self.connections().map_or("", |open| &open.site.region)
    }

    /// The connections of this process: those of the process that it was forked from are not its own.
    fn connections(&self) -> Result<&Connections> {
        let process = std::process::id();
        let mut line = &self.line;
        loop {
            let open = line.ours.get_or_init(|| Open {
                process,
                began: self.settings.site().and_then(Connections::begin),
            });
            if open.process == process {
                return open.began.as_ref().map_err(Clone::clone);
            }
            line = line.of_fork.get_or_init(Box::default);
        }
    }

    /// Sends a request, and waits. What a successful reply to a question with a `buffer` has goes there.
    pub fn send(&self, call: &Call<'_>, buffer: &mut [u8]) -> Result<Reply> {
        let open = self.connections();
        let open = open.map_err(|error| error.during(call.operation).with_path(call.path))?;
        let request = call.request(&open.site)?;
        let limit = call.limit(buffer.len());
        let exchange = async { tokio::time::timeout(limit, open.exchange(request, buffer)).await };
        match open.runtime.block_on(exchange) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(broken(call, &open.site.endpoint, &error)),
            Err(_elapsed) => {
                let message = format!("it did not answer within {} s", limit.as_secs());
                Err(unreached(call, &open.site.endpoint, &message))
            }
        }
    }
}

impl Connections {
    fn begin(site: Site) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(Kind::Io, "connect to the store", error.to_string())
        };
        // Refused where the process has one already, which will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gristmill-s3")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| failed(&error))?;
        let plain = site.endpoint.starts_with("http://");
        let options = ClientOptions::new()
            .with_allow_http(plain)
            .with_no_system_certificates(plain) // a machine that has none needs none
            .with_http1_only()
            .with_connect_timeout(CONNECT_LIMIT)
            .with_timeout_disabled()
            .with_pool_idle_timeout(IDLE_LIMIT);
        let http = ReqwestConnector::default().connect(&options);
        let http = http.map_err(|error| {
            failed(&error).advise("install the certificates of this system (ca-certificates)")
        })?;
        Ok(Connections {
            runtime,
            http,
            site,
        })
    }

    async fn exchange(&self, request: HttpRequest, buffer: &mut [u8]) -> Result<Reply, HttpError> {
        let (parts, body) = self.http.execute(request).await?.into_parts();
        let mut pieces = body.bytes_stream();
        let takes_object = !buffer.is_empty() && parts.status == StatusCode::PARTIAL_CONTENT;
        let (mut text, mut read) = (Vec::new(), 0);
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            if takes_object {
                let room = buffer.get_mut(read..).unwrap_or_default();
                let fits = piece.len().min(room.len());
                if let (Some(to), Some(from)) = (room.get_mut(..fits), piece.get(..fits)) {
                    to.copy_from_slice(from);
                }
                read += piece.len(); // more than fits is a wrong length
            } else if parts.status == StatusCode::OK && !buffer.is_empty() {
                break; // a whole object, which nobody asked for
            } else if text.len() < REPLY_BYTES_MAX {
                text.extend_from_slice(&piece);
            }
        }
        Ok(Reply {
            status: parts.status,
            headers: parts.headers,
            body: text.into(),
            read,
        })
    }
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
