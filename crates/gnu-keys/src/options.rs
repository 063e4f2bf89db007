//! GNU sort's options, read as GNU sort reads them: letters joined, values joined or behind, long names cut short.

use crate::error::Error;
use crate::fields::{KeyEnd, KeySpan, Start};
use crate::text::{Alphabet, CharacterFilter};
use crate::{Key, KeyOrder, Keys};

/// What `-c` says of input that is not in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckMode {
    /// `-c`: the first line that is out of order.
    Aloud,
    /// `-C`: the exit code alone.
    Quiet,
}

/// Long names and their letters.
const LONG: [(&str, u8); 19] = [
    ("check", b'c'),
    ("dictionary-order", b'd'),
    ("field-separator", b't'),
    ("general-numeric-sort", b'g'),
    ("human-numeric-sort", b'h'),
    ("ignore-case", b'f'),
    ("ignore-leading-blanks", b'b'),
    ("ignore-nonprinting", b'i'),
    ("key", b'k'),
    ("merge", b'm'),
    ("month-sort", b'M'),
    ("numeric-sort", b'n'),
    ("random-sort", b'R'),
    ("reverse", b'r'),
    ("sort", b'\0'),
    ("stable", b's'),
    ("unique", b'u'),
    ("version-sort", b'V'),
    ("zero-terminated", b'z'),
];
/// The words of `--sort`.
const SORTS: [(&str, u8); 6] = [
    ("general-numeric", b'g'),
    ("human-numeric", b'h'),
    ("month", b'M'),
    ("numeric", b'n'),
    ("random", b'R'),
    ("version", b'V'),
];
/// The word of `--sort` has no letter.
const SORT: u8 = b'\0';

/// The letters that a key has, or that all keys inherit.
#[derive(Debug, Clone, Copy, Default)]
struct Ordering {
    skip_start: bool,
    skip_end: bool,
    dictionary: bool,
    printing: bool,
    fold: bool,
    general: bool,
    human: bool,
    month: bool,
    numeric: bool,
    version: bool,
    reverse: bool,
}

impl Ordering {
    /// Whether nothing is set, apart from `-r`.
    fn is_default(self) -> bool {
        let blanks = self.skip_start || self.skip_end;
        let letters = self.dictionary || self.printing || self.fold;
        !(blanks
            || letters
            || self.general
            || self.human
            || self.month
            || self.numeric
            || self.version)
    }

    /// Reads letters up to one that is none of them, and returns the rest.
    fn read<'a>(&mut self, text: &'a [u8], start: bool, end: bool) -> Result<&'a [u8], Error> {
        for (at, letter) in text.iter().enumerate() {
            match letter {
                b'b' => {
                    self.skip_start |= start;
                    self.skip_end |= end;
                }
                b'd' => self.dictionary = true,
                b'f' => self.fold = true,
                b'g' => self.general = true,
                b'h' => self.human = true,
                b'i' => self.printing = true,
                b'M' => self.month = true,
                b'n' => self.numeric = true,
                b'r' => self.reverse = true,
                b'V' => self.version = true,
                b'R' => return Err(random()),
                _ => return Ok(&text[at..]),
            }
        }
        Ok(&[])
    }

    fn order(self) -> Result<KeyOrder, Error> {
        let text = self.dictionary || self.printing;
        let sorts = [
            (self.general, KeyOrder::General),
            (self.human, KeyOrder::Human),
            (self.month, KeyOrder::Month),
            (self.numeric, KeyOrder::Numeric),
            (self.version, KeyOrder::Version),
        ];
        let mut chosen = sorts
            .iter()
            .filter(|(given, _)| *given)
            .map(|(_, order)| *order);
        match (chosen.next(), chosen.next()) {
            (None, _) => Ok(KeyOrder::Text),
            (Some(KeyOrder::Version), None) => Ok(KeyOrder::Version),
            (Some(order), None) if !text => Ok(order),
            _ => Err(self.incompatible()),
        }
    }

    fn incompatible(self) -> Error {
        let letters = [
            (self.version, 'V'),
            (self.general, 'g'),
            (self.human, 'h'),
            (self.month, 'M'),
            (self.numeric, 'n'),
            (self.dictionary, 'd'),
            (self.printing && !self.dictionary, 'i'),
        ];
        let mut given: Vec<char> = letters
            .iter()
            .filter(|(given, _)| *given)
            .map(|(_, letter)| *letter)
            .collect();
        given.sort_unstable();
        let given: String = given.into_iter().collect();
        Error::new(format!(
            "options '-{given}' are incompatible: a key has one order; give one of them"
        ))
    }

    fn alphabet(self) -> Alphabet {
        let kept = match (self.dictionary, self.printing) {
            (true, _) => CharacterFilter::Dictionary,
            (false, true) => CharacterFilter::Printing,
            (false, false) => CharacterFilter::All,
        };
        Alphabet {
            kept,
            fold: self.fold,
        }
    }
}

