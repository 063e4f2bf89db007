//! Every call of a job to its store goes wrong, one after another, in every way that `storage::faulty` knows.
//!
//! ```text
//!   once, with EIO       in a task: tried again, the same bytes.   elsewhere: an error that names the file
//!   EIO from then on     an error, after five tries at most
//!   a full disk          an error, at once
//!   a short read         an error: the input has changed
//!   a flipped bit        found by the validator where it shows in the output
//! ```
//!
//! The rule that must hold: afterwards the store is as it was before the job, or as after a good one. An output is
//! whole or absent; nothing else is left.

use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_engine::Kind;
use gristmill_engine::jobs::{JobReport, Status};
use gristmill_engine::runner::Control;
use gristmill_engine::storage::faulty::{Fault, FaultPlan};
use serde_json::{Value, json};

use super::support::{Place, RECORD, Tree, for_each_number, in_job_folders, outside_job_folders};
use super::watched::{Call, Watch, Watched};

pub const EIO: Fault = Fault::Code(5);
pub const FULL: Fault = Fault::Code(28);

/// Five tries: the first and four more.
const TRIES_MAX: u64 = 5;

/// A job, and where it begins.
pub struct Scenario {
    pub prepare: fn() -> Place,
    pub spec: Value,
}

/// Three small files, which are one split, and one of them empty; two parts.
fn small_input() -> Place {
    let place = Place::memory();
    place.succeed(&json!({"teragen": {"rows": 300, "output": "in", "files": 3}}));
    place.store().remove(&place.path("in/_SUCCESS")).unwrap();
    place.put("in/part-m-empty", b"");
    place
}

fn terasort() -> Scenario {
    let options = json!({"inputs": ["in"], "output": "out", "partitions": 2, "workers": 2});
    Scenario {
        prepare: small_input,
        spec: json!({"terasort": options}),
    }
}

fn teragen() -> Scenario {
    let options = json!({"rows": 50, "output": "out", "files": 3, "workers": 2});
    Scenario {
        prepare: Place::memory,
        spec: json!({"teragen": options}),
    }
}

fn teravalidate() -> Scenario {
    let prepare = || {
        let place = small_input();
        place.succeed(&terasort().spec);
        place
    };
    let options = json!({"input": "out", "against": "in", "workers": 2});
    Scenario {
        prepare,
        spec: json!({"teravalidate": options}),
    }
}

fn scenarios() -> [Scenario; 3] {
    [terasort(), teragen(), teravalidate()]
}

/// What came of a job with faults.
pub struct Outcome {
    place: Place,
    pub report: JobReport,
    pub failed: Vec<Call>,
    pub calls: u64,
    /// In the order of their ends.
    pub made: Vec<Call>,
    reads: u64,
    pub before: Tree,
    pub after: Tree,
}

impl Scenario {
    pub fn run(&self, fault: Fault, from: u64, to: u64) -> Outcome {
        let place = (self.prepare)();
        let before = place.tree();
        let watch = Watch::new();
        let store = Watched::over(place.faulty(FaultPlan { fault, from, to }), &watch);
        let report = place.run_on(store, &self.spec, &Control::default());
        let calls = watch.calls();
        Outcome {
            report,
            failed: watch.failed(),
            calls: calls.len() as u64,
            reads: calls.iter().filter(|call| call.operation == "read").count() as u64,
            made: calls,
            after: place.tree(),
            before,
            place,
        }
    }

    pub fn run_well(&self) -> Outcome {
        let outcome = self.run(EIO, u64::MAX, u64::MAX);
        assert_eq!(
            outcome.report.status,
            Status::Succeeded,
            "{}",
            outcome.what()
        );
        assert!(outcome.failed.is_empty() && outcome.calls > 8);
        outcome
    }
}

impl Outcome {
    pub fn what(&self) -> String {
        let left: Vec<_> = self.after.keys().collect();
        let (failed, error) = (&self.failed, &self.report.error);
        format!("{}: {failed:?}\n{error:?}\n{left:?}", self.report.command)
    }

    /// Whole or absent, and nothing else; an error after publication leaves it whole, and what it replaced in the job's folder.
    pub fn check_store(&self, good: &Tree) {
        let whole = self.after == *good;
        match self.report.status {
            Status::Succeeded => assert!(whole, "no whole output: {}", self.what()),
            _ => assert!(
                whole || self.after == self.before || self.keeps_both(good),
                "something is left: {}",
                self.what()
            ),
        }
    }

