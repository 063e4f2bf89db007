//! Runners: where tasks run. Threads of this process here; the same tasks elsewhere later.

pub mod machine;
pub mod threads;
pub mod usage;
