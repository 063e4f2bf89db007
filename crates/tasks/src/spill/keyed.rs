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
use super::chunk::Chunk;
use super::in_order::{Take, read_records};
use super::{Progress, SpillPlan, SpillScratch, SpillSource, SpilledRun};
use gristmill_base::error::Result;
use gristmill_base::record::shape::{EndedLineShape, Keyed, PairShape, Shape};
use gristmill_storage::LocalDisk;

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

/// Spills all of `source`, as [`spill_source`](super::spill_source) does.
///
/// # Errors
/// The same.
pub fn spill_keyed(
    plan: &KeyedPlan<'_>,
    store: &dyn LocalDisk,
    source: SpillSource<'_>,
    name: &str,
    scratch: &mut SpillScratch,
    progress: Progress<'_>,
) -> Result<Vec<SpilledRun>> {
    let mut runs = AppendedRuns::new(&plan.spill, store, name, scratch)?;
    let (lines, mut code) = (lines_of(plan.keys), Vec::new());
    let mut take = |runs: &mut AppendedRuns<'_, Keyed>, line: &[u8]| {
        code.clear();
        plan.keys.encode(lines.key(line), &mut code);
        let header = PairShape::header(code.len(), line.len());
        runs.take(&[&header, &code[..], line], line.len(), progress)
    };
    let needed = &plan.spill.needed;
    match source {
        SpillSource::Ranges(mut pieces) => {
            while read(plan, &mut runs, &mut take, |raw| {
                pieces.fill(lines, raw, needed, progress)?;
                Ok(0)
            })? {}
        }
        SpillSource::Stream(stream) => {
            while read(plan, &mut runs, &mut take, |raw| {
                let number = stream.fill(lines, raw, needed, progress)?;
                Ok(number * RUNS_OF_A_READ)
            })? {
                runs.spill(progress)?; // others read what follows
            }
        }
        SpillSource::InOrder(source, stores) => {
            read_records(lines, source, stores, &mut runs, progress, &mut take)?;
        }
    }
    runs.finish(progress)
}

/// Reads lines by `fill`, which says from which number on their runs are to be counted, and has them taken; false where there
/// are none any more.
fn read(
    plan: &KeyedPlan<'_>,
    runs: &mut AppendedRuns<'_, Keyed>,
    take: Take<'_, Keyed>,
    mut fill: impl FnMut(&mut Chunk) -> Result<u64>,
) -> Result<bool> {
    let lines = lines_of(plan.keys);
    let chunk_bytes = plan.spill.chunk_bytes / RAW_SHARE;
    let mut raw = std::mem::take(&mut runs.scratch.raw);
    raw.reserve(lines, chunk_bytes, plan.spill.typical_bytes)?;
    raw.be_part(RAW_SHARE);
    runs.number = runs.number.max(fill(&mut raw)?);
    let any = !raw.is_empty();
    raw.in_order(lines, |line| take(runs, line))?;
    runs.scratch.raw = raw;
    Ok(any)
}
