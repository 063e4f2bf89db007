//! HTTP: one request at a time, sent and waited for.
//!
//! ```text
//!   any thread ── send ──▶ HTTP ─▶ reply, or what went wrong on the way
//!                          the threads of one runtime keep the connections of the process
//! ```
//!
//! Who is trusted and how a server is reached is its [`TransportPolicy`]. The runtime starts with the first request of the process that makes it; a fork of that process starts its own. Every
//! request has a time limit, and ends with the jobs that run ([`Stop`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode};
use object_store::client::{HttpClient as StoreHttpClient, HttpError, HttpErrorKind, HttpRequest};
use reqwest::redirect::Policy;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::net::per_process::PerProcess;
use crate::net::requests::Requests;
use crate::net::stop::{Stop, Waited};
use crate::net::trust::{Bundle, Distrust};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// A connection that is not there by then will not come.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Idle connections are closed by servers, too: sooner is better than in the middle of a request.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// A request may take so long, and longer by its bytes at [`SLOWEST`] of them a second: many share a link, and one of
/// 1 MB/s still carries them all in time.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
const SLOWEST: usize = 32 << 10;

/// Threads that drive connections; those that wait for replies copy what comes.
const THREADS: usize = 2;

/// How soon a request ends that nobody would answer any more.
const LOOK: Duration = Duration::from_millis(100);

/// The longest reply that is no part of an object: a thousand names are a few hundred kB.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// What sends requests.
#[derive(Debug, Default)]
pub struct HttpClient {
    open: PerProcess<Result<Connections>>,
    limits: RequestLimits,
    requests: Arc<Requests>,
    /// Requests that are under way, where there is a limit.
    under_way: UnderWay,
}

/// How long requests may take, and how many are under way at once.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// A connection is there by then.
    pub connect: Duration,
    /// A request is answered by then, and later by its bytes.
    pub request: Duration,
    /// Others wait.
    pub at_once: Option<usize>,
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            connect: CONNECT_LIMIT,
            request: REQUEST_LIMIT,
            at_once: None,
        }
    }
}

/// How many requests are under way.
#[derive(Debug, Default)]
struct UnderWay {
    count: Mutex<usize>,
    over: Condvar,
}

impl UnderWay {
    /// Does `work`, once fewer than `most` are.
    fn during<T>(&self, most: usize, work: impl FnOnce() -> T) -> T {
        let count = lock(&self.count);
        let waited = self.over.wait_while(count, |count| *count >= most);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        let _place = RequestSlot(self);
        work()
    }
}

/// One of those under way: it is given back also where the request panics.
struct RequestSlot<'u>(&'u UnderWay);

impl Drop for RequestSlot<'_> {
    fn drop(&mut self) {
        let mut count = lock(&self.0.count);
        *count -= 1;
        self.0.over.notify_one();
    }
}

#[derive(Debug)]
struct Connections {
    runtime: Runtime,
    /// How long a connection may take to be there.
    connect: Duration,
    /// By whether they go without TLS, and by their way.
    clients: Mutex<BTreeMap<(bool, TransportPolicy), StoreHttpClient>>,
}

/// How a server is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransportPolicy {
    /// The certificates that are trusted in place of those of the system.
    pub bundle: Option<Bundle>,
    /// Whether it may redirect a request to another server. So no request that has a secret or a signature: what signs for
    /// one server would be told to another.
    pub redirects: bool,
    /// Whether it is told secrets to give credentials for them: without TLS no proxy is between.
    pub gives_credentials: bool,
}

impl TransportPolicy {
    /// To a server that is told a secret: straight, and nowhere else.
    pub fn with_secrets() -> Self {
        TransportPolicy {
            gives_credentials: true,
            ..TransportPolicy::default()
        }
    }

    /// To a server that is asked for what anybody may read, or where that is now.
    pub fn to_files() -> Self {
        TransportPolicy {
            redirects: true,
            ..TransportPolicy::default()
        }
    }
}

/// What a server answered.
#[derive(Debug)]
pub struct HttpReply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// Its text, unless that was read into the caller's buffer.
    pub body: Bytes,
    /// Bytes that were read into the buffer.
    pub read: usize,
}

