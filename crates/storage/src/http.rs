//! Files of HTTP servers, for reading: `http://HOST/PATH`, `https://HOST/PATH`.
//!
//! ```text
//!   stat, open    HEAD  ─▶  length, and the version: ETag, else Last-Modified
//!   open_found          no request: the first reply says whether it is still that version
//!   read_at       GET   ─▶  a range, of this version only
//! ```
//!
//! There are no directories and no listings; what stands behind the host is sent as it is, a query with its `?` included.
//! The rules that must hold: bytes of two versions are never mixed, and a file is never read whole for a part of it: a server
//! that does not send ranges, or says nothing of versions, is refused.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{HeaderMap, Method, Request, StatusCode};
use object_store::client::HttpRequest;

use super::local::not_there;
use super::location::Location;
use super::net::http_client::{
    HttpClient, HttpReply, TransportError, TransportPolicy, bytes_of_range, header,
};
use super::net::requests::Requests;
use super::objects::retry::{Retries, replaced, throttled};
use super::store_kind::{CONNECT_TIMEOUT, REQUEST_TIMEOUT, REQUESTS_AT_ONCE, StoreKind};
use super::version::{ReadVersion, identity_of};
use super::{Caching, Caps, FileKind, OutputStore, ReadFile, RemoteFile, Stat, Store, WriteFile};
use gristmill_base::error::{Error, Kind, Result};

/// This kind of store.
pub static KIND: StoreKind = StoreKind {
    name: "HTTP servers",
    schemes: &["http", "https"],
    has_authority: true,
    has_patterns: false, // `?` is a query's
    advised: None,
    variables: &["SSL_CERT_"],
    options: &[CONNECT_TIMEOUT, REQUEST_TIMEOUT, REQUESTS_AT_ONCE],
    credentials: None,
    is_durable: None,
    sends_parts: false,
    open: |setup| {
        Arc::new(Http::new(
            Arc::clone(&setup.client),
            Arc::clone(&setup.requests),
        ))
    },
};

const DOWNLOAD: &str = "download the file first, and name the local copy";

/// HTTP servers.
#[derive(Debug, Clone)]
pub struct Http {
    client: Arc<HttpClient>,
    retries: Arc<Retries>,
}

/// What a server says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HttpFileInfo {
    bytes: u64,
    version: String,
}

/// What is another text whenever the bytes are others.
fn version_of(headers: &HeaderMap) -> Option<&str> {
    header(headers, "etag").or_else(|| header(headers, "last-modified"))
}

/// The header that asks for this version alone; a weak ETag cannot be asked for, and is compared.
fn condition(version: &str) -> Option<(&'static str, &str)> {
    match version {
        weak if weak.starts_with("W/") => None,
        etag if etag.starts_with('"') => Some(("if-match", etag)),
        when => Some(("if-unmodified-since", when)),
    }
}

impl HttpFileInfo {
    /// The same in the words of all stores.
    fn stat(&self) -> Stat {
        Stat {
            kind: FileKind::File,
            bytes: self.bytes,
            modified_ns: 0, // the version says more
            identity: identity_of(&self.version),
        }
    }
}

impl Http {
    /// Files of servers that are reached by `client`; `requests` counts.
    fn new(client: Arc<HttpClient>, requests: Arc<Requests>) -> Self {
        let retries = Arc::new(Retries::counted(requests));
        Http { client, retries }
    }

    fn found(&self, path: &Path) -> Result<Option<HttpFileInfo>> {
        const OPERATION: &str = "look at a file";
        self.retries.make(path, || {
            let head = request(OPERATION, Method::HEAD, path, &[])?;
            let reply = self.send(OPERATION, path, head, &mut [])?;
            match reply.status {
                StatusCode::OK => found_in(OPERATION, path, &reply.headers).map(Some),
                StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
                _ => Err(refused(OPERATION, path, &reply)),
            }
        })
    }

    fn file(&self, path: &Path, bytes: u64, version: ReadVersion) -> Box<dyn ReadFile> {
        Box::new(HttpFile {
            store: self.clone(),
            path: path.to_owned(),
            bytes,
            version,
        })
    }

