//! How much memory this process may count on: the machine's, and that of every control group it is in.

/// Memory that can be used without swapping, in bytes: the least of what the machine and the control groups leave.
/// `None` where the system does not say.
///
/// ```
/// let bytes = gristmill_engine::budget::available_bytes();
/// assert!(bytes.is_none_or(|bytes| bytes > 0));
/// ```
#[cfg(target_os = "linux")]
pub fn available_bytes() -> Option<u64> {
    let machine = linux::machine_bytes();
    let groups = linux::group_bytes();
    machine.into_iter().chain(groups).min()
}

/// Elsewhere half of what is installed.
#[cfg(not(target_os = "linux"))]
pub fn available_bytes() -> Option<u64> {
    // SAFETY: a plain question.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    Some(u64::try_from(pages).ok()? * super::page_bytes() as u64 / 2)
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
#[cfg(target_os = "linux")]
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
