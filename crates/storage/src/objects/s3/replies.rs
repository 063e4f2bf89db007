//! What replies of S3 say, in XML.

use std::fmt::Write as _;

use percent_encoding::percent_decode_str;
use quick_xml::de::from_reader;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::objects::call::Call;
use crate::objects::{DIRECTORY, Upload};
use crate::version::identity_of;
use crate::{FileKind, Stat};
use gristmill_base::error::{Error, Kind, Result};

/// A page of a listing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListingPage {
    #[serde(default)]
    contents: Vec<ListedObject>,
    #[serde(default)]
    common_prefixes: Vec<Prefix>,
    encoding_type: Option<String>,
    #[serde(default)]
    pub is_truncated: bool,
    pub next_continuation_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedObject {
    key: String,
    size: Option<u64>,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    last_modified: Option<String>,
}

impl ListedObject {
    /// The object's state, if the listing says enough.
    fn stat(&self) -> Option<Stat> {
        let version = super::unquoted(self.etag.as_deref().filter(|etag| !etag.is_empty())?);
        let modified = self.last_modified.as_deref();
        Some(Stat {
            kind: FileKind::File,
            bytes: self.size?,
            modified_ns: modified.map_or(0, super::seconds_ns),
            identity: identity_of(&version),
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Prefix {
    prefix: String,
}

impl ListingPage {
    /// The keys of objects with their states, and what stands for directories, in the order of the keys: each kind is in
    /// order as it comes, and a store that has another order is left as it is.
    pub fn named(&self) -> impl Iterator<Item = (String, Option<Stat>)> {
        let encoding = self.encoding_type.as_deref();
        let objects = self.contents.iter();
        let objects = objects.map(move |listed| (plain(&listed.key, encoding), listed.stat()));
        let prefixes = self.common_prefixes.iter();
        let prefixes =
            prefixes.map(move |prefix| (plain(&prefix.prefix, encoding), Some(DIRECTORY)));
        let (mut objects, mut prefixes) = (objects.peekable(), prefixes.peekable());
        std::iter::from_fn(move || match (objects.peek(), prefixes.peek()) {
            (Some((object, _)), Some((prefix, _))) if prefix < object => prefixes.next(),
            (Some(_), _) => objects.next(),
            (None, _) => prefixes.next(),
        })
    }
}

/// An upload that was begun.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Started {
    pub upload_id: String,
}

/// A page of the parts of an upload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Parts {
    #[serde(default, rename = "Part")]
    pub parts: Vec<ListedPart>,
    #[serde(default)]
    pub is_truncated: bool,
    pub next_part_number_marker: Option<String>,
}

/// A part of an upload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListedPart {
    #[serde(rename = "ETag")]
    pub etag: String,
    pub size: u64,
}

/// A part that the store made of an object.
#[derive(Debug, Deserialize)]
pub struct CopiedPart {
    #[serde(rename = "ETag")]
    pub etag: String,
    #[serde(rename = "ChecksumCRC32")]
    pub checksum: Option<String>,
}

/// A page of uploads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Uploads {
    #[serde(default, rename = "Upload")]
    uploads: Vec<ListedUpload>,
    encoding_type: Option<String>,
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
}

impl Uploads {
    /// Where uploads go, and their names.
    pub fn named(&self) -> impl Iterator<Item = (String, String)> {
        let encoding = self.encoding_type.as_deref();
        let uploads = self.uploads.iter();
        uploads.map(move |upload| (plain(&upload.key, encoding), upload.upload_id.clone()))
    }

    /// After which upload the next page begins.
    pub fn next(&self) -> Option<(String, String)> {
        let key = self
            .next_key_marker
            .as_ref()
            .filter(|_| self.is_truncated)?;
        let id = self.next_upload_id_marker.clone().unwrap_or_default();
        Some((plain(key, self.encoding_type.as_deref()), id))
    }
}

