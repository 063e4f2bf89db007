//! Scripts of all kinds, run by a shell.

use std::sync::atomic::AtomicBool;

use super::*;

fn shell(script: &str, folder: &Path) -> ScriptProgram {
    ScriptProgram {
        argv: vec!["sh".into(), "-c".into(), script.into()],
        environment: vec![("A_VARIABLE".into(), "a value".into())],
        folder: folder.to_owned(),
        search: "/usr/bin:/bin".into(),
    }
}

fn all(stdout: &mut Stdout<'_>) -> Result<Vec<u8>> {
    let (mut out, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match stdout.read(&mut buffer) {
            0 => return Ok(out),
            count => out.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Runs a shell script with so many lines of input.
fn ran(script: &str, lines: usize) -> ScriptOutcome<Vec<u8>, bool> {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let watch = ScriptDeadline::new(&stop, Some(Duration::from_secs(20)));
    let feed = |stdin: &mut Stdin<'_>| {
        let mut open = true;
        for _ in 0..lines {
            open &= stdin.write(b"a line of input\n");
        }
        Ok(open)
    };
    run(
        &shell(script, folder.path()),
        "reporter:",
        &watch,
        feed,
        all,
    )
    .unwrap()
}

#[test]
fn both_directions_at_once() {
    let ended = ran("cat", 500_000);
    assert_eq!(ended.stdout.unwrap().len(), 500_000 * 16);
    assert_eq!((ended.exit, ended.stdin), (Exit::Code(0), Ok(true)));
}

#[test]
fn scripts_that_do_not_read_write_much_or_end_badly() {
    let ended = ran("exec <&-; echo done", 100_000);
    assert_eq!(
        (ended.stdout.unwrap(), ended.exit, ended.stdin),
        (b"done\n".to_vec(), Exit::Code(0), Ok(false))
    );
    let ended = ran("head -c 300000 /dev/zero; cat >/dev/null; exit 3", 100_000);
    assert_eq!(
        (ended.stdout.unwrap().len(), ended.exit),
        (300_000, Exit::Code(3))
    );
    let ended = ran("kill -9 $$", 1);
    assert_eq!(ended.exit, Exit::Signal(9));
    let ended = ran(
        "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2; echo $A_VARIABLE",
        10,
    );
    assert_eq!(
        (ended.stdout.unwrap(), ended.stderr.tail().pop().unwrap()),
        (b"a value\n".to_vec(), "last".to_owned())
    );
}

#[test]
fn a_script_that_failed_is_not_fed_any_further() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    // Goes on until it is told that nobody wants more, as a merge of any size would.
    let feed = |stdin: &mut Stdin<'_>| {
        while began.elapsed() < Duration::from_secs(30) {
            stdin.write(b"a line of input\n");
            stdin.check_wanted()?;
            thread::sleep(LOOK);
        }
        Ok(())
    };
    let program = shell("exec <&-; exit 3", folder.path());
    let watch = ScriptDeadline::new(&stop, None);
    let ended = run(&program, "reporter:", &watch, feed, all).unwrap();
    assert_eq!(ended.exit, Exit::Code(3));
    assert_eq!(ended.stdin.unwrap_err().kind(), Kind::Cancelled);
    // Where its exit code says nothing, all that there is is read, and counted.
    let feed = |stdin: &mut Stdin<'_>| {
        let mut lines = 0;
        while stdin.write(b"a line of input\n") {
            lines += 1;
        }
        thread::sleep(20 * LOOK); // it has ended by now, or it will have: both are well
        stdin.check_wanted().map(|()| lines)
    };
    let program = shell("head -c 10 >/dev/null; exit 3", folder.path()); // so it takes the first line
    let watch = ScriptDeadline::new(&stop, None).with_any_exit();
    let ended = run(&program, "reporter:", &watch, feed, all).unwrap();
    assert_eq!(ended.exit, Exit::Code(3));
    assert!(ended.stdin.unwrap() > 0);
}

#[test]
fn a_script_that_hangs_is_ended_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let watch = ScriptDeadline::new(&stop, Some(Duration::from_millis(300)));
    let program = shell("sleep 100 & echo $! ; sleep 100", folder.path());
    let began = Instant::now();
    let ended = run(&program, "reporter:", &watch, |_| Ok(()), all).unwrap();
    assert_eq!(
        (ended.halt, ended.exit),
        (Some(Halt::TimedOut), Exit::Signal(9))
    );
    assert!(began.elapsed() < Duration::from_secs(10));
    let child = String::from_utf8(ended.stdout.unwrap()).unwrap();
    let child: i32 = child.trim().parse().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    let is_gone = |state: &str| state.is_empty() || state.contains(") Z ");
    while !is_gone(&state()) {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", state());
        thread::sleep(LOOK);
    }
}

#[test]
fn a_child_left_behind_is_killed_and_holds_nobody_up() {
    let began = Instant::now();
    let ended = ran("sleep 100 >/dev/null & echo done", 1);
    assert_eq!(
        (ended.stdout.unwrap(), ended.exit),
        (b"done\n".to_vec(), Exit::Code(0))
    );
    let ended = ran(
        "(while :; do echo again >&2; sleep 0.01; done) >/dev/null & echo done",
        1,
    );
    assert_eq!(ended.stdout.unwrap(), b"done\n");
    assert!(began.elapsed() < Duration::from_secs(20));
}

/// Else the number may be another's when the group is killed.
#[test]
fn a_process_that_has_ended_is_reaped_after_its_group_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let watch = ScriptDeadline::new(&stop, None);
    let program = shell("sleep 100 >/dev/null 2>&1 & echo $!; exit 3", folder.path());
    let mut group = Group::new(spawn(&program).unwrap());
    let (_input, output, _errors) = group.pipes().unwrap();
    assert_eq!(group.wait(&watch), Ok(Some(Exit::Code(3))));
    let state = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let leader = group.leader.id();
    assert!(state(leader).contains(") Z "), "{:?}", state(leader));
    let left = all(&mut Stdout::new(output, &watch)).unwrap();
    let left: u32 = String::from_utf8(left).unwrap().trim().parse().unwrap();
    assert!(!state(left).is_empty());
    assert_eq!(group.end(), Exit::Code(3));
    assert_eq!(state(leader), "");
    let began = Instant::now();
    while !(state(left).is_empty() || state(left).contains(") Z ")) {
        assert!(began.elapsed() < Duration::from_secs(10));
        thread::sleep(LOOK);
    }
}

#[test]
fn programs_are_found_in_the_folder_first() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat"), "#!/bin/sh\necho mine\n").unwrap();
    let stop = AtomicBool::new(false);
    let watch = ScriptDeadline::new(&stop, None);
    let program = ScriptProgram {
        argv: vec!["cat".into()],
        ..shell("", folder.path())
    };
    let ended = run(&program, "reporter:", &watch, |_| Ok(()), all).unwrap();
    assert_eq!(ended.stdout.unwrap(), b"mine\n");
    for (name, may_be_elsewhere) in [("nothing-of-that-name", true), ("/nothing", false)] {
        let program = ScriptProgram {
            argv: vec![name.into()],
            ..shell("", folder.path())
        };
        let error = run(&program, "reporter:", &watch, |_| Ok(()), all).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        let said = error.to_string();
        assert!(said.contains("ship it with the job, as in -file"), "{said}");
        assert_eq!(
            said.contains("name its whole path"),
            may_be_elsewhere,
            "{said}"
        );
        assert_eq!(said.contains("on the PATH"), may_be_elsewhere, "{said}");
    }
}
