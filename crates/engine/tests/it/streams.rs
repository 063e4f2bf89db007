//! `sort` from a pipe and to a pipe: what was read or written once cannot be again, so that a fault ends the job
//! where another try could lose records or repeat them.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_engine::Kind;
use gristmill_engine::jobs::{JobReport, Status};
use gristmill_engine::runner::Control;
use serde_json::{Value, json};

use super::spill_case::{Case, Wanted, text};
use super::support::{Place, for_each_number};
use super::watched::{Call, Watch, Watched};

fn make_pipe(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a string that ends.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Lines of a few bytes each.
fn some_lines(bytes: usize) -> Vec<u8> {
    text(bytes, 20, 11)
}

fn expected(data: &[u8], wanted: Wanted) -> Vec<u8> {
    Case::sort(vec![data.to_vec()], wanted).sorted
}

fn sort(memory: u64, workers: usize, unique: bool) -> Value {
    json!({"sort": {
        "inputs": ["pipe"], "output": "out", "memory": memory, "workers": workers, "unique": unique,
        "spill_dir": ["spill"], "no_sync": true,
    }})
}

fn with_pipe() -> Place {
    let place = Place::local();
    make_pipe(&place.path("pipe"));
    place.make_directory("spill");
    place
}

/// Feeds a job from a pipe while it runs. A reader that goes away is no failure of the feeder's.
fn run_fed(place: &Place, watch: &Arc<Watch>, spec: &Value, data: &[u8]) -> JobReport {
    let pipe = place.path("pipe");
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut pipe = OpenOptions::new().write(true).open(pipe).unwrap();
            let _ = pipe.write_all(data);
        });
        let store = Watched::over(place.store(), watch);
        place.run_on(store, spec, &Control::default())
    })
}

fn runs_on_disk(watch: &Watch) -> usize {
    let calls = watch.calls();
    calls.iter().filter(|call| call.creates_run()).count()
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// Half of memory holds runs; those that come later go to the disk.
#[test]
fn a_stream_of_any_length_is_sorted() {
    let data = some_lines(15_000_000);
    for (bytes, workers, unique, on_disk) in [
        (0, 2, false, false),
        (3_000_000, 2, true, false),
        (15_000_000, 1, false, true),
        (15_000_000, 1, true, true),
    ] {
        let wanted = Wanted {
            unique,
            ..Wanted::default()
        };
        let (place, watch, data) = (with_pipe(), Watch::new(), &data[..bytes]);
        let memory = if workers == 1 { 26_000_000 } else { 34_000_000 };
        let report = run_fed(&place, &watch, &sort(memory, workers, unique), data);
        assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
        assert!(
            place.read("out") == expected(data, wanted),
            "{bytes} {unique}"
        );
        assert!(report.budget_peak_bytes <= report.memory_bytes);
        assert_eq!(runs_on_disk(&watch) > 0, on_disk, "{bytes} {unique}");
        assert!(is_empty(&place.path("spill")));
    }
}

/// What an attempt took from a stream is gone when it fails: another try would sort the rest, and call it all.
#[test]
fn a_fault_while_a_stream_is_spilled_loses_nothing_silently() {
    let data = some_lines(3_000_000);
    let want = expected(&data, Wanted::default());
    let spec = sort(8_000_000, 2, false);
    let good = Watch::new();
    run_fed(&with_pipe(), &good, &spec, &data);
    let of_tasks = good
        .calls()
        .iter()
        .filter(|call| call.matters_to_task())
        .count() as u64;
    assert!(runs_on_disk(&good) > 1);
    let failed = AtomicU64::new(0);
    for_each_number(of_tasks, |call| {
        let (place, watch) = (with_pipe(), Watch::failing_in_task(call));
        let report = run_fed(&place, &watch, &spec, &data);
        assert!(is_empty(&place.path("spill")));
        if report.status == Status::Succeeded {
            assert!(place.read("out") == want, "after {:?}", watch.failed());
            return;
        }
        let failure = report.failure.unwrap();
        assert_eq!(failure.kind(), Kind::Io, "{failure}");
        assert!(failure.to_string().contains("run-"), "{failure}");
        assert!(!place.path("out").exists());
        failed.fetch_add(1, Ordering::Relaxed);
    });
    let failed = failed.into_inner();
    assert!(
        0 < failed && failed < of_tasks,
        "{failed} of {of_tasks}: merges may be tried again"
    );
}

/// What came out of a pipe while a job wrote to it.
fn run_drained(place: &Place, watch: &Arc<Watch>, spec: &Value) -> (JobReport, Vec<u8>) {
    let pipe = place.path("pipe");
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = Vec::new();
            File::open(&pipe).unwrap().read_to_end(&mut read).unwrap();
            read
        });
        let store = Watched::over(place.store(), watch);
        let report = place.run_on(store, spec, &Control::default());
        while !reader.is_finished() {
            // A job that ended before it opened the pipe has left its reader waiting.
            let mut open = OpenOptions::new();
            let _ = open.write(true).custom_flags(libc::O_NONBLOCK).open(&pipe);
            thread::sleep(Duration::from_millis(1));
        }
        (report, reader.join().unwrap())
    })
}

