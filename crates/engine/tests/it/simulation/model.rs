//! What a naive model knows of a cluster: which attempt of each task counts, and what was given back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gristmill_engine::task::{AttemptId, ReleasedSpace};
use twox_hash::XxHash3_64;

use super::job::{Job, ids};

#[derive(Debug, Default)]
pub struct Model {
    pub job: Arc<Job>,
    /// The attempt that counts for each task, as the driver was told.
    pub winners: BTreeMap<u32, AttemptId>,
    pub launched: BTreeSet<AttemptId>,
    /// Every attempt that counted once.
    pub through: BTreeSet<AttemptId>,
    /// What a task made for another, and that was given back.
    pub given_back: BTreeSet<(u32, u32)>,
    /// Tasks that may have another attempt beside the one that runs.
    pub straggling: BTreeSet<u32>,
    /// Attempts that were told to stop.
    pub stopping: BTreeSet<AttemptId>,
    /// How many second attempts were begun.
    pub beside: u32,
    /// What each attempt made, as a number: it follows from what it read, and from chance.
    pub made: BTreeMap<AttemptId, u64>,
    /// What each attempt had read of the tasks that it needs.
    pub read: BTreeMap<AttemptId, Vec<(u32, u64)>>,
    /// What is there of each task, or was before it was lost.
    pub current: BTreeMap<u32, u64>,
    /// Whether tasks may be launched before what they need is done: they wait for it.
    pub may_wait: bool,
}

impl Model {
    pub fn launches(&mut self, id: AttemptId, running: &BTreeSet<AttemptId>) -> Result<(), String> {
        let task = id.task;
        if !self.launched.insert(id) {
            return Err(format!("{id:?} launched twice"));
        }
        let straggles = self.straggling.remove(&task);
        let goes_on = |other: &&AttemptId| other.task == task && !self.stopping.contains(other);
        if running.iter().any(|other| goes_on(&other)) {
            if !straggles {
                return Err(format!("{id:?} beside another attempt"));
            }
            self.beside += 1;
        }
        if let Some(winner) = self.winners.get(&task) {
            return Err(format!("{id:?} launched, and {winner:?} counts"));
        }
        for need in self.job.needs(task).iter().filter(|_| !self.may_wait) {
            if !self.winners.contains_key(need) {
                return Err(format!("{id:?} launched before task {need} is done"));
            }
            if self.is_given_back(*need, task) {
                return Err(format!("{id:?} launched, and its input was given back"));
            }
        }
        Ok(())
    }

    pub fn is_given_back(&self, of: u32, to: u32) -> bool {
        self.given_back.contains(&(of, to))
    }

    /// A report of this attempt is in the history, as that of its task.
    pub fn counts(&mut self, id: AttemptId) -> Result<(), String> {
        self.given_back.retain(|(of, _)| *of != id.task);
        self.through.insert(id);
        self.current
            .extend(self.made.get(&id).map(|made| (id.task, *made)));
        match self.winners.insert(id.task, id) {
            Some(other) => Err(format!("{id:?} and {other:?} both count")),
            None => Ok(()),
        }
    }

    /// An attempt reads what is there of what it needs, and makes something of it.
    pub fn makes(&mut self, id: AttemptId, salt: u64) {
        let needs = self.job.needs(id.task).iter();
        let now = |need: &u32| (*need, self.current.get(need).copied().unwrap_or_default());
        let read: Vec<(u32, u64)> = needs.map(now).collect();
        let words = [u64::from(id.task), salt].into_iter();
        let words = words.chain(
            read.iter()
                .flat_map(|(task, made)| [u64::from(*task), *made]),
        );
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.made.insert(id, XxHash3_64::oneshot(&bytes));
        self.read.insert(id, read);
    }

    /// Whether an attempt made something else than what was there of its task.
    pub fn differs(&self, id: AttemptId) -> bool {
        let before = self.current.get(&id.task);
        before.is_some_and(|before| self.made.get(&id) != Some(before))
    }

    /// What an attempt made.
    pub fn made(&self, id: AttemptId) -> Option<u64> {
        self.made.get(&id).copied()
    }

    /// What a task made is of no use any more.
    pub fn forgets(&mut self, task: u32) {
        self.winners.remove(&task);
        self.current.remove(&task);
        self.given_back
            .retain(|(of, to)| *of != task && *to != task);
    }

    /// The driver hears that what a task made is gone: what it used up is to be made again, too.
    pub fn loses(&mut self, task: u32) {
        if self.winners.remove(&task).is_some() && self.job.uses_up(task) {
            let job = Arc::clone(&self.job);
            job.needs(task).iter().for_each(|need| self.loses(*need));
        }
    }

    /// The driver has this given back.
    pub fn gives_back(&mut self, spent: &[ReleasedSpace]) -> Result<(), String> {
        for ReleasedSpace { run, .. } in spent {
            match ids(run) {
                (None, of, to) => {
                    if !self.winners.contains_key(&to) {
                        return Err(format!("{run:?} given back, and task {to} is not done"));
                    }
                    self.given_back.insert((of, to));
                }
                (Some(_), task, attempt) => {
                    if self.winners.get(&task) == Some(&AttemptId { task, attempt }) {
                        return Err(format!("{run:?} given back, and it counts"));
                    }
                }
            }
        }
        Ok(())
    }
}
