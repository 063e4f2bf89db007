//! Objects in Google's storage: `gs://BUCKET/KEY`, by its JSON interface.
//!
//! ```text
//!   begin      a name, drawn here: nothing is sent
//!   part       an object of its own, .gristmill/uploads/KEY/NAME/00001; its MD5 is checked
//!   complete   the parts are composed, 32 at a time, in rounds where there are more; then they are removed
//!   abort      the parts are removed
//! ```
//!
//! The version of an object is its generation. Listings leave out `.gristmill`. Each call is one request, but `complete` and `abort`, which
//! ask for the parts that are there first. Nothing is tried again here.
//!
//! Decision: docs/decisions/clouds.md.

mod failures;
mod replies;
mod settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use md5::{Digest, Md5};
use serde_json::json;

use super::call::{Call, encoded};
use super::{
    DIRECTORY, KeptPart, Object, ObjectStore, Objects, Page, Part, StoreCopies, Upload, UploadPart,
};
use crate::net::http_client::{HttpClient, HttpReply, TransportPolicy, header};
use crate::net::per_process::PerProcess;
use crate::private::chance::by_chance;
use crate::store_kind::{
    CONNECT_TIMEOUT, OptionValues, REQUEST_TIMEOUT, REQUESTS_AT_ONCE, ReadVariable, StoreKind,
    StoreSetup,
};
use crate::version::ReadVersion;
use failures::{failure, is_no_object};
use gristmill_base::error::{Error, Kind, Result};
use replies::{ObjectResource, ObjectsPage, RewriteStep};
use settings::{EMULATOR, ENDPOINT_OPTION, GcsSite};

/// This kind of store.
pub static KIND: StoreKind = StoreKind {
    name: "GCS",
    schemes: &["gs"],
    has_authority: true,
    has_patterns: true,
    advised: Some("gs://BUCKET/KEY"),
    variables: &["GOOGLE_", "STORAGE_EMULATOR_", "SSL_CERT_"],
    options: &[
        ENDPOINT_OPTION,
        CONNECT_TIMEOUT,
        REQUEST_TIMEOUT,
        REQUESTS_AT_ONCE,
    ],
    credentials: Some(settings::CREDENTIALS),
    is_durable: Some(true), // what it has answered
    sends_parts: true,
    open: |setup| ObjectStore::open(Gcs::new(setup), setup),
};

/// Where parts lie in a bucket.
const OWN: &str = ".gristmill/";
const UPLOADS: &str = ".gristmill/uploads/";

const COPY: &str = "copy a file";

/// How many objects are composed at once.
const COMPOSED: usize = 32;

/// Objects in Google's storage.
#[derive(Debug)]
struct Gcs {
    variable: ReadVariable,
    options: Arc<OptionValues>,
    /// It asks by connections, which a fork must not share.
    site: PerProcess<Result<GcsSite>>,
    client: Arc<HttpClient>,
}

/// What of the interface is asked.
#[derive(Clone, Copy)]
enum Asked<'k> {
    /// The objects of the bucket.
    Bucket,
    /// This object, and perhaps what is to be done with it.
    Key(&'k str, &'k str),
    /// A new object.
    Upload,
}

impl Gcs {
    fn new(setup: &StoreSetup) -> Self {
        Gcs {
            variable: setup.variable,
            options: Arc::clone(&setup.options),
            site: PerProcess::default(),
            client: Arc::clone(&setup.client),
        }
    }

    fn site(&self) -> Result<&GcsSite> {
        let site = self.site.get(|| GcsSite::of(self.variable, &self.options));
        site.as_ref().map_err(Clone::clone)
    }

