//! Overwriting: the old output stays, byte for byte, until the new one is there, whatever fails in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_engine::jobs::Status;
use gristmill_engine::runner::Control;
use gristmill_engine::storage::Store;
use gristmill_engine::storage::faulty::{Fault, FaultPlan, Faulty};
use gristmill_engine::storage::memory::Memory;
use serde_json::{Value, json};

use super::support::{Place, Tree, for_each_number, outside_job_folders};
use super::watched::{Call, Watch, Watched};

const EIO: Fault = Fault::Code(5);
const FULL: Fault = Fault::Code(28);
const NO_FAULT: FaultPlan = FaultPlan {
    fault: EIO,
    from: u64::MAX,
    to: u64::MAX,
};

fn overwrite() -> Value {
    let options = json!({"inputs": ["in"], "output": "out", "partitions": 2, "workers": 2, "overwrite": true});
    json!({"terasort": options})
}

/// An input, and an output of another job with more parts than the new one will have.
fn with_old_output(place: Place) -> Place {
    let teragen = |mut options: Value| {
        options["no_sync"] = json!(true); // hundreds of these would wait for the disk
        place.succeed(&json!({"teragen": options}));
    };
    teragen(json!({"rows": 300, "output": "in", "files": 3}));
    teragen(json!({"rows": 40, "output": "out", "files": 5, "layout": "ascii"}));
    place
}

/// The status of the job, how many calls it made, and the store before and after it.
fn run(place: &Place, plan: FaultPlan) -> (Status, u64, Tree, Tree) {
    let before = place.tree();
    let watch = Watch::new();
    let store = Watched::over(place.faulty(plan), &watch);
    let report = place.run_on(store, &overwrite(), &Control::default());
    (
        report.status,
        watch.calls().len() as u64,
        before,
        place.tree(),
    )
}

fn names(tree: &Tree) -> Vec<String> {
    tree.keys().map(|path| path.display().to_string()).collect()
}

/// The bytes of the old output's parts, wherever they are.
fn old_parts(tree: &Tree) -> Vec<&[u8]> {
    let parts = tree.iter().filter(|(path, _)| !path.starts_with("in"));
    let parts = parts.filter(|(path, _)| path.to_string_lossy().contains("/part-m-"));
    parts.filter_map(|(_, bytes)| bytes.as_deref()).collect()
}

/// Memory cannot exchange two names, the local file system can: both ways of publication are gone.
fn old_or_new_after_every_fault(place: fn() -> Place) {
    let (status, calls, _, new) = run(&with_old_output(place()), NO_FAULT);
    assert_eq!(status, Status::Succeeded);
    let (kept, replaced) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each_number(3 * calls, |number| {
        let (from, fault, to) = match (number / 3, number % 3) {
            (call, 0) => (call, EIO, call + 1),
            (call, 1) => (call, FULL, call + 1),
            (call, _) => (call, EIO, u64::MAX),
        };
        let (status, _, before, after) =
            run(&with_old_output(place()), FaultPlan { fault, from, to });
        if after == before {
            assert_ne!(status, Status::Succeeded);
            kept.fetch_add(1, Ordering::Relaxed);
        } else if outside_job_folders(&after) == new {
            // The new one has its name, and may not be durable: a failed job leaves the old one in its folder.
            let kept = status != Status::Succeeded && old_parts(&after) == old_parts(&before);
            assert!(after == new || kept, "{fault:?} {from}..{to}");
            replaced.fetch_add(1, Ordering::Relaxed);
        } else {
            // The old output was moved aside, and cannot be moved back: it stays in the job folder.
            let (names, for_good) = (names(&after), to == u64::MAX);
            let aside = for_good && old_parts(&after) == old_parts(&before);
            assert!(
                aside && !names.contains(&"out".to_owned()),
                "{fault:?} {from}..{to}: {names:?}"
            );
        }
    });
    let (kept, replaced) = (kept.into_inner(), replaced.into_inner());
    assert!(kept > calls && replaced > calls / 4, "{kept} {replaced}");
}

#[test]
fn without_exchange_the_output_is_old_or_new() {
    old_or_new_after_every_fault(Place::memory);
}

#[test]
fn with_exchange_the_output_is_old_or_new() {
    old_or_new_after_every_fault(Place::local);
}

