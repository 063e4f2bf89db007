//! Verifies what a finished task wrote: proves it again, from its bytes as they are on disk now.
//!
//! The same code that proved the records when they were written, over records that are read: what it finds must be
//! what was reported then. So an output that was damaged, cut off or never reached the disk is noticed, and what it
//! proves (first and last keys, order) does not have to be believed. Lines of a sort by keys get the codes of their keys
//! again first (`recoded`): the output does not hold them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::checkpoint::{Checkpoint, WrittenRange};
use super::kinds::merge::MergeReport;
use super::recoded::{Codes, Recoded};
use super::spec::TaskReport;
use crate::merge::output::{MergeProof, ProvenWriter};
use crate::reduce::RangeProof;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::order::check::OrderCheck;
use gristmill_base::record::RECORD_BYTES;
use gristmill_base::record::checksum::Checksum;
use gristmill_base::record::shape::{Keyed, Shape, ShapeKind};
use gristmill_storage::io::overlap::OverlappedWriter;
use gristmill_storage::io::read_ahead::read_through;
use gristmill_storage::{Caching, Store, WriteFile};

/// Bytes that are read at once. Each worker has two such buffers, and the records that they hold: less than the least
/// that a worker of any sort is granted.
const READ_BYTES: usize = 256 << 10;

/// Bytes of the buffers of a writer that writes nowhere.
const PASS_BYTES: usize = 256 << 10;

/// What the records of an output are.
#[derive(Debug, Clone, Copy)]
pub struct Proved<'a> {
    /// What they were when they were merged.
    pub shape: ShapeKind,
    /// Whether of records with equal keys only the first was written.
    pub unique: bool,
    /// What gives them codes again, where they had such.
    pub codes: Option<&'a Codes>,
}

/// The report of a task whose output is as it was when the task was over; an error where it is not. Of tasks that
/// wrote no output there is none to give.
pub fn verify(
    checkpoint: &Checkpoint,
    records: Proved<'_>,
    store: &dyn Store,
    folder: &Path,
) -> Result<Option<TaskReport>> {
    match checkpoint {
        Checkpoint::Spill(_)
        | Checkpoint::MergeRuns { .. }
        | Checkpoint::User(_)
        | Checkpoint::Uploaded(_) => Ok(None),
        Checkpoint::Merge(ranges) | Checkpoint::GatherLines(ranges) => {
            let proof = |range: &WrittenRange| merged(range, records, store, folder);
            let proofs = ranges.iter().map(proof).collect::<Result<_>>()?;
            if let Checkpoint::GatherLines(_) = checkpoint {
                return Ok(Some(TaskReport::GatherLines(proofs)));
            }
            // What was spent was given back, or goes with the job; the process that has read is gone.
            Ok(Some(TaskReport::Merge(MergeReport {
                proofs,
                ..MergeReport::default()
            })))
        }
        Checkpoint::Reduce(ranges) => {
            let proof = |range: &WrittenRange| tera_range(range, true, store, folder);
            let proofs = ranges.iter().map(proof).collect::<Result<_>>()?;
            Ok(Some(TaskReport::Reduce(proofs)))
        }
        Checkpoint::Generate(range) => {
            let proof = tera_range(range, false, store, folder)?;
            Ok(Some(TaskReport::Generate(proof)))
        }
    }
}

fn merged(
    range: &WrittenRange,
    records: Proved<'_>,
    store: &dyn Store,
    folder: &Path,
) -> Result<MergeProof> {
    let mut proof = match records.shape {
        ShapeKind::Fixed(shape) => merged_shape(range, shape, store, folder),
        ShapeKind::Lines(shape) => merged_shape(range, shape, store, folder),
        ShapeKind::Pairs(shape) => merged_shape(range, shape, store, folder),
        ShapeKind::Keyed(shape) => merged_keyed(range, (shape, records.codes), store, folder),
    }?;
    if records.unique && proof.duplicates == 0 {
        proof.duplicates = range.duplicates; // these were left out: the output cannot show them
    }
    let found = (proof.records, proof.duplicates, proof.checksum);
    agree(range, found, folder)?;
    Ok(proof)
}

