//! Where a merge writes: ranges of files whose sizes are known, a file that grows, or a stream.
//!
//! ```text
//!   merged records ──▶ range 0 │ range 1 │ range 2 ...     each with its file, its place there and its proof
//!                        └ closed once the device has its last bytes: few files are open, however many ranges there are
//! ```
//!
//! The rule that must hold: a range gets as many records as the indexes of the runs say of its buckets.
//!
//! Decision: docs/decisions/neighbours-at-once.md.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::merge::output::{MergeProof, ProvenWriter};
use crate::task::{RangeSpec, TaskContext};
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::Shape;
use gristmill_storage::WriteFile;
use gristmill_storage::codec::Codec;
use gristmill_storage::codec::written::CompressedFile;
use gristmill_storage::io::overlap::OverlappedWriter;
use gristmill_storage::location::Location;
use gristmill_storage::objects::part_uploader::PartUploader;

/// Where merged records go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergeTarget {
    /// Ranges of output files, whose sizes are known.
    Ranges(Vec<RangeSpec>),
    /// Buckets to a file whose size is known when all is written.
    File(WholeFile),
    /// All buckets to the job's output stream, compressed or not.
    Stream(Option<Codec>),
}

/// A file that one task writes from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeFile {
    /// Where it is written.
    pub path: Location,
    /// The buckets whose records it holds.
    pub buckets: Range<usize>,
    /// Bytes of all records in them, of which fewer may be written: an upload is cut into parts by them.
    pub bytes_max: u64,
    /// How it is compressed.
    pub codec: Option<Codec>,
}

impl MergeTarget {
    /// How it is compressed.
    pub(super) fn codec(&self) -> Option<Codec> {
        match self {
            MergeTarget::Ranges(_) => None,
            MergeTarget::File(file) => file.codec,
            MergeTarget::Stream(codec) => *codec,
        }
    }

    /// Its longest file, and how long it may be.
    pub(super) fn longest_file(&self) -> (Option<&Location>, u64) {
        match self {
            MergeTarget::Ranges(ranges) => longest_file(ranges),
            MergeTarget::File(file) => (Some(&file.path), file.bytes_max),
            MergeTarget::Stream(_) => (None, 0),
        }
    }

    /// The buckets of each of its ranges, which follow one another.
    pub(super) fn buckets(&self, all: Range<usize>) -> Vec<Range<usize>> {
        match self {
            MergeTarget::Ranges(ranges) => {
                ranges.iter().map(|range| range.buckets.clone()).collect()
            }
            MergeTarget::File(file) => vec![file.buckets.clone()],
            MergeTarget::Stream(_) => vec![all],
        }
    }

    /// All of them, of so many.
    ///
    /// # Errors
    /// They do not follow one another.
    pub fn stretch(&self, all: Range<usize>) -> Result<Range<usize>> {
        stretch_of(&self.buckets(all))
    }

    /// Whether its files are sent away while they are written.
    fn is_sent(&self, context: &TaskContext) -> bool {
        let (path, _) = self.longest_file();
        path.is_some_and(|path| context.node.store.sends_parts(path))
    }

    /// The file of a range, and where in it the range begins.
    fn open(
        &self,
        number: usize,
        context: &TaskContext,
        sending: Option<&Arc<PartUploader>>,
    ) -> Result<(Arc<dyn WriteFile>, u64)> {
        let file = match self {
            MergeTarget::Ranges(ranges) => {
                let range = &ranges[number];
                let file = context.create(&range.file.path, range.file.bytes, sending)?;
                return Ok((file, range.offset));
            }
            MergeTarget::File(file) => {
                // A disk would make it as long as that.
                let bytes = if self.is_sent(context) {
                    file.bytes_max
                } else {
                    0
                };
                context.create(&file.path, bytes, sending)?
            }
            MergeTarget::Stream(_) => context.sink()?,
        };
        Ok((compressed(file, self.codec())?, 0))
    }
}

/// The longest file of ranges, and its length.
pub(super) fn longest_file(ranges: &[RangeSpec]) -> (Option<&Location>, u64) {
    let longest = ranges.iter().max_by_key(|range| range.file.bytes);
    longest.map_or((None, 0), |range| {
        (Some(&range.file.path), range.file.bytes)
    })
}

fn compressed(file: Arc<dyn WriteFile>, codec: Option<Codec>) -> Result<Arc<dyn WriteFile>> {
    Ok(match codec {
        Some(codec) => Arc::new(CompressedFile::new(file, codec)?),
        None => file,
    })
}

/// Files that a task has open beside the one that it writes: those whose last bytes may be on their way.
const OPEN_MAX: usize = 8;

