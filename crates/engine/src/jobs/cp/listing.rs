//! The listing of the sources: what lies below a source, handed on as it is found.
//!
//! Directories come before what is in them, and what is in one before its directories. Names of a directory are looked at in
//! lots, so that a far store is asked for many at once. The rule that must hold: no name leads out of the target; a key of a
//! store may have parts that a disk reads as a way up.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer};

use super::selection::Selection;
use crate::plan::table::{OptionValue, ValueKind};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::local::attributes::link_of;
use gristmill_storage::local::dangling;
use gristmill_storage::location::Location;
use gristmill_storage::staged::is_staging;
use gristmill_storage::stores::Stores;
use gristmill_storage::{FileKind, Stat};
use gristmill_tasks::split::asked_at_once;
use gristmill_tasks::task::{CopyItem, CopySource};

const OPERATION: &str = "list the source";

/// Names that are looked at together.
const LOT: usize = 1_000;

/// What is done about symbolic links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::jobs) enum LinkRule {
    /// What they lead to is copied.
    #[default]
    Follow,
    /// They are copied as links.
    Copy,
    /// They are left out.
    Skip,
}

impl OptionValue for LinkRule {
    const KIND: ValueKind = ValueKind::Choice(&["follow", "copy", "skip"]);

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Deserialize::deserialize(deserializer)
    }
}

/// A source, and where it goes.
#[derive(Debug, Clone)]
pub(super) struct CopyRoot {
    pub(super) from: Location,
    pub(super) to: Location,
    pub(super) stat: Stat,
}

impl CopyRoot {
    /// A name that a file of the copy may have.
    pub(super) fn any_file(&self) -> Location {
        match self.is_directory() {
            true => self.to.join("part"),
            false => self.to.clone(),
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.stat.kind == FileKind::Directory
    }
}

/// What the listing found.
pub(super) enum Listed {
    /// Something to copy.
    Item(CopyItem),
    /// Something that cannot be copied.
    Failed(Error),
    /// A link that is left out.
    SkippedLink,
}

/// Takes what is found.
type Give<'g> = &'g mut dyn FnMut(Listed) -> Result<()>;

/// How sources are listed.
#[derive(Clone, Copy)]
pub(super) struct SourceListing<'a> {
    pub(super) stores: &'a Stores,
    pub(super) selection: &'a Selection,
    pub(super) links: LinkRule,
    /// The target is a place with directories: a name cannot be a file and a directory there.
    pub(super) to_directories: bool,
}

/// A place in a source, and where it goes.
#[derive(Clone)]
struct ListedPlace {
    from: Location,
    to: Location,
    /// Its path within the source.
    below: PathBuf,
}

