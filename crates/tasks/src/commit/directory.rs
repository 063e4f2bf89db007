//! An output directory in the making: it gets its name by one rename, or an exchange with the old one.
//!
//! Where nothing can be created beside the output, its job folder lies inside it, and parts are renamed one by one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::job_folder::{FolderPlace, JobFolder, is_there, make};
use super::listed::listed_on_disk;
use super::ownership::Ownership;
use super::within::{self, make_above};
use super::{CommitOptions, Committer, OLD, OUTPUT, OutputManifest, SUCCESS};
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::names::show_path;
use gristmill_storage::location::{Location, parent_of};
use gristmill_storage::{Caching, FileKind, LocalDisk};

/// An output directory being made.
#[derive(Debug)]
pub struct DirectoryStaging<'a> {
    target: PathBuf,
    folder: JobFolder<'a>,
    options: CommitOptions,
    /// The folder lies inside the target.
    inside: bool,
}

impl<'a> DirectoryStaging<'a> {
    /// Makes the job folder for an output directory `target` of `bytes` bytes; removes those of dead jobs. Where the owner resumes
    /// a dead job, takes over that job's folder if there is one: what has these names in it stays, what else lies among them goes.
    ///
    /// # Errors
    /// Another job writes the output, or it may not be written. Of a folder that is there: its owner is alive, or there is a link in it.
    ///
    /// ```
    /// use gristmill_tasks::commit::{CommitOptions, Committer, OutputManifest, DirectoryStaging, Ownership};
    /// use gristmill_storage::{Caching, OutputStore, Store, memory::Memory};
    /// let store = Memory::with_room_for(1000);
    /// let options = CommitOptions { overwrite: false, sync: true };
    /// let (owner, names) = (Ownership::of_new_job("job_1"), ["part-r-00000".into()]);
    /// let staging = DirectoryStaging::begin(&store, "/out".as_ref(), &owner, (&names, 3), options)?;
    /// store.create(&staging.folder().staged().join("part-r-00000"), 3, Caching::Direct)?.write_at(b"abc", 0)?;
    /// assert!(store.stat("/out".as_ref())?.is_none());
    /// Box::new(staging).publish(&OutputManifest { names: &names, uploads: &[], success: b"{}" })?;
    /// assert_eq!(store.bytes_of("/out/part-r-00000".as_ref()), Some(b"abc".to_vec()));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn begin(
        disk: &'a dyn LocalDisk,
        target: &Path,
        owner: &Ownership,
        (names, bytes): (&[PathBuf], u64),
        options: CommitOptions,
    ) -> Result<Self> {
        let (folder, inside) = match Self::left(disk, target, owner)? {
            Some((folder, inside)) => {
                put_back(&folder, inside, (target, names))?;
                check_target(disk, target, options.overwrite)?;
                FolderPlace::beside(target).sweep(disk, Some(folder.path()))?;
                keep_only(&folder, names)?;
                (folder, inside)
            }
            None => {
                check_target(disk, target, options.overwrite)?;
                let (folder, inside) = Self::new_folder(disk, target, owner)?;
                disk.create_directory(&folder.staged())?;
                check_space(disk, folder.path(), bytes)?;
                (folder, inside)
            }
        };
        Ok(DirectoryStaging {
            target: target.to_owned(),
            folder,
            options,
            inside,
        })
    }

    /// What a dead job left that is resumed; and whether that lies inside the output.
    fn left(
        disk: &'a dyn LocalDisk,
        target: &Path,
        owner: &Ownership,
    ) -> Result<Option<(JobFolder<'a>, bool)>> {
        for (place, inside) in places_of(target) {
            if let Some(folder) = place.left(disk, owner)? {
                make(disk, &folder.staged())?;
                return Ok(Some((folder, inside)));
            }
        }
        Ok(None)
    }

    /// A folder beside the output, or inside it where none can be made there.
    fn new_folder(
        disk: &'a dyn LocalDisk,
        target: &Path,
        owner: &Ownership,
    ) -> Result<(JobFolder<'a>, bool)> {
        let [(beside, _), (within, _)] = places_of(target);
        let exists = is_there(disk, target)?;
        if exists && device_of(disk, target)? != device_of(disk, parent_of(target))? {
            beside.sweep(disk, None)?;
            return Ok((within.begin(disk, owner)?, true)); // a mount point
        }
        match beside.begin(disk, owner) {
            Err(error) if exists && error.kind() == Kind::Permission => {
                Ok((within.begin(disk, owner)?, true))
            }
            begun => Ok((begun?, false)),
        }
    }

    /// Makes `parts` durable, writes `success` to `_SUCCESS`, gives the directory its name; says whether the folder has the old output.
    fn publish_as(&mut self, parts: &[PathBuf], success: &[u8]) -> Result<bool> {
        let (disk, staged) = (self.folder.disk(), self.folder.staged());
        if self.options.sync {
            parts
                .iter()
                .try_for_each(|part| self.sync_file(&staged.join(part)))?;
        }
        let path = staged.join(SUCCESS);
        let file = disk.create(&path, success.len() as u64, Caching::Cached)?;
        file.write_at(success, 0)?;
        file.hand_over()?;
        if self.options.sync {
            file.sync()?;
            within::sync(disk, &staged, parts)?;
        }
        drop(file);
        if self.inside {
            self.publish_parts(parts)
        } else {
            self.publish_directory(&staged)
        }
    }

    /// Makes the new name durable.
    fn sync_target(&self, parts: &[PathBuf]) -> Result<()> {
        match (self.options.sync, self.inside) {
            (false, _) => Ok(()),
            (true, true) => within::sync(self.folder.disk(), &self.target, parts),
            (true, false) => self.folder.disk().sync_directory(parent_of(&self.target)),
        }
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        self.folder.disk().create(path, 0, Caching::Cached)?.sync()
    }

    /// One rename; with an old output in place, one exchange, so that there is never none.
    fn publish_directory(&mut self, staged: &Path) -> Result<bool> {
        let (disk, target) = (self.folder.disk(), &self.target);
        if !self.options.overwrite || !is_there(disk, target)? {
            return disk.rename(staged, target).map(|()| false);
        }
        if disk.exchange(staged, target)? {
            return Ok(true);
        }
        let old = self.folder.path().join(OLD);
        disk.rename(target, &old)?;
        let renamed = disk.rename(staged, target);
        if renamed.is_err() && disk.rename(&old, target).is_err() {
            self.folder.stay(); // it is the only copy that there is
        }
        renamed.map(|()| true)
    }

    /// File by file: the old `_SUCCESS` goes first, the new one comes last. An error moves all of them back.
    fn publish_parts(&mut self, parts: &[PathBuf]) -> Result<bool> {
        let mut moved = Vec::new();
        let published = self.move_parts(parts, &mut moved);
        let has_old = moved.iter().any(|(from, _)| from.starts_with(&self.target));
        if published.is_err() {
            let disk = self.folder.disk();
            let back = |(from, to): (PathBuf, PathBuf)| disk.rename(&to, &from);
            if moved.into_iter().rev().try_for_each(back).is_err() {
                self.folder.stay();
            }
        }
        published.map(|()| has_old)
    }

    fn move_parts(&self, parts: &[PathBuf], moved: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
        let (disk, staged) = (self.folder.disk(), self.folder.staged());
        let old = self.folder.path().join(OLD);
        disk.create_directory(&old)?;
        let mut entries = disk.list(&self.target)?;
        entries.retain(|path| path != self.folder.path());
        entries.sort_by_key(|path| !path.ends_with(SUCCESS));
        let aside = entries.into_iter().map(|path| {
            let to = old.join(path.file_name().unwrap_or_default());
            (path, to)
        });
        let names = parts.iter().map(PathBuf::as_path).chain([SUCCESS.as_ref()]);
        let new = names.map(|name| (staged.join(name), self.target.join(name)));
        for (from, to) in aside.chain(new) {
            make_above(disk, &to)?;
            disk.rename(&from, &to)?;
            moved.push((from, to));
        }
        Ok(())
    }
}

