//! Finds a job among the histories: by its name, a part of it that no other has, or `last`: the last one that can be
//! resumed. Where none can, the error says why the last of all cannot.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::{dead, left};
use crate::history::event::{Event, Timed};
use crate::history::{EVENTS, is_live, lock, read};
use crate::jobs::steps::OPERATION;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::stores::Stores;

/// Bytes that the last event has at most; where it has more, the whole history is read.
const END_BYTES: u64 = 256 << 10;

/// The folder of the job that is meant.
pub(super) fn job(jobs: &Path, name: &str, stores: &Arc<Stores>) -> Result<PathBuf> {
    let folders = folders(jobs)?;
    if name == "last" {
        return last(jobs, folders, stores);
    }
    let name_of = |folder: &Path| {
        let name = folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    if let Some(exact) = folders.iter().find(|folder| name_of(folder) == name) {
        return Ok(exact.clone());
    }
    let has = |folder: &&PathBuf| !name.is_empty() && name_of(folder).contains(name);
    let found: Vec<&PathBuf> = folders.iter().filter(has).collect();
    match found[..] {
        [one] => Ok(one.clone()),
        [] => Err(none(jobs, &format!("no job {name:?}"))),
        _ => {
            let count = found.len();
            Err(none(
                jobs,
                &format!("{count} jobs have {name:?} in their names"),
            ))
        }
    }
}

fn last(jobs: &Path, mut folders: Vec<PathBuf>, stores: &Arc<Stores>) -> Result<PathBuf> {
    // Names begin with the time, which decides where the file system's clock does not.
    folders.sort_by_cached_key(|folder| std::cmp::Reverse((changed(folder), folder.clone())));
    if let Some(found) = folders.iter().find(|folder| can_resume(folder, stores)) {
        return Ok(found.clone());
    }
    let Some(last) = folders.first() else {
        return Err(none(jobs, "there is no job"));
    };
    let why_not = |error: Error| {
        let name = last.file_name().unwrap_or_default().to_string_lossy();
        let what = error.what();
        let what = what.split_once(": ").map(|(operation, _)| operation);
        let cannot = what.filter(|operation| *operation != OPERATION);
        let cannot = cannot.map_or(String::new(), |operation| format!(": cannot {operation}"));
        let none = "resume a job: no job can be resumed. One that was killed in its first second has no history: run it \
                    again. The last one is";
        error
            .during(format!("{none} {name}{cannot}"))
            .with_path(last)
    };
    let locked = lock(last).map_err(why_not)?;
    dead::read(&locked.folder, &locked.events).map_err(why_not)?;
    Ok(last.clone()) // it died a moment ago
}

fn can_resume(folder: &Path, stores: &Arc<Stores>) -> bool {
    let dead = !is_over(folder) && is_live(folder).is_ok_and(|live| !live);
    let may = dead && read(folder).is_ok_and(|events| dead::read(folder, &events).is_ok());
    may && !left::is_code_gone(stores, folder)
}

/// Whether the last line says so, which is all that is read of it: most jobs are over, and their histories are long.
fn is_over(folder: &Path) -> bool {
    let end = || {
        let mut file = File::open(folder.join(EVENTS))?;
        let bytes = file.metadata()?.len();
        file.seek(SeekFrom::Start(bytes.saturating_sub(END_BYTES)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        std::io::Result::Ok(end)
    };
    let end = end().unwrap_or_default();
    let mut lines = end.trim_ascii_end().rsplit(|byte| *byte == b'\n');
    let event = lines.next().map(serde_json::from_slice::<Timed>);
    matches!(event, Some(Ok(event)) if matches!(event.event, Event::JobFinished { .. }))
}

fn none(jobs: &Path, what: &str) -> Error {
    let message = format!("{what} in {}", show_path(jobs));
    Error::new(Kind::NotFound, OPERATION, message).advise(
        "see `gristmill jobs` for those that there are; a job of less than a second is kept with --history",
    )
}

fn folders(jobs: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(jobs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::from_io(OPERATION, jobs, &error)),
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    Ok(paths.filter(|path| path.join(EVENTS).is_file()).collect())
}

fn changed(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder.join(EVENTS)).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::local::Local;

    #[test]
    fn a_name_a_part_of_one_or_the_last() {
        let home = tempfile::tempdir().unwrap();
        let stores = Stores::new(Arc::new(Local));
        let missing = job(&home.path().join("none"), "last", &stores).unwrap_err();
        assert_eq!(missing.kind(), Kind::NotFound);
        for name in ["job_1", "job_12", "other"] {
            fs::create_dir(home.path().join(name)).unwrap();
            fs::write(home.path().join(name).join(EVENTS), "").unwrap();
        }
        let found = |name| {
            let path = job(home.path(), name, &stores)?;
            Ok::<_, Error>(path.file_name().unwrap().to_owned())
        };
        assert_eq!(found("job_1").unwrap(), "job_1");
        assert_eq!(found("_12").unwrap(), "job_12");
        let last = found("last").unwrap_err().to_string();
        assert!(
            last.contains(
                "no job can be resumed. One that was killed in its first second has no history: run it again. The last one \
                 is other: its history was not written"
            )
        );
        for (name, what) in [("job", "2 jobs have"), ("x", "no job"), ("", "no job")] {
            assert!(found(name).unwrap_err().to_string().contains(what));
        }
    }
}
