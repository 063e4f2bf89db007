//! One request at a time: signed, sent, waited for.
//!
//! ```text
//!   any thread ── send ──▶ sign ─▶ HTTP ─▶ reply, or what went wrong on the way
//!                          the threads of one runtime keep the connections of the process
//! ```
//!
//! The runtime starts with the first request of the process that makes it; a fork of that process starts its own.
//! Every request has a time limit, by its size. Credentials are in signatures, and in no text.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, ReqwestConnector};
use tokio::runtime::Runtime;

use super::call::{Call, Reply};
use super::failures::{broken, unreached};
use super::settings::{Settings, Site};
use crate::error::{Error, Kind, Result};

/// A connection that is not there by then will not come.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Idle connections are closed by servers, too: sooner is better than in the middle of a request.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Threads that drive connections; those that wait for replies copy what comes.
const THREADS: usize = 2;

/// The longest reply that is no part of an object: a thousand names are a few hundred kB.
const REPLY_BYTES_MAX: usize = 64 << 20;

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

    /// The endpoint and the region, for messages.
    pub fn place(&self) -> (&str, &str) {
        self.connections()
            .map_or(("", ""), |open| (&open.site.endpoint, &open.site.region))
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
