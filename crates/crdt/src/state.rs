//! A value of any data type.

use crate::codec;
use crate::{
    BadBytes, CannotMerge, Clock, Counter, Delta, Field, FieldValue, GSet, Hll, Map, Precision, Refusal, Request,
    RiakCounter, RiakValue, Set,
};
use bytes::Bytes;
use ombak_types::Actor;
use ombak_types::props::DataType;

/// A value of any data type, with all that merging needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A counter.
    Counter(Counter),
    /// A set.
    Set(Set),
    /// A set that only grows.
    GSet(GSet),
    /// A map.
    Map(Map),
    /// A HyperLogLog.
    Hll(Hll),
}

/// What a client sees of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The sum of a counter.
    Counter(i128),
    /// The members of a set, in the order of their bytes.
    Set(Vec<Bytes>),
    /// The members of a set that only grows, in the order of their bytes.
    GSet(Vec<Bytes>),
    /// The fields of a map, in the order of their names and types.
    Map(Vec<(Field, FieldValue)>),
    /// The estimate of a HyperLogLog.
    Hll(u64),
}

impl State {
    /// The value that nobody has changed. `precision` is the one of new HyperLogLogs.
    pub fn new(kind: DataType, precision: Precision) -> Self {
        match kind {
            DataType::Counter => Self::Counter(Counter::new()),
            DataType::Set => Self::Set(Set::new()),
            DataType::Map => Self::Map(Map::new()),
            DataType::Hll => Self::Hll(Hll::new(precision)),
            DataType::Gset => Self::GSet(GSet::new()),
        }
    }

    /// The data type.
    pub fn kind(&self) -> DataType {
        match self {
            Self::Counter(_) => DataType::Counter,
            Self::Set(_) => DataType::Set,
            Self::GSet(_) => DataType::Gset,
            Self::Map(_) => DataType::Map,
            Self::Hll(_) => DataType::Hll,
        }
    }

    /// What a client sees.
    pub fn value(&self) -> Value {
        match self {
            Self::Counter(counter) => Value::Counter(counter.value()),
            Self::Set(set) => Value::Set(set.members().cloned().collect()),
            Self::GSet(set) => Value::GSet(set.members().cloned().collect()),
            Self::Map(map) => Value::Map(map.value()),
            Self::Hll(hll) => Value::Hll(hll.value()),
        }
    }

    /// The context that a client gets with the value; `None` for types whose operations need none.
    pub fn context(&self) -> Option<&Clock> {
        match self {
            Self::Set(set) => Some(set.context()),
            Self::Map(map) => Some(map.context()),
            Self::Counter(_) | Self::GSet(_) | Self::Hll(_) => None,
        }
    }

    /// How many actors have changed the value; `None` for types that do not know them.
    pub fn actor_count(&self) -> Option<usize> {
        match self {
            Self::Counter(counter) => Some(counter.actor_count()),
            Self::Set(set) => Some(set.context().len()),
            Self::Map(map) => Some(map.context().len()),
            Self::GSet(_) | Self::Hll(_) => None,
        }
    }

    /// What a request changes. Nothing is changed yet.
    ///
    /// # Errors
    /// [`Refusal`]: the request cannot be applied as a whole.
    pub fn delta(&self, request: &Request, actor: &Actor, context: Option<&Clock>) -> Result<Delta, Refusal> {
        match (self, request) {
            (Self::Counter(counter), Request::Counter(amount)) => Ok(Delta::Counter(counter.delta(*amount, actor))),
            (Self::Set(set), Request::Set(ops)) => set.delta(ops, actor, context).map(Delta::Set),
            (Self::GSet(set), Request::GSet(adds)) => Ok(Delta::GSet(set.delta(adds.iter().cloned()))),
            (Self::Map(map), Request::Map(ops)) => map.delta(ops, actor, context).map(Delta::Map),
            (Self::Hll(hll), Request::Hll(adds)) => Ok(Delta::Hll(hll.delta(adds))),
            _ => Err(Refusal::WrongType),
        }
    }

    /// Merges what a request changed in another copy. Merging it again changes nothing.
    ///
    /// # Errors
    /// [`CannotMerge`]: nothing is changed.
    pub fn merge_delta(&mut self, delta: &Delta) -> Result<(), CannotMerge> {
        match (self, delta) {
            (Self::Counter(counter), Delta::Counter(delta)) => counter.merge(delta),
            (Self::Set(set), Delta::Set(delta)) => set.merge_delta(delta)?,
            (Self::GSet(set), Delta::GSet(delta)) => set.merge(delta),
            (Self::Map(map), Delta::Map(delta)) => map.merge_delta(delta)?,
            (Self::Hll(hll), Delta::Hll(delta)) => hll.merge_delta(delta),
            _ => return Err(CannotMerge::WrongType),
        }
        Ok(())
    }

    /// The bytes in a store or a message.
    pub fn to_bytes(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads such bytes. Names are not copied, so the value keeps all of the bytes.
    ///
    /// # Errors
    /// The bytes are not a state, or one of a version that is not known.
    pub fn from_bytes(bytes: &Bytes) -> Result<Self, BadBytes> {
        codec::decode(bytes)
    }

    /// Merges another copy.
    ///
    /// # Errors
    /// [`CannotMerge::WrongType`]: nothing is changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), CannotMerge> {
        match (self, other) {
            (Self::Counter(ours), Self::Counter(theirs)) => ours.merge(theirs),
            (Self::Set(ours), Self::Set(theirs)) => ours.merge(theirs),
            (Self::GSet(ours), Self::GSet(theirs)) => ours.merge(theirs),
            (Self::Map(ours), Self::Map(theirs)) => ours.merge(theirs),
            (Self::Hll(ours), Self::Hll(theirs)) => ours.merge(theirs),
            _ => return Err(CannotMerge::WrongType),
        }
        Ok(())
    }
}

impl From<RiakValue> for State {
    fn from(value: RiakValue) -> Self {
        match value {
            RiakValue::Counter(counter, _) => Self::Counter(counter),
            RiakValue::Set(set) => Self::Set(set),
            RiakValue::GSet(set) => Self::GSet(set),
            RiakValue::Map(map) => Self::Map(map),
            RiakValue::Hll(hll) => Self::Hll(hll),
        }
    }
}

impl RiakValue {
    /// The value as Riak stores it. `counter` says how a counter is stored.
    pub fn of(state: State, counter: RiakCounter) -> Self {
        match state {
            State::Counter(value) => Self::Counter(value, counter),
            State::Set(set) => Self::Set(set),
            State::GSet(set) => Self::GSet(set),
            State::Map(map) => Self::Map(map),
            State::Hll(hll) => Self::Hll(hll),
        }
    }
}

#[cfg(test)]
mod tests;
