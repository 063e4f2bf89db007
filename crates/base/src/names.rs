//! Names of files and directories: bytes, which need not be UTF-8.
//!
//! ```text
//!   bytes of a name      in JSON              shown to people
//!   caf\xc3\xa9          "café"               café
//!   caf\xe9              "caf\u0000e9"        caf\xe9
//!   two\nlines           "two\nlines"         two\nlines (a backslash and an n)
//! ```
//!
//! In JSON (specs, reports, history), a name that is UTF-8 is itself. Every other byte is spelled as U+0000 and two
//! hexadecimal digits. The spelling is reversible, since no name holds a zero byte, and every JSON parser takes it.
//! Fields use it by `#[serde(with = "crate::names")]`; `python/gristmill/names.py` is the same for Python. The
//! reference is docs/internals/history.md, "Names".
//!
//! What is shown ([`show_path`]) is for people only: it stays on one line and does not control a terminal, but two
//! names may look the same. What signs an address (`https://host/a?sig=...`) is a secret, and neither shown nor kept in a
//! history ([`without_signatures`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Before the two digits of a byte that is not part of UTF-8.
const MARK: char = '\0';

/// The name as JSON holds it.
///
/// ```
/// use gristmill_base::names::{name_of, spell};
/// use std::ffi::OsStr;
/// use std::os::unix::ffi::OsStrExt;
/// let name = OsStr::from_bytes(b"caf\xe9");
/// assert_eq!(spell(name), "caf\0e9");
/// assert_eq!(name_of(spell(name)), name);
/// assert_eq!(spell("café"), "café");
/// ```
pub fn spell(name: impl AsRef<OsStr>) -> String {
    let name = name.as_ref();
    if let Some(text) = name.to_str() {
        return text.to_owned();
    }
    let mut spelled = String::with_capacity(name.len() + 8);
    for chunk in name.as_bytes().utf8_chunks() {
        spelled.push_str(chunk.valid());
        for byte in chunk.invalid() {
            spelled.push(MARK);
            // Writing to a string cannot fail.
            let _ = write!(spelled, "{byte:02x}");
        }
    }
    spelled
}

/// The name that [`spell`] spelled.
pub fn name_of(spelled: String) -> OsString {
    if !spelled.contains(MARK) {
        return spelled.into();
    }
    let mut parts = spelled.split(MARK);
    let mut name = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        if let Some((byte, rest)) = byte_at_start(part) {
            name.push(byte);
            name.extend_from_slice(rest.as_bytes());
        } else {
            // Not a spelled name: the zero byte stays, and the file system refuses it.
            name.push(0);
            name.extend_from_slice(part.as_bytes());
        }
    }
    OsString::from_vec(name)
}

fn byte_at_start(text: &str) -> Option<(u8, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let byte = u8::from_str_radix(digits, 16).ok()?;
    (byte >= 0x80).then_some((byte, rest))
}

/// The name as people are shown it: what is not UTF-8 as `\xff`, control characters escaped, the rest as it is.
///
/// ```
/// use gristmill_base::names::show_path;
/// use std::ffi::OsStr;
/// use std::os::unix::ffi::OsStrExt;
/// assert_eq!(show_path(OsStr::from_bytes(b"data/caf\xe9\n")), r"data/caf\xe9\n");
/// assert_eq!(show_path("data/café"), "data/café");
/// ```
pub fn show_path(path: impl AsRef<Path>) -> String {
    let bytes = path.as_ref().as_os_str().as_bytes();
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            push_shown(&mut shown, letter);
        }
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    match without_signatures(&shown) {
        Cow::Borrowed(_) => shown,
        Cow::Owned(told) => told,
    }
}

/// What stands for a secret.
pub const HIDDEN: &str = "***";

/// A text with `***` in the place of what signs the addresses of HTTP servers in it.
///
/// ```
/// use gristmill_base::names::without_signatures;
/// let told = without_signatures("no (file https://h/a?part=1&X-Amz-Signature=beef&sig=a%2Bb, offset 5)");
/// assert_eq!(told, "no (file https://h/a?part=1&X-Amz-Signature=***&sig=***, offset 5)");
/// assert_eq!(without_signatures("s3://b/a?sig=1 a?sig=2 http://h/?b"), "s3://b/a?sig=1 a?sig=2 http://h/?b");
/// ```
pub fn without_signatures(text: &str) -> Cow<'_, str> {
    const SCHEMES: [&str; 2] = ["http://", "https://"];
    let may_have = text.contains('?') && SCHEMES.iter().any(|scheme| text.contains(scheme));
    if !may_have {
        return Cow::Borrowed(text);
    }
    let (mut told, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = SCHEMES.iter().filter_map(|scheme| rest.find(scheme)).min() {
        let (before, from) = rest.split_at(at);
        let (address, after) = from.split_at(from.find(ends_address).unwrap_or(from.len()));
        told.push_str(before);
        push_address(&mut told, address);
        rest = after;
    }
    told.push_str(rest);
    Cow::Owned(told)
}

/// Letters that no address has, in text or in JSON.
fn ends_address(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || "\"'<>\\`".contains(letter)
}

