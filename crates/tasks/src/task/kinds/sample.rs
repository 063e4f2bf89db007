//! The sample task: reads keys at even places of the input, for the cut points.
//!
//! Keys are read in short stretches, since a device gives a block for the price of a record. A far store is asked for
//! many at once, each such request with all stretches that lie near each other: a reply costs more than the bytes between.
//!
//! Decision: docs/decisions/cold-sampling.md.

use std::collections::BTreeMap;
use std::slice;

use serde::{Deserialize, Serialize};

use crate::task::input::count;
use crate::task::{Counters, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::Result;
use gristmill_base::order::Entry;
use gristmill_base::record::KEY_BYTES;
use gristmill_base::sys::pages::Pages;
use gristmill_storage::input::InputRange;
use gristmill_storage::io::at_once::{SHORT_AT_ONCE, at_once};
use gristmill_storage::io::direct::ended_early;
use gristmill_storage::io::probe::resident_share;
use gristmill_storage::{BLOCK_BYTES, Caching, ReadFile};

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

    fn run(&self, (context, _, _): TaskEnvironment<'_>) -> Result<Self::Report> {
        let is_remote = |stretch: &InputRange| context.job.files[stretch.file].path.is_remote();
        if self.stretches.iter().any(is_remote) {
            return self.ask(context);
        }
        let (mut keys, mut buffer) = (Vec::new(), Pages::default());
        let mut open: Option<SampledFile> = None;
        for stretch in &self.stretches {
            let position = context.starts[stretch.file] + stretch.offset;
            let sampled = match open.take() {
                Some(file) if file.number == stretch.file => file,
                _ => SampledFile::open(context, stretch.file)?,
            };
            let range = position..position + stretch.bytes;
            let memory = context.in_memory().filter(|_| sampled.resident);
            if let Some(data) = memory.and_then(|memory| memory.arena.mapped(range)) {
                take_keys(data, position, self.record_bytes, &mut keys);
            } else {
                let stretches = slice::from_ref(stretch);
                self.read(stretches, &*sampled.file, context, (&mut buffer, &mut keys))?;
            }
            open = Some(sampled);
        }
        Ok(keys)
    }

    fn input(&self, _context: &TaskContext) -> String {
        count(self.stretches.len(), "place")
    }

    fn counters(&self, keys: &Self::Report) -> Counters {
        vec![("SAMPLED_KEYS", keys.len() as u64)]
    }
}

impl SampleSpec {
    /// The same from a far store.
    fn ask(&self, context: &TaskContext) -> Result<Vec<Entry>> {
        let requests = joined(&self.stretches);
        let mut numbers: Vec<usize> = self.stretches.iter().map(|stretch| stretch.file).collect();
        numbers.dedup(); // they ascend
        let open = |number: &usize| {
            let input = &context.job.files[*number];
            let file = context.node.store.open_input(input, Caching::Cached)?;
            Ok((*number, file))
        };
        let opened = at_once(&numbers, SHORT_AT_ONCE, open)?;
        let opened: BTreeMap<usize, Box<dyn ReadFile>> = opened.into_iter().collect();
        let budget = &context.node.budget;
        let (granted, _memory) =
            budget.reserve_up_to("stretches", JOINED_BYTES_MAX, SHORT_AT_ONCE)?;
        let keys = at_once(&requests, granted, |stretches| {
            let number = stretches.first().map_or(0, |first| first.file);
            let (mut keys, mut buffer) = (Vec::new(), Pages::default());
            self.read(
                stretches,
                &*opened[&number],
                context,
                (&mut buffer, &mut keys),
            )?;
            Ok(keys)
        })?;
        Ok(keys.concat())
    }

    /// Takes the keys of stretches that lie near each other. Of a disk the blocks that hold them are read.
    fn read(
        &self,
        stretches: &[InputRange],
        file: &dyn ReadFile,
        context: &TaskContext,
        (buffer, keys): (&mut Pages<u8>, &mut Vec<Entry>),
    ) -> Result<()> {
        let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else {
            return Ok(());
        };
        let block = if file.is_remote() { 1 } else { BLOCK_BYTES };
        let (start, end) = (first.offset - first.offset % block as u64, last.range().end);
        let bytes = (end - start) as usize;
        let blocks = bytes.next_multiple_of(block);
        if buffer.len() < blocks {
            *buffer = Pages::zeroed(blocks)?;
        }
        let read = file.read_at(&mut buffer[..blocks], start)?;
        if read < bytes {
            let path = context.job.files[first.file].path.as_typed();
            return Err(ended_early(path, end, start + read as u64));
        }
        for stretch in stretches {
            let from = (stretch.offset - start) as usize;
            let data = &buffer[from..from + stretch.bytes as usize];
            let position = context.starts[stretch.file] + stretch.offset;
            take_keys(data, position, self.record_bytes, keys);
        }
        Ok(())
    }
}

/// Stretches of one file with gaps up to this are asked for together: many requests at once carry so much in the time
/// that one more takes.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// Bytes of such a request at most: it is one of many, and lies in memory meanwhile.
const JOINED_BYTES_MAX: u64 = 256 << 10;

/// Stretches by request: ascending ones that lie near each other.
fn joined(stretches: &[InputRange]) -> Vec<&[InputRange]> {
    let (mut requests, mut start) = (Vec::new(), 0);
    for (number, stretch) in stretches.iter().enumerate() {
        let (first, before) = (stretches[start], stretches[number.saturating_sub(1)]);
        let is_near = stretch.file == first.file
            && stretch.offset >= before.range().end
            && stretch.offset - before.range().end <= GAP_BYTES_MAX
            && stretch.range().end - first.offset <= JOINED_BYTES_MAX;
        if number > start && !is_near {
            requests.push(&stretches[start..number]);
            start = number;
        }
    }
    if start < stretches.len() {
        requests.push(&stretches[start..]);
    }
    requests
}

/// A file of the input, open to be sampled.
struct SampledFile {
    number: usize,
    file: Box<dyn ReadFile>,
    resident: bool,
}

impl SampledFile {
    fn open(context: &TaskContext, number: usize) -> Result<Self> {
        let input = &context.job.files[number];
        let file = context.node.store.open_input(input, Caching::Direct)?;
        let share = |descriptor| resident_share(descriptor, input.stat.bytes);
        let resident = file.descriptor().map_or(0.0, share) > RESIDENT_SHARE;
        Ok(SampledFile {
            number,
            file,
            resident,
        })
    }
}

fn take_keys(data: &[u8], position: u64, record_bytes: usize, sample: &mut Vec<Entry>) {
    for (i, record) in data.chunks_exact(record_bytes).enumerate() {
        if let Some(key) = record.first_chunk::<KEY_BYTES>() {
            sample.push(Entry::new(key, position + (i * record_bytes) as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_stretches_are_asked_for_together() {
        let stretch = |file, offset, bytes| InputRange {
            file,
            offset,
            bytes,
        };
        let all = [
            stretch(0, 0, 3200),
            stretch(0, 3200 + GAP_BYTES_MAX, 3200),
            stretch(0, 6401 + 2 * GAP_BYTES_MAX, 3200),
            stretch(1, 9601 + 2 * GAP_BYTES_MAX, 3200),
            stretch(2, 0, JOINED_BYTES_MAX + 1),
            stretch(2, JOINED_BYTES_MAX + 1, 100),
        ];
        let requests = joined(&all);
        let lengths: Vec<usize> = requests.iter().map(|request| request.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 1, 1]);
        assert_eq!(requests.concat(), all);
        assert!(joined(&[]).is_empty());
    }
}
