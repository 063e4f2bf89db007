//! Where runs are spilled to: a locked folder of the job's own in each directory that the user names.
//!
//! ```text
//!   DIR/.gristmill-spill-JOB/lock        held while the job lives
//!   DIR/.gristmill-spill-JOB/run-...     sorted runs
//! ```
//!
//! A folder whose lock is free belonged to a job that was killed: the next job that spills to DIR removes it.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::job_folder::{FolderPlace, JobFolder};
use super::ownership::Ownership;
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::names::show_path;
use gristmill_storage::location::parent_of;
use gristmill_storage::{FileKind, LocalDisk};

const PREFIX: &str = ".gristmill-spill-";

/// Between two tries to take over a folder.
const WAIT: Duration = Duration::from_millis(50);

/// The folders of one job; removed with all in them when dropped.
#[derive(Debug, Default)]
pub struct SpillDirs<'a>(Vec<JobFolder<'a>>);

impl<'a> SpillDirs<'a> {
    /// Makes a folder in each of `directories`, which exist; or takes over those that are there, where the owner resumes a dead job.
    ///
    /// # Errors
    /// A directory is not there, or is of no use. Of a folder that is there: its owner is alive, or there is a link in it.
    pub fn begin(
        disk: &'a dyn LocalDisk,
        directories: &[PathBuf],
        owner: &Ownership,
    ) -> Result<Self> {
        let mut begun = SpillDirs::default();
        for directory in directories {
            check_directory(disk, directory)?;
            if begun.has(&Self::folder_in(directory, owner.job())) {
                continue; // named twice
            }
            let place = Self::place(directory);
            let folder = match place.left(disk, owner)? {
                Some(left) => left,
                None => place
                    .create(disk, owner)
                    .map_err(|error| takes_none(directory, error))?,
            };
            begun.0.push(folder);
        }
        Ok(begun)
    }

    /// Takes over the folders in `directories` whose jobs were called `job`, a dash and something more: those of agents whose driver
    /// is dead. Which they are, `is_left` says. One that is still locked is waited for until `deadline`; one that is not what
    /// it seems is left alone.
    ///
    /// # Errors
    /// A directory is not there, or cannot be read.
    pub fn adopt_all(
        disk: &'a dyn LocalDisk,
        directories: &[PathBuf],
        job: &str,
        is_left: &dyn Fn(&Path) -> bool,
        deadline: Instant,
    ) -> Result<Self> {
        let (mut adopted, owner) = (SpillDirs::default(), Ownership::of_new_job(job));
        loop {
            let mut waits = false;
            for folder in folders_of_agents(disk, directories, job)? {
                if adopted.has(&folder) || !is_left(&folder) {
                    continue;
                }
                match JobFolder::take_over(disk, folder, &owner) {
                    Ok(folder) => adopted.0.push(folder),
                    Err(error) => waits |= error.kind() == Kind::Exists,
                }
            }
            if !waits || Instant::now() >= deadline {
                return Ok(adopted);
            }
            sleep(WAIT);
        }
    }

    /// Gives the folders up with all in them, to be taken over by those who resume the job.
    pub fn leave(mut self) {
        self.0.iter_mut().for_each(JobFolder::stay);
    }

    /// Those of all jobs in a directory.
    fn place(directory: &Path) -> FolderPlace<'_> {
        FolderPlace {
            directory,
            prefix: PREFIX.into(),
            output: None,
        }
    }

    /// The folder of a job in a directory.
    ///
    /// ```
    /// use gristmill_tasks::commit::SpillDirs;
    /// assert_eq!(SpillDirs::folder_in("/tmp".as_ref(), "j").to_str(), Some("/tmp/.gristmill-spill-j"));
    /// ```
    pub fn folder_in(directory: &Path, job: &str) -> PathBuf {
        Self::place(directory).folder_of(job)
    }

    /// The folders, in the order of the directories.
    pub fn folders(&self) -> Vec<PathBuf> {
        let paths = self.0.iter().map(|folder| folder.path().to_owned());
        paths.collect()
    }

    fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| folder.path() == path)
    }
}

/// The folders of the agents of a job.
fn folders_of_agents(
    store: &dyn LocalDisk,
    directories: &[PathBuf],
    job: &str,
) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for directory in directories {
        check_directory(store, directory)?;
        let place = FolderPlace {
            prefix: format!("{PREFIX}{job}-").into(),
            ..SpillDirs::place(directory)
        };
        let all = store.list(directory)?.into_iter();
        found.extend(all.filter(|folder| place.is_one(folder)));
    }
    Ok(found)
}

