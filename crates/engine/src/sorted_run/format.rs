//! The bytes of a run file that are not records: encoded and decoded without any I/O.
//!
//! ```text
//!   0          4096                      D         I                        F-64       F
//!   | header   | data                    | zeros   | index          | zeros | footer   |
//!   |          | 64 KiB | 64 KiB | rest  |         | bucket ends, block CRCs, totals   |
//!     └CRC       CRC each, in the index   └──────── CRC in the footer ─────┘  └CRC
//! ```
//!
//! D = 4096 + data bytes; I and F are multiples of 4096, so that everything moves past the page cache. Integers
//! are little-endian, CRCs are CRC-32 (IEEE). All places follow from the bytes of data and the number of buckets:
//! a footer that says anything else is damaged, and nothing is allocated before that is known.
//! docs/internals/run-file.md is the same as tables.

use crate::error::{Error, Kind, Result};
use crate::record::shape::{Fixed, Lines, Pairs, ShapeKind};
use crate::storage;

/// The version that this program writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// Bytes of the header; the data begin here.
pub const HEADER_BYTES: usize = storage::BLOCK_BYTES;

/// Bytes of data that share a CRC: a multiple of a device's block, small enough that a bucket's edges cost little
/// to read, and at four bytes of CRC for each, 1/16384 of the data.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Bytes of the footer, the last of the file.
pub const FOOTER_BYTES: usize = 64;

/// Most bytes of a job's id, so that it fits the header with room to spare.
pub const JOB_ID_BYTES_MAX: usize = 256;

const HEADER_MAGIC: [u8; 8] = *b"GRISTRUN";
const FOOTER_MAGIC: [u8; 8] = *b"RUNSOUND";

/// Where the job's id stands in the header.
const JOB_ID_AT: usize = 56;

/// Where the header's CRC stands: behind all that it covers.
const HEADER_CRC_AT: usize = HEADER_BYTES - 4;

/// Where the footer's CRC stands.
const FOOTER_CRC_AT: usize = 48;

/// Bytes of a bucket's end in the index.
const END_BYTES: u64 = 16;

/// Bytes of a block's CRC in the index.
const CRC_BYTES: u64 = 4;

/// Bytes of the totals in the index.
const TOTALS_BYTES: u64 = 32;

/// What a run file says of itself before its first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeader {
    /// What its records are.
    pub shape: ShapeKind,
    /// The job it was made for.
    pub job_id: String,
    /// The number of the run in that job.
    pub number: u64,
}

/// What a run file says of its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIndex {
    /// For each bucket, the bytes of data and the records up to its end.
    pub ends: Vec<(u64, u64)>,
    /// The CRC of each block of data.
    pub block_crcs: Vec<u32>,
    /// All records.
    pub records: u64,
    /// All bytes of data.
    pub data_bytes: u64,
    /// The sum of the CRCs of all records.
    pub checksum: u128,
}

/// The footer: where the index is, and how to know that it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) data_bytes: u64,
    pub(super) buckets: u64,
    pub(super) tail_crc: u32,
    pub(super) header_crc: u32,
}

/// The length of a run file with so many bytes of data and buckets; `None` where no file is that long.
///
/// ```
/// use gristmill_engine::sorted_run::file_bytes;
/// assert_eq!(file_bytes(0, 1), Some(8192));
/// assert_eq!(file_bytes(100_000, 16), Some(4096 + 102_400 + 4096));
/// assert_eq!(file_bytes(u64::MAX, 1), None);
/// ```
pub fn file_bytes(data_bytes: u64, buckets: u64) -> Option<u64> {
    let index = index_bytes(data_bytes, buckets)?.checked_add(FOOTER_BYTES as u64)?;
    let end = index_at(data_bytes)?.checked_add(round_up(index)?)?;
    i64::try_from(end).is_ok().then_some(end) // the largest offset that an operating system takes
}

/// Where the index begins.
pub(super) fn index_at(data_bytes: u64) -> Option<u64> {
    round_up(data_bytes)?.checked_add(HEADER_BYTES as u64)
}

