//! What user code failed at, kept so that it can be tried again alone: `gristmill retry JOB`.
//!
//! ```text
//!   <home>/jobs/<job>/failed/<task>/task    a line of JSON: how the task is run, where it failed │ the job's definition
//!                                  /…run    of a reduce: the pairs of the groups that it failed at, sorted
//! ```
//!
//! The same for every input and every way to begin a job: a map has its split in its spec, a reduce gets a run of its
//! own in the place of all runs, which go with the job. On a cluster, the driver writes this, with what the agent says
//! (`failed_on_agent.rs`). Files and folders are for their owner alone, as there may be secrets in them; whoever loads the
//! definition checks that. The rule that must hold: keeping never makes a job fail in another way than it did.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::executor_spec::{ExecutorKind, ExecutorSpec};
use super::spec::{UserAttemptSpec, UserTaskKind, feed_of};
use crate::merge::feed::MergedPairs;
use crate::spill::SpilledRun;
use crate::spill::collect::PairCollector;
use crate::task::runs::MergeRun;
use crate::worker::{RecordPosition, Where, WorkerError, WorkerLimits};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::LocalDisk;

/// The version of the file.
const FORMAT: u32 = 1;
/// The file in a task's folder.
const TASK: &str = "task";
/// Bytes of pairs that are kept at most: a key may have more values than a disk has room for twice.
pub(super) const PAIRS_BYTES_MAX: u64 = 64 << 20;

/// Bytes between places where the pairs that are kept may begin.
const MARK_BYTES: u64 = 64 << 10;

/// Bits of a number of a pair in a mark of a group: a partition has fewer than 10^12.
const GROUP_SHIFT: u32 = 40;

/// Where a job keeps what its user code failed at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureFolder {
    /// The folder, with a folder for each task; it need not exist.
    #[serde(with = "gristmill_base::names")]
    pub folder: PathBuf,
    /// Which Python the code runs with, and where.
    pub host: String,
}

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum How {
    Raised,
    Died,
    Hung,
    Memory,
    /// A script failed. Only the script knows which of its groups is to blame: all are kept that it was given, or the
    /// last of them.
    Script,
}

/// Where an attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedAt {
    how: How,
    /// Where the reader of a map stood when user code raised; nothing where no record is to blame.
    exact: Option<Where>,
    /// The file that the pulse named, of a map whose worker could say no more.
    file: Option<String>,
    /// Where the pulse stood.
    place: Option<RecordNumbers>,
    /// Seconds after which a worker was hung.
    timeout_s: Option<f64>,
    /// Bytes of memory that a worker may have.
    memory_bytes: Option<u64>,
}

/// A pulse: of a map, the record and its offset; of a reduce, the first pairs of what user code was given and of its
/// last group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct RecordNumbers {
    record: u64,
    offset: u64,
    file: u64,
}

/// The file's first line.
#[derive(Serialize)]
struct FailureHeader<'a> {
    format: u32,
    job_id: &'a str,
    host: &'a str,
    how: &'a ExecutorKind,
    spec: &'a UserAttemptSpec,
    at: &'a FailedAt,
    /// Whether all pairs of a reduce are there that it had failed at.
    whole: bool,
}

impl FailedAt {
    /// What is known of an attempt's failure; nothing where user code is not to blame.
    pub(super) fn of(
        spec: &UserAttemptSpec,
        error: &WorkerError,
        limits: WorkerLimits,
    ) -> Option<Self> {
        let (how, exact, place) = match error {
            WorkerError::Failed(failure) => (How::Raised, failure.place.clone(), failure.at),
            WorkerError::Died { at, .. } => (How::Died, None, *at),
            WorkerError::Hung { at, .. } => (How::Hung, None, *at),
            WorkerError::TooMuchMemory { at, .. } => (How::Memory, None, *at),
            WorkerError::NotStarted { .. } | WorkerError::Cancelled | WorkerError::Broken(_) => {
                return None;
            }
        };
        let file = match &spec.work {
            UserTaskKind::Map { what, .. } => place.and_then(|at| file_of(&what.value(), at.file)),
            UserTaskKind::Reduce { .. } | UserTaskKind::Regroup { .. } => None,
        };
        Some(FailedAt {
            how,
            exact,
            file,
            place: place.map(|at: RecordPosition| RecordNumbers {
                record: at.record,
                offset: at.offset,
                file: at.file,
            }),
            timeout_s: limits.timeout.map(|limit| limit.as_secs_f64()),
            memory_bytes: limits.memory_bytes,
        })
    }
}

