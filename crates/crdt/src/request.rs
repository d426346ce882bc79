//! What a client asks for.

use crate::{MapOp, SetOp};
use bytes::Bytes;
use ombak_types::props::DataType;

/// The operations of one request. They are applied as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Adds an amount of either sign to a counter.
    Counter(i64),
    /// Operations on a set, in their order.
    Set(Vec<SetOp>),
    /// Members to add to a set that only grows.
    GSet(Vec<Bytes>),
    /// Operations on a map, in their order.
    Map(Vec<MapOp>),
    /// Members to add to a HyperLogLog.
    Hll(Vec<Bytes>),
}

impl Request {
    /// The data type that the operations are for.
    pub fn kind(&self) -> DataType {
        match self {
            Self::Counter(_) => DataType::Counter,
            Self::Set(_) => DataType::Set,
            Self::GSet(_) => DataType::Gset,
            Self::Map(_) => DataType::Map,
            Self::Hll(_) => DataType::Hll,
        }
    }
}
