//! What a replica answers to a read and to a store.
//!
//! ```text
//! read reply = version u8, flags u8, varint boot, varint counter, fields, version's part
//! flags   1 the replica has everything of the class
//!         2 head only       digest u64, varint seq, head: all that is left
//!         4 object          digest u64, varint seq, object
//! fields  1 outdated        varint lineage, varint number of the replica's placement
//!         128 stored        varint, Unix seconds at which the object was stored; with an object only
//!         129 left          varint 1: reads leave the version to exchanges; with a version only
//!
//! store reply = version u8, outcome u8, varint boot, varint counter, fields
//! outcome 0 stored          then digest u64 behind the fields
//!         1 fenced
//!         2 conflict
//!         3 outdated        with field 1
//!         4 lacks           what an addition builds on
//! fields  1 outdated        varint lineage, varint number of the replica's placement
//!         2 digest          varint, of what an outdated replica holds; with 1 only
//! ```
//!
//! Nodes without placements get none of the fields 1 and 2, and not outcome 3. The fields 128
//! and 129 may be skipped. Only a node that knows
//! data types gets outcome 4, because it is an answer to an addition.

use super::fields::{Field, OPTIONAL_FROM, read_fields};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::replica::{NodeCounter, ReadReply, StoreOutcome, StoreReply};
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use ombak_storage::Stored;

mod flag {
    pub const FULL: u8 = 1;
    pub const HEAD: u8 = 2;
    pub const OBJECT: u8 = 4;
}

mod outcome {
    pub const STORED: u8 = 0;
    pub const FENCED: u8 = 1;
    pub const CONFLICT: u8 = 2;
    pub const OUTDATED: u8 = 3;
    pub const LACKS: u8 = 4;
}

mod tag {
    pub const OUTDATED: u8 = 1;
    pub const DIGEST: u8 = 2;
    pub const STORED_SECS: u8 = super::OPTIONAL_FROM;
    pub const LEFT: u8 = super::OPTIONAL_FROM + 1;
}

/// Encodes what a replica found.
pub fn encode_read_reply(reply: &ReadReply) -> Body {
    let ReadReply { version, full, outdated, left_to_exchanges, counter } = reply;
    let mut out = Writer::of_message();
    let part = match version {
        None => 0,
        Some(Stored { body: None, .. }) => flag::HEAD,
        Some(Stored { body: Some(_), .. }) => flag::OBJECT,
    };
    out.u8(part | if *full { flag::FULL } else { 0 });
    put_counter(*counter, &mut out);
    put_outdated(*outdated, &mut out);
    if let Some(Stored { body: Some(_), stored_secs: Some(secs), .. }) = version {
        out.number_field(tag::STORED_SECS, u64::from(*secs));
    }
    if *left_to_exchanges && version.is_some() {
        out.number_field(tag::LEFT, 1);
    }
    out.end_fields();
    let Some(Stored { head, body, digest, seq, stored_secs: _ }) = version else { return out.finish() };
    out.u64(*digest);
    out.varint(*seq);
    match body {
        Some(body) => out.finish_with_object(head, body),
        None => out.finish_with(head),
    }
}

/// Decodes what a replica found. Whether a version is an object is not checked.
pub fn decode_read_reply(message: &Bytes) -> Result<ReadReply, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let flags = reader.u8()?;
    let (full, counter) = (flags & flag::FULL != 0, counter(&mut reader)?);
    let (mut outdated, mut stored_secs, mut left) = (None, None, false);
    read_fields(&mut reader, |tag, content| {
        match tag {
            tag::STORED_SECS => stored_secs = Some(content.varint32()?),
            tag::LEFT => left = content.varint()? != 0,
            _ => return read_outdated(tag, content, &mut outdated),
        }
        Ok(Field::Read)
    })?;
    let part = flags & !flag::FULL;
    if part == 0 {
        reader.end()?;
        return Ok(ReadReply { version: None, full, outdated, left_to_exchanges: false, counter });
    }
    let (digest, seq) = (reader.u64()?, reader.varint()?);
    let (head, body) = match part {
        flag::HEAD => {
            // Only a version with its body has an age: a sender writes none for a head.
            stored_secs = None;
            (reader.rest()?, None)
        }
        flag::OBJECT => {
            let (head, body) = reader.object()?;
            (head, Some(body))
        }
        _ => return Err(Malformed("a flag is not known")),
    };
    let version = Some(Stored { head, body, digest, seq, stored_secs });
    Ok(ReadReply { version, full, outdated, left_to_exchanges: left, counter })
}

