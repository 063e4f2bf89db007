//! The built-in aggregates, which run on both sides of a shuffle: many values of a key become one result.
//!
//! ```text
//!   value ─add─▶ AggregateState ─write─▶ bytes ── shuffle ──▶ bytes ─merge─▶ AggregateState ─finish─▶ value
//! ```
//!
//! The law: a written state and a result are, byte for byte, functions of the multiset of values (of values and positions for
//! `first`, `last`, `top` and `collect`), never of how they were grouped or of the order in which groups were merged. So sums of
//! doubles are exact until they are rounded, once; and equal states have equal bytes.
//!
//! A written state takes the whole of its slice and does not begin with FF, so that it may stand behind a key. How values
//! compare where results depend on it is said in `worth.rs`, what a state holds in the file of its family.

mod checked;
mod count;
mod decimal_digits;
mod decimals;
mod distinct;
mod exact;
mod extreme;
mod extreme_cell;
mod log;
mod mean;
mod name;
mod several;
mod sketch;
mod sum;
#[cfg(test)]
mod tests;
mod worth;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::value::write;
use checked::{bad_state, check_value, check_whole, mismatch, no_number, split_unsigned};
use count::{add_counts, merge_counts};
use decimals::DecimalSum;
use distinct::Distinct;
use extreme::Extreme;
use extreme_cell::ExtremeCell;
use log::{Log, check_quantiles};
use mean::{Mean, MeanSum};
use several::Several;
use sketch::Sketch;
use sum::Sum;

/// What becomes of the values of a key.
///
/// ```
/// use gristmill_base::aggregate::Aggregate;
/// use gristmill_base::value::{display, write};
///
/// let top = Aggregate::Top(2);
/// let (mut here, mut there) = (top.empty(), top.empty());
/// let mut value = Vec::new();
/// for (position, int) in (0..).zip([3, 1, 4, 1, 5, 9, 2, 6]) {
///     value.clear();
///     write::int(&mut value, int);
///     let state = if position % 2 == 0 { &mut here } else { &mut there };
///     top.add(state, &value, position)?;
/// }
/// let (mut written, mut result) = (Vec::new(), Vec::new());
/// top.write(&there, &mut written);
/// top.merge(&mut here, &written)?;
/// top.finish(&here, &mut result)?;
/// assert_eq!(display(&result, 80), "(9, 6)");
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// The sum of numbers, booleans counting 0 and 1. Of integers an integer, exact; with a double among them the double nearest to the exact sum,
    /// half to even; infinities and NaNs as IEEE 754 has them. Of nothing 0.
    Sum,
    /// How many values there are.
    Count,
    /// The least value. Numbers compare by what they are worth, `1`, `1.0` and `True` alike; of equals the result is the integer, else
    /// the double, else the boolean. NaNs are above all numbers. Values of several types compare by type, in the order of `value`.
    Min,
    /// The greatest value, compared as for `Min`.
    Max,
    /// The double nearest to the exact sum divided by the count. Takes what `Sum` takes.
    Mean,
    /// The value with the lowest position; of several there, the one whose encoding is least.
    First,
    /// The value with the highest position; of several there, the one whose encoding is greatest.
    Last,
    /// The so many greatest values, the greatest first, compared as for `Min`; of equals those with lower positions.
    Top(usize),
    /// The different values in the order of their encodings: `1`, `1.0` and `True` are three.
    Distinct,
    /// How many different values there are, as `Distinct` tells them apart.
    CountDistinct,
    /// How many different values there are, about: the standard error is 0.81 percent (HyperLogLog, 16,384 registers).
    ApproxDistinct,
    /// All values, by position; several with one position by their encodings.
    Collect,
    /// For each q from 0 to 1 the quantile, which is one of the values: the inverse of the empirical distribution (`inverted_cdf` in numpy).
    /// Compared as for `Min`.
    Quantiles(Vec<f64>),
    /// The sum of decimals, exact: integers of 64 bits, and decimals as they are written, of up to 600 digits before the point and
    /// behind it. The result is a decimal that is written.
    DecimalSum,
    /// The sum of decimals divided by their count, to 17 digits or as many as the sum has.
    DecimalMean,
    /// The cell, given as bytes, that is least: text by its bytes, below all numbers. Of equal ones the first, as it is written.
    CellMin,
    /// The cell that is greatest, compared in the same way.
    CellMax,
    /// Another one, for which nulls are no values.
    SkipNone(Box<Aggregate>),
    /// Several at once. What it takes as a value is a row: one encoded value behind another, one for each aggregate, in their
    /// order. Its result is theirs, one behind another. None of them is again of several.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let several = Aggregate::Several(vec![Aggregate::Sum, Aggregate::Max]);
    /// let mut state = several.empty();
    /// several.add(&mut state, b"\x15\x02\x02a\0", 0)?; // 2, "a"
    /// several.add(&mut state, b"\x15\x03\x02b\0", 1)?; // 3, "b"
    /// let mut results = Vec::new();
    /// several.finish(&state, &mut results)?;
    /// assert_eq!(results, b"\x15\x05\x02b\0"); // 5, "b"
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    Several(Vec<Aggregate>),
}

