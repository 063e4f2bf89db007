//! Jobs: what the commands do, from options to report.
//!
//! ```text
//!   execute, resume     a job to its end, from its beginning or from where it was killed
//!        │
//!   registry            every kind of job
//!        │
//!   sort, teragen, terasort, teravalidate, wordcount, mapreduce        a kind of job (kind.rs says what one is)
//!        │
//!   steps               what all share: inputs, memory, the output, tasks, what is known of a dead job
//! ```
//!
//! A job checks what it was asked, plans, stages its output, lets the driver bring its tasks to their end, proves
//! what came out, and publishes it. [`run`] does that for any command, and always gives a report. A kind of job is a
//! file here and a line in `registry.rs`.

mod cp;
mod distinct;
mod environment;
mod execute;
mod group;
mod join;
mod kind;
mod mapreduce;
mod matchcount;
mod monitor;
mod random;
mod registry;
mod report;
mod resume;
mod runs;
mod sample;
mod shuf;
mod shuffle;
mod sort;
mod split;
mod steps;
mod success;
mod tables;
mod teragen;
mod terasort;
mod teravalidate;
mod top;
mod wordcount;

pub use environment::Environment;
pub use execute::explain;
pub use mapreduce::FilesOfCode;
pub use registry::{JobSpec, commands, native_work, user_code};
pub use report::{JobReport, Status};
pub use resume::{ResumedAgents, clear_left, is_code_gone, resumed_agents, why_not_resumed};
pub use success::{PartProof, Success};

use crate::runner::Control;

/// Runs a job to its end. The report says how it ended; a failure is in it.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_engine::{jobs, jobs::JobSpec, runner::Control, storage::{memory::Memory, stores::Stores}};
/// let environment = jobs::Environment {
///     store: Stores::new(Arc::new(Memory::with_room_for(1 << 20))),
///     job_id: "job_1".into(),
///     history: Default::default(),
///     work: None,
///     interpreter: String::new(),
///     process: Default::default(),
///     worker: None,
///     cluster: None,
/// };
/// let run = |json| jobs::run(&JobSpec::from_json(json).unwrap(), &environment, &Control::default());
/// let made = run(r#"{"teragen": {"rows": "1k", "output": "/made"}}"#);
/// assert_eq!(made.checksum, "1f9ffe645ec"); // as TeraGen and gensort say
/// let sorted = run(r#"{"terasort": {"inputs": ["/made"], "output": "/sorted"}}"#);
/// assert_eq!(sorted.checksum, made.checksum);
/// assert!(run(r#"{"teravalidate": {"input": "/sorted", "against": "/made"}}"#).error.is_none());
/// assert!(run(r#"{"teravalidate": {"input": "/made"}}"#).error.is_some());
/// ```
pub fn run(spec: &JobSpec, environment: &Environment, control: &Control) -> JobReport {
    match spec.kind.resumes() {
        Some(job_id) => resume::run(job_id, environment, control),
        None => execute::begin(spec, environment, control),
    }
}
