//! Commit by upload: parts are uploads that tasks send, and objects once the job has proved them.
//!
//! ```text
//!   SPILL_DIR/.NAME-CRC.gristmill-JOB/    the job's folder, on a local disk: lock, runs, files of attempts
//!   uploads to OUT/part-r-NNNNN           sent by tasks; nobody sees them
//!   _SUCCESS of an old output goes, then its files ─▶ uploads are completed ─▶ each is looked at: length, CRC ─▶ _SUCCESS
//! ```
//!
//! The rules that must hold: until `_SUCCESS` is there, nothing counts as output; what is completed is what the reports
//! of the tasks name, whatever a listing says; and no upload of the job stays behind, however it ends. (After a kill, those
//! end with the job's resumption, with the next job to the same output, or with `gristmill jobs prune`.) An upload is the
//! job's by where it goes: to the output itself, or to a name that a task may give a file of it. Any other below the same
//! prefix is of another program, or of a job whose output lies within this one: it is left, and the user is told. An output that is one
//! object needs no `_SUCCESS`: completing it is the commit. Where directories are renamed (HDFS), an old output that is whole
//! stays until the new one is whole beside it, `_SUCCESS` included.
//!
//! Decision: docs/decisions/uploads.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::directory::{is_listed, is_output};
use super::job_folder::{FolderPlace, JobFolder, make};
use super::listed::listed;
use super::ownership::Ownership;
use super::spill_dirs::check_directory;
use super::upload_target::{check, file_meant, home_of};
use super::within::is_file_name;
use super::{Committer, OutputManifest, SUCCESS};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::io::at_once::{SHORT_AT_ONCE, at_once};
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, Publisher};

/// Stands for a file of the output.
const ANY_NAME: &str = "part";

/// An output in the making whose files appear one by one.
#[derive(Debug)]
pub struct UploadCommitter<'a> {
    stores: &'a Stores,
    target: Location,
    /// The output is one object, not a directory of them.
    is_file: bool,
    /// Its files may have any names, and so may uploads right below it that are its own.
    any_names: bool,
    /// The job's folder; gone with this.
    folder: JobFolder<'a>,
    owner: Ownership,
    /// What was completed of an output that has no `_SUCCESS` yet.
    completed: Vec<Location>,
    /// Uploads below the output that are not its own.
    others: Vec<Location>,
}

impl<'a> UploadCommitter<'a> {
    /// Begins an output, or takes over that of a dead job where the owner resumes one. Uploads that are there end where it
    /// begins: their jobs are dead, or were told to write to the same place as this one.
    ///
    /// # Errors
    /// The output exists, or another job on this machine writes it.
    pub fn begin(
        stores: &'a Stores,
        (target, is_file): (&Location, bool),
        spill_dirs: &[PathBuf],
        owner: &Ownership,
        overwrite: bool,
    ) -> Result<Self> {
        if let Some(objects) = stores.publisher(target).filter(|_| !is_file) {
            objects.finish_swap(target.as_typed())?;
        }
        // What a dead job has completed without a `_SUCCESS` is no output.
        let is_ours = owner.resumes() && !is_file && stores.stat(&target.join(SUCCESS))?.is_none();
        let target = &file_meant(stores, (target, is_file))?;
        check(stores, target, is_file || overwrite || is_ours, is_file)?;
        let disk = &**stores.disk();
        if let Some(first) = spill_dirs.first() {
            check_directory(disk, first)?;
        }
        let home = home_of(stores, target, spill_dirs);
        let folder = FolderPlace::beside(&home).begin(disk, owner)?;
        make(disk, &folder.staged())?;
        let mut committer = UploadCommitter {
            stores,
            target: target.clone(),
            is_file,
            any_names: false,
            folder,
            owner: owner.clone(),
            completed: Vec::new(),
            others: Vec::new(),
        };
        if !owner.resumes() {
            committer.others = committer.end_uploads()?;
        }
        let any = committer.path_of(ANY_NAME.as_ref());
        committer.objects()?.prepare(any.as_typed())?;
        Ok(committer)
    }

