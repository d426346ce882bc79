//! Counters: Riak's `riak_dt_pncounter`, and the counters of Riak 1.4.

use ombak_types::Actor;
use std::collections::BTreeMap;

/// What one actor has added and subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tally {
    pub(crate) added: u128,
    pub(crate) subtracted: u128,
}

impl Tally {
    /// Adds an amount of either sign. 2^64 requests cannot reach the largest number.
    pub(crate) fn add(&mut self, amount: i64) {
        let size = u128::from(amount.unsigned_abs());
        let side = if amount < 0 { &mut self.subtracted } else { &mut self.added };
        *side = side.saturating_add(size);
    }

    /// What was added less what was subtracted, at most the largest number.
    pub(crate) fn value(self) -> i128 {
        let value = self.added.abs_diff(self.subtracted);
        let value = i128::try_from(value).unwrap_or(i128::MAX);
        if self.added < self.subtracted { -value } else { value }
    }

    /// Each side as large as in either tally.
    fn raised_to(self, other: Self) -> Self {
        Self { added: self.added.max(other.added), subtracted: self.subtracted.max(other.subtracted) }
    }
}

/// A counter. Each actor counts for itself; the value is the sum.
///
/// Invariants: An actor's tallies only grow. No actor has a tally of zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    tallies: BTreeMap<Actor, Tally>,
}

/// The tallies that a request changed. It is itself a counter, and needs no past: a newer delta of
/// the same actor contains an older one.
pub type CounterDelta = Counter;

impl Counter {
    /// The counter that nobody has changed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value.
    pub fn value(&self) -> i128 {
        self.tallies.values().fold(0, |sum, tally| sum.saturating_add(tally.value()))
    }

    /// What adding an amount of either sign changes. Adding nothing changes nothing.
    pub fn delta(&self, amount: i64, actor: &Actor) -> CounterDelta {
        let mut tally = self.tallies.get(actor).copied().unwrap_or_default();
        tally.add(amount);
        let mut delta = Self::new();
        if amount != 0 {
            delta.insert(actor.clone(), tally);
        }
        delta
    }

    /// Merges another copy, or a delta.
    pub fn merge(&mut self, other: &Self) {
        other.tallies.iter().for_each(|(actor, tally)| self.insert(actor.clone(), *tally));
    }

    /// How many actors have changed it.
    pub fn actor_count(&self) -> usize {
        self.tallies.len()
    }

    pub(crate) fn tallies(&self) -> impl Iterator<Item = (&Actor, &Tally)> {
        self.tallies.iter()
    }

    /// Raises the tally of an actor.
    pub(crate) fn insert(&mut self, actor: Actor, tally: Tally) {
        if tally != Tally::default() {
            let known = self.tallies.entry(actor).or_default();
            *known = known.raised_to(tally);
        }
    }
}

#[cfg(test)]
mod tests;
