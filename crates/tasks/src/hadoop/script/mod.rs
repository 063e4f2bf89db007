//! Scripts: the user's programs, which read records from standard input and write records to standard output.
//!
//! ```text
//!   records ──▶ Writer ──▶ stdin │ script │ stdout ──▶ Reader ──▶ pairs
//!               (a thread)       │        │ stderr ──▶ Reporter: counters, status, the last lines
//! ```
//!
//! The contract is that of Hadoop Streaming 3.4.2, down to where a line ends. What stands here knows one process and its
//! records; which split it is fed, and where its pairs go, is the task's.

pub mod block;
pub mod exit;
pub mod input;
mod marks;
mod pace;
pub mod pipes;
pub mod process;
pub mod protocol;
pub mod reporter;
