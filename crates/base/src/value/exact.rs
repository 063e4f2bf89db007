//! Values of Python's that keep all there is of them, and have no order: decimals as they are written, durations, times with
//! their zones, UUIDs.
//!
//! ```text
//!  46 text 00                    decimal: ASCII, such as -0E+3, sNaN12
//!  47 days micros                duration: 4 and 8 bytes, the sign bits flipped
//!  48 how micros zone            time: microseconds of the day, 8 bytes, the sign bit flipped
//!  49 how micros zone            datetime: microseconds since the year 1, as the clock there shows them, the same
//!  4a safety bytes               UUID: 1 and 16 bytes
//!
//!  how: 00 no zone, 01 offset, 02 offset and name, 03 region; 10 is added for the second of two equal times ("fold")
//!  zone: the offset is microseconds, 8 bytes, the sign bit flipped; name and region are escaped as text is, and end with 00
//! ```
//!
//! The rule that must hold: a value has one encoding. So a datetime without a zone or in UTC, and no fold, is written as keys
//! are (`moment.rs`).
//!
//! Decision: docs/decisions/exact-values.md.

use std::borrow::Cow;

use super::escaped::{end_of_escaped, unescape};
use super::moment::{self, MICROS_A_DAY};
use super::{code, write};

const FOLD: u8 = 0x10;
/// Bytes before the zone.
const HEAD: usize = 10;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Zone<'a> {
    /// None: it is on no clock in particular.
    Nowhere,
    /// So many microseconds ahead of UTC.
    Offset(i64),
    /// The same, with a name.
    Named(i64, Cow<'a, str>),
    /// A region of the IANA database.
    Region(Cow<'a, str>),
}

impl Zone<'_> {
    /// The same, borrowed.
    pub fn borrowed(&self) -> Zone<'_> {
        match self {
            Zone::Nowhere => Zone::Nowhere,
            Zone::Offset(offset) => Zone::Offset(*offset),
            Zone::Named(offset, name) => Zone::Named(*offset, Cow::Borrowed(name)),
            Zone::Region(region) => Zone::Region(Cow::Borrowed(region)),
        }
    }
}

/// A time of day, or a datetime, as a clock shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment<'a> {
    /// Whether it has a date.
    pub dated: bool,
    /// Microseconds since midnight; with a date since the beginning of the year 1.
    pub micros: i64,
    /// Whether it is the second of two equal times.
    pub fold: bool,
    /// Where.
    pub zone: Zone<'a>,
}

impl Moment<'_> {
    /// Appends it.
    ///
    /// ```
    /// use gristmill_base::value::exact::{Moment, Zone};
    /// let noon = Moment { dated: false, micros: 43_200_000_000, fold: false, zone: Zone::Region("UTC".into()) };
    /// let mut out = Vec::new();
    /// noon.write(&mut out);
    /// assert_eq!(out, [0x48, 3, 0x80, 0, 0, 10, 14, 235, 176, 0, b'U', b'T', b'C', 0]);
    /// ```
    pub fn write(&self, out: &mut Vec<u8>) {
        let utc = match self.zone {
            Zone::Nowhere => Some(false),
            Zone::Offset(0) => Some(true),
            _ => None,
        };
        if let (true, false, Some(utc)) = (self.dated, self.fold, utc) {
            return moment::write_datetime(out, self.micros, utc);
        }
        out.push(if self.dated { code::ZONED } else { code::TIME });
        let how = match self.zone {
            Zone::Nowhere => 0,
            Zone::Offset(_) => 1,
            Zone::Named(..) => 2,
            Zone::Region(_) => 3,
        };
        out.push(how | if self.fold { FOLD } else { 0 });
        out.extend_from_slice(&flipped(self.micros));
        match &self.zone {
            Zone::Nowhere => {}
            Zone::Offset(offset) => out.extend_from_slice(&flipped(*offset)),
            Zone::Named(offset, name) => {
                out.extend_from_slice(&flipped(*offset));
                write::escape(out, name.as_bytes());
            }
            Zone::Region(region) => write::escape(out, region.as_bytes()),
        }
    }
}

/// Appends a decimal as it is written.
///
/// ```
/// use gristmill_base::value::exact;
/// let mut out = Vec::new();
/// exact::write_decimal(&mut out, "1.50");
/// assert_eq!(out, b"\x461.50\0");
/// ```
pub fn write_decimal(out: &mut Vec<u8>, written: &str) {
    write::escaped(out, code::WRITTEN, written.as_bytes());
}

