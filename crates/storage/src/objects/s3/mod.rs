//! Objects in S3, or in a server that speaks as S3 does: `s3://BUCKET/KEY`.
//!
//! ```text
//!   Objects ── one request ──▶ Client: sign, send, wait ──▶ the store
//!                                     ◀── reply ── Replies: XML, headers ── or failures: one paragraph
//! ```
//!
//! Each call is one request (a listing: a page of a thousand names). Nothing is tried again here: that is [`Retried`]'s work. What
//! is sent has its CRC-32 with it, which the store checks; what is read must be of the version that was asked for.
//!
//! [`Retried`]: super::retry::Retried

mod client;
mod credentials;
mod failures;
mod profiles;
mod program;
mod renewed;
mod replies;
mod services;
mod settings;
mod temporary_credential;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, Method, StatusCode};
use md5::{Digest, Md5};

use super::call::{Call, encoded};
use super::{
    KeptPart, Object, ObjectStore, Objects, Page, Part, SourceRange, StoreCopies, Upload,
    UploadPart,
};
use crate::net::http_client::{HttpReply, header};
use crate::store_kind::{StoreKind, StoreSetup};
use crate::version::ReadVersion;
use client::Client;
use failures::failure;
use gristmill_base::error::{Error, Kind, Result};
use replies::{CompleteMultipartUpload, CopiedPart, ListingPage, Parts, Started, Uploads};
use settings::S3Settings;

const SCHEME: &str = "s3";

/// This kind of store.
pub static KIND: StoreKind = StoreKind {
    name: "S3",
    schemes: &[SCHEME],
    has_authority: true,
    has_patterns: true,
    advised: Some("s3://BUCKET/KEY"),
    variables: &["AWS_", "SSL_CERT_"],
    options: &settings::OPTIONS,
    credentials: Some(settings::CREDENTIALS),
    is_durable: Some(true), // what it has answered
    sends_parts: true,
    open: |setup| ObjectStore::open(S3::new(setup), setup),
};

const COPY: &str = "copy a file";

/// The longest object that is copied by one request, which takes as long as that.
const COPIED_WHOLE_BYTES: u64 = 1 << 30;

const CRC: &str = "x-amz-checksum-crc32";
const CRC_OF: &str = "x-amz-checksum-type";
const WHOLE: &str = "FULL_OBJECT";

/// Objects in S3.
#[derive(Debug)]
pub struct S3 {
    client: Client,
}

impl S3 {
    /// Objects in the store that variables and options name.
    fn new(setup: &StoreSetup) -> Self {
        let settings = S3Settings::new(setup.variable, &setup.options);
        S3 {
            client: Client::new(settings, Arc::clone(&setup.client)),
        }
    }

    fn done(&self, call: &Call<'_>) -> Result<HttpReply> {
        let reply = self.client.send(call, &mut [])?;
        if reply.status.is_success() {
            Ok(reply)
        } else {
            Err(failure(self.client.place(), call, &reply))
        }
    }

    /// Sends bytes, and hears that the store has them.
    fn sent(&self, call: Call<'_>, part: &Part) -> Result<UploadPart> {
        let (crc, bytes) = (part.crc, part.data.len() as u64);
        let mut call = call.with(CRC, &show_crc(crc));
        call.body = part.data.clone();
        let reply = self.done(&call)?;
        let etag = etag_of(&reply.headers).unwrap_or_default();
        // A store that knows no CRC has checked nothing: its ETag says what it has.
        let kept = crc_of(&reply.headers);
        let is_proved = match kept {
            Some(kept) => kept == crc,
            None => etag == hex::encode(Md5::digest(&part.data)),
        };
        match is_proved && !etag.is_empty() {
            true => Ok(UploadPart { bytes, crc, etag }),
            false => Err(call.not_kept()),
        }
    }

    /// Has the store copy what a call says of an object, as long as that is this one; gives its reply.
    fn copied(&self, call: Call<'_>, from: &Path, source: &Object) -> Result<Bytes> {
        let of = Call::new(&KIND, COPY, Method::GET, from)?;
        let of = format!("/{}/{}", of.bucket, encoded(&of.key, true));
        let version = format!("\"{}\"", source.version);
        let call = call
            .with("x-amz-copy-source", &of)
            .with("x-amz-copy-source-if-match", &version);
        let reply = self.done(&call)?;
        // The store begins its reply before it is done.
        match replies::is_failure(&reply.body) {
            true => Err(failure(self.client.place(), &call, &reply)),
            false => Ok(reply.body),
        }
    }

    /// A page of what lies right below a directory, in the order of the keys.
    fn page(&self, directory: &Path, call: Call<'_>) -> Result<Page> {
        let prefix = call.prefix();
        let call = call
            .ask("list-type", "2")
            .ask("delimiter", "/")
            .ask("encoding-type", "url")
            .ask("prefix", &prefix);
        let page: ListingPage = replies::read(&call, &self.done(&call)?.body)?;
        let found = call.entries(directory, page.named())?;
        let next = page.next_continuation_token.filter(|_| page.is_truncated);
        Ok(Page { found, next })
    }

