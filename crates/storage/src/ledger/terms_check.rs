//! Compares the index entries of a tree with the keys that justify them, and mends what differs.
//!
//! What it is: one bounded step of a walk over the keys, which finds entries that are missing, and
//! then over the entries, which finds those that no key justifies.
//!
//! Invariants:
//! * A key and its entries change together, so a snapshot in which they differ shows a fault.
//! * What looks wrong in the snapshot is looked at again, and mended, while no other write can be
//!   made in the tree.
//! * What cannot be read is left as it is: nobody knows whether it is wrong.

use super::keys::{LedgerKey, TERMS_PREFIX, after_prefix, keys_from, split_term};
use super::tree::{Change, Tree};
use crate::error::StorageError;
use crate::terms_check::{STEP_BYTES_MAX, TermCursor, TermStep, VISIT_COST_BYTES};
use bytes::Bytes;
use ombak_types::names::split_storage_key;
use parking_lot::Mutex;
use std::ops::Bound;

/// The ledger keys of the index entries that an entry of a key justifies, from its ledger key and
/// its value.
pub(crate) type Justified<'a> = dyn Fn(&[u8], &Bytes) -> Result<Vec<LedgerKey>, StorageError> + 'a;

/// Looks up a ledger key.
type Look<'a> = dyn Fn(&[u8]) -> Result<Option<Bytes>, StorageError> + 'a;

/// What a walk has visited.
enum Seen {
    /// The ledger key of a key, and the index entries that it justifies.
    Key(Bytes, Vec<LedgerKey>),
    /// The ledger key of an index entry, and its value.
    Entry(Bytes, Bytes),
}

/// A tree whose index entries are compared.
pub(crate) struct CheckedTree<'a> {
    pub(crate) tree: &'a Tree,
    /// Held for each change of the tree.
    pub(crate) writes: &'a Mutex<()>,
    pub(crate) justified: &'a Justified<'a>,
}

