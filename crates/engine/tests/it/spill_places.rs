//! Where runs go: directories in order, full ones, ones that vanish, and what dead jobs left in them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_engine::Kind;
use gristmill_engine::jobs::{JobReport, Status};
use gristmill_engine::runner::Control;
use gristmill_engine::storage::layered::Layered;
use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::run_name::MEMORY_PLACE;
use gristmill_engine::storage::{LocalDisk, Locked, MissingLock};
use serde_json::{Value, json};

use super::oracle::Shape;
use super::spill_case::{Case, Wanted, files_of};
use super::support::{Place, for_each_number};
use super::watched::{Watch, Watched};

/// Five workers make a run each of some 100 kB, and there is a pass.
const WORKERS: usize = 5;

/// What each of the runs takes on a store, about.
const RUN_BYTES: u64 = 115_000;

fn case() -> Case {
    Case::terasort(files_of(Shape::Random, &[3_000, 2_000], 3), 2)
}

fn place_of(case: &Case) -> Place {
    let place = case.place(Place::local());
    place.make_directory("spill");
    place
}

fn spilling_to(case: &Case, directories: &Value) -> Value {
    let mut spec = case.spilling(WORKERS);
    spec["terasort"]["spill_dir"] = directories.clone();
    spec
}

/// The place's store, with a directory that has room for so many bytes.
fn with_room_for(place: &Place, bytes: u64) -> Arc<dyn LocalDisk> {
    let store = Layered::new(place.store(), bytes);
    store.create_directory(Path::new(MEMORY_PLACE)).unwrap();
    Arc::new(store)
}

fn run(place: &Place, store: &Arc<dyn LocalDisk>, spec: &Value) -> (JobReport, [usize; 2]) {
    let watch = Watch::new();
    let watched = Watched::over(Arc::clone(store), &watch);
    let report = place.run_on(watched, spec, &Control::default());
    let calls = watch.calls();
    let created = calls
        .iter()
        .filter(|call| call.creates_run() && !call.failed);
    let (first, second): (Vec<_>, Vec<_>) =
        created.partition(|call| call.path.starts_with(MEMORY_PLACE));
    (report, [first.len(), second.len()])
}

#[test]
fn runs_go_to_the_first_directory_that_has_room() {
    let (case, place) = (case(), place_of(&case()));
    let spec = spilling_to(&case, &json!([MEMORY_PLACE, "spill"]));
    let before = place.tree();
    // Seven runs: those of the workers, and two of the pass.
    for (room, in_first) in [
        (0, 0..=0),
        (80_000, 0..=0),
        (3 * RUN_BYTES, 2..=4),
        (1 << 30, 7..=7),
    ] {
        let store = with_room_for(&place, room);
        let (report, [first, second]) = run(&place, &store, &spec);
        assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
        assert_eq!(report.counters["MERGE_PASSES"], 1);
        assert!(
            in_first.contains(&first) && first + second == 7,
            "{room}: {first}, {second}"
        );
        case.output(&place);
        assert!(place.tree() == before);
        assert!(store.list(Path::new(MEMORY_PLACE)).unwrap().is_empty());
    }
}

#[test]
fn a_full_directory_is_refused_with_the_numbers() {
    let (case, place) = (case(), place_of(&case()));
    let before = place.tree();
    let spec = spilling_to(&case, &json!([MEMORY_PLACE]));
    // Too little for the input is refused at once, and so is what is enough for the runs, but not for a pass.
    for room in [100_000, 499_999, 5 * RUN_BYTES + 5_000] {
        let store = with_room_for(&place, room);
        let (report, [first, second]) = run(&place, &store, &spec);
        let failure = report.failure.unwrap();
        assert_eq!(failure.kind(), Kind::DiskFull);
        let message = failure.to_string();
        assert!(message.contains("--spill-dir"), "{message}");
        assert!(!message.contains("the output"), "{message}");
        assert_eq!([first, second], [0, 0], "{message}");
        assert!(
            message.contains("runs need 1.08 MB") && message.contains("are free"),
            "{message}"
        );
        assert!(place.tree() == before, "{message}");
        assert!(store.list(Path::new(MEMORY_PLACE)).unwrap().is_empty());
    }
}

