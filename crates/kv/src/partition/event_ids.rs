//! The actors of new events: the actor ids of this process and their epochs
//! (docs/design/replication.md §7).
//!
//! An actor is 8 random bytes of the process followed by 4 bytes of an epoch. These rules apply.
//! The tests in `histories.rs` show that without any one of the first three some histories lose
//! writes.
//!
//! 1. The 8 bytes are new at each start, without exception: `Engine::open` draws them.
//! 2. The first event on a key, as far as the local copy shows, takes a new epoch.
//! 3. An arriving copy that knows a newer own event than the local copy raises the *floor*: epochs
//!    that were issued before are never continued (`Locked::merge`).
//! 4. An unreadable copy is not an absent copy: it raises the floor (`Partition::note_unreadable`).
//! 5. A client's clock with a newer own event than the local copy's clock forces a new epoch.
//! 6. A write that failed may have reached the disk, so it raises the floor (`write_failed` in
//!    `locked.rs`).

use ombak_types::{Actor, VectorClock};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of an epoch. Epochs are issued as 64-bit tickets: the low half is the epoch in the
/// actor, and the high half counts how often the 32 bits overflowed. Each run of 2^32 epochs has an
/// id of its own.
pub type Ticket = u64;

/// Issues the actors of one process. All partitions share it, so that no epoch is issued twice.
#[derive(Debug)]
pub struct ActorSource {
    id: u64,
    next: AtomicU64,
}

/// An event of this process in a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OwnEvent {
    ticket: Ticket,
    counter: u64,
}

/// An odd number, so that every run of epochs gets a different id.
const RUN_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl ActorSource {
    /// The actors of a process that starts. `id` is random and was never used before.
    pub const fn new(id: u64) -> Self {
        Self::starting_at(id, 1)
    }

    pub(super) const fn starting_at(id: u64, next: Ticket) -> Self {
        Self { id, next: AtomicU64::new(next) }
    }

    /// The random id.
    #[cfg(test)]
    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// The next ticket. All tickets issued so far are smaller.
    pub fn next_ticket(&self) -> Ticket {
        self.next.load(Ordering::SeqCst)
    }

    /// Issues an actor that was never used before.
    pub fn new_epoch(&self) -> Actor {
        self.actor(self.next.fetch_add(1, Ordering::SeqCst))
    }

    /// The actor of the next event on a key. `local` is the clock of the local copy, and `incoming`
    /// the clock that the client has seen.
    pub fn actor_for_event(&self, local: Option<&VectorClock>, incoming: &VectorClock, floor: Ticket) -> Actor {
        let next = self.next_ticket();
        let continued = local
            .filter(|local| {
                self.newest_own(incoming, next, 0..Ticket::MAX) <= self.newest_own(local, next, 0..Ticket::MAX)
            })
            // An epoch that was never issued must be forged, so it is not continued.
            .and_then(|local| self.newest_own(local, next, floor..next));
        match continued {
            Some(own) => self.actor(own.ticket),
            None => self.new_epoch(),
        }
    }

    /// Whether an arriving copy knows a newer own event than the local copy: then the floor must
    /// rise.
    pub fn has_forgotten_event(&self, local: Option<&VectorClock>, incoming: &VectorClock) -> bool {
        let next = self.next_ticket();
        let newest = |clock| self.newest_own(clock, next, 0..Ticket::MAX);
        newest(incoming) > local.and_then(newest)
    }

    fn newest_own(&self, clock: &VectorClock, next: Ticket, tickets: Range<Ticket>) -> Option<OwnEvent> {
        let run = (next >> 32) << 32;
        let id = self.id_of(next).to_be_bytes();
        let own = clock.entries().iter().filter_map(|e| {
            let (head, epoch) = e.actor.as_bytes().split_first_chunk::<8>()?;
            let epoch = u32::from_be_bytes(epoch.try_into().ok()?);
            (*head == id).then(|| OwnEvent { ticket: run | Ticket::from(epoch), counter: e.counter })
        });
        own.filter(|e| tickets.contains(&e.ticket)).max()
    }

    fn id_of(&self, ticket: Ticket) -> u64 {
        self.id.wrapping_add((ticket >> 32).wrapping_mul(RUN_STEP))
    }

    fn actor(&self, ticket: Ticket) -> Actor {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.id_of(ticket).to_be_bytes());
        bytes[8..].copy_from_slice(&(ticket as u32).to_be_bytes());
        Actor::new(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::time::UnixMicros;

    fn clock(actors: &[&Actor]) -> VectorClock {
        let mut clock = VectorClock::new();
        actors.iter().for_each(|a| drop(clock.increment(a, UnixMicros(0))));
        clock
    }

    #[test]
    fn epochs_outlive_their_32_bits() {
        let source = ActorSource::starting_at(7, u64::from(u32::MAX));
        let last = source.new_epoch();
        let first = source.new_epoch();
        let second = source.new_epoch();
        assert_eq!(&last.as_bytes()[8..], [0xff; 4]);
        assert_eq!(&first.as_bytes()[8..], [0; 4]);
        assert_ne!(last.as_bytes()[..8], first.as_bytes()[..8], "a new run has another id");
        let held = clock(&[&last]);
        assert_eq!(source.actor_for_event(Some(&held), &held, 0).as_bytes()[..8], first.as_bytes()[..8]);
        let held = clock(&[&second]);
        assert_eq!(source.actor_for_event(Some(&held), &held, 0), second, "the present run is continued");
    }

    #[test]
    fn an_own_event_is_continued_only_above_the_floor() {
        let source = ActorSource::new(7);
        let mine = source.new_epoch();
        let held = clock(&[&mine]);
        assert_eq!(source.actor_for_event(Some(&held), &VectorClock::new(), 0), mine);
        assert_eq!(source.actor_for_event(Some(&held), &held, 0), mine);
        assert_ne!(source.actor_for_event(Some(&held), &held, source.next_ticket()), mine, "below the floor");
        assert_ne!(source.actor_for_event(None, &held, 0), mine, "no local copy");
        assert_ne!(
            source.actor_for_event(Some(&clock(&[&Actor::new(b"other")])), &held, 0),
            mine,
            "the client knows more"
        );
    }

    #[test]
    fn an_epoch_that_was_never_drawn_is_not_continued() {
        let source = ActorSource::new(7);
        let forged = ActorSource::starting_at(7, 1000).new_epoch();
        let held = clock(&[&forged]);
        assert_ne!(source.actor_for_event(Some(&held), &held, 0), forged);
    }
}
