//! Every call of a job that spills goes wrong, in every phase and every way; and runs that are damaged behind the
//! job's back. Afterwards the store is as it was, old output included, or as after a good job.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_engine::Kind;
use gristmill_engine::jobs::Status;
use gristmill_engine::runner::Control;
use gristmill_engine::storage::faulty::Fault;
use gristmill_engine::storage::{Caching, LocalDisk};
use serde_json::json;

use super::faults::{EIO, FULL, Outcome, Scenario};
use super::spill_case::text;
use super::support::{Place, for_each_number, least_memory};
use super::watched::{Call, Watch, Watched};

/// Input of four runs, one for each worker.
fn input() -> Place {
    let place = Place::memory();
    place.make_directory("spill");
    place.succeed(&json!({"teragen": {"rows": 3_100, "output": "in", "files": 2}}));
    place.store().remove(&place.path("in/_SUCCESS")).unwrap();
    place
}

fn input_and_old_output() -> Place {
    let place = input();
    place.make_directory("out");
    place.put("out/_SUCCESS", b"old");
    place.put("out/part-r-00000", b"old");
    place
}

/// As three runs are merged at once, there is a pass. An old output is replaced.
fn terasort() -> Scenario {
    let options = json!({
        "inputs": ["in"], "output": "out", "partitions": 2, "workers": 4, "overwrite": true,
        "memory": least_memory(4, 100), "spill_dir": ["spill"],
    });
    Scenario {
        prepare: input_and_old_output,
        spec: json!({"terasort": options}),
    }
}

/// Two files and two runs, to a file that is one of them.
fn sort() -> Scenario {
    sort_by(2)
}

fn sort_by(workers: usize) -> Scenario {
    let prepare = || {
        let place = Place::memory();
        place.put("out", &text(700_000, 24, 1));
        place.put("in", &text(200_000, 24, 2));
        place
    };
    let options = json!({
        "inputs": ["out", "in"], "output": "out", "workers": workers, "memory": least_memory(workers, 23),
    });
    Scenario {
        prepare,
        spec: json!({"sort": options}),
    }
}

pub fn scenarios() -> [Scenario; 2] {
    [terasort(), sort()]
}

/// Both spill; the first merges runs to runs.
pub fn run_well(scenario: &Scenario) -> Outcome {
    let good = scenario.run_well();
    let counters = &good.report.counters;
    assert!(counters["SPILLED_RUNS"] >= 2);
    let passes = u64::from(good.report.command == "terasort");
    assert_eq!(counters["MERGE_PASSES"], passes);
    good
}

/// The numbers of all calls; of the many that sample the input, only one in eight.
pub fn calls_of(good: &Outcome) -> Vec<u64> {
    let first_run = good.made.iter().position(Call::of_run).unwrap();
    let first = good.made.iter().position(|call| call.in_task).unwrap();
    let sampled = first + 4..first_run.saturating_sub(12);
    let chosen = |number: &usize| !sampled.contains(number) || number.is_multiple_of(8);
    let numbers = (0..good.made.len()).filter(chosen);
    numbers.map(|number| number as u64).collect()
}

/// Does `work` for each of these calls.
pub fn for_each_call(calls: &[u64], work: impl Fn(u64) + Sync) {
    for_each_number(calls.len() as u64, |index| work(calls[index as usize]));
}

#[test]
fn one_failed_call_is_tried_again_or_named() {
    for scenario in scenarios() {
        let good = run_well(&scenario);
        let tried_again = AtomicU64::new(0);
        for_each_call(&calls_of(&good), |call| {
            let outcome = scenario.run(EIO, call, call + 1);
            outcome.check_store(&good.after);
            let [failed] = &outcome.failed[..] else {
                panic!("{}", outcome.what());
            };
            if outcome.is_undisturbed() {
                return;
            }
            if !failed.in_task {
                return outcome.check_error(Kind::Io);
            }
            assert_eq!(
                outcome.report.status,
                Status::Succeeded,
                "{}",
                outcome.what()
            );
            let attempts = outcome.report.counters["FAILED_TASK_ATTEMPTS"];
            assert_eq!(attempts, u64::from(failed.matters_to_task()));
            assert_eq!(outcome.report.checksum, good.report.checksum);
            tried_again.fetch_add(attempts, Ordering::Relaxed);
        });
        assert!(tried_again.into_inner() > 20);
    }
}

#[test]
fn a_device_that_stays_broken_ends_the_job() {
    // Where names cannot be exchanged, an old output that cannot be renamed back waits in the job's folder.
    let mut fresh = terasort();
    fresh.prepare = input;
    for scenario in [fresh, sort()] {
        let good = run_well(&scenario);
        let every_third: Vec<u64> = calls_of(&good).into_iter().step_by(3).collect();
        for_each_call(&every_third, |call| {
            let outcome = scenario.run(EIO, call, u64::MAX);
            outcome.check_store(&good.after);
            outcome.check_error(Kind::Io);
        });
    }
}

