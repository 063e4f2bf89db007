//! Removes old histories: those of jobs that ended more than [`AGE_MAX`] ago, and of the rest the oldest, until all
//! together have at most [`BYTES_MAX`].
//!
//! The rule that must hold: only the history of a job that came to its end goes. That of a job that is alive is
//! locked; that of a dead one may be resumed from, and says where its folders are: `gristmill jobs prune` removes both.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::EVENTS;
use super::event::{Event, Timed};

/// How long a history is kept.
pub const AGE_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// What all histories may have together: `gristmill jobs` takes less than 0.2 s with as much.
pub const BYTES_MAX: u64 = 1_000_000_000;

/// How much of a file's end is read at first to find the last event: a report is of some kilobytes.
const TAIL_BYTES: u64 = 1 << 16;

/// Removes what is too old or too much in the folder with a folder for each job. A history that cannot be looked at
/// or removed stays: no job fails because of it.
pub fn remove_old(jobs: &Path) {
    remove_beyond(jobs, SystemTime::now(), BYTES_MAX);
}

fn remove_beyond(jobs: &Path, now: SystemTime, most_bytes: u64) {
    let mut found = histories(jobs);
    found.sort_by_key(|history| history.changed);
    let mut left_bytes: u64 = found.iter().map(|history| history.bytes).sum();
    for history in found {
        let age = now.duration_since(history.changed).unwrap_or_default();
        if left_bytes <= most_bytes && age <= AGE_MAX {
            return; // all that follow are younger
        }
        if remove_if_over(&history.folder).unwrap_or(false) {
            left_bytes -= history.bytes;
        }
    }
}

struct OldHistory {
    folder: PathBuf,
    changed: SystemTime,
    bytes: u64,
}

fn histories(jobs: &Path) -> Vec<OldHistory> {
    let entries = fs::read_dir(jobs).into_iter().flatten().flatten();
    let of = |folder: PathBuf| {
        let found = fs::symlink_metadata(folder.join(EVENTS)).ok()?;
        let plain = found.is_file() && fs::symlink_metadata(&folder).ok()?.is_dir();
        plain.then_some(OldHistory {
            changed: found.modified().ok()?,
            bytes: bytes_below(&folder),
            folder,
        })
    };
    entries.filter_map(|entry| of(entry.path())).collect()
}

/// Bytes of a history, with its logs and with what its user code failed at.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// Removes a history whose last event is the end of its job, and which nobody has.
fn remove_if_over(folder: &Path) -> io::Result<bool> {
    let mut file = File::open(folder.join(EVENTS))?;
    if file.try_lock().is_err() || !is_over(&mut file)? {
        return Ok(false);
    }
    fs::remove_dir_all(folder)?;
    Ok(true)
}

fn is_over(file: &mut File) -> io::Result<bool> {
    let line = last_line(file)?;
    let last = serde_json::from_slice::<Timed>(&line).map(|timed| timed.event);
    Ok(matches!(last, Ok(Event::JobFinished { .. })))
}

/// The last line, if it is whole.
fn last_line(file: &mut File) -> io::Result<Vec<u8>> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut tail_bytes = TAIL_BYTES;
    loop {
        let from = end.saturating_sub(tail_bytes);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.by_ref().take(end - from).read_to_end(&mut tail)?;
        if tail.pop() != Some(b'\n') {
            return Ok(Vec::new());
        }
        match memchr::memrchr(b'\n', &tail) {
            Some(before) => return Ok(tail.split_off(before + 1)),
            None if from == 0 => return Ok(tail),
            None => tail_bytes *= 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: &str = r#"{"t_ms":9,"event":"job_finished","status":"succeeded","report":{}}"#;
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn history(jobs: &Path, name: &str, last: &str, bytes: usize, age: Duration) -> PathBuf {
        let folder = jobs.join(name);
        fs::create_dir_all(&folder).unwrap();
        let first = format!("{{\"event\":\"{}\"}}", "x".repeat(bytes));
        let file = folder.join(EVENTS);
        fs::write(&file, format!("{first}\n{last}\n")).unwrap();
        let changed = SystemTime::now() - age;
        let file = File::options().append(true).open(file).unwrap();
        file.set_modified(changed).unwrap();
        folder
    }

    fn names(jobs: &Path) -> Vec<String> {
        let name = |folder: OldHistory| folder.folder.file_name().unwrap().display().to_string();
        let mut names: Vec<String> = histories(jobs).into_iter().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_old_goes_and_then_the_oldest_of_what_is_too_much() {
        let jobs = tempfile::tempdir().unwrap();
        let jobs = jobs.path();
        history(jobs, "ancient", OVER, 10, 91 * DAY);
        history(jobs, "old", OVER, 100_000, 3 * DAY);
        history(jobs, "new", OVER, 100_000, 2 * DAY);
        remove_beyond(jobs, SystemTime::now(), 1 << 20);
        assert_eq!(names(jobs), ["new", "old"]);
        remove_beyond(jobs, SystemTime::now(), 150_000);
        assert_eq!(names(jobs), ["new"]);
    }

    #[test]
    fn what_is_not_over_or_not_a_history_stays() {
        let jobs = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let jobs = jobs.path();
        let sample = r#"{"t_ms":9,"event":"tasks_began","round":0}"#;
        history(jobs, "dead", sample, 10, 91 * DAY);
        history(jobs, "torn", &format!("{OVER}\n{{\"t_"), 10, 91 * DAY);
        let live = history(jobs, "live", OVER, 10, 91 * DAY);
        let file = File::open(live.join(EVENTS)).unwrap();
        file.lock().unwrap();
        let far = history(elsewhere.path(), "far", OVER, 10, 91 * DAY);
        std::os::unix::fs::symlink(&far, jobs.join("link")).unwrap();
        remove_beyond(jobs, SystemTime::now(), 0);
        assert_eq!(names(jobs), ["dead", "live", "torn"]);
        assert!(far.join(EVENTS).exists());
    }
}
