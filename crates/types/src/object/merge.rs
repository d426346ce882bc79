//! The merge of two copies of one object by clock alone, as replicas, read repair, handoff and
//! readers do it.
//!
//! * The copy whose clock has seen more replaces the other one.
//! * Of concurrent copies each sibling stays that the other copy has, too, or whose event the other
//!   copy has not seen. So the merge goes by dots, whatever the bucket's `dvv_enabled` says: every
//!   value that was coordinated has a dot. A value without one stays.
//! * Copies with equal clocks have equal siblings, unless they come from elsewhere (an import, a
//!   forged clock). Then all siblings stay, except that those without a dot go if the other copy
//!   has dots alone: a client that sends a version again (`asis`) knows its clock and not its dots.
//! * A value of a kind ([`Sibling::is_of_a_kind`]) has many events. It stays beside a concurrent
//!   copy that has not seen all of them. Whoever knows the kind makes one value of several. Which
//!   of its events were deleted beside further ones can depend on the order of merges. Copies with
//!   equal clocks then have values of different events, and their merge has both.
//! * Of two forms of a tombstone the one that has lost its time stays (docs/design/replication.md
//!   §6).
//! * Of two copies without a clock (`write_once`) the one with the larger [`UnclockedRank`] stays.
//!
//! Invariant: for copies that coordinators have made, and copies merged from them, the result does
//! not depend on the order or grouping of merges, and merging a copy twice changes nothing. It
//! holds because a clock determines the siblings beside it: whoever adds an event to a clock has
//! replaced what the event replaced ([`Object::coordinate`]). Pruned clocks are an exception, as in
//! Riak.
//!
//! Hot path: a copy that has seen more is moved without comparing contents.

use super::{Object, Sibling, order};
use std::cmp::Reverse;

/// The result of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The local copy already had everything: nothing must be stored.
    KeptLocal,
    /// The incoming copy had everything that the local copy has, and more.
    TookIncoming,
    /// Each copy had something that the other lacked.
    Combined,
}

/// The rank of a copy without a clock. Of two such copies the one with the larger rank stays: a
/// value beats a tombstone, then the one that expires later, then the one with the smaller digest.
/// So an expired copy never replaces a living one, and no copy's rank depends on the time at which
/// it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnclockedRank {
    is_value: bool,
    expires_secs: u32,
    digest: Reverse<u64>,
}

impl UnclockedRank {
    /// The rank of a copy, of which the values need not be known: a digest says what they are. The
    /// lowest bit of the digest does not count.
    pub fn new(head: &Object, digest: u64) -> Self {
        let expires_secs = head.expires_secs().unwrap_or(u32::MAX);
        Self { is_value: !head.is_deleted(), expires_secs, digest: Reverse(digest >> 1) }
    }
}

impl Object {
    /// Merges another copy into this one.
    pub fn merge(&mut self, incoming: Self) -> Merged {
        if incoming.siblings.is_empty() && self.clock.descends(&incoming.clock) {
            return Merged::KeptLocal;
        }
        match (self.clock.descends(&incoming.clock), incoming.clock.descends(&self.clock)) {
            (true, false) if !self.siblings.is_empty() => Merged::KeptLocal,
            (false, true) => self.become_copy(incoming),
            (true, true) if self.siblings.is_empty() => self.become_copy(incoming),
            (true, true) if self.clock.is_empty() => self.merge_unclocked(incoming),
            (true, true) => self.unite(incoming.siblings),
            _ => self.combine(incoming),
        }
    }

    fn become_copy(&mut self, incoming: Self) -> Merged {
        *self = incoming;
        self.order_siblings();
        Merged::TookIncoming
    }

    /// Both copies have their values: a digest covers them.
    fn merge_unclocked(&mut self, incoming: Self) -> Merged {
        let rank = |object: &Self| UnclockedRank::new(object, object.digest());
        if rank(self) >= rank(&incoming) { Merged::KeptLocal } else { self.become_copy(incoming) }
    }

