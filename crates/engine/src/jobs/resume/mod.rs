//! `resume`: resumes a job whose process was killed, from what its history proves done.
//!
//! ```text
//!   history ──lock, read──▶ options, what it went by ──plan anew──▶ stages ─────────────┐
//!           └─tasks that were over ──what they made, looked at or proved again──▶ replay ┴─▶ driver
//! ```
//!
//! The plan is a function of inputs and options, so that the same tasks come out; those whose output is there are
//! not done again. Nothing is believed of paths in a history: of runs and parts only names are kept, which are looked
//! for in the folders that the job's own options and id lead to. Until everything of the dead job is taken over,
//! nothing of it is changed: a job that is refused can be resumed when the reason is gone.

mod agents;
pub(super) mod command;
mod dead;
mod find;
mod left;

pub use self::agents::{ResumedAgents, resumed_agents};
pub use self::dead::why_not_resumed;
pub use self::left::{clear_left, is_code_gone};

use super::environment::Environment;
use super::execute::run_watched;
use super::monitor::JobMonitor;
use super::registry::JobSpec;
use super::report::JobReport;
use super::steps::{OPERATION, ReplayedHistory};
use crate::history::event::Event;
use crate::history::{HistoryConfig, Recorder, lock};
use crate::runner::Control;
use gristmill_base::error::{Error, Kind, Result};

/// Resumes the job that is meant by `name`, among those of the environment's history.
pub(super) fn run(name: &str, environment: &Environment, control: &Control) -> JobReport {
    match prepare(name, environment) {
        Ok((job, environment, recorder, mut replayed)) => {
            // Who runs user code is known only when the job's definition is read.
            let below = environment.has_processes(&job.common) || job.kind.keeps_code();
            let watched = JobMonitor::resumed(recorder, below);
            let go_on = |replayed: &ReplayedHistory| {
                watched.sampled(control, || {
                    run_watched(&job, &environment, control, &watched, Some(replayed))
                })
            };
            let mut report = go_on(&replayed);
            let may_begin_anew = environment.cluster.is_none(); // agents have ended; and they make again what is damaged
            let is_damage = |error: &mut Error| may_begin_anew && error.is_of_own_work();
            if let Some(damage) = report.failure.take_if(is_damage) {
                // Of a damaged run only those who read it learn. It went with the job's folders, as after any failure:
                // nothing is there to resume from, and the input is.
                replayed.forget_tasks();
                watched.resumes();
                report = go_on(&replayed).after(&report);
                report
                    .warnings
                    .push(format!("{damage} The job was done anew."));
            }
            watched.finished(report)
        }
        Err(error) => {
            let mut report = JobReport::new(name, "resume");
            report.finish(Err(error));
            report
        }
    }
}

/// The dead job, as its history has it.
fn prepare(
    name: &str,
    environment: &Environment,
) -> Result<(JobSpec, Environment, Recorder, ReplayedHistory)> {
    let Some(jobs) = &environment.history.jobs else {
        let message = "no history is kept here, and a job is resumed from its history";
        return Err(Error::new(Kind::BadOption, OPERATION, message));
    };
    let folder = find::job(jobs, name, &environment.store)?;
    let held = lock(&folder)?;
    let (spec, options, replayed) =
        dead::read(&held.folder, &held.events).map_err(|error| error.with_path(&folder))?;
    let spec = match held.events.first().map(|first| &first.event) {
        Some(Event::JobSubmitted { cwd: Some(cwd), .. }) => spec.placed(&environment.store, cwd),
        _ => spec,
    };
    let job_id = folder.file_name().unwrap_or_default().to_string_lossy();
    let environment = Environment {
        job_id: job_id.into_owned(),
        history: HistoryConfig {
            jobs: Some(jobs.clone()),
            keep_short: true,
            options,
            ..HistoryConfig::default()
        },
        ..environment.for_job(&spec.common)
    };
    Ok((spec, environment, Recorder::resume(held), replayed))
}