impl CheckedTree<'_> {
    /// Goes on from a place, over at most `count_max` keys or index entries. Blocks.
    pub(crate) fn step(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        let from = if cursor.in_terms { Bytes::from_static(TERMS_PREFIX) } else { keys_from(&[]) };
        let to = after_prefix(&from);
        let start = cursor.after.as_ref().map_or(Bound::Included(&from[..]), |after| Bound::Excluded(&after[..]));
        let end = to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(&to[..]));
        let view = self.tree.view();
        let mut found: Vec<Seen> = Vec::new();
        let mut step = TermStep::at(cursor);
        let (mut last, mut failed) = (None, None);
        let goes_on = |step: &TermStep| step.visited < count_max as u64 && step.cost_bytes < STEP_BYTES_MAX;
        self.tree.scan(&view, start, end, |key, value| {
            step.cost_bytes += value.len() as u64 + VISIT_COST_BYTES;
            match self.seen(key, value, cursor.in_terms) {
                Ok(seen) => found.extend(seen),
                Err(error) => failed = Some(error),
            }
            last = Some(Bytes::copy_from_slice(key));
            step.visited += 1;
            failed.is_none() && goes_on(&step)
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let look = |place: &[u8]| self.tree.get_at(place, &view);
        for seen in &found {
            match seen {
                Seen::Key(key, places) if !lacking(places, &look)?.is_empty() => step.lacking += self.add(key)?,
                Seen::Entry(place, whole) if self.is_surplus(place, whole, &look)? => {
                    step.surplus += u64::from(self.remove(place)?);
                }
                Seen::Key(..) | Seen::Entry(..) => {}
            }
        }
        let is_end = goes_on(&step);
        step.pass(last, is_end);
        Ok(step)
    }

    /// What is to be compared of something that the walk visits; none if nothing is.
    fn seen(&self, key: &[u8], value: Bytes, in_terms: bool) -> Result<Option<Seen>, StorageError> {
        if in_terms {
            return Ok(Some(Seen::Entry(Bytes::copy_from_slice(key), value)));
        }
        let places = self.justified_by(key, &value)?.unwrap_or_default();
        Ok((!places.is_empty()).then(|| Seen::Key(Bytes::copy_from_slice(key), places)))
    }

    /// Whether no key justifies an index entry.
    fn is_surplus(&self, place: &[u8], whole: &Bytes, look: &Look<'_>) -> Result<bool, StorageError> {
        let Some(owner) = owner_of(if whole.is_empty() { place } else { whole }) else { return Ok(false) };
        let owner = LedgerKey::of_key(&owner).bytes;
        let Some(value) = look(&owner)? else { return Ok(true) };
        let justified = self.justified_by(&owner, &value)?;
        Ok(justified.is_some_and(|places| places.iter().all(|justified| justified.bytes != place)))
    }

    /// What an entry justifies; none if the entry cannot be read.
    fn justified_by(&self, key: &[u8], value: &Bytes) -> Result<Option<Vec<LedgerKey>>, StorageError> {
        match (self.justified)(key, value) {
            Err(error) if error.is_unreadable_version() => Ok(None),
            places => places.map(Some),
        }
    }

    /// Adds the index entries that a key lacks. Returns how many.
    fn add(&self, key: &[u8]) -> Result<u64, StorageError> {
        let _writes = self.writes.lock();
        let Some(value) = self.tree.get(key)? else { return Ok(0) };
        let places = self.justified_by(key, &value)?.unwrap_or_default();
        let lacking = lacking(&places, &|place| self.tree.get(place))?;
        let count = lacking.len() as u64;
        let added = lacking
            .into_iter()
            .map(|place| -> Change { (place.bytes.clone(), Some(place.whole.clone().unwrap_or_default())) });
        self.tree.apply(added.collect::<Vec<_>>());
        Ok(count)
    }

    /// Removes an index entry, if no key justifies it. Returns whether it is gone.
    fn remove(&self, place: &Bytes) -> Result<bool, StorageError> {
        let _writes = self.writes.lock();
        let Some(whole) = self.tree.get(place)? else { return Ok(false) };
        let is_surplus = self.is_surplus(place, &whole, &|place| self.tree.get(place))?;
        if is_surplus {
            self.tree.apply([(place.clone(), None)]);
        }
        Ok(is_surplus)
    }
}

/// Those of the index entries that are not there.
fn lacking<'a>(places: &'a [LedgerKey], look: &Look<'_>) -> Result<Vec<&'a LedgerKey>, StorageError> {
    let mut lacking = Vec::new();
    for place in places {
        if look(&place.bytes)?.is_none() {
            lacking.push(place);
        }
    }
    Ok(lacking)
}

/// The key of the store to which an index entry belongs; none if the entry is none of an object.
pub(crate) fn owner_of(entry: &[u8]) -> Option<Vec<u8>> {
    let behind = entry.strip_prefix(TERMS_PREFIX)?;
    let (_, _, fields) = split_storage_key(behind).ok()?;
    let bucket = behind.get(..behind.len() - fields.len())?;
    let (_, term) = split_term(fields)?;
    let (_, key) = split_term(term)?;
    Some([bucket, key].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::Bucket;
    use ombak_types::names::encode_storage_key;

    #[test]
    fn an_entry_names_its_key() {
        for bucket in [Bucket::untyped("b\0"), Bucket::typed("t", "b")] {
            let mut key = Vec::new();
            encode_storage_key(&bucket, b"k\0\xffx", &mut key);
            let bucket_len = key.len() - 4;
            let entry = LedgerKey::of_term(&key, bucket_len, b"f\0_bin", b"\0\0t");
            assert_eq!(owner_of(&entry.bytes), Some(key));
        }
        assert_eq!(owner_of(b"ixyz"), None);
        assert_eq!(owner_of(b"kxyz"), None);
    }
}
