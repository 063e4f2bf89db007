//! Jobs in agents, which are threads of this process here: what user code failed at comes from an agent to the driver, and from
//! nobody else.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use gristmill_engine::budget::ProcessOwner;
use gristmill_engine::history::HistoryConfig;
use gristmill_engine::jobs::{self, JobReport, JobSpec, Status, native_work};
use gristmill_engine::runner::Control;
use gristmill_engine::runner::cluster::Cluster;
use gristmill_engine::runner::cluster::agent::{AgentSpec, Hello, ShutdownFlags, serve};
use gristmill_engine::storage::agents::{AgentDisk, AgentPlace, Agents};
use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, Store};
use gristmill_engine::task::streaming::{StreamingExecutor, retry};
use gristmill_engine::{Kind, Result};
use serde_json::{Value, json};

use crate::support::Place;

const TOKEN: &str = "a secret of the job";

/// An agent that runs.
struct Agent {
    thread: JoinHandle<Result<()>>,
    end: Arc<ShutdownFlags>,
    hello: Hello,
}

impl Agent {
    fn begin(place: &Place, number: u32) -> Self {
        let spill = place.path(&format!("spill-{number}"));
        std::fs::create_dir(&spill).unwrap();
        let spec: AgentSpec = serde_json::from_value(json!({
            "job_id": "job_1", "agent": number, "token": TOKEN, "workers": 1, "host": "127.0.0.1",
            "spill_dir": [spill], "reads_files": false,
        }))
        .unwrap();
        let (say, heard) = channel();
        let end = Arc::<ShutdownFlags>::default();
        let ends = Arc::clone(&end);
        let thread = spawn(move || {
            serve(
                &spec,
                &Stores::new(Arc::new(Local)),
                native_work,
                &ends,
                |hello| {
                    say.send(hello.clone()).unwrap();
                    Ok(())
                },
            )
        });
        let hello = heard.recv().unwrap();
        Agent { thread, end, hello }
    }

    /// Ends it, if the job has not.
    fn end(self) {
        self.end.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap();
    }

    /// Its runs, for a driver with this token.
    fn disk(&self, token: &str) -> (AgentDisk, Arc<Agents>) {
        let places = BTreeMap::from([(0, self.hello.place.clone())]);
        let agents = Arc::new(Agents::of_driver(u32::MAX, token.to_owned(), places));
        (AgentDisk::new(Arc::new(Local), Arc::clone(&agents)), agents)
    }
}

/// A job whose map and reduce are the shell scripts `map` and `reduce` of a place.
fn definition(place: &Place) -> String {
    let script = |name| json!({"script": ["sh", place.path(name)]});
    let streams = |ignore_key| {
        json!({
            "input": "text", "input_separator": "\t", "ignore_key": ignore_key, "output": "text",
            "output_separator": "\t", "key_fields": 1,
        })
    };
    json!({
        "format": {"text": {"delimiter": null}}, "input_classes": ["long", "text"],
        "map": script("map"), "map_streams": streams(true), "combine": null,
        "reduce": script("reduce"), "reduce_streams": streams(false),
        "comparator": null, "key_separator": "\t", "partitioner": "hash",
        "output": {"format": "text", "separator": "\t", "codec": null},
        "environment": [], "variables": [], "links": [], "archives": [],
        "search": "/usr/bin:/bin", "timeout_ms": 0, "exit_matters": true, "reporter_prefix": "reporter:",
        "most_unique": 0, "truncate": null, "again": "",
    })
    .to_string()
}

/// Runs the job in two agents.
fn run(place: &Place, attempts: usize) -> JobReport {
    let text = b"good\t1\nbad\t2\nworse\t3\n";
    place.put("in", text);
    let agents = [0, 1].map(|number| Agent::begin(place, number));
    let hellos: Vec<&Hello> = agents.iter().map(|agent| &agent.hello).collect();
    let cluster = json!({"token": TOKEN, "agents": hellos}).to_string();
    let store = Stores::new(place.store());
    let work = StreamingExecutor::new(&definition(place), Arc::clone(&store)).unwrap();
    let piece = json!({
        "path": place.path("in"), "file_bytes": text.len(), "codec": null, "start": 0, "bytes": text.len(),
    });
    let spec = json!({"mapreduce": {
        "command": "streaming", "splits": [{"bytes": text.len(), "what": {"pieces": [piece]}}], "partitions": 1,
        "output": place.path("out"), "memory": "200M", "attempts": attempts, "on": "ray",
    }});
    let environment = jobs::Environment {
        store,
        job_id: "job_1".into(),
        history: HistoryConfig {
            jobs: Some(place.path("jobs")),
            keep_short: true,
            ..HistoryConfig::default()
        },
        work: Some(Arc::new(work)),
        interpreter: String::new(),
        process: ProcessOwner::Shared,
        worker: None,
        cluster: Some(Arc::new(Cluster::from_json(&cluster).unwrap())),
    };
    let spec = JobSpec::from_json(&spec.to_string()).unwrap();
    let report = jobs::run(&spec, &environment, &Control::default());
    drop(environment);
    agents.into_iter().for_each(Agent::end);
    report
}

