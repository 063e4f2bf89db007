//! Second attempts at slow tasks: when one begins, and when it does not.

use super::needs::{finish, id, merge, said, samples};
use super::*;

/// A driver of one stage, whose first tasks run.
fn started(tasks: Vec<TaskSpec>, slots: usize, policy: RetryPolicy) -> Driver {
    let mut stage = Some(Stage::new("merge runs", 0, tasks));
    let plan = StagesOf(move || stage.take());
    let mut driver = Driver::new(Box::new(plan), policy);
    driver.handle(0, DriverEvent::Started { slots });
    driver
}

struct StagesOf<F>(F);

impl<F: FnMut() -> Option<Stage> + Send> Plan for StagesOf<F> {
    fn next_stage(&mut self, _reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        Ok((self.0)())
    }
}

fn straggles(driver: &mut Driver, task: u32) -> Vec<String> {
    said(&driver.handle(1, DriverEvent::Straggles { task }))
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_task_has_two_attempts_at_most_and_only_where_a_slot_is_free() {
    let mut driver = started(samples(3), 2, RetryPolicy::default());
    assert_eq!(straggles(&mut driver, 0), NOTHING, "task 2 waits");
    assert_eq!(
        said(&finish(&mut driver, id(1, 0), report(0))),
        ["launch 2.0"]
    );
    assert_eq!(straggles(&mut driver, 0), NOTHING, "no slot is free");
    finish(&mut driver, id(2, 0), report(0));
    assert_eq!(straggles(&mut driver, 2), NOTHING, "it is done");
    assert_eq!(straggles(&mut driver, 0), ["launch 0.1"]);
    driver.handle(1, DriverEvent::Slots { slots: 5 });
    assert_eq!(straggles(&mut driver, 0), NOTHING, "it has two");
    assert_eq!(driver.counts().speculative, 1);
    driver.handle(2, DriverEvent::Lost { id: id(0, 0) });
    assert_eq!(straggles(&mut driver, 0), ["launch 0.2"]);
}

#[test]
fn no_more_than_ten_run_at_once() {
    let mut driver = started(samples(20), 40, RetryPolicy::default());
    let begun: usize = (0..20).map(|task| straggles(&mut driver, task).len()).sum();
    assert_eq!(begun, 10);
    finish(&mut driver, id(0, 1), report(0));
    assert_eq!(straggles(&mut driver, 19), ["launch 19.1"]);
}

#[test]
fn code_with_effects_has_none() {
    let maps_only = RetryPolicy {
        reduce_speculative: false,
        ..RetryPolicy::default()
    };
    let none = RetryPolicy {
        speculative: false,
        reduce_speculative: false,
        ..RetryPolicy::default()
    };
    let tasks = || vec![merge(&["a", "b"])];
    let mut driver = started(tasks(), 2, maps_only);
    assert_eq!(straggles(&mut driver, 0), ["launch 0.1"]);
    let mut driver = started(tasks(), 2, none);
    assert_eq!(straggles(&mut driver, 0), NOTHING);
}

/// A disk that is full on one node says nothing of the attempt on another one.
#[test]
fn an_attempt_that_fails_for_good_ends_nothing_while_the_other_one_runs() {
    let failed = |attempt| DriverEvent::Failed {
        id: id(0, attempt),
        error: Error::new(Kind::DiskFull, "write a run", "no space").final_error(),
    };
    let mut driver = started(samples(1), 2, RetryPolicy::default());
    straggles(&mut driver, 0);
    assert_eq!(said(&driver.handle(2, failed(1))), NOTHING);
    assert_eq!(
        said(&finish(&mut driver, id(0, 0), report(0))),
        ["complete true"]
    );
    let mut driver = started(samples(1), 2, RetryPolicy::default());
    straggles(&mut driver, 0);
    driver.handle(2, failed(0));
    assert_eq!(said(&driver.handle(3, failed(1))), ["complete false"]);
}
