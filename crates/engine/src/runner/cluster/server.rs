//! The server of an agent: orders and events for the driver, runs for other agents. Nothing without the job's token.

use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::desk::Desk;
use super::secured::{Secured, TlsFiles};
use crate::error::{Error, Kind, Result};
use crate::storage::Caching;

/// Threads that drive connections; files are read by others.
const THREADS: usize = 2;

/// The longest batch of orders: user code and its data may be in one.
const ORDERS_BYTES_MAX: usize = 1 << 30;

/// The longest range that is sent in one reply.
const RANGE_BYTES_MAX: u64 = 64 << 20;

/// Which events a driver knows.
#[derive(Debug, Deserialize)]
struct Known {
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
    desk: Arc<Desk>,
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
                "the token is not that of the job\n",
            )
                .into_response()
        }
    };
    let app = Router::new()
        .route("/orders", post(orders))
        .route("/events", get(events))
        .route("/runs/{folder}/{name}", get(run))
        .layer(DefaultBodyLimit::max(ORDERS_BYTES_MAX))
        .layer(middleware::from_fn(guarded))
        .with_state(desk);
    listener.set_nonblocking(true).map_err(failed)?;
    let _inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    match tls {
        None => drop(runtime.spawn(async move { axum::serve(listener, app).await })),
        Some(config) => {
            let secured = Secured::begin(listener, config).map_err(failed)?;
            drop(runtime.spawn(async move { axum::serve(secured, app).await }));
        }
    }
    Ok(runtime)
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

async fn orders(State(desk): State<Arc<Desk>>, body: Bytes) -> Result<StatusCode, Response> {
    let taken = apart(move || desk.take(&body)).await;
    taken.map(|()| StatusCode::NO_CONTENT)
}

async fn events(
    State(desk): State<Arc<Desk>>,
    Query(known): Query<Known>,
) -> Result<Vec<u8>, Response> {
    apart(move || desk.events(known.after)).await
}

/// A run, or a range of it.
async fn run(
    State(desk): State<Arc<Desk>>,
    Path((folder, name)): Path<(usize, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Response> {
    let missing = || StatusCode::NOT_FOUND.into_response();
    let path = desk.path_of(folder, &name).ok_or_else(missing)?;
    let disk = Arc::clone(&desk.equipment.disk);
    let stat = {
        let (disk, path) = (Arc::clone(&disk), path.clone());
        apart(move || disk.stat(&path)).await?.ok_or_else(missing)?
    };
    if method == Method::HEAD {
        let length = [(header::CONTENT_LENGTH, stat.bytes.to_string())];
        return Ok((length, Body::empty()).into_response());
    }
    let range = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let Some((first, last)) = range.and_then(|range| range_of(range, stat.bytes)) else {
        return Err(StatusCode::RANGE_NOT_SATISFIABLE.into_response());
    };
    let bytes = apart(move || {
        let mut bytes = vec![0; (last - first + 1) as usize];
        let read = disk
            .open(&path, Caching::Cached)?
            .read_at(&mut bytes, first)?;
        bytes.truncate(read);
        desk.sent(read as u64);
        Ok(bytes)
    })
    .await?;
    let sent = first + (bytes.len() as u64).saturating_sub(1);
    let sent = format!("bytes {first}-{sent}/{}", stat.bytes);
    let headers = [(header::CONTENT_RANGE, sent)];
    Ok((StatusCode::PARTIAL_CONTENT, headers, bytes).into_response())
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
