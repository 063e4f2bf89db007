//! `sort --check` of a table: whether its rows are in order; where they are not, the first line that is not.

use super::SortSpec;
use super::check::{Bound, begin, disorder, source_of};
use super::input::SortInput;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::table::without_end;
use gristmill_base::record::table_keys::TableSource;
use gristmill_tasks::spill::in_order::InOrder;
use gristmill_tasks::spill::rows::{First, RowReader, RowSink, TableRow};
use gristmill_tasks::spill::{Progress, SharedStream};

/// Checks the one source of the input.
pub(super) fn run(job: &mut RunningJob<'_>, spec: &SortSpec, input: SortInput) -> Result<()> {
    begin(job, spec, &input)?;
    let Some(table) = &input.table else {
        return Ok(());
    };
    let mut reader = RowReader::new(&table.keys)?;
    let progress = |_| job.check_cancelled();
    let mut check = CheckRows {
        name: String::new(),
        unique: spec.unique,
        last: None,
        records: 0,
        bytes: 0,
        progress: &progress,
        bound: Bound::of(job),
    };
    if let Some(stream) = input.streams.into_iter().next() {
        check.name.clone_from(&stream.name);
        let stream = SharedStream::new(stream.name, stream.file).behind(stream.begun);
        let source = InOrder::Stream(&stream);
        let first = First::of(&table.keys, TableSource::Stream(0));
        reader.read(job.store(), source, first, &mut check)?;
    } else if let Some(file) = input.files.first() {
        check.name = file.path.to_string();
        let source = source_of(file, input.codecs.first().copied().flatten());
        let first = First::of(&table.keys, TableSource::File(0));
        reader.read(job.store(), source, first, &mut check)?;
    }
    let (records, bytes) = (
        check.records,
        check.bytes + reader.left_out.bytes - reader.left_out.added,
    );
    (job.report.records, job.report.input_bytes) = (records, bytes);
    Ok(())
}

/// How far the check is.
struct CheckRows<'p> {
    name: String,
    unique: bool,
    /// The code of the row before; of a header there is none.
    last: Option<Vec<u8>>,
    records: u64,
    bytes: u64,
    progress: Progress<'p>,
    bound: Bound,
}

impl<'p> RowSink<'p> for CheckRows<'p> {
    fn row(&mut self, row: &TableRow<'_>) -> Result<()> {
        let code = row.code;
        self.bytes += row.bytes.len() as u64;
        if code.is_empty() {
            return Ok(()); // the header
        }
        self.records += 1;
        let last = self.last.get_or_insert_default();
        let order = (**last).cmp(code);
        if order.is_gt() || self.unique && order.is_eq() {
            let place = (&*self.name, row.line);
            return Err(disorder(place, without_end(row.bytes), order.is_eq()));
        }
        last.clear();
        last.extend_from_slice(code);
        Ok(())
    }

    fn progress(&self) -> Progress<'p> {
        self.progress
    }

    fn room(&self) -> (usize, usize) {
        (self.bound.block_bytes, self.bound.longest)
    }

    fn too_long(&self, bytes: u64) -> Error {
        self.bound.too_long("row", bytes)
    }
}
