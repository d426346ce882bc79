//! Ombak's own versioned layouts of stored objects and of clients' clocks.
//!
//! An object is stored in two parts. The *head* holds the clock and the metadata of every sibling.
//! The *body* holds the values one after the other. Therefore a reader of heads never reads values,
//! and a value is a slice of the bytes that were read, without a copy. [`crate::riak_object`] has
//! Riak's own bytes.
//!
//! Head, version 1 (`varint` = LEB128, `bytes` = varint length + bytes). Version 2 adds the kind
//! `EXPIRES` and is written when a sibling has such a part; everything else is the same.
//!
//! ```text
//! 4F version  clock  varint siblings  sibling*
//! clock   = varint entries, entry*            entry = dot
//! dot     = u8 actor_len, actor, varint counter, varint stamp (Gregorian seconds)
//! sibling = varint value_len, u8 flags, part*
//! flags   = 1 deleted, 2 has dot, 4 has vtag, 8 has last-modified, 16 has content type,
//!           32 has rare parts
//! part    = in the order of the flags: dot, bytes vtag, varint last-modified (µs),
//!           bytes content type, rare: (u8 kind, bytes+)*, 0       kinds: see `rare`
//! ```
//!
//! Hot path: [`SingleSibling::read`] runs for every get, [`decode`] and [`encode_head`] for every
//! put. [`decode`] and [`encode_head`] allocate only the vectors of an object; every text and value
//! is a slice of the bytes that were read.
//!
//! A clock for clients is `4F 01 clock`. Neither the external term format (131) nor a raw DEFLATE
//! stream can start with its first byte. Clocks that Riak issued (docs/riak/pb-api.md §17) can
//! therefore be distinguished, and are accepted as well.

use crate::clock::{Actor, COUNTER_MAX, Dot, ENTRIES_MAX, VectorClock};
use crate::error::Error;
use crate::object::{IndexEntry, IndexTerm, KindState, Link, Object, Sibling, SiblingMeta};
use crate::riak_object;
use crate::time::UnixMicros;
use bytes::Bytes;
use num_bigint::BigInt;
use std::ops::Range;

/// The first byte of every layout in this file.
pub const MAGIC: u8 = 0x4F;
/// The version of clocks, and of heads without a time of expiry.
pub const VERSION: u8 = 1;
/// The version of heads with a time of expiry. It differs, because a reader that does not know
/// expiry must not serve the object for ever.
const VERSION_EXPIRING: u8 = 2;

