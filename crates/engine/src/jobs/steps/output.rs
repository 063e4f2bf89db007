//! The output of a job and the folders of its runs: begun anew, or taken over from a dead job; and published.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::explain::ROOM_ON_NODES;
use super::job::RunningJob;
use super::job_request::JobOutput;
use crate::history::event::{FileVersion, OutputBefore};
use crate::plan::disk::RunDisk;
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::{Error, Kind, Result, show_bytes};
use gristmill_storage::location::Location;
use gristmill_storage::objects::OBJECT_BYTES_MAX;
use gristmill_storage::run_name::AGENT_PLACE;
use gristmill_storage::sorted_run::RunCompression;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, LocalDisk};
use gristmill_tasks::commit::{
    CommitOptions, Committer, DirectoryStaging, FileStaging, InPlace, OutputManifest, SUCCESS,
    SpillDirs, UploadCommitter, check_directory, check_room, clear_published, end_uploads_to,
    finish_in_place, home_of, notice_of_memory, notice_of_runs,
};

/// The largest proof of an output that is read.
const SUCCESS_BYTES_MAX: u64 = 64 << 20;

impl<'env> RunningJob<'env> {
    /// How an output appears; of a directory, with the names of its files and their bytes.
    pub(in crate::jobs) fn committer(
        &self,
        output: JobOutput<'_>,
        (names, bytes): (&[PathBuf], u64),
    ) -> Result<Box<dyn Committer + 'env>> {
        let (target, is_file) = (output.path(), matches!(output, JobOutput::File(_)));
        let (store, owner) = (&self.environment.store, &self.ownership);
        let disk = &**store.disk();
        let options = CommitOptions {
            overwrite: self.common.overwrite || is_file,
            sync: !self.common.no_sync,
        };
        store.resolve(target)?; // which names the schemes that there are
        let path = target.local().filter(|_| store.publisher(target).is_none());
        let Some(path) = path else {
            let (target, spill_dir) = ((target, is_file), &self.common.spill_dir);
            let overwrite = options.overwrite;
            let begun = UploadCommitter::begin(store, target, spill_dir, owner, overwrite)?;
            return Ok(match output.names_files() {
                true => Box::new(begun.of_any_names()?),
                false => Box::new(begun),
            });
        };
        if is_file && InPlace::is_needed(disk, path)? {
            let spill_dir = self.place_in_place();
            check_directory(disk, spill_dir)?;
            let begun = InPlace::begin(disk, (path, spill_dir), owner, options.sync)?;
            self.control.notice(InPlace::notice(path, spill_dir));
            return Ok(Box::new(begun));
        }
        if is_file {
            let begun = FileStaging::begin(disk, path, owner, options.sync)?;
            return Ok(Box::new(begun));
        }
        let files = (names, bytes);
        let begun = DirectoryStaging::begin(disk, path, owner, files, options)?;
        Ok(Box::new(begun))
    }

    /// Where such a file is made, before it is written.
    pub(super) fn place_in_place(&self) -> &Path {
        let given = self.common.spill_dir.first();
        given.map_or(Path::new("."), PathBuf::as_path)
    }

    /// What the user should know of an output that is written in place.
    pub(super) fn notice_in_place(&self) -> Result<Option<String>> {
        let store = self.store();
        let Some(JobOutput::File(target)) = self.asked.output else {
            return Ok(None);
        };
        let path = target.local().filter(|_| store.publisher(target).is_none());
        match path {
            Some(path) if InPlace::is_needed(&**store.disk(), path)? => {
                Ok(Some(InPlace::notice(path, self.place_in_place())))
            }
            _ => Ok(None),
        }
    }

    /// Fails where a directory that the user named for runs is none; also where the plan makes no runs.
    pub(in crate::jobs) fn check_spill_dirs(&self) -> Result<()> {
        let disk = &**self.environment.store.disk();
        let mut directories = self.common.spill_dir.iter();
        directories.try_for_each(|directory| check_directory(disk, directory))
    }

    /// The job's folders for runs.
    pub(in crate::jobs) fn spill_places<'s>(
        &self,
        store: &'s dyn LocalDisk,
        directories: &[PathBuf],
    ) -> Result<SpillDirs<'s>> {
        SpillDirs::begin(store, directories, &self.ownership)
    }

    /// The same in the directories that the user named, and the folders for runs: where none was named, that of the
    /// output has one.
    pub(in crate::jobs) fn run_folders(
        &self,
        committer: &dyn Committer,
    ) -> Result<(SpillDirs<'env>, Vec<PathBuf>)> {
        let disk = &**self.environment.store.disk();
        if self.cluster().is_some() {
            let none = self.spill_places(disk, &[])?;
            return Ok((none, vec![AGENT_PLACE.into()]));
        }
        let spill = self.spill_places(disk, &self.common.spill_dir)?;
        let mut folders = spill.folders();
        if folders.is_empty() {
            folders.push(committer.folder().spill_place()?);
        }
        Ok((spill, folders))
    }

    /// Whether runs have room that need so much disk. Not where nobody knows: of nodes; of a resumed job, some are there already, and how many more there will
    /// be is not known; nor is it of runs that are compressed.
    pub(in crate::jobs) fn check_room(
        &self,
        store: &dyn LocalDisk,
        folders: &[PathBuf],
        (disk, output): (RunDisk, Option<&Path>),
    ) -> Result<()> {
        let is_known = self.resumed.is_none() && self.cluster().is_none();
        if !is_known || self.common.compress_runs != RunCompression::None {
            return Ok(());
        }
        check_room(store, folders, (disk.runs_bytes, disk.passes_bytes), output)
    }

    /// Tells the user of places for runs that are no disks of this machine.
    pub(in crate::jobs) fn tell_of_runs(&mut self, folders: &[PathBuf]) {
        let disk = &**self.environment.store.disk();
        for folder in folders {
            let notice = self.notice_of_runs(disk, folder);
            let notice = notice.filter(|notice| !self.report.notices.contains(notice));
            if let Some(notice) = notice {
                self.control.notice(notice.clone());
                self.report.notices.push(notice);
            }
        }
    }

    /// Notes in the report that runs stay in the memory of nodes, if that is planned: a screen need not say that all is well.
    pub(in crate::jobs) fn note_node_memory(&mut self, layout: &MemoryLayout) {
        if layout.node_runs_bytes > 0 {
            let notice = format!("{ROOM_ON_NODES}. If the job is resumed, it makes them again");
            self.report.notices.push(notice);
        }
    }

    /// What a user should know of a place for runs.
    pub(in crate::jobs) fn notice_of_runs(
        &self,
        disk: &dyn LocalDisk,
        place: &Path,
    ) -> Option<String> {
        let is_elsewhere = self.asked.spills_elsewhere;
        let of_memory = || notice_of_memory(disk, place).filter(|_| is_elsewhere);
        notice_of_runs(disk, place).or_else(of_memory)
    }

    /// Notes that the output is about to get its name, and gives it that.
    pub(in crate::jobs) fn publish(
        &mut self,
        mut committer: Box<dyn Committer + '_>,
        made: &OutputManifest<'_>,
    ) -> Result<()> {
        let staged = committer.folder().staged();
        if let Some(stat) = self.store().disk().stat(&staged)? {
            self.watched.publishing(&staged, &stat, &self.report);
        }
        if let Some(file) = committer.write_in_place()?
            && let Some(stat) = self.store().disk().stat(&file)?
        {
            self.watched.publishing(&file, &stat, &self.report);
        }
        if let Some(notice) = committer.notice() {
            self.control.notice(notice.clone());
            self.report.notices.push(notice);
        }
        committer.publish(made)?;
        self.report.durable = self.is_durable();
        Ok(())
    }

    /// What stands at an output on this machine, or on a mount that it sees; of a job that can be resumed. Nothing where
    /// that cannot be seen: no job fails for it.
    pub(super) fn output_before(&self) -> Option<OutputBefore> {
        let (store, is_told) = (self.store(), self.watched.recorder().is_on());
        let output = self.asked.output.filter(|_| is_told)?;
        let path = output.path();
        let local = path.local().filter(|_| store.publisher(path).is_none())?;
        let mark = match output {
            JobOutput::File(_) => {
                let there = store.disk().resolve(local);
                let there = there.and_then(|file| store.disk().stat(&file)).ok()?;
                there.map(|stat| format!("file {:?}", stat.identity))
            }
            _ => proof_of(store, path).ok()?,
        };
        Some(OutputBefore { mark })
    }

    /// Whether the output, which is published, is durable.
    fn is_durable(&self) -> Option<bool> {
        let (store, sync) = (self.store(), !self.common.no_sync);
        let output = self.asked.output?;
        Some(store.is_durable(output.path(), sync))
    }

    /// Whether the job was killed when it wrote its output in place; that is done then.
    fn finishes_in_place(&self, target: &Path) -> Result<bool> {
        let disk = &**self.environment.store.disk();
        let (job_id, sync) = (&self.environment.job_id, !self.common.no_sync);
        finish_in_place(disk, target, &self.common.spill_dir, job_id, sync)
    }

    /// Whether the job was killed after its output had its name: then what is left of it is cleared away.
    pub(in crate::jobs) fn ends_published(&mut self) -> Result<bool> {
        let (Some(replayed), Some(output)) = (self.resumed, self.asked.output) else {
            return Ok(false);
        };
        let Some((staged, numbers)) = &replayed.publishing else {
            return Ok(false);
        };
        let (store, job_id) = (self.store(), &self.environment.job_id);
        let published = match output {
            JobOutput::File(target) => match target.local() {
                // A file that was completed is as it would be made again.
                _ if store.publisher(target).is_some() => false,
                None => false,
                Some(path) if self.finishes_in_place(path)? => {
                    self.report.fill_from(numbers);
                    if let Some(stat) = store.disk().stat(path)? {
                        self.watched.publishing(path, &stat, &self.report);
                    }
                    true
                }
                Some(path) => {
                    let path = store.disk().resolve(path)?;
                    let there = store.disk().stat(&path)?;
                    there.is_some_and(|stat| staged.is_same(&FileVersion::new(path, &stat)))
                }
            },
            JobOutput::Directory(target) | JobOutput::NamedFiles(target) => {
                if let Some(place) = store.publisher(target) {
                    place.finish_swap(target.as_typed())?;
                }
                proof_of(store, target)?.is_some_and(|id| id == *job_id)
            }
        };
        if !published {
            return Ok(false);
        }
        let spill_dir = &self.common.spill_dir;
        let home = home_of(store, output.path(), spill_dir);
        clear_published(&**store.disk(), &home, spill_dir, job_id)?;
        end_uploads_to(store, output.path(), output.names_files())?;
        self.takes_over();
        self.report.fill_from(numbers);
        self.report.durable = self.is_durable();
        Ok(true)
    }
}

