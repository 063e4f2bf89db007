//! User tasks whose code is ours: an operator over the readers, collectors and groups that serve user code.
//!
//! ```text
//!   map      records of a split ──▶ Mapper ──▶ PairCollector ──▶ runs
//!   map      records of a split ──▶ PartMapper ──▶ part-m-NNNNN                      where there are no partitions (map_part.rs)
//!   regroup  a partition of all runs ──▶ MergedGroups ──▶ Regrouper ──▶ PairCollector ──▶ runs
//!   reduce   a partition of all runs ──▶ MergedGroups ──▶ Reducer ──▶ part-r-NNNNN, or files that it names
//! ```

use std::sync::Arc;

use super::executor::UserTaskExecutor;
use super::executor_spec::{ExecutorKind, ExecutorSpec};
use super::input_ranges::InputRanges;
use super::native_split::NativeSplit;
use super::operator::{Operator, Pairs, RecordForm};
use super::part_writer::{FilePlace, PartFiles};
use super::record_reader::SplitReader;
use super::spec::{UserAttemptSpec, UserTaskFile, UserTaskKind, UserTaskReport, feed_of};
use super::split::SplitData;
use crate::merge::groups::MergedGroups;
use crate::spill::collect::PairCollector;
use crate::task::attempt::TaskAttempt;
use gristmill_base::error::{Error, Result};
use gristmill_base::sys::memory::give_back;
use gristmill_storage::stores::Stores;

/// Bytes of the pairs of a reduce, and of what it writes, between two signs of life.
const BYTES_A_BEAT: u64 = 1 << 18;

/// The part of a task's memory that holds what is read of a table: one in so many. Lines need next to none.
pub(super) const ROWS_SHARE: usize = 4;

/// Bits of a position for the records of a split.
const RECORD_BITS: u32 = 40;

/// Runs the tasks of an operator.
#[derive(Debug)]
pub struct NativeExecutor {
    pub(super) store: Arc<Stores>,
    pub(super) operator: Box<dyn Operator>,
    /// How the records of each input are told from each other.
    pub(super) forms: Vec<RecordForm>,
    /// What another process makes the same from.
    definition: Vec<u8>,
}

impl NativeExecutor {
    /// Work by `operator`, on files of `store` whose records have these forms, the first input's first. From `definition` another
    /// process makes the same.
    pub fn new(
        store: Arc<Stores>,
        (operator, forms): (Box<dyn Operator>, Vec<RecordForm>),
        definition: Vec<u8>,
    ) -> Self {
        NativeExecutor {
            store,
            operator,
            forms,
            definition,
        }
    }

    fn map(
        &self,
        spec: &UserAttemptSpec,
        (number, what): (u32, &SplitData),
        attempt: &TaskAttempt<'_>,
    ) -> Result<UserTaskReport> {
        let split: NativeSplit = what.parse()?;
        if spec.partitions == 0 {
            return self.map_part(spec, (number, &split), attempt);
        }
        let form = form_of(&self.forms, &split)?;
        let mut plan = spec.collect_plan();
        let row_bytes = plan.chunk_bytes / ROWS_SHARE;
        if matches!(form, RecordForm::Rows(_)) {
            plan.chunk_bytes -= row_bytes;
        }
        if self.operator.combines() {
            plan.chunk_bytes /= 2;
        }
        let mut mapper = self.operator.mapper(plan.chunk_bytes)?;
        let disk = self.store.disk().clone();
        let mut collector = PairCollector::new(disk, plan, spec.run_name(), Default::default())?;
        let alive = |_| attempt.progress(0);
        let mut pairs = Pairs {
            collector: &mut collector,
            progress: &alive,
            ranges: &InputRanges::default(),
        };
        let mut reader = SplitReader {
            store: &self.store,
            form,
            input: split.input,
            file: 0,
            row_bytes,
            position: u64::from(number) << RECORD_BITS,
            report: UserTaskReport::default(),
        };
        let progress = |bytes| attempt.progress(bytes);
        reader.read_all(&split, &progress, &mut |records| {
            mapper.records(records, &mut pairs)
        })?;
        let mut report = reader.report;
        let combined = mapper.end(&mut pairs)?;
        let (records, bytes) = (collector.records(), collector.bytes());
        (report.records_out, report.bytes_out) = match combined {
            Some(combined) => (combined.records, combined.bytes),
            None => (records, bytes),
        };
        drop(mapper);
        if let Some(combined) = combined {
            give_back(); // what it held were small blocks, which the next task has no use for
            (report.combine_in, report.combine_out) = (combined.records, records);
        }
        (report.runs, _) = collector.finish(&alive)?;
        Ok(report)
    }

