//! What the command line names, as inputs of the search: files, and those in folders and in the folders below, in the
//! order of their names. A folder is listed when it is its turn.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use gristmill_engine::split::is_hidden;
use gristmill_engine::split::pattern;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{FileKind, Stat};
use gristmill_engine::{Error, Result};
use gristmill_grep::{Data, Input};

use super::open::{self, Identity};

/// The name of standard input.
const STANDARD_INPUT: &[u8] = b"(standard input)";

/// Which files in folders are searched.
pub struct Globs {
    /// Patterns, with whether they pass files over; the last that matches decides.
    globs: Vec<(GlobMatcher, bool)>,
    hidden: bool,
}

impl Globs {
    /// Patterns of names, or of paths below a folder where they have a slash; `!` before one passes files over.
    ///
    /// # Errors
    /// A pattern is wrong; the message says where.
    pub fn new(globs: &[String], hidden: bool) -> Result<Self, String> {
        let globs = globs.iter().map(|text| {
            let (glob, passes) = match text.strip_prefix('!') {
                Some(rest) => (rest, true),
                None => (text.as_str(), false),
            };
            let glob = if glob.contains('/') {
                glob.trim_start_matches('/').to_owned()
            } else {
                format!("**/{glob}")
            };
            let built = GlobBuilder::new(&glob).literal_separator(true).build();
            let built =
                built.map_err(|error| format!("cannot read --glob {text}: {}", error.kind()))?;
            Ok((built.compile_matcher(), passes))
        });
        Ok(Globs {
            globs: globs.collect::<Result<_, String>>()?,
            hidden,
        })
    }

    fn take_file(&self, below: &Path) -> bool {
        let matching = self
            .globs
            .iter()
            .rev()
            .find(|(glob, _)| glob.is_match(below));
        match matching {
            Some((_, passes)) => !passes,
            None => self.globs.iter().all(|(_, passes)| *passes),
        }
    }
}

/// Inputs, one after the other.
pub struct Inputs {
    stores: Arc<Stores>,
    globs: Globs,
    /// Empty: the current folder, of which no name stands before those of its files.
    named: VecDeque<PathBuf>,
    /// What is still to come of the folders that are open: the next is the last.
    open: Vec<Entry>,
    /// Whether files have names before their lines.
    are_named: bool,
    /// The file that is written.
    output: Option<Identity>,
}

/// Something in a folder, or named.
struct Entry {
    path: Location,
    /// Its name, as it is shown.
    name: PathBuf,
    /// Where it is below the folder that was named; nothing where it was named itself.
    below: PathBuf,
    stat: Option<Stat>,
}

impl Inputs {
    pub fn new(
        stores: Arc<Stores>,
        named: Vec<PathBuf>,
        globs: Globs,
        output: Option<Identity>,
    ) -> Self {
        let are_named = match &named[..] {
            [one] => one.as_os_str() != "-" && is_several(&stores, one),
            _ => true,
        };
        Inputs {
            stores,
            globs,
            named: named.into(),
            open: Vec::new(),
            are_named,
            output,
        }
    }

    /// Whether there may be several files.
    pub fn are_named(&self) -> bool {
        self.are_named
    }

    /// The next entry; an error has the name that it is of.
    fn next_entry(&mut self) -> Option<std::result::Result<Entry, (PathBuf, Error)>> {
        if let Some(entry) = self.open.pop() {
            return Some(Ok(entry));
        }
        let name = self.named.pop_front()?;
        match pattern::found(&self.stores, &location_of(&name)) {
            Err(error) => Some(Err((name, error))),
            Ok(found) => {
                let is_one = found.len() == 1;
                let entries = found.into_iter().map(|found| Entry {
                    name: if is_one {
                        name.clone()
                    } else {
                        found.path.as_typed().into()
                    },
                    path: found.path,
                    below: PathBuf::new(),
                    stat: found.stat,
                });
                let entries: Vec<Entry> = entries.collect();
                self.open.extend(entries.into_iter().rev());
                self.next_entry()
            }
        }
    }

