//! Sets from which members can be removed: Riak's `riak_dt_orswot`.
//!
//! A member is in the set because of the dots of the requests that added it. A removal removes the
//! dots that its client has seen, so an addition that is concurrent to it stays: add wins.

use crate::deferred::Deferred;
use crate::members::Members;
use crate::{Absent, Clock, MissingPast, Refusal};
use bytes::Bytes;
use ombak_types::Actor;

/// A set with additions and removals.
///
/// Invariants: The clock has seen every dot of every member. No removal waits for a context that
/// the clock descends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    pub(crate) clock: Clock,
    pub(crate) members: Members,
    pub(crate) deferred: Deferred<Bytes>,
}

/// One operation on a set. The operations of a request are applied in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// Adds a member.
    Add(Bytes),
    /// Removes a member.
    Remove(Bytes),
}

/// What a request changed in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetDelta {
    /// What the state had seen before the request.
    pub(crate) before: Clock,
    /// What it had seen after it.
    pub(crate) after: Clock,
    /// The members that the request named, as they are after it.
    pub(crate) members: Members,
    /// The removals with their contexts.
    pub(crate) removals: Deferred<Bytes>,
}

impl Set {
    /// The empty set that nobody has changed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The members in the order of their bytes.
    pub fn members(&self) -> impl Iterator<Item = &Bytes> {
        self.members.names()
    }

    /// Whether it has a member.
    pub fn contains(&self, member: &Bytes) -> bool {
        self.members.contains(member)
    }

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The context that a client sends back with a removal.
    pub fn context(&self) -> &Clock {
        &self.clock
    }

    /// How many contexts removals wait for.
    pub fn deferred_len(&self) -> usize {
        self.deferred.len()
    }

    /// The most dots that one member has.
    pub fn dots_max(&self) -> usize {
        self.members.dots_max()
    }

    /// What a request changes. Each addition is an event of `actor`.
    ///
    /// With a context, a removal removes what the context has seen. It waits if the set has not
    /// seen all of the context. Without one it removes the member as it is here.
    ///
    /// # Errors
    /// [`Refusal::NotPresent`]: a removal without a context names what is not a member.
    pub fn delta(&self, ops: &[SetOp], actor: &Actor, context: Option<&Clock>) -> Result<SetDelta, Refusal> {
        Self::plan(&self.clock, ops, actor, context, |member| self.contains(member))
    }

    /// What a request changes that does not depend on the members: one that removes nothing, or has
    /// a context. `None` for other requests; they need [`Set::delta`]. `clock` is what the set has
    /// seen.
    pub fn delta_of_clock(clock: &Clock, ops: &[SetOp], actor: &Actor, context: Option<&Clock>) -> Option<SetDelta> {
        if context.is_none() && ops.iter().any(|op| matches!(op, SetOp::Remove(_))) {
            return None;
        }
        Self::plan(clock, ops, actor, context, |_| false).ok()
    }

    fn plan(
        clock: &Clock,
        ops: &[SetOp],
        actor: &Actor,
        context: Option<&Clock>,
        is_member: impl Fn(&Bytes) -> bool,
    ) -> Result<SetDelta, Refusal> {
        let mut delta = SetDelta::new(clock.clone());
        for op in ops {
            match (op, context) {
                (SetOp::Add(member), _) => {
                    let dot = delta.after.increment(actor);
                    delta.members.set(member.clone(), FromIterator::from_iter([(dot, ())]));
                }
                (SetOp::Remove(member), Some(context)) => delta.removals.insert(context, member.clone()),
                (SetOp::Remove(member), None) => {
                    let is_present = match delta.members.get(member) {
                        Some(dots) => !dots.is_empty(),
                        None => is_member(member),
                    };
                    if !is_present {
                        return Err(Refusal::NotPresent(Absent::Member(member.clone())));
                    }
                    delta.members.set(member.clone(), Default::default());
                }
            }
        }
        Ok(delta)
    }

    /// Merges what a request changed in another copy. Merging it again changes nothing.
    ///
    /// # Errors
    /// [`MissingPast`]: this copy has not seen what the delta builds on. Nothing is changed.
    pub fn merge_delta(&mut self, delta: &SetDelta) -> Result<(), MissingPast> {
        if !self.clock.descends(&delta.before) {
            return Err(MissingPast);
        }
        self.members.join_parts(&self.clock, &delta.members, &delta.after);
        self.clock.merge(&delta.after);
        self.deferred.merge(&delta.removals);
        self.apply_deferred();
        Ok(())
    }

    /// Merges another copy.
    pub fn merge(&mut self, other: &Self) {
        self.members.join(&self.clock, &other.members, &other.clock);
        self.clock.merge(&other.clock);
        self.deferred.merge(&other.deferred);
        self.apply_deferred();
    }

    pub(crate) fn apply_deferred(&mut self) {
        for (context, removed) in self.deferred.iter() {
            removed.iter().for_each(|member| self.members.remove(member, context));
        }
        self.deferred.settle(&self.clock);
    }
}

impl SetDelta {
    fn new(clock: Clock) -> Self {
        Self { after: clock.clone(), before: clock, members: Members::default(), removals: Deferred::default() }
    }

    /// What the set has seen when the delta is merged.
    pub fn after(&self) -> &Clock {
        &self.after
    }
}

#[cfg(test)]
mod tests;
