//! Version 1 of Riak's stored objects: lengths, values and metadata one after the other
//! (docs/riak/backends.md §7.1).

use super::{BadRiakObject, add_pair, clock_from_term, clock_to_term, dot_to_term, instant, name};
use crate::etf::{self, Term};
use crate::object::{IndexTerm, Object, Sibling, SiblingMeta, VAL_ENCODING_TERM};
use bytes::Bytes;

pub(super) const MAGIC: u8 = 53;
const VERSION: u8 = 1;

/// The tag in front of a value or of a part of a pair: 0 for the external format of a term, 1 for
/// bytes.
const TAG_TERM: u8 = 0;
const TAG_BYTES: u8 = 1;

/// The stored form of a missing vtag.
const NO_VTAG: &[u8] = b"e";

/// The minimum length of a sibling, in bytes: two lengths and the fixed metadata.
const SIBLING_BYTES_MIN: usize = 4 + 4 + 14;

const CUT_SHORT: BadRiakObject = BadRiakObject::new("cut short");

pub(super) fn decode(bytes: &Bytes) -> Result<Object, BadRiakObject> {
    let mut r = Reader { rest: bytes.clone() };
    if r.u8()? != MAGIC || r.u8()? != VERSION {
        return Err(BadRiakObject::new("unknown version"));
    }
    let clock = clock_from_term(&etf::decode(&r.sized()?)?).ok_or(BadRiakObject::new("its clock is not one"))?;
    let count = r.u32()? as usize;
    if count > r.rest.len() / SIBLING_BYTES_MIN {
        return Err(BadRiakObject::new("more siblings than bytes"));
    }
    let mut siblings = Vec::with_capacity(count);
    for _ in 0..count {
        siblings.push(sibling(&mut r)?);
    }
    if !r.rest.is_empty() {
        return Err(BadRiakObject::new("bytes after the end"));
    }
    Ok(Object { clock, siblings })
}

fn sibling(r: &mut Reader) -> Result<Sibling, BadRiakObject> {
    let mut tagged = r.sized()?;
    let meta = r.sized()?;
    // A value without even a tag belongs to a head; the value is stored elsewhere.
    let tag = if tagged.is_empty() { TAG_BYTES } else { tagged.split_to(1)[0] };
    let mut sibling = Sibling { value: tagged, meta: metadata(meta)? };
    match tag {
        TAG_BYTES => {}
        TAG_TERM => sibling.meta.val_encoding = VAL_ENCODING_TERM,
        other => sibling.meta.val_encoding = other,
    }
    Ok(sibling)
}

fn metadata(bytes: Bytes) -> Result<SiblingMeta, BadRiakObject> {
    let mut r = Reader { rest: bytes };
    let (mega, secs, micros) = (r.u32()?, r.u32()?, r.u32()?);
    let vtag_len = usize::from(r.u8()?);
    let vtag = r.take(vtag_len)?;
    let mut meta = SiblingMeta {
        last_modified: instant(mega.into(), secs.into(), micros.into()),
        vtag: (vtag != NO_VTAG).then_some(vtag),
        deleted: r.u8()? == 1,
        ..SiblingMeta::default()
    };
    while !r.rest.is_empty() {
        let (name, value) = (r.sized()?, r.sized()?);
        let known = match (part(&name), part(&value)) {
            (Some(name), Some(value)) => name.as_text().is_some_and(|name| add_pair(&mut meta, &name, &value)),
            _ => false,
        };
        if !known {
            meta.extra.push((name, value));
        }
    }
    Ok(meta)
}

/// A tagged part of a pair as a term; `None` if it is not a term.
fn part(tagged: &Bytes) -> Option<Term> {
    match tagged.split_first()? {
        (&TAG_TERM, term) => etf::decode(term).ok(),
        (&TAG_BYTES, _) => Some(Term::Binary(tagged.slice(1..))),
        _ => None,
    }
}

struct Reader {
    rest: Bytes,
}

impl Reader {
    fn u8(&mut self) -> Result<u8, BadRiakObject> {
        self.take(1)?.first().copied().ok_or(CUT_SHORT)
    }

    fn u32(&mut self) -> Result<u32, BadRiakObject> {
        self.take(4)?.first_chunk().map(|b| u32::from_be_bytes(*b)).ok_or(CUT_SHORT)
    }

