//! Which versions leave a store by exchanges alone (docs/design/anti-entropy.md §5, "The same copy
//! on other ways").
//!
//! What it is: a version that a mark of this store covers, or that is in doubt, is not spread by
//! reads, owed marks and filling. Reads that found such a version at one primary, and not at
//! another one, leave its key here, to be exchanged at once.
//!
//! What it is not: it keeps no marks (`marks`) and no doubt (`doubt`), and decides nothing about a
//! key. Exchanges do.
//!
//! Invariants:
//! * Without exchanges nothing is left to them.
//! * The keys that are to be exchanged are bounded, and each is there once.

use super::Transfers;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::replica::ClassId;
use bytes::Bytes;
use ombak_storage::Stored;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of keys that wait to be exchanged. Further ones wait for the next exchange of
/// their class.
const KEYS_MAX: usize = 4_096;
/// Maximum length of all these keys together, in bytes.
const KEY_BYTES_MAX: usize = 4 << 20;

/// Whether a node has exchanges, and what other ways leave to them.
#[derive(Default)]
pub struct OtherWays {
    is_on: AtomicBool,
    asked: Mutex<AskedKeys>,
    dropped: OnceLock<Box<dyn DroppedFile>>,
}

/// The file of dropped copies, which the work on copies keeps.
pub trait DroppedFile: Send + Sync {
    /// Adds a version of a key. It is durable when this returns. Blocks.
    fn keep(&self, class: ClassId, key: &[u8], version: &Stored) -> io::Result<()>;
}

#[derive(Default)]
struct AskedKeys {
    by_class: BTreeMap<ClassId, BTreeSet<Bytes>>,
    count: usize,
    bytes: usize,
}

impl OtherWays {
    /// Sets whether this node has exchanges, to which versions can be left.
    pub fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Whether this node has exchanges.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Gives this node its file of dropped copies, once.
    pub fn keep_dropped_in(&self, file: Box<dyn DroppedFile>) {
        // Of two the first one stays: they are the same file.
        let _ = self.dropped.set(file);
    }

    /// Adds a version to the file of dropped copies. It is durable when this returns. Fails without
    /// such a file. Blocks.
    pub fn keep_dropped(&self, class: ClassId, key: &[u8], version: &Stored) -> io::Result<()> {
        let file = self.dropped.get().ok_or_else(|| io::Error::other("this node has no file of dropped copies"))?;
        file.keep(class, key, version)
    }

    /// Asks for an exchange of one key with all other primaries, soon. Returns whether there was
    /// room for it, or it was asked for already.
    pub fn exchange_key(&self, class: ClassId, key: &Bytes) -> bool {
        if !self.is_on() {
            return false;
        }
        let mut asked = self.asked.lock();
        if asked.by_class.get(&class).is_some_and(|keys| keys.contains(key)) {
            return true;
        }
        if asked.count >= KEYS_MAX || asked.bytes + key.len() > KEY_BYTES_MAX {
            return false;
        }
        asked.count += 1;
        asked.bytes += key.len();
        // A slice of a message would keep the whole message.
        asked.by_class.entry(class).or_default().insert(Bytes::copy_from_slice(key));
        true
    }

    /// Takes the keys that are to be exchanged.
    pub fn take_keys(&self) -> BTreeMap<ClassId, BTreeSet<Bytes>> {
        std::mem::take(&mut *self.asked.lock()).by_class
    }
}

impl Transfers {
    /// Whether a version of this node that has a seq leaves its store by exchanges alone: a mark
    /// covers it, or it is in doubt.
    pub fn is_left_to_exchanges(&self, class: ClassId, seq: u64) -> bool {
        let is_left = || self.marks.covers_any(class, seq) || self.is_doubtful(class.partition, seq);
        self.other_ways.is_on() && is_left()
    }

    /// Whether a version is in doubt, and therefore goes nowhere. Without exchanges nobody could
    /// end the doubt, and nothing is.
    pub fn is_doubtful(&self, partition: u32, seq: u64) -> bool {
        self.doubt.is_in_doubt(partition, seq)
            && self.other_ways.is_on()
            && !is_broken(BrokenRule::DoubtfulStoresOnlyReceive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: ClassId = ClassId { partition: 1, n: 3 };

    #[test]
    fn keys_are_taken_once_and_bounded() {
        let ways = OtherWays::default();
        let key = |number: usize| Bytes::from(number.to_string());
        assert!(!ways.exchange_key(CLASS, &key(0)), "there are no exchanges");
        ways.set_on(true);
        assert!(ways.exchange_key(CLASS, &key(0)) && ways.exchange_key(CLASS, &key(0)));
        assert_eq!(ways.take_keys(), [(CLASS, [key(0)].into())].into());
        assert!(ways.take_keys().is_empty());
        assert_eq!((0..2 * KEYS_MAX).filter(|number| ways.exchange_key(CLASS, &key(*number))).count(), KEYS_MAX);
        assert!(ways.exchange_key(CLASS, &key(3)), "it is there already");
        ways.take_keys();
        let long = Bytes::from(vec![b'k'; KEY_BYTES_MAX]);
        assert!(ways.exchange_key(CLASS, &long) && !ways.exchange_key(CLASS, &key(0)));
    }
}
