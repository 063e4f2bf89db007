//! The copy task: copies files to another place, proves each, and makes each seen.
//!
//! ```text
//!   listed file ──same bytes are there──▶ left as it is
//!               ──else──▶ read, CRC-32 ──▶ staged file or upload ── length, CRC ──▶ completed
//! ```
//!
//! Each file is an output by itself, so the task is its committer: it completes a file once the bytes written are those read, and
//! the file read is the one that was opened. The rules that must hold: a file appears whole or not at all; no two attempts at a
//! task run at once, and one that was told to stop completes nothing. An attempt that comes after another one finds what that
//! one has completed, and leaves it.
//!
//! Decision: docs/decisions/copies.md.

use serde::{Deserialize, Serialize};

use super::file::Copying;
use super::item::{
    CopiedFile, CopiedPiece, CopyItem, CopyOutcome, CopyPiece, CopyRules, CopySource, CopyWay,
    FailedPiece,
};
use super::streams::{StreamKind, TaskStreams};
use super::task::CopyTask;
use crate::task::input::name_of;
use crate::task::{Counters, Side, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::io::window::SHARE_BYTES_MAX;
use gristmill_storage::objects::Upload;

/// Failures that a report names; others are counted.
pub const COPY_FAILURES_NAMED: usize = 20;

/// Memory of a worker that copies: a buffer for each side, which are compared.
pub const COPY_WORKER_BYTES: u64 = 2 * TRANSFER_BYTES as u64;

/// Files up to this length cost what is waited for rather than what their bytes take; longer ones are counted apart.
pub const SHORT_FILE_BYTES: u64 = 256 << 10;

/// Files that a task begins to copy at once, at most: of far places.
const FAR_AT_ONCE: usize = 64;

/// The same where each is to be on a device: file systems make those durable together that are waited for together.
const SYNCED_AT_ONCE: usize = 8;

/// Bytes of the files that it begins with: on a slow link, too, each of them is there in time.
const FIRST_BYTES: u64 = 16 << 20;

/// Bytes that such a file is reckoned with, at least.
const SHORT_FILE_LEAST: u64 = 64 << 10;

/// Which files to copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyFilesSpec {
    /// They, in order.
    pub items: Vec<CopyItem>,
    /// How.
    pub rules: CopyRules,
}

/// What a task copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyReport {
    /// Files that were copied, and those of them that took the place of others.
    pub copied: u64,
    /// Of these, as many took the place of others.
    pub replaced: u64,
    /// Bytes of files that were copied.
    pub copied_bytes: u64,
    /// The sum of their CRCs.
    pub crc_sum: u64,
    /// Of these, as many stores copied by themselves, and their bytes.
    pub in_store: u64,
    /// The same.
    pub in_store_bytes: u64,
    /// Of these, as many whose bytes were not compared.
    pub unproved: u64,
    /// Files that were there.
    pub same: u64,
    /// Their bytes.
    pub same_bytes: u64,
    /// Directories that were made, or were there.
    pub directories: u64,
    /// Links that were made, or were there.
    pub links: u64,
    /// Files that could not be copied.
    pub failed: u64,
    /// What was wrong with the first of them.
    pub failures: Vec<String>,
    /// How many files its process copied at once, as the task ended.
    pub streams: u64,
    /// Each file, where the rules ask for that.
    pub files: Vec<CopiedFile>,
    /// Pieces of files that several tasks copy: who joins them counts the files.
    pub pieces: Vec<CopiedPiece>,
    /// Those that could not be copied.
    pub failed_pieces: Vec<FailedPiece>,
}