/// Why bytes are not a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a stored object: {0}")]
pub struct Corrupt(pub &'static str);

mod flag {
    pub const DELETED: u8 = 1;
    pub const DOT: u8 = 2;
    pub const VTAG: u8 = 4;
    pub const LAST_MODIFIED: u8 = 8;
    pub const CONTENT_TYPE: u8 = 16;
    pub const RARE: u8 = 32;
}

/// Kinds of parts that few objects have. A reader refuses an object with a kind that it does not
/// know.
mod rare {
    pub const END: u8 = 0;
    pub const CHARSET: u8 = 1;
    pub const CONTENT_ENCODING: u8 = 2;
    /// bucket, key, tag
    pub const LINK: u8 = 3;
    /// name, value
    pub const USER_META: u8 = 4;
    /// field, term
    pub const INDEX_BIN: u8 = 5;
    /// field, term as signed big-endian bytes
    pub const INDEX_INT: u8 = 6;
    /// one byte
    pub const VAL_ENCODING: u8 = 7;
    /// name, value
    pub const EXTRA: u8 = 8;
    /// Only in version 2. Unix seconds, four bytes, big-endian
    pub const EXPIRES: u8 = 9;
    /// The kind of a value that is not plain bytes: two bytes, big-endian, not 0. Programs that do
    /// not know this part refuse the object, because its value is not what clients see.
    pub const VALUE_KIND: u8 = 10;
    /// The events in a value of a kind: a clock.
    pub const EVENTS: u8 = 11;
    /// What the kind knows of a large value. It follows the events.
    pub const SUMMARY: u8 = 12;
}

/// Writes the head of `object` to `out`. The body is the values in the order of the siblings.
pub fn encode_head(object: &Object, out: &mut Vec<u8>) {
    put_head_start(object, out);
    for sibling in &object.siblings {
        put_varint(sibling.value.len() as u64, out);
        put_metadata(&sibling.meta, out);
    }
}

/// Writes the head of an object with one value, of which only the length is known here.
///
/// # Panics
/// If the object does not have exactly one sibling, without a value.
pub fn encode_head_of_length(object: &Object, value_bytes: u64, out: &mut Vec<u8>) {
    let [only] = object.siblings.as_slice() else { panic!("an object of {} siblings", object.siblings.len()) };
    assert!(only.value.is_empty(), "the value is here, so its length is known");
    put_head_start(object, out);
    put_varint(value_bytes, out);
    put_metadata(&only.meta, out);
}

/// The length of the value of the only sibling in a head; `None` if there are several siblings.
pub fn single_value_bytes(head: &Bytes) -> Result<Option<u64>, Corrupt> {
    let mut r = Reader { whole: head, owner: None, at: 0 };
    r.version(VERSION_EXPIRING)?;
    for _ in 0..r.count(DOT_BYTES_MIN, "more clock entries than bytes")? {
        r.skip_dot()?;
    }
    match r.count(SIBLING_BYTES_MIN, "more siblings than bytes")? {
        1 => r.varint().map(Some),
        _ => Ok(None),
    }
}

fn put_head_start(object: &Object, out: &mut Vec<u8>) {
    let expires = object.siblings.iter().any(|s| s.meta.expires_secs.is_some());
    out.extend_from_slice(&[MAGIC, if expires { VERSION_EXPIRING } else { VERSION }]);
    put_clock(&object.clock, out);
    put_varint(object.siblings.len() as u64, out);
}

/// Decodes an object and sorts its siblings, because earlier versions stored them in the order of
/// writing. `body` is `None` when only the head was read: then values are empty, and siblings stay
/// in their stored order.
pub fn decode(head: &Bytes, body: Option<&Bytes>) -> Result<Object, Corrupt> {
    let (mut object, values_bytes) = decode_parts(head, body)?;
    if let Some(body) = body {
        if values_bytes != body.len() as u64 {
            return Err(Corrupt("bytes after the end"));
        }
        object.order_siblings();
    }
    Ok(object)
}

/// Decodes a head. Returns the object, whose values are empty and whose siblings stay in their
/// stored order, and the bytes of all values together.
pub fn decode_head(head: &Bytes) -> Result<(Object, u64), Corrupt> {
    decode_parts(head, None)
}

fn decode_parts(head: &Bytes, body: Option<&Bytes>) -> Result<(Object, u64), Corrupt> {
    let mut r = Reader { whole: head, owner: Some(head), at: 0 };
    r.version(VERSION_EXPIRING)?;
    let clock = r.clock()?;
    let count = r.count(SIBLING_BYTES_MIN, "more siblings than bytes")?;
    let mut siblings = Vec::with_capacity(count);
    let mut values_bytes = 0u64;
    for at in 0..count {
        let value_bytes = r.varint()?;
        // A sibling is large, so it is filled where it stays.
        siblings.push(Sibling::default());
        let sibling = &mut siblings[at];
        r.metadata(&mut sibling.meta)?;
        let end = values_bytes.checked_add(value_bytes).ok_or(Corrupt("value length"))?;
        if let Some(body) = body {
            if end > body.len() as u64 {
                return Err(Corrupt("a value runs past the body"));
            }
            sibling.value = body.slice(values_bytes as usize..end as usize);
        }
        values_bytes = end;
    }
    if r.at != head.len() {
        return Err(Corrupt("bytes after the end"));
    }
    Ok((Object { clock, siblings }, values_bytes))
}

/// An object with one sibling and without rare parts, as it was read. Nearly every get finds such
/// an object. Fields that a reply can copy in their stored form are not decoded.
#[derive(Clone, Debug)]
pub struct SingleSibling {
    head: Bytes,
    value: Bytes,
    clock_end: usize,
    vtag: Range<usize>,
    content_type: Range<usize>,
    flags: u8,
    last_modified: UnixMicros,
}

impl SingleSibling {
    /// Reads an object; returns `None` when it has another form and [`decode`] must decode it.
    /// Makes the same checks as `decode` in the same order, so that both report the same
    /// corruption.
    pub fn read(head: &Bytes, body: &Bytes) -> Result<Option<Self>, Corrupt> {
        let mut r = Reader { whole: head, owner: None, at: 0 };
        // The clock that a client receives begins with this version byte, so it must be that of
        // clocks.
        if r.version(VERSION_EXPIRING)? != VERSION {
            return Ok(None);
        }
        for _ in 0..r.count(DOT_BYTES_MIN, "more clock entries than bytes")? {
            r.skip_dot()?;
        }
        let clock_end = r.at;
        if r.count(SIBLING_BYTES_MIN, "more siblings than bytes")? != 1 {
            return Ok(None);
        }
        let value_len = r.varint()?;
        let flags = r.u8()?;
        if flags & flag::RARE != 0 {
            return Ok(None);
        }
        if flags > flag::RARE {
            return Err(Corrupt("unknown flag"));
        }
        let has = |bit: u8| flags & bit != 0;
        if has(flag::DOT) {
            r.skip_dot()?;
        }
        let vtag = if has(flag::VTAG) { r.range()? } else { 0..0 };
        let last_modified = UnixMicros(if has(flag::LAST_MODIFIED) { r.varint()? } else { 0 });
        let content_type = if has(flag::CONTENT_TYPE) { r.range()? } else { 0..0 };
        if value_len > body.len() as u64 {
            return Err(Corrupt("a value runs past the body"));
        }
        if r.at != head.len() || value_len != body.len() as u64 {
            return Err(Corrupt("bytes after the end"));
        }
        let (head, value) = (head.clone(), body.clone());
        Ok(Some(Self { head, value, clock_end, vtag, content_type, flags, last_modified }))
    }

    /// The clock in the form that clients receive. A stored object begins with these bytes.
    pub fn clock_bytes(&self) -> &[u8] {
        self.head.get(..self.clock_end).unwrap_or_default()
    }

    /// The value.
    pub const fn value(&self) -> &Bytes {
        &self.value
    }

    /// The content type that clients see.
    pub fn content_type(&self) -> Option<&[u8]> {
        self.text(flag::CONTENT_TYPE, &self.content_type)
    }

    /// The vtag of the sibling.
    pub fn vtag(&self) -> Option<&[u8]> {
        self.text(flag::VTAG, &self.vtag)
    }

    /// The time at which it was written.
    pub fn last_modified(&self) -> Option<UnixMicros> {
        self.has(flag::LAST_MODIFIED).then_some(self.last_modified)
    }

    /// Whether it is a tombstone.
    pub fn is_deleted(&self) -> bool {
        self.has(flag::DELETED)
    }

    /// Decodes the whole object.
    pub fn decode(&self) -> Result<Object, Corrupt> {
        decode(&self.head, Some(&self.value))
    }

    fn has(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }

    fn text(&self, bit: u8, range: &Range<usize>) -> Option<&[u8]> {
        if self.has(bit) { self.head.get(range.clone()) } else { None }
    }
}

/// Encodes a clock in the form that clients receive; it is opaque to them.
pub fn encode_clock(clock: &VectorClock) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + 24 * clock.entries().len());
    out.extend_from_slice(&[MAGIC, VERSION]);
    put_clock(clock, &mut out);
    out
}

