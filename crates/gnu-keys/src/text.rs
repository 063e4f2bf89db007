//! Text as a code: the bytes, then a terminator that sorts below all of them.
//!
//! ```text
//! "ab"    61 62 00
//! "a\0"   61 01 01 00        NUL and 01 are escaped: 01 01 and 01 02
//! ```
//!
//! So a shorter text sorts before all that begin with it, and what follows the code is never reached.

use memchr::memchr2;

/// Which bytes of a key count (`-d`, `-i`), and whether letters are folded to upper case (`-f`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Alphabet {
    pub(crate) kept: CharacterFilter,
    pub(crate) fold: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CharacterFilter {
    #[default]
    All,
    /// `-d`: letters, digits and blanks.
    Dictionary,
    /// `-i`: what ASCII prints.
    Printing,
}

impl Alphabet {
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn apply(self, bytes: &[u8]) -> Vec<u8> {
        bytes
            .iter()
            .filter(|byte| self.keeps(**byte))
            .map(|byte| self.folded(*byte))
            .collect()
    }

    pub(crate) fn encode(self, bytes: &[u8], code: &mut Vec<u8>) {
        if self.is_plain() {
            return encode(bytes, code);
        }
        for byte in bytes {
            if self.keeps(*byte) {
                push(self.folded(*byte), code);
            }
        }
        code.push(0);
    }

    fn keeps(self, byte: u8) -> bool {
        match self.kept {
            CharacterFilter::All => true,
            CharacterFilter::Dictionary => {
                byte.is_ascii_alphanumeric() || crate::fields::is_blank(byte)
            }
            CharacterFilter::Printing => matches!(byte, b' '..=b'~'),
        }
    }

    fn folded(self, byte: u8) -> u8 {
        if self.fold {
            byte.to_ascii_uppercase()
        } else {
            byte
        }
    }
}

/// Appends the code of all bytes as they are.
pub(crate) fn encode(bytes: &[u8], code: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = memchr2(0, 1, rest) {
        code.extend_from_slice(&rest[..at]);
        push(rest[at], code);
        rest = &rest[at + 1..];
    }
    code.extend_from_slice(rest);
    code.push(0);
}

fn push(byte: u8, code: &mut Vec<u8>) {
    if byte <= 1 {
        code.push(1);
    }
    code.push(byte + u8::from(byte <= 1));
}
