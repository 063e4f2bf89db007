//! What replies of Azure say, in XML.

use chrono::DateTime;
use percent_encoding::percent_decode_str;
use quick_xml::de::from_reader;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::objects::call::Call;
use crate::version::identity_of;
use crate::{FileKind, Stat};
use gristmill_base::error::{Error, Kind, Result};

/// A page of a listing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BlobPage {
    #[serde(default)]
    pub blobs: Blobs,
    next_marker: Option<String>,
}

impl BlobPage {
    /// Where the next page begins.
    pub fn next(&mut self) -> Option<String> {
        self.next_marker.take().filter(|next| !next.is_empty())
    }
}

/// What it names.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Blobs {
    #[serde(default, rename = "Blob")]
    pub blobs: Vec<ListedBlob>,
    #[serde(default, rename = "BlobPrefix")]
    pub prefixes: Vec<BlobPrefix>,
}

/// The beginning of longer names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BlobPrefix {
    pub name: BlobName,
}

/// A blob.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListedBlob {
    pub name: BlobName,
    properties: BlobProperties,
    metadata: Option<BlobMetadata>,
}

/// A name, encoded where XML has no words for what is in it.
#[derive(Debug, Deserialize)]
pub struct BlobName {
    #[serde(default, rename = "@Encoded")]
    encoded: bool,
    #[serde(default, rename = "$text")]
    text: String,
}

impl BlobName {
    /// As it is.
    pub fn plain(&self) -> String {
        match self.encoded {
            false => self.text.clone(),
            true => percent_decode_str(&self.text)
                .decode_utf8_lossy()
                .into_owned(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BlobProperties {
    #[serde(rename = "Content-Length")]
    length: Option<u64>,
    #[serde(rename = "Last-Modified")]
    modified: Option<String>,
    etag: Option<String>,
    resource_type: Option<String>,
}

#[derive(Debug, Deserialize)]
struct BlobMetadata {
    hdi_isfolder: Option<String>,
}

impl ListedBlob {
    /// Whether it stands for a directory, as Hadoop's client and hierarchical accounts have them.
    pub fn is_directory(&self) -> bool {
        let metadata = self.metadata.as_ref();
        let marked = metadata.and_then(|metadata| metadata.hdi_isfolder.as_deref());
        marked == Some("true") || self.properties.resource_type.as_deref() == Some("directory")
    }

    /// Its state, if the listing says enough.
    pub fn stat(&self) -> Option<Stat> {
        let modified = self.properties.modified.as_deref();
        Some(Stat {
            kind: FileKind::File,
            bytes: self.properties.length?,
            modified_ns: modified.map_or(0, time_ns),
            identity: identity_of(unquoted(self.properties.etag.as_deref()?)),
        })
    }
}

/// The blocks of a blob that are in no version of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BlockList {
    #[serde(default)]
    pub uncommitted_blocks: Blocks,
}

/// Blocks.
#[derive(Debug, Default, Deserialize)]
pub struct Blocks {
    #[serde(default, rename = "Block")]
    pub blocks: Vec<Block>,
}

/// A block.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Block {
    pub name: String,
    pub size: u64,
}

/// Why a request was refused.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AzureRefusal {
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub message: String,
}

/// Reads a reply, which may begin with a byte order mark.
pub fn read<T: DeserializeOwned>(call: &Call<'_>, text: &[u8]) -> Result<T> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    from_reader(text).map_err(|error| {
        let message = format!("the store's reply is not understood: {error}");
        Error::new(Kind::Io, call.operation, message)
            .with_path(call.path)
            .advise("check that the endpoint is one of Azure's blobs (AZURE_STORAGE_ENDPOINT)")
    })
}

/// An ETag without its quotes: headers have them, listings have none.
pub fn unquoted(etag: &str) -> &str {
    etag.trim_matches('"')
}

/// A time, in nanoseconds since the epoch. It has whole seconds.
pub fn time_ns(text: &str) -> i128 {
    let found = DateTime::parse_from_rfc2822(text);
    found.map_or(0, |when| i128::from(when.timestamp()) * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_hold_names_and_directories() {
        let text = r#"<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="x" ContainerName="c">
            <Blobs><Blob><Name>a &amp; b</Name><Properties><Last-Modified>Mon, 12 Oct 2009 17:50:30 GMT</Last-Modified>
            <Etag>0x8D</Etag><Content-Length>7</Content-Length></Properties><Metadata/></Blob><BlobPrefix><Name>d/</Name>
            </BlobPrefix><Blob><Name Encoded="true">e%EF%BF%BE</Name><Properties><Content-Length>0</Content-Length>
            </Properties><Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob></Blobs><NextMarker>n</NextMarker>
            </EnumerationResults>"#;
        let mut found: BlobPage = from_reader(text.as_bytes()).unwrap();
        let names = found.blobs.blobs.iter().map(|blob| blob.name.plain());
        assert_eq!(names.collect::<Vec<_>>(), ["a & b", "e\u{fffe}"]);
        assert_eq!(found.blobs.prefixes[0].name.plain(), "d/");
        let stat = found.blobs.blobs[0].stat().unwrap();
        assert_eq!(
            (stat.bytes, stat.modified_ns),
            (7, 1_255_369_830_000_000_000)
        );
        assert!(found.blobs.blobs[1].is_directory() && !found.blobs.blobs[0].is_directory());
        assert_eq!(found.next().as_deref(), Some("n"));
    }

    #[test]
    fn an_empty_listing_is_one() {
        let text = b"<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>";
        let mut found: BlobPage = from_reader(&text[..]).unwrap();
        assert!(found.blobs.blobs.is_empty() && found.next().is_none());
    }
}
