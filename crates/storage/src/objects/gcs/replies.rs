//! What replies of Google's storage say, in JSON.

use chrono::DateTime;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::objects::Object;
use crate::objects::call::Call;
use gristmill_base::error::{Error, Kind, Result};

/// What there is to know of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectResource {
    pub name: String,
    size: String,
    generation: String,
    updated: String,
    pub md5_hash: String,
    crc32c: Option<String>,
    metadata: ObjectMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectMetadata {
    crc32: Option<String>,
}

impl ObjectResource {
    /// Its length.
    pub fn bytes(&self) -> Option<u64> {
        self.size.parse().ok()
    }

    /// The same in the words of all object stores.
    ///
    /// # Errors
    /// The store says neither how long it is nor which version.
    pub fn object(&self, call: &Call<'_>) -> Result<Object> {
        let (Some(bytes), false) = (self.bytes(), self.generation.is_empty()) else {
            let message = "the store says neither how long it is nor of which version";
            return Err(Error::new(Kind::Io, call.operation, message).with_path(call.path));
        };
        let crc = self.metadata.crc32.as_deref();
        Ok(Object {
            bytes,
            modified_ns: time_ns(&self.updated),
            version: self.generation.clone(),
            crc: crc.and_then(|crc| u32::from_str_radix(crc, 16).ok()),
            sum: self.crc32c.clone(),
        })
    }
}

/// A page of a listing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectsPage {
    pub items: Vec<ObjectResource>,
    pub prefixes: Vec<String>,
    pub next_page_token: Option<String>,
}

/// How far a copy is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewriteStep {
    pub done: bool,
    pub rewrite_token: Option<String>,
}

/// Why a request was refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GcsRefusal {
    pub error: GcsRefusalDetail,
}

/// The same, in words.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GcsRefusalDetail {
    pub message: String,
}

/// Reads a reply.
pub fn read<T: DeserializeOwned>(call: &Call<'_>, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| {
        let message = format!("the store's reply is not understood: {error}");
        Error::new(Kind::Io, call.operation, message)
            .with_path(call.path)
            .advise("check that the endpoint is one of Google's storage (STORAGE_EMULATOR_HOST)")
    })
}

/// A time, in nanoseconds since the epoch.
fn time_ns(text: &str) -> i128 {
    let found = DateTime::parse_from_rfc3339(text).ok();
    let exact = found.and_then(|when| when.timestamp_nanos_opt());
    exact.map_or(0, i128::from)
}
