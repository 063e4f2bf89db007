//! Where the pairs of a map go: to runs, through a combiner or not, or to a part of the output.

use super::combine::Combining;
use super::keys::PairCodec;
use super::output::PartWriter;
use super::{ScriptAttempt, StreamingExecutor};
use crate::hadoop::script::block::LineBlock;
use crate::spill::collect::PairCollector;
use crate::task::user::spec::UserTaskReport;
use gristmill_base::error::Result;

/// The end of a map.
pub(super) enum MapSink<'a> {
    /// Pairs to runs.
    Collect(Box<Collect<'a>>),
    /// Records to a part.
    File(Box<PartWriter>),
    /// Nowhere: of a run that does not count.
    Nowhere,
}

/// Pairs to runs.
pub(super) struct Collect<'a> {
    attempted: &'a ScriptAttempt<'a>,
    collector: PairCollector,
    keys: PairCodec,
    combining: Option<Combining<'a>>,
    records: u64,
    bytes: u64,
}

impl<'a> MapSink<'a> {
    pub fn new(work: &StreamingExecutor, attempted: &'a ScriptAttempt<'a>) -> Result<Self> {
        let (spec, definition) = (attempted.spec, attempted.definition);
        if spec.partitions == 0 {
            let output = PartWriter::new(attempted, definition.map_classes());
            return Ok(MapSink::File(Box::new(output)));
        }
        let keys = PairCodec::new(definition, spec.partitions, &work.cuts)?;
        let mut plan = spec.collect_plan();
        let combining = match &definition.combine {
            None => None,
            Some(step) => {
                // Half of the memory is for what is yet to be combined.
                plan.chunk_bytes /= 2;
                Some(Combining::new(attempted, step, plan.chunk_bytes)?)
            }
        };
        let collector = PairCollector::new(
            attempted.store.disk().clone(),
            plan,
            spec.run_name(),
            work.scratch(),
        )?;
        Ok(MapSink::Collect(Box::new(Collect {
            attempted,
            collector,
            keys,
            combining,
            records: 0,
            bytes: 0,
        })))
    }

    #[inline]
    pub fn emit(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        report: &mut UserTaskReport,
    ) -> Result<()> {
        match self {
            MapSink::File(output) => output.write(Some(key), value),
            MapSink::Nowhere => Ok(()),
            MapSink::Collect(collect) => collect.emit(key, value.unwrap_or_default(), report),
        }
    }

    /// Takes the pairs of a block, which has some.
    pub fn emit_block(&mut self, block: LineBlock<'_>, report: &mut UserTaskReport) -> Result<()> {
        match self {
            MapSink::Nowhere => Ok(()),
            MapSink::File(output) => output.write_block(block),
            MapSink::Collect(collect) => {
                block.each(|key, value| collect.emit(key, value.unwrap_or_default(), report))
            }
        }
    }

    /// Ends it; what there is of runs or files goes into the report.
    pub fn finish(self, work: &StreamingExecutor, report: &mut UserTaskReport) -> Result<()> {
        match self {
            MapSink::Nowhere => {}
            MapSink::File(output) => {
                report.records_out = output.records();
                if let Some(file) = output.finish()? {
                    report.bytes_out = file.bytes;
                    report.files.push(file);
                }
            }
            MapSink::Collect(collect) => {
                let Collect {
                    attempted,
                    mut collector,
                    mut keys,
                    combining,
                    records,
                    bytes,
                } = *collect;
                if let Some(mut combining) = combining {
                    combining.combine(&mut keys, &mut collector, report)?;
                }
                (report.records_out, report.bytes_out) = (records, bytes);
                let (runs, scratch) = collector.finish(&|_| attempted.attempt.progress(0))?;
                report.runs = runs;
                work.keep(scratch);
            }
        }
        Ok(())
    }
}

impl Collect<'_> {
    #[inline]
    fn emit(&mut self, key: &[u8], value: &[u8], report: &mut UserTaskReport) -> Result<()> {
        self.records += 1;
        self.bytes += (key.len() + value.len()) as u64;
        let (partition, sort_key, stored) = self.keys.put(key, value);
        let progress = |_| self.attempted.attempt.progress(0);
        let Some(combining) = &mut self.combining else {
            return self
                .collector
                .append(partition, sort_key, b"", stored, &progress);
        };
        if combining.append(partition, sort_key, stored) {
            return Ok(());
        }
        combining.combine(&mut self.keys, &mut self.collector, report)?;
        let (partition, sort_key, stored) = self.keys.put(key, value);
        if combining.append(partition, sort_key, stored) {
            return Ok(());
        }
        self.collector
            .append(partition, sort_key, b"", stored, &progress) // longer than the memory for pairs
    }
}
