//! JSON objects, one a line: where the values lie that some paths name. No tree is made of an object.
//!
//! ```text
//!   paths user.id, n      {"n": 1.50, "user": {"id": "a\n", "x": [1]}}
//!                               └ 1 ┘               └ 0 ┘
//! ```
//!
//! What a value says as text: of a string its characters; of `null`, and of a path that is not there, nothing; of all else what stands
//! there. Of equal names in an object the last counts.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::table_keys::ColumnKey;
use crate::error::{Error, Kind, Result as JobResult};
use gristmill_gnu_keys::Keys;

/// Paths into objects, each the names from the outermost on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPaths {
    root: PathNode,
    /// How many there are.
    count: usize,
}

/// What is asked for of a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PathNode {
    /// The numbers of the paths that end here.
    ends: Vec<usize>,
    /// What is asked for of the values in it.
    inner: Vec<(String, PathNode)>,
}

impl ObjectPaths {
    /// These paths, with dots between names; a backslash takes its meaning from the dot behind it.
    ///
    /// ```
    /// use gristmill_base::record::objects::{ObjectPaths, text_of};
    /// let paths = ObjectPaths::new(["user.id", "n", r"a\.b", "user"]);
    /// let line = br#"{"n": 1.50, "user": {"id": "x\n", "y": [1]}, "a.b": null}"#;
    /// let mut fields = Vec::new();
    /// paths.find(line, &mut fields).unwrap();
    /// let mut room = Vec::new();
    /// assert_eq!(text_of(&line[fields[0].clone()], &mut room), b"x\n");
    /// assert_eq!(text_of(&line[fields[1].clone()], &mut room), b"1.50");
    /// assert_eq!(text_of(&line[fields[2].clone()], &mut room), b"");
    /// assert_eq!(&line[fields[3].clone()], br#"{"id": "x\n", "y": [1]}"#);
    /// assert!(paths.find(b"[1]", &mut fields).is_err());
    /// ```
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let mut all = ObjectPaths::default();
        for path in paths {
            let mut node = &mut all.root;
            for name in names_of(path) {
                let known = node.inner.iter().position(|(known, _)| *known == name);
                let at = known.unwrap_or_else(|| {
                    node.inner.push((name, PathNode::default()));
                    node.inner.len() - 1
                });
                node = &mut node.inner[at].1;
            }
            node.ends.push(all.count);
            all.count += 1;
        }
        all
    }

    /// Finds where the values lie in a line, in the order of the paths; an empty place stands for one that is not there.
    ///
    /// # Errors
    /// The line is no JSON object: what is wrong with it.
    pub fn find(&self, line: &[u8], fields: &mut Vec<Range<usize>>) -> Result<(), String> {
        fields.clear();
        fields.resize(self.count, 0..0);
        let mut from = serde_json::Deserializer::from_slice(line);
        let found = from.deserialize_map(FindValues {
            node: &self.root,
            line,
            fields,
        });
        let found = found.and_then(|()| from.end());
        found.map_err(|error| error.to_string().replace(" at line 1 column", " at byte"))
    }
}

/// How the objects of a job are read, and which of the paths decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectKeys {
    /// What is asked for: a path is a column.
    pub paths: ObjectPaths,
    /// What decides, the first first.
    pub keys: Vec<ColumnKey>,
}

/// Encodes objects, as [`RowCodes`](super::table_keys::RowCodes) does rows.
#[derive(Debug)]
pub struct ObjectCodes<'k> {
    paths: &'k ObjectPaths,
    orders: Vec<(usize, Keys)>,
    fields: Vec<Range<usize>>,
    room: Vec<u8>,
}

impl<'k> ObjectCodes<'k> {
    /// What encodes objects with these keys.
    ///
    /// # Errors
    /// The letters of a key exclude each other.
    ///
    /// ```
    /// use gristmill_base::record::objects::{ObjectCodes, ObjectKeys, ObjectPaths};
    /// use gristmill_base::record::table_keys::ColumnKey;
    /// let key = ColumnKey { column: 0, letters: "N".into() };
    /// let keys = ObjectKeys { paths: ObjectPaths::new(["a.n"]), keys: vec![key] };
    /// let mut codes = ObjectCodes::new(&keys)?;
    /// let (mut nine, mut ten) = (Vec::new(), Vec::new());
    /// assert_eq!(codes.encode(br#"{"a": {"n": "9"}}"#, &mut nine), Ok(()));
    /// assert_eq!(codes.encode(br#"{"a": {"n": 10}}"#, &mut ten), Ok(()));
    /// assert!(nine < ten);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(asked: &'k ObjectKeys) -> JobResult<Self> {
        let order = |key: &ColumnKey| {
            let wrong = |error: gristmill_gnu_keys::Error| {
                Error::new(Kind::BadOption, "read the options", error.to_string())
            };
            Ok((key.column, Keys::of_field(&key.letters).map_err(wrong)?))
        };
        Ok(ObjectCodes {
            paths: &asked.paths,
            orders: asked.keys.iter().map(order).collect::<JobResult<_>>()?,
            fields: Vec::new(),
            room: Vec::new(),
        })
    }

    /// Appends the code of a line.
    ///
    /// # Errors
    /// It is no JSON object.
    pub fn encode(&mut self, line: &[u8], code: &mut Vec<u8>) -> Result<(), String> {
        self.paths.find(line, &mut self.fields)?;
        for (column, order) in &self.orders {
            let field = self.fields.get(*column).cloned().unwrap_or_default();
            let field = line.get(field).unwrap_or_default();
            order.encode(text_of(field, &mut self.room), code);
        }
        Ok(())
    }

    /// Where the values lie of the line that was encoded last.
    pub fn fields(&self) -> &[Range<usize>] {
        &self.fields
    }
}

