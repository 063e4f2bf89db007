//! Types of keys that can be mistaken for each other: 1 and 1.0, 1 and "1", a time with a zone and one without.
//!
//! A task says which it met where in the keys; the job, at its end, where they were mixed. A place is `key`, or `key[0]` for
//! the first element of a tuple, or `sort_by`, or `value` of an aggregate that compares. What a task of an input with a tag
//! met in its keys is also at `key of TAG`.

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
/// `str`.
pub const TEXT: u16 = 128;
/// `bytes`.
pub const BYTES: u16 = 256;

const NAMES: [(u16, &str); 9] = [
    (INT, "int"),
    (FLOAT, "float"),
    (BOOL, "bool"),
    (DECIMAL, "Decimal"),
    (DATE, "date"),
    (NAIVE, "datetime without a time zone"),
    (AWARE, "datetime with a time zone"),
    (TEXT, "str"),
    (BYTES, "bytes"),
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

/// Between the place in the key and the tag of the input.
const OF: &str = " of ";

/// What to say of inputs whose keys cannot be equal, as no type of one's is one of the other's; once for each place in the key.
/// What [`mixed`] says is not said twice.
///
/// ```
/// use gristmill_tasks::task::key_types::{INT, TEXT, apart};
/// let said = apart(&[("key of a".to_owned(), INT), ("key of b".to_owned(), TEXT)].into());
/// assert!(said[0].starts_with("the keys of the input a are int, those of b str: such keys are never equal"));
/// ```
pub fn apart(kinds: &Kinds) -> Vec<String> {
    let by_input = kinds.iter().filter_map(|(place, bits)| {
        let (place, tag) = place.split_once(OF)?;
        Some((place, tag, *bits))
    });
    let all: Vec<_> = by_input.collect();
    let is_said = |bits: u16| bits & !NUMBERS == 0 || bits & !TIMES == 0;
    let pairs = all
        .iter()
        .enumerate()
        .filter_map(|(at, (place, one, bits))| {
            let rest = all.get(at + 1..).unwrap_or_default();
            let other = rest.iter().find(|(other, _, more)| {
                other == place && bits & more == 0 && !is_said(bits | more)
            })?;
            Some((*place, *one, *bits, other.1, other.2))
        });
    let mut said: Vec<(&str, String)> = Vec::new();
    for (place, one, bits, other, more) in pairs {
        if said.iter().any(|(known, _)| *known == place) {
            continue;
        }
        let (one_is, other_is) = (names(bits), names(more));
        let which = match place.strip_prefix("key") {
            Some("") | None => "the keys".to_owned(),
            Some(element) => format!("the elements {element} of the keys"),
        };
        let sentence = format!(
            "{which} of the input {one} are {one_is}, those of {other} {other_is}: such keys are never equal, so that the \
             reduction gets no key with values of both. To join them, make them one type in the map, for example with str(...)"
        );
        said.push((place, sentence));
    }
    said.into_iter().map(|(_, sentence)| sentence).collect()
}

/// What to say of types that were mixed; of numbers only where they are keys, since elsewhere they compare by value.
///
/// ```
/// use gristmill_tasks::task::key_types::{FLOAT, INT, mixed};
/// let said: Vec<_> = mixed(&[("key".to_owned(), INT | FLOAT)].into()).collect();
/// assert!(said[0].starts_with("the keys mix int and float: 1 and 1.0 are different keys"));
/// ```
pub fn mixed(kinds: &Kinds) -> impl Iterator<Item = String> {
    let all = kinds.iter().filter(|(place, _)| !place.contains(OF));
    all.flat_map(|(place, bits)| {
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
