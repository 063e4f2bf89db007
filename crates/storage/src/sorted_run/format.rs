//! The bytes of a run file that are not records: encoded and decoded without any I/O. Its header is in header.rs.
//!
//! ```text
//!   0          4096                      D         I                        F-64       F
//!   | header   | data                    | zeros   | index          | zeros | footer   |
//!   |          | 64 KiB | 64 KiB | rest  |         | bucket ends, block CRCs, totals   |
//!     └CRC       CRC each, in the index   └──────── CRC in the footer ─────┘  └CRC
//! ```
//!
//! D = 4096 + stored bytes; I and F are multiples of 4096, so that everything moves past the page cache. Integers
//! are little-endian, CRCs are CRC-32 (IEEE). All places follow from the bytes of data, the bytes that are stored of them
//! (fewer where blocks are compressed, which is version 2) and the number of buckets:
//! a footer that says anything else is damaged, and nothing is allocated before that is known.
//! docs/internals/run-file.md is the same as tables.

use std::ops::Range;

use super::compression::{BLOCK_BYTES, RunCompression};
use super::fields::{
    COMPRESSED, FieldReader, FieldWriter, PLAIN, check_version, crc_differs, damaged,
};
use super::header::HEADER_BYTES;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::ShapeKind;

/// Bytes of the footer, the last of the file.
pub const FOOTER_BYTES: usize = 64;

const FOOTER_MAGIC: [u8; 8] = *b"RUNSOUND";

/// Where the footer's CRC stands.
const FOOTER_CRC_AT: usize = 48;

/// Bytes of a bucket's end in the index.
const END_BYTES: u64 = 16;

/// Bytes of a block's CRC in the index.
const CRC_BYTES: u64 = 4;

/// Bytes of a block's length in the index, where blocks are compressed.
const LENGTH_BYTES: u64 = 4;

/// Bytes of the totals in the index.
const TOTALS_BYTES: u64 = 32;

/// What a run file says of its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIndex {
    /// For each bucket, the bytes of data and the records up to its end.
    pub ends: Vec<(u64, u64)>,
    /// The CRC of each block of data, as it is stored.
    pub block_crcs: Vec<u32>,
    /// Where each block ends among the stored bytes; nothing where they are the data.
    pub stored_ends: Option<Vec<u64>>,
    /// All records.
    pub records: u64,
    /// All bytes of data.
    pub data_bytes: u64,
    /// The sum of the CRCs of all records; 0 where a round of a shuffle cut them out of other runs.
    pub checksum: u128,
}

/// The footer: where the index is, and how to know that it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) places: RunFileLayout,
    pub(super) tail_crc: u32,
    pub(super) header_crc: u32,
}

/// What decides where everything lies in a run file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunFileLayout {
    pub(super) data_bytes: u64,
    /// Bytes that are stored of them; nothing where they are the data.
    pub(super) packed_bytes: Option<u64>,
    pub(super) buckets: u64,
}

impl RunFileLayout {
    /// Bytes between the header and D.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.packed_bytes.unwrap_or(self.data_bytes)
    }

    /// The length of the file; `None` where no file is that long.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        let index = self.index_bytes()?.checked_add(FOOTER_BYTES as u64)?;
        let end = self.index_at()?.checked_add(round_up(index)?)?;
        i64::try_from(end).is_ok().then_some(end) // the largest offset that an operating system takes
    }

    /// Where the index begins.
    pub(super) fn index_at(&self) -> Option<u64> {
        round_up(self.stored_bytes())?.checked_add(HEADER_BYTES as u64)
    }

    /// Bytes of the index.
    fn index_bytes(&self) -> Option<u64> {
        let each = match self.packed_bytes {
            Some(_) => CRC_BYTES + LENGTH_BYTES,
            None => CRC_BYTES,
        };
        let blocks = blocks_of(self.data_bytes) * each;
        let ends = self.buckets.checked_mul(END_BYTES)?;
        ends.checked_add(blocks)?.checked_add(TOTALS_BYTES)
    }

    fn version(&self) -> u32 {
        self.packed_bytes.map_or(PLAIN, |_| COMPRESSED)
    }
}

/// The length of a run file with so many bytes of data and buckets; `None` where no file is that long.
///
/// ```
/// use gristmill_storage::sorted_run::file_bytes;
/// assert_eq!(file_bytes(0, 1), Some(8192));
/// assert_eq!(file_bytes(100_000, 16), Some(4096 + 102_400 + 4096));
/// assert_eq!(file_bytes(u64::MAX, 1), None);
/// ```
pub fn file_bytes(data_bytes: u64, buckets: u64) -> Option<u64> {
    file_bytes_max(RunCompression::None, data_bytes, buckets)
}

