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
mod workers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use gristmill_engine::driver::{Action, Driver, DriverEvent, RetryPolicy};
use gristmill_engine::error::Result;
use gristmill_engine::task::AttemptId;

use self::job::{Job, Reports};
use self::judge::{all_well, assert_caught};
use self::model::Model;
use super::support::Numbers;

const CLUSTERS: Range<u64> = 0..10_000;

/// No cluster here has business for longer: 10 hours.
const END_MS: u64 = 36_000_000;

/// As a job of user code on a cluster has it.
const POLICY: RetryPolicy = RetryPolicy {
    retries: 4,
    reduce_retries: 4,
    speculative: true,
    reduce_speculative: true,
    first_wait_ms: 50,
    rounds: 3,
};

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
    /// It takes what a worker made that had been taken for dead for what the attempt made that counts.
    PublishesZombies,
    /// It launches tasks before what they need is there, which they wait for in their slots.
    LaunchesTooEarly,
    /// It does not hear that a task which was done again gave something else.
    MixesVersions,
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
    /// A worker joins.
    Joins,
    /// A worker is given nothing more.
    Drains {
        worker: usize,
    },
    Wake,
    Cancel,
    DriverKilled,
}

#[derive(Debug, Default)]
struct Worker {
    down: bool,
    /// It is given nothing more.
    drained: bool,
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
    /// Attempts that wait on their workers for what they need.
    waiting: Vec<AttemptId>,
    /// Which worker keeps the output of each task that was through.
    outputs: BTreeMap<u32, usize>,
    /// Where each attempt was that was through.
    made: BTreeMap<AttemptId, usize>,
    late: u32,
    changed: u32,
    /// Attempts that were launched while all slots were taken.
    waited: u32,
    begun_again: u32,
    /// One attempt in so many fails; a crash every so many milliseconds.
    failing: u64,
    crash_ms: u64,
    stalls: bool,
    /// One attempt in so many gives something else than others at its task.
    fickle: u64,
    /// Whether tasks that take long may have another attempt.
    impatient: bool,
    /// How many attempts wait beside those that run, at most; and how many may, in a stage of short tasks.
    ahead: usize,
    ahead_most: usize,
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
    workers_changed: u32,
    attempts_waited: u32,
    begun_again: u32,
    gave_up_on_versions: u32,
}

/// Runs a cluster to its end; says what was not as it must be.
fn simulate(seed: u64, bug: Option<Bug>) -> Result<Seen, String> {
    simulate_job(seed, bug, Job::any)
}

/// The same for a job of some kind.
fn simulate_job(seed: u64, bug: Option<Bug>, job: fn(&mut Numbers) -> Job) -> Result<Seen, String> {
    let (mut cluster, driver, reports) = begin(seed, bug, job);
    cluster.fickle = [0, 0, 2, 20][(seed % 4) as usize];
    cluster.ahead_most = [0, 0, 1, 7][(seed / 4 % 4) as usize];
    cluster.finish(driver, reports)
}

