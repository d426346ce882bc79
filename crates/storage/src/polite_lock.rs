//! Locks as background work takes them.
//!
//! Walks over stores run on threads that sleep often or give way to others, and such a thread may
//! wait long for a processor. parking_lot hands a lock over to the thread that has waited longest,
//! and a writer that waits keeps new readers out. So if such a thread waited in line, the lock
//! would be closed to gets and puts until the thread runs, although nobody works under it. These
//! functions try again and again instead: a thread gets the lock only while it runs.

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

/// The pause between two tries. Linux adds about 50 µs.
const PAUSE: Duration = Duration::from_micros(20);
/// After so many tries, at least 4 ms, the thread waits in line, so that it gets on in any case.
const TRIES_MAX: usize = 200;

/// Locks a mutex.
pub(crate) fn lock_politely<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    politely(|| lock.try_lock()).unwrap_or_else(|| lock.lock())
}

/// Locks for writing.
pub(crate) fn write_politely<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    politely(|| lock.try_write()).unwrap_or_else(|| lock.write())
}

#[expect(clippy::disallowed_methods, reason = "waiting in line is what must not happen here")]
fn politely<G>(try_lock: impl Fn() -> Option<G>) -> Option<G> {
    for _ in 0..TRIES_MAX {
        if let Some(guard) = try_lock() {
            return Some(guard);
        }
        thread::sleep(PAUSE);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    /// While a polite thread wants a lock that is held for reading, new readers come in.
    #[test]
    fn readers_do_not_wait_behind_a_polite_writer() {
        let lock = Arc::new(RwLock::new(0));
        let held = lock.read();
        let (tell, told) = sync_channel(0);
        let there = lock.clone();
        let writer = thread::spawn(move || {
            tell.send(()).unwrap();
            *write_politely(&there) += 1;
        });
        told.recv().unwrap();
        for _ in 0..1_000 {
            assert!(lock.try_read().is_some());
        }
        drop(held);
        writer.join().unwrap();
        assert_eq!(*lock.read(), 1);
    }

    /// A polite thread waits in line in the end, so that nobody can keep it away for ever.
    #[test]
    fn a_polite_thread_gets_a_lock_that_is_held_for_longer_than_it_tries() {
        let lock = Arc::new(Mutex::new(0));
        let held = lock.lock();
        let there = lock.clone();
        let waiting = thread::spawn(move || *lock_politely(&there) += 1);
        for _ in 0..2 {
            assert!(politely(|| None::<()>).is_none());
        }
        drop(held);
        waiting.join().unwrap();
        assert_eq!(*lock.lock(), 1);
    }
}
