//! Maps: Riak's `riak_dt_map`, with fields that are counters, registers, maps, flags and sets.
//!
//! A field is in the map because of the dots of the requests that updated it. Removing a field
//! removes what the client has seen of it, at every depth; what was written concurrently stays.
//! Counters are the exception that Riak makes: a tally that was raised concurrently stays whole.

mod content;
mod fields;
mod plan;
mod removal;
mod value;

pub use value::FieldValue;

pub(crate) use content::{Assignment, Content};
pub(crate) use fields::{Entry, Fields};
pub(crate) use removal::{Removal, Target};

use crate::deferred::Deferred;
use crate::field::Field;
use crate::{Clock, MissingPast, Refusal, SetOp};
use bytes::Bytes;
use ombak_types::Actor;
use plan::Plan;

/// How deep maps nest at most.
pub const MAP_DEPTH_MAX: usize = 32;

/// A map.
///
/// Invariants: The clock has seen every dot in the fields. No removal waits for a context that the
/// clock descends. Maps nest at most [`MAP_DEPTH_MAX`] deep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    pub(crate) clock: Clock,
    pub(crate) fields: Fields,
    pub(crate) deferred: Deferred<Removal>,
}

/// One operation on a map. The operations of a request are applied in their order; Riak's clients
/// expect removals to come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapOp {
    /// Removes a field.
    Remove(Field),
    /// Updates a field, and makes it if it does not exist.
    Update(Field, FieldOp),
}

/// What a request does with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldOp {
    /// Adds an amount of either sign.
    Counter(i64),
    /// Assigns a value.
    Register {
        /// The value.
        value: Bytes,
        /// The time of the assignment, in microseconds since 1970.
        time_us: u64,
    },
    /// Updates the map in the field.
    Map(Vec<MapOp>),
    /// Enables or disables.
    Flag(bool),
    /// Updates the set.
    Set(Vec<SetOp>),
}

/// What a request changed in a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDelta {
    /// What the state had seen before the request.
    pub(crate) before: Clock,
    /// What it had seen after it.
    pub(crate) after: Clock,
    /// What the request wrote: a part of the tree.
    pub(crate) fields: Fields,
    /// The removals with their contexts.
    pub(crate) removals: Deferred<Removal>,
}

impl Map {
    /// The empty map that nobody has changed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The fields with their values, in the order in which Riak shows them.
    pub fn value(&self) -> Vec<(Field, FieldValue)> {
        value::of_fields(&self.fields)
    }

    /// The context that a client sends back with a removal.
    pub fn context(&self) -> &Clock {
        &self.clock
    }

    /// How many fields the map at the top has.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// How many contexts removals wait for.
    pub fn deferred_len(&self) -> usize {
        self.deferred.len()
    }

    /// How many more dots the fields have than there are fields: what concurrent requests left.
    pub fn duplication(&self) -> usize {
        self.fields.iter().map(|(_, entry)| entry.presence.len() - 1).sum()
    }

    /// What a request changes. The whole request is one event of `actor`, also if it changes
    /// nothing else.
    ///
    /// With a context, removals remove what the context has seen, and wait for what the map has not
    /// seen of it. Without one they remove what is here.
    ///
    /// # Errors
    /// [`Refusal::NotPresent`]: a removal without a context names what is not present.
    /// [`Refusal::WrongType`]: an operation does not fit its field's type.
    /// [`Refusal::TooDeep`]: maps nest deeper than [`MAP_DEPTH_MAX`].
    pub fn delta(&self, ops: &[MapOp], actor: &Actor, context: Option<&Clock>) -> Result<MapDelta, Refusal> {
        Plan::new(&self.clock, actor, context).run(ops, &self.fields)
    }

    /// Merges what a request changed in another copy. Merging it again changes nothing.
    ///
    /// # Errors
    /// [`MissingPast`]: this copy has not seen what the delta builds on. Nothing is changed.
    pub fn merge_delta(&mut self, delta: &MapDelta) -> Result<(), MissingPast> {
        if !self.clock.descends(&delta.before) {
            return Err(MissingPast);
        }
        self.fields.join(&self.clock, &delta.fields, &delta.after, true);
        self.clock.merge(&delta.after);
        self.deferred.merge(&delta.removals);
        self.apply_deferred();
        Ok(())
    }

    /// Merges another copy.
    pub fn merge(&mut self, other: &Self) {
        self.fields.join(&self.clock, &other.fields, &other.clock, false);
        self.clock.merge(&other.clock);
        self.deferred.merge(&other.deferred);
        self.apply_deferred();
    }

    pub(crate) fn apply_deferred(&mut self) {
        for (context, removals) in self.deferred.iter() {
            removals.iter().for_each(|removal| self.fields.remove(removal, context));
        }
        self.deferred.settle(&self.clock);
    }
}

impl MapDelta {
    fn new(clock: Clock) -> Self {
        Self { after: clock.clone(), before: clock, fields: Fields::default(), removals: Deferred::default() }
    }

    /// What the map has seen when the delta is merged.
    pub fn after(&self) -> &Clock {
        &self.after
    }
}

#[cfg(test)]
mod tests;
