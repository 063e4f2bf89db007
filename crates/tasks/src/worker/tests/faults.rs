//! Workers that do everything a worker must not: each case ends with an error that says so, in time, and leaves no
//! process behind.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::*;

#[test]
fn progress_is_told_as_it_happens() {
    let pool = ProcessPool::new(1);
    let mut told = Vec::new();
    let code =
        b"for i in (1, 2): pulse(i, i * 100, 7, 0, 0); time.sleep(0.2)\npulse(9, 250, 0, 0, 0)";
    let stop = AtomicBool::new(false);
    let mut worker = lease(&pool);
    for _ in 0..2 {
        told.clear();
        let mut tell = |bytes| told.push(bytes);
        worker
            .run(
                &definition(1),
                code,
                WorkerLimits::default(),
                &stop,
                &mut tell,
            )
            .unwrap();
        assert_eq!(told, [100, 100, 50], "each task begins at zero");
    }
    assert!(worker.peak_bytes() > 1 << 20);
}

#[test]
fn a_crash_says_how_where_and_what_was_written_last() {
    let code = "import faulthandler; faulthandler.enable()\npulse(12, 1000, 990, 2, 0)\n\
                print('last words', file=sys.stderr)\nos.kill(os.getpid(), signal.SIGSEGV)";
    let error = try_task(WorkerLimits::default(), code).unwrap_err();
    let WorkerError::Died {
        how, at, stderr, ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert!(matches!(
        how,
        Death::Signal {
            number: libc::SIGSEGV,
            ..
        }
    ));
    let place = RecordPosition {
        record: 12,
        offset: 990,
        file: 2,
        bytes_done: 1000,
    };
    assert_eq!(*at, Some(place));
    assert!(
        stderr.contains("last words") && stderr.contains("Fatal Python error: Segmentation fault"),
        "{stderr}"
    );
    assert!(
        error.to_string().contains("SIGSEGV (segmentation fault"),
        "{error}"
    );
}

#[test]
fn an_exit_in_the_middle_is_a_death_too() {
    let error = try_task(WorkerLimits::default(), "os._exit(0)").unwrap_err();
    assert_eq!(
        error,
        WorkerError::Died {
            how: Death::Exit { code: 0 },
            at: None,
            stderr: String::new(),
            stdout: String::new(),
        }
    );
}

#[test]
fn a_death_is_seen_though_a_child_holds_the_pipes() {
    let code = "subprocess.Popen(['sleep', '20'], stdin=0, stdout=1, stderr=2, start_new_session=True)\nos._exit(7)";
    let start = Instant::now();
    let error = try_task(WorkerLimits::default(), code).unwrap_err();
    assert!(
        matches!(
            error,
            WorkerError::Died {
                how: Death::Exit { code: 7 },
                ..
            }
        ),
        "{error:?}"
    );
    assert!(start.elapsed() < SOON);
}

#[test]
fn a_hung_worker_says_where_it_stands() {
    let code = "import faulthandler; faulthandler.register(signal.SIGUSR1, all_threads=True)\n\
                pulse(5, 50, 45, 0, 0)\nprint('before', file=sys.stderr)\ntime.sleep(600)";
    let timeout = Some(Duration::from_millis(300));
    let error = try_task(
        WorkerLimits {
            timeout,
            ..WorkerLimits::default()
        },
        code,
    )
    .unwrap_err();
    let WorkerError::Hung {
        seconds,
        at,
        stack,
        stderr,
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert!((0.3..5.0).contains(&seconds), "{seconds}");
    assert_eq!(at.map(|place| place.record), Some(5));
    assert_eq!(stderr, "before");
    assert!(stack.unwrap().contains("most recent call first"));
}

#[test]
fn a_worker_that_makes_progress_slowly_is_not_hung() {
    let code = "for i in range(6): pulse(0, 0, 0, 0, i); time.sleep(0.15)";
    let limits = WorkerLimits {
        timeout: Some(Duration::from_millis(600)),
        ..WorkerLimits::default()
    };
    assert_eq!(try_task(limits, code).unwrap(), "null");
}

#[test]
fn a_memory_eater_is_killed_and_so_is_one_whose_children_eat() {
    let eat = "held = []\nwhile True: held.append(b'x' * (1 << 20)); time.sleep(0.001)";
    let in_child = format!(
        "subprocess.run([sys.executable, '-c', \"import time\\n{}\"])",
        eat.replace('\n', "\\n")
    );
    for code in [eat, &in_child] {
        let limits = WorkerLimits {
            memory_bytes: Some(100 << 20),
            ..WorkerLimits::default()
        };
        let error = try_task(limits, code).unwrap_err();
        let WorkerError::TooMuchMemory { bytes, limit, .. } = error else {
            panic!("{error:?}");
        };
        assert!(bytes > limit && bytes < 400 << 20, "{bytes}");
    }
}

#[test]
fn a_flood_of_stderr_blocks_nothing_and_reaches_the_log() {
    let pool = ProcessPool::new(1);
    let mut worker = lease(&pool);
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&lines);
    worker.log_to(Some(Arc::new(move |line: &str| {
        kept.lock().unwrap().push(line.to_owned());
    })));
    let flood = "for i in range(100_000): print('line', i, 'x' * 80, file=sys.stderr)";
    assert_eq!(run(&mut worker, flood).unwrap(), "null");
    let lines = std::mem::take(&mut *lines.lock().unwrap());
    assert_eq!(lines.len(), 100_000, "all of it is here when the report is");
    assert!(lines.last().unwrap().starts_with("line 99999 xxx"));
    let error = run(&mut worker, &format!("{flood}\nos._exit(1)")).unwrap_err();
    let WorkerError::Died { stderr, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(stderr.lines().count(), 20);
    assert!(stderr.contains("line 99999 xxx"));
}

#[test]
fn a_stop_kills_at_once() {
    let pool = ProcessPool::new(1);
    let mut worker = lease(&pool);
    run(&mut worker, "").unwrap();
    let pid = worker.id().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopper = Arc::clone(&stop);
    let start = Instant::now();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stopper.store(true, Ordering::Relaxed);
    });
    let code = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)";
    let error = run_with(&mut worker, WorkerLimits::default(), &stop, code).unwrap_err();
    assert_eq!(error, WorkerError::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(!is_there(pid));
    assert!(
        run(&mut worker, "").is_err(),
        "there is no second task after an error"
    );
    drop(worker);
    assert_eq!(pool.idle(), 0);
    thread.join().unwrap();
}

