//! What the machine uses: for the samples and phases of a history. Zeros where the system does not say.

use std::fs::read_to_string;

use serde::{Deserialize, Serialize};

/// CPU seconds of all of a machine's processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineCpu {
    /// In user code.
    pub user_s: f64,
    /// In the kernel.
    pub sys_s: f64,
    /// Idle, with a device at work.
    pub iowait_s: f64,
    /// Taken by the host for other machines.
    pub steal_s: f64,
    /// Idle.
    pub idle_s: f64,
}

impl MachineCpu {
    /// What was used since `before`.
    ///
    /// ```
    /// use gristmill_base::sys::machine::MachineCpu;
    /// let (before, now) = (MachineCpu { idle_s: 2.0, ..Default::default() }, MachineCpu { idle_s: 5.0, ..Default::default() });
    /// assert_eq!(now.since(before).idle_s, 3.0);
    /// ```
    #[must_use]
    pub fn since(self, before: MachineCpu) -> Self {
        MachineCpu {
            user_s: self.user_s - before.user_s,
            sys_s: self.sys_s - before.sys_s,
            iowait_s: self.iowait_s - before.iowait_s,
            steal_s: self.steal_s - before.steal_s,
            idle_s: self.idle_s - before.idle_s,
        }
    }
}

/// CPU seconds of all processors so far.
///
/// ```
/// let cpu = gristmill_base::sys::machine::machine_cpu();
/// assert!(cpu.idle_s >= 0.0);
/// ```
pub fn machine_cpu() -> MachineCpu {
    let text = read_to_string("/proc/stat").unwrap_or_default();
    parse_cpu(&text).unwrap_or_default()
}

/// The line `cpu  user nice system idle iowait irq softirq steal ...`, in hundredths of a second.
fn parse_cpu(stat: &str) -> Option<MachineCpu> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut fields = line.split_whitespace().map(str::parse::<f64>);
    let mut next = || Some(fields.next()?.ok()? / 100.0);
    let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
    let (iowait, irq, softirq, steal) = (next()?, next()?, next()?, next().unwrap_or(0.0));
    Some(MachineCpu {
        user_s: user + nice,
        sys_s: system + irq + softirq,
        iowait_s: iowait,
        steal_s: steal,
        idle_s: idle,
    })
}

/// Bytes that the machine has received from other machines and sent to them so far.
///
/// ```
/// let (received, sent) = gristmill_base::sys::machine::network_bytes();
/// assert!(received.checked_add(sent).is_some());
/// ```
pub fn network_bytes() -> (u64, u64) {
    parse_network(&read_to_string("/proc/net/dev").unwrap_or_default())
}

/// Lines `name: received ... (8 fields) sent ...`, loopback left out.
fn parse_network(devices: &str) -> (u64, u64) {
    let of_line = |line: &str| {
        let (name, fields) = line.split_once(':')?;
        if name.trim() == "lo" {
            return None;
        }
        let mut fields = fields.split_whitespace();
        let received: u64 = fields.next()?.parse().ok()?;
        let sent: u64 = fields.nth(7)?.parse().ok()?;
        Some((received, sent))
    };
    let add =
        |(received, sent), (more_received, more_sent)| (received + more_received, sent + more_sent);
    devices.lines().filter_map(of_line).fold((0, 0), add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_understood() {
        let cpu = parse_cpu("cpu  100 200 300 400 500 600 700 800 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!((cpu.user_s, cpu.sys_s, cpu.iowait_s), (3.0, 16.0, 5.0));
        assert_eq!((cpu.steal_s, cpu.idle_s), (8.0, 4.0));
        assert!(parse_cpu("intr 1").is_none());
        let devices = "Inter-|   Receive | Transmit\n face |bytes packets\n    lo: 5 1 0 0 0 0 0 0 6 1\n  \
                       eth0: 70 1 0 0 0 0 0 0 80 2 0\n";
        assert_eq!(parse_network(devices), (70, 80));
    }
}
