//! What a dead job left beside its output: removed when its history goes and nothing is resumed from it, or gone already.
//!
//! The history says where the job wrote, and is not trusted: a folder goes only if its name is that of this job, a
//! job's lock is in it, and no process holds that lock.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::history::EVENTS;
use crate::history::event::{Event, Timed};
use crate::jobs::environment::stores_of;
use crate::jobs::registry::JobSpec;
use crate::jobs::steps::JobOutput;
use crate::runner::On;
use gristmill_base::error::{Error, Result};
use gristmill_storage::LocalDisk;
use gristmill_storage::stores::Stores;
use gristmill_tasks::commit::{SpillDirs, clear_dead, definition_of, end_uploads_to, home_of};

/// Finds the folders of the dead job whose history is in `folder`, and removes them unless `dry_run`. The caller holds
/// the lock of that history. Of a history that does not say where the job wrote, nothing is removed.
///
/// # Errors
/// The history cannot be read; a folder is in use, has a link in it, holds the only copy of an output, or cannot be
/// removed.
pub fn clear_left(stores: &Arc<Stores>, folder: &Path, dry_run: bool) -> Result<Vec<PathBuf>> {
    let Some((spec, cwd)) = first_event(folder)?.and_then(submitted) else {
        return Ok(Vec::new());
    };
    let stores = &stores_of(stores, &spec.common);
    let of_nodes = spec.common.spill_dir.clone();
    let spec = match spec.common.on {
        On::Local => spec,
        On::Ray => spec.placed(stores, &cwd),
    };
    let made = spec.asked().output;
    let output = made.map(JobOutput::path).or(spec.kind.staged_beside());
    // Without a place for them, runs of a sort to a stream are where it was begun.
    let spill_dirs = [&spec.common.spill_dir[..], &[cwd]].concat();
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let home = output.map(|output| home_of(stores, output, &spill_dirs));
    let mut found = clear_dead(
        &**stores.disk(),
        home.as_deref(),
        &spill_dirs,
        &name,
        dry_run,
    )?;
    if let (Some(output), false, false) = (output, dry_run, found.is_empty()) {
        end_uploads_to(stores, output, made.is_some_and(JobOutput::names_files))?;
    }
    found.extend(spec.kind.clear_in_store(stores, &name, dry_run)?);
    if spec.common.on == On::Ray {
        found.extend(clear_agents(&**stores.disk(), of_nodes, &name, dry_run)?);
    }
    Ok(found)
}

/// Whether what the user code of a dead job is was kept beside its output, and is there no more. It takes a look at this
/// machine's disk.
pub fn is_code_gone(stores: &Arc<Stores>, folder: &Path) -> bool {
    let Ok(Some((spec, cwd))) = first_event(folder).map(|event| event.and_then(submitted)) else {
        return false;
    };
    if !spec.kind.keeps_code() {
        return false;
    }
    let stores = &stores_of(stores, &spec.common);
    let spec = spec.placed(stores, &cwd);
    let Some(output) = spec.asked().output.map(JobOutput::path) else {
        return false;
    };
    let home = home_of(stores, output, &spec.common.spill_dir);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    definition_of(&**stores.disk(), &home, &name).is_ok_and(|found| found.is_none())
}

/// The same of folders of agents that this machine sees, but for those of agents that are about to end.
fn clear_agents(
    disk: &dyn LocalDisk,
    mut directories: Vec<PathBuf>,
    job: &str,
    dry_run: bool,
) -> Result<Vec<PathBuf>> {
    directories.retain(|path| disk.stat(path).is_ok_and(|found| found.is_some()));
    let left = SpillDirs::adopt_all(disk, &directories, job, &|_| true, Instant::now())?;
    let found = left.folders();
    if dry_run {
        left.leave();
    }
    Ok(found)
}

