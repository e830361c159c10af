//! Locking as everything here does it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one that a thread held which has panicked: the others go on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
