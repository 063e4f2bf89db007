//! `cp`: copies files and directories between places, and proves each file.
//!
//! ```text
//!   listing (a thread) ──rounds of some thousand names──▶ copy tasks ──▶ next round ──▶ extras are removed
//!   roots.rs    what each source is, and where it goes      rounds.rs   tasks, their reports, what is swept
//!   listing.rs  names below a source, as they are found     extras.rs   --delete
//!   pieces.rs   how long files are cut                      cut.rs      files that several tasks copy
//! ```
//!
//! A source names itself, as in rsync: `dir` becomes `DST/dir`, and `dir/` puts what is in it into `DST`. That does not depend on
//! what is there, so that the same command may be run again. The rules that must hold: a file is there whole or not at all; what
//! is there already and is equal stays; no more names are held than those of two rounds, and of the directories on the way.
//!
//! Each round is a stage by itself. A job that was killed is resumed by comparing: what has its bytes is left. Of a file that was
//! being copied in pieces, those are left that the history names.
//!
//! Decision: docs/decisions/copies.md.

mod atomic;
mod batches;
mod cut;
mod extras;
mod listing;
mod manifest;
mod memory;
mod pieces;
mod planned;
mod roots;
mod rounds;
mod selection;
mod words;

use std::path::PathBuf;

use self::listing::{CopyRoot, LinkRule, SourceListing};
use self::memory::CopyMemory;
use self::rounds::CopyTotals;
use self::selection::Selection;
use self::words::Preserve;
use super::kind::{Described, JobKind};
use super::mapreduce::wrong_option;
use super::steps::RunningJob;
use crate::plan::amount::{ByteAmount, check_split_size};
use crate::plan::explain::Explanation;
use crate::plan::table::{CommandSpec, argument, option, options};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::checksum::Hex;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::{CopyRules, ExistingFile};

options! {
    /// Options of `cp`, as given.
    pub(in crate::jobs) struct CpSpec {
        inputs: Vec<Location> = argument(
            "What to copy: files and directories. A directory is copied by its name; with a slash at its end, what is in it is.",
        ),
        output: Location = argument("Where to: a directory; or, for one file, the name of its copy."),
        update: bool = option(
            "off: the job fails at such a file",
            "Replace a file that is there and has other bytes. Both are read, unless their lengths differ or the store knows a checksum.",
        ),
        overwrite: bool = option("off", "Replace each file that is there, without a comparison."),
        delete: bool = option(
            "off",
            "Remove from the target what the source does not have, once all is copied. Needs one source, which is a directory.",
        ),
        atomic: bool = option(
            "off",
            "Let the whole copy appear at once, when all of it is there. The target must not exist, on a disk, a mount or HDFS.",
        ),
        dry_run: bool = option("off", "Say what would be done, a line for each file, and write nothing."),
        filter: Vec<String> = option(
            "all files",
            "Copy only files whose names match, such as *.csv; with a slash, the path within the source. Repeatable.",
        ),
        exclude: Vec<String> = option(
            "nothing",
            "Leave out files and directories whose names match; with a slash, whose paths within the source do. Repeatable.",
        ),
        exclude_regex: Vec<String> = option(
            "nothing",
            "Leave out files and directories by a regular expression, such as .*[.]tmp. It must match the whole path, which begins with the source. Repeatable.",
        ),
        files_from: Option<Location> = option(
            "all",
            "A file with the names to copy, a line each, within the one source directory.",
        ),
        links: LinkRule = option(
            "follow",
            "What is done about symbolic links: copy what they lead to, copy them as links, or skip them.",
        ),
        preserve: Preserve = option("neither", "Give files the times or the permissions of the source: times, mode or times,mode. Between local places."),
        verify: bool = option("off", "Read each file that was written, and compare its CRC."),
        manifest: Option<Location> = option(
            "none",
            "Write a file with the name, the length and the CRC-32 of each file, as lines of JSON.",
        ),
        bandwidth: Option<ByteAmount> = option(
            "no limit",
            "Read at most so many bytes a second, such as 50M; each worker has its share.",
        ),
        ignore_failures: bool = option(
            "off",
            "Copy the others when a file cannot be copied. The job fails at its end, and names the first 20.",
        ),
    }
}

impl Described for CpSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "cp",
        function: None,
        help: "Copy files and directories between places: disks, object stores, HDFS, and from web servers.",
        details: "A file that is there already and has the same bytes is left. Each file appears whole, or not at all. The job \
                  compares the length and the CRC-32 of what it read with those of what was written. A killed job is resumed with \
                  `gristmill resume`, or by the same command with --update.",
        example: "gristmill cp data/ s3://bucket/data",
        python: r#"
