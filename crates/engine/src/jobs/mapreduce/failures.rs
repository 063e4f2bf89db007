//! Tasks that failed for good in a job that may succeed without some of them: Hadoop's
//! `mapreduce.{map,reduce}.failures.maxpercent`.
//!
//! The output lacks the results of such a task: those of its split, or of its partition. So the report counts these tasks and
//! names them in its warnings, and the proof of the job covers all other tasks.

use crate::plan::mapreduce::MapReduceSpec;
use gristmill_base::error::{Error, Kind};
use gristmill_tasks::task::{UserTaskKind, UserTaskReport, UserTaskSpec};

/// How many tasks a warning names at most.
const NAMED_MAX: usize = 10;

/// The failed tasks of a stage, whose results the output lacks.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Their numbers: of splits, or of partitions.
    tasks: Vec<u32>,
    /// Input bytes of map tasks; 0 for reduce tasks.
    pub(super) bytes: u64,
    /// The error of the first one that failed.
    error: Option<Error>,
}

/// The failed tasks of both stages.
#[derive(Debug, Default)]
pub(super) struct StageFailures {
    pub(super) maps: Missing,
    pub(super) reduces: Missing,
}

impl Missing {
    /// How many tasks are missing.
    pub(super) fn count(&self) -> u64 {
        self.tasks.len() as u64
    }

    fn warning(&self, of: u64, kind: &str, what: &str) -> Option<String> {
        let error = self.error.as_ref()?;
        let mut numbers = self.tasks.clone();
        numbers.sort_unstable();
        let named: Vec<String> = numbers.iter().take(NAMED_MAX).map(u32::to_string).collect();
        let more = if numbers.len() > NAMED_MAX {
            ", ..."
        } else {
            ""
        };
        Some(format!(
            "{} of {of} {kind} tasks failed, and their results are missing from the output: {what} {}{more}. \
             The first error: {error}",
            numbers.len(),
            named.join(", "),
        ))
    }
}

impl StageFailures {
    /// Lets the job succeed without a task that failed for good: returns an empty report for it, or `None` if the job fails
    /// with it. Only errors of user code and bad input may be passed over: a full disk would fail other tasks, too.
    pub(super) fn without(
        &mut self,
        spec: &MapReduceSpec,
        task: &UserTaskSpec,
        error: &Error,
    ) -> Option<UserTaskReport> {
        if !matches!(error.kind(), Kind::UserCode | Kind::BadInput) {
            return None;
        }
        let (missing, number, bytes) = match &task.work {
            UserTaskKind::Map { number, bytes, .. } => (&mut self.maps, *number, *bytes),
            UserTaskKind::Reduce { partition, .. } | UserTaskKind::Regroup { partition, .. } => {
                (&mut self.reduces, *partition, 0)
            }
        };
        let (tasks, percent) = match &task.work {
            UserTaskKind::Map { .. } => (spec.splits.len() as u64, spec.map_failures_percent),
            UserTaskKind::Reduce { .. } | UserTaskKind::Regroup { .. } => {
                (spec.partitions.into(), spec.reduce_failures_percent)
            }
        };
        if (missing.count() + 1) * 100 > tasks * u64::from(percent) {
            return None;
        }
        missing.tasks.push(number);
        missing.bytes += bytes;
        missing.error.get_or_insert_with(|| error.clone());
        Some(UserTaskReport::default())
    }

    /// Warnings for the report, one for each stage with failed tasks.
    pub(super) fn warnings(&self, spec: &MapReduceSpec) -> impl Iterator<Item = String> {
        let maps = self.maps.warning(spec.splits.len() as u64, "map", "split");
        let reduces = self
            .reduces
            .warning(u64::from(spec.partitions), "reduce", "partition");
        maps.into_iter().chain(reduces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_tasks::task::{SplitData, UserTaskPlan};

    fn spec(maps: u32, reduces: u32) -> MapReduceSpec {
        let splits = vec![r#"{"bytes": 3, "what": null}"#; 20].join(",");
        let text = format!(
            r#"{{"splits": [{splits}], "partitions": 4, "output": "o",
                 "map_failures_percent": {maps}, "reduce_failures_percent": {reduces}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn task(work: UserTaskKind) -> UserTaskSpec {
        let plan = UserTaskPlan {
            partitions: 4,
            places: Vec::new(),
            chunk_bytes: 0,
            buffer_bytes: 0,
            ahead_bytes: 0,
            compression: Default::default(),
            attempts: "o".into(),
            uploads_to: None,
            is_one_file: false,
        };
        UserTaskSpec {
            plan: plan.into(),
            work,
        }
    }

    fn map(number: u32) -> UserTaskSpec {
        task(UserTaskKind::Map {
            number,
            bytes: 3,
            what: SplitData::of(&()).unwrap(),
        })
    }

    /// How many tasks of `all` may fail before the job does.
    fn spared(mut may_fail: impl FnMut(u32) -> bool, all: u32) -> usize {
        (0..all).take_while(|number| may_fail(*number)).count()
    }

    #[test]
    fn so_many_percent_may_fail_and_not_one_more() {
        let error = Error::new(Kind::UserCode, "map a split", "it failed");
        for (percent, most) in [
            (0, 0),
            (4, 0),
            (5, 1),
            (9, 1),
            (10, 2),
            (50, 10),
            (100, 20),
            (999, 20),
        ] {
            let (spec, mut failures) = (spec(percent, 0), StageFailures::default());
            let found = spared(
                |number| failures.without(&spec, &map(number), &error).is_some(),
                20,
            );
            assert_eq!(found, most, "{percent} %");
            assert_eq!(failures.maps.bytes, 3 * most as u64);
        }
        let reduce = |partition| {
            task(UserTaskKind::Reduce {
                partition,
                runs: std::sync::Arc::default(),
                source_bytes: 0,
            })
        };
        let (spec, mut failures) = (spec(0, 50), StageFailures::default());
        assert!(failures.without(&spec, &map(0), &error).is_none());
        let found = spared(
            |number| failures.without(&spec, &reduce(number), &error).is_some(),
            4,
        );
        assert_eq!((found, failures.reduces.count()), (2, 2));
        let said: Vec<_> = failures.warnings(&spec).collect();
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("2 of 4 reduce tasks failed"),
            "{}",
            said[0]
        );
        assert!(said[0].contains("partition 0, 1. The first error: cannot map a split"));
    }

    #[test]
    fn a_full_disk_is_nobodys_to_spare() {
        let (spec, mut failures) = (spec(100, 100), StageFailures::default());
        for kind in [
            Kind::DiskFull,
            Kind::Io,
            Kind::Bug,
            Kind::Memory,
            Kind::Cancelled,
        ] {
            let error = Error::new(kind, "write", "no");
            assert!(failures.without(&spec, &map(0), &error).is_none());
        }
    }
}