/// Bytes of the index.
fn index_bytes(data_bytes: u64, buckets: u64) -> Option<u64> {
    let crcs = blocks_of(data_bytes) * CRC_BYTES;
    let ends = buckets.checked_mul(END_BYTES)?;
    ends.checked_add(crcs)?.checked_add(TOTALS_BYTES)
}

/// Blocks that so many bytes of data are cut into.
pub(super) fn blocks_of(data_bytes: u64) -> u64 {
    data_bytes.div_ceil(BLOCK_BYTES as u64)
}

fn round_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(storage::BLOCK_BYTES as u64)
}

/// Why bytes are no part of a sound run file: the reader adds the file.
pub(super) fn damaged(message: impl Into<String>) -> Error {
    Error::new(Kind::Io, "read a run file", message)
        .retryable_error()
        .of_own_work()
}

/// The error of a CRC that does not agree.
fn crc_differs(what: &str, expected: u32, found: u32) -> Error {
    damaged(format!("its {what} is damaged"))
        .with("expected CRC", format!("{expected:08x}"))
        .with("found CRC", format!("{found:08x}"))
}

/// Refuses what another version of the program wrote, by name.
fn check_version(version: u32) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    let message = format!("run file version {version}; this program reads version {VERSION}");
    Err(Error::new(Kind::BadInput, "read a run file", message)
        .advise("finish the job with the version of Gristmill that began it, or start it anew"))
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
        };
        let mut header = Box::new([0; HEADER_BYTES]);
        let mut fields = Writer(header.as_mut_slice());
        fields.put(&HEADER_MAGIC);
        fields.put(&VERSION.to_le_bytes());
        fields.put(&u32::to_le_bytes(kind));
        fields.put(&(record_bytes as u64).to_le_bytes());
        fields.put(&(key_bytes as u64).to_le_bytes());
        fields.put(&u32::from(descending).to_le_bytes());
        fields.put(&(BLOCK_BYTES as u32).to_le_bytes());
        fields.put(&self.number.to_le_bytes());
        fields.put(&(self.job_id.len() as u64).to_le_bytes());
        fields.put(self.job_id.as_bytes());
        let crc = crc32fast::hash(&header[..HEADER_CRC_AT]);
        header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        Ok(header)
    }

    /// Reads the first bytes of a file; also returns their CRC.
    pub(super) fn decode(header: &[u8; HEADER_BYTES]) -> Result<(Self, u32)> {
        let mut fields = Reader(header);
        if fields.bytes()? != HEADER_MAGIC {
            return Err(damaged("it does not begin as a run file"));
        }
        check_version(fields.u32()?)?; // first of all: other versions may have other fields
        let (covered, crc) = header.split_at(HEADER_CRC_AT);
        let (expected, found) = (Reader(crc).u32()?, crc32fast::hash(covered));
        if expected != found {
            return Err(crc_differs("header", expected, found));
        }
        let kind = fields.u32()?;
        let (record_bytes, key_bytes) = (fields.u64()? as usize, fields.u64()? as usize);
        let (descending, block_bytes) = (fields.u32()?, fields.u32()?);
        let number = fields.u64()?;
        let job_id_bytes = fields.u64()?;
        if block_bytes as usize != BLOCK_BYTES || descending > 1 {
            return Err(damaged("its header says what no header says"));
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
            },
            found,
        ))
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
        (2, 0) if key_bytes == 0 => Ok(ShapeKind::Lines(Lines { descending })),
        (3, 0) if key_bytes == 0 && !descending => Ok(ShapeKind::Pairs(Pairs)),
        _ => Err(damaged("its header describes no records")),
    }
}

