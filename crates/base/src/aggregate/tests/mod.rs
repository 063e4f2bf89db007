//! The law, for every aggregate: any order, any grouping, any tree of merges, written and read in between, gives the bytes of one state that
//! saw all values in order; and the result is what exact rationals and plain vectors say.

mod cells;
mod naive;

use num_bigint::{BigInt, Sign};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Aggregate, AggregateState};
use crate::value::{ValueReader, display, write};
use naive::{Value, naive};

fn outcome(aggregate: &Aggregate, state: &AggregateState) -> (Vec<u8>, Vec<u8>) {
    let (mut written, mut result) = (Vec::new(), Vec::new());
    aggregate.write(state, &mut written);
    aggregate.finish(state, &mut result).unwrap();
    assert_ne!(written.first(), Some(&0xff));
    (written, result)
}

/// How values come together: in which order, in which groups, merged which way.
#[derive(Debug, Clone)]
struct Way {
    order: Vec<usize>,
    groups: Vec<u8>,
    merges: Vec<prop::sample::Index>,
}

/// What comes out on a way.
fn on_a_way(aggregate: &Aggregate, values: &[Value], way: &Way) -> (Vec<u8>, Vec<u8>) {
    let groups = usize::from(*way.groups.iter().max().unwrap_or(&0)) + 1;
    let mut states = vec![aggregate.empty(); groups];
    for at in &way.order {
        let state = &mut states[usize::from(way.groups[*at])];
        aggregate
            .add(state, &values[*at].encoded(), *at as u64)
            .unwrap();
    }
    let mut merges = way.merges.iter();
    while states.len() > 1 {
        let from = states.swap_remove(merges.next().unwrap().index(states.len()));
        let (written, _) = outcome(aggregate, &from);
        let to = merges.next().unwrap().index(states.len());
        if merges.next().unwrap().index(2) == 0 {
            // Through bytes and back, before the merge.
            let (to_written, _) = outcome(aggregate, &states[to]);
            states[to] = aggregate.read(&to_written).unwrap();
        }
        aggregate.merge(&mut states[to], &written).unwrap();
    }
    outcome(aggregate, &states[0])
}

fn check_law(aggregate: &Aggregate, values: &[Value], way: &Way) -> Result<(), TestCaseError> {
    let straight = Way {
        order: (0..values.len()).collect(),
        groups: vec![0; values.len()],
        merges: Vec::new(),
    };
    let (state, result) = on_a_way(aggregate, values, &straight);
    let (other_state, other_result) = on_a_way(aggregate, values, way);
    let shown = |bytes: &[u8]| display(bytes, 200);
    prop_assert_eq!(shown(&result), shown(&other_result), "{}", aggregate.name());
    prop_assert_eq!(&result, &other_result, "{}", aggregate.name());
    prop_assert_eq!(state, other_state, "{}: states", aggregate.name());
    prop_assert!(ValueReader::new(&result).all(|token| token.is_ok()));
    if let Some(naive) = naive(aggregate, values) {
        prop_assert_eq!(shown(&result), shown(&naive), "{}", aggregate.name());
        prop_assert_eq!(result, naive, "{}", aggregate.name());
    }
    Ok(())
}

fn double() -> impl Strategy<Value = f64> {
    let near = (-4_i32..4, -60_i32..60).prop_map(|(odd, power)| f64::from(odd) * 2_f64.powi(power));
    prop_oneof![
        4 => near,
        3 => any::<f64>(),
        2 => (-3_i8..3).prop_map(f64::from),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => proptest::sample::select(vec![f64::MAX, f64::MIN, 5e-324, -5e-324, -0.0, 1e16, 9_007_199_254_740_993.0]),
    ]
}