/// Why there is no reply.
#[derive(Debug)]
pub enum TransportError {
    /// Nothing can be sent from here.
    Here(Error),
    /// There was no answer, or not all of it.
    There(String),
    /// The jobs of this process are to end.
    Stopped,
    /// The server did not prove its name.
    Untrusted(Distrust),
}

impl HttpClient {
    /// With these limits; `requests` says when they are to end.
    pub fn new(limits: RequestLimits, requests: Arc<Requests>) -> Self {
        HttpClient {
            limits,
            requests,
            ..HttpClient::default()
        }
    }

    /// With these limits: of a connection, of a request, and of requests at once.
    pub fn with_limits(connect: Duration, request: Duration, at_once: Option<usize>) -> Self {
        let limits = RequestLimits {
            connect,
            request,
            at_once,
        };
        HttpClient::new(limits, Arc::default())
    }

    /// What ends waiting: the jobs are to end.
    pub fn stop(&self) -> &Stop {
        &self.requests.stop
    }

    /// How long a request with so many bytes, there or back, may take.
    pub fn limit(&self, bytes: usize) -> Duration {
        self.limits.request + Duration::from_secs((bytes / SLOWEST) as u64)
    }

    fn connections(&self) -> Result<&Connections> {
        let connect = self.limits.connect;
        let open = self.open.get(|| Connections::begin(connect));
        open.as_ref().map_err(Clone::clone)
    }

    /// Waits for what makes its own requests.
    pub fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let limited = self.requests.stop.limited(REQUEST_LIMIT, work);
        match self.connections()?.runtime.block_on(limited) {
            Waited::Done(done) => Ok(done),
            Waited::Late(limit) => Err(failed(&late(limit))),
            Waited::Stopped => Err(Error::cancelled()),
        }
    }

    /// Sends a request this way, and waits. What a reply of a range has goes to the `buffer`, if there is one.
    pub fn send(
        &self,
        policy: &TransportPolicy,
        request: HttpRequest,
        buffer: &mut [u8],
        limit: Duration,
    ) -> Result<HttpReply, TransportError> {
        self.send_unless(policy, request, buffer, limit, || false)
    }

    /// The same, given up when there is nobody any more who would answer.
    pub fn send_unless(
        &self,
        policy: &TransportPolicy,
        request: HttpRequest,
        buffer: &mut [u8],
        limit: Duration,
        is_gone: impl Fn() -> bool,
    ) -> Result<HttpReply, TransportError> {
        let open = self.connections().map_err(TransportError::Here)?;
        let is_plain = request.uri().scheme_str() == Some("http");
        let http = open
            .client(is_plain, policy)
            .map_err(TransportError::Here)?;
        let stop = &self.requests.stop;
        let gone = async {
            while !is_gone() {
                sleep(LOOK).await;
            }
        };
        let exchange = async {
            tokio::select! {
                done = stop.limited(limit, exchange(&http, request, buffer)) => Some(done),
                () = gone => None,
            }
        };
        let exchange = || open.runtime.block_on(exchange);
        let done = match self.limits.at_once {
            Some(most) => self.under_way.during(most, exchange),
            None => exchange(),
        };
        match done {
            Some(Waited::Done(Ok(Some(reply)))) => Ok(reply),
            Some(Waited::Done(Ok(None))) => Err(TransportError::There(format!(
                "its reply has more than {REPLY_BYTES_MAX} bytes"
            ))),
            Some(Waited::Done(Err(error))) => Err(what_broke(&error)),
            Some(Waited::Late(limit)) => Err(TransportError::There(late(limit))),
            Some(Waited::Stopped) => Err(TransportError::Stopped),
            None => Err(TransportError::There("it is gone".to_owned())),
        }
    }
}