/// Removed at any call: an error that names it, or all that was needed had been read already.
#[test]
fn a_directory_that_vanishes_ends_the_job() {
    let case = case();
    let spec = spilling_to(&case, &json!(["spill"]));
    let (place, watch) = (place_of(&case), Watch::new());
    let store = Watched::over(place.store(), &watch);
    place.run_on(store, &spec, &Control::default());
    let calls = watch.calls();
    let first = calls
        .iter()
        .position(|call| call.path.starts_with(place.path("spill")))
        .unwrap();
    let [failed, whole] = [AtomicU64::new(0), AtomicU64::new(0)];
    let every = 4;
    for_each_number((calls.len() - first) as u64 / every, |number| {
        let place = place_of(&case);
        let before = place.tree();
        let spill = place.path("spill");
        let gone = place.path("gone");
        let vanish = move || {
            std::fs::rename(&spill, &gone).unwrap();
            // The other worker may be about to make a file there.
            while gone.exists() {
                let _ = std::fs::remove_dir_all(&gone);
            }
        };
        let watch = Watch::harming(first as u64 + every * number, vanish);
        let store = Watched::over(place.store(), &watch);
        let report = place.run_on(store, &spec, &Control::default());
        if report.status == Status::Succeeded {
            case.output(&place);
            whole.fetch_add(1, Ordering::Relaxed);
        } else {
            let failure = report.failure.unwrap();
            assert!(
                matches!(failure.kind(), Kind::NotFound | Kind::Io),
                "{failure}"
            );
            assert!(failure.to_string().contains("/spill"), "{failure}");
            failed.fetch_add(1, Ordering::Relaxed);
        }
        let mut after = place.tree();
        after.insert("spill".into(), None);
        assert!(after == before);
    });
    let (failed, whole) = (failed.into_inner(), whole.into_inner());
    assert!(failed > whole && whole > 0, "{failed} {whole}");
}

/// Folders without a lock were made a moment ago; those whose lock is held belong to the living.
#[test]
fn what_dead_jobs_left_is_removed() {
    let sort = Case::sort(vec![b"b\na\n".to_vec()], Wanted::default());
    for case in [case(), sort] {
        let place = place_of(&case);
        let folder = |name: &str| {
            let folder = format!("spill/.gristmill-spill-{name}");
            place.make_directory(&folder);
            place.put(&format!("{folder}/run-00000-0-0000"), b"records");
            folder
        };
        let _new = folder("new");
        let living = place.path(&folder("living"));
        let held = Local.lock(&living, MissingLock::Make).unwrap();
        assert!(matches!(held, Locked::Taken(_)));
        place.make_directory("spill/not-ours");
        let before = place.tree();
        let dead = folder("dead");
        place.put(&format!("{dead}/lock"), b"");
        let mut spec = case.spilling(2);
        let command = spec.as_object().unwrap().keys().next().unwrap().clone();
        spec[command]["spill_dir"] = json!(["spill", "spill"]);
        place.succeed(&spec);
        case.output(&place);
        assert!(place.tree() == before);
    }
}

#[test]
fn what_is_no_directory_is_refused() {
    let (case, place) = (case(), place_of(&case()));
    place.put("file", b"");
    let before = place.tree();
    for (name, kind) in [("file", Kind::BadOption), ("missing", Kind::NotFound)] {
        let report = place.run(&spilling_to(&case, &json!(["spill", name])));
        let failure = report.failure.unwrap();
        assert_eq!(failure.kind(), kind, "{failure}");
        assert!(failure.to_string().contains(name), "{failure}");
        assert!(place.tree() == before);
    }
}
