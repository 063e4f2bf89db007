//! `-V`: names with versions in them, as coreutils' `filevercmp` orders them.
//!
//! ```text
//! class   0 empty, 1 ".", 2 "..", 3 begins with a point, 4 all else
//! name    the name without its suffixes (".tar.gz"), then the whole name; each:
//!         runs of bytes that are no digits, each byte by its rank;  a run ends with RUN_END
//!         runs of digits: how many there are without leading zeros, then the digits
//! ```
//!
//! Ranks: `~` first, then the end of a run, then letters, then all other bytes. A name that ends
//! behind a run of bytes has the number 0 and an empty run behind it: "a" equals "a0", and "a0b" follows.

use crate::numeric::{digits, encode_length, without_zeros};

const TILDE: u8 = 0;
const RUN_END: u8 = 1;
const FIRST_LETTER: u8 = 2;

/// The rank of each byte; those of digits are never asked for.
const RANKS: [u8; 256] = ranks();

const fn ranks() -> [u8; 256] {
    let mut ranks = [0; 256];
    let mut next = FIRST_LETTER;
    let mut letters = true;
    loop {
        let mut byte = 0;
        while byte < 256 {
            let one = byte as u8;
            if one.is_ascii_alphabetic() == letters && !one.is_ascii_digit() && one != b'~' {
                ranks[byte] = next;
                next += 1;
            }
            byte += 1;
        }
        if !letters {
            ranks[b'~' as usize] = TILDE;
            return ranks;
        }
        letters = false;
    }
}

pub(crate) fn encode(name: &[u8], code: &mut Vec<u8>) {
    let class = match name {
        [] => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    };
    code.push(class);
    if class > 2 {
        encode_runs(&name[..without_suffixes(name)], code);
        encode_runs(name, code);
    }
}

fn encode_runs(name: &[u8], code: &mut Vec<u8>) {
    let mut rest = name;
    loop {
        let length = rest
            .iter()
            .take_while(|byte| !byte.is_ascii_digit())
            .count();
        code.extend(rest[..length].iter().map(|byte| RANKS[usize::from(*byte)]));
        code.push(RUN_END);
        let (number, behind) = digits(&rest[length..]);
        let number = without_zeros(number);
        encode_length(number.len(), code);
        code.extend_from_slice(number);
        if behind.is_empty() {
            return code.push(RUN_END);
        }
        rest = behind;
    }
}

/// The length of the name without suffixes: a suffix is a point, a letter or `~`, then letters, digits
/// and `~`. All of a name can be suffixes.
fn without_suffixes(name: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let end = at;
        while name.get(at) == Some(&b'.')
            && name
                .get(at + 1)
                .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'~')
        {
            at += 2;
            while name
                .get(at)
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'~')
            {
                at += 1;
            }
        }
        if at >= name.len() {
            return end;
        }
        at += 1;
    }
}
