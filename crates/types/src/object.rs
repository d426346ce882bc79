//! Objects and their siblings, and how copies of one object become one.
//!
//! Facts: spec/semantics.md §2. Rules: a copy that descends another replaces it; concurrent copies are merged dot by
//! dot. Only a coordinator drops a sibling for any other reason (see [`Object::keep_newest`]).

use crate::clock::{Actor, Dot, VectorClock};
use crate::time::UnixMicros;
use bytes::Bytes;
use num_bigint::BigInt;
use std::cmp::Ordering;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What a key holds: everything its clock has seen that nothing else has replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// What this copy has seen.
    pub clock: VectorClock,
    /// The current values. One, unless writes were concurrent.
    pub siblings: Vec<Sibling>,
}

/// One value with its metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sibling {
    /// The bytes a client stored; empty in a head and in a tombstone.
    pub value: Bytes,
    /// Everything else about it.
    pub meta: Metadata,
}

/// Metadata of one sibling (spec/semantics.md §2, spec/backends.md §7.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// MIME type.
    pub content_type: Option<Bytes>,
    /// Character set.
    pub charset: Option<Bytes>,
    /// Content encoding; the value is stored as it came.
    pub content_encoding: Option<Bytes>,
    /// The entity tag of this sibling: base-62 text, new with every write.
    pub vtag: Option<Bytes>,
    /// When the coordinator took it.
    pub last_modified: Option<UnixMicros>,
    /// Links to other objects.
    pub links: Vec<Link>,
    /// Names and values that belong to the user; over HTTP the names are whole header names.
    pub user_meta: Vec<(Bytes, Bytes)>,
    /// Secondary index entries.
    pub indexes: Vec<IndexEntry>,
    /// Whether this is a tombstone.
    pub deleted: bool,
    /// The event that made this sibling. Imported and very old values have none.
    pub dot: Option<Dot>,
    /// Riak's tag in front of the value when it is not 1 (a plain binary); see spec/backends.md §7.1.
    pub val_encoding: u8,
    /// Pairs of Riak's metadata that have no meaning here: (name, value), each with Riak's tag byte in front.
    pub extra: Vec<(Bytes, Bytes)>,
}

/// A link to another object; links carry no bucket type (spec/http-api.md §5.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bucket of the target.
    pub bucket: Bytes,
    /// Key of the target.
    pub key: Bytes,
    /// What the link is called.
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

/// The term of an index entry: integers order as numbers, the rest bytewise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexTerm {
    /// Of an `_int` field, of any size.
    Int(BigInt),
    /// Of a `_bin` field.
    Bin(Bytes),
}

/// Why a name and a text are no index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadIndexEntry {
    /// The field ends in neither `_bin` nor `_int`.
    UnknownFieldType,
    /// The text of an `_int` field is no integer.
    NotAnInteger,
}

impl IndexEntry {
    /// From a field name in any case and the term as text.
    pub fn parse(field: &[u8], text: &[u8]) -> Result<Self, BadIndexEntry> {
        let field = Bytes::from(field.to_ascii_lowercase());
        let term = if field.ends_with(b"_int") {
            IndexTerm::Int(BigInt::parse_bytes(text, 10).ok_or(BadIndexEntry::NotAnInteger)?)
        } else if field.ends_with(b"_bin") {
            IndexTerm::Bin(Bytes::copy_from_slice(text))
        } else {
            return Err(BadIndexEntry::UnknownFieldType);
        };
        Ok(Self { field, term })
    }
}

impl IndexTerm {
    /// The term as clients see it: integers in decimal.
    pub fn to_text(&self) -> Bytes {
        match self {
            Self::Int(i) => Bytes::from(i.to_string()),
            Self::Bin(b) => b.clone(),
        }
    }
}

impl Sibling {
    /// A plain value, as a client hands it in.
    pub fn new(value: impl Into<Bytes>) -> Self {
        Self { value: value.into(), meta: Metadata::default() }
    }

    /// The value that says that there is none.
    pub fn tombstone() -> Self {
        Self { value: Bytes::new(), meta: Metadata { deleted: true, ..Metadata::default() } }
    }