/// The encoding of a null.
const NULL: &[u8] = &[0];

/// What has been seen of a key's values: at most 32 bytes, and whatever does not fit in them.
#[derive(Debug, Clone)]
pub struct AggregateState(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Count(u64),
    Sum(Sum),
    Mean(Mean<Sum>),
    Extreme(Extreme),
    DecimalSum(DecimalSum),
    DecimalMean(Mean<DecimalSum>),
    ExtremeCell(ExtremeCell),
    Distinct(Distinct),
    Log(Log),
    Sketch(Sketch),
    Several(Several),
}

impl AggregateState {
    /// Bytes of memory beside the state's own.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let mut state = Aggregate::Sum.empty();
    /// Aggregate::Sum.add_int(&mut state, 1, 0)?;
    /// assert_eq!(state.heap_bytes(), 0);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Inner::Count(_) => 0,
            Inner::Sum(sum) => sum.heap_bytes(),
            Inner::Mean(mean) => mean.heap_bytes(),
            Inner::Extreme(extreme) => extreme.heap_bytes(),
            Inner::DecimalSum(sum) => sum.heap_bytes(),
            Inner::DecimalMean(mean) => mean.heap_bytes(),
            Inner::ExtremeCell(extreme) => extreme.heap_bytes(),
            Inner::Distinct(distinct) => distinct.heap_bytes(),
            Inner::Log(log) => log.heap_bytes(),
            Inner::Sketch(sketch) => sketch.heap_bytes(),
            Inner::Several(several) => several.heap_bytes(),
        }
    }
}

impl Aggregate {
    /// The aggregate, and whether nulls are no values for it.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let skipping = Aggregate::SkipNone(Box::new(Aggregate::Sum));
    /// assert_eq!(skipping.plain(), (&Aggregate::Sum, true));
    /// ```
    pub fn plain(&self) -> (&Aggregate, bool) {
        match self {
            Aggregate::SkipNone(inner) => (inner.plain().0, true),
            _ => (self, false),
        }
    }

    /// Those it is several of; none where it is one.
    fn all(&self) -> &[Aggregate] {
        match self.plain().0 {
            Aggregate::Several(all) => all,
            _ => &[],
        }
    }

    /// The one that says how many values this one's result would have.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// assert_eq!(Aggregate::Distinct.counted(), Aggregate::CountDistinct);
    /// ```
    #[must_use]
    pub fn counted(self) -> Aggregate {
        match self {
            Aggregate::Distinct => Aggregate::CountDistinct,
            Aggregate::SkipNone(inner) => Aggregate::SkipNone(Box::new(inner.counted())),
            Aggregate::Several(all) => {
                Aggregate::Several(all.into_iter().map(Aggregate::counted).collect())
            }
            _ => self,
        }
    }

