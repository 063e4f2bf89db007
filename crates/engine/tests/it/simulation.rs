//! The real driver on a virtual clock, over thousands of broken clusters: workers crash and come back empty, stall, are
//! slow, lose outputs, report what they were not asked for any more; attempts fail, and have others beside them; users
//! lose patience. Tasks need each other as any graph says, and use up what they need. A naive model says what must
//! hold in each.
//!
//! Everything follows from a seed: `simulate(seed, None)` replays a cluster. A driver with a planted bug must be caught.

mod job;
mod judge;
mod model;
mod replay;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use gristmill_engine::driver::{Action, Driver, Event, RetryPolicy};
use gristmill_engine::error::{Error, Kind, Result};
use gristmill_engine::task::AttemptId;

use self::job::{Job, Reports};
use self::judge::{all_well, assert_caught};
use self::model::Model;
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
    /// Of two attempts at a task it lets both count.
    TwoWinners,
    /// It gives back what an attempt is to use up before the attempt's report is in the history.
    GivesBackTooEarly,
}

/// What happens of itself.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Through {
        id: AttemptId,
        well: bool,
    },
    /// A worker that was taken for dead tells of an attempt.
    Late {
        id: AttemptId,
    },
    /// A task takes long.
    Straggles {
        task: u32,
    },
    Crash {
        worker: usize,
    },
    Back {
        worker: usize,
    },
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
    workers: Vec<Worker>,
    /// What comes, by time and then by when it was known.
    coming: BTreeMap<(u64, u64), Happening>,
    known: u64,
    now_ms: u64,
    /// Launched, and without a worker yet.
    queue: VecDeque<AttemptId>,
    /// Which worker keeps the output of each task that was through.
    outputs: BTreeMap<u32, usize>,
    /// Where each attempt was that was through.
    made: BTreeMap<AttemptId, usize>,
    late: u32,
    /// One attempt in so many fails; a crash every so many milliseconds.
    failing: u64,
    crash_ms: u64,
    stalls: bool,
    /// Whether tasks that take long may have another attempt.
    impatient: bool,
    // What the naive model knows.
    model: Model,
    running: BTreeSet<AttemptId>,
    failures: BTreeMap<u32, u32>,
    losses: BTreeMap<u32, u32>,
    cancelled: bool,
    history: replay::History,
}

