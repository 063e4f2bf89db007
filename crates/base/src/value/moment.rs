//! Days and instants: their encodings, and how ISO 8601 writes them.

use std::fmt::Write;

use super::code;

/// Microseconds of a day.
pub const MICROS_A_DAY: i64 = 86_400_000_000;

/// Appends a day; 1 is the first of January of the year 1.
///
/// ```
/// use gristmill_base::value::moment;
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
/// use gristmill_base::value::moment;
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
/// use gristmill_base::value::moment;
/// assert_eq!(moment::date(738_945), "2024-02-29");
/// ```
pub fn date(ordinal: i64) -> String {
    let (year, month, day) = civil(ordinal);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day; 1 is the first of January of the year 1.
///
/// ```
/// use gristmill_base::value::moment;
/// assert_eq!(moment::civil(738_945), (2024, 2, 29));
/// ```
pub fn civil(ordinal: i64) -> (i64, i64, i64) {
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
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The day of a date; 1 is the first of January of the year 1.
///
/// ```
/// use gristmill_base::value::moment;
/// assert_eq!(moment::ordinal(2024, 2, 29), 738_945);
/// ```
pub fn ordinal(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 305
}

/// An instant, in microseconds since the beginning of the year 1, as `2024-02-29T12:30:00+00:00`; the offset only of one in UTC.
///
/// ```
/// use gristmill_base::value::moment;
/// assert_eq!(moment::datetime(1_500_000, false), "0001-01-01T00:00:01.500000");
/// ```
pub fn datetime(micros: i64, utc: bool) -> String {
    let days = micros.div_euclid(MICROS_A_DAY);
    let time = time(micros.rem_euclid(MICROS_A_DAY));
    let zone = if utc { "+00:00" } else { "" };
    format!("{}T{time}{zone}", date(days + 1))
}

/// A time of day, in microseconds since midnight, as `12:30:00`.
///
/// ```
/// use gristmill_base::value::moment;
/// assert_eq!(moment::time(45_000_000_001), "12:30:00.000001");
/// ```
pub fn time(micros: i64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hour, minute) = (seconds / 3_600, seconds / 60 % 60);
    let mut out = format!("{hour:02}:{minute:02}:{:02}", seconds % 60);
    if fraction > 0 {
        _ = write!(out, ".{fraction:06}"); // a String takes whatever is written to it
    }
    out
}
