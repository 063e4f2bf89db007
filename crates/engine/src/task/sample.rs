//! The sample task: reads keys at even places of the input, for the cut points.
//!
//! Keys are read in short stretches, since a device gives a block for the price of a record.

use super::TaskContext;
use crate::error::Result;
use crate::order::Entry;
use crate::record::KEY_BYTES;
use crate::storage::direct::ended_early;
use crate::storage::input::Piece;
use crate::storage::{Caching, ReadFile};

/// Where to read keys.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSpec {
    /// The stretches: every record in them is sampled.
    pub stretches: Vec<Piece>,
    /// The job's record length.
    pub record_bytes: usize,
}

pub(super) fn run(spec: &SampleSpec, context: &TaskContext) -> Result<Vec<Entry>> {
    let arena = context.arena()?;
    let mut sample = Vec::new();
    let mut buffer = Vec::new();
    let mut open: Option<(usize, Box<dyn ReadFile>)> = None;
    for stretch in &spec.stretches {
        let position = arena.start_of(stretch.file) + stretch.offset;
        if let Some(data) = arena.mapped(position..position + stretch.bytes) {
            take_keys(data, position, spec.record_bytes, &mut sample);
            continue;
        }
        let path = &context.files[stretch.file].path;
        let file = match open.take() {
            Some((number, file)) if number == stretch.file => file,
            _ => context.store.open(path, Caching::Cached)?,
        };
        buffer.resize(stretch.bytes as usize, 0);
        let read = file.read_at(&mut buffer, stretch.offset)? as u64;
        if read < stretch.bytes {
            return Err(ended_early(
                path,
                stretch.offset + stretch.bytes,
                stretch.offset + read,
            ));
        }
        take_keys(&buffer, position, spec.record_bytes, &mut sample);
        open = Some((stretch.file, file));
    }
    Ok(sample)
}

fn take_keys(data: &[u8], position: u64, record_bytes: usize, sample: &mut Vec<Entry>) {
    for (i, record) in data.chunks_exact(record_bytes).enumerate() {
        if let Some(key) = record.first_chunk::<KEY_BYTES>() {
            sample.push(Entry::new(key, position + (i * record_bytes) as u64));
        }
    }
}
