//! Jobs of simulated clusters: random graphs of tasks, some of which use up what they need.
//!
//! A task that uses up its inputs is a merge of runs; the run `3-7` is what task 7 reads of task 3. Any other task is
//! a sample, which leaves its inputs as they are. Or a shuffle of rounds, which typed stages plan: samples, then merges of
//! what the round before made, until one is left.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use gristmill_engine::driver::{Needs, Next, Plan, Stage, StagedPlan, stage};
use gristmill_engine::error::Result;
use gristmill_engine::order::Entry;
use gristmill_engine::record::shape::{LineShape, Shape};
use gristmill_engine::spill::{MemoryModel, SpilledRun};
use gristmill_engine::task::{
    AttemptId, MergeRun, MergeRunsReport, MergeRunsSpec, RunPlan, SampleSpec, TaskReport, TaskSpec,
};

use super::super::support::Numbers;

/// The reports that a plan got each time.
pub type Reports = Arc<Mutex<Vec<Vec<AttemptId>>>>;

/// The tasks of a job, over all stages.
#[derive(Debug, Default)]
pub struct Job {
    tasks: Vec<Task>,
    stages: Vec<StageOf>,
    /// Whether the driver is not told what tasks need of those that begin with them.
    pub hides_needs: bool,
    /// Whether its stages are the rounds of a shuffle.
    in_rounds: bool,
}

#[derive(Debug)]
struct Task {
    /// The tasks that it needs.
    needs: Vec<u32>,
    uses_up: bool,
}

#[derive(Debug)]
struct StageOf {
    tasks: Range<u32>,
    needs: Needs,
    /// Whether it begins with the stage before it.
    overlaps: bool,
}

static RUN_PLAN: LazyLock<Arc<RunPlan>> = LazyLock::new(|| {
    Arc::new(RunPlan {
        shape: LineShape { descending: false }.kind(),
        unique: false,
        borders: Vec::new(),
        places: Vec::new(),
        buffer_bytes: 0,
        compression: Default::default(),
        needed: MemoryModel::default(),
    })
});

impl Job {
    /// Up to four stages of up to eight tasks.
    pub fn any(numbers: &mut Numbers) -> Self {
        let mut job = Job::default();
        let mut before = 0..0;
        for stage in 0..=numbers.below(4) {
            let first = before.end;
            let tasks = first..first + numbers.below(9) as u32;
            let needs = needs_of(numbers, &before, tasks.len());
            for number in 0..tasks.len() {
                let needs: Vec<u32> = match &needs {
                    Needs::Earlier => (0..first).collect(),
                    Needs::All(ranges) => ranges.iter().cloned().flatten().collect(),
                    Needs::Each(of_tasks) => of_tasks[number].iter().cloned().flatten().collect(),
                };
                let uses_up = !needs.is_empty() && numbers.below(2) == 0;
                job.tasks.push(Task { needs, uses_up });
            }
            let overlaps = stage > 0 && numbers.below(2) == 0;
            before = tasks.clone();
            job.stages.push(StageOf {
                tasks,
                needs,
                overlaps,
            });
        }
        job
    }

    /// A shuffle of up to eight inputs: two or three of what a round made become one in the next.
    pub fn in_rounds(numbers: &mut Numbers) -> Self {
        let mut job = Job {
            in_rounds: true,
            ..Job::default()
        };
        let fan_in = 2 + numbers.below(2) as usize;
        let mut round = 0..2 + numbers.below(7) as u32;
        let mut needs: Vec<Vec<Range<u32>>> = round.clone().map(|_| Vec::new()).collect();
        loop {
            for of_task in &needs {
                let needs: Vec<u32> = of_task.iter().cloned().flatten().collect();
                let uses_up = !needs.is_empty();
                job.tasks.push(Task { needs, uses_up });
            }
            job.stages.push(StageOf {
                tasks: round.clone(),
                needs: Needs::Each(needs),
                overlaps: false,
            });
            if round.len() == 1 {
                return job;
            }
            let made = round.clone().collect::<Vec<_>>();
            let groups = made.chunks(fan_in);
            needs = groups
                .map(|group| vec![group[0]..group[0] + group.len() as u32])
                .collect();
            round = round.end..round.end + needs.len() as u32;
        }
    }

    pub fn needs(&self, task: u32) -> &[u32] {
        &self.tasks[task as usize].needs
    }

    pub fn uses_up(&self, task: u32) -> bool {
        self.tasks[task as usize].uses_up
    }

    /// The tasks whose reports the plan gets at once.
    pub fn batches(&self) -> Vec<Range<u32>> {
        let mut batches: Vec<Range<u32>> = Vec::new();
        for stage in &self.stages {
            match batches.last_mut() {
                Some(batch) if stage.overlaps => batch.end = stage.tasks.end,
                _ => batches.push(stage.tasks.clone()),
            }
        }
        batches
    }

    /// The job's plan, and the reports that it gets.
    pub fn plan(self: &Arc<Self>) -> (Box<dyn Plan>, Reports) {
        let reports = Reports::default();
        if self.in_rounds {
            let (job, given) = (Arc::clone(self), Arc::clone(&reports));
            let begin = move || {
                *given.lock().unwrap() = vec![Vec::new()];
                inputs(Arc::clone(&job), Arc::clone(&given))
            };
            return (Box::new(StagedPlan::restarting(begin)), reports);
        }
        let plan = Stages {
            job: Arc::clone(self),
            left: (0..self.stages.len()).collect(),
            reports: Arc::clone(&reports),
        };
        (Box::new(plan), reports)
    }

