//! Which agent is given a task.
//!
//! ```text
//!   near   the agent with most bytes of the runs that the task reads, if it has room
//!   else   the one with most room; one that fails often, or on which the task failed, is the last choice
//! ```
//!
//! A look-up in an ordered set: a job of a million tasks on ten thousand nodes does not look at all of them each time.
//!
//! Decision: docs/decisions/agent-choice.md.

use std::collections::{BTreeMap, BTreeSet};

/// How good a choice an agent is: the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// It has no room, but may be given more all the same.
    pub is_full: bool,
    /// It fails often.
    pub is_last: bool,
    /// How many thousandths of its room are taken.
    pub load: usize,
}

/// The agents that may be given tasks.
///
/// ```
/// use gristmill_engine::runner::cluster::{AgentSelector, Rank};
/// let rank = |load| Some(Rank { is_full: load == 1000, is_last: false, load });
/// let mut selector = AgentSelector::default();
/// selector.note(0, rank(500));
/// selector.note(1, rank(0));
/// assert_eq!(selector.pick(None, &[]), Some(1));
/// assert_eq!(selector.pick(None, &[0]), Some(0)); // where most of what it reads lies
/// ```
#[derive(Debug, Default)]
pub struct AgentSelector {
    ranks: BTreeMap<u32, Rank>,
    best: BTreeSet<(Rank, u32)>,
}

impl AgentSelector {
    /// Notes how good a choice an agent is now; none where it is given nothing more.
    pub fn note(&mut self, agent: u32, rank: Option<Rank>) {
        let before = match rank {
            Some(rank) => self.ranks.insert(agent, rank),
            None => self.ranks.remove(&agent),
        };
        if before != rank {
            before.map(|before| self.best.remove(&(before, agent)));
            rank.map(|rank| self.best.insert((rank, agent)));
        }
    }

    /// Whether another agent than this one has room, and does not fail often.
    pub fn has_room_beside(&self, agent: u32) -> bool {
        let has_room = |rank: &Rank| !rank.is_full && !rank.is_last;
        let best = self.best.iter().take(2);
        best.filter(|(_, other)| *other != agent)
            .any(|(rank, _)| has_room(rank))
    }

    /// The agent for a task that failed on another one, or has an attempt there, and reads what lies on these, most of it on the first.
    pub fn pick(&self, failed_on: Option<u32>, near: &[u32]) -> Option<u32> {
        let has_room = |agent: &u32| {
            let rank = self.ranks.get(agent);
            rank.is_some_and(|rank| !rank.is_full && !rank.is_last) && failed_on != Some(*agent)
        };
        if let Some(nearest) = near.iter().find(|agent| has_room(agent)) {
            return Some(*nearest);
        }
        let mut others = self.best.iter();
        let other = others.find(|(_, agent)| failed_on != Some(*agent));
        let again =
            failed_on.filter(|agent| self.ranks.get(agent).is_some_and(|rank| !rank.is_full));
        match other {
            Some((rank, agent)) if !rank.is_full || again.is_none() => Some(*agent),
            _ => again.or_else(|| self.best.first().map(|(_, agent)| *agent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(is_full: bool, is_last: bool, load: usize) -> Option<Rank> {
        Some(Rank {
            is_full,
            is_last,
            load,
        })
    }

    #[test]
    fn the_agent_with_most_room_is_chosen_and_not_the_one_that_failed() {
        let mut selector = AgentSelector::default();
        assert_eq!(selector.pick(None, &[]), None);
        selector.note(0, rank(false, false, 500));
        selector.note(1, rank(false, false, 0));
        selector.note(2, rank(true, false, 1000));
        selector.note(3, rank(false, true, 0));
        assert_eq!(selector.pick(None, &[]), Some(1));
        assert_eq!(selector.pick(Some(1), &[]), Some(0));
        selector.note(0, None);
        assert_eq!(selector.pick(Some(1), &[]), Some(3), "one that fails often");
        selector.note(3, None);
        assert_eq!(
            selector.pick(Some(1), &[]),
            Some(1),
            "rather than wait for a full one"
        );
        selector.note(1, rank(true, false, 1000));
        assert_eq!(selector.pick(Some(1), &[]), Some(2));
        selector.note(2, None);
        assert_eq!(selector.pick(Some(1), &[]), Some(1), "there is no other");
    }

    #[test]
    fn a_task_goes_to_what_it_reads_where_there_is_room() {
        let mut selector = AgentSelector::default();
        selector.note(0, rank(false, false, 0));
        selector.note(1, rank(false, false, 500));
        selector.note(2, rank(true, false, 1000));
        selector.note(3, rank(false, true, 0));
        let near = [2, 3, 7, 1, 0];
        assert_eq!(
            selector.pick(None, &near),
            Some(1),
            "2 is full, 3 fails often, 7 is gone"
        );
        assert_eq!(selector.pick(Some(1), &near), Some(0));
    }
}
