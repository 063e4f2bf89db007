//! The driver against a naive model of a cluster: attempts end in any order, fail and are late.

mod needs;
mod rounds;
mod second_attempts;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use gristmill_base::error::{Kind, Result};
use gristmill_tasks::task::SampleSpec;

/// A plan of stages with so many tasks each; keeps the reports it was given.
struct Counted {
    stages: VecDeque<usize>,
    seen: Arc<Mutex<Vec<Vec<u64>>>>,
}

fn spec() -> TaskSpec {
    TaskSpec::Sample(SampleSpec {
        stretches: Vec::new(),
        record_bytes: 100,
    })
}

/// A report that carries a number: as many entries.
fn report(number: u64) -> TaskReport {
    TaskReport::Sample(vec![gristmill_base::order::Entry::new(&[0; 10], number)])
}

fn number_of(report: &TaskReport) -> u64 {
    match report {
        TaskReport::Sample(entries) => entries[0].position(),
        _ => u64::MAX,
    }
}

impl Plan for Counted {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        self.seen
            .lock()
            .unwrap()
            .push(reports.iter().map(number_of).collect());
        let tasks = |count| (0..count).map(|_| spec()).collect();
        let stage = |count| Stage::new("stage", 0, tasks(count));
        Ok(self.stages.pop_front().map(stage))
    }
}

fn driver(stages: &[usize]) -> (Driver, Arc<Mutex<Vec<Vec<u64>>>>) {
    let seen = Arc::default();
    let plan = Counted {
        stages: stages.iter().copied().collect(),
        seen: Arc::clone(&seen),
    };
    (Driver::new(Box::new(plan), RetryPolicy::default()), seen)
}

fn io_error() -> Error {
    Error::new(Kind::Io, "read", "device error").retryable_error()
}

fn outcome(actions: &[Action]) -> Option<&Result<()>> {
    actions.iter().find_map(|action| match action {
        Action::Complete { outcome } => Some(outcome),
        _ => None,
    })
}

fn done(task: u32) -> DriverEvent {
    DriverEvent::Finished {
        id: AttemptId { task, attempt: 0 },
        report: report(u64::from(task)),
    }
}

fn launched(actions: Vec<Action>) -> Vec<u32> {
    let launched = actions.into_iter().filter_map(|action| match action {
        Action::Launch { id, .. } => Some(id.task),
        _ => None,
    });
    launched.collect()
}

#[test]
fn tasks_that_are_preferred_are_launched_before_others() {
    let (mut driver, _) = driver(&[6, 2]);
    assert_eq!(
        launched(driver.handle(0, DriverEvent::Started { slots: 2 })),
        [0, 1]
    );
    let added = |driver: &mut Driver| -> Vec<u32> {
        driver
            .take_added()
            .into_iter()
            .map(|(task, _)| task)
            .collect()
    };
    assert_eq!(
        (added(&mut driver), added(&mut driver)),
        ((0..6).collect(), vec![])
    );
    driver.prefer(vec![0, 9, 4]); // the first runs, the second is none
    driver.prefer(vec![3]);
    assert_eq!(launched(driver.handle(1, done(0))), [4]);
    assert_eq!(
        launched(driver.handle(2, done(1))),
        [3],
        "until it is launched"
    );
    for (task, next) in [(4, vec![2]), (3, vec![5]), (2, vec![]), (5, vec![6, 7])] {
        assert_eq!(launched(driver.handle(3, done(task))), next);
    }
    assert_eq!(added(&mut driver), [6, 7]);
}

#[test]
fn a_runner_that_hears_of_a_stage_first_may_prefer_tasks_of_it() {
    let (mut driver, _) = driver(&[3, 2]);
    driver.tell_first();
    let begun = driver.handle(0, DriverEvent::Started { slots: 2 });
    assert!(matches!(begun[..], [Action::BeginStage { tasks: 3, .. }]));
    driver.prefer(vec![2]);
    assert_eq!(launched(driver.handle(0, DriverEvent::Woken)), [2, 0]);
    for (task, next) in [(2, vec![1]), (0, vec![])] {
        assert_eq!(launched(driver.handle(1, done(task))), next);
    }
    assert!(launched(driver.handle(2, done(1))).is_empty());
    driver.prefer(vec![4]);
    assert_eq!(launched(driver.handle(2, DriverEvent::Woken)), [4, 3]);
}

