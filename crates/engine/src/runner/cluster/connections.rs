//! The connections of an agent's server, and of the collector's.
//!
//! ```text
//!   port ── accept, while there are places ──▶ a handshake, where there is TLS ──▶ requests, one after another ──▶ axum
//! ```
//!
//! The rule that must hold: who has no token cannot keep those out who have it. Of a connection that says nothing the place is soon
//! free, whether it is to shake hands, to begin, or to go on; and there are no more than the process has descriptors for.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// How long a handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// How long the head of a request may take, from the end of the one before: who reads runs keeps connections no longer, either
/// (`storage/net/http_client.rs`).
const HEAD_LIMIT: Duration = Duration::from_secs(15);

/// Connections at once: the readers of hundreds of nodes. Others wait at the port.
const CONNECTIONS_MAX: usize = 4096;

/// After an `accept` that failed, as when there are no more descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests, as long as the runtime lasts.
pub(super) async fn take_connections(listener: TcpListener, tls: Option<TlsAcceptor>, app: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                drop(tokio::spawn(shake(stream, tls.clone(), app.clone(), place)));
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Answers the requests of one, which has its place until it ends.
async fn shake(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    app: Router,
    place: OwnedSemaphorePermit,
) {
    // The end of a reply is not to wait for the acknowledgement of what is before it: that takes up to 40 ms, in which nothing
    // of the next reply is under way.
    let _ = stream.set_nodelay(true); // a connection that is gone shows soon
    match tls {
        None => answer(stream, app, HEAD_LIMIT).await,
        // One that speaks no TLS is closed.
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
                answer(stream, app, HEAD_LIMIT).await;
            }
        }
    }
    drop(place);
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, app: Router, head_limit: Duration) {
    let requests = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_limit)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let _ = requests.await; // who asked sees it, too
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// What comes back of these words until the connection is closed.
    fn said(words: &'static str) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            let (mut client, server) = duplex(1 << 16);
            let app = Router::new().route("/", axum::routing::get(|| async { "yes" }));
            let answers = tokio::spawn(answer(server, app, Duration::from_millis(50)));
            client.write_all(words.as_bytes()).await.unwrap();
            let mut back = Vec::new();
            client.read_to_end(&mut back).await.unwrap();
            answers.await.unwrap();
            String::from_utf8_lossy(&back).into_owned()
        })
    }

    #[test]
    fn a_connection_that_says_nothing_is_closed() {
        for words in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: a\r\n"] {
            assert!(!said(words).contains("yes"), "{words:?}");
        }
        let answered = said("GET / HTTP/1.1\r\nhost: a\r\n\r\n"); // it might have gone on
        assert!(answered.ends_with("yes"), "{answered}");
    }
}
