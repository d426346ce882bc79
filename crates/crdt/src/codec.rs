//! Ombak's own bytes of states, deltas and summaries: what stores hold and nodes send.
//!
//! What it is: a compact form that is read without copying names. Bytes begin with a version. An
//! actor is written once, and by its number afterwards; whole numbers have as many bytes as they
//! need.
//!
//! What it is not: the bytes that clients get. Those are Riak's (`riak`).
//!
//! ```text
//! state   = 01, kind, content           kind = 1 counter, 2 set, 3 map, 4 gset, 5 hll
//! delta   = 01, kind, delta
//! change  = 01, 1, kind, request, 0 | 1 clock | 2, state without its version
//! summary = 01, kind, clock, precision or 0, bytes of the base, bytes of the deltas
//! number  = LEB128                      text = number of bytes, bytes
//! X*      = number of X, X …
//! actor   = its number; the first time followed by its text
//! dot     = actor, number               clock = dot*
//! tally   = added, subtracted           assignment = time (µs), text
//! counter = (actor, tally)*
//! members = (text, dot*)*
//! fields  = (type, text, dot*, content)*
//!           type = 1 counter (dot, tally)*, 2 register (dot, assignment)*, 3 map fields,
//!                  4 flag dot*, 5 set members
//! removal = (type, text)*, 1 field | 2 flag | 3 member, text
//! set     = clock, members, (clock, text*)*         its delta = before, after, members, …
//! map     = clock, fields, (clock, removal*)*       its delta = before, after, fields, …
//! gset    = text*
//! hll     = precision, 0, (gap, value)* | 1, text of 6 bits a register
//! amount  = 2n for n, 2n - 1 for -n
//! set op  = 1 add | 2 remove, text
//! map op  = 1 remove (type, text) | 2 update (type, text), of the field's type:
//!           amount, text and time (µs), map op*, 0 disable | 1 enable, set op*
//! request = amount, set op*, map op*, text* or text*, of the kind
//! ```
//!
//! Invariants: No length is trusted. A collection is at most as long as the bytes that are left,
//! and maps nest at most as deep as states do. What is read keeps the rules of its type, so a clock
//! is raised to the dots under it.

mod leaves;
mod reader;
mod requests;
mod states;
mod trees;
mod writer;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

use crate::BadBytes;
use bytes::Bytes;

/// The version of what is written.
const VERSION: u8 = 1;

/// What has a form in bytes.
pub(crate) trait Codec: Sized {
    fn write(&self, out: &mut Writer);
    fn read(from: &mut Reader) -> Result<Self, BadBytes>;
}

/// The bytes of one value.
pub(crate) fn encode(value: &impl Codec) -> Bytes {
    let mut out = Writer::default();
    out.byte(VERSION);
    value.write(&mut out);
    out.finish()
}

/// Reads bytes that hold one value and nothing else.
pub(crate) fn decode<T: Codec>(bytes: &Bytes) -> Result<T, BadBytes> {
    let mut from = Reader::new(bytes.clone());
    match from.byte()? {
        VERSION => {}
        version => return Err(BadBytes::UnknownVersion(version)),
    }
    let value = T::read(&mut from)?;
    from.finish()?;
    Ok(value)
}

#[cfg(test)]
mod tests;
