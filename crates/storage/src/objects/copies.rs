//! What is known of copies that a store makes of its own objects: how it makes them, how long their parts are, and what proves them.
//!
//! The rule that must hold: a copy is proved where the store says of both objects what their bytes are, and says the same: by a sum that it
//! has taken itself, or by a version that follows from the bytes. Of a store that takes sums nothing else counts: an object of which it
//! says nothing is not copied so.
//!
//! Decision: docs/decisions/copies.md.

use std::path::Path;

use super::{Object, part_bytes};
use gristmill_base::error::Result;

/// A part of a copy has this many bytes at least: seconds of a store that copies 50 MB a second.
const COPIED_PART_BYTES: u64 = 64 << 20;

/// How a store copies its own objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreCopies {
    /// The longest that [`Objects::copy`](super::Objects::copy) makes; longer ones are copied in parts.
    pub whole_bytes: u64,
    /// It takes sums of what its objects hold.
    pub takes_sums: bool,
}

impl StoreCopies {
    /// Parts of a copy of so many bytes; none where it is copied whole.
    pub fn parts(self, bytes: u64) -> u64 {
        match bytes <= self.whole_bytes {
            true => 0,
            false => bytes.div_ceil(copied_part_bytes(bytes)),
        }
    }
}

/// A copy that a store has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreCopy {
    /// The CRC-32 of its bytes, where that is known.
    pub crc: Option<u32>,
    /// The store says of both objects that they have the same bytes.
    pub is_proved: bool,
}

/// A range of an object, which is to become a part of another one.
#[derive(Debug, Clone, Copy)]
pub struct SourceRange<'a> {
    /// Where the object is.
    pub path: &'a Path,
    /// Which version.
    pub object: &'a Object,
    /// Its first byte.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
}

impl SourceRange<'_> {
    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// As headers have it.
    pub fn text(&self) -> String {
        format!("bytes={}-{}", self.start, self.end.saturating_sub(1))
    }
}

/// Hears how many bytes more are copied; an error where the copy should end.
pub type Passed<'a> = &'a mut dyn FnMut(u64) -> Result<()>;

const fn copied_part_bytes(bytes: u64) -> u64 {
    let least = part_bytes(bytes);
    if least > COPIED_PART_BYTES {
        least
    } else {
        COPIED_PART_BYTES
    }
}

impl Object {
    /// Whether its version follows from its bytes: an MD5; or that of the MD5s of its parts, and their number.
    fn parts_of_version(&self) -> Option<u64> {
        let (digits, parts) = match self.version.split_once('-') {
            Some((digits, parts)) => (digits, parts.parse().ok()?),
            None => (&*self.version, 0),
        };
        let is_md5 = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_md5.then_some(parts)
    }

    /// Whether the store says that both have the same bytes; nothing where it does not say.
    pub fn has_bytes_of(&self, other: &Object) -> Option<bool> {
        let is_same = match (&self.sum, &other.sum) {
            _ if self.bytes != other.bytes => false,
            (Some(sum), Some(of_other)) => sum == of_other,
            _ if self.parts_of_version().is_some() && self.version == other.version => true,
            _ => return None,
        };
        Some(is_same)
    }

    /// Bytes of each part of a copy of this, or all where it is copied whole; nothing where the copy could not be proved.
    pub(super) fn copied_by(&self, copies: StoreCopies) -> Option<u64> {
        let is_short = self.bytes <= copies.whole_bytes;
        let cut = part_bytes(self.bytes);
        match self.parts_of_version() {
            _ if self.sum.is_some() || !copies.takes_sums => Some(match is_short {
                true => self.bytes,
                false => copied_part_bytes(self.bytes),
            }),
            Some(0) => is_short.then_some(self.bytes),
            // Cut as it was, the copy has the same version.
            Some(parts) => (parts > 1 && parts == self.bytes.div_ceil(cut)).then_some(cut),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(bytes: u64, version: &str, sum: Option<&str>) -> Object {
        Object {
            bytes,
            modified_ns: 0,
            version: version.to_owned(),
            crc: None,
            sum: sum.map(str::to_owned),
        }
    }

    const MD5: &str = "0cc175b9c0f1b6a831c399e269772661";

    #[test]
    fn an_object_is_copied_so_that_the_copy_can_be_proved() {
        const GB: u64 = 1 << 30;
        let copies = |takes_sums| StoreCopies {
            whole_bytes: GB,
            takes_sums,
        };
        let in_parts = format!("{MD5}-384");
        for (bytes, version, sum, takes_sums, copied) in [
            (GB, "any", Some("1"), true, Some(GB)),
            (GB + 1, "any", Some("1"), true, Some(64 << 20)),
            (5 << 40, "any", Some("1"), true, Some(part_bytes(5 << 40))),
            (GB, MD5, None, true, Some(GB)),
            (GB + 1, MD5, None, true, None), // in parts it would have another version
            (3 * GB, &in_parts, None, true, Some(8 << 20)),
            (2 * GB, &in_parts, None, true, None), // it was cut otherwise
            (GB, "any", None, true, None),
            (3 * GB, "any", None, false, Some(64 << 20)),
        ] {
            let cut = object(bytes, version, sum).copied_by(copies(takes_sums));
            assert_eq!(cut, copied, "{bytes} {version}");
        }
    }

    #[test]
    fn sums_come_before_versions_and_a_version_may_say_nothing() {
        let with = |sum| object(1, MD5, Some(sum));
        let without = |version| object(1, version, None);
        for (one, other, said) in [
            (with("1"), with("1"), Some(true)),
            (with("1"), with("2"), Some(false)),
            (with("1"), without(MD5), Some(true)),
            (without("0x8D"), without("0x8D"), None),
            (with("1"), object(2, MD5, Some("1")), Some(false)),
        ] {
            assert_eq!(one.has_bytes_of(&other), said);
        }
    }
}
