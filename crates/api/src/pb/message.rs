//! What all messages have in common: the bound on their size, their decoding, and their usual
//! fields.

use super::refusal::Refusal;
use bytes::Bytes;
use ombak_proto::{Frame, lenient};
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::{Bucket, Error};
use prost::{Message, Name};
use std::time::Duration;

/// The largest message other than a put, in bytes. No such message needs more, and decoding it
/// would take many times its size in memory.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The refusal of a message that is larger than [`MESSAGE_BYTES_MAX`].
pub(super) fn too_large(frame: &Frame) -> Refusal {
    Refusal::new(format!("A message with code {} has at most {MESSAGE_BYTES_MAX} bytes", frame.code))
}

/// The refusal of a message that would take more memory than this.
pub(super) fn too_much_memory(frame: &Frame, bytes_max: usize) -> Refusal {
    Refusal::new(format!(
        "A message with code {} would take more than {bytes_max} bytes of memory: many small elements take many times \
         their encoded bytes, so send fewer of them at once",
        frame.code
    ))
}

/// Decodes a message as leniently as Riak does.
pub(super) fn decode<M: Message + Name + Default>(body: &Bytes) -> Result<M, Refusal> {
    lenient::decode(body).map_err(|e| Refusal::undecodable(M::NAME, e))
}

/// The bucket that a request names.
pub(super) fn bucket(bucket_type: Option<Bytes>, name: Bytes) -> Result<Bucket, Error> {
    let name = non_empty("Bucket", name)?;
    Ok(match bucket_type.map(|t| non_empty("Type", t)).transpose()? {
        Some(bucket_type) if bucket_type != DEFAULT_TYPE => Bucket::typed(bucket_type, name),
        _ => Bucket::untyped(name),
    })
}

/// Refuses an empty name. `what` is the word for it in the refusal.
pub(super) fn non_empty(what: &'static str, bytes: Bytes) -> Result<Bytes, Error> {
    if bytes.is_empty() { Err(Error::ZeroLength(what)) } else { Ok(bytes) }
}

/// A time limit in milliseconds. 0 means none (docs/riak/pb-api.md §18).
pub(super) fn timeout(timeout_ms: Option<u32>) -> Option<Duration> {
    timeout_ms.filter(|&ms| ms > 0).map(|ms| Duration::from_millis(u64::from(ms)))
}