    fn keeps_both(&self, good: &Tree) -> bool {
        let old = self
            .before
            .iter()
            .filter(|(path, _)| path.starts_with("out"));
        let old: Vec<&[u8]> = old.filter_map(|(_, bytes)| bytes.as_deref()).collect();
        outside_job_folders(&self.after) == *good && in_job_folders(&self.after) == old
    }

    /// Whether nothing failed but what is no job's trouble: the job must not have noticed.
    pub fn is_undisturbed(&self) -> bool {
        let undisturbed = !self.failed.is_empty() && self.failed.iter().all(Call::of_sweep);
        assert!(
            !undisturbed || self.report.status == Status::Succeeded,
            "{}",
            self.what()
        );
        undisturbed
    }

    pub fn check_error(&self, kind: Kind) {
        assert_eq!(self.report.status, Status::Failed, "{}", self.what());
        let failure = self.report.failure.as_ref().unwrap();
        assert_eq!(failure.kind(), kind, "{}", self.what());
        let message = failure.to_string();
        let named = |call: &Call| message.contains(&call.path.display().to_string());
        assert!(
            self.failed.iter().any(named),
            "no file is named: {}",
            self.what()
        );
    }
}

#[test]
fn one_failed_call_is_tried_again_or_named() {
    for scenario in scenarios() {
        let good = scenario.run_well();
        let tried_again = AtomicU64::new(0);
        for_each_number(good.calls, |call| {
            let outcome = scenario.run(EIO, call, call + 1);
            let [failed] = &outcome.failed[..] else {
                panic!("{}", outcome.what());
            };
            outcome.check_store(&good.after);
            if failed.in_task {
                assert_eq!(
                    outcome.report.status,
                    Status::Succeeded,
                    "{}",
                    outcome.what()
                );
                assert_eq!(outcome.report.counters["FAILED_TASK_ATTEMPTS"], 1);
                assert_eq!(outcome.report.checksum, good.report.checksum);
                assert_eq!(outcome.report.report, good.report.report);
                tried_again.fetch_add(1, Ordering::Relaxed);
            } else if !outcome.is_undisturbed() {
                outcome.check_error(Kind::Io);
            }
        });
        // Of the calls, about as many are made by tasks as by the job around them.
        let tried_again = tried_again.into_inner();
        assert!(
            (good.calls / 4..good.calls).contains(&tried_again),
            "{tried_again}"
        );
    }
}

#[test]
fn a_device_that_stays_broken_ends_the_job_after_five_tries() {
    for scenario in scenarios() {
        let good = scenario.run_well();
        let most_tries = AtomicU64::new(0);
        for_each_number(good.calls, |call| {
            let outcome = scenario.run(EIO, call, u64::MAX);
            outcome.check_store(&good.after);
            outcome.check_error(Kind::Io);
            // Every try of a task fails at its first call.
            let of_tasks = outcome.failed.iter().filter(|failed| failed.in_task);
            let mut of_tasks: Vec<_> = of_tasks.map(|failed| &failed.path).collect();
            of_tasks.sort();
            let tries = of_tasks.chunk_by(|a, b| a == b).map(<[_]>::len).max();
            let tries = tries.unwrap_or(0) as u64;
            assert!(tries <= TRIES_MAX, "{}", outcome.what());
            most_tries.fetch_max(tries, Ordering::Relaxed);
        });
        assert_eq!(most_tries.into_inner(), TRIES_MAX);
    }
}

#[test]
fn a_full_disk_ends_the_job_at_once() {
    for scenario in scenarios() {
        let good = scenario.run_well();
        for_each_number(good.calls, |call| {
            let outcome = scenario.run(FULL, call, call + 1);
            outcome.check_store(&good.after);
            if outcome.is_undisturbed() {
                return;
            }
            outcome.check_error(Kind::DiskFull);
            assert_eq!(outcome.failed.len(), 1, "{}", outcome.what());
            let tried = outcome.report.failure.as_ref().unwrap().context();
            assert!(!tried.iter().any(|(name, _)| *name == "tries"));
        });
    }
}

#[test]
fn a_file_that_ends_early_is_no_input() {
    for scenario in [terasort(), teravalidate()] {
        let good = scenario.run_well();
        let changed = AtomicU64::new(0);
        for_each_number(good.calls, |call| {
            let outcome = scenario.run(Fault::Short, call, call + 1);
            outcome.check_store(&good.after);
            if outcome.failed.is_empty() {
                let failure = outcome.report.failure.as_ref().unwrap();
                assert_eq!(failure.kind(), Kind::InputChanged, "{}", outcome.what());
                assert!(failure.to_string().contains("/part-"), "{failure}");
                changed.fetch_add(1, Ordering::Relaxed);
            } else if !outcome.failed[0].in_task && !outcome.is_undisturbed() {
                outcome.check_error(Kind::Io);
            }
        });
        // Tasks at work together may number their calls otherwise from run to run.
        assert!(changed.into_inner() >= good.reads / 2);
    }
}

