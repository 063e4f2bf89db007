//! Workers that had nothing to do, as a stage had fewer tasks than there were workers: said at the job's end.
//!
//! The rule that must hold: a warning names what the user can change. Where nothing can be (the input has as few records
//! as tasks, or as few keys), it says that.

use serde_json::Value;

use crate::plan::mapreduce::{MapReduceSpec, UserCodeCommand};
use crate::runner::phases::Phase;
use gristmill_tasks::task::UserTaskReport;

/// Seconds of a stage from which on it matters: below, more tasks would cost what they save.
const WORTH_SAYING_S: f64 = 2.0;

/// Splits for each worker that share the work evenly.
const SPLITS_EACH: u64 = 4;

/// A job that is over, as far as it says why workers were idle.
#[derive(Debug)]
pub(super) struct Finished<'a> {
    pub(super) spec: &'a MapReduceSpec,
    pub(super) workers: usize,
    /// What the maps did, together.
    pub(super) maps: &'a UserTaskReport,
    /// What the reduces did.
    pub(super) reduces: &'a UserTaskReport,
}

impl Finished<'_> {
    /// What the report says of these stages.
    pub(super) fn warnings<'p>(
        &'p self,
        phases: &'p [Phase],
    ) -> impl Iterator<Item = String> + use<'p> {
        let idle = |phase: &&Phase| {
            phase.tasks > 0 && phase.tasks < self.workers && phase.wall_s >= WORTH_SAYING_S
        };
        phases.iter().filter(idle).filter_map(|phase| {
            let advice = match phase.name {
                "map" => self.of_maps(),
                "reduce" if !self.spec.form.is_joined() => self.of_reduces(),
                _ => return None,
            };
            Some(format!(
                "{} of {} workers were idle for the {:.1} s of the {} stage, which has {} task(s): {advice}.",
                self.workers - phase.tasks,
                self.workers,
                phase.wall_s,
                phase.name,
                phase.tasks
            ))
        })
    }

    fn of_maps(&self) -> String {
        let splits = &self.spec.splits;
        if self.maps.records_in <= splits.len() as u64 {
            return format!("the input has {} record(s)", self.maps.records_in);
        }
        let are_files = |is: fn(&Value) -> bool| {
            splits.iter().all(|split| {
                let what = split.what.value();
                let pieces = what["pieces"].as_array();
                pieces.is_some_and(|pieces| pieces.len() == 1 && is(&pieces[0]))
            })
        };
        if are_files(|piece| !piece["codec"].is_null()) {
            return "a compressed file is one task; to use them, give more files, or uncompressed ones".to_owned();
        }
        if splits.iter().all(|split| is_one_group(&split.what.value())) {
            return "a row group of Parquet, or a record batch of Arrow, is one task; to use them, write the input \
                    with smaller ones"
                .to_owned();
        }
        let wanted = self.workers as u64 * SPLITS_EACH;
        let bytes = (self.spec.input_bytes() / wanted).max(1);
        match self.spec.command {
            UserCodeCommand::Mapreduce if are_files(is_in_store) => {
                format!(
                    "to use them, give the job a smaller split_max, such as split_max={bytes} (files of gm.csv in \
                     a store are cut with multiline=False, if no quoted field holds a newline)"
                )
            }
            UserCodeCommand::Mapreduce => {
                format!("to use them, give the job a smaller split_max, such as split_max={bytes}")
            }
            UserCodeCommand::Native => {
                "the input is too small to be cut into more tasks".to_owned()
            }
            UserCodeCommand::Streaming => format!(
                "to use them, give -D mapreduce.job.maps={wanted} (with CombineTextInputFormat \
                 -D mapreduce.input.fileinputformat.split.maxsize={bytes})"
            ),
        }
    }

    fn of_reduces(&self) -> String {
        let partitions = u64::from(self.spec.partitions);
        if self.reduces.groups <= partitions {
            return format!("the maps gave {} key(s)", self.reduces.groups);
        }
        match self.spec.command {
            UserCodeCommand::Mapreduce => format!(
                "to use them, give the job more parts, such as parts={}",
                self.workers
            ),
            UserCodeCommand::Native => format!("to use them, ask for {} parts", self.workers),
            UserCodeCommand::Streaming => {
                format!(
                    "to use them, give -D mapreduce.job.reduces={}",
                    self.workers
                )
            }
        }
    }
}