    fn take(&mut self, len: usize) -> Result<Bytes, BadRiakObject> {
        if len > self.rest.len() {
            return Err(CUT_SHORT);
        }
        Ok(self.rest.split_to(len))
    }

    /// Reads a length and the bytes after it.
    fn sized(&mut self) -> Result<Bytes, BadRiakObject> {
        let len = self.u32()? as usize;
        self.take(len)
    }
}

/// Encodes an object as a Riak node stores it. The order of the pairs is free. Every object has an
/// `index` pair, as objects that were written through Riak's put path have.
///
/// # Panics
/// If a part has four gigabytes. Object sizes are limited to far less.
pub fn encode(object: &Object) -> Vec<u8> {
    let mut out = vec![MAGIC, VERSION];
    put_sized(&etf::encode(&clock_to_term(&object.clock)), &mut out);
    put_len(object.siblings.len(), &mut out);
    for sibling in &object.siblings {
        let tag = match sibling.meta.val_encoding {
            0 => TAG_BYTES,
            VAL_ENCODING_TERM => TAG_TERM,
            other => other,
        };
        put_len(sibling.value.len() + 1, &mut out);
        out.push(tag);
        out.extend_from_slice(&sibling.value);
        put_sized(&encode_metadata(&sibling.meta), &mut out);
    }
    out
}

fn encode_metadata(meta: &SiblingMeta) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let at = meta.last_modified.unwrap_or_default();
    for n in [at.secs() / 1_000_000, at.secs() % 1_000_000, u64::from(at.subsec_us())] {
        out.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes());
    }
    let vtag = meta.vtag.as_deref().filter(|vtag| vtag.len() <= 255).unwrap_or(NO_VTAG);
    out.push(vtag.len() as u8);
    out.extend_from_slice(vtag);
    out.push(u8::from(meta.deleted));
    put_pairs(meta, &mut out);
    out
}

fn put_pairs(meta: &SiblingMeta, out: &mut Vec<u8>) {
    let texts = |(name, value): &(Bytes, Bytes)| Term::pair(Term::string(name), Term::string(value));
    put_pair(
        name::INDEX,
        &list(&meta.indexes, |entry| {
            let term = match &entry.term {
                IndexTerm::Int(n) => Term::from(n.clone()),
                IndexTerm::Bin(bytes) => Term::Binary(bytes.clone()),
            };
            Term::pair(Term::Binary(entry.field.clone()), term)
        }),
        out,
    );
    if let Some(content_type) = &meta.content_type {
        put_pair(name::CONTENT_TYPE, &Term::string(content_type), out);
    }
    if let Some(charset) = &meta.charset {
        put_pair(name::CHARSET, &Term::string(charset), out);
    }
    if let Some(encoding) = &meta.content_encoding {
        put_pair(name::CONTENT_ENCODING, &Term::string(encoding), out);
    }
    if !meta.links.is_empty() {
        put_pair(
            name::LINKS,
            &list(&meta.links, |link| {
                let target = Term::pair(Term::Binary(link.bucket.clone()), Term::Binary(link.key.clone()));
                Term::pair(target, Term::Binary(link.tag.clone()))
            }),
            out,
        );
    }
    if !meta.user_meta.is_empty() {
        put_pair(name::USER_META, &list(&meta.user_meta, texts), out);
    }
    if let Some(dot) = &meta.dot {
        put_pair(name::DOT, &dot_to_term(dot), out);
    }
    if let Some(at) = meta.expires_secs {
        put_pair(name::EXPIRES, &Term::from(u64::from(at)), out);
    }
    for (name, value) in &meta.extra {
        put_sized(name, out);
        put_sized(value, out);
    }
}

fn list<T>(items: &[T], to_term: impl Fn(&T) -> Term) -> Term {
    Term::List(items.iter().map(to_term).collect())
}

fn put_pair(name: &[u8], value: &Term, out: &mut Vec<u8>) {
    put_len(name.len() + 1, out);
    out.push(TAG_BYTES);
    out.extend_from_slice(name);
    let mut tagged = vec![TAG_TERM];
    etf::encode_to(value, &mut tagged);
    put_sized(&tagged, out);
}

fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    put_len(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_len(len: usize, out: &mut Vec<u8>) {
    assert!(u32::try_from(len).is_ok(), "a part of {len} bytes does not fit the stored form");
    out.extend_from_slice(&(len as u32).to_be_bytes());
}
