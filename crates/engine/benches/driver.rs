//! The driver of a job of a million tasks on ten thousand nodes: at most 20 µs of its CPU a task, and memory that grows with
//! the tasks and no faster.
//!
//! ```text
//!   cargo bench --bench driver      a million tasks, and a quarter of all beside; fails where a limit is exceeded
//!   cargo test  --bench driver      a thousand on a hundred nodes, so that it cannot rot
//! ```
//!
//! Maps of user code, then reduces that need all of them. Tasks end on a virtual clock; nodes are lost with all that they
//! keep while maps and while reduces run, and a task that is done again may give something else once. What is timed is what
//! the driver's thread does: the driver, and the choice of an agent for each attempt.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]
#![expect(clippy::unwrap_used, reason = "a benchmark fails with a backtrace")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill_engine::driver::{Action, Driver, DriverEvent, Plan, RetryPolicy, Stage};
use gristmill_engine::error::Result;
use gristmill_engine::runner::cluster::{AgentSelector, Rank};
use gristmill_engine::spill::SpilledRun;
use gristmill_engine::task::{
    AttemptId, MergeRun, SplitData, TaskReport, TaskSpec, UserTaskKind, UserTaskPlan,
    UserTaskReport, UserTaskSpec,
};
use serde_json::json;

/// A job: so many maps and reduces on so many nodes, each of which runs so many tasks at once.
#[derive(Debug, Clone, Copy)]
struct Size {
    maps: u32,
    reduces: u32,
    nodes: u32,
    slots: usize,
}

const MEASURED: Size = Size {
    maps: 900_000,
    reduces: 100_000,
    nodes: 10_000,
    slots: 4,
};
const TRIED: Size = Size {
    maps: 900,
    reduces: 100,
    nodes: 100,
    slots: 4,
};

/// Of all nodes one in so many is lost.
const LOST: u32 = 500;
/// And another one while reduces run.
const LOST_LATE: u32 = 1;

const CPU_MAX: Duration = Duration::from_micros(20);
/// A task's spec, its report, and what the driver knows of it.
const TASK_BYTES_MAX: u64 = 2_000;
/// How much more a task may take in a job of four times as many.
const GROWTH_MAX: f64 = 1.2;

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    if !measured {
        run(TRIED);
        return;
    }
    let quarter = Size {
        maps: MEASURED.maps / 4,
        reduces: MEASURED.reduces / 4,
        nodes: MEASURED.nodes / 4,
        ..MEASURED
    };
    let small = run(quarter);
    let large = run(MEASURED);
    assert!(large.cpu <= CPU_MAX, "{:?} a task", large.cpu);
    let bytes = [small, large].map(|found| found.task_bytes);
    assert!(bytes[1] <= TASK_BYTES_MAX, "{bytes:?} bytes a task");
    assert!(
        bytes[1] as f64 <= bytes[0] as f64 * GROWTH_MAX,
        "{bytes:?} bytes a task"
    );
}

/// What a task took.
#[derive(Debug, Clone, Copy)]
struct Found {
    cpu: Duration,
    task_bytes: u64,
}

fn run(size: Size) -> Found {
    let before_bytes = resident_bytes();
    let reports = Arc::default();
    let plan = Box::new(MapReduce {
        size,
        step: 0,
        shared: shared(),
        reports: Arc::clone(&reports),
    });
    let policy = RetryPolicy {
        rounds: 3,
        ..RetryPolicy::default()
    };
    let mut job = Job::new(size, Driver::new(plan, policy));
    job.run();
    let tasks = size.maps + size.reduces;
    assert_eq!(*reports.lock().unwrap(), size.reduces as usize);
    let found = Found {
        cpu: job.busy / tasks,
        task_bytes: job.most_bytes.saturating_sub(before_bytes) / u64::from(tasks),
    };
    println!(
        "{tasks:9} tasks, {} nodes: {:5.2} us and {} bytes a task; {} attempts, {} lost, {} rounds more",
        size.nodes,
        found.cpu.as_secs_f64() * 1e6,
        found.task_bytes,
        job.launched,
        job.lost,
        job.driver.rounds(),
    );
    assert!(job.lost > 0 && job.driver.rounds() == 1);
    found
}

