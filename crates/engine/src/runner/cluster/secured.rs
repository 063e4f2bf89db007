//! TLS of an agent's server, where Ray uses TLS: with the certificate of the node, which Ray's variables name.
//!
//! ```text
//!   port ── accept ──▶ handshakes, side by side, each with a time limit ──▶ connections ──▶ axum
//! ```
//!
//! Others prove who they are by the job's token. They check the certificate, which must be for the node's address.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::error::{Error, Kind, Result};
use crate::storage::wire::take_ring;

/// How long a handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Connections that wait for axum.
const WAITING: usize = 64;

/// After an `accept` that failed, as when there are no more descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The files of a node's identity, PEM all of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate of the node, with those between it and the authority: `RAY_TLS_SERVER_CERT`.
    #[serde(with = "crate::names")]
    pub certificate: PathBuf,
    /// Its key: `RAY_TLS_SERVER_KEY`.
    #[serde(with = "crate::names")]
    pub key: PathBuf,
    /// Who is trusted to have signed the certificates of others: `RAY_TLS_CA_CERT`.
    #[serde(with = "crate::names")]
    pub authorities: PathBuf,
}

impl TlsFiles {
    /// What the server proves its name with.
    ///
    /// # Errors
    /// A file cannot be read, or does not hold what it should.
    pub(super) fn config(&self) -> Result<ServerConfig> {
        take_ring();
        let wrong = |path: &Path, variable: &str, what: String| {
            Error::new(Kind::BadOption, "serve runs with TLS", what)
                .with_path(path)
                .advise(format!(
                    "let {variable} name the PEM file that Ray itself uses"
                ))
        };
        let read = |path: &Path, variable: &str| {
            fs::read(path).map_err(|error| wrong(path, variable, error.to_string()))
        };
        let (certificate, key) = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY");
        let text = read(&self.certificate, certificate)?;
        let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain =
            chain.map_err(|error| wrong(&self.certificate, certificate, error.to_string()))?;
        let text = read(&self.key, key)?;
        let own = PrivateKeyDer::from_pem_slice(&text)
            .map_err(|error| wrong(&self.key, key, error.to_string()))?;
        ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, own)
            .map_err(|error| wrong(&self.certificate, certificate, error.to_string()))
    }
}

/// A port on which every connection is encrypted.
#[derive(Debug)]
pub(super) struct Secured {
    address: SocketAddr,
    ready: Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl Secured {
    /// Begins to accept connections, on the runtime that this is called in.
    pub(super) fn begin(listener: TcpListener, config: ServerConfig) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let (tell, ready) = channel(WAITING);
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), tell));
        Ok(Secured { address, ready })
    }
}

/// Has the end of a reply sent without waiting for the acknowledgement of what is before it: that takes up to 40 ms, in
/// which nothing of the next reply is under way.
pub(super) fn at_once(stream: &mut TcpStream) {
    let _ = stream.set_nodelay(true); // a connection that is gone shows soon
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    tell: Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    while !tell.is_closed() {
        match listener.accept().await {
            Ok((mut stream, peer)) => {
                at_once(&mut stream);
                let (acceptor, tell) = (acceptor.clone(), tell.clone());
                tokio::spawn(async move {
                    // One that speaks no TLS is closed.
                    if let Ok(Ok(stream)) = timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await
                    {
                        let _ = tell.send((stream, peer)).await;
                    }
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

impl axum::serve::Listener for Secured {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.address)
    }
}
