//! Requests to S3: signed, sent, waited for.
//!
//! ```text
//!   any thread ── send ──▶ sign ─▶ HttpClient ─▶ reply, or what went wrong on the way
//! ```
//!
//! Each request is signed with credentials that are good then. They are in signatures, and in no text. What is signed for
//! one server goes to no other: no redirect is followed. (A proxy that the user has set is: with TLS it sees nothing of a
//! request, and without TLS the network sees as much as it.)

use std::sync::{Arc, OnceLock};

use super::call::{Call, HttpReply};
use super::credentials::CredentialProvider;
use super::failures::{unreached, untrusted};
use super::settings::{S3Settings, Site};
use crate::net::http_client::{HttpClient, TransportError, TransportPolicy};
use crate::net::per_process::PerProcess;
use gristmill_base::error::Result;

/// What sends requests.
#[derive(Debug)]
pub struct Client {
    settings: S3Settings,
    site: OnceLock<Result<Site>>,
    /// They ask services by connections, which a fork must not share.
    credentials: PerProcess<Result<CredentialProvider>>,
    client: Arc<HttpClient>,
}

impl Client {
    /// Requests go where `settings` say, by `client`.
    pub fn new(settings: S3Settings, client: Arc<HttpClient>) -> Self {
        Client {
            settings,
            site: OnceLock::new(),
            credentials: PerProcess::default(),
            client,
        }
    }

    fn site(&self) -> Result<&Site> {
        let site = self.site.get_or_init(|| self.settings.site());
        site.as_ref().map_err(Clone::clone)
    }

    /// The endpoint and the region, for messages.
    pub fn place(&self) -> (&str, &str) {
        self.site()
            .map_or(("", ""), |site| (&site.endpoint, &site.region))
    }

    /// Sends a request, and waits. What a successful reply to a question with a `buffer` has goes there.
    pub fn send(&self, call: &Call<'_>, buffer: &mut [u8]) -> Result<HttpReply> {
        let here =
            |error: gristmill_base::error::Error| error.during(call.operation).with_path(call.path);
        let site = self.site().map_err(here)?;
        let bundle = site.bundle.as_ref();
        let made = || CredentialProvider::of(&site.credentials, &site.region, bundle);
        let keys = self.credentials.get(made).as_ref();
        let keys = keys.map_err(|error| here(error.clone()))?;
        let credentials = keys.get(&self.client).map_err(here)?;
        let request = call.request(site, &credentials)?;
        let limit = self.client.limit(call.body.len().max(buffer.len()));
        let policy = TransportPolicy {
            bundle: bundle.cloned(),
            ..TransportPolicy::default()
        };
        self.client
            .send(&policy, request, buffer, limit)
            .map_err(|broken| match broken {
                TransportError::Here(error) => here(error),
                TransportError::There(what) => unreached(call, &site.endpoint, &what),
                TransportError::Stopped => unreached(call, &site.endpoint, "the job is to end"),
                TransportError::Untrusted(distrust) => {
                    untrusted(call, &site.endpoint, &distrust, bundle)
                }
            })
    }
}
