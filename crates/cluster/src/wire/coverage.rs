//! Parts of listings and index queries.
//!
//! ```text
//! request   version u8, u64 begun_us, homes, question, fields
//! homes     varint count, then for each: varint home, varint count, varint n of each class
//! question  u8 kind
//!           0 keys:     bytes bucket_type, bytes name
//!           1 buckets:  bytes bucket_type
//!           2 terms:    bytes bucket_type, bytes name, query, bytes field, term from, term to
//!           3 range:    bytes bucket_type, bytes name, query, bound from, bound to (of keys)
//! query     u8 flags (1 after, 2 results_max, 4 pattern, 8 tombstones),
//!           [u8 has_term, term if 1, bytes key], [varint results_max], [bytes pattern]
//! term      u8 (0 integer, 1 binary), bytes (an integer: two's complement, little-endian)
//! bound     u8 (0 none, 1 included, 2 excluded), bytes if not 0
//!
//! item      version u8, u8 kind
//!           0 names:    varint home, varint count, bytes each
//!           1 done:     varint home
//!           2 entries:  varint count, then for each: u8 has_term, term if 1, bytes key
//!           fields
//!           3 part:     bytes of an item that is too long, of which more follow: all that is left
//!           4 last:     the last bytes of such an item: all that is left
//! ```
//!
//! The version of the ring and the deadline travel in the header of the transport. The pattern
//! matches bytes, as in `ombak_kv::compile_pattern`.

use super::fields::no_fields;
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use num_bigint::BigInt;
use ombak_kv::{
    CoverageHome, CoverageItem, CoverageQuestion, CoverageRequest, IndexMatch, IndexQuery, QueryRange, compile_pattern,
};
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, IndexTerm};
use smallvec::SmallVec;
use std::ops::Bound;

/// The most home partitions of a request: those of the largest ring.
const HOMES_MAX: u32 = 1024;
/// The most classes of a home partition.
const CLASSES_MAX: u32 = 1024;
/// The longest integer term in bytes. Index entries have no longer ones.
const INTEGER_BYTES_MAX: usize = u16::MAX as usize + 1;

/// The kinds of the parts of an item.
const PART: u8 = 3;
const LAST_PART: u8 = 4;

const AFTER: u8 = 1;
const RESULTS_MAX: u8 = 2;
const PATTERN: u8 = 4;
const TOMBSTONES: u8 = 8;

/// Encodes a request. Its deadline and the version of its ring travel in the header of the
/// transport.
pub fn encode_coverage_request(request: &CoverageRequest) -> Body {
    let mut out = Writer::of_message();
    out.u64(request.begun.0);
    out.varint(request.homes.len() as u64);
    for part in &request.homes {
        out.varint(u64::from(part.home));
        out.varint(part.classes.len() as u64);
        part.classes.iter().for_each(|n| out.varint(u64::from(*n)));
    }
    match &request.question {
        CoverageQuestion::Keys(bucket) => {
            out.u8(0);
            put_bucket(bucket, &mut out);
        }
        CoverageQuestion::Buckets(bucket_type) => {
            out.u8(1);
            out.bytes(bucket_type);
        }
        CoverageQuestion::Entries(query) => put_query(query, &mut out),
    }
    out.end_fields();
    out.finish()
}

fn put_bucket(bucket: &Bucket, out: &mut Writer) {
    out.bytes(&bucket.bucket_type);
    out.bytes(&bucket.name);
}

fn put_query(query: &IndexQuery, out: &mut Writer) {
    out.u8(if matches!(query.range, QueryRange::Terms { .. }) { 2 } else { 3 });
    put_bucket(&query.bucket, out);
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.u8(flag(query.after.is_some(), AFTER)
        | flag(query.results_max.is_some(), RESULTS_MAX)
        | flag(query.pattern.is_some(), PATTERN)
        | flag(query.shows_tombstones, TOMBSTONES));
    if let Some((term, key)) = &query.after {
        put_optional_term(term.as_ref(), out);
        out.bytes(key);
    }
    if let Some(results_max) = query.results_max {
        out.varint(results_max as u64);
    }
    if let Some(pattern) = &query.pattern {
        out.bytes(pattern.as_str().as_bytes());
    }
    match &query.range {
        QueryRange::Terms { field, from, to } => {
            out.bytes(field);
            put_term(from, out);
            put_term(to, out);
        }
        QueryRange::Keys { from, to } => {
            put_bound(from, out);
            put_bound(to, out);
        }
    }
}

fn put_optional_term(term: Option<&IndexTerm>, out: &mut Writer) {
    out.u8(u8::from(term.is_some()));
    term.into_iter().for_each(|term| put_term(term, out));
}

