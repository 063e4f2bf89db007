//! What is kept of a job while it runs: its history, with a sample of what it uses twice a second.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{Environment, JobReport};
use crate::budget::Budget;
use crate::error::Result;
use crate::history::Recorder;
use crate::history::event::{Event, Known, Sample, VERSION};
use crate::plan::JobSpec;
use crate::plan::explain::Explanation;
use crate::runner::machine::{device_bytes, machine_cpu, network_bytes};
use crate::runner::threads::Control;
use crate::runner::usage::{cpu_seconds, resident_bytes};
use crate::storage::Stat;
use crate::worker::descendants_bytes;

const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// A job's history, and whose memory it samples.
#[derive(Debug)]
pub(super) struct Watched {
    recorder: Recorder,
    budget: Mutex<Option<Budget>>,
    /// Whether people's code runs in processes below this one, whose memory counts.
    below: bool,
}

impl Watched {
    pub(super) fn new(environment: &Environment) -> Self {
        let recorder = Recorder::new(&environment.history, &environment.job_id);
        Watched::by(recorder, environment)
    }

    fn by(recorder: Recorder, environment: &Environment) -> Self {
        Watched {
            recorder,
            budget: Mutex::default(),
            below: environment.work.is_some(),
        }
    }

    /// Of a job that goes on.
    pub(super) fn resumed(recorder: Recorder, environment: &Environment) -> Self {
        let watched = Watched::by(recorder, environment);
        watched.resumes();
        watched
    }

    /// What runs is over, and the job goes on from its beginning.
    pub(super) fn resumes(&self) {
        self.recorder.record(Event::JobResumed {
            unix_ms: unix_ms(),
            pid: std::process::id(),
        });
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// From now on it is this budget that samples tell of.
    pub(super) fn look_at(&self, budget: &Budget) {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = Some(budget.clone());
    }

    pub(super) fn submitted(&self, spec: &JobSpec, environment: &Environment) {
        self.recorder.record(Event::JobSubmitted {
            version: VERSION,
            job_id: environment.job_id.clone(),
            command: spec.command().to_owned(),
            spec: environment.history.options.clone(),
            unix_ms: unix_ms(),
            pid: std::process::id(),
            program: crate::VERSION.to_owned(),
            cwd: std::env::current_dir().ok(),
        });
    }

    /// The output is whole, and about to get its name.
    pub(super) fn publishing(&self, staged: &Path, stat: &Stat, report: &JobReport) {
        self.recorder.record(Event::OutputPublishing {
            staged: Known::new(staged, stat),
            report: json(report),
        });
    }

    /// Keeps what `explain` says, if anybody wants to know; a job does not fail for want of an explanation.
    pub(super) fn planned(&self, plan: impl FnOnce() -> Result<Explanation>) {
        if self.recorder.is_on()
            && let Ok(plan) = plan()
        {
            self.recorder
                .record(Event::JobPlanned { plan: json(&plan) });
        }
    }

    /// Runs `job`, with samples meanwhile.
    pub(super) fn sampled(&self, control: &Control, job: impl FnOnce() -> JobReport) -> JobReport {
        self.sample(control); // what was used before is not the job's
        let (over, wait) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while wait.recv_timeout(SAMPLE_EVERY) == Err(RecvTimeoutError::Timeout) {
                    self.sample(control);
                }
            });
            let report = job();
            drop(over);
            self.sample(control);
            report
        })
    }

    fn sample(&self, control: &Control) {
        let cpu = cpu_seconds();
        let (own_bytes, mapped_bytes) = resident_bytes();
        let below_bytes = if self.below { descendants_bytes() } else { 0 };
        let (disk_read_bytes, disk_write_bytes) = device_bytes();
        let (net_rx_bytes, net_tx_bytes) = network_bytes();
        let budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        self.recorder.record(Event::Sample(Sample {
            user_s: cpu.user_s,
            sys_s: cpu.sys_s,
            machine: machine_cpu(),
            anon_bytes: own_bytes + below_bytes,
            mapped_bytes,
            budget_bytes: budget.as_ref().map_or(0, Budget::used_bytes),
            disk_read_bytes,
            disk_write_bytes,
            net_rx_bytes,
            net_tx_bytes,
            done_bytes: control.progress().done_bytes,
        }));
    }

    /// The last event; the report says where the history is, or why there is none.
    pub(super) fn finished(&self, mut report: JobReport) -> JobReport {
        self.recorder.record(Event::JobFinished {
            status: report.status.name().to_owned(),
            report: json(&report),
        });
        report.history = self
            .recorder
            .folder()
            .map(|folder| folder.display().to_string());
        report.warnings.extend(self.recorder.failure());
        report
    }
}

fn unix_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |time| time.as_millis() as u64)
}

/// A value of ours as JSON; what cannot be (there is no such) as nothing.
fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
