//! JSON objects that are joined: their members, one behind another, in one object.
//!
//! ```text
//!   {"id":1,"city":"Rome"}  {"id":1,"city":"IT"}  ──▶  {"id":1,"city":"Rome","city_right":"IT"}
//! ```
//!
//! Values stand as they are; a row without others is not changed at all, but that its key has the name of the left's. Of the
//! others the members of the key are left out, where a path names them whole, and a name that is there already gets what the
//! header of tables would get.

use std::collections::HashSet;

use super::names::suffix_of;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::objects::{member_of, members, write_name};

/// How objects are joined.
#[derive(Debug)]
pub(super) struct JoinObjects {
    /// The members of the key, of each input; `None` where a path leads into one.
    keys: Vec<Vec<Option<String>>>,
}

impl JoinObjects {
    /// Of inputs whose keys are these paths: of each key those of all inputs.
    pub(super) fn new(by: &[Vec<Vec<u8>>], inputs: usize) -> Self {
        let member = |path: &Vec<u8>| member_of(&String::from_utf8_lossy(path));
        let of_input = |input| {
            let paths = by.iter().filter_map(|paths| paths.get(input));
            paths.map(member).collect()
        };
        JoinObjects {
            keys: (0..inputs).map(of_input).collect(),
        }
    }

    /// Writes the object that some rows make, from that of input `first` on; of an input without one the row is empty.
    ///
    /// # Errors
    /// A row is no object: a defect of Gristmill.
    pub(super) fn write<'r>(
        &self,
        first: usize,
        row_of: impl Fn(usize) -> &'r [u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let others = (first + 1..self.keys.len())
            .map(|input| (input, row_of(input)))
            .filter(|(_, row)| !row.is_empty());
        let mut others = others.peekable();
        let renames = self.keys.get(first) != self.keys.first();
        if others.peek().is_none() && !renames {
            out.extend_from_slice(row_of(first).trim_ascii());
            return Ok(());
        }
        let mut names = HashSet::new();
        out.push(b'{');
        let of_first = members_of(row_of(first))?;
        if renames {
            let renamed = |(name, _): &(String, _)| self.name_of_left(first, name);
            names.extend(of_first.iter().filter_map(renamed));
        }
        let suffix = suffix_of(first, self.keys.len());
        for (mut name, value) in of_first {
            if let Some(of_left) = self.name_of_left(first, &name) {
                name = of_left;
            } else {
                while renames && names.contains(&name) {
                    name += &suffix;
                }
            }
            write_member(&name, value, out);
            names.insert(name);
        }
        for (input, row) in others {
            let keys = self.keys.get(input).map_or(&[][..], Vec::as_slice);
            let suffix = suffix_of(input, self.keys.len());
            for (mut name, value) in members_of(row)? {
                if keys.contains(&Some(name.clone())) {
                    continue;
                }
                while names.contains(&name) {
                    name += &suffix;
                }
                write_member(&name, value, out);
                names.insert(name);
            }
        }
        out.push(b'}');
        Ok(())
    }

    /// What a member of the key is called in the left.
    fn name_of_left(&self, input: usize, name: &String) -> Option<String> {
        let keys = self.keys.get(input)?;
        let number = keys.iter().position(|key| key.as_ref() == Some(name))?;
        self.keys.first()?.get(number)?.clone()
    }
}

fn write_member(name: &str, value: &[u8], out: &mut Vec<u8>) {
    if !out.ends_with(b"{") {
        out.push(b',');
    }
    write_name(name, out);
    out.push(b':');
    out.extend_from_slice(value);
}

/// The members of an object that was read before.
fn members_of(row: &[u8]) -> Result<Vec<(String, &[u8])>> {
    let found = members(row).map_err(|why| Error::bug("join objects", why))?;
    let found = found.into_iter();
    Ok(found
        .map(|(name, value)| (name, row.get(value).unwrap_or_default()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(by: &[&[&str]], first: usize, rows: &[&str]) -> String {
        let path = |path: &&str| path.as_bytes().to_vec();
        let by: Vec<Vec<_>> = by
            .iter()
            .map(|paths| paths.iter().map(path).collect())
            .collect();
        let mut out = Vec::new();
        let objects = JoinObjects::new(&by, rows.len());
        let row_of = |input: usize| rows[input].as_bytes();
        objects.write(first, row_of, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn members_stand_behind_one_another() {
        let (left, right) = (
            r#"{"id": 1, "a" : [1, {"b":2}]}"#,
            r#"{"a":"é\n","no":1,"id":3}"#,
        );
        for (by, first, rows, wanted) in [
            (
                &[&["id", "no"][..]][..],
                0,
                &[left, right][..],
                r#"{"id":1,"a":[1, {"b":2}],"a_right":"é\n","id_right":3}"#,
            ),
            (&[&["id", "no"]], 0, &[left, ""], left),
            (
                &[&["id", "no"]],
                1,
                &["", right],
                r#"{"a":"é\n","id":1,"id_right":3}"#,
            ),
            (&[&["id", "id"]], 1, &["", right], right),
            (
                &[&["a.b", "id"]],
                0,
                &[left, right],
                r#"{"id":1,"a":[1, {"b":2}],"a_right":"é\n","no":1}"#,
            ),
            (
                &[&["id", "id", "id"]],
                0,
                &["{}", "", r#"{"x":1}"#],
                r#"{"x":1}"#,
            ),
            (
                &[&["id", "id", "id"]],
                0,
                &[r#"{"x":0}"#, r#"{"x":1}"#, r#"{"x":2}"#],
                r#"{"x":0,"x_2":1,"x_3":2}"#,
            ),
        ] {
            assert_eq!(joined(by, first, rows), wanted);
        }
    }
}
