//! What the outside may know and ask of a running job.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use gristmill_base::sync::lock;
use gristmill_storage::net::waiting::PendingWaits;

/// A handle on a running job: how far it is, and a way to end it.
#[derive(Debug, Default)]
pub struct Control {
    cancel: Arc<AtomicBool>,
    stage: Mutex<StageProgress>,
    notices: Mutex<Vec<String>>,
    waiting: Arc<PendingWaits>,
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageProgress {
    /// The stage's name; empty before the first.
    pub name: &'static str,
    /// Stages that are over.
    pub index: usize,
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes to do.
    pub bytes: u64,
    /// Nodes that its tasks run on; 0 on one machine.
    pub nodes: usize,
    /// Attempts that run.
    pub running: usize,
}

impl Control {
    /// Asks the job to end.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// The flag of [`Control::cancel`], for code that waits elsewhere.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Whether the job was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// How far the job is.
    pub fn progress(&self) -> StageProgress {
        *lock(&self.stage)
    }

    /// What the user is to be told, and has not been told yet: what came up before the job's tasks begin, and what the job has
    /// waited for too long.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = std::mem::take(&mut *lock(&self.notices));
        notices.extend(self.waiting.notices(Instant::now()));
        notices
    }

    /// What the job waits for, which the user is told of after a while.
    pub fn waiting(&self) -> &Arc<PendingWaits> {
        &self.waiting
    }

    /// Tells the user something.
    pub fn notice(&self, text: String) {
        let mut notices = lock(&self.notices);
        notices.push(text);
    }

    /// Says what the job is at, between and after stages.
    pub fn set_progress(&self, progress: StageProgress) {
        *lock(&self.stage) = progress;
    }
}
