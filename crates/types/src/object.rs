//! Objects and their siblings, and the merge of copies of one object.
//!
//! Facts: docs/riak/semantics.md §2. Copies are merged in `merge.rs`. Only a coordinator drops a
//! sibling for another reason than a merge (see [`Object::keep_newest`]).
//!
//! Hot path: every put runs [`Object::coordinate`] and [`Object::digest`], every replica
//! [`Object::merge`].

use crate::clock::{Actor, Dot, VectorClock};
use crate::time::UnixMicros;
use bytes::Bytes;
use num_bigint::BigInt;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cmp::Ordering;
use xxhash_rust::xxh3::xxh3_64;

mod merge;
mod order;

pub use merge::{Merged, UnclockedRank};

/// The content of a key: the values that its clock has seen and that no later write has replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// The events that this copy has seen.
    pub clock: VectorClock,
    /// The current values: one, unless writes were concurrent. Several siblings are ordered by
    /// their values (`order.rs`), except in a head, which has them in their stored order.
    pub siblings: Vec<Sibling>,
}

/// One value with its metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sibling {
    /// The bytes that a client stored; empty in a head and in a tombstone.
    pub value: Bytes,
    /// The metadata of the value.
    pub meta: SiblingMeta,
}

/// Metadata of one sibling (docs/riak/semantics.md §2, docs/riak/backends.md §7.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiblingMeta {
    /// MIME type.
    pub content_type: Option<Bytes>,
    /// Character set.
    pub charset: Option<Bytes>,
    /// The content encoding. The value is stored as the client sent it.
    pub content_encoding: Option<Bytes>,
    /// The entity tag of this sibling: a base-62 text that is new for every write.
    pub vtag: Option<Bytes>,
    /// The time at which the coordinator accepted the write.
    pub last_modified: Option<UnixMicros>,
    /// Links to other objects.
    pub links: Vec<Link>,
    /// Names and values of the user's metadata. HTTP uses complete header names as names.
    pub user_meta: Vec<(Bytes, Bytes)>,
    /// Secondary index entries.
    pub indexes: Vec<IndexEntry>,
    /// Whether this is a tombstone.
    pub deleted: bool,
    /// The event that made this sibling. Imported and very old values have none.
    pub dot: Option<Dot>,
    /// The encoding of the value (docs/riak/backends.md §7.1): 0 for plain bytes,
    /// [`VAL_ENCODING_TERM`], or from 2 on the tag that Riak stores as `X-Riak-Val-Encoding`.
    pub val_encoding: u8,
    /// Pairs of Riak's metadata without a meaning in Ombak: (name, value), each with Riak's tag
    /// byte in front.
    pub extra: Vec<(Bytes, Bytes)>,
    /// The time in Unix seconds after which the value is absent. `None` means that it does not
    /// expire. A tombstone never expires.
    pub expires_secs: Option<u32>,
    /// The kind of values that are not replaced but changed by operations. 0 for plain bytes. Other
    /// values have a form of their own, which clients never see.
    pub kind: u16,
    /// What is known of a value of a kind without reading it; `None` for plain values.
    pub of_kind: Option<Box<KindState>>,
}

/// What is known of a value of a kind without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindState {
    /// The events whose operations are in the value: the newest of each actor. They are among those
    /// of the object's clock, which also has those of what was deleted.
    pub events: VectorClock,
    /// What the kind has to know of a large value to change it without reading it. Empty for small
    /// values.
    pub summary: Bytes,
}

/// The value is an Erlang term in its external format, because an Erlang program stored it without
/// converting it to a binary.
pub const VAL_ENCODING_TERM: u8 = 1;

/// A link to another object. Links have no bucket type (docs/riak/http-api.md §5.4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Bucket of the target.
    pub bucket: Bytes,
    /// Key of the target.
    pub key: Bytes,
    /// The tag of the link.
    pub tag: Bytes,
}

/// One secondary index entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The field's name, lower-cased, with its `_bin` or `_int`.
    pub field: Bytes,
    /// The term.
    pub term: IndexTerm,
}

/// The term of an index entry. Integers sort as numbers, other terms bytewise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexTerm {
    /// The term of an `_int` field, of any size.
    Int(BigInt),
    /// The term of a `_bin` field.
    Bin(Bytes),
}

/// Why a name and a text are not an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadIndexEntry {
    /// The field ends in neither `_bin` nor `_int`.
    UnknownFieldType,
    /// The text of an `_int` field is not an integer.
    NotAnInteger,
}

