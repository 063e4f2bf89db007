//! How attempts end, and what the history learns of them: when they begin, how they end, what they made.

use std::collections::BTreeMap;

use crate::driver::DriverEvent;
use crate::history::Recorder;
use crate::history::event::{self, AttemptStatus};
use gristmill_base::error::{Error, Kind};
use gristmill_tasks::task::{AttemptId, Checkpoint, TaskContext, TaskReport, TaskSpec};

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    /// With its report.
    Done(TaskReport),
    /// With its report, which is of something else than what the task had given before.
    Differs(TaskReport),
    /// With an error.
    Failed(Error),
    /// With its worker, and how that ended.
    Lost(String),
}

impl AttemptOutcome {
    /// What the driver hears of it.
    pub(super) fn event(self, id: AttemptId) -> DriverEvent {
        match self {
            AttemptOutcome::Done(report) => DriverEvent::Finished { id, report },
            AttemptOutcome::Differs(report) => DriverEvent::Differs { id, report },
            AttemptOutcome::Failed(error) => DriverEvent::Failed { id, error },
            AttemptOutcome::Lost(_) => DriverEvent::Lost { id },
        }
    }
}

/// Records that an attempt begins, in a phase and on a node, which on one machine has no name.
pub(super) fn record_begin(
    recorder: &Recorder,
    (id, spec): (AttemptId, &TaskSpec),
    (phase, node): (&str, &str),
    context: &TaskContext,
) {
    recorder.record(event::Event::AttemptStarted {
        task: id.task,
        attempt: id.attempt,
        phase: phase.to_owned(),
        input: spec.input(context),
        node: node.to_owned(),
    });
}

/// Records how an attempt ended, what runs it wrote, and what of it outlives this process. The driver hears of it
/// later: what another process could not know of must not be given back. Where the driver awaits another attempt at
/// the task, or none, the report counts for nothing.
pub(super) fn record_end(
    recorder: &Recorder,
    (id, spec): (AttemptId, &TaskSpec),
    ended: &AttemptOutcome,
    (bytes, awaited): (u64, bool),
) {
    let (mut known, mut counters) = (None, BTreeMap::new());
    let (outcome, error) = match ended {
        AttemptOutcome::Done(_) | AttemptOutcome::Differs(_) if !awaited => {
            (AttemptStatus::Killed, None)
        }
        AttemptOutcome::Done(report) | AttemptOutcome::Differs(report) => {
            known = record_report(recorder, id, spec, report);
            let all = report.counters(spec).into_iter();
            counters.extend(all.map(|(name, amount)| (name.to_owned(), amount)));
            (AttemptStatus::Succeeded, None)
        }
        AttemptOutcome::Failed(error) => {
            record_output(recorder, id, error);
            let outcome = match error.kind() {
                Kind::Cancelled => AttemptStatus::Killed,
                _ => AttemptStatus::Failed,
            };
            (outcome, Some(error.to_string()))
        }
        AttemptOutcome::Lost(how) => (AttemptStatus::Killed, Some(format!("it was lost: {how}"))),
    };
    let fingerprint = known
        .as_ref()
        .map(|_| format!("{:016x}", spec.fingerprint()));
    recorder.record(event::Event::AttemptFinished {
        task: id.task,
        attempt: id.attempt,
        outcome,
        error,
        bytes,
        counters,
        fingerprint,
        kept: known.map(Box::new),
    });
}

/// Records the runs and the output of user code of an attempt; gives what another process needs to know of it.
fn record_report(
    recorder: &Recorder,
    id: AttemptId,
    spec: &TaskSpec,
    report: &TaskReport,
) -> Option<Checkpoint> {
    for run in report.runs() {
        recorder.record(event::Event::RunSpilled {
            task: id.task,
            path: run.path.clone(),
            records: run.records,
            bytes: run.bytes,
        });
    }
    if let Some(printed) = report.printed() {
        recorder.log(id.task, id.attempt, &printed.stdout, &printed.stderr);
    }
    recorder.is_on().then(|| spec.checkpoint(report)).flatten()
}

/// Records what user code printed before it failed.
fn record_output(recorder: &Recorder, id: AttemptId, error: &Error) {
    let [stdout, stderr] =
        ["stdout", "stderr"].map(|name| error.detail_of(name).unwrap_or_default());
    recorder.log(id.task, id.attempt, stdout, stderr);
}
