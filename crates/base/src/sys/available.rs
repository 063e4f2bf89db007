//! How much memory this process may count on: the machine's, that of every control group it is in, and what its own limits
//! (`ulimit -v`, `ulimit -d`) leave it to map.

use rustix::process::{Resource, getrlimit};

/// A limit on what this process maps, as batch systems set it, and how much of it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapLimit {
    /// How a shell sets it, in KiB.
    pub command: &'static str,
    /// The limit.
    pub bytes: u64,
    /// What is mapped already.
    pub used_bytes: u64,
}

impl MapLimit {
    /// What it leaves.
    pub fn free_bytes(self) -> u64 {
        self.bytes.saturating_sub(self.used_bytes)
    }

    /// The command that lets the process map so many bytes beside what it has, and a megabyte more: a process does not map the
    /// same each time.
    ///
    /// ```text
    /// ulimit -v 4000000
    /// ```
    pub fn raised_by(self, bytes: u64) -> String {
        let needed = self.used_bytes.saturating_add(bytes).div_ceil(1024);
        let raised = needed.saturating_add(1000).next_multiple_of(1000);
        format!("{} {raised}", self.command)
    }
}

/// The limits that are set: of address space, and of memory that is the process's own.
pub(crate) fn map_limits() -> Vec<MapLimit> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let limits = [
        ("ulimit -v", getrlimit(Resource::As).current, "VmSize:"),
        ("ulimit -d", getrlimit(Resource::Data).current, "VmData:"),
    ];
    let of = |(command, bytes, used): (_, Option<u64>, _)| {
        Some(MapLimit {
            command,
            bytes: bytes?,
            used_bytes: field(&status, used).unwrap_or(0) * 1024,
        })
    };
    limits.into_iter().filter_map(of).collect()
}

/// The limit that leaves the least.
pub fn tightest_limit() -> Option<MapLimit> {
    map_limits()
        .into_iter()
        .min_by_key(|limit| limit.free_bytes())
}

/// Memory that can be used without swapping, in bytes: the least of what the machine, the control groups and the limits of
/// the process leave. `None` where the system does not say.
///
/// ```
/// let bytes = gristmill_base::budget::available_bytes();
/// assert!(bytes.is_none_or(|bytes| bytes > 0));
/// ```
#[cfg(target_os = "linux")]
pub fn available_bytes() -> Option<u64> {
    let machine = linux::machine_bytes();
    let groups = linux::group_bytes();
    let limits = map_limits().into_iter().map(MapLimit::free_bytes);
    machine.into_iter().chain(groups).chain(limits).min()
}

/// Elsewhere half of what is installed.
#[cfg(not(target_os = "linux"))]
pub fn available_bytes() -> Option<u64> {
    // SAFETY: a plain question.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    let half = u64::try_from(pages).ok()? * super::page_bytes() as u64 / 2;
    let limits = map_limits().into_iter().map(MapLimit::free_bytes);
    limits.chain([half]).min()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::read_to_string;
    use std::path::{Path, PathBuf};

    /// What the kernel thinks that new work can have.
    pub(super) fn machine_bytes() -> Option<u64> {
        let text = read_to_string("/proc/meminfo").ok()?;
        super::field(&text, "MemAvailable:").map(|kib| kib * 1024)
    }

    /// What each control group of this process leaves, innermost first, in both versions of the interface.
    pub(super) fn group_bytes() -> Vec<u64> {
        let text = read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut left = Vec::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let path = path.trim_start_matches('/');
            if controllers.is_empty() {
                walk(
                    "/sys/fs/cgroup",
                    path,
                    ["memory.max", "memory.current", "inactive_file"],
                    &mut left,
                );
            } else if controllers.split(',').any(|name| name == "memory") {
                let names = [
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "total_inactive_file",
                ];
                walk("/sys/fs/cgroup/memory", path, names, &mut left);
            }
        }
        left
    }

    /// From the group up to the root: each may have a limit.
    fn walk(root: &str, path: &str, [limit, usage, cache]: [&str; 3], left: &mut Vec<u64>) {
        let mut folder: PathBuf = Path::new(root).join(path);
        while folder.starts_with(root) {
            let number = |name| {
                read_to_string(folder.join(name))
                    .ok()?
                    .trim()
                    .parse::<u64>()
                    .ok()
            };
            if let Some(limit) = number(limit) {
                let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
                let reclaimable = super::field(&stat, cache).unwrap_or(0);
                let used = number(usage).unwrap_or(0).saturating_sub(reclaimable);
                left.push(limit.saturating_sub(used));
            }
            if !folder.pop() {
                return;
            }
        }
    }
}

/// The number behind `name` in a table of lines.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_what_it_leaves_and_what_is_needed() {
        let limit = MapLimit {
            command: "ulimit -v",
            bytes: 4_096_000_000,
            used_bytes: 96_000_000,
        };
        assert_eq!(limit.free_bytes(), 4_000_000_000);
        assert_eq!(limit.raised_by(4_000_000_001), "ulimit -v 4002000");
        let over = MapLimit {
            used_bytes: u64::MAX,
            ..limit
        };
        assert_eq!(over.free_bytes(), 0);
    }

    #[test]
    fn a_table_is_read() {
        let status = "Name:\tx\nVmSize:\t  100 kB\nVmData:\t 40 kB\n";
        assert_eq!(field(status, "VmSize:"), Some(100));
        assert_eq!(
            (field(status, "VmData:"), field(status, "Vm:")),
            (Some(40), None)
        );
    }
}
