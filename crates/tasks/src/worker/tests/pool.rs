//! Which worker a lease gets, and when workers end.

use super::*;

#[test]
fn a_worker_is_used_again_and_gets_a_definition_once() {
    let pool = ProcessPool::new(2);
    let mut first = lease(&pool);
    let pid = first.id();
    assert_eq!(
        run(&mut first, "result = [len(definition), received]").unwrap(),
        "[3, 1]"
    );
    assert_eq!(run(&mut first, "result = received").unwrap(), "1");
    let mut second = lease(&pool);
    assert_ne!(second.id(), pid, "a leased worker is nobody else's");
    run(&mut second, "").unwrap();
    drop(first);
    drop(second);
    assert_eq!(pool.idle(), 2);
    let again = pool.lease(&python(), &definition(1).key).unwrap();
    assert!(again.id().is_some());
    let other = pool
        .lease(&python().argument("other"), &definition(1).key)
        .unwrap();
    assert_ne!(other.id(), pid, "another command is another worker");
}

#[test]
fn dismissed_workers_are_reaped_and_others_start_after_them() {
    let pool = ProcessPool::new(2);
    let (first, second) = (lease(&pool), lease(&pool));
    let pids = [first.id().unwrap(), second.id().unwrap()];
    drop(first);
    pool.dismiss();
    assert_eq!(pool.idle(), 0);
    assert!(!is_there(pids[0]) && is_alive(pids[1]));
    drop(second);
    assert_eq!(lease(&pool).id(), Some(pids[1]));
    pool.dismiss();
    let mut third = lease(&pool);
    assert_eq!(run(&mut third, "result = 3").unwrap(), "3");
}

#[test]
fn definitions_that_the_worker_dropped_are_sent_again() {
    let pool = ProcessPool::new(1);
    let mut worker = lease(&pool);
    let mut received = |name: u8| {
        let report = worker.run(
            &definition(name),
            b"result = received",
            WorkerLimits::default(),
            &AtomicBool::new(false),
            &mut |_| (),
        );
        String::from_utf8(report.unwrap()).unwrap()
    };
    let names = [1, 2, 3, 4, 1, 5, 1, 2];
    assert_eq!(
        names.map(&mut received),
        ["1", "2", "3", "4", "4", "5", "5", "6"]
    );
}

#[test]
fn a_lease_prefers_the_worker_that_has_the_definition() {
    let pool = ProcessPool::new(2);
    let (mut first, mut second) = (lease(&pool), lease(&pool));
    let stop = AtomicBool::new(false);
    for (worker, name) in [(&mut first, 1), (&mut second, 2)] {
        worker
            .run(
                &definition(name),
                b"",
                WorkerLimits::default(),
                &stop,
                &mut |_| (),
            )
            .unwrap();
    }
    let (first_pid, second_pid) = (first.id(), second.id());
    drop(first);
    drop(second);
    assert_eq!(
        pool.lease(&python(), &definition(1).key).unwrap().id(),
        first_pid
    );
    assert_eq!(
        pool.lease(&python(), &definition(2).key).unwrap().id(),
        second_pid
    );
}

#[test]
fn a_worker_is_prepared_once_and_taken_first() {
    let pool = ProcessPool::new(0);
    pool.prepare(&python());
    pool.prepare(&python());
    pool.keep(2);
    assert!(within(SOON, || pool.idle() > 0));
    pool.prepare(&python()); // one waits
    let mut first = lease(&pool);
    assert_eq!(
        run(&mut first, "result = os.getpid()").unwrap(),
        first.id().unwrap().to_string()
    );
    assert_eq!(pool.idle(), 0, "one was enough");

    // One that ends by itself is replaced by the lease, which says why if that ends, too.
    let ended = WorkerCommand::new("/bin/sh", "/tmp")
        .argument("-c")
        .argument("exit 3");
    pool.prepare(&ended);
    let mut second = pool.lease(&ended, &[0; 32]).unwrap();
    let error = run(&mut second, "").unwrap_err();
    assert!(error.to_string().contains("exited with code 3"), "{error}");
    pool.prepare(&WorkerCommand::new("/nowhere/python", "/tmp")); // nobody is told
}

#[test]
fn children_end_with_the_worker() {
    let pool = ProcessPool::new(1);
    let mut worker = lease(&pool);
    let code = "child = subprocess.Popen(['sleep', '300']); result = child.pid";
    let child: u32 = run(&mut worker, code).unwrap().parse().unwrap();
    let pid = worker.id().unwrap();
    assert!(is_alive(child));
    drop(worker);
    assert!(is_alive(child), "between tasks nobody minds");
    drop(pool);
    assert!(within(SOON, || !is_alive(child)));
    assert!(!is_there(pid), "not even a zombie");
}