fn put_term(term: &IndexTerm, out: &mut Writer) {
    match term {
        IndexTerm::Int(number) => {
            out.u8(0);
            out.bytes(&number.to_signed_bytes_le());
        }
        IndexTerm::Bin(bytes) => {
            out.u8(1);
            out.bytes(bytes);
        }
    }
}

fn put_bound(bound: &Bound<Bytes>, out: &mut Writer) {
    match bound {
        Bound::Unbounded => out.u8(0),
        Bound::Included(key) => {
            out.u8(1);
            out.bytes(key);
        }
        Bound::Excluded(key) => {
            out.u8(2);
            out.bytes(key);
        }
    }
}

/// Decodes a request that was sent with a ring version, without a deadline.
pub fn decode_coverage_request(message: &Bytes, ring: RingVersion) -> Result<CoverageRequest, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let r = &mut reader;
    let begun = UnixMicros(r.u64()?);
    let mut homes = Vec::new();
    for _ in 0..count(r, HOMES_MAX)? {
        let home = r.varint32()?;
        let mut classes = SmallVec::new();
        for _ in 0..count(r, CLASSES_MAX)? {
            classes.push(r.varint32()?);
        }
        homes.push(CoverageHome { home, classes });
    }
    let question = match r.u8()? {
        0 => CoverageQuestion::Keys(bucket(r)?),
        1 => CoverageQuestion::Buckets(r.bytes()?),
        kind @ (2 | 3) => CoverageQuestion::Entries(query(kind, r)?),
        _ => return Err(Malformed("the question is not known")),
    };
    no_fields(r)?;
    r.end()?;
    Ok(CoverageRequest { question, homes, ring, begun, deadline: None })
}

fn count(r: &mut Reader<'_>, max: u32) -> Result<u32, Malformed> {
    match r.varint32()? {
        count if count <= max => Ok(count),
        _ => Err(Malformed("a list is too long")),
    }
}

fn bucket(r: &mut Reader<'_>) -> Result<Bucket, Malformed> {
    Ok(Bucket { bucket_type: owned(&r.bytes()?), name: owned(&r.bytes()?) })
}

fn query(kind: u8, r: &mut Reader<'_>) -> Result<IndexQuery, Malformed> {
    let bucket = bucket(r)?;
    let flags = r.u8()?;
    if flags & !(AFTER | RESULTS_MAX | PATTERN | TOMBSTONES) != 0 {
        return Err(Malformed("a flag of the query is not known"));
    }
    let has = |flag: u8| flags & flag != 0;
    let after = if has(AFTER) { Some((optional_term(r)?, owned(&r.bytes()?))) } else { None };
    let results_max = if has(RESULTS_MAX) {
        Some(usize::try_from(r.varint()?).map_err(|_| Malformed("a number is too large"))?)
    } else {
        None
    };
    let pattern = if has(PATTERN) {
        let text = r.bytes()?;
        let text = str::from_utf8(&text).map_err(|_| Malformed("a pattern is not UTF-8"))?;
        Some(compile_pattern(text).map_err(|_| Malformed("a pattern does not compile"))?)
    } else {
        None
    };
    let range = if kind == 2 {
        QueryRange::Terms { field: owned(&r.bytes()?), from: term(r)?, to: term(r)? }
    } else {
        QueryRange::Keys { from: bound(r)?, to: bound(r)? }
    };
    Ok(IndexQuery { bucket, range, after, results_max, pattern, shows_tombstones: has(TOMBSTONES) })
}

fn optional_term(r: &mut Reader<'_>) -> Result<Option<IndexTerm>, Malformed> {
    match r.u8()? {
        0 => Ok(None),
        1 => term(r).map(Some),
        _ => Err(Malformed("a term is neither there nor absent")),
    }
}

fn term(r: &mut Reader<'_>) -> Result<IndexTerm, Malformed> {
    match (r.u8()?, r.bytes()?) {
        (0, bytes) if bytes.len() <= INTEGER_BYTES_MAX => Ok(IndexTerm::Int(BigInt::from_signed_bytes_le(&bytes))),
        (1, bytes) => Ok(IndexTerm::Bin(owned(&bytes))),
        _ => Err(Malformed("a term is of no known kind")),
    }
}

fn bound(r: &mut Reader<'_>) -> Result<Bound<Bytes>, Malformed> {
    match r.u8()? {
        0 => Ok(Bound::Unbounded),
        1 => Ok(Bound::Included(owned(&r.bytes()?))),
        2 => Ok(Bound::Excluded(owned(&r.bytes()?))),
        _ => Err(Malformed("a bound is of no known kind")),
    }
}

