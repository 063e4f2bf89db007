//! Amounts as errors and plans show them.

/// An amount of bytes with two decimals and a unit, in powers of 1000; below 1 kB, whole bytes.
///
/// ```
/// use gristmill_base::error::show_bytes;
/// assert_eq!((show_bytes(999), show_bytes(5_000_000_000)), ("999 B".into(), "5.00 GB".into()));
/// ```
pub fn show_bytes(bytes: u64) -> String {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.iter().find(|(_, factor)| bytes as f64 >= *factor) {
        Some((unit, factor)) => format!("{:.2} {unit}", bytes as f64 / factor),
        None => format!("{bytes} B"),
    }
}
