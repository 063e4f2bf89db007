//! What each worker of a copy has: buffers for one file, and more of them for files at the same time; memory for what is read ahead
//! and for parts on their way.

use crate::jobs::steps::RunningJob;
use gristmill_storage::location::Location;
use gristmill_storage::objects::PART_BYTES;
use gristmill_storage::objects::part_uploader::PARTS_AT_ONCE;
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::COPY_WORKER_BYTES;

/// More memory for files at the same time is of no use: 64 files of 1 MiB, with all that is held of each.
const STREAMS_BYTES_MAX: u64 = 256 << 20;

/// Memory of a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyMemory {
    /// Its buffers, and a part where parts are sent: the least.
    pub(super) worker_bytes: u64,
    /// For files beside the first one.
    pub(super) streams_bytes: u64,
    /// For parts on their way.
    pub(super) parts_bytes: u64,
    /// For what is read ahead of far files.
    pub(super) ahead_bytes: u64,
}

impl CopyMemory {
    /// That of a job that copies to `target`.
    pub(super) fn of(job: &RunningJob<'_>, (sources, target): (&[Location], &Location)) -> Self {
        let sends_parts = job.store().sends_parts(target);
        let is_far = target.is_remote() || sources.iter().any(Location::is_remote);
        let worker_bytes = worker_bytes(job.store(), target);
        let beside = job.bytes_beside(worker_bytes, &[]);
        CopyMemory::shared(worker_bytes, beside, (sends_parts, is_far))
    }

    /// Shares what a worker has beside its buffers: half for what is sent and read, and half for more files. The buffers are enough
    /// for short files of a disk.
    fn shared(worker_bytes: u64, beside: u64, (sends_parts, is_far): (bool, bool)) -> Self {
        let parts = (beside / 2 / PART_BYTES).min(PARTS_AT_ONCE);
        let parts_bytes = if sends_parts { parts * PART_BYTES } else { 0 };
        let streams_bytes = match is_far {
            true => ((beside - parts_bytes) / 2).min(STREAMS_BYTES_MAX),
            false => 0,
        };
        CopyMemory {
            worker_bytes,
            streams_bytes,
            parts_bytes,
            ahead_bytes: beside - parts_bytes - streams_bytes,
        }
    }

    /// Bytes of the buffers of all files of a worker.
    pub(super) fn buffers_bytes(&self) -> u64 {
        self.worker_bytes + self.streams_bytes
    }
}

/// Memory that a worker needs: its buffers, and a part where parts are sent.
fn worker_bytes(stores: &Stores, target: &Location) -> u64 {
    match stores.sends_parts(target) {
        true => COPY_WORKER_BYTES + PART_BYTES,
        false => COPY_WORKER_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_shares_out_all_that_it_has_and_no_more() {
        for beside in [0, 1, 1 << 20, 20 << 20, 100 << 20, 1 << 30, 1 << 40] {
            for place in [(true, true), (false, true), (false, false)] {
                let memory = CopyMemory::shared(COPY_WORKER_BYTES, beside, place);
                let all = memory.streams_bytes + memory.parts_bytes + memory.ahead_bytes;
                assert_eq!(all, beside);
                assert!(memory.streams_bytes <= STREAMS_BYTES_MAX);
                assert_eq!(memory.parts_bytes % PART_BYTES, 0);
            }
        }
    }
}
