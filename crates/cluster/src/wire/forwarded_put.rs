//! A put that another node coordinates.
//!
//! ```text
//! version u8, number u64, fields, put                see `put_request`
//! fields  1 how long before its deadline it must begin      varint microseconds
//! ```
//!
//! The transport aligns the deadline to the receiver's clock. The moment by which the put must
//! begin travels as its distance from the deadline.

use super::fields::{Field, read_fields};
use super::put_request::{finish_with_put, read_put};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::PutRequest;
use ombak_peer::mux::Body;
use std::time::Duration;

mod tag {
    pub const BEGINS_BEFORE_US: u8 = 1;
}

/// What travels of a forwarded put, besides its deadline.
#[derive(Clone, Debug)]
pub struct ForwardedMessage {
    /// The number of the put.
    pub number: u64,
    /// How long before its deadline the put must begin.
    pub begins_before: Option<Duration>,
    /// The put.
    pub request: PutRequest,
}

/// Encodes a forwarded put.
pub fn encode_forwarded_put(put: &ForwardedMessage) -> Body {
    let ForwardedMessage { number, begins_before, request } = put;
    let mut out = Writer::of_message();
    out.u64(*number);
    if let Some(before) = begins_before {
        out.number_field(tag::BEGINS_BEFORE_US, u64::try_from(before.as_micros()).unwrap_or(u64::MAX));
    }
    out.end_fields();
    finish_with_put(out, request)
}

/// Decodes a forwarded put.
pub fn decode_forwarded_put(message: &Bytes) -> Result<ForwardedMessage, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let number = reader.u64()?;
    let mut begins_before = None;
    read_fields(&mut reader, |tag, content| {
        if tag != tag::BEGINS_BEFORE_US {
            return Ok(Field::Unknown);
        }
        begins_before = Some(Duration::from_micros(content.varint()?));
        Ok(Field::Read)
    })?;
    Ok(ForwardedMessage { number, begins_before, request: read_put(reader)? })
}