impl Committer for DirectoryStaging<'_> {
    fn folder(&self) -> &JobFolder<'_> {
        &self.folder
    }

    fn path_of(&self, name: &Path) -> Location {
        self.folder.staged().join(name).into()
    }

    fn publish(mut self: Box<Self>, made: &OutputManifest<'_>) -> Result<()> {
        let has_old = self.publish_as(made.names, made.success)?;
        let synced = self.sync_target(made.names);
        if has_old && let Err(error) = synced {
            // After a crash the old output may have its name again.
            self.folder.stay();
            return Err(error
                .with("old output", show_path(self.folder.path()))
                .advise("check the disk; the old output stays there until a job writes to the same output"));
        }
        self.folder.remove().and(synced)
    }
}

/// Where a job to an output directory may have its folder; and whether that lies inside the output.
pub(super) fn places_of(target: &Path) -> [(FolderPlace<'_>, bool); 2] {
    [
        (FolderPlace::beside(target), false),
        (FolderPlace::within(target), true),
    ]
}

/// Undoes a publication that did not come to its end.
fn put_back(
    folder: &JobFolder<'_>,
    inside: bool,
    (target, names): (&Path, &[PathBuf]),
) -> Result<()> {
    let (disk, old) = (folder.disk(), folder.path().join(OLD));
    if inside {
        put_back_files(disk, target, folder.path(), names)
    } else if is_there(disk, &old)? && !is_there(disk, target)? {
        disk.rename(&old, target)
    } else {
        Ok(())
    }
}

/// Removes what is staged and has none of these names: an old proof, or nothing of ours.
fn keep_only(folder: &JobFolder<'_>, names: &[PathBuf]) -> Result<()> {
    for path in folder.disk().list(&folder.staged())? {
        // A file's name may begin with a folder's.
        let own = |name: &PathBuf| name.iter().next() == path.file_name();
        if !names.iter().any(own) {
            folder.disk().remove(&path)?;
        }
    }
    Ok(())
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

/// Whether `target` may be written.
pub(super) fn check_target(store: &dyn LocalDisk, target: &Path, overwrite: bool) -> Result<()> {
    let refuse = |kind, what: &str| Error::new(kind, "write the output", what).with_path(target);
    if target.file_name().is_none() {
        return Err(refuse(Kind::BadOption, "it has no name of its own")
            .advise("name a directory that does not exist yet"));
    }
    let Some(stat) = store.stat(target)? else {
        return Ok(());
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
    let mut foreign = entries.iter().filter(|path| !is_output(path)).peekable();
    let listed = match foreign.peek() {
        Some(_) if overwrite => listed_on_disk(store, target)?,
        _ => BTreeSet::new(),
    };
    let foreign = foreign.find(|path| !is_listed(path, &listed));
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
    Ok(())
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

/// Whether a file is one of those that an old output lists.
pub(super) fn is_listed(path: &Path, listed: &BTreeSet<PathBuf>) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| listed.contains(Path::new(name)))
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
