//! A job of any kind, from its options to its report or its explanation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::environment::Environment;
use super::monitor::JobMonitor;
use super::registry::JobSpec;
use super::report::JobReport;
use super::steps::{ReplayedHistory, RunningJob};
use crate::plan::explain::Explanation;
use crate::runner::Control;
use crate::runner::threads::from_panic;
use gristmill_base::budget::ProcessOwner;
use gristmill_base::error::Result;
use gristmill_base::sys::descriptors::raise_open_files;
use gristmill_base::sys::memory::keep_little_freed;

/// Runs a job from its beginning.
pub(super) fn begin(spec: &JobSpec, environment: &Environment, control: &Control) -> JobReport {
    let environment = &environment.for_job(&spec.common);
    let watched = JobMonitor::new(environment, &spec.common);
    watched.submitted(spec.command, environment);
    let report = watched.sampled(control, || {
        run_watched(spec, environment, control, &watched, None)
    });
    watched.finished(report)
}

/// Runs a job to its end, which may be that of a dead one: `resumed` is what is known of that.
pub(super) fn run_watched(
    spec: &JobSpec,
    environment: &Environment,
    control: &Control,
    watched: &JobMonitor,
    resumed: Option<&ReplayedHistory>,
) -> JobReport {
    if environment.process == ProcessOwner::Own {
        keep_little_freed();
    }
    raise_open_files();
    let _stopping = environment.store.requests().stop.by(control.flag());
    let environment = &Environment {
        store: environment.store.with_blocks(spec.common.blocks()),
        ..environment.clone()
    };
    let mut job = RunningJob::new(environment, spec.asked(), control, watched, resumed);
    let run = AssertUnwindSafe(|| {
        job.resolve()?;
        if job.ends_published()? {
            return Ok(());
        }
        job.check_spill_dirs()?;
        spec.kind.run(&mut job)
    });
    let outcome = catch_unwind(run).unwrap_or_else(|panic| Err(from_panic(&*panic)));
    let outcome = outcome.map_err(|error| job.under_limit(error));
    job.over(outcome)
}

/// What a job would do, as numbers; nothing is written.
///
/// # Errors
/// An option makes no sense, an input cannot be found, or the memory is too small for any plan.
pub fn explain(spec: &JobSpec, environment: &Environment) -> Result<Explanation> {
    let environment = &environment.for_job(&spec.common);
    let watched = JobMonitor::new(environment, &spec.common);
    let control = Control::default();
    raise_open_files(); // as the job itself would
    let mut job = RunningJob::new(environment, spec.asked(), &control, &watched, None);
    job.resolve()?;
    let explained = spec.kind.explain(&job);
    explained.map_err(|error| job.under_limit(error))
}
