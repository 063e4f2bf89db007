//! What changes in a cluster while a job runs, from the process that began the agents to the loop of the driver.
//!
//! ```text
//!   joined, drained ──▶ Changes ──▶ joining.rs
//!   headless        ──▶ Changes ──▶ none_left: why no agent is left
//! ```

use std::sync::{Mutex, PoisonError};

use super::agent::Hello;
use super::{Cluster, check_version};
use gristmill_base::error::{Error, Kind, Result};

/// What changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Joined { number: u32, hello: Box<Hello> },
    Drained { number: u32 },
}

/// What has changed since somebody looked.
#[derive(Debug, Default)]
pub(super) struct Changes {
    of_agents: Mutex<Vec<Change>>,
    /// The address of the cluster's head, while it does not answer.
    headless: Mutex<Option<String>>,
}

impl Changes {
    fn add(&self, change: Change) {
        let changes = self.of_agents.lock();
        changes.unwrap_or_else(PoisonError::into_inner).push(change);
    }

    /// What has changed of agents since the last call.
    pub(super) fn take(&self) -> Vec<Change> {
        let changes = self.of_agents.lock();
        std::mem::take(&mut *changes.unwrap_or_else(PoisonError::into_inner))
    }

    /// The error of agents that are all gone, where this was heard of the last one.
    pub(super) fn none_left(&self, why: &str) -> Error {
        let headless = self.headless.lock();
        let headless = headless.unwrap_or_else(PoisonError::into_inner);
        let of_last = format!("all its agents are lost; of the last one: {why}");
        let error =
            |message| Error::new(Kind::Io, "run the job on the cluster", message).final_error();
        match &*headless {
            Some(address) => {
                error(format!("the head of the cluster, {address}, does not answer, and {of_last}"))
                    .advise("start a cluster that sees the same places, then `gristmill resume` the job")
                    .leaving_work()
            }
            None => error(of_last).advise(
                "look at the nodes (`ray status`, their memory, the network), then run the job again",
            ),
        }
    }
}

impl Cluster {
    /// Another agent has begun, and says this of itself. Its number is one that no other agent had.
    ///
    /// # Errors
    /// It is of another version.
    pub fn joined(&self, number: u32, hello: &str) -> Result<()> {
        let hello: Hello = serde_json::from_str(hello)
            .map_err(|error| Error::bug("read what an agent says", error.to_string()))?;
        check_version(&hello)?;
        let hello = Box::new(hello);
        self.changes.add(Change::Joined { number, hello });
        Ok(())
    }

    /// The node of an agent is about to go: it is given no more tasks.
    pub fn drained(&self, number: u32) {
        self.changes.add(Change::Drained { number });
    }

    /// The head of the cluster does not answer at this address; or it does, if there is none. Agents do without a head, as
    /// long as Ray lets them.
    pub fn headless(&self, address: Option<String>) {
        let headless = self.changes.headless.lock();
        *headless.unwrap_or_else(PoisonError::into_inner) = address;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_does_not_answer_is_named_where_no_agent_is_left() {
        let agent = format!(
            r#"{{"place": {{"address": "127.0.0.1:9", "folders": [], "nonce": ""}}, "version": "{}",
                "workers": 1, "available_bytes": 1, "held_bytes": 1}}"#,
            crate::VERSION
        );
        let cluster = Cluster::from_json(&format!(r#"{{"token": "t", "agents": [{agent}]}}"#));
        let cluster = cluster.expect("a cluster");
        let said = || cluster.changes.none_left("refused").to_string();
        assert!(!said().contains("head"), "{}", said());
        cluster.headless(Some("10.0.0.1:6379".to_owned()));
        assert!(said().contains("the head of the cluster, 10.0.0.1:6379, does not answer"));
        cluster.headless(None);
        assert!(!said().contains("head"), "{}", said());
    }
}
