//! What a history tells of a dead job: what it went by, and which of its tasks are over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::job_request::JobOutput;
use super::refusal::OPERATION;
use crate::history::event::{AttemptStatus, Event, FileVersion, JobBasis, OutputBefore, Timed};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_tasks::task::Checkpoint;

/// Nanoseconds of a second.
const NS: i128 = 1_000_000_000;

/// No job begins its tasks as often; a history that says so has made it up.
const ROUNDS_MAX: usize = 8;

/// What is known of a dead job.
#[derive(Debug, Default)]
pub(in crate::jobs) struct ReplayedHistory {
    /// What it went by, if it had come so far.
    pub(in crate::jobs) began: Option<JobBasis>,
    /// The staged output, and the report that went with it, if it was about to be published.
    pub(super) publishing: Option<(FileVersion, Value)>,
    /// Where relative names of its locations begin.
    cwd: PathBuf,
    /// Reports of tasks that uploaded something, of a job that numbers its tasks anew in each stage: as JSON.
    uploaded: Vec<String>,
    rounds: Vec<Round>,
    /// The round that events belong to.
    current: usize,
}

/// The tasks of one plan.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Attempts that began.
    pub(super) tried: Vec<(u32, u32)>,
    /// Tasks that were over: what they were, and what they made.
    pub(super) kept: BTreeMap<u32, (u64, Checkpoint)>,
}

impl ReplayedHistory {
    /// What is known of the tasks, the `round`th time that they began.
    pub(super) fn round(&self, round: u32) -> &Round {
        const NOTHING: &Round = &Round {
            tried: Vec::new(),
            kept: BTreeMap::new(),
        };
        self.rounds.get(round as usize).unwrap_or(NOTHING)
    }

    /// Nothing of its tasks is believed any more; only their attempts' numbers stay given.
    pub(in crate::jobs) fn forget_tasks(&mut self) {
        self.rounds.iter_mut().for_each(|round| round.kept.clear());
        self.uploaded.clear();
    }

    /// Reports of tasks that uploaded something, in the order in which these ended, of a job whose tasks have no places in a plan;
    /// and the directory in which their relative names begin.
    pub(in crate::jobs) fn uploaded(&self) -> (&[String], &Path) {
        (&self.uploaded, &self.cwd)
    }

    /// The hash of what its own code is, if that was kept.
    pub(in crate::jobs) fn definition(&self) -> Option<&str> {
        self.began.as_ref()?.definition.as_deref()
    }

    /// The names of the whole files that tasks wrote, as the history has them.
    pub(in crate::jobs) fn files_of_tasks(&self) -> Vec<PathBuf> {
        let tasks = self.rounds.iter().flat_map(|round| round.kept.values());
        let files = tasks.flat_map(|(_, kept)| kept.files());
        files.map(|file| file.name.clone()).collect()
    }

    /// Fails unless the inputs are those that the job began with.
    pub(super) fn check_inputs(&self, now: &[FileVersion]) -> Result<()> {
        let Some(began) = &self.began else {
            return Ok(()); // nothing had been read
        };
        if began.inputs.len() != now.len() {
            let (then, now) = (began.inputs.len(), now.len());
            let message = format!("the job began with {then} input files, and there are {now} now");
            return Err(changed(message));
        }
        let mut pairs = began.inputs.iter().zip(now);
        match pairs.find(|(then, now)| !then.is_unchanged(now)) {
            Some((then, now)) => Err(differs(then, now).with_path(now.path.as_typed())),
            None => Ok(()),
        }
    }

    /// Fails where another job has made the output since this one began: it would be replaced by what is older.
    pub(super) fn check_output(
        &self,
        now: Option<&OutputBefore>,
        output: Option<JobOutput<'_>>,
    ) -> Result<()> {
        let then = self.began.as_ref().and_then(|began| began.output.as_ref());
        let (Some(then), Some(now), Some(output)) = (then, now, output) else {
            return Ok(());
        };
        if now.mark.is_none() || now.mark == then.mark {
            return Ok(());
        }
        let message = "the output was written after the job began, and would be replaced";
        Err(Error::new(Kind::Exists, OPERATION, message)
            .with_path(output.path().as_typed())
            .advise("keep that output; or move it away, and resume again"))
    }

    /// What the events of a history tell.
    pub(in crate::jobs) fn of(events: &[Timed]) -> Self {
        let mut replayed = ReplayedHistory::default();
        events.iter().for_each(|event| replayed.take(&event.event));
        replayed
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::JobSubmitted { cwd: Some(cwd), .. } => self.cwd.clone_from(cwd),
            Event::JobBegan(began) if self.began.is_none() => self.began = Some(began.clone()),
            Event::TasksBegan { round } => {
                self.current = (*round as usize).min(ROUNDS_MAX);
                if self.rounds.len() <= self.current {
                    self.rounds.resize_with(self.current + 1, Round::default);
                }
            }
            Event::AttemptStarted { task, attempt, .. } => {
                if let Some(round) = self.rounds.get_mut(self.current) {
                    round.tried.push((*task, *attempt));
                }
            }
            Event::AttemptFinished {
                task,
                outcome: AttemptStatus::Succeeded,
                fingerprint: Some(fingerprint),
                kept: Some(kept),
                ..
            } => {
                if let (Checkpoint::Uploaded(report), []) = (&**kept, &*self.rounds) {
                    self.uploaded.push(report.clone());
                }
                let fingerprint = u64::from_str_radix(fingerprint, 16);
                if let (Some(round), Ok(fingerprint)) =
                    (self.rounds.get_mut(self.current), fingerprint)
                {
                    round.kept.insert(*task, (fingerprint, (**kept).clone()));
                }
            }
            Event::OutputPublishing { staged, report } => {
                self.publishing = Some((staged.clone(), report.clone()));
            }
            _ => {}
        }
    }
}

fn differs(then: &FileVersion, now: &FileVersion) -> Error {
    if then.bytes != now.bytes {
        return changed(format!(
            "an input changed since the job began: it had {} bytes and has {} now",
            then.bytes, now.bytes
        ));
    }
    let message =
        "an input changed since the job began, or it is a copy: its time stamp is another one";
    let modified: i128 = then.modified_ns.parse().unwrap_or_default();
    let (s, ns) = (modified.div_euclid(NS), modified.rem_euclid(NS));
    Error::new(Kind::InputChanged, OPERATION, message).advise(format!(
        "if its bytes are the same, set its time stamp (`touch -d @{s}.{ns:09}` and the file) and resume again; \
         if not, start the job anew"
    ))
}

fn changed(message: String) -> Error {
    Error::new(Kind::InputChanged, OPERATION, message)
        .advise("put the input back as it was and resume again, or start the job anew")
}
