//! Outputs on a disk that several machines share: each task writes a staged file, the committer renames those that count.
//!
//! The bytes are those of a job on a disk of one machine. However a job ends, its output is whole or as it was before, and
//! nothing that was staged is left: neither beside the output nor in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_engine::commit::{Committer, OutputManifest, Ownership, UploadCommitter};
use gristmill_engine::jobs::{JobReport, Status};
use gristmill_engine::runner::Control;
use gristmill_engine::storage::faulty::{Fault, FaultPlan, Faulty};
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::shared::{SharedDisk, SharedOutputs};
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, LocalDisk, OutputStore, Publisher, Store};
use serde_json::{Value, json};

use super::resume::die_at_any_call;
use super::support::{Place, Tree, for_each_number, least_memory};
use super::watched::{Watch, Watched};

const DURABLE: SharedOutputs = SharedOutputs::seen_by_all(true);
const LAZY: SharedOutputs = SharedOutputs::seen_by_all(false);

/// A small job, of which every call is tried.
fn terasort(more: &Value) -> Value {
    let mut options = json!({
        "inputs": ["in"], "output": "out", "partitions": 2, "workers": 2, "spill_dir": ["spill"],
    });
    let given = more.as_object().unwrap().clone();
    options.as_object_mut().unwrap().extend(given);
    json!({ "terasort": options })
}

fn desk() -> Place {
    let place = Place::memory();
    place.make_directory("spill");
    place.succeed(&json!({"teragen": {"rows": 300, "output": "in", "files": 3}}));
    place
}

/// The same with an output that is to be replaced, of which some names stay.
fn with_old_output() -> Place {
    let place = desk();
    let old = json!({"partitions": 3, "inputs": ["other"]});
    place.succeed(&json!({"teragen": {"rows": 40, "output": "other", "files": 2}}));
    place.succeed(&terasort(&old));
    place
}

fn run(
    place: &Place,
    disk: Arc<dyn LocalDisk>,
    spec: &Value,
    outputs: SharedOutputs,
    control: &Control,
) -> JobReport {
    let stores = Stores::new(disk).with_shared_outputs(Some(outputs));
    place.run_with(stores, spec, control)
}

/// Everything but the proof, which says when.
fn without_proof(mut tree: Tree) -> Tree {
    tree.remove(Path::new("out/_SUCCESS"));
    tree
}

fn names(tree: &Tree) -> Vec<&Path> {
    tree.keys().map(PathBuf::as_path).collect()
}

/// Fails if the output is neither what it was before nor what the job makes, or if there is anything beside it.
fn check(what: &str, report: &JobReport, before: &Tree, after: Tree, good: &Tree) {
    let has_proof = after.contains_key(Path::new("out/_SUCCESS"));
    if report.status == Status::Succeeded {
        assert!(has_proof, "{what}");
        let after = without_proof(after);
        assert_eq!(names(&after), names(good), "{what}");
        assert!(after == *good, "{what}: other bytes");
        return;
    }
    if names(&after) != names(before) {
        // An error after the output was put in its place; or before, and the committer could not clear away.
        assert!(has_proof, "{what}: {:?} {:?}", names(&after), report.error);
        assert!(without_proof(after) == *good, "{what}: other bytes");
        return;
    }
    assert!(after == *before || without_proof(after) == *good, "{what}");
}

#[test]
fn the_bytes_are_those_of_a_job_on_one_machine() {
    let least = least_memory(2, 100).to_string();
    for (rows, spec) in [
        (300, terasort(&json!({}))),
        (60_000, terasort(&json!({"memory": least}))),
        (
            60_000,
            terasort(&json!({"memory": least, "no_sync": true, "partitions": 5})),
        ),
        (
            300,
            json!({"teragen": {"rows": 500, "output": "out", "files": 3}}),
        ),
        (
            5000,
            json!({"sort": {"inputs": ["in"], "output": "out", "format": "fixed:100:10", "spill_dir": ["spill"]}}),
        ),
        (
            5000,
            json!({"wordcount": {"inputs": ["in"], "output": "out", "parts": 2, "spill_dir": ["spill"]}}),
        ),
    ] {
        let made = |shared: Option<SharedOutputs>| {
            let place = Place::local();
            place.make_directory("spill");
            place.succeed(&json!({"teragen": {"rows": rows, "output": "in", "files": 3}}));
            let stores = Stores::new(place.store()).with_shared_outputs(shared);
            let report = place.run_with(stores, &spec, &Control::default());
            assert_eq!(
                report.status,
                Status::Succeeded,
                "{spec} {:?}",
                report.error
            );
            without_proof(place.tree())
        };
        let wanted = made(None);
        assert!(wanted.keys().any(|path| path.starts_with("out")));
        for outputs in [DURABLE, LAZY] {
            let found = made(Some(outputs));
            assert_eq!(names(&found), names(&wanted), "{spec}");
            assert!(found == wanted, "{spec}: other bytes");
        }
    }
}