/// The maximum length of an integer in an `_int` field, in characters: the time to parse an integer
/// grows with the square of its length.
pub(crate) const INT_TERM_CHARS_MAX: usize = 4096;

impl IndexEntry {
    /// Creates an entry from a field name in any letter case and the text of the term. An ending
    /// alone is no name, as in Riak.
    pub fn parse(field: &[u8], text: &[u8]) -> Result<Self, BadIndexEntry> {
        let field = Bytes::from(field.to_ascii_lowercase());
        let ends_with = |end: &[u8]| field.len() > end.len() && field.ends_with(end);
        let term = if ends_with(b"_int") {
            IndexTerm::Int(parse_int(text).ok_or(BadIndexEntry::NotAnInteger)?)
        } else if ends_with(b"_bin") {
            IndexTerm::Bin(Bytes::copy_from_slice(text))
        } else {
            return Err(BadIndexEntry::UnknownFieldType);
        };
        Ok(Self { field, term })
    }
}

/// Parses a decimal integer as Erlang does: digits after at most one sign.
fn parse_int(text: &[u8]) -> Option<BigInt> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) && text.len() <= INT_TERM_CHARS_MAX;
    if valid { BigInt::parse_bytes(text, 10) } else { None }
}

impl IndexTerm {
    /// The term as clients see it: integers are decimal text.
    pub fn to_text(&self) -> Bytes {
        match self {
            Self::Int(i) => Bytes::from(i.to_string()),
            Self::Bin(b) => b.clone(),
        }
    }
}

impl Sibling {
    /// Creates a plain value, as a client sends it.
    pub fn new(value: impl Into<Bytes>) -> Self {
        Self { value: value.into(), meta: SiblingMeta::default() }
    }

    /// Creates a tombstone.
    pub fn tombstone() -> Self {
        Self { value: Bytes::new(), meta: SiblingMeta { deleted: true, ..SiblingMeta::default() } }
    }

    /// Whether the sibling has expired. It exists until the end of the second that it names, as in
    /// stores.
    pub fn is_expired(&self, now: UnixMicros) -> bool {
        self.meta.expires_secs.is_some_and(|at| u64::from(at) < now.secs())
    }

    /// Whether the value is not plain: it is changed by operations, and merges with others of its
    /// kind.
    pub const fn is_of_a_kind(&self) -> bool {
        self.meta.kind != 0
    }

    /// The events whose operations are in a value of a kind; the own event of any other value.
    pub fn events(&self) -> Cow<'_, VectorClock> {
        match &self.meta.of_kind {
            Some(state) => Cow::Borrowed(&state.events),
            None => Cow::Owned(VectorClock::from_entries(self.meta.dot.clone())),
        }
    }

    fn same_content(&self, other: &Self) -> bool {
        self.value == other.value && self.meta.same_but_dot(&other.meta)
    }

    fn same_event(&self, other: &Self) -> bool {
        match (&self.meta.dot, &other.meta.dot) {
            (Some(a), Some(b)) => a.same_event(b),
            _ => false,
        }
    }
}

/// The content type with which a value is served that Riak stored as an Erlang term: the value is
/// in the external term format (docs/riak/pb-api.md §4).
static TERM_CONTENT_TYPE: Bytes = Bytes::from_static(b"application/x-erlang-binary");

impl SiblingMeta {
    /// Sorts the index entries and drops those that are there twice, as Riak does before it stores
    /// a client's value. Only a coordinator does this: a replica that changed a copy would make it
    /// differ from the others (docs/design/replication.md §11).
    pub fn normalize_indexes(&mut self) {
        if self.indexes.len() > 1 {
            self.indexes.sort_unstable();
            self.indexes.dedup();
        }
    }

    /// The content type that clients see.
    pub fn served_content_type(&self) -> Option<&Bytes> {
        if self.val_encoding == VAL_ENCODING_TERM { Some(&TERM_CONTENT_TYPE) } else { self.content_type.as_ref() }
    }

