//! The inputs that the command line names: files, and the files in folders and in the folders below, in the order of their
//! names. A folder is listed when its turn comes.

use std::collections::VecDeque;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use gristmill_engine::split::is_hidden;
use gristmill_engine::split::pattern;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{FileKind, Stat};
use gristmill_engine::{Error, Kind, Result};
use gristmill_grep::{Data, InputError, SearchInput};

use super::open::{self, Identity};

/// A longer pattern is cut in errors.
const SHOWN_CHARS: usize = 100;

/// Which files in folders are searched.
pub struct Globs {
    /// Patterns, each with whether it passes files over. The last that matches decides.
    globs: Vec<(GlobMatcher, bool)>,
    /// Those of --include and --exclude, likewise. They also hold for files that are named.
    files: Vec<(GlobMatcher, bool)>,
    /// Patterns of folders that are passed over.
    folders: Vec<GlobMatcher>,
    hidden: bool,
}

/// Patterns as given.
pub struct GlobsGiven<'g> {
    /// Of names in folders; `!` before one passes files over.
    pub globs: &'g [String],
    /// Of files, each with whether it passes them over.
    pub files: &'g [(String, bool)],
    /// Of folders that are passed over.
    pub folders: &'g [String],
    /// Names that begin with `.` or `_` are searched, too.
    pub hidden: bool,
}

impl Globs {
    /// Patterns of names, or of paths below a folder where they have a slash; `!` before one passes files over.
    ///
    /// # Errors
    /// A pattern is wrong; the message says where.
    pub fn new(given: &GlobsGiven<'_>) -> Result<Self, String> {
        let signed = |text: &String| match text.strip_prefix('!') {
            Some(rest) => (rest.to_owned(), true),
            None => (text.clone(), false),
        };
        let globs = given.globs.iter().map(|text| {
            let (glob, passes) = signed(text);
            let is_path = glob.contains('/');
            let name = if is_path {
                glob.trim_start_matches('/')
            } else {
                &glob
            };
            // An option of the command line, and an argument of `gm.grep`: it is called what both call it.
            Ok((built("the glob", text, name, !is_path)?, passes))
        });
        let files = given.files.iter().map(|(glob, passes)| {
            let option = if *passes { "--exclude" } else { "--include" };
            Ok((built(option, glob, glob, true)?, *passes))
        });
        let folders = given.folders.iter();
        let folders = folders.map(|glob| built("--exclude-dir", glob, glob, true));
        Ok(Globs {
            globs: globs.collect::<Result<_, String>>()?,
            files: files.collect::<Result<_, String>>()?,
            folders: folders.collect::<Result<_, String>>()?,
            hidden: given.hidden,
        })
    }

    /// Whether a file is searched that was named.
    fn take_named(&self, name: &Path) -> bool {
        taken(&self.files, name)
    }

    /// Whether a folder is searched. Only its name counts, not those of the folders above.
    fn take_folder(&self, name: &Path) -> bool {
        !self.folders.iter().any(|glob| glob.is_match(name))
    }

    fn take_file(&self, below: &Path) -> bool {
        let matching = self
            .globs
            .iter()
            .rev()
            .find(|(glob, _)| glob.is_match(below));
        let is_taken = match matching {
            Some((_, passes)) => !passes,
            None => self.globs.iter().all(|(_, passes)| *passes),
        };
        is_taken
            && below
                .file_name()
                .is_none_or(|name| taken(&self.files, name.as_ref()))
    }
}

/// A compiled pattern. With `anywhere` it matches in any folder.
fn built(option: &str, text: &str, glob: &str, anywhere: bool) -> Result<GlobMatcher, String> {
    let glob = format!("{}{glob}", if anywhere { "**/" } else { "" });
    let built = GlobBuilder::new(&glob).literal_separator(true).build();
    let built = built.map_err(|error| {
        let shown: String = text.chars().take(SHOWN_CHARS).collect();
        let what = error.kind();
        format!("cannot read {option} {shown}: {what}. What to do: put \\ before [, {{ or \\ that stands for itself.")
    })?;
    Ok(built.compile_matcher())
}

/// GNU grep's rule: the last pattern that matches decides, and where none does, the opposite of the first.
fn taken(globs: &[(GlobMatcher, bool)], name: &Path) -> bool {
    match globs.iter().rev().find(|(glob, _)| glob.is_match(name)) {
        Some((_, passes)) => !passes,
        None => globs.first().is_none_or(|(_, passes)| *passes),
    }
}

/// Inputs, one after the other.
pub struct Inputs {
    stores: Arc<Stores>,
    globs: Globs,
    /// An empty name is the current folder: its files have no folder before their names.
    named: VecDeque<PathBuf>,
    /// What is still to come of the open folders; the last entry is the next.
    open: Vec<WalkEntry>,
    /// Whether names stand before lines.
    are_named: bool,
    /// The file that is written.
    output: Option<Identity>,
    /// The name of standard input.
    label: Vec<u8>,
}

