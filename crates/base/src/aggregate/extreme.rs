//! One value out of all: `min`, `max`, `first`, `last`. The state is that value, behind its position where that decides.

use super::worth::{by_type, by_worth};
use super::{Aggregate, check_value, check_whole, mismatch, split_unsigned};
use crate::Result;
use crate::value::{skip, write};

/// The best so far; empty before the first.
#[derive(Debug, Clone, Default)]
pub(super) struct Extreme(Vec<u8>);

impl Extreme {
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }

    pub(super) fn add(&mut self, aggregate: &Aggregate, value: &[u8], position: u64) -> Result<()> {
        check_whole(value)?;
        if !positioned(aggregate) {
            return self.offer(aggregate, value);
        }
        let is_behind = |best| match aggregate {
            Aggregate::First => position > best,
            _ => position < best,
        };
        if self.position(aggregate).is_some_and(is_behind) {
            return Ok(());
        }
        // The candidate is written behind the best, and one of the two goes.
        let old = self.0.len();
        write::unsigned(&mut self.0, position);
        self.0.extend_from_slice(value);
        let (best, candidate) = self.0.split_at(old);
        if best.is_empty() || is_better(aggregate, candidate, best)? {
            self.0.drain(..old);
        } else {
            self.0.truncate(old);
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, aggregate: &Aggregate, other: &[u8]) -> Result<()> {
        let value = match positioned(aggregate) {
            true => split_unsigned(other)?.1,
            false => other,
        };
        check_value(value)?;
        self.offer(aggregate, other)
    }

    /// Where the value stands, if that decides.
    pub(super) fn position(&self, aggregate: &Aggregate) -> Option<u64> {
        if !positioned(aggregate) {
            return None;
        }
        split_unsigned(&self.0).ok().map(|(position, _)| position)
    }

    fn offer(&mut self, aggregate: &Aggregate, candidate: &[u8]) -> Result<()> {
        if self.0.is_empty() || is_better(aggregate, candidate, &self.0)? {
            self.0.clear();
            self.0.extend_from_slice(candidate);
        }
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    pub(super) fn finish(&self, aggregate: &Aggregate, out: &mut Vec<u8>) {
        let value = match positioned(aggregate) {
            true => self.0.get(skip(&self.0).unwrap_or(0)..).unwrap_or_default(),
            false => &self.0,
        };
        match value {
            [] => write::null(out),
            _ => out.extend_from_slice(value),
        }
    }
}

fn positioned(aggregate: &Aggregate) -> bool {
    matches!(aggregate, Aggregate::First | Aggregate::Last)
}

/// A total order: it never says yes both ways.
fn is_better(aggregate: &Aggregate, candidate: &[u8], best: &[u8]) -> Result<bool> {
    Ok(match aggregate {
        Aggregate::Min => by_worth(candidate, best)
            .then_with(|| by_type(candidate, best))
            .is_lt(),
        Aggregate::Max => by_worth(best, candidate)
            .then_with(|| by_type(candidate, best))
            .is_lt(),
        Aggregate::First => candidate < best,
        Aggregate::Last => candidate > best,
        _ => return Err(mismatch(aggregate)),
    })
}
