//! Input that is read from its beginning to its end by one task: compressed files, and tables, whose rows can be told only so.
//!
//! ```text
//!   range of a file ──read ahead──┐
//!   compressed file ──decoded─────┼──▶ block ──▶ records ──▶ chunk ──full──▶ run
//!   stream ───────────────────────┘
//! ```

use super::appended::{AppendedRuns, RAW_SHARE};
use super::record_assembler::RecordAssembler;
use super::{Progress, SharedStream};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::shape::Shape;
use gristmill_storage::codec::{Codec, Coding, open_file};
use gristmill_storage::input::{InputFile, InputRange};
use gristmill_storage::io::direct::ended_early;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::io::read_ahead::read_through;
use gristmill_storage::stores::Stores;
use gristmill_storage::{BLOCK_BYTES, Caching};

/// Ranges up to this are read at once: a thread that reads ahead would cost more than their bytes.
const SMALL_BYTES: u64 = 64 << 10;

/// What is read.
#[derive(Debug, Clone, Copy)]
pub enum InOrder<'a> {
    /// A range of a file.
    Range(&'a InputFile, InputRange),
    /// A compressed file.
    Decoded(&'a InputFile, Codec),
    /// A stream, which no other task reads.
    Stream(&'a SharedStream),
}

impl InOrder<'_> {
    /// What errors call it.
    pub(super) fn name(&self) -> String {
        match self {
            InOrder::Range(file, _) | InOrder::Decoded(file, _) => file.path.to_string(),
            InOrder::Stream(stream) => stream.name(),
        }
    }

    /// Where in the file it begins.
    pub(super) fn start(&self) -> u64 {
        match self {
            InOrder::Range(_, range) => range.offset,
            InOrder::Decoded(..) | InOrder::Stream(_) => 0,
        }
    }

    /// Hands its bytes to `work`, in blocks of at most `bytes` bytes.
    ///
    /// # Errors
    /// It cannot be read, or decoded, and those of `work` and `progress`.
    pub fn read(
        &self,
        store: &Stores,
        bytes: usize,
        progress: Progress<'_>,
        work: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            InOrder::Range(file, range) if range.bytes <= SMALL_BYTES => {
                let opened = store.open_input(file, Caching::Cached)?;
                let (mut memory, end) = (vec![0; range.bytes as usize], range.offset + range.bytes);
                let read = opened.read_at(&mut memory, range.offset)?;
                if read < memory.len() {
                    let found = range.offset + read as u64;
                    return Err(ended_early(file.path.as_typed(), end, found));
                }
                progress(range.bytes)?;
                work(&memory)
            }
            InOrder::Range(file, range) => {
                let opened = store.open_input(file, Caching::Direct)?;
                let end = range.offset + range.bytes;
                // Whole blocks, as direct I/O has them.
                let lead = range.offset % BLOCK_BYTES as u64;
                let (mut skip, mut left) = (lead as usize, range.bytes);
                let whole = range.offset - lead..end;
                let block = (bytes / 2).next_multiple_of(BLOCK_BYTES);
                read_through(&*opened, whole, (block, 2), &mut Vec::new(), |block| {
                    let block = block.get(skip..).unwrap_or_default();
                    let block = block.get(..left as usize).unwrap_or(block);
                    skip = 0;
                    left -= block.len() as u64;
                    progress(block.len() as u64)?;
                    work(block)
                })?;
                match left {
                    0 => Ok(()),
                    left => Err(ended_early(file.path.as_typed(), end, end - left)),
                }
            }
            InOrder::Decoded(file, codec) => {
                let opened = store.open_input(file, Caching::Direct)?;
                let coding = Coding::Coded(*codec);
                let mut reader = open_file(opened, file.path.as_typed(), coding)?;
                let (mut block, mut consumed) = (vec![0; bytes], 0);
                loop {
                    let read = reader.fill(&mut block)?;
                    progress(reader.consumed() - consumed)?;
                    consumed = reader.consumed();
                    match block.get(..read) {
                        Some(block) if read > 0 => work(block)?,
                        _ => return Ok(()),
                    }
                }
            }
            InOrder::Stream(stream) => {
                let mut block = vec![0; bytes];
                loop {
                    progress(0)?;
                    let Some(read) = stream.read(&mut block)? else {
                        continue;
                    };
                    progress(read as u64)?;
                    match block.get(..read) {
                        Some(block) if read > 0 => work(block)?,
                        _ => return Ok(()),
                    }
                }
            }
        }
    }
}

/// Bytes of a block, where a worker has so many for records: the half of what the chunk leaves.
pub(super) fn block_bytes(chunk_bytes: usize) -> usize {
    let most = chunk_bytes / RAW_SHARE / 2;
    most.clamp(2 * BLOCK_BYTES, 2 * TRANSFER_BYTES)
}

