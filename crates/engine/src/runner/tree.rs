//! What a job has used so far: CPU time, and bytes to and from devices, of this process and of all processes below it
//! (workers, scripts, and what they began).
//!
//! ```text
//!   used = this process                          getrusage, /proc/self/io
//!        + its children that have ended          the kernel adds a child, with all that the child waited for, to the
//!                                                parent that waits for it: getrusage, /proc/self/io
//!        + those that live, and all below them   /proc/PID/stat, /proc/PID/io
//!        + what is lost                          a process whose parent ended first: from then on it counts nowhere
//! ```
//!
//! Rules: the sums never fall; no process counts twice. The children of a process are listed before its own sums are
//! read, and their sums are read afterwards. So a child that ended meanwhile is missing, or in its parent's sums, but
//! never both; then we look again. Without /proc, processes below this one count when they have ended.

use std::sync::Mutex;

use gristmill_base::sync::lock;
use gristmill_base::sys::processes::children_of;
use gristmill_base::sys::usage::{self, Sums};

/// Looks at a tree in which processes end all the time, before we take what we have seen.
const LOOKS: usize = 4;

/// Processes that one look takes in: what a fork bomb can cost us.
const PROCESSES_MAX: usize = 256;

/// What a job has used since its processes began: the difference of two looks counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ResourceUsage {
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub sys_s: f64,
    /// Of both together, those of this process alone.
    pub own_s: f64,
    /// Bytes read from devices, page faults included.
    pub read_bytes: u64,
    /// Bytes written to devices.
    pub write_bytes: u64,
}

impl ResourceUsage {
    /// Both together.
    #[must_use]
    pub fn with(self, other: ResourceUsage) -> Self {
        ResourceUsage {
            user_s: self.user_s + other.user_s,
            sys_s: self.sys_s + other.sys_s,
            own_s: self.own_s + other.own_s,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
        }
    }
}

/// The processes of a job.
#[derive(Debug, Default)]
pub struct Tree {
    /// Whether user code runs in processes below this one.
    below: bool,
    ledger: Mutex<UnreapedUsage>,
}

impl Tree {
    /// Of a job whose user code, if `below`, runs in processes below this one.
    pub fn of_job(below: bool) -> Self {
        Tree {
            below,
            ledger: Mutex::default(),
        }
    }

    /// What has been used so far.
    ///
    /// ```
    /// use gristmill_engine::runner::tree::Tree;
    /// use std::process::Command;
    /// let tree = Tree::of_job(true);
    /// let before = tree.used();
    /// let looping = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    /// Command::new("sh").args(["-c", looping]).status()?;
    /// let after = tree.used();
    /// let all_s = after.user_s + after.sys_s - before.user_s - before.sys_s;
    /// assert!(all_s > after.own_s - before.own_s);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn used(&self) -> ResourceUsage {
        let mut ledger = lock(&self.ledger);
        let mut looked = look(self.below);
        for _ in 1..LOOKS {
            if looked.whole {
                break;
            }
            looked = look(self.below);
        }
        let sums = ledger.enter(looked.sums, looked.whole);
        ResourceUsage {
            user_s: sums.user_us as f64 / 1e6,
            sys_s: sums.sys_us as f64 / 1e6,
            own_s: looked.own_us as f64 / 1e6,
            read_bytes: sums.read_bytes,
            write_bytes: sums.write_bytes,
        }
    }
}

/// Keeps what processes used that nobody waited for.
#[derive(Debug, Default)]
struct UnreapedUsage {
    last: Sums,
    lost: Sums,
}

impl UnreapedUsage {
    /// Takes in what was seen; the sums so far. What a whole look finds less of than the last one is lost for good; in
    /// a look that is not whole it may be on its way from a child to its parent.
    fn enter(&mut self, seen: Sums, whole: bool) -> Sums {
        let now = seen.with(self.lost, u64::saturating_add);
        if whole {
            self.lost.add(self.last.with(now, u64::saturating_sub));
        }
        self.last = self.last.with(now, u64::max);
        self.last
    }
}

/// What one look saw.
struct Looked {
    sums: Sums,
    /// CPU microseconds of this process.
    own_us: u64,
    /// Whether no process that was found ended before it was read.
    whole: bool,
}

fn look(below: bool) -> Looked {
    let mut found = if below {
        children_of(std::process::id())
    } else {
        Vec::new()
    };
    let mut sums = usage::own_cpu();
    let own_us = sums.user_us + sums.sys_us;
    if below {
        sums.add(usage::cpu_of_ended());
    }
    sums.add(usage::own_io());
    let (mut next, mut whole) = (0, true);
    while let Some(&pid) = found.get(next) {
        next += 1;
        if found.len() < PROCESSES_MAX {
            found.extend(children_of(pid)); // before its sums are read
        } else {
            whole = false;
        }
        match usage::of(pid) {
            Some(used) => sums.add(used),
            None => whole = false,
        }
    }
    Looked {
        sums,
        own_us,
        whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(user_us: u64) -> Sums {
        Sums {
            user_us,
            ..Sums::default()
        }
    }

    #[test]
    fn sums_never_fall_and_nothing_counts_twice() {
        let mut ledger = UnreapedUsage::default();
        assert_eq!(ledger.enter(cpu(100), true), cpu(100));
        // On its way from a child to its parent: 60 of the 100 are not seen for a moment.
        assert_eq!(ledger.enter(cpu(40), false), cpu(100));
        assert_eq!(ledger.enter(cpu(110), true), cpu(110));
        // A worker was killed, and its children with it, whom nobody waited for.
        assert_eq!(ledger.enter(cpu(70), true), cpu(110));
        assert_eq!(ledger.enter(cpu(75), true), cpu(115));
    }

    /// Other tests of this process have children, too: here it is seen that none is missing, by the tests of causes
    /// (tests/history) that none counts twice.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_counts_while_it_lives_and_after_its_end() {
        use std::io::Read;
        use std::process::{Command, Stdio};

        let tree = Tree::of_job(true);
        let below = || {
            let used = tree.used();
            used.user_s + used.sys_s - used.own_s
        };
        let before = below();
        let looping = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; echo; read _";
        let mut child = Command::new("sh")
            .args(["-c", looping])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0];
        child.stdout.take().unwrap().read_exact(&mut said).unwrap();
        let computed = usage::of(child.id()).unwrap();
        let computed = (computed.user_us + computed.sys_us) as f64 / 1e6;
        let alive = below() - before;
        assert!(
            computed > 0.05 && alive >= computed - 0.02,
            "{computed} {alive}"
        );
        drop(child.stdin.take());
        child.wait().unwrap();
        let ended = below() - before;
        assert!(ended >= alive - 0.02, "{alive}, then {ended}");
        assert!(Tree::of_job(false).used().own_s > 0.0);
    }
}
