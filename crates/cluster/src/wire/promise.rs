//! The question of a conditional put to a primary, and its answer.
//!
//! ```text
//! request = version u8, varint partition, varint n, varint stamp, varint number, bytes key,
//! fields
//!
//! reply = version u8, flags u8, varint boot, varint counter, fields, version's part
//! flags   1 the replica has everything of the class
//!         2 it has the key       digest u64, varint seq, head: all that is left
//! fields  1 outbid               varint, the time that stands against the ballot
//!         2 outdated             varint lineage, varint number of the replica's placement
//! ```
//!
//! Nodes without placements do not get field 2.

use super::NO_RING;
use super::fields::{Field, no_fields, read_fields};
use super::found::{counter, put_counter};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::Ballot;
use ombak_kv::replica::{PromiseReply, PromiseRequest};
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use ombak_storage::Stored;
use ombak_types::time::UnixMicros;

mod flag {
    pub const FULL: u8 = 1;
    pub const HEAD: u8 = 2;
    pub const ALL: u8 = 3;
}

mod tag {
    pub const OUTBID: u8 = 1;
    pub const OUTDATED: u8 = 2;
}

/// Encodes a question. Its deadline and its ring travel in the header of the transport.
pub fn encode_promise_request(request: &PromiseRequest) -> Body {
    let PromiseRequest { partition, n, ring: _, key, ballot, deadline: _ } = request;
    let mut out = Writer::of_message();
    out.varint(u64::from(*partition));
    out.varint(u64::from(*n));
    out.varint(ballot.stamp.0);
    out.varint(ballot.number);
    out.bytes(key);
    out.end_fields();
    out.finish()
}

/// Decodes a question without a deadline and without a ring.
pub fn decode_promise_request(message: &Bytes) -> Result<PromiseRequest, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let (partition, n) = (reader.varint32()?, reader.varint32()?);
    let ballot = Ballot { stamp: UnixMicros(reader.varint()?), number: reader.varint()? };
    let key = reader.bytes()?;
    no_fields(&mut reader)?;
    reader.end()?;
    Ok(PromiseRequest { partition, n, ring: NO_RING, key, ballot, deadline: None })
}

/// Encodes an answer. The body of its version, if there is one, is left out.
pub fn encode_promise_reply(reply: &PromiseReply) -> Body {
    let PromiseReply { version, full, outdated, outbid, counter } = reply;
    let mut out = Writer::of_message();
    out.u8(if version.is_some() { flag::HEAD } else { 0 } | if *full { flag::FULL } else { 0 });
    put_counter(*counter, &mut out);
    if let Some(outbid) = outbid {
        out.number_field(tag::OUTBID, outbid.0);
    }
    if let Some(RingVersion { lineage, number }) = outdated {
        out.numbers_field(tag::OUTDATED, &[*lineage, *number]);
    }
    out.end_fields();
    let Some(Stored { head, body: _, digest, seq, stored_secs: _ }) = version else { return out.finish() };
    out.u64(*digest);
    out.varint(*seq);
    out.finish_with(head)
}

/// Decodes an answer. Whether its head is one is not checked.
pub fn decode_promise_reply(message: &Bytes) -> Result<PromiseReply, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let flags = reader.u8()?;
    if flags > flag::ALL {
        return Err(Malformed("a flag is not known"));
    }
    let (full, counter) = (flags & flag::FULL != 0, counter(&mut reader)?);
    let (mut outbid, mut outdated) = (None, None);
    read_fields(&mut reader, |tag, content| {
        match tag {
            tag::OUTBID => outbid = Some(UnixMicros(content.varint()?)),
            tag::OUTDATED => {
                outdated = Some(RingVersion { lineage: content.varint()?, number: content.varint()? });
            }
            _ => return Ok(Field::Unknown),
        }
        Ok(Field::Read)
    })?;
    if flags & flag::HEAD == 0 {
        reader.end()?;
        return Ok(PromiseReply { version: None, full, outdated, outbid, counter });
    }
    let (digest, seq) = (reader.u64()?, reader.varint()?);
    let version = Some(Stored { head: reader.rest()?, body: None, digest, seq, stored_secs: None });
    Ok(PromiseReply { version, full, outdated, outbid, counter })
}

/// An answer for a node that does not know placements.
pub fn encode_promise_reply_without_placement(reply: &PromiseReply) -> Body {
    encode_promise_reply(&PromiseReply { outdated: None, ..reply.clone() })
}
