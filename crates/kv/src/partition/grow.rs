//! Operations that add to a large value in place of writing all of it.
//!
//! A value of a kind that is large has a summary in its head
//! ([`KindState`](ombak_types::KindState)). An operation on it is stored as bytes behind the value,
//! and the other replicas get these bytes alone.
//!
//! Invariant: a replica adds bytes only if its copy has all events that the coordinator's clock had
//! before the operation, and its value all that the coordinator's value had. So a copy that has
//! seen an event has all that the event's coordinator had seen, as with whole values
//! (docs/design/datatypes.md).

use super::locked::{Locked, Written, already_stored, append, write_failed, write_of};
use super::partition::Partition;
use super::rules::age_from_secs;
use super::{Access, Failure, MergeRules, WriteRules, digest};
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::hooks::{Growth, ValueKind};
use bytes::Bytes;
use ombak_storage::Origin;
use ombak_types::object::KindState;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Dot, Object, ShownKey, Sibling, SiblingMeta, VectorClock, stored_object};
use tracing::warn;

/// A version whose value is the present one and bytes behind it.
struct Grown {
    /// The head, without the value.
    object: Object,
    /// The bytes of the present value.
    kept_bytes: u64,
    added: Bytes,
    origin: Origin,
}

/// What became of an addition at a replica.
pub(crate) enum Added {
    /// It is stored.
    Stored(Written),
    /// The value lacks an earlier addition, which may be on its way.
    TooEarly,
    /// The copy here needs the whole value.
    Lacks,
}

