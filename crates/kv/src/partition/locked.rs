//! A key whose lock is held. Every write goes through this type.

use super::merge_timer::MergeTimer;
use super::partition::{Current, Partition, has_summary};
use super::rules::age_from_stored;
use super::{Access, Failure, MergeRules, WriteRules, digest};
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::hooks::{ValueKind, unite_values};
use crate::kept_trees::{KEPT_HASH, KnownClock};
use ombak_storage::{Appended, Origin, StorageError, Stored, Write};
use ombak_types::object::{IndexEntry, Merged};
use ombak_types::time::UnixMicros;
use ombak_types::{Dot, Error, Object, ShownKey, Sibling, VectorClock, stored_object};
use parking_lot::MutexGuard;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::time::Duration;
use tracing::{error, warn};

/// Maximum capacity of the head buffer that a thread keeps between writes, in bytes.
const HEAD_BUFFER_BYTES_KEPT: usize = 64 << 10;

thread_local! {
    static HEAD_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A key whose lock is held, with the head of its current version.
pub struct Locked<'a> {
    pub(super) partition: &'a Partition,
    pub(super) key: &'a [u8],
    _guard: MutexGuard<'a, ()>,
    pub(super) local: Option<Object>,
    /// Whether `local` has its values.
    is_whole: bool,
    /// The bytes of the value, if there is only one and bytes can be added to it.
    pub(super) grown_bytes: Option<u64>,
    /// The head of the version that a write is to replace because it cannot be read, or was in
    /// doubt. Then there is no `local`.
    unreadable: Option<Object>,
    /// Whether such a version is there, even if its head is not known.
    replaces_unreadable: bool,
    /// The position of `local` in the store's append order; 0 when there is no version.
    pub(super) local_seq: u64,
    /// The time from which the age of `local` counts, if it is known: it comes with the values.
    local_stored_secs: Option<u32>,
    pub(super) access: Access,
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
    /// What was added to the value, if `object` has only its head.
    pub addition: Option<bytes::Bytes>,
    /// How long it took to make one version of two of which neither replaces the other.
    pub combined_in: Option<Duration>,
    /// The index entries of the version that this write replaced, if it appended one.
    pub replaced_entries: Vec<IndexEntry>,
}

impl<'a> Locked<'a> {
    pub(super) fn new(
        partition: &'a Partition,
        key: &'a [u8],
        guard: MutexGuard<'a, ()>,
        local: Option<Current>,
        access: Access,
    ) -> Self {
        let grown_bytes = local.as_ref().and_then(|current| current.grown_bytes);
        let (local, local_seq) = local.map_or((None, 0), |current| (Some(current.object), current.seq));
        Self {
            partition,
            key,
            _guard: guard,
            local,
            is_whole: false,
            grown_bytes,
            unreadable: None,
            replaces_unreadable: false,
            local_seq,
            local_stored_secs: None,
            access,
        }
    }

    /// Lets a write replace a version that cannot be read. `head` is its head, as far as it is
    /// known: only observers learn of it.
    pub(super) fn replacing_unreadable(self, head: Option<Object>) -> Self {
        Self { unreadable: head, replaces_unreadable: true, ..self }
    }

    /// Whether what a write replaces may have been added to. The head of a version that is set
    /// aside is not known here, so it may have been. Such a replacement waits for the disk.
    pub(crate) fn replaces_grown(&self) -> bool {
        let is_set_aside = || self.local.is_none() && self.partition.set_aside_to() > 0;
        self.local.as_ref().is_some_and(has_summary) || self.replaces_unreadable || is_set_aside()
    }

    /// What a write takes the place of.
    pub(super) fn replaced(&self) -> Replaced {
        let (old, is_grown, entries) = (self.old(), self.replaces_grown(), self.replaced_entries());
        Replaced { old, is_grown, entries, clock: self.known_clock() }
    }

    /// The index entries of the version that a write replaces. Without any, this allocates nothing.
    pub(super) fn replaced_entries(&self) -> Vec<IndexEntry> {
        let replaced = self.local.as_ref().or(self.unreadable.as_ref());
        replaced.into_iter().flat_map(Object::index_entries).cloned().collect()
    }

    /// The time of a new value: later than that of every value here.
    pub(super) fn time_after(&self, now: UnixMicros) -> UnixMicros {
        let newest_seen = self.local.as_ref().and_then(Object::last_modified);
        newest_seen.map_or(now, |seen| now.max(UnixMicros(seen.0.saturating_add(1))))
    }

