//! An output directory in the making: it gets its name by one rename, or an exchange with the old one.
//!
//! Where nothing can be created beside the output, its job folder lies inside it, and parts are renamed one by one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::adopt::{Ownership, may_go, take};
use super::folder::{
    create, folders_of, is_there, job_folder, make, prefix_of, remove_folder, sweep,
};
use super::within::{self, make_above};
use super::{CommitOptions, Committer, Made, OLD, OUTPUT, SUCCESS};
use crate::error::{Error, JobOption, Kind, Result, show_bytes};
use crate::names::show_path;
use crate::storage::location::{Location, parent_of};
use crate::storage::{Caching, FileKind, LocalDisk, Lock};

/// An output being made: its job folder, locked.
#[derive(Debug)]
pub struct Staging<'a> {
    store: &'a dyn LocalDisk,
    target: PathBuf,
    folder: PathBuf,
    options: CommitOptions,
    /// The folder lies inside the target.
    inside: bool,
    lock: Option<Box<dyn Lock>>,
    published: bool,
    /// The folder holds the old output.
    has_old: bool,
    /// It is the only copy there is, and must stay.
    holds_old: bool,
    /// Whether it goes at the end; it does if nobody says so.
    ownership: Option<Ownership>,
}

impl<'a> Staging<'a> {
    /// Makes the job folder for an output directory `target` of `bytes` bytes; removes those of dead jobs.
    ///
    /// ```
    /// use gristmill_engine::commit::{CommitOptions, Committer, Made, Staging};
    /// use gristmill_engine::storage::{Caching, Output, Store, memory::Memory};
    /// let store = Memory::with_room_for(1000);
    /// let options = CommitOptions { overwrite: false, sync: true };
    /// let staging = Staging::begin(&store, "/out".as_ref(), "job_1", 3, options)?;
    /// store.create(&staging.staged().join("part-r-00000"), 3, Caching::Direct)?.write_at(b"abc", 0)?;
    /// assert!(store.stat("/out".as_ref())?.is_none());
    /// Box::new(staging).publish(&Made { names: &["part-r-00000".into()], uploads: &[], success: b"{}" })?;
    /// assert_eq!(store.bytes_of("/out/part-r-00000".as_ref()), Some(b"abc".to_vec()));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn begin(
        store: &'a dyn LocalDisk,
        target: &Path,
        job: &str,
        bytes: u64,
        options: CommitOptions,
    ) -> Result<Self> {
        let parent = parent_of(target);
        let name = check_target(store, target, options.overwrite)?;
        let exists = store.stat(target)?.is_some();
        let prefix = prefix_of(&name);
        let beside = parent.join(job_folder(&prefix, job));
        let mount_point = exists && device_of(store, target)? != device_of(store, parent)?;
        let within = target.join(format!(".gristmill-{job}"));
        sweep(store, parent, &prefix, target, None)?;
        let made = match mount_point {
            true => None,
            false => match create(store, &beside) {
                Err(error) if exists && error.kind() == Kind::Permission => None,
                made => Some(made?),
            },
        };
        let inside = made.is_none();
        let (folder, lock) = match made {
            Some(lock) => (beside, lock),
            None => {
                sweep(store, target, ".gristmill-".as_ref(), target, None)?;
                let lock = create(store, &within)?;
                (within, lock)
            }
        };
        let staging = Staging {
            store,
            target: target.to_owned(),
            folder,
            options,
            inside,
            lock: Some(lock),
            published: false,
            has_old: false,
            holds_old: false,
            ownership: None,
        };
        store.create_directory(&staging.folder.join(OUTPUT))?;
        check_space(store, &staging.folder, bytes)?;
        Ok(staging)
    }

    /// Makes `parts` durable, writes `success` to `_SUCCESS`, gives the directory its name.
    fn publish_as(&mut self, parts: &[PathBuf], success: &[u8]) -> Result<()> {
        let staged = self.folder.join(OUTPUT);
        if self.options.sync {
            parts
                .iter()
                .try_for_each(|part| self.sync_file(&staged.join(part)))?;
        }
        let path = staged.join(SUCCESS);
        let file = self
            .store
            .create(&path, success.len() as u64, Caching::Cached)?;
        file.write_at(success, 0)?;
        file.hand_over()?;
        if self.options.sync {
            file.sync()?;
            within::sync(self.store, &staged, parts)?;
        }
        drop(file);
        if self.inside {
            self.publish_parts(parts)?;
        } else {
            self.publish_directory(&staged)?;
        }
        self.published = true;
        let synced = match (self.options.sync, self.inside) {
            (false, _) => Ok(()),
            (true, true) => within::sync(self.store, &self.target, parts),
            (true, false) => self.store.sync_directory(parent_of(&self.target)),
        };
        match synced {
            // After a crash the old output may have its name again.
            Err(error) if self.has_old => Err(error
                .with("old output", show_path(&self.folder))
                .advise("check the disk; the old output stays there until a job writes to the same output")),
            synced => remove_folder(self.store, &self.folder, self.lock.take()).and(synced),
        }
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        self.store.create(path, 0, Caching::Cached)?.sync()
    }

    /// One rename; with an old output in place, one exchange, so that there is never none.
    fn publish_directory(&mut self, staged: &Path) -> Result<()> {
        if !self.options.overwrite || self.store.stat(&self.target)?.is_none() {
            return self.store.rename(staged, &self.target);
        }
        self.has_old = self.store.exchange(staged, &self.target)?;
        if self.has_old {
            return Ok(());
        }
        let old = self.folder.join(OLD);
        self.store.rename(&self.target, &old)?;
        self.has_old = true;
        let renamed = self.store.rename(staged, &self.target);
        if renamed.is_err() {
            self.holds_old = self.store.rename(&old, &self.target).is_err();
        }
        renamed
    }

    /// File by file: the old `_SUCCESS` goes first, the new one comes last. An error moves all of them back.
    fn publish_parts(&mut self, parts: &[PathBuf]) -> Result<()> {
        let mut moved = Vec::new();
        let published = self.move_parts(parts, &mut moved);
        self.has_old = moved.iter().any(|(from, _)| from.starts_with(&self.target));
        if published.is_err() {
            let back = |(from, to): (PathBuf, PathBuf)| self.store.rename(&to, &from);
            self.holds_old = moved.into_iter().rev().try_for_each(back).is_err();
        }
        published
    }

    fn move_parts(&self, parts: &[PathBuf], moved: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
        let old = self.folder.join(OLD);
        self.store.create_directory(&old)?;
        let mut entries = self.store.list(&self.target)?;
        entries.retain(|path| *path != self.folder);
        entries.sort_by_key(|path| !path.ends_with(SUCCESS));
        let aside = entries.into_iter().map(|path| {
            let to = old.join(path.file_name().unwrap_or_default());
            (path, to)
        });
        let names = parts.iter().map(PathBuf::as_path).chain([SUCCESS.as_ref()]);
        let new = names.map(|name| (self.staged().join(name), self.target.join(name)));
        for (from, to) in aside.chain(new) {
            make_above(self.store, &to)?;
            self.store.rename(&from, &to)?;
            moved.push((from, to));
        }
        Ok(())
    }
}

