//! The real driver on a virtual clock, over thousands of broken clusters: workers crash and come back empty, stall, are
//! slow, lose outputs; attempts fail; users lose patience. A naive model says what must hold in each.
//!
//! Everything follows from a seed: `simulate(seed, None)` replays a cluster. A driver with a planted bug must be caught.

mod judge;
mod replay;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use gristmill_engine::driver::{Action, Driver, Event, Plan, RetryPolicy, Stage};
use gristmill_engine::error::{Error, Kind, Result};
use gristmill_engine::order::Entry;
use gristmill_engine::task::{AttemptId, SampleSpec, TaskReport, TaskSpec};

use self::judge::{all_well, assert_caught};
use super::support::Numbers;

const CLUSTERS: Range<u64> = 0..10_000;

/// No cluster here has business for longer: 10 hours.
const END_MS: u64 = 36_000_000;

/// What a driver may do wrong, to see whether it would be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// It does not hear that outputs are gone.
    IgnoresLostOutputs,
    /// Now and then it launches an attempt twice.
    LaunchesTwice,
    /// Now and then it forgets to launch one.
    ForgetsALaunch,
    /// It takes a lost attempt for one that is through.
    TakesLostForFinished,
}

/// Stages of so many tasks, each of which needs the outputs of all tasks of the stage before.
struct Stages {
    left: VecDeque<usize>,
    reports: Reports,
}

impl Stages {
    /// A plan of stages with so many tasks each, and the reports that it gets.
    fn of(tasks: &[usize]) -> (Self, Reports) {
        let reports = Reports::default();
        let plan = Stages {
            left: tasks.iter().copied().collect(),
            reports: Arc::clone(&reports),
        };
        (plan, reports)
    }
}

impl Plan for Stages {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let ids = reports.iter().map(attempt_of).collect();
        self.reports.lock().unwrap().push(ids);
        Ok(self.left.pop_front().map(|tasks| Stage {
            name: "stage",
            bytes: 0,
            tasks: (0..tasks).map(|_| spec_of()).collect(),
        }))
    }
}

/// What every task is to do.
fn spec_of() -> TaskSpec {
    TaskSpec::Sample(SampleSpec {
        stretches: Vec::new(),
        record_bytes: 100,
    })
}

/// A report that says whose it is.
fn report_of(id: AttemptId) -> TaskReport {
    let number = u64::from(id.task) << 16 | u64::from(id.attempt);
    TaskReport::Sample(vec![Entry::new(&[0; 10], number)])
}

fn attempt_of(report: &TaskReport) -> AttemptId {
    let TaskReport::Sample(entries) = report else {
        panic!("{report:?}")
    };
    let number = entries[0].position();
    AttemptId {
        task: (number >> 16) as u32,
        attempt: number as u32 & 0xFFFF,
    }
}

/// What happens of itself.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Through { id: AttemptId, well: bool },
    Crash { worker: usize },
    Back { worker: usize },
    Wake,
    Cancel,
    DriverKilled,
}

#[derive(Debug, Default)]
struct Worker {
    down: bool,
    /// How much longer everything takes here.
    slowness: u64,
    running: Option<AttemptId>,
}

struct Cluster {
    numbers: Numbers,
    bug: Option<Bug>,
    stages: Vec<usize>,
    workers: Vec<Worker>,
    /// What comes, by time and then by when it was known.
    coming: BTreeMap<(u64, u64), Happening>,
    known: u64,
    now_ms: u64,
    /// Launched, and without a worker yet.
    queue: VecDeque<AttemptId>,
    /// Which worker keeps the output of each task that was through.
    outputs: BTreeMap<u32, usize>,
    /// One attempt in so many fails; a crash every so many milliseconds.
    failing: u64,
    crash_ms: u64,
    stalls: bool,
    // What the naive model knows.
    running: BTreeSet<AttemptId>,
    launched: BTreeSet<AttemptId>,
    through: BTreeSet<AttemptId>,
    failures: BTreeMap<u32, u32>,
    losses: BTreeMap<u32, u32>,
    cancelled: bool,
    history: replay::History,
}