    fn same_but_dot(&self, other: &Self) -> bool {
        // All fields are named, so that the compiler reports a forgotten new field.
        let Self {
            content_type,
            charset,
            content_encoding,
            vtag,
            last_modified,
            links,
            user_meta,
            indexes,
            deleted,
            dot: _,
            val_encoding,
            extra,
            expires_secs,
            kind,
            of_kind,
        } = self;
        *vtag == other.vtag
            && *last_modified == other.last_modified
            && *deleted == other.deleted
            && *val_encoding == other.val_encoding
            && *content_type == other.content_type
            && *charset == other.charset
            && *content_encoding == other.content_encoding
            && *links == other.links
            && *user_meta == other.user_meta
            && *indexes == other.indexes
            && *extra == other.extra
            && *expires_secs == other.expires_secs
            && *kind == other.kind
            && *of_kind == other.of_kind
    }
}

impl Object {
    /// Creates an object with one value and an empty clock.
    pub fn new(value: Sibling) -> Self {
        Self { clock: VectorClock::new(), siblings: vec![value] }
    }

    /// Whether every sibling is a tombstone. Clients get "not found" for such an object.
    pub fn is_deleted(&self) -> bool {
        self.siblings.iter().all(|s| s.meta.deleted)
    }

    /// The index entries of its values, in the order of the siblings. Several siblings may have the
    /// same entry. Those of tombstones are not found by any query.
    pub fn index_entries(&self) -> impl Iterator<Item = &IndexEntry> {
        self.siblings.iter().filter(|sibling| !sibling.meta.deleted).flat_map(|sibling| &sibling.meta.indexes)
    }

    /// Whether the object is absent for a client at `now`: every sibling is a tombstone or has
    /// expired.
    pub fn is_absent(&self, now: UnixMicros) -> bool {
        self.siblings.iter().all(|s| s.meta.deleted || s.is_expired(now))
    }

    /// The time in Unix seconds after which all its values have expired; tombstones are ignored.
    /// `None` means that some value does not expire, or that there are no values.
    pub fn expires_secs(&self) -> Option<u32> {
        let values = self.siblings.iter().filter(|s| !s.meta.deleted);
        values.map(|s| s.meta.expires_secs).reduce(|a, b| Some(a?.max(b?))).flatten()
    }

    /// Drops the expired siblings. This is for answers, and for a coordinator that writes a new
    /// event. Copies that replicas merge and compare keep expired siblings.
    pub fn drop_expired(&mut self, now: UnixMicros) {
        self.siblings.retain(|s| !s.is_expired(now));
    }

    /// Keeps one of several siblings with equal contents. Without DVV clients see such siblings
    /// once (docs/riak/semantics.md §2.1); copies keep each event's, so that they merge alike.
    pub fn unite_equal_contents(&mut self) {
        if self.siblings.len() < 2 {
            return;
        }
        let mut kept: Vec<Sibling> = Vec::with_capacity(self.siblings.len());
        for sibling in self.siblings.drain(..) {
            if !kept.iter().any(|k| k.same_content(&sibling)) {
                kept.push(sibling);
            }
        }
        self.siblings = kept;
    }

    /// With DVV, values of different events are different values, even if their bytes are equal.
    fn push_unless_same(&mut self, sibling: Sibling, dvv: bool) {
        let twin = self.siblings.iter().any(|s| match (&s.meta.dot, &sibling.meta.dot) {
            (Some(a), Some(b)) if dvv && !a.same_event(b) => false,
            _ => s.same_content(&sibling),
        });
        if !twin {
            self.siblings.push(sibling);
        }
    }

    /// Creates the object that a coordinator stores, from its own copy `local` and the object
    /// `incoming` of a client. The object gets a new event of `actor`, which becomes the dot of the
    /// one incoming value (docs/riak/semantics.md §2.1).
    ///
    /// Siblings that the client had not seen stay beside the new value. Without DVV all siblings
    /// stay unless the client had seen all of them.
    pub fn coordinate(local: Option<Self>, mut incoming: Self, actor: &Actor, now: UnixMicros, dvv: bool) -> Self {
        let seen_all = local.as_ref().is_none_or(|l| incoming.clock.descends(&l.clock));
        let local = match local {
            Some(local) if !seen_all => local,
            _ => {
                let dot = incoming.clock.increment(actor, now);
                incoming.set_dot(dot);
                return incoming;
            }
        };
        let seen = std::mem::take(&mut incoming.clock);
        let mut out = Self { clock: local.clock, siblings: local.siblings };
        let is_seen = |s: &Sibling| match s.is_of_a_kind() {
            true => seen.descends(&s.events()),
            false => s.meta.dot.as_ref().is_some_and(|dot| seen.contains(dot)),
        };
        if dvv {
            out.siblings.retain(|s| !is_seen(s));
        }
        out.clock.merge(&seen);
        // What stays although the client has seen it is written anew. Otherwise a copy that has
        // replaced it would take it for older than its replacement.
        for sibling in out.siblings.iter_mut().filter(|s| is_seen(s)) {
            sibling.meta.dot = Some(out.clock.increment(actor, now));
        }
        let dot = out.clock.increment(actor, now);
        incoming.set_dot(dot);
        for sibling in incoming.siblings {
            out.push_unless_same(sibling, dvv);
        }
        out.order_siblings();
        out
    }