fn int() -> impl Strategy<Value = BigInt> {
    let edge = (0_u32..80, -2_i8..=2, any::<bool>()).prop_map(|(bits, off, negative)| {
        let size = (BigInt::from(1) << bits) + off;
        if negative { -size } else { size }
    });
    let big = (any::<bool>(), vec(any::<u8>(), 0..240)).prop_map(|(negative, bytes)| {
        BigInt::from_bytes_be(if negative { Sign::Minus } else { Sign::Plus }, &bytes)
    });
    prop_oneof![4 => edge, 1 => big, 2 => any::<i64>().prop_map(BigInt::from), 4 => (-3..4).prop_map(BigInt::from)]
}

/// Numbers that are often integers only, often finite only.
fn numbers() -> impl Strategy<Value = Vec<Value>> {
    let ints = || prop_oneof![4 => int().prop_map(Value::Int), 1 => any::<bool>().prop_map(Value::Boolean)];
    let finite = || double().prop_map(|double| if double.is_finite() { double } else { 0.1 });
    prop_oneof![
        vec(ints(), 0..30),
        vec(finite().prop_map(Value::Double), 0..30),
        vec(prop_oneof![ints(), finite().prop_map(Value::Double)], 0..30),
        vec(prop_oneof![ints(), double().prop_map(Value::Double)], 0..8),
    ]
}

fn one_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3..4).prop_map(|int: i32| Value::Int(int.into())),
        double().prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        (-300_i64..300).prop_map(Value::Decimal),
    ]
}

fn anything() -> impl Strategy<Value = Vec<Value>> {
    let text = vec(prop_oneof![Just('\0'), Just('a'), any::<char>()], 0..4);
    let other = prop_oneof![
        Just(Value::Null),
        text.prop_map(|text| Value::Text(text.into_iter().collect())),
        (-500_i64..500).prop_map(Value::Decimal),
        one_number().prop_map(|number| Value::Tuple(Box::new(number))),
    ];
    (numbers(), vec(other, 0..20)).prop_flat_map(|(mut values, other)| {
        values.extend(other);
        Just(values).prop_shuffle()
    })
}

fn with_way(values: impl Strategy<Value = Vec<Value>>) -> impl Strategy<Value = (Vec<Value>, Way)> {
    values.prop_flat_map(|values| {
        let count = values.len();
        let order = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        let way = (
            order,
            vec(0_u8..6, count),
            vec(any::<prop::sample::Index>(), 18),
        );
        let way = way.prop_map(|(order, groups, merges)| Way {
            order,
            groups,
            merges,
        });
        (Just(values), way)
    })
}

fn of_anything() -> Vec<Aggregate> {
    vec![
        Aggregate::Count,
        Aggregate::Min,
        Aggregate::Max,
        Aggregate::First,
        Aggregate::Last,
        Aggregate::Top(0),
        Aggregate::Top(3),
        Aggregate::Top(100),
        Aggregate::Distinct,
        Aggregate::CountDistinct,
        Aggregate::ApproxDistinct,
        Aggregate::Collect,
        Aggregate::Quantiles(vec![0.0, 0.1, 0.25, 0.5, 0.75, 0.999, 1.0]),
    ]
}

/// Those of a row, the first two of which take numbers alone.
fn of_rows() -> Vec<Aggregate> {
    let skipping = Aggregate::SkipNone(Box::new(Aggregate::Max));
    [Aggregate::Sum, Aggregate::Mean, skipping]
        .into_iter()
        .chain(of_anything())
        .collect()
}

fn rows() -> impl Strategy<Value = Vec<Value>> {
    let other = || {
        prop_oneof![
            one_number(),
            Just(Value::Null),
            any::<String>().prop_map(Value::Text)
        ]
    };
    let number = || prop_oneof![int().prop_map(Value::Int), double().prop_map(Value::Double)];
    let row = (vec(number(), 2), vec(other(), of_rows().len() - 2));
    vec(
        row.prop_map(|(numbers, others)| Value::Row([numbers, others].concat())),
        0..12,
    )
}

