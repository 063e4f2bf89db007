//! A task on its way to a worker process, and its end on the way back.
//!
//! ```text
//!   task     task: u32 | attempt: u32 | the spec, as a message                  (integers little-endian)
//!   reply    most bytes of the budget that were used at once: u64 | 'R' | the report, as a message
//!                                                                 | 'E' | the error, as a message
//! ```

use crate::error::{Error, Result};
use crate::task::wire::{Receiver, Sender, to_bytes};
use crate::task::{AttemptId, TaskReport, TaskSpec};

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

/// How a task ended, and what its process has used of its budget so far.
pub(super) fn reply_bytes(peak_bytes: u64, outcome: Result<TaskReport>) -> Result<Vec<u8>> {
    let (which, message) = match outcome {
        Ok(report) => (REPORT, to_bytes(&report)?),
        Err(error) => (ERROR, to_bytes(&error)?),
    };
    let mut bytes = peak_bytes.to_le_bytes().to_vec();
    bytes.push(which);
    bytes.extend(message);
    Ok(bytes)
}

/// The same, read.
pub(super) fn reply_of(bytes: &[u8]) -> Result<(u64, Result<TaskReport>)> {
    let wrong = || Error::bug("run a task", "its worker sent what is not a reply");
    let (peak_bytes, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
    let mut receiver = Receiver::default();
    let outcome = match rest.split_first() {
        Some((&REPORT, message)) => Ok(receiver.from_bytes(message)?),
        Some((&ERROR, message)) => Err(receiver.from_bytes(message)?),
        _ => return Err(wrong()),
    };
    Ok((u64::from_le_bytes(*peak_bytes), outcome))
}
