//! Vector clocks and dots.
//!
//! Facts: docs/riak/semantics.md §2.1. A clock is a set of entries, one per actor. The timestamps
//! are used only for pruning.
//!
//! Hot path: every get decodes clocks, every put compares and extends them. A clock stores up to
//! two entries inline.
//!
//! Invariants: Entries are ordered by actor and have distinct actors, so that equal clocks are
//! equal as values, and comparing and merging take time linear in their lengths. An actor is at
//! most 255 bytes long.

use crate::time::UnixMicros;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;

/// The maximum length of an actor, in bytes: one byte stores it.
pub const ACTOR_BYTES_MAX: usize = 255;

/// The maximum number of entries that a client's clock may have, and that pruning leaves whatever
/// their age. Riak prunes at 50.
pub const ENTRIES_MAX: usize = 4096;

/// The maximum counter of a clock from outside. No actor reaches it, and incrementing it cannot
/// overflow.
pub(crate) const COUNTER_MAX: u64 = 1 << 62;

/// The actor that made an event. Ombak's own actors have 12 bytes (8 random bytes per process
/// start, 4 bytes of key epoch); imported clocks have others.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Actor(SmallVec<[u8; 16]>);

impl Actor {
    /// Creates an actor from at most [`ACTOR_BYTES_MAX`] bytes.
    ///
    /// # Panics
    /// If there are more bytes. For bytes from outside use [`Actor::try_new`].
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= ACTOR_BYTES_MAX, "an actor of {} bytes", bytes.len());
        Self(SmallVec::from_slice(bytes))
    }

    /// Creates an actor from any bytes; `None` if there are more than [`ACTOR_BYTES_MAX`].
    pub fn try_new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= ACTOR_BYTES_MAX).then(|| Self(SmallVec::from_slice(bytes)))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// One event of one actor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dot {
    /// The actor of the event.
    pub actor: Actor,
    /// The number of the event among the actor's events on this key, from 1.
    pub counter: u64,
    /// The time of the event in Gregorian seconds; not part of the dot's identity.
    pub stamp_secs: u64,
}

impl Dot {
    /// Whether both dots name the same event. Timestamps are ignored.
    pub(crate) fn same_event(&self, other: &Self) -> bool {
        self.counter == other.counter && self.actor == other.actor
    }
}

/// The newest event of one actor that a clock has seen.
pub type ClockEntry = Dot;

type Entries = SmallVec<[ClockEntry; 2]>;

/// The events that a copy of an object has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock {
    entries: Entries,
}

/// The limits for pruning clocks (bucket properties `small_vclock`, `big_vclock`, `young_vclock`,
/// `old_vclock`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Clocks up to this many entries are never pruned.
    pub small: usize,
    /// Clocks with more than this many entries lose old entries.
    pub big: usize,
    /// Entries younger than this many seconds are kept.
    pub young_secs: u64,
    /// Entries older than this many seconds are dropped.
    pub old_secs: u64,
}

impl VectorClock {
    /// The clock that has seen no event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a clock from entries in any order. Of several entries of one actor the newest is
    /// kept.
    pub fn from_entries(entries: impl IntoIterator<Item = ClockEntry>) -> Self {
        let mut entries: Entries = entries.into_iter().collect();
        // Stored clocks are already sorted; only other clocks are sorted here.
        if !entries.is_sorted_by(|a, b| a.actor < b.actor) {
            entries.sort_by(|a, b| a.actor.cmp(&b.actor));
            entries.dedup_by(|later, kept| {
                let same_actor = later.actor == kept.actor;
                if same_actor {
                    join(kept, later);
                }
                same_actor
            });
        }
        Self { entries }
    }

    /// The entries, ordered by actor.
    pub fn entries(&self) -> &[ClockEntry] {
        &self.entries
    }

