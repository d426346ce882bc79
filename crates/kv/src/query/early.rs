//! Siblings that end before their object, and what queries do about their index entries.
//!
//! A store drops the index entries of an object once all of it has expired. Those of a sibling that ends while another one
//! lives on stay until the key is written again. So the head of such an object yields one entry more, of a field that no
//! client can name: its term is the moment at which the first of them ends. A query asks for these entries first; the keys
//! that they name are the only ones whose objects it has to read.

use super::terms::sortable;
use bytes::Bytes;
use ombak_storage::{Snapshot, StorageError, TermEntry, TermRange};
use ombak_types::time::UnixMicros;
use ombak_types::{Object, stored};
use std::collections::HashSet;

/// A field of clients ends in `_bin` or `_int`.
const FIELD: &[u8] = b"\0early end";
/// Keys of one partition that a query remembers; where there are more it reads every object that it finds.
const KEYS_MAX: usize = 10_000;

/// The entry that an object has for its siblings that end early: the moment in Unix seconds, as a term.
pub(super) fn mark(object: &Object) -> Option<[u8; 4]> {
    let end = object.expires_secs();
    let indexed = object.siblings.iter().filter(|s| !s.meta.deleted && !s.meta.indexes.is_empty());
    let early = indexed.filter_map(|s| s.meta.expires_secs).filter(|at| Some(*at) != end);
    early.min().map(u32::to_be_bytes)
}

/// The field of [`mark`].
pub(super) const fn field() -> &'static [u8] {
    FIELD
}

/// The keys of a bucket, in one partition, whose index entries may be those of a sibling that has ended.
#[derive(Default)]
pub(super) struct EarlyEnds {
    keys: HashSet<Bytes>,
    all: bool,
    now: UnixMicros,
}

impl EarlyEnds {
    /// As a view shows it at `now`.
    pub(super) fn find(snapshot: &mut dyn Snapshot, bucket: &[u8], now: UnixMicros) -> Result<Self, StorageError> {
        let Some(to) = now.secs().checked_sub(1).filter(|_| snapshot.may_expire()) else { return Ok(Self::default()) };
        let to = u32::try_from(to).unwrap_or(u32::MAX).to_be_bytes();
        let range = TermRange { bucket, field: FIELD, from: b"", to: &to, after: None };
        let found = snapshot.terms_in_order(&range, KEYS_MAX)?;
        let all = found.len() == KEYS_MAX;
        Ok(Self { keys: found.into_iter().map(|entry| entry.key).collect(), all, now })
    }

    /// Whether an entry belongs to siblings that have ended, and to none that lives.
    pub(super) fn hides(
        &self,
        snapshot: &dyn Snapshot,
        bucket: &[u8],
        field: &[u8],
        entry: &TermEntry,
    ) -> Result<bool, StorageError> {
        if !self.all && !self.keys.contains(&entry.key) {
            return Ok(false);
        }
        let Some(found) = snapshot.read(&[bucket, &entry.key].concat())? else { return Ok(true) };
        // A head that does not decode is reported by whoever reads the object.
        let Ok(object) = stored::decode(&found.head, None) else { return Ok(false) };
        let living = object.siblings.iter().filter(|s| !s.meta.deleted && !s.is_expired(self.now));
        let mut entries = living.flat_map(|s| &s.meta.indexes);
        Ok(!entries.any(|own| own.field == field && sortable(&own.term) == entry.term))
    }
}
