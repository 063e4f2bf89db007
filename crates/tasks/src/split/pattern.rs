//! Patterns of names in a store: `s3://bucket/2026-*/part-[0-9]`.
//!
//! ```text
//!   *  ?  [a-c]  [!a]  \x     within one part of a name: it begins at a slash and ends at the next
//!   {one,two}                 either; may hold slashes
//!   **                        as a whole part: directories of any depth, or none
//! ```
//!
//! Paths of this machine are not expanded here: shells do that, and Python's formats and Hadoop Streaming, each by its own
//! rules. The rules that must hold: a name that is there is meant literally, whatever its characters; wildcards match no
//! name that begins with `_` or `.`, unless the pattern's part begins so, too.

use std::collections::BTreeMap;

use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::kinds::has_patterns;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_storage::{FileKind, Stat};

/// The locations that a name stands for: itself, or what it matches, in the order of the names.
///
/// # Errors
/// A pattern matches nothing, or the store says why not.
///
/// ```
/// use gristmill_storage::{local::Local, location::Location, stores::Stores};
/// use gristmill_tasks::split::pattern::named;
/// let folder = tempfile::tempdir()?;
/// for name in ["a1", "a2", "b1", "_a3"] {
///     std::fs::write(folder.path().join(name), "x")?;
/// }
/// let stores = Stores::new(std::sync::Arc::new(Local));
/// let top = Location::from(&*format!("objects://{}", folder.path().display()));
/// assert_eq!(named(&stores, &top.join("?[1-3]"))?, [top.join("a1"), top.join("a2"), top.join("b1")]);
/// assert_eq!(named(&stores, &top.join("{b,_a}*"))?, [top.join("_a3"), top.join("b1")]);
/// assert!(named(&stores, &top.join("c*")).unwrap_err().to_string().contains("the pattern matches nothing"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn named(stores: &Stores, name: &Location) -> Result<Vec<Location>> {
    let found = found(stores, name)?;
    Ok(found.into_iter().map(|found| found.path).collect())
}

/// What a name stands for.
#[derive(Debug)]
pub struct PatternMatch {
    /// Where it is.
    pub path: Location,
    /// Its state, where that was seen on the way.
    pub stat: Option<Stat>,
}

/// [`named`], with what was seen on the way.
///
/// # Errors
/// A pattern matches nothing, or the store says why not.
pub fn found(stores: &Stores, name: &Location) -> Result<Vec<PatternMatch>> {
    let found = look_for(stores, name)?;
    if found.is_empty() {
        let message = "the pattern matches nothing (names that begin with _ or . do not count)";
        return Err(Error::new(Kind::NotFound, "find the input", message)
            .with_path(name.as_typed())
            .advise("check it, and that the data are there"));
    }
    Ok(found)
}

/// The same, where nothing is no error: nothing is found then.
///
/// # Errors
/// The store says why not.
pub fn matching(stores: &Stores, name: &Location) -> Result<Vec<PatternMatch>> {
    look_for(stores, name)
}

fn look_for(stores: &Stores, name: &Location) -> Result<Vec<PatternMatch>> {
    let as_it_is = |stat| {
        let path = name.clone();
        Ok(vec![PatternMatch { path, stat }])
    };
    if !is_pattern(name) {
        return as_it_is(None);
    }
    if let Some(stat) = stores.stat(name)? {
        return as_it_is(Some(stat));
    }
    let mut found = BTreeMap::new();
    for text in alternatives(&name.path().to_string_lossy()) {
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        walk(stores, (&name.root(), None), &parts, &mut found)?;
    }
    let found = found.into_iter();
    Ok(found
        .map(|(path, stat)| PatternMatch { path, stat })
        .collect())
}

/// Whether a location of a store has signs of a pattern.
pub(super) fn is_pattern(name: &Location) -> bool {
    has_patterns(name) && has_signs(&name.path().to_string_lossy())
}

fn has_signs(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '\\'])
}

