//! What is still there of what a dead job's tasks made.
//!
//! ```text
//!   run      its file, in a folder of ours or with an agent that found it, with the header and the index that were reported    (data: when merged)
//!   range    its bytes, read and proved again
//!   upload   its parts, as the store has them; or the object, if it was completed
//!   file     of user code: its length and its CRC, in its attempt's folder or where the output is put together; or its upload
//! ```
//!
//! A task is kept if all that it made is there; of those that made runs `kept_tasks.rs` says more. Where a range of a last merge
//! is not what it was, no run is trusted: its space may have been given back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::kept_tasks::tasks_of_runs;
use super::output_locations::{OutputLocations, is_run};
use super::replayed::Round;
use crate::driver::Replay;
use crate::runner::{Control, FoundRuns};
use gristmill_base::error::{Error, Result};
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::io::crc::crc_of;
use gristmill_storage::objects::Upload;
use gristmill_storage::sorted_run::RunFile;
use gristmill_storage::{FileKind, LocalDisk};
use gristmill_tasks::commit::is_of_scripts;
use gristmill_tasks::spill::{BucketSizes, SpilledRun};
use gristmill_tasks::task::{
    Checkpoint, MergeRunsReport, Proved, TaskContext, TaskReport, UserTaskFile, UserTaskReport,
    verify,
};

/// What is looked at, and where.
pub(super) struct OutputVerifier<'a> {
    pub(super) job_id: &'a str,
    pub(super) context: &'a TaskContext,
    pub(super) places: &'a OutputLocations,
    pub(super) workers: usize,
    pub(super) control: &'a Control,
    /// What agents have found, where runs are theirs.
    pub(super) found: Option<&'a FoundRuns>,
}

