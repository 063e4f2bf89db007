//! The sample task: reads keys at even places of the input, for the cut points.
//!
//! Keys are read in short stretches, since a device gives a block for the price of a record.

use serde::{Deserialize, Serialize};

use super::input::count;
use super::{Counters, TaskContext, TaskKind, With};
use crate::error::Result;
use crate::order::Entry;
use crate::record::KEY_BYTES;
use crate::storage::direct::ended_early;
use crate::storage::input::InputRange;
use crate::storage::probe::resident_share;
use crate::storage::{BLOCK_BYTES, Caching, ReadFile};
use crate::sys::pages::Pages;

/// Where to read keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleSpec {
    /// The stretches: every record in them is sampled.
    pub stretches: Vec<InputRange>,
    /// The job's record length.
    pub record_bytes: usize,
}

/// Share of a file that must be in the page cache for its stretches to be read from there: through the mapping a
/// stretch that is not there would bring megabytes with it.
const RESIDENT_SHARE: f64 = 0.5;

impl TaskKind for SampleSpec {
    type Report = Vec<Entry>;

    fn run(&self, (context, _, _): With<'_>) -> Result<Self::Report> {
        let mut sample = Vec::new();
        let mut buffer = Pages::<u8>::default();
        let mut open: Option<Opened> = None;
        for stretch in &self.stretches {
            let position = context.starts[stretch.file] + stretch.offset;
            let file = match open.take() {
                Some(file) if file.number == stretch.file => file,
                _ => Opened::open(context, stretch.file)?,
            };
            let range = position..position + stretch.bytes;
            match context
                .in_memory()
                .and_then(|memory| memory.arena.mapped(range))
            {
                Some(data) if file.resident => {
                    take_keys(data, position, self.record_bytes, &mut sample);
                }
                _ => {
                    let data = file.read(stretch, context, &mut buffer)?;
                    take_keys(data, position, self.record_bytes, &mut sample);
                }
            }
            open = Some(file);
        }
        Ok(sample)
    }

    fn input(&self, _context: &TaskContext) -> String {
        count(self.stretches.len(), "place")
    }

    fn counters(&self, keys: &Self::Report) -> Counters {
        vec![("SAMPLED_KEYS", keys.len() as u64)]
    }
}

/// A file of the input, open to be sampled.
struct Opened {
    number: usize,
    file: Box<dyn ReadFile>,
    resident: bool,
}

impl Opened {
    fn open(context: &TaskContext, number: usize) -> Result<Self> {
        let input = &context.job.files[number];
        let file = context.node.store.open(&input.path, Caching::Direct)?;
        let share = |descriptor| resident_share(descriptor, input.stat.bytes);
        let resident = file.descriptor().map_or(0.0, share) > RESIDENT_SHARE;
        Ok(Opened {
            number,
            file,
            resident,
        })
    }

    /// Reads the blocks that hold a stretch.
    fn read<'b>(
        &self,
        stretch: &InputRange,
        context: &TaskContext,
        buffer: &'b mut Pages<u8>,
    ) -> Result<&'b [u8]> {
        let lead = (stretch.offset % BLOCK_BYTES as u64) as usize;
        let bytes = lead + stretch.bytes as usize;
        let blocks = bytes.next_multiple_of(BLOCK_BYTES);
        if buffer.len() < blocks {
            *buffer = Pages::zeroed(blocks)?;
        }
        let from = stretch.offset - lead as u64;
        let read = self.file.read_at(&mut buffer[..blocks], from)?;
        if read < bytes {
            let (wanted, found) = (from + bytes as u64, from + read as u64);
            return Err(ended_early(
                context.job.files[self.number].path.as_typed(),
                wanted,
                found,
            ));
        }
        Ok(&buffer[lead..bytes])
    }
}

fn take_keys(data: &[u8], position: u64, record_bytes: usize, sample: &mut Vec<Entry>) {
    for (i, record) in data.chunks_exact(record_bytes).enumerate() {
        if let Some(key) = record.first_chunk::<KEY_BYTES>() {
            sample.push(Entry::new(key, position + (i * record_bytes) as u64));
        }
    }
}