/// An upload that is under way.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUpload {
    key: String,
    upload_id: String,
}

/// Why a request was refused.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Refusal {
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub message: String,
    pub region: Option<String>,
    /// Where the store wants to be asked.
    pub endpoint: Option<String>,
}

/// The parts that are to become an object.
#[derive(Debug, Serialize)]
pub struct CompleteMultipartUpload;

impl CompleteMultipartUpload {
    /// As the store wants it.
    pub fn text(upload: &Upload) -> String {
        let mut text =
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                .to_owned();
        for (index, part) in upload.parts.iter().enumerate() {
            let (etag, crc) = (
                quick_xml::escape::escape(&*part.etag),
                super::show_crc(part.crc),
            );
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "<Part><PartNumber>{}</PartNumber><ETag>&quot;{etag}&quot;</ETag><ChecksumCRC32>{crc}</ChecksumCRC32></Part>",
                index + 1
            );
        }
        text + "</CompleteMultipartUpload>"
    }
}

/// Reads a reply.
pub fn read<T: DeserializeOwned>(call: &Call<'_>, text: &[u8]) -> Result<T> {
    from_reader(text).map_err(|error| {
        let message = format!("the store's reply is not understood: {error}");
        Error::new(Kind::Io, call.operation, message)
            .with_path(call.path)
            .advise("check that the endpoint is one of S3 (AWS_ENDPOINT_URL)")
    })
}

/// Whether a reply says that the request failed.
pub fn is_failure(text: &[u8]) -> bool {
    refusal(text).is_some_and(|refusal| !refusal.code.is_empty())
}

/// Why a request was refused, where the reply says so.
pub fn refusal(text: &[u8]) -> Option<Refusal> {
    from_reader(text).ok()
}

/// A key as it is: listings are asked for encoded ones, as XML has no words for some characters. Not all servers care.
fn plain(key: &str, encoding: Option<&str>) -> String {
    if encoding != Some("url") {
        return key.to_owned();
    }
    let key = key.replace('+', " ");
    percent_decode_str(&key).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_hold_encoded_keys_and_prefixes() {
        let text = r#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Name>b</Name><Contents><Key>a%2Bb+c</Key><Size>7</Size><ETag>"x"</ETag>
            <LastModified>1970-01-01T00:00:02.500Z</LastModified></Contents><CommonPrefixes><Prefix>d/</Prefix>
            </CommonPrefixes><EncodingType>url</EncodingType><Contents><Key>e</Key></Contents><IsTruncated>true</IsTruncated>
            <NextContinuationToken>next</NextContinuationToken></ListBucketResult>"#;
        let found: ListingPage = from_reader(text.as_bytes()).unwrap();
        let (keys, stats): (Vec<String>, Vec<Option<Stat>>) = found.named().unzip();
        assert_eq!(keys, ["a+b c", "d/", "e"]);
        let whole = stats[0].unwrap();
        assert_eq!((whole.bytes, whole.modified_ns), (7, 2_000_000_000));
        assert_eq!(whole.identity, identity_of("x"));
        assert_eq!(stats[1..], [Some(DIRECTORY), None]);
        assert!(found.is_truncated && found.next_continuation_token.as_deref() == Some("next"));
        let found: ListingPage = from_reader(&b"<ListBucketResult/>"[..]).unwrap();
        assert_eq!(found.named().count(), 0);
    }

    #[test]
    fn a_reply_of_success_may_say_that_it_failed() {
        assert!(is_failure(
            b"<Error><Code>InternalError</Code><Message>no</Message></Error>"
        ));
        assert!(!is_failure(
            b"<CompleteMultipartUploadResult><ETag>a</ETag></CompleteMultipartUploadResult>"
        ));
        assert!(!is_failure(b""));
        assert_eq!(plain("100%25%C3%BC%", Some("url")), "100%\u{fc}%");
        assert_eq!(plain("100%25", None), "100%25");
    }
}
