//! Several aggregates at once, over rows: each has a column of its own.
//!
//! ```text
//!   row      | value | value | ...                      one for each aggregate, in their order
//!   state    | length | state | length | state | ...    each as its aggregate writes it; nothing before the first row
//!   result   | result | result | ...
//! ```
//!
//! Values and results are encoded, and so tell where they end. All values of a row stand at its position.
//!
//! The law holds because each state is a function of its own column. What is written begins with a length, which is an
//! encoded integer, and so not with FF.
//!
//! A row is not taken back: where one aggregate refuses its value, those before it have theirs, and the state is of no more use.

use super::{Aggregate, AggregateState, bad_state, split_unsigned};
use crate::value::{skip, write};
use crate::{Error, Result};

/// One state for each aggregate; none before the first row, so that an empty one takes no memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Several {
    states: Box<[AggregateState]>,
    /// Bytes of memory beside the states' own, which is asked for at each row.
    inner_bytes: usize,
}

/// What an allocation takes beside its bytes, about: there are many small ones.
const ALLOCATION_BYTES: usize = 24;

impl Several {
    pub(super) fn heap_bytes(&self) -> usize {
        match self.states.len() {
            0 => 0,
            _ => size_of_val(&*self.states) + ALLOCATION_BYTES + self.inner_bytes,
        }
    }

    pub(super) fn position(&self, all: &[Aggregate]) -> Option<u64> {
        let mut pairs = all.iter().zip(&self.states);
        pairs.find_map(|(aggregate, state)| aggregate.position(state))
    }

    pub(super) fn finish_bytes(&self, all: &[Aggregate]) -> usize {
        all.iter()
            .zip(&self.states)
            .map(|(aggregate, state)| aggregate.finish_bytes(state))
            .sum()
    }

    /// Makes the states that are not there yet.
    #[inline]
    fn begin(&mut self, all: &[Aggregate]) {
        if self.states.is_empty() {
            self.states = all.iter().map(Aggregate::empty).collect();
        }
    }

    pub(super) fn add(&mut self, all: &[Aggregate], row: &[u8], position: u64) -> Result<()> {
        self.begin(all);
        let mut rest = row;
        for (aggregate, state) in all.iter().zip(&mut self.states) {
            if rest.is_empty() {
                return Err(wrong_count(all, row));
            }
            let (value, behind) = rest.split_at(skip(rest)?);
            let before = bytes_of(state);
            aggregate.add(state, value, position)?;
            self.inner_bytes = (self.inner_bytes + bytes_of(state)).saturating_sub(before);
            rest = behind;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(wrong_count(all, row))
        }
    }

    pub(super) fn merge(&mut self, all: &[Aggregate], other: &[u8]) -> Result<()> {
        self.begin(all);
        let mut rest = other;
        for (aggregate, state) in all.iter().zip(&mut self.states) {
            let (written, behind) = split_state(rest)?;
            let before = bytes_of(state);
            aggregate.merge(state, written)?;
            self.inner_bytes = (self.inner_bytes + bytes_of(state)).saturating_sub(before);
            rest = behind;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(bad_state("bytes follow the last of several states"))
        }
    }

    pub(super) fn write(&self, all: &[Aggregate], out: &mut Vec<u8>) {
        for (aggregate, state) in all.iter().zip(&self.states) {
            write_state(aggregate, state, out);
        }
    }

    pub(super) fn finish(&self, all: &[Aggregate], out: &mut Vec<u8>) -> Result<()> {
        for (index, aggregate) in all.iter().enumerate() {
            match self.states.get(index) {
                Some(state) => aggregate.finish(state, out)?,
                None => aggregate.finish(&aggregate.empty(), out)?,
            }
        }
        Ok(())
    }
}

/// Bytes of memory beside the state's own.
#[inline]
fn bytes_of(state: &AggregateState) -> usize {
    match state.heap_bytes() {
        0 => 0,
        bytes => bytes + ALLOCATION_BYTES,
    }
}

/// Appends a state behind its length. The length is known once the state is written, and then moved in front of it.
#[inline]
fn write_state(aggregate: &Aggregate, state: &AggregateState, out: &mut Vec<u8>) {
    let start = out.len();
    aggregate.write(state, out);
    let end = out.len();
    write::unsigned(out, (end - start) as u64);
    let length_bytes = out.len() - end;
    out[start..].rotate_right(length_bytes);
}

/// A state that stands behind its length, and what follows it.
#[inline]
fn split_state(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, behind) = split_unsigned(bytes)?;
    usize::try_from(length)
        .ok()
        .and_then(|length| behind.split_at_checked(length))
        .ok_or_else(|| bad_state("one of several states is cut off"))
}