/// What the job kept of the task that failed, its agents gone.
fn kept(place: &Place, report: &JobReport) -> (PathBuf, Value) {
    assert_eq!(report.status, Status::Failed);
    let details = &report.error.as_ref().unwrap().details;
    assert!(!details.contains_key("on agent"), "{details:?}");
    let folder = place.path("jobs/job_1/failed").join(&details["retry"]);
    let task = std::fs::read(folder.join("task")).unwrap();
    let line = task.split(|byte| *byte == b'\n').next().unwrap();
    assert_eq!(&task[line.len() + 1..], definition(place).as_bytes());
    (folder, serde_json::from_slice(line).unwrap())
}

fn again(place: &Place, folder: &Path) -> Result<u64> {
    let out = tempfile::tempdir_in(place.root()).unwrap();
    let stores = Stores::new(place.store());
    let report = retry(&folder.join("task"), out.path(), &stores, Arc::default())?;
    Ok(report.records_in)
}

const FINE: &str = "cat\n";
const FAILS: &str = "while read key value; do if [ \"$key\" = bad ]; then exit 7; fi; done\n";

#[test]
fn the_pairs_that_a_reduce_failed_at_come_from_the_agent() {
    let place = Place::local();
    place.put("map", FINE.as_bytes());
    place.put("reduce", FAILS.as_bytes());
    let report = run(&place, 2);
    let (folder, header) = kept(&place, &report);
    let run = folder.join("run-pairs-0000");
    assert_eq!(header["at"]["how"], "script");
    assert_eq!(
        header["spec"]["work"]["reduce"]["runs"][0]["path"],
        json!(run)
    );
    assert!(run.exists());
    let error = again(&place, &folder).unwrap_err();
    assert!(error.to_string().contains("exit code 7"), "{error}");
    std::fs::write(place.path("reduce"), FINE).unwrap();
    assert!(again(&place, &folder).unwrap() > 0);
}

#[test]
fn the_split_that_a_map_failed_at_is_known_here() {
    let place = Place::local();
    place.put("map", FAILS.as_bytes());
    place.put("reduce", FINE.as_bytes());
    let report = run(&place, 1);
    let (folder, header) = kept(&place, &report);
    assert_eq!(header["spec"]["work"]["map"]["number"], 0);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    assert!(again(&place, &folder).is_err());
    std::fs::write(place.path("map"), FINE).unwrap();
    assert_eq!(again(&place, &folder).unwrap(), 3);
}

#[test]
fn an_error_says_why_nothing_was_kept() {
    let place = Place::local();
    place.put("map", FAILS.as_bytes());
    place.put("reduce", FINE.as_bytes());
    std::fs::create_dir_all(place.path("jobs/job_1")).unwrap();
    place.put("jobs/job_1/failed", b"not a directory");
    let error = run(&place, 1).error.unwrap();
    let why = &error.context["for `gristmill retry`"];
    assert!(why.starts_with("nothing was kept: "), "{why}");
    assert!(!error.details.contains_key("retry"));
}

#[test]
fn an_agent_gives_runs_alone_and_to_its_job_alone() {
    const KEPT: &str = "agent:0/1/run-failed-5-1-0000";
    let place = Place::local();
    let agent = Agent::begin(&place, 0);
    let folder = &agent.hello.place.folders[1];
    std::fs::write(folder.join("run-failed-5-1-0000"), b"pairs").unwrap();
    let read = |token, path: &str| {
        let mut bytes = [0; 9];
        let (disk, _) = agent.disk(token);
        let file = disk.open(path.as_ref(), Caching::Cached)?;
        let read = file.read_at(&mut bytes, 0)?;
        Ok::<_, gristmill_engine::Error>(bytes[..read].to_vec())
    };
    assert_eq!(read(TOKEN, KEPT).unwrap(), b"pairs");
    let said = |token, path| read(token, path).unwrap_err().to_string();
    assert!(
        said("another", KEPT).contains("another job"),
        "{}",
        said("another", KEPT)
    );
    for path in [
        "agent:0/1/agents",
        "agent:0/1/..",
        "agent:0/7/run-failed-5-1-0000",
    ] {
        let said = said(TOKEN, path);
        assert!(
            said.contains("no such directory") || said.contains("no longer has it"),
            "{said}"
        );
    }
    let (disk, agents) = agent.disk(TOKEN);
    agents.change(|table| table.lost.extend([0]));
    let said = disk.open(KEPT.as_ref(), Caching::Cached).unwrap_err();
    assert!(said.to_string().contains("its agent is lost"), "{said}");
    agent.end();
}

#[test]
fn a_job_that_is_cancelled_does_not_wait_for_a_run_of_an_agent_that_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = AgentPlace {
        address: listener.local_addr().unwrap().to_string(),
        folders: vec!["/spill".into()],
        ..AgentPlace::default()
    };
    let flag = Arc::<AtomicBool>::default();
    let agents = Agents::of_driver(u32::MAX, TOKEN.to_owned(), BTreeMap::from([(0, place)]));
    let disk = AgentDisk::new(
        Arc::new(Local),
        Arc::new(agents.ended_by(Arc::clone(&flag))),
    );
    let began = Instant::now();
    let waits = spawn(move || disk.stat("agent:0/0/run-1".as_ref()));
    flag.store(true, Ordering::Relaxed);
    let error = waits.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled, "{error}");
    assert!(began.elapsed() < Duration::from_secs(9)); // a request may take ten
}