/// Follows the parts of a pattern from `at` on.
fn walk(
    stores: &Stores,
    (at, stat): (&Location, Option<Stat>),
    parts: &[&str],
    found: &mut BTreeMap<Location, Option<Stat>>,
) -> Result<()> {
    let Some((&first, rest)) = parts.split_first() else {
        found.insert(at.clone(), stat);
        return Ok(());
    };
    if !has_signs(first) {
        let next = at.join(first);
        let stat = if rest.is_empty() {
            stores.stat(&next)?
        } else {
            None
        };
        if rest.is_empty() && stat.is_none() {
            return Ok(());
        }
        return walk(stores, (&next, stat), rest, found);
    }
    let at_any_depth = first == "**";
    if at_any_depth && !rest.is_empty() {
        walk(stores, (at, stat), rest, found)?;
    }
    for (child, stat) in children(stores, at, first)? {
        let below_a_file = stat.is_some_and(|stat| stat.kind == FileKind::File);
        if at_any_depth {
            let before = found.len();
            if !below_a_file {
                walk(stores, (&child, stat), parts, found)?;
            }
            if rest.is_empty() && found.len() == before {
                found.insert(child, stat); // nothing is below it: an object
            }
        } else if rest.is_empty() || !below_a_file {
            walk(stores, (&child, stat), rest, found)?;
        }
    }
    Ok(())
}

/// What lies right below `at` and matches a part of a pattern. A name that is a file and the beginning of others, too, is
/// neither for sure.
fn children(
    stores: &Stores,
    at: &Location,
    pattern: &str,
) -> Result<BTreeMap<Location, Option<Stat>>> {
    let mut children = BTreeMap::new();
    stores.list_each(at, |child, stat| {
        let is_child = is_match(pattern, &child.name().unwrap_or_default().to_string_lossy());
        if is_child && children.contains_key(&child) {
            children.insert(child, None);
        } else if is_child {
            children.insert(child, stat);
        }
        Ok(())
    })?;
    Ok(children)
}

/// The texts that a text with `{a,b}` stands for.
fn alternatives(text: &str) -> Vec<String> {
    let Some((open, close, commas)) = first_group(text) else {
        return vec![text.to_owned()];
    };
    let cut = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let starts = std::iter::once(open + 1).chain(commas.iter().map(|comma| comma + 1));
    let ends = commas.iter().copied().chain([close]);
    let one_of = starts.zip(ends).map(|(from, to)| cut(from, to));
    one_of
        .flat_map(|inner| {
            alternatives(&format!(
                "{}{inner}{}",
                cut(0, open),
                cut(close + 1, text.len())
            ))
        })
        .collect()
}

/// Where the first `{...}` begins and ends, and its commas; none in a text without.
fn first_group(text: &str) -> Option<(usize, usize, Vec<usize>)> {
    let (mut depth, mut open, mut commas, mut is_escaped) = (0, 0, Vec::new(), false);
    for (at, letter) in text.bytes().enumerate() {
        match letter {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'{' => {
                depth += 1;
                open = if depth == 1 { at } else { open };
            }
            b',' if depth == 1 => commas.push(at),
            b'}' if depth == 1 => return Some((open, at, commas)),
            b'}' if depth > 1 => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a part of a pattern matches a name.
fn is_match(pattern: &str, name: &str) -> bool {
    let is_hidden = name.starts_with(['_', '.']) && pattern.chars().next() != name.chars().next();
    !is_hidden && matches(pattern, name)
}

/// Whether a part of a pattern matches a name, which may begin with `_` or `.`.
///
/// ```
/// use gristmill_tasks::split::pattern::matches;
/// assert!(matches("*.[jt]mp", ".a.tmp") && !matches("?", "ab"));
/// ```
// Of a star, the shortest stretch is tried first; what follows the last star decides, so that only that is tried again.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut of_name, mut star) = (0, 0, None);
    while let Some(&letter) = name.get(of_name) {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, of_name));
            at += 1;
            continue;
        }
        if let Some(next) = pattern.get(at..).and_then(|rest| one(rest, letter)) {
            (at, of_name) = (at + next, of_name + 1);
            continue;
        }
        let Some((after, taken)) = star else {
            return false;
        };
        star = Some((after, taken + 1));
        (at, of_name) = (after, taken + 1);
    }
    pattern
        .get(at..)
        .is_some_and(|rest| rest.iter().all(|letter| *letter == '*'))
}