/// Renaming fails from some moment on: the old output, moved aside, is the only one there is.
#[test]
fn an_old_output_that_cannot_be_moved_back_is_not_removed() {
    let (_, calls, before, _) = run(&with_old_output(Place::memory()), NO_FAULT);
    for from in calls - 6..calls {
        let plan = FaultPlan {
            fault: EIO,
            from,
            to: u64::MAX,
        };
        let (status, _, _, after) = run(&with_old_output(Place::memory()), plan);
        assert_eq!(status, Status::Failed);
        let new = after.keys().any(|path| path.ends_with("out/part-r-00000"));
        let names = names(&after);
        assert!(
            new || old_parts(&after) == old_parts(&before),
            "from call {from} on: {names:?}"
        );
    }
}

/// Where nothing can be made beside the output (here: its parent is another device) parts are renamed one by one.
/// A fault then leaves the old output, the new one, or none.
#[test]
fn part_by_part_the_output_is_old_or_new_or_none() {
    let prepare = || {
        let memory = Memory::with_room_for(1 << 20);
        // "/mount" is not in the store, so that "/mount/out" counts as a mount point.
        let place = Place::Memory(memory.clone());
        place.succeed(&json!({"teragen": {"rows": 300, "output": "/mount/in", "files": 3}}));
        let old =
            json!({"teragen": {"rows": 40, "output": "/mount/out", "files": 5, "layout": "ascii"}});
        place.succeed(&old);
        memory
    };
    let tree = |memory: &Memory| -> Tree {
        let paths = memory.paths().into_iter();
        paths
            .map(|path| (path.clone(), memory.bytes_of(&path)))
            .collect()
    };
    let spec = json!({"terasort": {
        "inputs": ["/mount/in"], "output": "/mount/out", "partitions": 2, "workers": 2, "overwrite": true,
    }});
    let run = |plan| {
        let memory = prepare();
        let place = Place::Memory(memory.clone());
        let watch = Watch::new();
        let store = Watched::over(Arc::new(Faulty::new(memory.clone(), plan)), &watch);
        let report = place.run_on(store, &spec, &Control::default());
        (report.status, watch, memory)
    };
    let (status, watch, good) = run(NO_FAULT);
    assert_eq!(status, Status::Succeeded);
    let (old, new) = (tree(&prepare()), tree(&good));
    let calls = watch.calls();
    let last = calls
        .iter()
        .rfind(|call| call.operation == "rename")
        .unwrap();
    assert!(
        last.path.ends_with("out/_SUCCESS"),
        "a kill could leave parts that look whole"
    );
    for_each_number(watch.calls().len() as u64, |call| {
        let plan = FaultPlan {
            fault: EIO,
            from: call,
            to: call + 1,
        };
        let (status, watch, memory) = run(plan);
        let (after, failed) = (tree(&memory), watch.failed());
        let left = memory.list("/mount/out".as_ref()).unwrap();
        if status == Status::Succeeded {
            assert!(after == new);
        } else {
            let is_new = after == new
                || outside_job_folders(&after) == new && old_parts(&after) == old_parts(&old);
            let whole = after == old || is_new;
            assert!(
                whole || left.is_empty(),
                "partial after {failed:?}: {left:?}"
            );
        }
    });
}

/// Parts, proof and their names are durable before the output gets its name, and that name is before the job ends.
#[test]
fn what_has_its_name_is_durable() {
    for (no_sync, staged) in [(false, true), (true, false)] {
        let place = with_old_output(Place::local());
        let watch = Watch::new();
        let mut spec = overwrite();
        spec["terasort"]["no_sync"] = json!(no_sync);
        let store = Watched::over(place.store(), &watch);
        place.run_on(store, &spec, &Control::default());
        let calls = watch.calls();
        let named = calls.iter().position(|call| call.operation == "exchange");
        let (before, after) = calls.split_at(named.unwrap());
        let synced = |calls: &[Call]| -> Vec<String> {
            let syncs = calls
                .iter()
                .filter(|call| call.operation.starts_with("sync"));
            let name = |call: &Call| {
                call.path
                    .strip_prefix(place.root())
                    .unwrap()
                    .display()
                    .to_string()
            };
            syncs.map(name).collect()
        };
        let output = ".out.gristmill-job_1/output";
        let files =
            ["part-r-00000", "part-r-00001", "_SUCCESS"].map(|name| format!("{output}/{name}"));
        let mut want = [files.as_slice(), &[output.to_owned()]].concat();
        want.retain(|_| staged);
        assert_eq!(synced(before), want);
        assert_eq!(synced(after), vec![String::new(); usize::from(staged)]);
        // What is written after the last sync of a file is not durable.
        let last_write = before
            .iter()
            .rposition(|call| call.operation == "write")
            .unwrap();
        let last_sync = before.iter().rposition(|call| call.operation == "sync");
        assert!(!staged || last_sync.unwrap() > last_write);
    }
}