    /// Whether its own figures make sense: an error (`bad_option`) for a quantile outside of 0 to 1.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// assert!(Aggregate::Quantiles(vec![0.0, 0.5, 1.0]).check().is_ok());
    /// assert!(Aggregate::Quantiles(vec![50.0]).check().is_err());
    /// ```
    pub fn check(&self) -> Result<()> {
        match self.plain().0 {
            Aggregate::Quantiles(quantiles) => check_quantiles(quantiles),
            Aggregate::Several(all) => all.iter().try_for_each(Aggregate::check),
            _ => Ok(()),
        }
    }

    /// About how many bytes of memory there are, the state's among them, until its result is written; 0 where that is little for
    /// any values. It takes as long as the state is large.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let mut state = Aggregate::Collect.empty();
    /// Aggregate::Collect.add(&mut state, &[b"\x02".as_slice(), &[b'a'; 1000], b"\0"].concat(), 0)?;
    /// assert!(Aggregate::Collect.finish_bytes(&state) > 4000);
    /// assert_eq!(Aggregate::Sum.finish_bytes(&Aggregate::Sum.empty()), 0);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn finish_bytes(&self, state: &AggregateState) -> usize {
        match &state.0 {
            Inner::Distinct(distinct) => match self.plain().0 {
                Aggregate::CountDistinct => distinct.heap_bytes(),
                _ => distinct.finish_bytes(),
            },
            Inner::Log(log) => log.finish_bytes(),
            Inner::Several(several) => several.finish_bytes(self.all()),
            _ => 0,
        }
    }

    /// Where the value stands that `First` or `Last` has, if any; of several, that of the first of those.
    pub fn position(&self, state: &AggregateState) -> Option<u64> {
        match &state.0 {
            Inner::Extreme(extreme) => extreme.position(self.plain().0),
            Inner::Several(several) => several.position(self.all()),
            _ => None,
        }
    }

    /// The state before the first value.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let mut result = Vec::new();
    /// Aggregate::Sum.finish(&Aggregate::Sum.empty(), &mut result)?;
    /// assert_eq!(result, [0x14]); // the integer 0
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn empty(&self) -> AggregateState {
        AggregateState(match self {
            Aggregate::Sum => Inner::Sum(Sum::default()),
            Aggregate::Count => Inner::Count(0),
            Aggregate::Mean => Inner::Mean(Mean::default()),
            Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last => {
                Inner::Extreme(Extreme::default())
            }
            Aggregate::Distinct | Aggregate::CountDistinct => Inner::Distinct(Distinct::default()),
            Aggregate::Top(_) | Aggregate::Collect | Aggregate::Quantiles(_) => {
                Inner::Log(Log::default())
            }
            Aggregate::ApproxDistinct => Inner::Sketch(Sketch::default()),
            Aggregate::DecimalSum => Inner::DecimalSum(DecimalSum::default()),
            Aggregate::DecimalMean => Inner::DecimalMean(Mean::default()),
            Aggregate::CellMin | Aggregate::CellMax => Inner::ExtremeCell(ExtremeCell::default()),
            Aggregate::SkipNone(inner) => return inner.empty(),
            Aggregate::Several(_) => Inner::Several(Several::default()),
        })
    }

    /// Adds a value, whose encoding is all of `value`, and which stands at `position` of the input.
    ///
    /// An error (`bad_input`) names the aggregate, the value and what it takes; or says where `value` is no value's encoding. After one the
    /// state of `Several` is of no more use.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let error = Aggregate::Sum.add(&mut Aggregate::Sum.empty(), b"\x02one\0", 0).unwrap_err();
    /// assert!(error.to_string().starts_with(
    ///     "cannot aggregate values: sum takes numbers (int, float, bool), not 'one'"
    /// ));
    /// ```
    #[inline]
    pub fn add(&self, state: &mut AggregateState, value: &[u8], position: u64) -> Result<()> {
        match (&mut state.0, self) {
            (Inner::Sum(sum), Aggregate::Sum) => sum.add(value, self.name()),
            (Inner::Count(count), Aggregate::Count) => add_counts(count, 1),
            (Inner::Mean(mean), Aggregate::Mean) => mean.add(value, self.name()),
            (Inner::DecimalSum(sum), Aggregate::DecimalSum) => sum.add(value, self.name()),
            (Inner::DecimalMean(mean), Aggregate::DecimalMean) => mean.add(value, self.name()),
            (_, Aggregate::SkipNone(_)) if value == NULL => Ok(()),
            (_, Aggregate::SkipNone(inner)) => inner.add(state, value, position),
            (Inner::Extreme(extreme), _) => extreme.add(self, value, position),
            (Inner::ExtremeCell(extreme), _) => extreme.add(self, value, position),
            (Inner::Distinct(distinct), _) => distinct.add(value),
            (Inner::Log(log), _) => log.add(self, value, position),
            (Inner::Sketch(sketch), Aggregate::ApproxDistinct) => sketch.add(value),
            (Inner::Several(several), Aggregate::Several(all)) => several.add(all, value, position),
            _ => Err(mismatch(self)),
        }
    }

    /// Adds an integer that is not encoded; sums and counts need no encoding.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let mut state = Aggregate::Sum.empty();
    /// Aggregate::Sum.add_int(&mut state, 40, 0)?;
    /// Aggregate::Sum.add_int(&mut state, 2, 1)?;
    /// let mut result = Vec::new();
    /// Aggregate::Sum.finish(&state, &mut result)?;
    /// assert_eq!(result, [0x15, 42]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn add_int(&self, state: &mut AggregateState, value: i64, position: u64) -> Result<()> {
        match (&mut state.0, self) {
            (Inner::Sum(sum), Aggregate::Sum) => {
                sum.add_int(value);
                Ok(())
            }
            (Inner::Count(count), Aggregate::Count) => add_counts(count, 1),
            (_, Aggregate::SkipNone(inner)) => inner.add_int(state, value, position),
            _ => {
                let mut encoded = Vec::new();
                write::int(&mut encoded, value);
                self.add(state, &encoded, position)
            }
        }
    }

    /// Adds what a written state holds. An error (`bad_input`) where `other` is none of this aggregate's; `state` is then of no more use.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let mut state = Aggregate::Count.empty();
    /// Aggregate::Count.merge(&mut state, &[0x15, 7])?;
    /// Aggregate::Count.add(&mut state, b"\x02one more\0", 0)?;
    /// let mut written = Vec::new();
    /// Aggregate::Count.write(&state, &mut written);
    /// assert_eq!(written, [0x15, 8]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn merge(&self, state: &mut AggregateState, other: &[u8]) -> Result<()> {
        if other.is_empty() {
            return Ok(());
        }
        let merged = match (&mut state.0, self) {
            (Inner::Sum(sum), Aggregate::Sum) => sum.merge(other),
            (Inner::Count(count), Aggregate::Count) => merge_counts(count, other),
            (Inner::Mean(mean), Aggregate::Mean) => mean.merge(other),
            (Inner::DecimalSum(sum), Aggregate::DecimalSum) => sum.merge(other),
            (Inner::DecimalMean(mean), Aggregate::DecimalMean) => mean.merge(other),
            (_, Aggregate::SkipNone(inner)) => return inner.merge(state, other),
            (Inner::Extreme(extreme), _) => extreme.merge(self, other),
            (Inner::ExtremeCell(extreme), _) => extreme.merge(self, other),
            (Inner::Distinct(distinct), _) => distinct.merge(other),
            (Inner::Log(log), _) => log.merge(self, other),
            (Inner::Sketch(sketch), Aggregate::ApproxDistinct) => sketch.merge(other),
            (Inner::Several(several), Aggregate::Several(all)) => several.merge(all, other),
            _ => Err(mismatch(self)),
        };
        merged.map_err(|error| error.with("aggregate", self.name()))
    }

    /// The state that was written; errors as [`Aggregate::merge`].
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let mut written = Vec::new();
    /// Aggregate::Sum.write(&Aggregate::Sum.read(&[0x15, 42])?, &mut written);
    /// assert_eq!(written, [0x15, 42]);
    /// assert!(Aggregate::Sum.read(b"\x02text\0").is_err());
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn read(&self, written: &[u8]) -> Result<AggregateState> {
        let mut state = self.empty();
        self.merge(&mut state, written)?;
        Ok(state)
    }

    /// Appends the state to `out`. Equal multisets of values have equal bytes.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// let mut state = Aggregate::Max.empty();
    /// Aggregate::Max.add(&mut state, b"\x02b\0", 0)?;
    /// Aggregate::Max.add(&mut state, b"\x02a\0", 1)?;
    /// let mut written = Vec::new();
    /// Aggregate::Max.write(&state, &mut written);
    /// assert_eq!(written, b"\x02b\0");
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn write(&self, state: &AggregateState, out: &mut Vec<u8>) {
        match &state.0 {
            Inner::Count(count) => write::unsigned(out, *count),
            Inner::Sum(sum) => sum.write(out),
            Inner::Mean(mean) => mean.write(out),
            Inner::Extreme(extreme) => extreme.write(out),
            Inner::DecimalSum(sum) => sum.write(out),
            Inner::DecimalMean(mean) => mean.write(out),
            Inner::ExtremeCell(extreme) => extreme.write(out),
            Inner::Distinct(distinct) => distinct.write(out),
            Inner::Log(log) => log.write(self.plain().0, out),
            Inner::Sketch(sketch) => sketch.write(out),
            Inner::Several(several) => several.write(self.all(), out),
        }
    }

    /// Appends the result, encoded as a value. Where there was no value at all it is 0 for sums and counts, an empty tuple for what
    /// gives tuples, else null. Of `Several` it is as many values as there are aggregates.
    ///
    /// An error (`bad_input`) where the result is no value: an integer of more than 255 bytes, a tuple deeper than values go.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// use gristmill_base::value::display;
    /// let median = Aggregate::Quantiles(vec![0.5]);
    /// let mut state = median.empty();
    /// for int in [5, 1, 3, 2, 4] {
    ///     median.add_int(&mut state, int, 0)?;
    /// }
    /// let mut result = Vec::new();
    /// median.finish(&state, &mut result)?;
    /// assert_eq!(display(&result, 80), "(3,)");
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn finish(&self, state: &AggregateState, out: &mut Vec<u8>) -> Result<()> {
        match (&state.0, self) {
            (Inner::Count(count), _) => write::unsigned(out, *count),
            (Inner::Sum(sum), _) => sum.finish(out)?,
            (Inner::Mean(mean), _) => mean.finish(out),
            (Inner::Extreme(extreme), _) => extreme.finish(self.plain().0, out),
            (Inner::DecimalSum(sum), _) => sum.finish(out),
            (Inner::DecimalMean(mean), _) => mean.finish(out),
            (Inner::ExtremeCell(extreme), _) => extreme.finish(out),
            (Inner::Distinct(distinct), _) => match self.plain().0 {
                Aggregate::CountDistinct => write::unsigned(out, distinct.count()),
                _ => distinct.finish(out)?,
            },
            (Inner::Log(log), _) => log.finish(self.plain().0, out)?,
            (Inner::Sketch(sketch), _) => write::unsigned(out, sketch.estimate()),
            (Inner::Several(several), _) => several.finish(self.all(), out)?,
        }
        Ok(())
    }
}