    /// The version that a write replaces, for observers.
    pub(super) fn old(&self) -> Option<Object> {
        let is_observed = self.partition.is_observed();
        self.local.as_ref().or(self.unreadable.as_ref()).filter(|_| is_observed).cloned()
    }

    /// The hash of the clock of the version that a write replaces, if a kept tree needs it.
    pub(super) fn known_clock(&self) -> Option<KnownClock> {
        let local = self.local.as_ref().filter(|_| self.partition.is_keeping_trees())?;
        Some(KnownClock { seq: self.local_seq, hash: KEPT_HASH.of(&local.clock) })
    }

    /// The position of the current version in the store's append order; 0 when there is none.
    pub(crate) const fn local_seq(&self) -> u64 {
        self.local_seq
    }

    /// Lets a write take the place of the current version, as if nothing were here. The version is
    /// in the file of dropped copies. It may have had events of this node.
    pub(crate) fn part_from_local(&mut self) {
        self.partition.raise_floor();
        self.unreadable = self.local.take();
        self.replaces_unreadable = true;
        (self.is_whole, self.grown_bytes) = (false, None);
        (self.local_seq, self.local_stored_secs) = (0, None);
    }

    /// The current version with empty values, also if it has expired.
    pub fn local(&self) -> Option<&Object> {
        self.local.as_ref()
    }

    /// Loads the values of the siblings that a write will keep, so that [`Self::coordinate`] and
    /// [`Self::merge`] need no further read.
    pub fn load_for(&mut self, seen: &VectorClock, newest_only: bool) -> Result<(), Failure> {
        let keeps_siblings = self.local.as_ref().is_some_and(|l| !newest_only && !seen.descends(&l.clock));
        if keeps_siblings {
            self.load()?;
        }
        Ok(())
    }

    /// Loads all values of the current version, which an operation may change.
    pub fn load(&mut self) -> Result<(), Failure> {
        if !self.is_whole && self.local.is_some() {
            let (partition, key) = (self.partition, self.key);
            let decode =
                |found: &Stored| -> Result<_, Failure> { Ok((partition.decode(key, found)?, found.stored_secs)) };
            let whole = partition.read(key, self.access).and_then(|found| found.as_ref().map(decode).transpose());
            let whole = whole.inspect_err(|e| partition.note_unreadable(e))?;
            (self.local, self.local_stored_secs) = whole.map_or((None, None), |(local, at)| (Some(local), at));
            self.is_whole = true;
        }
        Ok(())
    }

    /// Stores a client's value under a new event. Siblings that the client has not seen stay; where
    /// the bucket allows no siblings, the new value replaces them. Expired siblings are dropped.
    /// The caller calls [`Self::load_for`] first. Past the deadline no event is stamped, because no
    /// later write of the client would have seen that event.
    pub fn coordinate(self, mut incoming: Object, vtag: &[u8], rules: &WriteRules<'_>) -> Result<Written, Failure> {
        let now = self.time_after(rules.now);
        for sibling in &mut incoming.siblings {
            sibling.meta.vtag = Some(bytes::Bytes::copy_from_slice(vtag));
            sibling.meta.last_modified = Some(now);
        }
        let partition = self.partition;
        rules.begin(self.key)?;
        let local_clock = self.local.as_ref().map(|l| &l.clock);
        let replaced = self.replaced();
        if let Some(kind) = rules.values.filter(|_| !incoming.is_deleted()) {
            let object = operate(kind, partition, self.local, incoming, rules, now)?;
            check_siblings(&object, self.key, rules)?;
            return append(
                partition,
                self.key,
                object,
                replaced,
                Origin::Coordinated,
                Some(rules),
                rules.age_from_secs(),
            );
        }
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
        let stays = |local: &Object| !local.siblings.is_empty() && !incoming.clock.descends(&local.clock);
        let timer = local.as_ref().is_some_and(stays).then(|| MergeTimer::start(rules.deadline)).flatten();
        let mut object = Object::coordinate(local, incoming, &actor, now, rules.props.dvv_enabled);
        let combined_in = timer.map(MergeTimer::stop);
        object.clock.prune(&rules.pruning(), now);
        check_siblings(&object, self.key, rules)?;
        let written =
            append(partition, self.key, object, replaced, Origin::Coordinated, Some(rules), rules.age_from_secs())?;
        Ok(Written { combined_in, ..written })
    }