    /// Adds the siblings of a copy with the same clock.
    fn unite(&mut self, incoming: Vec<Sibling>) -> Merged {
        let has_dot = |sibling: &Sibling| sibling.meta.dot.is_some();
        let has_dots_alone = self.siblings.iter().all(has_dot) || incoming.iter().all(has_dot);
        let mine = std::mem::take(&mut self.siblings);
        let count = mine.len();
        for sibling in mine.into_iter().filter(|sibling| !has_dots_alone || has_dot(sibling)) {
            self.add(sibling);
        }
        // A copy from elsewhere may have had a sibling twice.
        let mut is_changed = self.siblings.len() != count;
        for sibling in incoming.into_iter().filter(|sibling| !has_dots_alone || has_dot(sibling)) {
            is_changed |= self.add(sibling);
        }
        if !is_changed {
            return Merged::KeptLocal;
        }
        self.order_siblings();
        Merged::Combined
    }

    /// Merges a copy with a concurrent clock.
    fn combine(&mut self, incoming: Self) -> Merged {
        let theirs_stay: Vec<bool> = incoming.siblings.iter().map(|s| s.outlives(self)).collect();
        let mine_stay: Vec<bool> = self.siblings.iter().map(|s| s.outlives(&incoming)).collect();
        // Each clock claims to have replaced what the other copy has. Only forged clocks do that;
        // a copy always has contents, so all of them stay.
        let keeps_all = !theirs_stay.contains(&true) && !mine_stay.contains(&true);
        let mut stays = mine_stay.into_iter();
        self.siblings.retain(|_| stays.next().unwrap_or(true) || keeps_all);
        for (sibling, stays) in incoming.siblings.into_iter().zip(theirs_stay) {
            if stays || keeps_all {
                self.add(sibling);
            }
        }
        self.clock.merge(&incoming.clock);
        self.order_siblings();
        Merged::Combined
    }

    /// Adds a sibling unless it is there. Returns whether that changed anything. Of two siblings of
    /// one event the larger one stays: that of a head, which has no value, is the smaller one.
    pub(super) fn add(&mut self, sibling: Sibling) -> bool {
        let has_it = |mine: &Sibling| {
            mine.meta.kind == sibling.meta.kind && !mine.value.is_empty() && mine.events().descends(&sibling.events())
        };
        if sibling.is_of_a_kind() && self.siblings.iter().any(has_it) {
            // The bytes of a value of a kind say nothing, but a head has none.
            return false;
        }
        match self.siblings.iter_mut().find(|mine| mine.is_same_as(&sibling)) {
            Some(mine) if mine.is_replaced_by(&sibling) => *mine = sibling,
            Some(_) => return false,
            None => self.siblings.push(sibling),
        }
        true
    }
}

impl Sibling {
    /// Whether the sibling stays beside a concurrent copy. It goes if that copy has seen its events
    /// and no longer has it.
    fn outlives(&self, other: &Object) -> bool {
        if self.is_of_a_kind() {
            let events = self.events();
            let has_it = |s: &Self| s.meta.kind == self.meta.kind && s.events().descends(&events);
            return !other.clock.descends(&events) || other.siblings.iter().any(has_it);
        }
        match &self.meta.dot {
            Some(dot) if other.clock.contains(dot) => other.siblings.iter().any(|s| s.same_event(self)),
            _ => true,
        }
    }

    /// Whether another form of the same event takes the place of this one. A tombstone that has
    /// lost its time never gets it back.
    fn is_replaced_by(&self, other: &Self) -> bool {
        let has_time = |s: &Self| s.meta.last_modified.is_some();
        if self.meta.deleted && other.meta.deleted && has_time(self) != has_time(other) {
            return has_time(self);
        }
        order::compare(self, other).is_lt()
    }

    /// Values of different events are different values, even if their bytes are equal. Values of a
    /// kind with the same events are the same value, even if their bytes differ.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        if self.is_of_a_kind() || other.is_of_a_kind() {
            return self.meta.kind == other.meta.kind && self.events().same_events(&other.events());
        }
        match (&self.meta.dot, &other.meta.dot) {
            (Some(mine), Some(theirs)) => mine.same_event(theirs),
            _ => self.same_content(other),
        }
    }
}