>>> import pathlib, tempfile, gristmill
>>> with tempfile.TemporaryDirectory() as folder:
...     top = pathlib.Path(folder)
...     for name in ("a", "b"):
...         (top / name).write_text("some text\n")
...     report = gristmill.cp([top / "a", top / "b"], top / "copies")
...     sorted(path.name for path in (top / "copies").iterdir())
10
10
['a', 'b']
>>> report.counters["COPY"], report.counters["BYTESCOPIED"]
(2, 20)
"#,
        explained: true,
        own: Self::OPTIONS,
        common: &[
            "memory",
            "workers",
            "runner",
            "on",
            "nodes",
            "split_size",
            "store_option",
            "no_sync",
        ],
    };
}

impl JobKind for CpSpec {
    /// What was copied is found by comparing.
    fn resumable(&self) -> Result<()> {
        Ok(())
    }

    fn explain(&self, job: &RunningJob<'_>) -> Result<Explanation> {
        planned::explain(self, job)
    }

    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        self.check()?;
        if !self.atomic {
            return self.copy(job);
        }
        if let Some(target) = self.output.local() {
            return atomic::copy(job, self, target);
        }
        let publisher = job.environment.store.publisher(&self.output);
        match publisher.and_then(|place| place.renames()) {
            Some(place) => atomic::copy_in_store(job, self, place),
            None => Err(wrong_option(
                "atomic",
                "an object store gives names to files alone: the target must be on a disk, a mount, or HDFS",
            )),
        }
    }

    fn staged_beside(&self) -> Option<&Location> {
        self.atomic.then_some(&self.output)
    }

    fn clear_in_store(&self, stores: &Stores, job: &str, dry_run: bool) -> Result<Option<PathBuf>> {
        match self.atomic {
            true => atomic::clear(stores, &self.output, job, dry_run),
            false => Ok(None),
        }
    }
}

impl CpSpec {
    /// Copies all to the target, file by file.
    fn copy(&self, job: &mut RunningJob<'_>) -> Result<()> {
        self.piece_bytes(job)?;
        let selection = self.selection(job)?;
        let roots = roots::roots(job.store(), &self.inputs, &self.output)?;
        self.check_roots(&roots)?;
        roots::check_apart(job.store(), &roots, &self.listing(job.store(), &selection))?;
        job.take_inputs(&[], None)?;
        job.takes_over();
        let mut totals = CopyTotals::default();
        let copied = rounds::copy_all(job, (self, &selection), &roots, &mut totals);
        let done = copied.and_then(|()| match (self.delete, roots.first()) {
            (true, Some(root)) => extras::delete(job, (self, &selection), root, &mut totals),
            _ => Ok(()),
        });
        self.report(job, &totals);
        done?;
        match &totals.first_failure {
            Some(first) => Err(some_failed(&totals, first)),
            None => Ok(()),
        }
    }

    /// Fails where options make no sense together.
    fn check(&self) -> Result<()> {
        if self.inputs.is_empty() {
            return Err(wrong_option("inputs", "name what to copy"));
        }
        if self.update && self.overwrite {
            let what = "with --overwrite all files are replaced: leave out one of the two";
            return Err(wrong_option("update", what));
        }
        if self.bandwidth.is_some_and(|limit| limit.0 == 0) {
            return Err(wrong_option("bandwidth", "it must be more than 0"));
        }
        for (option, given) in [
            ("update", self.update),
            ("overwrite", self.overwrite),
            ("delete", self.delete),
        ] {
            if self.atomic && given {
                let what = "with --atomic the target is made anew: leave out one of the two";
                return Err(wrong_option(option, what));
            }
        }
        if self.atomic && self.ignore_failures {
            let what = "with --atomic all files are copied, or none: leave out one of the two";
            return Err(wrong_option("ignore_failures", what));
        }
        if self.delete && self.files_from.is_some() {
            let what = "with --files-from the target may have files that are not named";
            return Err(wrong_option("delete", what));
        }
        Ok(())
    }

    fn check_roots(&self, roots: &[CopyRoot]) -> Result<()> {
        let is_one_directory = matches!(roots, [root] if root.is_directory());
        for (option, given) in [
            ("delete", self.delete),
            ("files_from", self.files_from.is_some()),
        ] {
            if given && !is_one_directory {
                return Err(wrong_option(
                    option,
                    "it needs one source, which is a directory",
                ));
            }
        }
        let is_local = |location: &Location| !location.is_remote();
        let all_local = is_local(&self.output) && roots.iter().all(|root| is_local(&root.from));
        if self.preserve != Preserve::default() && !all_local {
            let what = "stores do not keep it: source and target must be local";
            return Err(wrong_option("preserve", what));
        }
        if self.links == LinkRule::Copy && !all_local {
            let what = "stores have no links: give follow or skip";
            return Err(wrong_option("links", what));
        }
        Ok(())
    }

