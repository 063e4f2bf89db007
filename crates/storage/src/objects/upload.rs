//! A file that is sent in parts and not there yet: what the store said of each part, and what the whole will be.

use bytes::Bytes;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::Object;
use crate::location::Location;

/// Bytes to send as a part of an upload; clones share them.
#[derive(Debug, Clone)]
pub struct Part {
    /// The bytes.
    pub data: Bytes,
    /// Their CRC-32.
    pub crc: u32,
}

impl Part {
    /// A part of these bytes.
    pub fn new(data: Bytes) -> Self {
        let crc = crc32fast::hash(&data);
        Part { data, crc }
    }
}

/// A part of an upload, by what the store said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadPart {
    /// Its length.
    pub bytes: u64,
    /// The CRC-32 of its bytes.
    pub crc: u32,
    /// By what the store knows it: its ETag.
    pub etag: String,
}

/// A part that a store says that an upload has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPart {
    /// Its length.
    pub bytes: u64,
    /// Its ETag.
    pub etag: String,
}

/// A file that is uploaded and not there yet: all that it takes to complete it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// Where the object will be.
    pub path: Location,
    /// The upload's name.
    pub id: String,
    /// Its parts, in order.
    pub parts: Vec<UploadPart>,
}

impl Upload {
    /// The object's length.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The CRC-32 of the object's bytes.
    pub fn crc(&self) -> u32 {
        let mut whole = crc32fast::Hasher::new();
        for part in &self.parts {
            let of_part = crc32fast::Hasher::new_with_initial_len(part.crc, part.bytes);
            whole.combine(&of_part);
        }
        whole.finalize()
    }

    /// The ETag that stores without CRCs give the object: the MD5 of the MD5s of its parts, and their number. Nothing
    /// where the ETags of the parts are not their MD5s.
    ///
    /// ```
    /// use gristmill_storage::objects::{Upload, UploadPart};
    /// let part = |etag: &str| UploadPart { bytes: 1, crc: 0, etag: etag.into() };
    /// let parts = vec![part("0cc175b9c0f1b6a831c399e269772661"), part("92eb5ffee6ae2fec3ad71c777531578f")];
    /// let upload = Upload { path: "s3://b/a".into(), id: "1".into(), parts };
    /// assert_eq!(upload.etag().as_deref(), Some("96e024ba2074fe77e8e965ba43a704be-2"));
    /// ```
    pub fn etag(&self) -> Option<String> {
        let mut whole = Md5::new();
        for part in &self.parts {
            whole.update(u128::from_str_radix(&part.etag, 16).ok()?.to_be_bytes());
        }
        Some(format!(
            "{}-{}",
            hex::encode(whole.finalize()),
            self.parts.len()
        ))
    }

    /// Whether an object is what this upload makes: of its length, and its CRC-32; in stores without CRCs, its ETag, or the
    /// version that its one part had.
    pub fn made(&self, object: &Object) -> bool {
        let is_same = match object.crc {
            Some(crc) => crc == self.crc(),
            None => {
                let is_one = matches!(&*self.parts, [part] if part.etag == object.version);
                is_one || self.etag().as_ref() == Some(&object.version)
            }
        };
        object.bytes == self.bytes() && is_same
    }

    /// Whether the parts that a store has are those that were sent.
    pub fn is_kept(&self, kept: &[KeptPart]) -> bool {
        let sent = self.parts.iter().map(|part| (part.bytes, &part.etag));
        sent.eq(kept.iter().map(|part| (part.bytes, &part.etag)))
    }
}
