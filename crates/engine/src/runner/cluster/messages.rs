//! What driver and agent say to each other, in batches: orders to the agent, and what happened there.
//!
//! ```text
//!   POST /orders             Orders    numbered from `first`: those that came before are not done twice
//!   GET  /events?after=N     Events    those after the Nth, as soon as there is one; those up to it are forgotten
//! ```
//!
//! Bodies are messages of `task::wire`; a spec among the orders is a message of its own, since what specs share crosses once.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use gristmill_base::error::Error;
use gristmill_base::sys::machine::MachineCpu;
use gristmill_storage::agents::{AgentPlace, ReadOf};
use gristmill_storage::objects::Upload;
use gristmill_storage::run_name::RunName;
use gristmill_tasks::task::wire::Message;
use gristmill_tasks::task::{AttemptId, ReleasedSpace};

/// Of so many agents they say how much they read of each other: a table of more is too large to be looked at.
pub(super) const READS_MAX: usize = 64;

/// The longest batch of orders: user code and its data may be in one.
pub(super) const ORDERS_BYTES_MAX: usize = 1 << 30;

/// An attempt on an agent. Its number is its own in the whole job: another part of it may have an attempt that is called so,
/// while one that did not stop still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) id: AttemptId,
    pub(super) number: u64,
}

/// What an agent is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum AgentOrder {
    /// Begin with a part of the job: what came before it is over.
    Begin {
        /// What its tasks share, as a message of `runner::shared`.
        setup: Bytes,
        /// What the node must see, if the output is at a path.
        marker: Option<Upload>,
    },
    /// Know these agents, with those that were known.
    Agents(BTreeMap<u32, AgentPlace>),
    /// Run an attempt: the spec is a message.
    Run { launch: Launch, spec: Bytes },
    /// Stop an attempt.
    Stop { launch: Launch },
    /// Give space back.
    #[serde(rename = "GiveBack")]
    ReleaseSpace(Vec<ReleasedSpace>),
    /// These agents are lost, and these runs are called otherwise now.
    Changed {
        lost: BTreeSet<u32>,
        moved: BTreeMap<RunName, RunName>,
    },
    /// The job is over; or, if runs stay, it may be resumed by another driver.
    End { runs_stay: bool },
}

/// A batch of orders.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Orders {
    /// The number of the first of them.
    pub(super) first: u64,
    pub(super) orders: Vec<AgentOrder>,
}

/// An attempt that is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AttemptOver {
    pub(super) launch: Launch,
    /// Bytes that it noted as done.
    pub(super) bytes: u64,
    /// Microseconds from when it had a slot.
    pub(super) took_us: u64,
    /// How it ended, as a reply of `runner::messages`.
    pub(super) reply: Bytes,
}

/// What an agent has used so far, with the processes below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct AgentUse {
    pub(super) user_s: f64,
    pub(super) sys_s: f64,
    /// Of both together, those of its own process.
    pub(super) own_s: f64,
    /// CPU seconds of its machine.
    pub(super) machine: MachineCpu,
    /// Bytes of memory now.
    pub(super) anonymous_bytes: u64,
    /// Bytes from and to devices.
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
    /// Bytes of runs that it sent to others.
    pub(super) sent_bytes: u64,
    /// Bytes of its own runs that it read.
    pub(super) own_bytes: u64,
    /// Bytes of runs of others that came over HTTP.
    pub(super) received_bytes: u64,
    /// Bytes of runs of others that it read as files.
    pub(super) file_bytes: u64,
}

/// What happened.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Events {
    /// The number of the first of `over`.
    pub(super) first: u64,
    pub(super) over: Vec<AttemptOver>,
    /// What runs and has noted bytes, and how many.
    pub(super) running: Vec<(Launch, u64)>,
    pub(super) used: AgentUse,
    /// What it has read of runs so far, by the agent that keeps them; nothing where there are many agents.
    pub(super) reads: Vec<ReadOf>,
    /// How many parts of the job it has begun with.
    pub(super) begun: u64,
    /// Why it cannot begin with the last of them.
    pub(super) refused: Option<Error>,
    /// Why it cannot do what it is told: it is given up.
    pub(super) broken: Option<Error>,
    /// Files that it has waited for, for a while.
    pub(super) waits: Vec<String>,
}

impl Message for Orders {
    const KIND: [u8; 4] = *b"ordr";
    const NAME: &'static str = "orders to an agent";
}

impl Message for Events {
    const KIND: [u8; 4] = *b"evnt";
    const NAME: &'static str = "events of an agent";
}