impl RunIndex {
    /// The index of a run whose buckets end so, or why there is no such run.
    pub(super) fn new(
        shape: ShapeKind,
        ends: &[(u64, u64)],
        block_crcs: Vec<u32>,
        data_bytes: u64,
        checksum: u128,
    ) -> Result<Self, String> {
        let mut before = (0, 0);
        for (bucket, end) in ends.iter().enumerate() {
            let bytes = end.0.checked_sub(before.0);
            let records = end.1.checked_sub(before.1);
            let (Some(bytes), Some(records)) = (bytes, records) else {
                return Err(format!("bucket {bucket} ends before it begins"));
            };
            if !may_hold(shape, bytes, records) {
                return Err(format!(
                    "bucket {bucket} has {records} records in {bytes} bytes"
                ));
            }
            before = *end;
        }
        if before.0 != data_bytes {
            let end = before.0;
            return Err(format!(
                "its buckets end at byte {end}, its data at byte {data_bytes}"
            ));
        }
        if checksum > u128::from(u32::MAX) * u128::from(before.1) {
            return Err("its checksum is more than its records can have".to_owned());
        }
        Ok(RunIndex {
            ends: ends.to_vec(),
            block_crcs,
            records: before.1,
            data_bytes,
            checksum,
        })
    }

    /// The CRC of all that it says: two runs that agree in it hold the same records, cut in the same way.
    ///
    /// ```
    /// use gristmill_engine::sorted_run::RunIndex;
    /// let index = |crc| RunIndex { ends: vec![(1, 1)], block_crcs: vec![crc], records: 1, data_bytes: 1, checksum: 9 };
    /// assert_eq!(index(7).crc(), index(7).crc());
    /// assert_ne!(index(7).crc(), index(8).crc());
    /// ```
    pub fn crc(&self) -> u32 {
        let mut hash = crc32fast::Hasher::new();
        for (bytes, records) in &self.ends {
            hash.update(&bytes.to_le_bytes());
            hash.update(&records.to_le_bytes());
        }
        for crc in &self.block_crcs {
            hash.update(&crc.to_le_bytes());
        }
        hash.update(&self.records.to_le_bytes());
        hash.update(&self.data_bytes.to_le_bytes());
        hash.update(&self.checksum.to_le_bytes());
        hash.finalize()
    }

    /// All bytes behind the data: zeros up to a whole block, index, zeros, footer.
    pub(super) fn encode_tail(&self, header_crc: u32) -> Result<Vec<u8>> {
        let buckets = self.ends.len() as u64;
        let tail_at = self.data_bytes + HEADER_BYTES as u64;
        let places = file_bytes(self.data_bytes, buckets).zip(index_at(self.data_bytes));
        let Some((file_bytes, index_at)) = places else {
            return Err(Error::bug("write a run file", "no file is that long"));
        };
        let mut tail = Vec::with_capacity((file_bytes - tail_at) as usize);
        tail.resize((index_at - tail_at) as usize, 0);
        for (bytes, records) in &self.ends {
            tail.extend_from_slice(&bytes.to_le_bytes());
            tail.extend_from_slice(&records.to_le_bytes());
        }
        for crc in &self.block_crcs {
            tail.extend_from_slice(&crc.to_le_bytes());
        }
        tail.extend_from_slice(&self.records.to_le_bytes());
        tail.extend_from_slice(&self.data_bytes.to_le_bytes());
        tail.extend_from_slice(&self.checksum.to_le_bytes());
        tail.resize((file_bytes - tail_at) as usize - FOOTER_BYTES, 0);
        let footer = Footer {
            data_bytes: self.data_bytes,
            buckets,
            tail_crc: crc32fast::hash(&tail),
            header_crc,
        };
        tail.extend_from_slice(&footer.encode()?);
        Ok(tail)
    }

    /// Reads all bytes behind the data, less the footer's.
    pub(super) fn decode(shape: ShapeKind, footer: &Footer, tail: &[u8]) -> Result<Self> {
        let found = crc32fast::hash(tail);
        if found != footer.tail_crc {
            return Err(crc_differs("index", footer.tail_crc, found));
        }
        let data_bytes = footer.data_bytes;
        let skip = (data_bytes.next_multiple_of(storage::BLOCK_BYTES as u64) - data_bytes) as usize;
        let mut fields = Reader(tail.get(skip..).unwrap_or(&[]));
        let ends = (0..footer.buckets)
            .map(|_| Ok((fields.u64()?, fields.u64()?)))
            .collect::<Result<Vec<_>>>()?;
        let block_crcs = (0..blocks_of(data_bytes))
            .map(|_| fields.u32())
            .collect::<Result<Vec<_>>>()?;
        let (records, bytes, checksum) = (fields.u64()?, fields.u64()?, fields.u128()?);
        let index = RunIndex::new(shape, &ends, block_crcs, data_bytes, checksum)
            .map_err(|message| damaged(format!("its index is wrong: {message}")))?;
        if (records, bytes) != (index.records, index.data_bytes) {
            return Err(damaged("its index is wrong: the totals do not add up"));
        }
        Ok(index)
    }
}