    /// The same where files of the output may have any names.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub fn of_any_names(mut self) -> Result<Self> {
        self.any_names = true;
        if !self.owner.resumes() {
            self.others = self.end_uploads()?;
        }
        Ok(self)
    }

    fn end_uploads(&self) -> Result<Vec<Location>> {
        let names = UploadNames {
            target: &self.target,
            is_file: self.is_file,
            any: self.any_names,
        };
        end_uploads(self.objects()?, names)
    }

    fn objects(&self) -> Result<&'a dyn Publisher> {
        objects_of(self.stores, &self.target)
    }

    /// Removes an old output: its `_SUCCESS` first, so that what is left of it counts no more.
    fn remove_old(&self, names: &[PathBuf]) -> Result<()> {
        let objects = self.objects()?;
        let listed = listed(self.stores, &self.target)?;
        let mut old: Vec<Location> = listed.iter().map(|name| self.path_of(name)).collect();
        old.extend(self.stores.list(&self.target)?);
        objects.delete(self.target.join(SUCCESS).as_typed())?;
        let new: BTreeSet<Location> = names.iter().map(|name| self.path_of(name)).collect();
        let is_old = |path: &Path| is_output(path) || is_listed(path, &listed);
        old.retain(|path| is_old(path.as_typed()) && !new.contains(path));
        // Of a folder that new files come into, only the old ones go: the new ones may be staged in it.
        let inner: BTreeSet<Location> = new.iter().filter_map(Location::parent).collect();
        for folder in inner.iter().filter(|folder| **folder != self.target) {
            let is_kept = |path: &Location| folder.as_typed().starts_with(path.as_typed());
            if old.iter().any(is_kept) && self.stores.stat(folder)?.is_some() {
                let found = self.stores.list(folder)?.into_iter();
                old.retain(|path| !is_kept(path));
                old.extend(found.filter(|path| !new.contains(path)));
            } else {
                old.retain(|path| !is_kept(path));
            }
        }
        let remove = |path: &Location| objects.remove_whole(path.as_typed());
        at_once(&old, SHORT_AT_ONCE, remove).map(drop)
    }

    /// Puts the output together beside an old one, and in its place; false where that cannot be done.
    fn replace(&self, made: &OutputManifest<'_>) -> Result<bool> {
        let (objects, target) = (self.objects()?, self.target.as_typed());
        if self.stores.stat(&self.target.join(SUCCESS))?.is_none() {
            return Ok(false);
        }
        let Some(beside) = objects.sibling_for_swap(target)? else {
            return Ok(false);
        };
        let folder = Location::from(beside);
        let names = made.names.iter();
        let places: BTreeMap<Location, Location> = names
            .map(|name| (self.path_of(name), folder.join(name)))
            .collect();
        let folders: BTreeSet<Location> = places.values().filter_map(Location::parent).collect();
        for inner in folders.iter().filter(|inner| **inner != folder) {
            objects.make_directory(inner.as_typed())?;
        }
        at_once(made.uploads, SHORT_AT_ONCE, |upload| {
            let place = places.get(&upload.path);
            let place = place.ok_or_else(|| Error::bug("publish the output", "it has no name"))?;
            objects.complete_as(upload, place.as_typed())?;
            let moved = Upload {
                path: place.clone(),
                ..upload.clone()
            };
            check_made(objects, &moved)
        })?;
        self.write_success(&folder, made)?;
        objects.clear(folder.as_typed())?;
        sync_names(objects, folders.iter().chain([&folder]))?;
        objects.replace(target, folder.as_typed())?;
        sync_names(objects, self.target.parent().iter())?;
        Ok(true)
    }

    fn write_success(&self, folder: &Location, made: &OutputManifest<'_>) -> Result<()> {
        let path = folder.join(SUCCESS);
        let bytes = made.success.len() as u64;
        let file = self.stores.create(&path, bytes, Caching::Cached)?;
        file.write_at(made.success, 0)?;
        match file.finish()? {
            Some(upload) => self.objects()?.complete(&upload),
            None => Ok(()),
        }
    }

    fn complete(&mut self, uploads: &[Upload]) -> Result<()> {
        let objects = self.objects()?;
        let paths = uploads.iter().map(|upload| upload.path.clone());
        self.completed.extend(paths);
        at_once(uploads, SHORT_AT_ONCE, |upload| objects.complete(upload))?;
        at_once(uploads, SHORT_AT_ONCE, |upload| check_made(objects, upload))?;
        let folders: BTreeSet<_> = uploads
            .iter()
            .filter_map(|upload| upload.path.parent())
            .collect();
        sync_names(objects, folders.iter())
    }
}

