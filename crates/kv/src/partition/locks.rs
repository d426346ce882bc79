//! One writer per key: striped locks.

use super::Access;
use parking_lot::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

/// Stripes of one partition. Two keys that share one wait for each other, which is rare and harmless.
const STRIPES: usize = 64;

/// The locks of one partition. Held across the read and the write of a key, never across a wait for a sync.
pub(super) struct KeyLocks([Mutex<()>; STRIPES]);

impl KeyLocks {
    pub(super) fn new() -> Self {
        Self([const { Mutex::new(()) }; STRIPES])
    }

    /// The lock of a key; `None` when somebody has it and the caller must not wait.
    pub(super) fn lock(&self, key: &[u8], access: Access) -> Option<MutexGuard<'_, ()>> {
        let stripe = &self.0[xxh3_64(key) as usize % STRIPES];
        match access {
            Access::Inline => stripe.try_lock(),
            Access::Blocking | Access::Within(_) => Some(stripe.lock()),
        }
    }
}
