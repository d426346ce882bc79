//! Conditional puts: of several with the same precondition at most one is acknowledged
//! (docs/design/replication.md §17).

use super::Key;
use super::copies::{EventId, Token};
use super::key_history::KeyHistory;
use super::rules::Oracle;
use super::violation::Violation;
use crate::bucket_kinds::Merging;
use ombak_types::VectorClock;
use std::collections::BTreeMap;

/// The conditional puts that were acknowledged.
#[derive(Default)]
pub(super) struct Conditions {
    /// Which write was acknowledged for the version with a clock.
    replaced: BTreeMap<(Key, Vec<EventId>), Token>,
    /// The writes that were acknowledged for a key without a value.
    created: BTreeMap<Key, Vec<Token>>,
}

impl Oracle {
    /// A put was acknowledged that replaces exactly the version with this clock.
    pub fn condition_held(&mut self, key: Key, clock: &VectorClock, token: Token) {
        let events = clock.entries().iter().map(|entry| (entry.actor.as_bytes().to_vec(), entry.counter));
        let clock: Vec<EventId> = events.collect();
        let is_destroyed = |first: &Token| self.keys[&key].writes[first].is_destroyed;
        // What a fault has destroyed has brought back the version that it replaced.
        let earlier = self.conditions.replaced.get(&(key, clock.clone())).copied();
        let first = earlier.filter(|first| !is_destroyed(first)).unwrap_or(token);
        self.conditions.replaced.insert((key, clock), first);
        if first != token {
            self.broken(Violation::TwoWithOneCondition { key: key.to_string(), first, second: token });
        }
    }

    /// A put was acknowledged whose condition was that the key has no value.
    pub fn absence_held(&mut self, key: Key, token: Token) {
        let history = &self.keys[&key];
        let created = self.conditions.created.entry(key).or_default();
        let first = created.iter().copied().find(|first| !may_be_absent_after(history, key, *first, token));
        created.push(token);
        if let Some(first) = first {
            self.broken(Violation::TwoForNoValue { key: key.to_string(), first, second: token });
        }
    }
}

/// Whether a key may have had no value when `second` was executed, although `first` was
/// acknowledged: a fault has destroyed `first`, or a delete may have come between the two. Where
/// the latest time decides, a delete from before both may win over `first`.
fn may_be_absent_after(history: &KeyHistory, key: Key, first: Token, second: Token) -> bool {
    let write = &history.writes[&first];
    let is_lww = key.kind.merging == Merging::LastWriteWins;
    let may_be_deleted = history.may_be_deleted(first.min(second));
    write.is_destroyed || write.is_outlived || may_be_deleted || is_lww && history.writes.values().any(|w| w.is_delete)
}
