//! Proves again what a task that is over had written: from its bytes, as they are on disk now.
//!
//! The same code that proved the records when they were written, over records that are read: what it finds must be
//! what was reported then. So an output that was damaged, cut off or never reached the disk is noticed, and what it
//! proves (first and last keys, order) does not have to be believed.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::kept::checksum;
use super::{Kept, KeptRange, TaskReport};
use crate::error::{Error, Kind, Result};
use crate::merge::output::{MergeProof, ProvenWriter};
use crate::order::check::OrderCheck;
use crate::record::RECORD_BYTES;
use crate::record::checksum::Checksum;
use crate::record::shape::{Shape, ShapeKind};
use crate::reduce::RangeProof;
use crate::storage::overlap::{OverlappedWriter, read_through};
use crate::storage::{Caching, Store, WriteFile};

/// Bytes that are read at once: of records of 100 bytes whole ones.
const READ_BYTES: usize = 1 << 20;

/// Bytes of the buffers of a writer that writes nowhere.
const PASS_BYTES: usize = 256 << 10;

/// The report of a task whose output is as it was when the task was over; an error where it is not. Of tasks that
/// wrote no output there is none to give.
pub fn prove_again(
    kept: &Kept,
    shape: ShapeKind,
    unique: bool,
    store: &dyn Store,
    folder: &Path,
) -> Result<Option<TaskReport>> {
    match kept {
        Kept::Spill(_) | Kept::MergeRuns { .. } => Ok(None),
        Kept::Merge(ranges) => {
            let proof = |range: &KeptRange| merged(range, shape, unique, store, folder);
            let proofs = ranges.iter().map(proof).collect::<Result<_>>()?;
            Ok(Some(TaskReport::Merge(proofs)))
        }
        Kept::Reduce(ranges) => {
            let proof = |range: &KeptRange| tera_range(range, true, store, folder);
            let proofs = ranges.iter().map(proof).collect::<Result<_>>()?;
            Ok(Some(TaskReport::Reduce(proofs)))
        }
        Kept::Generate(range) => {
            let proof = tera_range(range, false, store, folder)?;
            Ok(Some(TaskReport::Generate(proof)))
        }
    }
}

fn merged(
    range: &KeptRange,
    shape: ShapeKind,
    unique: bool,
    store: &dyn Store,
    folder: &Path,
) -> Result<MergeProof> {
    let mut proof = match shape {
        ShapeKind::Fixed(shape) => merged_shape(range, shape, store, folder),
        ShapeKind::Lines(shape) => merged_shape(range, shape, store, folder),
    }?;
    if unique && proof.duplicates == 0 {
        proof.duplicates = range.duplicates; // these were left out: the output cannot show them
    }
    let found = (proof.records, proof.duplicates, proof.checksum);
    agree(range, found, folder)?;
    Ok(proof)
}

/// The records go through the same writer as when they were written; what it writes goes nowhere.
fn merged_shape<S: Shape>(
    range: &KeptRange,
    shape: S,
    store: &dyn Store,
    folder: &Path,
) -> Result<MergeProof> {
    OverlappedWriter::run(&mut Vec::new(), PASS_BYTES, |writer| {
        writer.begin(Arc::new(Nowhere), range.offset)?;
        let mut out = ProvenWriter::new(shape, false, writer);
        let mut rest: Vec<u8> = Vec::new();
        read(range, store, folder, |bytes| {
            rest.extend_from_slice(bytes);
            let mut done = 0;
            while let Some(length) = rest.get(done..).and_then(|left| shape.length(left)) {
                out.append(rest.get(done..done + length).unwrap_or_default())?;
                done += length;
            }
            rest.drain(..done);
            Ok(())
        })?;
        if rest.is_empty() {
            out.proof()
        } else {
            Err(differs(range, folder, "its last record is not whole"))
        }
    })
}

/// Of records of the sort benchmark; their order counts where `sorted`.
fn tera_range(
    range: &KeptRange,
    sorted: bool,
    store: &dyn Store,
    folder: &Path,
) -> Result<RangeProof> {
    let mut sum = Checksum::new(RECORD_BYTES);
    let mut check = OrderCheck::default();
    let (mut rest, mut records): (Vec<u8>, u64) = (Vec::new(), 0);
    read(range, store, folder, |bytes| {
        rest.extend_from_slice(bytes);
        let whole = rest.len() / RECORD_BYTES * RECORD_BYTES;
        let data = rest.get(..whole).unwrap_or_default();
        sum.update(data);
        if sorted {
            check.update(data, RECORD_BYTES);
        }
        records += (whole / RECORD_BYTES) as u64;
        rest.drain(..whole);
        Ok(())
    })?;
    if !rest.is_empty() || check.misorders > 0 {
        return Err(differs(range, folder, "it is out of order, or cut off"));
    }
    check.records = records;
    agree(range, (records, check.duplicates, sum.value()), folder)?;
    Ok(RangeProof {
        check,
        checksum: sum.value(),
    })
}

/// Hands on all bytes of the range; fails where the file has not the length that it should have.
fn read(
    range: &KeptRange,
    store: &dyn Store,
    folder: &Path,
    work: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let path = folder.join(&range.file);
    let Range { start, end } = range.offset..range.offset.saturating_add(range.bytes);
    let found = store.stat(&path)?.map(|stat| stat.bytes);
    if found != Some(range.file_bytes) || end > range.file_bytes {
        return Err(differs(range, folder, "it has another length"));
    }
    let file = store.open(&path, Caching::Cached)?;
    read_through(&*file, start..end, READ_BYTES, &mut Vec::new(), work)
}

fn agree(range: &KeptRange, found: (u64, u64, u128), folder: &Path) -> Result<()> {
    let reported = (range.records, range.duplicates, checksum(&range.checksum)?);
    if found == reported {
        Ok(())
    } else {
        Err(differs(range, folder, "it holds other records"))
    }
}

fn differs(range: &KeptRange, folder: &Path, what: &str) -> Error {
    Error::new(Kind::Io, "prove an output again", what)
        .with_path(&folder.join(&range.file))
        .with("offset", range.offset)
}

/// Where bytes go that are only to be proved.
#[derive(Debug)]
struct Nowhere;

impl WriteFile for Nowhere {
    fn write_at(&self, _data: &[u8], _offset: u64) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