    /// Puts what is in a folder before all that is to come.
    fn list(&mut self, folder: &Entry) -> Result<()> {
        let mut entries = Vec::new();
        self.stores.list_each(&folder.path, |path, stat| {
            let Some(name) = path.name() else {
                return Ok(());
            };
            if self.globs.hidden || !is_hidden(path.path()) {
                entries.push(Entry {
                    name: folder.name.join(name),
                    below: folder.below.join(name),
                    path,
                    stat,
                });
            }
            Ok(())
        })?;
        entries.sort_by(|a, b| b.path.cmp(&a.path));
        entries.dedup_by(|after, before| after.path == before.path);
        self.open.extend(entries);
        Ok(())
    }

    /// What an entry is; `None` where it is passed over.
    fn kind(&self, entry: &Entry) -> Result<Option<FileKind>> {
        let is_named = entry.below.as_os_str().is_empty();
        if let (false, Some(local)) = (is_named, entry.path.local()) {
            // Links in folders are not followed: they may lead back.
            let seen = local.symlink_metadata();
            let seen = seen.map_err(|error| Error::from_io("read the input", local, &error))?;
            let kind = seen.file_type();
            return Ok(match () {
                () if kind.is_dir() => Some(FileKind::Directory),
                () if kind.is_file() => Some(FileKind::File),
                () => None,
            });
        }
        let stat = entry
            .stat
            .map_or_else(|| self.stores.stat(&entry.path), |stat| Ok(Some(stat)))?;
        Ok(stat.map_or(Some(FileKind::File), |stat| Some(stat.kind)))
    }

    fn input(&self, entry: Entry) -> Input {
        let (stores, output) = (Arc::clone(&self.stores), self.output);
        Input {
            name: entry.name.as_os_str().as_bytes().to_vec(),
            open: Box::new(move || {
                open::at(&stores, &entry.path, entry.stat, output)
                    .map_err(|error| error.to_string())
            }),
        }
    }
}

fn is_several(stores: &Stores, name: &Path) -> bool {
    let Ok(found) = pattern::found(stores, &location_of(name)) else {
        return false;
    };
    let is_folder = |found: &pattern::Found| {
        let stat = found
            .stat
            .map_or_else(|| stores.stat(&found.path), |stat| Ok(Some(stat)));
        matches!(stat, Ok(Some(stat)) if stat.kind == FileKind::Directory)
    };
    found.len() > 1 || found.iter().any(is_folder)
}

impl Iterator for Inputs {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        loop {
            if self.open.is_empty()
                && self
                    .named
                    .front()
                    .is_some_and(|name| name.as_os_str() == "-")
            {
                self.named.pop_front();
                return Some(failing_or(
                    STANDARD_INPUT.into(),
                    open::standard_input(self.output),
                ));
            }
            let entry = match self.next_entry()? {
                Ok(entry) => entry,
                Err((name, error)) => return Some(failing_or(bytes_of(&name), Err(error))),
            };
            let listed = match self.kind(&entry) {
                Ok(Some(FileKind::Directory)) => self.list(&entry),
                Ok(None) => continue,
                Ok(Some(_)) => {
                    let is_named = entry.below.as_os_str().is_empty();
                    if is_named || self.globs.take_file(&entry.below) {
                        return Some(self.input(entry));
                    }
                    continue;
                }
                Err(error) => Err(error),
            };
            if let Err(error) = listed {
                return Some(failing_or(bytes_of(&entry.name), Err(error)));
            }
        }
    }
}

fn location_of(name: &Path) -> Location {
    let is_here = name.as_os_str().is_empty();
    Location::from(if is_here {
        PathBuf::from(".")
    } else {
        name.to_owned()
    })
}

fn bytes_of(name: &Path) -> Vec<u8> {
    name.as_os_str().as_bytes().to_vec()
}

/// An input that is open, or says what is wrong with it.
fn failing_or(name: Vec<u8>, data: Result<Data>) -> Input {
    let data = data.map_err(|error| error.to_string());
    Input {
        name,
        open: Box::new(move || data),
    }
}
