//! Vector clocks and dots.
//!
//! Facts: spec/semantics.md §2.1. A clock is a set of entries, one per actor; the stamps serve pruning and nothing else.

use crate::time::UnixMicros;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;

/// Who made an event. Ombak's own are 12 bytes (8 random ones per process start, 4 of key epoch); imported clocks
/// bring others.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Actor(SmallVec<[u8; 16]>);

impl Actor {
    /// From any bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(SmallVec::from_slice(bytes))
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// What a copy of an object has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock {
    entries: Vec<ClockEntry>,
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
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// From entries; of several for one actor the newest stays.
    pub fn from_entries(entries: impl IntoIterator<Item = ClockEntry>) -> Self {
        let mut clock = Self::new();
        for entry in entries {
            clock.join_entry(&entry);
        }
        clock
    }

    /// From entries that are known to name distinct actors, such as those of a stored clock; twins are joined.
    pub(crate) fn from_distinct(entries: Vec<ClockEntry>) -> Self {
        let distinct = entries.iter().enumerate().all(|(i, e)| entries[..i].iter().all(|o| o.actor != e.actor));
        if distinct { Self { entries } } else { Self::from_entries(entries) }
    }

    /// The entries, in no particular order.
    pub fn entries(&self) -> &[ClockEntry] {
        &self.entries
    }

    /// Whether it has seen nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many events of `actor` it has seen.
    pub fn counter(&self, actor: &Actor) -> u64 {
        self.entries.iter().find(|e| e.actor == *actor).map_or(0, |e| e.counter)
    }

    /// Whether it has seen this event.
    pub fn contains(&self, dot: &Dot) -> bool {
        self.counter(&dot.actor) >= dot.counter
    }

    /// Whether it has seen everything that `other` has.
    pub fn descends(&self, other: &Self) -> bool {
        other.entries.iter().all(|e| self.contains(e))
    }

    /// Whether it has seen everything that `other` has, and more.
    pub fn dominates(&self, other: &Self) -> bool {
        self.descends(other) && !other.descends(self)
    }

    /// Whether both have seen the same events (stamps do not count).
    pub fn same_events(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len() && self.descends(other) && other.descends(self)
    }

    /// Takes in everything that `other` has seen.
    pub fn merge(&mut self, other: &Self) {
        for entry in &other.entries {
            self.join_entry(entry);
        }
    }

    fn join_entry(&mut self, entry: &ClockEntry) {
        match self.entries.iter_mut().find(|e| e.actor == entry.actor) {
            None => self.entries.push(entry.clone()),
            Some(mine) => match mine.counter.cmp(&entry.counter) {
                Ordering::Less => *mine = entry.clone(),
                Ordering::Equal => mine.stamp_secs = mine.stamp_secs.max(entry.stamp_secs),
                Ordering::Greater => {}
            },
        }
    }

    /// Records the next event of `actor` and returns its dot. The entry moves to the front, as Riak's does.
    pub fn increment(&mut self, actor: &Actor, now: UnixMicros) -> Dot {
        let counter = match self.entries.iter().position(|e| e.actor == *actor) {
            Some(i) => self.entries.remove(i).counter + 1,
            None => 1,
        };
        let dot = Dot { actor: actor.clone(), counter, stamp_secs: now.gregorian_secs() };
        self.entries.insert(0, dot.clone());
        dot
    }

    /// Drops old entries of a long clock (spec/semantics.md §2.1). Only a coordinator may do this.
    pub fn prune(&mut self, limits: &Pruning, now: UnixMicros) {
        if self.entries.len() <= limits.small {
            return;
        }
        let now_secs = now.gregorian_secs();
        self.entries.sort_by(|a, b| b.stamp_secs.cmp(&a.stamp_secs).then_with(|| b.actor.cmp(&a.actor)));
        while self.entries.len() > limits.small {
            let Some(oldest) = self.entries.last() else { break };
            let age_secs = now_secs.saturating_sub(oldest.stamp_secs);
            if age_secs < limits.young_secs || (self.entries.len() <= limits.big && age_secs <= limits.old_secs) {
                break;
            }
            self.entries.pop();
        }
    }
}