impl<'a> Staging<'a> {
    /// With what says whether the folder goes at the end.
    #[must_use]
    pub fn owned(mut self, ownership: &Ownership) -> Self {
        self.belong_to(ownership);
        self
    }

    pub(super) fn belong_to(&mut self, ownership: &Ownership) {
        self.ownership = Some(ownership.clone());
    }

    /// Takes over the folder of the dead job `job`, whose output has files of these names; begins anew where there
    /// is none. Whatever else lies among them goes.
    ///
    /// # Errors
    /// The folder's owner is alive, there is a link in it, or the output may not be written any more.
    pub fn adopt(
        store: &'a dyn LocalDisk,
        target: &Path,
        job: &str,
        (names, bytes): (&[PathBuf], u64),
        options: CommitOptions,
        taken: &Ownership,
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
        sweep(
            store,
            parent_of(target),
            &prefix_of(&name),
            target,
            Some(&folder),
        )?;
        for path in store.list(&staged)? {
            // A file's name may begin with a folder's.
            let own = |name: &PathBuf| name.iter().next() == path.file_name();
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
            lock: Some(lock),
            published: false,
            has_old: false,
            holds_old: false,
            ownership: Some(taken.clone()),
        })
    }
}

impl Committer for Staging<'_> {
    fn disk(&self) -> &dyn LocalDisk {
        self.store
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn path_of(&self, name: &Path) -> Location {
        self.staged().join(name).into()
    }

    fn publish(mut self: Box<Self>, made: &Made<'_>) -> Result<()> {
        self.publish_as(made.names, made.success)
    }
}

