//! The stages of a `terasort` in memory.
//!
//! ```text
//!   sample ──cut points──▶ map ──bucket counts──▶ reduce ──proof──▶
//! ```

use std::sync::{Arc, Mutex};

use super::{cut_points, sample_stage};
use crate::driver::{Plan, Stage};
use crate::error::{Error, Kind, Result};
use crate::jobs::steps::{lock, wrong_report};
use crate::jobs::success::OutputProof;
use crate::order::CutPoints;
use crate::plan::sort::SortPlan;
use crate::task::{MapReport, MapSpec, OutputFile, RangeSpec, ReduceSpec, TaskReport, TaskSpec};

/// Which stage's reports come next.
enum MemoryStep {
    Begin,
    Sample,
    Map,
    Reduce {
        ranges_of: Vec<Vec<RangeSpec>>,
        records: u64,
        checksum: u128,
    },
}

/// The stages of the sort.
pub(super) struct TeraSort {
    plan: SortPlan,
    outputs: Vec<OutputFile>,
    proof: Arc<Mutex<OutputProof>>,
    workers: usize,
    step: MemoryStep,
    cuts: Arc<CutPoints>,
}

impl TeraSort {
    pub(super) fn new(
        plan: SortPlan,
        workers: usize,
        outputs: Vec<OutputFile>,
        proof: Arc<Mutex<OutputProof>>,
    ) -> Self {
        TeraSort {
            plan,
            outputs,
            proof,
            workers,
            step: MemoryStep::Begin,
            cuts: Arc::new(CutPoints::from_sample(Vec::new(), 1)),
        }
    }

    fn map(&mut self, reports: Vec<TaskReport>) -> Result<Stage> {
        self.cuts = Arc::new(cut_points(reports, self.plan.buckets())?);
        let record_bytes = self.plan.record_bytes;
        let task = |split: &Vec<_>| {
            TaskSpec::Map(MapSpec {
                split: split.clone(),
                record_bytes,
                cuts: Arc::clone(&self.cuts),
            })
        };
        let tasks = self.plan.splits.iter().map(task).collect();
        Ok(Stage::new("map", self.plan.input_bytes(), tasks))
    }

    /// The input side of the proof is complete here: every byte was consumed once.
    fn reduce(&mut self, reports: Vec<TaskReport>) -> Result<Stage> {
        let mut counts = vec![0_u64; self.plan.buckets()];
        let mut inputs = Vec::new();
        let (mut records, mut bytes, mut checksum) = (0, 0, 0_u128);
        for report in reports {
            let TaskReport::Map(MapReport {
                output,
                bytes: b,
                records: r,
                checksum: c,
                bucket_counts,
            }) = report
            else {
                return Err(wrong_report());
            };
            inputs.push(output);
            (bytes, records, checksum) = (bytes + b, records + r, checksum + c);
            counts
                .iter_mut()
                .zip(bucket_counts)
                .for_each(|(sum, more)| *sum += u64::from(more));
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
        let task = |ranges: &Vec<RangeSpec>| {
            TaskSpec::Reduce(ReduceSpec {
                ranges: ranges.clone(),
                inputs: Arc::clone(&inputs),
                cuts: Arc::clone(&self.cuts),
                record_bytes: self.plan.record_bytes,
                batch_records: self.plan.batch_records(),
            })
        };
        let tasks = ranges_of.iter().map(task).collect();
        self.step = MemoryStep::Reduce {
            ranges_of,
            records,
            checksum,
        };
        Ok(Stage::new("reduce", bytes, tasks))
    }

    /// The output side: order within and across parts, counts, checksum.
    fn prove(&self, reports: Vec<TaskReport>, ranges_of: &[Vec<RangeSpec>]) -> Result<()> {
        let mut proof = lock(&self.proof);
        for (report, ranges) in reports.into_iter().zip(ranges_of) {
            let TaskReport::Reduce(proofs) = report else {
                return Err(wrong_report());
            };
            if proofs.len() != ranges.len() {
                return Err(wrong_report());
            }
            for (range, found) in ranges.iter().zip(&proofs) {
                proof.add(range.buckets.start / self.plan.buckets_per_part, found)?;
            }
        }
        Ok(())
    }
}

impl Plan for TeraSort {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        match std::mem::replace(&mut self.step, MemoryStep::Begin) {
            MemoryStep::Begin => {
                self.step = MemoryStep::Sample;
                Ok(Some(sample_stage(&self.plan)))
            }
            MemoryStep::Sample => {
                self.step = MemoryStep::Map;
                self.map(reports).map(Some)
            }
            MemoryStep::Map => self.reduce(reports).map(Some),
            MemoryStep::Reduce {
                ranges_of,
                records,
                checksum,
            } => {
                self.prove(reports, &ranges_of)?;
                lock(&self.proof).check_against(records, checksum)?;
                Ok(None)
            }
        }
    }
}