/// The calls of a job that nobody disturbs, and what it makes.
fn run_well(prepare: fn() -> Place, spec: &Value) -> (u64, Tree) {
    let place = prepare();
    let never = FaultPlan {
        fault: Fault::Code(5),
        from: u64::MAX,
        to: u64::MAX,
    };
    let Place::Memory(memory) = &place else {
        unreachable!()
    };
    let disk = Arc::new(Faulty::new(memory.clone(), never));
    let report = run(&place, disk.clone(), spec, DURABLE, &Control::default());
    assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
    (disk.calls(), without_proof(place.tree()))
}

fn scenarios() -> [(fn() -> Place, Value); 2] {
    [
        (desk, terasort(&json!({}))),
        (with_old_output, terasort(&json!({"overwrite": true}))),
    ]
}

#[test]
fn a_call_that_fails_leaves_nothing_staged() {
    for (prepare, spec) in scenarios() {
        let (calls, good) = run_well(prepare, &spec);
        let failed = AtomicU64::new(0);
        for_each_number(calls * 2, |number| {
            let (from, fault) = (
                number / 2,
                [Fault::Code(5), Fault::Code(28)][number as usize % 2],
            );
            let place = prepare();
            let before = place.tree();
            let plan = FaultPlan {
                fault,
                from,
                to: from + 1,
            };
            let report = run(
                &place,
                place.faulty(plan),
                &spec,
                DURABLE,
                &Control::default(),
            );
            let what = format!("{spec} {fault:?} at {from} of {calls}");
            check(&what, &report, &before, place.tree(), &good);
            failed.fetch_add(
                u64::from(report.status == Status::Failed),
                Ordering::Relaxed,
            );
        });
        assert!(failed.into_inner() > calls / 4);
    }
}

#[test]
fn a_job_that_is_cancelled_leaves_nothing_staged() {
    for (prepare, spec) in scenarios() {
        let (calls, good) = run_well(prepare, &spec);
        let cancelled = AtomicU64::new(0);
        for_each_number(calls, |call| {
            let (place, control) = (prepare(), Arc::new(Control::default()));
            let watch = Watch::cancelling(&control, call);
            let before = place.tree();
            let disk = Watched::over(place.store(), &watch);
            let report = run(&place, disk, &spec, DURABLE, &control);
            let what = format!("{spec} cancelled at {call} of {calls}");
            assert_ne!(report.status, Status::Failed, "{what}: {:?}", report.error);
            check(&what, &report, &before, place.tree(), &good);
            cancelled.fetch_add(
                u64::from(report.status == Status::Cancelled),
                Ordering::Relaxed,
            );
        });
        assert!(cancelled.into_inner() > calls / 4);
    }
}

#[test]
fn a_job_that_dies_at_any_call_is_resumed() {
    let least = least_memory(2, 100);
    let spec = |memory: u64, more: Value| {
        let mut spec = json!({
            "inputs": ["@/in"], "output": "@/out", "workers": 2, "memory": memory.to_string(), "partitions": 3,
            "spill_dir": ["@/spill"],
        });
        let options = spec.as_object_mut().unwrap();
        options.extend(more.as_object().unwrap().clone());
        json!({ "terasort": spec })
    };
    let specs = [
        spec(1_000_000_000, json!({})),
        spec(least, json!({"no_sync": true})),
        json!({"sort": {"inputs": ["@/in"], "output": "@/out", "format": "fixed:100:10", "spill_dir": ["@/spill"]}}),
    ];
    assert!(die_at_any_call(&specs, Some(&DURABLE)) > 20);
}

fn place_of(memory: &Place) -> SharedDisk {
    SharedDisk::new(memory.store(), DURABLE)
}

/// Writes a file and closes it.
fn stage(
    place: &SharedDisk,
    path: &Path,
    bytes: &[u8],
) -> gristmill_engine::storage::objects::Upload {
    let file = place.create(path, 0, Caching::Cached).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.finish().unwrap().unwrap()
}