    /// How long the pieces of a file are, if the user says it.
    fn piece_bytes(&self, job: &RunningJob<'_>) -> Result<Option<u64>> {
        check_split_size(job.common.split_size)
    }

    fn selection(&self, job: &RunningJob<'_>) -> Result<Selection> {
        Selection::read(
            job.store(),
            (&self.filter, &self.exclude),
            &self.exclude_regex,
            self.files_from.as_ref(),
        )
    }

    fn listing<'a>(&self, stores: &'a Stores, selection: &'a Selection) -> SourceListing<'a> {
        SourceListing {
            stores,
            selection,
            links: self.links,
            to_directories: !stores.sends_parts(&self.output),
        }
    }

    /// How tasks copy. What a job that was killed has copied is not copied again.
    fn rules(&self, job: &RunningJob<'_>) -> CopyRules {
        let memory = CopyMemory::of(job, (&self.inputs, &self.output));
        let share = |limit: ByteAmount| (limit.0 / job.workers.max(1) as u64).max(1);
        CopyRules {
            existing: match (self.overwrite, self.update) {
                (true, _) if job.resumed.is_none() => ExistingFile::Overwrite,
                (false, false) => ExistingFile::Refuse,
                _ => ExistingFile::Update,
            },
            dry_run: self.dry_run,
            verify: self.verify,
            mode: self.preserve.mode,
            times: self.preserve.times,
            syncs: !job.common.no_sync,
            ignore_failures: self.ignore_failures,
            names_files: self.dry_run || self.manifest.is_some(),
            bytes_per_s: self.bandwidth.map(share),
            worker_bytes: memory.worker_bytes,
            streams_bytes: memory.streams_bytes,
        }
    }

    fn report(&self, job: &mut RunningJob<'_>, totals: &CopyTotals) {
        let copied = &totals.copied;
        let report = &mut job.report;
        report.records = copied.copied;
        report.input_bytes = copied.copied_bytes + copied.same_bytes;
        report.output_bytes = if self.dry_run { 0 } else { copied.copied_bytes };
        report.parts = copied.copied as usize;
        report.checksum = Hex(u128::from(copied.crc_sum)).to_string();
        report.durable = (!self.dry_run).then_some(!job.common.no_sync);
        report.count("COPY", copied.copied);
        report.count("SKIP", copied.same);
        report.count("FAIL", copied.failed);
        report.count("BYTESCOPIED", copied.copied_bytes);
        report.count("BYTESSKIPPED", copied.same_bytes);
        report.count("DIR_COPY", copied.directories);
        for (name, count) in [
            ("REPLACED_FILES", copied.replaced),
            ("COPIED_LINKS", copied.links),
            ("SKIPPED_LINKS", totals.skipped_links),
            ("DELETED_FILES", totals.deleted),
            ("COPY_STREAMS", copied.streams),
            ("CUT_FILES", totals.cut_files),
            ("COPIED_PIECES", totals.pieces - totals.kept_pieces),
            ("KEPT_PIECES", totals.kept_pieces),
            ("STORE_COPIES", copied.in_store),
            ("STORE_COPIED_BYTES", copied.in_store_bytes),
            ("STORE_COPIES_UNPROVED", copied.unproved),
        ] {
            if count > 0 {
                report.count(name, count);
            }
        }
        report.report.extend(totals.lines.iter().cloned());
        if totals.lines_left_out > 0 {
            let more = format!("and {} more", totals.lines_left_out);
            report.report.push(more);
        }
        report.warnings.extend(copied.failures.iter().cloned());
        if copied.unproved > 0 {
            report.warnings.push(unproved(copied.unproved));
        }
    }
}

/// The error of a job that copied what it could.
fn some_failed(totals: &CopyTotals, first: &str) -> Error {
    let (failed, copied) = (totals.copied.failed, totals.copied.copied);
    let first = first.trim_end_matches('.');
    // The first error has its own advice, which stands at the end.
    let message = format!(
        "{failed} could not be copied, and {copied} were: mend what is wrong, and run the same command again with --update. \
         The first of them: {first}"
    );
    Error::new(Kind::Io, "copy all files", message)
}

/// What is said of files that a store has copied, of which it says no sum.
fn unproved(files: u64) -> String {
    let files = match files {
        1 => "1 file was".to_owned(),
        files => format!("{files} files were"),
    };
    format!(
        "{files} copied by the store itself, which gives no checksum of such copies: version and length are checked, the bytes \
         are not. With --overwrite --verify they are read and compared"
    )
}

#[cfg(test)]
mod tests;
