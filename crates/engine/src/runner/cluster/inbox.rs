//! What the driver has not heard yet of its agents.
//!
//! ```text
//!   a link for each agent ── add ──▶ one entry for each agent ── next ──▶ the loop of the driver
//! ```
//!
//! The rules that must hold: agents are asked while the driver is busy, since one that is not asked ends; and what waits here does
//! not grow with the time: of an agent there is one entry, with the newest of what it says again and again, and with the attempts
//! that are over, of which there are no more than were launched.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::messages::Events;
use gristmill_base::sync::lock;

/// What is heard of an agent.
#[derive(Debug)]
pub(super) enum AgentMessage {
    /// What happened there.
    Events(Box<Events>),
    /// Nothing any more: it is, or does, this.
    Gone(String),
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: Mutex<InboxState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InboxState {
    /// Who has an entry, the one that has waited longest first.
    turns: VecDeque<u32>,
    events: BTreeMap<u32, Box<Events>>,
    gone: BTreeMap<u32, String>,
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, InboxState> {
        lock(&self.waiting)
    }

    /// Something is heard of an agent.
    pub(super) fn add(&self, agent: u32, heard: AgentMessage) {
        let mut waiting = self.waiting();
        if !waiting.events.contains_key(&agent) && !waiting.gone.contains_key(&agent) {
            waiting.turns.push_back(agent);
        }
        match heard {
            AgentMessage::Events(new) => match waiting.events.get_mut(&agent) {
                Some(events) => events.add(*new),
                None => drop(waiting.events.insert(agent, new)),
            },
            AgentMessage::Gone(why) => drop(waiting.gone.entry(agent).or_insert(why)),
        }
        drop(waiting);
        self.changed.notify_all();
    }

    /// What comes next, if it comes so soon. What happened at an agent comes before that it is gone.
    pub(super) fn next(&self, longest: Duration) -> Option<(u32, AgentMessage)> {
        let none = |waiting: &mut InboxState| waiting.turns.is_empty();
        let waited = self
            .changed
            .wait_timeout_while(self.waiting(), longest, none);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        let agent = waiting.turns.pop_front()?;
        if let Some(events) = waiting.events.remove(&agent) {
            if waiting.gone.contains_key(&agent) {
                waiting.turns.push_front(agent);
            }
            return Some((agent, AgentMessage::Events(events)));
        }
        let why = waiting.gone.remove(&agent)?;
        Some((agent, AgentMessage::Gone(why)))
    }
}

impl Events {
    /// Takes in what happened after this.
    fn add(&mut self, mut new: Events) {
        new.over.splice(..0, self.over.drain(..));
        new.first = self.first;
        *self = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::cluster::messages::{AttemptOver, Launch};
    use gristmill_tasks::task::AttemptId;

    fn over(task: u32) -> AttemptOver {
        let id = AttemptId { task, attempt: 0 };
        AttemptOver {
            launch: Launch { id, number: 0 },
            bytes: 0,
            took_us: 0,
            reply: Default::default(),
        }
    }

    fn events(begun: u64, over: Vec<AttemptOver>) -> AgentMessage {
        AgentMessage::Events(Box::new(Events {
            begun,
            over,
            ..Events::default()
        }))
    }

    #[test]
    fn what_waits_for_a_busy_driver_does_not_grow() {
        let inbox = Inbox::default();
        for begun in 0..1000 {
            let over = (begun % 500 == 0).then(|| over(begun as u32));
            inbox.add(1, events(begun, over.into_iter().collect()));
            inbox.add(2, events(begun, Vec::new()));
        }
        inbox.add(1, AgentMessage::Gone("it is silent".into()));
        let next = || inbox.next(Duration::ZERO);
        let Some((1, AgentMessage::Events(first))) = next() else {
            panic!("events of agent 1");
        };
        assert_eq!(first.begun, 999);
        let tasks: Vec<u32> = first.over.iter().map(|over| over.launch.id.task).collect();
        assert_eq!(tasks, [0, 500]);
        assert!(matches!(next(), Some((1, AgentMessage::Gone(_)))));
        assert!(matches!(next(), Some((2, AgentMessage::Events(_)))));
        assert!(next().is_none());
    }
}