/// The reports that each stage of a plan got.
type Reports = Arc<Mutex<Vec<Vec<AttemptId>>>>;

/// What a cluster went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    succeeded: u32,
    cancelled: u32,
    gave_up: u32,
    attempts_failed: u32,
    attempts_lost: u32,
    tasks_done_again: u32,
    drivers_killed: u32,
    tasks_kept: u32,
}

/// Runs a cluster to its end; says what was not as it must be.
fn simulate(seed: u64, bug: Option<Bug>) -> Result<Seen, String> {
    let (cluster, driver, reports) = begin(seed, bug);
    cluster.finish(driver, reports)
}

/// A cluster that follows from a seed, and its first driver.
fn begin(seed: u64, bug: Option<Bug>) -> (Cluster, Driver, Reports) {
    let mut numbers = Numbers(seed);
    let count = |numbers: &mut Numbers, most| 1 + numbers.below(most) as usize;
    let stages: Vec<usize> = (0..count(&mut numbers, 4))
        .map(|_| numbers.below(9) as usize)
        .collect();
    let (plan, reports) = Stages::of(&stages);
    let driver = Driver::new(Box::new(plan), RetryPolicy::default());
    let workers = (0..count(&mut numbers, 6))
        .map(|_| Worker {
            slowness: [1, 1, 1, 2, 30][numbers.below(5) as usize],
            ..Worker::default()
        })
        .collect();
    let cluster = Cluster {
        bug,
        stages,
        workers,
        coming: BTreeMap::new(),
        known: 0,
        now_ms: 0,
        queue: VecDeque::new(),
        outputs: BTreeMap::new(),
        failing: [0, 0, 4, 20][numbers.below(4) as usize],
        crash_ms: [0, 0, 3_000, 20_000][numbers.below(4) as usize],
        stalls: numbers.below(3) == 0,
        running: BTreeSet::new(),
        launched: BTreeSet::new(),
        through: BTreeSet::new(),
        failures: BTreeMap::new(),
        losses: BTreeMap::new(),
        cancelled: false,
        history: replay::History::default(),
        numbers,
    };
    (cluster, driver, reports)
}

impl Cluster {
    fn finish(mut self, mut driver: Driver, mut reports: Reports) -> Result<Seen, String> {
        let outcome = self.run(&mut driver, &mut reports)?;
        self.judge(&outcome, &reports.lock().unwrap())?;
        Ok(self.seen(&outcome))
    }

    fn run(&mut self, driver: &mut Driver, reports: &mut Reports) -> Result<Result<()>, String> {
        for worker in 0..self.workers.len() {
            self.next_crash(worker);
        }
        if self.numbers.below(12) == 0 {
            let at = self.numbers.below(20_000);
            self.expect(at, Happening::Cancel);
        }
        let slots = self.workers.len();
        let mut events = VecDeque::from([Event::Started { slots }]);
        loop {
            while let Some(event) = events.pop_front() {
                let Some(event) = self.heard(event) else {
                    continue;
                };
                for action in driver.handle(self.now_ms, event) {
                    if let Some(outcome) = self.obey(action)? {
                        return Ok(outcome);
                    }
                }
            }
            self.place();
            let Some(((at_ms, _), happening)) = self.coming.pop_first() else {
                return Err("nothing happens any more, and the job is not over".into());
            };
            if at_ms > END_MS {
                return Err(format!("not over after {END_MS} ms"));
            }
            self.now_ms = at_ms;
            if matches!(happening, Happening::DriverKilled) {
                (*driver, *reports) = self.kill_driver(&mut events);
                continue;
            }
            self.happens(happening, &mut events);
        }
    }