impl FailedAt {
    /// Of a task with scripts, which had been given so many pairs, if that is known.
    pub(super) fn of_script(fed: Option<u64>) -> Self {
        let last = fed.unwrap_or(u64::MAX).min((1 << GROUP_SHIFT) - 1);
        FailedAt {
            how: How::Script,
            exact: None,
            file: None,
            place: (last > 0).then(|| RecordNumbers {
                record: 0,
                offset: 0,
                file: group_mark(last, usize::MAX), // all of its key
            }),
            timeout_s: None,
            memory_bytes: None,
        }
    }
}

/// The file of a split that has this number among those of the split.
pub(super) fn file_of(what: &Value, number: u64) -> Option<String> {
    fn files(what: &Value) -> Vec<&str> {
        if let Some(several) = what["several"].as_array() {
            return several.iter().flat_map(files).collect();
        }
        match what["pieces"].as_array() {
            Some(pieces) => pieces.iter().filter_map(|at| at["path"].as_str()).collect(),
            None => what["path"].as_str().into_iter().collect(),
        }
    }
    let number = usize::try_from(number).ok()?;
    files(what).get(number).map(|path| (*path).to_owned())
}

impl FailureFolder {
    /// Keeps what an attempt failed at, if user code or its input is to blame; the error then has the task as its detail `retry`.
    pub(in crate::task) fn keep(
        &self,
        store: &Arc<dyn LocalDisk>,
        failed: Option<(FailedAt, ExecutorSpec)>,
        spec: &UserAttemptSpec,
        error: Error,
    ) -> Error {
        let Some((at, executor)) = failed.filter(|_| is_of_user_code(&error)) else {
            return error;
        };
        match self.write(store, spec, &at, &executor) {
            Ok(()) => error.noting(|details| details.retry = Some(spec.task)),
            Err(_) => error, // the failure is what counts
        }
    }

    fn write(
        &self,
        store: &Arc<dyn LocalDisk>,
        spec: &UserAttemptSpec,
        at: &FailedAt,
        executor: &ExecutorSpec,
    ) -> Result<()> {
        let folder = self.begin(&**store, spec.task)?;
        let places = vec![folder.clone()];
        let (runs, whole) = keep_pairs(store, (places, "pairs".into()), spec, at)?;
        let mut spec = spec.clone();
        take_runs(&mut spec, runs.into_iter().map(MergeRun::from).collect());
        self.write_task(&**store, (&folder, &spec), (at, whole), executor)
    }

    /// The folder of a task, empty.
    pub(super) fn begin(&self, store: &dyn LocalDisk, task: u32) -> Result<PathBuf> {
        let folder = self.folder.join(task.to_string());
        store.remove(&folder)?; // of the attempt before
        store.create_private_directory(&folder)?;
        Ok(folder)
    }

    /// Writes how a task is run, and where it failed.
    pub(super) fn write_task(
        &self,
        store: &dyn LocalDisk,
        (folder, spec): (&Path, &UserAttemptSpec),
        (at, whole): (&FailedAt, bool),
        executor: &ExecutorSpec,
    ) -> Result<()> {
        let header = FailureHeader {
            format: FORMAT,
            job_id: &spec.job_id,
            host: &self.host,
            how: &executor.kind,
            spec,
            at,
            whole,
        };
        let mut bytes = serde_json::to_vec(&header)
            .map_err(|error| Error::bug("keep a failed task", error.to_string()))?;
        bytes.push(b'\n');
        bytes.extend(&executor.definition);
        store.create_private(&folder.join(TASK), &bytes)
    }
}

/// Whether user code or its input is to blame.
pub(super) fn is_of_user_code(error: &Error) -> bool {
    matches!(error.kind(), Kind::UserCode | Kind::BadInput | Kind::Memory)
}