/// Whether a piece is one of an object of a store.
fn is_in_store(piece: &Value) -> bool {
    piece["path"]
        .as_str()
        .is_some_and(|path| path.contains("://"))
}

/// Whether a split is a row group or a record batch of a table: such a split is cut no further.
fn is_one_group(what: &Value) -> bool {
    let number = |name: &str| what[name].as_u64();
    match (number("first"), number("last"), number("row")) {
        (Some(first), Some(last), Some(_)) => last == first + 1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::event::PhaseUse;

    fn said(command: &str, codec: &str, tasks: usize, wall_s: f64, records: u64) -> Vec<String> {
        let what = format!(r#"{{"pieces": [{{"codec": {codec}}}]}}"#);
        said_of(command, &what, tasks, wall_s, records)
    }

    fn said_of(command: &str, what: &str, tasks: usize, wall_s: f64, records: u64) -> Vec<String> {
        let split = format!(r#"{{"bytes": 800, "what": {what}}}"#);
        let splits = vec![split; tasks].join(",");
        let text = format!(
            r#"{{"command": "{command}", "splits": [{splits}], "partitions": 1, "output": "o"}}"#
        );
        let spec: MapReduceSpec = serde_json::from_str(&text).unwrap();
        let phase = |name, tasks| Phase {
            name,
            tasks,
            wall_s,
            used: PhaseUse::default(),
        };
        let report = UserTaskReport {
            records_in: records,
            groups: records,
            ..UserTaskReport::default()
        };
        let finished = Finished {
            spec: &spec,
            workers: 4,
            maps: &report,
            reduces: &report,
        };
        let phases = [phase("map", tasks), phase("reduce", 1), phase("commit", 0)];
        finished.warnings(&phases).collect()
    }

    #[test]
    fn idle_workers_come_with_what_to_do() {
        let found = said("mapreduce", "null", 1, 3.0, 100);
        assert!(found[0].contains("3 of 4 workers were idle for the 3.0 s of the map stage"));
        assert!(found[0].ends_with("such as split_max=50."));
        assert!(found[1].contains("parts=4."));
        let found = said("streaming", "null", 2, 3.0, 100);
        assert!(found[0].contains("2 of 4 workers") && found[0].contains("split.maxsize=100)."));
        assert!(found[0].contains("give -D mapreduce.job.maps=16 (with CombineTextInputFormat "));
        assert!(found[1].contains("-D mapreduce.job.reduces=4."));
        assert!(
            said("mapreduce", "\"gzip\"", 2, 3.0, 100)[0].contains("a compressed file is one task")
        );
        let found = said("mapreduce", "null", 1, 3.0, 1);
        assert!(
            found[0].ends_with("the input has 1 record(s).") && found[1].ends_with("1 key(s).")
        );
    }

    #[test]
    fn no_smaller_splits_are_advised_where_there_are_none() {
        let group = |last| format!(r#"{{"path": "a", "first": 0, "last": {last}, "row": 0}}"#);
        let found = said_of("mapreduce", &group(1), 1, 3.0, 100);
        assert!(found[0].contains("a row group of Parquet") && !found[0].contains("split_max"));
        let found = said_of("mapreduce", &group(2), 1, 3.0, 100);
        assert!(found[0].ends_with("such as split_max=50."));
        let far = r#"{"pieces": [{"path": "s3://b/a", "codec": null}]}"#;
        let found = said_of("mapreduce", far, 1, 3.0, 100);
        assert!(found[0].contains("split_max=50 (files of gm.csv in a store are cut with"));
    }

    #[test]
    fn short_stages_and_busy_ones_say_nothing() {
        assert!(said("mapreduce", "null", 1, 1.9, 100).is_empty());
        assert_eq!(said("mapreduce", "null", 4, 3.0, 100).len(), 1);
    }
}
