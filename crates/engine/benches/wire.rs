//! The specs of a stage of a million tasks, to bytes and back: at most 5 s and 300 MB, the stage itself included.
//!
//! ```text
//!   cargo bench --bench wire        a million tasks of each kind of stage; fails where a limit is exceeded
//!   cargo test  --bench wire        a thousand, so that it cannot rot
//! ```
//!
//! A stage is held as its driver holds it; each spec goes to a message, and from the message to a spec, as over a pipe.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]
#![expect(clippy::unwrap_used, reason = "a benchmark fails with a backtrace")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use gristmill_engine::order::CutPoints;
use gristmill_engine::record::shape::{LineShape, ShapeKind};
use gristmill_engine::spill::MemoryModel;
use gristmill_engine::storage::input::InputRange;
use gristmill_engine::task::wire::{Receiver, Sender};
use gristmill_engine::task::{
    AttemptId, EntryPlan, GatherSpec, MergeRun, MergeSpec, MergeTarget, OutputFile, RangeSpec,
    RunPlan, SpillInput, SpillSpec, SplitData, TaskSpec, UserTaskKind, UserTaskPlan, UserTaskSpec,
};
use serde_json::json;

/// Tasks of a stage that is measured.
const TASKS: u32 = 1_000_000;
/// Tasks of one that is only tried.
const TRIED_TASKS: u32 = 1_000;
/// One spec of so many is compared with what came back: to compare takes as long as its list of runs.
const COMPARED_EVERY: usize = 10_000;
/// Runs that each merge and each reduce reads.
const RUNS: u64 = 10_000;

const SECONDS_MAX: f64 = 5.0;
const MEMORY_MAX: u64 = 300 << 20;

/// Makes the specs of a stage of so many tasks.
type Stage = fn(u32) -> Vec<TaskSpec>;

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let tasks = if measured { TASKS } else { TRIED_TASKS };
    let stages: [(&str, Stage); 5] = [
        ("spill", spills),
        ("merge", merges),
        ("reduce", reduces),
        ("user map", user_maps),
        ("user reduce", user_reduces),
    ];
    for (name, stage) in stages {
        let stage = stage(tasks);
        let began = Instant::now();
        let bytes = there_and_back(&stage);
        let seconds = began.elapsed().as_secs_f64();
        let (tasks, peak) = (stage.len(), peak_bytes());
        println!("{name:12} {tasks} tasks {seconds:6.2} s {bytes:11} bytes, peak {peak} bytes");
        assert!(
            !measured || seconds <= SECONDS_MAX,
            "{name} took {seconds} s"
        );
        assert!(!measured || peak <= MEMORY_MAX, "{name} held {peak} bytes");
    }
}

/// Bytes of all messages.
fn there_and_back(stage: &[TaskSpec]) -> usize {
    let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
    let mut sent = 0;
    for (number, spec) in stage.iter().enumerate() {
        let bytes = sender.to_bytes(spec).unwrap();
        let back: TaskSpec = receiver.from_bytes(&bytes).unwrap();
        if number % COMPARED_EVERY == 0 {
            assert_eq!(&back, spec);
        }
        sent += bytes.len();
    }
    sent
}

/// The most memory that this process has held, its program included; 0 where the system does not say.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn run_plan() -> Arc<RunPlan> {
    Arc::new(RunPlan {
        shape: ShapeKind::Lines(LineShape { descending: false }),
        unique: false,
        borders: Vec::new(),
        places: vec![folder("runs")],
        buffer_bytes: 1 << 20,
        compression: Default::default(),
        needed: MemoryModel::default(),
    })
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from("/data/warehouse/.gristmill-job_20261122_223344_12345").join(name)
}

fn merge_runs() -> Arc<Vec<MergeRun>> {
    let run = |number| MergeRun {
        path: folder(&format!("runs/run-{number:05}-0-0000")),
        longest: 100,
    };
    Arc::new((0..RUNS).map(run).collect())
}

fn range(task: u32) -> RangeSpec {
    RangeSpec {
        file: OutputFile {
            path: folder(&format!("output/part-r-{task:07}")).into(),
            bytes: 1 << 28,
        },
        offset: u64::from(task) << 10,
        buckets: 0..4096,
    }
}

fn spills(tasks: u32) -> Vec<TaskSpec> {
    let runs = run_plan();
    let spec = |task| {
        TaskSpec::Spill(SpillSpec {
            input: SpillInput::Ranges(vec![InputRange {
                file: task as usize,
                offset: u64::from(task) << 20,
                bytes: 1 << 27,
            }]),
            runs: Arc::clone(&runs),
            chunk_bytes: 1 << 28,
            typical_bytes: 100,
            keys: Vec::new(),
            table: None,
        })
    };
    (0..tasks).map(spec).collect()
}

fn merges(tasks: u32) -> Vec<TaskSpec> {
    let (plan, runs) = (run_plan(), merge_runs());
    let spec = |task| {
        TaskSpec::Merge(MergeSpec {
            plan: Arc::clone(&plan),
            runs: Arc::clone(&runs),
            source_bytes: 1 << 20,
            target: MergeTarget::Ranges(vec![range(task)]),
        })
    };
    (0..tasks).map(spec).collect()
}

fn reduces(tasks: u32) -> Vec<TaskSpec> {
    let inputs = (0..RUNS as u32).map(|task| AttemptId { task, attempt: 0 });
    let inputs = Arc::new(inputs.collect::<Vec<_>>());
    let plan = Arc::new(EntryPlan {
        cuts: CutPoints::from_sample(Vec::new(), 1 << 16),
        record_bytes: 100,
        batch_records: 1 << 17,
    });
    let spec = |task| {
        TaskSpec::Reduce(GatherSpec {
            ranges: vec![range(task)],
            inputs: Arc::clone(&inputs),
            plan: Arc::clone(&plan),
        })
    };
    (0..tasks).map(spec).collect()
}

fn user_task_plan() -> Arc<UserTaskPlan> {
    Arc::new(UserTaskPlan {
        partitions: 1000,
        places: vec![folder("runs")],
        chunk_bytes: 1 << 28,
        buffer_bytes: 1 << 20,
        ahead_bytes: 0,
        compression: Default::default(),
        attempts: folder("attempts"),
        uploads_to: None,
        is_one_file: false,
    })
}

fn user_maps(tasks: u32) -> Vec<TaskSpec> {
    let plan = user_task_plan();
    let spec = |number| {
        let piece = json!({
            "path": format!("/data/logs/2026/11/{number:07}.txt"), "start": 0, "bytes": 1 << 27,
            "file_bytes": 1 << 27, "codec": null,
        });
        TaskSpec::User(UserTaskSpec {
            plan: Arc::clone(&plan),
            work: UserTaskKind::Map {
                number,
                bytes: 1 << 27,
                what: SplitData::of(&json!({ "pieces": [piece] })).unwrap(),
            },
        })
    };
    (0..tasks).map(spec).collect()
}

fn user_reduces(tasks: u32) -> Vec<TaskSpec> {
    let (plan, runs) = (user_task_plan(), merge_runs());
    let spec = |partition| {
        TaskSpec::User(UserTaskSpec {
            plan: Arc::clone(&plan),
            work: UserTaskKind::Reduce {
                partition,
                runs: Arc::clone(&runs),
                source_bytes: 1 << 20,
            },
        })
    };
    (0..tasks).map(spec).collect()
}
