//! What an agent has used. A look at it walks over all processes below the agent: nobody waits for that who has work to do.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::runner::cluster::messages::{AgentUse, READS_MAX};
use crate::runner::tree::Tree;
use gristmill_base::sync::lock;
use gristmill_base::sys::machine::machine_cpu;
use gristmill_base::sys::memory::{descendants_bytes, resident_bytes};
use gristmill_storage::agents::{Agents, ReadOf};

/// How often an agent looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is known of it.
pub(super) struct UsageMeter {
    tree: Tree,
    /// What was seen, and when.
    seen: Mutex<(AgentUse, Option<Instant>)>,
    sent_bytes: AtomicU64,
}

impl Default for UsageMeter {
    fn default() -> Self {
        UsageMeter {
            tree: Tree::of_job(true),
            seen: Mutex::default(),
            sent_bytes: AtomicU64::new(0),
        }
    }
}

impl UsageMeter {
    /// Counts bytes of runs that went to another agent.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What it has used, seen not long ago.
    pub(super) fn now(&self, agents: &Agents) -> AgentUse {
        let reads = agents.reads().all();
        let own = agents.own();
        let of_others = || reads.iter().filter(|read| read.agent != own);
        let of_own = reads.iter().filter(|read| read.agent == own);
        AgentUse {
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            own_bytes: of_own.map(|read| read.file_bytes).sum(),
            received_bytes: of_others().map(|read| read.far_bytes).sum(),
            file_bytes: of_others().map(|read| read.file_bytes).sum(),
            ..self.of_processes()
        }
    }

    fn of_processes(&self) -> AgentUse {
        let mut seen = lock(&self.seen);
        let (used, looked) = &mut *seen;
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            let now = self.tree.used();
            *used = AgentUse {
                user_s: now.user_s,
                sys_s: now.sys_s,
                own_s: now.own_s,
                machine: machine_cpu(),
                anonymous_bytes: resident_bytes().0 + descendants_bytes(),
                read_bytes: now.read_bytes,
                write_bytes: now.write_bytes,
                ..AgentUse::default()
            };
            *looked = Some(Instant::now());
        }
        *used
    }

    /// What was read of the runs of each agent, unless there are too many to say so again and again.
    pub(super) fn reads(agents: &Agents) -> Vec<ReadOf> {
        let reads = agents.reads().all();
        if reads.len() <= READS_MAX {
            reads
        } else {
            Vec::new()
        }
    }
}
