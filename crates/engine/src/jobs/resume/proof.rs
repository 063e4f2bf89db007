//! What is still there of what a dead job's tasks made.
//!
//! ```text
//!   run      its file, in a folder of ours, with the header and the index that were reported    (data: when merged)
//!   range    its bytes, read and proved again
//!   file     of people's code: its length and its CRC, in its attempt's folder or where the output is put together
//! ```
//!
//! A task is kept if all that it made is there. A run may be gone if the run that it was merged to is there; then the
//! tasks whose runs went the same way must be kept, too, or that merge would be repeated without them. And where a
//! range of a last merge is not what it was, no run is trusted: its space may have been given back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use super::story::Round;
use super::{OPERATION, Places};
use crate::commit::is_of_scripts;
use crate::driver::Replay;
use crate::error::{Error, Kind, Result};
use crate::run::RunFile;
use crate::runner::threads::Control;
use crate::spill::SpilledRun;
use crate::storage::layered::MEMORY_PLACE;
use crate::task::{
    Kept, KeptFile, KeptRun, KeptTask, TaskContext, TaskReport, crc_of, prove_again,
};

/// How the names of all runs begin.
const RUN: &str = "run-";

/// What is looked at, and where.
pub(super) struct Look<'a> {
    pub(super) job_id: &'a str,
    pub(super) context: &'a TaskContext,
    pub(super) places: &'a Places,
    pub(super) workers: usize,
    pub(super) control: &'a Control,
}

