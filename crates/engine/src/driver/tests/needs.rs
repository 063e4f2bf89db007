//! Tasks that need others, that have several attempts at once, and that use up what others made.

use super::*;
use gristmill_base::record::shape::{LineShape, Shape};
use gristmill_tasks::spill::{MemoryModel, SpilledRun};
use gristmill_tasks::task::{MergeRun, MergeRunsReport, MergeRunsSpec, RunPlan};

/// A plan that begins all of its stages at once; keeps how many reports it was given.
struct AtOnce {
    stage: Option<Stage>,
    seen: Arc<Mutex<Vec<usize>>>,
}

impl Plan for AtOnce {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        self.seen.lock().unwrap().push(reports.len());
        Ok(self.stage.take())
    }
}

fn at_once(stage: Stage) -> (Driver, Arc<Mutex<Vec<usize>>>) {
    let seen = Arc::default();
    let plan = AtOnce {
        stage: Some(stage),
        seen: Arc::clone(&seen),
    };
    (Driver::new(Box::new(plan), RetryPolicy::default()), seen)
}

pub(super) fn id(task: u32, attempt: u32) -> AttemptId {
    AttemptId { task, attempt }
}

pub(super) fn finish(driver: &mut Driver, id: AttemptId, report: TaskReport) -> Vec<Action> {
    driver.handle(1, DriverEvent::Finished { id, report })
}

/// The actions in few words.
pub(super) fn said(actions: &[Action]) -> Vec<String> {
    let said = |action: &Action| match action {
        Action::BeginStage { name, .. } => (*name).to_owned(),
        Action::Launch { id, .. } => format!("launch {}.{}", id.task, id.attempt),
        Action::Abort { id } => format!("abort {}.{}", id.task, id.attempt),
        Action::ReleaseSpace { spent } => {
            let runs = spent.iter().map(|spent| spent.run.display().to_string());
            format!("give back {}", runs.collect::<Vec<_>>().join(" "))
        }
        Action::Forget { tasks } => format!("forget {tasks:?}"),
        Action::WakeAt { .. } => "wake".to_owned(),
        Action::Complete { outcome } => format!("complete {}", outcome.is_ok()),
    };
    actions.iter().map(said).collect()
}

pub(super) fn samples(tasks: usize) -> Vec<TaskSpec> {
    vec![spec(); tasks]
}

#[test]
fn a_task_starts_when_what_it_needs_is_done() {
    let needs = Needs::Each(vec![vec![0..1], vec![1..3]]);
    let merge = Stage::new("merge", 0, samples(2)).needing(needs);
    let (mut driver, seen) = at_once(Stage::new("map", 0, samples(3)).then(merge));
    let actions = driver.handle(0, DriverEvent::Started { slots: 2 });
    assert_eq!(said(&actions), ["map", "launch 0.0", "launch 1.0"]);
    let mut end = |task| said(&finish(&mut driver, id(task, 0), report(0)));
    assert_eq!(end(0), ["launch 2.0"]);
    assert_eq!(end(1), ["merge", "launch 3.0"], "while task 2 runs");
    assert_eq!(end(3), [] as [&str; 0], "task 4 needs task 2");
    assert_eq!(end(2), ["launch 4.0"]);
    assert_eq!(end(4), ["complete true"]);
    assert_eq!(*seen.lock().unwrap(), [0, 5]);
}

#[test]
fn a_plan_whose_tasks_wait_for_later_ones_is_a_bug() {
    #[expect(clippy::reversed_empty_ranges, reason = "such needs must be refused")]
    let wrong: [Range<u32>; 3] = [0..1, 1..2, 5..0];
    for needs in wrong {
        let stage = Stage::new("map", 0, samples(1)).needing(Needs::All(vec![needs]));
        let (mut driver, _) = at_once(stage);
        let actions = driver.handle(0, DriverEvent::Started { slots: 2 });
        let error = outcome(&actions).unwrap().as_ref().unwrap_err();
        assert_eq!(error.kind(), Kind::Bug);
    }
}

/// A merge of runs of these names.
pub(super) fn merge(names: &[&str]) -> TaskSpec {
    let run = |name: &&str| MergeRun {
        path: name.into(),
        longest: 0,
    };
    TaskSpec::MergeRuns(MergeRunsSpec {
        plan: Arc::new(RunPlan {
            shape: LineShape { descending: false }.kind(),
            unique: false,
            borders: Vec::new(),
            places: Vec::new(),
            buffer_bytes: 0,
            compression: Default::default(),
            needed: MemoryModel::default(),
        }),
        runs: names.iter().map(run).collect(),
        source_bytes: 0,
        number: 0,
        slice: None,
        home: None,
    })
}

