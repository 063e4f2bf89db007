//! Types of keys that can be mistaken for each other: 1 and 1.0, a time with a zone and one without.
//!
//! A task says which it met where in the keys; the job, at its end, where they were mixed. A place is `key`, or `key[0]` for
//! the first element of a tuple, or `sort_by`, or `value` of an aggregate that compares.

use std::collections::BTreeMap;

/// Bits of types by places.
pub type Kinds = BTreeMap<String, u16>;

/// `int`.
pub const INT: u16 = 1;
/// `float`.
pub const FLOAT: u16 = 2;
/// `bool`.
pub const BOOL: u16 = 4;
/// `Decimal`.
pub const DECIMAL: u16 = 8;
/// `date`.
pub const DATE: u16 = 16;
/// `datetime` without a time zone.
pub const NAIVE: u16 = 32;
/// `datetime` with one.
pub const AWARE: u16 = 64;

const NAMES: [(u16, &str); 7] = [
    (INT, "int"),
    (FLOAT, "float"),
    (BOOL, "bool"),
    (DECIMAL, "Decimal"),
    (DATE, "date"),
    (NAIVE, "datetime without a time zone"),
    (AWARE, "datetime with a time zone"),
];
const NUMBERS: u16 = INT | FLOAT | BOOL | DECIMAL;
/// Those that are times.
pub const TIMES: u16 = DATE | NAIVE | AWARE;

/// Adds what a task met.
pub fn add(sum: &mut Kinds, more: &Kinds) {
    for (place, bits) in more {
        *sum.entry(place.clone()).or_default() |= bits;
    }
}

/// What to say of types that were mixed; of numbers only where they are keys, since elsewhere they compare by value.
///
/// ```
/// use gristmill_engine::task::kinds::{FLOAT, INT, mixed};
/// let said: Vec<_> = mixed(&[("key".to_owned(), INT | FLOAT)].into()).collect();
/// assert!(said[0].starts_with("the keys mix int and float: 1 and 1.0 are different keys"));
/// ```
pub fn mixed(kinds: &Kinds) -> impl Iterator<Item = String> {
    kinds.iter().flat_map(|(place, bits)| {
        let is_key = place.starts_with("key");
        let what = match place.as_str() {
            "key" => "the keys mix".to_owned(),
            "sort_by" => "what sort_by returned mixes".to_owned(),
            "value" => "the values mix".to_owned(),
            "group_by" => "the keys that group_by got mix".to_owned(),
            _ => format!("{place} mixes"),
        };
        let numbers = (is_key && (bits & NUMBERS).count_ones() > 1).then(|| {
            format!(
                "{what} {}: 1 and 1.0 are different keys, each with values of its own. To make one key of them, \
                 convert it in the map, for example with float(...)",
                names(bits & NUMBERS)
            )
        });
        let times = ((bits & TIMES).count_ones() > 1).then(|| {
            format!(
                "{what} {}, which have no common order: they are sorted type by type. To compare them, make them \
                 one type in the map, for example with .replace(tzinfo=...)",
                names(bits & TIMES)
            )
        });
        numbers.into_iter().chain(times)
    })
}

fn names(bits: u16) -> String {
    let found = NAMES.iter().filter(|(bit, _)| bits & bit != 0);
    let found: Vec<_> = found.map(|(_, name)| *name).collect();
    found.join(" and ")
}
