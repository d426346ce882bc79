//! What a replica answers to a read and to a store.
//!
//! ```text
//! read reply = version u8, flags u8, varint boot, varint counter, fields, version's part
//! flags   1 the replica has everything of the class
//!         2 head only       digest u64, varint seq, head: all that is left
//!         4 object          digest u64, varint seq, object
//!
//! store reply = version u8, outcome u8, varint boot, varint counter, fields
//! outcome 0 stored          then digest u64 behind the fields
//!         1 fenced
//!         2 conflict
//! ```

use super::fields::no_fields;
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::{NodeCounter, ReadReply, StoreOutcome, StoreReply};
use ombak_peer::mux::Body;
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
}

/// Encodes what a replica found.
pub fn encode_read_reply(reply: &ReadReply) -> Body {
    let ReadReply { version, full, counter } = reply;
    let mut out = Writer::of_message();
    let part = match version {
        None => 0,
        Some(Stored { body: None, .. }) => flag::HEAD,
        Some(Stored { body: Some(_), .. }) => flag::OBJECT,
    };
    out.u8(part | if *full { flag::FULL } else { 0 });
    put_counter(*counter, &mut out);
    out.end_fields();
    let Some(Stored { head, body, digest, seq }) = version else { return out.finish() };
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
    no_fields(&mut reader)?;
    let part = flags & !flag::FULL;
    if part == 0 {
        reader.end()?;
        return Ok(ReadReply { version: None, full, counter });
    }
    let (digest, seq) = (reader.u64()?, reader.varint()?);
    let (head, body) = match part {
        flag::HEAD => (reader.rest()?, None),
        flag::OBJECT => {
            let (head, body) = reader.object()?;
            (head, Some(body))
        }
        _ => return Err(Malformed("a flag is not known")),
    };
    Ok(ReadReply { version: Some(Stored { head, body, digest, seq }), full, counter })
}

/// Encodes what a replica has done with a version.
pub fn encode_store_reply(reply: &StoreReply) -> Body {
    let StoreReply { outcome, counter } = reply;
    let (code, digest) = match outcome {
        StoreOutcome::Stored { digest } => (outcome::STORED, Some(*digest)),
        StoreOutcome::Fenced => (outcome::FENCED, None),
        StoreOutcome::Conflict => (outcome::CONFLICT, None),
    };
    let mut out = Writer::of_message();
    out.u8(code);
    put_counter(*counter, &mut out);
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
    no_fields(&mut reader)?;
    let outcome = match code {
        outcome::STORED => StoreOutcome::Stored { digest: reader.u64()? },
        outcome::FENCED => StoreOutcome::Fenced,
        outcome::CONFLICT => StoreOutcome::Conflict,
        _ => return Err(Malformed("its outcome is not known")),
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
