//! Days and instants: their encodings, and how ISO 8601 writes them.

use std::fmt::Write;

use super::code;

const MICROS_A_DAY: i64 = 86_400_000_000;

/// Appends a day; 1 is the first of January of the year 1.
///
/// ```
/// use gristmill_engine::value::moment;
/// let mut out = Vec::new();
/// moment::write_date(&mut out, 1);
/// assert_eq!(out, [0x41, 0, 0, 0, 1]);
/// ```
pub fn write_date(out: &mut Vec<u8>, ordinal: u32) {
    out.push(code::DATE);
    out.extend_from_slice(&ordinal.to_be_bytes());
}

/// Appends a datetime, in microseconds since the beginning of the year 1, in UTC or without a time zone.
///
/// ```
/// use gristmill_engine::value::moment;
/// let mut out = Vec::new();
/// moment::write_datetime(&mut out, 1, true);
/// assert_eq!(out, [0x43, 0x80, 0, 0, 0, 0, 0, 0, 1]);
/// ```
pub fn write_datetime(out: &mut Vec<u8>, micros: i64, utc: bool) {
    out.push(if utc { code::AWARE } else { code::NAIVE });
    out.extend_from_slice(&(micros ^ i64::MIN).to_be_bytes());
}

/// A day as `2024-02-29`; 1 is the first of January of the year 1.
///
/// ```
/// use gristmill_engine::value::moment;
/// assert_eq!(moment::date(738_945), "2024-02-29");
/// ```
pub fn date(ordinal: i64) -> String {
    // Days since the first of March of the year 0, in eras of 400 years (H. Hinnant, "chrono-compatible low-level date algorithms").
    let days = ordinal + 305;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// An instant, in microseconds since the beginning of the year 1, as `2024-02-29T12:30:00+00:00`; the offset only of one in UTC.
///
/// ```
/// use gristmill_engine::value::moment;
/// assert_eq!(moment::datetime(1_500_000, false), "0001-01-01T00:00:01.500000");
/// ```
pub fn datetime(micros: i64, utc: bool) -> String {
    let (days, rest) = (
        micros.div_euclid(MICROS_A_DAY),
        micros.rem_euclid(MICROS_A_DAY),
    );
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let (hour, minute) = (seconds / 3_600, seconds / 60 % 60);
    let mut out = format!(
        "{}T{hour:02}:{minute:02}:{:02}",
        date(days + 1),
        seconds % 60
    );
    if fraction > 0 {
        _ = write!(out, ".{fraction:06}"); // a String takes whatever is written to it
    }
    if utc {
        out.push_str("+00:00");
    }
    out
}
