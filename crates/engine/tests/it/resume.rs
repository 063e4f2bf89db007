//! Jobs that die at every call of their store, and others that go on with them, dying too: the bytes are those of a
//! job that nobody disturbed, and nothing else is left.
//!
//! A death here: from one call on nothing works any more, not even cleaning up; and of the history what came after is
//! cut off. tests/cli kills real processes, at fewer moments.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_engine::budget::ProcessOwner;
use gristmill_engine::history::{self, EVENTS};
use gristmill_engine::jobs::JobSpec;
use gristmill_engine::jobs::{self, JobReport, Status};
use gristmill_engine::runner::Control;
use gristmill_engine::storage::LocalDisk;
use gristmill_engine::storage::faulty::Faulty;
use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::shared::SharedOutputs;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::task::UserTaskExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::mapreduce::Words;
use super::support::{Key, Numbers, Place, Tree, for_each_number, least_memory, records};

/// Where a job runs, and its history.
struct Desk {
    place: Place,
    home: TempDir,
    spec: Value,
    shared: Option<SharedOutputs>,
}

impl Desk {
    fn new(spec: &Value, input: &[u8], shared: Option<&SharedOutputs>) -> Self {
        let place = Place::local();
        place.make_directory("in");
        place.make_directory("spill");
        place.put("in/a", &input[..input.len() / 300 * 100]);
        place.put("in/b", &input[input.len() / 300 * 100..]);
        let root = place.root().to_str().unwrap().to_owned();
        let spec = spec.to_string().replace("@", &root);
        Desk {
            place,
            home: TempDir::new().unwrap(),
            spec: serde_json::from_str(&spec).unwrap(),
            shared: shared.cloned(),
        }
    }

    /// Runs a job whose store works until a call; says how many there were.
    fn run(&self, spec: &Value, until: u64) -> (JobReport, u64) {
        let store = Arc::new(Faulty::dying(Local, until));
        let environment = jobs::Environment {
            store: Stores::new(Arc::clone(&store) as Arc<dyn LocalDisk>)
                .with_shared_outputs(self.shared.clone()),
            job_id: "job_1".into(),
            history: history::HistoryConfig {
                jobs: Some(self.home.path().to_owned()),
                keep_short: true,
                options: self.spec.clone(),
                ..history::HistoryConfig::default()
            },
            work: self.spec.get("mapreduce").map(|_| {
                let store = Arc::clone(&store) as Arc<dyn LocalDisk>;
                Arc::new(Words::over(store)) as Arc<dyn UserTaskExecutor>
            }),
            interpreter: String::new(),
            process: ProcessOwner::Shared,
            worker: None,
            cluster: None,
        };
        let spec = JobSpec::from_json(&spec.to_string()).unwrap();
        let report = jobs::run(&spec, &environment, &Control::default());
        (report, store.calls())
    }

    fn begin(&self, until: u64) -> (JobReport, u64) {
        self.run(&self.spec, until)
    }

    fn resume(&self, until: u64) -> (JobReport, u64) {
        self.run(&json!({"resume": {"job_id": "last"}}), until)
    }

    fn history(&self) -> PathBuf {
        self.home.path().join("job_1").join(EVENTS)
    }

