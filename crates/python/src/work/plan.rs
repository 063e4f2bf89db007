//! Splits of inputs that the native readers read.

use std::path::PathBuf;

use gristmill_engine::Result;
use gristmill_engine::split::csv_rows::{CsvDialect, at_rows};
use gristmill_engine::split::several_lines::at_every_nth_line;
use gristmill_engine::split::text::{TextSplit, TextSplits, text_splits};
use gristmill_engine::split::{self, asked_at_once, input_files};
use gristmill_engine::storage::input::InputFile;
use gristmill_engine::storage::io::at_once::at_once;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::stores::Stores;
use pyo3::prelude::*;
use serde_json::json;

use super::to_json;
use crate::attended::attended;
use crate::stores::{files_below, stores};

/// The files that locations stand for, and their splits, as JSON.
#[pyfunction]
#[pyo3(signature = (paths, split_min, split_max, cut, combine, stride = 1, lines = 1, csv = None))]
#[expect(clippy::too_many_arguments, reason = "each is an option of its own")]
pub fn plan_text(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    split_min: u64,
    split_max: u64,
    cut: bool,
    combine: bool,
    stride: u64,
    lines: u64,
    csv: Option<(u8, u8)>,
) -> PyResult<String> {
    let how = TextSplits {
        split_min,
        split_max,
        cut,
        combine,
        stride,
    };
    let names: Vec<_> = paths.into_iter().map(Location::from).collect();
    let (files, splits) = attended(py, &stores(), |stores| {
        let files = files_of(stores, &names)?;
        let splits = text_splits(stores, &files, &how)?;
        let splits = match csv {
            Some((delimiter, quote)) => at_rows(stores, splits, CsvDialect { delimiter, quote })?,
            None if lines > 1 => at_every_nth_line(stores, splits, lines)?,
            None => splits,
        };
        Ok((files, splits))
    })?;
    let split = |pieces: &TextSplit| {
        let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        json!({"bytes": bytes, "what": {"pieces": pieces}})
    };
    let splits: Vec<_> = splits.iter().map(split).collect();
    let files: Vec<_> = files.into_iter().map(|file| file.path).collect();
    to_json(&json!({"files": files, "splits": splits}))
}

/// Refuses an output directory that lies in a directory which is an input.
#[pyfunction]
pub fn check_outside(py: Python<'_>, inputs: Vec<PathBuf>, output: PathBuf) -> PyResult<()> {
    let inputs: Vec<_> = inputs.into_iter().map(Location::from).collect();
    let output = Location::from(output);
    attended(py, &stores(), |stores| {
        split::check_outside(stores, &inputs, &output)
    })
}

/// Files of this machine, and what is below locations in stores, as they are found; those of several stand in their order.
fn files_of(stores: &Stores, names: &[Location]) -> Result<Vec<InputFile>> {
    let most = names.iter().map(asked_at_once).max().unwrap_or(1);
    let found = at_once(names, most, |name| match name.is_remote() {
        true => files_below(stores, name),
        false => input_files(stores, std::slice::from_ref(name)),
    })?;
    Ok(found.into_iter().flatten().collect())
}
