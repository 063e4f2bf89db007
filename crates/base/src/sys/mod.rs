//! The wall: what is Linux's, or the C library's, stands behind it, and nothing else calls either, or reads /proc.
//!
//! ```text
//!   pages        memory from the system, prefetches
//!   mapping      files in memory;  shrink: those that lose pages while they are there
//!   files        what std::fs lacks: renames that refuse, holes, space, what is in the page cache
//!   directory    an open directory, whose names lead nowhere else
//!   file_calls   which of them are under way: what a thread waits for where a mount hangs
//!   mounts       file systems that machines share;  owner: which process of which machine has something
//!   descriptors  pipes, terminals and devices: that never block, waited for with a limit;  inherited: a fork's, cut off
//!   processes    children: signalled, killed, reaped;  lifeline: they end with us;  death: how they ended
//!   threads      which may be refused
//!   vectors      sixteen bytes at once
//!   memory       what processes hold;  available: what there is;  usage: what they have used;  machine: what all have
//! ```
//!
//! Calls go through `rustix`; `libc` is left for what it has not, or has otherwise.
//!
//! Rules: an interface is safe, or says what its caller must hold. What a system lacks is an answer (`None`, or an error
//! that `files::not_supported` knows), never a condition at the caller's. Nothing here knows of jobs, tasks or stores.

pub mod available;
pub mod death;
pub mod descriptors;
pub mod directory;
pub mod file_calls;
pub mod files;
pub mod inherited;
pub mod lifeline;
pub mod machine;
pub mod mapping;
pub mod memory;
pub mod mounts;
pub mod owner;
pub mod pages;
pub mod processes;
mod shrink;
pub mod threads;
pub mod usage;
pub mod vectors;

/// Device blocks: direct I/O moves whole ones. 4096 is the largest that disks of today use.
pub const BLOCK_BYTES: usize = 4096;

/// Bytes of a page of memory.
pub(crate) use rustix::param::page_size as page_bytes;

/// Numbers of errors that [`std::io::ErrorKind`] does not tell apart.
pub mod codes {
    pub use libc::{E2BIG, EACCES, EIO, ENOENT, ENOEXEC, ENOSPC};
}

/// Numbers of signals.
pub mod signals {
    pub use libc::{SIGABRT, SIGKILL, SIGPIPE, SIGSEGV, SIGTERM, SIGUSR1};
}