#[test]
fn a_stop_is_seen_while_a_worker_takes_no_input() {
    let pool = ProcessPool::new(1);
    let mut worker = pool.lease(&python(), &[9; 32]).unwrap();
    // A worker that is stopped reads nothing, so that a large definition fills the pipe.
    let stop = AtomicBool::new(false);
    worker
        .run(
            &definition(1),
            b"",
            WorkerLimits::default(),
            &stop,
            &mut |_| (),
        )
        .unwrap();
    let pid = worker.id().unwrap().cast_signed();
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    let large = WorkerDefinition {
        key: [9; 32],
        bytes: vec![0; 4 << 20].into(),
    };
    let limits = WorkerLimits {
        timeout: Some(Duration::from_millis(200)),
        ..WorkerLimits::default()
    };
    let error = worker
        .run(&large, b"", limits, &stop, &mut |_| ())
        .unwrap_err();
    assert!(
        matches!(error, WorkerError::Hung { at: None, .. }),
        "{error:?}"
    );
}

#[test]
fn garbage_is_an_error_that_shows_it() {
    for (code, expected) in [
        ("os.write(1, b'hello\\n')", "hello"),
        ("os.write(1, b'R\\xff\\xff\\xff\\xff')", "4294967295"),
        ("frame(b'F', b'no json')", "cannot be read"),
        ("frame(b'H', b'again')", "Hello"),
        (
            "os.write(1, 2 * (b'R' + struct.pack('<I', 1) + b'1'))",
            "more than its report",
        ),
        ("os.close(1); time.sleep(600)", "lives on"),
    ] {
        let error =
            try_task(WorkerLimits::default(), &format!("{code}\ntime.sleep(0.3)")).unwrap_err();
        let WorkerError::Broken(what) = &error else {
            panic!("{code}: {error:?}");
        };
        assert!(what.contains(expected), "{code}: {what}");
    }
}

#[test]
fn what_comes_between_two_tasks_is_not_taken_for_a_report() {
    let pool = ProcessPool::new(1);
    let mut worker = lease(&pool);
    let later = "import threading\nthreading.Timer(0.1, lambda: frame(b'R', b'late')).start()";
    assert_eq!(run(&mut worker, later).unwrap(), "null");
    std::thread::sleep(Duration::from_millis(300));
    let error = run(&mut worker, "").unwrap_err();
    assert!(matches!(error, WorkerError::Broken(_)), "{error:?}");
}

#[test]
fn a_failure_comes_back_as_it_was_sent() {
    let code = r#"frame(b"F", json.dumps({"kind": "user_code", "message": "ValueError: x", "traceback": "t",
        "where": {"file": "a", "offset": 5, "record": 1, "line": 2}, "record": "r", "fingerprint": "f",
        "retryable": True}).encode()); time.sleep(600)"#;
    let error = try_task(WorkerLimits::default(), code).unwrap_err();
    let WorkerError::Failed(failure) = error else {
        panic!("{error:?}");
    };
    let place = Where {
        file: "a".into(),
        offset: 5,
        record: 1,
        line: 2,
    };
    assert_eq!(failure.place, Some(place));
    assert_eq!(
        (failure.kind, failure.retryable),
        (FailureKind::UserCode, true)
    );
    let new: TaskFailure =
        serde_json::from_str(r#"{"kind": "from_the_future", "where": null}"#).unwrap();
    assert_eq!(new.kind, FailureKind::Bug);
}
