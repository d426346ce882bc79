//! The keys that a consumer has got of home partitions whose answer is not complete.

use crate::folds::FoundKey;
use ombak_types::names::encode_storage_key;
use std::collections::{BTreeMap, HashSet};
use xxhash_rust::xxh3::{Xxh3DefaultBuilder, xxh3_128};

/// The most keys that are remembered, over all nodes. Beyond that, a node that fails makes the fold
/// fail.
const REMEMBERED_MAX: usize = 4_000_000;
/// About how many bytes a key takes in a list, and in a set.
const LISTED_BYTES: u64 = 16;
const KNOWN_BYTES: u64 = 36;

/// The hashes of keys that were handed over before their home partition was done. A replica that
/// answers once more from the beginning finds the same keys, and they are left out then.
#[derive(Default)]
pub(super) struct HandedOver {
    homes: BTreeMap<u32, HandedHome>,
    count: usize,
    /// How many of them are in sets.
    known: usize,
}

#[derive(Default)]
struct HandedHome {
    /// The keys of a first answer. Nobody looks for one of them, so they need no set.
    listed: Vec<u128>,
    /// All of them, if an answer broke off. Nothing depends on the order of this set.
    known: HashSet<u128, Xxh3DefaultBuilder>,
    /// An earlier answer broke off.
    is_repeat: bool,
    /// There was no room to remember all.
    is_partial: bool,
}

impl HandedOver {
    /// The consumer gets this key of a home partition, which is not done.
    pub(super) fn note(&mut self, home: u32, found: &FoundKey) {
        let Self { homes, count, known } = self;
        let handed = homes.entry(home).or_default();
        if *count >= REMEMBERED_MAX {
            handed.is_partial = true;
            return;
        }
        if handed.is_repeat {
            let is_new = handed.known.insert(hash_of(found));
            *known += usize::from(is_new);
            *count += usize::from(is_new);
        } else {
            handed.listed.push(hash_of(found));
            *count += 1;
        }
    }

    /// Whether the consumer has this key from an answer that broke off.
    pub(super) fn has(&self, home: u32, found: &FoundKey) -> bool {
        let of_home = self.homes.get(&home).filter(|handed| handed.is_repeat);
        of_home.is_some_and(|handed| handed.known.contains(&hash_of(found)))
    }

    /// A home partition is done.
    pub(super) fn home_done(&mut self, home: u32) {
        if let Some(handed) = self.homes.remove(&home) {
            self.count -= handed.listed.len() + handed.known.len();
            self.known -= handed.known.len();
        }
    }

    /// A home partition is answered once more from its beginning. Returns false if it is not known
    /// any more which keys the consumer has.
    pub(super) fn is_asked_again(&mut self, home: u32) -> bool {
        let Some(handed) = self.homes.get_mut(&home) else { return true };
        handed.is_repeat = true;
        let (listed, before) = (std::mem::take(&mut handed.listed), handed.known.len());
        let listed_count = listed.len();
        handed.known.extend(listed);
        let added = handed.known.len() - before;
        self.count -= listed_count - added;
        self.known += added;
        !handed.is_partial
    }

    /// About how many bytes this takes.
    pub(super) fn bytes(&self) -> u64 {
        (self.count - self.known) as u64 * LISTED_BYTES + self.known as u64 * KNOWN_BYTES
    }
}

fn hash_of(found: &FoundKey) -> u128 {
    let mut storage_key = Vec::with_capacity(found.bucket.name.len() + found.key.len() + 16);
    encode_storage_key(&found.bucket, &found.key, &mut storage_key);
    xxh3_128(&storage_key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folds::Found;
    use ombak_types::Bucket;

    fn key(name: &'static str) -> FoundKey {
        FoundKey { bucket: Bucket::untyped("b"), key: name.into(), found: Found::Number(1) }
    }

    #[test]
    fn what_was_handed_over_is_known_when_another_answer_begins() {
        let mut handed = HandedOver::default();
        handed.note(7, &key("a"));
        assert!(!handed.has(7, &key("a")), "a first answer has each key once");
        assert!(handed.is_asked_again(7) && handed.is_asked_again(8));
        assert!(handed.has(7, &key("a")) && !handed.has(7, &key("b")) && !handed.has(8, &key("a")));
        handed.note(7, &key("b"));
        assert!(handed.is_asked_again(7) && handed.has(7, &key("b")));
        assert_eq!((handed.count, handed.bytes()), (2, 2 * KNOWN_BYTES));
        handed.home_done(7);
        assert_eq!((handed.count, handed.known, handed.bytes()), (0, 0, 0));
    }

    #[test]
    fn a_fold_that_hands_over_too_much_does_not_begin_again() {
        let mut handed = HandedOver { count: REMEMBERED_MAX - 1, ..HandedOver::default() };
        handed.note(7, &key("a"));
        handed.note(7, &key("b"));
        assert!(!handed.is_asked_again(7), "nobody knows that b was handed over");
    }
}
