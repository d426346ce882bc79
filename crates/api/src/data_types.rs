//! Data types for both interfaces: what they ask the engine, and what its replies mean.
//!
//! What it is not: it knows neither messages nor statuses, and asks nothing itself. The interfaces
//! do, each with its own way to count memory.

use bytes::Bytes;
use ombak_crdt::State;
use ombak_datatypes::{legacy_counter, state_of};
use ombak_kv::{GetOptions, GetReply, GetRequest, PutReply, Read};
use ombak_types::{Bucket, BucketProps, Error};

/// Why a bucket without siblings has no counters of Riak 1.4, in Riak's words.
pub(crate) const COUNTERS_NEED_SIBLINGS: &str = "Counters require bucket property 'allow_mult=true'";

/// The read of a value of a data type.
pub(crate) fn fetch(bucket: Bucket, key: Bytes, options: GetOptions) -> GetRequest {
    GetRequest { bucket, key, options: GetOptions { as_stored: true, ..options } }
}

/// What a read of [`fetch`] has found.
pub(crate) enum Fetched {
    Value(State),
    /// The key has no value.
    Absent {
        /// It has a tombstone.
        is_deleted: bool,
    },
}

impl Fetched {
    /// The value, if there is one.
    pub(crate) const fn value(&self) -> Option<&State> {
        match self {
            Self::Value(state) => Some(state),
            Self::Absent { .. } => None,
        }
    }
}

/// What such a read has found.
pub(crate) fn fetched(props: &BucketProps, read: Read) -> Result<Fetched, Error> {
    match read.into_reply()? {
        GetReply::Found(object) => state_of(props, &object).map(Fetched::Value),
        GetReply::NotFound { tombstone } => Ok(Fetched::Absent { is_deleted: tombstone.is_some() }),
    }
}

/// The value after a put of [`ombak_datatypes::typed_put`], if its options ask for it.
pub(crate) fn updated(props: &BucketProps, reply: &PutReply) -> Result<Option<State>, Error> {
    reply.object.as_ref().map(|object| state_of(props, object)).transpose()
}

/// The counter of Riak 1.4 that a plain read has found; `None` if the key is absent. Another value
/// counts as 0, as in Riak.
pub(crate) fn fetched_counter(read: Read) -> Result<Option<i128>, Error> {
    Ok(match read.into_reply()? {
        GetReply::Found(object) => Some(legacy_counter(&object).unwrap_or(0)),
        GetReply::NotFound { .. } => None,
    })
}

/// The counter after a put of [`ombak_datatypes::legacy_put`], if its options ask for it.
pub(crate) fn updated_counter(reply: &PutReply) -> Option<i128> {
    reply.object.as_ref().and_then(legacy_counter)
}
