//! Whose a job's folders are: those of a job that begins, or what a dead job left to the one that resumes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A job, and whether the folders with its name are its to clear away: what its predecessor left from when it has taken all of
/// that over, what it made itself until it leaves that to those who resume it.
///
/// ```
/// use gristmill_tasks::commit::Ownership;
/// let owner = Ownership::of_resumed_job("job_1");
/// assert!(owner.resumes() && !owner.is_taken());
/// owner.take_over();
/// assert!(owner.is_taken() && Ownership::of_new_job("job_2").is_taken());
/// ```
#[derive(Debug, Clone)]
pub struct Ownership {
    job: Arc<str>,
    resumes: bool,
    taken: Arc<AtomicBool>,
}

impl Ownership {
    /// That of a job which begins: all that it makes is its own.
    pub fn of_new_job(job: &str) -> Self {
        Self::new(job, false)
    }

    /// That of a job which was dead: nothing is its own yet.
    pub fn of_resumed_job(job: &str) -> Self {
        Self::new(job, true)
    }

    fn new(job: &str, resumes: bool) -> Self {
        Ownership {
            job: job.into(),
            resumes,
            taken: Arc::new(AtomicBool::new(!resumes)),
        }
    }

    /// The id of the job.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Whether folders that are there are taken over, and not made.
    pub fn resumes(&self) -> bool {
        self.resumes
    }

    /// All stays, as after a kill.
    pub fn leave(&self) {
        self.taken.store(false, Ordering::Relaxed);
    }

    /// All is taken over.
    pub fn take_over(&self) {
        self.taken.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }
}