/// The most bytes that such a file has if its blocks are compressed: where none of them shrinks, an index that is longer.
///
/// ```
/// use gristmill_storage::sorted_run::{RunCompression, file_bytes, file_bytes_max};
/// assert_eq!(file_bytes_max(RunCompression::None, 100_000, 16), file_bytes(100_000, 16));
/// assert_eq!(file_bytes_max(RunCompression::Lz4, 1 << 30, 16), Some((1 << 30) + 4096 + (128 << 10) + 4096));
/// ```
pub fn file_bytes_max(compression: RunCompression, data_bytes: u64, buckets: u64) -> Option<u64> {
    let places = RunFileLayout {
        data_bytes,
        packed_bytes: (compression != RunCompression::None).then_some(data_bytes),
        buckets,
    };
    places.file_bytes()
}

/// Blocks that so many bytes of data are cut into.
pub(super) fn blocks_of(data_bytes: u64) -> u64 {
    data_bytes.div_ceil(BLOCK_BYTES as u64)
}

fn round_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(crate::BLOCK_BYTES as u64)
}

impl RunIndex {
    /// The index of a run whose buckets end so, or why there is no such run. Of its blocks it is given the CRCs and, where
    /// they are compressed, the ends.
    pub(super) fn new(
        shape: ShapeKind,
        ends: &[(u64, u64)],
        (block_crcs, stored_ends): (Vec<u32>, Option<Vec<u64>>),
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
            stored_ends,
            records: before.1,
            data_bytes,
            checksum,
        })
    }

    /// The CRC of all that it says: two runs that agree in it hold the same records, cut in the same way.
    ///
    /// ```
    /// use gristmill_storage::sorted_run::RunIndex;
    /// let index = |crc| RunIndex {
    ///     ends: vec![(1, 1)], block_crcs: vec![crc], stored_ends: None, records: 1, data_bytes: 1, checksum: 9,
    /// };
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
        for end in self.stored_ends.iter().flatten() {
            hash.update(&end.to_le_bytes());
        }
        hash.update(&self.records.to_le_bytes());
        hash.update(&self.data_bytes.to_le_bytes());
        hash.update(&self.checksum.to_le_bytes());
        hash.finalize()
    }

    /// Bytes that are stored of the data.
    pub fn stored_bytes(&self) -> u64 {
        self.places().stored_bytes()
    }

    /// Where so many blocks, from `first` on, lie among the stored bytes.
    pub(super) fn stored(&self, first: u64, blocks: u64) -> Range<u64> {
        let end_of = |blocks: u64| match &self.stored_ends {
            None => (blocks * BLOCK_BYTES as u64).min(self.data_bytes),
            Some(ends) => {
                let last = blocks
                    .checked_sub(1)
                    .and_then(|last| usize::try_from(last).ok());
                last.map_or(0, |last| ends.get(last).copied().unwrap_or(0))
            }
        };
        end_of(first)..end_of(first + blocks)
    }

    fn places(&self) -> RunFileLayout {
        let ends = self.stored_ends.as_ref();
        RunFileLayout {
            data_bytes: self.data_bytes,
            packed_bytes: ends.map(|ends| ends.last().copied().unwrap_or(0)),
            buckets: self.ends.len() as u64,
        }
    }

    /// The length of its file.
    pub(super) fn file_bytes(&self) -> Result<u64> {
        let bytes = self.places().file_bytes();
        bytes.ok_or_else(|| Error::bug("write a run file", "no file is that long"))
    }

    /// All bytes behind the data: zeros up to a whole block, index, zeros, footer.
    pub(super) fn encode_tail(&self, header_crc: u32) -> Result<Vec<u8>> {
        let places = self.places();
        let tail_at = places.stored_bytes() + HEADER_BYTES as u64;
        let Some((file_bytes, index_at)) = places.file_bytes().zip(places.index_at()) else {
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
        let mut before = 0;
        for end in self.stored_ends.iter().flatten() {
            tail.extend_from_slice(&u32::to_le_bytes((end - before) as u32)); // at most a block's
            before = *end;
        }
        tail.extend_from_slice(&self.records.to_le_bytes());
        tail.extend_from_slice(&self.data_bytes.to_le_bytes());
        tail.extend_from_slice(&self.checksum.to_le_bytes());
        tail.resize((file_bytes - tail_at) as usize - FOOTER_BYTES, 0);
        let footer = Footer {
            places,
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
        let RunFileLayout {
            data_bytes,
            packed_bytes,
            buckets,
        } = footer.places;
        let stored = footer.places.stored_bytes();
        let skip = (stored.next_multiple_of(crate::BLOCK_BYTES as u64) - stored) as usize;
        let mut fields = FieldReader(tail.get(skip..).unwrap_or(&[]));
        let ends = (0..buckets)
            .map(|_| Ok((fields.u64()?, fields.u64()?)))
            .collect::<Result<Vec<_>>>()?;
        let block_crcs = (0..blocks_of(data_bytes))
            .map(|_| fields.u32())
            .collect::<Result<Vec<_>>>()?;
        let stored_ends = match packed_bytes {
            Some(_) => Some(read_ends(&mut fields, data_bytes)?),
            None => None,
        };
        let (records, bytes, checksum) = (fields.u64()?, fields.u64()?, fields.u128()?);
        let blocks = (block_crcs, stored_ends);
        let index = RunIndex::new(shape, &ends, blocks, data_bytes, checksum)
            .map_err(|message| damaged(format!("its index is wrong: {message}")))?;
        if (records, bytes, footer.places) != (index.records, index.data_bytes, index.places()) {
            return Err(damaged("its index is wrong: the totals do not add up"));
        }
        Ok(index)
    }
}

/// Where blocks end among the stored bytes, from their lengths.
fn read_ends(fields: &mut FieldReader<'_>, data_bytes: u64) -> Result<Vec<u64>> {
    let mut end = 0;
    let ends = (0..blocks_of(data_bytes)).map(|block| {
        let length = u64::from(fields.u32()?);
        let most = (data_bytes - block * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
        if length == 0 || length > most {
            let message = format!("its index is wrong: block {block} has {length} bytes");
            return Err(damaged(message));
        }
        end += length;
        Ok(end)
    });
    ends.collect()
}

/// Whether so many records can have so many bytes.
fn may_hold(shape: ShapeKind, bytes: u64, records: u64) -> bool {
    match shape {
        ShapeKind::Fixed(fixed) => records.checked_mul(fixed.record_bytes as u64) == Some(bytes),
        ShapeKind::Lines(_) => records <= bytes && (records > 0 || bytes == 0),
        // The two lengths.
        ShapeKind::Pairs(_) | ShapeKind::Keyed(_) => {
            records <= bytes / 8 && (records > 0 || bytes == 0)
        }
    }
}

impl Footer {
    fn encode(&self) -> Result<[u8; FOOTER_BYTES]> {
        let places = self.places.index_at().zip(self.places.index_bytes());
        let (index_at, index_bytes) = places.ok_or_else(|| damaged("no file is that long"))?;
        let mut footer = [0; FOOTER_BYTES];
        let mut fields = FieldWriter(&mut footer);
        fields.put(&index_at.to_le_bytes());
        fields.put(&index_bytes.to_le_bytes());
        fields.put(&self.places.data_bytes.to_le_bytes());
        fields.put(&self.places.buckets.to_le_bytes());
        fields.put(&self.tail_crc.to_le_bytes());
        fields.put(&self.header_crc.to_le_bytes());
        fields.put(&self.places.packed_bytes.unwrap_or(0).to_le_bytes());
        let crc = crc32fast::hash(&footer[..FOOTER_CRC_AT]);
        let mut fields = FieldWriter(&mut footer[FOOTER_CRC_AT..]);
        fields.put(&crc.to_le_bytes());
        fields.put(&self.places.version().to_le_bytes());
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
        let mut rest = FieldReader(rest);
        let (expected, version) = (rest.u32()?, rest.u32()?);
        if rest.bytes()? != FOOTER_MAGIC {
            return Err(damaged("it does not end as a run file"));
        }
        check_version(version)?;
        let found = crc32fast::hash(covered);
        if expected != found {
            return Err(crc_differs("footer", expected, found));
        }
        let mut fields = FieldReader(covered);
        let (_index_at, _index_bytes) = (fields.u64()?, fields.u64()?);
        let (data_bytes, buckets) = (fields.u64()?, fields.u64()?);
        let (tail_crc, header_crc_again) = (fields.u32()?, fields.u32()?);
        let packed_bytes = fields.u64()?;
        let footer = Footer {
            places: RunFileLayout {
                data_bytes,
                packed_bytes: (version == COMPRESSED).then_some(packed_bytes),
                buckets,
            },
            tail_crc,
            header_crc: header_crc_again,
        };
        if footer.encode()? != *bytes {
            return Err(damaged("its footer contradicts itself"));
        }
        if footer.places.file_bytes() != Some(file_length) {
            return Err(damaged("its length is not what its footer says"));
        }
        if footer.header_crc != header_crc {
            return Err(damaged("its header and its footer are of two runs"));
        }
        Ok(footer)
    }
}
