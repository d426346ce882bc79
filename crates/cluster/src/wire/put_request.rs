//! The put in a message that lets another node coordinate it.
//!
//! ```text
//! flags u16, bytes bucket_type, bytes bucket, bytes key, fields, object
//! flags   1 sloppy_quorum, 2 asis, 4 return_body, 8 return_head, 16 has a key
//! fields  1 w, 2 dw, 3 pw, 4 node_confirms      Riak's numbers of quorums, varint
//!         5 n_val                               varint
//!         6 sync_on_write                       1 backend, 2 one, 3 all
//!         7 timeout                             varint microseconds
//!         8 if_none_match                       empty
//!         9 if_not_modified                     a clock as clients get it
//!        10 operation                           the number of the kind, varint
//! ```
//!
//! An option that is not there is the bucket's property.

use super::fields::{Field, read_fields};
use super::object::{object_of, stored_form};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::{PutCondition, PutOptions, PutRequest};
use ombak_peer::mux::Body;
use ombak_types::props::SyncOnWrite;
use ombak_types::{Bucket, Quorum, stored_object};
use std::time::Duration;

mod flag {
    pub const SLOPPY_QUORUM: u16 = 1;
    pub const ASIS: u16 = 2;
    pub const RETURN_BODY: u16 = 4;
    pub const RETURN_HEAD: u16 = 8;
    pub const HAS_KEY: u16 = 16;
    pub const ALL: u16 = 31;
}

mod tag {
    pub const W: u8 = 1;
    pub const DW: u8 = 2;
    pub const PW: u8 = 3;
    pub const NODE_CONFIRMS: u8 = 4;
    pub const N_VAL: u8 = 5;
    pub const SYNC_ON_WRITE: u8 = 6;
    pub const TIMEOUT_US: u8 = 7;
    pub const IF_NONE_MATCH: u8 = 8;
    pub const IF_NOT_MODIFIED: u8 = 9;
    /// A program that does not know the tag refuses the put; it would store the operation.
    pub const OPERATION: u8 = 10;
}

/// A value up to this length is copied out of the message. A coordinator keeps the value until the
/// last replica has answered, and a slice would keep everything that was read together with it.
const COPIED_VALUE_BYTES_MAX: usize = 8 << 10;

/// Writes a put, with the object in its stored form, to the end of a message.
pub(super) fn finish_with_put(mut out: Writer, put: &PutRequest) -> Body {
    let PutRequest { bucket, key, object, options } = put;
    let flags = [
        (options.sloppy_quorum, flag::SLOPPY_QUORUM),
        (options.asis, flag::ASIS),
        (options.return_body, flag::RETURN_BODY),
        (options.return_head, flag::RETURN_HEAD),
        (key.is_some(), flag::HAS_KEY),
    ];
    out.u16(flags.iter().fold(0, |all, (set, bit)| if *set { all | bit } else { all }));
    out.bytes(&bucket.bucket_type);
    out.bytes(&bucket.name);
    out.bytes(key.as_deref().unwrap_or_default());
    put_options(options, &mut out);
    let (head, body) = stored_form(object);
    out.finish_with_object(&head, &body)
}

fn put_options(options: &PutOptions, out: &mut Writer) {
    // All fields are named, so that the compiler reports a forgotten new one. The flags have the
    // rest.
    let PutOptions {
        w,
        dw,
        pw,
        node_confirms,
        n_val,
        sync_on_write,
        timeout,
        condition,
        operation,
        sloppy_quorum: _,
        asis: _,
        return_body: _,
        return_head: _,
    } = options;
    let quorums = [(tag::W, w), (tag::DW, dw), (tag::PW, pw), (tag::NODE_CONFIRMS, node_confirms)];
    for (tag, quorum) in quorums {
        if let Some(quorum) = quorum {
            out.number_field(tag, u64::from(quorum.to_wire()));
        }
    }
    if let Some(n) = n_val {
        out.number_field(tag::N_VAL, u64::from(*n));
    }
    if let Some(sync) = sync_on_write {
        out.field(tag::SYNC_ON_WRITE, &[sync_code(*sync)]);
    }
    if let Some(timeout) = timeout {
        out.number_field(tag::TIMEOUT_US, u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX));
    }
    match condition {
        PutCondition::None => {}
        PutCondition::IfNoneMatch => out.field(tag::IF_NONE_MATCH, &[]),
        PutCondition::IfNotModified(clock) => out.field(tag::IF_NOT_MODIFIED, &stored_object::encode_clock(clock)),
    }
    if let Some(kind) = operation {
        out.number_field(tag::OPERATION, u64::from(*kind));
    }
    out.end_fields();
}