/// A key as it was given, before it inherits.
#[derive(Debug, Default)]
struct KeyOption {
    first: (usize, usize),
    last: Option<(usize, usize)>,
    ordering: Ordering,
}

impl KeyOption {
    fn read(text: &[u8]) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::new("a key is empty; give F[.C][OPTS][,F[.C][OPTS]]"));
        }
        let mut given = Self::default();
        let (field, rest) = count(text, text, "of a field")?;
        let (char, rest) = match rest.strip_prefix(b".") {
            Some(rest) => count(text, rest, "of a character")?,
            None => (1, rest),
        };
        if char == 0 {
            return Err(wrong(
                text,
                "the number of a character is zero; they are counted from 1",
            ));
        }
        given.first = (before(text, field)?, char - 1);
        let mut rest = given.ordering.read(rest, true, false)?;
        if let Some(behind) = rest.strip_prefix(b",") {
            let (field, behind) = count(text, behind, "of a field")?;
            let (chars, behind) = match behind.strip_prefix(b".") {
                Some(behind) => count(text, behind, "of a character")?,
                None => (0, behind),
            };
            given.last = Some((before(text, field)?, chars));
            rest = given.ordering.read(behind, false, true)?;
        }
        if rest.is_empty() {
            return Ok(given);
        }
        Err(wrong(
            text,
            &format!(
                "'{}' is left over; a key is F[.C][OPTS][,F[.C][OPTS]]",
                shown(rest)
            ),
        ))
    }

    fn finish(&self, global: Ordering) -> Result<Key, Error> {
        let own = self.ordering;
        let ordering = if own.is_default() && !own.reverse {
            global
        } else {
            own
        };
        Ok(Key {
            span: KeySpan {
                first: Start {
                    field: self.first.0,
                    char: self.first.1,
                    skip_blanks: ordering.skip_start,
                },
                last: self.last.map(|(field, chars)| KeyEnd {
                    field,
                    chars,
                    skip_blanks: ordering.skip_end,
                }),
            },
            order: ordering.order()?,
            alphabet: ordering.alphabet(),
            reverse: ordering.reverse,
        })
    }
}

/// See [`Keys::parse`].
pub(crate) fn parse<Word: AsRef<[u8]>>(
    words: impl IntoIterator<Item = Word>,
) -> Result<Keys, Error> {
    let mut reader = OptionReader::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut next = || words.next().map(|word| word.as_ref().to_vec());
        match word.as_ref() {
            [b'-', b'-', long @ ..] => reader.long(long, &mut next)?,
            [b'-', letters @ ..] if !letters.is_empty() => reader.short(letters, &mut next)?,
            other => {
                return Err(Error::new(format!(
                    "'{}' is not an option of the order",
                    shown(other)
                )));
            }
        }
    }
    reader.finish()
}

#[derive(Debug, Default)]
struct OptionReader {
    global: Ordering,
    keys: Vec<KeyOption>,
    separator: Option<u8>,
    stable: bool,
    unique: bool,
    zero_terminated: bool,
    check: Option<CheckMode>,
}

type Next<'a> = &'a mut dyn FnMut() -> Option<Vec<u8>>;

impl OptionReader {
    fn short(&mut self, letters: &[u8], next: Next<'_>) -> Result<(), Error> {
        for (at, letter) in letters.iter().enumerate() {
            if matches!(letter, b'k' | b't') {
                let joined = &letters[at + 1..];
                let value = if joined.is_empty() {
                    next()
                } else {
                    Some(joined.to_vec())
                };
                return self.set(*letter, value.as_deref());
            }
            self.set(*letter, None)?;
        }
        Ok(())
    }

    fn long(&mut self, text: &[u8], next: Next<'_>) -> Result<(), Error> {
        let (name, value) = match text.iter().position(|byte| *byte == b'=') {
            Some(at) => (&text[..at], Some(text[at + 1..].to_vec())),
            None => (text, None),
        };
        let Some(letter) = find(&LONG, name) else {
            return Err(Error::new(format!(
                "'--{}' is not an option of the order",
                shown(name)
            )));
        };
        let needs_value = matches!(letter, b'k' | b't' | SORT);
        if value.is_some() && !needs_value && letter != b'c' {
            return Err(Error::new(format!("'--{}' takes no value", shown(name))));
        }
        let value = if needs_value && value.is_none() {
            next()
        } else {
            value
        };
        self.set(letter, value.as_deref())
    }

