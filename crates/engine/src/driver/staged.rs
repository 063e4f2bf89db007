//! How plans are written: typed stages in sequence, each made from the reports of the one before.
//!
//! ```text
//!   stage("sample", …).then(|keys| stage("map", …).then(|reports| …))      what follows sees the reports of its kind
//!   passes: fn next(runs) { few enough? merge : stage("pass", …).then(|runs| next(runs)) }        a loop
//! ```
//!
//! A [`Next`] is a stage with what follows from its reports, or the end. What jobs share is a function that gives one, and
//! takes what goes on behind it. [`StagedPlan`] is the plan that the driver asks.
//!
//! Decision: docs/decisions/pure-driver.md.

use std::marker::PhantomData;

use super::plan::{Needs, Plan, Stage};
use gristmill_base::error::{Error, Result};
use gristmill_tasks::task::{TaskReport, TaskSpec, TypedTask};

type Follow = Box<dyn FnOnce(u32, Vec<TaskReport>) -> Result<Next> + Send>;

/// What a plan does next: a stage with what follows from its reports; or nothing more.
pub struct Next(Option<(Stage, Follow)>);

impl Next {
    /// Nothing more.
    pub fn end() -> Self {
        Next(None)
    }
}

/// A stage of tasks of one kind.
pub struct TypedStage<K> {
    stage: Stage,
    kind: PhantomData<fn() -> K>,
}

/// A stage of these tasks, which need all tasks of earlier stages. `bytes` are those that its tasks will note as done.
///
/// ```
/// use gristmill_engine::driver::{Next, Plan, StagedPlan, stage};
/// use gristmill_engine::task::{SampleSpec, TaskReport};
/// let sample = |_| SampleSpec { stretches: Vec::new(), record_bytes: 100 };
/// let two = stage("sample", 0, (0..2).map(sample));
/// let next = two.then(|reports| {
///     assert_eq!(reports.of_tasks().map(|(task, _)| task).collect::<Vec<_>>(), [0, 1]);
///     Ok(Next::end())
/// });
/// let mut plan = StagedPlan::new(next);
/// assert_eq!(plan.next_stage(Vec::new())?.map(|stage| stage.tasks.len()), Some(2));
/// assert!(plan.next_stage(vec![TaskReport::Sample(Vec::new()); 2])?.is_none());
/// # Ok::<(), gristmill_engine::error::Error>(())
/// ```
pub fn stage<K: TypedTask>(
    name: &'static str,
    bytes: u64,
    tasks: impl IntoIterator<Item = K>,
) -> TypedStage<K> {
    let tasks = tasks.into_iter().map(K::into).collect();
    TypedStage {
        stage: Stage::new(name, bytes, tasks),
        kind: PhantomData,
    }
}

impl<K: TypedTask> TypedStage<K> {
    /// The stage, with tasks that need these.
    pub fn needing(self, needs: Needs) -> Self {
        TypedStage {
            stage: self.stage.needing(needs),
            ..self
        }
    }

    /// How many tasks it has.
    pub fn tasks(&self) -> usize {
        self.stage.tasks.len()
    }

    /// The stage, and what follows from its reports.
    pub fn then(
        self,
        follow: impl FnOnce(Reports<K::Report>) -> Result<Next> + Send + 'static,
    ) -> Next {
        let follow: Follow = Box::new(|first_task, reports| {
            let typed = reports.into_iter().map(K::typed);
            let reports = typed.collect::<Option<_>>().ok_or_else(wrong_report)?;
            follow(Reports {
                first_task,
                reports,
            })
        });
        Next(Some((self.stage, follow)))
    }
}

/// The reports of a stage, in order of its tasks.
#[derive(Debug)]
pub struct Reports<R> {
    first_task: u32,
    reports: Vec<R>,
}

impl<R> Reports<R> {
    /// Each with its task's number.
    pub fn of_tasks(self) -> impl Iterator<Item = (u32, R)> {
        (self.first_task..).zip(self.reports)
    }
}

impl<R> IntoIterator for Reports<R> {
    type Item = R;
    type IntoIter = std::vec::IntoIter<R>;

    fn into_iter(self) -> Self::IntoIter {
        self.reports.into_iter()
    }
}

/// What stands for a task that failed for good, if anything.
type Without = Box<dyn FnMut(&TaskSpec, &Error) -> Option<TaskReport> + Send>;

