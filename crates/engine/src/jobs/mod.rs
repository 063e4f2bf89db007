//! Jobs: what the commands do, from options to report.
//!
//! A job checks what it was asked, plans, stages its output, lets the driver bring its tasks to their end, proves
//! what came out, and publishes it. [`run`] does that for any command, and always gives a report.

mod explain;
mod mapreduce;
mod passes;
mod report;
mod resume;
mod runs;
mod sort;
mod success;
mod teragen;
mod terasort;
mod teravalidate;
mod watched;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

pub use report::{JobReport, Status};
pub use success::{PartProof, Success};

use self::resume::Story;
use self::watched::Watched;

use crate::budget::{Budget, available_bytes};
use crate::driver::{Driver, Plan, RetryPolicy};
use crate::error::{Error, JobOption, Result};
use crate::history::Place;
use crate::history::event::Event;
use crate::plan::explain::Explanation;
use crate::plan::{self, JobSpec};
use crate::runner::threads::{Control, PhaseClock, StageProgress, Watch, from_panic, run_job};
use crate::runner::usage::{PeakMemory, cpu_seconds, device_bytes_read};
use crate::storage::Store;
use crate::task::{TaskContext, Work};

/// What a job runs with, beside its options.
#[derive(Debug)]
pub struct Environment {
    /// Where its files are.
    pub store: Arc<dyn Store>,
    /// Its name.
    pub job_id: String,
    /// Where its history goes.
    pub history: Place,
    /// Who runs people's code, for jobs that have some. Of a job that goes on: in the place of what it kept.
    pub work: Option<Arc<dyn Work>>,
    /// What people's functions are run by, such as a Python: a job goes on only with the same.
    pub host: String,
}

/// A job under way: what the commands share.
struct Job<'a> {
    environment: &'a Environment,
    control: &'a Control,
    workers: usize,
    memory_bytes: u64,
    clock: PhaseClock,
    peak: PeakMemory,
    watched: &'a Watched,
    /// What is known of the job, if another process began it.
    resumed: Option<&'a Story>,
    /// How often tasks have begun to run.
    rounds: u32,
    report: JobReport,
}

/// Runs a job to its end. The report says how it ended; a failure is in it.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_engine::{jobs, plan::JobSpec, runner::threads::Control, storage::memory::Memory};
/// let environment = jobs::Environment {
///     store: Arc::new(Memory::with_room_for(1 << 20)),
///     job_id: "job_1".into(),
///     history: Default::default(),
///     work: None,
///     host: String::new(),
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
    if let JobSpec::Resume(spec) = spec {
        return resume::run(spec, environment, control);
    }
    let watched = Watched::new(environment);
    watched.submitted(spec, environment);
    let report = watched.sampled(control, || {
        run_watched(spec, environment, control, &watched, None)
    });
    watched.finished(report)
}

fn run_watched(
    spec: &JobSpec,
    environment: &Environment,
    control: &Control,
    watched: &Watched,
    resumed: Option<&Story>,
) -> JobReport {
    let began = Instant::now();
    let cpu = cpu_seconds();
    let read = device_bytes_read();
    let mut job = Job {
        environment,
        control,
        workers: 0,
        memory_bytes: 0,
        clock: PhaseClock::default(),
        peak: PeakMemory::of_job(environment.work.is_some()),
        watched,
        resumed,
        rounds: 0,
        report: JobReport::new(&environment.job_id, spec.command()),
    };
    let run = AssertUnwindSafe(|| {
        job.resolve(spec)?;
        if job.ends_published(spec)? {
            return Ok(());
        }
        match spec {
            JobSpec::Resume(_) => Err(Error::bug("run a job", "a job that goes on with itself")),
            JobSpec::Sort(spec) => sort::run(&mut job, spec),
            JobSpec::Teragen(spec) => teragen::run(&mut job, spec),
            JobSpec::Terasort(spec) => terasort::run(&mut job, spec),
            JobSpec::Teravalidate(spec) => teravalidate::run(&mut job, spec),
            JobSpec::Mapreduce(spec) => mapreduce::run(&mut job, spec),
        }
    });
    let outcome = catch_unwind(run).unwrap_or_else(|panic| Err(from_panic(&*panic)));
    job.clock.end();
    job.peak.look();
    let Job {
        mut report,
        clock,
        peak,
        ..
    } = job;
    let used = cpu_seconds();
    report.finish(outcome);
    report.phases = clock.phases().to_vec();
    report.wall_s = began.elapsed().as_secs_f64();
    report.user_s += used.user_s - cpu.user_s; // beside that of other processes
    report.sys_s += used.sys_s - cpu.sys_s;
    report.peak_anon_bytes = peak.anonymous_bytes();
    report.peak_mapped_bytes = peak.mapped_bytes();
    if let (Some(before), Some(now)) = (read, device_bytes_read()) {
        report.count("DEVICE_BYTES_READ", now.saturating_sub(before));
    }
    let cpu_ms = ((report.user_s + report.sys_s) * 1000.0) as u64;
    report.count("CPU_MILLISECONDS", cpu_ms);
    report
}

