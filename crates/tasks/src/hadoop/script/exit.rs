//! How a process ended.

use gristmill_base::sys::death::Death;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// How a process ended that is not reaped yet, if the system knows.
    pub(super) fn of(death: Death) -> Option<Self> {
        match death {
            Death::Exit { code } => Some(Exit::Code(code)),
            Death::Signal { number, .. } => Some(Exit::Signal(number)),
            Death::Unknown => None,
        }
    }
}
