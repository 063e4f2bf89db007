//! Places where files are renamed: HDFS, and a directory that several machines share. A task stages a whole file, and a
//! committer renames it.
//!
//! ```text
//!   create ─▶ DIR/.gristmill-staging/NAME.ID      written by one attempt, which nobody else has the name of
//!   finish ─▶ Upload (id: the staged name; its one part: length, CRC-32, version) ──report──▶ committer
//!   complete ─▶ rename to DIR/NAME                 at once and whole, in the place of a file of this name
//! ```
//!
//! A whole output that is to be replaced stays until the new one is put together beside it:
//!
//! ```text
//!   DIR, .DIR.gristmill-new with all files ─▶ .DIR.gristmill-old, .DIR.gristmill-new ─▶ .DIR.gristmill-old, DIR ─▶ DIR
//! ```
//!
//! The folder for staged files is its user's alone, where a place knows users: where another one has its name, it is
//! `.gristmill-staging.2`, and so on.
//!
//! Nothing is seen of a file before it is renamed: names that begin with a dot are input of no job. A folder that was made
//! for staged files (`.gristmill-staging-new` is in it) and has nothing else counts as not there, and goes with the last
//! of them. The rules that must hold: only a committer renames; and a file is of the version that its writer closed.
//!
//! Decision: docs/decisions/staged-renames.md.

use std::ffi::{OsStr, OsString};
use std::iter;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::location::Location;
use super::objects::{KeptPart, Object, Upload};
use super::private::chance::by_chance;
use super::{FileKind, OutputStore, PieceStore, Publisher, Stat};
use gristmill_base::error::{Error, Kind, Result};

/// Where staged files lie, beside what they will be: in a folder that was there, and in one that was made for them.
const STAGING: [&str; 2] = [".gristmill-staging", ".gristmill-staging-new"];

/// How many users may have a folder for staged files in one directory.
const STAGING_MAX: usize = 100;

/// What is put together to replace a directory, and what it replaces.
const NEW: &str = "gristmill-new";
const OLD: &str = "gristmill-old";

/// The folders that an output may have in it, the inner one first.
const FOLDERS: [&str; 2] = ["_logs/skip", "_logs"];
/// Their names.
const INNER: [&str; 2] = ["_logs", "skip"];

/// Names that are longer have their CRC in the names of staged files: file systems take 255 bytes.
const NAME_BYTES_MAX: usize = 150;

/// A file or a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEntry {
    /// Whether it is a folder.
    pub is_folder: bool,
    /// What is known of it as a file.
    pub file: Object,
}