impl OutputVerifier<'_> {
    /// What the driver may know of a round, and the names of the runs that it will find.
    pub(super) fn replay(&self, round: &Round) -> Result<(Replay, BTreeSet<PathBuf>)> {
        round
            .kept
            .values()
            .try_for_each(|(_, kept)| self.places.check_names(kept))?;
        let all = round.kept.values().flat_map(|(_, kept)| kept.runs());
        let there: BTreeMap<&Path, SpilledRun> =
            self.by_all_workers(all.map(|run| (&*run.path, run)), |run| self.find(run))?;
        let proved = self.prove_all(&round.kept)?;
        let merges = |kept: &Checkpoint| matches!(kept, Checkpoint::Merge(_));
        let lost = |(task, (_, kept)): (&u32, &(u64, Checkpoint))| {
            merges(kept) && !proved.contains_key(task)
        };
        let whole = if round.kept.iter().any(lost) {
            BTreeSet::new()
        } else {
            let spoiled = |(task, (_, kept)): &(&u32, &(u64, Checkpoint))| {
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
                _ if whole.contains(task) => self.report_of(kept, &there),
                _ => continue,
            };
            names.extend(kept.runs().iter().map(|run| run.path.clone()));
            replay.done(*task, *fingerprint, report);
        }
        Ok((replay, names))
    }

    /// Removes runs from the job's own folders, but those of these names: no task will ask for them.
    pub(super) fn remove_other_runs(&self, keep: &BTreeSet<PathBuf>) {
        let store = self.context.node.store.disk();
        for folder in self.places.folders() {
            for path in store.list(folder).unwrap_or_default() {
                let name = Path::new(path.file_name().unwrap_or_default());
                if is_run(name) && !keep.contains(name) || is_of_scripts(&path) {
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
        let store = self.context.node.store.disk();
        for (_, kept) in round.kept.values() {
            let Checkpoint::User(task) = kept else {
                continue;
            };
            for file in &task.files {
                let place = attempts.join(&task.folder).join(&file.name);
                let staged = self.places.output.join(&file.name);
                if store.stat(&place)?.is_none() && store.stat(&staged)?.is_some() {
                    store.rename(&staged, &place)?;
                }
            }
        }
        let output = store.stat(&self.places.output)?.map(|found| found.kind);
        if output != Some(FileKind::Directory) {
            return Ok(()); // one file, which is put together anew
        }
        let left = store.list(&self.places.output)?;
        left.iter().try_for_each(|path| store.remove(path))
    }

    /// Whether the files of a task are as they were.
    fn files_are_there(&self, attempts: &Path, task: &UserTaskReport) -> bool {
        if !task.uploads.is_empty() {
            let mut pairs = task.files.iter().zip(&task.uploads);
            let is_sent = |(file, upload): (&UserTaskFile, &Upload)| {
                (file.bytes, file.crc) == (upload.bytes(), Some(upload.crc()))
                    && self.is_place_of(upload, file)
                    && self.is_uploaded(upload)
            };
            return task.files.len() == task.uploads.len() && pairs.all(is_sent);
        }
        let store = &**self.context.node.store.disk();
        let is_same = |path: &Path, file: &UserTaskFile| {
            let stat = store.stat(path).ok().flatten();
            stat.is_some_and(|stat| stat.bytes == file.bytes)
                && file.crc.is_some()
                && crc_of(store, path).ok().flatten() == file.crc
        };
        task.files.iter().all(|file| {
            let place = attempts.join(&task.folder).join(&file.name);
            is_same(&place, file) || is_same(&self.places.output.join(&file.name), file)
        })
    }

    /// Whether a file was sent to where it belongs: to its name, or to that of the one file that all make.
    fn is_place_of(&self, upload: &Upload, file: &UserTaskFile) -> bool {
        upload.path.as_typed().ends_with(&file.name) || self.places.uploads.contains(&upload.path)
    }

    /// The run as it was reported, if it is there and is that one.
    fn find(&self, kept: &SpilledRun) -> Option<SpilledRun> {
        let disk = self.context.node.store.disk();
        if let Some(found) = self.found {
            let path = found.place_of(&kept.path)?.to_owned();
            let run = SpilledRun {
                path,
                ..kept.clone()
            };
            return self.as_reported(&found.disk, run);
        }
        let mut folders = self.places.folders();
        folders.find_map(|folder| self.as_reported(&**disk, in_folder(kept, folder)))
    }

    /// A run with what lies in its buckets, if it is there and is that one.
    fn as_reported(&self, disk: &dyn LocalDisk, mut run: SpilledRun) -> Option<SpilledRun> {
        let file = RunFile::open(disk, &run.path).ok()?;
        let (header, index) = (file.header(), file.index());
        let same = header.job_id == self.job_id
            && header.number == run.number
            && header.shape == self.places.shape
            && (index.records, index.data_bytes) == (run.records, run.bytes)
            && index.crc() == run.index_crc;
        if BucketSizes::are_in_index(header.shape) {
            run.buckets = BucketSizes::of_run(header.shape, index);
        }
        same.then_some(run)
    }

    /// The reports of the tasks whose ranges of the output are as they were; by all workers.
    fn prove_all(
        &self,
        kept: &BTreeMap<u32, (u64, Checkpoint)>,
    ) -> Result<BTreeMap<u32, TaskReport>> {
        let written = kept.iter().filter(|(_, (_, kept))| kept.has_output());
        let written = written.map(|(task, (_, kept))| (*task, kept));
        self.by_all_workers(written, |kept| self.prove(kept))
    }

    /// What `look` gives of each of `items`, by their keys, where it gives something.
    fn by_all_workers<K: Copy + Ord + Send + Sync, V: Copy + Sync, T: Send>(
        &self,
        items: impl Iterator<Item = (K, V)>,
        look: impl Fn(V) -> Option<T> + Sync,
    ) -> Result<BTreeMap<K, T>> {
        let items: Vec<(K, V)> = items.collect();
        let found = at_once(&items, self.workers, |(key, item)| {
            self.go_on()?;
            Ok(look(*item).map(|found| (*key, found)))
        })?;
        self.go_on()?;
        Ok(found.into_iter().flatten().collect())
    }

    fn go_on(&self) -> Result<()> {
        match self.control.is_cancelled() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    fn prove(&self, kept: &Checkpoint) -> Option<TaskReport> {
        let OutputLocations {
            output,
            shape,
            unique,
            codes,
            attempts,
            ..
        } = self.places;
        if let Checkpoint::User(task) = kept {
            let attempts = attempts.as_ref()?;
            let report = || TaskReport::User(report_in(task, attempts, Vec::new()));
            return self.files_are_there(attempts, task).then(report);
        }
        if let Checkpoint::Uploaded(report) = kept {
            let report: TaskReport = serde_json::from_str(report).ok()?;
            let is_there = |upload| self.is_uploaded(upload);
            return report.uploads().into_iter().all(is_there).then_some(report);
        }
        let records = Proved {
            shape: *shape,
            unique: *unique,
            codes: codes.as_ref(),
        };
        // Whatever is wrong with it, it is done again.
        let disk = &**self.context.node.store.disk();
        verify(kept, records, disk, output).ok().flatten()
    }

    /// Whether an upload of the output is as it was sent, or was completed already.
    fn is_uploaded(&self, upload: &Upload) -> bool {
        let objects = self.context.node.store.publisher(&upload.path);
        let is_ours = self.places.has_upload(&upload.path);
        is_ours && objects.is_some_and(|objects| objects.verify_bytes(upload).unwrap_or(false))
    }

    /// The report of a task that made runs; of those that are gone, for they were merged, the place does not matter.
    fn report_of(&self, kept: &Checkpoint, there: &BTreeMap<&Path, SpilledRun>) -> TaskReport {
        let folder = self.places.folders().next().unwrap_or(Path::new("."));
        let run_of = |run: &SpilledRun| match there.get(&*run.path) {
            Some(found) => found.clone(),
            None if self.found.is_some() => SpilledRun {
                path: FoundRuns::gone(&run.path),
                ..run.clone()
            },
            None => in_folder(run, folder),
        };
        match kept {
            Checkpoint::MergeRuns { run, .. } => TaskReport::MergeRuns(MergeRunsReport {
                run: run_of(run),
                spent: Vec::new(), // it was given back, or goes with the job
            }),
            Checkpoint::User(task) => {
                let attempts = self.places.attempts.as_deref().unwrap_or(folder);
                let runs = task.runs.iter().map(run_of).collect();
                TaskReport::User(report_in(task, attempts, runs))
            }
            _ => TaskReport::Spill(kept.runs().iter().map(run_of).collect()),
        }
    }
}

/// The run of a checkpoint, in this folder.
fn in_folder(run: &SpilledRun, folder: &Path) -> SpilledRun {
    SpilledRun {
        path: folder.join(&run.path),
        ..run.clone()
    }
}

/// The report of a checkpoint: its attempt's folder is in `attempts`, and its runs are these.
fn report_in(report: &UserTaskReport, attempts: &Path, runs: Vec<SpilledRun>) -> UserTaskReport {
    UserTaskReport {
        folder: attempts.join(&report.folder),
        runs,
        ..report.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use gristmill_storage::agents::ReadOf;
    use gristmill_storage::sorted_run::RunCompression;
    use gristmill_tasks::task::{LargestGroup, TaskSpec, UserTaskKind, UserTaskPlan, UserTaskSpec};
    use gristmill_tasks::worker::TaskPrintout;

    fn run(name: &str) -> SpilledRun {
        SpilledRun {
            path: name.into(),
            number: 0,
            records: 1,
            bytes: 1,
            stored_bytes: 3,
            longest: 1,
            records_read: 1,
            bytes_read: 1,
            checksum_read: 1,
            left_out: Default::default(),
            index_crc: 0,
            buckets: BucketSizes::default(),
        }
    }

    fn hot() -> LargestGroup {
        LargestGroup {
            pairs: 1,
            key: "'hot'".into(),
        }
    }

    /// All that a report of user code holds comes back, with paths in the folders of now.
    #[test]
    fn a_report_comes_back_from_its_checkpoint() {
        let report = UserTaskReport {
            runs: vec![run("/before/run-1")],
            folder: "/before/attempts/3-1".into(),
            files: vec![UserTaskFile {
                name: "part-r-00000".into(),
                bytes: 1,
                records: 2,
                crc: Some(3),
            }],
            uploads: vec![Upload {
                path: "s3://b/out/part-r-00000".into(),
                id: "one".into(),
                parts: Vec::new(),
            }],
            records_in: 4,
            bytes_in: 5,
            records_out: 6,
            bytes_out: 7,
            groups: 8,
            largest_group: hot(),
            combine_in: 9,
            combine_out: 10,
            skipped: 11,
            skipped_records: 12,
            counters: BTreeMap::from([("mine".into(), BTreeMap::from([("this".into(), 13)]))]),
            kinds: BTreeMap::from([("key".into(), 14)]),
            status: "half done".into(),
            printed: TaskPrintout {
                stdout: "out".into(),
                stderr: "err".into(),
            },
            reads: vec![ReadOf::default()],
        };
        let plan = UserTaskPlan {
            partitions: 1,
            places: Vec::new(),
            chunk_bytes: 1,
            buffer_bytes: 1,
            ahead_bytes: 0,
            compression: RunCompression::None,
            attempts: "/before/attempts".into(),
            uploads_to: Some("s3://b/out".into()),
            is_one_file: false,
        };
        let spec = TaskSpec::User(UserTaskSpec {
            plan: Arc::new(plan),
            work: UserTaskKind::Reduce {
                partition: 0,
                runs: Arc::default(),
                source_bytes: 1,
            },
        });
        let made = TaskReport::User(report.clone());
        let kept = spec.checkpoint(&made).unwrap();
        let line = serde_json::to_string(&kept).unwrap();
        assert!(!line.contains("before"), "{line}");
        let Checkpoint::User(kept) = serde_json::from_str(&line).unwrap() else {
            panic!("{line}");
        };
        let runs = kept.runs.iter().map(|run| in_folder(run, "/now".as_ref()));
        let back = report_in(&kept, "/now/attempts".as_ref(), runs.collect());
        let expected = UserTaskReport {
            runs: vec![run("/now/run-1")],
            folder: "/now/attempts/3-1".into(),
            // These are in the job's log.
            status: String::new(),
            printed: TaskPrintout::default(),
            // This the agent has counted.
            reads: Vec::new(),
            ..report
        };
        assert_eq!(back, expected);
    }
}