/// What a job would do, as numbers; nothing is written.
///
/// # Errors
/// An option makes no sense, an input cannot be found, or the memory is too small for any plan.
pub fn explain(spec: &JobSpec, environment: &Environment) -> Result<Explanation> {
    let mut job = Job {
        environment,
        control: &Control::default(),
        workers: 0,
        memory_bytes: 0,
        clock: PhaseClock::default(),
        peak: PeakMemory::default(),
        watched: &Watched::new(environment),
        resumed: None,
        rounds: 0,
        report: JobReport::new(&environment.job_id, spec.command()),
    };
    job.resolve(spec)?;
    explain::explain(&job, spec)
}

impl Job<'_> {
    fn store(&self) -> &dyn Store {
        &*self.environment.store
    }

    /// Resolves what was given about workers and memory to numbers.
    fn resolve(&mut self, spec: &JobSpec) -> Result<()> {
        let (workers, memory) = spec.resources();
        match self.resumed.and_then(|story| story.began.as_ref()) {
            // As the first time: the plan follows from them.
            Some(began) => {
                self.workers = plan::sort::workers(Some(began.workers))?;
                self.memory_bytes = began.memory_bytes;
            }
            None => {
                self.workers = plan::sort::workers(workers)?;
                self.memory_bytes = plan::sort::memory(memory, available_bytes());
            }
        }
        self.report.workers = self.workers;
        self.report.memory_bytes = self.memory_bytes;
        Ok(())
    }

    fn budget(&self) -> Budget {
        Budget::new(self.memory_bytes)
    }

    /// Fails with the numbers if so much memory for each worker is more than the budget.
    fn check_worker_memory(&self, worker_bytes: u64) -> Result<()> {
        let needed = worker_bytes * self.workers as u64;
        if needed <= self.memory_bytes {
            return Ok(());
        }
        let message = format!(
            "{} workers need {worker_bytes} bytes each, and the memory budget is {} bytes",
            self.workers, self.memory_bytes
        );
        Err(Error::new(crate::Kind::Memory, "start the job", message)
            .advise_options("give {} or more", [JobOption::Memory.at_least(needed)]))
    }

    /// Lets the driver run `plan`.
    fn run_plan(&mut self, plan: Box<dyn Plan>, context: &TaskContext) -> Result<()> {
        self.run_driver(Driver::new(plan, RetryPolicy::default()), context)
    }

    fn run_driver(&mut self, mut driver: Driver, context: &TaskContext) -> Result<()> {
        self.watched.look_at(&context.budget);
        let watch = Watch {
            control: self.control,
            clock: &mut self.clock,
            memory: &self.peak,
            recorder: self.watched.recorder(),
        };
        let outcome = run_job(&mut driver, context, self.workers, watch);
        self.clock.end();
        self.report.budget_peak_bytes = context.budget.peak_bytes();
        self.report
            .count("FAILED_TASK_ATTEMPTS", driver.failed_attempts());
        if self.resumed.is_some() {
            self.report.count("KEPT_TASKS", driver.kept_tasks());
        }
        outcome
    }

    /// Begins a phase that is no stage of tasks.
    fn begin_phase(&mut self, name: &'static str) {
        self.clock.begin(name, 0);
        self.watched.recorder().record(Event::PhaseStarted {
            name: name.to_owned(),
            tasks: 0,
            bytes: 0,
            kept: 0,
        });
        let index = self.control.progress().index + 1;
        self.control.set_progress(StageProgress {
            name,
            index,
            done_bytes: 0,
            bytes: 0,
        });
    }

    /// Fails if the user has asked the job to end: for the stretches between tasks.
    fn check_cancelled(&self) -> Result<()> {
        if self.control.is_cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }
}

/// Whether `inner` lies in `outer`, or is it. Links are followed where the paths exist.
fn lies_in(inner: &std::path::Path, outer: &std::path::Path) -> bool {
    let real = |path: &std::path::Path| -> PathBuf {
        path.canonicalize()
            .or_else(|_| std::path::absolute(path))
            .unwrap_or_else(|_| path.to_owned())
    };
    real(inner).starts_with(real(outer))
}
