//! Riak's stored objects, versions 0 and 1, and the clocks that Riak's nodes send to clients
//! (docs/riak/backends.md §7, docs/riak/pb-api.md §17).
//!
//! What it is: the decoder for data directories of Riak nodes and for clients that send Riak's
//! clocks, and an encoder for version 1.
//!
//! What it is not: it is not Ombak's own layout ([`crate::stored_object`]). Stored data types of
//! Erlang are ordinary values here.
//!
//! Invariants: No length is trusted. Unknown metadata is kept unchanged ([`SiblingMeta::extra`]),
//! neither lost nor refused, so that one unusual pair does not cost the object.

mod v0;
mod v1;

pub use v1::encode;

use crate::clock::{Actor, COUNTER_MAX, Dot, VectorClock};
use crate::error::Error;
use crate::etf::{self, EtfError, Limits, Term};
use crate::object::{IndexEntry, IndexTerm, Link, Object, SiblingMeta};
use crate::stored_object::check_clock_len;
use crate::time::UnixMicros;
use bytes::Bytes;
use flate2::Decompress;
use std::borrow::Cow;

/// Why bytes are not an object of Riak.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a Riak object: {0}")]
pub struct BadRiakObject(Cow<'static, str>);

impl BadRiakObject {
    const fn new(why: &'static str) -> Self {
        Self(Cow::Borrowed(why))
    }
}

impl From<EtfError> for BadRiakObject {
    fn from(error: EtfError) -> Self {
        Self(Cow::Owned(format!("a term in it: {error}")))
    }
}

/// Decodes a stored object of either version; the first byte says which. Values of version 1 are
/// slices of `bytes`.
pub fn decode(bytes: &Bytes) -> Result<Object, BadRiakObject> {
    match bytes.first() {
        None => Err(BadRiakObject::new("empty")),
        Some(&v1::MAGIC) => v1::decode(bytes),
        Some(&etf::MAGIC) => v0::decode(bytes),
        Some(_) => Err(BadRiakObject::new("unknown first byte")),
    }
}

/// The limits for inflating and decoding a client's clock: more than enough for
/// [`crate::clock::ENTRIES_MAX`] entries.
const CLOCK_LIMITS: Limits = Limits { terms_max: 32 << 10, inflated_bytes_max: 2 << 20, depth_max: etf::DEPTH_MAX };

/// Decodes a clock that a Riak node issued: plain external term format, `{encode_raw, Clock}` in
/// external term format, or the raw DEFLATE of the external term format.
pub(crate) fn decode_client_clock(bytes: &[u8]) -> Result<VectorClock, Error> {
    let bad = |why: &dyn std::fmt::Display| Error::BadClock(why.to_string());
    let term = if bytes.first() == Some(&etf::MAGIC) {
        etf::decode_with(bytes, CLOCK_LIMITS)
    } else {
        let inflated = etf::inflate(Decompress::new(false), bytes, CLOCK_LIMITS.inflated_bytes_max)
            .ok_or_else(|| bad(&"neither a clock of this server nor one of a Riak node"))?;
        etf::decode_with(&inflated, CLOCK_LIMITS)
    };
    let term = term.map_err(|e| bad(&e))?;
    let clock = match term.as_tuple() {
        Some([method, clock]) if method.as_atom() == Some("encode_raw") => clock,
        _ => &term,
    };
    let clock = clock_from_term(clock).ok_or_else(|| bad(&"not a list of {Actor,{Counter,Seconds}}"))?;
    check_clock_len(&clock)?;
    Ok(clock)
}

fn clock_from_term(term: &Term) -> Option<VectorClock> {
    let entries = term.as_list()?.iter().map(dot_from_term).collect::<Option<Vec<Dot>>>()?;
    Some(VectorClock::from_entries(entries))
}

/// Decodes `{Actor, {Counter, GregorianSeconds}}`. The actor of a strongly consistent object is an
/// atom.
fn dot_from_term(term: &Term) -> Option<Dot> {
    let [actor, event] = term.as_tuple()?;
    let [counter, stamp] = event.as_tuple()?;
    let actor = match actor {
        Term::Binary(bytes) => Actor::try_new(bytes)?,
        Term::Atom(name) => Actor::try_new(name.as_bytes())?,
        _ => return None,
    };
    let counter = counter.as_u64().filter(|n| (1..=COUNTER_MAX).contains(n))?;
    Some(Dot { actor, counter, stamp_secs: stamp.as_u64()? })
}

fn dot_to_term(dot: &Dot) -> Term {
    let event = Term::pair(Term::from(dot.counter), Term::from(dot.stamp_secs));
    Term::pair(Term::binary(dot.actor.as_bytes()), event)
}

/// A clock as Erlang has it: the list of `{Actor, {Counter, GregorianSeconds}}`, sorted by actor.
pub fn clock_to_term(clock: &VectorClock) -> Term {
    Term::List(clock.entries().iter().map(dot_to_term).collect())
}

mod name {
    pub const CONTENT_TYPE: &[u8] = b"content-type";
    pub const CHARSET: &[u8] = b"charset";
    pub const CONTENT_ENCODING: &[u8] = b"content-encoding";
    pub const LINKS: &[u8] = b"Links";
    pub const USER_META: &[u8] = b"X-Riak-Meta";
    pub const INDEX: &[u8] = b"index";
    pub const DOT: &[u8] = b"dot";
    pub const VAL_ENCODING: &[u8] = b"X-Riak-Val-Encoding";
    /// Ombak's own pair: the time of expiry in Unix seconds. A Riak node keeps it, as it keeps all
    /// unknown pairs.
    pub const EXPIRES: &[u8] = b"X-Ombak-Expires";
}

/// Adds one pair to the metadata. Returns `false` and changes nothing if the name is unknown or the
/// value does not have Riak's form.
fn add_pair(meta: &mut SiblingMeta, pair_name: &[u8], value: &Term) -> bool {
    let taken = match pair_name {
        name::CONTENT_TYPE => value.as_text().map(|text| meta.content_type = Some(text)),
        name::CHARSET => value.as_text().map(|text| meta.charset = Some(text)),
        name::CONTENT_ENCODING => value.as_text().map(|text| meta.content_encoding = Some(text)),
        name::LINKS => each(value, link_from_term).map(|links| meta.links = links),
        name::USER_META => each(value, texts_from_term).map(|pairs| meta.user_meta = pairs),
        name::INDEX => each(value, index_from_term).map(|entries| meta.indexes = entries),
        name::DOT => dot_from_term(value).map(|dot| meta.dot = Some(dot)),
        name::VAL_ENCODING => {
            let tag = value.as_u64().and_then(|n| u8::try_from(n).ok());
            tag.filter(|&tag| tag > 1).map(|tag| meta.val_encoding = tag)
        }
        name::EXPIRES => {
            let at = value.as_u64().and_then(|n| u32::try_from(n).ok());
            at.map(|at| meta.expires_secs = Some(at))
        }
        _ => None,
    };
    taken.is_some()
}

fn each<T>(list: &Term, from_term: impl Fn(&Term) -> Option<T>) -> Option<Vec<T>> {
    list.as_list()?.iter().map(from_term).collect()
}

fn link_from_term(term: &Term) -> Option<Link> {
    let [target, tag] = term.as_tuple()?;
    let [bucket, key] = target.as_tuple()?;
    Some(Link { bucket: bucket.as_text()?, key: key.as_text()?, tag: tag.as_text()? })
}

fn texts_from_term(term: &Term) -> Option<(Bytes, Bytes)> {
    let [name, value] = term.as_tuple()?;
    Some((name.as_text()?, value.as_text()?))
}

fn index_from_term(term: &Term) -> Option<IndexEntry> {
    let [field, value] = term.as_tuple()?;
    let value = match value {
        Term::Int(n) => IndexTerm::Int((*n).into()),
        Term::Big(n) => IndexTerm::Int(n.clone()),
        other => IndexTerm::Bin(other.as_text()?),
    };
    Some(IndexEntry { field: field.as_text()?, term: value })
}

/// Decodes an instant from Erlang's `{MegaSeconds, Seconds, MicroSeconds}`; zero means that there
/// is none.
fn instant(mega: u64, secs: u64, micros: u64) -> Option<UnixMicros> {
    let secs = mega.checked_mul(1_000_000)?.checked_add(secs)?;
    let at = secs.checked_mul(1_000_000)?.checked_add(micros)?;
    (at > 0).then_some(UnixMicros(at))
}

#[cfg(test)]
mod tests;