impl Look<'_> {
    /// What the driver may know of a round, and the names of the runs that it will find.
    pub(super) fn replay(&self, round: &Round) -> Result<(Replay, BTreeSet<String>)> {
        round
            .kept
            .values()
            .try_for_each(|(_, kept)| self.check_names(kept))?;
        let all = round.kept.values().flat_map(|(_, kept)| kept.runs());
        let there: BTreeMap<&str, SpilledRun> = all
            .filter_map(|run| Some((run.name.as_str(), self.find(run)?)))
            .collect();
        let proved = self.prove_all(&round.kept)?;
        let merges = |kept: &Kept| matches!(kept, Kept::Merge(_));
        let lost =
            |(task, (_, kept)): (&u32, &(u64, Kept))| merges(kept) && !proved.contains_key(task);
        let whole = if round.kept.iter().any(lost) {
            BTreeSet::new()
        } else {
            let spoiled = |(task, (_, kept)): &(&u32, &(u64, Kept))| {
                !kept.files().is_empty() && !proved.contains_key(*task)
            };
            let spoiled = round.kept.iter().filter(spoiled);
            let spoiled = spoiled.map(|(task, _)| *task).collect();
            tasks_of_runs(&round.kept, &spoiled, &|name| there.contains_key(name))
        };
        let mut replay = Replay::default();
        round
            .tried
            .iter()
            .for_each(|(task, attempt)| replay.tried(*task, *attempt));
        let mut names = BTreeSet::new();
        for (task, (fingerprint, kept)) in &round.kept {
            let report = match proved.get(task) {
                Some(report) if kept.files().is_empty() => report.clone(),
                _ if whole.contains(task) => self.report_of(kept, &there)?,
                _ => continue,
            };
            names.extend(kept.runs().iter().map(|run| run.name.clone()));
            replay.done(*task, *fingerprint, report);
        }
        Ok((replay, names))
    }

    /// Removes runs from the job's own folders, but those of these names: nobody will ask for them.
    pub(super) fn remove_other_runs(&self, keep: &BTreeSet<String>) {
        let store = &self.context.store;
        for folder in self.folders() {
            for path in store.list(folder).unwrap_or_default() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(RUN) && !keep.contains(&*name) || is_of_scripts(&path) {
                    // What stays goes at the job's end.
                    let _ = store.remove(&path);
                }
            }
        }
    }

    /// Puts the output apart again, where it was being put together from the files of attempts.
    pub(super) fn put_files_back(&self, round: &Round) -> Result<()> {
        let Some(attempts) = &self.places.attempts else {
            return Ok(());
        };
        let store = &self.context.store;
        for (_, kept) in round.kept.values() {
            let Kept::Work(task) = kept else { continue };
            for file in &task.files {
                let place = attempts.join(&task.folder).join(&file.name);
                let staged = self.places.output.join(&file.name);
                if store.stat(&place)?.is_none() && store.stat(&staged)?.is_some() {
                    store.rename(&staged, &place)?;
                }
            }
        }
        let left = store.list(&self.places.output)?;
        left.iter().try_for_each(|path| store.remove(path))
    }

    /// Whether the files of a task are as they were.
    fn files_are_there(&self, attempts: &Path, task: &KeptTask) -> bool {
        let store = &*self.context.store;
        let is_same = |path: &Path, file: &KeptFile| {
            let stat = store.stat(path).ok().flatten();
            stat.is_some_and(|stat| stat.bytes == file.bytes)
                && crc_of(store, path).ok().flatten() == Some(file.crc)
        };
        task.files.iter().all(|file| {
            let place = attempts.join(&task.folder).join(&file.name);
            is_same(&place, file) || is_same(&self.places.output.join(&file.name), file)
        })
    }

    /// The folders of runs that outlive a process.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        let folders = self.places.runs.iter().map(|folder| &**folder);
        folders.filter(|folder| !folder.starts_with(MEMORY_PLACE))
    }

    /// Refuses names that are none of the job's: whoever wrote them wants to lead us elsewhere.
    fn check_names(&self, kept: &Kept) -> Result<()> {
        let runs = kept.runs().iter().map(|run| &run.name);
        let of = match kept {
            Kept::MergeRuns { of, .. } => &of[..],
            _ => &[],
        };
        let strange_run = runs
            .chain(of)
            .find(|name| !name.starts_with(RUN) || !is_plain(name));
        let mut files = kept.ranges().iter().map(|range| &range.file);
        let strange_file = || files.find(|name| !self.places.names.contains(name));
        let strange_folder = || match kept {
            Kept::Work(task) if !is_of_attempt(&task.folder) => Some(&task.folder),
            _ => None,
        };
        let whole_files = || kept.files().iter().map(|file| &file.name);
        let strange_whole = || whole_files().find(|name| !is_plain(name) || name.starts_with('.'));
        let strange = strange_run.or_else(strange_file).or_else(strange_folder);
        match strange.or_else(strange_whole) {
            None => Ok(()),
            Some(name) => {
                let message =
                    format!("its history names a file that is none of the job's: {name:?}");
                Err(Error::new(Kind::BadInput, OPERATION, message)
                    .advise("start the job anew, and look who can write to its history"))
            }
        }
    }

    /// The run as it was reported, if it is there and is that one.
    fn find(&self, kept: &KeptRun) -> Option<SpilledRun> {
        self.folders().find_map(|folder| {
            let run = kept.in_folder(folder).ok()?;
            let file = RunFile::open(&*self.context.store, &run.path).ok()?;
            let (header, index) = (file.header(), file.index());
            let same = header.job_id == self.job_id
                && header.number == run.number
                && header.shape == self.places.shape
                && (index.records, index.data_bytes) == (run.records, run.bytes)
                && index.crc() == run.index_crc;
            same.then_some(run)
        })
    }

    /// The reports of the tasks whose ranges of the output are as they were; by all workers.
    fn prove_all(&self, kept: &BTreeMap<u32, (u64, Kept)>) -> Result<BTreeMap<u32, TaskReport>> {
        let written = kept
            .iter()
            .filter(|(_, (_, kept))| !kept.ranges().is_empty() || !kept.files().is_empty());
        let left = Mutex::new(written);
        let proved = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for _ in 0..self.workers {
                scope.spawn(|| {
                    while !self.control.is_cancelled() {
                        let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((task, (_, kept))) = next else {
                            return;
                        };
                        if let Some(report) = self.prove(kept) {
                            let mut proved = proved.lock().unwrap_or_else(PoisonError::into_inner);
                            proved.insert(*task, report);
                        }
                    }
                });
            }
        });
        if self.control.is_cancelled() {
            return Err(Error::cancelled());
        }
        Ok(proved.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn prove(&self, kept: &Kept) -> Option<TaskReport> {
        let Places {
            output,
            shape,
            unique,
            attempts,
            ..
        } = self.places;
        if let Kept::Work(task) = kept {
            let attempts = attempts.as_ref()?;
            let report = || TaskReport::Work(task.report(attempts, Vec::new()));
            return self.files_are_there(attempts, task).then(report);
        }
        // Whatever is wrong with it, it is done again.
        prove_again(kept, *shape, *unique, &*self.context.store, output)
            .ok()
            .flatten()
    }

    /// The report of a task that made runs; of those that are gone, for they were merged, the place does not matter.
    fn report_of(&self, kept: &Kept, there: &BTreeMap<&str, SpilledRun>) -> Result<TaskReport> {
        let folder = self.folders().next().unwrap_or(Path::new("."));
        let run_of = |run: &KeptRun| match there.get(run.name.as_str()) {
            Some(found) => Ok(found.clone()),
            None => run.in_folder(folder),
        };
        match kept {
            Kept::MergeRuns { run, .. } => run_of(run).map(TaskReport::MergeRuns),
            Kept::Work(task) => {
                let runs = task.runs.iter().map(run_of).collect::<Result<_>>()?;
                let attempts = self.places.attempts.as_deref().unwrap_or(folder);
                Ok(TaskReport::Work(task.report(attempts, runs)))
            }
            _ => {
                let runs = kept.runs().iter().map(run_of);
                runs.collect::<Result<_>>().map(TaskReport::Spill)
            }
        }
    }
}

