//! What a process and its descendants hold: resident anonymous memory, from /proc. Where there is none, nothing is
//! known, and nothing is limited.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Generations and processes looked at: bounds on what a worker that forks without end can cost its driver.
const PROCESSES_MAX: usize = 256;

/// Looks at one process, again and again; the file stays open, since a look is a matter of microseconds then.
#[derive(Debug)]
pub(super) struct Gauge {
    pid: u32,
    statm: Option<File>,
    page_bytes: u64,
}

impl Gauge {
    pub(super) fn new(pid: u32) -> Self {
        Gauge {
            pid,
            statm: File::open(format!("/proc/{pid}/statm")).ok(),
            page_bytes: page_bytes(),
        }
    }

    /// Bytes of the process alone.
    pub(super) fn own_bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let found = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let pages = anonymous_pages(std::str::from_utf8(text.get(..found)?).ok()?)?;
        Some(pages * self.page_bytes)
    }

    /// Bytes of its descendants.
    pub(super) fn descendants_bytes(&self) -> u64 {
        held_below(self.pid, self.page_bytes)
    }
}

/// Resident anonymous memory of all processes below this one: workers, scripts, and what they began.
///
/// ```
/// use gristmill_engine::worker::descendants_bytes;
/// use std::process::{Command, Stdio};
/// let before = descendants_bytes();
/// let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
/// assert!(descendants_bytes() > before || !cfg!(target_os = "linux"));
/// child.kill()?;
/// # child.wait()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn descendants_bytes() -> u64 {
    held_below(std::process::id(), page_bytes())
}

/// A page that parent and child share since a fork counts twice: the kernel says no more without walking their page
/// tables.
fn held_below(pid: u32, page_bytes: u64) -> u64 {
    let mut found: Vec<u32> = children(pid);
    let mut bytes = 0;
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        bytes += anonymous_pages(&statm).unwrap_or(0) * page_bytes;
        if found.len() < PROCESSES_MAX {
            found.extend(children(pid));
        }
        next += 1;
    }
    bytes
}

fn page_bytes() -> u64 {
    // SAFETY: a plain question.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(page_bytes).unwrap_or(4096)
}

/// Resident pages less those shared with files, from "size resident shared text lib data dt".
fn anonymous_pages(statm: &str) -> Option<u64> {
    let mut numbers = statm.split_ascii_whitespace().skip(1);
    let resident: u64 = numbers.next()?.parse().ok()?;
    let shared: u64 = numbers.next()?.parse().ok()?;
    Some(resident.saturating_sub(shared))
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statm_gives_what_is_not_of_files() {
        assert_eq!(anonymous_pages("2000 500 120 1 0 400 0\n"), Some(380));
        assert_eq!(anonymous_pages("2000"), None);
    }

    /// In a process of its own: what the other tests of this one hold comes and goes. `tail` keeps all that may be its
    /// input's end.
    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_is_touched_is_seen() {
        use std::io::Write;
        use std::process::{Command, Stdio};

        let mut tail = Command::new("tail")
            .args(["-c", "64M"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let gauge = Gauge::new(tail.id());
        let before = gauge.own_bytes().unwrap();
        let mut stdin = tail.stdin.take().unwrap();
        stdin.write_all(&vec![1; 64 << 20]).unwrap();
        let after = gauge.own_bytes().unwrap();
        drop(stdin);
        tail.wait().unwrap();
        assert!(after >= before + (48 << 20), "{before} {after}");
    }
}
