//! Lines behind codes of their keys: read, encoded once, and spilled as sorted runs.
//!
//! ```text
//!   pieces of files ─┐                            ┌──full──▶ sort ──▶ run file
//!   or a stream ─────┴─▶ raw: lines ──encode──▶ chunk: lengths, code, line
//! ```
//!
//! A run holds lines that were next to each other in the input, equal codes in input order. What a run says that was read are
//! the lines, without codes: so the proof at the end compares lines read with lines written.

use gristmill_gnu_keys::Keys;

use super::source::{Progress, Stream, UnreadRanges};
use super::{SpillPlan, SpillScratch, SpilledRun, Written};
use crate::error::{Error, JobOption, Kind, Result};
use crate::record::shape::{Ended, Keyed, Pairs, Shape};
use crate::storage::LocalDisk;

/// The part of a worker's memory that holds lines as they were read: one in so many.
const RAW_SHARE: usize = 4;

/// Runs of a stream carry the number of what was read at once, and below it their own.
const RUNS_OF_A_READ: u64 = 1 << 32;

/// How lines are keyed.
#[derive(Debug)]
pub struct KeyedPlan<'a> {
    /// How their runs are made.
    pub spill: SpillPlan<'a, Keyed>,
    /// What the keys are.
    pub keys: &'a Keys,
}

impl KeyedPlan<'_> {
    fn lines(&self) -> Ended {
        lines_of(self.keys)
    }
}

/// Where lines end that have such keys.
///
/// ```
/// use gristmill_engine::spill::keyed::lines_of;
/// let keys = gristmill_gnu_keys::Keys::parse(["-z"]).unwrap();
/// assert_eq!(lines_of(&keys).end, 0);
/// ```
pub fn lines_of(keys: &Keys) -> Ended {
    Ended {
        end: if keys.zero_terminated() { 0 } else { b'\n' },
    }
}

/// Spills all of `pieces`, as [`spill_pieces`](super::spill_pieces) does.
pub fn spill_pieces(
    plan: &KeyedPlan<'_>,
    store: &dyn LocalDisk,
    mut pieces: UnreadRanges<'_>,
    name: &str,
    scratch: &mut SpillScratch,
    progress: Progress<'_>,
) -> Result<Vec<SpilledRun>> {
    let mut runs = Runs::new(plan, store, name, scratch)?;
    while runs.read(progress, |raw| {
        pieces.fill(plan.lines(), raw, &plan.spill.needed, progress)?;
        Ok(0)
    })? {}
    runs.finish(progress)
}

/// Spills what a stream still has, beside other workers, as [`spill_stream`](super::spill_stream) does.
pub fn spill_stream(
    plan: &KeyedPlan<'_>,
    store: &dyn LocalDisk,
    stream: &Stream,
    name: &str,
    scratch: &mut SpillScratch,
    progress: Progress<'_>,
) -> Result<Vec<SpilledRun>> {
    let mut runs = Runs::new(plan, store, name, scratch)?;
    while runs.read(progress, |raw| {
        let number = stream.fill(plan.lines(), raw, progress)?;
        Ok(number * RUNS_OF_A_READ)
    })? {
        runs.spill(progress)?; // others read what follows
    }
    runs.finish(progress)
}

/// The runs of an attempt, and the memory that becomes the next one.
struct Runs<'a> {
    plan: &'a KeyedPlan<'a>,
    written: Written<'a>,
    scratch: &'a mut SpillScratch,
    code: Vec<u8>,
    /// Bytes of the lines in the chunk.
    line_bytes: u64,
    /// Of the next run.
    number: u64,
}

impl<'a> Runs<'a> {
    fn new(
        plan: &'a KeyedPlan<'a>,
        store: &'a dyn LocalDisk,
        name: &'a str,
        scratch: &'a mut SpillScratch,
    ) -> Result<Self> {
        let mut runs = Runs {
            plan,
            written: Written::new(store, name),
            scratch,
            code: Vec::new(),
            line_bytes: 0,
            number: 0,
        };
        runs.reserve()?;
        Ok(runs)
    }

    fn reserve(&mut self) -> Result<()> {
        let SpillPlan {
            shape,
            chunk_bytes,
            typical_bytes,
            ..
        } = self.plan.spill;
        let bytes = chunk_bytes - chunk_bytes / RAW_SHARE;
        self.scratch.chunk.reserve(shape, bytes, typical_bytes)
    }

    /// Reads lines by `fill`, which says from which number on their runs are to be counted, and takes them in; false where
    /// there are none any more.
    fn read(
        &mut self,
        progress: Progress<'_>,
        mut fill: impl FnMut(&mut super::Chunk) -> Result<u64>,
    ) -> Result<bool> {
        let SpillPlan {
            chunk_bytes,
            typical_bytes,
            ..
        } = self.plan.spill;
        let lines = self.plan.lines();
        let mut raw = std::mem::take(&mut self.scratch.raw);
        raw.reserve(lines, chunk_bytes / RAW_SHARE, typical_bytes)?;
        raw.be_part(RAW_SHARE);
        self.number = self.number.max(fill(&mut raw)?);
        let any = !raw.is_empty();
        raw.in_order(lines, |line| self.take(line, progress))?;
        self.scratch.raw = raw;
        Ok(any)
    }

    fn take(&mut self, line: &[u8], progress: Progress<'_>) -> Result<()> {
        self.code.clear();
        self.plan
            .keys
            .encode(self.plan.lines().key(line), &mut self.code);
        if self.code.len().max(line.len()) > u32::MAX as usize {
            return Err(self.too_long(line));
        }
        if !self.append(line) {
            self.spill(progress)?;
            if !self.append(line) {
                return Err(self.too_long(line));
            }
        }
        self.line_bytes += line.len() as u64;
        Ok(())
    }

    fn append(&mut self, line: &[u8]) -> bool {
        let header = Pairs::header(self.code.len(), line.len());
        let chunk = &mut self.scratch.chunk;
        chunk.append(self.plan.spill.shape, &[&header, &self.code, line])
    }

    fn spill(&mut self, progress: Progress<'_>) -> Result<()> {
        if self.scratch.chunk.is_empty() {
            return Ok(());
        }
        self.written
            .write(&self.plan.spill, self.scratch, self.number, progress)?;
        if let Some(run) = self.written.runs.last_mut() {
            run.bytes_read = std::mem::take(&mut self.line_bytes);
        }
        self.number += 1;
        self.reserve()
    }

    fn finish(mut self, progress: Progress<'_>) -> Result<Vec<SpilledRun>> {
        self.spill(progress)?;
        Ok(self.written.keep())
    }

    fn too_long(&self, line: &[u8]) -> Error {
        let bytes = self.code.len() + line.len();
        let message = format!(
            "a line with its keys has {bytes} bytes, and a worker has room for {}",
            self.scratch.chunk.memory_bytes()
        );
        // Beside raw lines the chunk has this part of the memory; the model has room for two of them, to be merged.
        let longest = bytes as u64 * RAW_SHARE as u64 / (RAW_SHARE as u64 - 1);
        let needed = self.plan.spill.needed.bytes(longest);
        Error::new(Kind::Memory, "read the input", message).advise_options(
            "give {} or more, or fewer {}",
            [
                JobOption::Memory.at_least(needed),
                JobOption::Workers.named(),
            ],
        )
    }
}