fn merged(name: &str) -> TaskReport {
    let run = SpilledRun {
        path: name.into(),
        ..SpilledRun::default()
    };
    let spent = Vec::new();
    TaskReport::MergeRuns(MergeRunsReport { run, spent })
}

#[test]
fn the_first_attempt_counts_and_what_others_made_is_given_back() {
    let (mut driver, seen) = at_once(Stage::new("merge runs", 0, vec![merge(&["a", "b"])]));
    driver.handle(0, DriverEvent::Started { slots: 2 });
    let actions = driver.handle(1, DriverEvent::Straggles { task: 0 });
    assert_eq!(said(&actions), ["launch 0.1"]);
    let failed = DriverEvent::Failed {
        id: id(0, 0),
        error: io_error(),
    };
    assert_eq!(
        said(&driver.handle(2, failed)),
        [] as [&str; 0],
        "another goes on"
    );
    driver.handle(3, DriverEvent::Straggles { task: 0 });
    assert!(driver.awaits(id(0, 1)) && driver.awaits(id(0, 2)) && !driver.awaits(id(0, 0)));
    let actions = finish(&mut driver, id(0, 2), merged("ab-2"));
    assert_eq!(said(&actions), ["give back a b", "abort 0.1"]);
    assert!(!driver.awaits(id(0, 1)));
    let actions = finish(&mut driver, id(0, 2), merged("ab-2"));
    assert_eq!(
        said(&actions),
        [] as [&str; 0],
        "told twice, it still counts"
    );
    let actions = finish(&mut driver, id(0, 1), merged("ab-1"));
    assert_eq!(said(&actions), ["give back ab-1", "complete true"]);
    assert_eq!(*seen.lock().unwrap(), [0, 1]);
    assert_eq!(
        (driver.counts().failed, driver.counts().killed),
        (1, 1),
        "who was told to stop has not failed"
    );
}

#[test]
fn a_task_that_shares_a_file_has_one_attempt_at_once() {
    let target = gristmill_tasks::task::MergeTarget::Stream(None);
    let TaskSpec::MergeRuns(MergeRunsSpec { plan, .. }) = merge(&[]) else {
        panic!("no merge");
    };
    let spec = TaskSpec::Merge(gristmill_tasks::task::MergeSpec {
        plan,
        runs: Arc::default(),
        source_bytes: 0,
        target,
    });
    let (mut driver, _) = at_once(Stage::new("merge", 0, vec![spec]));
    driver.handle(0, DriverEvent::Started { slots: 2 });
    let actions = driver.handle(1, DriverEvent::Straggles { task: 0 });
    assert_eq!(said(&actions), [] as [&str; 0]);
}

/// Ends an attempt well; task 3 is a merge.
fn end(driver: &mut Driver, id: AttemptId) -> Vec<String> {
    let report = match id.task {
        3 => merged("ab"),
        _ => report(0),
    };
    said(&finish(driver, id, report))
}

#[test]
fn what_a_lost_task_had_used_up_is_made_again() {
    let needs = Needs::Each(vec![vec![0..2]]);
    let merge = Stage::new("merge runs", 0, vec![merge(&["a", "b"])]).needing(needs);
    let last = Stage::new("merge", 0, samples(1)).needing(Needs::All(vec![2..4]));
    let (mut driver, _) = at_once(Stage::new("map", 0, samples(3)).then(merge.then(last)));
    driver.handle(0, DriverEvent::Started { slots: 1 });
    let mut ended = |task, attempt| end(&mut driver, id(task, attempt));
    assert_eq!(
        [ended(0, 0), ended(1, 0)].concat(),
        ["launch 1.0", "launch 2.0"]
    );
    assert_eq!(ended(2, 0), ["merge runs", "launch 3.0"]);
    assert_eq!(ended(3, 0), ["give back a b", "merge", "launch 4.0"]);
    // What task 2 made is there still.
    driver.handle(2, DriverEvent::OutputLost { task: 3 });
    let actions = driver.handle(2, DriverEvent::Lost { id: id(4, 0) });
    assert_eq!(said(&actions), ["launch 0.1"]);
    let mut ended = |task, attempt| end(&mut driver, id(task, attempt));
    assert_eq!(
        [ended(0, 1), ended(1, 1)].concat(),
        ["launch 1.1", "launch 3.1"]
    );
    assert_eq!(ended(3, 1), ["give back a b", "launch 4.1"]);
    assert_eq!(ended(4, 1), ["complete true"]);
}
