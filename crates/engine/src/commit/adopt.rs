//! Adoption: a job that goes on takes over the folders that its dead predecessor left.
//!
//! ```text
//!   parent/.out.gristmill-JOB/    ── locked again, what was half published put back ──▶  Staging
//!   DIR/.gristmill-spill-JOB/     ── locked again ──▶  SpillPlaces
//! ```
//!
//! The rules that must hold: only folders whose names follow from the job's own options and id are looked at; nothing
//! in them is a link; and until the job has taken over all of them ([`Taken`]), a refusal leaves them as they are, to
//! be tried again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::folder::{remove_folder, sweep};
use super::{
    CommitOptions, FileStaging, LOCK, OLD, OUTPUT, SPILL, SUCCESS, SpillPlaces, Staging,
    check_target, is_of_scripts,
};
use crate::error::{Error, Kind, Result};
use crate::storage::local::parent_of;
use crate::storage::{FileKind, Lock, Store};

/// What a job of people's own code needs to be gone on with.
const DEFINITION: &str = "definition";

/// Whether a job has taken over what its predecessor left: from then on it is cleared away like its own.
#[derive(Debug, Clone, Default)]
pub struct Taken(Arc<AtomicBool>);

impl Taken {
    /// All is taken over.
    pub fn take_over(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a folder is this process's to remove: its own always, one that it adopted once all is taken over.
pub(super) fn may_go(adopted: Option<&Taken>) -> bool {
    adopted.is_none_or(Taken::is_taken)
}

impl<'a> Staging<'a> {
    /// Takes over the folder of the dead job `job`, whose output has files of these names; begins anew where there
    /// is none. Whatever else lies among them goes.
    ///
    /// # Errors
    /// The folder's owner is alive, there is a link in it, or the output may not be written any more.
    pub fn adopt(
        store: &'a dyn Store,
        target: &Path,
        job: &str,
        (names, bytes): (&[String], u64),
        options: CommitOptions,
        taken: &Taken,
    ) -> Result<Self> {
        let [(beside, _), (within, _)] = folders_of(target, job);
        let (folder, inside) = if is_there(store, &beside)? {
            (beside, false)
        } else if is_there(store, &within)? {
            (within, true)
        } else {
            return Staging::begin(store, target, job, bytes, options);
        };
        let lock = take(store, &folder)?;
        let staged = folder.join(OUTPUT);
        make(store, &staged)?;
        if inside {
            put_back_files(store, target, &folder, names)?;
        } else if is_there(store, &folder.join(OLD))? && !is_there(store, target)? {
            store.rename(&folder.join(OLD), target)?;
        }
        let name = check_target(store, target, options.overwrite)?;
        let prefix = format!(".{name}.gristmill-");
        sweep(store, parent_of(target), &prefix, target, Some(&folder))?;
        for path in store.list(&staged)? {
            let own = |name: &String| path.file_name().is_some_and(|found| found == name.as_str());
            if !names.iter().any(own) {
                store.remove(&path)?; // an old proof, or nothing of ours
            }
        }
        Ok(Staging {
            store,
            target: target.to_owned(),
            folder,
            options,
            inside,
            _lock: lock,
            published: false,
            holds_old: false,
            adopted: Some(taken.clone()),
        })
    }
}

impl Staging<'_> {
    /// Keeps what the job is, for nobody else to read, where [`definition_of`] finds it; gone with the job.
    pub fn keep_definition(&self, definition: &[u8]) -> Result<()> {
        let path = self.folder.join(DEFINITION);
        self.store.create_private(&path, definition)
    }
}

impl<'a> FileStaging<'a> {
    /// Takes over the folder of the dead job `job`; begins anew where there is none.
    ///
    /// # Errors
    /// As those of [`Staging::adopt`].
    pub fn adopt(
        store: &'a dyn Store,
        target: &Path,
        job: &str,
        sync: bool,
        taken: &Taken,
    ) -> Result<Self> {
        let (target, prefix) = FileStaging::names(store, target)?;
        let folder = parent_of(&target).join(format!("{prefix}{job}"));
        if !is_there(store, &folder)? {
            return FileStaging::begin(store, &target, job, sync);
        }
        let lock = take(store, &folder)?;
        sweep(store, parent_of(&target), &prefix, &target, Some(&folder))?;
        Ok(FileStaging {
            store,
            target,
            folder,
            sync,
            _lock: lock,
            published: false,
            adopted: Some(taken.clone()),
        })
    }
}

impl<'a> SpillPlaces<'a> {
    /// Takes over the folders of the dead job `job`, and makes those that are missing.
    ///
    /// # Errors
    /// A directory is not there, or is of no use; a folder's owner is alive, or there is a link in it.
    pub fn adopt(
        store: &'a dyn Store,
        directories: &[PathBuf],
        job: &str,
        taken: &Taken,
    ) -> Result<Self> {
        SpillPlaces::make(store, directories, job, Some(taken))
    }
}

/// Removes what a dead job left after its output had its name.
///
/// # Errors
/// A folder's owner is alive, there is a link in it, or it cannot be removed.
pub fn clear_published(
    store: &dyn Store,
    target: &Path,
    spill_dirs: &[PathBuf],
    job: &str,
) -> Result<()> {
    let staged = folders_of(target, job).map(|(folder, _)| folder);
    let spilled = spill_dirs.iter().map(|directory| {
        let name = SpillPlaces::folder_name(job);
        directory.join(name)
    });
    let short = FileStaging::names(store, target).map(|(target, prefix)| {
        let folder = format!("{prefix}{job}");
        parent_of(&target).join(folder)
    });
    for folder in staged.into_iter().chain(spilled).chain(short.ok()) {
        if is_there(store, &folder)? {
            let _lock = take(store, &folder)?;
            remove_folder(store, &folder)?;
        }
    }
    Ok(())
}

/// What a dead job kept of itself, by [`Staging::keep_definition`]; none where its folder is not there.
///
/// # Errors
/// Somebody else may have written it.
pub fn definition_of(store: &dyn Store, target: &Path, job: &str) -> Result<Option<Vec<u8>>> {
    for (folder, _) in folders_of(target, job) {
        let path = folder.join(DEFINITION);
        if is_there(store, &path)? {
            return store.read_private(&path).map(Some);
        }
    }
    Ok(None)
}

/// Where a job to an output directory may have its folder; and whether that lies inside the output.
fn folders_of(target: &Path, job: &str) -> [(PathBuf, bool); 2] {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = parent_of(target).join(format!(".{name}.gristmill-{job}"));
    [
        (beside, false),
        (target.join(format!(".gristmill-{job}")), true),
    ]
}

pub(super) fn is_there(store: &dyn Store, path: &Path) -> Result<bool> {
    Ok(store.stat(path)?.is_some())
}

pub(super) fn make(store: &dyn Store, directory: &Path) -> Result<()> {
    if is_there(store, directory)? {
        Ok(())
    } else {
        store.create_directory(directory)
    }
}

/// Locks a dead job's folder, and looks whether it is what it seems.
pub(super) fn take(store: &dyn Store, folder: &Path) -> Result<Box<dyn Lock>> {
    check_plain(store, folder)?;
    let locked = store.lock(&folder.join(LOCK))?;
    locked.ok_or_else(|| {
        Error::new(
            Kind::Exists,
            "go on with a job",
            "another process has its folder",
        )
        .with_path(folder)
        .advise("wait for that process")
    })
}

/// Fails where a folder, or anything in it down to the files of the output and the runs, is a link.
fn check_plain(store: &dyn Store, folder: &Path) -> Result<()> {
    let refuse = |path: &Path| {
        let message = "the job's folder has a link in it, which no job makes";
        Error::new(Kind::BadInput, "go on with a job", message)
            .with_path(path)
            .advise("look what it is, and remove the folder")
    };
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        if store.resolve(&path)? != path {
            return Err(refuse(&path));
        }
        match store.stat(&path)?.map(|stat| stat.kind) {
            // Links of scripts lead nowhere that is looked at: their folders go as they are.
            Some(FileKind::Directory) if is_of_scripts(&path) && path != folder => {}
            Some(FileKind::Directory) if !path.ends_with(OLD) => left.extend(store.list(&path)?),
            Some(FileKind::Other) => return Err(refuse(&path)),
            _ => {}
        }
    }
    Ok(())
}

