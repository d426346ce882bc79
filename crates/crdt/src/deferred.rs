//! Removals that wait for the events that they are to remove.

use crate::Clock;
use std::collections::{BTreeMap, BTreeSet};

/// Removals by the context that their client sent.
///
/// A client may have seen events that a copy has not. The copy then removes what it has of them,
/// and keeps the removal until it has seen all of the context. A removal hits only dots that its
/// context has seen, so it may be applied again and again.
///
/// Invariants: No context is without removals. The owner of this list drops the contexts that its
/// clock descends, so that equal states are equal values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deferred<T> {
    by_context: BTreeMap<Clock, BTreeSet<T>>,
}

impl<T> Default for Deferred<T> {
    fn default() -> Self {
        Self { by_context: BTreeMap::new() }
    }
}

impl<T: Ord + Clone> Deferred<T> {
    /// How many contexts wait.
    pub(crate) fn len(&self) -> usize {
        self.by_context.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Clock, &BTreeSet<T>)> {
        self.by_context.iter()
    }

    pub(crate) fn insert(&mut self, context: &Clock, target: T) {
        self.by_context.entry(context.clone()).or_default().insert(target);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (context, targets) in &other.by_context {
            self.by_context.entry(context.clone()).or_default().extend(targets.iter().cloned());
        }
    }

    /// Drops the removals that have nothing left to wait for.
    pub(crate) fn settle(&mut self, clock: &Clock) {
        self.by_context.retain(|context, _| !clock.descends(context));
    }
}