impl Connections {
    fn begin(connect: Duration) -> Result<Self> {
        take_ring();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gristmill-http")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Connections {
            runtime,
            connect,
            clients: Mutex::default(),
        })
    }

    fn client(&self, is_plain: bool, policy: &TransportPolicy) -> Result<StoreHttpClient> {
        let mut clients = lock(&self.clients);
        let key = (is_plain, policy.clone());
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("gristmill/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .referer(false) // a URL may be a secret: one that was signed in advance
            .connect_timeout(self.connect)
            .pool_idle_timeout(IDLE_LIMIT);
        if is_plain {
            // Without TLS a machine that has no certificates needs none.
            builder = builder.tls_certs_only([]);
        } else if let Some(bundle) = &policy.bundle {
            builder = builder.tls_certs_only(bundle.read()?);
        }
        if !policy.redirects {
            builder = builder.redirect(Policy::none());
        }
        if policy.gives_credentials && is_plain {
            builder = builder.no_proxy();
        }
        let made = builder.build().map_err(|error| {
            failed(&error).advise("install the certificates of this system (ca-certificates)")
        })?;
        let client = StoreHttpClient::new(made);
        clients.insert(key, client.clone());
        Ok(client)
    }
}

fn late(limit: Duration) -> String {
    format!("it did not answer within {} s", limit.as_secs())
}

/// Has TLS by ring in this process, which must be so before the first client is made.
pub fn take_ring() {
    // Refused where the process has one already, which will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Io, "connect to the store", error.to_string())
}

async fn exchange(
    http: &StoreHttpClient,
    request: HttpRequest,
    buffer: &mut [u8],
) -> Result<Option<HttpReply>, HttpError> {
    let (parts, body) = http.execute(request).await?.into_parts();
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
        } else if text.len() + piece.len() > REPLY_BYTES_MAX {
            return Ok(None);
        } else {
            text.extend_from_slice(&piece);
        }
    }
    Ok(Some(HttpReply {
        status: parts.status,
        headers: parts.headers,
        body: text.into(),
        read,
    }))
}

fn what_broke(error: &HttpError) -> TransportError {
    if let Some(distrust) = Distrust::of(error) {
        return TransportError::Untrusted(distrust);
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    TransportError::There(match error.kind() {
        HttpErrorKind::Connect => format!("it cannot be reached: {cause}"),
        HttpErrorKind::Timeout => "it took too long to answer".to_owned(),
        _ => format!("the connection broke: {cause}"),
    })
}

/// A header's text.
pub fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// How many bytes a reply has, if they begin where they should: `bytes 5-9/100`.
pub fn bytes_of_range(headers: &HeaderMap, offset: u64) -> Option<u64> {
    let range = header(headers, "content-range")?.strip_prefix("bytes ")?;
    let (first, rest) = range.split_once('-')?;
    let (last, _) = rest.split_once('/')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first == offset && last >= first).then(|| last - first + 1)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use http::Request;

    use super::*;

    /// What is said of a reply of so many bytes.
    fn reply_of(bytes: usize) -> Result<HttpReply, TransportError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let piece = vec![b'x'; 1 << 20];
            for at in (0..bytes).step_by(piece.len()) {
                if stream
                    .write_all(&piece[..piece.len().min(bytes - at)])
                    .is_err()
                {
                    return; // nobody reads on
                }
            }
        });
        let request = Request::get(url).body(Bytes::new().into()).unwrap();
        let policy = TransportPolicy::with_secrets();
        let reply = HttpClient::default().send(&policy, request, &mut [], Duration::from_secs(60));
        server.join().unwrap();
        reply
    }

    #[test]
    fn a_reply_that_is_too_long_is_an_error_and_never_cut() {
        let reply = reply_of(REPLY_BYTES_MAX).unwrap();
        assert_eq!(reply.body.len(), REPLY_BYTES_MAX);
        match reply_of(REPLY_BYTES_MAX + 1) {
            Err(TransportError::There(why)) => {
                assert!(why.contains("more than 67108864 bytes"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_that_panics_gives_its_place_back() {
        let under_way = std::sync::Arc::new(UnderWay::default());
        let panicking = std::sync::Arc::clone(&under_way);
        let broken = std::thread::spawn(move || panicking.during(1, || panic!("by a test")));
        assert!(broken.join().is_err());
        let (send, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(under_way.during(1, || 7)));
        assert_eq!(done.recv_timeout(Duration::from_secs(10)), Ok(7));
    }
}
