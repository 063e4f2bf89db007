//! The server of an agent: orders and events for the driver, runs for other agents and for the driver. Nothing without the job's token.

use std::future::ready;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use futures_util::stream;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::agent_queue::AgentQueue;
use super::connections::take_connections;
use super::messages::ORDERS_BYTES_MAX;
use super::secured::TlsFiles;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::{Caching, ReadFile};

/// Threads that drive connections; files are read by others.
const THREADS: usize = 2;

/// The longest range that is sent in one reply.
const RANGE_BYTES_MAX: u64 = 64 << 20;

/// What is read of it, and sent, at once.
const PIECE_BYTES: usize = 256 << 10;

/// Pieces that are read at once, each on a thread that waits for a disk. The driver is answered by threads that are left.
const READS_AT_ONCE: usize = 64;

/// Which events a driver knows.
#[derive(Debug, Deserialize)]
struct EventsQuery {
    after: u64,
}

/// Begins to serve, with TLS if there are files for that; the server ends with the runtime.
///
/// # Errors
/// The system gives no threads, or the files do not hold what they should.
pub(super) fn serve(
    listener: TcpListener,
    tls: Option<&TlsFiles>,
    token: &str,
    queue: Arc<AgentQueue>,
) -> Result<Runtime> {
    let app = Router::new()
        .route("/orders", post(orders))
        .route("/events", get(events))
        .route("/runs/{folder}/{name}", get(run))
        .layer(DefaultBodyLimit::max(ORDERS_BYTES_MAX))
        .with_state(Arc::new(Served {
            queue,
            reads: Semaphore::new(READS_AT_ONCE),
        }));
    serve_app(listener, tls, token, app)
}

/// Begins to serve what has the job's token.
///
/// # Errors
/// As of `serve`.
pub(super) fn serve_app(
    listener: TcpListener,
    tls: Option<&TlsFiles>,
    token: &str,
    app: Router,
) -> Result<Runtime> {
    let tls = tls.map(TlsFiles::config).transpose()?;
    let failed = |error: std::io::Error| Error::new(Kind::Io, "serve runs", error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("gristmill-agent")
        .enable_io()
        .enable_time()
        .build()
        .map_err(failed)?;
    let wanted: [u8; 32] = Sha256::digest(format!("Bearer {token}")).into();
    let guarded = move |request: Request, next: Next| async move {
        let given = request.headers().get(header::AUTHORIZATION);
        let given = given.map(|given| <[u8; 32]>::from(Sha256::digest(given.as_bytes())));
        if given == Some(wanted) {
            next.run(request).await
        } else {
            (
                StatusCode::UNAUTHORIZED,
                [(header::CONNECTION, "close")],
                "the token is not that of the job\n",
            )
                .into_response()
        }
    };
    let app = app.layer(middleware::from_fn(guarded));
    listener.set_nonblocking(true).map_err(failed)?;
    let _inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    drop(runtime.spawn(take_connections(listener, tls, app)));
    Ok(runtime)
}

/// What requests are answered from.
struct Served {
    queue: Arc<AgentQueue>,
    /// Pieces that are read at once.
    reads: Semaphore,
}

/// Does what may wait on a thread that may.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T, Response> {
    let told = |error: Error| match error.kind() {
        Kind::NotFound => StatusCode::NOT_FOUND.into_response(),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(told),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
    }
}

async fn orders(State(served): State<Arc<Served>>, body: Bytes) -> Result<StatusCode, Response> {
    let taken = apart(move || served.queue.take(&body)).await;
    taken.map(|()| StatusCode::NO_CONTENT)
}

async fn events(
    State(served): State<Arc<Served>>,
    Query(known): Query<EventsQuery>,
) -> Result<Vec<u8>, Response> {
    apart(move || served.queue.events(known.after)).await
}

