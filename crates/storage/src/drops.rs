//! What a store removes by itself, and who learns of it.
//!
//! A tree over the digests of a store is kept up to date from two sources. The caller of `put`,
//! `delete` and `delete_if` learns from the receipt which version was replaced or removed
//! ([`Appended::previous`](crate::Appended)), also if that version had expired. Everything that the
//! store removes without such a caller is told to its [`DropObserver`].
//!
//! A store removes entries by itself in these cases:
//! * **The configured age** (`bitcask.expiry`, `leveldb.expiration`, `memory_backend.ttl`). Such a
//!   store forgets every expired version in sweeps and merges. The age is a setting of this store
//!   and no part of the object: another replica may have another limit or none, so replicas can
//!   never agree to remove these versions, and a node that is down would let every other store grow
//!   beyond the age that its operator asked for. A store without such a limit never forgets a
//!   version, expired or not; whoever reaps removes it with `delete_if`.
//! * **Eviction** by a memory store that has reached its size.
//! * **[`drop_scope`](crate::Backend::drop_scope)**.
//!
//! Nobody is told when all of a store goes: `drop_partition`, and a memory store's `close`.
//!
//! A removal by age is not recorded in the journal. A start may therefore bring such a version back
//! as an expired one, until the next sweep. An entry of a ledger that is damaged may be overwritten
//! by a put whose receipt cannot name the version that was there
//! ([`Previous::Unknown`](crate::Previous)). What a tree says of that key must then be made anew
//! with a fold. A tree may outlive an opening of a store only if the store was closed cleanly and
//! removes nothing by itself ([`removes_by_itself`](crate::Backend::removes_by_itself)).

use crate::error::StorageError;
use crate::fold::{Detail, Expired, FoldEntry, Scope, Snapshot};
use crate::receipt::IndexedVersion;
use std::sync::{Arc, OnceLock};

/// How many keys [`drop_each`] takes from a snapshot at a time.
const DROP_BATCH: usize = 1000;

/// Learns of the entries that a store removes by itself; see the module.
///
/// The store calls it exactly once for each such entry, with what the receipt of the version and
/// every fold have told of it. It holds the lock that orders its appends: the call comes before the
/// receipt of any later put of the key, and a snapshot contains the entry exactly if it began
/// before the call. So the observer must be quick, and must not call the store.
pub trait DropObserver: Send + Sync {
    /// The store has removed this version of `key`.
    fn dropped(&self, key: &[u8], version: IndexedVersion);
}

/// The place of a store for its observer.
#[derive(Default)]
pub(crate) struct DropNotifier(OnceLock<Arc<dyn DropObserver>>);

impl DropNotifier {
    /// Sets the observer; false if there is one already.
    pub(crate) fn set(&self, observer: Arc<dyn DropObserver>) -> bool {
        self.0.set(observer).is_ok()
    }

    /// Tells the observer of an entry that was just removed. The caller holds the lock that orders
    /// the store's appends.
    pub(crate) fn dropped(&self, key: &[u8], version: IndexedVersion) {
        if let Some(observer) = self.0.get() {
            observer.dropped(key, version);
        }
    }
}

/// Removes the keys of a scope that a snapshot has, expired versions included, and returns how many
/// there were.
pub(crate) fn drop_each(
    view: &mut dyn Snapshot,
    scope: &Scope<'_>,
    remove: impl Fn(&FoldEntry) -> Result<bool, StorageError>,
) -> Result<u64, StorageError> {
    let scope = Scope { expired: Expired::All, ..*scope };
    let mut dropped = 0;
    loop {
        let batch = view.next(&scope, Detail::Keys, DROP_BATCH)?;
        if batch.is_empty() {
            return Ok(dropped);
        }
        for entry in &batch {
            dropped += u64::from(remove(entry)?);
        }
    }
}
