//! Rounds: some thousands of names are copied while the next ones are listed.
//!
//! ```text
//!   listing thread ── a round ──▶ (one waits) ──▶ swept ──▶ tasks: small files in batches ──▶ reports ──▶ names durable
//! ```
//!
//! A round is a stage; with files that are cut (`cut.rs`) it is several, and one behind each that gives them their names. What a
//! job that was killed has staged to the names of a round goes before the round begins, as nobody else writes these files, but
//! for what the job goes on with. After it, folders for staged files go that are empty.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::CpSpec;
use super::batches::batches;
use super::cut::{BegunWave, Cutter, JoinedFiles, KnownPieces, LongFile};
use super::listing::{CopyRoot, Listed, SourceListing};
use super::manifest::ManifestWriter;
use super::memory::CopyMemory;
use super::pieces::PieceSizes;
use super::selection::Selection;
use crate::driver::stage;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::{Error, Result};
use gristmill_base::sys::threads::begin_in;
use gristmill_storage::input::InputFile;
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::location::Location;
use gristmill_storage::shared::SharedOutputs;
use gristmill_storage::staged::label;
use gristmill_storage::stores::Stores;
use gristmill_tasks::split::asked_at_once;
use gristmill_tasks::task::{
    COPY_FAILURES_NAMED, CopyItem, CopyOutcome, CopyPiece, CopyReport, CopyRules, CopySource,
    CopyStreams, InProcess, JobShared, NodeContext, TaskContext,
};

/// Names of a round.
pub(super) const ROUND_NAMES: usize = 5_000;

/// Lines of a dry run that are kept.
const LINES_MAX: usize = 100_000;

/// Files of a round that nodes of a cluster are asked for.
const LOOKED_AT: usize = 64;

/// How often a job that waits for names looks at its end.
const LOOK: Duration = Duration::from_millis(50);

/// What all rounds did.
#[derive(Debug, Default)]
pub(super) struct CopyTotals {
    pub(super) copied: CopyReport,
    pub(super) skipped_links: u64,
    pub(super) deleted: u64,
    pub(super) first_failure: Option<String>,
    /// Files that several tasks copied, their pieces, and those of them that a job which was killed had copied.
    pub(super) cut_files: u64,
    pub(super) pieces: u64,
    pub(super) kept_pieces: u64,
    /// Something could not be listed: what is missing in the source is not known.
    pub(super) is_part: bool,
    /// Of a dry run, what would be done.
    pub(super) lines: Vec<String>,
    pub(super) lines_left_out: u64,
}

impl CopyTotals {
    fn fail(&mut self, error: Error, ignore: bool) -> Result<()> {
        if !ignore {
            return Err(error);
        }
        self.is_part = true;
        self.fail_file(error.to_string());
        Ok(())
    }

    /// Notes that a file could not be copied.
    fn fail_file(&mut self, text: String) {
        self.copied.failed += 1;
        if self.copied.failures.len() < COPY_FAILURES_NAMED {
            self.copied.failures.push(text.clone());
        }
        self.first_failure.get_or_insert(text);
    }

    /// Adds what the tasks of a stage did.
    fn add(&mut self, copied: &[CopyReport]) {
        for report in copied {
            self.copied.add(report);
            if let Some(first) = report.failures.first() {
                self.first_failure.get_or_insert_with(|| first.clone());
            }
        }
    }

    pub(super) fn say(&mut self, what: &str, path: &Location) {
        match self.lines.len() < LINES_MAX {
            true => self.lines.push(format!("{what} {path}")),
            false => self.lines_left_out += 1,
        }
    }
}

/// What was listed for a round.
#[derive(Default)]
struct CopyRound {
    items: Vec<CopyItem>,
    failures: Vec<Error>,
    skipped_links: u64,
}

impl CopyRound {
    fn take(&mut self, listed: Listed) {
        match listed {
            Listed::Item(item) => self.items.push(item),
            Listed::Failed(error) => self.failures.push(error),
            Listed::SkippedLink => self.skipped_links += 1,
        }
    }

    fn is_full(&self) -> bool {
        self.items.len() + self.failures.len() >= ROUND_NAMES
    }
}

