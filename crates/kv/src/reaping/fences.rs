//! The fences of this node: which copies it refuses because they were read before a tombstone was
//! removed (docs/design/replication.md §6).

use crate::replica::NodeCounter;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of fences for keys. Two keys that share one only cause a needless refusal.
const KEY_FENCES: usize = 1 << 16;

/// A class: a home partition, and the n_val of its buckets.
type Class = (u32, u32);

/// The counter and the fences of one process. A fence is the value of the counter when it was
/// raised. All of it lives in memory: a restart changes the boot number, and so refuses every copy
/// that was read before.
///
/// Invariant: a copy whose sender noted this node's counter before a fence was raised is refused
/// after that. The caller checks under the key's lock, and holds the lock until the copy is stored.
#[derive(Debug)]
pub struct Fences {
    boot: u64,
    counter: AtomicU64,
    classes: RwLock<BTreeMap<Class, u64>>,
    /// Made with the first removal: a node that is alone raises no fences.
    keys: OnceLock<Box<[AtomicU64]>>,
}

impl Fences {
    /// The fences of a process that starts.
    pub(crate) fn new(boot: u64) -> Self {
        Self { boot, counter: AtomicU64::new(0), classes: RwLock::default(), keys: OnceLock::new() }
    }

    /// The counter at this moment.
    pub fn counter(&self) -> NodeCounter {
        NodeCounter { boot: self.boot, counter: self.counter.load(Ordering::SeqCst) }
    }

    /// Refuses from now on the copies of a class that were read before.
    pub fn raise_for_class(&self, partition: u32, n_val: u32) {
        let mut classes = self.classes.write();
        let raised = self.next();
        classes.insert((partition, n_val), raised);
    }

    /// Refuses from now on the copies of a key that were read before. Called under the key's lock.
    pub fn raise_for_key(&self, partition: u32, key: &[u8]) {
        let keys = self.keys.get_or_init(|| (0..KEY_FENCES).map(|_| AtomicU64::new(0)).collect());
        let raised = self.next();
        keys[place(partition, key)].fetch_max(raised, Ordering::SeqCst);
    }

    /// Whether a copy may be stored whose sender had noted `noted` as this node's counter. Called
    /// under the key's lock.
    pub fn admit(&self, (partition, n_val): Class, key: &[u8], noted: Option<NodeCounter>) -> bool {
        let Some(noted) = noted.filter(|noted| noted.boot == self.boot) else { return false };
        if noted.counter >= self.counter.load(Ordering::SeqCst) {
            return true;
        }
        let of_key = self.keys.get().map_or(0, |keys| keys[place(partition, key)].load(Ordering::SeqCst));
        let of_class = self.classes.read().get(&(partition, n_val)).copied().unwrap_or(0);
        noted.counter >= of_key.max(of_class)
    }

    fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::SeqCst) + 1
    }
}

fn place(partition: u32, key: &[u8]) -> usize {
    xxh3_64_with_seed(key, partition.into()) as usize % KEY_FENCES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_refuses_what_was_noted_before_it_and_nothing_else() {
        let fences = Fences::new(3);
        let before = Some(fences.counter());
        assert!(fences.admit((1, 3), b"k", before));
        assert!(!fences.admit((1, 3), b"k", None), "nothing was noted");
        fences.raise_for_key(1, b"k");
        assert!(!fences.admit((1, 3), b"k", before));
        assert!(fences.admit((2, 3), b"k", before), "another partition");
        assert!(fences.admit((1, 3), b"other", before), "another key");
        let after = Some(fences.counter());
        assert!(fences.admit((1, 3), b"k", after));
        fences.raise_for_class(1, 3);
        assert!(!fences.admit((1, 3), b"k", after) && !fences.admit((1, 3), b"other", after));
        assert!(fences.admit((1, 2), b"other", after), "another class");
        assert!(fences.admit((1, 3), b"k", Some(fences.counter())));
    }

    #[test]
    fn a_restart_refuses_every_copy_that_was_read_before_it() {
        let noted = Some(Fences::new(3).counter());
        assert!(!Fences::new(4).admit((1, 3), b"k", noted));
    }
}