/// The error of a spill directory in which no folder can be made.
fn takes_none(directory: &Path, error: Error) -> Error {
    let what = match error.kind() {
        Kind::Permission => "it cannot be written to",
        Kind::NotFound => "its file system takes no files",
        _ => return error,
    };
    Error::new(error.kind(), "use a spill directory", what)
        .with_path(directory)
        .advise_options(
            "give {} a directory that can be written to, on a file system with room",
            [JobOption::SpillDir.named()],
        )
}

/// Fails where a spill directory that was given is none.
pub fn check_directory(store: &dyn LocalDisk, directory: &Path) -> Result<()> {
    let wrong = |kind, what| {
        Error::new(kind, "use a spill directory", what)
            .with_path(directory)
            .advise_options(
                "give {} a directory that exists, on a file system with room",
                [JobOption::SpillDir.named()],
            )
    };
    match store.stat(directory)?.map(|stat| stat.kind) {
        Some(FileKind::Directory) => Ok(()),
        Some(_) => Err(wrong(Kind::BadOption, "it is not a directory")),
        None => Err(wrong(Kind::NotFound, "it does not exist")),
    }
}

/// What a user should know of a place for runs before the job begins; nothing of a disk of this machine.
///
/// ```
/// use gristmill_storage::local::Local;
/// use gristmill_tasks::commit::notice_of_runs;
/// assert_eq!(notice_of_runs(&Local, "/proc".as_ref()), None);
/// ```
pub fn notice_of_runs(store: &dyn LocalDisk, place: &Path) -> Option<String> {
    let mount = store.shared_mount(place)?;
    let shown = show_path(shown_of(place));
    Some(format!(
        "sorted runs go to {shown}, on a mount that several machines share ({mount}): they cross the network twice. What to do: \
         name a directory on a disk of this machine with --spill-dir (spill_dir in Python), if there is one with room."
    ))
}

/// The directory that the user knows: without what the job has made in it.
pub(super) fn shown_of(place: &Path) -> &Path {
    let is_ours = |path: &&Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('.') && name.contains("gristmill-")
    };
    match place.ancestors().find(is_ours) {
        Some(ours) => parent_of(ours),
        None => place,
    }
}

/// Fails with the numbers where runs of so many bytes, and what passes add, cannot have room in `folders`, each on a file system of its own or not. If
/// one of them has no holes, and the `output` lies there too, both need room at the same time.
pub fn check_room(
    store: &dyn LocalDisk,
    folders: &[PathBuf],
    (runs_bytes, passes_bytes): (u64, u64),
    output: Option<&Path>,
) -> Result<()> {
    let (mut free, mut devices) = (0_u64, Vec::new());
    let device_of = |path: &Path| Ok::<_, Error>(store.stat(path)?.map(|stat| stat.identity.0));
    let output = output.map_or(Ok(None), device_of)?;
    let (mut bytes, mut with_output) = (runs_bytes.saturating_add(passes_bytes), false);
    for folder in folders {
        if output.is_some() && device_of(folder)? == output && !store.gives_back(folder)? {
            (bytes, with_output) = (bytes.max(runs_bytes.saturating_mul(2)), true);
            break;
        }
    }
    for folder in folders {
        let device = device_of(folder)?;
        let Some(bytes_free) = store.free_bytes(folder)? else {
            return Ok(()); // a store that does not know will say when it is full
        };
        if !devices.contains(&device) {
            devices.push(device);
            free = free.saturating_add(bytes_free);
        }
    }
    if free >= bytes {
        return Ok(());
    }
    let message = format!(
        "runs{} need {} of disk{}, and {} are free",
        if with_output { " and output" } else { "" },
        show_bytes(bytes),
        shown_passes(passes_bytes),
        show_bytes(free)
    );
    let error = Error::new(Kind::DiskFull, "spill", message);
    let error = folders
        .iter()
        .fold(error, |error, folder| error.with_path(folder));
    Err(error.advise_options(
        "free some space, add a {} on another file system, or give more {}",
        [JobOption::SpillDir.named(), JobOption::Memory.named()],
    ))
}