    /// Sends a request, and waits. What a successful reply to a question with a `buffer` has goes there.
    fn send(&self, call: &Call<'_>, asked: Asked<'_>, buffer: &mut [u8]) -> Result<HttpReply> {
        let site = self.site().map_err(|error| call.here(error))?;
        let root = format!("{}{}/b/{}/o", site.endpoint, asked.interface(), call.bucket);
        let uri = match asked {
            Asked::Bucket | Asked::Upload => root,
            Asked::Key(key, verb) => format!("{root}/{}{verb}", encoded(key, false)),
        };
        let bug = |error: &dyn std::fmt::Display| Error::bug(call.operation, error.to_string());
        let request = call.request_to(&(uri + call.query()));
        let mut request = request.map_err(|error| bug(&error))?;
        let authorization = site.authorization(&self.client);
        if let Some(authorization) = authorization.map_err(|error| call.here(error))? {
            let value = HeaderValue::from_str(&authorization).map_err(|error| bug(&error))?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        call.say_length(&mut request);
        let limit = self.client.limit(call.body.len().max(buffer.len()));
        let policy = TransportPolicy::default();
        let sent = self.client.send(&policy, request, buffer, limit);
        sent.map_err(|broken| {
            call.unanswered(broken, (&site.endpoint, EMULATOR), (None, "SSL_CERT_FILE"))
        })
    }

    fn failed(&self, call: &Call<'_>, reply: &HttpReply) -> Error {
        let endpoint = self.site().map_or("", |site| &site.endpoint);
        failure(endpoint, call, reply)
    }

    fn done(&self, call: &Call<'_>, asked: Asked<'_>) -> Result<HttpReply> {
        let reply = self.send(call, asked, &mut [])?;
        match reply.status.is_success() {
            true => Ok(reply),
            false => Err(self.failed(call, &reply)),
        }
    }

    /// The reply; none where the store says that the object is not there.
    fn found(&self, call: &Call<'_>, asked: Asked<'_>) -> Result<Option<HttpReply>> {
        let reply = self.send(call, asked, &mut [])?;
        match reply.status {
            status if status.is_success() => Ok(Some(reply)),
            _ if is_no_object(&reply) => Ok(None),
            _ => Err(self.failed(call, &reply)),
        }
    }

    /// All objects whose keys begin with a prefix, in order.
    fn below(&self, base: &Call<'_>, prefix: &str) -> Result<Vec<ObjectResource>> {
        let (mut found, mut from) = (Vec::new(), None::<String>);
        loop {
            let mut call = base.clone().ask("prefix", prefix);
            if let Some(token) = &from {
                call = call.ask("pageToken", token);
            }
            let page: ObjectsPage = replies::read(&call, &self.done(&call, Asked::Bucket)?.body)?;
            found.extend(page.items);
            from = page.next_page_token.filter(|token| !token.is_empty());
            if from.is_none() {
                return Ok(found);
            }
        }
    }

    /// Composes objects to one, which has this metadata.
    fn compose(
        &self,
        base: &Call<'_>,
        (from, to): (&[String], &str),
        metadata: &serde_json::Value,
    ) -> Result<()> {
        let sources: Vec<_> = from.iter().map(|name| json!({ "name": name })).collect();
        let asked = json!({
            "sourceObjects": sources,
            "destination": { "contentType": "application/octet-stream", "metadata": metadata },
        });
        let mut call = base.clone().with("content-type", "application/json");
        call.body = asked.to_string().into();
        self.done(&call, Asked::Key(to, "/compose")).map(drop)
    }

    fn remove(&self, path: &Path, key: &str) -> Result<()> {
        let call = call("remove", Method::DELETE, path)?;
        self.found(&call, Asked::Key(key, "")).map(drop)
    }
}

impl Asked<'_> {
    /// Where the interface stands.
    fn interface(self) -> &'static str {
        match self {
            Asked::Upload => "/upload/storage/v1",
            Asked::Bucket | Asked::Key(..) => "/storage/v1",
        }
    }
}

/// A request to an object.
fn call<'p>(operation: &'static str, method: Method, path: &'p Path) -> Result<Call<'p>> {
    Call::new(&KIND, operation, method, path)
}

/// What the parts of an upload begin with.
fn parts_of(key: &str, id: &str) -> String {
    format!("{UPLOADS}{key}/{id}/")
}

