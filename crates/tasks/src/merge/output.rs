//! What a merge writes: records in order, proved from the buffer they are written from.
//!
//! ```text
//!   append ──▶ | proved ....... | pending | room |   buffer of the OverlappedWriter
//!                order, CRCs      │
//!                                 └─ proved in one go: before the buffer leaves, or when there is enough
//! ```
//!
//! Order is checked against the last key before, within and across buffers. The rule that must hold: no byte leaves
//! the buffer before it is proved.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::order::check::OrderCheck;
use gristmill_base::record::KEY_BYTES;
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_base::record::sum::RecordSum;
use gristmill_storage::WriteFile;
use gristmill_storage::io::overlap::OverlappedWriter;
use gristmill_storage::objects::Upload;

/// Pending bytes worth proving: the kernels are at full speed, and the bytes still in the first-level cache.
const PROVE_BYTES: usize = 8 << 10;

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeProof {
    /// Records written.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records whose key equals that of the one before: written, or left out where only the first stays.
    pub duplicates: u64,
    /// The sum of the CRCs of what was written.
    pub checksum: u128,
    /// The first and the last key, where anything was written.
    pub ends: Option<(Vec<u8>, Vec<u8>)>,
    /// Order of ten-byte keys with its numbers, where the records have such.
    pub check: Option<OrderCheck>,
    /// What completes the file, where it was uploaded.
    pub upload: Option<Upload>,
}

/// Takes records in order, and writes and proves them.
pub struct ProvenWriter<'w, S> {
    shape: S,
    unique: bool,
    writer: &'w mut OverlappedWriter,
    pending: usize,
    /// The lengths of the pending records, unless `check` proves them: so that nobody looks for their ends again.
    lengths: Vec<u32>,
    sum: RecordSum,
    last_key: Vec<u8>,
    proof: MergeProof,
    out_of_order: bool,
    /// Where only the first of records with equal keys is written: the key of the last one.
    kept_key: Vec<u8>,
    /// Records that were not written, as their keys were there.
    left_out: u64,
}

impl<'w, S: Shape> ProvenWriter<'w, S> {
    /// Goes on where `writer` stands. Of records with equal keys only the first is written where `unique`.
    pub fn new(shape: S, unique: bool, writer: &'w mut OverlappedWriter) -> Self {
        let plain = match shape.kind() {
            ShapeKind::Fixed(fixed) => {
                fixed.key_bytes == KEY_BYTES
                    && !fixed.descending
                    && fixed.record_bytes <= PROVE_BYTES
            }
            ShapeKind::Lines(_) | ShapeKind::Pairs(_) | ShapeKind::Keyed(_) => false,
        };
        ProvenWriter {
            shape,
            unique,
            writer,
            pending: 0,
            lengths: Vec::new(),
            sum: RecordSum::new(shape.kind()),
            last_key: Vec::new(),
            proof: MergeProof {
                check: plain.then(OrderCheck::default),
                ..MergeProof::default()
            },
            out_of_order: false,
            kept_key: Vec::new(),
            left_out: 0,
        }
    }

    /// Writes the next record, of any length.
    #[inline]
    pub fn append(&mut self, record: &[u8]) -> Result<()> {
        if self.unique && self.repeats(record) {
            self.left_out += 1;
            return Ok(());
        }
        if self.shape.is_stripped() {
            return self.append_long(record);
        }
        if self.pending >= PROVE_BYTES || record.len() > self.writer.left() {
            self.prove();
        }
        if record.len() > PROVE_BYTES {
            return self.append_long(record);
        }
        self.writer.room(record.len())?[..record.len()].copy_from_slice(record);
        self.writer.advance(record.len());
        self.pending += record.len();
        if self.proof.check.is_none() {
            self.lengths.push(record.len() as u32);
        }
        Ok(())
    }

    /// What was written; an error if it is out of order, which nothing but a bug or broken memory can make it.
    pub fn proof(mut self) -> Result<MergeProof> {
        self.take_proof()
    }

    /// The same of what was written so far; what follows goes to `file` at `offset`, and has a proof of its own.
    pub fn turn_to(&mut self, file: Arc<dyn WriteFile>, offset: u64) -> Result<MergeProof> {
        let proof = self.take_proof()?;
        self.writer.begin(file, offset)?;
        Ok(proof)
    }

    /// Where it writes.
    pub fn writer(&self) -> &OverlappedWriter {
        self.writer
    }

