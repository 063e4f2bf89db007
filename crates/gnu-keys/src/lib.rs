//! GNU sort's keys as bytes: a key is encoded once, and a plain comparison of bytes does the rest.
//!
//! ```text
//! "-t," "-k2,2nr" ──▶ Keys::parse ──▶ Keys
//! line ──▶ Keys::encode ──▶ code       memcmp(code ++ line) is GNU sort's order, locale C
//! ```
//!
//! A code is the codes of its keys, one after the other. Each is self-delimiting: none is a strict
//! prefix of another one of the same key. So codes can be joined, inverted for `-r` and put in front
//! of a line, and the first byte that differs decides.
//!
//! The last resort of GNU sort, which compares whole lines where all keys are equal, is the line behind
//! the code. With `-s` and `-u` there is none: then compare the codes alone, by a stable sort ([`Keys::whole_lines`]).
//!
//! The order is that of GNU coreutils 9.1 in the locale C, as its manual says and as the program does
//! (`tests/differential.rs`). Where later versions differ: in `-h`, they know the units R and Q; in `-g`, they
//! compare NaNs by their sign alone. In `-n` and `-h`, the byte 0x80 among the digits before the point is skipped, as 9.1 does.

mod decimal;
mod error;
mod exact;
mod fields;
mod float;
mod general;
mod month;
mod natural;
mod numeric;
mod options;
mod text;
mod version;
mod written;

pub use error::Error;
pub use options::CheckMode;

use fields::KeySpan;
use text::Alphabet;

/// What a key compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyOrder {
    Text,
    Numeric,
    General,
    Exact,
    Human,
    Month,
    Version,
}

/// One key: where it is in the line, and how it compares.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    span: KeySpan,
    order: KeyOrder,
    alphabet: Alphabet,
    reverse: bool,
}

/// What the options of a command line of GNU sort say about order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    keys: Vec<Key>,
    separator: Option<u8>,
    reverse: bool,
    stable: bool,
    unique: bool,
    zero_terminated: bool,
    check: Option<CheckMode>,
}

impl Keys {
    /// Reads GNU sort's options.
    ///
    /// # Errors
    /// A word that GNU sort refuses, `-R`, and a word that is not an option of the order.
    ///
    /// ```
    /// use gristmill_gnu_keys::Keys;
    ///
    /// assert!(Keys::parse(["-t,", "-k2,2nr"]).is_ok());
    /// let error = Keys::parse(["-k0"]).unwrap_err();
    /// assert_eq!(error.to_string(), "-k 0: the number of a field is zero; fields are counted from 1");
    /// ```
    pub fn parse<Word: AsRef<[u8]>>(words: impl IntoIterator<Item = Word>) -> Result<Self, Error> {
        options::parse(words)
    }

    /// The key of one field of a table, which is all that is encoded. Beside GNU sort's letters there is `N`: numbers as `-g` reads
    /// them, compared by their exact values.
    ///
    /// # Errors
    /// The letters exclude each other.
    ///
    /// ```
    /// use gristmill_gnu_keys::Keys;
    ///
    /// let code = |letters: &str, field: &[u8]| {
    ///     let mut code = Vec::new();
    ///     Keys::of_field(letters).map(|keys| keys.encode(field, &mut code)).map(|()| code)
    /// };
    /// assert!(code("N", b"18446744073709551616")? < code("N", b"18446744073709551617")?);
    /// assert_eq!(code("g", b"18446744073709551616")?, code("g", b"18446744073709551617")?);
    /// assert_eq!(code("Nr", b"0x10")?, code("Nr", b"1.6e1")?);
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    pub fn of_field(letters: &str) -> Result<Self, Error> {
        let exact = letters.contains('N');
        let letters = letters.replace('N', "g");
        let mut keys = Self::parse(["-s", &format!("-k1{letters}")])?;
        if exact {
            keys.keys
                .iter_mut()
                .for_each(|key| key.order = KeyOrder::Exact);
        }
        Ok(keys)
    }

