//! A read at a replica.
//!
//! ```text
//! version u8, ask u8 (0 head, 1 object), varint partition, varint n, bytes key, fields
//! ```

use super::NO_RING;
use super::fields::no_fields;
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::coordination::get::Ask;
use ombak_kv::replica::ReplicaRead;
use ombak_peer::mux::Body;

/// Encodes a read. Its deadline and its ring travel in the header of the transport.
pub fn encode_replica_read(read: &ReplicaRead) -> Body {
    let ReplicaRead { partition, n, ring: _, key, ask, deadline: _ } = read;
    let mut out = Writer::of_message();
    out.u8(match ask {
        Ask::Head => 0,
        Ask::Object => 1,
    });
    out.varint(u64::from(*partition));
    out.varint(u64::from(*n));
    out.bytes(key);
    out.end_fields();
    out.finish()
}

/// Decodes a read without a deadline and without a ring.
pub fn decode_replica_read(message: &Bytes) -> Result<ReplicaRead, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let ask = match reader.u8()? {
        0 => Ask::Head,
        1 => Ask::Object,
        _ => return Err(Malformed("it asks for something unknown")),
    };
    let (partition, n, key) = (reader.varint32()?, reader.varint32()?, reader.bytes()?);
    no_fields(&mut reader)?;
    reader.end()?;
    Ok(ReplicaRead { partition, n, ring: NO_RING, key, ask, deadline: None })
}