proptest! {
    /// Whatever order attempts end in and whichever fail (fewer times than allowed), every stage gets one report
    /// for each task, in order, slots are respected, and the job completes.
    #[test]
    fn every_task_reports_once(
        stages in proptest::collection::vec(0_usize..8, 1..5),
        slots in 1_usize..5,
        choices in proptest::collection::vec((0_usize..100, any::<bool>()), 1..60),
    ) {
        let (mut driver, seen) = driver(&stages);
        let (mut running, mut failures, mut time) = (Vec::new(), BTreeMap::new(), 0);
        let mut actions = driver.handle(0, DriverEvent::Started { slots });
        let mut choices = choices.iter().cycle();
        loop {
            for action in &actions {
                if let Action::Launch { id, .. } = action {
                    running.push(*id);
                }
            }
            prop_assert!(running.len() <= slots);
            if outcome(&actions).is_some() {
                break;
            }
            time += 1000;
            let (pick, fails) = choices.next().unwrap();
            if running.is_empty() {
                actions = driver.handle(time, DriverEvent::Woken);
                continue;
            }
            let id = running.swap_remove(pick % running.len());
            let failed: &mut u32 = failures.entry(id.task).or_default();
            actions = if *fails && *failed < 4 {
                *failed += 1;
                driver.handle(time, DriverEvent::Failed { id, error: io_error() })
            } else {
                driver.handle(time, DriverEvent::Finished { id, report: report(u64::from(id.task)) })
            };
        }
        prop_assert_eq!(outcome(&actions), Some(&Ok(())));
        prop_assert!(running.is_empty());
        let mut first = 0;
        let want = stages.iter().map(|count| {
            first += *count as u64;
            (first - *count as u64..first).collect()
        });
        let want: Vec<Vec<u64>> = std::iter::once(Vec::new()).chain(want).collect();
        prop_assert_eq!(&*seen.lock().unwrap(), &want);
    }
}

#[test]
fn four_retries_with_growing_waits_then_the_error() {
    let (mut driver, _) = driver(&[1]);
    driver.handle(0, DriverEvent::Started { slots: 1 });
    let mut time = 0;
    for attempt in 0..4 {
        let id = AttemptId { task: 0, attempt };
        let actions = driver.handle(
            time,
            DriverEvent::Failed {
                id,
                error: io_error(),
            },
        );
        assert!(
            matches!(actions[..], [Action::WakeAt { at_ms }] if at_ms == time + (50 << attempt))
        );
        time += 50 << attempt;
        assert!(
            driver.handle(time - 1, DriverEvent::Woken).is_empty(),
            "not yet"
        );
        let actions = driver.handle(time, DriverEvent::Woken);
        assert!(matches!(actions[..], [Action::Launch { id, .. }] if id.attempt == attempt + 1));
    }
    let id = AttemptId {
        task: 0,
        attempt: 4,
    };
    let actions = driver.handle(
        time,
        DriverEvent::Failed {
            id,
            error: io_error(),
        },
    );
    let error = outcome(&actions).unwrap().as_ref().unwrap_err();
    assert_eq!((error.kind(), driver.counts().failed), (Kind::Io, 5));
    assert!(error.to_string().contains("tries 5"), "{error}");
}

#[test]
fn attempts_that_end_with_the_job_are_killed_and_one_task_has_failed() {
    let (mut driver, _) = driver(&[2]);
    driver.handle(0, DriverEvent::Started { slots: 2 });
    let id = |task| AttemptId { task, attempt: 0 };
    for (task, error) in [(0, Error::bug("work", "it broke")), (1, Error::cancelled())] {
        let id = id(task);
        driver.handle(1, DriverEvent::Failed { id, error });
    }
    assert_eq!((driver.counts().failed, driver.counts().killed), (1, 1));
    let none = super::LaunchCounts::default(); // samples are neither maps nor reduces
    assert_eq!(driver.counts().failed_tasks, none);
}

#[test]
fn an_error_that_no_retry_helps_ends_the_job_at_once_and_waits_for_what_runs() {
    let (mut driver, _) = driver(&[3]);
    driver.handle(0, DriverEvent::Started { slots: 2 });
    let error = Error::new(Kind::BadInput, "read", "bad record");
    let id = |task| AttemptId { task, attempt: 0 };
    let actions = driver.handle(1, DriverEvent::Failed { id: id(0), error });
    assert!(matches!(actions[..], [Action::Abort { id: aborted }] if aborted == id(1)));
    let actions = driver.handle(
        2,
        DriverEvent::Failed {
            id: id(1),
            error: Error::cancelled(),
        },
    );
    assert_eq!(
        outcome(&actions).unwrap().as_ref().unwrap_err().kind(),
        Kind::BadInput
    );
    assert!(
        driver.handle(3, DriverEvent::Cancel).is_empty(),
        "over is over"
    );
}