/// The records go through the same writer as when they were written; what it writes goes nowhere.
fn merged_shape<S: Shape>(
    range: &WrittenRange,
    shape: S,
    store: &dyn Store,
    folder: &Path,
) -> Result<MergeProof> {
    OverlappedWriter::run(&mut Vec::new(), PASS_BYTES, |writer| {
        writer.begin(Arc::new(Nowhere), range.offset)?;
        let mut out = ProvenWriter::new(shape, false, writer);
        let mut rest: Vec<u8> = Vec::with_capacity(2 * READ_BYTES);
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

/// The same of lines that were sorted by codes, which they get again.
fn merged_keyed(
    range: &WrittenRange,
    (shape, codes): (Keyed, Option<&Codes>),
    store: &dyn Store,
    folder: &Path,
) -> Result<MergeProof> {
    let codes = codes.ok_or_else(|| differs(range, folder, "its keys are not known"))?;
    OverlappedWriter::run(&mut Vec::new(), PASS_BYTES, |writer| {
        writer.begin(Arc::new(Nowhere), range.offset)?;
        let mut out = ProvenWriter::new(shape, false, writer);
        let mut lines = Recoded::new(shape, codes, range)?;
        read(range, store, folder, |bytes| {
            let fits = lines.block(bytes, &mut |record| out.append(record))?;
            let error = || differs(range, folder, "a row has not the fields of the header");
            fits.then_some(()).ok_or_else(error)
        })?;
        if lines.is_whole() {
            out.proof()
        } else {
            Err(differs(range, folder, "its last record is not whole"))
        }
    })
}

/// Of records of the sort benchmark; their order counts where `sorted`.
fn tera_range(
    range: &WrittenRange,
    sorted: bool,
    store: &dyn Store,
    folder: &Path,
) -> Result<RangeProof> {
    let mut sum = Checksum::new(RECORD_BYTES);
    let mut check = OrderCheck::default();
    let (mut rest, mut records) = (Vec::with_capacity(2 * READ_BYTES), 0);
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
        upload: None,
    })
}

/// Hands on all bytes of the range; fails where the file has not the length that it should have.
fn read(
    range: &WrittenRange,
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
    read_through(&*file, start..end, (READ_BYTES, 2), &mut Vec::new(), work)
}

fn agree(range: &WrittenRange, found: (u64, u64, u128), folder: &Path) -> Result<()> {
    let reported = (range.records, range.duplicates, range.checksum);
    if found == reported {
        Ok(())
    } else {
        Err(differs(range, folder, "it holds other records"))
    }
}

fn differs(range: &WrittenRange, folder: &Path, what: &str) -> Error {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::shape::LineShape;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{LocalDisk as _, OutputStore as _};

    const LINES: ShapeKind = ShapeKind::Lines(LineShape { descending: false });

    fn put(store: &Memory, bytes: &[u8]) {
        let file = store.create("/o/part".as_ref(), bytes.len() as u64, Caching::Cached);
        file.unwrap().write_at(bytes, 0).unwrap();
    }

    fn range(
        whole: &[u8],
        bytes: Range<usize>,
        records: &[&[u8]],
        duplicates: u64,
    ) -> WrittenRange {
        let sum: u128 = records
            .iter()
            .map(|record| u128::from(crc32fast::hash(record)))
            .sum();
        WrittenRange {
            file: "part".into(),
            file_bytes: whole.len() as u64,
            offset: bytes.start as u64,
            bytes: bytes.len() as u64,
            records: records.len() as u64,
            duplicates,
            checksum: sum,
        }
    }

    fn prove(store: &Memory, checkpoint: &Checkpoint, unique: bool) -> Result<Option<TaskReport>> {
        let records = Proved {
            shape: LINES,
            unique,
            codes: None,
        };
        verify(checkpoint, records, store, "/o".as_ref())
    }

    /// Any byte that is not what it was is noticed, and so is a file of another length.
    #[test]
    fn a_range_is_proved_from_its_bytes_or_not_at_all() {
        let store = Memory::with_room_for(1 << 20);
        store.create_directory("/o".as_ref()).unwrap();
        let whole = b"aa\nb\nb\ncc\n";
        put(&store, whole);
        let kept = Checkpoint::Merge(vec![
            range(whole, 0..3, &[b"aa\n"], 0),
            range(whole, 3..10, &[b"b\n", b"b\n", b"cc\n"], 1),
        ]);
        let Some(TaskReport::Merge(MergeReport { proofs, .. })) =
            prove(&store, &kept, false).unwrap()
        else {
            panic!("no proofs");
        };
        assert_eq!(proofs[1].ends, Some((b"b".to_vec(), b"cc".to_vec())));
        assert_eq!((proofs[1].records, proofs[1].duplicates), (3, 1));
        for at in 0..whole.len() {
            let mut damaged = *whole;
            damaged[at] ^= 1;
            put(&store, &damaged);
            assert!(prove(&store, &kept, false).is_err(), "byte {at}");
        }
        put(&store, whole);
        assert!(prove(&store, &kept, false).is_ok());
        let cut = [range(&whole[..9], 0..3, &[b"aa\n"], 0)];
        assert!(prove(&store, &Checkpoint::Merge(cut.to_vec()), false).is_err());
        // Of what was left out, the report is all there is.
        let unique = Checkpoint::Merge(vec![range(whole, 0..3, &[b"aa\n"], 5)]);
        let Some(TaskReport::Merge(MergeReport { proofs, .. })) =
            prove(&store, &unique, true).unwrap()
        else {
            panic!("no proofs");
        };
        assert_eq!(proofs[0].duplicates, 5);
        assert!(prove(&store, &unique, false).is_err());
    }
}
