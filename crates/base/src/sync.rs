//! Mutexes whose holders do not panic half way: what a panic left locked is taken as it is.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex.
///
/// ```
/// let number = std::sync::Mutex::new(1);
/// *gristmill_base::sync::lock(&number) += 1;
/// assert_eq!(*gristmill_base::sync::lock(&number), 2);
/// ```
#[inline]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
