//! The ordered index of a bitcask store: its keys and index entries, in a ledger of their own. It
//! is built on first use, that is, when an ordered listing or index query asks for it or when an
//! index entry is written. Other stores do not pay for it.
//!
//! ```text
//! k storage_key                                 the index entries of the key: count u32, then
//!                                               field and term, each after its length u32
//! i bucket_prefix field 00 00 term 00 00 key    see the ledger
//! m "order"                                     up to which seq it has seen the journal, u64
//! ```
//!
//! Invariants:
//! * The terms in a key's entry are those that are in the ledger.
//! * Each change of a key is made under `writes`, with either the current state of the index in
//!   memory or the version that was just put there. So the last change of a key has seen its newest
//!   version.

use crate::backend::{HeadTerms, LedgerStatus};
use crate::error::StorageError;
use crate::fold::{KeyRange, TermRange};
use crate::journal::{IndexDamage, IndexTables, le_at};
use crate::ledger::{
    Change, CheckedTree, Difference, KeyBounds, LedgerKey, ORDERED_UP_TO, Tree, TreeShared, TreeView, note, remove_dir,
    store_key, visit_differences, visit_terms,
};
use crate::terms_check::{TermCursor, TermStep};
use bytes::{BufMut, Bytes, BytesMut};
use ombak_types::names::split_storage_key;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NOTE: &[u8] = ORDERED_UP_TO;

/// What the ordered indexes of a root share.
pub(super) struct OrderedIndexShared {
    pub(super) trees: TreeShared,
    pub(super) terms: Arc<dyn HeadTerms>,
    /// Bytes that one ordered index gathers in memory before it writes them.
    pub(super) memory_bytes_max: u64,
}

/// The ordered index is written after this many appends, even if little has changed in it. Bounds
/// how many appends a start must compare with it.
const APPENDS_BETWEEN_NOTES: u64 = 1_000_000;

/// How many index entries a change has added and removed. A key that is listed in order, or is not
/// any more, counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EntriesChanged {
    pub(super) added: u64,
    pub(super) removed: u64,
}

pub(super) struct OrderedIndexTree {
    shared: Arc<OrderedIndexShared>,
    tree: Tree,
    writes: Mutex<()>,
    seen_seq_on_disk: AtomicU64,
}

impl OrderedIndexTree {
    /// Begins an empty ordered index.
    pub(super) fn create(dir: &Path, shared: &Arc<OrderedIndexShared>) -> Result<Self, StorageError> {
        remove_dir(dir)?;
        Ok(Self::new(Tree::open(dir, &shared.trees)?, shared, 0))
    }

