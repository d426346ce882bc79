//! Values under the dots that wrote them: the leaf of every causal data type.

use crate::{Clock, Dot};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Values by the dot of the event that wrote them. A member of a set has `()` as its values.
///
/// Invariants: The dots are ordered and distinct. A dot names one value wherever it is; if forged
/// bytes break this rule, the larger value stays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DotMap<V> {
    entries: SmallVec<[(Dot, V); 1]>,
}

/// Dots without values.
pub(crate) type Dots = DotMap<()>;

impl<V> Default for DotMap<V> {
    fn default() -> Self {
        Self { entries: SmallVec::new() }
    }
}

impl<V: Clone + Ord> DotMap<V> {
    /// One value under one dot.
    pub(crate) fn of(dot: Dot, value: V) -> Self {
        Self { entries: SmallVec::from_iter([(dot, value)]) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Dot, &V)> {
        self.entries.iter().map(|(dot, value)| (dot, value))
    }

    pub(crate) fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.entries.iter().map(|(dot, _)| dot)
    }

    /// Sets the value of a dot, unless it has a larger one.
    pub(crate) fn insert(&mut self, dot: Dot, value: V) {
        match self.entries.binary_search_by(|(other, _)| other.cmp(&dot)) {
            Ok(at) if self.entries[at].1 < value => self.entries[at].1 = value,
            Ok(_) => {}
            Err(at) => self.entries.insert(at, (dot, value)),
        }
    }

    /// Removes what a clock has seen.
    pub(crate) fn subtract(&mut self, clock: &Clock) {
        self.entries.retain(|(dot, _)| !clock.has_seen(dot));
    }

    /// The merge of two copies: what both have, and what one has and the other has not seen. What
    /// one copy has seen and does not have, it has removed or replaced.
    pub(crate) fn join(&self, clock: &Clock, other: &Self, other_clock: &Clock) -> Self {
        let mut joined = Self::default();
        let (mut ours, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (Some((ours, _)), Some((theirs, _))) => ours.cmp(theirs),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return joined,
            };
            let (our, their) = (ours.next_if(|_| order.is_le()), theirs.next_if(|_| order.is_ge()));
            let kept = match (our, their) {
                (Some((dot, our)), Some((_, their))) => Some((dot, our.max(their))),
                (our, their) => {
                    let our = our.filter(|(dot, _)| !other_clock.has_seen(dot));
                    our.or(their.filter(|(dot, _)| !clock.has_seen(dot)))
                }
            };
            joined.entries.extend(kept.map(|(dot, value)| (dot.clone(), value.clone())));
        }
    }
}

impl<V: Clone + Ord> FromIterator<(Dot, V)> for DotMap<V> {
    fn from_iter<I: IntoIterator<Item = (Dot, V)>>(entries: I) -> Self {
        let mut entries: SmallVec<[(Dot, V); 1]> = entries.into_iter().collect();
        // What was stored is in order already.
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Of each dot the largest value comes first, and stays.
            entries.sort_by(|(a, value_a), (b, value_b)| a.cmp(b).then_with(|| value_b.cmp(value_a)));
            entries.dedup_by(|(later, _), (kept, _)| later == kept);
        }
        Self { entries }
    }
}

#[cfg(test)]
mod tests;