fn sync_names<'l>(
    objects: &dyn Publisher,
    mut folders: impl Iterator<Item = &'l Location>,
) -> Result<()> {
    folders.try_for_each(|folder| objects.sync_names(folder.as_typed()))
}

/// Fails unless the object is there, as long as what was sent and with its CRC.
fn check_made(objects: &dyn Publisher, upload: &Upload) -> Result<()> {
    match objects.head(upload.path.as_typed())? {
        Some(object) if upload.made(&object) => Ok(()),
        found => {
            let message = match found {
                Some(object) => format!(
                    "{} bytes were sent, and the store has {} of another CRC or length",
                    upload.bytes(),
                    object.bytes
                ),
                None => "it was completed, and is not there".to_owned(),
            };
            Err(Error::new(Kind::Proof, "publish the output", message)
                .with_path(upload.path.as_typed())
                .advise("let no other program write to the output, then run again"))
        }
    }
}

impl Committer for UploadCommitter<'_> {
    fn folder(&self) -> &JobFolder<'_> {
        &self.folder
    }

    fn notice(&self) -> Option<String> {
        notice_of(&self.others)
    }

    fn path_of(&self, name: &Path) -> Location {
        if self.is_file {
            self.target.clone()
        } else {
            self.target.join(name)
        }
    }

    fn publish(mut self: Box<Self>, made: &OutputManifest<'_>) -> Result<()> {
        let uploads = made.uploads;
        if self.is_file {
            let [upload] = uploads else {
                let message = format!("{} uploads make one file", uploads.len());
                return Err(Error::bug("publish the output", message));
            };
            let objects = self.objects()?;
            let path = upload.path.as_typed();
            if !objects.has(upload)? {
                let message = "the store does not have the parts that were sent";
                return Err(Error::new(Kind::Proof, "publish the output", message).with_path(path));
            }
            objects.complete(upload)?;
            check_made(objects, upload)?;
            return sync_names(objects, self.target.parent().iter());
        }
        if self.replace(made)? {
            return Ok(());
        }
        self.remove_old(made.names)?;
        self.complete(uploads)?;
        self.write_success(&self.target, made)?;
        self.completed.clear();
        let target = Some(self.target.clone());
        let names = self.target.parent().into_iter().chain(target);
        names
            .rev()
            .try_for_each(|folder| self.objects()?.sync_names(folder.as_typed()))
    }
}

impl Drop for UploadCommitter<'_> {
    /// No upload stays; and of an output that was not published whole, no object.
    fn drop(&mut self) {
        if !self.owner.is_taken() {
            return;
        }
        // The job's own error is what counts; the next job to this output ends what stays.
        let Ok(objects) = self.objects() else { return };
        let _ = at_once(&self.completed, SHORT_AT_ONCE, |path| {
            let _ = objects.delete(path.as_typed()); // one that fails keeps no other
            Ok(())
        });
        let ended = self.end_uploads();
        // Once more on a disk, where no call is retried: after an output that is whole nobody hears of what stays.
        if ended.is_err() && self.target.local().is_some() {
            let _ = self.end_uploads();
        }
    }
}

/// Ends the uploads of a dead job to its output, if it is in an object store. Its files may have any names, or only those that tasks
/// give.
///
/// # Errors
/// The store cannot be reached.
pub fn end_uploads_to(stores: &Stores, target: &Location, any_names: bool) -> Result<()> {
    let names = UploadNames {
        target,
        is_file: false,
        any: any_names,
    };
    match stores.publisher(target) {
        Some(objects) => end_uploads(objects, names).map(drop),
        None => Ok(()),
    }
}

/// Which uploads are those of an output.
#[derive(Clone, Copy)]
struct UploadNames<'a> {
    target: &'a Location,
    /// It is one object.
    is_file: bool,
    /// Its files may have any names.
    any: bool,
}

/// Ends the uploads to an output; where those go that are below it and not its own.
fn end_uploads(objects: &dyn Publisher, names: UploadNames<'_>) -> Result<Vec<Location>> {
    let target = names.target;
    let uploads = objects.uploads(target.as_typed())?.into_iter();
    let (own, others): (Vec<_>, Vec<_>) = uploads.partition(|(path, _)| names.is_own(path));
    at_once(&own, SHORT_AT_ONCE, |(path, id)| objects.abort(path, id))?;
    objects.clear(target.as_typed())?;
    objects.finish_swap(target.as_typed())?;
    Ok(others.into_iter().map(|(path, _)| path.into()).collect())
}

