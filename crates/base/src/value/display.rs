//! Values as Python would show them, for error messages: never longer than wanted, whatever the bytes are.

use super::decimal::Decimal;
use super::read::{Token, ValueReader};
use super::{digits, exact, moment};

/// What follows where something is left out.
const CUT: &str = "...";

/// The first value of `encoded` as Python's `repr` shows it, in at most `characters_max` characters; a cut is shown by `...`. Bytes that are
/// no value are shown as such. Pickled values are shown by their length, since only Python can open them.
///
/// ```
/// use gristmill_base::value::display;
/// assert_eq!(display(b"\x05\x02it's\0\x15\x07\x00\xff\0", 80), r#"("it's", 7, None)"#);
/// assert_eq!(display(b"\x02a long word\0", 8), "'a lo...");
/// assert_eq!(display(b"\x03", 80), "<1 byte that is no value>");
/// ```
pub fn display(encoded: &[u8], characters_max: usize) -> String {
    let mut out = String::new();
    // Content is cut before it is escaped, so that a large value costs no more than a small one.
    let complete = show(&mut out, encoded, characters_max).unwrap_or_else(|| {
        out.clear();
        let plural = if encoded.len() == 1 { "" } else { "s" };
        out = format!(
            "<{} byte{plural} that {} no value>",
            encoded.len(),
            if plural.is_empty() { "is" } else { "are" }
        );
        true
    });
    let cut = out.char_indices().nth(characters_max).is_some();
    if cut || !complete {
        let keep = characters_max.saturating_sub(CUT.len());
        let end = out
            .char_indices()
            .nth(keep)
            .map_or(out.len(), |(end, _)| end);
        out.truncate(end);
        out.push_str(CUT.get(..CUT.len().min(characters_max)).unwrap_or_default());
    }
    out
}

/// Shows one value, and says whether all of it: it stops once more than `enough` characters are there. `None` where the bytes are no value's.
fn show(out: &mut String, encoded: &[u8], enough: usize) -> Option<bool> {
    let mut reader = ValueReader::new(encoded);
    // How each open tuple, list or dict began, and how many elements it has so far.
    let mut open: Vec<(Token<'_>, usize)> = Vec::new();
    loop {
        let token = reader.token().ok()??;
        if token == Token::End {
            out.push_str(match open.pop()? {
                (Token::List, _) => "]",
                (Token::Dict, _) => "}",
                (_, 1) => ",)",
                _ => ")",
            });
        } else {
            if let Some((kind, count)) = open.last_mut() {
                out.push_str(match (&kind, *count) {
                    (_, 0) => "",
                    (Token::Dict, count) if count % 2 == 1 => ": ",
                    _ => ", ",
                });
                *count += 1;
            }
            show_token(out, &token, enough);
            if matches!(token, Token::Begin | Token::List | Token::Dict) {
                open.push((token, 0));
            }
        }
        if open.is_empty() {
            return Some(true);
        }
        if out.len() > enough.saturating_mul(4) {
            return Some(false);
        }
    }
}

fn show_token(out: &mut String, token: &Token<'_>, enough: usize) {
    match token {
        Token::Null => out.push_str("None"),
        Token::Boolean(value) => out.push_str(if *value { "True" } else { "False" }),
        Token::Int(value) => out.push_str(&value.to_string()),
        Token::BigInt {
            negative,
            magnitude,
        } => {
            out.push_str(if *negative { "-" } else { "" });
            digits::magnitude(out, magnitude);
        }
        Token::Double(value) => digits::double(out, *value),
        Token::Date(ordinal) => out.push_str(&moment::date((*ordinal).into())),
        Token::Datetime { micros, utc } => out.push_str(&moment::datetime(*micros, *utc)),
        Token::Decimal(decimal) => show_decimal(out, decimal),
        Token::Descending(inner) => {
            let shown = display(inner, enough.max(CUT.len()));
            out.extend(["gm.desc(", &shown, ")"]);
        }
        Token::Begin => out.push('('),
        Token::List => out.push('['),
        Token::Dict => out.push('{'),
        Token::End => out.push(')'),
        Token::Written(written) => out.extend(["Decimal('", written, "')"]),
        Token::Duration { days, micros } => out.push_str(&exact::duration(*days, *micros)),
        Token::Moment(moment) => out.push_str(&exact::shown(moment)),
        Token::Uuid { bytes, .. } => out.push_str(&exact::uuid(bytes)),
        Token::Pickled(pickle) => out.push_str(&format!("<pickled, {} bytes>", pickle.len())),
        Token::Text(text) => {
            let quote = quote(text.contains('\''), text.contains('"'));
            out.push(quote);
            for character in text.chars().take(enough) {
                match character {
                    '\n' | '\r' | '\t' | '\\' => out.extend(character.escape_default()),
                    _ if character == quote => out.extend(['\\', quote]),
                    _ if character.is_control() => out.push_str(&control(character)),
                    _ => out.push(character),
                }
            }
            out.push(quote);
        }
        Token::Bytes(bytes) => {
            let quote = quote(bytes.contains(&b'\''), bytes.contains(&b'"'));
            out.extend(['b', quote]);
            for byte in bytes.iter().take(enough) {
                match byte {
                    b'"' | b'\'' if char::from(*byte) != quote => out.push(char::from(*byte)),
                    _ => out.extend(byte.escape_ascii().map(char::from)),
                }
            }
            out.push(quote);
        }
    }
}

fn show_decimal(out: &mut String, decimal: &Decimal) {
    let shown = match decimal {
        Decimal::Nan => "NaN".to_owned(),
        Decimal::Infinite { negative } => {
            format!("{}Infinity", if *negative { "-" } else { "" })
        }
        Decimal::Finite(finite) => {
            let (before, behind) = finite.halves();
            let text = |pairs: &[u8]| -> String {
                pairs.iter().map(|pair| format!("{pair:02}")).collect()
            };
            let (before, behind) = (text(&before), text(&behind));
            let (before, behind) = (before.trim_start_matches('0'), behind.trim_end_matches('0'));
            let sign = if finite.negative { "-" } else { "" };
            let point = if behind.is_empty() { "" } else { "." };
            let before = if before.is_empty() { "0" } else { before };
            format!("{sign}{before}{point}{behind}")
        }
    };
    out.extend(["Decimal('", &shown, "')"]);
}

/// Python's choice of quotes: double ones where only they need no escape.
fn quote(single: bool, double: bool) -> char {
    if single && !double { '"' } else { '\'' }
}

fn control(character: char) -> String {
    match u32::from(character) {
        number @ ..=0xff => format!("\\x{number:02x}"),
        number => format!("\\u{number:04x}"),
    }
}
