//! The messages get, put and delete (docs/riak/pb-api.md §6.1 – §6.3). Hot.

use super::handler::Handler;
use super::object_messages;
use super::operation::{Operation, PARTS_MAX};
use super::refusal::Refusal;
use crate::memory::ALLOWANCE_BYTES;
use bytes::Bytes;
use ombak_proto::{code, put_req};

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::one_key(code::GET_REQ, get),
    Handler::one_key(code::PUT_REQ, put).of_any_size(),
    Handler::one_key(code::DEL_REQ, delete),
];

fn get(body: &Bytes) -> Result<Operation, Refusal> {
    Ok(match object_messages::get(body)? {
        Some((request, view)) => Operation::Get(request, view),
        None => Operation::NothingToGet,
    })
}

fn put(body: &Bytes) -> Result<Operation, Refusal> {
    if is_large(body) {
        return Ok(Operation::LargePut(body.clone()));
    }
    object_messages::put(body).map(Operation::Put)
}

fn delete(body: &Bytes) -> Result<Operation, Refusal> {
    Ok(object_messages::delete(body)?.map_or(Operation::NothingToDelete, Operation::Delete))
}

/// Whether a put has too many parts to be decoded on a network thread. A frame of at most a quarter
/// of a connection's allowance is never counted as large.
fn is_large(body: &Bytes) -> bool {
    body.len() > ALLOWANCE_BYTES / 4 && put_req::count_parts(body) > PARTS_MAX
}
