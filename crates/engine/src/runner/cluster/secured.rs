//! TLS of an agent's server, where Ray uses TLS: with the certificate of the node, which Ray's variables name.
//! Others prove who they are by the job's token. They check the certificate, which must be for the node's address.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;

use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::net::http_client::take_ring;

/// The files of a node's identity, PEM all of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate of the node, with those between it and the authority: `RAY_TLS_SERVER_CERT`.
    #[serde(with = "gristmill_base::names")]
    pub certificate: PathBuf,
    /// Its key: `RAY_TLS_SERVER_KEY`.
    #[serde(with = "gristmill_base::names")]
    pub key: PathBuf,
    /// Who is trusted to have signed the certificates of others: `RAY_TLS_CA_CERT`.
    #[serde(with = "gristmill_base::names")]
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