    /// What a task is to do.
    pub fn spec(&self, task: u32) -> TaskSpec {
        if !self.uses_up(task) {
            return TaskSpec::Sample(SampleSpec {
                stretches: Vec::new(),
                record_bytes: 100,
            });
        }
        let run = |of: &u32| MergeRun {
            path: format!("{of}-{task}").into(),
            longest: 0,
        };
        TaskSpec::MergeRuns(MergeRunsSpec {
            plan: Arc::clone(&RUN_PLAN),
            runs: self.needs(task).iter().map(run).collect(),
            source_bytes: 0,
            number: 0,
            slice: None,
            home: None,
        })
    }

    /// A report that says whose it is.
    pub fn report(&self, id: AttemptId) -> TaskReport {
        if !self.uses_up(id.task) {
            let number = u64::from(id.task) << 16 | u64::from(id.attempt);
            return TaskReport::Sample(vec![Entry::new(&[0; 10], number)]);
        }
        let run = SpilledRun {
            path: format!("run-{}-{}", id.task, id.attempt).into(),
            ..SpilledRun::default()
        };
        let spent = Vec::new();
        TaskReport::MergeRuns(MergeRunsReport { run, spent })
    }

    fn stage(&self, number: usize) -> Stage {
        let stage = &self.stages[number];
        let tasks = stage.tasks.clone().map(|task| self.spec(task)).collect();
        let needs = match self.hides_needs && stage.overlaps {
            true => Needs::All(Vec::new()),
            false => stage.needs.clone(),
        };
        Stage::new("stage", 0, tasks).needing(needs)
    }
}

/// The inputs of a shuffle, and its rounds.
fn inputs(job: Arc<Job>, given: Reports) -> Next {
    let tasks = job.stages[0].tasks.len();
    let spec = SampleSpec {
        stretches: Vec::new(),
        record_bytes: 100,
    };
    let inputs = stage("inputs", 0, vec![spec; tasks]);
    inputs.then(move |samples| {
        let ids = samples.into_iter().map(TaskReport::Sample);
        let ids = ids.map(|report| attempt_of(&report)).collect();
        given.lock().unwrap().push(ids);
        Ok(rounds(job, given, 1))
    })
}

/// This round of a shuffle and those behind it, until one task has made all of it.
fn rounds(job: Arc<Job>, given: Reports, number: usize) -> Next {
    let Some(round) = job.stages.get(number) else {
        return Next::end();
    };
    let tasks = round.tasks.clone().map(|task| match job.spec(task) {
        TaskSpec::MergeRuns(spec) => spec,
        other => panic!("{other:?}"),
    });
    let merges = stage("round", 0, tasks).needing(round.needs.clone());
    merges.then(move |runs| {
        let ids = runs.into_iter().map(TaskReport::MergeRuns);
        let ids = ids.map(|report| attempt_of(&report)).collect();
        given.lock().unwrap().push(ids);
        Ok(rounds(job, given, number + 1))
    })
}

/// What the tasks of a stage need: all before, those of the stage `before`, or some of either.
fn needs_of(numbers: &mut Numbers, before: &Range<u32>, tasks: usize) -> Needs {
    let mut some = |all: Range<u32>| {
        let ends = [0, 0].map(|_| numbers.below(all.len() as u64 + 1) as u32 + all.start);
        ends[0].min(ends[1])..ends[0].max(ends[1])
    };
    let mut each = |all: Range<u32>| vec![some(all.clone()), some(all)];
    match tasks % 4 {
        0 => Needs::Earlier,
        1 => Needs::All(vec![before.clone()]),
        2 => Needs::Each((0..tasks).map(|_| each(before.clone())).collect()),
        _ => Needs::Each((0..tasks).map(|_| each(0..before.end)).collect()),
    }
}

/// Whose report it is.
pub fn attempt_of(report: &TaskReport) -> AttemptId {
    match report {
        TaskReport::Sample(entries) => {
            let number = entries[0].position();
            AttemptId {
                task: (number >> 16) as u32,
                attempt: number as u32 & 0xFFFF,
            }
        }
        TaskReport::MergeRuns(merged) => match ids(&merged.run.path) {
            (Some("run"), task, attempt) => AttemptId { task, attempt },
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// What the path of a run says: `run`, a task and an attempt; or two tasks.
pub fn ids(path: &Path) -> (Option<&str>, u32, u32) {
    let path = path.to_str().unwrap();
    let (word, rest) = match path.strip_prefix("run-") {
        Some(rest) => (Some("run"), rest),
        None => (None, path),
    };
    let (first, second) = rest.split_once('-').unwrap();
    (word, first.parse().unwrap(), second.parse().unwrap())
}

struct Stages {
    job: Arc<Job>,
    left: VecDeque<usize>,
    reports: Reports,
}

impl Plan for Stages {
    fn restart(&mut self) -> bool {
        self.left = (0..self.job.stages.len()).collect();
        self.reports.lock().unwrap().clear();
        true
    }

    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let ids = reports.iter().map(attempt_of).collect();
        self.reports.lock().unwrap().push(ids);
        let Some(first) = self.left.pop_front() else {
            return Ok(None);
        };
        let mut stages = vec![self.job.stage(first)];
        while let Some(next) = self.left.front().copied()
            && self.job.stages[next].overlaps
        {
            self.left.pop_front();
            stages.push(self.job.stage(next));
        }
        Ok(stages
            .into_iter()
            .rev()
            .reduce(|later, stage| stage.then(later)))
    }
}
