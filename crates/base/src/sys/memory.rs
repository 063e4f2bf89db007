//! What processes hold: this one its resident memory, others and their descendants what is anonymous of it, from /proc.
//! Where there is none, nothing is known of others, and nothing is limited.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::page_bytes;
use super::processes::children_of;

/// Generations and processes looked at: bounds on what a worker that forks without end can cost its driver.
const PROCESSES_MAX: usize = 256;

/// Gives what was freed back to the system: what a start and a plan leave behind, and many small blocks, would count as held.
///
/// ```
/// gristmill_base::sys::memory::give_back();
/// ```
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no memory of ours, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What is freed of at least so many bytes goes back to the system at once, and so do free ends of a heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FREED_BYTES_MAX: libc::c_int = 1 << 20;

/// From now on the process keeps little of what it frees. By itself glibc keeps megabytes in the heap of each thread once
/// it has seen large blocks come and go: a resumed job of 42 MB took 45.
pub fn keep_little_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: both take a number; no memory of ours is touched.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, FREED_BYTES_MAX);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FREED_BYTES_MAX);
        // Each heap of a thread takes 64 MB of address space, which `ulimit -v` counts.
        if super::available::tightest_limit().is_some() {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

/// Resident memory now: anonymous and shared, and mapped files.
///
/// ```
/// assert!(gristmill_base::budget::resident_bytes().0 > 0);
/// ```
#[cfg(target_os = "linux")]
pub fn resident_bytes() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    };
    (field("RssAnon:") + field("RssShmem:"), field("RssFile:"))
}

/// Elsewhere the peak of all resident memory is what there is.
#[cfg(not(target_os = "linux"))]
pub fn resident_bytes() -> (u64, u64) {
    let usage = super::usage::rusage(libc::RUSAGE_SELF);
    let unit = if cfg!(target_vendor = "apple") {
        1
    } else {
        1024
    };
    (usage.ru_maxrss as u64 * unit, 0)
}

/// Looks at one process, again and again; the file stays open, since a look is a matter of microseconds then.
#[derive(Debug)]
pub struct Gauge {
    pid: u32,
    statm: Option<File>,
    page_bytes: u64,
}

impl Gauge {
    /// That of a process and its descendants.
    pub fn new(pid: u32) -> Self {
        Gauge {
            pid,
            statm: File::open(format!("/proc/{pid}/statm")).ok(),
            page_bytes: page_bytes() as u64,
        }
    }

    /// Bytes of the process alone.
    pub fn own_bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let found = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let pages = anonymous_pages(std::str::from_utf8(text.get(..found)?).ok()?)?;
        Some(pages * self.page_bytes)
    }

    /// Bytes of its descendants.
    pub fn descendants_bytes(&self) -> u64 {
        held_below(self.pid, self.page_bytes)
    }
}

/// Resident anonymous memory of all processes below this one: workers, scripts, and what they began.
///
/// ```
/// use gristmill_base::sys::memory::descendants_bytes;
/// use std::process::{Command, Stdio};
/// let before = descendants_bytes();
/// let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
/// assert!(descendants_bytes() > before || !cfg!(target_os = "linux"));
/// child.kill()?;
/// # child.wait()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn descendants_bytes() -> u64 {
    held_below(std::process::id(), page_bytes() as u64)
}

/// A page that parent and child share since a fork counts twice: the kernel says no more without walking their page
/// tables.
fn held_below(pid: u32, page_bytes: u64) -> u64 {
    let mut found: Vec<u32> = children_of(pid);
    let mut bytes = 0;
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        bytes += anonymous_pages(&statm).unwrap_or(0) * page_bytes;
        if found.len() < PROCESSES_MAX {
            found.extend(children_of(pid));
        }
        next += 1;
    }
    bytes
}

/// Resident pages less those shared with files, from "size resident shared text lib data dt".
fn anonymous_pages(statm: &str) -> Option<u64> {
    let mut numbers = statm.split_ascii_whitespace().skip(1);
    let resident: u64 = numbers.next()?.parse().ok()?;
    let shared: u64 = numbers.next()?.parse().ok()?;
    Some(resident.saturating_sub(shared))
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