    /// The reply; none where the store says that what is asked for is not there.
    fn found(&self, call: &Call<'_>) -> Result<Option<HttpReply>> {
        match self.done(call) {
            Err(error) if error.kind() == Kind::NotFound && !failures::is_no_bucket(&error) => {
                Ok(None)
            }
            done => done.map(Some),
        }
    }
}

impl Objects for S3 {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        let call = Call::new(&KIND, "look at a file", Method::HEAD, path)?
            .with("x-amz-checksum-mode", "ENABLED");
        if call.key.is_empty() {
            return Ok(None);
        }
        let reply = self.client.send(&call, &mut [])?;
        match reply.status {
            status if status.is_success() => object_of(&call, &reply.headers).map(Some),
            StatusCode::NOT_FOUND => Ok(None),
            status => {
                // Such a reply has no text that says what is wrong: a reply to GET has.
                let again =
                    Call::new(&KIND, call.operation, Method::GET, path)?.with("range", "bytes=0-0");
                if self.found(&again)?.is_none() {
                    return Ok(None); // it went between the two
                }
                let message = format!("the store answered {status}");
                Err(Error::new(Kind::Io, call.operation, message)
                    .with_path(path)
                    .retryable_error())
            }
        }
    }

    fn list(&self, directory: &Path, from: Option<&str>) -> Result<Page> {
        let call = Call::new(&KIND, "list a directory", Method::GET, directory)?.of_bucket();
        let call = match from {
            Some(token) => call.ask("continuation-token", token),
            None => call,
        };
        self.page(directory, call)
    }

    fn list_after(&self, directory: &Path, name: &str) -> Result<Option<Page>> {
        let call = Call::new(&KIND, "list a directory", Method::GET, directory)?.of_bucket();
        let key = call.prefix() + name;
        let page = self.page(directory, call.ask("start-after", &key))?;
        Ok(Some(page))
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
        let mut call = Call::new(&KIND, "read the input", Method::GET, path)?
            .with("range", &format!("bytes={offset}-{}", offset + last));
        if let Some(etag) = version.text() {
            call = call.with("if-match", &format!("\"{etag}\""));
        }
        let reply = self.client.send(&call, buffer)?;
        let etag = etag_of(&reply.headers);
        let read = call.read_of(&reply, (version, etag.as_deref()), (offset, last + 1))?;
        read.ok_or_else(|| failure(self.client.place(), &call, &reply).with("offset", offset))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        let call = Call::new(&KIND, "remove", Method::DELETE, path)?;
        self.found(&call).map(drop)
    }

    fn begin(&self, path: &Path) -> Result<String> {
        let call = Call::new(&KIND, "create the output", Method::POST, path)?
            .ask("uploads", "")
            .with("x-amz-checksum-algorithm", "CRC32")
            .with(CRC_OF, WHOLE);
        let started: Started = replies::read(&call, &self.done(&call)?.body)?;
        Ok(started.upload_id)
    }

    fn put(&self, path: &Path, object: &Part) -> Result<()> {
        let call = Call::new(&KIND, "write the output", Method::PUT, path)?;
        self.sent(call, object).map(drop)
    }

    fn copies(&self, _from: &Path, _to: &Path) -> Option<StoreCopies> {
        Some(StoreCopies {
            whole_bytes: COPIED_WHOLE_BYTES,
            takes_sums: true,
        })
    }

    fn copy(
        &self,
        from: &Path,
        source: &Object,
        to: &Path,
        _token: Option<&str>,
    ) -> Result<Option<String>> {
        let call =
            Call::new(&KIND, COPY, Method::PUT, to)?.with("x-amz-checksum-algorithm", "CRC32");
        self.copied(call, from, source).map(|_body| None)
    }

    fn copy_part(
        &self,
        to: &Path,
        id: &str,
        number: u32,
        of: SourceRange<'_>,
    ) -> Result<UploadPart> {
        let call = Call::new(&KIND, COPY, Method::PUT, to)?
            .ask("partNumber", &number.to_string())
            .ask("uploadId", id)
            .with("x-amz-copy-source-range", &of.text());
        let reply = self.copied(call.clone(), of.path, of.object)?;
        let made: CopiedPart = replies::read(&call, &reply)?;
        let bytes = of.bytes();
        match made.checksum.as_deref().and_then(crc_in) {
            // Some servers say of a part what is true of its source.
            Some(crc) if bytes == of.object.bytes || Some(crc) != of.object.crc => Ok(UploadPart {
                bytes,
                crc,
                etag: unquoted(&made.etag),
            }),
            _ => {
                let message = "the store does not say what the bytes of a part are that it copied";
                Err(Error::new(Kind::Io, COPY, message).with_path(to))
            }
        }
    }

    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart> {
        let call = Call::new(&KIND, "write the output", Method::PUT, path)?
            .ask("partNumber", &number.to_string())
            .ask("uploadId", id);
        let sent = self.sent(call, part);
        sent.map_err(|error| error.with("part", number))
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        let base = Call::new(&KIND, "look at an upload", Method::GET, path)?.ask("uploadId", id);
        let (mut parts, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut call = base.clone();
            if let Some(after) = &after {
                call = call.ask("part-number-marker", after);
            }
            let Some(reply) = self.found(&call)? else {
                return Ok(None);
            };
            let page: Parts = replies::read(&call, &reply.body)?;
            parts.extend(page.parts.into_iter().map(|part| KeptPart {
                bytes: part.size,
                etag: unquoted(&part.etag),
            }));
            match page.next_part_number_marker {
                Some(next) if page.is_truncated => after = Some(next),
                _ => return Ok(Some(parts)),
            }
        }
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        let mut call = Call::new(
            &KIND,
            "publish the output",
            Method::POST,
            upload.path.as_typed(),
        )?
        .ask("uploadId", &upload.id)
        .with("content-type", "application/xml")
        .with(CRC, &show_crc(upload.crc()))
        .with(CRC_OF, WHOLE);
        call.body = CompleteMultipartUpload::text(upload).into();
        let reply = self.done(&call)?;
        // The store begins its reply before it is done: what went wrong since stands in the text.
        if replies::is_failure(&reply.body) {
            return Err(failure(self.client.place(), &call, &reply));
        }
        Ok(())
    }

    fn completes_alone(&self) -> bool {
        true
    }

    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        let call = Call::new(&KIND, "end an upload", Method::DELETE, path)?.ask("uploadId", id);
        self.found(&call).map(drop)
    }

    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        let base = Call::new(&KIND, "look for uploads", Method::GET, path)?.of_bucket();
        let (mut uploads, mut after) = (Vec::new(), None::<(String, String)>);
        loop {
            let mut call = base
                .clone()
                .ask("uploads", "")
                .ask("encoding-type", "url")
                .ask("prefix", &base.key);
            if let Some((key, id)) = &after {
                call = call.ask("key-marker", key).ask("upload-id-marker", id);
            }
            let page: Uploads = replies::read(&call, &self.done(&call)?.body)?;
            for (key, id) in page.named() {
                if key == base.key || key.starts_with(&base.prefix()) {
                    let path = format!("{SCHEME}://{}/{key}", base.bucket);
                    uploads.push((path.into(), id));
                }
            }
            after = page.next();
            if after.is_none() {
                return Ok(uploads);
            }
        }
    }
}

