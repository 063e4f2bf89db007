//! Clusters whose driver is killed, too: a new one is told what the history says, and goes on.
//!
//! The history is what workers wrote before anybody heard of it: reports of attempts that were through, and which
//! attempts had begun. What workers kept is still there, unless it was lost meanwhile, which nobody tells the new
//! driver.

use std::collections::{BTreeMap, VecDeque};

use gristmill_engine::driver::{Driver, DriverEvent, Replay};
use gristmill_engine::task::AttemptId;

use super::job::{Job, Reports};
use super::judge::{all_well, assert_caught};
use super::{Cluster, Happening, POLICY, Seen, begin};

/// What may be wrong with going on, to see whether it would be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayBug {
    /// What had begun counts as done.
    TakesBegunForDone,
    /// Reports come under the number of the next task.
    ShiftsTasks,
    /// Numbers of attempts are given a second time.
    ForgetsAttempts,
    /// It does again what it was told is done.
    DoesAllAgain,
}

/// A driver that never lives long enough gets nowhere, which is nobody's fault.
const KILLS_MAX: u32 = 5;

/// What a history says.
#[derive(Debug, Default)]
pub struct History {
    pub bug: Option<ReplayBug>,
    /// A driver lives about so long.
    pub killing_ms: u64,
    begun: Vec<AttemptId>,
    pub through: BTreeMap<u32, AttemptId>,
    pub kills: u32,
    /// How many tasks the last driver was told of.
    pub told: u32,
}

impl History {
    pub fn began(&mut self, id: AttemptId) {
        self.begun.push(id);
    }

    pub fn ended_well(&mut self, id: AttemptId) {
        self.through.insert(id.task, id);
    }

    fn replay(&mut self, job: &Job) -> Replay {
        let mut replay = Replay::default();
        if self.bug != Some(ReplayBug::ForgetsAttempts) {
            let tried = self.begun.iter();
            tried.for_each(|id| replay.tried(id.task, id.attempt));
        }
        let mut done = self.through.clone();
        if self.bug == Some(ReplayBug::TakesBegunForDone) {
            let begun = self.begun.iter().map(|id| (id.task, *id));
            done.extend(begun);
        }
        let shift = u32::from(self.bug == Some(ReplayBug::ShiftsTasks));
        let told = self.bug != Some(ReplayBug::DoesAllAgain);
        for (task, id) in done.iter().filter(|_| told) {
            let fingerprint = job.spec(*task).fingerprint();
            replay.done(task + shift, fingerprint, job.report(*id));
        }
        self.told = done.len() as u32;
        replay
    }
}

impl Cluster {
    pub(super) fn next_kill(&mut self) {
        if self.history.kills < KILLS_MAX {
            let after = 1 + self.numbers.below(2 * self.history.killing_ms);
            self.expect(self.now_ms + after, Happening::DriverKilled);
        }
    }

    /// Everything that ran is gone, and what was on its way to the driver; what is kept is kept.
    pub(super) fn kill_driver(&mut self, events: &mut VecDeque<DriverEvent>) -> (Driver, Reports) {
        self.history.kills += 1;
        events.clear();
        self.queue.clear();
        self.waiting.clear();
        self.running.clear();
        self.ahead = 0;
        for worker in &mut self.workers {
            worker.running = None;
        }
        let of_driver = |what: &Happening| {
            use Happening::{Late, Straggles, Through, Wake};
            matches!(what, Through { .. } | Late { .. } | Straggles { .. } | Wake)
        };
        self.coming.retain(|_, what| !of_driver(what));
        // The new driver counts anew, and nobody tells it that the user lost patience.
        self.cancelled = false;
        self.failures.clear();
        self.losses.clear();
        self.model.winners.clone_from(&self.history.through);
        self.model.straggling.clear();
        let job = &self.model.job;
        let (plan, reports) = job.plan();
        let driver = Driver::resume(plan, POLICY, self.history.replay(job));
        let slots = self.slots();
        events.push_back(DriverEvent::Started { slots });
        self.next_kill();
        (driver, reports)
    }
}

/// A cluster whose driver is killed now and then.
fn simulate(seed: u64, bug: Option<ReplayBug>) -> Result<Seen, String> {
    let (mut cluster, driver, reports) = begin(seed, None, Job::any);
    cluster.history.bug = bug;
    cluster.history.killing_ms = [300, 1_500, 6_000][(seed % 3) as usize];
    cluster.next_kill();
    cluster.finish(driver, reports)
}

#[test]
fn drivers_that_are_killed_are_followed_by_others_that_go_on() {
    let clusters = all_well(|seed| simulate(seed, None));
    let sum = |of: fn(&Seen) -> u32| clusters.iter().map(of).sum::<u32>();
    assert!(sum(|seen| seen.succeeded) > 5_000 && sum(|seen| seen.cancelled) > 100);
    assert!(sum(|seen| seen.drivers_killed) > 10_000);
    assert!(sum(|seen| seen.tasks_kept) > 10_000 && sum(|seen| seen.tasks_done_again) > 1_000);
}

#[test]
fn a_replay_with_a_bug_is_caught() {
    for bug in [
        ReplayBug::TakesBegunForDone,
        ReplayBug::ShiftsTasks,
        ReplayBug::ForgetsAttempts,
        ReplayBug::DoesAllAgain,
    ] {
        assert_caught(bug, |seed| simulate(seed, Some(bug)));
    }
}
