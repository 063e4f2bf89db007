//! A value that each process makes for itself: connections, threads.
//!
//! ```text
//!   process ── fork ──▶ child ── fork ──▶ grandchild
//!   value of its own    another          another        each made when it is first asked for
//! ```
//!
//! The rule that must hold: what a process inherits by a fork is never used, and never dropped: threads that drive it are not in
//! the child, and its descriptors are still the parent's.

use std::sync::OnceLock;

/// The value of one process, and behind it those of its forks.
///
/// ```
/// use gristmill_storage::net::per_process::PerProcess;
/// let counted: PerProcess<u32> = PerProcess::default();
/// assert_eq!((*counted.get(|| 0), *counted.get(|| 7)), (0, 0));
/// ```
#[derive(Debug)]
pub struct PerProcess<T> {
    ours: OnceLock<(u32, T)>,
    of_fork: OnceLock<Box<PerProcess<T>>>,
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess {
            ours: OnceLock::new(),
            of_fork: OnceLock::new(),
        }
    }
}

impl<T> PerProcess<T> {
    /// The value of this process; `make` makes it.
    pub fn get(&self, make: impl Fn() -> T) -> &T {
        let process = std::process::id();
        let mut values = self;
        loop {
            let (owner, value) = values.ours.get_or_init(|| (process, make()));
            if *owner == process {
                return value;
            }
            values = values.of_fork.get_or_init(Box::default);
        }
    }
}