/// What merge passes have to do with it.
fn shown_passes(passes_bytes: u64) -> String {
    match passes_bytes {
        0 => String::new(),
        bytes => format!(
            " ({} of them while merge passes write new runs)",
            show_bytes(bytes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::LOCK;
    use gristmill_storage::faulty::Faulty;
    use gristmill_storage::local::Local;

    #[test]
    fn folders_of_agents_are_taken_over_or_left() {
        let directory = tempfile::tempdir().unwrap();
        let given = [directory.path().to_owned()];
        let begin = |job| SpillDirs::begin(&Local, &given, &Ownership::of_new_job(job)).unwrap();
        let adopt = || {
            let now = Instant::now();
            SpillDirs::adopt_all(&Local, &given, "j", &|_| true, now).unwrap()
        };
        let (one, two) = (begin("j-0"), begin("j-1"));
        let folder = one.folders()[0].clone();
        std::fs::write(folder.join("run-1"), "a run").unwrap();
        assert!(adopt().folders().is_empty()); // they are locked
        one.leave();
        let adopted = adopt();
        assert_eq!(adopted.folders(), std::slice::from_ref(&folder));
        drop(begin("next"));
        assert!(folder.join("run-1").is_file() && adopt().folders().is_empty());
        adopted.leave();
        drop(adopt());
        assert!(!folder.exists() && two.folders()[0].is_dir());
        let none = SpillDirs::adopt_all(&Local, &given, "j", &|_| false, Instant::now());
        two.leave();
        assert!(none.unwrap().folders().is_empty());
        drop(begin("j")); // whose sweep removes the other
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_kill_leaves_of_a_folder_that_was_being_removed_goes_with_the_next_job() {
        let directory = tempfile::tempdir().unwrap();
        let given = [directory.path().to_owned()];
        let folder = directory.path().join(".gristmill-spill-j");
        let killed_at = |call| {
            let store = Faulty::dying(Local, call);
            let places = SpillDirs::begin(&store, &given, &Ownership::of_new_job("j")).unwrap();
            for run in ["run-1", "run-2"] {
                std::fs::write(folder.join(run), run).unwrap();
            }
            let begun = store.calls();
            drop(places);
            (begun, store.calls())
        };
        let (begun, all) = killed_at(u64::MAX);
        assert!(!folder.exists() && all == begun + 4);
        for call in begun..all {
            killed_at(call);
            let there = std::fs::read_dir(&folder).unwrap().count();
            assert!(there == 0 || folder.join(LOCK).exists(), "call {call}");
            drop(SpillDirs::begin(&Local, &given, &Ownership::of_new_job("next")).unwrap());
            assert_eq!(folder.exists(), there == 0, "call {call}");
            let _ = std::fs::remove_dir(&folder);
        }
    }

    #[test]
    fn a_link_in_a_folders_place_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let precious = directory.path().join("precious");
        std::fs::create_dir(&precious).unwrap();
        std::fs::write(precious.join(LOCK), "").unwrap();
        std::fs::write(precious.join("mine"), "").unwrap();
        let link = directory.path().join(".gristmill-spill-j");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        drop(
            SpillDirs::begin(
                &Local,
                &[directory.path().to_owned()],
                &Ownership::of_new_job("next"),
            )
            .unwrap(),
        );
        assert!(
            link.is_symlink() && precious.join(LOCK).exists() && precious.join("mine").exists()
        );
    }

    #[test]
    fn folders_live_as_long_as_their_job_and_dead_ones_go() {
        let directory = tempfile::tempdir().unwrap();
        let there = || std::fs::read_dir(directory.path()).unwrap().count();
        let dead = directory.path().join(".gristmill-spill-dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        let given = [directory.path().to_owned(), directory.path().to_owned()];
        let places = SpillDirs::begin(&Local, &given, &Ownership::of_new_job("j1")).unwrap();
        assert_eq!((places.folders().len(), there()), (1, 1));
        let other = SpillDirs::begin(&Local, &given, &Ownership::of_new_job("j2")).unwrap();
        assert_eq!(there(), 2, "a living job's folder stays");
        drop((places, other));
        assert_eq!(there(), 0);
    }

    #[test]
    fn what_is_no_directory_or_has_no_room_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let error = SpillDirs::begin(&Local, &[missing], &Ownership::of_new_job("j")).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        let disk = (1 << 60, 0);
        let error = check_room(&Local, &[directory.path().to_owned()], disk, None).unwrap_err();
        assert!(error.to_string().contains("1152921.50 TB"), "{error}");
        let runs = directory.path().join(".out.gristmill-j/spill");
        assert_eq!(shown_of(&runs), directory.path());
        assert_eq!(shown_of("a/b".as_ref()), Path::new("a/b"));
    }
}
