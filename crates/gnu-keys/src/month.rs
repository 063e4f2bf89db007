//! `-M`: three letters behind blanks, in any case; what is not a month sorts before January.

const NAMES: [&[u8; 3]; 12] = [
    b"JAN", b"FEB", b"MAR", b"APR", b"MAY", b"JUN", b"JUL", b"AUG", b"SEP", b"OCT", b"NOV", b"DEC",
];

/// 1 to 12, or 0; as a code, it is one byte.
pub(crate) fn number(bytes: &[u8]) -> u8 {
    let text = crate::numeric::without_blanks(bytes);
    let Some(name) = text.get(..3) else { return 0 };
    NAMES
        .iter()
        .zip(1..)
        .find(|(month, _)| month.eq_ignore_ascii_case(name))
        .map_or(0, |(_, number)| number)
}
