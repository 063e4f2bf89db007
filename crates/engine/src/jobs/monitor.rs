//! What is kept of a job while it runs: its history, with a sample of what it uses twice a second.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::environment::Environment;
use super::report::JobReport;
use crate::history::event::{Event, FileVersion, Sample, VERSION};
use crate::history::{Recorder, remove_old};
use crate::plan::explain::Explanation;
use crate::plan::table::Common;
use crate::runner::Control;
use crate::runner::nodes::Nodes;
use crate::runner::tree::Tree;
use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Result};
use gristmill_base::names::spell;
use gristmill_base::sync::lock;
use gristmill_base::sys::machine::{machine_cpu, network_bytes};
use gristmill_base::sys::memory::{descendants_bytes, resident_bytes};
use gristmill_base::sys::threads::begin_in;
use gristmill_storage::Stat;

const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// A job's history, and whose memory it samples.
#[derive(Debug)]
pub(super) struct JobMonitor {
    recorder: Recorder,
    budget: Mutex<Option<Budget>>,
    nodes: Mutex<Option<Arc<Nodes>>>,
    /// Whether tasks run in processes below this one, whose memory counts.
    below: bool,
    tree: Tree,
}

impl JobMonitor {
    pub(super) fn new(environment: &Environment, common: &Common) -> Self {
        let recorder = Recorder::new(&environment.history, &environment.job_id);
        JobMonitor::by(recorder, environment.has_processes(common))
    }

    fn by(recorder: Recorder, below: bool) -> Self {
        JobMonitor {
            recorder,
            budget: Mutex::default(),
            nodes: Mutex::default(),
            below,
            tree: Tree::of_job(below),
        }
    }

    /// Of a resumed job; whether its tasks run in processes below this one.
    pub(super) fn resumed(recorder: Recorder, below: bool) -> Self {
        let watched = JobMonitor::by(recorder, below);
        watched.resumes();
        watched
    }

    /// What ran is over, and the job is resumed.
    pub(super) fn resumes(&self) {
        self.recorder.record(Event::JobResumed {
            unix_ms: unix_ms(),
            pid: std::process::id(),
        });
    }

    /// Whether tasks run in processes below this one, whose memory counts.
    pub(super) fn has_processes(&self) -> bool {
        self.below
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The processes of the job.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// From now on it is this budget that samples tell of.
    pub(super) fn look_at(&self, budget: &Budget) {
        *lock(&self.budget) = Some(budget.clone());
    }

    /// From now on samples tell of these nodes, too.
    pub(super) fn look_at_nodes(&self, nodes: Option<Arc<Nodes>>) {
        *lock(&self.nodes) = nodes;
    }

    pub(super) fn submitted(&self, command: &str, environment: &Environment) {
        self.recorder.record(Event::JobSubmitted {
            version: VERSION,
            job_id: environment.job_id.clone(),
            command: command.to_owned(),
            spec: environment.history.options.clone(),
            unix_ms: unix_ms(),
            pid: std::process::id(),
            program: crate::VERSION.to_owned(),
            cwd: std::env::current_dir().ok(),
            origin: environment.history.origin.clone(),
        });
    }

    /// The output is whole, and about to get its name.
    pub(super) fn publishing(&self, staged: &Path, stat: &Stat, report: &JobReport) {
        self.recorder.record(Event::OutputPublishing {
            staged: FileVersion::new(staged, stat),
            report: json(report),
        });
    }

    /// Keeps what `explain` says, if a history is kept; a job does not fail for want of an explanation.
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
        self.sample(control, false); // what was used before is not the job's
        let (over, wait) = channel::<()>();
        thread::scope(|scope| {
            let sample = move || {
                while wait.recv_timeout(SAMPLE_EVERY) == Err(RecvTimeoutError::Timeout) {
                    self.sample(control, false);
                }
            };
            let _ = begin_in(scope, "samples", sample); // a job does not fail for want of samples
            let report = job();
            drop(over);
            self.sample(control, true);
            report
        })
    }

    fn sample(&self, control: &Control, is_last: bool) {
        let used = self.tree.used();
        let (own_bytes, mapped_bytes) = resident_bytes();
        let below_bytes = if self.below { descendants_bytes() } else { 0 };
        let (net_rx_bytes, net_tx_bytes) = network_bytes();
        let budget = lock(&self.budget);
        let nodes = lock(&self.nodes);
        self.recorder.record(Event::Sample(Sample {
            user_s: used.user_s,
            sys_s: used.sys_s,
            own_s: used.own_s,
            machine: machine_cpu(),
            anon_bytes: own_bytes + below_bytes,
            mapped_bytes,
            budget_bytes: budget.as_ref().map_or(0, Budget::used_bytes),
            disk_read_bytes: used.read_bytes,
            disk_write_bytes: used.write_bytes,
            net_rx_bytes,
            net_tx_bytes,
            done_bytes: control.progress().done_bytes,
            nodes: nodes
                .as_ref()
                .map_or_else(Vec::new, |nodes| nodes.sample(is_last)),
        }));
    }

    /// The last event; the report says where the history is, or why there is none. The history of a job that leaves its work
    /// to those who resume it has no end.
    pub(super) fn finished(&self, mut report: JobReport) -> JobReport {
        if !report.failure.as_ref().is_some_and(Error::leaves_work) {
            self.recorder.record(Event::JobFinished {
                status: report.status.name().to_owned(),
                report: json(&report),
            });
        }
        if let Some(folder) = self.recorder.folder() {
            if let Some(jobs) = folder.parent() {
                remove_old(jobs);
            }
            report.history = Some(spell(&folder));
        }
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
