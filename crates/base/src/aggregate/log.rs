//! Many values of all: `top`, `collect`, `quantiles`. One buffer of entries, one behind another.
//!
//! ```text
//!   collect, top         | position | value | position | value | ...
//!   quantiles            | value | count | value | count | ...
//! ```
//!
//! Entries are appended as they come. Where the buffer would have to grow it is first made canonical: sorted, and of what the result
//! does not need rid; and it grows only if it is more than half full then, so that sorting costs a constant number of times what the entries
//! do. What is written is canonical.

use std::cmp::Ordering;
use std::iter;

use super::worth::{by_type, by_worth};
use super::{Aggregate, bad_state, check_value, check_whole, mismatch, split_unsigned};
use crate::value::{skip, write};
use crate::{Error, Kind, Result};

/// Entries of the kind that the aggregate says.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Vec<u8>);

/// An entry's two fields.
type Entry<'a> = (&'a [u8], &'a [u8]);

/// What is made of the buffer: the result, Python's object, and what its writer makes of that.
const FINISHED_COPIES: usize = 3;

/// Bytes of an entry beside its own: its places in the canonical form, and the head of Python's object.
const ENTRY_BYTES: usize = size_of::<Entry<'_>>() + size_of::<(Entry<'_>, u64)>() + 48;

/// A smaller buffer is not worth sorting.
const COMPACT_MIN: usize = 64;

impl Log {
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }

    pub(super) fn add(&mut self, aggregate: &Aggregate, value: &[u8], position: u64) -> Result<()> {
        check_whole(value)?;
        self.reserve(aggregate, value.len() + 9);
        match aggregate {
            Aggregate::Collect | Aggregate::Top(_) => {
                write::unsigned(&mut self.0, position);
                self.0.extend_from_slice(value);
            }
            Aggregate::Quantiles(_) => {
                self.0.extend_from_slice(value);
                write::unsigned(&mut self.0, 1);
            }
            _ => return Err(mismatch(aggregate)),
        }
        Ok(())
    }

    /// About as many bytes as there are until the result is written: the buffer, its canonical form, the result, and what Python and its
    /// writer make of that.
    pub(super) fn finish_bytes(&self) -> usize {
        let entries = entries(&self.0).count();
        self.0.capacity() + FINISHED_COPIES * self.0.len() + entries * ENTRY_BYTES
    }

    pub(super) fn merge(&mut self, aggregate: &Aggregate, other: &[u8]) -> Result<()> {
        let mut rest = other;
        while !rest.is_empty() {
            rest = check_entry(aggregate, rest)?;
        }
        self.reserve(aggregate, other.len());
        self.0.extend_from_slice(other);
        Ok(())
    }

    /// Room for as many bytes more.
    fn reserve(&mut self, aggregate: &Aggregate, more: usize) {
        let (len, capacity) = (self.0.len(), self.0.capacity());
        if len + more <= capacity {
            return;
        }
        if len >= COMPACT_MIN && !matches!(aggregate, Aggregate::Collect) {
            let mut compact = Vec::with_capacity(len);
            self.write(aggregate, &mut compact);
            self.0.clear();
            self.0.extend_from_slice(&compact);
            if compact.len() + more <= capacity / 2 {
                return;
            }
        }
        self.0.reserve(more);
    }

    pub(super) fn write(&self, aggregate: &Aggregate, out: &mut Vec<u8>) {
        for (entry, count) in self.canonical(aggregate) {
            out.extend_from_slice(entry.0);
            match aggregate {
                Aggregate::Quantiles(_) => write::unsigned(out, count),
                _ => out.extend_from_slice(entry.1),
            }
        }
    }

    pub(super) fn finish(&self, aggregate: &Aggregate, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let entries = self.canonical(aggregate);
        write::begin_tuple(out);
        match aggregate {
            Aggregate::Quantiles(quantiles) => {
                for q in quantiles {
                    write::element(out, quantile(&entries, *q));
                }
            }
            _ => entries
                .iter()
                .for_each(|(entry, _)| write::element(out, entry.1)),
        }
        write::end_tuple(out);
        // The values are one tuple deeper than they were: not all can be.
        skip(out.get(start..).unwrap_or_default()).map(|_| ())
    }

    /// The entries that the result needs, in its order, each with its count (1 but for quantiles).
    fn canonical(&self, aggregate: &Aggregate) -> Vec<(Entry<'_>, u64)> {
        let mut entries: Vec<_> = entries(&self.0).collect();
        match aggregate {
            Aggregate::Top(count) => {
                entries.sort_unstable_by(descending);
                entries.truncate(*count);
            }
            Aggregate::Quantiles(_) => return counted(entries),
            _ => entries.sort_unstable_by(positions),
        }
        entries.into_iter().map(|entry| (entry, 1)).collect()
    }
}

