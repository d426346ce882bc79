//! What a request changed in a value of any data type.

use crate::codec;
use crate::{BadBytes, Clock, CounterDelta, GSet, GSetDelta, HllDelta, MapDelta, Precision, Request, Set, SetDelta};
use bytes::Bytes;
use ombak_types::Actor;
use ombak_types::props::DataType;

/// What a request changed in a value of any data type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Of a counter.
    Counter(CounterDelta),
    /// Of a set.
    Set(SetDelta),
    /// Of a set that only grows.
    GSet(GSetDelta),
    /// Of a map.
    Map(MapDelta),
    /// Of a HyperLogLog.
    Hll(HllDelta),
}

impl Delta {
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

    /// The bytes in a store or a message.
    pub fn to_bytes(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads such bytes.
    ///
    /// # Errors
    /// The bytes are not a delta, or one of a version that is not known.
    pub fn from_bytes(bytes: &Bytes) -> Result<Self, BadBytes> {
        codec::decode(bytes)
    }

    /// What the delta builds on and what a value has seen when it is merged; `None` for types that
    /// do not know.
    pub(crate) fn clocks(&self) -> Option<(&Clock, &Clock)> {
        match self {
            Self::Set(delta) => Some((&delta.before, &delta.after)),
            Self::Map(delta) => Some((&delta.before, &delta.after)),
            Self::Counter(_) | Self::GSet(_) | Self::Hll(_) => None,
        }
    }

    /// What a request changes, if that does not depend on more than what the value has seen, and
    /// for a HyperLogLog on its precision. `None`: the value must be read.
    pub(crate) fn without_state(
        request: &Request,
        seen: &Clock,
        precision: Precision,
        actor: &Actor,
        context: Option<&Clock>,
    ) -> Option<Self> {
        match request {
            Request::Set(ops) => Set::delta_of_clock(seen, ops, actor, context).map(Self::Set),
            Request::GSet(adds) => Some(Self::GSet(GSet::from_iter(adds.iter().cloned()))),
            Request::Hll(adds) => Some(Self::Hll(HllDelta::of_members(precision, adds))),
            Request::Counter(_) | Request::Map(_) => None,
        }
    }
}
