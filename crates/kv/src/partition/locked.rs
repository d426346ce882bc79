//! A key whose lock is held. Every write goes through this type.

use super::partition::Partition;
use super::{Access, Failure, MergeRules, WriteRules, digest};
use crate::interface::PutCondition;
use crate::names::Printable;
use ombak_storage::{StorageError, Write};
use ombak_types::time::UnixMicros;
use ombak_types::{Error, Object, VectorClock, stored_object};
use parking_lot::MutexGuard;
use smallvec::SmallVec;
use std::cell::RefCell;
use tracing::{error, warn};

/// Maximum capacity of the head buffer that a thread keeps between writes, in bytes.
const HEAD_BUFFER_BYTES_KEPT: usize = 64 << 10;

thread_local! {
    static HEAD_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A key whose lock is held, with the head of its current version.
pub struct Locked<'a> {
    partition: &'a Partition,
    key: &'a [u8],
    _guard: MutexGuard<'a, ()>,
    local: Option<Object>,
    /// The position of `local` in the store's append order; 0 when there is no version.
    local_seq: u64,
    access: Access,
}

/// A write whose write call has returned, or a write that found its version already stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The version that the key now holds.
    pub object: Object,
    /// The position of that version in the store's append order. The store must be synced up to it
    /// before the write is durable, whichever write appended the version.
    pub seq: u64,
    /// Whether this write appended the version.
    pub is_new: bool,
    /// The digest of `object`.
    pub digest: u64,
}

impl<'a> Locked<'a> {
    pub(super) fn new(
        partition: &'a Partition,
        key: &'a [u8],
        guard: MutexGuard<'a, ()>,
        local: Option<(Object, u64)>,
        access: Access,
    ) -> Self {
        let (local, local_seq) = local.map_or((None, 0), |(object, seq)| (Some(object), seq));
        Self { partition, key, _guard: guard, local, local_seq, access }
    }

    /// The current version with empty values, also if it has expired.
    pub fn local(&self) -> Option<&Object> {
        self.local.as_ref()
    }

    /// Checks the condition of a write. A tombstone or an expired version counts as an absent key.
    pub fn check(&self, condition: &PutCondition, now: UnixMicros) -> Result<(), Error> {
        let alive = self.local.as_ref().filter(|o| !o.is_absent(now));
        match (condition, alive) {
            (PutCondition::IfNoneMatch, Some(_)) => Err(Error::MatchFound),
            (PutCondition::IfNotModified(_), None) => Err(Error::NotFound),
            (PutCondition::IfNotModified(seen), Some(o)) if !o.clock.same_events(seen) => Err(Error::Modified),
            _ => Ok(()),
        }
    }

    /// Loads the values of the siblings that a write will keep, so that [`Self::coordinate`] and
    /// [`Self::merge`] need no further read.
    pub fn load_for(&mut self, seen: &VectorClock, newest_only: bool) -> Result<(), Failure> {
        let keeps_siblings = self.local.as_ref().is_some_and(|l| !newest_only && !seen.descends(&l.clock));
        if keeps_siblings {
            let whole = self.partition.get(self.key, self.access);
            self.local = whole.inspect_err(|e| self.partition.note_unreadable(e))?;
        }
        Ok(())
    }

    /// Stores a client's value under a new event. Siblings that the client has not seen stay; where
    /// the bucket allows no siblings, the new value replaces them. Expired siblings are dropped.
    /// The caller calls [`Self::load_for`] first. Past the deadline no event is stamped, because no
    /// later write of the client would have seen that event.
    pub fn coordinate(self, mut incoming: Object, vtag: &[u8], rules: &WriteRules<'_>) -> Result<Written, Failure> {
        let newest_seen = self.local.as_ref().and_then(Object::last_modified);
        let now = newest_seen.map_or(rules.now, |seen| rules.now.max(UnixMicros(seen.0.saturating_add(1))));
        for sibling in &mut incoming.siblings {
            sibling.meta.vtag = Some(bytes::Bytes::copy_from_slice(vtag));
            sibling.meta.last_modified = Some(now);
        }
        let partition = self.partition;
        rules.begin()?;
        let local_clock = self.local.as_ref().map(|l| &l.clock);
        let actor = partition.actors.actor_for_event(local_clock, &incoming.clock, partition.floor());
        let mut local = self.local;
        if rules.newest_only() {
            // The new value is the newest, because its time was set so. Only the clock of the local
            // version is kept.
            if let Some(local) = &mut local {
                local.siblings.clear();
            }
        } else if let Some(local) = &mut local {
            keep_what_lives(local, rules.now);
        }
        let mut object = Object::coordinate(local, incoming, &actor, now, rules.props.dvv_enabled);
        object.clock.prune(&rules.pruning(), now);
        check_siblings(&object, self.key, rules)?;
        append(partition, self.key, object, Some(rules), rules.now)
    }

