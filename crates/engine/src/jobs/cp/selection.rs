//! Which of the files below a source are copied: `--filter`, `--exclude`, `--exclude-regex` and `--files-from`.
//!
//! ```text
//!   *.csv          matches a name at any depth
//!   logs/**/*.gz   has a slash: matches a path within the source, part by part
//!   .*\.tmp        is a regular expression: matches a whole path, with the name of the source in front
//! ```
//!
//! What is excluded of a source is left alone in the target, too.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::jobs::mapreduce::wrong_option;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::Caching;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_tasks::split::pattern::matches;

/// Which files are copied.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    filter: Vec<String>,
    exclude: Vec<String>,
    exclude_regex: Vec<Regex>,
    /// The names within the source, if only these are to be copied.
    pub(super) names: Option<Vec<PathBuf>>,
}

impl Selection {
    pub(super) fn read(
        stores: &Stores,
        (filter, exclude): (&[String], &[String]),
        exclude_regex: &[String],
        files_from: Option<&Location>,
    ) -> Result<Self> {
        Ok(Selection {
            filter: filter.to_vec(),
            exclude: exclude.to_vec(),
            exclude_regex: exclude_regex.iter().map(regex_of).collect::<Result<_>>()?,
            names: files_from.map(|list| names_in(stores, list)).transpose()?,
        })
    }

    /// Whether nothing of a source is copied, or removed from the target, whose path within the source is `below`.
    pub(super) fn excludes(&self, from: &Location, below: &Path) -> bool {
        let whole = from.as_typed().to_string_lossy();
        self.exclude.iter().any(|pattern| is_match(pattern, below))
            || self
                .exclude_regex
                .iter()
                .any(|regex| regex.is_match(&*whole))
    }

    /// Whether a file is copied that is not excluded.
    pub(super) fn has(&self, below: &Path) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|pattern| is_match(pattern, below))
    }

    /// Whether only some files are copied: then directories are made for them alone.
    pub(super) fn filters(&self) -> bool {
        !self.filter.is_empty()
    }
}

/// A regular expression that matches all of a name.
fn regex_of(pattern: &String) -> Result<Regex> {
    let build = |text: &str| {
        let mut builder = Regex::builder();
        builder.syntax(syntax::Config::new().dot_matches_new_line(true));
        builder.build(text).map_err(|error| {
            let why = error.syntax_error().map(ToString::to_string);
            not_regular(pattern, &why.unwrap_or_else(|| error.to_string()))
        })
    };
    build(pattern)?; // brackets around it might hide what is wrong
    build(&format!(r"\A(?:{pattern})\z"))
}

/// The error of a pattern; the last line of the explanation says what is wrong.
fn not_regular(pattern: &str, why: &str) -> Error {
    let why = why.lines().last().unwrap_or_default();
    let why = why.strip_prefix("error: ").unwrap_or(why);
    let what = format!("{pattern:?} is not a regular expression: {why}");
    wrong_option("exclude_regex", &what)
        .advise("correct it; what looks ahead or behind, or refers to a group, is not known")
}

fn is_match(pattern: &str, below: &Path) -> bool {
    let name = below.file_name().unwrap_or_default();
    match pattern.trim_end_matches('/') {
        pattern if pattern.contains('/') => {
            let pattern: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
            let parts: Vec<_> = below.iter().map(OsStr::to_string_lossy).collect();
            let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
            path_matches(&pattern, &parts)
        }
        pattern => matches(pattern, &name.to_string_lossy()),
    }
}

fn path_matches(pattern: &[&str], parts: &[&str]) -> bool {
    match (pattern.split_first(), parts.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            path_matches(rest, parts)
                || parts
                    .split_first()
                    .is_some_and(|(_, later)| path_matches(pattern, later))
        }
        (Some((first, rest)), Some((part, later))) => {
            matches(first, part) && path_matches(rest, later)
        }
        _ => false,
    }
}

/// The names that a file lists, a line each.
fn names_in(stores: &Stores, list: &Location) -> Result<Vec<PathBuf>> {
    let file = stores.open(list, Caching::Cached)?;
    let (mut text, mut buffer) = (Vec::new(), vec![0; TRANSFER_BYTES.min(1 << 16)]);
    loop {
        let read = file.read_at(&mut buffer, text.len() as u64)?;
        text.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if read < buffer.len() {
            break;
        }
    }
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(number, line)| {
            let name = PathBuf::from(OsString::from_vec(line.to_vec()));
            let is_inside = name.iter().all(|part| part != "..") && name.is_relative();
            match is_inside {
                true => Ok(name.components().collect()),
                false => Err(Error::new(
                    Kind::BadInput,
                    "read the names of files",
                    "it leads out of the source",
                )
                .with_path(list.as_typed())
                .with("line", number + 1)
                .advise(
                    "name files below the source, without .. and without a slash at the beginning",
                )),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_or_paths() {
        for (pattern, below, wanted) in [
            ("*.csv", "a/b/c.csv", true),
            ("*.csv", "a.csv/b", false),
            ("b", "a/b", true),
            ("a/*.csv", "a/c.csv", true),
            ("a/*.csv", "b/a/c.csv", false),
            ("**/c.csv", "c.csv", true),
            ("a/**", "a/b/c", true),
            ("/a/b/", "a/b", true),
            (".*", "a/.git", true),
        ] {
            assert_eq!(
                is_match(pattern, below.as_ref()),
                wanted,
                "{pattern} {below}"
            );
        }
    }
}
