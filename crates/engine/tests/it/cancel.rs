//! Cancelling at any moment: the job is cancelled and leaves nothing, or was through already and leaves all.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_engine::jobs::Status;
use gristmill_engine::runner::Control;
use gristmill_engine::storage::faulty::{Fault, FaultPlan};
use serde_json::{Value, json};

use super::spill_faults;
use super::support::{Numbers, Place, Tree, for_each_number};
use super::watched::{Watch, Watched};

fn terasort() -> Value {
    json!({"terasort": {"inputs": ["in"], "output": "out", "partitions": 3, "workers": 2, "memory": "1G"}})
}

fn with_input(place: Place, rows: u64) -> Place {
    place.succeed(&json!({"teragen": {"rows": rows, "output": "in", "files": 3, "no_sync": true}}));
    place
}

fn check(status: Status, before: &Tree, after: &Tree, good: &Tree) {
    match status {
        Status::Cancelled => {
            let left: Vec<_> = after.keys().collect();
            assert!(after == before, "something is left: {left:?}");
        }
        Status::Succeeded => assert!(after == good),
        Status::Failed => panic!("a cancelled job does not fail"),
    }
}

#[test]
fn at_every_call_to_the_store() {
    let jobs = [
        terasort(),
        json!({"teragen": {"rows": 200, "output": "out", "files": 3, "workers": 2}}),
        json!({"teravalidate": {"input": "sorted", "against": "in", "workers": 2}}),
    ];
    let place = || {
        let place = with_input(Place::memory(), 300);
        place
            .succeed(&json!({"terasort": {"inputs": ["in"], "output": "sorted", "partitions": 3}}));
        place
    };
    for spec in jobs {
        let publishes = spec.get("teravalidate").is_none();
        let run = |at: u64| {
            let (place, control) = (place(), Arc::new(Control::default()));
            let watch = Watch::cancelling(&control, at);
            let store = Watched::over(place.store(), &watch);
            let before = place.tree();
            let report = place.run_on(store, &spec, &control);
            (report.status, watch, before, place.tree())
        };
        let (status, watch, before, good) = run(u64::MAX);
        assert_eq!(status, Status::Succeeded);
        let calls = watch.calls().len() as u64;
        let cancelled = AtomicU64::new(0);
        for_each_number(calls, |call| {
            let (status, watch, _, after) = run(call);
            check(status, &before, &after, &good);
            let stage = watch.cancelled_during().unwrap();
            let early = call == 0 || publishes && stage != "commit";
            assert!(
                !early || status == Status::Cancelled,
                "call {call}, during {stage:?}"
            );
            cancelled.fetch_add(u64::from(status == Status::Cancelled), Ordering::Relaxed);
        });
        let cancelled = cancelled.into_inner();
        assert!(cancelled >= calls / 4, "{cancelled} of {calls}");
    }
}

/// The same for jobs that spill, merge runs to runs, and merge to an output that replaces an old one.
#[test]
fn at_every_call_while_runs_are_made_and_merged() {
    for scenario in spill_faults::scenarios() {
        let good = spill_faults::run_well(&scenario);
        let stages: Mutex<BTreeSet<&str>> = Mutex::default();
        spill_faults::for_each_call(&spill_faults::calls_of(&good), |call| {
            let (place, control) = ((scenario.prepare)(), Arc::new(Control::default()));
            let watch = Watch::cancelling(&control, call);
            let store = Watched::over(place.store(), &watch);
            let before = place.tree();
            let report = place.run_on(store, &scenario.spec, &control);
            check(report.status, &before, &place.tree(), &good.after);
            if report.status == Status::Cancelled {
                stages.lock().unwrap().extend(watch.cancelled_during());
            }
        });
        let stages = stages.into_inner().unwrap();
        assert!(
            stages.contains("spill") && stages.contains("merge"),
            "{stages:?}"
        );
    }
}

