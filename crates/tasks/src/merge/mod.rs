//! Merge: sorted segments of runs become one sorted sequence of records.
//!
//! ```text
//!   run 0  | ... |==segment==| ... |  ──┐
//!   run 1  | ... |=segment=| ...   |  ──┼─▶ read ahead, verified ─▶ loser tree ─▶ emit(record), in order
//!   run 2  | .. |===segment===| .. |  ──┘
//! ```
//!
//! Records with equal keys come in the order of their segments, and within a segment in its order: who gives the
//! segments in input order gets a stable sort. The rule that must hold: every segment gives exactly the records
//! and bytes that its run's index says, or the merge fails.

pub mod feed;
pub mod groups;
pub mod output;
mod readers;
mod sources;
pub mod tree;

use std::ops::Range;
use std::thread;

use self::readers::{BUFFERS, Cut};
use self::sources::{CARRY_BYTES, Sources};
use self::tree::{Heads, LoserTree};
use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::Shape;
use gristmill_storage::io::overlap::Buffers;
use gristmill_storage::sorted_run::{BLOCK_BYTES, RunFile};

/// A range of a run: whole records, as [`RunFile::segment`] says.
#[derive(Debug, Clone)]
pub struct Segment<'a> {
    /// The run.
    pub run: &'a RunFile,
    /// Its bytes of data.
    pub bytes: Range<u64>,
    /// How many records they are.
    pub records: u64,
    /// No record is longer: memory for one that lies in two buffers is as large.
    pub longest: u64,
}

/// What a merge holds for each source beside its buffers: the carry, and what tells where it stands.
const SOURCE_BYTES: usize = CARRY_BYTES + 512;

/// Memory of a merge of so many sources with buffers of `buffer_bytes` bytes; [`carry_bytes`] of each is asked of the
/// budget when it is needed. What decompresses runs is counted by
/// [`RunCompression::worker_bytes`](gristmill_storage::sorted_run::RunCompression::worker_bytes).
///
/// ```
/// use gristmill_tasks::merge::merge_bytes;
/// assert!(merge_bytes(8, 1 << 20) < 8 * ((2 << 20) + 5000));
/// ```
pub fn merge_bytes(sources: usize, buffer_bytes: usize) -> u64 {
    (sources * (BUFFERS * whole_blocks(buffer_bytes) + SOURCE_BYTES)) as u64
}

/// Memory that a source may ask for whose records have at most `longest` bytes: one that lies in two buffers is put
/// together there.
///
/// ```
/// use gristmill_tasks::merge::carry_bytes;
/// assert_eq!((carry_bytes(100), carry_bytes(1_000_000)), (0, 1_000_000));
/// ```
pub fn carry_bytes(longest: u64) -> u64 {
    if longest > CARRY_BYTES as u64 {
        longest
    } else {
        0
    }
}

/// Whole blocks of a run in a buffer of `bytes` bytes; at least one.
fn whole_blocks(bytes: usize) -> usize {
    (bytes / BLOCK_BYTES).max(1) * BLOCK_BYTES
}

/// Merges segments and hands every record to `emit`, which may stop it with an error. Each source has the memory of two
/// buffers of `buffer_bytes` bytes, taken from `buffers` and left there for the next merge. The caller has reserved
/// [`merge_bytes`]; `budget` is asked only where a record of more than 4096 bytes lies in two buffers.
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use std::sync::Arc;
/// use gristmill_base::budget::Budget;
/// use gristmill_tasks::merge::{Segment, merge_segments};
/// use gristmill_base::record::shape::{LineShape, Shape};
/// use gristmill_storage::sorted_run::{RunCompression, RunFile, RunHeader, RunWriter};
/// use gristmill_storage::{Caching, Store, memory::Memory, io::overlap::OverlappedWriter};
/// let store = Memory::with_room_for(1 << 20);
/// let lines = LineShape { descending: false };
/// let write = |number, data: &[u8]| {
///     let path = format!("/run-{number}");
///     let file = Arc::from(store.create(path.as_ref(), 0, Caching::Direct)?);
///     OverlappedWriter::run(&mut Vec::new(), 1 << 16, |writer| {
///         let (job_id, compression) = ("a-job".into(), RunCompression::None);
///         let header = RunHeader { shape: lines.kind(), job_id, number, compression };
///         let mut run = RunWriter::begin(writer, file, &header)?;
///         run.append(data)?;
///         run.finish(&[(data.len() as u64, 2)], 0)
///     })?;
///     RunFile::open(&store, path.as_ref())
/// };
/// let runs = [write(0, b"a\nc\n")?, write(1, b"b\nd\n")?];
/// let segments = runs.each_ref().map(|run| Segment { run, bytes: 0..4, records: 2, longest: 2 });
/// let mut merged = Vec::new();
/// merge_segments(lines, &segments, 1 << 16, &mut Vec::new(), &Budget::new(0), |record| {
///     merged.extend_from_slice(record);
///     Ok(())
/// })?;
/// assert_eq!(merged, b"a\nb\nc\nd\n");
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn merge_segments<S: Shape>(
    shape: S,
    segments: &[Segment<'_>],
    buffer_bytes: usize,
    buffers: &mut Buffers,
    budget: &Budget,
    emit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    check(shape, segments)?;
    let cut = Cut::new(segments, whole_blocks(buffer_bytes));
    let (handle, requests, give) = readers::channels();
    thread::scope(|scope| {
        readers::begin(scope, (segments, cut), &requests, &give)?;
        drop(give);
        let mut sources = Sources::begin(shape, segments, cut, budget, handle, buffers)?;
        merge_all(shape, segments.len(), &mut sources, emit)?;
        sources.finish(buffers)
    })
}

/// The hot loop: one record a turn.
fn merge_all<S: Shape>(
    shape: S,
    count: usize,
    sources: &mut Sources<'_, S>,
    mut emit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut tree = LoserTree::new(shape, count, sources);
    while let Some(record) = sources.head(tree.winner()) {
        emit(record)?;
        sources.advance(tree.winner())?;
        tree.replay(sources);
    }
    Ok(())
}

/// What no caller may ask for.
fn check(shape: impl Shape, segments: &[Segment<'_>]) -> Result<()> {
    for Segment { run, bytes, .. } in segments {
        let data_bytes = run.index().data_bytes;
        let message = if run.header().shape != shape.kind() {
            format!("it has records of another shape than {shape:?}")
        } else if bytes.start > bytes.end || bytes.end > data_bytes {
            format!("bytes {bytes:?} of {data_bytes}")
        } else {
            continue;
        };
        return Err(Error::bug("merge runs", message).with_path(run.path()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