#[cold]
fn wrong_count(all: &[Aggregate], row: &[u8]) -> Error {
    let (mut values, mut rest) = (0, row);
    while let Ok(length) = skip(rest) {
        values += 1;
        rest = &rest[length..];
    }
    let message = format!("a row has {values} values for {} aggregates", all.len());
    Error::bug("aggregate values", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn row(number: i64, text: &str) -> Vec<u8> {
        let mut row = Vec::new();
        write::int(&mut row, number);
        write::text(&mut row, text);
        row
    }

    fn sum_and_max() -> Aggregate {
        Aggregate::Several(vec![Aggregate::Sum, Aggregate::Max])
    }

    fn of_rows(rows: &[Vec<u8>]) -> AggregateState {
        let (several, mut state) = (sum_and_max(), sum_and_max().empty());
        for (position, row) in (0..).zip(rows) {
            several.add(&mut state, row, position).unwrap();
        }
        state
    }

    fn written(state: &AggregateState) -> Vec<u8> {
        let mut out = Vec::new();
        sum_and_max().write(state, &mut out);
        out
    }

    #[test]
    fn each_aggregate_gets_its_column() {
        let state = of_rows(&[row(2, "b"), row(3, "c"), row(-1, "a")]);
        assert_eq!(written(&state), b"\x15\x02\x15\x04\x15\x03\x02c\0");
        let mut result = b"before".to_vec();
        sum_and_max().finish(&state, &mut result).unwrap();
        assert_eq!(result, b"before\x15\x04\x02c\0");
    }

    #[test]
    fn a_long_state_has_a_long_length() {
        let state = of_rows(&[row(1, &"x".repeat(70_000))]);
        let bytes = written(&state);
        assert_eq!(bytes[..8], *b"\x15\x02\x15\x01\x17\x01\x11\x72");
        assert_eq!(written(&sum_and_max().read(&bytes).unwrap()), bytes);
    }

    #[test]
    fn without_rows_the_results_are_those_of_nothing() {
        let state = of_rows(&[]);
        assert_eq!((written(&state), state.heap_bytes()), (Vec::new(), 0));
        let mut result = Vec::new();
        sum_and_max().finish(&state, &mut result).unwrap();
        assert_eq!(result, [0x14, 0x00]);
        let mut other = of_rows(&[row(7, "x")]);
        sum_and_max().merge(&mut other, &written(&state)).unwrap();
        assert_eq!(written(&other), written(&of_rows(&[row(7, "x")])));
    }

    #[test]
    fn memory_is_that_of_all_states() {
        let long = "x".repeat(1000);
        let state = of_rows(&[row(1, &long)]);
        assert!(state.heap_bytes() >= 2 * size_of::<AggregateState>() + long.len());
        let collect = Aggregate::Several(vec![Aggregate::Count, Aggregate::Collect]);
        let mut state = collect.empty();
        assert_eq!(collect.finish_bytes(&state), 0);
        collect.add(&mut state, &row(1, &long), 0).unwrap();
        assert!(collect.finish_bytes(&state) > 4000);
    }

    #[test]
    fn a_refused_value_is_the_error_of_its_aggregate() {
        let sums = Aggregate::Several(vec![Aggregate::Sum, Aggregate::Sum]);
        let alone = Aggregate::Sum.add(&mut Aggregate::Sum.empty(), b"\x02one\0", 0);
        let several = sums.add(&mut sums.empty(), &row(1, "one"), 0);
        assert_eq!(
            several.unwrap_err().to_string(),
            alone.unwrap_err().to_string()
        );
    }

    #[test]
    fn a_row_has_one_value_for_each() {
        let three = [row(1, "a"), vec![0x14]].concat();
        for (row, count) in [(vec![], 0), (vec![0x14], 1), (three, 3)] {
            let error = sum_and_max().add(&mut sum_and_max().empty(), &row, 0);
            let error = error.unwrap_err();
            assert_eq!(error.kind(), Kind::Bug);
            let said = format!("a row has {count} values for 2 aggregates");
            assert!(error.to_string().contains(&said), "{error}");
        }
        let one = Aggregate::Several(vec![Aggregate::Sum]);
        let mut state = one.empty();
        one.add_int(&mut state, 7, 0).unwrap();
        let two = sum_and_max().add_int(&mut sum_and_max().empty(), 7, 0);
        assert!(two.is_err());
    }

    #[test]
    fn a_damaged_state_is_an_error() {
        let good = written(&of_rows(&[row(1, "a")]));
        for length in 1..good.len() {
            assert!(sum_and_max().read(&good[..length]).is_err(), "{length}");
        }
        let error = sum_and_max().read(&[&good[..], b"\x14"].concat());
        let error = error.unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(
            error
                .to_string()
                .contains("bytes follow the last of several states"),
            "{error}"
        );
        let huge = [0x1c, 255, 255, 255, 255, 255, 255, 255, 255, 0x14];
        let error = sum_and_max().read(&huge).unwrap_err().to_string();
        assert!(error.contains("cut off (aggregate several)"), "{error}");
    }

    #[test]
    fn nulls_may_be_passed_over_in_one_column() {
        let skipping = Aggregate::SkipNone(Box::new(Aggregate::Sum));
        let several = Aggregate::Several(vec![Aggregate::Count, skipping]);
        let mut state = several.empty();
        for row in [[0x00, 0x00].as_slice(), &[0x00, 0x15, 5]] {
            several.add(&mut state, row, 0).unwrap();
        }
        let mut result = Vec::new();
        several.finish(&state, &mut result).unwrap();
        assert_eq!(result, [0x15, 2, 0x15, 5]);
    }

    #[test]
    fn what_an_aggregate_says_of_itself_all_of_them_say() {
        let several =
            Aggregate::Several(vec![Aggregate::Distinct, Aggregate::Quantiles(vec![2.0])]);
        assert_eq!(several.name(), "several");
        assert!(several.check().is_err() && sum_and_max().check().is_ok());
        let Aggregate::Several(counted) = several.counted() else {
            panic!("it is several no more");
        };
        assert_eq!(counted[0], Aggregate::CountDistinct);
    }
}