/// Reads a put that ends a message.
pub(super) fn read_put(mut reader: Reader<'_>) -> Result<PutRequest, Malformed> {
    let flags = reader.u16()?;
    if flags > flag::ALL {
        return Err(Malformed("a flag is not known"));
    }
    let has = |bit: u16| flags & bit != 0;
    let bucket = Bucket { bucket_type: reader.bytes()?, name: reader.bytes()? };
    let key = reader.bytes()?;
    if !has(flag::HAS_KEY) && !key.is_empty() {
        return Err(Malformed("it has a key that it should not have"));
    }
    let mut options = PutOptions {
        sloppy_quorum: has(flag::SLOPPY_QUORUM),
        asis: has(flag::ASIS),
        return_body: has(flag::RETURN_BODY),
        return_head: has(flag::RETURN_HEAD),
        ..PutOptions::default()
    };
    read_options(&mut reader, &mut options)?;
    let (head, body) = reader.object()?;
    let body = if body.len() <= COPIED_VALUE_BYTES_MAX { Bytes::copy_from_slice(&body) } else { body };
    let object = object_of(&head, &body)?;
    Ok(PutRequest { bucket, key: has(flag::HAS_KEY).then_some(key), object, options })
}

fn read_options(reader: &mut Reader<'_>, options: &mut PutOptions) -> Result<(), Malformed> {
    read_fields(reader, |tag, content| {
        match tag {
            tag::W => options.w = Some(quorum(content)?),
            tag::DW => options.dw = Some(quorum(content)?),
            tag::PW => options.pw = Some(quorum(content)?),
            tag::NODE_CONFIRMS => options.node_confirms = Some(quorum(content)?),
            tag::N_VAL => options.n_val = Some(content.varint32()?),
            tag::SYNC_ON_WRITE => options.sync_on_write = Some(sync_of(content.u8()?)?),
            tag::TIMEOUT_US => options.timeout = Some(Duration::from_micros(content.varint()?)),
            tag::IF_NONE_MATCH => options.condition = PutCondition::IfNoneMatch,
            tag::IF_NOT_MODIFIED if options.condition != PutCondition::None => {
                return Err(Malformed("it has two conditions"));
            }
            tag::IF_NOT_MODIFIED => {
                let clock = stored_object::decode_clock(&content.rest()?);
                options.condition = PutCondition::IfNotModified(clock.map_err(|_| Malformed("its clock"))?);
            }
            tag::OPERATION => {
                let kind = u16::try_from(content.varint()?).map_err(|_| Malformed("the kind of an operation"))?;
                options.operation = Some(kind);
            }
            _ => return Ok(Field::Unknown),
        }
        Ok(Field::Read)
    })
}

fn quorum(content: &mut Reader<'_>) -> Result<Quorum, Malformed> {
    Ok(Quorum::from_wire(content.varint32()?))
}

const fn sync_code(sync: SyncOnWrite) -> u8 {
    match sync {
        SyncOnWrite::Backend => 1,
        SyncOnWrite::One => 2,
        SyncOnWrite::All => 3,
    }
}

const fn sync_of(code: u8) -> Result<SyncOnWrite, Malformed> {
    match code {
        1 => Ok(SyncOnWrite::Backend),
        2 => Ok(SyncOnWrite::One),
        3 => Ok(SyncOnWrite::All),
        _ => Err(Malformed("its way to sync is not known")),
    }
}