    /// Stores what another primary holds in place of the current version, as if nothing were here.
    /// The version is in the file of dropped copies.
    pub fn replace_dropped(
        mut self,
        incoming: Object,
        now: UnixMicros,
        stored_secs: Option<u32>,
    ) -> Result<Written, Failure> {
        self.part_from_local();
        self.merge(incoming, &MergeRules { now, stored_secs, origin: Origin::Repair, deadline: None })
    }

    /// Merges a copy from another place by clock alone ([`Object::merge`]), and stores the result
    /// if it is new. The caller calls [`Self::load_for`] first. Past the deadline nothing is
    /// stored.
    ///
    /// A copy that is stored has the age that it had where it comes from, and what is made of two
    /// versions the age of the younger one. So a copy of a copy is no younger than the first.
    pub fn merge(mut self, incoming: Object, rules: &MergeRules<'_>) -> Result<Written, Failure> {
        let (partition, local_clock) = (self.partition, self.local.as_ref().map(|l| &l.clock));
        if partition.actors.has_forgotten_event(local_clock, &incoming.clock) {
            partition.raise_floor();
        }
        let is_seen = local_clock.is_some_and(|local| local.descends(&incoming.clock));
        if is_seen {
            // An answer may show the values, the digest covers them, and copies with equal clocks
            // may differ.
            self.load()?;
        }
        let replaced = self.replaced();
        let Some(mut local) = self.local else {
            return store_copy(partition, self.key, incoming, replaced, rules, rules.age_from_secs());
        };
        // A version that replaces the local one is no merge, and needs no look at the clock.
        let may_combine = is_seen || !incoming.clock.descends(&local.clock);
        let timer = may_combine.then(|| MergeTimer::start(rules.deadline)).flatten();
        let merged = local.merge(incoming);
        let combined_in = timer.filter(|_| merged == Merged::Combined).map(MergeTimer::stop);
        if is_broken(BrokenRule::ReplicasKeepSiblings) {
            local.keep_newest();
        }
        if merged == Merged::KeptLocal {
            return already_stored(partition, self.key, local, self.local_seq);
        }
        let age_from_secs = match merged {
            Merged::Combined => rules.age_from_secs().max(age_from_stored(self.local_stored_secs, rules.now)),
            Merged::TookIncoming | Merged::KeptLocal => rules.age_from_secs(),
        };
        let written = store_copy(partition, self.key, local, replaced, rules, age_from_secs)?;
        Ok(Written { combined_in, ..written })
    }

    /// Removes the key if it still holds exactly the version with this digest, and the version is a
    /// tombstone or has expired.
    pub fn reap(self, expected: u64, now: UnixMicros) -> Result<bool, Failure> {
        self.reap_behind_fence(expected, now, || ())
    }

    /// [`Self::reap`] that raises a fence first: from then on copies of the key that were read
    /// before are refused (docs/design/replication.md §6).
    pub fn reap_behind_fence(
        self,
        expected: u64,
        now: UnixMicros,
        raise_fence: impl FnOnce(),
    ) -> Result<bool, Failure> {
        if !self.local.as_ref().is_some_and(|local| local.is_absent(now)) {
            return Ok(false);
        }
        raise_fence();
        self.remove(expected, Origin::Reap)
    }

    /// Stores a version anew that is set aside, because another replica has it, too, or because an
    /// operator wants it. Returns nothing if another version has taken its place. Blocks.
    pub fn take_back(self, expected: u64, now: UnixMicros) -> Result<Option<Written>, Failure> {
        let Some(found) = self.set_aside(expected)? else { return Ok(None) };
        let object = self.partition.decode(self.key, &found)?;
        let age_from_secs = age_from_stored(found.stored_secs, now);
        append(self.partition, self.key, object, self.replaced(), Origin::Repair, None, age_from_secs).map(Some)
    }

    /// Removes a version that is set aside. Returns whether it was still there. Blocks.
    pub fn drop_set_aside(self, expected: u64) -> Result<bool, Failure> {
        let is_there = self.set_aside(expected)?.is_some();
        Ok(is_there && self.partition.delete_if((self.key, expected), None)?.is_some())
    }

    fn set_aside(&self, expected: u64) -> Result<Option<Stored>, Failure> {
        let found = self.partition.read_set_aside(self.key)?;
        Ok(found.filter(|found| self.local.is_none() && found.digest == expected))
    }

    fn remove(self, expected: u64, origin: Origin) -> Result<bool, Failure> {
        let removed = self.partition.delete_if((self.key, expected), self.known_clock())?;
        Ok(self.tell_removed(removed, origin))
    }