/// Fails where an output is one object of a store that takes none of so many bytes, which what is named has.
///
/// # Errors
/// It is so.
pub(in crate::jobs) fn check_length(
    store: &Stores,
    target: &Location,
    (what, bytes): (&str, u64),
) -> Result<()> {
    if bytes <= OBJECT_BYTES_MAX || !store.sends_parts(target) {
        return Ok(());
    }
    let (bytes, most) = (show_bytes(bytes), show_bytes(OBJECT_BYTES_MAX));
    let message = format!("the {what} has {bytes}, and an object of a store has at most {most}");
    Err(Error::new(Kind::BadOption, "write the output", message)
        .with_path(target.as_typed())
        .advise("write a directory of parts, each of them an object"))
}

/// What is read of a proof, whatever kind of job wrote it.
#[derive(Debug, Deserialize)]
struct Proof {
    job_id: String,
}

/// The job whose proof lies in an output directory.
fn proof_of(store: &Stores, output: &Location) -> Result<Option<String>> {
    let path = output.join(SUCCESS);
    let Some(stat) = store.stat(&path)? else {
        return Ok(None);
    };
    let mut bytes = vec![0; stat.bytes.min(SUCCESS_BYTES_MAX) as usize];
    let read = store.open(&path, Caching::Cached)?.read_at(&mut bytes, 0)?;
    let proof: Option<Proof> = serde_json::from_slice(bytes.get(..read).unwrap_or_default()).ok();
    Ok(proof.map(|proof| proof.job_id))
}
