//! The stages of a `terasort` in memory.
//!
//! ```text
//!   sample ──cut points──▶ map ──bucket counts──▶ reduce ──proof──▶
//! ```

use std::sync::{Arc, Mutex};

use super::{cut_points, sample_stage};
use crate::driver::{Next, Reports, StagedPlan, stage};
use crate::jobs::success::OutputProof;
use crate::plan::sort::SortPlan;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;
use gristmill_tasks::reduce::RangeProof;
use gristmill_tasks::task::{
    EntryPlan, GatherSpec, OutputFile, RangeSpec, ScatterReport, ScatterSpec,
};

/// What the stages know.
pub(super) struct TeraSort {
    pub(super) plan: SortPlan,
    pub(super) workers: usize,
    pub(super) outputs: Vec<OutputFile>,
    pub(super) proof: Arc<Mutex<OutputProof>>,
}

impl TeraSort {
    /// The plan.
    pub(super) fn plan(self) -> StagedPlan {
        let sample = sample_stage(&self.plan);
        StagedPlan::new(sample.then(|entries| {
            let plan = EntryPlan {
                cuts: cut_points(entries, self.plan.buckets()),
                record_bytes: self.plan.record_bytes,
                batch_records: self.plan.batch_records(),
            };
            Ok(self.map(Arc::new(plan)))
        }))
    }

    fn map(self, plan: Arc<EntryPlan>) -> Next {
        let task = |split: &Vec<_>| ScatterSpec {
            split: split.clone(),
            plan: Arc::clone(&plan),
        };
        let tasks = self.plan.splits.iter().map(task);
        let map = stage("map", self.plan.input_bytes(), tasks);
        map.then(move |reports| self.reduce(reports, &plan))
    }

    /// The input side of the proof is complete here: every byte was consumed once.
    fn reduce(self, reports: Reports<ScatterReport<u32>>, plan: &Arc<EntryPlan>) -> Result<Next> {
        let mut counts = vec![0_u64; self.plan.buckets()];
        let mut inputs = Vec::new();
        let (mut records, mut bytes, mut checksum) = (0, 0, 0_u128);
        for report in reports {
            inputs.push(report.output);
            bytes += report.bytes;
            records += report.records;
            checksum += report.checksum;
            for (sum, more) in counts.iter_mut().zip(report.sizes) {
                *sum += u64::from(more);
            }
        }
        let in_buckets: u64 = counts.iter().sum();
        if bytes != self.plan.input_bytes() || in_buckets != records {
            let message = format!(
                "{bytes} of {} bytes were consumed, {in_buckets} of {records} records are in buckets",
                self.plan.input_bytes()
            );
            return Err(Error::new(Kind::Proof, "prove the input", message));
        }
        let ranges_of = self
            .plan
            .reduce_tasks(&counts, self.workers, &|part| self.outputs[part].clone());
        let inputs = Arc::new(inputs);
        let task = |ranges: &Vec<RangeSpec>| GatherSpec {
            ranges: ranges.clone(),
            inputs: Arc::clone(&inputs),
            plan: Arc::clone(plan),
        };
        let reduce = stage("reduce", bytes, ranges_of.iter().map(task));
        Ok(reduce.then(move |reports| {
            self.prove(reports, &ranges_of)?;
            lock(&self.proof).check_against(records, checksum)?;
            Ok(Next::end())
        }))
    }

    /// The output side: order within and across parts, counts, checksum.
    fn prove(&self, reports: Reports<Vec<RangeProof>>, ranges_of: &[Vec<RangeSpec>]) -> Result<()> {
        let mut proof = lock(&self.proof);
        for (proofs, ranges) in reports.into_iter().zip(ranges_of) {
            if proofs.len() != ranges.len() {
                return Err(Error::bug("run the job", "a range without its proof"));
            }
            for (range, found) in ranges.iter().zip(&proofs) {
                proof.add(range.buckets.start / self.plan.buckets_per_part, found)?;
            }
        }
        Ok(())
    }
}