#[test]
fn cancel_stops_what_runs_and_what_waits() {
    let (mut driver, _) = driver(&[2]);
    driver.handle(0, DriverEvent::Started { slots: 2 });
    let id = |task| AttemptId { task, attempt: 0 };
    driver.handle(
        1,
        DriverEvent::Failed {
            id: id(0),
            error: io_error(),
        },
    );
    let actions = driver.handle(2, DriverEvent::Cancel);
    assert!(matches!(actions[..], [Action::Abort { .. }]));
    // Its result comes too late, and counts for nothing.
    let actions = driver.handle(
        3,
        DriverEvent::Finished {
            id: id(1),
            report: report(1),
        },
    );
    assert_eq!(
        outcome(&actions).unwrap().as_ref().unwrap_err().kind(),
        Kind::Cancelled
    );
}

/// What is known is not launched, whatever stage it is of; what has another fingerprint is, and under a new number.
#[test]
fn a_replay_brings_the_plan_to_where_it_was() {
    let (old, seen) = driver(&[2, 2]);
    drop(old);
    let plan = Counted {
        stages: [2, 2].into(),
        seen: Arc::clone(&seen),
    };
    let mut replay = Replay::default();
    replay.tried(3, 6);
    for task in 0..3 {
        replay.done(task, spec().fingerprint(), report(u64::from(task)));
    }
    replay.done(3, spec().fingerprint() ^ 1, report(99));
    assert_eq!(replay.len(), 4);
    let mut driver = Driver::resume(Box::new(plan), RetryPolicy::default(), replay);
    let actions = driver.handle(0, DriverEvent::Started { slots: 2 });
    assert!(
        matches!(
            actions[..],
            [
                Action::BeginStage { kept: 2, .. },
                Action::BeginStage { kept: 1, .. },
                Action::Launch {
                    id: AttemptId {
                        task: 3,
                        attempt: 7
                    },
                    ..
                },
            ]
        ),
        "{actions:?}"
    );
    let id = AttemptId {
        task: 3,
        attempt: 7,
    };
    let report = report(3);
    let actions = driver.handle(1, DriverEvent::Finished { id, report });
    assert_eq!(outcome(&actions), Some(&Ok(())));
    assert_eq!(driver.kept_tasks(), 3);
    let wanted: Vec<Vec<u64>> = vec![vec![], vec![0, 1], vec![2, 3]];
    assert_eq!(*seen.lock().unwrap(), wanted);
}

/// A plan of one stage that can do without some of its tasks; keeps how many reports it was given.
struct Tolerant {
    most: usize,
    given_up: usize,
    begun: bool,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl Plan for Tolerant {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        if self.begun {
            *self.seen.lock().unwrap() = reports.iter().map(number_of).collect();
            return Ok(None);
        }
        self.begun = true;
        let tasks = (0..10).map(|_| spec()).collect();
        Ok(Some(Stage::new("stage", 0, tasks)))
    }

    fn without(&mut self, _task: &TaskSpec, error: &Error) -> Option<TaskReport> {
        self.given_up += 1;
        (error.kind() == Kind::UserCode && self.given_up <= self.most).then(|| report(1000))
    }
}

proptest! {
    /// A job is done without tasks that failed for good, up to as many as its plan says, and fails with one more.
    #[test]
    fn a_job_is_done_without_tasks_that_its_plan_can_spare(
        bad in proptest::collection::btree_set(0_u32..10, 0..8), most in 0_usize..8, slots in 1_usize..4,
    ) {
        let seen = Arc::default();
        let plan = Tolerant { most, given_up: 0, begun: false, seen: Arc::clone(&seen) };
        let policy = RetryPolicy {
            retries: 2,
            first_wait_ms: 1,
            ..RetryPolicy::default()
        };
        let mut driver = Driver::new(Box::new(plan), policy);
        let (mut running, mut tries) = (VecDeque::new(), BTreeMap::<u32, u32>::new());
        let (mut now_ms, mut outcome) = (0, None);
        let mut actions = driver.handle(now_ms, DriverEvent::Started { slots });
        while outcome.is_none() {
            for action in actions {
                match action {
                    Action::Launch { id, .. } => running.push_back(id),
                    Action::Complete { outcome: ended } => outcome = Some(ended),
                    _ => {}
                }
            }
            now_ms += 10;
            let event = match running.pop_front() {
                Some(id) if bad.contains(&id.task) => {
                    *tries.entry(id.task).or_default() += 1;
                    let error = Error::new(Kind::UserCode, "run", "it fails").retryable_error();
                    DriverEvent::Failed { id, error }
                }
                Some(id) => DriverEvent::Finished { id, report: report(u64::from(id.task)) },
                None => DriverEvent::Woken,
            };
            actions = driver.handle(now_ms, event);
        }
        prop_assert_eq!(outcome.unwrap().is_ok(), bad.len() <= most);
        if bad.len() <= most {
            let expected: Vec<u64> =
                (0..10).map(|task| if bad.contains(&task) { 1000 } else { u64::from(task) }).collect();
            prop_assert_eq!(&*seen.lock().unwrap(), &expected);
            prop_assert!(tries.values().all(|tries| *tries == 3));
        }
    }
}