impl SourceListing<'_> {
    /// Hands on what a source is.
    pub(super) fn root(&self, root: &CopyRoot, give: Give<'_>) -> Result<()> {
        let place = ListedPlace {
            from: root.from.clone(),
            to: root.to.clone(),
            below: PathBuf::new(),
        };
        let Some(names) = &self.selection.names else {
            return match root.stat.kind {
                FileKind::Directory => self.directory(&place, &mut Vec::new(), give),
                _ => {
                    let name = root.from.name().map(PathBuf::from);
                    let below = name.unwrap_or_default();
                    self.one(ListedPlace { below, ..place }, Some(root.stat), give)
                }
            };
        };
        for name in names {
            let place = ListedPlace {
                from: place.from.join(name),
                to: place.to.join(name),
                below: name.clone(),
            };
            self.one(place, None, give)?;
        }
        Ok(())
    }

    /// Hands on something that was named, and what is in it.
    fn one(&self, place: ListedPlace, stat: Option<Stat>, give: Give<'_>) -> Result<()> {
        let mut inner = Vec::new();
        self.lot(&mut vec![(place, stat)], &mut inner, give)?;
        inner
            .iter()
            .try_for_each(|place| self.directory(place, &mut Vec::new(), give))
    }

    /// Hands on what is in a directory. `above` are those on the way to it: one that is found again is a loop of links.
    fn directory(
        &self,
        place: &ListedPlace,
        above: &mut Vec<(u64, u64)>,
        give: Give<'_>,
    ) -> Result<()> {
        if !place.from.is_remote() && self.links == LinkRule::Follow {
            let identity = match self.stores.stat(&place.from)? {
                Some(stat) => stat.identity,
                None => return give(Listed::Failed(gone(place))),
            };
            let is_link = match place.from.local() {
                Some(path) if above.contains(&identity) => link_of(path)?.is_some(),
                _ => false,
            };
            if is_link {
                let error = Error::new(
                    Kind::BadInput,
                    OPERATION,
                    "a link leads to a directory that it lies in",
                )
                .with_path(place.from.as_typed())
                .advise("give --links copy or --links skip");
                return give(Listed::Failed(error));
            }
            above.push(identity);
        }
        let depth = above.len();
        if self.to_directories && !self.selection.filters() {
            give(Listed::Item(CopyItem {
                from: place.from.clone(),
                to: place.to.clone(),
                what: CopySource::Directory,
            }))?;
        }
        let (mut lot, mut inner) = (Vec::new(), Vec::new());
        let listed = self.stores.list_each(&place.from, |path, stat| {
            if let Some(child) = child_of(place, &path, give)? {
                lot.push((child, stat));
            }
            if lot.len() == LOT {
                self.lot(&mut lot, &mut inner, give)?;
            }
            Ok(())
        });
        match listed {
            Err(error) if error.kind() == Kind::Permission => give(Listed::Failed(error))?,
            listed => listed?,
        }
        self.lot(&mut lot, &mut inner, give)?;
        for place in &inner {
            self.directory(place, above, give)?;
        }
        above.truncate(depth.saturating_sub(1));
        Ok(())
    }

    /// Hands on files; keeps directories for later.
    fn lot(
        &self,
        lot: &mut Vec<(ListedPlace, Option<Stat>)>,
        inner: &mut Vec<ListedPlace>,
        give: Give<'_>,
    ) -> Result<()> {
        lot.retain(|(place, _)| !self.selection.excludes(&place.from, &place.below));
        let Some((first, _)) = lot.first() else {
            return Ok(());
        };
        let most = asked_at_once(&first.from);
        let found = at_once(lot, most, |(place, stat)| self.found(place, *stat))?;
        for ((place, _), found) in lot.drain(..).zip(found) {
            match found {
                Found::Link(leads_to) if self.links == LinkRule::Copy => {
                    let what = CopySource::Link(leads_to);
                    self.give_file(place, what, give)?;
                }
                Found::Link(_) => give(Listed::SkippedLink)?,
                Found::Other(stat) => match stat.kind {
                    FileKind::File => self.give_file(place, CopySource::File(stat), give)?,
                    FileKind::Directory => {
                        if let Some(error) = self.also_a_file(&place)? {
                            give(Listed::Failed(error))?;
                        } else {
                            inner.push(place);
                        }
                    }
                    FileKind::DanglingLink => {
                        let error = dangling(OPERATION, place.from.as_typed());
                        let advice = "mend the link, or give --links copy or --links skip";
                        give(Listed::Failed(error.advise(advice)))?;
                    }
                    FileKind::Other => give(Listed::Failed(special(&place)))?,
                },
                Found::Gone => give(Listed::Failed(gone(&place)))?,
                Found::Failed(error) => give(Listed::Failed(error))?,
            }
        }
        Ok(())
    }

    fn give_file(&self, place: ListedPlace, what: CopySource, give: Give<'_>) -> Result<()> {
        if !self.selection.has(&place.below) {
            return Ok(());
        }
        give(Listed::Item(CopyItem {
            from: place.from,
            to: place.to,
            what,
        }))
    }

    /// What is at a name. Of this machine, one that cannot be looked at is the error of that name alone.
    fn found(&self, place: &ListedPlace, stat: Option<Stat>) -> Result<Found> {
        match self.looked_at(place, stat) {
            Err(error) if place.from.local().is_some() && error.kind() != Kind::Cancelled => {
                Ok(Found::Failed(error))
            }
            found => found,
        }
    }

    fn looked_at(&self, place: &ListedPlace, stat: Option<Stat>) -> Result<Found> {
        if let Some(path) = place
            .from
            .local()
            .filter(|_| self.links != LinkRule::Follow)
            && let Some(leads_to) = link_of(path)?
        {
            return Ok(Found::Link(leads_to));
        }
        let stat = match stat {
            Some(stat) => Some(stat),
            None => self.stores.stat(&place.from)?,
        };
        Ok(stat.map_or(Found::Gone, Found::Other))
    }

    /// The error of a name of a store that is an object and begins others, where the target cannot have both.
    fn also_a_file(&self, place: &ListedPlace) -> Result<Option<Error>> {
        if !self.to_directories || !self.stores.sends_parts(&place.from) {
            return Ok(None);
        }
        let Some(publisher) = self.stores.publisher(&place.from) else {
            return Ok(None);
        };
        let object = publisher.head(place.from.as_typed())?;
        Ok(object.map(|_| {
            let message =
                "it is an object, and other names begin with it: a directory cannot hold both";
            Error::new(Kind::BadInput, OPERATION, message)
                .with_path(place.from.as_typed())
                .advise("leave one of the two out with --exclude, or copy to an object store")
        }))
    }
}

/// What is found at a name.
enum Found {
    Link(PathBuf),
    Other(Stat),
    Gone,
    Failed(Error),
}

/// A name in a directory, and where it goes; nothing of what is ours, or leads elsewhere.
fn child_of(place: &ListedPlace, path: &Location, give: Give<'_>) -> Result<Option<ListedPlace>> {
    let bytes = path.as_typed().as_os_str().as_bytes();
    let above = place.from.as_typed().as_os_str().as_bytes();
    let name = bytes.strip_prefix(above).unwrap_or(bytes);
    let name = name.strip_prefix(b"/").unwrap_or(name);
    if is_staging(std::ffi::OsStr::from_bytes(name)) {
        return Ok(None);
    }
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
        let message = "no directory can have a file of this name";
        let error = Error::new(Kind::BadInput, OPERATION, message)
            .with_path(path.as_typed())
            .advise("rename the object, or leave it out with --exclude");
        give(Listed::Failed(error))?;
        return Ok(None);
    }
    let name = Path::new(std::ffi::OsStr::from_bytes(name));
    Ok(Some(ListedPlace {
        from: path.clone(),
        to: place.to.join(name),
        below: place.below.join(name),
    }))
}

fn gone(place: &ListedPlace) -> Error {
    Error::new(Kind::NotFound, OPERATION, "no such file or directory")
        .with_path(place.from.as_typed())
        .advise("check the name, and let no program change the source")
}

fn special(place: &ListedPlace) -> Error {
    Error::new(
        Kind::BadInput,
        OPERATION,
        "it is neither a file nor a directory",
    )
    .with_path(place.from.as_typed())
    .advise("leave it out with --exclude")
}