    fn take_proof(&mut self) -> Result<MergeProof> {
        self.prove();
        if self.out_of_order {
            let message = "records of a merged range are out of order";
            return Err(Error::new(Kind::Proof, "prove the output", message));
        }
        let next = MergeProof {
            check: self.proof.check.as_ref().map(|_| OrderCheck::default()),
            ..MergeProof::default()
        };
        let mut proof = std::mem::replace(&mut self.proof, next);
        let sum = std::mem::replace(&mut self.sum, RecordSum::new(self.shape.kind()));
        proof.checksum = sum.value();
        proof.duplicates += std::mem::take(&mut self.left_out);
        if let Some((_, last)) = &mut proof.ends {
            *last = std::mem::take(&mut self.last_key);
        }
        Ok(proof)
    }

    /// Whether the record's key is that of the last one written; else it is the next one that is.
    fn repeats(&mut self, record: &[u8]) -> bool {
        let key = self.shape.key(record);
        let any = self.pending > 0 || self.proof.ends.is_some();
        if any && self.kept_key == key {
            return true;
        }
        self.kept_key.clear();
        self.kept_key.extend_from_slice(key);
        false
    }

    /// A record that may be longer than a buffer, or is not written whole: proved from where it lies, written in pieces.
    fn append_long(&mut self, record: &[u8]) -> Result<()> {
        self.prove();
        self.sum.add(record);
        self.see(record);
        let written = self.shape.written(record);
        written.chunks(PROVE_BYTES).try_for_each(|piece| {
            self.writer.room(piece.len())?[..piece.len()].copy_from_slice(piece);
            self.writer.advance(piece.len());
            Ok(())
        })
    }

    /// Proves what is pending.
    fn prove(&mut self) {
        if self.pending == 0 {
            return;
        }
        let shape = self.shape;
        let pending = self.writer.latest(std::mem::take(&mut self.pending));
        let many = shape.kind().record_bytes().is_some();
        if many {
            self.sum.update(pending);
        }
        if let (Some(check), ShapeKind::Fixed(fixed)) = (&mut self.proof.check, shape.kind()) {
            check.update(pending, fixed.record_bytes);
            self.proof.records = check.records;
            self.proof.duplicates = check.duplicates;
            self.proof.bytes += pending.len() as u64;
            self.out_of_order |= check.misorders > 0;
            if let Some((first, last)) = check.ends {
                self.proof.ends = Some((first.to_vec(), last.to_vec()));
                self.last_key.clear();
                self.last_key.extend_from_slice(&last);
            }
            return;
        }
        let mut lengths = std::mem::take(&mut self.lengths);
        let (mut rest, mut before) = (pending, None::<&[u8]>);
        for length in lengths.drain(..) {
            let (record, after) = rest.split_at(length as usize);
            let key = shape.key(record);
            if !many {
                self.sum.add(record);
            }
            let seen = note(
                shape,
                &mut self.proof,
                before.unwrap_or(&self.last_key),
                record,
            );
            self.out_of_order |= !seen;
            (before, rest) = (Some(key), after);
        }
        self.lengths = lengths;
        if let Some(last) = before {
            self.last_key.clear();
            self.last_key.extend_from_slice(last);
        }
    }

    fn see(&mut self, record: &[u8]) {
        let seen = note(self.shape, &mut self.proof, &self.last_key, record);
        self.out_of_order |= !seen;
        self.last_key.clear();
        self.last_key.extend_from_slice(self.shape.key(record));
    }
}

