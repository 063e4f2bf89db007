//! Reading values: one token after another, from bytes that may be anything.
//!
//! The rule that must hold: whatever the bytes are, there is a token, an end or an error that names the offset and what was
//! expected there. A value has one encoding, so an integer in more bytes than it needs is an error too.

use std::borrow::Cow;
use std::str::Utf8Error;

use super::decimal::{self, Decimal};
use super::descending::{end_of_descending, turned_back};
use super::escaped::{end_of_escaped, unescape};
use super::exact::{self, Moment};
use super::skip::fixed_length;
use super::{DEPTH_MAX, DESCENDING_DEPTH, code, malformed};
use crate::{Error, Result};

/// A value, or where a tuple begins or ends. Content that holds no zeros is borrowed from the encoding.
#[derive(Debug, Clone, PartialEq)]
pub enum Token<'a> {
    /// Python's `None`.
    Null,
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// Text.
    Text(Cow<'a, str>),
    /// An integer of up to 64 bits.
    Int(i64),
    /// Any other integer.
    BigInt {
        /// Whether it is below zero.
        negative: bool,
        /// Its magnitude, the most significant byte first, which is not zero.
        magnitude: Cow<'a, [u8]>,
    },
    /// A double.
    Double(f64),
    /// A boolean.
    Boolean(bool),
    /// A tuple begins: its elements follow.
    Begin,
    /// A list begins: its elements follow.
    List,
    /// A dict begins: its keys follow, each with its value behind it.
    Dict,
    /// The tuple, list or dict begun last ends.
    End,
    /// What Python's `pickle` made.
    Pickled(Cow<'a, [u8]>),
    /// A day; 1 is the first of January of the year 1.
    Date(u32),
    /// An instant, or a time of day that is on no clock in particular.
    Datetime {
        /// Microseconds since the beginning of the year 1.
        micros: i64,
        /// Whether it is in UTC; otherwise it has no time zone.
        utc: bool,
    },
    /// A decimal number.
    Decimal(Decimal),
    /// A value whose order is turned: its encoding.
    Descending(Vec<u8>),
    /// A decimal number as it is written.
    Written(Cow<'a, str>),
    /// So many days and microseconds of a day.
    Duration {
        /// Days, which may be below zero.
        days: i32,
        /// Microseconds beside them.
        micros: i64,
    },
    /// A time of day, or a datetime, with all that belongs to it.
    Moment(Moment<'a>),
    /// A UUID.
    Uuid {
        /// Python's `is_safe`.
        safety: u8,
        /// Its bytes.
        bytes: [u8; 16],
    },
}

/// Reads values that stand one behind another.
///
/// ```
/// use gristmill_base::value::{ValueReader, Token};
/// let mut reader = ValueReader::new(b"\x02word\0\x15\x07");
/// assert_eq!(reader.token()?, Some(Token::Text("word".into())));
/// assert_eq!(reader.position(), 6);
/// assert_eq!(reader.token()?, Some(Token::Int(7)));
/// assert_eq!(reader.token()?, None);
/// let error = ValueReader::new(b"\x03").token().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "cannot decode a value: expected the code of a type, found byte 0x03 (offset 0)."
/// );
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ValueReader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    /// How deep the value stands that is read, in tuples and what counts as some.
    outer: u32,
}

impl<'a> ValueReader<'a> {
    /// Reads from the start of `bytes`.
    ///
    /// ```
    /// use gristmill_base::value::{ValueReader, Token};
    /// assert_eq!(ValueReader::new(&[0x05, 0x00]).token()?, Some(Token::Begin));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        ValueReader {
            bytes,
            at: 0,
            depth: 0,
            outer: 0,
        }
    }

    /// How many bytes have been read.
    ///
    /// ```
    /// use gristmill_base::value::ValueReader;
    /// let mut reader = ValueReader::new(&[0x15, 0x07, 0x14]);
    /// reader.token()?;
    /// assert_eq!(reader.position(), 2);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many tuples are open.
    ///
    /// ```
    /// use gristmill_base::value::ValueReader;
    /// let mut reader = ValueReader::new(&[0x05, 0x05, 0x00, 0x00]);
    /// while reader.token()?.is_some() {
    ///     assert!(reader.depth() <= 2);
    /// }
    /// assert_eq!(reader.depth(), 0);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The next token, or `None` behind the last value.
    ///
    /// An error (`bad_input`, with the offset) where the bytes are no value's. It does not go on from there.
    ///
    /// ```
    /// use gristmill_base::value::{ValueReader, Token};
    /// let mut reader = ValueReader::new(&[0x05, 0x00, 0xff, 0x26, 0x00]);
    /// let mut tokens = Vec::new();
    /// while let Some(token) = reader.token()? {
    ///     tokens.push(token);
    /// }
    /// assert_eq!(tokens, [Token::Begin, Token::Null, Token::Boolean(false), Token::End]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn token(&mut self) -> Result<Option<Token<'a>>> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((first, behind)) = rest.split_first() else {
            return match self.depth {
                0 => Ok(None),
                _ => Err(malformed(self.at, None, "an element or the end of a tuple")),
            };
        };
        let (token, length) = match *first {
            code::TUPLE | code::LIST | code::DICT if self.depth + self.outer >= DEPTH_MAX => {
                let expected = format!("no tuple deeper than {DEPTH_MAX}");
                return Err(malformed(self.at, Some(*first), &expected));
            }
            code::TUPLE | code::LIST | code::DICT => {
                self.depth += 1;
                let token = match *first {
                    code::TUPLE => Token::Begin,
                    code::LIST => Token::List,
                    _ => Token::Dict,
                };
                (token, 1)
            }
            code::NULL if self.depth == 0 => (Token::Null, 1),
            code::NULL if behind.first() == Some(&code::ESCAPE) => (Token::Null, 2),
            code::END => {
                self.depth -= 1;
                (Token::End, 1)
            }
            code::BYTES | code::TEXT | code::PICKLED | code::WRITTEN => {
                self.escaped(*first, behind)?
            }
            code::DESCENDING => self.descending(behind)?,
            _ => self.fixed(*first, rest)?,
        };
        self.at += length;
        Ok(Some(token))
    }

    /// Bytes, text or a pickle, and the length of its encoding.
    #[inline]
    fn escaped(&self, first: u8, behind: &'a [u8]) -> Result<(Token<'a>, usize)> {
        let Some((length, zeros)) = end_of_escaped(behind) else {
            let end = self.bytes.len();
            return Err(malformed(end, None, "the zero that ends a value"));
        };
        let raw = behind.get(..length - 1).unwrap_or_default();
        let content = if zeros == 0 {
            Cow::Borrowed(raw)
        } else {
            Cow::Owned(unescape(raw, zeros))
        };
        let token = match first {
            code::TEXT => Token::Text(self.utf8(content)?),
            code::WRITTEN => Token::Written(self.utf8(content)?),
            code::BYTES => Token::Bytes(content),
            _ => Token::Pickled(content),
        };
        Ok((token, 1 + length))
    }

    /// A descending value, and the length of its encoding.
    #[cold]
    fn descending(&self, behind: &'a [u8]) -> Result<(Token<'a>, usize)> {
        let Some(length) = end_of_descending(behind) else {
            let end = self.bytes.len();
            return Err(malformed(end, None, "the end of a descending value"));
        };
        let outer = self.depth + self.outer + DESCENDING_DEPTH;
        let inner = turned_back(behind.get(..length - 2).unwrap_or_default());
        let mut reader = ValueReader {
            outer,
            ..ValueReader::new(&inner)
        };
        let wrong = || malformed(self.at, Some(code::DESCENDING), "an inverted value");
        if outer > DEPTH_MAX {
            return Err(wrong());
        }
        let mut values = 0;
        while reader.token().map_err(|_inside| wrong())?.is_some() {
            values += u32::from(reader.depth == 0);
        }
        match values {
            1 => Ok((Token::Descending(inner), 1 + length)),
            _ => Err(wrong()),
        }
    }

    #[inline]
    fn utf8(&self, content: Cow<'a, [u8]>) -> Result<Cow<'a, str>> {
        match content {
            Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Cow::Borrowed(text)),
                Err(error) => Err(self.no_utf8(error, bytes)),
            },
            Cow::Owned(bytes) => String::from_utf8(bytes)
                .map(Cow::Owned)
                .map_err(|error| self.no_utf8(error.utf8_error(), error.as_bytes())),
        }
    }

    /// The error of text that is none; the offset counts the escapes in front of what is wrong.
    #[cold]
    fn no_utf8(&self, error: Utf8Error, content: &[u8]) -> Error {
        let valid = content.get(..error.valid_up_to()).unwrap_or_default();
        let escapes = valid.iter().filter(|byte| **byte == 0).count();
        let found = content.get(valid.len()).copied();
        malformed(self.at + 1 + valid.len() + escapes, found, "UTF-8")
    }

    /// A value whose length its first bytes tell, and the length of its encoding.
    #[inline]
    fn fixed(&self, first: u8, rest: &'a [u8]) -> Result<(Token<'a>, usize)> {
        let length =
            fixed_length(rest).map_err(|(found, expected)| malformed(self.at, found, expected))?;
        let Some(encoding) = rest.get(..length) else {
            let expected = format!("{} more byte(s) of the number", length - rest.len());
            return Err(malformed(self.bytes.len(), None, &expected));
        };
        let token = match first {
            code::DOUBLE => Token::Double(double(encoding)),
            code::FALSE | code::TRUE => Token::Boolean(first == code::TRUE),
            code::DATE => Token::Date(last(encoding).map_or(0, u32::from_be_bytes)),
            code::NAIVE | code::AWARE => Token::Datetime {
                micros: last(encoding).map_or(0, i64::from_be_bytes) ^ i64::MIN,
                utc: first == code::AWARE,
            },
            code::DURATION | code::TIME | code::ZONED | code::UUID => exact_token(encoding)
                .ok_or_else(|| malformed(self.at, Some(first), "a value in its only form"))?,
            code::DECIMAL => {
                let decimal = decimal::read(encoding);
                let decimal = decimal
                    .ok_or_else(|| malformed(self.at, Some(first), "a decimal in its only form"))?;
                Token::Decimal(decimal)
            }
            _ => integer(encoding).ok_or_else(|| {
                malformed(
                    self.at,
                    Some(first),
                    "an integer in as few bytes as it needs",
                )
            })?,
        };
        Ok((token, length))
    }
}

