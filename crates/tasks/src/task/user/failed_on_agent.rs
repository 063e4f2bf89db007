//! What user code failed at on a node of a cluster, and how it comes to where a job on one machine would have kept it
//! (`failed.rs`).
//!
//! ```text
//!   agent    an attempt fails ──▶ its error says where; the pairs of a reduce are beside the agent's runs: run-failed-5-1-0000
//!   driver   the job fails    ──▶ <home>/jobs/<job>/failed/5/task   spec, code and environment: the driver's own
//!                                                          /run…    read from the agent, as every run is
//! ```
//!
//! `gristmill retry` loads code from what is kept. So the rule that must hold: no code, no path to write to and no name of a
//! file to read comes from an agent, and not more bytes than a limit.
//!
//! Decision: docs/decisions/failed-records.md.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::executor_spec::ExecutorSpec;
use super::failed::{
    FailedAt, FailureFolder, PAIRS_BYTES_MAX, is_of_user_code, keep_pairs, take_runs,
};
use super::spec::UserAttemptSpec;
use crate::task::runs::{AgentFolders, MergeRun};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::run_name::RunName;
use gristmill_storage::{Caching, LocalDisk, Store};

/// Bytes of runs that are taken from an agent at most: the shortest pairs are stored with several bytes more each.
const TAKEN_BYTES_MAX: u64 = 16 * PAIRS_BYTES_MAX;

/// Bytes that are asked for at once.
const PIECE_BYTES: usize = 4 << 20;

/// What an agent has kept of an attempt.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct FailureOnAgent {
    at: FailedAt,
    /// Whether all pairs of a reduce are there that it had failed at.
    whole: bool,
    runs: Vec<MergeRun>,
}

/// Keeps on an agent what only an agent has, as [`FailureFolder`] keeps all of it; the error then says what the driver needs.
pub(in crate::task) fn keep_on_agent(
    (store, places): (&Arc<dyn LocalDisk>, &AgentFolders),
    at: Option<FailedAt>,
    spec: &UserAttemptSpec,
    error: Error,
) -> Error {
    let Some(at) = at.filter(|_| is_of_user_code(&error)) else {
        return error;
    };
    match on_agent(store, places, spec, at) {
        Ok(kept) => error.noting(|details| details.on_agent = Some(kept)),
        Err(_) => error, // the failure is what counts
    }
}

/// Keeps it in the place of what was kept of the task before.
fn on_agent(
    store: &Arc<dyn LocalDisk>,
    places: &AgentFolders,
    spec: &UserAttemptSpec,
    at: FailedAt,
) -> Result<String> {
    let of_task = format!("failed-{}-", spec.task);
    for folder in &places.runs {
        remove_runs(&**store, folder, &format!("run-{of_task}"))?;
    }
    let name = format!("{of_task}{}", spec.attempt);
    let (mut runs, whole) = keep_pairs(store, (places.runs.clone(), name), spec, &at)?;
    runs.iter_mut().for_each(|run| places.name(run));
    let runs = runs.into_iter().map(MergeRun::from).collect();
    serde_json::to_string(&FailureOnAgent { at, whole, runs })
        .map_err(|error| Error::bug("keep a failed task", error.to_string()))
}

fn remove_runs(store: &dyn LocalDisk, folder: &Path, beginning: &str) -> Result<()> {
    let files = store.list(folder)?.into_iter();
    let is_one = |file: &Path| {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(beginning))
    };
    files
        .filter(|file| is_one(file))
        .try_for_each(|file| store.remove(&file))
}

impl FailureFolder {
    /// Keeps an attempt of which an agent has `kept` this; `agents` reads the runs of the agent.
    pub(in crate::task) fn take(
        &self,
        (store, agents): (&dyn LocalDisk, &dyn Store),
        mut spec: UserAttemptSpec,
        executor: &ExecutorSpec,
        kept: &str,
    ) -> Result<()> {
        let FailureOnAgent { at, whole, runs } =
            serde_json::from_str(kept).map_err(|error| refused(&error.to_string()))?;
        let folder = self.begin(store, spec.task)?;
        let (mut taken, mut left) = (Vec::new(), TAKEN_BYTES_MAX);
        for (number, run) in runs.iter().enumerate() {
            let path = folder.join(format!("run-pairs-{number:04}"));
            left = take_run((agents, run), (store, &path), left)?;
            let longest = run.longest;
            taken.push(MergeRun { path, longest });
        }
        take_runs(&mut spec, taken);
        self.write_task(store, (&folder, &spec), (&at, whole), executor)
    }
}

/// Copies a run of an agent, of `most` bytes; gives how many of them are left.
fn take_run(
    (agents, run): (&dyn Store, &MergeRun),
    (store, path): (&dyn LocalDisk, &Path),
    most: u64,
) -> Result<u64> {
    if RunName::of(&run.path).is_none() {
        return Err(refused("the file that it names is not a run"));
    }
    let bytes = agents.stat(&run.path)?.map_or(0, |found| found.bytes);
    let left = most.checked_sub(bytes);
    let left = left.ok_or_else(|| refused("the pairs are too many"))?;
    let (from, to) = (
        agents.open(&run.path, Caching::Cached)?,
        store.create(path, bytes, Caching::Cached)?,
    );
    let (mut piece, mut at) = (vec![0; PIECE_BYTES.min(bytes as usize)], 0);
    while at < bytes {
        let read = from.read_at(&mut piece, at)?;
        let data = piece.get(..read).unwrap_or_default();
        if data.is_empty() {
            return Err(refused("the pairs end too soon"));
        }
        to.write_at(data, at)?;
        at += read as u64;
    }
    to.finish()?;
    Ok(left)
}

fn refused(why: &str) -> Error {
    Error::new(Kind::Io, "keep a failed task", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::user::executor_spec::ExecutorKind;
    use gristmill_storage::memory::Memory;

    /// A reduce, and what an agent says of it.
    fn take(kept: &str, store: &Memory) -> Result<()> {
        let spec = serde_json::from_str(
            r#"{"job_id": "a-job", "task": 5, "attempt": 1, "partitions": 1, "places": [], "chunk_bytes": 0,
                "buffer_bytes": 0, "output": "/out", "work": {"reduce": {"partition": 0, "runs": [], "source_bytes": 4096}}}"#,
        );
        let failures = FailureFolder {
            folder: "/failed".into(),
            host: String::new(),
        };
        let executor = ExecutorSpec {
            kind: ExecutorKind::Native,
            definition: b"code".to_vec(),
        };
        failures.take((store, store), spec.expect("a spec"), &executor, kept)
    }

    fn kept(run: &str) -> String {
        format!(
            r#"{{"at": {{"how": "raised", "exact": null, "file": null, "place": null, "timeout_s": null, "memory_bytes": null}},
                "whole": true, "runs": [{{"path": "{run}", "longest": 9}}]}}"#
        )
    }

    #[test]
    fn an_agent_names_only_runs() {
        let store = Memory::with_room_for(1 << 20);
        for path in [
            "/etc/secret",
            "/agent:0/0/run-1",
            "agent:0/0/../../etc/secret",
            "",
        ] {
            let said = take(&kept(path), &store).unwrap_err().to_string();
            assert!(said.contains("not a run"), "{path}: {said}");
        }
        let said = take(r#"{"at": {"how": "guessed"}}"#, &store)
            .unwrap_err()
            .to_string();
        assert!(said.contains("guessed"), "{said}");
    }
}
