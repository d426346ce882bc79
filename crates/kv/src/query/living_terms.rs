//! The index terms of objects that a query has read.

use super::terms::sortable;
use bytes::Bytes;
use ombak_types::Object;
use ombak_types::time::UnixMicros;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// What one partition of a query remembers, in bytes. An object that alone takes more is remembered
/// until the next comes.
const BYTES_MAX: usize = 4 << 20;
/// What an object takes beside its key and its terms, and what a term takes, in bytes.
const OBJECT_BYTES: usize = 160;
const TERM_BYTES: usize = 16;

/// For each object that was read, the terms of one field that its living siblings have. An object
/// may have very many entries in the range of a query, and it is decoded for the first of them
/// only.
#[derive(Default)]
pub(super) struct LivingTerms {
    objects: HashMap<Bytes, Known>,
    /// The keys of `objects`, in the order in which they were read.
    order: VecDeque<Bytes>,
    bytes: usize,
    /// Terms are remembered by 64 bits, with keys that nobody knows: two of one object are equal
    /// about never.
    hasher: RandomState,
}

/// What is known of an object.
enum Known {
    /// Its head does not decode.
    Nothing,
    Terms(HashSet<u64>),
}

impl LivingTerms {
    /// Whether a living sibling of an object has this term; none when the object has not been read.
    /// Where the object does not decode, whoever reads it reports that, and all its terms count as
    /// living.
    pub(super) fn has(&self, key: &[u8], term: &[u8]) -> Option<bool> {
        Some(match self.objects.get(key)? {
            Known::Nothing => true,
            Known::Terms(terms) => terms.contains(&self.hasher.hash_one(term)),
        })
    }

    /// Remembers an object; `None` is one that does not decode.
    pub(super) fn remember(&mut self, key: &Bytes, object: Option<&Object>, field: &[u8], now: UnixMicros) {
        let known = match object {
            None => Known::Nothing,
            Some(object) => {
                let living = object.siblings.iter().filter(|sibling| !sibling.meta.deleted && !sibling.is_expired(now));
                let entries = living.flat_map(|sibling| &sibling.meta.indexes).filter(|entry| entry.field == field);
                Known::Terms(entries.map(|entry| self.hasher.hash_one(&sortable(&entry.term)[..])).collect())
            }
        };
        self.make_room(bytes_of(key, &known));
        self.bytes += bytes_of(key, &known);
        // The entry's key is a part of what a page of entries lies in.
        let key = Bytes::copy_from_slice(key);
        self.order.push_back(key.clone());
        self.objects.insert(key, known);
    }

    /// Forgets the objects that were read first.
    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            let known = self.objects.remove(&oldest);
            self.bytes -= known.map_or(0, |known| bytes_of(&oldest, &known));
        }
    }
}

fn bytes_of(key: &[u8], known: &Known) -> usize {
    let terms = if let Known::Terms(terms) = known { terms.capacity() } else { 0 };
    OBJECT_BYTES + 2 * key.len() + TERM_BYTES * terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::{IndexEntry, IndexTerm, Sibling};

    fn object(terms: usize) -> Object {
        let entry = |n: usize| IndexEntry { field: "f_bin".into(), term: IndexTerm::Bin(n.to_string().into()) };
        let mut sibling = Sibling::new("value");
        sibling.meta.indexes = (0..terms).map(entry).collect();
        Object::new(sibling)
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut living, many) = (LivingTerms::default(), object(10_000));
        let key = |n: usize| Bytes::from(format!("key {n}"));
        for n in 0..200 {
            living.remember(&key(n), Some(&many), b"f_bin", UnixMicros(0));
            assert!(living.bytes <= BYTES_MAX);
            assert_eq!(living.has(&key(n), b"77"), Some(true));
            assert_eq!(living.has(&key(n), b"none"), Some(false));
        }
        assert_eq!((living.has(&key(0), b"77"), living.objects.len()), (None, living.order.len()));
        assert!(living.objects.len() > 5, "{}", living.objects.len());
        living.remember(&key(0), Some(&object(1_000_000)), b"f_bin", UnixMicros(0));
        assert_eq!((living.has(&key(0), b"77"), living.objects.len()), (Some(true), 1));
        living.remember(&key(1), None, b"f_bin", UnixMicros(0));
        assert_eq!((living.has(&key(1), b"none"), living.objects.len()), (Some(true), 1));
    }
}