/// A cluster that follows from a seed, and its first driver.
fn begin(seed: u64, bug: Option<Bug>, job: fn(&mut Numbers) -> Job) -> (Cluster, Driver, Reports) {
    let mut numbers = Numbers(seed);
    let mut job = job(&mut numbers);
    job.hides_needs = bug == Some(Bug::LaunchesTooEarly);
    let job = Arc::new(job);
    let (plan, reports) = job.plan();
    let driver = Driver::new(plan, POLICY);
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
        waiting: Vec::new(),
        outputs: BTreeMap::new(),
        made: BTreeMap::new(),
        late: 0,
        changed: 0,
        waited: 0,
        begun_again: 0,
        failing: [0, 0, 4, 20][numbers.below(4) as usize],
        crash_ms: [0, 0, 3_000, 20_000][numbers.below(4) as usize],
        stalls: numbers.below(3) == 0,
        fickle: 0,
        impatient: numbers.below(2) == 0,
        ahead: 0,
        ahead_most: 0,
        model: Model {
            job,
            may_wait: bug == Some(Bug::LaunchesTooEarly),
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
        let slots = self.slots();
        for worker in 0..self.workers.len() * usize::from(self.numbers.below(3) == 0) {
            let [joins, drains] = [0, 0].map(|_| self.numbers.below(10_000));
            self.expect(joins, Happening::Joins);
            self.expect(drains, Happening::Drains { worker });
        }
        let mut events = VecDeque::from([DriverEvent::Started { slots }]);
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
    fn record(&mut self, driver: &Driver, event: &DriverEvent) -> Result<(), String> {
        match event {
            DriverEvent::OutputLost { task } => self.model.loses(*task),
            DriverEvent::Ahead { attempts } => self.ahead = *attempts,
            DriverEvent::Finished { id, .. } | DriverEvent::Differs { id, .. } => {
                if !driver.awaits(*id) && self.bug != Some(Bug::TwoWinners) {
                    self.late += 1;
                    return Ok(());
                }
                self.model.counts(*id)?;
                self.history.ended_well(*id);
                self.wake_waiting();
                if let Some(worker) = self.made.get(id) {
                    self.outputs.insert(id.task, *worker);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What reaches the driver: all of it, unless it has a bug.
    fn heard(&self, event: DriverEvent) -> Option<DriverEvent> {
        match (self.bug, event) {
            (Some(Bug::IgnoresLostOutputs), DriverEvent::OutputLost { .. }) => None,
            (Some(Bug::TakesLostForFinished), DriverEvent::Lost { id }) => {
                let report = self.model.job.report(id);
                Some(DriverEvent::Finished { id, report })
            }
            (Some(Bug::MixesVersions), DriverEvent::Differs { id, report }) => {
                Some(DriverEvent::Finished { id, report })
            }
            (_, event) => Some(event),
        }
    }

    /// Does what the driver says; the job's outcome when it is over.
    fn obey(&mut self, action: Action) -> Result<Option<Result<()>>, String> {
        match action {
            Action::Launch { id, spec } => {
                if self.bug == Some(Bug::GivesBackTooEarly) {
                    let report = self.model.job.report(id);
                    self.model.gives_back(&spec.consumed(&report))?;
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
            Action::ReleaseSpace { spent } => self.model.gives_back(&spent)?,
            Action::Forget { tasks } => self.forget_tasks(&tasks),
            Action::WakeAt { at_ms } => self.expect(at_ms, Happening::Wake),
            Action::BeginStage { .. } => self.ahead = 0,
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
        if self.running.len() > self.slots() + self.ahead {
            return Err("more attempts than slots".into());
        }
        self.waited += u32::from(self.running.len() > self.slots());
        self.queue.push_back(id);
        Ok(())
    }

    fn happens(&mut self, happening: Happening, events: &mut VecDeque<DriverEvent>) {
        match happening {
            Happening::Wake => events.push_back(DriverEvent::Woken),
            Happening::Cancel => {
                self.cancelled = true;
                events.push_back(DriverEvent::Cancel);
            }
            Happening::Back { worker } => {
                self.workers[worker].down = false;
                self.next_crash(worker);
            }
            Happening::Crash { worker } => self.crash(worker, events),
            Happening::Joins => self.changes(None, events),
            Happening::Drains { worker } => self.changes(Some(worker), events),
            Happening::Through { id, well } => self.ends(id, well, events),
            Happening::Late { id } => events.push_back(self.late(id)),
            Happening::Straggles { task } => self.straggles(task, events),
            Happening::DriverKilled => {}
        }
    }

    /// Somebody notices that a task takes long.
    fn straggles(&mut self, task: u32, events: &mut VecDeque<DriverEvent>) {
        let goes_on = |id: &AttemptId| id.task == task && !self.model.stopping.contains(id);
        if self.running.iter().any(goes_on) {
            self.model.straggling.insert(task);
            events.push_back(DriverEvent::Straggles { task });
        }
    }

    fn lose(&mut self, id: AttemptId, events: &mut VecDeque<DriverEvent>) {
        *self.losses.entry(id.task).or_default() += 1;
        events.push_back(DriverEvent::Lost { id });
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
    assert!(sum(|seen| seen.workers_changed) > 5_000 && sum(|seen| seen.attempts_waited) > 5_000);
    assert!(sum(|seen| seen.begun_again) > 500 && sum(|seen| seen.gave_up_on_versions) > 10);
}

/// The rounds of a shuffle, planned by typed stages that loop.
#[test]
fn rounds_of_a_shuffle_come_to_their_end() {
    let clusters = all_well(|seed| simulate_job(seed, None, Job::in_rounds));
    let sum = |of: fn(&Seen) -> u32| clusters.iter().map(of).sum::<u32>();
    assert!(sum(|seen| seen.succeeded) > 5_000 && sum(|seen| seen.tasks_done_again) > 2_000);
    assert!(sum(|seen| seen.attempts_lost) > 5_000 && sum(|seen| seen.begun_again) > 500);
    assert_caught(Bug::MixesVersions, |seed| {
        simulate_job(seed, Some(Bug::MixesVersions), Job::in_rounds)
    });
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
        Bug::PublishesZombies,
        Bug::LaunchesTooEarly,
        Bug::MixesVersions,
    ] {
        assert_caught(bug, |seed| simulate(seed, Some(bug)));
    }
}
