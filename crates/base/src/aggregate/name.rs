//! What aggregates are called.

use super::Aggregate;

impl Aggregate {
    /// The name users call it by.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// assert_eq!(Aggregate::Quantiles(vec![0.5]).name(), "quantiles");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Aggregate::Sum => "sum",
            Aggregate::Count => "count",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Mean => "mean",
            Aggregate::First => "first",
            Aggregate::Last => "last",
            Aggregate::Top(_) => "top",
            Aggregate::Distinct => "distinct",
            Aggregate::CountDistinct => "count_distinct",
            Aggregate::ApproxDistinct => "approx_distinct",
            Aggregate::Collect => "collect",
            Aggregate::Quantiles(_) => "quantiles",
            Aggregate::DecimalSum => "decimal_sum",
            Aggregate::DecimalMean => "decimal_mean",
            Aggregate::CellMin => "cell_min",
            Aggregate::CellMax => "cell_max",
            Aggregate::SkipNone(inner) => inner.name(),
            Aggregate::Several(_) => "several",
        }
    }
}
