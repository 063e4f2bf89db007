use std::fs;

use super::event::{AttemptStatus, MachineCpu, NodeRead, NodeSample, Sample, VERSION};
use super::*;
use proptest::prelude::*;
use serde_json::json;

fn submitted() -> Event {
    Event::JobSubmitted {
        version: VERSION,
        job_id: "job_1".into(),
        command: "sort".into(),
        spec: json!({"sort": {"inputs": ["a \n\u{7f}<b>"]}}),
        unix_ms: 1,
        pid: 2,
        program: "0.1.0".into(),
        cwd: None,
        origin: JobOrigin {
            argv: vec!["gristmill".into(), "sort".into()],
            host: "here".into(),
        },
    }
}

fn any_sample() -> impl Strategy<Value = Event> {
    (any::<u32>(), any::<u64>()).prop_map(|(seconds, bytes)| {
        let machine = MachineCpu {
            steal_s: f64::from(seconds) / 64.0,
            ..MachineCpu::default()
        };
        Event::Sample(Sample {
            machine,
            done_bytes: bytes,
            nodes: vec![
                NodeSample {
                    node: seconds.to_string(),
                    machine: bytes.is_multiple_of(2).then_some(machine),
                    is_lost: bytes.is_multiple_of(3),
                    received_bytes: bytes,
                    ..NodeSample::default()
                };
                (seconds % 3) as usize
            ],
            ..Sample::default()
        })
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    let text = || "\\PC{0,9}|[\\x00-\\x1f\"\\\\]{1,4}";
    let outcome = prop_oneof![
        Just(AttemptStatus::Succeeded),
        Just(AttemptStatus::Failed),
        Just(AttemptStatus::Killed)
    ];
    let read = (text(), any::<u64>()).prop_map(|(by, received_bytes)| NodeRead {
        kept_by: format!("{by} (2)"),
        by,
        received_bytes,
        file_bytes: 1,
    });
    let reads = proptest::collection::vec(read, 0..3);
    prop_oneof![
        Just(submitted()),
        reads.prop_map(|read| Event::RunsRead { read }),
        text().prop_map(|name| Event::PhaseStarted {
            name,
            tasks: 1,
            bytes: 2,
            kept: 0,
        }),
        (any::<u32>(), text()).prop_map(|(task, phase)| Event::AttemptStarted {
            task,
            attempt: 0,
            input: format!("{phase}, bytes 0 to 3"),
            node: phase.chars().rev().collect(),
            phase
        }),
        (
            any::<u32>(),
            outcome,
            proptest::option::of(text()),
            any::<u64>()
        )
            .prop_map(|(task, outcome, error, read)| Event::AttemptFinished {
                task,
                attempt: 1,
                outcome,
                error,
                bytes: read / 2,
                counters: [("MAP_INPUT_RECORDS".to_owned(), read)].into(),
                fingerprint: None,
                kept: None,
            }),
        any_sample(),
        text().prop_map(|status| Event::JobFinished {
            status,
            report: json!({"records": 1})
        }),
    ]
}

fn recorded(home: &Path, events: &[Event]) -> PathBuf {
    let place = HistoryConfig {
        jobs: Some(home.to_owned()),
        keep_short: true,
        ..HistoryConfig::default()
    };
    let recorder = Recorder::new(&place, "job_1");
    events
        .iter()
        .cloned()
        .for_each(|event| recorder.record(event));
    assert_eq!(recorder.failure(), None);
    recorder.folder().unwrap_or_default()
}

proptest! {
    /// What is written is read again, whatever the text; cut off anywhere, all whole lines are.
    #[test]
    fn events_are_read_as_they_were_written(
        events in proptest::collection::vec(any_event(), 1..12),
        cut in any::<proptest::sample::Index>(),
    ) {
        let home = tempfile::tempdir().unwrap();
        let folder = recorded(home.path(), &events);
        let found: Vec<Event> = read(&folder).unwrap().into_iter().map(|timed| timed.event).collect();
        prop_assert_eq!(&found, &events);
        let whole = fs::read(folder.join(EVENTS)).unwrap();
        let cut = cut.index(whole.len());
        fs::write(folder.join(EVENTS), &whole[..cut]).unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(read(&folder).unwrap().len(), lines);
    }
}

#[test]
fn short_jobs_leave_nothing() {
    let home = tempfile::tempdir().unwrap();
    let place = HistoryConfig {
        jobs: Some(home.path().join("jobs")),
        keep_short: false,
        ..HistoryConfig::default()
    };
    let recorder = Recorder::new(&place, "job_1");
    recorder.record(submitted());
    assert_eq!(recorder.folder(), None);
    assert!(!home.path().join("jobs").exists());
}

#[test]
fn a_history_that_cannot_be_written_is_a_reason_and_no_failure() {
    let home = tempfile::NamedTempFile::new().unwrap();
    let place = HistoryConfig {
        jobs: Some(home.path().join("jobs")),
        keep_short: true,
        ..HistoryConfig::default()
    };
    let recorder = Recorder::new(&place, "job_1");
    recorder.record(submitted());
    recorder.record(submitted());
    let reason = recorder.failure().unwrap();
    assert!(
        reason.contains("job_1") && reason.contains("irectory"),
        "{reason}"
    );
}

#[test]
fn later_versions_are_refused_and_unknown_events_are_not() {
    let home = tempfile::tempdir().unwrap();
    let folder = recorded(home.path(), &[submitted()]);
    let path = folder.join(EVENTS);
    let line = fs::read_to_string(&path).unwrap();
    let known = r#"{"t_ms": 5, "event": "node_lost", "node": 3}"#;
    fs::write(&path, format!("{line}{known}\n")).unwrap();
    assert_eq!(read(&folder).unwrap()[1].event, Event::Unknown);
    fs::write(&path, line.replace("\"version\":1", "\"version\":2")).unwrap();
    let error = read(&folder).unwrap_err().to_string();
    assert!(error.contains("history version 2"), "{error}");
    fs::write(&path, format!("{line}{{\"t_ms\": 5\n{line}")).unwrap();
    let error = read(&folder).unwrap_err().to_string();
    assert!(
        error.contains("damaged") && error.contains("line 2"),
        "{error}"
    );
}
