//! The spill task: pieces of the input, or what a stream still has, to sorted run files.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Attempt, Scratch, TaskContext, not_read};
use crate::error::{Error, Result};
use crate::order::borders::Border;
use crate::record::shape::{Shape, ShapeKind};
use crate::spill::{
    Needed, Pieces, SpillPlan, SpilledRun, spill_bytes, spill_pieces, spill_stream,
};
use crate::storage::input::Piece;

/// What a spill task reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpillInput {
    /// Ranges of files.
    Pieces(Vec<Piece>),
    /// What one of the job's streams still has, beside other tasks.
    Stream(usize),
}

/// How runs are made and merged: the same for all tasks of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlan {
    /// What the records are.
    pub shape: ShapeKind,
    /// Whether of records with equal keys only the first stays.
    pub unique: bool,
    /// Where runs are cut into buckets.
    pub borders: Vec<Border>,
    /// Where runs may be written, in order.
    pub places: Vec<PathBuf>,
    /// Bytes of each buffer of a writer.
    pub buffer_bytes: usize,
    /// What memory longer records would need.
    pub needed: Needed,
}

/// What to spill, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillSpec {
    /// What to read.
    pub input: SpillInput,
    /// How to write it.
    pub runs: Arc<RunPlan>,
    /// Bytes of records and entries that are sorted at once.
    pub chunk_bytes: usize,
    /// The length of a record to reckon with before there are any.
    pub typical_bytes: usize,
}

pub(super) fn run(
    spec: &SpillSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<SpilledRun>> {
    let bytes = spill_bytes(spec.chunk_bytes, spec.runs.buffer_bytes);
    let _memory = context.budget.reserve("records to spill", bytes)?;
    scratch.keep_for_spill();
    match spec.runs.shape {
        ShapeKind::Fixed(shape) => run_shape(shape, spec, context, attempt, scratch),
        ShapeKind::Lines(shape) => run_shape(shape, spec, context, attempt, scratch),
        ShapeKind::Pairs(_) => Err(not_read()),
    }
}

fn run_shape<S: Shape>(
    shape: S,
    spec: &SpillSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<SpilledRun>> {
    let plan = SpillPlan {
        shape,
        borders: &spec.runs.borders,
        unique: spec.runs.unique,
        chunk_bytes: spec.chunk_bytes,
        typical_bytes: spec.typical_bytes,
        needed: spec.runs.needed,
        buffer_bytes: spec.runs.buffer_bytes,
        job_id: &context.job_id,
        places: &spec.runs.places,
    };
    let progress = |bytes| attempt.progress(bytes);
    let name = format!("{:05}-{}", attempt.id.task, attempt.id.attempt);
    let (runs, scratch) = (&*context.runs, &mut scratch.spill);
    match &spec.input {
        SpillInput::Pieces(pieces) => {
            let pieces = Pieces::new(&*context.store, &context.files, &context.starts, pieces);
            spill_pieces(&plan, runs, pieces, &name, scratch, &progress)
        }
        SpillInput::Stream(number) => {
            let stream = context.streams.get(*number);
            let stream = stream.ok_or_else(|| Error::bug("spill", "the job has no stream"))?;
            // What this attempt has read is lost with it: another one would go on behind that.
            spill_stream(&plan, runs, stream, &name, scratch, &progress).map_err(Error::final_error)
        }
    }
}