/// Decodes a clock that a client sent: one of Ombak's, or one that a Riak node issued. Empty bytes
/// are the empty clock.
pub fn decode_clock(bytes: &[u8]) -> Result<VectorClock, Error> {
    match bytes.first() {
        None => Ok(VectorClock::new()),
        Some(&MAGIC) => {
            let mut r = Reader { whole: bytes, owner: None, at: 0 };
            let clock = r.version(VERSION).and_then(|_| r.clock()).map_err(|e| Error::BadClock(e.0.into()))?;
            if r.at != bytes.len() {
                return Err(Error::BadClock("bytes after the end".into()));
            }
            check_clock_len(&clock)?;
            Ok(clock)
        }
        Some(_) => riak_object::decode_client_clock(bytes),
    }
}

/// Checks the length of a client's clock. The clock is compared and merged in memory and stored
/// with every copy, so it must not be larger than a node could have made it.
pub(crate) fn check_clock_len(clock: &VectorClock) -> Result<(), Error> {
    match clock.entries().len() {
        0..=ENTRIES_MAX => Ok(()),
        len => Err(Error::BadClock(format!("{len} entries, at most {ENTRIES_MAX} are taken"))),
    }
}

fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_clock(clock: &VectorClock, out: &mut Vec<u8>) {
    put_varint(clock.entries().len() as u64, out);
    for entry in clock.entries() {
        put_dot(entry, out);
    }
}