/// A sort cannot see that a device lies, but its output is then no permutation of the input.
#[test]
fn a_bit_that_flips_on_the_way_in_is_found_by_the_validator() {
    let scenario = terasort();
    let good = scenario.run_well();
    let wrong = AtomicU64::new(0);
    let whole = |place: &Place| -> Vec<u8> {
        let parts = place.parts("out").into_iter();
        parts.flat_map(|(_, bytes)| bytes).collect()
    };
    let want = whole(&good.place);
    for_each_number(good.calls, |call| {
        let outcome = scenario.run(Fault::BitFlip, call, call + 1);
        if outcome.report.status != Status::Succeeded {
            outcome.check_store(&good.after);
            return;
        }
        let equal = whole(&outcome.place) == want;
        let report = outcome.place.run(&teravalidate().spec);
        assert_eq!(
            report.status == Status::Succeeded,
            equal,
            "{}",
            outcome.what()
        );
        assert!(
            equal || report.report.len() == 1,
            "out of order: {:?}",
            report.report
        );
        wrong.fetch_add(u64::from(!equal), Ordering::Relaxed);
    });
    assert!(wrong.into_inner() >= 3, "one for each file at least");
}

/// A split of several small files, of which the first is read when the second fails.
#[test]
fn a_split_of_small_files_is_read_again_whole() {
    let scenario = terasort();
    let good = scenario.run_well();
    let failures = AtomicU64::new(0);
    for_each_number(good.calls, |call| {
        let outcome = scenario.run(EIO, call, call + 1);
        let failed = &outcome.failed[0];
        if failed.in_task && matches!(failed.operation, "open" | "read") {
            assert_eq!(
                outcome.report.status,
                Status::Succeeded,
                "{}",
                outcome.what()
            );
            failures.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert_eq!(
        failures.into_inner(),
        good.reads + 6,
        "three files are opened twice"
    );
}

/// Outputs of several buffers, so that a write fails while the next buffer is filled, and the one after it waits.
#[test]
fn a_write_that_fails_behind_the_tasks_back_is_tried_again() {
    let rows = 150_000;
    let spec = json!({"teragen": {"rows": rows, "output": "out", "files": 1, "workers": 1}});
    let made = Scenario {
        prepare: Place::memory,
        spec,
    };
    let prepare = || {
        let place = Place::memory();
        place.succeed(&json!({"teragen": {"rows": 150_000, "output": "in"}}));
        place
    };
    let options = json!({"inputs": ["in"], "output": "out", "workers": 1});
    let sorted = Scenario {
        prepare,
        spec: json!({"terasort": options}),
    };
    for scenario in [made, sorted] {
        let good = scenario.run_well();
        assert_eq!(good.report.output_bytes, (rows * RECORD) as u64);
        let in_writes = AtomicU64::new(0);
        // A sort writes last: what comes before is the sample and the maps.
        let last_calls = good.calls.min(16);
        (good.calls - last_calls..good.calls).for_each(|call| {
            let outcome = scenario.run(EIO, call, call + 1);
            outcome.check_store(&good.after);
            let failed = &outcome.failed[0];
            if failed.in_task {
                assert_eq!(
                    outcome.report.status,
                    Status::Succeeded,
                    "{}",
                    outcome.what()
                );
                in_writes.fetch_add(u64::from(failed.operation == "write"), Ordering::Relaxed);
            }
            let outcome = scenario.run(FULL, call, call + 1);
            outcome.check_store(&good.after);
            outcome.check_error(Kind::DiskFull);
        });
        assert!(in_writes.into_inner() >= 3);
    }
}

/// The output is there and whole, only its name is not durable: that is an error, but no job folder stays.
#[test]
fn a_failure_after_publication_leaves_the_output_and_nothing_else() {
    for scenario in [terasort(), teragen()] {
        let good = scenario.run_well();
        let outcome = scenario.run(EIO, good.calls - 1, good.calls);
        assert_eq!(outcome.failed[0].operation, "sync_directory");
        assert_eq!(outcome.report.status, Status::Failed);
        let (left, want): (Vec<_>, Vec<_>) =
            (outcome.after.keys().collect(), good.after.keys().collect());
        assert_eq!(left, want);
        assert!(outcome.after == good.after);
    }
}
