//! The properties of the decoders of messages between nodes, for the fuzz targets and for the tests
//! of this crate.

use crate::wire::{
    decode_compared, decode_giving, decode_job_answer, decode_job_question, decode_pushed, decode_summary,
    decode_transfer_question, encode_compared, encode_giving, encode_job_answer, encode_job_question, encode_pushed,
    encode_summary, encode_transfer_question,
};
use crate::wire::{
    decode_coverage_item, decode_coverage_request, decode_error, decode_forwarded_put, decode_promise_reply,
    decode_promise_request, decode_put_reply, decode_read_reply, decode_replica_read, decode_replica_store,
    decode_store_reply, encode_coverage_item, encode_coverage_request, encode_error, encode_forwarded_put,
    encode_promise_reply, encode_promise_request, encode_put_reply, encode_read_reply, encode_replica_read,
    encode_replica_store, encode_store_reply,
};
use bytes::Bytes;
use ombak_kv::CoverageItem;
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::Instant;

/// Deadlines travel outside of messages.
static DEADLINE: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Any bytes are refused by every decoder, or decode to a message that encodes to bytes of the same
/// message.
pub fn messages(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    again(&bytes, decode_replica_read, encode_replica_read);
    again(&bytes, decode_replica_store, encode_replica_store);
    again(&bytes, decode_read_reply, encode_read_reply);
    again(&bytes, decode_store_reply, encode_store_reply);
    again(&bytes, decode_forwarded_put, encode_forwarded_put);
    again(&bytes, decode_put_reply, encode_put_reply);
    again(&bytes, decode_promise_request, encode_promise_request);
    again(&bytes, decode_promise_reply, encode_promise_reply);
    again(&bytes, decode_error, encode_error);
    again(&bytes, decode_transfer_question, encode_transfer_question);
    again(&bytes, decode_compared, encode_compared);
    again(&bytes, decode_pushed, encode_pushed);
    again(&bytes, decode_summary, encode_summary);
    again(&bytes, decode_giving, encode_giving);
    again(&bytes, |bytes| decode_coverage_request(bytes, RingVersion::first(1)), encode_coverage_request);
    again(&bytes, decode_coverage_item, one_item);
    again(&bytes, |bytes| decode_job_question(bytes, RingVersion::first(1), *DEADLINE), encode_job_question);
    again(&bytes, decode_job_answer, |answer| encode_job_answer(answer.clone()));
}

fn one_item(item: &CoverageItem) -> Body {
    let mut whole = encode_coverage_item(item, usize::MAX);
    assert_eq!(whole.len(), 1, "{item:?}");
    whole.remove(0)
}

fn again<T: Debug, E: Debug>(bytes: &Bytes, decode: fn(&Bytes) -> Result<T, E>, encode: fn(&T) -> Body) {
    let Ok(message) = decode(bytes) else { return };
    let copy = encode(&message).parts().concat().into();
    let copy = decode(&copy).unwrap_or_else(|why| panic!("{message:?} does not decode again: {why:?}"));
    assert_eq!(format!("{message:?}"), format!("{copy:?}"));
}