    fn set_dot(&mut self, dot: Dot) {
        if let [only] = self.siblings.as_mut_slice() {
            only.meta.dot = Some(dot);
        }
    }

    /// Keeps only the newest sibling, as `allow_mult=false` and last-write-wins require of a
    /// coordinator, or of a reader for its answer. The largest (last-modified, not a tombstone,
    /// dot, content) wins, on every node alike. A sibling without a time is older than all others.
    pub fn keep_newest(&mut self) {
        if self.siblings.len() < 2 {
            return;
        }
        if let Some(newest) = self.siblings.drain(..).max_by(newer) {
            self.siblings.push(newest);
        }
    }

    /// Whether the newest sibling is a tombstone and hides the values beside it from readers of a
    /// bucket without siblings.
    pub fn is_hidden_by_tombstone(&self) -> bool {
        self.siblings.len() > 1
            && !self.is_deleted()
            && self.siblings.iter().max_by(|a, b| newer(a, b)).is_some_and(|newest| newest.meta.deleted)
    }

    /// Whether a tombstone has a time, and can lose it. A copy without a clock keeps its tombstone
    /// as it is, because such copies are compared by their contents.
    pub fn has_timed_tombstone(&self) -> bool {
        let is_timed = |s: &Sibling| s.meta.deleted && s.meta.last_modified.is_some();
        !self.clock.is_empty() && self.siblings.iter().any(is_timed)
    }

    /// Whether a tombstone has no time, because it has lost it or never had one, and `known` does
    /// not have the same tombstone without a time. Another tombstone in `known` says nothing of it.
    pub fn brings_timeless_tombstone(&self, known: Option<&Self>) -> bool {
        let is_timeless = |s: &&Sibling| s.meta.deleted && s.meta.last_modified.is_none();
        let is_known = |one: &Sibling| {
            let siblings = known.map_or(&[][..], |known| &known.siblings);
            siblings.iter().filter(is_timeless).any(|other| other.is_same_as(one))
        };
        self.siblings.iter().filter(is_timeless).any(|one| !is_known(one))
    }

    /// Takes the time from each tombstone, so that it is older than every value. A removal that
    /// misses a replica may leave only such tombstones behind (docs/design/replication.md §6).
    pub fn take_times_of_tombstones(&mut self) {
        for mut sibling in std::mem::take(&mut self.siblings) {
            if sibling.meta.deleted {
                sibling.meta.last_modified = None;
            }
            // Two tombstones without an event may have differed by their times alone.
            self.add(sibling);
        }
        self.order_siblings();
    }

    /// The time of the newest write among the siblings.
    pub fn last_modified(&self) -> Option<UnixMicros> {
        self.siblings.iter().filter_map(|s| s.meta.last_modified).max()
    }

    /// The number of links, metadata pairs and index entries of all siblings, and of clock entries.
    /// It measures the cost of an object beyond its values.
    pub fn part_count(&self) -> usize {
        let of_sibling = |s: &Sibling| s.meta.links.len() + s.meta.user_meta.len() + s.meta.indexes.len();
        self.clock.entries().len() + self.siblings.iter().map(of_sibling).sum::<usize>()
    }

    /// The sum of the lengths of all values, in bytes.
    pub fn value_bytes(&self) -> u64 {
        self.siblings.iter().map(|s| s.value.len() as u64).sum()
    }

    /// A hash of clock and contents that is equal for equal copies, however their siblings are
    /// ordered. It covers everything that can differ with at least 64 bits, so that copies can be
    /// compared without sending them (docs/design/replication.md §4 and §13).
    ///
    /// Its events determine a value of a kind, and copies have it in different bytes. So the hash
    /// covers the events of all values of a kind together.
    pub fn digest(&self) -> u64 {
        let mut siblings: SmallVec<[u64; 4]> =
            self.siblings.iter().filter(|s| !s.is_of_a_kind()).map(Sibling::hash).collect();
        if siblings.len() < self.siblings.len() {
            siblings.extend(self.hashes_of_kinds());
        }
        siblings.sort_unstable();
        let mut h = Hasher::default();
        h.events(&self.clock);
        siblings.iter().for_each(|hash| h.number(*hash));
        h.finish()
    }

