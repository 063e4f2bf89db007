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

use super::appended::{AppendedRuns, RAW_SHARE};
use super::in_order::{InOrder, read_records};
use super::source::{Progress, SharedStream, UnreadRanges};
use super::{SpillPlan, SpillScratch, SpilledRun};
use gristmill_base::error::Result;
use gristmill_base::record::shape::{EndedLineShape, Keyed, PairShape, Shape};
use gristmill_storage::LocalDisk;
use gristmill_storage::stores::Stores;

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
    fn lines(&self) -> EndedLineShape {
        lines_of(self.keys)
    }
}

/// Where lines end that have such keys.
///
/// ```
/// use gristmill_tasks::spill::keyed::lines_of;
/// let keys = gristmill_gnu_keys::Keys::parse(["-z"]).unwrap();
/// assert_eq!(lines_of(&keys).end, 0);
/// ```
pub fn lines_of(keys: &Keys) -> EndedLineShape {
    EndedLineShape {
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
    runs.runs.finish(progress)
}

/// Spills what a stream still has, beside other workers, as [`spill_stream`](super::spill_stream) does.
pub fn spill_stream(
    plan: &KeyedPlan<'_>,
    store: &dyn LocalDisk,
    stream: &SharedStream,
    name: &str,
    scratch: &mut SpillScratch,
    progress: Progress<'_>,
) -> Result<Vec<SpilledRun>> {
    let mut runs = Runs::new(plan, store, name, scratch)?;
    while runs.read(progress, |raw| {
        let number = stream.fill(plan.lines(), raw, &plan.spill.needed, progress)?;
        Ok(number * RUNS_OF_A_READ)
    })? {
        runs.runs.spill(progress)?; // others read what follows
    }
    runs.runs.finish(progress)
}

/// Spills all of a source that one task reads, as [`spill_in_order`](super::in_order::spill_in_order) does.
pub fn spill_in_order(
    plan: &KeyedPlan<'_>,
    (disk, store): (&dyn LocalDisk, &Stores),
    source: InOrder<'_>,
    name: &str,
    scratch: &mut SpillScratch,
    progress: Progress<'_>,
) -> Result<Vec<SpilledRun>> {
    let mut runs = AppendedRuns::new(&plan.spill, disk, name, scratch)?;
    let (lines, mut code) = (plan.lines(), Vec::new());
    let mut take = |runs: &mut AppendedRuns<'_, Keyed>, line: &[u8]| {
        code.clear();
        plan.keys.encode(lines.key(line), &mut code);
        let header = PairShape::header(code.len(), line.len());
        runs.take(&[&header, &code[..], line], line.len(), progress)
    };
    read_records(lines, source, store, &mut runs, progress, &mut take)?;
    runs.finish(progress)
}

/// The runs of an attempt.
struct Runs<'a> {
    plan: &'a KeyedPlan<'a>,
    runs: AppendedRuns<'a, Keyed>,
    code: Vec<u8>,
}

impl<'a> Runs<'a> {
    fn new(
        plan: &'a KeyedPlan<'a>,
        store: &'a dyn LocalDisk,
        name: &'a str,
        scratch: &'a mut SpillScratch,
    ) -> Result<Self> {
        Ok(Runs {
            plan,
            runs: AppendedRuns::new(&plan.spill, store, name, scratch)?,
            code: Vec::new(),
        })
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
        let mut raw = std::mem::take(&mut self.runs.scratch.raw);
        raw.reserve(lines, chunk_bytes / RAW_SHARE, typical_bytes)?;
        raw.be_part(RAW_SHARE);
        self.runs.number = self.runs.number.max(fill(&mut raw)?);
        let any = !raw.is_empty();
        raw.in_order(lines, |line| self.take(line, progress))?;
        self.runs.scratch.raw = raw;
        Ok(any)
    }

    fn take(&mut self, line: &[u8], progress: Progress<'_>) -> Result<()> {
        let (keys, lines) = (self.plan.keys, self.plan.lines());
        self.code.clear();
        keys.encode(lines.key(line), &mut self.code);
        let header = PairShape::header(self.code.len(), line.len());
        let parts = [&header, &self.code[..], line];
        self.runs.take(&parts, line.len(), progress)
    }
}