/// Undoes a publication file by file that did not come to its end: what was moved goes back to where it was.
fn put_back_files(store: &dyn Store, target: &Path, folder: &Path, names: &[String]) -> Result<()> {
    let (staged, old) = (folder.join(OUTPUT), folder.join(OLD));
    if !is_there(store, &old)? {
        return Ok(());
    }
    // The proof is moved last: while it is staged, what is missing beside it has been moved.
    if is_there(store, &staged.join(SUCCESS))? {
        for name in names {
            let (from, to) = (target.join(name), staged.join(name));
            if !is_there(store, &to)? && is_there(store, &from)? {
                store.rename(&from, &to)?;
            }
        }
    }
    for path in store.list(&old)? {
        let to = target.join(path.file_name().unwrap_or_default());
        if !is_there(store, &to)? {
            store.rename(&path, &to)?;
        }
    }
    store.remove(&old)
}

/// A place for runs in a job's own folder; it may be there.
pub(super) fn spill_place(store: &dyn Store, folder: &Path) -> Result<PathBuf> {
    let place = folder.join(SPILL);
    make(store, &place)?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{KEEP, OVERWRITE, names};
    use super::*;
    use crate::storage::Caching;
    use crate::storage::local::Local;

    fn parts() -> Vec<String> {
        vec!["part-0".into(), "part-1".into()]
    }

    /// What a job that was killed while it wrote leaves.
    fn leave(folder: &Path, files: &[&str]) {
        std::fs::create_dir_all(folder.join(OUTPUT)).unwrap();
        std::fs::write(folder.join(LOCK), "").unwrap();
        for file in files {
            std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            std::fs::write(folder.join(file), *file).unwrap();
        }
    }

    #[test]
    fn a_dead_jobs_folder_is_taken_over_and_only_then_cleared_away() {
        let root = tempfile::tempdir().unwrap();
        let (out, left) = (
            root.path().join("out"),
            root.path().join(".out.gristmill-j"),
        );
        leave(&left, &["output/part-0", "output/_SUCCESS", "output/stray"]);
        let other = root.path().join(".out.gristmill-other");
        leave(&other, &[]);
        for take in [false, true] {
            let taken = Taken::default();
            let names_of = parts();
            let staging = Staging::adopt(&Local, &out, "j", (&names_of, 1), KEEP, &taken).unwrap();
            assert_eq!(names(&staging.staged()), ["part-0"]);
            assert!(!other.exists(), "of another job that is dead");
            let again = Staging::adopt(&Local, &out, "j", (&names_of, 1), KEEP, &taken);
            assert_eq!(again.unwrap_err().kind(), Kind::Exists);
            if take {
                taken.take_over();
            }
            drop(staging);
            assert_eq!(left.exists(), !take);
        }
        // Where there is nothing, it begins anew.
        let staging = Staging::adopt(&Local, &out, "j", (&parts(), 1), KEEP, &Taken::default());
        let staging = staging.unwrap();
        let part = Local.create(&staging.path_of("part-0"), 1, Caching::Cached);
        part.unwrap().write_at(b"x", 0).unwrap();
        staging.publish(&["part-0".to_owned()], b"{}").unwrap();
        assert_eq!(names(root.path()), ["out"]);
    }

    /// A kill between any two renames of a publication file by file.
    #[test]
    fn a_publication_that_was_broken_off_is_undone() {
        let moves = [
            ("out/_SUCCESS", "old/_SUCCESS"),
            ("out/part-0", "old/part-0"),
            ("output/part-0", "out/part-0"),
            ("output/part-1", "out/part-1"),
        ];
        for killed_after in 0..=moves.len() {
            let root = tempfile::tempdir().unwrap();
            let out = root.path().join("out");
            let left = out.join(".gristmill-j");
            leave(
                &left,
                &["output/part-0", "output/part-1", "output/_SUCCESS"],
            );
            std::fs::create_dir(left.join(OLD)).unwrap();
            std::fs::write(out.join("_SUCCESS"), "old").unwrap();
            std::fs::write(out.join("part-0"), "old").unwrap();
            let place = |name: &str| match name.strip_prefix("out/") {
                Some(name) => out.join(name),
                None => left.join(name),
            };
            for (from, to) in &moves[..killed_after] {
                std::fs::rename(place(from), place(to)).unwrap();
            }
            let taken = Taken::default();
            let staging = Staging::adopt(&Local, &out, "j", (&parts(), 1), OVERWRITE, &taken);
            assert_eq!(names(&staging.unwrap().staged()), ["part-0", "part-1"]);
            assert_eq!(std::fs::read(out.join("part-0")).unwrap(), b"old");
            assert_eq!(names(&out), [".gristmill-j", "_SUCCESS", "part-0"]);
        }
    }

    #[test]
    fn links_are_refused_and_what_was_published_is_cleared_up() {
        let root = tempfile::tempdir().unwrap();
        let (out, left) = (
            root.path().join("out"),
            root.path().join(".out.gristmill-j"),
        );
        leave(&left, &[]);
        let precious = root.path().join("precious");
        std::fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, left.join("output/part-0")).unwrap();
        let taken = Taken::default();
        let refused = Staging::adopt(&Local, &out, "j", (&parts(), 1), KEEP, &taken);
        assert_eq!(refused.unwrap_err().kind(), Kind::BadInput);
        assert!(clear_published(&Local, &out, &[], "j").is_err());
        std::fs::remove_file(left.join("output/part-0")).unwrap();
        let spill = root.path().join(".gristmill-spill-j");
        leave(&spill, &["run-1"]);
        clear_published(&Local, &out, &[root.path().to_owned()], "j").unwrap();
        assert_eq!(names(root.path()), ["precious"]);
    }

    #[test]
    fn places_for_runs_are_taken_over() {
        let root = tempfile::tempdir().unwrap();
        let given = [root.path().to_owned()];
        leave(&root.path().join(".gristmill-spill-j"), &["run-1"]);
        let taken = Taken::default();
        drop(SpillPlaces::adopt(&Local, &given, "j", &taken).unwrap());
        assert!(root.path().join(".gristmill-spill-j/run-1").exists());
        let places = SpillPlaces::adopt(&Local, &given, "j", &taken).unwrap();
        assert!(SpillPlaces::adopt(&Local, &given, "j", &taken).is_err());
        taken.take_over();
        drop(places);
        assert!(names(root.path()).is_empty());
    }
}