/// Counts a record that follows one with the key `before`; false where it is out of order.
fn note<S: Shape>(shape: S, proof: &mut MergeProof, before: &[u8], record: &[u8]) -> bool {
    let key = shape.key(record);
    let order = if proof.ends.is_some() {
        shape.compare_keys(before, key)
    } else {
        proof.ends = Some((key.to_vec(), Vec::new()));
        std::cmp::Ordering::Less
    };
    proof.records += 1;
    proof.bytes += shape.written(record).len() as u64;
    proof.duplicates += u64::from(order.is_eq());
    order.is_le()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::shape::{Fixed, LineShape};
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{Caching, OutputStore};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// So small that records and proofs cross from buffer to buffer.
    const BUFFER_BYTES: usize = 12 << 10;

    const LINES: LineShape = LineShape { descending: false };

    /// What is written of `records`, and its proof.
    fn write<S: Shape>(
        shape: S,
        unique: bool,
        records: &[Vec<u8>],
    ) -> Result<(Vec<u8>, MergeProof)> {
        let store = Memory::with_room_for(1 << 30);
        let file = Arc::from(store.create("/out".as_ref(), 0, Caching::Direct)?);
        let proof = OverlappedWriter::run(&mut Vec::new(), BUFFER_BYTES, |writer| {
            writer.begin(file, 0)?;
            let mut out = ProvenWriter::new(shape, unique, writer);
            records.iter().try_for_each(|record| out.append(record))?;
            out.proof()
        })?;
        Ok((store.bytes_of("/out".as_ref()).unwrap(), proof))
    }

    /// Against one record at a time.
    fn check<S: Shape>(shape: S, unique: bool, records: &[Vec<u8>]) {
        let (written, proof) = write(shape, unique, records).unwrap();
        let mut kept = records.to_vec();
        if unique {
            kept.dedup_by(|a, b| shape.compare(a, b).is_eq());
        }
        let key = |record: Option<&Vec<u8>>| record.map(|record| shape.key(record).to_vec());
        let equal = |pair: &&[Vec<u8>]| shape.compare(&pair[0], &pair[1]).is_eq();
        let checksum = kept
            .iter()
            .map(|record| u128::from(crc32fast::hash(record)));
        assert!(written == kept.concat());
        assert_eq!(proof.records, kept.len() as u64);
        assert_eq!(proof.bytes, written.len() as u64);
        assert_eq!(
            proof.duplicates,
            records.windows(2).filter(equal).count() as u64
        );
        assert_eq!(proof.checksum, checksum.sum());
        assert_eq!(proof.ends, key(kept.first()).zip(key(kept.last())));
    }

    fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let length = prop_oneof![20 => 0_usize..30, 2 => 0_usize..9_000, 1 => 8_000_usize..40_000];
        let line = (length, 0_u8..3).prop_map(|(length, kind)| {
            let mut line = vec![b'a' + kind; length];
            line.push(b'\n');
            line
        });
        vec(line, 0..120)
    }

    proptest! {
        #[test]
        fn lines_are_written_and_proved(mut records in lines(), unique in any::<bool>(), descending in any::<bool>()) {
            let shape = LineShape { descending };
            records.sort_by(|a, b| shape.compare(a, b));
            check(shape, unique, &records);
        }

        #[test]
        fn records_are_written_and_proved(
            count in 0_u32..900,
            distinct in 1_u32..900,
            record_bytes in prop_oneof![Just(10_usize), Just(100), Just(8_192), Just(8_193), Just(30_000)],
            key_bytes in prop_oneof![Just(4_usize), Just(10)],
            descending in any::<bool>(),
            unique in any::<bool>(),
        ) {
            let count = count.min(3_000_000 / record_bytes as u32);
            let shape = Fixed { record_bytes, key_bytes, descending };
            let record = |i: u32| {
                let mut record = vec![i as u8; record_bytes];
                record[..4].copy_from_slice(&(i % distinct).to_be_bytes());
                record[4..10].fill(0);
                record
            };
            let mut records: Vec<Vec<u8>> = (0..count).map(record).collect();
            records.sort_by(|a, b| shape.compare(a, b));
            check(shape, unique, &records);
        }

        /// One record out of its place, anywhere: within a stretch that is proved at once, between two, or long.
        #[test]
        fn disorder_is_found(
            count in 2_usize..400,
            at in any::<prop::sample::Index>(),
            length in prop_oneof![Just(100_usize), Just(9_000)],
            plain in any::<bool>(),
        ) {
            let count = count.min(3_000_000 / length);
            let mut records: Vec<Vec<u8>> = (0..count)
                .map(|i| format!("{i:0width$}\n", width = length - 1).into_bytes())
                .collect();
            for record in &mut records {
                record.rotate_left(length - 11); // the number first
                record[10..].fill(b'.');
                record[length - 1] = b'\n';
            }
            let at = at.index(count - 1);
            records.swap(at, at + 1);
            let fixed = Fixed { record_bytes: length, key_bytes: 10, descending: false };
            let written = if plain {
                write(fixed, false, &records)
            } else {
                write(LINES, false, &records)
            };
            prop_assert_eq!(written.unwrap_err().kind(), Kind::Proof);
        }
    }
}