/// Takes the runs, and a record.
pub(super) type Take<'t, S> = &'t mut dyn FnMut(&mut AppendedRuns<'_, S>, &[u8]) -> Result<()>;

/// Hands the records of `source`, cut as `shape` says, to `take`; a last one without an end gets one.
pub(super) fn read_records<S: Shape, R: Shape>(
    shape: R,
    source: InOrder<'_>,
    store: &Stores,
    runs: &mut AppendedRuns<'_, S>,
    progress: Progress<'_>,
    take: Take<'_, S>,
) -> Result<()> {
    let mut ends = |begun, more: &[u8]| shape.rest_length(begun, more);
    let mut feed = RecordAssembler::new(runs.longest());
    let (block, mut bytes) = (block_bytes(runs.chunk_bytes()), 0);
    let what = shape.kind().record_bytes().map_or("line", |_| "record");
    let too_long = |runs: &AppendedRuns<'_, S>, length| {
        let error = runs.too_long_to_read(what, length);
        error.with("file", source.name())
    };
    source.read(store, block, progress, &mut |block| {
        bytes += block.len() as u64;
        match feed.block(block, &mut ends, &mut |record| take(runs, record))? {
            None => Ok(()),
            Some(length) => Err(too_long(runs, length)),
        }
    })?;
    let rest = feed.rest().map_err(|length| too_long(runs, length))?;
    if rest.is_empty() {
        return Ok(());
    }
    if let Some(record_bytes) = shape.kind().record_bytes() {
        let left = rest.len();
        let message = format!("it ends {left} bytes into a record of {record_bytes}");
        return Err(Error::new(Kind::BadInput, "read the input", message)
            .with("file", source.name())
            .with("decoded offset", bytes - left as u64)
            .advise("check that it was written whole, and that it holds such records"));
    }
    rest.push(shape.ending());
    take(runs, rest)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;
    use crate::spill::{
        MemoryModel, SpillPlan, SpillScratch, SpillSource, SpilledRun, spill_source,
    };
    use gristmill_base::record::shape::{Fixed, LineShape};
    use gristmill_storage::codec::encoder;
    use gristmill_storage::location::Location;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::sorted_run::{RunCompression, RunFile};
    use gristmill_storage::{LocalDisk, OutputStore as _};

    /// Spills `text`, compressed, with so much memory; the runs' records in their order.
    fn spilled<S: Shape>(shape: S, text: &[u8], chunk_bytes: usize) -> Result<Vec<Vec<u8>>> {
        let memory = Arc::new(Memory::with_room_for(1 << 26));
        let mut encoder = encoder(Codec::Zstd, Vec::new(), None)?;
        encoder.write_all(text).unwrap();
        let packed = encoder.finish().unwrap();
        let file = memory.create("/in.zst".as_ref(), packed.len() as u64, Caching::Cached)?;
        file.write_at(&packed, 0)?;
        let stores = Stores::new(Arc::clone(&memory) as Arc<dyn LocalDisk>);
        let path = Location::from("/in.zst");
        let stat = stores.stat(&path)?.unwrap();
        let input = InputFile { path, stat };
        let plan = SpillPlan {
            shape,
            borders: &[],
            unique: false,
            chunk_bytes,
            typical_bytes: 10,
            needed: MemoryModel {
                buffer_share: 32,
                ..MemoryModel::default()
            },
            buffer_bytes: 1 << 16,
            compression: RunCompression::None,
            job_id: "job",
            places: &["/runs".into()],
        };
        let source = SpillSource::InOrder(InOrder::Decoded(&input, Codec::Zstd), &stores);
        let scratch = &mut SpillScratch::default();
        let runs = spill_source(&plan, &*memory, source, "0", scratch, &|_| Ok(()))?;
        let read: u64 = runs.iter().map(|run| run.bytes_read).sum();
        assert!([0, 1].contains(&(read - text.len() as u64)));
        let contents = |run: &SpilledRun| {
            assert!(RunFile::open(&*memory, &run.path).is_ok());
            vec![run.records as u8]
        };
        Ok(runs.iter().map(contents).collect())
    }

    #[test]
    fn a_compressed_file_becomes_as_many_runs_as_memory_asks_for() {
        let lines = LineShape { descending: false };
        let text = "b\na\nlast".repeat(30);
        let all = spilled(lines, text.as_bytes(), 1 << 20).unwrap();
        assert_eq!(all, [[61]]);
        let long = "a line of some length\n".repeat(2_000);
        let few = spilled(lines, long.as_bytes(), 64 << 10).unwrap();
        assert!(few.len() > 1);
    }

    #[test]
    fn records_that_do_not_end_are_refused() {
        let shape = Fixed {
            record_bytes: 4,
            key_bytes: 4,
            descending: false,
        };
        let error = spilled(shape, b"aaaabb", 1 << 20).unwrap_err().to_string();
        assert!(error.contains("2 bytes into a record of 4"), "{error}");
        let long = [vec![b'x'; 100_000], b"\n".to_vec()].concat();
        let error = spilled(LineShape { descending: false }, &long, 64 << 10).unwrap_err();
        assert_eq!(error.kind(), Kind::Memory);
    }
}