    fn tell_removed(&self, removed: Option<Appended>, origin: Origin) -> bool {
        let Some(removed) = removed else { return false };
        self.partition.tell(self.key, self.local.as_ref(), None, (removed.seq, origin));
        true
    }

    /// Removes the key if it still holds exactly the version with this digest. The caller has
    /// proved that every primary of the class durably holds that version or a descendant
    /// (docs/design/replication.md §4), and that this node is no primary of it.
    pub fn remove_proven(self, proven: u64) -> Result<bool, Failure> {
        if is_broken(BrokenRule::OnlyProvenVersionsAreRemoved) {
            let removed = self.partition.delete_any(self.key, self.known_clock())?;
            return Ok(self.tell_removed(removed, Origin::Handoff));
        }
        self.remove(proven, Origin::Handoff)
    }
}

/// What a write takes the place of.
pub(super) struct Replaced {
    /// The version, for observers.
    old: Option<Object>,
    /// Whether it may have been added to.
    is_grown: bool,
    /// Its index entries.
    entries: Vec<IndexEntry>,
    /// The hash of its clock, for kept trees.
    clock: Option<KnownClock>,
}

/// Drops what a new event replaces anyway: the expired siblings, or all siblings if the object has
/// expired as a whole, tombstones included. Its clock stays.
fn keep_what_lives(local: &mut Object, now: UnixMicros) {
    if !local.is_deleted() && local.is_absent(now) {
        local.siblings.clear();
    }
    local.drop_expired(now);
}

/// Ends a write that has nothing to write. The existing version may still lack its sync, and a
/// store that accepts no more writes may have lost it. In that case the repeated write fails as the
/// first one did.
pub(super) fn already_stored(partition: &Partition, key: &[u8], object: Object, seq: u64) -> Result<Written, Failure> {
    if !partition.store().is_synced(seq) {
        partition.store().check_writable(key)?;
    }
    let digest = digest(&object);
    let replaced_entries = Vec::new();
    Ok(Written { object, seq, is_new: false, digest, addition: None, combined_in: None, replaced_entries })
}

fn check_siblings(object: &Object, key: &[u8], rules: &WriteRules<'_>) -> Result<(), Error> {
    let count = object.siblings.len();
    if count > rules.limits.siblings_max {
        return Err(Error::TooManySiblings(u32::try_from(count).unwrap_or(u32::MAX)));
    }
    if count > rules.limits.siblings_warn && count > 1 {
        let at = ShownKey::of(key);
        warn!(bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, siblings = count, "many siblings");
    }
    Ok(())
}

fn check_size(bytes: u64, key: &[u8], rules: &WriteRules<'_>) -> Result<(), Error> {
    if bytes > rules.limits.bytes_max {
        return Err(Error::TooLarge { bytes, bytes_max: rules.limits.bytes_max });
    }
    if bytes > rules.limits.bytes_warn {
        let at = ShownKey::of(key);
        warn!(bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, bytes, "large object");
    }
    Ok(())
}

/// Stores the result of a merge.
fn store_copy(
    partition: &Partition,
    key: &[u8],
    mut object: Object,
    replaced: Replaced,
    rules: &MergeRules<'_>,
    age_from_secs: u32,
) -> Result<Written, Failure> {
    unite_values(partition.kinds(), &mut object);
    rules.begin(key)?;
    append(partition, key, object, replaced, rules.origin, None, age_from_secs)
}

