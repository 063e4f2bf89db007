//! `~/.aws/credentials` and `~/.aws/config`: what they say of a profile.
//!
//! ```text
//!   [default]             the profile that is taken where none is named
//!   [name]                another one in `credentials`; in `config` it is [profile name]
//!   region = eu-west-1    what is indented belongs to the line before, and is left out
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use gristmill_base::error::{Error, Result};

/// What the files say of a profile. It holds secrets, and so has no `Debug`.
#[derive(Default)]
pub struct Profile {
    values: BTreeMap<String, String>,
}

impl Profile {
    pub fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }
}

/// The profile of this name in files that may be missing: what the first file says counts.
pub fn read_profile(files: [Option<&Path>; 2], name: &str) -> Result<Option<Profile>> {
    let mut found = None;
    for path in files.into_iter().flatten() {
        match fs::read_to_string(path) {
            Ok(text) => add(&text, name, &mut found),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::from_io("read the credentials", path, &error)),
        }
    }
    Ok(found)
}

fn add(text: &str, name: &str, found: &mut Option<Profile>) {
    let mut is_in_it = false;
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with(['#', ';']);
        if is_comment || line.starts_with([' ', '\t']) {
            continue;
        }
        let section = line.trim().strip_prefix('[');
        if let Some(section) = section.and_then(|rest| rest.split(']').next()) {
            let section = section.trim();
            let of_config = section.strip_prefix("profile").map(str::trim);
            is_in_it = section == name || of_config == Some(name);
            if is_in_it {
                found.get_or_insert_default();
            }
        } else if let (true, Some(profile), Some((key, value))) =
            (is_in_it, found.as_mut(), line.split_once('='))
        {
            let key = key.trim().to_ascii_lowercase();
            let value = value.trim().to_owned();
            profile.values.entry(key).or_insert(value);
        }
    }
}