impl Locked<'_> {
    /// Stores an operation as an addition to the value that is here. `None`: nothing was stored,
    /// and the operation must be applied to the whole value ([`Self::coordinate`]). `seen` is the
    /// client's clock.
    ///
    /// A network thread gets [`Failure::WouldBlock`], because a part of a large value may have to
    /// be synced.
    pub(crate) fn grow(
        &mut self,
        kind: &dyn ValueKind,
        operation: &Sibling,
        seen: &VectorClock,
        vtag: &[u8],
        rules: &WriteRules<'_>,
    ) -> Result<Option<Written>, Failure> {
        let Some((local, meta, state, kept_bytes)) = self.large_value(kind.number()) else { return Ok(None) };
        if meta.expires_secs.is_some_and(|at| u64::from(at) < rules.now.secs()) {
            return Ok(None);
        }
        if self.access == Access::Inline {
            return Err(Failure::WouldBlock);
        }
        let now = self.time_after(rules.now);
        let actor = self.partition.actor_of_value(&local.clock, Some(&state.events), seen);
        let mut clock = local.clock.clone();
        let event = clock.increment(&actor, now);
        let mut pruned = clock.clone();
        pruned.prune(&rules.pruning(), now);
        if pruned != clock {
            // A copy that has not seen the entry would take what builds on it.
            return Ok(None);
        }
        let mut meta = SiblingMeta {
            vtag: Some(Bytes::copy_from_slice(vtag)),
            last_modified: Some(now),
            dot: Some(event.clone()),
            expires_secs: operation.meta.expires_secs,
            of_kind: None,
            ..meta.clone()
        };
        let (mut state, mut value) = (state.clone(), None);
        let (added, summary) = loop {
            match kind.grow(rules.props, &state.summary, value.as_ref(), operation, &event)? {
                Growth::Added { bytes, summary } => break (bytes, summary),
                Growth::NeedsValue if value.is_none() => {
                    self.load()?;
                    value = self.local.as_ref().and_then(|whole| whole.siblings.first().cloned());
                }
                Growth::NeedsValue | Growth::Whole => return Ok(None),
            }
        };
        rules.begin(self.key)?;
        state.events.merge(&VectorClock::from_entries([event]));
        meta.of_kind = Some(Box::new(KindState { summary, ..state }));
        let object = Object { clock, siblings: vec![Sibling { value: Bytes::new(), meta }] };
        let grown = Grown { object, kept_bytes, added, origin: Origin::Coordinated };
        self.extend(kind, grown, Some(rules), rules.now).map(Some)
    }

    /// Adds what an operation has added at its coordinator, if the copy here has what the operation
    /// builds on.
    pub(crate) fn add(&mut self, incoming: &Object, rules: &MergeRules<'_>) -> Result<Added, Failure> {
        let Some((added, dot, theirs)) = addition(incoming) else { return Ok(Added::Lacks) };
        let Some(known) = self.local.as_ref().map(|local| local.clock.contains(dot)) else { return Ok(Added::Lacks) };
        if known {
            if self.local.as_ref().is_some_and(|local| local.siblings.iter().any(|s| !s.is_of_a_kind())) {
                // The digest covers plain values.
                self.load()?;
            }
            let local = self.local.take().unwrap_or_default();
            return already_stored(self.partition, self.key, local, self.local_seq).map(Added::Stored);
        }
        let Some((local, meta, state, kept_bytes)) = self.large_value(added.meta.kind) else { return Ok(Added::Lacks) };
        let has_past =
            local.clock.descends(&incoming.clock.before(dot)) && state.events.descends(&theirs.events.before(dot));
        if !has_past && !is_broken(BrokenRule::AdditionsBuildOnTheirPast) {
            return Ok(Added::TooEarly);
        }
        let partition = self.partition;
        let kind = partition.kinds().iter().find(|kind| kind.number() == added.meta.kind);
        let grown = kind.and_then(|kind| Some((&**kind, kind.grown(&state.summary, &added.value)?)));
        let Some((kind, summary)) = grown else { return Ok(Added::Lacks) };
        if self.access == Access::Inline {
            return Err(Failure::WouldBlock);
        }
        rules.begin(self.key)?;
        if self.partition.actors.has_forgotten_event(Some(&local.clock), &incoming.clock) {
            self.partition.raise_floor();
        }
        let event = VectorClock::from_entries([dot.clone()]);
        let (mut clock, mut events) = (local.clock.clone(), state.events.clone());
        clock.merge(&event);
        events.merge(&event);
        let age = |meta: &SiblingMeta| (meta.last_modified, meta.vtag.clone());
        let newest = if age(meta) < age(&added.meta) { &added.meta } else { meta };
        let meta = SiblingMeta { of_kind: Some(Box::new(KindState { events, summary })), ..newest.clone() };
        let object = Object { clock, siblings: vec![Sibling { value: Bytes::new(), meta }] };
        let grown = Grown { object, kept_bytes, added: added.value.clone(), origin: rules.origin };
        self.extend(kind, grown, None, rules.now).map(Added::Stored)
    }

    /// Whether the only value is a large one of a kind.
    pub(crate) fn is_large(&self, kind: u16) -> bool {
        self.large_value(kind).is_some()
    }

    /// The current version, if its only value is a large one of a kind: the metadata, what is known
    /// of the value, and its bytes.
    fn large_value(&self, kind: u16) -> Option<(&Object, &SiblingMeta, &KindState, u64)> {
        let (local, bytes) = (self.local.as_ref()?, self.grown_bytes?);
        let [Sibling { meta, .. }] = local.siblings.as_slice() else { return None };
        let state = meta.of_kind.as_deref().filter(|state| meta.kind == kind && !state.summary.is_empty())?;
        Some((local, meta, state, bytes))
    }

    /// Appends a version whose value is the present one and bytes behind it, or folds the bytes
    /// into the value if there are too many. The limits apply to clients' writes (`rules`).
    fn extend(
        &mut self,
        kind: &dyn ValueKind,
        grown: Grown,
        rules: Option<&WriteRules<'_>>,
        now: UnixMicros,
    ) -> Result<Written, Failure> {
        let state = grown.object.siblings.first().and_then(|value| value.meta.of_kind.as_ref());
        if state.is_some_and(|state| kind.must_fold(&state.summary)) {
            return self.fold(kind, grown, rules, now);
        }
        let Grown { object, kept_bytes, added, origin } = grown;
        let (partition, key) = (self.partition, self.key);
        let (digest, bytes) = (digest(&object), kept_bytes + added.len() as u64);
        let mut head = Vec::new();
        stored_object::encode_head_of_length(&object, bytes, &mut head);
        if rules.is_some_and(|rules| head.len() as u64 + bytes > rules.limits.bytes_max) {
            // The folded value may be small enough: the operation may be a removal.
            return self.fold(kind, Grown { object, kept_bytes, added, origin }, rules, now);
        }
        let body: &[&[u8]] = &[&added];
        let write = write_of(&object, key, (&head, body), digest, age_from_secs(now));
        let clocks = partition.clocks(self.known_clock(), &object.clock);
        let appended = partition.extend(&write, (kept_bytes, self.access.read_mode()), clocks);
        let appended = appended.map_err(|e| write_failed(partition, key, e))?;
        partition.tell(key, self.old().as_ref(), Some(&object), (appended.seq, origin));
        let (seq, replaced_entries) = (appended.seq, self.replaced_entries());
        Ok(Written { object, seq, is_new: true, digest, addition: Some(added), combined_in: None, replaced_entries })
    }

    /// Appends a version whose value is the present one with the bytes in it. Other replicas get
    /// the bytes alone: each folds its own value.
    fn fold(
        &mut self,
        kind: &dyn ValueKind,
        grown: Grown,
        rules: Option<&WriteRules<'_>>,
        now: UnixMicros,
    ) -> Result<Written, Failure> {
        let Grown { mut object, added, origin, .. } = grown;
        self.load()?;
        let present = self.local.as_ref().and_then(|local| local.siblings.first()).map(|value| &value.value[..]);
        for sibling in &mut object.siblings {
            sibling.value = [present.unwrap_or_default(), &added].concat().into();
            *sibling = kind.fold(std::mem::take(sibling))?;
        }
        let written = append(self.partition, self.key, object, self.replaced(), origin, rules, age_from_secs(now))?;
        Ok(Written { addition: Some(added), ..written })
    }
}

