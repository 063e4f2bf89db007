//! The workers of a simulated cluster: what they are given, how it ends, and what goes when they crash.

use std::collections::VecDeque;

use gristmill_engine::driver::DriverEvent;
use gristmill_engine::error::{Error, Kind};
use gristmill_engine::task::AttemptId;

use super::{Bug, Cluster, Happening, Worker};

impl Cluster {
    /// Gives launched attempts to workers that have nothing to do.
    pub(super) fn place(&mut self) {
        for worker in 0..self.workers.len() {
            let Worker {
                down,
                drained,
                running,
                ..
            } = &self.workers[worker];
            if *down || *drained || running.is_some() {
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

    /// How many attempts may run at once: workers that are down come back.
    pub(super) fn slots(&self) -> usize {
        let taking = self.workers.iter().filter(|worker| !worker.drained);
        taking.count()
    }

    /// A worker joins, or is given nothing more, unless it is the last.
    pub(super) fn changes(&mut self, drains: Option<usize>, events: &mut VecDeque<DriverEvent>) {
        match drains {
            Some(worker) if self.slots() > 1 => self.workers[worker].drained = true,
            Some(_) => return,
            None => {
                self.workers.push(Worker::default());
                self.next_crash(self.workers.len() - 1);
            }
        }
        self.changed += 1;
        let slots = self.slots();
        events.push_back(DriverEvent::Slots { slots });
    }

    pub(super) fn ends(&mut self, id: AttemptId, well: bool, events: &mut VecDeque<DriverEvent>) {
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
            Some(worker)
                if !missing.is_empty() && !stopping && self.bug == Some(Bug::LaunchesTooEarly) =>
            {
                self.workers[worker].running = Some(id);
                self.running.insert(id);
                self.waiting.push(id);
            }
            Some(_) if !missing.is_empty() && !stopping => {
                let gone = missing
                    .into_iter()
                    .map(|task| DriverEvent::OutputLost { task });
                events.extend(gone);
                self.lose(id, events);
            }
            Some(worker) if well => {
                self.made.insert(id, worker);
                let salt = self.fickle_salt(id);
                self.model.makes(id, salt);
                events.push_back(self.finished(id));
                if self.ahead_most > 0 {
                    let attempts = self.known as usize % (self.ahead_most + 1);
                    events.push_back(DriverEvent::Ahead { attempts });
                }
            }
            _ => {
                if !stopping {
                    *self.failures.entry(id.task).or_default() += 1;
                }
                let error = Error::new(Kind::Io, "read", "device error").retryable_error();
                events.push_back(DriverEvent::Failed { id, error });
            }
        }
    }

    /// An attempt is through: the runner compares what it made with what the task had made before.
    fn finished(&self, id: AttemptId) -> DriverEvent {
        let report = self.model.job.report(id);
        if self.model.differs(id) {
            DriverEvent::Differs { id, report }
        } else {
            DriverEvent::Finished { id, report }
        }
    }

    /// A worker that was taken for dead tells of an attempt.
    pub(super) fn late(&self, id: AttemptId) -> DriverEvent {
        let report = self.model.job.report(id);
        let takes_its_place =
            |other: &&AttemptId| other.task == id.task && !self.model.stopping.contains(other);
        match self.running.iter().find(takes_its_place) {
            Some(other) if self.bug == Some(Bug::PublishesZombies) => {
                DriverEvent::Finished { id: *other, report }
            }
            _ => DriverEvent::Finished { id, report },
        }
    }

    /// What makes an attempt's output another one: mostly nothing.
    fn fickle_salt(&mut self, id: AttemptId) -> u64 {
        let is_fickle = self.fickle > 0 && self.numbers.below(self.fickle) == 0;
        u64::from(is_fickle) * (1 + u64::from(id.attempt))
    }

    /// What waits looks again whether what it needs is there.
    pub(super) fn wake_waiting(&mut self) {
        for id in std::mem::take(&mut self.waiting) {
            self.expect(self.now_ms + 1, Happening::Through { id, well: true });
        }
    }

    /// The worker is gone, with what it kept; comes back empty.
    pub(super) fn crash(&mut self, worker: usize, events: &mut VecDeque<DriverEvent>) {
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
                events.push_back(DriverEvent::OutputLost { task });
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
    pub(super) fn forget(&mut self, id: AttemptId) {
        let of_id = |happening: &Happening| matches!(happening, Happening::Through { id: other, .. } if *other == id);
        self.coming.retain(|_, happening| !of_id(happening));
        self.waiting.retain(|other| *other != id);
    }

    /// The plan begins again without what these tasks made.
    pub(super) fn forget_tasks(&mut self, tasks: &[u32]) {
        self.begun_again += 1;
        for task in tasks {
            self.outputs.remove(task);
            self.model.forgets(*task);
        }
    }

    pub(super) fn next_crash(&mut self, worker: usize) {
        if self.crash_ms > 0 {
            let at = self.now_ms
                + 1
                + self
                    .numbers
                    .below(2 * self.crash_ms * self.workers.len() as u64);
            self.expect(at, Happening::Crash { worker });
        }
    }
}