/// Something in a folder, or named.
struct WalkEntry {
    path: Location,
    /// Its name, as it is shown.
    name: PathBuf,
    /// Its path below the folder that was named; empty if it was named itself.
    below: PathBuf,
    stat: Option<Stat>,
}

impl Inputs {
    pub fn new(
        stores: Arc<Stores>,
        named: Vec<PathBuf>,
        globs: Globs,
        output: Option<Identity>,
        label: Vec<u8>,
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
            label,
        }
    }

    /// Whether there may be several files.
    pub fn are_named(&self) -> bool {
        self.are_named
    }

    /// The next entry, or an error with the name of its input.
    fn next_entry(&mut self) -> Option<std::result::Result<WalkEntry, (PathBuf, Error)>> {
        if let Some(entry) = self.open.pop() {
            return Some(Ok(entry));
        }
        let name = self.named.pop_front()?;
        match pattern::found(&self.stores, &location_of(&name)) {
            Err(error) => Some(Err((name, error))),
            Ok(found) => {
                let is_one = found.len() == 1;
                let entries = found.into_iter().map(|found| WalkEntry {
                    name: if is_one {
                        name.clone()
                    } else {
                        found.path.as_typed().into()
                    },
                    path: found.path,
                    below: PathBuf::new(),
                    stat: found.stat,
                });
                let entries: Vec<WalkEntry> = entries.collect();
                self.open.extend(entries.into_iter().rev());
                self.next_entry()
            }
        }
    }

    /// Puts the content of a folder before all that is to come.
    fn list(&mut self, folder: &WalkEntry) -> Result<()> {
        let mut entries = Vec::new();
        self.stores.list_each(&folder.path, |path, stat| {
            let Some(name) = path.name() else {
                return Ok(());
            };
            if self.globs.hidden || !is_hidden(path.path()) {
                entries.push(WalkEntry {
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
    fn kind(&self, entry: &WalkEntry) -> Result<Option<FileKind>> {
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

    fn input(&self, entry: WalkEntry) -> SearchInput {
        let (stores, output) = (Arc::clone(&self.stores), self.output);
        SearchInput {
            name: entry.name.as_os_str().as_bytes().to_vec(),
            open: Box::new(move || {
                open::at(&stores, &entry.path, entry.stat, output).map_err(|error| trouble(&error))
            }),
        }
    }
}

fn is_several(stores: &Stores, name: &Path) -> bool {
    let Ok(found) = pattern::found(stores, &location_of(name)) else {
        return false;
    };
    let is_folder = |found: &pattern::PatternMatch| {
        let stat = found
            .stat
            .map_or_else(|| stores.stat(&found.path), |stat| Ok(Some(stat)));
        matches!(stat, Ok(Some(stat)) if stat.kind == FileKind::Directory)
    };
    found.len() > 1 || found.iter().any(is_folder)
}

impl Iterator for Inputs {
    type Item = SearchInput;

    fn next(&mut self) -> Option<SearchInput> {
        loop {
            if self.open.is_empty()
                && self
                    .named
                    .front()
                    .is_some_and(|name| name.as_os_str() == "-")
            {
                self.named.pop_front();
                return Some(failing_or(
                    self.label.clone(),
                    open::standard_input(self.output),
                ));
            }
            let entry = match self.next_entry()? {
                Ok(entry) => entry,
                Err((name, error)) => return Some(failing_or(bytes_of(&name), Err(error))),
            };
            let is_named = entry.below.as_os_str().is_empty();
            let listed = match self.kind(&entry) {
                Ok(Some(FileKind::Directory)) => {
                    let name = match entry.below.file_name() {
                        Some(name) => name.as_ref(),
                        None => entry.name.components().as_path(), // without a slash at its end
                    };
                    if self.globs.take_folder(name) {
                        self.list(&entry)
                    } else {
                        continue;
                    }
                }
                Ok(None) => continue,
                Ok(Some(_)) => {
                    let is_taken = if is_named {
                        self.globs.take_named(&entry.name)
                    } else {
                        self.globs.take_file(&entry.below)
                    };
                    if is_taken || (is_named && !open::can_be_read(&self.stores, &entry.path)) {
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
fn failing_or(name: Vec<u8>, data: Result<Data>) -> SearchInput {
    let data = data.map_err(|error| trouble(&error));
    SearchInput {
        name,
        open: Box::new(move || data),
    }
}

/// What is wrong with an input, for the search.
fn trouble(error: &Error) -> InputError {
    let kind = match error.kind() {
        Kind::NotFound => Some(io::ErrorKind::NotFound),
        Kind::Permission => Some(io::ErrorKind::PermissionDenied),
        _ => None,
    };
    InputError::Unread(kind, error.to_string())
}