/// The object after an operation: the values of the kind that the local copy has are merged into
/// one, to which the operation is applied under a new event. The clock of the client is not added:
/// the new value contains only what the local copy has, so it must not replace anything else. Plain
/// values stay beside the new value, unless the client has seen them.
fn operate(
    kind: &dyn ValueKind,
    partition: &Partition,
    local: Option<Object>,
    incoming: Object,
    rules: &WriteRules<'_>,
    now: UnixMicros,
) -> Result<Object, Error> {
    let seen = &incoming.clock;
    let [operation] = &incoming.siblings[..] else {
        return Err(Error::Unsupported("an operation is one value".into()));
    };
    let mut object = local.unwrap_or_default();
    object.siblings.retain(|sibling| !sibling.meta.deleted && !sibling.is_expired(now));
    let actor = if kind.begins(rules.props, &object.siblings) {
        partition.actors.new_epoch()
    } else {
        let mut events = None::<VectorClock>;
        for value in object.siblings.iter().filter(|sibling| sibling.meta.kind == kind.number()) {
            events.get_or_insert_default().merge(&value.events());
        }
        partition.actor_of_value(&object.clock, events.as_ref(), seen)
    };
    let event = object.clock.increment(&actor, now);
    let before: Vec<_> = object.siblings.iter().map(|s| (s.meta.dot.clone(), s.events().into_owned())).collect();
    let mut value = kind.apply(rules.props, &mut object.siblings, operation, &event)?;
    if let Some(state) = value.meta.of_kind.as_deref_mut() {
        let stays = |dot: &Option<Dot>| object.siblings.iter().any(|s| s.meta.dot == *dot);
        state.events = VectorClock::from_entries([event.clone()]);
        before.iter().filter(|(dot, _)| !stays(dot)).for_each(|(_, events)| state.events.merge(events));
    }
    value.meta.dot = Some(event);
    value.meta.vtag.clone_from(&operation.meta.vtag);
    value.meta.last_modified = Some(now);
    value.meta.expires_secs = operation.meta.expires_secs;
    let is_seen = |sibling: &Sibling| sibling.meta.dot.as_ref().is_some_and(|dot| seen.contains(dot));
    object.siblings.retain(|sibling| !is_seen(sibling));
    object.siblings.push(value);
    object.clock.prune(&rules.pruning(), now);
    // The events of a value are among those of the clock.
    for state in object.siblings.iter_mut().filter_map(|sibling| sibling.meta.of_kind.as_deref_mut()) {
        let kept = state.events.entries().iter().filter(|event| object.clock.counter(&event.actor) > 0);
        state.events = VectorClock::from_entries(kept.cloned());
    }
    Ok(object)
}

/// Appends a version. The limits apply to clients' writes (`rules`), not to versions that other
/// nodes have already accepted. `age_from_secs` is the time from which the age of the version
/// counts, in Unix seconds.
pub(super) fn append(
    partition: &Partition,
    key: &[u8],
    object: Object,
    replaced: Replaced,
    origin: Origin,
    rules: Option<&WriteRules<'_>>,
    age_from_secs: u32,
) -> Result<Written, Failure> {
    let Replaced { old, is_grown, entries: replaced_entries, clock } = replaced;
    let (digest, clocks) = (digest(&object), partition.clocks(clock, &object.clock));
    let appended = HEAD_BUFFER.with_borrow_mut(|head| {
        head.clear();
        head.shrink_to(HEAD_BUFFER_BYTES_KEPT);
        stored_object::encode_head(&object, head);
        if let Some(rules) = rules {
            check_size(head.len() as u64 + object.value_bytes(), key, rules)?;
        }
        let body: SmallVec<[&[u8]; 4]> = object.siblings.iter().map(|s| &s.value[..]).collect();
        let write = write_of(&object, key, (head, &body), digest, age_from_secs);
        partition.put(&write, is_grown, clocks).map_err(|e| write_failed(partition, key, e))
    })?;
    partition.tell(key, old.as_ref(), Some(&object), (appended.seq, origin));
    let seq = appended.seq;
    Ok(Written { object, seq, is_new: true, digest, addition: None, combined_in: None, replaced_entries })
}

/// The write of an object in these bytes: its head, and its values or what is added to one.
pub(super) fn write_of<'a>(
    object: &Object,
    key: &'a [u8],
    (head, body): (&'a [u8], &'a [&'a [u8]]),
    digest: u64,
    tstamp_secs: u32,
) -> Write<'a> {
    let has_terms = object.index_entries().next().is_some();
    Write { key, head, body, digest, tstamp_secs, expires_secs: expires_secs(object), has_terms }
}

/// The time after which a store hides the object; 0 means never. An object with some expiring
/// siblings gets the largest time instead of 0: a store in which nothing expires tells queries that
/// they need not look for expiring siblings.
fn expires_secs(object: &Object) -> u32 {
    let mixed = || object.siblings.iter().any(|s| s.meta.expires_secs.is_some());
    object.expires_secs().unwrap_or_else(|| if mixed() { u32::MAX } else { 0 })
}

pub(super) fn write_failed(partition: &Partition, key: &[u8], e: StorageError) -> Failure {
    // It is unknown whether a part of the append reached the disk, so its event must not be issued
    // again.
    partition.raise_floor();
    let (at, partition) = (ShownKey::of(key), partition.number());
    error!(partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, error = %e, "write refused");
    e.into()
}
