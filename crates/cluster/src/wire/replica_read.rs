//! A read at a replica.
//!
//! ```text
//! version u8, ask u8 (0 head, 1 object), varint partition, varint n, bytes key, fields
//! fields  128 exchange      varint 1: the replica is to exchange the key; with a head only
//! ```
//!
//! Field 128 may be skipped. Then the replica answers with its head.

use super::NO_RING;
use super::fields::{Field, OPTIONAL_FROM, read_fields};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::coordination::get::Ask;
use ombak_kv::replica::ReplicaRead;
use ombak_peer::mux::Body;

mod tag {
    pub const EXCHANGE: u8 = super::OPTIONAL_FROM;
}

/// Encodes a read. Its deadline and its ring travel in the header of the transport.
pub fn encode_replica_read(read: &ReplicaRead) -> Body {
    let ReplicaRead { partition, n, ring: _, key, ask, deadline: _ } = read;
    let mut out = Writer::of_message();
    out.u8(match ask {
        Ask::Head | Ask::Exchange => 0,
        Ask::Object => 1,
    });
    out.varint(u64::from(*partition));
    out.varint(u64::from(*n));
    out.bytes(key);
    if *ask == Ask::Exchange {
        out.number_field(tag::EXCHANGE, 1);
    }
    out.end_fields();
    out.finish()
}

/// Decodes a read without a deadline and without a ring.
pub fn decode_replica_read(message: &Bytes) -> Result<ReplicaRead, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let mut ask = match reader.u8()? {
        0 => Ask::Head,
        1 => Ask::Object,
        _ => return Err(Malformed("it asks for something unknown")),
    };
    let (partition, n, key) = (reader.varint32()?, reader.varint32()?, reader.bytes()?);
    read_fields(&mut reader, |tag, content| {
        if tag != tag::EXCHANGE {
            return Ok(Field::Unknown);
        }
        if content.varint()? != 0 && ask == Ask::Head {
            ask = Ask::Exchange;
        }
        Ok(Field::Read)
    })?;
    reader.end()?;
    Ok(ReplicaRead { partition, n, ring: NO_RING, key, ask, deadline: None })
}