    /// Cuts off what no process that was killed would have written.
    fn forget_the_death(&self) {
        let text = std::fs::read_to_string(self.history()).unwrap();
        let dead = |line: &&str| {
            line.contains(r#""outcome":"failed""#) || line.contains(r#""event":"job_finished""#)
        };
        let kept: Vec<&str> = text.lines().take_while(|line| !dead(line)).collect();
        std::fs::write(self.history(), kept.join("\n") + "\n").unwrap();
    }

    /// Everything but the proof, which says when and by whom.
    fn tree(&self) -> Tree {
        let mut tree = self.place.tree();
        tree.remove(Path::new("out/_SUCCESS"));
        tree
    }
}

fn keys(count: usize) -> Vec<Key> {
    let mut numbers = Numbers(5);
    (0..count)
        .map(|_| {
            let mut key = numbers.key();
            key[0] = key[0].min(40); // some are frequent
            key
        })
        .collect()
}

/// Jobs of every kind that can be resumed.
fn specs() -> Vec<Value> {
    let least = least_memory(2, 100);
    let sort = |more: Value| {
        let mut spec = json!({
            "inputs": ["@/in"], "output": "@/out", "workers": 2, "memory": least.to_string(), "format": "fixed:100:10",
        });
        let options = spec.as_object_mut().unwrap();
        options.extend(more.as_object().unwrap().clone());
        json!({ "sort": spec })
    };
    let terasort = |memory: u64, more: Value| {
        let mut spec = json!({
            "inputs": ["@/in"], "output": "@/out", "workers": 2, "memory": memory.to_string(), "partitions": 3,
        });
        let options = spec.as_object_mut().unwrap();
        options.extend(more.as_object().unwrap().clone());
        json!({ "terasort": spec })
    };
    vec![
        terasort(1_000_000_000, json!({})),
        terasort(least, json!({})),
        terasort(least, json!({"spill_dir": ["@/spill"], "no_sync": true})),
        sort(json!({"stable": true})),
        sort(json!({"unique": true, "spill_dir": ["@/spill"]})),
        json!({"teragen": {"rows": "20k", "output": "@/out", "files": 3, "workers": 2}}),
        words(&json!({"partitions": 3})),
        words(&json!({"partitions": 2, "spill_dir": ["@/spill"], "no_sync": true})),
        words(&json!({"partitions": 0})),
        terasort(least + 4_000_000, json!({"compress_runs": "lz4"})),
        sort(json!({"memory": (least + 4_000_000).to_string(), "compress_runs": "zstd"})),
        words(&json!({"partitions": 2, "memory": "14M", "compress_runs": "zstd"})),
    ]
}

/// A job of people's own code: so many splits in so little memory that runs are merged in passes.
fn words(more: &Value) -> Value {
    let split = |number: u32| {
        let text: Vec<String> = (0..40)
            .map(|word| format!("w{}", word * number % 97))
            .collect();
        let text = text.join(" ");
        json!({"bytes": text.len(), "what": text})
    };
    let mut spec = json!({
        "splits": (1..40).map(split).collect::<Vec<_>>(), "output": "@/out", "workers": 2, "memory": "10M", "files": ["@/in/a"],
    });
    let options = spec.as_object_mut().unwrap();
    options.extend(more.as_object().unwrap().clone());
    json!({ "mapreduce": spec })
}

#[test]
fn a_job_that_dies_at_any_call_ends_with_the_same_bytes() {
    let kept = die_at_any_call(&specs(), None);
    assert!(kept > 100, "hardly anything was kept: all was done again");
}

/// Runs jobs that die, each at some calls, and those that go on with them; says how many tasks were kept.
pub fn die_at_any_call(specs: &[Value], shared: Option<&SharedOutputs>) -> u64 {
    let input = records(&keys(120_000), 0);
    let kept = AtomicU64::new(0);
    for spec in specs {
        let good = Desk::new(spec, &input, shared);
        let (report, calls) = good.begin(u64::MAX);
        assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
        let wanted = good.tree();
        let moments = 16.min(calls);
        for_each_number(moments, |moment| {
            let until = moment * calls / moments;
            let desk = Desk::new(spec, &input, shared);
            let what = |then: &str| format!("{spec}: dead at call {until} of {calls}, {then}");
            desk.begin(until);
            desk.forget_the_death();
            // Twice more, each a little further.
            for more in [until / 3, until / 2] {
                let (_, calls) = desk.resume(more);
                if calls <= more {
                    break;
                }
                desk.forget_the_death();
            }
            let (report, _) = desk.resume(u64::MAX);
            let error = report.error.as_ref().map_or("", |error| &error.message);
            if error.contains("before it began") {
                return; // of user code nothing is known that was not kept
            }
            let over = report
                .error
                .as_ref()
                .is_some_and(|error| error.message.contains("it is over: succeeded"));
            assert!(
                over || report.error.is_none(),
                "{}: {:?}",
                what("resumed"),
                report.error
            );
            let tasks = report.counters.get("KEPT_TASKS").copied();
            kept.fetch_add(tasks.unwrap_or(0), Ordering::Relaxed);
            let found = desk.tree();
            let names = |tree: &Tree| tree.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&found), names(&wanted), "{}", what("names"));
            assert!(found == wanted, "{}", what("other bytes"));
        });
    }
    kept.into_inner()
}

#[test]
fn what_cannot_be_resumed_is_refused_and_stays() {
    let input = records(&keys(1000), 0);
    let validate = json!({"teravalidate": {"input": "@/in"}});
    let desk = Desk::new(&validate, &input, None);
    desk.begin(3);
    desk.forget_the_death();
    let before = std::fs::read(desk.history()).unwrap();
    let (report, _) = desk.resume(u64::MAX);
    let message = report.error.unwrap().message;
    assert!(
        message.contains("leave nothing to resume from"),
        "{message}"
    );
    assert_eq!(std::fs::read(desk.history()).unwrap(), before);
}
