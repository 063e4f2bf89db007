//! Child processes: which there are, what they inherit, how they are signalled, killed with their group, looked at, reaped.
//!
//! The rule that must hold: a number is used only while the child is not reaped; afterwards it may be another's.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, geteuid, kill_process, kill_process_group,
    waitid, waitpid,
};

use super::death::Death;

/// Leaves a descriptor open in the child, under the same number; in this process it stays closed to other children.
pub fn inherit(prepared: &mut Command, descriptor: BorrowedFd<'_>) {
    let number = descriptor.as_raw_fd();
    // SAFETY: between fork and exec one system call, which is safe there; nothing is allocated.
    unsafe {
        prepared.pre_exec(move || match libc::fcntl(number, libc::F_SETFD, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

/// Adds to the likelihood that a process is killed when memory is short, on a scale of 1000. It may not be permitted, and
/// then the kernel chooses as it likes.
pub fn offer_to_kill(pid: u32, score: u32) {
    let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string());
}

/// The children of all threads of a process.
pub fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let listed = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    listed
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// Sends a signal to a child alone, not to its children.
pub fn signal(pid: u32, number: i32) {
    if let (Some(pid), Some(signal)) = (of(pid), Signal::from_named_raw(number)) {
        let _ = kill_process(pid, signal); // it may have ended
    }
}

/// Kills a child that leads a process group, and the group.
pub fn kill_group(pid: u32) {
    if let Some(pid) = of(pid) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn of(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid.cast_signed())
}

/// Kills a child and all below it. Each is stopped before its children are listed: what is stopped begins no other
/// process and reaps none, so that the numbers stay theirs.
pub fn kill_tree(pid: u32) {
    let (mut found, mut next) = (vec![pid], 0);
    while let Some(&pid) = found.get(next) {
        signal(pid, libc::SIGSTOP);
        found.extend(children_of(pid));
        next += 1;
    }
    found.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
}

/// Kills all children of this process, and all below them: it ends now, and reaps nobody any more.
pub fn kill_children() {
    let children = children_of(std::process::id());
    children.into_iter().for_each(kill_tree);
}

/// How a child ended, leaving it to be reaped.
pub fn look(pid: u32) -> Option<Death> {
    let only_look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(of(pid)?), only_look) {
        Ok(Some(ended)) => Some(match ended.exit_status() {
            Some(code) => Death::Exit { code },
            None => Death::Signal {
                number: ended.terminating_signal().unwrap_or(0),
                core_dumped: ended.dumped(),
            },
        }),
        Err(Errno::CHILD) => Some(Death::Unknown),
        Ok(None) | Err(_) => None,
    }
}

/// Waits for a child that is dead or dying.
pub fn reap(pid: u32) {
    let _ = retry_on_intr(|| waitpid(of(pid), WaitOptions::empty()));
}

/// The user whose rights this process has.
pub fn user() -> u32 {
    geteuid().as_raw()
}
