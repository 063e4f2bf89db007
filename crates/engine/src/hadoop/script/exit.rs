//! How a process ended.

use std::process::ExitStatus;

use crate::sys::processes::signal_of;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    pub(super) fn of(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Exit::Code(code),
            None => Exit::Signal(signal_of(status).unwrap_or(0)),
        }
    }
}