/// The entries in a buffer, all of which were checked when they came.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    iter::from_fn(move || {
        let (first, behind) = rest.split_at(skip(rest).ok()?);
        let (second, behind) = behind.split_at(skip(behind).unwrap_or(0));
        rest = behind;
        Some((first, second))
    })
}

/// The bytes behind the first entry, which must be one.
fn check_entry<'a>(aggregate: &Aggregate, bytes: &'a [u8]) -> Result<&'a [u8]> {
    let positioned = matches!(aggregate, Aggregate::Collect | Aggregate::Top(_));
    let rest = if positioned {
        split_unsigned(bytes)?.1
    } else {
        bytes
    };
    let (value, rest) = rest.split_at(skip(rest)?);
    check_value(value)?;
    if !matches!(aggregate, Aggregate::Quantiles(_)) {
        return Ok(rest);
    }
    match split_unsigned(rest)? {
        (0, _) => Err(bad_state("a value has a count of zero")),
        (_, rest) => Ok(rest),
    }
}

/// The greatest values first; of equals the lowest positions.
fn descending(a: &Entry<'_>, b: &Entry<'_>) -> Ordering {
    by_worth(b.1, a.1).then_with(|| positions(a, b))
}

/// Positions compare as their encodings do.
fn positions(a: &Entry<'_>, b: &Entry<'_>) -> Ordering {
    a.cmp(b)
}

/// The different values in their order, and how often each is there.
fn counted(mut entries: Vec<Entry<'_>>) -> Vec<(Entry<'_>, u64)> {
    entries.sort_unstable_by(|a, b| by_worth(a.0, b.0).then_with(|| by_type(a.0, b.0)));
    let mut counted: Vec<(Entry<'_>, u64)> = Vec::new();
    for entry in entries {
        let count = split_unsigned(entry.1).map_or(0, |(count, _)| count);
        match counted.last_mut() {
            // Counts from outside may be anything: they stop where 64 bits end.
            Some((last, sum)) if last.0 == entry.0 => *sum = sum.saturating_add(count),
            _ => counted.push((entry, count)),
        }
    }
    counted
}

/// The value at the quantile, as `numpy.quantile` has it with `inverted_cdf`, down to its rounding; a null where there are no values.
fn quantile<'a>(counted: &[(Entry<'a>, u64)], q: f64) -> &'a [u8] {
    let all = counted
        .iter()
        .fold(0_u64, |all, (_, count)| all.saturating_add(*count));
    let wanted = (all as f64 * q - 1.0).ceil().max(0.0) as u64;
    let mut seen = 0_u64;
    for ((value, _), count) in counted {
        seen = seen.saturating_add(*count);
        if seen > wanted {
            return value;
        }
    }
    counted.last().map_or(&[0], |((value, _), _)| *value)
}

/// An error (`bad_option`) for one that is not from 0 to 1.
pub(super) fn check_quantiles(quantiles: &[f64]) -> Result<()> {
    match quantiles.iter().find(|q| !(0.0..=1.0).contains(*q)) {
        None => Ok(()),
        Some(q) => Err(Error::new(
            Kind::BadOption,
            "take quantiles",
            format!("{q} is not between 0 and 1"),
        )
        .advise("give quantiles as fractions, the median as 0.5")),
    }
}