impl Partition {
    /// The actor of the next event of a value with these events, on a copy with this clock.
    /// `events` is `None` for values that do not tell them.
    ///
    /// The value goes on with the actor of earlier events only if it has all of them. Others belong
    /// to a value that was deleted. A copy from before the delete would take what the actor does
    /// now for what it did then (docs/design/datatypes.md).
    pub(super) fn actor_of_value(
        &self,
        clock: &VectorClock,
        events: Option<&VectorClock>,
        seen: &VectorClock,
    ) -> Actor {
        let actor = self.actors.actor_for_event(Some(clock), seen, self.floor());
        let has_all = events.is_none_or(|events| events.counter(&actor) == clock.counter(&actor));
        if has_all { actor } else { self.actors.new_epoch() }
    }

    /// What a put has stored, with the value if only something was added to it. A value that cannot
    /// be read stays empty, because the put is done. Called under the key's lock. Blocks.
    pub(crate) fn with_value(&self, key: &[u8], written: Written) -> Written {
        let has_value = |object: &Object| object.siblings.iter().all(|sibling| !sibling.value.is_empty());
        if written.addition.is_none() || has_value(&written.object) {
            return written;
        }
        match self.get(key, Access::Blocking) {
            Ok(Some(object)) => Written { object, ..written },
            failed => {
                let (at, partition) = (ShownKey::of(key), self.number());
                let what = "a value that was added to is not shown";
                warn!(partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, ?failed, "{what}");
                written
            }
        }
    }
}

/// The value that an addition is for, its event, and what its coordinator knew of the value.
fn addition(incoming: &Object) -> Option<(&Sibling, &Dot, &KindState)> {
    let [added] = incoming.siblings.as_slice() else { return None };
    Some((added, added.meta.dot.as_ref()?, added.meta.of_kind.as_deref()?))
}