/// A file of a range, all of whose records were handed to the writer.
pub(super) struct EndedRange {
    number: usize,
    file: Arc<dyn WriteFile>,
    /// How many buffers had been sent with its last bytes; none where it has no bytes.
    sent: Option<u64>,
}

/// What a task writes to its ranges, one after another. The records of neighbours follow one another in the runs: these are read
/// from one end to the other, and not for each range anew.
pub(super) struct RangeWriter<'w, S> {
    task: (&'w TaskContext, &'w MergeTarget),
    sending: Option<Arc<PartUploader>>,
    out: ProvenWriter<'w, S>,
    /// How many records each range has that has not begun.
    records: VecDeque<u64>,
    /// How many of those of the present range are still to come.
    left: u64,
    file: Arc<dyn WriteFile>,
    /// How many buffers had been sent when it was begun.
    sent: u64,
    open: Vec<EndedRange>,
    open_max: usize,
    proofs: Vec<MergeProof>,
}

impl<'w, S: Shape> RangeWriter<'w, S> {
    pub(super) fn begin(
        (shape, unique): (S, bool),
        (context, target): (&'w TaskContext, &'w MergeTarget),
        mut records: VecDeque<u64>,
        writer: &'w mut OverlappedWriter,
    ) -> Result<Self> {
        let (path, longest) = target.longest_file();
        let sending = path.and_then(|path| context.sending(path, longest));
        let (file, offset) = target.open(0, context, sending.as_ref())?;
        writer.begin(Arc::clone(&file), offset)?;
        let is_sent = target.is_sent(context);
        Ok(RangeWriter {
            task: (context, target),
            sending,
            out: ProvenWriter::new(shape, unique, writer),
            left: records.pop_front().unwrap_or(0),
            records,
            file,
            sent: 0,
            open: Vec::new(),
            open_max: if is_sent { usize::MAX } else { OPEN_MAX },
            proofs: Vec::new(),
        })
    }

    #[inline]
    pub(super) fn append(&mut self, record: &[u8]) -> Result<()> {
        while self.left == 0 {
            self.turn()?;
        }
        self.left -= 1;
        self.out.append(record)
    }

    /// Goes on to the next range.
    #[cold]
    fn turn(&mut self) -> Result<()> {
        let Some(records) = self.records.pop_front() else {
            let message = "more records than the indexes of the runs say";
            return Err(Error::bug("merge runs", message));
        };
        let (number, (context, target)) = (self.proofs.len(), self.task);
        let (next, offset) = target.open(number + 1, context, self.sending.as_ref())?;
        self.proofs
            .push(self.out.turn_to(Arc::clone(&next), offset)?);
        let sent = self.out.writer().sent();
        self.open.push(EndedRange {
            number,
            file: std::mem::replace(&mut self.file, next),
            sent: (sent > self.sent).then_some(sent),
        });
        (self.sent, self.left) = (sent, records);
        if self.open.len() > self.open_max {
            let writer = self.out.writer();
            let is_written =
                |file: &mut EndedRange| file.sent.is_none_or(|sent| writer.is_behind(sent));
            let written: Vec<EndedRange> = self.open.extract_if(.., is_written).collect();
            close(written, context, &mut self.proofs)?;
        }
        Ok(())
    }

    /// The proof of each range, and the files that are still to be closed once all is written.
    pub(super) fn finish(mut self) -> Result<(Vec<MergeProof>, Vec<EndedRange>)> {
        while !self.records.is_empty() {
            self.turn()?;
        }
        self.open.push(EndedRange {
            number: self.proofs.len(),
            file: self.file,
            sent: None,
        });
        self.proofs.push(self.out.proof()?);
        Ok((self.proofs, self.open))
    }
}

/// Closes files all of whose bytes are written.
pub(super) fn close(
    files: Vec<EndedRange>,
    context: &TaskContext,
    proofs: &mut [MergeProof],
) -> Result<()> {
    for EndedRange { number, file, .. } in files {
        if context.job.durable {
            file.sync()?;
        }
        proofs[number].upload = file.finish()?;
    }
    Ok(())
}

/// The buckets of ranges that follow one another.
pub(super) fn stretch_of(ranges: &[Range<usize>]) -> Result<Range<usize>> {
    match ranges {
        [only] => Ok(only.clone()),
        [first, .., last] if ranges.windows(2).all(|two| two[0].end == two[1].start) => {
            Ok(first.start..last.end)
        }
        _ => Err(Error::bug(
            "merge runs",
            format!("ranges {ranges:?} of a task"),
        )),
    }
}
