//! Means: a sum, and of how many values. The sum says what the mean is.

use super::{add_counts, bad_state, split_unsigned};
use crate::Result;
use crate::value::write;

/// A sum that means are made of.
pub(super) trait MeanSum: Default {
    /// Bytes beside its own.
    fn heap_bytes(&self) -> usize;

    /// Adds a value; fails with the name of the aggregate where it is no number.
    fn add(&mut self, value: &[u8], aggregate: &str) -> Result<()>;

    /// Adds what another one has written.
    fn merge(&mut self, other: &[u8]) -> Result<()>;

    /// Appends its state.
    fn write(&self, out: &mut Vec<u8>);

    /// Writes the sum divided by a count above zero.
    fn finish_mean(&self, count: u64, out: &mut Vec<u8>);
}

/// A sum, and of how many values.
#[derive(Debug, Clone, Default)]
pub(super) struct Mean<S> {
    count: u64,
    sum: S,
}

impl<S: MeanSum> Mean<S> {
    pub(super) fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes()
    }

    #[inline]
    pub(super) fn add(&mut self, value: &[u8], aggregate: &str) -> Result<()> {
        self.sum.add(value, aggregate)?;
        add_counts(&mut self.count, 1)
    }

    pub(super) fn merge(&mut self, other: &[u8]) -> Result<()> {
        let (count, sum) = split_unsigned(other)?;
        if count == 0 {
            return Err(bad_state("a mean has no values"));
        }
        add_counts(&mut self.count, count)?;
        self.sum.merge(sum)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.count > 0 {
            write::unsigned(out, self.count);
            self.sum.write(out);
        }
    }

    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        match self.count {
            0 => write::null(out),
            count => self.sum.finish_mean(count, out),
        }
    }
}