    fn send(
        &self,
        operation: &'static str,
        path: &Path,
        request: HttpRequest,
        buffer: &mut [u8],
    ) -> Result<HttpReply> {
        let limit = self.client.limit(buffer.len());
        self.client
            .send(&TransportPolicy::to_files(), request, buffer, limit)
            .map_err(|broken| match broken {
                TransportError::Here(error) => error.during(operation).with_path(path),
                TransportError::Untrusted(distrust) => {
                    let (message, advice) = distrust.says(None, "SSL_CERT_FILE");
                    Error::new(Kind::Io, operation, message)
                        .with_path(path)
                        .advise(advice)
                }
                TransportError::Stopped => Error::cancelled(),
                TransportError::There(what) => {
                    let message = format!("no answer from the server: {what}");
                    Error::new(Kind::Io, operation, message)
                        .with_path(path)
                        .advise("check the address and the network, then run again")
                        .retryable_error()
                }
            })
    }
}

fn request(
    operation: &'static str,
    method: Method,
    path: &Path,
    headers: &[(&'static str, &str)],
) -> Result<HttpRequest> {
    let refuse = |message: &str| {
        Error::new(Kind::BadOption, operation, message).advise("name http://HOST/PATH")
    };
    if Location::from(path).authority().contains('@') {
        // Without the name: it has the password.
        return Err(refuse("the URL holds a user name, which logs would show"));
    }
    let uri = path.to_str().and_then(|text| text.split('#').next());
    let mut request = Request::builder()
        .method(method)
        .uri(uri.unwrap_or_default())
        .header("accept-encoding", "identity");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(bytes::Bytes::new().into())
        .map_err(|error| refuse(&format!("it is not a URL: {error}")).with_path(path))
}

fn found_in(operation: &'static str, path: &Path, headers: &HeaderMap) -> Result<HttpFileInfo> {
    let refuse = |message: &str| {
        Err(Error::new(Kind::BadInput, operation, message)
            .with_path(path)
            .advise(DOWNLOAD))
    };
    let bytes = header(headers, "content-length").and_then(|length| length.parse().ok());
    let Some(bytes) = bytes else {
        return refuse("the server does not say how long the file is");
    };
    let Some(version) = version_of(headers).map(str::to_owned) else {
        let message =
            "the server sends no ETag and no Last-Modified: a change of the file would not be seen";
        return refuse(message);
    };
    if header(headers, "accept-ranges") == Some("none") {
        return Err(no_ranges(path));
    }
    Ok(HttpFileInfo { bytes, version })
}

fn no_ranges(path: &Path) -> Error {
    let message = "the server does not send ranges of files";
    Error::new(Kind::BadInput, "read the input", message)
        .with_path(path)
        .advise(DOWNLOAD)
}

fn refused(operation: &'static str, path: &Path, reply: &HttpReply) -> Error {
    let message = format!("the server answered {}", reply.status);
    let new = |kind| Error::new(kind, operation, message.as_str()).with_path(path);
    match reply.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => new(Kind::Permission).advise(DOWNLOAD),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            throttled(new(Kind::Io), &reply.headers)
        }
        StatusCode::REQUEST_TIMEOUT => new(Kind::Io).retryable_error(),
        StatusCode::NOT_IMPLEMENTED => new(Kind::Io).advise(DOWNLOAD),
        status if status.is_server_error() => new(Kind::Io).retryable_error(),
        _ => new(Kind::Io).advise(DOWNLOAD),
    }
}

impl Store for Http {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        let found = self.found(path)?;
        Ok(found.map(|found| found.stat()))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let message = "HTTP servers have no listings";
        Err(Error::new(Kind::BadOption, "list a directory", message)
            .with_path(directory)
            .advise("name each file"))
    }

    fn open(&self, path: &Path, _caching: Caching) -> Result<Box<dyn ReadFile>> {
        let found = self.found(path)?;
        let found = found.ok_or_else(|| not_there("open the input", path))?;
        Ok(self.file(path, found.bytes, ReadVersion::new(&found.version)))
    }

    fn open_found(
        &self,
        path: &Path,
        found: &Stat,
        _caching: Caching,
    ) -> Result<Box<dyn ReadFile>> {
        Ok(self.file(path, found.bytes, ReadVersion::found(found)))
    }

    fn pins_versions(&self) -> bool {
        true
    }
}

