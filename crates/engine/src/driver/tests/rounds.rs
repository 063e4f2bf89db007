//! Tasks that give something else when they are done again.

use super::needs::{finish, id, merge, said, samples};
use super::*;

/// A plan of a stage for each of these, whose tasks have specs of their own; keeps what it was given in this round.
struct Again {
    stages: Vec<Vec<TaskSpec>>,
    next: usize,
    seen: Arc<Mutex<Vec<Vec<u64>>>>,
    may: bool,
}

impl Plan for Again {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let mut seen = self.seen.lock().unwrap();
        seen.push(reports.iter().map(number_of).collect());
        let tasks = self.stages.get(self.next).cloned();
        self.next += 1;
        Ok(tasks.map(|tasks| Stage::new("stage", 0, tasks)))
    }

    fn restart(&mut self) -> bool {
        self.next = 0;
        self.seen.lock().unwrap().clear();
        self.may
    }
}

fn again(rounds: u32, stages: &[Vec<TaskSpec>]) -> (Driver, Arc<Mutex<Vec<Vec<u64>>>>) {
    let seen = Arc::default();
    let plan = Again {
        stages: stages.to_vec(),
        next: 0,
        seen: Arc::clone(&seen),
        may: true,
    };
    let policy = RetryPolicy {
        rounds,
        ..RetryPolicy::default()
    };
    (Driver::new(Box::new(plan), policy), seen)
}

fn differ(driver: &mut Driver, id: AttemptId, number: u64) -> Vec<String> {
    let report = report(number);
    said(&driver.handle(1, DriverEvent::Differs { id, report }))
}

fn done(driver: &mut Driver, task: u32, attempt: u32, number: u64) -> Vec<String> {
    said(&finish(driver, id(task, attempt), report(number)))
}

#[test]
fn what_has_read_the_first_output_is_done_again_and_all_else_stays() {
    let (mut driver, seen) = again(3, &[samples(3), samples(2)]);
    driver.handle(0, DriverEvent::Started { slots: 3 });
    (0..3).for_each(|task| drop(done(&mut driver, task, 0, u64::from(task))));
    assert_eq!(done(&mut driver, 3, 0, 30), [] as [&str; 0]);
    // Task 2 is lost while task 4 reads it, and gives something else now.
    let actions = driver.handle(1, DriverEvent::OutputLost { task: 2 });
    assert_eq!(said(&actions), ["launch 2.1"]);
    assert_eq!(
        differ(&mut driver, id(2, 1), 21),
        [
            "stage",
            "stage",
            "forget [3]",
            "abort 4.0",
            "launch 3.1",
            "launch 4.1"
        ]
    );
    assert_eq!(driver.rounds(), 1);
    // What the attempt of the round before makes is not used.
    assert_eq!(done(&mut driver, 4, 0, 40), [] as [&str; 0]);
    assert_eq!(done(&mut driver, 3, 1, 31), [] as [&str; 0]);
    assert_eq!(done(&mut driver, 4, 1, 41), ["complete true"]);
    assert_eq!(
        *seen.lock().unwrap(),
        [vec![], vec![0, 1, 21], vec![31, 41]]
    );
}

#[test]
fn an_output_that_nobody_has_read_may_be_another_one() {
    let (mut driver, seen) = again(0, &[samples(2), samples(1)]);
    driver.handle(0, DriverEvent::Started { slots: 1 });
    done(&mut driver, 0, 0, 0);
    driver.handle(1, DriverEvent::OutputLost { task: 0 });
    done(&mut driver, 1, 0, 1);
    assert_eq!(differ(&mut driver, id(0, 1), 7), ["stage", "launch 2.0"]);
    done(&mut driver, 2, 0, 2);
    assert_eq!(*seen.lock().unwrap(), [vec![], vec![7, 1], vec![2]]);
}

#[test]
fn tasks_that_are_done_again_already_go_on() {
    let (mut driver, _) = again(3, &[samples(3), samples(1)]);
    driver.handle(0, DriverEvent::Started { slots: 3 });
    (0..3).for_each(|task| drop(done(&mut driver, task, 0, u64::from(task))));
    for task in 0..2 {
        driver.handle(1, DriverEvent::OutputLost { task });
    }
    assert_eq!(
        differ(&mut driver, id(1, 1), 11),
        ["stage", "forget [0]", "abort 3.0"],
        "task 0 runs already, and the reduce has to wait for it"
    );
    // It may give something else, too: nobody has read it in this round.
    assert_eq!(differ(&mut driver, id(0, 1), 10), ["stage", "launch 3.1"]);
    assert_eq!(driver.rounds(), 1);
}

