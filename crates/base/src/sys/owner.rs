//! Which process of which machine has something: said in a file, and asked by whoever finds the file.
//!
//! A lock ends with its process, where locks reach. On mounts whose locks do not reach other machines, or the other mounts
//! of this one, the process that holds one is named in the file: machines by the kernel's number of this boot, processes by
//! number and start, so that no later process is taken for an earlier one.

use std::fs::read_to_string;

use serde::{Deserialize, Serialize};

/// A process of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// What the machine is called: for people.
    pub host: String,
    /// The machine since it was started, and the numbers of processes that are valid there (containers have their own).
    boot: String,
    numbers: String,
    process: u32,
    started: u64,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Alive,
    /// It has ended.
    Dead,
    /// It is one of another machine, or of another container.
    Elsewhere,
}

impl Owner {
    /// This process; none where the system does not say which one it is.
    pub fn this() -> Option<Self> {
        let process = std::process::id();
        Some(Owner {
            host: read_to_string("/proc/sys/kernel/hostname")
                .ok()?
                .trim()
                .to_owned(),
            boot: boot()?,
            numbers: numbers()?,
            process,
            started: started(process)?,
        })
    }

    /// Whether it runs, as far as this machine can say.
    pub fn life(&self) -> Life {
        if boot().as_ref() != Some(&self.boot) || numbers().as_ref() != Some(&self.numbers) {
            return Life::Elsewhere;
        }
        match started(self.process) {
            Some(began) if began == self.started => Life::Alive,
            _ => Life::Dead,
        }
    }
}

fn boot() -> Option<String> {
    let text = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

fn numbers() -> Option<String> {
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(space.to_string_lossy().into_owned())
}

/// When a process that still runs was started, in ticks since the machine was.
fn started(process: u32) -> Option<u64> {
    let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may have spaces; the state follows it, and 19 fields later the start.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_over = matches!(fields.next()?, "Z" | "X");
    let start = fields.nth(18)?.parse().ok()?;
    (!is_over).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_again_and_no_other_is_taken_for_it() {
        let this = Owner::this().unwrap();
        assert_eq!(this.life(), Life::Alive);
        let text = serde_json::to_string(&this).unwrap();
        assert_eq!(serde_json::from_str::<Owner>(&text).unwrap(), this);
        let mut child = std::process::Command::new("sleep")
            .arg("9")
            .spawn()
            .unwrap();
        let of_child = Owner {
            process: child.id(),
            started: started(child.id()).unwrap(),
            ..this.clone()
        };
        assert_eq!(of_child.life(), Life::Alive);
        let later = Owner {
            started: 1,
            ..of_child.clone()
        };
        assert_eq!(later.life(), Life::Dead);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(of_child.life(), Life::Dead);
        let elsewhere = Owner {
            boot: "another".to_owned(),
            ..this
        };
        assert_eq!(elsewhere.life(), Life::Elsewhere);
    }
}
