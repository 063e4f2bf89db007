//! What scripts failed at, again and alone: `gristmill retry JOB`, for a task that was kept (`task/user/failed.rs`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::Deserialize;

use super::StreamingExecutor;
use crate::task::attempt::{AttemptId, TaskAttempt};
use crate::task::user::executor::UserTaskExecutor;
use crate::task::user::executor_spec::ExecutorKind;
use crate::task::user::spec::{UserAttemptSpec, UserTaskReport};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::stores::Stores;

/// What is needed of a kept task's first line.
#[derive(Deserialize)]
struct KeptTask {
    how: ExecutorKind,
    spec: UserAttemptSpec,
}

/// Runs a kept task again: its scripts get what they failed at, and nothing is left out. Files go to `folder`, which
/// exists; it ends soon after `stop` is set.
///
/// # Errors
/// It fails again; or the file cannot be read, or others may have written it.
///
/// ```
/// use gristmill_storage::{local::Local, stores::Stores};
/// use gristmill_tasks::task::streaming::retry;
/// use std::sync::Arc;
/// let error = retry("/no/such/task".as_ref(), "/tmp".as_ref(), &Stores::new(Arc::new(Local)), Arc::default()).unwrap_err();
/// assert!(error.to_string().contains("/no/such"));
/// ```
pub fn retry(
    task: &Path,
    folder: &Path,
    stores: &Arc<Stores>,
    stop: Arc<AtomicBool>,
) -> Result<UserTaskReport> {
    let damaged = |what: &str| Error::new(Kind::BadInput, "retry the task", what).with_path(task);
    let mut line = stores.disk().read_private(task)?;
    let end = line.iter().position(|byte| *byte == b'\n');
    let definition = line.split_off(end.ok_or_else(|| damaged("it is cut short"))? + 1);
    let kept: KeptTask =
        serde_json::from_slice(&line).map_err(|error| damaged(&error.to_string()))?;
    let ExecutorKind::Scripts { environment } = kept.how else {
        return Err(damaged("it has no scripts"));
    };
    let definition = String::from_utf8(definition).map_err(|error| damaged(&error.to_string()))?;
    let mut work = StreamingExecutor::new(&definition, Arc::clone(stores))?.inheriting(environment);
    work.definition.skipping = None;
    work.definition.rerun_command.clear();
    let (runs, output) = (folder.join("runs"), folder.join("out"));
    stores.disk().create_directory(&runs)?;
    let spec = UserAttemptSpec {
        places: vec![runs],
        output,
        ..kept.spec
    };
    let (task, attempt) = (spec.task, spec.attempt);
    let attempt = TaskAttempt {
        id: AttemptId { task, attempt },
        stop,
        done_bytes: &AtomicU64::new(0),
        own_bytes: AtomicU64::new(0),
    };
    work.run(&spec, &attempt)
}
