//! What a dead job was, as its history has it, and whether it can be resumed.

use std::path::Path;

use serde_json::Value;

use crate::history::event::{Event, Timed};
use crate::jobs::registry::JobSpec;
use crate::jobs::steps::refusal::NOT_BEGUN;
use crate::jobs::steps::{OPERATION, ReplayedHistory, refusal};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::HIDDEN;

/// The options of a dead job, also as they were given, and its history.
///
/// # Errors
/// The job is over, its history is not that of the folder, or of another version of the program.
pub(super) fn read(folder: &Path, events: &[Timed]) -> Result<(JobSpec, Value, ReplayedHistory)> {
    let Some(Event::JobSubmitted {
        job_id,
        command,
        spec: options,
        program,
        cwd,
        ..
    }) = events.first().map(|event| &event.event)
    else {
        return Err(foreign("it does not begin with a job"));
    };
    let name = folder.file_name().unwrap_or_default();
    if name != job_id.as_str() {
        return Err(foreign(&format!("it is that of {job_id:?}")));
    }
    let over = events.iter().find_map(|event| match &event.event {
        Event::JobFinished { status, .. } => Some(status),
        _ => None,
    });
    if let Some(status) = over {
        let message = format!("it is over: {status}");
        return Err(
            Error::new(Kind::BadInput, OPERATION, message).advise(format!(
                "run it again: `gristmill jobs show {job_id}` has its command"
            )),
        );
    }
    let spec = JobSpec::from_json(&options.to_string())?;
    let Some(cwd) = cwd.as_deref().filter(|cwd| cwd.is_absolute()) else {
        return Err(foreign("it does not say where it was begun"));
    };
    if spec.command != command {
        return Err(foreign(&format!(
            "its options are not those of {command:?}"
        )));
    }
    let replayed = ReplayedHistory::of(events);
    let options_text = options.to_string();
    may_resume(
        &spec,
        &options_text,
        program,
        replayed.definition().is_some(),
    )?;
    Ok((spec.rooted(cwd), options.clone(), replayed))
}

fn foreign(what: &str) -> Error {
    let message = format!("its history was not written by the job of this directory: {what}");
    Error::new(Kind::BadInput, OPERATION, message).advise("start the job anew")
}

/// Why a dead job cannot be resumed, as far as its history tells; nothing if it can.
///
/// The one answer to that question, for the list of jobs and for those who resume one. `options` is the job's spec as
/// JSON, `program` the version that began it, `keeps_code` whether what its own code is was kept.
///
/// ```
/// use gristmill_engine::{VERSION, jobs::why_not_resumed};
/// let sort = |output| format!(r#"{{"sort": {{"inputs": ["a"], "output": "{output}"}}}}"#);
/// assert_eq!(why_not_resumed(&sort("b"), VERSION, false), None);
/// assert!(why_not_resumed(&sort("-"), VERSION, false).is_some());
/// assert!(why_not_resumed(&sort("b"), "0.0.1", false).is_some());
/// let signed = r#"{"sort": {"inputs": ["https://h/a?sig=***"], "output": "b"}}"#;
/// assert!(why_not_resumed(signed, VERSION, false).is_some());
/// ```
pub fn why_not_resumed(options: &str, program: &str, keeps_code: bool) -> Option<String> {
    let spec = JobSpec::from_json(options);
    let found = spec.and_then(|spec| may_resume(&spec, options, program, keeps_code));
    found.err().map(|error| error.to_string())
}

fn may_resume(spec: &JobSpec, options: &str, program: &str, keeps_code: bool) -> Result<()> {
    if options.contains("://") && options.contains(&format!("={HIDDEN}")) {
        let what = "the history does not keep what signs the address of an input";
        return Err(refusal(what, "give the whole address again").with("command", spec.command));
    }
    if program != crate::VERSION {
        let version = crate::VERSION;
        let message = format!("Gristmill {program} began it, and this is {version}");
        return Err(Error::new(Kind::BadInput, OPERATION, message)
            .advise("resume it with the version that began it, or start it anew"));
    }
    let found = match spec.kind.resumable() {
        Ok(()) if spec.kind.keeps_code() && !keeps_code => Err(refusal(NOT_BEGUN, "")),
        found => found,
    };
    found.map_err(|error| error.with("command", spec.command))
}