/// A job on a virtual clock.
struct Job {
    size: Size,
    driver: Driver,
    choice: AgentSelector,
    running: BTreeMap<u32, BTreeSet<AttemptId>>,
    where_it_runs: BTreeMap<AttemptId, u32>,
    /// Which node keeps what each map made.
    kept: BTreeMap<u32, u32>,
    /// What ends when; a node ends where there is no attempt.
    coming: BTreeMap<(u64, u64), Result<AttemptId, u32>>,
    known: u64,
    busy: Duration,
    most_bytes: u64,
    launched: u64,
    lost: u64,
    /// Reduces that are done.
    reduced: u32,
    over: bool,
}

impl Job {
    fn new(size: Size, driver: Driver) -> Self {
        let mut job = Job {
            size,
            driver,
            choice: AgentSelector::default(),
            running: BTreeMap::new(),
            where_it_runs: BTreeMap::new(),
            kept: BTreeMap::new(),
            coming: BTreeMap::new(),
            known: 0,
            busy: Duration::ZERO,
            most_bytes: 0,
            launched: 0,
            lost: 0,
            reduced: 0,
            over: false,
        };
        (0..size.nodes).for_each(|node| job.note(node));
        // About as long as all takes: each slot has so many tasks, of about a second.
        let slots = size.nodes as usize * size.slots;
        let long_ms = 1000 * ((size.maps + size.reduces) as u64).div_ceil(slots as u64);
        let going = (0..size.nodes).step_by(LOST.min(size.nodes / 3) as usize);
        for (number, node) in (1..).zip(going.clone()) {
            let at_ms = long_ms * number / going.len() as u64;
            job.expect(at_ms, Err(node));
        }
        job
    }

    fn run(&mut self) {
        let slots = self.size.nodes as usize * self.size.slots;
        self.tell(0, DriverEvent::Started { slots });
        while !self.over {
            let ((at_ms, _), what) = self.coming.pop_first().unwrap();
            match what {
                Ok(id) => self.through(at_ms, id),
                Err(node) => self.lose(at_ms, node),
            }
            if self.known.is_multiple_of(100_000) {
                self.most_bytes = self.most_bytes.max(resident_bytes());
            }
        }
        self.most_bytes = self.most_bytes.max(resident_bytes());
    }

    fn tell(&mut self, at_ms: u64, event: DriverEvent) {
        let began = Instant::now();
        let actions = self.driver.handle(at_ms, event);
        self.busy += began.elapsed();
        for action in actions {
            match action {
                Action::Launch { id, spec } => self.launch(at_ms, id, &spec),
                Action::Complete { outcome } => {
                    outcome.unwrap();
                    self.over = true;
                }
                Action::Abort { id } => self.expect(at_ms, Ok(id)),
                _ => {}
            }
        }
    }

    fn launch(&mut self, at_ms: u64, id: AttemptId, spec: &TaskSpec) {
        let began = Instant::now();
        let node = self.choice.pick(None, &[]).unwrap();
        self.running.entry(node).or_default().insert(id);
        self.note(node);
        self.busy += began.elapsed();
        assert_eq!(spec.reads().is_empty(), id.task < self.size.maps);
        self.where_it_runs.insert(id, node);
        self.launched += 1;
        let takes_ms = 500 + u64::from(id.task.wrapping_mul(2_654_435_761) % 1000);
        self.expect(at_ms + takes_ms, Ok(id));
    }

    fn note(&mut self, node: u32) {
        let running = self.running.get(&node).map_or(0, BTreeSet::len);
        let rank = Rank {
            is_full: running >= self.size.slots,
            is_last: false,
            load: running * 1000 / self.size.slots,
        };
        self.choice.note(node, Some(rank));
    }

    fn through(&mut self, at_ms: u64, id: AttemptId) {
        let Some(node) = self.where_it_runs.remove(&id) else {
            return; // it was lost, or told to stop
        };
        self.running.entry(node).or_default().remove(&id);
        let began = Instant::now();
        self.note(node);
        self.busy += began.elapsed();
        if id.task < self.size.maps && self.driver.awaits(id) {
            self.kept.insert(id.task, node);
        }
        let report = report(id, self.size.maps);
        // The first map that is done again when reduces have read it gives something else.
        let differs = id.attempt > 0 && self.driver.rounds() == 0;
        self.tell(
            at_ms,
            match differs {
                true => DriverEvent::Differs { id, report },
                false => DriverEvent::Finished { id, report },
            },
        );
        if id.task >= self.size.maps {
            self.reduced += 1;
            if self.reduced == self.size.reduces / 4 {
                self.lose(at_ms, LOST_LATE); // others are still to read what it keeps
            }
        }
    }