/// Whether so many records can have so many bytes.
fn may_hold(shape: ShapeKind, bytes: u64, records: u64) -> bool {
    match shape {
        ShapeKind::Fixed(fixed) => records.checked_mul(fixed.record_bytes as u64) == Some(bytes),
        ShapeKind::Lines(_) => records <= bytes && (records > 0 || bytes == 0),
        ShapeKind::Pairs(_) => records <= bytes / 8 && (records > 0 || bytes == 0), // the two lengths
    }
}

impl Footer {
    fn encode(&self) -> Result<[u8; FOOTER_BYTES]> {
        let places = index_at(self.data_bytes).zip(index_bytes(self.data_bytes, self.buckets));
        let (index_at, index_bytes) = places.ok_or_else(|| damaged("no file is that long"))?;
        let mut footer = [0; FOOTER_BYTES];
        let mut fields = Writer(&mut footer);
        fields.put(&index_at.to_le_bytes());
        fields.put(&index_bytes.to_le_bytes());
        fields.put(&self.data_bytes.to_le_bytes());
        fields.put(&self.buckets.to_le_bytes());
        fields.put(&self.tail_crc.to_le_bytes());
        fields.put(&self.header_crc.to_le_bytes());
        fields.put(&0_u64.to_le_bytes());
        let crc = crc32fast::hash(&footer[..FOOTER_CRC_AT]);
        let mut fields = Writer(&mut footer[FOOTER_CRC_AT..]);
        fields.put(&crc.to_le_bytes());
        fields.put(&VERSION.to_le_bytes());
        fields.put(&FOOTER_MAGIC);
        Ok(footer)
    }

    /// Reads the last bytes of a file of `file_length` bytes, whose header has the CRC `header_crc`.
    pub(super) fn decode(
        bytes: &[u8; FOOTER_BYTES],
        file_length: u64,
        header_crc: u32,
    ) -> Result<Self> {
        let (covered, rest) = bytes.split_at(FOOTER_CRC_AT);
        let mut rest = Reader(rest);
        let (expected, version) = (rest.u32()?, rest.u32()?);
        if rest.bytes()? != FOOTER_MAGIC {
            return Err(damaged("it does not end as a run file"));
        }
        check_version(version)?;
        let found = crc32fast::hash(covered);
        if expected != found {
            return Err(crc_differs("footer", expected, found));
        }
        let mut fields = Reader(covered);
        let (_index_at, _index_bytes) = (fields.u64()?, fields.u64()?);
        let footer = Footer {
            data_bytes: fields.u64()?,
            buckets: fields.u64()?,
            tail_crc: fields.u32()?,
            header_crc: fields.u32()?,
        };
        if footer.encode()? != *bytes {
            return Err(damaged("its footer contradicts itself"));
        }
        let wanted = file_bytes(footer.data_bytes, footer.buckets);
        if wanted != Some(file_length) {
            return Err(damaged("its length is not what its footer says"));
        }
        if footer.header_crc != header_crc {
            return Err(damaged("its header and its footer are of two runs"));
        }
        Ok(footer)
    }
}

/// Puts fields into bytes that are zero at first, one behind the other.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, field: &[u8]) {
        let (place, rest) = std::mem::take(&mut self.0).split_at_mut(field.len());
        place.copy_from_slice(field);
        self.0 = rest;
    }
}

/// Takes fields from bytes, one behind the other.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const BYTES: usize>(&mut self) -> Result<[u8; BYTES]> {
        let (field, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| damaged("it ends inside a field"))?;
        self.0 = rest;
        Ok(*field)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.bytes()?))
    }
}