/// A query lives longer than the bytes that were read together with it.
fn owned(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// Encodes a piece of an answer as one item or several, each of which has about `bytes_max` bytes
/// at most, or one name or entry.
pub fn encode_coverage_item(item: &CoverageItem, bytes_max: usize) -> Vec<Body> {
    match item {
        CoverageItem::HomeDone(home) => {
            let mut out = Writer::of_message();
            out.u8(1);
            out.varint(u64::from(*home));
            out.end_fields();
            vec![out.finish()]
        }
        CoverageItem::Names { home, names } => {
            let head = |out: &mut Writer| {
                out.u8(0);
                out.varint(u64::from(*home));
            };
            chunks(names, bytes_max, |name| name.len(), head, |name, out| out.bytes(name))
        }
        CoverageItem::Entries(entries) => {
            let put = |found: &IndexMatch, out: &mut Writer| {
                put_optional_term(found.term.as_ref(), out);
                out.bytes(&found.key);
            };
            chunks(entries, bytes_max, entry_bytes, |out| out.u8(2), put)
        }
    }
}

fn entry_bytes(found: &IndexMatch) -> usize {
    let term = match &found.term {
        None => 0,
        Some(IndexTerm::Bin(term)) => term.len(),
        Some(IndexTerm::Int(term)) => usize::try_from(term.bits() / 8).unwrap_or(usize::MAX),
    };
    term.saturating_add(found.key.len())
}

/// Messages of as many parts as fit.
fn chunks<T>(
    parts: &[T],
    bytes_max: usize,
    bytes_of: impl Fn(&T) -> usize,
    head: impl Fn(&mut Writer),
    put: impl Fn(&T, &mut Writer),
) -> Vec<Body> {
    /// More than what a part has beside its bytes.
    const PART_COST: usize = 16;
    let mut messages = Vec::new();
    let mut rest = parts;
    while !rest.is_empty() {
        let mut bytes = 0usize;
        let fits = |part: &&T| {
            bytes = bytes.saturating_add(PART_COST).saturating_add(bytes_of(part));
            bytes <= bytes_max
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (now, later) = rest.split_at(count);
        let mut out = Writer::of_message();
        head(&mut out);
        out.varint(now.len() as u64);
        now.iter().for_each(|part| put(part, &mut out));
        out.end_fields();
        messages.push(out.finish());
        rest = later;
    }
    messages
}

/// Cuts an item that is longer than `bytes_max` into parts of about that length. An item has one
/// name or entry at least, however long that is.
pub fn split_coverage_item(item: Body, bytes_max: usize) -> Vec<Body> {
    if item.len() <= bytes_max {
        return vec![item];
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    for part in item.parts() {
        let starts = (0..part.len()).step_by(bytes_max);
        pieces.extend(starts.map(|start| part.slice(start..part.len().min(start + bytes_max))));
    }
    let last = pieces.len() - 1;
    let message = |(at, piece): (usize, &Bytes)| {
        let mut out = Writer::of_message();
        out.u8(if at == last { LAST_PART } else { PART });
        out.finish_with(piece)
    };
    pieces.iter().enumerate().map(message).collect()
}

/// What one message of an answer is.
#[derive(Debug)]
pub enum CoverageMessage {
    /// A whole item.
    Item(CoverageItem),
    /// A part of an item. The last one says so.
    Part {
        /// The next bytes of the item.
        bytes: Bytes,
        /// Whether the item ends with them.
        is_last: bool,
    },
}

/// Decodes a message of an answer.
pub fn decode_coverage_message(message: &Bytes) -> Result<CoverageMessage, Malformed> {
    let mut reader = Reader::of_message(message)?;
    match reader.u8()? {
        kind @ (PART | LAST_PART) => Ok(CoverageMessage::Part { bytes: reader.rest()?, is_last: kind == LAST_PART }),
        _ => decode_coverage_item(message).map(CoverageMessage::Item),
    }
}

fn at_least_one(r: &mut Reader<'_>) -> Result<u32, Malformed> {
    match r.varint32()? {
        0 => Err(Malformed("an item is empty")),
        count => Ok(count),
    }
}

/// Decodes an item.
pub fn decode_coverage_item(message: &Bytes) -> Result<CoverageItem, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let r = &mut reader;
    let item = match r.u8()? {
        0 => {
            let home = r.varint32()?;
            let mut names = Vec::new();
            for _ in 0..at_least_one(r)? {
                names.push(r.bytes()?);
            }
            CoverageItem::Names { home, names }
        }
        1 => CoverageItem::HomeDone(r.varint32()?),
        2 => {
            let mut entries = Vec::new();
            for _ in 0..at_least_one(r)? {
                entries.push(IndexMatch { term: optional_term(r)?, key: r.bytes()? });
            }
            CoverageItem::Entries(entries)
        }
        _ => return Err(Malformed("the item is of no known kind")),
    };
    no_fields(r)?;
    r.end()?;
    Ok(item)
}