/// A task of 60 MB stops soon after its first write: what is on its way to the store is three buffers.
#[test]
fn a_long_task_stops_in_its_middle() {
    let spec = json!({"teragen": {"rows": 600_000, "output": "out", "files": 1, "workers": 1}});
    let place = Place::memory();
    let writes = |watch: &Watch| {
        watch
            .calls()
            .iter()
            .filter(|call| call.operation == "write")
            .count()
    };
    let watch = Watch::new();
    place.run_on(
        Watched::over(place.store(), &watch),
        &spec,
        &Control::default(),
    );
    let (calls, all) = (watch.calls(), writes(&watch));
    place.store().remove(&place.path("out")).unwrap();
    let first = calls
        .iter()
        .position(|call| call.operation == "write")
        .unwrap() as u64;

    let control = Arc::new(Control::default());
    let watch = Watch::cancelling(&control, first);
    let report = place.run_on(Watched::over(place.store(), &watch), &spec, &control);
    assert_eq!(report.status, Status::Cancelled);
    assert!(place.tree().is_empty());
    assert!(
        all > 12 && writes(&watch) <= 8,
        "{} of {all}",
        writes(&watch)
    );
}

/// A task that waits for its fifth try, 400 ms from its fourth, is not waited for.
#[test]
fn while_a_task_waits_for_its_next_try() {
    let place = with_input(Place::memory(), 300);
    let before = place.tree();
    let calls = Watch::new();
    let store = Watched::over(place.store(), &calls);
    place.run_on(store, &terasort(), &Control::default());
    place.store().remove(&place.path("out")).unwrap();
    let first_read = calls
        .calls()
        .iter()
        .position(|call| call.operation == "read");
    let plan = FaultPlan {
        fault: Fault::Code(5),
        from: first_read.unwrap() as u64,
        to: u64::MAX,
    };
    let (watch, control) = (Watch::new(), Control::default());
    let tries = || watch.failed().iter().filter(|call| call.in_task).count();
    let (late, report) = thread::scope(|scope| {
        let canceller = scope.spawn(|| {
            while tries() < 4 {
                thread::sleep(Duration::from_millis(1));
            }
            let seen = Instant::now();
            thread::sleep(Duration::from_millis(50));
            control.cancel();
            seen.elapsed() > Duration::from_millis(350) // on a machine that has no time for this test
        });
        let store = Watched::over(place.faulty(plan), &watch);
        let report = place.run_on(store, &terasort(), &control);
        (canceller.join().unwrap(), report)
    });
    assert!(place.tree() == before);
    let (status, tries) = (report.status, tries());
    assert!(
        late || (status, tries) == (Status::Cancelled, 4),
        "{status:?} {tries}"
    );
}

#[test]
fn at_random_moments() {
    let mut numbers = Numbers(3);
    let mut spec = terasort();
    spec["terasort"]["no_sync"] = json!(true);
    for (place, rounds) in [(Place::memory as fn() -> Place, 20), (Place::local, 20)] {
        let place = with_input(place(), 120_000);
        let before = place.tree();
        let began = Instant::now();
        place.succeed(&spec);
        let took_us = began.elapsed().as_micros() as u64;
        let good = place.tree();
        for _ in 0..rounds {
            place.store().remove(&place.path("out")).unwrap();
            let control = Control::default();
            let wait = Duration::from_micros(numbers.below(took_us));
            let report = thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(wait);
                    control.cancel();
                });
                place.run_on(place.store(), &spec, &control)
            });
            check(report.status, &before, &place.tree(), &good);
        }
    }
}

#[test]
fn before_it_begins() {
    let place = with_input(Place::memory(), 300);
    let (before, control) = (place.tree(), Control::default());
    control.cancel();
    let report = place.run_on(place.store(), &terasort(), &control);
    assert_eq!(report.status, Status::Cancelled);
    assert_eq!(report.error.unwrap().kind, "cancelled");
    assert!(place.tree() == before);
}
