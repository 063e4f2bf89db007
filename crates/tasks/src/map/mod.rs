//! Map: reads one split, adds up its checksum, and scatters an entry for each record to its bucket.
//!
//! ```text
//!   file ──mapped where it lies──▶ arena ──blocks of 25 kB──▶ checksum
//!        └─read, direct──────────▶                      └──▶ entries ──scatter──▶ MapOutput
//! ```
//!
//! Records stay in the arena; only entries move. Output: the split's entries by bucket, each bucket in input order.

pub mod lines;

use std::path::Path;

use gristmill_base::error::Result;
use gristmill_base::order::Classifier;
use gristmill_base::order::packed::Packing;
use gristmill_base::order::scatter::{EntryStaging, ScatteredEntries};
use gristmill_base::record::arena::{Arena, ArenaClaim};
use gristmill_base::record::checksum::Checksum;
use gristmill_storage::input::{InputFile, InputRange};
use gristmill_storage::io::direct::ended_early;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::io::read_ahead::read_into;
use gristmill_storage::stores::Stores;
use gristmill_storage::{BLOCK_BYTES, Caching};

/// Records that are worked on at a time: 25 kB stay in the first-level cache between checksum and keys.
const BLOCK_RECORDS: usize = 256;

/// What a map task reads from, and how.
#[derive(Debug)]
pub struct MapInput<'a> {
    /// Where the files are.
    pub store: &'a Stores,
    /// Where their bytes lie, or come to lie.
    pub arena: &'a Arena,
    /// All files of the input.
    pub files: &'a [InputFile],
    /// The job's record length.
    pub record_bytes: usize,
    /// Finds buckets.
    pub classifier: &'a Classifier,
    /// Packs entries.
    pub packing: &'a Packing,
    /// How many buckets there are.
    pub buckets: usize,
}

/// What a split held.
#[derive(Debug)]
pub struct MapOutput {
    /// Its entries, by bucket.
    pub entries: ScatteredEntries,
    /// The sum of the CRCs of its records.
    pub checksum: u128,
    /// Bytes that were consumed.
    pub bytes: u64,
}

/// Maps the split made of `pieces`. `progress` is told of bytes as they are done, and may stop the task.
pub fn map_split(
    input: &MapInput<'_>,
    pieces: &[InputRange],
    staging: &mut EntryStaging,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<MapOutput> {
    let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    let mut entries = ScatteredEntries::with_room((bytes / input.record_bytes as u64) as usize)?;
    staging.begin(input.buckets)?;
    let mut checksum = Checksum::new(input.record_bytes);
    let mut claims = Vec::new(); // kept when all is well: a retry must find the memory free
    for piece in pieces {
        let start = input.arena.start_of(piece.file) + piece.offset;
        let mut position = start;
        let mut take = |data: &[u8]| {
            for block in data.chunks(BLOCK_RECORDS * input.record_bytes) {
                checksum.update(block);
                if staging.room() < BLOCK_RECORDS {
                    staging.scatter(&mut entries);
                }
                staging.extract(
                    block,
                    input.record_bytes,
                    position,
                    input.classifier,
                    input.packing,
                );
                position += block.len() as u64;
            }
            progress(data.len() as u64)
        };
        match input.arena.mapped(start..start + piece.bytes) {
            Some(data) => data
                .chunks(block_bytes(input.record_bytes))
                .try_for_each(take)?,
            None => claims.push((read_piece(input, piece, start, &mut take)?, piece.bytes)),
        }
    }
    staging.scatter(&mut entries);
    claims
        .into_iter()
        .for_each(|(claim, bytes)| claim.keep(bytes));
    Ok(MapOutput {
        entries,
        checksum: checksum.value(),
        bytes,
    })
}

/// Bytes of whole records, and where the record's length allows of whole device blocks, near a transfer's size.
fn block_bytes(record_bytes: usize) -> usize {
    let common = record_bytes * BLOCK_BYTES;
    if common <= TRANSFER_BYTES {
        TRANSFER_BYTES / common * common
    } else {
        (TRANSFER_BYTES / record_bytes).max(1) * record_bytes
    }
}

/// Reads a piece to its place in the arena, working on it block by block.
fn read_piece<'a>(
    input: &MapInput<'a>,
    piece: &InputRange,
    start: u64,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<ArenaClaim<'a>> {
    let found @ InputFile { path, stat } = &input.files[piece.file];
    let file = input.store.open_input(found, Caching::Direct)?;
    let path = path.as_typed();
    let ends_file = piece.offset + piece.bytes == stat.bytes;
    let room = if ends_file {
        piece.bytes.next_multiple_of(BLOCK_BYTES as u64)
    } else {
        piece.bytes
    };
    let mut claim = input.arena.claim(start..start + room)?;
    let mut taken = 0;
    let block = block_bytes(input.record_bytes);
    read_into(&*file, piece.offset, claim.bytes(), block, |data| {
        let wanted = data.len().min((piece.bytes - taken) as usize);
        taken += wanted as u64;
        whole_records(
            path,
            &data[..wanted],
            input.record_bytes,
            piece.offset + taken,
        )?;
        take(&data[..wanted])
    })?;
    if taken != piece.bytes {
        return Err(ended_early(
            path,
            piece.offset + piece.bytes,
            piece.offset + taken,
        ));
    }
    Ok(claim)
}

/// A read that ends inside a record means that the file has become shorter.
fn whole_records(path: &Path, data: &[u8], record_bytes: usize, end: u64) -> Result<()> {
    match data.len() % record_bytes {
        0 => Ok(()),
        rest => Err(ended_early(path, end + (record_bytes - rest) as u64, end)),
    }
}
