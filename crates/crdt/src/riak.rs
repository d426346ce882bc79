//! Riak's stored bytes of data types (docs/riak/backends.md §7.4).
//!
//! A value is `<<69, 2, TypeLen:32, Type, Payload>>`, or `<<69, 1, Payload>>` for a counter of Riak
//! 1.4. A payload is `<<Tag, Version, Term>>`. All versions that Riak ever stored are read. What is
//! written is read by every Riak that knows the type: the versions with ordered lists, which do not
//! depend on the layout of Erlang's dictionaries.
//!
//! Bytes may come from anywhere, also from a client's plain put. So what is read is put in order:
//! a clock is raised to the dots that are under it, and settled removals are applied.

mod context;
mod counter;
mod gset;
mod hll;
mod map;
mod payload;
mod set;
mod terms;

use crate::{BadBytes, Counter, GSet, Hll, Map, Set};
use bytes::Bytes;
use payload::Payload;

pub(crate) use hll::{dense as dense_registers, read_dense as read_dense_registers};

/// The first byte of a stored data type.
const TAG: u8 = 69;

/// How a counter is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiakCounter {
    /// As a data type of a bucket type.
    Typed,
    /// As a counter of Riak 1.4, in the default bucket type.
    Legacy,
}

/// A value that Riak stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RiakValue {
    /// A counter.
    Counter(Counter, RiakCounter),
    /// A set.
    Set(Set),
    /// A set that only grows.
    GSet(GSet),
    /// A map.
    Map(Map),
    /// A HyperLogLog.
    Hll(Hll),
}

impl RiakValue {
    /// Whether bytes begin as a data type does. Riak looks no further to tell one from other
    /// values.
    pub fn is_likely(bytes: &[u8]) -> bool {
        bytes.first() == Some(&TAG)
    }

    /// Reads stored bytes.
    ///
    /// # Errors
    /// The bytes are not a data type, or one of a type or version that is not known.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        match bytes {
            [TAG, 1, payload @ ..] => Ok(Self::Counter(counter::read(&Payload::split(payload)?)?, RiakCounter::Legacy)),
            [TAG, 2, rest @ ..] => {
                let (name, payload) = split_name(rest)?;
                let payload = Payload::split(payload)?;
                match name {
                    b"riak_dt_pncounter" => Ok(Self::Counter(counter::read(&payload)?, RiakCounter::Typed)),
                    b"riak_dt_orswot" => set::read(&payload).map(Self::Set),
                    b"riak_dt_map" => map::read(&payload).map(Self::Map),
                    b"riak_kv_hll" => hll::read(&payload).map(Self::Hll),
                    b"riak_dt_gset" => gset::read(&payload).map(Self::GSet),
                    _ => Err(BadBytes::UnknownType),
                }
            }
            [TAG, version, ..] => Err(BadBytes::UnknownVersion(*version)),
            _ => Err(BadBytes::NotADataType),
        }
    }

    /// The bytes that Riak stores for the value.
    pub fn to_bytes(&self) -> Bytes {
        let (name, payload): (&[u8], _) = match self {
            Self::Counter(counter, RiakCounter::Legacy) => {
                return [&[TAG, 1][..], &counter::write_legacy(counter)].concat().into();
            }
            Self::Counter(counter, RiakCounter::Typed) => (b"riak_dt_pncounter", counter::write(counter)),
            Self::Set(set) => (b"riak_dt_orswot", set::write(set)),
            Self::GSet(set) => (b"riak_dt_gset", gset::write(set)),
            Self::Map(map) => (b"riak_dt_map", map::write(map)),
            Self::Hll(hll) => (b"riak_kv_hll", hll::write(hll)),
        };
        let name_len = name.len() as u32;
        [&[TAG, 2][..], &name_len.to_be_bytes(), name, &payload].concat().into()
    }

    /// The content type of an object with the value.
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Counter(..) => "application/riak_counter",
            Self::Set(_) => "application/riak_set",
            Self::GSet(_) => "application/riak_gset",
            Self::Map(_) => "application/riak_map",
            Self::Hll(_) => "application/riak_hll",
        }
    }
}

/// Splits `<<Len:32, Name:Len/binary, Rest/binary>>`.
fn split_name(bytes: &[u8]) -> Result<(&[u8], &[u8]), BadBytes> {
    let (len, rest) = bytes.split_first_chunk::<4>().ok_or(BadBytes::CutShort)?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize).ok_or(BadBytes::CutShort)
}

#[cfg(test)]
mod forms;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use forms::check_forms;