fn push_address(told: &mut String, address: &str) {
    let Some((place, query)) = address.split_once('?') else {
        told.push_str(address);
        return;
    };
    told.push_str(place);
    let mut before = '?';
    for item in query.split('&') {
        told.push(before);
        before = '&';
        match item.split_once('=') {
            Some((name, value)) if signs(name) => {
                // A sentence's own marks are not the value's.
                let end = value.trim_end_matches([')', ',', '.', ';', ':']).len();
                let (_secret, marks) = value.split_at(end);
                told.extend([name, "=", HIDDEN, marks]);
            }
            _ => told.push_str(item),
        }
    }
}

/// Whether a parameter of this name lets whoever has it read the file.
fn signs(name: &str) -> bool {
    const ALONE: [&str; 4] = ["sig", "key", "auth", "policy"];
    const WITHIN: [&str; 8] = [
        "signature",
        "token",
        "secret",
        "credential",
        "passw",
        "apikey",
        "api_key",
        "access",
    ];
    let name = name.to_ascii_lowercase();
    ALONE.contains(&&*name) || WITHIN.iter().any(|within| name.contains(within))
}

/// The words of a command as people are shown them.
///
/// ```
/// use gristmill_base::names::show_words;
/// assert_eq!(show_words(&["cat".into(), "-v".into()]), "cat -v");
/// ```
pub fn show_words(words: &[OsString]) -> String {
    let shown: Vec<_> = words.iter().map(show_path).collect();
    shown.join(" ")
}

fn push_shown(shown: &mut String, letter: char) {
    let code = u32::from(letter);
    let _ = match letter {
        '\n' => shown.write_str("\\n"),
        '\r' => shown.write_str("\\r"),
        '\t' => shown.write_str("\\t"),
        _ if !letter.is_control() => shown.write_char(letter),
        // Two digits would look like a byte that is not UTF-8.
        '\u{80}'.. => write!(shown, "\\u{code:04x}"),
        _ => write!(shown, "\\x{code:02x}"),
    };
}

/// Names, alone or several, which JSON holds as [`spell`] spells them.
pub trait Names: Sized {
    /// What stands in JSON.
    type Spelled: Serialize + DeserializeOwned;

    /// Spells them.
    fn spelled(&self) -> Self::Spelled;

    /// The names that were spelled.
    fn of(spelled: Self::Spelled) -> Self;
}

impl Names for OsString {
    type Spelled = String;

    fn spelled(&self) -> String {
        spell(self)
    }

    fn of(spelled: String) -> Self {
        name_of(spelled)
    }
}

impl Names for PathBuf {
    type Spelled = String;

    fn spelled(&self) -> String {
        spell(self)
    }

    fn of(spelled: String) -> Self {
        name_of(spelled).into()
    }
}

impl<T: Names> Names for Option<T> {
    type Spelled = Option<T::Spelled>;

    fn spelled(&self) -> Self::Spelled {
        self.as_ref().map(T::spelled)
    }

    fn of(spelled: Self::Spelled) -> Self {
        spelled.map(T::of)
    }
}

impl<T: Names> Names for Vec<T> {
    type Spelled = Vec<T::Spelled>;

    fn spelled(&self) -> Self::Spelled {
        self.iter().map(T::spelled).collect()
    }

    fn of(spelled: Self::Spelled) -> Self {
        spelled.into_iter().map(T::of).collect()
    }
}

impl<A: Names, B: Names> Names for (A, B) {
    type Spelled = (A::Spelled, B::Spelled);

    fn spelled(&self) -> Self::Spelled {
        (self.0.spelled(), self.1.spelled())
    }

    fn of((first, second): Self::Spelled) -> Self {
        (A::of(first), B::of(second))
    }
}

impl Names for BTreeMap<OsString, OsString> {
    type Spelled = BTreeMap<String, String>;

    fn spelled(&self) -> Self::Spelled {
        let pairs = self.iter();
        pairs
            .map(|(name, value)| (spell(name), spell(value)))
            .collect()
    }

    fn of(spelled: Self::Spelled) -> Self {
        let pairs = spelled.into_iter();
        pairs
            .map(|(name, value)| (name_of(name), name_of(value)))
            .collect()
    }
}

/// What `#[serde(with = "crate::names")]` writes.
pub fn serialize<T: Names, S: Serializer>(names: &T, serializer: S) -> Result<S::Ok, S::Error> {
    names.spelled().serialize(serializer)
}

/// What `#[serde(with = "crate::names")]` reads.
pub fn deserialize<'de, T: Names, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Spelled::deserialize(deserializer).map(T::of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_name_comes_back(bytes in prop::collection::vec(1_u8.., 0..40)) {
            let name = OsString::from_vec(bytes);
            let spelled = spell(&name);
            prop_assert_eq!(name.to_str().is_some(), !spelled.contains(MARK));
            let json = serde_json::to_string(&spelled).unwrap();
            let read: String = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(name_of(read), name);
        }

        #[test]
        fn what_is_shown_stays_on_its_line(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let shown = show_path(OsString::from_vec(bytes));
            prop_assert!(!shown.chars().any(char::is_control));
        }
    }

    #[test]
    fn control_characters_and_bytes_are_told_apart() {
        let name = OsStr::from_bytes(b"a\tb\x1b[31m\x7f\xc2\x85\x85");
        assert_eq!(show_path(name), r"a\tb\x1b[31m\x7f\u0085\x85");
    }

    #[test]
    fn what_no_name_spells_is_left_alone() {
        for text in ["a\0", "a\0zz", "a\x0041", "a\0é"] {
            assert_eq!(name_of(text.to_owned()), OsStr::new(text));
        }
    }
}
