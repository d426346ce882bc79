//! Striped locks that allow one writer per key.

use super::Access;
use parking_lot::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

/// Number of stripes of one partition. Two keys with the same stripe wait for each other, which is
/// rare and harmless.
const STRIPES: usize = 64;

/// The locks of one partition. A lock is held across the read and the write of a key, never across
/// a wait for a sync.
pub(super) struct KeyLocks([Mutex<()>; STRIPES]);

impl KeyLocks {
    pub(super) fn new() -> Self {
        Self([const { Mutex::new(()) }; STRIPES])
    }

    /// Waits until each lock was free once: whoever held a lock when this was called has released
    /// it. Blocks.
    pub(super) fn await_holders(&self) {
        self.0.iter().for_each(|stripe| drop(stripe.lock()));
    }

    /// Locks all keys: nobody writes until the result is dropped. Waits for slow writers before it
    /// holds any lock, so that others seldom wait for more than a few writes. The caller holds no
    /// key's lock. Blocks.
    pub(super) fn lock_all(&self) -> Vec<MutexGuard<'_, ()>> {
        self.await_holders();
        self.0.iter().map(|stripe| stripe.lock()).collect()
    }

    /// Locks a key. Returns `None` when the lock is taken and the caller must not wait.
    pub(super) fn lock(&self, key: &[u8], access: Access) -> Option<MutexGuard<'_, ()>> {
        let stripe = &self.0[xxh3_64(key) as usize % STRIPES];
        match access {
            Access::Inline => stripe.try_lock(),
            Access::Blocking | Access::BlockingUpTo(_) => Some(stripe.lock()),
        }
    }
}
