//! Runners: where tasks run. Threads of this process here; the same tasks elsewhere later.

pub mod threads;
pub mod usage;