/// The error of an output that is named there.
fn read_only(path: &Path) -> Error {
    let message = "HTTP servers are for reading only";
    Error::new(Kind::BadOption, "write the output", message)
        .with_path(path)
        .advise("name a path or s3://BUCKET/KEY")
}

impl OutputStore for Http {
    fn caps(&self, _path: &Path) -> Caps {
        Caps::Whole
    }

    fn create(&self, path: &Path, _bytes: u64, _caching: Caching) -> Result<Box<dyn WriteFile>> {
        Err(read_only(path))
    }

    fn check_writable(&self, path: &Path) -> Result<()> {
        Err(read_only(path))
    }
}

/// A file open for reading.
#[derive(Debug)]
struct HttpFile {
    store: Http,
    path: PathBuf,
    /// As it was found.
    bytes: u64,
    version: ReadVersion,
}

impl HttpFile {
    fn get(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        const OPERATION: &str = "read the input";
        let range = format!("bytes={offset}-{}", offset + buffer.len() as u64 - 1);
        let mut headers = vec![("range", &*range)];
        headers.extend(self.version.text().and_then(condition));
        let get = request(OPERATION, Method::GET, &self.path, &headers)?;
        let reply = self.store.send(OPERATION, &self.path, get, buffer)?;
        match reply.status {
            StatusCode::PARTIAL_CONTENT => self.checked(&reply, buffer.len(), offset),
            StatusCode::OK => Err(no_ranges(&self.path)),
            StatusCode::PRECONDITION_FAILED | StatusCode::NOT_FOUND | StatusCode::GONE => {
                Err(replaced(&self.path).with("offset", offset))
            }
            StatusCode::RANGE_NOT_SATISFIABLE => Err(replaced(&self.path).with("offset", offset)),
            _ => Err(refused(OPERATION, &self.path, &reply).with("offset", offset)),
        }
    }

    /// The bytes of a reply, if they are those that were asked for.
    fn checked(&self, reply: &HttpReply, wanted: usize, offset: u64) -> Result<usize> {
        let is_it = match version_of(&reply.headers) {
            Some(version) => self.version.is(version),
            None => self.version.text().is_some(), // the server has said so once
        };
        if !is_it {
            return Err(replaced(&self.path).with("offset", offset));
        }
        if bytes_of_range(&reply.headers, offset) != Some(wanted as u64) || reply.read != wanted {
            let message = "the server sent another range than it was asked for";
            return Err(Error::new(Kind::Io, "read the input", message)
                .with_path(&self.path)
                .with("offset", offset)
                .retryable_error());
        }
        Ok(reply.read)
    }
}

impl ReadFile for HttpFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let left = self.bytes.saturating_sub(offset);
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        match buffer.get_mut(..wanted) {
            Some(buffer) if wanted > 0 => self
                .store
                .retries
                .make(&self.path, || self.get(buffer, offset)),
            _ => Ok(0),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn remote(&self) -> Option<RemoteFile> {
        Some(RemoteFile {
            bytes: self.bytes,
            memory: Arc::clone(self.store.retries.memory()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_an_etag_or_a_time() {
        let mut headers = HeaderMap::new();
        assert_eq!(version_of(&headers), None);
        for (name, value, wanted) in [
            ("last-modified", "Mon", Some("if-unmodified-since")),
            ("etag", "W/\"a\"", None),
            ("etag", "\"a\"", Some("if-match")),
        ] {
            headers.insert(name, value.parse().unwrap());
            let asked = version_of(&headers).and_then(condition);
            assert_eq!(asked, wanted.map(|name| (name, value)));
        }
    }

    #[test]
    fn passwords_are_in_no_message() {
        let path = Path::new("http://me:hush@127.0.0.1/a");
        let error = Http::new(Arc::default(), Arc::default())
            .stat(path)
            .unwrap_err();
        assert_eq!(error.kind(), Kind::BadOption);
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}
