//! Why options are not those of GNU sort, in a sentence: which word, what is wrong with it, what to give.

use std::fmt;

/// A word of a command line that says nothing about the order, or contradicts another one.
///
/// ```
/// let error = gristmill_gnu_keys::Keys::parse(["-nM"]).unwrap_err();
/// assert_eq!(error.to_string(), "options '-Mn' are incompatible: a key has one order; give one of them");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use crate::Keys;

    fn said_of(words: &[&str]) -> String {
        Keys::parse(words).unwrap_err().to_string()
    }

    #[test]
    fn what_is_said_can_be_followed() {
        let random = "-R is not here: its order is another one in every run; use `shuf`";
        for words in [&["-R"][..], &["-k1R"], &["--sort=random"]] {
            assert_eq!(said_of(words), random);
        }
        assert_eq!(
            said_of(&["--sort=x"]),
            "--sort=x: give one of general-numeric, human-numeric, month, numeric, version"
        );
        for words in [&["-k", ""][..], &["--key="]] {
            assert_eq!(
                said_of(words),
                "a key is empty; give F[.C][OPTS][,F[.C][OPTS]]"
            );
        }
    }

    #[test]
    fn a_separator_need_not_be_utf8() {
        let keys = Keys::parse([&b"-t"[..], b"\xff", b"-k2,2"]).unwrap();
        let code = |line: &[u8]| {
            let mut code = Vec::new();
            keys.encode(line, &mut code);
            code
        };
        assert!(code(b"b\xffa\xffz") < code(b"a\xffb\xffa"));
    }
}