/// The names of a path.
fn names_of(path: &str) -> Vec<String> {
    let (mut names, mut name, mut chars) = (Vec::new(), String::new(), path.chars().peekable());
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.peek() == Some(&'.') => name.extend(chars.next()),
            '.' => names.push(std::mem::take(&mut name)),
            _ => name.push(char),
        }
    }
    names.push(name);
    names
}

/// Finds the values of an object.
struct FindValues<'a> {
    node: &'a PathNode,
    /// The line that the object lies in.
    line: &'a [u8],
    fields: &'a mut Vec<Range<usize>>,
}

impl<'de> Visitor<'de> for FindValues<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(known) = map.next_key_seed(NameSeed(self.node))? {
            let Some(node) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value::<&RawValue>()?.get();
            let begin = value.as_ptr().addr() - self.line.as_ptr().addr();
            for end in &node.ends {
                if let Some(field) = self.fields.get_mut(*end) {
                    *field = begin..begin + value.len();
                }
            }
            if !node.inner.is_empty() && value.starts_with('{') {
                let mut inner = serde_json::Deserializer::from_str(value);
                let values = FindValues {
                    node,
                    line: self.line,
                    fields: self.fields,
                };
                let found = inner.deserialize_map(values);
                found.map_err(serde::de::Error::custom)?;
            }
        }
        Ok(())
    }
}

/// Finds what is asked for of a name.
struct NameSeed<'a>(&'a PathNode);

impl<'a, 'de> DeserializeSeed<'de> for NameSeed<'a> {
    type Value = Option<&'a PathNode>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for NameSeed<'a> {
    type Value = Option<&'a PathNode>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let found = self.0.inner.iter().find(|(known, _)| known == name);
        Ok(found.map(|(_, node)| node))
    }
}

/// The members of an object: their names, and where the values lie in the line. Of equal names the last counts.
///
/// # Errors
/// The line is no JSON object: what is wrong with it.
///
/// ```
/// use gristmill_base::record::objects::members;
/// let line = br#"{"a": [1, 2], "b\n": null}"#;
/// let found = members(line).unwrap();
/// assert_eq!((found[0].0.as_str(), &line[found[0].1.clone()]), ("a", &b"[1, 2]"[..]));
/// assert_eq!(found[1].0, "b\n");
/// assert_eq!(members(br#"{"a":1,"b":2,"a":3}"#).unwrap()[1], ("a".to_owned(), 17..18));
/// ```
pub fn members(line: &[u8]) -> Result<Vec<(String, Range<usize>)>, String> {
    let mut from = serde_json::Deserializer::from_slice(line);
    let found = from.deserialize_map(FindMembers(line));
    let found = found.and_then(|found| from.end().map(|()| found));
    let mut found = found.map_err(|error| error.to_string())?;
    let different: HashSet<&str> = found.iter().map(|(name, _)| &**name).collect();
    if different.len() < found.len() {
        let mut seen = HashSet::new();
        found.reverse();
        found.retain(|(name, _)| seen.insert(name.clone()));
        found.reverse();
    }
    Ok(found)
}

/// Finds the members of the object in a line.
struct FindMembers<'a>(&'a [u8]);

impl<'de> Visitor<'de> for FindMembers<'_> {
    type Value = Vec<(String, Range<usize>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            let value = value.get();
            let begin = value.as_ptr().addr() - self.0.as_ptr().addr();
            found.push((name, begin..begin + value.len()));
        }
        Ok(found)
    }
}

/// The name of the member that a path names; `None` of one within another.
///
/// ```
/// use gristmill_base::record::objects::member_of;
/// assert_eq!(member_of(r"a\.b"), Some("a.b".to_owned()));
/// assert_eq!(member_of("a.b"), None);
/// ```
pub fn member_of(path: &str) -> Option<String> {
    let mut names = names_of(path);
    let name = names.pop();
    name.filter(|_| names.is_empty())
}

/// Appends a name as JSON.
///
/// ```
/// use gristmill_base::record::objects::write_name;
/// let mut out = Vec::new();
/// write_name("a\nb", &mut out);
/// assert_eq!(out, br#""a\nb""#);
/// ```
pub fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(serde_json::Value::from(name).to_string().as_bytes());
}

/// Appends what says this text as a value: a number where it is one, else a string; where it is empty, `null`.
///
/// ```
/// use gristmill_base::record::objects::write_value;
/// let mut out = Vec::new();
/// for text in ["-1.50", "007", "a \"b\"", ""] {
///     write_value(text.as_bytes(), &mut out);
///     out.push(b' ');
/// }
/// assert_eq!(out, br#"-1.50 "007" "a \"b\"" null "#);
/// ```
pub fn write_value(text: &[u8], out: &mut Vec<u8>) {
    let is_number = || {
        let found = serde_json::from_slice::<&RawValue>(text);
        let begins = |first: &u8| *first == b'-' || first.is_ascii_digit();
        text.first().is_some_and(begins) && found.is_ok_and(|found| found.get().len() == text.len())
    };
    match text {
        [] => out.extend_from_slice(b"null"),
        number if is_number() => out.extend_from_slice(number),
        text => {
            write_name(&String::from_utf8_lossy(text), out);
        }
    }
}

/// What a value says, put together in `room` where it does not lie in one piece.
pub fn text_of<'a>(value: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(inside) = value.strip_prefix(b"\"") else {
        return if value == b"null" { b"" } else { value };
    };
    let inside = inside.strip_suffix(b"\"").unwrap_or(inside);
    if memchr::memchr(b'\\', inside).is_none() {
        return inside;
    }
    match serde_json::from_slice::<String>(value) {
        Ok(text) => {
            *room = text.into_bytes();
            room
        }
        Err(_) => inside, // half of a pair of surrogates
    }
}
