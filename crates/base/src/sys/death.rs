//! How a process ended, in words.

use std::fmt;

/// How a process ended.
///
/// ```
/// use gristmill_base::sys::death::Death;
/// let crash = Death::Signal { number: 11, core_dumped: true };
/// assert_eq!(crash.to_string(), "was killed by SIGSEGV (segmentation fault; core dumped)");
/// assert_eq!(Death::Exit { code: 3 }.to_string(), "exited with code 3");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// It ended by itself.
    Exit {
        /// What it gave to `exit`.
        code: i32,
    },
    /// A signal ended it.
    Signal {
        /// Which one.
        number: i32,
        /// Whether the kernel wrote a core dump.
        core_dumped: bool,
    },
    /// Something else in this process waited for it and took the answer.
    Unknown,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Exit { code } => write!(f, "exited with code {code}"),
            Death::Signal {
                number,
                core_dumped,
            } => {
                let core = if *core_dumped { "; core dumped" } else { "" };
                match describe(*number) {
                    Some((name, words)) => write!(f, "was killed by {name} ({words}{core})"),
                    None => write!(f, "was killed by signal {number}{core}"),
                }
            }
            Death::Unknown => f.write_str("ended in an unknown way"),
        }
    }
}

/// A signal's name, and what it mostly means.
fn describe(number: i32) -> Option<(&'static str, &'static str)> {
    Some(match number {
        libc::SIGSEGV => ("SIGSEGV", "segmentation fault"),
        libc::SIGABRT => ("SIGABRT", "aborted"),
        libc::SIGBUS => ("SIGBUS", "bus error: a mapped file shrank, or bad hardware"),
        libc::SIGFPE => ("SIGFPE", "arithmetic error, such as a division by zero"),
        libc::SIGILL => (
            "SIGILL",
            "illegal instruction: built for another processor?",
        ),
        libc::SIGKILL => (
            "SIGKILL",
            "killed: by another program, or because the system ran out of memory",
        ),
        libc::SIGTERM => ("SIGTERM", "asked to end"),
        libc::SIGINT => ("SIGINT", "interrupted"),
        libc::SIGHUP => ("SIGHUP", "its terminal went away"),
        libc::SIGQUIT => ("SIGQUIT", "quit from the keyboard"),
        libc::SIGPIPE => ("SIGPIPE", "wrote to a pipe that has no reader"),
        libc::SIGALRM => ("SIGALRM", "its alarm went off"),
        libc::SIGUSR1 => ("SIGUSR1", "user-defined signal 1"),
        libc::SIGUSR2 => ("SIGUSR2", "user-defined signal 2"),
        libc::SIGXCPU => ("SIGXCPU", "over its limit of CPU time"),
        libc::SIGXFSZ => ("SIGXFSZ", "over its limit of file size"),
        libc::SIGSYS => ("SIGSYS", "a system call that is not permitted"),
        libc::SIGTRAP => ("SIGTRAP", "trap"),
        _ => return None,
    })
}