/// Writes the pairs that a reduce failed at to runs of this name in one of the folders, and says whether they are all; a map
/// has none.
pub(super) fn keep_pairs(
    store: &Arc<dyn LocalDisk>,
    (folders, name): (Vec<PathBuf>, String),
    spec: &UserAttemptSpec,
    at: &FailedAt,
) -> Result<(Vec<SpilledRun>, bool)> {
    let (UserTaskKind::Reduce { partition, .. }, Some(place)) = (&spec.work, at.place) else {
        return Ok((Vec::new(), true)); // or it has seen none
    };
    let mut feed = feed_of(spec, Arc::clone(store) as _)?;
    let mut plan = spec.collect_plan();
    plan.places = folders;
    let mut pairs = PairCollector::new(Arc::clone(store), plan, name, Default::default())?;
    let (mut first, (last, group_bytes)) = (place.offset, group_of(place.file));
    let (mut group, mut bytes, mut whole) = (Vec::new(), 0, true);
    if at.how == How::Script {
        first = tail_before(feed_of(spec, store.clone())?, last)?;
        whole = first == 0;
    }
    while feed.advance()? {
        let (at, (key, value)) = (feed.seen().0, feed.pair());
        if at < first {
            continue;
        }
        if at == last {
            group.extend_from_slice(key.get(..group_bytes).unwrap_or(key));
        } else if at > last && !is_of_group(key, &group) {
            break;
        }
        bytes += (key.len() + value.len()) as u64;
        if bytes > PAIRS_BYTES_MAX {
            whole = false;
            break;
        }
        pairs.append(*partition, key, b"", value, &|_| Ok(()))?;
    }
    let (kept, _) = pairs.finish(&|_| Ok(()))?;
    Ok((kept, whole))
}

/// The number of the first pair that is kept of those up to `last`, so that their last megabytes are; 0 for all.
fn tail_before(mut feed: MergedPairs, last: u64) -> Result<u64> {
    let mut marks: VecDeque<(u64, u64)> = VecDeque::new(); // pairs, and the bytes up to them, now and then
    let (mut bytes, mut first) = (0, 0);
    while feed.seen().0 < last && feed.advance()? {
        let (key, value) = feed.pair();
        bytes += (key.len() + value.len()) as u64;
        if marks.back().is_none_or(|(_, at)| bytes - at >= MARK_BYTES) {
            marks.push_back((feed.seen().0, bytes));
        }
        while let Some((pair, at)) = marks.front()
            && bytes - at >= PAIRS_BYTES_MAX / 2
        {
            first = pair + 1;
            marks.pop_front();
        }
    }
    Ok(first)
}

/// Has a reduce read these runs.
pub(super) fn take_runs(spec: &mut UserAttemptSpec, kept: Vec<MergeRun>) {
    if let UserTaskKind::Reduce { runs, .. } = &mut spec.work {
        *runs = Arc::new(kept);
    }
}

/// What the pulse of a reduce says of a group in the place of a file: the number of its first pair, and how many bytes
/// at the beginning of a key are the group's, which only the worker knows.
///
/// ```
/// use gristmill_tasks::task::group_mark;
/// assert_eq!(group_mark(7, 3), (3 << 40) | 7);
/// ```
pub fn group_mark(first_pair: u64, group_bytes: usize) -> u64 {
    ((group_bytes as u64).min(u64::MAX >> GROUP_SHIFT) << GROUP_SHIFT) | first_pair
}

fn group_of(mark: u64) -> (u64, usize) {
    let bytes = usize::try_from(mark >> GROUP_SHIFT).unwrap_or(usize::MAX);
    (mark & ((1 << GROUP_SHIFT) - 1), bytes)
}

/// Whether a key, with what orders its values, is of a group: it begins with the group's, unless 255 follows. That
/// belongs to an escaped zero (the encoding of "" begins that of "\0"), and no encoding begins with it.
fn is_of_group(key: &[u8], group: &[u8]) -> bool {
    key.strip_prefix(group)
        .is_some_and(|rest| rest.first() != Some(&u8::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_of_a_split_are_counted_through() {
        let pieces = json!({"pieces": [{"path": "a"}, {"path": "b"}]});
        assert_eq!(file_of(&pieces, 1), Some("b".to_owned()));
        assert_eq!(file_of(&json!({"path": "c"}), 0), Some("c".to_owned()));
        let several = json!({"several": [pieces, {"path": "c"}]});
        assert_eq!(file_of(&several, 2), Some("c".to_owned()));
        assert_eq!(file_of(&several, 3), None);
        assert_eq!(file_of(&json!({"chunks": []}), 0), None);
    }

    #[test]
    fn a_group_is_marked_by_its_first_pair_and_its_bytes() {
        assert_eq!(group_of(group_mark(1 << 39, 12)), (1 << 39, 12));
        assert_eq!(group_of(group_mark(5, 1 << 30)), (5, (1 << 24) - 1));
    }

    #[test]
    fn a_key_is_of_the_group_that_it_begins_with_but_for_an_escaped_zero() {
        assert!(is_of_group(b"\x05a\x00", b"\x05a\x00"));
        assert!(is_of_group(b"\x05a\x00\x01", b"\x05a\x00"));
        assert!(!is_of_group(b"\x05a\x00\xFF\x00", b"\x05a\x00"));
        assert!(!is_of_group(b"\x05b\x00", b"\x05a\x00"));
    }
}