    /// Opens an ordered index that was complete when it was last written. Returns it with the `seq`
    /// up to which it had seen the journal.
    pub(super) fn open(dir: &Path, shared: &Arc<OrderedIndexShared>) -> Result<Option<(Self, u64)>, StorageError> {
        if !dir.is_dir() || Tree::was_damaged(dir) {
            return Ok(None);
        }
        let opened = Tree::open(dir, &shared.trees).and_then(|tree| {
            let noted = tree.get(&note(NOTE))?;
            Ok((tree, noted))
        });
        match opened {
            Ok((tree, Some(noted))) if noted.len() == 8 => {
                let seq = le_at!(u64, noted, 0);
                Ok(Some((Self::new(tree, shared, seq), seq)))
            }
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::error!(dir = %dir.display(), %error, "the ordered index cannot be opened: it is rebuilt when it is needed");
                Ok(None)
            }
        }
    }

    fn new(tree: Tree, shared: &Arc<OrderedIndexShared>, seen_seq_on_disk: u64) -> Self {
        Self {
            shared: shared.clone(),
            tree,
            writes: Mutex::default(),
            seen_seq_on_disk: AtomicU64::new(seen_seq_on_disk),
        }
    }

    /// Sets a key to a version with this head, or removes it (none). A head without index entries
    /// may be passed as empty. Returns what has changed.
    pub(super) fn set(&self, key: &[u8], head: Option<&[u8]>) -> Result<EntriesChanged, StorageError> {
        let _writes = self.writes.lock();
        self.replace(key, head)
    }

    /// Like [`set`](Self::set), with the head that `look` returns while no other change can be made
    /// here.
    pub(super) fn set_to_present(
        &self,
        key: &[u8],
        look: impl FnOnce() -> Result<Option<Bytes>, StorageError>,
    ) -> Result<(), StorageError> {
        let _writes = self.writes.lock();
        let head = look()?;
        self.replace(key, head.as_deref()).map(drop)
    }

    /// Whether a key is there, with the terms of this head.
    pub(super) fn agrees(&self, key: &[u8], head: &[u8]) -> Result<bool, StorageError> {
        let entry = self.tree.get(&LedgerKey::of_key(key).bytes)?;
        Ok(entry.is_some_and(|entry| sorted_terms(&entry) == self.terms_of(head)))
    }

    /// The terms of a head, in order.
    fn terms_of(&self, head: &[u8]) -> Vec<(Bytes, Bytes)> {
        let mut terms: Vec<(Bytes, Bytes)> = Vec::new();
        if !head.is_empty() {
            let copy = Bytes::copy_from_slice;
            self.shared.terms.visit(head, &mut |field, term| terms.push((copy(field), copy(term))));
            terms.sort();
            terms.dedup();
        }
        terms
    }

    fn replace(&self, key: &[u8], head: Option<&[u8]>) -> Result<EntriesChanged, StorageError> {
        let ledger_key = LedgerKey::of_key(key);
        let old = self.tree.get(&ledger_key.bytes)?;
        let old_terms = old.as_ref().map_or_else(Vec::new, sorted_terms);
        let terms = head.map_or_else(Vec::new, |head| self.terms_of(head));
        if old.is_some() == head.is_some() && old_terms == terms {
            return Ok(EntriesChanged::default());
        }
        let bucket_len = split_storage_key(key).map_or(0, |(_, _, user_key)| key.len() - user_key.len());
        let place = |(field, term): &(Bytes, Bytes)| LedgerKey::of_term(key, bucket_len, field, term);
        let mut changed = EntriesChanged {
            added: u64::from(old.is_none() && head.is_some()),
            removed: u64::from(old.is_some() && head.is_none()),
        };
        let mut changes: Vec<Change> = Vec::new();
        visit_differences(&old_terms, &terms, Ord::cmp, |difference| {
            changes.push(match difference {
                Difference::Removed(old) => {
                    changed.removed += 1;
                    (place(old).bytes, None)
                }
                Difference::Added(new) => {
                    changed.added += 1;
                    let place = place(new);
                    (place.bytes, Some(place.whole.unwrap_or_default()))
                }
            });
        });
        let whole = ledger_key.whole;
        changes.push((ledger_key.bytes, head.map(|_| encode_terms(&terms, whole.as_deref()))));
        self.tree.apply(changes);
        Ok(changed)
    }

    /// The `seq` up to which the ordered index on disk has seen the journal.
    pub(super) fn seen_seq_on_disk(&self) -> u64 {
        self.seen_seq_on_disk.load(Ordering::Relaxed)
    }

    /// Whether enough changes have gathered to be written. `appends_since` counts the appends after
    /// a `seq`.
    pub(super) fn wants_writing(&self, appends_since: impl Fn(u64) -> u64) -> bool {
        self.tree.memory_bytes() >= self.shared.memory_bytes_max
            || appends_since(self.seen_seq_on_disk.load(Ordering::Relaxed)) >= APPENDS_BETWEEN_NOTES
    }

    /// Starts a new memory table; the old one gets no more changes. With `seq`, the index has seen
    /// all appends up to it.
    pub(super) fn rotate(&self, seq: Option<u64>) {
        let _writes = self.writes.lock();
        if let Some(seq) = seq {
            self.tree.apply([(note(NOTE), Some(Bytes::copy_from_slice(&seq.to_le_bytes())))]);
            self.seen_seq_on_disk.fetch_max(seq, Ordering::Relaxed);
        }
        self.tree.rotate();
    }

    /// Writes the tables that were closed by `rotate`. They are on disk when this returns.
    pub(super) fn flush(&self) -> Result<(), StorageError> {
        self.tree.flush()
    }

    pub(super) fn compact(&self) -> Result<(), StorageError> {
        self.tree.compact().map(drop)
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.tree.memory_bytes() + self.tree.pinned_bytes()
    }

    /// Its tables on disk.
    pub(super) fn tables(&self) -> IndexTables {
        self.tree.tables()
    }

    /// Whether the list of its tables is damaged.
    pub(super) fn check_list(&self) -> Result<Option<IndexDamage>, StorageError> {
        self.tree.check_list()
    }

    /// Notes for the next start that it is damaged.
    pub(super) fn note_damage_on_disk(&self, damage: &IndexDamage) {
        self.tree.note_damage_on_disk(damage);
    }

    /// Sizes of the ordered index.
    pub(super) fn status(&self) -> LedgerStatus {
        self.tree.status()
    }

    pub(super) fn view(&self) -> TreeView {
        self.tree.view()
    }

    /// Compares the index entries with the entries of their keys, and mends what differs. Returns
    /// the keys that were visited and are not there for `is_there`, besides.
    pub(super) fn check_terms(
        &self,
        cursor: &TermCursor,
        count_max: usize,
        is_there: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(TermStep, Vec<Bytes>), StorageError> {
        let strays = RefCell::new(Vec::new());
        let justified = |ledger_key: &[u8], value: &Bytes| {
            let (whole, places) = places_of_entry(ledger_key, value);
            let key = store_key(whole.as_deref().unwrap_or(ledger_key)).filter(|_| !cursor.in_terms);
            if let Some(key) = key.filter(|key| !is_there(key)) {
                strays.borrow_mut().push(Bytes::copy_from_slice(key));
            }
            Ok(places)
        };
        let checked = CheckedTree { tree: &self.tree, writes: &self.writes, justified: &justified };
        let step = checked.step(cursor, count_max)?;
        Ok((step, strays.into_inner()))
    }

    /// Visits the keys of a bucket in order.
    pub(super) fn keys(
        &self,
        view: &TreeView,
        range: &KeyRange<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), StorageError> {
        let bounds = KeyBounds::new(range);
        self.tree.scan(view, bounds.from(), bounds.to(), |place, value| {
            let whole = whole_key(&value);
            store_key(whole.as_deref().unwrap_or(place)).is_none_or(&mut visit)
        })
    }

    pub(super) fn terms(
        &self,
        view: &TreeView,
        range: &TermRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        visit_terms(&self.tree, view, range, visit)
    }
}

