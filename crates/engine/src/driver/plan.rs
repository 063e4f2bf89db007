//! What a job is, to the driver: stages of tasks, and which tasks a task needs.
//!
//! ```text
//!   stage "map"      0  1  2  3          Needs::Earlier    all tasks of earlier stages: a barrier
//!   stage "merge"    4 needs 0..2        Needs::Each       4 may start when 0 and 1 are done, while 2 and 3 run
//!                    5 needs 2..4
//!   stage "reduce"   6  7 need 4..6      Needs::All        the same for each
//! ```
//!
//! Tasks are numbered over all stages, in order. The rule that must hold: a task needs tasks of smaller numbers only.
//!
//! Decision: docs/decisions/task-needs.md.

use std::ops::Range;
use std::slice;

use gristmill_base::error::{Error, Result};
use gristmill_tasks::task::{TaskReport, TaskSpec};

/// The tasks whose output a stage's tasks need, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Needs {
    /// Each task needs all tasks of earlier stages.
    #[default]
    Earlier,
    /// Each needs these.
    All(Vec<Range<u32>>),
    /// For each task in order, those that it needs.
    Each(Vec<Vec<Range<u32>>>),
}

impl Needs {
    /// For each task in order, those that it needs, which may be the same for all.
    ///
    /// ```
    /// use gristmill_engine::driver::Needs;
    /// assert_eq!(Needs::each(vec![vec![0..2], vec![0..2]]), Needs::All(vec![0..2]));
    /// assert_eq!(Needs::each(vec![vec![0..2], vec![2..4]]), Needs::Each(vec![vec![0..2], vec![2..4]]));
    /// ```
    pub fn each(needs: Vec<Vec<Range<u32>>>) -> Self {
        match needs.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other == first) => {
                Needs::All(first.clone())
            }
            _ => Needs::Each(needs),
        }
    }
}

/// Tasks that do the same kind of work.
#[derive(Debug)]
pub struct Stage {
    /// What the stage does, for progress and reports.
    pub name: &'static str,
    /// Bytes that its tasks will note as done, in all.
    pub bytes: u64,
    /// Its tasks.
    pub tasks: Vec<TaskSpec>,
    /// What they need.
    pub needs: Needs,
    /// A stage that begins with this one: its specs need no reports of this one, and its tasks start one by one, as
    /// what they need is done.
    pub then: Option<Box<Stage>>,
}

impl Stage {
    /// A stage of these tasks, which need all tasks of earlier stages.
    ///
    /// ```
    /// use gristmill_engine::driver::{Needs, Stage};
    /// let (maps, merges) = (Vec::new(), Vec::new());
    /// let merge = Stage::new("merge", 0, merges).needing(Needs::Each(vec![vec![0..2], vec![2..4]]));
    /// let both = Stage::new("map", 0, maps).then(merge);
    /// assert_eq!(both.then.unwrap().name, "merge");
    /// ```
    pub fn new(name: &'static str, bytes: u64, tasks: Vec<TaskSpec>) -> Self {
        Stage {
            name,
            bytes,
            tasks,
            needs: Needs::default(),
            then: None,
        }
    }

    /// The stage, with tasks that need these.
    pub fn needing(self, needs: Needs) -> Self {
        Stage { needs, ..self }
    }

    /// The stage, with one that begins together with it.
    pub fn then(self, stage: Stage) -> Self {
        let then = Some(Box::new(stage));
        Stage { then, ..self }
    }
}

/// What a job is, to the driver: stages, each made from the reports of those before.
///
/// A plan does no I/O and holds no store: what it must know stands in the reports, what it wants done in its tasks.
pub trait Plan: Send {
    /// The next stage, with those that begin with it, or `None` at the end. `reports` are those of the stages that
    /// the last call gave, in order of their tasks; none at first. A function of its arguments and of what it was
    /// called with before.
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>>;

    /// Forgets what it was called with: the next call is the first again. Whether it can do so; a plan all of whose tasks
    /// give the same whenever they are done again need not.
    fn restart(&mut self) -> bool {
        false
    }

    /// What stands in the reports for a task that failed for good, where the job is to be done without it.
    fn without(&mut self, _task: &TaskSpec, _error: &Error) -> Option<TaskReport> {
        None
    }
}

/// A stage whose tasks the driver has: what they need, and what is still to be said of it.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) name: &'static str,
    pub(super) bytes: u64,
    /// The number of its first task.
    first: u32,
    pub(super) tasks: usize,
    pub(super) kept: usize,
    /// The tasks of earlier stages.
    earlier: Range<u32>,
    needs: Needs,
}

impl Begun {
    pub(super) fn new(stage: &mut Stage, first: u32) -> Result<Self> {
        let begun = Begun {
            name: stage.name,
            bytes: stage.bytes,
            first,
            tasks: stage.tasks.len(),
            kept: 0,
            earlier: 0..first,
            needs: std::mem::take(&mut stage.needs),
        };
        let later = |task: u32| {
            let mut needs = begun.needs_of(task).iter();
            needs.any(|range| range.start > range.end || range.end > task)
        };
        match (first..).take(begun.tasks).find(|task| later(*task)) {
            None => Ok(begun),
            Some(task) => {
                let message = format!("task {task} of a plan needs tasks that come after it");
                Err(Error::bug("run a job", message))
            }
        }
    }

    /// Whether a task is of this stage or of a later one.
    pub(super) fn is_before(&self, task: u32) -> bool {
        self.first <= task
    }

    /// The numbers of its tasks.
    pub(super) fn numbers(&self) -> Range<u32> {
        self.first..self.first + self.tasks as u32
    }

    /// Whether a task of this stage may need that one.
    pub(super) fn may_need(&self, task: u32) -> bool {
        match &self.needs {
            Needs::Earlier => self.earlier.contains(&task),
            Needs::All(needs) => needs.iter().any(|range| range.contains(&task)),
            Needs::Each(_) => true,
        }
    }

    /// The tasks that a task of this stage needs.
    pub(super) fn needs_of(&self, task: u32) -> &[Range<u32>] {
        match &self.needs {
            Needs::Earlier => slice::from_ref(&self.earlier),
            Needs::All(needs) => needs,
            Needs::Each(of_tasks) => {
                let of_task = of_tasks.get((task - self.first) as usize);
                of_task.map_or(&[], Vec::as_slice)
            }
        }
    }
}
