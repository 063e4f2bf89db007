//! What an agent does on its disk because the driver says so: on one thread, in turn, so that no order waits for a disk. A task that
//! came after a chore begins after it.
//!
//! The rule that must hold: what cannot be done is an event. Space that cannot be given back goes with the job. Processes below the
//! agent that cannot be told of other agents would look for runs where there are none: the agent gets no more tasks.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::chores::Chore;
use super::{AgentQueue, QueueState};
use gristmill_base::error::{Error, Result};

/// How long an agent tries to write what its processes must know.
const PATIENCE: Duration = Duration::from_secs(3);

/// Before the next try.
const WAIT: Duration = Duration::from_millis(100);

impl AgentQueue {
    /// Does what is to do, until the agent ends.
    pub(in super::super) fn do_chores(&self) {
        while let Some(chore) = self.next_chore() {
            self.do_chore(&chore);
            self.state().chores.end();
            self.changed.notify_all();
        }
    }

    fn next_chore(&self) -> Option<Chore> {
        let idle = |state: &mut QueueState| state.chores.is_empty() && !state.ended;
        let waited = self.changed.wait_while(self.state(), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.chores.begin()
    }

    fn do_chore(&self, chore: &Chore) {
        let folder = self.resources.folders.last();
        let _awaited = folder.map(|folder| self.waiting.begin(folder.display().to_string()));
        match chore {
            Chore::ReleaseSpace(job, spent) => {
                if let Ok(context) = &**job {
                    spent.iter().for_each(|spent| spent.release_space(context));
                }
            }
            // Who must know sees to it (`tell_processes`).
            Chore::Show => drop(self.resources.agents.show(&*self.resources.disk)),
        }
    }

    /// Has the processes below know of other agents what this one knows.
    ///
    /// # Errors
    /// That cannot be written, however often it is tried.
    pub(in super::super) fn tell_processes(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            match self.resources.agents.show(&*self.resources.disk) {
                Ok(()) => return Ok(()),
                Err(_) if self.state().ended => return Err(Error::cancelled()),
                Err(error) if began.elapsed() >= PATIENCE => return Err(error),
                Err(_) => sleep(WAIT),
            }
        }
    }
}