impl UploadNames<'_> {
    /// Whether an upload is one to a file of this output: by its name, as nobody knows its id where a task was killed.
    fn is_own(self, path: &Path) -> bool {
        let within = path.strip_prefix(self.target.as_typed());
        match within {
            Ok(name) if name.as_os_str().is_empty() => true,
            Ok(name) if !self.is_file => {
                let is_plain = name.components().count() == 1;
                (is_file_name(name) || name == Path::new(SUCCESS))
                    && (self.any || is_output(name) || !is_plain)
            }
            _ => false,
        }
    }
}

/// What the user is told of uploads that are left.
fn notice_of(others: &[Location]) -> Option<String> {
    let first = others.first()?;
    let (count, shown) = (others.len(), show_path(first.as_typed()));
    let which = match count {
        1 => format!("an upload to {shown} lies below the output, is not of this job, and stays"),
        _ => format!(
            "{count} uploads, such as one to {shown}, lie below the output, are not of this job, and stay"
        ),
    };
    Some(format!(
        "{which}. What is not needed any more can be ended in the store, or by a lifecycle rule of the bucket"
    ))
}

fn objects_of<'s>(stores: &'s Stores, target: &Location) -> Result<&'s dyn Publisher> {
    let objects = stores.publisher(target);
    objects.ok_or_else(|| Error::bug("write the output", "it is not in an object store"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_of_an_output_by_its_name() {
        let out = Location::from("s3://b/out");
        for (path, is_own_of_directory) in [
            ("s3://b/out", true),
            ("s3://b/out/part-r-00000.gz", true),
            ("s3://b/out/words-m-00007", true),
            ("s3://b/out/_SUCCESS", true),
            ("s3://b/out/_logs/skip/attempt_1_m_000000_2", true),
            ("s3://b/out/film.mp4", false),
            ("s3://b/out/day/part-r-00000", false),
            ("s3://b/out/day/_SUCCESS", false),
            ("s3://b/outer/part-r-00000", false),
        ] {
            let of = |is_file, any| UploadNames {
                target: &out,
                is_file,
                any,
            };
            let found = of(false, false).is_own(path.as_ref());
            assert_eq!(found, is_own_of_directory, "{path}");
            let found = of(false, true).is_own(path.as_ref());
            let is_film = path == "s3://b/out/film.mp4";
            assert_eq!(found, is_own_of_directory || is_film, "{path}");
            let found = of(true, false).is_own(path.as_ref());
            assert_eq!(found, path == "s3://b/out", "{path}");
        }
        assert_eq!(notice_of(&[]), None);
    }

    #[test]
    fn uploads_of_others_below_an_output_stay_and_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let stores = Stores::new(std::sync::Arc::new(gristmill_storage::local::Local));
        let at =
            |name: &str| Location::from(&*format!("objects://{}/{name}", folder.path().display()));
        let upload = |name: &str| {
            let file = stores.create(&at(name), 0, Caching::Direct).unwrap();
            file.write_at(b"a", 0).unwrap();
            file.finish().unwrap().unwrap();
        };
        let left = || {
            let objects = stores.publisher(&at("out")).unwrap();
            let mut left = objects.uploads(at("out").as_typed()).unwrap();
            left.sort();
            left.into_iter()
                .map(|(path, _)| Location::from(path))
                .collect::<Vec<_>>()
        };
        for name in ["out/part-r-00001", "out/film.mp4", "out/day/part-r-00000"] {
            upload(name); // the first one by a job of this output that was killed
        }
        let others = [at("out/day/part-r-00000"), at("out/film.mp4")];
        let (out, spill) = (at("out"), [folder.path().to_owned()]);
        let owner = Ownership::of_new_job("j");
        let begun = UploadCommitter::begin(&stores, (&out, false), &spill, &owner, false);
        let committer = begun.unwrap();
        assert_eq!(left(), others);
        let notice = committer.notice().unwrap();
        assert!(
            notice.starts_with("2 uploads, such as one to objects://"),
            "{notice}"
        );
        upload("out/part-r-00000"); // by an attempt that was killed
        drop(committer);
        assert_eq!(left(), others);
    }
}
