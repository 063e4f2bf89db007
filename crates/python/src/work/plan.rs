//! Splits of inputs that the native readers read.

use std::path::PathBuf;

use gristmill_engine::split::input_files;
use gristmill_engine::split::text::{TextSplit, TextSplits, text_splits};
use gristmill_engine::storage::location::Location;
use pyo3::prelude::*;
use serde_json::json;

use super::{OrRaise, to_json};
use crate::stores::stores;

/// The splits of files, as JSON.
#[pyfunction]
#[pyo3(signature = (paths, split_min, split_max, cut, combine, stride = 1))]
pub fn plan_text(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    split_min: u64,
    split_max: u64,
    cut: bool,
    combine: bool,
    stride: u64,
) -> PyResult<String> {
    let how = TextSplits {
        split_min,
        split_max,
        cut,
        combine,
        stride,
    };
    let names: Vec<_> = paths.into_iter().map(Location::from).collect();
    let splits = py.detach(|| text_splits(&stores(), &input_files(&stores(), &names)?, &how));
    let split = |pieces: &TextSplit| {
        let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        json!({"bytes": bytes, "what": {"pieces": pieces}})
    };
    let splits: Vec<_> = splits.or_raise()?.iter().map(split).collect();
    to_json(&splits)
}