impl Drop for Staging<'_> {
    /// A job that fails leaves nothing behind.
    fn drop(&mut self) {
        if !self.published && !self.holds_old && may_go(self.ownership.as_ref()) {
            // The job's own error is what the user needs to see; the next job removes what stays.
            let _ = remove_folder(self.store, &self.folder, self.lock.take());
        }
    }
}

/// Undoes a publication file by file that did not come to its end: what was moved goes back to where it was.
fn put_back_files(
    store: &dyn LocalDisk,
    target: &Path,
    folder: &Path,
    names: &[PathBuf],
) -> Result<()> {
    let (staged, old) = (folder.join(OUTPUT), folder.join(OLD));
    if !is_there(store, &old)? {
        return Ok(());
    }
    // The proof is moved last: while it is staged, what is missing beside it has been moved.
    if is_there(store, &staged.join(SUCCESS))? {
        for name in names {
            let (from, to) = (target.join(name), staged.join(name));
            if !is_there(store, &to)? && is_there(store, &from)? {
                make_above(store, &to)?;
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

/// Whether `target` may be written; returns its name.
pub(super) fn check_target(
    store: &dyn LocalDisk,
    target: &Path,
    overwrite: bool,
) -> Result<OsString> {
    let refuse = |kind, what: &str| Error::new(kind, "write the output", what).with_path(target);
    let Some(name) = target.file_name() else {
        return Err(refuse(Kind::BadOption, "it has no name of its own")
            .advise("name a directory that does not exist yet"));
    };
    let Some(stat) = store.stat(target)? else {
        return Ok(name.to_owned());
    };
    let taken = match stat.kind {
        FileKind::Directory => None,
        FileKind::File => Some("there is a file of this name"),
        FileKind::DanglingLink => Some("there is a dangling link of this name"),
        FileKind::Other => Some("there is something of this name that is not a directory"),
    };
    if let Some(taken) = taken {
        return Err(refuse(Kind::Exists, taken).advise("name a directory that does not exist yet"));
    }
    let entries = store.list(target)?;
    let foreign = entries.iter().find(|path| !is_output(path));
    if overwrite && let Some(foreign) = foreign {
        let what = "the directory holds more than a job's output, and overwriting would remove it";
        return Err(refuse(Kind::Exists, what)
            .with("for example", show_path(foreign))
            .advise("name another output, or remove the directory yourself"));
    }
    if !overwrite {
        return Err(refuse(Kind::Exists, "the output exists").advise_options(
            "name another output, or give {} to replace it",
            [JobOption::Overwrite.named()],
        ));
    }
    Ok(name.to_owned())
}

/// Whether a name is one that jobs give: parts, `_SUCCESS` and the like, checksums and job folders.
pub(super) fn is_output(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    let known = ["part-", "_", ".part-", "._", ".gristmill-"];
    known.iter().any(|prefix| name.starts_with(prefix)) || is_named_output(&name)
}

/// Whether a name is that of a task's further output: a name, `-m-` or `-r-`, five digits or more, a suffix.
fn is_named_output(name: &str) -> bool {
    ["-m-", "-r-"].iter().any(|kind| {
        let number = name.split_once(kind).map_or("", |(_, after)| after);
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        digits >= 5 && matches!(number.as_bytes().get(digits), None | Some(b'.'))
    })
}

fn device_of(store: &dyn LocalDisk, path: &Path) -> Result<Option<u64>> {
    Ok(store.stat(path)?.map(|stat| stat.identity.0))
}

/// Refuses an output that cannot fit.
fn check_space(store: &dyn LocalDisk, folder: &Path, bytes: u64) -> Result<()> {
    match store.free_bytes(folder)? {
        Some(free) if free < bytes => {
            let message = format!(
                "it needs {} and the file system has {} free",
                show_bytes(bytes),
                show_bytes(free)
            );
            Err(Error::new(Kind::DiskFull, "write the output", message)
                .with_path(folder)
                .advise("free some space, or name an output on another file system"))
        }
        _ => Ok(()),
    }
}