    /// One hash for each kind that the object has values of.
    fn hashes_of_kinds(&self) -> impl Iterator<Item = u64> {
        let mut kinds: SmallVec<[(u16, VectorClock); 1]> = SmallVec::new();
        for sibling in self.siblings.iter().filter(|s| s.is_of_a_kind()) {
            let (kind, events) = (sibling.meta.kind, sibling.events());
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, known)) => known.merge(&events),
                None => kinds.push((kind, events.into_owned())),
            }
        }
        kinds.into_iter().map(|(kind, events)| {
            let mut h = Hasher::default();
            h.0.extend_from_slice(b"values of kind");
            h.number(u64::from(kind));
            h.events(&events);
            h.finish()
        })
    }
}

/// Encodes fields so that two different objects never give the same bytes: every field has its
/// length or count in front, and every optional field a mark that says whether it is present. The
/// bytes are collected before they are hashed, because hashing many small pieces costs more than
/// copying them. Values can be large, so their hashes are collected instead.
#[derive(Default)]
struct Hasher(SmallVec<[u8; 256]>);

impl Hasher {
    fn finish(&self) -> u64 {
        xxh3_64(&self.0)
    }

    fn number(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    fn count(&mut self, n: usize) {
        self.number(n as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn optional<T>(&mut self, value: Option<&T>, update: impl FnOnce(&mut Self, &T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            update(self, value);
        }
    }

    fn events(&mut self, events: &VectorClock) {
        self.count(events.entries().len());
        events.entries().iter().for_each(|entry| self.dot(entry));
    }

    /// Timestamps are excluded, because they are not part of the events that a copy has seen.
    fn dot(&mut self, dot: &Dot) {
        self.bytes(dot.actor.as_bytes());
        self.number(dot.counter);
    }
}

impl Sibling {
    fn hash(&self) -> u64 {
        let m = &self.meta;
        let mut h = Hasher::default();
        h.number(xxh3_64(&self.value));
        h.count(self.value.len());
        h.0.extend_from_slice(&[u8::from(m.deleted), m.val_encoding]);
        h.optional(m.dot.as_ref(), Hasher::dot);
        h.optional(m.last_modified.as_ref(), |h, at| h.number(at.0));
        for part in [&m.content_type, &m.charset, &m.content_encoding, &m.vtag] {
            h.optional(part.as_ref(), |h, bytes| h.bytes(bytes));
        }
        h.count(m.links.len());
        for Link { bucket, key, tag } in &m.links {
            [bucket, key, tag].into_iter().for_each(|part| h.bytes(part));
        }
        for pairs in [&m.user_meta, &m.extra] {
            h.count(pairs.len());
            for (name, value) in pairs {
                h.bytes(name);
                h.bytes(value);
            }
        }
        h.count(m.indexes.len());
        for IndexEntry { field, term } in &m.indexes {
            h.bytes(field);
            match term {
                IndexTerm::Bin(term) => {
                    h.0.push(b'b');
                    h.bytes(term);
                }
                IndexTerm::Int(term) => {
                    h.0.push(b'i');
                    h.bytes(&term.to_signed_bytes_be());
                }
            }
        }
        // The time of expiry and the kind come last and only where they exist, so that values
        // without them keep the digest of earlier versions.
        if let Some(at) = m.expires_secs {
            h.number(u64::from(at));
        }
        if m.kind != 0 {
            h.0.push(b'k');
            h.number(u64::from(m.kind));
            h.events(&self.events());
        }
        h.finish()
    }
}

fn newer(a: &Sibling, b: &Sibling) -> Ordering {
    a.meta
        .last_modified
        .cmp(&b.meta.last_modified)
        .then_with(|| b.meta.deleted.cmp(&a.meta.deleted))
        .then_with(|| dot_key(a).cmp(&dot_key(b)))
        .then_with(|| a.value.cmp(&b.value))
        .then_with(|| a.hash().cmp(&b.hash()))
}

fn dot_key(s: &Sibling) -> Option<(u64, &[u8])> {
    s.meta.dot.as_ref().map(|d| (d.counter, d.actor.as_bytes()))
}

/// The content type of values that were stored without one.
pub const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

#[cfg(test)]
mod tests;