/// Appends so many days and microseconds of a day.
///
/// ```
/// use gristmill_base::value::exact;
/// let mut out = Vec::new();
/// exact::write_duration(&mut out, -1, 2);
/// assert_eq!(out, [0x47, 0x7f, 255, 255, 255, 0x80, 0, 0, 0, 0, 0, 0, 2]);
/// ```
pub fn write_duration(out: &mut Vec<u8>, days: i32, micros: i64) {
    out.push(code::DURATION);
    out.extend_from_slice(&(days ^ i32::MIN).to_be_bytes());
    out.extend_from_slice(&flipped(micros));
}

/// Appends a UUID.
///
/// ```
/// use gristmill_base::value::exact;
/// let mut out = Vec::new();
/// exact::write_uuid(&mut out, 0, [7; 16]);
/// assert_eq!(out, [vec![0x4a, 0], vec![7; 16]].concat());
/// ```
pub fn write_uuid(out: &mut Vec<u8>, safety: u8, bytes: [u8; 16]) {
    out.extend_from_slice(&[code::UUID, safety]);
    out.extend_from_slice(&bytes);
}

/// A time as it is shown: with its offset or its region.
pub(super) fn shown(moment: &Moment<'_>) -> String {
    let mut out = if moment.dated {
        moment::datetime(moment.micros, false)
    } else {
        moment::time(moment.micros)
    };
    match &moment.zone {
        Zone::Nowhere => {}
        Zone::Offset(offset) | Zone::Named(offset, _) => {
            out.push(if *offset < 0 { '-' } else { '+' });
            let time = moment::time(offset.abs());
            out.push_str(time.strip_suffix(":00").unwrap_or(&time));
        }
        Zone::Region(region) => out.extend(["[", region, "]"]),
    }
    out
}

/// A duration as Python's `str` shows it.
pub(super) fn duration(days: i32, micros: i64) -> String {
    let plural = if days.abs() == 1 { "" } else { "s" };
    format!("{days} day{plural}, {}", moment::time(micros))
}

/// A UUID as it is written.
pub(super) fn uuid(bytes: &[u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*bytes));
    let mut rest = digits.as_str();
    let mut groups = Vec::new();
    for length in [8, 4, 4, 4, 12] {
        let (group, behind) = rest.split_at(length);
        groups.push(group);
        rest = behind;
    }
    groups.join("-")
}

/// How many bytes the time has whose encoding `rest` begins with; nothing where it does not end.
pub(super) fn length(rest: &[u8]) -> Option<usize> {
    let named = match rest.get(1)? & !FOLD {
        2 => HEAD + 8,
        3 => HEAD,
        1 => return Some(HEAD + 8),
        _ => return Some(HEAD),
    };
    Some(named + end_of_escaped(rest.get(named..)?)?.0)
}

/// A duration, behind its code.
pub(super) fn read_duration(rest: &[u8]) -> Option<(i32, i64)> {
    let days = i32::from_be_bytes(*rest.first_chunk()?) ^ i32::MIN;
    let micros = turned(rest.get(4..)?)?;
    (0..MICROS_A_DAY)
        .contains(&micros)
        .then_some((days, micros))
}

/// A time, behind its code; `dated` if that is of a datetime.
pub(super) fn read_moment(dated: bool, rest: &[u8]) -> Option<Moment<'_>> {
    let how = *rest.first()?;
    let (micros, zone) = (turned(rest.get(1..)?)?, rest.get(HEAD - 1..)?);
    let zone = match how & !FOLD {
        0 => Zone::Nowhere,
        1 => Zone::Offset(turned(zone)?),
        2 => Zone::Named(turned(zone)?, name(zone.get(8..)?)?),
        3 => Zone::Region(name(zone)?),
        _ => return None,
    };
    let fold = how & FOLD != 0;
    let as_key = dated && !fold && matches!(zone, Zone::Nowhere | Zone::Offset(0));
    let in_day = dated || (0..MICROS_A_DAY).contains(&micros);
    (!as_key && in_day).then_some(Moment {
        dated,
        micros,
        fold,
        zone,
    })
}

/// The text that ends an encoding.
fn name(escaped: &[u8]) -> Option<Cow<'_, str>> {
    let (length, zeros) = end_of_escaped(escaped)?;
    let raw = escaped.get(..length - 1)?;
    if zeros == 0 {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    let text = String::from_utf8(unescape(raw, zeros));
    text.ok().map(Cow::Owned)
}

fn flipped(number: i64) -> [u8; 8] {
    (number ^ i64::MIN).to_be_bytes()
}

/// The number whose bytes, its sign bit flipped, these begin with.
fn turned(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(*bytes.first_chunk()?) ^ i64::MIN)
}