    /// Half of the task's memory is for the merge, half for the pairs.
    fn regroup(
        &self,
        spec: &UserAttemptSpec,
        ranges: &InputRanges,
        attempt: &TaskAttempt<'_>,
    ) -> Result<UserTaskReport> {
        let disk = self.store.disk();
        let feed = feed_of(spec, disk.clone())?;
        let mut groups = MergedGroups::new(feed, self.operator.key_form(), |_, _| ());
        let mut plan = spec.collect_plan();
        plan.chunk_bytes /= 2;
        let mut regrouper = self.operator.regrouper(plan.chunk_bytes)?;
        let mut collector =
            PairCollector::new(disk.clone(), plan, spec.run_name(), Default::default())?;
        let alive = |_| attempt.progress(0);
        let mut pairs = Pairs {
            collector: &mut collector,
            progress: &alive,
            ranges,
        };
        let mut told = 0;
        while regrouper.next(&mut groups, &mut pairs)? {
            let (_, bytes) = groups.seen();
            if bytes - told >= BYTES_A_BEAT {
                attempt.progress(bytes - told)?;
                told = bytes;
            }
        }
        let (records_in, bytes_in) = groups.seen();
        attempt.progress(bytes_in - told)?;
        let mut report = UserTaskReport {
            records_out: collector.records(),
            bytes_out: collector.bytes(),
            records_in,
            bytes_in,
            groups: groups.number(),
            ..UserTaskReport::default()
        };
        drop((regrouper, groups));
        (report.runs, _) = collector.finish(&alive)?;
        give_back(); // as a map does
        Ok(report)
    }

    fn reduce(
        &self,
        spec: &UserAttemptSpec,
        partition: u32,
        attempt: &TaskAttempt<'_>,
    ) -> Result<UserTaskReport> {
        let feed = feed_of(spec, self.store.disk().clone())?;
        let mut groups = MergedGroups::new(feed, self.operator.reduced_form(), |_, _| ());
        let named = match self.operator.files_max() {
            None => Some(format!("part-r-{partition:05}")),
            Some(_) => None,
        };
        let mut part = self.part_files(spec, named)?;
        let mut reducer = self.operator.reducer(spec.chunk_bytes)?;
        let (mut looked, mut told) = (0, 0);
        while reducer.next(&mut groups, &mut part)? {
            let (_, bytes) = groups.seen();
            let done = bytes + part.written();
            if done - looked >= BYTES_A_BEAT {
                attempt.progress(bytes - told)?;
                (looked, told) = (done, bytes);
            }
        }
        reducer.end(&mut part)?;
        let (records_in, bytes_in) = groups.seen();
        attempt.progress(bytes_in - told)?;
        let report = UserTaskReport {
            records_in,
            bytes_in,
            groups: groups.number(),
            ..UserTaskReport::default()
        };
        Ok(with_files(report, part.end()?))
    }

    /// What writes the files of a task: this one, or files that the operator names.
    pub(super) fn part_files(
        &self,
        spec: &UserAttemptSpec,
        named: Option<String>,
    ) -> Result<PartFiles> {
        self.store.disk().create_directory(&spec.output)?;
        let mut part = PartFiles::new(FilePlace {
            disk: self.store.disk().clone(),
            folder: spec.output.clone(),
            buffer_bytes: spec.buffer_bytes,
            header: self.operator.header().to_vec(),
            files_max: self.operator.files_max().unwrap_or(1),
            scratch: (spec.places.clone(), format!("scratch-{}", spec.run_name())),
        });
        if let Some(name) = named {
            part.begin(name)?;
        }
        Ok(part)
    }
}

/// The form of the records of a split.
pub(super) fn form_of<'f>(forms: &'f [RecordForm], split: &NativeSplit) -> Result<&'f RecordForm> {
    let form = forms.get(split.input);
    form.ok_or_else(|| Error::bug("map a split", "there is no such input"))
}

/// What a task that wrote these files says of itself.
pub(super) fn with_files(report: UserTaskReport, files: Vec<UserTaskFile>) -> UserTaskReport {
    UserTaskReport {
        records_out: files.iter().map(|file| file.records).sum(),
        bytes_out: files.iter().map(|file| file.bytes).sum(),
        files,
        ..report
    }
}

impl UserTaskExecutor for NativeExecutor {
    fn spec(&self) -> Option<ExecutorSpec> {
        Some(ExecutorSpec {
            kind: ExecutorKind::Native,
            definition: self.definition.clone(),
        })
    }

    fn run(&self, spec: &UserAttemptSpec, attempt: &TaskAttempt<'_>) -> Result<UserTaskReport> {
        match &spec.work {
            UserTaskKind::Map { number, what, .. } => self.map(spec, (*number, what), attempt),
            UserTaskKind::Regroup { ranges, .. } => self.regroup(spec, ranges, attempt),
            UserTaskKind::Reduce { partition, .. } => self.reduce(spec, *partition, attempt),
        }
    }
}