/// Output that was written once is not written again: after a fault it is the beginning of the right one.
#[test]
fn a_fault_while_a_pipe_is_written_repeats_nothing() {
    let data = some_lines(3_000_000);
    let want = expected(&data, Wanted::default());
    let place = || {
        let place = with_pipe();
        place.put("in", &data);
        place
    };
    let memory = Case::sort(vec![data.clone()], Wanted::default()).least_memory(2);
    let mut spec = sort(memory, 2, false);
    (spec["sort"]["inputs"], spec["sort"]["output"]) = (json!(["in"]), json!("pipe"));
    let good = Watch::new();
    let (report, out) = run_drained(&place(), &good, &spec);
    assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
    assert!(out == want && runs_on_disk(&good) > 1);
    let of_tasks = good
        .calls()
        .iter()
        .filter(|call| call.matters_to_task())
        .count() as u64;
    let failed = AtomicU64::new(0);
    for_each_number(of_tasks, |call| {
        let (place, watch) = (place(), Watch::failing_in_task(call));
        let (report, out) = run_drained(&place, &watch, &spec);
        assert!(is_empty(&place.path("spill")));
        let whole = report.status == Status::Succeeded;
        assert!(
            if whole {
                out == want
            } else {
                want.starts_with(&out)
            },
            "{:?}",
            watch.failed()
        );
        if let Some(failure) = &report.failure {
            assert_eq!(failure.kind(), Kind::Io, "{failure}");
            failed.fetch_add(1, Ordering::Relaxed);
        }
    });
    let failed = failed.into_inner();
    assert!(
        failed < of_tasks,
        "{failed} of {of_tasks}: spills may be tried again"
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_job_quietly() {
    let place = with_pipe();
    place.put("in", &some_lines(3_000_000));
    let mut spec = sort(1 << 30, 2, false);
    (spec["sort"]["inputs"], spec["sort"]["output"]) = (json!(["in"]), json!("pipe"));
    let pipe = place.path("pipe");
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            let mut first = [0; 1];
            File::open(&pipe).unwrap().read_exact(&mut first).unwrap();
        });
        place.run(&spec)
    });
    assert_eq!(report.failure.unwrap().kind(), Kind::ReaderGone);
    assert!(is_empty(&place.path("spill")));
}

/// A stream that gives nothing does not keep a cancelled job, nor its other workers.
#[test]
fn a_job_that_waits_for_a_stream_can_be_cancelled() {
    for bytes in [0, 7, 4_000_000] {
        let (place, control) = (with_pipe(), Control::default());
        let watch = Watch::new();
        let data = some_lines(bytes);
        let began = thread::scope(|scope| {
            let fed = scope.spawn(|| {
                let pipe = OpenOptions::new().write(true).open(place.path("pipe"));
                let mut pipe = pipe.unwrap();
                pipe.write_all(&data).unwrap();
                thread::sleep(Duration::from_millis(150));
                control.cancel();
                (pipe, Instant::now())
            });
            let store = Watched::over(place.store(), &watch);
            let report = place.run_on(store, &sort(8_000_000, 2, false), &control);
            assert_eq!(report.status, Status::Cancelled, "{:?}", report.error);
            fed.join().unwrap().1
        });
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?}",
            began.elapsed()
        );
        assert!(is_empty(&place.path("spill")) && !place.path("out").exists());
        assert!(watch.calls().iter().any(Call::of_run) == (bytes > 3_000_000));
    }
}