/// A plan of typed stages.
#[derive(Default)]
pub struct StagedPlan {
    /// The first stage, until it is asked for.
    next: Option<Next>,
    follow: Option<Follow>,
    /// The numbers of tasks, which the driver counts over all stages: the first of the stage whose reports come next, and
    /// the one behind its last.
    first_task: u32,
    next_task: u32,
    again: Option<Box<dyn FnMut() -> Next + Send>>,
    without: Option<Without>,
}

impl StagedPlan {
    /// The plan that begins so.
    pub fn new(next: Next) -> Self {
        StagedPlan {
            next: Some(next),
            ..StagedPlan::default()
        }
    }

    /// The plan that begins so, as often as it has to.
    pub fn restarting(mut begin: impl FnMut() -> Next + Send + 'static) -> Self {
        StagedPlan {
            next: Some(begin()),
            again: Some(Box::new(begin)),
            ..StagedPlan::default()
        }
    }

    /// The plan, for a job that is done without a task that failed for good, if `without` has a report that stands for it.
    pub fn without(
        self,
        without: impl FnMut(&TaskSpec, &Error) -> Option<TaskReport> + Send + 'static,
    ) -> Self {
        StagedPlan {
            without: Some(Box::new(without)),
            ..self
        }
    }
}

impl Plan for StagedPlan {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let next = match (self.next.take(), self.follow.take()) {
            (Some(next), _) => next,
            (None, Some(follow)) => follow(self.first_task, reports)?,
            (None, None) => Next::end(),
        };
        self.first_task = self.next_task;
        Ok(next.0.map(|(stage, follow)| {
            self.next_task += stage.tasks.len() as u32;
            self.follow = Some(follow);
            stage
        }))
    }

    fn restart(&mut self) -> bool {
        let Some(begin) = &mut self.again else {
            return false;
        };
        self.next = Some(begin());
        (self.first_task, self.next_task) = (0, 0);
        true
    }

    fn without(&mut self, task: &TaskSpec, error: &Error) -> Option<TaskReport> {
        self.without.as_mut()?(task, error)
    }
}

/// The error of a report that none of a stage's tasks can have given.
fn wrong_report() -> Error {
    Error::bug("run the job", "a report of another kind")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_tasks::task::SampleSpec;

    fn samples(count: u32) -> TypedStage<SampleSpec> {
        let sample = |_| SampleSpec {
            stretches: Vec::new(),
            record_bytes: 100,
        };
        stage("sample", 0, (0..count).map(sample))
    }

    /// Stages of so many tasks, until there are no more.
    fn stages(mut counts: std::vec::IntoIter<u32>, seen: Vec<u32>) -> Next {
        let Some(count) = counts.next() else {
            assert_eq!(seen, [0, 1, 2, 3, 4]);
            return Next::end();
        };
        samples(count).then(move |reports| {
            let numbers = reports.of_tasks().map(|(task, _)| task);
            Ok(stages(counts, seen.into_iter().chain(numbers).collect()))
        })
    }

    fn run_to_end(plan: &mut StagedPlan) -> Vec<usize> {
        let mut tasks = vec![0];
        while let Some(count) = tasks.last().copied()
            && let Some(stage) = plan
                .next_stage(vec![TaskReport::Sample(Vec::new()); count])
                .unwrap()
        {
            tasks.push(stage.tasks.len());
        }
        tasks
    }

    #[test]
    fn tasks_are_numbered_over_stages_and_anew_after_a_restart() {
        let begin = || stages(vec![3, 0, 2].into_iter(), Vec::new());
        let mut plan = StagedPlan::restarting(begin);
        assert_eq!(run_to_end(&mut plan), [0, 3, 0, 2]);
        assert!(plan.restart());
        assert_eq!(run_to_end(&mut plan), [0, 3, 0, 2]);
        assert!(!StagedPlan::new(begin()).restart());
    }

    #[test]
    fn reports_of_another_kind_are_a_bug() {
        let mut plan = StagedPlan::new(samples(1).then(|_| Ok(Next::end())));
        plan.next_stage(Vec::new()).unwrap();
        let error = plan
            .next_stage(vec![TaskReport::SampleKeys(Vec::new())])
            .unwrap_err();
        assert_eq!(error.kind(), gristmill_base::error::Kind::Bug);
    }
}