/// The terms in a key's entry. They were written in order, but bytes from a disk are not trusted.
/// To sort a sorted list costs one pass.
fn sorted_terms(entry: &Bytes) -> Vec<(Bytes, Bytes)> {
    let mut terms = decode_terms(entry);
    terms.sort();
    terms.dedup();
    terms
}

/// The key of the note that says how far an ordered index has seen the journal.
pub(crate) const ORDER_NOTE: &[u8] = NOTE;

/// The whole ledger key of a key's entry if the ledger key was truncated, and the ledger keys of
/// its index entries.
pub(crate) fn places_of_entry(ledger_key: &[u8], value: &Bytes) -> (Option<Bytes>, Vec<LedgerKey>) {
    let whole = whole_key(value);
    let key = store_key(whole.as_deref().unwrap_or(ledger_key)).unwrap_or_default();
    let bucket_len = split_storage_key(key).map_or(0, |(_, _, user_key)| key.len() - user_key.len());
    let terms = decode_terms(value);
    let places = terms.iter().map(|(field, term)| LedgerKey::of_term(key, bucket_len, field, term)).collect();
    (whole, places)
}

fn encode_terms(terms: &[(Bytes, Bytes)], whole_key: Option<&[u8]>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u32_le(terms.len() as u32);
    for part in terms.iter().flat_map(|(field, term)| [&field[..], &term[..]]).chain(whole_key) {
        out.put_u32_le(part.len() as u32);
        out.put_slice(part);
    }
    out.freeze()
}

fn parts(value: &Bytes) -> impl Iterator<Item = Bytes> + '_ {
    let mut at = 4;
    std::iter::from_fn(move || {
        let length = value.get(at..at + 4).map(|length| le_at!(u32, length, 0) as usize)?;
        let part = value.get(at + 4..at + 4 + length)?;
        at += 4 + length;
        Some(value.slice_ref(part))
    })
}

fn decode_terms(value: &Bytes) -> Vec<(Bytes, Bytes)> {
    if value.len() < 4 {
        return Vec::new();
    }
    let count = le_at!(u32, value, 0) as usize;
    let mut parts = parts(value);
    (0..count).map_while(|_| Some((parts.next()?, parts.next()?))).collect()
}

fn whole_key(value: &Bytes) -> Option<Bytes> {
    let count = if value.len() < 4 { 0 } else { le_at!(u32, value, 0) as usize };
    parts(value).nth(count * 2)
}

/// Checks what must hold for any bytes in a key's entry; see [`crate::fuzzing`].
#[cfg(any(test, fuzzing))]
pub(crate) fn check_order_entry(value: &Bytes) {
    let (terms, whole) = (decode_terms(value), whole_key(value));
    let again = encode_terms(&terms, whole.as_deref());
    assert!(decode_terms(&again) == terms && whole_key(&again) == whole);
    assert!(again.len() <= value.len().max(4));
    assert_eq!(places_of_entry(b"k", value).1.len(), terms.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_come_back() {
        let term = |field: &'static str, term: &'static str| (Bytes::from(field), Bytes::from(term));
        for terms in [vec![], vec![term("a_bin", "x")], vec![term("a_bin", ""), term("b_int", "y")]] {
            for whole in [None, Some(&b"kwhole"[..])] {
                let value = encode_terms(&terms, whole);
                assert_eq!(decode_terms(&value), terms);
                assert_eq!(whole_key(&value).as_deref(), whole);
            }
        }
    }
}