impl Objects for Gcs {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        let call = call("look at a file", Method::GET, path)?;
        if call.key.is_empty() {
            return Ok(None);
        }
        let Some(reply) = self.found(&call, Asked::Key(&call.key, ""))? else {
            return Ok(None);
        };
        let found: ObjectResource = replies::read(&call, &reply.body)?;
        found.object(&call).map(Some)
    }

    fn list(&self, directory: &Path, from: Option<&str>) -> Result<Page> {
        let call = call("list a directory", Method::GET, directory)?;
        let prefix = call.prefix();
        let mut call = call.ask("delimiter", "/").ask("prefix", &prefix);
        if let Some(token) = from {
            call = call.ask("pageToken", token);
        }
        let page: ObjectsPage = replies::read(&call, &self.done(&call, Asked::Bucket)?.body)?;
        let mut named = Vec::new();
        for item in page.items {
            let stat = item.object(&call)?.stat();
            named.push((item.name, Some(stat)));
        }
        named.extend(
            page.prefixes
                .into_iter()
                .map(|name| (name, Some(DIRECTORY))),
        );
        named.sort_by(|one, other| one.0.cmp(&other.0)); // each kind comes in order
        // Parts of uploads are nobody's files.
        named.retain(|(name, _)| !name.starts_with(OWN));
        let found = call.entries(directory, named.into_iter())?;
        let next = page.next_page_token.filter(|token| !token.is_empty());
        Ok(Page { found, next })
    }

    fn get(
        &self,
        path: &Path,
        version: &ReadVersion,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize> {
        let Some(last) = (buffer.len() as u64).checked_sub(1) else {
            return Ok(0);
        };
        let mut call = call("read the input", Method::GET, path)?
            .ask("alt", "media")
            .with("accept-encoding", "gzip") // as it is kept: nothing is decoded there
            .with("range", &format!("bytes={offset}-{}", offset + last));
        if let Some(generation) = version.text() {
            call = call.ask("ifGenerationMatch", generation);
        }
        let reply = self.send(&call, Asked::Key(&call.key, ""), buffer)?;
        let generation = header(&reply.headers, "x-goog-generation");
        let read = call.read_of(&reply, (version, generation), (offset, last + 1))?;
        read.ok_or_else(|| self.failed(&call, &reply).with("offset", offset))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        let key = call("remove", Method::DELETE, path)?.key;
        self.remove(path, &key)
    }

    fn begin(&self, path: &Path) -> Result<String> {
        call("create the output", Method::POST, path)?;
        Ok(format!("{:016x}", by_chance()))
    }

    /// In one body with its metadata, so that it has its CRC.
    fn put(&self, path: &Path, object: &Part) -> Result<()> {
        let digest = BASE64.encode(Md5::digest(&object.data));
        let call = call("write the output", Method::POST, path)?;
        let about = json!({
            "name": call.key,
            "contentType": "application/octet-stream",
            "md5Hash": digest,
            "metadata": { "crc32": format!("{:08x}", object.crc) },
        });
        let between = format!("gristmill-{:016x}", by_chance());
        let begin = format!(
            "--{between}\r\ncontent-type: application/json\r\n\r\n{about}\r\n\
             --{between}\r\ncontent-type: application/octet-stream\r\n\r\n"
        );
        let end = format!("\r\n--{between}--\r\n");
        let kind = format!("multipart/related; boundary={between}");
        let mut call = call
            .ask("uploadType", "multipart")
            .with("content-type", &kind);
        call.body = [begin.as_bytes(), &object.data, end.as_bytes()]
            .concat()
            .into();
        let reply = self.done(&call, Asked::Upload)?;
        let made: ObjectResource = replies::read(&call, &reply.body)?;
        match made.md5_hash == digest {
            true => Ok(()),
            false => Err(call.not_kept()),
        }
    }

    fn copies(&self, _from: &Path, _to: &Path) -> Option<StoreCopies> {
        Some(StoreCopies {
            whole_bytes: u64::MAX, // in as many steps as it takes
            takes_sums: true,
        })
    }

    fn copy(
        &self,
        from: &Path,
        source: &Object,
        to: &Path,
        token: Option<&str>,
    ) -> Result<Option<String>> {
        let target = call(COPY, Method::POST, to)?;
        let mut call =
            call(COPY, Method::POST, from)?.ask("ifSourceGenerationMatch", &source.version);
        if let Some(token) = token {
            call = call.ask("rewriteToken", token);
        }
        let key = encoded(&target.key, false);
        let verb = format!("/rewriteTo/b/{}/o/{key}", target.bucket);
        let reply = self.done(&call, Asked::Key(&call.key, &verb))?;
        let step: RewriteStep = replies::read(&call, &reply.body)?;
        Ok(step.rewrite_token.filter(|_| !step.done))
    }

    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart> {
        let digest = BASE64.encode(Md5::digest(&part.data));
        let call = call("write the output", Method::POST, path)?;
        let name = format!("{}{number:05}", parts_of(&call.key, id));
        let mut call = call
            .ask("uploadType", "media")
            .ask("name", &name)
            .with("content-type", "application/octet-stream")
            .with("x-goog-hash", &format!("md5={digest}"));
        call.body = part.data.clone();
        let reply = self.done(&call, Asked::Upload)?;
        let made: ObjectResource = replies::read(&call, &reply.body)?;
        if made.md5_hash != digest {
            return Err(call.not_kept().with("part", number));
        }
        Ok(UploadPart {
            bytes: part.data.len() as u64,
            crc: part.crc,
            etag: digest,
        })
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        let call = call("look at an upload", Method::GET, path)?;
        let prefix = parts_of(&call.key, id);
        let mut parts = Vec::new();
        for found in self.below(&call, &prefix)? {
            let number = found.name.strip_prefix(&prefix).unwrap_or_default();
            if number.bytes().all(|byte| byte.is_ascii_digit()) {
                let bytes = found.bytes().unwrap_or_default();
                let etag = found.md5_hash;
                parts.push(KeptPart { bytes, etag });
            }
        }
        Ok((!parts.is_empty()).then_some(parts))
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        let path = upload.path.as_typed();
        let call = call("publish the output", Method::POST, path)?;
        let kept = self.parts(path, &upload.id)?;
        if !kept.is_some_and(|kept| upload.is_kept(&kept)) {
            if self.is_made(upload)? {
                return self.abort(path, &upload.id); // its parts were about to be removed
            }
            let message = "there is no such upload";
            return Err(Error::new(Kind::NotFound, call.operation, message)
                .with_path(path)
                .with("upload", &upload.id));
        }
        let prefix = parts_of(&call.key, &upload.id);
        let numbers = 1..=upload.parts.len();
        let mut names: Vec<_> = numbers
            .map(|number| format!("{prefix}{number:05}"))
            .collect();
        let mut round = 0;
        while names.len() > COMPOSED {
            let mut composed = Vec::new();
            for (index, from) in names.chunks(COMPOSED).enumerate() {
                let to = format!("{prefix}round-{round}-{index:05}");
                self.compose(&call, (from, &to), &json!({}))?;
                composed.push(to);
            }
            names = composed;
            round += 1;
        }
        let crc = json!({ "crc32": format!("{:08x}", upload.crc()) });
        self.compose(&call, (&names, &call.key), &crc)?;
        self.abort(path, &upload.id)
    }

    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        let call = call("end an upload", Method::GET, path)?;
        let parts = self.below(&call, &parts_of(&call.key, id))?;
        parts
            .iter()
            .try_for_each(|part| self.remove(path, &part.name))
    }

    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        let call = call("look for uploads", Method::GET, path)?;
        let (key, prefix) = (&call.key, call.prefix());
        let mut uploads = Vec::new();
        for part in self.below(&call, &format!("{UPLOADS}{key}"))? {
            let name = part.name.strip_prefix(UPLOADS).unwrap_or_default();
            let Some((upload, _)) = name.rsplit_once('/') else {
                continue;
            };
            let Some((to, id)) = upload.rsplit_once('/') else {
                continue;
            };
            if to == key || to.starts_with(&prefix) {
                let place = PathBuf::from(format!("gs://{}/{to}", call.bucket));
                uploads.push((place, id.to_owned()));
            }
        }
        uploads.dedup();
        Ok(uploads)
    }
}
