//! The header of a run file: what its records are, whose it is, how it is compressed.

use super::compression::{BLOCK_BYTES, RunCompression};
use super::fields::{
    COMPRESSED, FieldReader, FieldWriter, PLAIN, check_version, crc_differs, damaged,
};
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::{Fixed, Keyed, LineShape, PairShape, ShapeKind};

/// Bytes of the header; the data begin here.
pub const HEADER_BYTES: usize = crate::BLOCK_BYTES;

/// Most bytes of a job's id, so that it fits the header with room to spare.
pub const JOB_ID_BYTES_MAX: usize = 256;

const HEADER_MAGIC: [u8; 8] = *b"GRISTRUN";

/// Where the job's id stands in the header.
const JOB_ID_AT: usize = 56;

/// Where the header says how blocks are compressed.
const COMPRESSION_AT: usize = HEADER_BYTES - 8;

/// Where the header's CRC stands: behind all that it covers.
const HEADER_CRC_AT: usize = HEADER_BYTES - 4;

/// What a run file says of itself before its first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeader {
    /// What its records are.
    pub shape: ShapeKind,
    /// The job it was made for.
    pub job_id: String,
    /// The number of the run in that job.
    pub number: u64,
    /// How its blocks are compressed.
    pub compression: RunCompression,
}

impl RunHeader {
    /// The first bytes of the file. A job's id of more than [`JOB_ID_BYTES_MAX`] is refused.
    pub(super) fn encode(&self) -> Result<Box<[u8; HEADER_BYTES]>> {
        if self.job_id.len() > JOB_ID_BYTES_MAX {
            let message = format!("a job's id has at most {JOB_ID_BYTES_MAX} bytes");
            return Err(Error::bug("write a run file", message).with("job", &self.job_id));
        }
        let (kind, record_bytes, key_bytes, descending) = match self.shape {
            ShapeKind::Fixed(fixed) => (1, fixed.record_bytes, fixed.key_bytes, fixed.descending),
            ShapeKind::Lines(lines) => (2, 0, 0, lines.descending),
            ShapeKind::Pairs(_) => (3, 0, 0, false),
            ShapeKind::Keyed(keyed) => (4, 0, usize::from(keyed.whole_lines), false),
        };
        let mut header = Box::new([0; HEADER_BYTES]);
        let mut fields = FieldWriter(header.as_mut_slice());
        let (version, code) = version_and_code(self.compression);
        fields.put(&HEADER_MAGIC);
        fields.put(&version.to_le_bytes());
        fields.put(&u32::to_le_bytes(kind));
        fields.put(&(record_bytes as u64).to_le_bytes());
        fields.put(&(key_bytes as u64).to_le_bytes());
        fields.put(&u32::from(descending).to_le_bytes());
        fields.put(&(BLOCK_BYTES as u32).to_le_bytes());
        fields.put(&self.number.to_le_bytes());
        fields.put(&(self.job_id.len() as u64).to_le_bytes());
        fields.put(self.job_id.as_bytes());
        header[COMPRESSION_AT..HEADER_CRC_AT].copy_from_slice(&code.to_le_bytes());
        let crc = crc32fast::hash(&header[..HEADER_CRC_AT]);
        header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        Ok(header)
    }

    /// Reads the first bytes of a file; also returns their CRC.
    pub(super) fn decode(header: &[u8; HEADER_BYTES]) -> Result<(Self, u32)> {
        let mut fields = FieldReader(header);
        if fields.bytes()? != HEADER_MAGIC {
            return Err(damaged("it does not begin as a run file"));
        }
        let version = fields.u32()?;
        check_version(version)?; // first of all: other versions may have other fields
        let (covered, crc) = header.split_at(HEADER_CRC_AT);
        let (expected, found) = (FieldReader(crc).u32()?, crc32fast::hash(covered));
        if expected != found {
            return Err(crc_differs("header", expected, found));
        }
        let kind = fields.u32()?;
        let (record_bytes, key_bytes) = (fields.u64()? as usize, fields.u64()? as usize);
        let (descending, block_bytes) = (fields.u32()?, fields.u32()?);
        let number = fields.u64()?;
        let job_id_bytes = fields.u64()?;
        let code = FieldReader(&header[COMPRESSION_AT..]).u32()?;
        let compression = [
            RunCompression::None,
            RunCompression::Lz4,
            RunCompression::Zstd,
        ]
        .into_iter()
        .find(|compression| version_and_code(*compression) == (version, code))
        .ok_or_else(|| damaged("its header does not say how it is compressed"))?;
        if block_bytes as usize != BLOCK_BYTES || descending > 1 {
            return Err(damaged("its header has values that no header has"));
        }
        let shape = shape_of(kind, record_bytes, key_bytes, descending == 1)?;
        let job_id = usize::try_from(job_id_bytes)
            .ok()
            .filter(|bytes| *bytes <= JOB_ID_BYTES_MAX)
            .and_then(|bytes| header.get(JOB_ID_AT..JOB_ID_AT + bytes))
            .and_then(|bytes| str::from_utf8(bytes).ok())
            .ok_or_else(|| damaged("its header names no job"))?;
        let job_id = job_id.to_owned();
        Ok((
            RunHeader {
                shape,
                job_id,
                number,
                compression,
            },
            found,
        ))
    }
}

/// The version of a run whose blocks are compressed so, and what its header says of that.
fn version_and_code(compression: RunCompression) -> (u32, u32) {
    match compression {
        RunCompression::None => (PLAIN, 0),
        RunCompression::Lz4 => (COMPRESSED, 1),
        RunCompression::Zstd => (COMPRESSED, 2),
    }
}

fn shape_of(
    kind: u32,
    record_bytes: usize,
    key_bytes: usize,
    descending: bool,
) -> Result<ShapeKind> {
    match (kind, record_bytes) {
        (1, 1..) if key_bytes <= record_bytes => Ok(ShapeKind::Fixed(Fixed {
            record_bytes,
            key_bytes,
            descending,
        })),
        (2, 0) if key_bytes == 0 => Ok(ShapeKind::Lines(LineShape { descending })),
        (3, 0) if key_bytes == 0 && !descending => Ok(ShapeKind::Pairs(PairShape)),
        (4, 0) if key_bytes <= 1 && !descending => Ok(ShapeKind::Keyed(Keyed {
            whole_lines: key_bytes == 1,
        })),
        _ => Err(damaged("its header describes no records")),
    }
}
