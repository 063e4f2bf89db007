//! What processes have used: CPU time, and bytes to and from devices (getrusage, /proc/PID/stat, /proc/PID/io). Without /proc
//! only this process is known, and its children when they have ended.

use std::fs::read_to_string;
use std::io::ErrorKind;

/// Whether the system counts bytes to and from devices.
///
/// ```
/// assert!(gristmill_base::sys::usage::counts_device_bytes() || !cfg!(target_os = "linux"));
/// ```
pub fn counts_device_bytes() -> bool {
    read_to_string("/proc/self/io").is_ok()
}

/// What processes have used: CPU microseconds, bytes to and from devices.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// Microseconds of CPU in programs.
    pub user_us: u64,
    /// Microseconds of CPU in the kernel.
    pub sys_us: u64,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written to devices.
    pub write_bytes: u64,
}

impl Sums {
    /// Both, joined figure by figure.
    pub fn with(self, other: Sums, both: impl Fn(u64, u64) -> u64) -> Sums {
        Sums {
            user_us: both(self.user_us, other.user_us),
            sys_us: both(self.sys_us, other.sys_us),
            read_bytes: both(self.read_bytes, other.read_bytes),
            write_bytes: both(self.write_bytes, other.write_bytes),
        }
    }

    /// Adds what others have used.
    pub fn add(&mut self, other: Sums) {
        *self = self.with(other, u64::saturating_add);
    }
}

/// What a process below this one and the children that it waited for have used; `None` if it is gone.
pub fn of(pid: u32) -> Option<Sums> {
    let mut used = parse_stat(
        &read_to_string(format!("/proc/{pid}/stat")).ok()?,
        tick_us(),
    )?;
    match read_to_string(format!("/proc/{pid}/io")) {
        Ok(text) => used.add(parse_io(&text)),
        // Of a program that changed its user, only the CPU time may be known.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        Err(_) => return None,
    }
    Some(used)
}

/// CPU time of this process.
pub fn own_cpu() -> Sums {
    cpu_of(libc::RUSAGE_SELF)
}

/// CPU time of the children that it has waited for, and of those that they had waited for.
pub fn cpu_of_ended() -> Sums {
    cpu_of(libc::RUSAGE_CHILDREN)
}

/// Bytes to and from devices of this process and those children; none where the system does not count.
pub fn own_io() -> Sums {
    read_to_string("/proc/self/io").map_or_else(|_| Sums::default(), |text| parse_io(&text))
}

fn cpu_of(who: libc::c_int) -> Sums {
    let usage = rusage(who);
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Sums {
        user_us: micros(usage.ru_utime),
        sys_us: micros(usage.ru_stime),
        ..Sums::default()
    }
}

pub(super) fn rusage(who: libc::c_int) -> libc::rusage {
    // SAFETY: `usage` is written by the call, which cannot fail with these arguments.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    }
}

fn tick_us() -> u64 {
    1_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// "pid (name) state ppid ...": the name may hold anything, the fields after its end are numbers. From `utime` on they
/// are the process's own time in user mode and in the kernel, then that of the children which it waited for.
fn parse_stat(stat: &str, tick_us: u64) -> Option<Sums> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (user, sys, children_user, children_sys) = (next()?, next()?, next()?, next()?);
    Some(Sums {
        user_us: (user + children_user) * tick_us,
        sys_us: (sys + children_sys) * tick_us,
        ..Sums::default()
    })
}

fn parse_io(io: &str) -> Sums {
    let field = |name: &str| -> u64 {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    Sums {
        read_bytes: field("read_bytes:"),
        write_bytes: field("write_bytes:"),
        ..Sums::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_understood() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 102 0 0 0 30 4 200 1 20 0 1 0 132778";
        let used = parse_stat(stat, 10_000).unwrap();
        assert_eq!((used.user_us, used.sys_us), (2_300_000, 50_000));
        assert_eq!(parse_stat("7 (cat) R 1 2", 1), None);
        let io = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        assert_eq!(
            (parse_io(io).read_bytes, parse_io(io).write_bytes),
            (4096, 8192)
        );
    }
}