fn put_dot(dot: &Dot, out: &mut Vec<u8>) {
    let actor = dot.actor.as_bytes();
    out.push(actor.len() as u8); // An actor has at most 255 bytes.
    out.extend_from_slice(actor);
    put_varint(dot.counter, out);
    put_varint(dot.stamp_secs, out);
}

fn put_metadata(m: &SiblingMeta, out: &mut Vec<u8>) {
    let has_rare = m.charset.is_some()
        || m.content_encoding.is_some()
        || !m.links.is_empty()
        || !m.user_meta.is_empty()
        || !m.indexes.is_empty()
        || m.val_encoding != 0
        || !m.extra.is_empty()
        || m.expires_secs.is_some()
        || m.kind != 0
        || m.of_kind.is_some();
    let flags = [
        (m.deleted, flag::DELETED),
        (m.dot.is_some(), flag::DOT),
        (m.vtag.is_some(), flag::VTAG),
        (m.last_modified.is_some(), flag::LAST_MODIFIED),
        (m.content_type.is_some(), flag::CONTENT_TYPE),
        (has_rare, flag::RARE),
    ];
    out.push(flags.iter().fold(0, |acc, (set, bit)| if *set { acc | bit } else { acc }));
    if let Some(dot) = &m.dot {
        put_dot(dot, out);
    }
    if let Some(vtag) = &m.vtag {
        put_bytes(vtag, out);
    }
    if let Some(at) = m.last_modified {
        put_varint(at.0, out);
    }
    if let Some(content_type) = &m.content_type {
        put_bytes(content_type, out);
    }
    if has_rare {
        put_rare(m, out);
    }
}

fn put_rare(m: &SiblingMeta, out: &mut Vec<u8>) {
    let mut part = |kind: u8, fields: &[&[u8]]| {
        out.push(kind);
        for field in fields {
            put_bytes(field, out);
        }
    };
    if let Some(charset) = &m.charset {
        part(rare::CHARSET, &[charset]);
    }
    if let Some(encoding) = &m.content_encoding {
        part(rare::CONTENT_ENCODING, &[encoding]);
    }
    for link in &m.links {
        part(rare::LINK, &[&link.bucket, &link.key, &link.tag]);
    }
    for (name, value) in &m.user_meta {
        part(rare::USER_META, &[name, value]);
    }
    for entry in &m.indexes {
        match &entry.term {
            IndexTerm::Bin(term) => part(rare::INDEX_BIN, &[&entry.field, term]),
            IndexTerm::Int(term) => part(rare::INDEX_INT, &[&entry.field, &term.to_signed_bytes_be()]),
        }
    }
    if m.val_encoding != 0 {
        part(rare::VAL_ENCODING, &[&[m.val_encoding]]);
    }
    for (name, value) in &m.extra {
        part(rare::EXTRA, &[name, value]);
    }
    if let Some(at) = m.expires_secs {
        part(rare::EXPIRES, &[&at.to_be_bytes()]);
    }
    if m.kind != 0 {
        part(rare::VALUE_KIND, &[&m.kind.to_be_bytes()]);
    }
    if let Some(state) = &m.of_kind {
        let mut events = Vec::new();
        put_clock(&state.events, &mut events);
        part(rare::EVENTS, &[&events]);
        if !state.summary.is_empty() {
            part(rare::SUMMARY, &[&state.summary]);
        }
    }
    out.push(rare::END);
}

