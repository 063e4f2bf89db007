//! What worker processes run user code between: native readers, collectors and groups.
//!
//! ```text
//!   map      LineReader ──records──▶ map(record) ──pairs──▶ Emitter ──▶ runs
//!   reduce   runs ──▶ Groups ──key, values──▶ reduce(key, values) ──▶ LineWriter
//! ```
//!
//! Decision: docs/decisions/native-readers.md.

mod accepted_values;
mod batch_values;
mod columns;
mod combine;
mod emitter;
mod files;
mod groups;
mod held;
mod lines;
mod objects;
mod pairs;
mod partitioner;
mod plan;
mod processes;
mod reader;
mod refused;
mod scalar_keys;
mod seen_key_types;
mod value;

use std::sync::{Mutex, PoisonError};

use gristmill_engine::aggregate::Aggregate;
use gristmill_engine::task::UserAttemptSpec;
use gristmill_engine::{Error, Kind, Result};
use pyo3::prelude::*;

pub use emitter::Emitter;
pub use files::{CompressedReader, CompressedWriter};
pub use groups::{Groups, Values};
pub use lines::LineWriter;
pub use objects::{decode, decode_key};
pub use plan::{check_outside, plan_text};
pub use processes::{Executor, dismiss_workers, plan_streaming, prepare_worker, retry_scripts};
pub use reader::LineReader;
pub use value::{encode, encode_key, encode_order};

use crate::error::to_python;

/// An engine error as an exception, where `?` wants one.
trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| to_python(&error))
    }
}

/// What only this thread can have at the moment: `&mut` says so, and no lock is taken.
fn exclusive<T>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
}

fn spec_of(json: &str) -> PyResult<UserAttemptSpec> {
    let spec = serde_json::from_str(json);
    spec.map_err(|error| to_python(&Error::bug("read a task", error.to_string())))
}

fn aggregate_of(json: Option<&str>) -> PyResult<Option<Aggregate>> {
    let Some(json) = json else { return Ok(None) };
    let aggregate: Aggregate = serde_json::from_str(json).map_err(|error| {
        to_python(&Error::new(
            Kind::BadOption,
            "read an aggregate",
            error.to_string(),
        ))
    })?;
    aggregate.check().or_raise()?;
    Ok(Some(aggregate))
}

fn to_json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| to_python(&Error::bug("write JSON", error.to_string())))
}