impl CopyReport {
    fn count(&mut self, file: CopiedFile, names: bool) {
        match file.outcome {
            CopyOutcome::Same => {
                self.same += 1;
                self.same_bytes += file.bytes;
            }
            CopyOutcome::Copied | CopyOutcome::Replaced => {
                self.copied += 1;
                self.replaced += u64::from(file.outcome == CopyOutcome::Replaced);
                self.copied_bytes += file.bytes;
                self.crc_sum += u64::from(file.crc.unwrap_or_default());
            }
        }
        if file.way != CopyWay::Here {
            self.in_store += 1;
            self.in_store_bytes += file.bytes;
            self.unproved += u64::from(file.way == CopyWay::Unproved);
        }
        if names {
            self.files.push(file);
        }
    }

    fn fail(&mut self, error: &Error) {
        self.failed += 1;
        if self.failures.len() < COPY_FAILURES_NAMED {
            self.failures.push(error.to_string());
        }
    }

    /// Adds what another task copied; the files it names are left to whoever reads them.
    pub fn add(&mut self, other: &CopyReport) {
        self.copied += other.copied;
        self.replaced += other.replaced;
        self.copied_bytes += other.copied_bytes;
        self.crc_sum += other.crc_sum;
        self.in_store += other.in_store;
        self.in_store_bytes += other.in_store_bytes;
        self.unproved += other.unproved;
        self.same += other.same;
        self.same_bytes += other.same_bytes;
        self.directories += other.directories;
        self.links += other.links;
        self.failed += other.failed;
        if other.streams > 0 {
            self.streams = other.streams;
        }
        let room = COPY_FAILURES_NAMED.saturating_sub(self.failures.len());
        self.failures
            .extend(other.failures.iter().take(room).cloned());
    }
}

/// What became of an item.
enum Done {
    File(CopiedFile),
    Directory,
    Link,
    Piece(CopiedPiece),
    FailedPiece(FailedPiece),
    Failed(Error),
}

impl CopyFilesSpec {
    /// Copies files of one kind; gives what became of each. How many go at once is found while they do, where a far place or a device
    /// is waited for.
    fn copy_all(
        &self,
        items: &[(usize, &CopyItem)],
        kind: StreamKind,
        task: &CopyTask<'_>,
    ) -> Result<Vec<(usize, Done)>> {
        let first = self.first_streams(items, kind);
        if first < 2 || items.len() < 2 {
            let mut copying = Copying::new(task);
            let items = items.iter();
            return items
                .map(|(number, item)| Ok((*number, self.copy(&mut copying, item)?)))
                .collect();
        }
        let joined = task.context.node.streams.join(TaskStreams {
            kind,
            first,
            bytes: self.rules.worker_bytes + self.rules.streams_bytes,
        });
        at_once(items, joined.threads(items.len()), |(number, item)| {
            let place = joined.enter(self.stream_bytes(item), task.attempt)?;
            let done = self.copy(&mut Copying::new(task), item)?;
            place.done(item.bytes(), task.throttled());
            Ok((*number, done))
        })
    }

    /// How many files to begin with at once; one where more would bring nothing.
    fn first_streams(&self, items: &[(usize, &CopyItem)], kind: StreamKind) -> usize {
        let is_far = items.iter().any(|(_, item)| item.is_far());
        let most = match self.rules.syncs && !self.rules.dry_run {
            _ if is_far => FAR_AT_ONCE,
            true if kind == StreamKind::Short => SYNCED_AT_ONCE,
            _ => return 1,
        };
        let longest = items.iter().map(|(_, item)| item.bytes()).max();
        let fit = FIRST_BYTES / longest.unwrap_or(0).max(SHORT_FILE_BYTES);
        usize::try_from(fit).map_or(most, |fit| fit.clamp(2, most))
    }

    /// Memory of a stream that copies this: two buffers, what is sent of one, and a body that is put together of that; or those of
    /// a file that is sent in parts.
    fn stream_bytes(&self, item: &CopyItem) -> u64 {
        (4 * item.bytes().max(SHORT_FILE_LEAST)).min(self.rules.worker_bytes)
    }

