//! The order to reap tombstones now.
//!
//! ```text
//! order  = version u8, varint partition, varint n, fields, varint count, items
//! item   = bytes key, bytes clock (as clients get it)
//! answer = version u8, fields, one byte for each item: 0 gone, 1 waits, 2 changed
//! ```
//!
//! There are no fields yet.

use super::reader::{Malformed, Reader};
use super::writer::Writer;
use super::{NO_RING, no_fields};
use bytes::Bytes;
use ombak_kv::replica::{Ordered, REAP_KEYS_MAX, ReapOrder};
use ombak_peer::mux::Body;
use ombak_types::stored_object;

/// Encodes an order. Its ring travels in the header of the transport.
pub fn encode_reap_order(order: &ReapOrder) -> Body {
    let mut out = Writer::of_message();
    out.varint(u64::from(order.partition));
    out.varint(u64::from(order.n_val));
    out.end_fields();
    out.varint(order.tombstones.len() as u64);
    for (key, clock) in &order.tombstones {
        out.bytes(key);
        out.bytes(&stored_object::encode_clock(clock));
    }
    out.finish()
}

/// Decodes an order without a ring.
pub fn decode_reap_order(message: &Bytes) -> Result<ReapOrder, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let (partition, n_val) = (reader.varint32()?, reader.varint32()?);
    no_fields(&mut reader)?;
    let count = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    if count > REAP_KEYS_MAX {
        return Err(Malformed("it has too many keys"));
    }
    let mut tombstone = || {
        let (key, clock) = (reader.bytes()?, reader.bytes()?);
        Ok((key, stored_object::decode_clock(&clock).map_err(|_| Malformed("its clock"))?))
    };
    let tombstones = (0..count).map(|_| tombstone()).collect::<Result<_, Malformed>>()?;
    reader.end()?;
    Ok(ReapOrder { partition, n_val, ring: NO_RING, tombstones })
}

/// Encodes what became of the tombstones of an order.
pub fn encode_ordered(answers: &[Ordered]) -> Body {
    let mut out = Writer::of_message();
    out.end_fields();
    for answer in answers {
        out.u8(match answer {
            Ordered::Gone => 0,
            Ordered::Waits => 1,
            Ordered::Changed => 2,
        });
    }
    out.finish()
}

/// Decodes what became of the tombstones of an order.
pub fn decode_ordered(message: &Bytes) -> Result<Vec<Ordered>, Malformed> {
    let mut reader = Reader::of_message(message)?;
    no_fields(&mut reader)?;
    let bytes = reader.rest()?;
    if bytes.len() > REAP_KEYS_MAX {
        return Err(Malformed("it has too many answers"));
    }
    let answer = |byte: &u8| match byte {
        0 => Ok(Ordered::Gone),
        1 => Ok(Ordered::Waits),
        2 => Ok(Ordered::Changed),
        _ => Err(Malformed("an answer is not known")),
    };
    bytes.iter().map(answer).collect()
}