/// A folder that was made for staged files is not there: neither with files of records that were left out.
#[test]
fn what_is_only_staged_is_not_there() {
    let desk = Place::memory();
    let (place, out) = (place_of(&desk), desk.path("out"));
    let parts = [out.join("part-0"), out.join("_logs/skip/attempt")];
    let uploads = parts.each_ref().map(|path| stage(&place, path, b"abc"));
    for path in [
        &out,
        &out.join("_logs"),
        &out.join("_logs/skip"),
        &parts[0],
        &parts[1],
    ] {
        assert_eq!(place.stat(path).unwrap(), None, "{}", path.display());
    }
    assert_eq!(place.list(&out).unwrap(), Vec::<std::path::PathBuf>::new());
    let mut listed = 0;
    place
        .list_each(&out, &mut |_| {
            listed += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(listed, 0);
    let mut found = place.uploads(&out).unwrap();
    found.sort();
    assert_eq!(found.len(), 2);
    for upload in &uploads {
        place.complete(upload).unwrap();
    }
    assert!(place.stat(&out).unwrap().is_some());
    place.clear(&out).unwrap();
    assert_eq!(
        desk.tree()
            .into_keys()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>(),
        [
            "out",
            "out/_logs",
            "out/_logs/skip",
            "out/_logs/skip/attempt",
            "out/part-0"
        ]
    );
    for upload in &uploads {
        place.complete(upload).unwrap(); // by a job that was resumed
    }
}

/// An old output without `_SUCCESS` is replaced file by file: what is staged in a folder of it does not go with the old files.
#[test]
fn files_staged_in_an_old_folder_are_not_removed_with_it() {
    for has_old_folder in [true, false] {
        let desk = Place::memory();
        desk.make_directory("spill");
        desk.make_directory("out");
        desk.put("out/part-9", b"old");
        if has_old_folder {
            desk.make_directory("out/_logs");
            desk.make_directory("out/_logs/skip");
            desk.put("out/_logs/skip/old", b"old");
        }
        let stores = Stores::new(desk.store()).with_shared_outputs(Some(DURABLE));
        let target = Location::from(desk.path("out"));
        let spill = [desk.path("spill")];
        let owner = Ownership::of_new_job("job_1");
        let committer = UploadCommitter::begin(&stores, (&target, false), &spill, &owner, true);
        let committer = committer.unwrap();
        let place = place_of(&desk);
        let names = ["part-0", "_logs/skip/new"].map(PathBuf::from);
        let uploads = names
            .each_ref()
            .map(|name| stage(&place, committer.path_of(name).as_typed(), b"new"));
        let made = OutputManifest {
            names: &names,
            uploads: &uploads,
            success: b"{}",
        };
        Box::new(committer).publish(&made).unwrap();
        let found = desk.tree();
        let files: Vec<&Path> = found
            .iter()
            .filter_map(|(path, bytes)| bytes.as_ref().map(|_| path.as_path()))
            .collect();
        let wanted = ["out/_SUCCESS", "out/_logs/skip/new", "out/part-0"].map(Path::new);
        assert_eq!(files, wanted);
        assert_eq!(desk.read("out/_logs/skip/new"), b"new");
        assert!(!has_staging(&found));
    }
}

fn has_staging(tree: &Tree) -> bool {
    let is_staging = |path: &PathBuf| path.to_string_lossy().contains("gristmill");
    tree.keys().any(is_staging)
}

/// Its length proves no file: what is there of an old output may be as long.
#[test]
fn an_old_file_of_the_same_length_is_not_taken_for_the_new_one() {
    let desk = Place::memory();
    desk.make_directory("out");
    desk.put("out/part-0", b"old");
    let place = place_of(&desk);
    let upload = stage(&place, &desk.path("out/part-0"), b"new");
    assert!(place.verify_bytes(&upload).unwrap());
    place.abort(upload.path.as_typed(), &upload.id).unwrap();
    assert!(!place.verify_bytes(&upload).unwrap());
    place.complete(&upload).unwrap_err();
    assert_eq!(desk.read("out/part-0"), b"old");
}

/// A file that an attempt gives up is closed before it is removed: on a mount, an open one leaves another in its place.
#[test]
fn a_file_that_is_given_up_goes_with_its_folder() {
    let desk = Place::local();
    let (place, out) = (place_of(&desk), desk.path("out"));
    let file = place
        .create(&out.join("part-0"), 0, Caching::Cached)
        .unwrap();
    file.write_at(b"abc", 0).unwrap();
    drop(file);
    assert_eq!(place.uploads(&out).unwrap(), []);
    place.clear(&out).unwrap();
    assert!(desk.tree().is_empty());
}