    /// Copies an item. Where failures are ignored, none but the end of the job is an error.
    fn copy(&self, copying: &mut Copying<'_>, item: &CopyItem) -> Result<Done> {
        copying.check_stop()?;
        let done = match &item.what {
            CopySource::File(found) => copying.file(item, found).map(Done::File),
            CopySource::Directory => copying.directory(item).map(|()| Done::Directory),
            CopySource::Link(leads_to) => copying.link(item, leads_to).map(|()| Done::Link),
            CopySource::Piece(piece) => copying.piece(item, piece).map(Done::Piece),
            CopySource::Joined(joined) => copying.joined(item, joined).map(Done::File),
        };
        match done.map_err(|error| copying.blocked(item, error)) {
            Err(error) if self.rules.ignore_failures && error.kind() != Kind::Cancelled => {
                copying.check_stop()?; // a store that stopped waiting says so in its own words
                Ok(match item.what {
                    CopySource::Piece(_) => Done::FailedPiece(FailedPiece {
                        to: item.to.clone(),
                        error: error.to_string(),
                    }),
                    _ => Done::Failed(error),
                })
            }
            done => done,
        }
    }

    fn note(&self, report: &mut CopyReport, done: Done) {
        match done {
            Done::File(file) => report.count(file, self.rules.names_files),
            Done::Directory => report.directories += 1,
            Done::Link => report.links += 1,
            Done::Piece(piece) => report.pieces.push(piece),
            Done::FailedPiece(failed) => report.failed_pieces.push(failed),
            Done::Failed(error) => report.fail(&error),
        }
    }
}

impl TaskKind for CopyFilesSpec {
    type Report = CopyReport;

    fn run(&self, (context, attempt, _): TaskEnvironment<'_>) -> Result<Self::Report> {
        let budget = &context.node.budget;
        let bytes = self.rules.worker_bytes + self.rules.streams_bytes;
        let _memory = budget.reserve("copy buffers", bytes)?;
        let ahead = context.job.ahead_bytes.min(SHARE_BYTES_MAX);
        let _ahead = context.node.store.requests().memory.share(ahead);
        let task = CopyTask::new(self.rules, context, attempt);
        let numbered = self.items.iter().enumerate();
        let (short, long): (Vec<_>, Vec<_>) =
            numbered.partition(|(_, item)| item.bytes() <= SHORT_FILE_BYTES);
        let mut done = self.copy_all(&short, StreamKind::Short, &task)?;
        done.extend(self.copy_all(&long, StreamKind::Long, &task)?);
        done.sort_unstable_by_key(|(number, _)| *number);
        let mut report = CopyReport {
            streams: context.node.streams.now() as u64,
            ..CopyReport::default()
        };
        for (_, done) in done {
            self.note(&mut report, done);
        }
        Ok(report)
    }

    fn input(&self, _context: &TaskContext) -> String {
        match &*self.items {
            [] => "nothing".to_owned(),
            [one] => match &one.what {
                CopySource::Piece(CopyPiece { range, .. }) => {
                    format!(
                        "{}, bytes {} to {}",
                        name_of(&one.from),
                        range.start,
                        range.end
                    )
                }
                _ => name_of(&one.from),
            },
            [first, ..] => format!(
                "{} files from {} on",
                self.items.len(),
                name_of(&first.from)
            ),
        }
    }

    fn counters(&self, report: &CopyReport) -> Counters {
        vec![
            ("COPY", report.copied),
            ("SKIP", report.same),
            ("FAIL", report.failed),
            ("BYTESCOPIED", report.copied_bytes),
            ("BYTESSKIPPED", report.same_bytes),
        ]
    }

    fn side(&self) -> Option<Side> {
        Some(Side::Map)
    }

    fn writes_apart(&self) -> bool {
        false
    }

    /// Those of pieces: so the history has them, and a job that is resumed writes only what is missing.
    fn uploads(report: &CopyReport) -> Vec<&Upload> {
        report.pieces.iter().map(|piece| &piece.upload).collect()
    }
}
