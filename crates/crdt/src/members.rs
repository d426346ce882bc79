//! The members of a set with their dots, at the top or inside a map.

use crate::dot_map::Dots;
use crate::{Clock, Dot};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Members by their bytes, with the dots of the requests that added them.
///
/// In a state no member is without dots. In a delta a member without dots is one that the request
/// removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Members {
    by_name: BTreeMap<Bytes, Dots>,
}

impl Members {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Bytes, &Dots)> {
        self.by_name.iter()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Bytes> {
        self.by_name.keys()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn get(&self, name: &Bytes) -> Option<&Dots> {
        self.by_name.get(name)
    }

    pub(crate) fn contains(&self, name: &Bytes) -> bool {
        self.by_name.contains_key(name)
    }

    /// Sets the dots of a member, also to none.
    pub(crate) fn set(&mut self, name: Bytes, dots: Dots) {
        self.by_name.insert(name, dots);
    }

    /// Removes from a member what a context has seen.
    pub(crate) fn remove(&mut self, name: &Bytes, context: &Clock) {
        let Some(dots) = self.by_name.get_mut(name) else { return };
        dots.subtract(context);
        if dots.is_empty() {
            self.by_name.remove(name);
        }
    }

    /// Removes from all members what a context has seen.
    pub(crate) fn remove_all(&mut self, context: &Clock) {
        self.by_name.retain(|_, dots| {
            dots.subtract(context);
            !dots.is_empty()
        });
    }

    /// Merges the members that a delta names.
    pub(crate) fn join_parts(&mut self, clock: &Clock, parts: &Self, parts_clock: &Clock) {
        for (name, theirs) in &parts.by_name {
            let ours = self.by_name.get(name).cloned().unwrap_or_default();
            let joined = ours.join(clock, theirs, parts_clock);
            if joined.is_empty() {
                self.by_name.remove(name);
            } else {
                self.by_name.insert(name.clone(), joined);
            }
        }
    }

    /// Merges another copy: all members that either has.
    pub(crate) fn join(&mut self, clock: &Clock, other: &Self, other_clock: &Clock) {
        let absent = Dots::default();
        self.by_name.retain(|name, dots| {
            *dots = dots.join(clock, other.by_name.get(name).unwrap_or(&absent), other_clock);
            !dots.is_empty()
        });
        for (name, theirs) in &other.by_name {
            if !self.by_name.contains_key(name) {
                let joined = absent.join(clock, theirs, other_clock);
                if !joined.is_empty() {
                    self.by_name.insert(name.clone(), joined);
                }
            }
        }
    }

    /// Drops the members without dots, of which only a delta tells.
    pub(crate) fn drop_empty(&mut self) {
        self.by_name.retain(|_, dots| !dots.is_empty());
    }

    /// All dots of all members.
    pub(crate) fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.by_name.values().flat_map(Dots::dots)
    }

    /// The most dots that one member has.
    pub(crate) fn dots_max(&self) -> usize {
        self.by_name.values().map(Dots::len).max().unwrap_or(0)
    }
}

impl FromIterator<(Bytes, Dots)> for Members {
    fn from_iter<I: IntoIterator<Item = (Bytes, Dots)>>(members: I) -> Self {
        Self { by_name: members.into_iter().collect() }
    }
}
