//! The clock of a value: which events it has seen.

use crate::Dot;
use ombak_types::Actor;

/// The events that a value has seen: of each actor all up to a number. It is a version vector.
///
/// It is also the context that clients get with a value and send back with a removal.
///
/// Invariants: The entries are ordered by actor, actors are distinct, and counts are at least 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clock {
    entries: Vec<Dot>,
}

impl Clock {
    /// The clock that has seen no event.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Whether no event was seen.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many actors have events in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The newest event of each actor, ordered by actor.
    pub fn iter(&self) -> impl Iterator<Item = &Dot> {
        self.entries.iter()
    }

    /// The number of the newest event of an actor; 0 if none was seen.
    pub fn count_of(&self, actor: &Actor) -> u64 {
        self.find(actor).map_or(0, |at| self.entries[at].count)
    }

    /// Whether an event was seen.
    pub fn has_seen(&self, dot: &Dot) -> bool {
        self.count_of(&dot.actor) >= dot.count
    }

    /// Whether every event of `other` was seen.
    pub fn descends(&self, other: &Self) -> bool {
        other.iter().all(|dot| self.has_seen(dot))
    }

    /// Adds the next event of an actor, and returns it.
    pub fn increment(&mut self, actor: &Actor) -> Dot {
        let dot = Dot::new(actor.clone(), self.count_of(actor).saturating_add(1));
        self.see(&dot);
        dot
    }

    /// Adds an event, and with it all earlier events of its actor.
    pub fn see(&mut self, dot: &Dot) {
        if dot.count == 0 {
            return;
        }
        match self.find(&dot.actor) {
            Ok(at) => self.entries[at].count = self.entries[at].count.max(dot.count),
            Err(at) => self.entries.insert(at, dot.clone()),
        }
    }

    /// Adds the events of another clock.
    pub fn merge(&mut self, other: &Self) {
        if !self.descends(other) {
            *self = self.iter().chain(other.iter()).collect();
        }
    }

    fn find(&self, actor: &Actor) -> Result<usize, usize> {
        self.entries.binary_search_by(|dot| dot.actor.cmp(actor))
    }
}

impl<'a> FromIterator<&'a Dot> for Clock {
    /// The clock that has seen these events, and all earlier ones of their actors.
    fn from_iter<I: IntoIterator<Item = &'a Dot>>(dots: I) -> Self {
        let mut entries: Vec<Dot> = dots.into_iter().filter(|dot| dot.count > 0).cloned().collect();
        // Of each actor the newest event comes first, and stays.
        entries.sort_by(|a, b| a.actor.cmp(&b.actor).then(b.count.cmp(&a.count)));
        entries.dedup_by(|later, kept| later.actor == kept.actor);
        Self { entries }
    }
}
