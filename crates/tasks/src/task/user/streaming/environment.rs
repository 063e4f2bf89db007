//! The variables of a script: Hadoop's properties, each character of their names that is no letter and no digit as `_`.
//!
//! A property with an old name is there under both, as Hadoop has it.

use std::ffi::OsString;

use super::ScriptAttempt;
use crate::hadoop::script::input::uri;
use gristmill_storage::input::FileRange;

/// Names of a task's properties: Hadoop's, and the one before.
const JOB: [&str; 2] = ["mapreduce.job.id", "mapred.job.id"];
const TASK: [&str; 2] = ["mapreduce.task.id", "mapred.tip.id"];
const ATTEMPT: [&str; 2] = ["mapreduce.task.attempt.id", "mapred.task.id"];
const PARTITION: [&str; 2] = ["mapreduce.task.partition", "mapred.task.partition"];
const IS_MAP: [&str; 2] = ["mapreduce.task.ismap", "mapred.task.is.map"];
const OUTPUT: [&str; 2] = ["mapreduce.task.output.dir", "mapred.work.output.dir"];
const FILE: [&str; 2] = ["mapreduce.map.input.file", "map.input.file"];
const START: [&str; 2] = ["mapreduce.map.input.start", "map.input.start"];
const LENGTH: [&str; 2] = ["mapreduce.map.input.length", "map.input.length"];
const SKIPPING: [&str; 2] = ["mapreduce.job.skiprecords", "mapred.skip.on"];
const LOCAL: [&str; 2] = ["mapreduce.job.local.dir", "job.local.dir"];

/// A property's name as a variable's.
///
/// ```
/// use gristmill_tasks::task::streaming::variable;
/// assert_eq!(variable("mapreduce.task.id"), "mapreduce_task_id");
/// ```
pub fn variable(property: &str) -> String {
    property
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect()
}

/// The variables of one attempt, beside those of the job.
pub(super) fn of_attempt(
    attempted: &ScriptAttempt<'_>,
    piece: Option<&FileRange>,
) -> Vec<(String, OsString)> {
    let (spec, number) = (attempted.spec, attempted.number);
    let task = task_name(attempted);
    let mut found = Vec::new();
    let mut set = |names: [&str; 2], value: OsString| {
        found.extend(names.map(|name| (variable(name), value.clone())));
    };
    set(JOB, spec.job_id.clone().into());
    set(TASK, format!("task_{task}").into());
    set(ATTEMPT, attempt_name(attempted).into());
    set(PARTITION, number.to_string().into());
    set(IS_MAP, attempted.is_map.to_string().into());
    set(SKIPPING, attempted.left_out.is_some().to_string().into());
    set(OUTPUT, spec.output.clone().into());
    set(LOCAL, attempted.folder.into());
    if let Some(piece) = piece {
        set(FILE, uri(&piece.file.path));
        set(START, piece.offset.to_string().into());
        set(LENGTH, piece.bytes.to_string().into());
    }
    found
}

/// The attempt's name.
pub(super) fn attempt_name(attempted: &ScriptAttempt<'_>) -> String {
    format!(
        "attempt_{}_{}",
        task_name(attempted),
        attempted.spec.attempt
    )
}

/// What the names of the task and its attempts have in common.
fn task_name(attempted: &ScriptAttempt<'_>) -> String {
    let job = attempted.spec.job_id.trim_start_matches("job_");
    let kind = if attempted.is_map { 'm' } else { 'r' };
    format!("{job}_{kind}_{:06}", attempted.number)
}