#[test]
fn what_cannot_start_says_why() {
    let pool = ProcessPool::new(1);
    let absent = WorkerCommand::new("/nowhere/python", "/tmp");
    let error = pool.lease(&absent, &[0; 32]).unwrap_err();
    assert!(error.to_string().contains("/nowhere/python"), "{error}");
    let shell = |script: &str| {
        WorkerCommand::new("/bin/sh", "/tmp")
            .argument("-c")
            .argument(script)
    };
    for (command, expected) in [
        (shell("echo no module >&2; exit 2"), "exited with code 2"),
        (shell("kill -SEGV $$"), "SIGSEGV"),
        (shell("echo hello"), "hello"),
    ] {
        let mut worker = pool.lease(&command, &[0; 32]).unwrap();
        let error = run(&mut worker, "").unwrap_err();
        let WorkerError::NotStarted { reason, stderr, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(reason.contains(expected), "{reason}");
        assert!(
            expected != "exited with code 2" || stderr == "no module",
            "{stderr}"
        );
    }
    let stop = AtomicBool::new(true);
    let mut silent = pool.lease(&python().argument("silent"), &[0; 32]).unwrap();
    let error = run_with(&mut silent, WorkerLimits::default(), &stop, "").unwrap_err();
    assert_eq!(error, WorkerError::Cancelled);
}

#[test]
fn idle_workers_end_after_their_time_and_dead_ones_are_reaped() {
    let pool = ProcessPool::with_idle(2, Duration::from_millis(400));
    let mut worker = lease(&pool);
    run(&mut worker, "").unwrap();
    let pid = worker.id().unwrap();
    drop(worker);
    assert_eq!(pool.idle(), 1);
    assert!(within(SOON, || !is_there(pid) && pool.idle() == 0));

    let pool = ProcessPool::new(2);
    let mut worker = lease(&pool);
    run(&mut worker, "").unwrap();
    let pid = worker.id().unwrap();
    drop(worker);
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
    assert!(within(SOON, || !is_there(pid) && pool.idle() == 0));
    assert_eq!(run(&mut lease(&pool), "result = 1").unwrap(), "1");
}

#[test]
fn the_pool_is_bounded_and_makes_room_for_other_commands() {
    let pool = ProcessPool::new(2);
    let leases: Vec<Leased> = (0..3).map(|_| lease(&pool)).collect();
    drop(leases);
    assert_eq!(pool.idle(), 2);
    let other = pool.lease(&python().argument("other"), &[0; 32]).unwrap();
    assert_eq!(pool.idle(), 1, "two workers in all");
    pool.keep(1);
    assert_eq!(pool.idle(), 0);
    drop(other);
    assert_eq!(pool.idle(), 1);
}

#[test]
fn a_lease_may_outlive_its_pool_and_the_thread_that_took_it() {
    let pool = ProcessPool::new(2);
    // A worker started for a thread that ends must live on: the kernel watches the keeper, not that thread.
    let pid = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let mut worker = lease(&pool);
                run(&mut worker, "").unwrap();
                worker.id()
            })
            .join()
            .unwrap()
    });
    std::thread::sleep(Duration::from_millis(100));
    let mut worker = lease(&pool);
    assert_eq!(worker.id(), pid);
    drop(pool);
    assert_eq!(run(&mut worker, "result = 2").unwrap(), "2");
    drop(worker);
    assert!(!is_there(pid.unwrap()));
}

#[test]
fn the_file_of_the_pulse_has_no_name_before_the_worker_begins() {
    let pool = ProcessPool::new(1);
    let mut worker = lease(&pool);
    let code = "result = os.readlink(f'/proc/self/fd/{sys.argv[-1]}')";
    let path: String = serde_json::from_str(&run(&mut worker, code).unwrap()).unwrap();
    assert!(path.contains("gristmill-pulse-") && path.ends_with(" (deleted)"));
}

#[test]
fn the_shared_pool_is_one() {
    assert!(std::ptr::eq(ProcessPool::shared(), ProcessPool::shared()));
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_takes_workers_first_and_the_terminal_reaches_them_not() {
    let pool = ProcessPool::new(1);
    let mut worker = lease(&pool);
    let code =
        "result = [int(open('/proc/self/oom_score_adj').read()), os.getpgrp() == os.getpid()]";
    assert_eq!(run(&mut worker, code).unwrap(), "[500, true]");
}

/// The driver of this test is this test, in another process.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_driver_leaves_no_worker() {
    let marker = "be-the-driver-that-is-killed";
    if std::env::args().any(|argument| argument == marker) {
        let pool = ProcessPool::new(1);
        let mut worker = lease(&pool);
        println!(
            "worker {}",
            run(&mut worker, "result = os.getpid()").unwrap()
        );
        let _ = run(&mut worker, "time.sleep(600)");
        return;
    }
    let name = "worker::tests::pool::a_killed_driver_leaves_no_worker";
    let mut driver = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--skip", marker])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = std::io::BufReader::new(driver.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(stdout).map(Result::unwrap);
    let pid = lines.find_map(|line| line.split_once("worker ")?.1.parse::<u32>().ok());
    let pid = pid.unwrap();
    assert!(is_alive(pid));
    driver.kill().unwrap();
    driver.wait().unwrap();
    assert!(within(SOON, || !is_alive(pid)));
}