    fn lose(&mut self, at_ms: u64, node: u32) {
        self.choice.note(node, None);
        self.size.nodes -= 1;
        let slots = self.size.nodes as usize * self.size.slots;
        self.tell(at_ms, DriverEvent::Slots { slots });
        let gone = self.kept.iter().filter(|(_, at)| **at == node);
        let gone: Vec<u32> = gone.map(|(task, _)| *task).collect();
        for task in gone {
            self.lost += 1;
            self.tell(at_ms, DriverEvent::OutputLost { task });
        }
        for id in self.running.remove(&node).unwrap_or_default() {
            self.where_it_runs.remove(&id);
            self.tell(at_ms, DriverEvent::Lost { id });
        }
    }

    fn expect(&mut self, at_ms: u64, what: Result<AttemptId, u32>) {
        self.known += 1;
        self.coming.insert((at_ms, self.known), what);
    }
}

/// A plan as that of `gm.Job`.
struct MapReduce {
    size: Size,
    step: u32,
    shared: Arc<UserTaskPlan>,
    /// How many reports of reduces came.
    reports: Arc<Mutex<usize>>,
}

impl Plan for MapReduce {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        self.step += 1;
        Ok(match self.step {
            1 => Some(Stage::new("map", 0, self.maps())),
            2 => Some(Stage::new("reduce", 0, self.reduces(&reports))),
            _ => {
                *self.reports.lock().unwrap() = reports.len();
                None
            }
        })
    }

    fn restart(&mut self) -> bool {
        self.step = 0;
        true
    }
}

impl MapReduce {
    fn task(&self, work: UserTaskKind) -> TaskSpec {
        let plan = Arc::clone(&self.shared);
        TaskSpec::User(UserTaskSpec { plan, work })
    }

    fn maps(&self) -> Vec<TaskSpec> {
        let map = |number| {
            let piece =
                json!({ "path": format!("/data/logs/2026/11/{number:07}.txt"), "bytes": 1 << 27 });
            self.task(UserTaskKind::Map {
                number,
                bytes: 1 << 27,
                what: SplitData::of(&json!({ "pieces": [piece] })).unwrap(),
            })
        };
        (0..self.size.maps).map(map).collect()
    }

    fn reduces(&self, reports: &[TaskReport]) -> Vec<TaskSpec> {
        let runs = reports.iter().flat_map(TaskReport::runs);
        let run = |run: &SpilledRun| MergeRun {
            path: run.path.clone(),
            longest: run.longest,
        };
        let runs = Arc::new(runs.map(run).collect());
        let reduce = |partition| {
            self.task(UserTaskKind::Reduce {
                partition,
                runs: Arc::clone(&runs),
                source_bytes: 1 << 20,
            })
        };
        (0..self.size.reduces).map(reduce).collect()
    }
}

fn shared() -> Arc<UserTaskPlan> {
    Arc::new(UserTaskPlan {
        partitions: 1000,
        places: vec![PathBuf::from("agent:")],
        chunk_bytes: 1 << 28,
        buffer_bytes: 1 << 20,
        ahead_bytes: 0,
        compression: Default::default(),
        attempts: PathBuf::from("/data/attempts"),
        uploads_to: None,
        is_one_file: false,
    })
}

fn report(id: AttemptId, maps: u32) -> TaskReport {
    let AttemptId { task, attempt } = id;
    let run = || SpilledRun {
        path: format!("agent:{}/0/run-{task:05}-{attempt}-0000", task % 10_000).into(),
        ..SpilledRun::default()
    };
    TaskReport::User(UserTaskReport {
        runs: if task < maps { vec![run()] } else { Vec::new() },
        folder: format!("/data/attempts/{task}-{attempt}").into(),
        ..UserTaskReport::default()
    })
}

/// The memory that this process holds; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