    /// Merges a copy from another place by clock alone, and stores the result if it is new. Copies
    /// without any clock (`write_once`) converge on the smaller digest. The caller calls
    /// [`Self::load_for`] first. Past the deadline nothing is stored.
    pub fn merge(self, incoming: Object, rules: &MergeRules<'_>) -> Result<Written, Failure> {
        let (partition, now) = (self.partition, rules.now);
        if partition.actors.has_forgotten_event(self.local.as_ref().map(|l| &l.clock), &incoming.clock) {
            partition.raise_floor();
        }
        let Some(mut local) = self.local else {
            return store_copy(partition, self.key, incoming, rules);
        };
        let writes_once = local.clock.is_empty() && incoming.clock.is_empty();
        if writes_once {
            let whole = with_values(partition, self.key, self.access, local)?;
            if !whole.is_absent(now) && digest(&whole) <= digest(&incoming) {
                return already_stored(partition, self.key, whole, self.local_seq);
            }
            return store_copy(partition, self.key, incoming, rules);
        }
        if local.clock.descends(&incoming.clock) {
            let whole = with_values(partition, self.key, self.access, local)?;
            return already_stored(partition, self.key, whole, self.local_seq);
        }
        local.merge(incoming, rules.dvv);
        store_copy(partition, self.key, local, rules)
    }

    /// Removes the key if it still holds exactly the version with this digest, and the version is a
    /// tombstone or has expired.
    pub fn reap(self, expected: u64, now: UnixMicros) -> Result<bool, Failure> {
        if !self.local.is_some_and(|local| local.is_absent(now)) {
            return Ok(false);
        }
        let removed = self.partition.store().delete_if(self.key, expected)?;
        Ok(removed.is_some())
    }
}

/// Drops what a new event replaces anyway: the expired siblings, or all siblings if the object has
/// expired as a whole, tombstones included. Its clock stays.
fn keep_what_lives(local: &mut Object, now: UnixMicros) {
    if !local.is_deleted() && local.is_absent(now) {
        local.siblings.clear();
    }
    local.drop_expired(now);
}

/// The current version with its values; `head` is its head. An answer may show the values, and the
/// digest covers them.
fn with_values(partition: &Partition, key: &[u8], access: Access, head: Object) -> Result<Object, Failure> {
    let found = partition.get(key, access).inspect_err(|e| partition.note_unreadable(e))?;
    Ok(found.unwrap_or(head))
}

/// Ends a write that has nothing to write. The existing version may still lack its sync, and a
/// store that accepts no more writes may have lost it. In that case the repeated write fails as the
/// first one did.
fn already_stored(partition: &Partition, key: &[u8], object: Object, seq: u64) -> Result<Written, Failure> {
    if !partition.store().is_synced(seq) {
        partition.store().check_writable(key)?;
    }
    let digest = digest(&object);
    Ok(Written { object, seq, is_new: false, digest })
}

fn check_siblings(object: &Object, key: &[u8], rules: &WriteRules<'_>) -> Result<(), Error> {
    let count = object.siblings.len();
    if count > rules.limits.siblings_max {
        return Err(Error::TooManySiblings(u32::try_from(count).unwrap_or(u32::MAX)));
    }
    if count > rules.limits.siblings_warn && count > 1 {
        warn!(key = %Printable(key), siblings = count, "many siblings");
    }
    Ok(())
}

fn check_size(bytes: u64, key: &[u8], rules: &WriteRules<'_>) -> Result<(), Error> {
    if bytes > rules.limits.bytes_max {
        return Err(Error::TooLarge { bytes, bytes_max: rules.limits.bytes_max });
    }
    if bytes > rules.limits.bytes_warn {
        warn!(key = %Printable(key), bytes, "large object");
    }
    Ok(())
}

/// Stores the result of a merge.
fn store_copy(partition: &Partition, key: &[u8], object: Object, rules: &MergeRules<'_>) -> Result<Written, Failure> {
    rules.begin()?;
    append(partition, key, object, None, rules.now)
}

/// Appends a version. The limits apply to clients' writes (`rules`), not to versions that other
/// nodes have already accepted.
fn append(
    partition: &Partition,
    key: &[u8],
    object: Object,
    rules: Option<&WriteRules<'_>>,
    now: UnixMicros,
) -> Result<Written, Failure> {
    let digest = digest(&object);
    let appended = HEAD_BUFFER.with_borrow_mut(|head| {
        head.clear();
        head.shrink_to(HEAD_BUFFER_BYTES_KEPT);
        stored_object::encode_head(&object, head);
        if let Some(rules) = rules {
            check_size(head.len() as u64 + object.value_bytes(), key, rules)?;
        }
        let body: SmallVec<[&[u8]; 4]> = object.siblings.iter().map(|s| &s.value[..]).collect();
        let tstamp_secs = u32::try_from(now.secs()).unwrap_or(u32::MAX);
        let has_terms = object.siblings.iter().any(|s| !s.meta.indexes.is_empty() && !s.meta.deleted);
        let expires_secs = expires_secs(&object);
        let write = Write { key, head, body: &body, digest, tstamp_secs, expires_secs, has_terms };
        partition.store().put(&write).map_err(|e| write_failed(partition, key, e))
    })?;
    Ok(Written { object, seq: appended.seq, is_new: true, digest })
}

/// The time after which a store hides the object; 0 means never. An object with some expiring
/// siblings gets the largest time instead of 0: a store in which nothing expires tells queries that
/// they need not look for expiring siblings.
fn expires_secs(object: &Object) -> u32 {
    let mixed = || object.siblings.iter().any(|s| s.meta.expires_secs.is_some());
    object.expires_secs().unwrap_or_else(|| if mixed() { u32::MAX } else { 0 })
}

fn write_failed(partition: &Partition, key: &[u8], e: StorageError) -> Failure {
    // It is unknown whether a part of the append reached the disk, so its event must not be issued
    // again.
    partition.raise_floor();
    error!(partition = partition.number(), key = %Printable(key), error = %e, "write refused");
    e.into()
}