    fn same_content(&self, other: &Self) -> bool {
        self.value == other.value && self.meta.without_dot() == other.meta.without_dot()
    }

    fn same_event(&self, other: &Self) -> bool {
        match (&self.meta.dot, &other.meta.dot) {
            (Some(a), Some(b)) => a.same_event(b),
            _ => false,
        }
    }
}

impl Metadata {
    fn without_dot(&self) -> Self {
        Self { dot: None, ..self.clone() }
    }
}

/// Which of two copies a merge ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The first has seen everything: nothing to store.
    KeptLocal,
    /// The second has seen everything that the first has, and more.
    TookIncoming,
    /// Each had something that the other lacked.
    Combined,
}

impl Object {
    /// An object of one value that has seen nothing yet.
    pub fn new(value: Sibling) -> Self {
        Self { clock: VectorClock::new(), siblings: vec![value] }
    }

    /// Whether every sibling is a tombstone: to a client, not found.
    pub fn is_deleted(&self) -> bool {
        self.siblings.iter().all(|s| s.meta.deleted)
    }

    /// Merges a copy that came from elsewhere into this one, by clock alone: what replicas, repairs, hand-off and
    /// readers do. `dvv` is the bucket's `dvv_enabled`.
    pub fn merge(&mut self, incoming: Self, dvv: bool) -> Merged {
        if self.clock.descends(&incoming.clock) && (!self.siblings.is_empty() || incoming.siblings.is_empty()) {
            return Merged::KeptLocal;
        }
        if incoming.clock.descends(&self.clock) {
            *self = incoming;
            return Merged::TookIncoming;
        }
        self.merge_siblings(incoming, dvv);
        Merged::Combined
    }

    fn merge_siblings(&mut self, incoming: Self, dvv: bool) {
        let mine = std::mem::take(&mut self.siblings);
        if dvv {
            let (mine_kept, theirs_kept) = (
                mine.iter().map(|s| survives(s, &incoming)).collect::<Vec<_>>(),
                incoming
                    .siblings
                    .iter()
                    .map(|s| survives_against(s, &self.clock, &mine) && !mine.iter().any(|m| m.same_event(s)))
                    .collect::<Vec<_>>(),
            );
            self.siblings = kept(mine, &mine_kept).collect();
            for sibling in kept(incoming.siblings, &theirs_kept) {
                self.push_unless_same(sibling);
            }
        } else {
            self.siblings = mine;
            for sibling in incoming.siblings {
                self.push_unless_same(sibling);
            }
        }
        self.clock.merge(&incoming.clock);
    }

    fn push_unless_same(&mut self, sibling: Sibling) {
        let twin = self.siblings.iter().any(|s| match (&s.meta.dot, &sibling.meta.dot) {
            (Some(a), Some(b)) if !a.same_event(b) => false,
            _ => s.same_content(&sibling),
        });
        if !twin {
            self.siblings.push(sibling);
        }
    }