fn object_of(call: &Call<'_>, headers: &HeaderMap) -> Result<Object> {
    let bytes = header(headers, "content-length").and_then(|length| length.parse().ok());
    match (bytes, etag_of(headers)) {
        (Some(bytes), Some(version)) => {
            let crc = crc_of(headers).filter(|_| header(headers, CRC_OF) != Some("COMPOSITE"));
            Ok(Object {
                bytes,
                modified_ns: header(headers, "last-modified").map_or(0, seconds_ns),
                version,
                crc,
                sum: crc.map(show_crc),
            })
        }
        _ => {
            let message = "the store says neither how long it is nor of which version";
            Err(Error::new(Kind::Io, call.operation, message).with_path(call.path))
        }
    }
}

/// A time as replies have it, in headers or in listings, in nanoseconds since the epoch. Headers have whole seconds.
fn seconds_ns(text: &str) -> i128 {
    let found = DateTime::parse_from_rfc2822(text).or_else(|_| DateTime::parse_from_rfc3339(text));
    found.map_or(0, |when| i128::from(when.timestamp()) * 1_000_000_000)
}

fn etag_of(headers: &HeaderMap) -> Option<String> {
    header(headers, "etag").map(unquoted)
}

fn unquoted(etag: &str) -> String {
    etag.trim_matches('"').to_owned()
}

/// The CRC-32 in a reply. That of parts (`CRC-3`) is none of bytes.
fn crc_of(headers: &HeaderMap) -> Option<u32> {
    crc_in(header(headers, CRC)?)
}

fn crc_in(text: &str) -> Option<u32> {
    let bytes = BASE64.decode(text).ok()?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn show_crc(crc: u32) -> String {
    BASE64.encode(crc.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::http_client::bytes_of_range;

    #[test]
    fn times_of_headers_and_of_listings_are_the_same() {
        let wanted = 1_255_369_830_000_000_000;
        assert_eq!(seconds_ns("Mon, 12 Oct 2009 17:50:30 GMT"), wanted);
        assert_eq!(seconds_ns("2009-10-12T17:50:30.987Z"), wanted);
        assert_eq!(seconds_ns("yesterday"), 0);
    }

    #[test]
    fn headers_say_which_bytes_came_and_their_crc() {
        let mut headers = HeaderMap::new();
        assert_eq!(
            (bytes_of_range(&headers, 5), crc_of(&headers)),
            (None, None)
        );
        headers.insert("content-range", "bytes 5-9/100".parse().unwrap());
        assert_eq!(
            (bytes_of_range(&headers, 5), bytes_of_range(&headers, 4)),
            (Some(5), None)
        );
        for (text, crc) in [
            (&*show_crc(0xcbf4_3926), Some(0xcbf4_3926)),
            ("y/Q5Jg==-3", None),
        ] {
            headers.insert(CRC, text.parse().unwrap());
            assert_eq!(crc_of(&headers), crc, "{text}");
        }
    }
}