/// What a place with renames does. `operation` is what an error says that was being done.
pub trait RenameStore: OutputStore {
    /// What a path leads to.
    fn find(&self, operation: &'static str, path: &Path) -> Result<Option<FoundEntry>>;

    /// All names in a folder; nothing where it is not there, and no name of what is not a folder.
    fn entries(&self, operation: &'static str, folder: &Path) -> Result<Option<Vec<OsString>>>;

    /// Makes a folder, with those above it. One that is there is no error.
    fn make_folder(&self, operation: &'static str, path: &Path) -> Result<()>;

    /// Removes a file, or an empty folder. Nothing there is no error; that a folder is not empty, neither.
    fn remove_one(&self, operation: &'static str, path: &Path) -> Result<()>;

    /// Removes a file, or a folder and all in it. Nothing there is no error.
    fn remove_tree(&self, path: &Path) -> Result<()>;

    /// Renames a file or a folder; where `replaces`, a file in the place of another one.
    fn move_to(
        &self,
        operation: &'static str,
        from: &Path,
        to: &Path,
        replaces: bool,
    ) -> Result<()>;

    /// Whether a directory can be renamed.
    fn can_move(&self, _directory: &Path) -> Result<bool> {
        Ok(true)
    }

    /// Whether a folder is this user's, in a place where others may make one.
    fn is_ours(&self, _folder: &Path) -> Result<bool> {
        Ok(true)
    }

    /// The CRC-32 of a file's bytes, which are read: in places whose versions do not prove them.
    fn crc_of(&self, _path: &Path) -> Result<Option<u32>> {
        Ok(None)
    }

    /// The same place, if several tasks may write one staged file.
    fn piece_store(&self) -> Option<&dyn PieceStore> {
        None
    }

    /// Makes the names in a directory durable, where the place does not do so by itself.
    fn make_names_durable(&self, _directory: &Path) -> Result<()> {
        Ok(())
    }
}

/// Makes the folder for files that are staged to `path`, and gives its name.
fn staging_for(place: &impl RenameStore, path: &Path) -> Result<String> {
    const OPERATION: &str = "create the output";
    let [beside, made] = STAGING;
    let parent = parent_of(path)?;
    // In this order: who makes the parent makes the sign that it did so at once.
    let is_there = place.find(OPERATION, parent.as_typed())?;
    if is_there.as_ref().is_some_and(|found| !found.is_folder) {
        let message = "what should be its directory is a file";
        return Err(Error::new(Kind::BadOption, OPERATION, message)
            .with_path(path)
            .advise("name another output"));
    }
    let has_sign = || has(place, &parent.join(made));
    let is_new = is_there.is_none() || has_sign()?;
    if is_new {
        let made = place.make_folder(OPERATION, parent.join(made).as_typed());
        if made.is_err() && is_there.is_none() {
            // Without its sign nobody would know that it may go.
            let _ = place.remove_one(OPERATION, parent.as_typed());
        }
        return made.map(|()| STAGING[1].to_owned());
    }
    for name in names(beside) {
        let folder = parent.join(&name);
        place.make_folder(OPERATION, folder.as_typed())?;
        if place.is_ours(folder.as_typed())? {
            return Ok(name);
        }
    }
    let message = "the directories for files that are not whole yet belong to other users";
    Err(Error::new(Kind::Permission, OPERATION, message)
        .with_path(parent.join(beside).as_typed())
        .advise("name an output in a directory in which other users make no files"))
}

/// The names that such a folder may have: others than the first where the one before is another user's.
fn names(first: &str) -> impl Iterator<Item = String> + use<'_> {
    let others = (2..=STAGING_MAX).map(move |number| format!("{first}.{number}"));
    iter::once(first.to_owned()).chain(others)
}

/// Whether there is a folder for staged files, and it is this user's.
fn has(place: &impl RenameStore, folder: &Location) -> Result<bool> {
    let found = place.find("look for uploads", folder.as_typed())?;
    Ok(found.is_some() && place.is_ours(folder.as_typed())?)
}

/// The folder of this user's for staged files in a folder, if it is there.
fn staging_in(place: &impl RenameStore, folder: &Location, first: &str) -> Result<Option<String>> {
    for name in names(first) {
        let staging = folder.join(&name);
        if place
            .find("look for uploads", staging.as_typed())?
            .is_none()
        {
            return Ok(None);
        }
        if place.is_ours(staging.as_typed())? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Begins a file that will be `path`: its name below the folder that it will be in, which no other attempt on any machine has.
pub fn stage(place: &impl RenameStore, path: &Path) -> Result<String> {
    let staging = staging_for(place, path)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(format!(
        "{staging}/{}.{:x}-{:x}-{:x}",
        label(path),
        std::process::id(),
        now.unwrap_or_default().as_nanos(),
        by_chance(), // other machines have the same process ids
    ))
}

/// Where what will be `path` is staged.
///
/// # Errors
/// No staged file has such an id: it may come from a history that somebody wrote.
pub fn staged(path: &Path, id: &str) -> Result<Location> {
    match id.split_once('/') {
        Some((staging, name))
            if is_staging(staging.as_ref()) && !name.contains('/') && name != ".." =>
        {
            Ok(parent_of(path)?.join(id))
        }
        _ => Err(Error::new(
            Kind::BadInput,
            "find a staged file",
            "no staged file has such a name",
        )
        .with_path(path)
        .with("name", id)),
    }
}

/// Whether a folder of this name is one for staged files.
pub fn is_staging(name: &OsStr) -> bool {
    let known = |first: &str| names(first).any(|known| name == &*known);
    name.as_encoded_bytes().starts_with(STAGING[0].as_bytes()) && STAGING.into_iter().any(known)
}

/// Whether a listing names a path: neither a folder for staged files, nor one within an output that was made for them.
pub fn is_listed(place: &impl RenameStore, path: &Path) -> Result<bool> {
    let location = Location::from(path);
    let Some(name) = location.name() else {
        return Ok(true);
    };
    if is_staging(name) {
        return Ok(false);
    }
    if INNER.iter().all(|inner| name != *inner) {
        return Ok(true);
    }
    Ok(within(place, path)?.is_none_or(|(_, is_made)| !is_made))
}

/// What is in a directory, but for what is staged; nothing where it is not there. And whether it has nothing but that: then
/// it was made for staged files.
fn within(place: &impl RenameStore, directory: &Path) -> Result<Option<(Vec<OsString>, bool)>> {
    let Some(all) = place.entries("list a directory", directory)? else {
        return Ok(None);
    };
    let (is_empty, mut found) = (all.is_empty(), Vec::new());
    for name in all {
        if is_listed(place, Location::from(directory).join(&name).as_typed())? {
            found.push(name);
        }
    }
    let is_made = !is_empty && found.is_empty();
    Ok(Some((found, is_made)))
}

/// The paths in a directory, but for staging, in the order of their names.
pub fn list(place: &impl RenameStore, directory: &Path) -> Result<Option<Vec<PathBuf>>> {
    let found = within(place, directory)?;
    Ok(found.map(|(found, _)| {
        let paths = found.into_iter().map(|name| directory.join(name));
        let mut paths: Vec<PathBuf> = paths.collect();
        paths.sort_unstable();
        paths
    }))
}

/// What a path leads to; nothing of a directory that was made for staged files.
pub fn unless_made(place: &impl RenameStore, path: &Path, found: Stat) -> Result<Option<Stat>> {
    let is_made = found.kind == FileKind::Directory
        && within(place, path)?.is_some_and(|(_, is_made)| is_made);
    Ok((!is_made).then_some(found))
}

/// The beginning of the names of files that are staged to a path; [`Publisher::uploads`] calls the path so.
pub fn label(path: &Path) -> String {
    let name = Location::from(path);
    let name = name.name().unwrap_or_default().to_string_lossy();
    if name.len() > NAME_BYTES_MAX {
        return format!("{:08x}", crc32fast::hash(name.as_bytes()));
    }
    name.into_owned()
}

fn parent_of(path: &Path) -> Result<Location> {
    let parent = Location::from(path).parent();
    parent.ok_or_else(|| {
        Error::new(
            Kind::BadOption,
            "write the output",
            "it has no name of its own",
        )
        .with_path(path)
        .advise("name hdfs://HOST:PORT/PATH")
    })
}

/// A name beside a directory that is input of no job.
fn hidden(directory: &Path, what: &str) -> Result<Location> {
    let location = Location::from(directory);
    let mut name = OsString::from(".");
    name.push(location.name().unwrap_or_default());
    name.push(format!(".{what}"));
    Ok(parent_of(directory)?.join(name))
}

/// The staged files in a folder: those of this beginning, or all.
fn staged_in(
    place: &impl RenameStore,
    folder: &Location,
    label: Option<&str>,
    uploads: &mut Vec<(PathBuf, String)>,
) -> Result<()> {
    for first in STAGING {
        let Some(staging) = staging_in(place, folder, first)? else {
            continue;
        };
        let found = place.entries("look for uploads", folder.join(&staging).as_typed())?;
        for name in found.unwrap_or_default() {
            let Some((of, _)) = name.to_str().and_then(|name| name.rsplit_once('.')) else {
                continue;
            };
            if label.is_none_or(|label| label == of) {
                let path = folder.join(of).as_typed().to_owned();
                uploads.push((path, format!("{staging}/{}", name.display())));
            }
        }
    }
    Ok(())
}

/// Removes the folders for staged files in a folder, and it itself if it was made for them: those that are empty.
fn clear_in(place: &impl RenameStore, folder: &Location) -> Result<()> {
    const OPERATION: &str = "end an upload";
    let [beside, made] = STAGING;
    // Asked first: who may not write to a folder may not remove what is not there either, as HDFS sees it.
    if let Some(beside) = staging_in(place, folder, beside)? {
        place.remove_one(OPERATION, folder.join(&beside).as_typed())?;
    }
    let sign = folder.join(made);
    if has(place, &sign)? {
        place.remove_one(OPERATION, sign.as_typed())?;
        place.remove_one(OPERATION, folder.as_typed())?;
    }
    Ok(())
}

/// Renames what is there, and was not renamed by a request whose reply was lost.
fn rename(place: &impl RenameStore, from: &Location, to: &Location) -> Result<()> {
    const OPERATION: &str = "publish the output";
    match place.move_to(OPERATION, from.as_typed(), to.as_typed(), false) {
        Err(error) if error.kind() == Kind::NotFound => {
            match place.find(OPERATION, to.as_typed())? {
                Some(_) => Ok(()),
                None => Err(error),
            }
        }
        done => done,
    }
}

impl<P: RenameStore> Publisher for P {
    fn renames(&self) -> Option<&dyn RenameStore> {
        Some(self)
    }

    fn prepare(&self, path: &Path) -> Result<()> {
        staging_for(self, path).map(drop)
    }

    fn head(&self, path: &Path) -> Result<Option<Object>> {
        let found = self.find("look at a file", path)?;
        Ok(found
            .filter(|found| !found.is_folder)
            .map(|found| found.file))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        self.remove_one("remove", path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<bool> {
        self.move_to("rename", from, to, false).map(|()| true)
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        let found = self.find("look at an upload", staged(path, id)?.as_typed())?;
        Ok(found.map(|found| {
            vec![KeptPart {
                bytes: found.file.bytes,
                etag: found.file.version,
            }]
        }))
    }

    fn verify_bytes(&self, upload: &Upload) -> Result<bool> {
        if !self.has(upload)? {
            return Ok(false);
        }
        let path = upload.path.as_typed();
        let staged = staged(path, &upload.id)?;
        let is_staged = self.find("look at an upload", staged.as_typed())?.is_some();
        let found = self.crc_of(if is_staged { staged.as_typed() } else { path })?;
        Ok(found.is_none_or(|crc| crc == upload.crc()))
    }

    fn pieces(&self) -> Option<&dyn PieceStore> {
        self.piece_store()
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        const OPERATION: &str = "publish the output";
        let path = upload.path.as_typed();
        let from = staged(path, &upload.id)?;
        match self.move_to(OPERATION, from.as_typed(), path, true) {
            // It was renamed, and the reply lost; or by a job that was killed then.
            Err(error) if error.kind() == Kind::NotFound => {
                let is_it = self.head(path)?.is_some_and(|found| upload.made(&found))
                    && self.crc_of(path)?.is_none_or(|crc| crc == upload.crc());
                match is_it {
                    true => Ok(()),
                    false => Err(error),
                }
            }
            done => done,
        }
    }

    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        self.remove_one("end an upload", staged(path, id)?.as_typed())
    }

    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        let (location, mut uploads) = (Location::from(path), Vec::new());
        if let Some(parent) = location.parent() {
            staged_in(self, &parent, Some(&label(path)), &mut uploads)?;
        }
        staged_in(self, &location, None, &mut uploads)?;
        for folder in FOLDERS {
            staged_in(self, &location.join(folder), None, &mut uploads)?;
        }
        Ok(uploads)
    }

    fn sibling_for_swap(&self, directory: &Path) -> Result<Option<PathBuf>> {
        if !self.can_move(directory)? {
            return Ok(None);
        }
        let new = hidden(directory, NEW)?;
        self.remove_tree(new.as_typed())?;
        match self.make_folder("make a directory", new.as_typed()) {
            Err(error) if error.kind() == Kind::Permission => Ok(None),
            made => made.map(|()| Some(new.as_typed().to_owned())),
        }
    }

    fn complete_as(&self, upload: &Upload, name: &Path) -> Result<()> {
        let from = staged(upload.path.as_typed(), &upload.id)?;
        rename(self, &from, &Location::from(name))
    }

    fn replace(&self, directory: &Path, beside: &Path) -> Result<()> {
        let (target, old) = (Location::from(directory), hidden(directory, OLD)?);
        self.remove_tree(old.as_typed())?;
        rename(self, &target, &old)?;
        rename(self, &Location::from(beside), &target)?;
        self.remove_tree(old.as_typed())
    }

    fn finish_swap(&self, directory: &Path) -> Result<()> {
        const OPERATION: &str = "look for uploads";
        let (new, old) = (hidden(directory, NEW)?, hidden(directory, OLD)?);
        let has =
            |path: &Location| Ok::<_, Error>(self.find(OPERATION, path.as_typed())?.is_some());
        let (has_new, has_old) = (has(&new)?, has(&old)?);
        let target = Location::from(directory);
        // The new one was whole before the old one was renamed.
        if has_old && !has(&target)? {
            rename(self, if has_new { &new } else { &old }, &target)?;
        }
        for (left, is_there) in [(new, has_new), (old, has_old)] {
            if is_there {
                self.remove_tree(left.as_typed())?;
            }
        }
        Ok(())
    }

    fn make_directory(&self, path: &Path) -> Result<()> {
        self.make_folder("make a directory", path)
    }

    fn remove_whole(&self, path: &Path) -> Result<()> {
        self.remove_tree(path)
    }

    fn clear(&self, path: &Path) -> Result<()> {
        let location = Location::from(path);
        let found = self.find("end an upload", path)?;
        if found.is_some_and(|found| found.is_folder) {
            for folder in FOLDERS.map(|folder| location.join(folder)) {
                clear_in(self, &folder)?;
                self.remove_one("end an upload", folder.as_typed())?;
            }
            clear_in(self, &location)?;
        }
        match location.parent() {
            Some(parent) => clear_in(self, &parent),
            None => Ok(()),
        }
    }

    fn sync_names(&self, directory: &Path) -> Result<()> {
        self.make_names_durable(directory)
    }
}