    fn set(&mut self, letter: u8, value: Option<&[u8]>) -> Result<(), Error> {
        match letter {
            b'k' => self.keys.push(KeyOption::read(needed("-k", value)?)?),
            b't' => self.separate_by(needed("-t", value)?)?,
            SORT => {
                let word = needed("--sort", value)?;
                let letter = find(&SORTS, word).ok_or_else(|| {
                    let words = SORTS.iter().filter(|(_, letter)| *letter != b'R');
                    let words: Vec<_> = words.map(|(word, _)| *word).collect();
                    let words = words.join(", ");
                    Error::new(format!("--sort={}: give one of {words}", shown(word)))
                })?;
                self.global.read(&[letter], true, true)?;
            }
            b'c' => {
                self.check = Some(match value {
                    None | Some(b"diagnose-first") => CheckMode::Aloud,
                    Some(b"quiet" | b"silent") => CheckMode::Quiet,
                    Some(word) => {
                        let what = format!(
                            "--check={}: give diagnose-first, quiet or silent",
                            shown(word)
                        );
                        return Err(Error::new(what));
                    }
                });
            }
            b'C' => self.check = Some(CheckMode::Quiet),
            b's' => self.stable = true,
            b'u' => self.unique = true,
            b'z' => self.zero_terminated = true,
            b'm' => {} // the order is the same
            _ if self.global.read(&[letter], true, true)?.is_empty() => {}
            _ => {
                return Err(Error::new(format!(
                    "'-{}' is not an option of the order",
                    shown(&[letter])
                )));
            }
        }
        Ok(())
    }

    fn separate_by(&mut self, value: &[u8]) -> Result<(), Error> {
        let separator = match value {
            [] => return Err(Error::new("-t: the separator is empty; give one byte")),
            b"\\0" => 0,
            b"\\t" => b'\t', // GNU sort refuses it
            [byte] => *byte,
            _ => {
                let what = format!(
                    "-t {}: more than one byte; give one, or \\t for a tab, \\0 for NUL",
                    shown(value)
                );
                return Err(Error::new(what));
            }
        };
        if self.separator.is_some_and(|before| before != separator) {
            return Err(Error::new("-t: two separators that differ; give one"));
        }
        self.separator = Some(separator);
        Ok(())
    }

    fn finish(self) -> Result<Keys, Error> {
        let mut keys = self
            .keys
            .iter()
            .map(|key| key.finish(self.global))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() && !self.global.is_default() {
            keys.push(KeyOption::default().finish(self.global)?);
        }
        Ok(Keys {
            keys,
            separator: self.separator,
            reverse: self.global.reverse,
            stable: self.stable,
            unique: self.unique,
            zero_terminated: self.zero_terminated,
            check: self.check,
        })
    }
}

/// The letter of a name, which may be cut short where that leaves one.
fn find(table: &[(&str, u8)], name: &[u8]) -> Option<u8> {
    let exact = table.iter().find(|(full, _)| full.as_bytes() == name);
    let mut begun = table
        .iter()
        .filter(|(full, _)| full.as_bytes().starts_with(name));
    match (exact, begun.next(), begun.next()) {
        (Some((_, letter)), ..) | (None, Some((_, letter)), None) => Some(*letter),
        _ => None,
    }
}

fn needed<'a>(option: &str, value: Option<&'a [u8]>) -> Result<&'a [u8], Error> {
    value.ok_or_else(|| Error::new(format!("{option} needs a value")))
}

/// The number at the beginning, which is as high as it may be; what counts is that it lies beyond each line.
fn count<'a>(key: &[u8], text: &'a [u8], what: &str) -> Result<(usize, &'a [u8]), Error> {
    let (digits, rest) = crate::numeric::digits(text);
    if digits.is_empty() {
        return Err(wrong(
            key,
            &format!("a number {what} is missing; a key is F[.C][OPTS][,F[.C][OPTS]]"),
        ));
    }
    let number = digits.iter().fold(0_usize, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(usize::from(digit - b'0'))
    });
    Ok((number, rest))
}

fn before(key: &[u8], field: usize) -> Result<usize, Error> {
    let missing = || {
        wrong(
            key,
            "the number of a field is zero; fields are counted from 1",
        )
    };
    field.checked_sub(1).ok_or_else(missing)
}

fn wrong(key: &[u8], what: &str) -> Error {
    Error::new(format!("-k {}: {what}", shown(key)))
}

fn random() -> Error {
    Error::new("-R is not here: its order is another one in every run; use `shuf`")
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
