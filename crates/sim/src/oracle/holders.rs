//! Who has stored what, and what each of them knew of the placement at that moment.
//!
//! What it is: for each host and key the events that the host has stored, as far as the clocks of
//! its versions tell. Where versions have no clocks, it knows nothing.
//!
//! What it is not: it does not read stores, and judges nothing.

use super::Key;
use super::copies::EventId;
use crate::world::HostId;
use std::collections::BTreeMap;

/// What a host has stored of a key.
#[derive(Debug)]
struct Stored {
    /// With all earlier events of the actor.
    event: EventId,
    /// The number of the home version that the host knew then, if anybody knows.
    known: Option<u64>,
    /// Whether the host has had it ever since.
    is_there: bool,
    /// Whether the host has removed it since, for good.
    is_removed: bool,
}

/// Who has stored what.
#[derive(Debug, Default)]
pub(super) struct Holders {
    stored: BTreeMap<(Key, HostId), Vec<Stored>>,
    homes: BTreeMap<Key, u32>,
    /// The events that some removed version had seen.
    removed: BTreeMap<Key, Vec<EventId>>,
}

fn covers((actor, counter): &EventId, (of, seen): &EventId) -> bool {
    actor == of && counter >= seen
}

impl Holders {
    /// A host stores a version with this clock. `known` is the number of the home version that it
    /// knows, if anybody else knows that.
    pub(super) fn stores(&mut self, host: HostId, key: Key, home: u32, clock: &[EventId], known: Option<u64>) {
        self.homes.insert(key, home);
        let stored = self.stored.entry((key, host)).or_default();
        for event in clock {
            if !stored.iter().any(|it| it.is_there && covers(&it.event, event)) {
                stored.push(Stored { event: event.clone(), known, is_there: true, is_removed: false });
            }
        }
    }

    /// A host removes its copy of a key, with this clock.
    pub(super) fn removes(&mut self, host: HostId, key: Key, clock: &[EventId]) {
        for it in self.stored.get_mut(&(key, host)).into_iter().flatten() {
            (it.is_there, it.is_removed) = (false, true);
        }
        self.removed.entry(key).or_default().extend_from_slice(clock);
    }

    /// A host may have lost what it has stored. What it has removed may be back.
    pub(super) fn may_have_lost(&mut self, host: HostId) {
        let of_host = self.stored.iter_mut().filter(|((_, of), _)| *of == host);
        of_host.flat_map(|(_, stored)| stored).for_each(|it| (it.is_there, it.is_removed) = (false, false));
    }

    /// Whether a host has stored an event since it removed the key last. It may have lost it.
    pub(super) fn has_stored(&self, host: HostId, key: Key, event: &EventId) -> bool {
        let mut stored = self.stored.get(&(key, host)).into_iter().flatten();
        stored.any(|it| !it.is_removed && covers(&it.event, event))
    }

    /// The oldest home version that a host may have known when it stored an event.
    pub(super) fn known_at(&self, host: HostId, key: Key, event: &EventId) -> Option<u64> {
        let stored = self.stored.get(&(key, host))?;
        stored.iter().filter(|it| covers(&it.event, event)).map(|it| it.known.unwrap_or(0)).min()
    }

    /// The events that a host has held since before it knew a version of the home, each with all
    /// earlier ones of its actor.
    pub(super) fn held_before(&self, host: HostId, key: Key, home_version: u64) -> impl Iterator<Item = &EventId> {
        let stored = self.stored.get(&(key, host)).into_iter().flatten();
        stored.filter(move |it| it.is_there && it.known.is_some_and(|known| known < home_version)).map(|it| &it.event)
    }

    /// Whether somebody has removed a version that had seen an event.
    pub(super) fn was_removed(&self, key: Key, event: &EventId) -> bool {
        self.removed.get(&key).is_some_and(|removed| removed.iter().any(|it| covers(it, event)))
    }

    /// The home of a key that was stored.
    pub(super) fn home_of(&self, key: Key) -> Option<u32> {
        self.homes.get(&key).copied()
    }

    /// Something of a key was stored in this home.
    #[cfg(test)]
    pub(super) fn note_home(&mut self, key: Key, home: u32) {
        self.homes.insert(key, home);
    }

    /// The keys of a home that were stored.
    pub(super) fn keys_of(&self, home: u32) -> Vec<Key> {
        self.homes.iter().filter(|(_, of)| **of == home).map(|(key, _)| *key).collect()
    }
}
