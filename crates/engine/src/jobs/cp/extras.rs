//! `--delete`: what the target has and the source does not is removed, once all is copied.
//!
//! Directory by directory: names of the target's that are not among the source's. What is excluded stays, and so does what a
//! link leads to, and the manifest of the job. Where something could not be listed, nothing is removed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::CpSpec;
use super::listing::CopyRoot;
use super::rounds::{CopyTotals, targets_of};
use super::selection::Selection;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::local::attributes::link_of;
use gristmill_storage::location::Location;
use gristmill_storage::staged::is_staging;
use gristmill_storage::stores::Stores;
use gristmill_storage::{FileKind, Publisher};

const OPERATION: &str = "remove what the source does not have";

/// Removes what is left over in the target of a directory.
pub(super) fn delete(
    job: &mut RunningJob<'_>,
    (spec, selection): (&CpSpec, &Selection),
    root: &CopyRoot,
    totals: &mut CopyTotals,
) -> Result<()> {
    if totals.is_part {
        let message = "something of the source could not be listed, and so nothing was removed";
        return Err(Error::new(Kind::Io, OPERATION, message)
            .with("source", &root.from)
            .advise("mend what is wrong with the source, then run again"));
    }
    job.begin_phase("delete");
    let targets = targets_of(job);
    let publisher = targets.publisher(&root.to);
    let publisher = publisher.ok_or_else(|| Error::bug(OPERATION, "its place takes no files"))?;
    if targets.stat(&root.to)?.is_none() {
        return Ok(());
    }
    let removal = ExtraRemoval {
        job,
        targets: &targets,
        publisher,
        selection,
        manifest: spec.manifest.as_ref(),
        dry_run: spec.dry_run,
    };
    removal.directory(root, totals)
}

struct ExtraRemoval<'a, 'j> {
    job: &'a RunningJob<'j>,
    targets: &'a Stores,
    publisher: &'a dyn Publisher,
    selection: &'a Selection,
    manifest: Option<&'a Location>,
    dry_run: bool,
}

impl ExtraRemoval<'_, '_> {
    /// Removes what is left over in a directory. What is to be done is on a stack of its own: a tree may be too deep for
    /// that of a thread.
    fn directory(&self, root: &CopyRoot, totals: &mut CopyTotals) -> Result<()> {
        let mut steps = vec![RemovalStep::Look(Both {
            from: root.from.clone(),
            to: root.to.clone(),
            below: PathBuf::new(),
        })];
        while let Some(step) = steps.pop() {
            match step {
                RemovalStep::Look(both) => steps.extend(self.steps_in(&both)?.into_iter().rev()),
                RemovalStep::Remove(path) if self.dry_run => totals.say("delete", &path),
                RemovalStep::Remove(path) => {
                    self.publisher.remove_whole(path.as_typed())?;
                    totals.deleted += 1;
                }
                RemovalStep::Sync(_) if self.dry_run => {}
                RemovalStep::Sync(directory) => self.publisher.sync_names(directory.as_typed())?,
            }
        }
        Ok(())
    }

    /// What is to be done in a directory, in the order of names.
    fn steps_in(&self, both: &Both) -> Result<Vec<RemovalStep>> {
        self.job.check_cancelled()?;
        let sources = names_in(self.job.store(), &both.from)?;
        let mut steps = Vec::new();
        for name in names_in(self.targets, &both.to)? {
            let both = both.join(&name);
            if is_staging(&name) || self.selection.excludes(&both.from, &both.below) {
                continue;
            }
            if !sources.contains(&name) {
                if !self.is_manifest(&both.to)? {
                    steps.push(RemovalStep::Remove(both.to));
                }
            } else if self.is_directory(&both.to)? && self.is_followed(&both.from)? {
                steps.push(RemovalStep::Look(both));
            }
        }
        steps.push(RemovalStep::Sync(both.to.clone()));
        Ok(steps)
    }

    /// Whether a name of the target is that of the manifest of this job.
    fn is_manifest(&self, path: &Location) -> Result<bool> {
        let Some(manifest) = self.manifest else {
            return Ok(false);
        };
        if path.is_remote() || manifest.is_remote() {
            return Ok(path == manifest);
        }
        let (found, made) = (self.targets.stat(path)?, self.targets.stat(manifest)?);
        Ok(found.map(|found| found.identity) == made.map(|made| made.identity))
    }

    /// Whether a name of the target is a directory itself.
    fn is_directory(&self, path: &Location) -> Result<bool> {
        if let Some(path) = path.local()
            && link_of(path)?.is_some()
        {
            return Ok(false);
        }
        let found = self.targets.stat(path)?;
        Ok(found.is_some_and(|found| found.kind == FileKind::Directory))
    }

    fn is_followed(&self, path: &Location) -> Result<bool> {
        let found = self.job.store().stat(path)?;
        Ok(found.is_some_and(|found| found.kind == FileKind::Directory))
    }
}

/// What is to be done next.
enum RemovalStep {
    Look(Both),
    Remove(Location),
    /// Makes durable what was done in a directory.
    Sync(Location),
}

/// A directory of the source, the one of the target, and its path below both.
struct Both {
    from: Location,
    to: Location,
    below: PathBuf,
}

impl Both {
    fn join(&self, name: &OsStr) -> Self {
        Both {
            from: self.from.join(name),
            to: self.to.join(name),
            below: self.below.join(name),
        }
    }
}

/// The names in a directory.
fn names_in(stores: &Stores, directory: &Location) -> Result<BTreeSet<OsString>> {
    let mut names = BTreeSet::new();
    stores.list_each(directory, |path, _| {
        names.extend(path.name().map(OsStr::to_owned));
        Ok(())
    })?;
    Ok(names)
}
