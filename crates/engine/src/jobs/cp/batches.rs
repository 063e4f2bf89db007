//! How a round is cut into tasks.

use gristmill_tasks::task::{CopyFilesSpec, CopyItem, CopyRules, CopySource};

/// How long the batches of a round are.
#[derive(Debug, Clone, Copy)]
struct BatchSizes {
    /// Tasks for each worker, where there are files enough.
    of_worker: usize,
    /// Files of a task, where each worker gets as many; and at most.
    files: (usize, usize),
    /// Bytes of a task, at most.
    bytes: u64,
}

/// On a disk: workers end at about the same time.
const NEAR: BatchSizes = BatchSizes {
    of_worker: 8,
    files: (1, 128),
    bytes: ALONE_BYTES,
};

/// Of far places: a task copies its files side by side, and has little to do while it waits for the last ones. So tasks are longer.
const FAR: BatchSizes = BatchSizes {
    of_worker: 3,
    files: (64, 1024),
    bytes: 4 * ALONE_BYTES,
};

/// A longer file has a task of its own, and so has each piece.
const ALONE_BYTES: u64 = 64 << 20;

/// Cuts a round into tasks.
pub(super) fn batches(
    items: Vec<CopyItem>,
    rules: CopyRules,
    workers: usize,
) -> Vec<CopyFilesSpec> {
    let sizes = match items.iter().any(CopyItem::is_far) {
        true => FAR,
        false => NEAR,
    };
    let (least, most) = sizes.files;
    let share = items.len().div_ceil(workers.max(1));
    let each = share.div_ceil(sizes.of_worker).max(least).min(share);
    let each = each.clamp(1, most);
    let (mut tasks, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
    for item in items {
        let more = item.bytes();
        let is_alone = more > ALONE_BYTES || matches!(item.what, CopySource::Piece(_));
        let is_full = batch.len() == each || bytes + more > sizes.bytes || is_alone;
        if !batch.is_empty() && is_full {
            let items = std::mem::take(&mut batch);
            tasks.push(CopyFilesSpec { items, rules });
            bytes = 0;
        }
        bytes += if is_alone { sizes.bytes } else { more };
        batch.push(item);
    }
    if !batch.is_empty() {
        let items = batch;
        tasks.push(CopyFilesSpec { items, rules });
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{LocalDisk as _, OutputStore as _, Stat, Store as _};
    use gristmill_tasks::task::ExistingFile;

    fn stat(bytes: u64) -> Stat {
        let disk = Memory::with_room_for(1 << 10);
        disk.create_directory("/top".as_ref()).unwrap();
        let caching = gristmill_storage::Caching::Cached;
        drop(disk.create("/top/a".as_ref(), 0, caching).unwrap());
        let stat = disk.stat("/top/a".as_ref()).unwrap().unwrap();
        Stat { bytes, ..stat }
    }

    /// The files of each task.
    fn cut(to: &str, lengths: &[u64], workers: usize) -> Vec<usize> {
        let rules = CopyRules {
            existing: ExistingFile::Refuse,
            dry_run: false,
            verify: false,
            mode: false,
            times: false,
            syncs: true,
            ignore_failures: false,
            names_files: false,
            bytes_per_s: None,
            worker_bytes: 1,
            streams_bytes: 0,
        };
        let item = |bytes: &u64| CopyItem {
            from: "/top/a".into(),
            to: to.into(),
            what: CopySource::File(stat(*bytes)),
        };
        let tasks = batches(lengths.iter().map(item).collect(), rules, workers);
        tasks.iter().map(|task| task.items.len()).collect()
    }

    #[test]
    fn short_files_come_together_and_a_long_one_is_alone() {
        const MB: u64 = 1 << 20;
        for (to, lengths, workers, wanted) in [
            ("/t", vec![1; 1000], 2, vec![63; 16]),
            ("s3://b/t", vec![1; 5000], 2, vec![834; 6]),
            ("s3://b/t", vec![1; 100], 2, vec![50; 2]),
            ("s3://b/t", vec![1; 4], 8, vec![1; 4]),
            ("s3://b/t", vec![MB; 200], 2, vec![64; 4]),
            ("s3://b/t", vec![8 * MB; 100], 2, vec![32; 4]),
            ("s3://b/t", vec![1, 65 * MB, 1, 1], 1, vec![1, 1, 2]),
            ("/t", vec![1, 65 * MB, 1], 1, vec![1, 1, 1]),
        ] {
            let tasks = cut(to, &lengths, workers);
            assert_eq!(tasks.len(), wanted.len(), "{to}: {tasks:?}");
            assert_eq!(tasks.iter().sum::<usize>(), lengths.len());
            let longest = wanted.iter().max();
            assert_eq!(tasks.iter().max(), longest, "{to}: {tasks:?}");
        }
    }
}