#[test]
fn a_full_disk_ends_the_job_at_once() {
    for scenario in scenarios() {
        let good = run_well(&scenario);
        for_each_call(&calls_of(&good), |call| {
            let outcome = scenario.run(FULL, call, call + 1);
            outcome.check_store(&good.after);
            let [failed] = &outcome.failed[..] else {
                panic!("{}", outcome.what());
            };
            if failed.operation == "discard" {
                return assert_eq!(outcome.report.status, Status::Succeeded);
            }
            if outcome.is_undisturbed() {
                return;
            }
            outcome.check_error(Kind::DiskFull);
            let tries = outcome.report.counters.get("FAILED_TASK_ATTEMPTS");
            assert_eq!(failed.in_task, tries.is_some_and(|tries| *tries > 0));
        });
    }
}

/// Short reads of the input end the job, since it has changed; those of a run are tried again.
///
/// The sort has one worker: two make their calls in another order in each run, and as few of them read the
/// input, chance may have that none of these is hit.
#[test]
fn a_file_that_ends_early_is_noticed() {
    for scenario in [terasort(), sort_by(1)] {
        let good = run_well(&scenario);
        let [changed, tried_again] = [AtomicU64::new(0), AtomicU64::new(0)];
        for_each_call(&calls_of(&good), |call| {
            let outcome = scenario.run(Fault::Short, call, call + 1);
            outcome.check_store(&good.after);
            match (&outcome.failed[..], outcome.report.failure.as_ref()) {
                ([], None) => tried_again.fetch_add(1, Ordering::Relaxed),
                ([], Some(failure)) => {
                    let named = failure.to_string();
                    let of_run = named.contains("/run-");
                    let kind = if of_run { Kind::Io } else { Kind::InputChanged };
                    assert_eq!(failure.kind(), kind, "{}", outcome.what());
                    changed.fetch_add(1, Ordering::Relaxed)
                }
                _ => 0,
            };
        });
        let (changed, tried_again) = (changed.into_inner(), tried_again.into_inner());
        assert!(changed > 0 && tried_again > 0, "{changed} {tried_again}");
    }
}

/// Bits that flip on the way from a run are found by its CRCs: the output is right, or there is none. Those of the
/// input cannot be seen; the sum of the records' CRCs tells them.
#[test]
fn a_bit_that_flips_is_never_output_unseen() {
    for scenario in scenarios() {
        let good = run_well(&scenario);
        let tried_again = AtomicU64::new(0);
        for_each_call(&calls_of(&good), |call| {
            let outcome = scenario.run(Fault::BitFlip, call, call + 1);
            if outcome.report.status != Status::Succeeded {
                return outcome.check_store(&good.after);
            }
            assert!(outcome.after == good.after || outcome.report.checksum != good.report.checksum);
            tried_again.fetch_add(
                outcome.report.counters["FAILED_TASK_ATTEMPTS"],
                Ordering::Relaxed,
            );
        });
        assert!(tried_again.into_inner() > 2);
    }
}

/// All runs below a place, wherever they are.
fn runs_below(store: &dyn LocalDisk, directory: &Path) -> Vec<PathBuf> {
    let mut runs = Vec::new();
    for path in store.list(directory).unwrap() {
        runs.extend(runs_below(store, &path));
        let name = path.file_name().unwrap();
        if name.as_encoded_bytes().starts_with(b"run-") {
            runs.push(path);
        }
    }
    runs
}

fn flip_bit(store: &dyn LocalDisk, path: &Path, at: u64) {
    let mut byte = [0];
    let file = store.open(path, Caching::Cached).unwrap();
    assert_eq!(file.read_at(&mut byte, at).unwrap(), 1);
    byte[0] ^= 0x10;
    let file = store.create(path, 0, Caching::Cached).unwrap();
    file.write_at(&byte, at).unwrap();
}

/// Damage at rest: before the first run is opened, a bit of each run flips, in its header, data, or index.
#[test]
fn a_damaged_run_fails_the_job_and_is_named() {
    for scenario in scenarios() {
        let watch = Watch::new();
        let place = (scenario.prepare)();
        let store = Watched::over(place.store(), &watch);
        place.run_on(store, &scenario.spec, &Control::default());
        // Spills never open their runs.
        let opens = |call: &Call| call.operation == "stat" && call.of_run();
        let first_open = watch.calls().iter().position(opens).unwrap() as u64;
        for (at, of_data) in [
            (99, false),
            (4096 + 70_000, true),
            (4096 + 5, true),
            (u64::MAX, false),
        ] {
            let place = (scenario.prepare)();
            let before = place.tree();
            let (inner, root) = (place.store(), place.root().to_owned());
            let watch = Watch::harming(first_open, move || {
                for run in runs_below(&*inner, &root) {
                    let bytes = inner.stat(&run).unwrap().unwrap().bytes;
                    let behind_data = bytes - 4 * 4096;
                    if !of_data || at < behind_data {
                        flip_bit(&*inner, &run, at.min(bytes - 20));
                    }
                }
            });
            let store = Watched::over(place.store(), &watch);
            let report = place.run_on(store, &scenario.spec, &Control::default());
            assert_eq!(report.status, Status::Failed);
            let failure = report.failure.unwrap();
            assert_eq!(failure.kind(), Kind::Io, "{failure}");
            let message = failure.to_string();
            assert!(
                message.contains("/run-") && message.contains("damaged"),
                "{message}"
            );
            let block = failure.context().iter().find(|(name, _)| *name == "block");
            assert_eq!(block.is_some(), of_data, "{message}");
            assert!(block.is_none_or(|(_, block)| *block == ((at - 4096) >> 16).to_string()));
            assert!(place.tree() == before, "{message}");
        }
    }
}