/// Encodes what a replica has done with a version.
pub fn encode_store_reply(reply: &StoreReply) -> Body {
    let StoreReply { outcome, counter } = reply;
    let (code, digest) = match outcome {
        StoreOutcome::Stored { digest } => (outcome::STORED, Some(*digest)),
        StoreOutcome::Fenced => (outcome::FENCED, None),
        StoreOutcome::Conflict => (outcome::CONFLICT, None),
        StoreOutcome::Lacks => (outcome::LACKS, None),
        StoreOutcome::Outdated { .. } => (outcome::OUTDATED, None),
    };
    let mut out = Writer::of_message();
    out.u8(code);
    put_counter(*counter, &mut out);
    if let StoreOutcome::Outdated { known, digest } = outcome {
        put_outdated(Some(*known), &mut out);
        if let Some(digest) = digest {
            out.number_field(tag::DIGEST, *digest);
        }
    }
    out.end_fields();
    if let Some(digest) = digest {
        out.u64(digest);
    }
    out.finish()
}

/// Decodes what a replica has done with a version.
pub fn decode_store_reply(message: &Bytes) -> Result<StoreReply, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let (code, counter) = (reader.u8()?, counter(&mut reader)?);
    let (mut known, mut held) = (None, None);
    read_fields(&mut reader, |tag, content| {
        if tag == tag::DIGEST {
            held = Some(content.varint()?);
            return Ok(Field::Read);
        }
        read_outdated(tag, content, &mut known)
    })?;
    if (code == outcome::OUTDATED) != known.is_some() || held.is_some() && known.is_none() {
        return Err(Malformed("its fields do not belong to its outcome"));
    }
    let outcome = match code {
        outcome::STORED => StoreOutcome::Stored { digest: reader.u64()? },
        outcome::FENCED => StoreOutcome::Fenced,
        outcome::CONFLICT => StoreOutcome::Conflict,
        outcome::LACKS => StoreOutcome::Lacks,
        _ => match known {
            Some(known) => StoreOutcome::Outdated { known, digest: held },
            None => return Err(Malformed("its outcome is not known")),
        },
    };
    reader.end()?;
    Ok(StoreReply { outcome, counter })
}

pub(super) fn put_counter(counter: NodeCounter, out: &mut Writer) {
    out.varint(counter.boot);
    out.varint(counter.counter);
}

pub(super) fn counter(reader: &mut Reader<'_>) -> Result<NodeCounter, Malformed> {
    Ok(NodeCounter { boot: reader.varint()?, counter: reader.varint()? })
}

/// A reply for a node that does not know placements.
pub fn encode_read_reply_without_placement(reply: &ReadReply) -> Body {
    encode_read_reply(&ReadReply { outdated: None, ..reply.clone() })
}

/// A reply for a node that does not know placements. An outdated write counts for it, as among
/// nodes of its own version.
pub fn encode_store_reply_without_placement(reply: &StoreReply) -> Body {
    let outcome = match reply.outcome {
        StoreOutcome::Outdated { digest: Some(digest), .. } => StoreOutcome::Stored { digest },
        StoreOutcome::Outdated { digest: None, .. } => StoreOutcome::Conflict,
        outcome => outcome,
    };
    encode_store_reply(&StoreReply { outcome, ..*reply })
}

pub(super) fn put_outdated(known: Option<RingVersion>, out: &mut Writer) {
    if let Some(RingVersion { lineage, number }) = known {
        out.numbers_field(tag::OUTDATED, &[lineage, number]);
    }
}

/// Reads the field that [`put_outdated`] has written.
pub(super) fn read_outdated(
    tag: u8,
    content: &mut Reader<'_>,
    known: &mut Option<RingVersion>,
) -> Result<Field, Malformed> {
    if tag != tag::OUTDATED {
        return Ok(Field::Unknown);
    }
    *known = Some(RingVersion { lineage: content.varint()?, number: content.varint()? });
    Ok(Field::Read)
}
