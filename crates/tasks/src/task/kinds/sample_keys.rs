//! The task that samples keys of any length: the record at or behind each of some places of the input.

use serde::{Deserialize, Serialize};

use super::sampled::{Sampled, bytes_of_key, code_of};
use super::spill::parse_keys;
use super::{sample_decoded, sample_rows};
use crate::spill::keyed::lines_of;
use crate::split::records::record_start;
use crate::task::input::count;
use crate::task::runs::not_read;
use crate::task::{Counters, TaskAttempt, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::Result;
use gristmill_base::order::borders::{Border, KEY_BYTES_MAX};
use gristmill_base::record::shape::{Keyed, Shape, ShapeKind};
use gristmill_base::record::table_keys::TableKeys;
use gristmill_storage::codec::Codec;
use gristmill_storage::io::at_once::{SHORT_AT_ONCE, at_once};
use gristmill_storage::{Caching, ReadFile};

/// Where to read keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleKeysSpec {
    /// File and offset of each place, ascending.
    pub places: Vec<(usize, u64)>,
    /// Compressed files, of which the beginnings are read: nothing else of them can be.
    #[serde(default)]
    pub decoded: Vec<(usize, Codec)>,
    /// What the records are.
    pub shape: ShapeKind,
    /// GNU sort's options for keys; none where lines have none.
    #[serde(default)]
    pub keys: Vec<String>,
    /// How rows are keyed, where the input is a table.
    #[serde(default)]
    pub table: Option<TableKeys>,
}

impl TaskKind for SampleKeysSpec {
    type Report = Vec<Border>;

    fn run(&self, (context, attempt, _): TaskEnvironment<'_>) -> Result<Self::Report> {
        let mut keys = self.at_places(context, attempt)?;
        let of = Sampled {
            shape: self.shape,
            keys: &self.keys,
            table: self.table.as_ref(),
        };
        keys.extend(sample_decoded::sample(&self.decoded, of, context, attempt)?);
        Ok(keys)
    }

    fn input(&self, _context: &TaskContext) -> String {
        count(self.places.len() + self.decoded.len(), "place")
    }

    fn counters(&self, keys: &Self::Report) -> Counters {
        vec![("SAMPLED_KEYS", keys.len() as u64)]
    }
}

impl SampleKeysSpec {
    fn at_places(&self, context: &TaskContext, attempt: &TaskAttempt<'_>) -> Result<Vec<Border>> {
        match self.shape {
            ShapeKind::Fixed(shape) => sample(shape, self, context, attempt, &bytes_of_key),
            ShapeKind::Lines(shape) => sample(shape, self, context, attempt, &bytes_of_key),
            ShapeKind::Pairs(_) => Err(not_read()),
            ShapeKind::Keyed(keyed) => match &self.table {
                Some(table) => sample_rows::sample(table, &self.places, context, attempt),
                None => sample_keyed(keyed, self, context, attempt),
            },
        }
    }
}

/// What is kept of the key of a line or record.
type KeyOf<'a> = &'a (dyn Fn(&[u8]) -> Vec<u8> + Sync);

/// Codes of lines. Equal ones stay together wherever they come from: the place of a line is not in its code.
fn sample_keyed(
    keyed: Keyed,
    spec: &SampleKeysSpec,
    context: &TaskContext,
    attempt: &TaskAttempt<'_>,
) -> Result<Vec<Border>> {
    let keys = parse_keys(&spec.keys)?;
    let code = |line: &[u8]| code_of(keyed, &keys, line);
    let mut borders = sample(lines_of(&keys), spec, context, attempt, &code)?;
    borders.iter_mut().for_each(|border| border.position = 0);
    Ok(borders)
}

/// The keys at all places. A far store is asked for many at once.
fn sample<S: Shape>(
    shape: S,
    spec: &SampleKeysSpec,
    context: &TaskContext,
    attempt: &TaskAttempt<'_>,
    key_of: KeyOf<'_>,
) -> Result<Vec<Border>> {
    let is_remote = |place: &(usize, u64)| context.job.files[place.0].path.is_remote();
    if !spec.places.iter().any(is_remote) {
        return sample_at(shape, &spec.places, context, attempt, key_of);
    }
    let budget = &context.node.budget;
    let each = KEY_BYTES_MAX as u64 + 1;
    let (granted, _memory) = budget.reserve_up_to("sampled keys", each, SHORT_AT_ONCE)?;
    let share = spec.places.len().div_ceil(granted.max(1)).max(1);
    let shares: Vec<_> = spec.places.chunks(share).collect();
    let keys = at_once(&shares, granted, |places| {
        sample_at(shape, places, context, attempt, key_of)
    })?;
    Ok(keys.concat())
}

fn sample_at<S: Shape>(
    shape: S,
    places: &[(usize, u64)],
    context: &TaskContext,
    attempt: &TaskAttempt<'_>,
    key_of: KeyOf<'_>,
) -> Result<Vec<Border>> {
    let mut keys = Vec::with_capacity(places.len());
    let mut buffer = vec![0; KEY_BYTES_MAX + 1];
    let mut open: Option<(usize, Box<dyn ReadFile>)> = None;
    // Up to where the record begins that was found last, the same one is found: long ones are searched once.
    let mut found: Option<(usize, u64)> = None;
    for (number, offset) in places {
        attempt.progress(0)?;
        let input = &context.job.files[*number];
        let file = match open.take() {
            Some((opened, file)) if opened == *number => file,
            _ => context.node.store.open_input(input, Caching::Cached)?,
        };
        let start = match found {
            Some((of, start)) if of == *number && *offset <= start => start,
            _ => record_start(shape, &*file, input.stat.bytes, *offset)?,
        };
        found = Some((*number, start));
        let read = file.read_at(&mut buffer, start)?;
        open = Some((*number, file));
        if read == 0 {
            continue; // the place lies in the file's last record
        }
        let length = shape.length(&buffer[..read]).unwrap_or(read);
        keys.push(Border {
            key: key_of(shape.key(&buffer[..length])),
            position: context.starts[*number] + start,
        });
    }
    Ok(keys)
}