    /// The copy that a coordinator stores when `self` is what it has and `incoming` what a client sent: under a new
    /// event of `actor`, which becomes the dot of the one incoming value (spec/semantics.md §2.1).
    ///
    /// Siblings that the client had not seen stay beside the new value.
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
        if dvv {
            out.siblings.retain(|s| s.meta.dot.as_ref().is_none_or(|d| !seen.contains(d)));
        }
        out.clock.merge(&seen);
        let dot = out.clock.increment(actor, now);
        incoming.set_dot(dot);
        for sibling in incoming.siblings {
            out.push_unless_same(sibling);
        }
        out
    }

    fn set_dot(&mut self, dot: Dot) {
        if let [only] = self.siblings.as_mut_slice() {
            only.meta.dot = Some(dot);
        }
    }

    /// Keeps the newest sibling only: what `allow_mult=false` and last-write-wins ask of a coordinator, or of a reader
    /// for its answer. The larger (last-modified, not a tombstone, dot, content) wins, everywhere the same.
    pub fn keep_newest(&mut self) {
        if self.siblings.len() < 2 {
            return;
        }
        if let Some(newest) = self.siblings.drain(..).max_by(newer) {
            self.siblings.push(newest);
        }
    }

    /// When its newest sibling was written.
    pub fn last_modified(&self) -> Option<UnixMicros> {
        self.siblings.iter().filter_map(|s| s.meta.last_modified).max()
    }

    /// The sum of the lengths of all values, in bytes.
    pub fn value_bytes(&self) -> u64 {
        self.siblings.iter().map(|s| s.value.len() as u64).sum()
    }

    /// A fingerprint of clock and contents that equal copies share, however their siblings are ordered. At least 64
    /// bits over everything that can differ, so that copies can be compared without being sent
    /// (design: replication rules §4 and §13).
    pub fn digest(&self) -> u64 {
        let clock = self.clock.entries().iter().fold(0u64, |sum, e| sum.wrapping_add(dot_hash(e)));
        let siblings = self.siblings.iter().fold(0u64, |sum, s| sum.wrapping_add(s.hash()));
        let mut h = Xxh3::new();
        h.update(&clock.to_le_bytes());
        h.update(&siblings.to_le_bytes());
        h.digest()
    }
}

fn dot_hash(dot: &Dot) -> u64 {
    let mut h = Xxh3::new();
    h.update(dot.actor.as_bytes());
    h.update(&dot.counter.to_le_bytes());
    h.digest()
}

impl Sibling {
    fn hash(&self) -> u64 {
        let m = &self.meta;
        let mut h = Xxh3::new();
        h.update(&xxh3_64(&self.value).to_le_bytes());
        h.update(&[u8::from(m.deleted), m.val_encoding]);
        if let Some(dot) = &m.dot {
            h.update(&dot_hash(dot).to_le_bytes());
        }
        h.update(&m.last_modified.unwrap_or_default().0.to_le_bytes());
        for part in [&m.content_type, &m.charset, &m.content_encoding, &m.vtag] {
            update_framed(&mut h, part.as_deref().unwrap_or_default());
        }
        for link in &m.links {
            for part in [&link.bucket, &link.key, &link.tag] {
                update_framed(&mut h, part);
            }
        }
        for (name, value) in m.user_meta.iter().chain(&m.extra) {
            update_framed(&mut h, name);
            update_framed(&mut h, value);
        }
        for entry in &m.indexes {
            update_framed(&mut h, &entry.field);
            update_framed(&mut h, &entry.term.to_text());
        }
        h.digest()
    }
}

fn update_framed(h: &mut Xxh3, bytes: &[u8]) {
    h.update(&(bytes.len() as u64).to_le_bytes());
    h.update(bytes);
}

fn survives(sibling: &Sibling, other: &Object) -> bool {
    survives_against(sibling, &other.clock, &other.siblings)
}

/// A sibling goes when the other side has seen its event and does not have it any more.
fn survives_against(sibling: &Sibling, other_clock: &VectorClock, other_siblings: &[Sibling]) -> bool {
    match &sibling.meta.dot {
        Some(dot) if other_clock.contains(dot) => other_siblings.iter().any(|s| s.same_event(sibling)),
        _ => true,
    }
}

fn kept(siblings: Vec<Sibling>, keep: &[bool]) -> impl Iterator<Item = Sibling> {
    siblings.into_iter().zip(keep).filter_map(|(s, &keep)| keep.then_some(s))
}

fn newer(a: &Sibling, b: &Sibling) -> Ordering {
    a.meta
        .last_modified
        .cmp(&b.meta.last_modified)
        .then_with(|| b.meta.deleted.cmp(&a.meta.deleted))
        .then_with(|| dot_key(a).cmp(&dot_key(b)))
        .then_with(|| a.value.cmp(&b.value))
        .then_with(|| a.meta.vtag.cmp(&b.meta.vtag))
}

fn dot_key(s: &Sibling) -> Option<(u64, &[u8])> {
    s.meta.dot.as_ref().map(|d| (d.counter, d.actor.as_bytes()))
}

/// A content type for values that came with none.
pub const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";
