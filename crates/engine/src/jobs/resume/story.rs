//! What a history tells of a dead job: its options, what it went by, and which of its tasks are over.

use std::collections::BTreeMap;

use serde_json::Value;

use super::OPERATION;
use crate::commit::Taken;
use crate::error::{Error, Kind, Result};
use crate::history::Held;
use crate::history::event::{Began, Event, Known, Outcome};
use crate::plan::JobSpec;
use crate::task::Kept;

/// No job begins its tasks as often; a history that says so has made it up.
const MOST_ROUNDS: usize = 8;

/// What is known of a dead job.
#[derive(Debug, Default)]
pub(in crate::jobs) struct Story {
    /// What it went by, if it had come so far.
    pub(in crate::jobs) began: Option<Began>,
    /// The staged output, and the report that went with it, if it was about to be published.
    pub(super) publishing: Option<(Known, Value)>,
    /// Whether its folders have been taken over.
    pub(super) taken: Taken,
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
    pub(super) kept: BTreeMap<u32, (u64, Kept)>,
}

impl Story {
    /// What is known of the tasks, the `round`th time that they began.
    pub(super) fn round(&self, round: u32) -> &Round {
        const NOTHING: &Round = &Round {
            tried: Vec::new(),
            kept: BTreeMap::new(),
        };
        self.rounds.get(round as usize).unwrap_or(NOTHING)
    }

    /// Nothing of its tasks is believed any more; only their attempts' numbers stay given.
    pub(super) fn forget_tasks(&mut self) {
        self.rounds.iter_mut().for_each(|round| round.kept.clear());
    }

    /// The names of the whole files that tasks wrote, as the history has them.
    pub(in crate::jobs) fn files_of_tasks(&self) -> Vec<String> {
        let tasks = self.rounds.iter().flat_map(|round| round.kept.values());
        let files = tasks.flat_map(|(_, kept)| kept.files());
        files.map(|file| file.name.clone()).collect()
    }

    /// Fails unless the inputs are those that the job began with.
    pub(super) fn check_inputs(&self, now: &[Known]) -> Result<()> {
        let Some(began) = &self.began else {
            return Ok(()); // nothing had been read
        };
        if began.inputs.len() != now.len() {
            let (then, now) = (began.inputs.len(), now.len());
            let message = format!("the job began with {then} input files, and there are {now} now");
            return Err(changed(message));
        }
        let mut pairs = began.inputs.iter().zip(now);
        match pairs.find(|(then, now)| !then.is_same(now)) {
            Some((then, now)) => {
                let message = format!(
                    "an input changed since the job began: it had {} bytes and has {} now, or it is another file",
                    then.bytes, now.bytes
                );
                Err(changed(message).with_path(&now.path))
            }
            None => Ok(()),
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::JobBegan(began) if self.began.is_none() => self.began = Some(began.clone()),
            Event::TasksBegan { round } => {
                self.current = (*round as usize).min(MOST_ROUNDS);
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
                outcome: Outcome::Succeeded,
                fingerprint: Some(fingerprint),
                kept: Some(kept),
                ..
            } => {
                let fingerprint = u64::from_str_radix(fingerprint, 16);
                if let (Some(round), Ok(fingerprint)) =
                    (self.rounds.get_mut(self.current), fingerprint)
                {
                    round.kept.insert(*task, (fingerprint, kept.clone()));
                }
            }
            Event::OutputPublishing { staged, report } => {
                self.publishing = Some((staged.clone(), report.clone()));
            }
            _ => {}
        }
    }
}

fn changed(message: String) -> Error {
    Error::new(Kind::InputChanged, OPERATION, message)
        .advise("put the input back as it was and resume again, or start the job anew")
}

/// The options of a dead job, also as they were given, and its story.
///
/// # Errors
/// The job is over, its history is not that of the folder, or of another version of the program.
pub(super) fn read(held: &Held) -> Result<(JobSpec, Value, Story)> {
    let Some(Event::JobSubmitted {
        job_id,
        command,
        spec: options,
        program,
        cwd,
        ..
    }) = held.events.first().map(|event| &event.event)
    else {
        return Err(foreign("it does not begin with a job"));
    };
    let name = held.folder.file_name().unwrap_or_default();
    if name != job_id.as_str() {
        return Err(foreign(&format!("it is that of {job_id:?}")));
    }
    let over = held.events.iter().find_map(|event| match &event.event {
        Event::JobFinished { status, .. } => Some(status),
        _ => None,
    });
    if let Some(status) = over {
        let message = format!("it is over: {status}");
        return Err(Error::new(Kind::BadInput, OPERATION, message)
            .advise("see `gristmill jobs show`; what is over can only be run again"));
    }
    if program != crate::VERSION {
        let message = format!(
            "Gristmill {program} began it, and this is {}",
            crate::VERSION
        );
        return Err(Error::new(Kind::BadInput, OPERATION, message)
            .advise("go on with the version that began it, or start it anew"));
    }
    let spec = JobSpec::from_json(&options.to_string())?;
    let Some(cwd) = cwd.as_deref().filter(|cwd| cwd.is_absolute()) else {
        return Err(foreign("it does not say where it was begun"));
    };
    if spec.command() != command {
        return Err(foreign(&format!(
            "its options are not those of {command:?}"
        )));
    }
    super::resumable(&spec)?;
    let mut story = Story::default();
    held.events
        .iter()
        .for_each(|event| story.take(&event.event));
    Ok((spec.rooted(cwd), options.clone(), story))
}

fn foreign(what: &str) -> Error {
    let message = format!("its history is none that a job of this folder wrote: {what}");
    Error::new(Kind::BadInput, OPERATION, message).advise("start the job anew")
}
