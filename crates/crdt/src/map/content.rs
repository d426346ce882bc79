//! What the fields of a map hold.

use super::fields::Fields;
use crate::counter::Tally;
use crate::dot_map::{DotMap, Dots};
use crate::field::FieldType;
use crate::members::Members;
use crate::{Clock, Dot};
use bytes::Bytes;
use ombak_types::Actor;

/// A value of a register. The later one wins, and of two at the same time the larger.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Assignment {
    /// When it was assigned, in microseconds since 1970.
    pub(crate) time_us: u64,
    pub(crate) value: Bytes,
}

/// What a field holds, under the dots of the requests that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Each actor has its tally under the dot of its newest request.
    Counter(DotMap<Tally>),
    /// Each concurrent request has the value that it left.
    Register(DotMap<Assignment>),
    Map(Fields),
    /// The requests that enabled the flag.
    Flag(Dots),
    Set(Members),
}

impl Content {
    /// The content of a field that nobody has written.
    pub(crate) fn new(kind: FieldType) -> Self {
        match kind {
            FieldType::Counter => Self::Counter(DotMap::default()),
            FieldType::Register => Self::Register(DotMap::default()),
            FieldType::Map => Self::Map(Fields::default()),
            FieldType::Flag => Self::Flag(Dots::default()),
            FieldType::Set => Self::Set(Members::default()),
        }
    }

    /// Removes what a context has seen.
    pub(crate) fn subtract(&mut self, context: &Clock) {
        match self {
            Self::Counter(tallies) => tallies.subtract(context),
            Self::Register(values) => values.subtract(context),
            Self::Map(fields) => fields.subtract(context),
            Self::Flag(dots) => dots.subtract(context),
            Self::Set(members) => members.remove_all(context),
        }
    }

    /// Merges another copy. With `is_delta` it has only those members and fields that a request
    /// named; then the others stay as they are.
    pub(crate) fn join(&mut self, clock: &Clock, other: &Self, other_clock: &Clock, is_delta: bool) {
        match (self, other) {
            (Self::Counter(ours), Self::Counter(theirs)) => *ours = ours.join(clock, theirs, other_clock),
            (Self::Register(ours), Self::Register(theirs)) => *ours = ours.join(clock, theirs, other_clock),
            (Self::Flag(ours), Self::Flag(theirs)) => *ours = ours.join(clock, theirs, other_clock),
            (Self::Map(ours), Self::Map(theirs)) => ours.join(clock, theirs, other_clock, is_delta),
            (Self::Set(ours), Self::Set(theirs)) if is_delta => ours.join_parts(clock, theirs, other_clock),
            (Self::Set(ours), Self::Set(theirs)) => ours.join(clock, theirs, other_clock),
            // The field's type decides about the content, so there is no other case.
            _ => {}
        }
    }

    /// Adds all dots to a list.
    pub(crate) fn list_dots<'a>(&'a self, dots: &mut Vec<&'a Dot>) {
        match self {
            Self::Counter(tallies) => dots.extend(tallies.dots()),
            Self::Register(values) => dots.extend(values.dots()),
            Self::Map(fields) => fields.list_dots(dots),
            Self::Flag(enabled) => dots.extend(enabled.dots()),
            Self::Set(members) => dots.extend(members.dots()),
        }
    }
}

/// The value of a counter in a map.
pub(crate) fn sum(tallies: &DotMap<Tally>) -> i128 {
    tallies.iter().fold(0, |sum, (_, tally)| sum.saturating_add(tally.value()))
}

/// The tally of an actor.
pub(crate) fn tally_of(tallies: &DotMap<Tally>, actor: &Actor) -> Tally {
    tallies.iter().filter(|(dot, _)| dot.actor == *actor).map(|(_, tally)| *tally).max().unwrap_or_default()
}

/// The value that a register shows.
pub(crate) fn winner(values: &DotMap<Assignment>) -> Option<&Assignment> {
    values.iter().map(|(_, value)| value).max()
}