/// Whether a name is that of an attempt's folder: the task's number and its own.
fn is_of_attempt(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.split_once('-');
    parts.is_some_and(|(task, attempt)| is_number(task) && is_number(attempt))
}

fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    ) && !name.contains('/')
}

/// The tasks that made runs and need not be done again. They are struck out until no reason is left: a run that is
/// gone and was merged to nothing that is kept, or a merge of runs of a task that is done again. Those that are
/// `spoiled` are done again in any case.
fn tasks_of_runs(
    kept: &BTreeMap<u32, (u64, Kept)>,
    spoiled: &BTreeSet<u32>,
    is_there: &dyn Fn(&str) -> bool,
) -> BTreeSet<u32> {
    let (mut made_by, mut merged_by) = (BTreeMap::new(), BTreeMap::new());
    for (task, (_, kept)) in kept {
        made_by.extend(kept.runs().iter().map(|run| (run.name.as_str(), *task)));
        if let Kept::MergeRuns { of, .. } = kept {
            merged_by.extend(of.iter().map(|name| (name.as_str(), *task)));
        }
    }
    let made_runs = |kept: &Kept| {
        matches!(
            kept,
            Kept::Spill(_) | Kept::MergeRuns { .. } | Kept::Work(_)
        )
    };
    let with_runs = kept.iter().filter(|(_, (_, kept))| made_runs(kept));
    let with_runs = with_runs.map(|(task, _)| *task);
    let mut whole: BTreeSet<u32> = with_runs.filter(|task| !spoiled.contains(task)).collect();
    loop {
        let merged = |name: &str| merged_by.get(name).is_some_and(|task| whole.contains(task));
        let stays = |task: &&u32| {
            let Some((_, kept)) = kept.get(task) else {
                return false;
            };
            let mut runs = kept.runs().iter();
            let sources_stay = match kept {
                Kept::MergeRuns { of, .. } => of.iter().all(|name| {
                    let maker = made_by.get(name.as_str());
                    maker.is_some_and(|task| whole.contains(task))
                }),
                _ => true,
            };
            sources_stay && runs.all(|run| is_there(&run.name) || merged(&run.name))
        };
        let left: BTreeSet<u32> = whole.iter().filter(stays).copied().collect();
        if left.len() == whole.len() {
            return left;
        }
        whole = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> KeptRun {
        KeptRun {
            name: name.into(),
            number: 0,
            records: 1,
            bytes: 1,
            longest: 1,
            records_read: 1,
            bytes_read: 1,
            checksum_read: "1".into(),
            index_crc: 0,
        }
    }

    fn spill(names: &[&str]) -> (u64, Kept) {
        (0, Kept::Spill(names.iter().map(|name| run(name)).collect()))
    }

    fn merge(name: &str, of: &[&str]) -> (u64, Kept) {
        let of = of.iter().map(|name| (*name).to_owned()).collect();
        (0, Kept::MergeRuns { run: run(name), of })
    }

    #[test]
    fn a_run_may_be_gone_only_where_what_it_became_is_there() {
        let kept = BTreeMap::from([
            (0, spill(&["a"])),
            (1, spill(&["b1", "b2"])),
            (2, spill(&["c"])),
            (3, merge("ab", &["a", "b1"])),
            (4, merge("bc", &["b2", "c"])),
        ]);
        let whole = |there: &[&str]| {
            let found = tasks_of_runs(&kept, &BTreeSet::new(), &|name| there.contains(&name));
            found.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(whole(&["ab", "bc"]), [0, 1, 2, 3, 4]);
        assert_eq!(whole(&["a", "b1", "b2", "c", "ab", "bc"]), [0, 1, 2, 3, 4]);
        assert_eq!(whole(&["a", "b1", "b2", "c"]), [0, 1, 2]);
        // Of what was merged to "ab" everything is done again, and so is "bc", for it has a run of task 1.
        assert_eq!(whole(&["bc"]), [] as [u32; 0]);
        assert_eq!(whole(&["bc", "c"]), [2]);
        assert_eq!(whole(&["a", "bc", "c"]), [0, 2]);
    }

    #[test]
    fn names_with_folders_are_none() {
        assert!(is_plain("run-00001-0-0000"));
        for name in [
            "",
            "..",
            ".",
            "/",
            "a/b",
            "../run-1",
            "/etc/passwd",
            "run-1/",
            "./run-1",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
