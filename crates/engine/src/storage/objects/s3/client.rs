//! Requests to S3: signed, sent, waited for.
//!
//! ```text
//!   any thread ── send ──▶ sign ─▶ Wire ─▶ reply, or what went wrong on the way
//! ```
//!
//! Credentials are in signatures, and in no text.

use std::sync::{Arc, OnceLock};

use super::call::{Call, Reply};
use super::failures::unreached;
use super::settings::{Settings, Site};
use crate::error::Result;
use crate::storage::wire::{Broken, Wire};

/// What sends requests.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    site: OnceLock<Result<Site>>,
    wire: Arc<Wire>,
}

impl Client {
    /// Requests go where `settings` say, by `wire`.
    pub fn new(settings: Settings, wire: Arc<Wire>) -> Self {
        Client {
            settings,
            site: OnceLock::new(),
            wire,
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
    pub fn send(&self, call: &Call<'_>, buffer: &mut [u8]) -> Result<Reply> {
        let here = |error: crate::error::Error| error.during(call.operation).with_path(call.path);
        let site = self.site().map_err(here)?;
        let request = call.request(site)?;
        let limit = call.limit(buffer.len());
        self.wire
            .send(request, buffer, limit)
            .map_err(|broken| match broken {
                Broken::Here(error) => here(error),
                Broken::There(what) => unreached(call, &site.endpoint, &what),
            })
    }
}