#[test]
fn what_was_used_up_is_made_again() {
    let merges = vec![merge(&["run-0"]), merge(&["run-1"])];
    let (mut driver, _) = again(3, &[samples(2), merges, samples(1)]);
    driver.handle(0, DriverEvent::Started { slots: 2 });
    (0..2).for_each(|task| drop(done(&mut driver, task, 0, u64::from(task))));
    (2..4).for_each(|task| drop(done(&mut driver, task, 0, u64::from(task))));
    // A merge is lost: what it was made of is made again before it, and the first is another one.
    driver.handle(1, DriverEvent::OutputLost { task: 3 });
    let said = differ(&mut driver, id(0, 1), 9);
    assert!(said.contains(&"forget [1, 2, 3]".to_owned()), "{said:?}");
}

#[test]
fn a_job_does_not_begin_again_for_ever() {
    let (mut driver, _) = again(2, &[samples(1), samples(1)]);
    driver.handle(0, DriverEvent::Started { slots: 9 });
    done(&mut driver, 0, 0, 0);
    for round in 1..=2 {
        driver.handle(1, DriverEvent::OutputLost { task: 0 });
        differ(&mut driver, id(0, round), u64::from(round));
        assert_eq!(driver.rounds(), round);
    }
    driver.handle(1, DriverEvent::OutputLost { task: 0 });
    differ(&mut driver, id(0, 3), 3);
    let mut actions = Vec::new();
    for attempt in 0..=3 {
        actions.extend(finish(&mut driver, id(1, attempt), report(0)));
    }
    let error = outcome(&actions).unwrap().as_ref().unwrap_err();
    assert_eq!((error.kind(), error.retryable()), (Kind::Proof, false));
    assert!(error.to_string().contains("2 times already"), "{error}");
}

#[test]
fn what_is_done_again_does_not_wait_at_agents() {
    let (mut driver, _) = again(0, &[samples(2), samples(6)]);
    driver.handle(0, DriverEvent::Started { slots: 2 });
    (0..2).for_each(|task| drop(done(&mut driver, task, 0, u64::from(task))));
    driver.handle(1, DriverEvent::OutputLost { task: 0 });
    let more = said(&driver.handle(1, DriverEvent::Ahead { attempts: 4 }));
    assert_eq!(
        more,
        [] as [&str; 0],
        "tasks of the stage before may be long"
    );
    assert_eq!(done(&mut driver, 2, 0, 2), ["launch 0.1"], "there is room");
}

#[test]
fn there_may_be_more_room_or_less() {
    let (mut driver, _) = again(0, &[samples(6)]);
    let mut room = |slots| said(&driver.handle(0, DriverEvent::Slots { slots }));
    assert_eq!(room(1), [] as [&str; 0]);
    assert_eq!(driver.handle(0, DriverEvent::Started { slots: 1 }).len(), 2);
    let mut room = |slots| said(&driver.handle(0, DriverEvent::Slots { slots }));
    assert_eq!(room(3), ["launch 1.0", "launch 2.0"]);
    assert_eq!(room(2), [] as [&str; 0]);
    assert_eq!(done(&mut driver, 0, 0, 0), [] as [&str; 0], "two run");
    assert_eq!(done(&mut driver, 1, 0, 0), ["launch 3.0"]);
}

#[test]
fn short_tasks_wait_beside_those_that_run_until_the_next_stage() {
    let (mut driver, _) = again(0, &[samples(5), samples(3)]);
    driver.handle(0, DriverEvent::Started { slots: 1 });
    let mut ahead = |attempts| said(&driver.handle(0, DriverEvent::Ahead { attempts }));
    assert_eq!(ahead(2), ["launch 1.0", "launch 2.0"]);
    assert_eq!(ahead(0), [] as [&str; 0]);
    assert_eq!(done(&mut driver, 0, 0, 0), [] as [&str; 0], "two run");
    let mut ahead = |attempts| said(&driver.handle(0, DriverEvent::Ahead { attempts }));
    assert_eq!(ahead(2), ["launch 3.0"]);
    for task in 1..4 {
        done(&mut driver, task, 0, 0);
    }
    let begun = done(&mut driver, 4, 0, 0);
    let launches = begun.iter().filter(|action| action.starts_with("launch"));
    assert_eq!(launches.collect::<Vec<_>>(), ["launch 5.0"], "{begun:?}");
}