    /// What reaches the driver: all of it, unless it has a bug.
    fn heard(&self, event: Event) -> Option<Event> {
        match (self.bug, event) {
            (Some(Bug::IgnoresLostOutputs), Event::OutputLost { .. }) => None,
            (Some(Bug::TakesLostForFinished), Event::Lost { id }) => Some(Event::Finished {
                id,
                report: report_of(id),
            }),
            (_, event) => Some(event),
        }
    }

    /// Does what the driver says; the job's outcome when it is over.
    fn obey(&mut self, action: Action) -> Result<Option<Result<()>>, String> {
        match action {
            Action::Launch { id, .. } => {
                let bugged = self.bug.is_some() && self.numbers.below(10) == 0;
                if bugged && self.bug == Some(Bug::ForgetsALaunch) {
                    return Ok(None);
                }
                self.launch(id)?;
                if bugged && self.bug == Some(Bug::LaunchesTwice) {
                    self.launch(id)?;
                }
            }
            Action::Abort { id } => {
                // It stops when it looks up, which may be after it is through.
                let soon = self.now_ms + self.numbers.below(50);
                self.forget(id);
                self.expect(soon, Happening::Through { id, well: false });
            }
            Action::WakeAt { at_ms } => self.expect(at_ms, Happening::Wake),
            Action::BeginStage { .. } => {}
            Action::Complete { outcome } => {
                if let Some(id) = self.running.first() {
                    return Err(format!("complete, while {id:?} runs"));
                }
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    fn launch(&mut self, id: AttemptId) -> Result<(), String> {
        if !self.launched.insert(id) {
            return Err(format!("{id:?} launched twice"));
        }
        if self.running.iter().any(|other| other.task == id.task) {
            return Err(format!("{id:?} beside another attempt"));
        }
        if self.cancelled {
            return Err(format!("{id:?} launched after the end was asked for"));
        }
        if let Some(done) = self.history.told.get(&id.task) {
            return Err(format!(
                "{id:?} launched, and {done:?} was known to be through"
            ));
        }
        self.history.began(id);
        self.running.insert(id);
        if self.running.len() > self.workers.len() {
            return Err("more attempts than slots".into());
        }
        self.queue.push_back(id);
        Ok(())
    }

    /// Gives launched attempts to workers that have nothing to do.
    fn place(&mut self) {
        for worker in 0..self.workers.len() {
            if self.workers[worker].down || self.workers[worker].running.is_some() {
                continue;
            }
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            self.workers[worker].running = Some(id);
            let mut takes = (1 + self.numbers.below(900)) * self.workers[worker].slowness;
            if self.stalls && self.numbers.below(15) == 0 {
                takes += 600_000;
            }
            let well = self.failing == 0 || self.numbers.below(self.failing) > 0;
            self.expect(self.now_ms + takes, Happening::Through { id, well });
        }
    }

    fn happens(&mut self, happening: Happening, events: &mut VecDeque<Event>) {
        match happening {
            Happening::Wake => events.push_back(Event::Woken),
            Happening::Cancel => {
                self.cancelled = true;
                events.push_back(Event::Cancel);
            }
            Happening::Back { worker } => {
                self.workers[worker].down = false;
                self.next_crash(worker);
            }
            Happening::Crash { worker } => self.crash(worker, events),
            Happening::Through { id, well } => self.ends(id, well, events),
            Happening::DriverKilled => {}
        }
    }

    fn ends(&mut self, id: AttemptId, well: bool, events: &mut VecDeque<Event>) {
        self.queue.retain(|other| *other != id);
        let worker = self
            .workers
            .iter()
            .position(|worker| worker.running == Some(id));
        if let Some(worker) = worker {
            self.workers[worker].running = None;
        }
        if !self.running.remove(&id) {
            return;
        }
        let missing: Vec<u32> = self
            .needs(id.task)
            .filter(|task| !self.outputs.contains_key(task))
            .collect();
        match worker {
            Some(_) if !missing.is_empty() => {
                for task in missing {
                    self.history.told.remove(&task);
                    events.push_back(Event::OutputLost { task });
                }
                self.lose(id, events);
            }
            Some(worker) if well => {
                self.outputs.insert(id.task, worker);
                self.through.insert(id);
                self.history.through(id);
                let report = report_of(id);
                events.push_back(Event::Finished { id, report });
            }
            _ => {
                *self.failures.entry(id.task).or_default() += 1;
                let error = Error::new(Kind::Io, "read", "device error").retryable_error();
                events.push_back(Event::Failed { id, error });
            }
        }
    }

    fn lose(&mut self, id: AttemptId, events: &mut VecDeque<Event>) {
        *self.losses.entry(id.task).or_default() += 1;
        events.push_back(Event::Lost { id });
    }

    /// The worker is gone, with what it kept; comes back empty.
    fn crash(&mut self, worker: usize, events: &mut VecDeque<Event>) {
        self.workers[worker].down = true;
        let gone: Vec<u32> = self
            .outputs
            .iter()
            .filter(|(_, at)| **at == worker)
            .map(|(task, _)| *task)
            .collect();
        let told = self.numbers.below(2) == 0; // else whoever needs them will notice
        for task in gone {
            self.outputs.remove(&task);
            if told {
                self.history.told.remove(&task);
                events.push_back(Event::OutputLost { task });
            }
        }
        if let Some(id) = self.workers[worker].running.take() {
            self.forget(id);
            if self.running.remove(&id) {
                self.lose(id, events);
            }
        }
        let back = self.now_ms + 1 + self.numbers.below(30_000);
        self.expect(back, Happening::Back { worker });
    }

    /// The attempt will not be through when it would have been.
    fn forget(&mut self, id: AttemptId) {
        let of_id = |happening: &Happening| matches!(happening, Happening::Through { id: other, .. } if *other == id);
        self.coming.retain(|_, happening| !of_id(happening));
    }

    fn next_crash(&mut self, worker: usize) {
        if self.crash_ms > 0 {
            let at = self.now_ms
                + 1
                + self
                    .numbers
                    .below(2 * self.crash_ms * self.workers.len() as u64);
            self.expect(at, Happening::Crash { worker });
        }
    }

    fn expect(&mut self, at_ms: u64, happening: Happening) {
        self.known += 1;
        self.coming.insert((at_ms, self.known), happening);
    }

    /// The tasks of the stage before that of `task`.
    fn needs(&self, task: u32) -> Range<u32> {
        let (mut before, mut first) = (0..0, 0);
        for tasks in &self.stages {
            let stage = first..first + *tasks as u32;
            if stage.contains(&task) {
                break;
            }
            (before, first) = (stage.clone(), stage.end);
        }
        before
    }
}

#[test]
fn no_cluster_makes_the_driver_do_wrong() {
    let clusters = all_well(|seed| simulate(seed, None));
    // They were broken enough to mean something.
    let sum = |of: fn(&Seen) -> u32| clusters.iter().map(of).sum::<u32>();
    assert!(sum(|seen| seen.succeeded) > 5_000 && sum(|seen| seen.cancelled) > 100);
    assert!(sum(|seen| seen.gave_up) > 20 && sum(|seen| seen.attempts_failed) > 5_000);
    assert!(sum(|seen| seen.attempts_lost) > 5_000 && sum(|seen| seen.tasks_done_again) > 2_000);
}

/// The same seed is the same cluster.
#[test]
fn a_cluster_is_replayed() {
    for seed in 0..50 {
        let caught = || simulate(seed, Some(Bug::ForgetsALaunch));
        assert_eq!(caught(), caught());
    }
}

#[test]
fn a_driver_with_a_bug_is_caught() {
    for bug in [
        Bug::IgnoresLostOutputs,
        Bug::LaunchesTwice,
        Bug::ForgetsALaunch,
        Bug::TakesLostForFinished,
    ] {
        assert_caught(bug, |seed| simulate(seed, Some(bug)));
    }
}