/// A run, or a range of it.
async fn run(
    State(served): State<Arc<Served>>,
    Path((folder, name)): Path<(usize, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Response> {
    let missing = || StatusCode::NOT_FOUND.into_response();
    let path = served.queue.path_of(folder, &name).ok_or_else(missing)?;
    let disk = Arc::clone(&served.queue.resources.disk);
    let is_read = method != Method::HEAD;
    let found = apart(move || {
        let Some(stat) = disk.stat(&path)? else {
            return Ok(None);
        };
        let file = is_read.then(|| disk.open(&path, Caching::Cached));
        Ok(Some((stat, file.transpose()?)))
    });
    let (stat, file) = found.await?.ok_or_else(missing)?;
    let Some(file) = file else {
        let length = [(header::CONTENT_LENGTH, stat.bytes.to_string())];
        return Ok((length, Body::empty()).into_response());
    };
    let range = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let Some((first, last)) = range.and_then(|range| range_of(range, stat.bytes)) else {
        return Err(StatusCode::RANGE_NOT_SATISFIABLE.into_response());
    };
    let body = match file.held(first..last + 1) {
        Some(held) => {
            served.queue.sent(held.len() as u64);
            Body::from(held)
        }
        None => read_body((served, file.into()), first..last + 1).await?,
    };
    let headers = [
        (header::CONTENT_LENGTH, (last + 1 - first).to_string()),
        (
            header::CONTENT_RANGE,
            format!("bytes {first}-{last}/{}", stat.bytes),
        ),
    ];
    Ok((StatusCode::PARTIAL_CONTENT, headers, body).into_response())
}

/// The body of a reply that is a range of a file.
async fn read_body(
    (served, file): (Arc<Served>, Arc<dyn ReadFile>),
    bytes: Range<u64>,
) -> Result<Body, Response> {
    let range = ServedRange {
        served,
        file,
        end: bytes.end,
    };
    let begin = range.piece(bytes.start).await?; // what cannot be read at all is said by the status
    let next = bytes.start + begin.len() as u64;
    let rest = stream::try_unfold((range, next), |(range, at)| async move {
        if at == range.end {
            return Ok(None);
        }
        let piece = range.piece(at).await;
        let piece =
            piece.map_err(|_said| Error::new(Kind::Io, "send a run", "it ends too soon"))?;
        let next = at + piece.len() as u64;
        Ok::<_, Error>(Some((piece, (range, next))))
    });
    Ok(Body::from_stream(
        stream::once(ready(Ok(begin))).chain(rest),
    ))
}

/// A range of a run, read piece by piece as its reader takes them: one that stands still holds one piece in memory.
struct ServedRange {
    served: Arc<Served>,
    file: Arc<dyn ReadFile>,
    end: u64,
}

impl ServedRange {
    /// The piece that begins here.
    async fn piece(&self, at: u64) -> Result<Bytes, Response> {
        let _turn = self.served.reads.acquire().await;
        let (served, file) = (Arc::clone(&self.served), Arc::clone(&self.file));
        let wanted = PIECE_BYTES.min((self.end - at) as usize);
        apart(move || {
            let mut bytes = vec![0; wanted];
            let read = file.read_at(&mut bytes, at)?;
            if read == 0 {
                return Err(Error::new(Kind::Io, "send a run", "it ends too soon"));
            }
            bytes.truncate(read);
            served.queue.sent(read as u64);
            Ok(bytes.into())
        })
        .await
    }
}

/// The first and last byte of a range of a file of so many bytes: `bytes=5-9`.
fn range_of(text: &str, bytes: u64) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let last = last.min(bytes.checked_sub(1)?);
    (first <= last && last - first < RANGE_BYTES_MAX).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::range_of;

    #[test]
    fn ranges_lie_within_the_file() {
        assert_eq!(range_of("bytes=5-9", 100), Some((5, 9)));
        assert_eq!(range_of("bytes=5-999", 100), Some((5, 99)));
        for wrong in [
            "bytes=100-101",
            "bytes=9-5",
            "bytes=-5",
            "bytes=5-",
            "5-9",
            "",
        ] {
            assert_eq!(range_of(wrong, 100), None, "{wrong}");
        }
        assert_eq!(range_of("bytes=0-0", 0), None);
        assert_eq!(range_of(&format!("bytes=0-{}", u64::MAX), u64::MAX), None);
    }
}
