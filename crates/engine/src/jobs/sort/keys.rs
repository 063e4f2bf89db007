//! The keys of a sort of lines: GNU sort's options as words, which tasks read again.
//!
//! Lines that are compared whole, and nothing else, have none: they are sorted as they are.

use gristmill_gnu_keys::Keys;

use super::SortSpec;
use super::input::SortInput;
use crate::jobs::tables::name_tables;
use crate::plan::format::RecordFormat;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::shape::{EndedLineShape, Keyed, Shape};
use gristmill_storage::stores::Stores;
use gristmill_tasks::spill::keyed::lines_of;
use gristmill_tasks::task::parse_keys;

/// Bytes in front of a code.
const HEADER_BYTES: usize = 8;
/// What is reckoned with where no line was seen.
const UNKNOWN_GROWTH: f64 = 2.5;

/// How much longer lines become with their codes in front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    /// What memory is planned by: a little more than a few lines tell.
    pub(super) planned: f64,
    /// What disks are looked at for: what was seen and no more, so that no job is refused that has room.
    pub(super) seen: f64,
}

impl Growth {
    /// That of records without codes.
    pub(super) const NONE: Self = Growth {
        planned: 1.0,
        seen: 1.0,
    };

    /// That of lines of which the bytes are known, those of the code, and whether they were seen to their end. What is seen of a
    /// line that goes on is a line for disks alone: where lines are long, few that are short say little.
    pub(super) fn of(lines: impl Iterator<Item = (usize, usize, bool)>) -> Self {
        let (mut whole, mut all) = ((0, 0), (0, 0));
        for (line, code, ended) in lines {
            let add = |sums: &mut (usize, usize)| {
                sums.0 += line;
                sums.1 += HEADER_BYTES + code;
            };
            add(&mut all);
            if ended {
                add(&mut whole);
            }
        }
        let share = |(lines, codes): (usize, usize)| codes as f64 / lines.max(1) as f64;
        Growth {
            planned: match whole {
                (0, _) => UNKNOWN_GROWTH,
                whole => 1.0 + 1.1 * share(whole),
            },
            seen: 1.0 + share(all),
        }
    }
}

/// The keys.
#[derive(Debug)]
pub(super) struct SortKeys {
    /// As GNU sort has them on its command line.
    pub(super) words: Vec<String>,
    pub(super) keys: Keys,
}

impl SortKeys {
    /// Those of a job; `None` where lines are compared as they are.
    ///
    /// # Errors
    /// They are not GNU sort's, or the records are not lines.
    pub(super) fn of(spec: &SortSpec) -> Result<Option<Self>> {
        let words = words_of(spec);
        let keys = parse_keys(&words).map_err(|error| name_tables(error, &spec.key))?;
        if keys.is_plain() && !keys.zero_terminated() {
            return Ok(None);
        }
        if spec.format != RecordFormat::Lines {
            let message = "keys and zero_terminated are for lines, and records of one length have a key of their own";
            return Err(Error::new(Kind::BadOption, "read the options", message)
                .advise("say in the format how long the key is: fixed:LEN:KEYLEN"));
        }
        Ok(Some(SortKeys { words, keys }))
    }

    pub(super) fn shape(&self) -> Keyed {
        Keyed {
            whole_lines: self.keys.whole_lines(),
        }
    }

    /// Where lines end.
    pub(super) fn lines(&self) -> EndedLineShape {
        lines_of(&self.keys)
    }

    /// What a line, which may have its end, is compared by.
    pub(super) fn code_of(&self, line: &[u8]) -> Vec<u8> {
        let line = self.lines().key(line);
        let mut code = Vec::new();
        self.keys.encode(line, &mut code);
        if self.keys.whole_lines() {
            code.extend_from_slice(line);
        }
        code
    }

    /// How much longer lines become, as far as a few of them tell.
    pub(super) fn growth(&self, store: &Stores, input: &SortInput) -> Result<Growth> {
        let looked = input.look(store, self.lines())?;
        let mut code = Vec::new();
        Ok(Growth::of(looked.iter().map(|line| {
            code.clear();
            self.keys.encode(self.lines().key(line), &mut code);
            (line.len(), code.len(), line.ends_with(&[self.lines().end]))
        })))
    }
}

/// The options of the order as words.
fn words_of(spec: &SortSpec) -> Vec<String> {
    let flags = [
        (spec.numeric_sort, "-n"),
        (spec.general_numeric_sort, "-g"),
        (spec.human_numeric_sort, "-h"),
        (spec.version_sort, "-V"),
        (spec.month_sort, "-M"),
        (spec.ignore_case, "-f"),
        (spec.dictionary_order, "-d"),
        (spec.ignore_nonprinting, "-i"),
        (spec.ignore_leading_blanks, "-b"),
        (spec.reverse, "-r"),
        (spec.stable, "-s"),
        (spec.unique, "-u"),
        (spec.zero_terminated, "-z"),
    ];
    let flags = flags.iter().filter(|(given, _)| *given);
    let mut words: Vec<String> = flags.map(|(_, word)| (*word).to_owned()).collect();
    words.extend(spec.sort.iter().map(|word| format!("--sort={word}")));
    let mut valued =
        |letter: &str, value: &String| words.extend([letter.to_owned(), value.clone()]);
    spec.field_separator
        .iter()
        .for_each(|value| valued("-t", value));
    spec.key.iter().for_each(|value| valued("-k", value));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::error::Spelling;

    fn advice(key: &str) -> Option<String> {
        let spec = SortSpec {
            key: vec![key.to_owned()],
            ..SortSpec::default()
        };
        let error = SortKeys::of(&spec).unwrap_err();
        error
            .advice()
            .map(|advice| advice.spelled(Spelling::CommandLine))
    }

    #[test]
    fn a_key_that_looks_like_a_column_wants_a_table() {
        let table = Some("for a column of a table give --csv or --tsv".to_owned());
        assert_eq!(advice("bytes:num:desc"), table);
        assert_eq!(advice("price"), table);
        assert_eq!(advice("4:num"), table);
        assert_eq!(advice("0"), None);
        assert_eq!(advice("1,x"), None);
    }
}
