//! Copies on a disk that fails: at every call, and at all calls from one on.

use std::sync::Arc;

use crate::jobs::{Environment, JobReport, JobSpec, run};
use crate::runner::Control;
use gristmill_storage::faulty::{Fault, FaultPlan, Faulty};
use gristmill_storage::memory::Memory;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, LocalDisk as _, OutputStore as _, Store as _};

/// It is copied in three pieces.
static LONG: [u8; 300_000] = long();

static FILES: [(&str, &[u8]); 4] = [
    ("/top/s/a", b"a"),
    ("/top/s/d/b", b"some bytes"),
    ("/top/s/d/_c", b""),
    ("/top/s/d/long", &LONG),
];

const fn long() -> [u8; 300_000] {
    let (mut bytes, mut at) = ([0; 300_000], 0);
    while at < bytes.len() {
        bytes[at] = (at % 251) as u8;
        at += 1;
    }
    bytes
}

fn disk() -> Memory {
    let disk = Memory::with_room_for(1 << 20);
    disk.create_directory("/top".as_ref()).unwrap();
    disk.create_directory("/top/s".as_ref()).unwrap();
    disk.create_directory("/top/s/d".as_ref()).unwrap();
    for (path, bytes) in FILES {
        let file = disk.create(path.as_ref(), 0, Caching::Cached).unwrap();
        file.write_at(bytes, 0).unwrap();
    }
    disk
}

fn copied(disk: &Memory, plan: FaultPlan) -> (JobReport, u64) {
    let faulty = Arc::new(Faulty::new(disk.clone(), plan));
    let environment = Environment {
        store: Stores::new(Arc::clone(&faulty) as _),
        job_id: "job_1".into(),
        history: Default::default(),
        work: None,
        interpreter: String::new(),
        process: Default::default(),
        worker: None,
        cluster: None,
    };
    let job = r#"{"cp": {"inputs": ["/top/s/"], "output": "/top/t", "workers": 1, "memory": "100M", "update": true,
        "split_size": "102400"}}"#;
    let spec = JobSpec::from_json(job).unwrap();
    let report = run(&spec, &environment, &Control::default());
    (report, faulty.calls())
}

fn target(path: &str) -> String {
    path.replacen("/s/", "/t/", 1)
}

#[test]
fn a_file_is_whole_or_not_there_wherever_the_disk_fails() {
    let none = FaultPlan {
        fault: Fault::Code(28),
        from: u64::MAX,
        to: u64::MAX,
    };
    let (report, calls) = copied(&disk(), none);
    assert!(report.error.is_none(), "{:?}", report.error);
    assert!(calls > 20);
    assert_eq!(report.counters.get("COPIED_PIECES"), Some(&3));
    for from in (0..calls).step_by(3) {
        for to in [from + 1, u64::MAX] {
            let (disk, fault) = (disk(), Fault::Code(28));
            let (report, _) = copied(&disk, FaultPlan { fault, from, to });
            for (path, bytes) in FILES {
                let found = disk.bytes_of(target(path).as_ref());
                let is_whole = found.as_deref() == Some(bytes);
                assert!(is_whole || found.is_none(), "{from}: {path} is {found:?}");
                assert!(
                    is_whole || report.error.is_some(),
                    "{from}: {path} is missing"
                );
            }
            // And the next job finds what is to be done, and leaves nothing of ours.
            let (report, _) = copied(&disk, none);
            assert!(report.error.is_none(), "{from}: {:?}", report.error);
            for (path, bytes) in FILES {
                assert_eq!(disk.bytes_of(target(path).as_ref()).as_deref(), Some(bytes));
            }
            for folder in ["/top/t", "/top/t/d"] {
                let names = disk.list(folder.as_ref()).unwrap();
                let ours =
                    |path: &std::path::PathBuf| path.to_string_lossy().contains(".gristmill");
                assert!(!names.iter().any(ours), "{from} to {to}: {names:?}");
            }
        }
    }
}