/// The first line of a history is enough: what is damaged behind it does not matter here.
fn first_event(folder: &Path) -> Result<Option<Event>> {
    let path = folder.join(EVENTS);
    let failed = |error| Error::from_io("read a history", &path, &error);
    let mut line = String::new();
    let mut file = BufReader::new(File::open(&path).map_err(failed)?);
    match file.read_line(&mut line) {
        Ok(_) => Ok(serde_json::from_str::<Timed>(&line)
            .ok()
            .map(|timed| timed.event)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// The job's options, and where it was begun; none of another version's job.
fn submitted(event: Event) -> Option<(JobSpec, PathBuf)> {
    let Event::JobSubmitted { spec, cwd, .. } = event else {
        return None;
    };
    let cwd = cwd.filter(|cwd| cwd.is_absolute())?;
    let spec = JobSpec::from_json(&spec.to_string()).ok()?;
    Some((spec.rooted(&cwd), cwd))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use gristmill_storage::MissingLock;
    use gristmill_storage::local::Local;

    /// A dead terasort's history, and the folders that it left.
    fn dead_job(root: &Path) -> (PathBuf, [PathBuf; 2]) {
        let history = root.join("jobs/job_1");
        fs::create_dir_all(&history).unwrap();
        let event = json!({
            "t_ms": 0, "event": "job_submitted", "version": 1, "job_id": "job_1", "command": "terasort",
            "spec": {"terasort": {"inputs": ["in"], "output": "out", "spill_dir": ["runs"]}},
            "unix_ms": 1, "pid": 2, "program": "0.1.0", "cwd": root,
        });
        fs::write(history.join(EVENTS), format!("{event}\n")).unwrap();
        let left = [
            root.join(".out.gristmill-job_1"),
            root.join("runs/.gristmill-spill-job_1"),
        ];
        for folder in &left {
            fs::create_dir_all(folder.join("spill")).unwrap();
            fs::write(folder.join("lock"), "").unwrap();
        }
        (history, left)
    }

    #[test]
    fn what_a_dead_job_left_is_found_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let (history, left) = dead_job(root.path());
        let stores = Stores::new(Arc::new(Local));
        let other = root.path().join(".out.gristmill-job_2");
        fs::create_dir_all(other.join("lock")).unwrap();
        assert_eq!(clear_left(&stores, &history, true).unwrap(), left);
        assert!(left.iter().all(|folder| folder.exists()));
        assert_eq!(clear_left(&stores, &history, false).unwrap(), left);
        assert!(left.iter().all(|folder| !folder.exists()) && other.exists());
        assert_eq!(
            clear_left(&stores, &history, false).unwrap(),
            [] as [PathBuf; 0]
        );
    }

    #[test]
    fn what_is_in_use_or_is_no_jobs_stays() {
        let root = tempfile::tempdir().unwrap();
        let (history, [left, runs]) = dead_job(root.path());
        let stores = Stores::new(Arc::new(Local));
        let lock = Local.lock(&left, MissingLock::Leave).unwrap();
        assert!(clear_left(&stores, &history, false).is_err());
        drop(lock);
        fs::create_dir(left.join("old")).unwrap();
        let error = clear_left(&stores, &history, false).unwrap_err();
        assert!(error.to_string().contains("holds the old output"));
        fs::remove_dir(left.join("old")).unwrap();
        let precious = root.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::rename(left.join("lock"), precious.join("lock")).unwrap();
        fs::remove_dir_all(&left).unwrap();
        std::os::unix::fs::symlink(&precious, &left).unwrap();
        assert!(clear_left(&stores, &history, false).is_err());
        assert!(precious.join("lock").exists());
        fs::remove_file(&left).unwrap();
        fs::remove_file(runs.join("lock")).unwrap();
        let nothing: [PathBuf; 0] = [];
        assert_eq!(clear_left(&stores, &history, false).unwrap(), nothing);
        assert!(runs.exists(), "it has no lock: no job made it");
    }
}