/// What a column's aggregate makes of it alone.
fn alone(aggregate: &Aggregate, column: usize, rows: &[Value], way: &Way) -> Vec<u8> {
    let value = |row: &Value| match row {
        Value::Row(values) => values[column].clone(),
        _ => unreachable!("all are rows"),
    };
    let values: Vec<_> = rows.iter().map(value).collect();
    on_a_way(aggregate, &values, way).1
}

proptest! {
    #[test]
    fn several_at_once_keep_the_law((rows, way) in with_way(rows())) {
        let several = Aggregate::Several(of_rows());
        check_law(&several, &rows, &way)?;
        let columns = of_rows();
        let columns = columns.iter().enumerate();
        let apart: Vec<_> = columns
            .flat_map(|(column, aggregate)| alone(aggregate, column, &rows, &way))
            .collect();
        prop_assert_eq!(on_a_way(&several, &rows, &way).1, apart);
    }

    #[test]
    fn sums_and_means_keep_the_law((values, way) in with_way(numbers())) {
        check_law(&Aggregate::Sum, &values, &way)?;
        check_law(&Aggregate::Mean, &values, &way)?;
    }

    #[test]
    fn all_others_keep_the_law((values, way) in with_way(anything())) {
        for aggregate in of_anything() {
            check_law(&aggregate, &values, &way)?;
        }
    }

    #[test]
    fn missing_values_are_passed_over((values, way) in with_way(vec(prop_oneof![
        Just(Value::Null),
        (-3..4).prop_map(|int: i32| Value::Int(int.into())),
        double().prop_map(Value::Double),
    ], 0..12))) {
        for aggregate in of_anything().into_iter().chain([Aggregate::Sum, Aggregate::Mean]) {
            check_law(&Aggregate::SkipNone(Box::new(aggregate)), &values, &way)?;
        }
    }

    #[test]
    fn hostile_states_are_an_error(bytes in vec(prop_oneof![0_u8..0x42, any::<u8>()], 0..30), at in any::<prop::sample::Index>(), (values, way) in with_way(numbers())) {
        let others = [
            Aggregate::Sum, Aggregate::Mean, Aggregate::Several(vec![Aggregate::Mean]),
        ];
        for aggregate in of_anything().into_iter().chain(others) {
            let (mut damaged, _) = on_a_way(&aggregate, &values, &way);
            if let Some(byte) = bytes.first() && !damaged.is_empty() {
                let at = at.index(damaged.len());
                damaged[at] = *byte;
            }
            for hostile in [&bytes, &damaged] {
                if let Ok(state) = aggregate.read(hostile) {
                    // What can be read can be written, and is then as it should be.
                    let mut written = Vec::new();
                    aggregate.write(&state, &mut written);
                    let again = aggregate.read(&written).unwrap();
                    let mut rewritten = Vec::new();
                    aggregate.write(&again, &mut rewritten);
                    prop_assert_eq!(written, rewritten);
                    _ = aggregate.finish(&state, &mut Vec::new());
                }
            }
        }
    }
}

#[test]
fn a_state_is_small() {
    assert!(
        size_of::<AggregateState>() <= 32,
        "{}",
        size_of::<AggregateState>()
    );
    let mut written = Vec::new();
    let mut one = Aggregate::Sum.empty();
    Aggregate::Sum.add_int(&mut one, 1, 0).unwrap();
    Aggregate::Sum.write(&one, &mut written);
    assert_eq!(
        (written.as_slice(), one.heap_bytes()),
        ([0x15, 1].as_slice(), 0)
    );
}

fn of_ints(aggregate: &Aggregate, ints: impl IntoIterator<Item = i64>) -> AggregateState {
    let mut state = aggregate.empty();
    for (position, int) in (0..).zip(ints) {
        aggregate.add_int(&mut state, int, position).unwrap();
    }
    state
}

