//! Siblings that end before their object, and what queries do about their index entries.
//!
//! A store drops the index entries of an object once all of it has expired. Those of a sibling that
//! ends while another one lives on stay until the key is written again. So the head of such an
//! object yields one entry more, of a field that no client can name: its term is the moment at
//! which the first of them ends. A query asks for these entries first; the keys that they name are
//! the only ones whose objects it has to read.

use super::living_terms::LivingTerms;
use bytes::Bytes;
use ombak_storage::{Snapshot, StorageError, TermEntry, TermRange};
use ombak_types::time::UnixMicros;
use ombak_types::{Object, stored_object};
use std::collections::HashSet;

/// A field of clients ends in `_bin` or `_int`.
const FIELD: &[u8] = b"\0early end";
/// Keys of one partition that a query remembers; where there are more it reads every object that it
/// finds.
const KEYS_MAX: usize = 10_000;

/// The entry that an object has for its siblings that end early: the moment in Unix seconds, as a
/// term.
pub(super) fn first_expiry_entry(object: &Object) -> Option<[u8; 4]> {
    let end = object.expires_secs();
    let indexed = object.siblings.iter().filter(|s| !s.meta.deleted && !s.meta.indexes.is_empty());
    let times = indexed.filter_map(|s| s.meta.expires_secs).filter(|at| Some(*at) != end);
    times.min().map(u32::to_be_bytes)
}

/// The field of [`first_expiry_entry`].
pub(super) const fn field() -> &'static [u8] {
    FIELD
}

/// The keys of a bucket, in one partition, whose index entries may be those of a sibling that has
/// ended.
#[derive(Default)]
pub(super) struct KeysWithExpiredSiblings {
    keys: HashSet<Bytes>,
    all: bool,
    now: UnixMicros,
    living: LivingTerms,
}

impl KeysWithExpiredSiblings {
    /// As a view shows it at `now`.
    pub(super) fn find(snapshot: &mut dyn Snapshot, bucket: &[u8], now: UnixMicros) -> Result<Self, StorageError> {
        let Some(to) = now.secs().checked_sub(1).filter(|_| snapshot.may_expire()) else { return Ok(Self::default()) };
        let to = u32::try_from(to).unwrap_or(u32::MAX).to_be_bytes();
        let range = TermRange { bucket, field: FIELD, from: b"", to: &to, after: None };
        let found = snapshot.terms_in_order(&range, KEYS_MAX)?;
        let all = found.len() == KEYS_MAX;
        let keys = found.into_iter().map(|entry| entry.key).collect();
        Ok(Self { keys, all, now, living: LivingTerms::default() })
    }

    /// Whether an entry belongs to siblings that have ended, and to none that lives. All calls of
    /// one query name the same bucket and field.
    pub(super) fn hides(
        &mut self,
        snapshot: &dyn Snapshot,
        bucket: &[u8],
        field: &[u8],
        entry: &TermEntry,
    ) -> Result<bool, StorageError> {
        if !self.all && !self.keys.contains(&entry.key) {
            return Ok(false);
        }
        if let Some(lives) = self.living.has(&entry.key, &entry.term) {
            return Ok(!lives);
        }
        let object = match snapshot.read(&[bucket, &entry.key].concat()) {
            Ok(Some(found)) => stored_object::decode(&found.head, None).ok(),
            Ok(None) => Some(Object::default()),
            // One key whose version is lost must not make queries fail. Whoever reads the key gets
            // the error.
            Err(error) if error.is_unreadable_version() => None,
            Err(error) => return Err(error),
        };
        self.living.remember(&entry.key, object.as_ref(), field, self.now);
        Ok(self.living.has(&entry.key, &entry.term) == Some(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::terms::sortable;
    use ombak_storage::{Detail, FoldEntry, KeyRange, Scope, Stored};
    use ombak_types::{IndexEntry, IndexTerm, Sibling};
    use std::sync::atomic::{AtomicUsize, Ordering};

    const NOW: UnixMicros = UnixMicros::from_secs(1_000);
    const ENTRIES: usize = 2_000;

    /// A view of one bucket in which all keys have the same head.
    struct View {
        head: Bytes,
        early: Vec<TermEntry>,
        reads: AtomicUsize,
        /// No head can be read.
        is_lost: bool,
    }

    impl Snapshot for View {
        fn next(&mut self, _: &Scope<'_>, _: Detail, _: usize) -> Result<Vec<FoldEntry>, StorageError> {
            Ok(Vec::new())
        }

        fn keys_in_order(&mut self, _: &KeyRange<'_>, _: usize) -> Result<Vec<FoldEntry>, StorageError> {
            Ok(Vec::new())
        }

        fn terms_in_order(&mut self, _: &TermRange<'_>, _: usize) -> Result<Vec<TermEntry>, StorageError> {
            Ok(std::mem::take(&mut self.early))
        }

        fn read(&self, _: &[u8]) -> Result<Option<Stored>, StorageError> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            if self.is_lost {
                return Err(StorageError::Damaged { file: "1.data".into(), offset: 7, what: "the file is missing" });
            }
            Ok(Some(Stored { head: self.head.clone(), body: None, digest: 0, seq: 0, stored_secs: None }))
        }
    }

    fn term(number: usize) -> IndexTerm {
        IndexTerm::Int(number.into())
    }

    /// Its even entries end early, its odd ones live on.
    fn object() -> Object {
        let half = |odd: usize, expires_secs| {
            let mut sibling = Sibling::new("value");
            let numbers = (0..ENTRIES).filter(|n| n % 2 == odd);
            sibling.meta.indexes = numbers.map(|n| IndexEntry { field: "f_int".into(), term: term(n) }).collect();
            sibling.meta.expires_secs = expires_secs;
            sibling
        };
        Object { siblings: vec![half(0, Some(900)), half(1, None)], ..Object::default() }
    }

    /// After an accepted loss the entries of a key may be there although its version is not.
    #[test]
    fn a_query_goes_on_over_a_key_that_is_lost() {
        let key = Bytes::from("one");
        let early = vec![TermEntry { term: Bytes::from_static(&[0; 4]), key: key.clone() }];
        let mut view = View { head: Bytes::new(), early, reads: AtomicUsize::new(0), is_lost: true };
        let mut ends = KeysWithExpiredSiblings::find(&mut view, b"bucket", NOW).unwrap();
        let entry = TermEntry { term: sortable(&term(1)), key };
        assert!(!ends.hides(&view, b"bucket", b"f_int", &entry).unwrap());
    }

    #[test]
    fn an_object_with_many_entries_is_read_once() {
        let mut head = Vec::new();
        stored_object::encode_head(&object(), &mut head);
        let keys = ["one", "two"].map(Bytes::from);
        let early = keys.iter().map(|key| TermEntry { term: Bytes::from_static(&[0; 4]), key: key.clone() });
        let mut view = View { head: head.into(), early: early.collect(), reads: AtomicUsize::new(0), is_lost: false };
        let mut ends = KeysWithExpiredSiblings::find(&mut view, b"bucket", NOW).unwrap();
        for n in 0..ENTRIES {
            for key in &keys {
                let entry = TermEntry { term: sortable(&term(n)), key: key.clone() };
                assert_eq!(ends.hides(&view, b"bucket", b"f_int", &entry).unwrap(), n % 2 == 0, "{n}");
            }
            let other = TermEntry { term: sortable(&term(n)), key: "no early end".into() };
            assert!(!ends.hides(&view, b"bucket", b"f_int", &other).unwrap());
        }
        assert_eq!(view.reads.load(Ordering::Relaxed), keys.len(), "each object is read and decoded once");
    }
}