/// The minimum lengths of a dot and of a sibling, in bytes. They prevent a count from allocating
/// more memory than the remaining bytes can need.
const DOT_BYTES_MIN: usize = 3;
const SIBLING_BYTES_MIN: usize = 2;

/// The maximum length of a varint: a 64-bit number with seven bits per byte.
const VARINT_BYTES_MAX: usize = 10;

fn check_counter(counter: u64) -> Result<u64, Corrupt> {
    if (1..=COUNTER_MAX).contains(&counter) { Ok(counter) } else { Err(Corrupt("a counter that no actor reaches")) }
}

struct Reader<'a> {
    whole: &'a [u8],
    /// The buffer that holds `whole`, so that fields can be slices of it; without it fields are
    /// copied.
    owner: Option<&'a Bytes>,
    at: usize,
}

impl Reader<'_> {
    /// Reads the first two bytes and returns the version.
    fn version(&mut self, newest: u8) -> Result<u8, Corrupt> {
        if self.u8()? != MAGIC {
            return Err(Corrupt("wrong first byte"));
        }
        match self.u8()? {
            version if (VERSION..=newest).contains(&version) => Ok(version),
            _ => Err(Corrupt("written by a newer version")),
        }
    }

    fn u8(&mut self) -> Result<u8, Corrupt> {
        let b = *self.whole.get(self.at).ok_or(Corrupt("cut short"))?;
        self.at += 1;
        Ok(b)
    }

    fn varint(&mut self) -> Result<u64, Corrupt> {
        let rest = self.whole.get(self.at..).unwrap_or_default();
        let (mut n, mut shift) = (0u64, 0);
        for (read, &b) in rest.iter().enumerate().take(VARINT_BYTES_MAX) {
            n |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                self.at += read + 1;
                // The tenth byte has room for only one bit.
                return if shift == 63 && b > 1 { Err(Corrupt("number too long")) } else { Ok(n) };
            }
            shift += 7;
        }
        Err(Corrupt(if rest.len() < VARINT_BYTES_MAX { "cut short" } else { "number too long" }))
    }

    /// Reads the number of parts that follow, each of which has at least `bytes_min` bytes.
    fn count(&mut self, bytes_min: usize, too_many: &'static str) -> Result<usize, Corrupt> {
        let count = usize::try_from(self.varint()?).map_err(|_| Corrupt(too_many))?;
        let room = self.whole.len().saturating_sub(self.at);
        if count > room / bytes_min { Err(Corrupt(too_many)) } else { Ok(count) }
    }

    /// Reads a length and returns the range of the bytes after it.
    fn range(&mut self) -> Result<Range<usize>, Corrupt> {
        let len = usize::try_from(self.varint()?).map_err(|_| Corrupt("length"))?;
        let end = self.at.checked_add(len).filter(|&end| end <= self.whole.len());
        let range = self.at..end.ok_or(Corrupt("cut short"))?;
        self.at = range.end;
        Ok(range)
    }

    fn bytes(&mut self) -> Result<Bytes, Corrupt> {
        let range = self.range()?;
        match self.owner {
            Some(owner) => Ok(owner.slice(range)),
            None => self.whole.get(range).map(Bytes::copy_from_slice).ok_or(Corrupt("cut short")),
        }
    }

    fn dot(&mut self) -> Result<Dot, Corrupt> {
        let len = usize::from(self.u8()?);
        let end = self.at + len;
        let actor = Actor::new(self.whole.get(self.at..end).ok_or(Corrupt("cut short"))?);
        self.at = end;
        let counter = check_counter(self.varint()?)?;
        Ok(Dot { actor, counter, stamp_secs: self.varint()? })
    }

    fn events(&mut self) -> Result<VectorClock, Corrupt> {
        let range = self.range()?;
        let mut inner = Reader { whole: &self.whole[..range.end], owner: self.owner, at: range.start };
        let events = inner.clock()?;
        if inner.at == range.end { Ok(events) } else { Err(Corrupt("bytes after the events of a value")) }
    }

    fn skip_dot(&mut self) -> Result<(), Corrupt> {
        let len = usize::from(self.u8()?);
        if self.whole.len() - self.at < len {
            return Err(Corrupt("cut short"));
        }
        self.at += len;
        check_counter(self.varint()?)?;
        self.varint().map(drop)
    }

    fn clock(&mut self) -> Result<VectorClock, Corrupt> {
        let mut entries = self.count(DOT_BYTES_MIN, "more clock entries than bytes")?;
        let mut failed = None;
        let clock = VectorClock::from_entries(std::iter::from_fn(|| {
            entries = entries.checked_sub(1)?;
            self.dot().map_err(|e| failed = Some(e)).ok()
        }));
        failed.map_or(Ok(clock), Err)
    }

    /// Reads the metadata of a sibling into `m`, which is empty.
    fn metadata(&mut self, m: &mut SiblingMeta) -> Result<(), Corrupt> {
        let flags = self.u8()?;
        if flags >= flag::RARE << 1 {
            return Err(Corrupt("unknown flag"));
        }
        let has = |bit: u8| flags & bit != 0;
        m.deleted = has(flag::DELETED);
        if has(flag::DOT) {
            m.dot = Some(self.dot()?);
        }
        if has(flag::VTAG) {
            m.vtag = Some(self.bytes()?);
        }
        if has(flag::LAST_MODIFIED) {
            m.last_modified = Some(UnixMicros(self.varint()?));
        }
        if has(flag::CONTENT_TYPE) {
            m.content_type = Some(self.bytes()?);
        }
        if has(flag::RARE) {
            self.rare(m)?;
        }
        Ok(())
    }

    fn rare(&mut self, m: &mut SiblingMeta) -> Result<(), Corrupt> {
        loop {
            match self.u8()? {
                rare::END => return Ok(()),
                rare::CHARSET => m.charset = Some(self.bytes()?),
                rare::CONTENT_ENCODING => m.content_encoding = Some(self.bytes()?),
                rare::LINK => {
                    m.links.push(Link { bucket: self.bytes()?, key: self.bytes()?, tag: self.bytes()? });
                }
                rare::USER_META => m.user_meta.push((self.bytes()?, self.bytes()?)),
                rare::INDEX_BIN => {
                    let (field, term) = (self.bytes()?, IndexTerm::Bin(self.bytes()?));
                    m.indexes.push(IndexEntry { field, term });
                }
                rare::INDEX_INT => {
                    let field = self.bytes()?;
                    let term = IndexTerm::Int(BigInt::from_signed_bytes_be(&self.bytes()?));
                    m.indexes.push(IndexEntry { field, term });
                }
                rare::VAL_ENCODING => {
                    let bytes = self.bytes()?;
                    m.val_encoding = *bytes.first().ok_or(Corrupt("empty value encoding"))?;
                }
                rare::EXTRA => m.extra.push((self.bytes()?, self.bytes()?)),
                rare::EXPIRES => {
                    let at = self.bytes()?;
                    let at = at[..].try_into().map_err(|_| Corrupt("time of expiry"))?;
                    m.expires_secs = Some(u32::from_be_bytes(at));
                }
                rare::VALUE_KIND => {
                    let kind = self.bytes()?;
                    let kind = kind[..].try_into().map(u16::from_be_bytes).ok().filter(|kind| *kind != 0);
                    m.kind = kind.ok_or(Corrupt("kind of a value"))?;
                }
                rare::EVENTS => {
                    m.of_kind = Some(Box::new(KindState { events: self.events()?, ..KindState::default() }))
                }
                rare::SUMMARY => {
                    let state = m.of_kind.as_mut().ok_or(Corrupt("a summary without events"))?;
                    state.summary = self.bytes()?;
                }
                _ => return Err(Corrupt("unknown part")),
            }
        }
    }
}

#[cfg(test)]
mod tests;