/// Copies all that lies below the sources.
pub(super) fn copy_all(
    job: &mut RunningJob<'_>,
    (spec, selection): (&CpSpec, &Selection),
    roots: &[CopyRoot],
    totals: &mut CopyTotals,
) -> Result<()> {
    let rules = spec.rules(job);
    job.check_worker_memory(rules.worker_bytes)?;
    let (streams, known) = (Arc::default(), KnownPieces::of(job.resumed));
    let listing = spec.listing(job.store(), selection);
    let targets = targets_of(job);
    job.writes_to = roots
        .first()
        .filter(|_| !spec.dry_run)
        .map(CopyRoot::any_file);
    let mut manifest = match &spec.manifest {
        Some(place) if !spec.dry_run => Some(ManifestWriter::begin(&targets, place, &spec.output)?),
        _ => None,
    };
    let stop = AtomicBool::new(false);
    let (send, rounds) = sync_channel(1);
    let copied = thread::scope(|scope| {
        let rounds = rounds; // gone when the work is: the listing may be waiting for it
        let _ends = EndsListing(&stop);
        let list = || list(listing, roots, &send_to(send, &stop));
        begin_in(scope, "list", list)?;
        while let Some(round) = next(job, &rounds)? {
            let places = (&targets, &streams, &known);
            let copied = copy_round(job, (spec, &rules), places, round, totals)?;
            for report in copied {
                for file in report.files {
                    if let Some(manifest) = &mut manifest {
                        manifest.add(&file)?;
                    }
                    match file.outcome {
                        _ if !spec.dry_run => {}
                        CopyOutcome::Same => {}
                        CopyOutcome::Copied => totals.say("copy", &file.path),
                        CopyOutcome::Replaced => totals.say("replace", &file.path),
                    }
                }
            }
        }
        Ok(())
    });
    copied?;
    match manifest {
        Some(manifest) => manifest.end(),
        None => Ok(()),
    }
}

/// Ends the listing when the job does.
struct EndsListing<'s>(&'s AtomicBool);

impl Drop for EndsListing<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Takes rounds from the listing; fails when nobody wants more.
type SendRound<'s> = Box<dyn Fn(Option<Result<CopyRound>>) -> Result<()> + Send + 's>;

fn send_to<'s>(send: SyncSender<Result<CopyRound>>, stop: &'s AtomicBool) -> SendRound<'s> {
    Box::new(move |round| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::cancelled());
        }
        match round {
            Some(round) => send.send(round).map_err(|_gone| Error::cancelled()),
            None => Ok(()),
        }
    })
}

fn list(listing: SourceListing<'_>, roots: &[CopyRoot], send: &SendRound<'_>) {
    let mut round = CopyRound::default();
    let listed = roots.iter().try_for_each(|root| {
        listing.root(root, &mut |listed| {
            round.take(listed);
            let full = round.is_full().then(|| Ok(std::mem::take(&mut round)));
            send(full)
        })
    });
    // What was found before an error is copied: the error comes behind it.
    let _ = send(Some(Ok(round)));
    if let Err(error) = listed {
        let _ = send(Some(Err(error)));
    }
}

