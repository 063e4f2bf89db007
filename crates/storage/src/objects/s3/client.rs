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

use http::Method;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequest;

use super::credentials::CredentialProvider;
use super::settings::{S3Settings, Site};
use crate::net::http_client::{HttpClient, HttpReply, TransportPolicy};
use crate::net::per_process::PerProcess;
use crate::objects::call::Call;
use gristmill_base::error::{Error, Kind, Result};

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
        let here = |error| call.here(error);
        let site = self.site().map_err(here)?;
        let bundle = site.bundle.as_ref();
        let made = || CredentialProvider::of(&site.credentials, &site.region, bundle);
        let keys = self.credentials.get(made).as_ref();
        let keys = keys.map_err(|error| here(error.clone()))?;
        let credentials = keys.get(&self.client).map_err(here)?;
        let request = signed(call, site, &credentials)?;
        let limit = self.client.limit(call.body.len().max(buffer.len()));
        let policy = TransportPolicy {
            bundle: bundle.cloned(),
            ..TransportPolicy::default()
        };
        let sent = self.client.send(&policy, request, buffer, limit);
        sent.map_err(|broken| {
            let endpoint = (&*site.endpoint, "AWS_ENDPOINT_URL");
            call.unanswered(broken, endpoint, (bundle, "AWS_CA_BUNDLE"))
        })
    }
}

/// The request of a call, signed by who has the `credentials`, as the store at `site` wants it.
fn signed(call: &Call<'_>, site: &Site, credentials: &AwsCredential) -> Result<HttpRequest> {
    let request = call.request(&site.root_of(&call.bucket));
    let mut request = request.map_err(|error| {
        Error::new(Kind::BadOption, call.operation, error.to_string())
            .with_path(call.path)
            .with("endpoint", &site.endpoint)
            .advise("check the endpoint (AWS_ENDPOINT_URL)")
    })?;
    // The CRC of a part is among what is signed: its bytes need no second, slow sum.
    let is_part = call.method() == Method::PUT;
    AwsAuthorizer::new(credentials, "s3", &site.region)
        .with_sign_payload(!is_part)
        .try_authorize(&mut request, None)
        .map_err(|error| Error::bug(call.operation, error.to_string()))?;
    call.say_length(&mut request);
    Ok(request)
}
