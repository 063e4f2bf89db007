//! A task on its way to a worker process, and its end on the way back.
//!
//! ```text
//!   task     task: u32 | attempt: u32 | the spec, as a message                  (integers little-endian)
//!   reply    most bytes of the budget that were used at once: u64
//!            requests to stores since the last reply: sent, again, throttled: u64 each
//!            'R' | the report, as a message
//!            'E' | the error, as a message
//! ```

use gristmill_base::error::{Error, Result};
use gristmill_storage::net::requests::RequestCounts;
use gristmill_tasks::task::wire::{Receiver, Sender, to_bytes};
use gristmill_tasks::task::{AttemptId, TaskReport, TaskSpec};

const REPORT: u8 = b'R';
const ERROR: u8 = b'E';

/// A task for the process at the end of `sender`.
pub(super) fn task_bytes(sender: &mut Sender, id: AttemptId, spec: &TaskSpec) -> Result<Vec<u8>> {
    let mut bytes = id.task.to_le_bytes().to_vec();
    bytes.extend(id.attempt.to_le_bytes());
    bytes.extend(sender.to_bytes(spec)?);
    Ok(bytes)
}

/// Which attempt a task is, and the message of its spec.
pub(super) fn task_of(bytes: &[u8]) -> Option<(AttemptId, &[u8])> {
    let (task, rest) = bytes.split_first_chunk()?;
    let (attempt, spec) = rest.split_first_chunk()?;
    let id = AttemptId {
        task: u32::from_le_bytes(*task),
        attempt: u32::from_le_bytes(*attempt),
    };
    Some((id, spec))
}

/// What a process used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkerUse {
    /// Of its budget so far, at most.
    pub(super) peak_bytes: u64,
    /// Since the last reply.
    pub(super) requests: RequestCounts,
}

/// How a task ended, and what its process has used.
pub(super) fn reply_bytes(used: WorkerUse, outcome: Result<TaskReport>) -> Result<Vec<u8>> {
    let (which, message) = match outcome {
        Ok(report) => (REPORT, to_bytes(&report)?),
        Err(error) => (ERROR, to_bytes(&error)?),
    };
    let RequestCounts {
        sent,
        retried,
        throttled,
    } = used.requests;
    let numbers = [used.peak_bytes, sent, retried, throttled];
    let mut bytes = numbers.map(u64::to_le_bytes).concat();
    bytes.push(which);
    bytes.extend(message);
    Ok(bytes)
}

/// The same, read.
pub(super) fn reply_of(bytes: &[u8]) -> Result<(WorkerUse, Result<TaskReport>)> {
    let wrong = || Error::bug("run a task", "its worker sent what is not a reply");
    let (numbers, rest) = bytes.split_first_chunk::<32>().ok_or_else(wrong)?;
    let mut numbers = numbers.chunks_exact(8).map(|number| {
        let number = number.first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(number)
    });
    let mut number = || numbers.next().unwrap_or_default();
    let used = WorkerUse {
        peak_bytes: number(),
        requests: RequestCounts {
            sent: number(),
            retried: number(),
            throttled: number(),
        },
    };
    let mut receiver = Receiver::default();
    let outcome = match rest.split_first() {
        Some((&REPORT, message)) => Ok(receiver.from_bytes(message)?),
        Some((&ERROR, message)) => Err(receiver.from_bytes(message)?),
        _ => return Err(wrong()),
    };
    Ok((used, outcome))
}
