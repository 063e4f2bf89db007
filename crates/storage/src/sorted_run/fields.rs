//! The fields of a run file: bytes in a row, and what is wrong with them.

use gristmill_base::error::{Error, Kind, Result};

/// The version of runs that are not compressed.
pub(super) const PLAIN: u32 = 1;

/// The version of those that are.
pub(super) const COMPRESSED: u32 = 2;

/// Why bytes are no part of a sound run file: the reader adds the file.
pub(super) fn damaged(message: impl Into<String>) -> Error {
    Error::new(Kind::Io, "read a run file", message)
        .retryable_error()
        .of_own_work()
}

/// The error of a CRC that does not agree.
pub(super) fn crc_differs(what: &str, expected: u32, found: u32) -> Error {
    damaged(format!("its {what} is damaged"))
        .with("expected CRC", format!("{expected:08x}"))
        .with("found CRC", format!("{found:08x}"))
}

/// Refuses what another version of the program wrote, by name.
pub(super) fn check_version(version: u32) -> Result<()> {
    if [PLAIN, COMPRESSED].contains(&version) {
        return Ok(());
    }
    let message =
        format!("run file version {version}; this program reads versions {PLAIN} and {COMPRESSED}");
    Err(Error::new(Kind::BadInput, "read a run file", message)
        .advise("finish the job with the version of Gristmill that began it, or start it anew"))
}

/// Puts fields into bytes that are zero at first, one behind the other.
pub(super) struct FieldWriter<'a>(pub(super) &'a mut [u8]);

impl FieldWriter<'_> {
    pub(super) fn put(&mut self, field: &[u8]) {
        let (place, rest) = std::mem::take(&mut self.0).split_at_mut(field.len());
        place.copy_from_slice(field);
        self.0 = rest;
    }
}

/// Takes fields from bytes, one behind the other.
pub(super) struct FieldReader<'a>(pub(super) &'a [u8]);

impl FieldReader<'_> {
    pub(super) fn bytes<const BYTES: usize>(&mut self) -> Result<[u8; BYTES]> {
        let (field, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| damaged("it ends inside a field"))?;
        self.0 = rest;
        Ok(*field)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    pub(super) fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.bytes()?))
    }
}
