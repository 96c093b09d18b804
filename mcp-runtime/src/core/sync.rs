//! The standard library's locks, without poisoning.
//!
//! A lock is poisoned when a thread panics while it holds the lock. A request that panics is contained and answered; if
//! it poisoned a lock, it would fail every later request as well. The state behind these locks is valid after every
//! statement that changes it, so they ignore poisoning. They do it without closures, of which each type in a lock would
//! have its own to compile; and they are inlined even without optimization, so that a profile leads through no lock.

use std::sync::{self, PoisonError, RwLockReadGuard};
pub(crate) use std::sync::{MutexGuard, RwLockWriteGuard};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

#[derive(Default)]
pub(crate) struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    #[inline(always)]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        match self.0.read() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    #[inline(always)]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        match self.0.write() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// Waits on a condition of what `guard` protects.
pub(crate) fn wait<'a, T>(condition: &sync::Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
