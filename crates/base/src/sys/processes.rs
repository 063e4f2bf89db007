//! Child processes: which there are, what they inherit, how they are signalled, killed with their group, looked at, reaped.
//!
//! The rule that must hold: a number is used only while the child is not reaped; afterwards it may be another's.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

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
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid.cast_signed(), number) };
}

/// Kills a child that leads a process group, and the group.
pub fn kill_group(pid: u32) {
    // SAFETY: no memory is involved.
    unsafe { libc::killpg(pid.cast_signed(), libc::SIGKILL) };
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
    // SAFETY: zeros are a value of this plain structure, which the call may fill.
    let (failed, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let failed = libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, flags) != 0;
        (failed, info)
    };
    if failed {
        let gone = io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        return gone.then_some(Death::Unknown);
    }
    // SAFETY: after a successful `waitid` these fields are those of a child, or zero.
    let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
    if found == 0 {
        return None;
    }
    Some(match info.si_code {
        libc::CLD_EXITED => Death::Exit { code: status },
        code => Death::Signal {
            number: status,
            core_dumped: code == libc::CLD_DUMPED,
        },
    })
}

/// Waits for a child that is dead or dying.
pub fn reap(pid: u32) {
    let pid = pid.cast_signed();
    let interrupted = || io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
    // SAFETY: the status is not asked for.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0 && interrupted() {}
}

/// The user whose rights this process has.
pub fn user() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}
