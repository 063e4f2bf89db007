//! One larger sort on a disk, by every way that the input can come in: mapped, whether it lies in the page cache or
//! not, and read, since it cannot be mapped. The ways must not show in the output.
//!
//! Alone in its program, because the memory that a report tells is that of the whole process.

#![cfg(target_os = "linux")] // elsewhere nothing is known of the page cache, and all input is read
#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test, which fails with a backtrace"
)]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::budget::ProcessOwner;
use gristmill_engine::history;
use gristmill_engine::jobs::JobSpec;
use gristmill_engine::jobs::{self, JobReport, Status, Success};
use gristmill_engine::runner::Control;
use gristmill_engine::storage::faulty::{Fault, FaultPlan, Faulty};
use gristmill_engine::storage::io::probe::resident_share;
use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, LocalDisk, Store};
use serde_json::{Value, json};

const ROWS: u64 = 600_000;
const BYTES: u64 = ROWS * 100;

/// What a process maps beside its input: its program and libraries.
const PROGRAM_BYTES: u64 = 16 << 20;

fn run(store: Arc<dyn LocalDisk>, spec: &Value) -> JobReport {
    let job_id = "job_1".to_owned();
    let environment = jobs::Environment {
        store: Stores::new(store),
        job_id,
        history: history::HistoryConfig::default(),
        work: None,
        interpreter: String::new(),
        process: ProcessOwner::Shared,
        worker: None,
        cluster: None,
    };
    let spec = JobSpec::from_json(&spec.to_string()).unwrap();
    let report = jobs::run(&spec, &environment, &Control::default());
    assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
    report
}

/// The local file system, behind a store that could fail and does not, and that cannot be mapped.
fn unmappable() -> Arc<dyn LocalDisk> {
    let plan = FaultPlan {
        fault: Fault::Code(5),
        from: u64::MAX,
        to: u64::MAX,
    };
    Arc::new(Faulty::new(Local, plan))
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let paths = Local.list(directory).unwrap().into_iter();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths
        .map(|path| (name(&path), std::fs::read(&path).unwrap()))
        .collect()
}

fn parts(directory: &Path) -> Vec<u8> {
    let files = files(directory).into_iter();
    let parts = files.filter(|(name, _)| name.starts_with("part-"));
    parts.flat_map(|(_, bytes)| bytes).collect()
}

/// The naive answer.
struct Expected {
    sorted: Vec<u8>,
    duplicates: u64,
}

impl Expected {
    fn of(data: &[u8]) -> Self {
        let mut records: Vec<&[u8]> = data.chunks_exact(100).collect();
        records.sort_by_key(|record| &record[..10]);
        let equal = |pair: &&[&[u8]]| pair[0][..10] == pair[1][..10];
        Expected {
            duplicates: records.windows(2).filter(equal).count() as u64,
            sorted: records.concat(),
        }
    }
}

/// Brings the parts into the page cache, or out of it; returns the least share of them that is there then.
fn cache(directory: &Path, wanted: bool) -> f64 {
    let mut least = 1.0_f64;
    for path in Local.list(directory).unwrap() {
        if path.ends_with("_SUCCESS") {
            continue;
        }
        let file = File::open(&path).unwrap();
        if wanted {
            std::fs::read(&path).unwrap();
        } else {
            file.sync_all().unwrap();
            // SAFETY: a valid descriptor, and no memory involved.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
        least = least.min(resident_share(file.as_fd(), file.metadata().unwrap().len()));
    }
    least
}

fn tasks(report: &JobReport, stage: &str) -> usize {
    let phase = report.phases.iter().find(|phase| phase.name == stage);
    phase.unwrap().tasks
}

#[test]
fn mapped_or_read_the_output_is_the_same() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let local = || -> Arc<dyn LocalDisk> { Arc::new(Local) };
    let made =
        json!({"rows": ROWS, "output": input, "files": 3, "layout": "gensort", "skew": true});
    let made = run(local(), &json!({"teragen": made}));

    let expected = Expected::of(&parts(&input));
    let mut first: Option<Vec<(String, Vec<u8>)>> = None;
    // Reading comes first: what a process has mapped once can still be counted as resident.
    let ways = [
        (unmappable(), true, 1),
        (unmappable(), true, 3),
        (local(), false, 2),
        (local(), true, 1),
        (local(), true, 3),
    ];
    for (store, cached, workers) in ways {
        let mapped = store
            .open(&input.join("part-m-00000"), Caching::Cached)
            .unwrap()
            .descriptor()
            .is_some();
        let share = cache(&input, cached);
        // A file system in memory keeps what it is told to drop.
        assert!(cached == (share > 0.99) || share == 1.0, "{cached} {share}");
        let options = json!({
            "inputs": [input], "output": output, "partitions": 3, "workers": workers, "memory": "1G",
            "no_sync": workers != 2,
        });
        let report = run(store, &json!({"terasort": options}));
        let limit = if mapped {
            BYTES / 2..2 * BYTES
        } else {
            0..PROGRAM_BYTES
        };
        assert!(
            limit.contains(&report.peak_mapped_bytes),
            "{mapped} {workers}: {}",
            report.peak_mapped_bytes
        );
        assert!(tasks(&report, "map") >= 12 && tasks(&report, "reduce") >= 6);
        assert_eq!((report.records, &report.checksum), (ROWS, &made.checksum));
        assert!(
            parts(&output) == expected.sorted,
            "the output is not the stable sort"
        );
        let success = std::fs::read(output.join("_SUCCESS")).unwrap();
        let success: Success = serde_json::from_slice(&success).unwrap();
        let duplicates = [report.duplicate_keys, success.duplicate_keys];
        assert_eq!(duplicates, [expected.duplicates; 2]);
        assert_eq!((success.bytes, success.checksum), (BYTES, report.checksum));
        let files = files(&output);
        assert!(
            first.is_none_or(|first| first == files),
            "{mapped} {workers}"
        );
        first = Some(files);
        Local.remove(&output).unwrap();
    }
}
