//! Records as bytes: the sort benchmark's layouts and their random generator, the checksum over records, the
//! shapes that tell where a record ends and what its key is, rows of tables and their keys, and the arena in which records lie
//! while a job runs.

pub mod arena;
pub mod checksum;
pub mod comment;
mod crc_clmul;
pub mod layout;
pub mod objects;
pub mod random;
pub mod row_ends;
pub mod shape;
pub mod sum;
pub mod table;
pub mod table_keys;

/// Bytes of a sort-benchmark record.
pub const RECORD_BYTES: usize = 100;

/// Bytes of its key, which begins the record.
pub const KEY_BYTES: usize = 10;

/// What a UTF-8 file may begin with, which is no part of its first line.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bits of a position: a record's place in its job's address space, which is laid out in input order.
pub const POSITION_BITS: u32 = 48;

/// One more than the largest position: 256 TB.
pub const POSITION_LIMIT: u64 = 1 << POSITION_BITS;