/// The next round, once it is listed; nothing behind the last.
fn next(job: &RunningJob<'_>, rounds: &Receiver<Result<CopyRound>>) -> Result<Option<CopyRound>> {
    loop {
        job.check_cancelled()?;
        match rounds.recv_timeout(LOOK) {
            Ok(round) => return round.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// Files of the local disk, as they are written: each staged, and renamed.
pub(super) fn targets_of(job: &RunningJob<'_>) -> Arc<Stores> {
    let stores = job.store();
    let outputs = stores.shared_outputs();
    let outputs = outputs.unwrap_or_else(|| SharedOutputs::seen_by_all(!job.common.no_sync));
    stores.with_shared_outputs(Some(outputs))
}

/// What the tasks of a round run with.
fn context_of(
    job: &RunningJob<'_>,
    spec: &CpSpec,
    (targets, streams): (&Arc<Stores>, &Arc<CopyStreams>),
    items: &[CopyItem],
) -> TaskContext {
    let memory = CopyMemory::of(job, (&spec.inputs, &spec.output));
    let files = match job.cluster() {
        Some(_) => items.iter().filter_map(input_of).take(LOOKED_AT).collect(),
        None => Vec::new(),
    };
    let shared = JobShared {
        parts_bytes: memory.parts_bytes,
        ahead_bytes: memory.ahead_bytes,
        shared_outputs: targets.shared_outputs(),
        ..job.shared(files)
    };
    let node = NodeContext::new(Arc::clone(targets), job.budget());
    let node = node.with_streams(Arc::clone(streams));
    TaskContext::new(shared, node, InProcess::Nothing)
}

/// A local file, which nodes are to see.
fn input_of(item: &CopyItem) -> Option<InputFile> {
    match &item.what {
        CopySource::File(stat) | CopySource::Piece(CopyPiece { stat, .. })
            if !item.from.is_remote() =>
        {
            Some(InputFile {
                path: item.from.clone(),
                stat: *stat,
            })
        }
        _ => None,
    }
}

fn copy_round(
    job: &mut RunningJob<'_>,
    (spec, rules): (&CpSpec, &CopyRules),
    (targets, streams, known): (&Arc<Stores>, &Arc<CopyStreams>, &KnownPieces),
    round: CopyRound,
    totals: &mut CopyTotals,
) -> Result<Vec<CopyReport>> {
    totals.skipped_links += round.skipped_links;
    for failure in round.failures {
        totals.fail(failure, spec.ignore_failures)?;
    }
    if round.items.is_empty() {
        return Ok(Vec::new());
    }
    let folders = TargetFolders::of(targets, &spec.output, &round.items);
    if !spec.dry_run {
        folders.sweep(&known.uploads())?;
    }
    let context = context_of(job, spec, (targets, streams), &round.items);
    let bytes = round.items.iter().map(CopyItem::bytes).sum();
    let cutter = Cutter {
        stores: targets,
        rules,
        sizes: PieceSizes::of(bytes, job.workers, spec.piece_bytes(job)?),
        workers: job.workers,
    };
    let mut copied = Ok(Vec::new());
    for wave in cutter.waves(round.items) {
        copied = copied.and_then(|mut copied| {
            let begun = cutter.begin(wave, known)?;
            copied.extend(copy_wave(job, (&cutter, &context), begun, totals)?);
            Ok(copied)
        });
    }
    if !spec.dry_run {
        // Also after a round that went well: a file that failed, or an attempt that was made again, may have left what it
        // staged, and a store may have begun an upload whose reply was lost.
        let cleared = folders.sweep(&BTreeSet::new()).and(folders.clear());
        if copied.is_ok() {
            cleared.and(folders.make_durable())?;
        }
    }
    copied
}

/// Copies the files of a wave, and gives those their names that several tasks have copied.
fn copy_wave(
    job: &mut RunningJob<'_>,
    (cutter, context): (&Cutter<'_>, &TaskContext),
    wave: BegunWave,
    totals: &mut CopyTotals,
) -> Result<Vec<CopyReport>> {
    let pieces = wave.cut.iter().flat_map(LongFile::pieces);
    let items: Vec<CopyItem> = wave.whole.into_iter().chain(pieces.cloned()).collect();
    let bytes = items.iter().map(CopyItem::bytes).sum();
    let tasks = batches(items, *cutter.rules, job.workers);
    let mut copied = job.run_stage(stage("copy", bytes, tasks), context, None)?;
    totals.add(&copied);
    if wave.cut.is_empty() {
        return Ok(copied);
    }
    totals.cut_files += wave.cut.len() as u64;
    let joined = JoinedFiles::of((cutter.stores, cutter.rules), wave.cut, &mut copied)?;
    totals.pieces += joined.pieces;
    totals.kept_pieces += joined.kept_pieces;
    for failure in joined.failures {
        totals.fail_file(failure);
    }
    let tasks = batches(joined.items, *cutter.rules, job.workers);
    let done = job.run_stage(stage("complete", 0, tasks), context, None)?;
    totals.add(&done);
    copied.extend(done);
    Ok(copied)
}

/// The directories that the files of a round go to.
struct TargetFolders<'a> {
    stores: &'a Stores,
    target: &'a Location,
    /// Of each, the names by which its place knows what is staged to it.
    names: BTreeMap<Location, BTreeSet<Location>>,
}

impl<'a> TargetFolders<'a> {
    fn of(stores: &'a Stores, target: &'a Location, items: &[CopyItem]) -> Self {
        let mut names: BTreeMap<Location, BTreeSet<Location>> = BTreeMap::new();
        for item in items {
            let Some(folder) = item.to.parent() else {
                continue;
            };
            let staged = folder.join(label(item.to.as_typed()));
            let own = names.entry(folder).or_default();
            match item.what {
                CopySource::File(_) => own.extend([staged, item.to.clone()]),
                CopySource::Directory => drop(names.entry(item.to.clone()).or_default()),
                CopySource::Link(_) | CopySource::Piece(_) | CopySource::Joined(_) => {}
            }
        }
        TargetFolders {
            stores,
            target,
            names,
        }
    }

    /// Ends what is staged to files of the round, but for these.
    fn sweep(&self, kept: &BTreeSet<(PathBuf, String)>) -> Result<()> {
        let Some(publisher) = self.stores.publisher(self.target) else {
            return Ok(());
        };
        let is_one = |path: &Location| {
            let folder = path.parent().and_then(|folder| self.names.get(&folder));
            folder.is_some_and(|names| names.contains(path))
        };
        // An object store lists all uploads below a name at once.
        let folders: Vec<&Location> = match self.stores.sends_parts(self.target) {
            true => vec![self.target],
            false => self.names.keys().collect(),
        };
        at_once(&folders, asked_at_once(self.target), |folder| {
            for (path, id) in publisher.uploads(folder.as_typed())? {
                if is_one(&Location::from(&*path)) && !kept.contains(&(path.clone(), id.clone())) {
                    publisher.abort(&path, &id)?;
                }
            }
            Ok(())
        })
        .map(drop)
    }

    fn make_durable(&self) -> Result<()> {
        let Some(publisher) = self.stores.publisher(self.target) else {
            return Ok(());
        };
        let folders: Vec<&Location> = self.names.keys().collect();
        at_once(&folders, asked_at_once(self.target), |folder| {
            match self.stores.stat(folder)? {
                Some(_) => publisher.sync_names(folder.as_typed()),
                None => Ok(()), // nothing of it could be copied
            }
        })
        .map(drop)
    }

    /// Removes what was made for staged files.
    fn clear(&self) -> Result<()> {
        let Some(publisher) = self.stores.publisher(self.target) else {
            return Ok(());
        };
        let folders: Vec<&Location> = self.names.keys().collect();
        at_once(&folders, asked_at_once(self.target), |folder| {
            publisher.clear(folder.as_typed())
        })
        .map(drop)
    }
}