impl<'a> Iterator for ValueReader<'a> {
    type Item = Result<Token<'a>>;

    /// The next token; behind an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        let token = self.token();
        if token.is_err() {
            (self.at, self.depth) = (self.bytes.len(), 0);
        }
        token.transpose()
    }
}

/// A duration, a time or a UUID; nothing where the encoding is none.
fn exact_token(encoding: &[u8]) -> Option<Token<'_>> {
    let (first, rest) = encoding.split_first()?;
    Some(match *first {
        code::DURATION => {
            let (days, micros) = exact::read_duration(rest)?;
            Token::Duration { days, micros }
        }
        code::UUID => Token::Uuid {
            safety: *rest.first()?,
            bytes: *rest.get(1..)?.first_chunk()?,
        },
        _ => Token::Moment(exact::read_moment(*first == code::ZONED, rest)?),
    })
}

/// The last bytes of an encoding.
fn last<const BYTES: usize>(encoding: &[u8]) -> Option<[u8; BYTES]> {
    encoding.last_chunk().copied()
}

/// The double whose encoding, of nine bytes, this is.
#[inline]
fn double(encoding: &[u8]) -> f64 {
    let bits = encoding
        .last_chunk()
        .map_or(0, |chunk| u64::from_be_bytes(*chunk));
    let sign = 1 << 63;
    f64::from_bits(if bits & sign == 0 { !bits } else { bits ^ sign })
}

/// The integer whose encoding this is, or `None` where fewer bytes would have done.
#[inline]
fn integer(encoding: &[u8]) -> Option<Token<'_>> {
    let (first, content) = encoding.split_first()?;
    let negative = *first < code::ZERO;
    let flip = if negative { 0xff } else { 0 };
    if matches!(*first, code::NEGATIVE | code::POSITIVE) {
        let raw = content.get(1..)?;
        let magnitude = if negative {
            Cow::Owned(raw.iter().map(|byte| !byte).collect())
        } else {
            Cow::Borrowed(raw)
        };
        let shortest = raw.len() > 8 && *magnitude.first()? != 0;
        return shortest.then_some(Token::BigInt {
            negative,
            magnitude,
        });
    }
    if content.first().is_some_and(|byte| byte ^ flip == 0) {
        return None;
    }
    let number = |all: u64, byte: &u8| all << 8 | u64::from(byte ^ flip);
    let magnitude = content.iter().fold(0, number);
    let small = if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    };
    Some(small.map_or_else(
        || Token::BigInt {
            negative,
            magnitude: Cow::Owned(magnitude.to_be_bytes().to_vec()),
        },
        Token::Int,
    ))
}