/// What a cluster went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    succeeded: u32,
    cancelled: u32,
    gave_up: u32,
    attempts_failed: u32,
    attempts_lost: u32,
    tasks_done_again: u32,
    attempts_beside: u32,
    reports_too_late: u32,
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
    let job = Arc::new(Job::any(&mut numbers));
    let (plan, reports) = job.plan();
    let driver = Driver::new(plan, RetryPolicy::default());
    let workers = (0..=numbers.below(6))
        .map(|_| Worker {
            slowness: [1, 1, 1, 2, 30][numbers.below(5) as usize],
            ..Worker::default()
        })
        .collect();
    let cluster = Cluster {
        bug,
        workers,
        coming: BTreeMap::new(),
        known: 0,
        now_ms: 0,
        queue: VecDeque::new(),
        outputs: BTreeMap::new(),
        made: BTreeMap::new(),
        late: 0,
        failing: [0, 0, 4, 20][numbers.below(4) as usize],
        crash_ms: [0, 0, 3_000, 20_000][numbers.below(4) as usize],
        stalls: numbers.below(3) == 0,
        impatient: numbers.below(2) == 0,
        model: Model {
            job,
            ..Model::default()
        },
        running: BTreeSet::new(),
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
                self.record(driver, &event)?;
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

    /// What goes to the history before the driver hears of it: of each task one report.
    fn record(&mut self, driver: &Driver, event: &Event) -> Result<(), String> {
        match event {
            Event::OutputLost { task } => self.model.loses(*task),
            Event::Finished { id, .. } => {
                if !driver.awaits(*id) && self.bug != Some(Bug::TwoWinners) {
                    self.late += 1;
                    return Ok(());
                }
                self.model.counts(*id)?;
                self.history.ended_well(*id);
                if let Some(worker) = self.made.get(id) {
                    self.outputs.insert(id.task, *worker);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What reaches the driver: all of it, unless it has a bug.
    fn heard(&self, event: Event) -> Option<Event> {
        match (self.bug, event) {
            (Some(Bug::IgnoresLostOutputs), Event::OutputLost { .. }) => None,
            (Some(Bug::TakesLostForFinished), Event::Lost { id }) => Some(self.finished(id)),
            (_, event) => Some(event),
        }
    }

    /// Does what the driver says; the job's outcome when it is over.
    fn obey(&mut self, action: Action) -> Result<Option<Result<()>>, String> {
        match action {
            Action::Launch { id, spec } => {
                if self.bug == Some(Bug::GivesBackTooEarly) {
                    let report = self.model.job.report(id);
                    self.model.gives_back(&spec.used_up(&report))?;
                }
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
                let well = self.numbers.below(3) == 0;
                self.forget(id);
                self.model.stopping.insert(id);
                self.expect(soon, Happening::Through { id, well });
            }
            Action::GiveBack { spent } => self.model.gives_back(&spent)?,
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
        self.model.launches(id, &self.running)?;
        if self.cancelled {
            return Err(format!("{id:?} launched after the end was asked for"));
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
            if self.impatient && self.numbers.below(3) == 0 {
                let at_ms = self.now_ms + 1 + self.numbers.below(1_000);
                self.expect(at_ms, Happening::Straggles { task: id.task });
            }
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
            Happening::Late { id } => events.push_back(self.finished(id)),
            Happening::Straggles { task } => self.straggles(task, events),
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
        let stopping = self.model.stopping.contains(&id);
        let is_missing = |task: &&u32| {
            !self.outputs.contains_key(*task) || self.model.is_given_back(**task, id.task)
        };
        let needs = self.model.job.needs(id.task).iter();
        let missing: Vec<u32> = needs.filter(is_missing).copied().collect();
        match worker {
            // Whoever is told to stop has no claims: what it reads may have been given back.
            Some(_) if !missing.is_empty() && !stopping => {
                let gone = missing.into_iter().map(|task| Event::OutputLost { task });
                events.extend(gone);
                self.lose(id, events);
            }
            Some(worker) if well => {
                self.made.insert(id, worker);
                events.push_back(self.finished(id));
            }
            _ => {
                if !stopping {
                    *self.failures.entry(id.task).or_default() += 1;
                }
                let error = Error::new(Kind::Io, "read", "device error").retryable_error();
                events.push_back(Event::Failed { id, error });
            }
        }
    }

    fn finished(&self, id: AttemptId) -> Event {
        let report = self.model.job.report(id);
        Event::Finished { id, report }
    }

    /// Somebody notices that a task takes long.
    fn straggles(&mut self, task: u32, events: &mut VecDeque<Event>) {
        let goes_on = |id: &AttemptId| id.task == task && !self.model.stopping.contains(id);
        if self.running.iter().any(goes_on) {
            self.model.straggling.insert(task);
            events.push_back(Event::Straggles { task });
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
                events.push_back(Event::OutputLost { task });
            }
        }
        if let Some(id) = self.workers[worker].running.take() {
            self.forget(id);
            if self.running.remove(&id) {
                self.lose(id, events);
                if self.numbers.below(4) == 0 {
                    let later = self.now_ms + self.numbers.below(20_000);
                    self.expect(later, Happening::Late { id });
                }
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
}

#[test]
fn no_cluster_makes_the_driver_do_wrong() {
    let clusters = all_well(|seed| simulate(seed, None));
    // They were broken enough to mean something.
    let sum = |of: fn(&Seen) -> u32| clusters.iter().map(of).sum::<u32>();
    assert!(sum(|seen| seen.succeeded) > 5_000 && sum(|seen| seen.cancelled) > 100);
    assert!(sum(|seen| seen.gave_up) > 20 && sum(|seen| seen.attempts_failed) > 5_000);
    assert!(sum(|seen| seen.attempts_lost) > 5_000 && sum(|seen| seen.tasks_done_again) > 2_000);
    assert!(sum(|seen| seen.attempts_beside) > 2_000 && sum(|seen| seen.reports_too_late) > 1_000);
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
        Bug::TwoWinners,
        Bug::GivesBackTooEarly,
    ] {
        assert_caught(bug, |seed| simulate(seed, Some(bug)));
    }
}
