//! Vector clocks and dots.
//!
//! Facts: docs/riak/semantics.md §2.1. A clock is a set of entries, one per actor; the stamps serve pruning and nothing else.
//!
//! Hot path: every get decodes clocks, every put compares and extends them. Up to two entries live in the clock itself.
//!
//! Invariants: entries are ordered by actor and name distinct actors, so that equal clocks are equal as values, and
//! comparing and merging take time linear in their lengths. An actor is at most 255 bytes long.

use crate::time::UnixMicros;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;

/// The longest actor, in bytes: its length is stored in one.
pub const ACTOR_BYTES_MAX: usize = 255;

/// The most entries that a client's clock may bring, and that pruning leaves whatever their age. Riak prunes at 50.
pub const ENTRIES_MAX: usize = 4096;

/// The largest counter that a clock from outside may carry: no actor gets there, and counting on from it cannot
/// overflow.
pub const COUNTER_MAX: u64 = 1 << 62;

/// Who made an event. Ombak's own are 12 bytes (8 random ones per process start, 4 of key epoch); imported clocks
/// bring others.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Actor(SmallVec<[u8; 16]>);

impl Actor {
    /// From bytes that are known to be few.
    ///
    /// # Panics
    /// If there are more than [`ACTOR_BYTES_MAX`]; bytes from outside go through [`Actor::try_new`].
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= ACTOR_BYTES_MAX, "an actor of {} bytes", bytes.len());
        Self(SmallVec::from_slice(bytes))
    }

    /// From any bytes; `None` if there are more than [`ACTOR_BYTES_MAX`].
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
    /// Who made it.
    pub actor: Actor,
    /// The actor's how-manieth event on this key.
    pub counter: u64,
    /// When, in Gregorian seconds; not part of the dot's identity.
    pub stamp_secs: u64,
}

impl Dot {
    /// Whether both name the same event; stamps do not count.
    pub fn same_event(&self, other: &Self) -> bool {
        self.counter == other.counter && self.actor == other.actor
    }
}

/// The newest event of one actor that a clock has seen.
pub type ClockEntry = Dot;

type Entries = SmallVec<[ClockEntry; 2]>;

/// What a copy of an object has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock {
    entries: Entries,
}

/// When a clock gives up entries (bucket properties `small_vclock` and its kin).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Clocks up to this many entries are never pruned.
    pub small: usize,
    /// Above this many, old entries go.
    pub big: usize,
    /// Entries younger than this many seconds stay.
    pub young_secs: u64,
    /// Entries older than this many seconds go.
    pub old_secs: u64,
}

impl VectorClock {
    /// A clock that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// From entries in any order; of several for one actor the newest stays.
    pub fn from_entries(entries: impl IntoIterator<Item = ClockEntry>) -> Self {
        let mut entries: Entries = entries.into_iter().collect();
        // Stored clocks come in order; sorting is for those of others.
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

    /// Whether it has seen nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, actor: &Actor) -> Result<usize, usize> {
        self.entries.binary_search_by(|e| e.actor.cmp(actor))
    }

    /// How many events of `actor` it has seen.
    pub fn counter(&self, actor: &Actor) -> u64 {
        self.position(actor).ok().and_then(|i| self.entries.get(i)).map_or(0, |e| e.counter)
    }

    /// Whether it has seen this event.
    pub fn contains(&self, dot: &Dot) -> bool {
        self.counter(&dot.actor) >= dot.counter
    }

    /// Whether it has seen everything that `other` has.
    pub fn descends(&self, other: &Self) -> bool {
        let mut mine = self.entries.iter().peekable();
        other.entries.iter().all(|theirs| {
            while mine.next_if(|e| e.actor < theirs.actor).is_some() {}
            let seen = mine.peek().filter(|e| e.actor == theirs.actor).map_or(0, |e| e.counter);
            seen >= theirs.counter
        })
    }

    /// Whether it has seen everything that `other` has, and more.
    pub fn dominates(&self, other: &Self) -> bool {
        self.descends(other) && !other.descends(self)
    }

    /// Whether both have seen the same events (stamps do not count).
    pub fn same_events(&self, other: &Self) -> bool {
        self.descends(other) && other.descends(self)
    }

    /// Takes in everything that `other` has seen.
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

    /// Drops old entries of a long clock (docs/riak/semantics.md §2.1). Only a coordinator may do this.
    ///
    /// Past [`ENTRIES_MAX`] even young entries go: stamps from the future, which a client can forge, never age.
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

/// The newer of two entries of one actor; of equals the later stamp.
fn join(entry: &mut ClockEntry, other: &ClockEntry) {
    match entry.counter.cmp(&other.counter) {
        Ordering::Less => entry.clone_from(other),
        Ordering::Equal => entry.stamp_secs = entry.stamp_secs.max(other.stamp_secs),
        Ordering::Greater => {}
    }
}

#[cfg(test)]
mod tests;