    /// Appends the code of a line, which comes without its terminator.
    ///
    /// ```
    /// use gristmill_gnu_keys::Keys;
    ///
    /// let keys = Keys::parse(["-n"])?;
    /// let mut lines = [&b"10"[..], b"9", b"-3.5", b"1e3", b"x"];
    /// lines.sort_by_cached_key(|line| {
    ///     let mut record = Vec::new();
    ///     keys.encode(line, &mut record);
    ///     record.extend_from_slice(line);
    ///     record
    /// });
    /// assert_eq!(lines, [&b"-3.5"[..], b"x", b"1e3", b"9", b"10"]);
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    pub fn encode(&self, line: &[u8], code: &mut Vec<u8>) {
        for key in &self.keys {
            let start = code.len();
            key.encode(key.span.of(line, self.separator), code);
            if key.reverse {
                invert(&mut code[start..]);
            }
        }
        if self.reverse && self.whole_lines() {
            let start = code.len();
            text::encode(line, code);
            invert(&mut code[start..]);
        }
    }

    /// Whether lines whose keys are equal are compared whole: not with `-s` and `-u`, where there are keys.
    ///
    /// ```
    /// use gristmill_gnu_keys::Keys;
    ///
    /// assert!(Keys::parse(["-k1"])?.whole_lines());
    /// assert!(!Keys::parse(["-k1", "-s"])?.whole_lines());
    /// assert!(Keys::parse(["-s"])?.whole_lines());
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    #[must_use]
    pub fn whole_lines(&self) -> bool {
        self.keys.is_empty() || !(self.stable || self.unique)
    }

    /// Whether lines are compared whole and nothing else: then no line needs a code, unless they are reversed.
    ///
    /// ```
    /// use gristmill_gnu_keys::Keys;
    ///
    /// assert!(Keys::parse(["-u"])?.is_plain());
    /// assert!(!Keys::parse(["-b"])?.is_plain());
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether `-r` stands outside a key.
    ///
    /// ```
    /// assert!(gristmill_gnu_keys::Keys::parse(["-rn"])?.reverse());
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    #[must_use]
    pub fn reverse(&self) -> bool {
        self.reverse
    }

    /// Whether `-u` is given: of lines that compare equal the first one is kept.
    ///
    /// ```
    /// assert!(gristmill_gnu_keys::Keys::parse(["-u"])?.unique());
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    #[must_use]
    pub fn unique(&self) -> bool {
        self.unique
    }

    /// Whether `-s` is given.
    ///
    /// ```
    /// assert!(gristmill_gnu_keys::Keys::parse(["--stable"])?.stable());
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    #[must_use]
    pub fn stable(&self) -> bool {
        self.stable
    }

    /// Whether lines end with a NUL byte.
    ///
    /// ```
    /// assert!(gristmill_gnu_keys::Keys::parse(["-z"])?.zero_terminated());
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    #[must_use]
    pub fn zero_terminated(&self) -> bool {
        self.zero_terminated
    }

    /// Whether the input is checked rather than sorted, and aloud or quietly.
    ///
    /// ```
    /// use gristmill_gnu_keys::{CheckMode, Keys};
    ///
    /// assert_eq!(Keys::parse(["-C"])?.check(), Some(CheckMode::Quiet));
    /// # Ok::<(), gristmill_gnu_keys::Error>(())
    /// ```
    #[must_use]
    pub fn check(&self) -> Option<CheckMode> {
        self.check
    }
}

impl Key {
    fn encode(&self, bytes: &[u8], code: &mut Vec<u8>) {
        if self.order == KeyOrder::Text {
            return self.alphabet.encode(bytes, code);
        }
        let changed;
        let bytes = if self.alphabet.is_plain() {
            bytes
        } else {
            changed = self.alphabet.apply(bytes);
            &changed
        };
        match self.order {
            KeyOrder::Numeric => numeric::encode(bytes, code),
            KeyOrder::Human => numeric::encode_human(bytes, code),
            KeyOrder::General => general::encode(bytes, code),
            KeyOrder::Exact => exact::encode(bytes, code),
            KeyOrder::Month => code.push(month::number(bytes)),
            KeyOrder::Version => version::encode(bytes, code),
            KeyOrder::Text => unreachable!("text is encoded above"),
        }
    }
}

fn invert(code: &mut [u8]) {
    for byte in code {
        *byte = !*byte;
    }
}
