//! `_SUCCESS`: the proof that a finished job leaves with its output, as JSON (docs/internals/success.md).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::spell;
use gristmill_base::order::check::OrderCheck;
use gristmill_base::record::checksum::Hex;
use gristmill_storage::objects::Upload;
use gristmill_tasks::reduce::RangeProof;

/// What a part file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartProof {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its records.
    pub records: u64,
    /// The sum of their CRCs, in hexadecimal.
    pub checksum: String,
    /// The key of its first record in hexadecimal, if it has one and keys have an order here.
    pub first_key: Option<String>,
    /// The key of its last record.
    pub last_key: Option<String>,
}

/// What `_SUCCESS` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// The version of this format.
    pub format: u32,
    /// The version of Gristmill that wrote it.
    pub gristmill: String,
    /// The job.
    pub job_id: String,
    /// Its command.
    pub command: String,
    /// Records of all parts.
    pub records: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// The sum of the CRCs of all records, in hexadecimal. Of a sort: equal to that of its input.
    pub checksum: String,
    /// Whether the parts, in order of their names, are in order.
    pub sorted: bool,
    /// Records whose key equals the key before, over all parts.
    pub duplicate_keys: u64,
    /// The parts.
    pub parts: Vec<PartProof>,
}

/// The proof of a whole output, made from those of its ranges.
#[derive(Debug, Default)]
pub(super) struct OutputProof {
    /// Of each part: order and checksum.
    pub(super) parts: Vec<RangeProof>,
    /// Over all parts.
    pub(super) whole: OrderCheck,
    pub(super) checksum: u128,
    /// The parts that were uploaded.
    pub(super) uploads: Vec<Upload>,
}

impl OutputProof {
    /// A proof over `parts` empty parts.
    pub(super) fn new(parts: usize) -> Self {
        OutputProof {
            parts: vec![RangeProof::default(); parts],
            ..OutputProof::default()
        }
    }

    /// Adds the next range, which belongs to part `part`.
    pub(super) fn add(&mut self, part: usize, range: &RangeProof) -> Result<()> {
        self.parts[part].check.join(&range.check);
        self.parts[part].checksum += range.checksum;
        self.whole.join(&range.check);
        self.checksum += range.checksum;
        self.uploads.extend(range.upload.clone());
        match self.whole.first_misorders.first() {
            Some(misorder) => Err(failed(format!(
                "record {} of the output is smaller than the record before it",
                misorder.record
            ))),
            None => Ok(()),
        }
    }

    /// Fails unless the output has the records and the checksum of the input.
    pub(super) fn check_against(&self, records: u64, checksum: u128) -> Result<()> {
        if self.whole.records != records {
            let message = format!(
                "{records} records went in and {} came out",
                self.whole.records
            );
            return Err(failed(message));
        }
        if self.checksum != checksum {
            let message = format!(
                "the checksum of the input is {} and that of the output {}",
                Hex(checksum),
                Hex(self.checksum)
            );
            return Err(failed(message));
        }
        Ok(())
    }

    /// What to write to `_SUCCESS`.
    pub(super) fn success(
        &self,
        job_id: &str,
        command: &str,
        names: &[PathBuf],
        record_bytes: u64,
    ) -> Success {
        let part = |(name, proof): (&PathBuf, &RangeProof)| PartProof {
            name: spell(name),
            bytes: proof.check.records * record_bytes,
            records: proof.check.records,
            checksum: Hex(proof.checksum).to_string(),
            first_key: proof.check.ends.map(|(first, _)| hex::encode(first)),
            last_key: proof.check.ends.map(|(_, last)| hex::encode(last)),
        };
        Success {
            format: 1,
            gristmill: crate::VERSION.to_owned(),
            job_id: job_id.to_owned(),
            command: command.to_owned(),
            records: self.whole.records,
            bytes: self.whole.records * record_bytes,
            checksum: Hex(self.checksum).to_string(),
            sorted: self.whole.ends.is_some() || self.whole.records == 0,
            duplicate_keys: self.whole.duplicates,
            parts: names.iter().zip(&self.parts).map(part).collect(),
        }
    }
}

/// The bytes of a `_SUCCESS`, whatever it says.
pub(super) fn success_bytes(proof: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(proof)
        .map_err(|error| Error::bug("write the proof", error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn failed(message: String) -> Error {
    Error::new(Kind::Proof, "prove the output", message)
        .advise("run again; if it happens twice, suspect the memory of the machine or a defect of Gristmill")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(keys: &[u8], checksum: u128) -> RangeProof {
        let mut check = OrderCheck::default();
        keys.iter().for_each(|key| check.update(&[*key; 10], 10));
        RangeProof {
            check,
            checksum,
            upload: None,
        }
    }

    #[test]
    fn a_proof_holds_only_where_counts_sums_and_order_do() {
        let mut proof = OutputProof::new(2);
        proof.add(0, &range(&[1, 2, 2], 30)).unwrap();
        proof.add(1, &range(&[2, 5], 12)).unwrap();
        assert!(proof.check_against(5, 42).is_ok());
        assert_eq!(proof.whole.duplicates, 2);
        for (records, checksum) in [(4, 42), (6, 42), (5, 41)] {
            assert_eq!(
                proof.check_against(records, checksum).unwrap_err().kind(),
                Kind::Proof
            );
        }
        assert_eq!(
            proof.add(1, &range(&[4], 0)).unwrap_err().kind(),
            Kind::Proof
        );
    }
}