    /// Whether the clock has seen no event.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, actor: &Actor) -> Result<usize, usize> {
        self.entries.binary_search_by(|e| e.actor.cmp(actor))
    }

    /// The counter of the newest event of `actor` that the clock has seen.
    pub fn counter(&self, actor: &Actor) -> u64 {
        self.position(actor).ok().and_then(|i| self.entries.get(i)).map_or(0, |e| e.counter)
    }

    /// Whether the clock has seen this event.
    pub fn contains(&self, dot: &Dot) -> bool {
        self.counter(&dot.actor) >= dot.counter
    }

    /// What the clock had seen before its newest event of an actor.
    pub fn before(&self, newest: &Dot) -> Self {
        let earlier = |entry: &ClockEntry| match entry.actor == newest.actor {
            true => (newest.counter > 1).then(|| ClockEntry { counter: newest.counter - 1, ..entry.clone() }),
            false => Some(entry.clone()),
        };
        Self { entries: self.entries.iter().filter_map(earlier).collect() }
    }

    /// Whether the clock has seen all events that `other` has seen.
    pub fn descends(&self, other: &Self) -> bool {
        let mut mine = self.entries.iter().peekable();
        other.entries.iter().all(|theirs| {
            while mine.next_if(|e| e.actor < theirs.actor).is_some() {}
            let seen = mine.peek().filter(|e| e.actor == theirs.actor).map_or(0, |e| e.counter);
            seen >= theirs.counter
        })
    }

    /// Whether the clock has seen all events that `other` has seen, and at least one more.
    pub fn dominates(&self, other: &Self) -> bool {
        self.descends(other) && !other.descends(self)
    }

    /// Whether both clocks have seen the same events. Timestamps are ignored.
    pub fn same_events(&self, other: &Self) -> bool {
        self.descends(other) && other.descends(self)
    }

    /// Adds all events that `other` has seen.
    pub fn merge(&mut self, other: &Self) {
        if self.entries.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut mine = std::mem::take(&mut self.entries).into_iter().peekable();
        let mut theirs = other.entries.iter().peekable();
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (Some(a), Some(b)) => a.actor.cmp(&b.actor),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            match order {
                Ordering::Less => self.entries.extend(mine.next()),
                Ordering::Greater => self.entries.extend(theirs.next().cloned()),
                Ordering::Equal => {
                    self.entries.extend(mine.next().zip(theirs.next()).map(|(mut entry, other)| {
                        join(&mut entry, other);
                        entry
                    }));
                }
            }
        }
    }

    /// Records the next event of `actor` and returns its dot.
    pub fn increment(&mut self, actor: &Actor, now: UnixMicros) -> Dot {
        let place = self.position(actor);
        let seen = place.ok().and_then(|i| self.entries.get(i)).map_or(0, |e| e.counter);
        assert!(seen < u64::MAX, "decoders refuse counters above {COUNTER_MAX}");
        let dot = Dot { actor: actor.clone(), counter: seen + 1, stamp_secs: now.gregorian_secs() };
        match place {
            Ok(i) => self.entries[i] = dot.clone(),
            Err(i) => self.entries.insert(i, dot.clone()),
        }
        dot
    }

    /// Drops old entries of a long clock (docs/riak/semantics.md §2.1). Only a coordinator may do
    /// this.
    ///
    /// Above [`ENTRIES_MAX`] entries even young entries are dropped, because timestamps in the
    /// future, which a client can forge, never get old.
    pub fn prune(&mut self, limits: &Pruning, now: UnixMicros) {
        if self.entries.len() <= limits.small {
            return;
        }
        let now_secs = now.gregorian_secs();
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by(|a, b| b.stamp_secs.cmp(&a.stamp_secs).then_with(|| b.actor.cmp(&a.actor)));
        while entries.len() > limits.small {
            let Some(oldest) = entries.last() else { break };
            let age_secs = now_secs.saturating_sub(oldest.stamp_secs);
            let too_young = age_secs < limits.young_secs;
            let short_enough = entries.len() <= limits.big && age_secs <= limits.old_secs;
            if (too_young || short_enough) && entries.len() <= ENTRIES_MAX {
                break;
            }
            entries.pop();
        }
        entries.sort_by(|a, b| a.actor.cmp(&b.actor));
        self.entries = entries;
    }
}

/// Joins two entries of one actor: the newer one wins, and of equal ones the later timestamp.
fn join(entry: &mut ClockEntry, other: &ClockEntry) {
    match entry.counter.cmp(&other.counter) {
        Ordering::Less => entry.clone_from(other),
        Ordering::Equal => entry.stamp_secs = entry.stamp_secs.max(other.stamp_secs),
        Ordering::Greater => {}
    }
}

#[cfg(test)]
mod tests;
