//! Threads, which the operating system may refuse: near `ulimit -v` or `ulimit -u`, or in a full control group.

use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::error::{Error, Kind, Result};

/// Begins a thread.
///
/// # Errors
/// The system gives no more. What needs it may be tried again.
///
/// ```
/// use gristmill_base::sys::threads::begin;
/// assert_eq!(begin("count", || 2 + 2)?.join().unwrap(), 4);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn begin<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| refused(&error))
}

/// Begins a thread in a scope.
///
/// # Errors
/// As [`begin`].
pub fn begin_in<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 's,
) -> Result<ScopedJoinHandle<'s, T>> {
    Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, work)
        .map_err(|error| refused(&error))
}

fn refused(error: &std::io::Error) -> Error {
    Error::new(Kind::Io, "begin a thread", error.to_string())
        .advise("raise `ulimit -v` and `ulimit -u`, or run fewer workers")
        .retryable_error()
}