/// How much of the beginning of a pattern matches a letter, if it does.
fn one(pattern: &[char], letter: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == letter).then_some(2),
        ['[', inside @ ..] => match class_end(inside) {
            Some(end) => is_in_class(inside.get(..end)?, letter).then_some(end + 2),
            None => (letter == '[').then_some(1),
        },
        [literal, ..] => (*literal == letter).then_some(1),
        [] => None,
    }
}

/// Where a class ends; a `]` that is its first letter is one of its letters.
fn class_end(inside: &[char]) -> Option<usize> {
    let begin = usize::from(matches!(inside.first(), Some('!' | '^'))) + 1;
    let rest = inside.get(begin..)?;
    Some(begin + rest.iter().position(|letter| *letter == ']')?)
}

fn is_in_class(inside: &[char], letter: char) -> bool {
    let (is_negated, mut left) = match inside {
        ['!' | '^', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let mut is_in = false;
    while let Some((first, rest)) = left.split_first() {
        left = match rest {
            ['-', last, after @ ..] => {
                is_in |= (*first..=*last).contains(&letter);
                after
            }
            _ => {
                is_in |= *first == letter;
                rest
            }
        };
    }
    is_in != is_negated
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::local::Local;
    use proptest::prelude::*;

    #[test]
    fn parts_match_as_in_a_shell() {
        for (pattern, name, wanted) in [
            ("part-*", "part-00000", true),
            ("part-*", "apart-0", false),
            ("*.gz", "a.b.gz", true),
            ("a?c", "abc", true),
            ("[0-9][!0-9]", "1a", true),
            ("[^a]", "a", false),
            ("[]a]", "]", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("*", "_SUCCESS", false),
            ("_*", "_SUCCESS", true),
            ("?hidden", ".hidden", false),
            ("ü*", "über", true),
        ] {
            assert_eq!(is_match(pattern, name), wanted, "{pattern} {name}");
        }
        assert_eq!(
            alternatives("a{b,c{d,e}}f"),
            ["abf", "acdf", "acef"].map(str::to_owned)
        );
        assert_eq!(alternatives("a{b"), ["a{b"]);
    }

    /// As the definition says: each star is tried with every length.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], _) => name.is_empty(),
            (['*', rest @ ..], _) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            (['?', rest @ ..], [_, after @ ..]) => naive(rest, after),
            ([first, rest @ ..], [letter, after @ ..]) => first == letter && naive(rest, after),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn stars_match_what_they_may(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), naive(&letters(&pattern), &letters(&name)));
        }
    }

    #[test]
    fn names_are_found_at_any_depth_and_literally() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "a/x.txt",
            "a/b/y.txt",
            "a/b/_SUCCESS",
            "c/z.txt",
            "c/[z].txt",
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let stores = Stores::new(std::sync::Arc::new(Local));
        let top = format!("objects://{}", folder.path().display());
        let found = |pattern: &str| {
            let found = matching(&stores, &format!("{top}/{pattern}").as_str().into()).unwrap();
            let names = found.iter().map(|found| found.path.to_string());
            names
                .map(|name| name.strip_prefix(&format!("{top}/")).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(found("**/*.txt").len(), 4);
        assert_eq!(found("a/**"), ["a/b/y.txt", "a/x.txt"]);
        assert_eq!(found("{a/b,c}/*"), ["a/b/y.txt", "c/[z].txt", "c/z.txt"]);
        assert_eq!(found("c/[z].txt"), ["c/[z].txt"]);
        assert_eq!(found("c/[y-z].txt"), ["c/z.txt"]);
        assert_eq!(found("nothing/*"), [""; 0]);
    }
}