/// Far inside of five standard errors; the values are fixed, so it passes or fails for ever.
#[test]
fn different_values_are_counted_about_right() {
    let approx = Aggregate::ApproxDistinct;
    for count in [0, 1, 2, 10, 100, 1_000, 2_500, 10_000, 100_000, 1_000_000] {
        let state = of_ints(&approx, (0..count).chain(0..count / 2));
        let mut result = Vec::new();
        approx.finish(&state, &mut result).unwrap();
        let estimate: f64 = display(&result, 20).parse().unwrap();
        let error = (estimate - count as f64).abs();
        assert!(
            error <= 0.5 + 3.0 * 0.0081 * count as f64,
            "{estimate} for {count}"
        );
        // Halves that overlap, merged: the same bytes, sparse and dense.
        let (mut low, high) = (
            of_ints(&approx, 0..count * 2 / 3),
            of_ints(&approx, count / 3..count),
        );
        approx.merge(&mut low, &outcome(&approx, &high).0).unwrap();
        assert_eq!(outcome(&approx, &low), outcome(&approx, &state));
        assert!(state.heap_bytes() <= 16 << 10);
    }
}

#[test]
fn large_logs_are_compacted() {
    for (aggregate, bytes_max) in [
        (Aggregate::Distinct, 12 << 10), // 9 kB of it say where each stands
        (Aggregate::Top(10), 1 << 10),
        (Aggregate::Quantiles(vec![0.5]), 4 << 10),
    ] {
        let state = of_ints(&aggregate, (0..50_000).map(|int| int * 7919 % 500));
        assert!(
            state.heap_bytes() <= bytes_max,
            "{} has {}",
            aggregate.name(),
            state.heap_bytes()
        );
    }
}

#[test]
fn carries_are_taken_in_time() {
    let mut exact = super::exact::Exact::default();
    exact.carry_after(2);
    for _ in 0..9 {
        exact.add_double(f64::MAX);
        exact.add_double(-0.1);
        exact.add_int(i64::MIN);
    }
    for _ in 0..9 {
        exact.add_double(-f64::MAX);
        exact.add_double(0.1);
    }
    exact.add_magnitude(
        &[4, 0x80, 0, 0, 0, 0, 0, 0, 0],
        super::exact::UNIT_LIMB,
        false,
    );
    assert!(exact.digits().limbs.is_empty());
}

#[test]
fn errors_say_what_was_expected() {
    let error = Aggregate::Mean
        .add(&mut Aggregate::Mean.empty(), b"\x05\x02a\0\0", 0)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("mean takes numbers (int, float, bool), not ('a',)"),
        "{error}"
    );
    let error = Aggregate::Min
        .merge(&mut Aggregate::Min.empty(), &[3])
        .unwrap_err();
    assert!(error.to_string().contains("aggregate min"), "{error}");
    for aggregate in of_anything()
        .into_iter()
        .chain([Aggregate::Sum, Aggregate::Mean])
    {
        let two = aggregate.add(&mut aggregate.empty(), &[0x14, 0x14], 0);
        assert_eq!(two.is_err(), aggregate != Aggregate::Count);
    }
    let mut huge = Aggregate::Sum.empty();
    for _ in 0..2 {
        let mut value = Vec::new();
        write::big_int(&mut value, false, &[0xff; 255]).unwrap();
        Aggregate::Sum.add(&mut huge, &value, 0).unwrap();
    }
    assert!(Aggregate::Sum.finish(&huge, &mut Vec::new()).is_err());
    let mut written = Vec::new();
    Aggregate::Sum.write(&huge, &mut written);
    let mut again = Vec::new();
    Aggregate::Sum.write(&Aggregate::Sum.read(&written).unwrap(), &mut again);
    assert_eq!(written, again);
}

#[test]
fn aggregates_travel_as_json() {
    let all = [of_anything(), vec![Aggregate::Several(of_rows())]].concat();
    let json = serde_json::to_string(&all).unwrap();
    assert!(
        json.contains(r#""min","max""#) && json.contains(r#"{"top":3}"#),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<Vec<Aggregate>>(&json).unwrap(), all);
}
