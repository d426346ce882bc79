//! The reply to a put that another node has coordinated.
//!
//! ```text
//! version u8, flags u8 (1 has a key, 2 has an object), bytes key, fields, object
//! ```

use super::fields::no_fields;
use super::object::{object_of, stored_form};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::PutReply;
use ombak_peer::mux::Body;

mod flag {
    pub const HAS_KEY: u8 = 1;
    pub const HAS_OBJECT: u8 = 2;
    pub const ALL: u8 = 3;
}

/// Encodes a reply.
pub fn encode_put_reply(reply: &PutReply) -> Body {
    let PutReply { key, object } = reply;
    let mut out = Writer::of_message();
    let has_key = if key.is_some() { flag::HAS_KEY } else { 0 };
    out.u8(has_key | if object.is_some() { flag::HAS_OBJECT } else { 0 });
    out.bytes(key.as_deref().unwrap_or_default());
    out.end_fields();
    match object {
        None => out.finish(),
        Some(object) => {
            let (head, body) = stored_form(object);
            out.finish_with_object(&head, &body)
        }
    }
}

/// Decodes a reply.
pub fn decode_put_reply(message: &Bytes) -> Result<PutReply, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let flags = reader.u8()?;
    if flags > flag::ALL {
        return Err(Malformed("a flag is not known"));
    }
    let key = reader.bytes()?;
    if flags & flag::HAS_KEY == 0 && !key.is_empty() {
        return Err(Malformed("it has a key that it should not have"));
    }
    no_fields(&mut reader)?;
    let object = if flags & flag::HAS_OBJECT == 0 {
        reader.end()?;
        None
    } else {
        let (head, body) = reader.object()?;
        Some(object_of(&head, &body)?)
    };
    Ok(PutReply { key: (flags & flag::HAS_KEY != 0).then_some(key), object })
}
