//! Folds: walks over the versions of a store.
//!
//! A fold visits the current version of each key that its [`Scope`] selects. Object tombstones are
//! versions like others and are visited. A key that was removed from the store has no version and
//! is not visited. Expired versions are visited only if the scope asks for them.
//!
//! A [`Snapshot`] holds a bounded number of entries in memory, whatever the scope. A scope that
//! selects little makes a call slow rather than large: indexes are ordered by key, so a range of
//! hashes or sequence numbers is found by visiting index entries. Only bitcask's index skips parts
//! of itself, for a range of hashes narrower than 2^45.

use crate::backend::Stored;
use crate::error::StorageError;
use crate::key_hash::{KeyHashRange, key_hash};
use bytes::Bytes;
use std::ops::Bound;

/// Which expired versions are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// None: their keys are absent.
    Hidden,
    /// Those that stay until somebody removes them. A replica compares, hands over and reaps them
    /// like tombstones, because they carry the clock that keeps older copies away
    /// (docs/design/replication.md §4). In a store with a configured age of versions there are
    /// none.
    Kept,
    /// All that the store still holds, also those that it is going to remove by itself. A tree over
    /// the digests of a store is made from them.
    All,
}

impl Expired {
    /// Whether an expired version is visible. `is_forgotten`: the store removes its expired
    /// versions by itself.
    pub(crate) fn shows(self, is_forgotten: bool) -> bool {
        match self {
            Self::Hidden => false,
            Self::Kept => !is_forgotten,
            Self::All => true,
        }
    }
}

/// Whether a storage key belongs to a class: the keys of all buckets with the same `n_val`.
pub type Class<'a> = dyn Fn(&[u8]) -> bool + Sync + 'a;

/// Which versions a fold visits (docs/design/replication.md §1). A fold uses the same scope from
/// its first call to its last.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The prefix of the storage keys.
    pub prefix: &'a [u8],
    /// The class of the keys; none: keys of every class.
    pub class: Option<&'a Class<'a>>,
    /// The range of the [hashes](key_hash) of the storage keys; none: every key.
    pub hashes: Option<KeyHashRange>,
    /// Only versions with a larger `seq` are visited; 0: all.
    pub since_seq: u64,
    /// Which expired versions are visited.
    pub expired: Expired,
}

impl<'a> Scope<'a> {
    /// Every key; expired versions are hidden.
    pub const ALL: Self = Self { prefix: b"", class: None, hashes: None, since_seq: 0, expired: Expired::Hidden };

    /// Every version that the store holds, expired ones included.
    pub const EVERYTHING: Self = Self { expired: Expired::All, ..Self::ALL };

    /// Every version that the store keeps until it is replaced or removed, expired ones included.
    pub const KEPT: Self = Self { expired: Expired::Kept, ..Self::ALL };

    /// Keys that begin with `prefix`; expired versions are hidden.
    pub const fn prefix(prefix: &'a [u8]) -> Self {
        Self { prefix, ..Self::ALL }
    }

    /// Whether a storage key is in this scope.
    pub fn includes(&self, key: &[u8]) -> bool {
        key.starts_with(self.prefix)
            && self.hashes.is_none_or(|hashes| hashes.contains(key_hash(key)))
            && self.class.is_none_or(|class| class(key))
    }

    /// Whether a fold visits this version. `is_hidden`: it has expired, and is not visible.
    pub(crate) fn selects(&self, key: &[u8], seq: u64, is_hidden: bool) -> bool {
        seq > self.since_seq && !is_hidden && self.includes(key)
    }
}

/// How much of each version a fold hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The digest.
    Keys,
    /// The digest and the head. A fold does not read bodies if the index has the heads.
    Heads,
    /// The digest, the head and the body.
    Objects,
}

/// One version that a fold visits.
#[derive(Clone, Debug)]
pub struct FoldEntry {
    /// The storage key.
    pub key: Bytes,
    /// The version's digest.
    pub digest: u64,
    /// The version's place in the store's append order.
    pub seq: u64,
    /// Unix seconds at which the version expires, by the wish of its writer or by the configuration
    /// of the store; 0: never.
    pub expires_secs: u32,
    /// Whether the version has expired. False for every entry if the scope hides expired versions.
    pub is_expired: bool,
    /// The head and the body, as far as the [`Detail`] asks for them.
    pub stored: Option<Stored>,
    /// The attributes of the write. Stores on disk give them with [`Detail::Objects`].
    pub attrs: Option<WriteAttrs>,
}

/// The attributes of a write besides key, head, body and digest. With them, a version can be copied
/// to another store unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteAttrs {
    /// Unix seconds of the write.
    pub tstamp_secs: u32,
    /// Unix seconds at which the version expires, as the writer asked, whatever the configuration
    /// of the store says; 0: never.
    pub expires_secs: u32,
    /// Whether the head has index entries.
    pub has_terms: bool,
}

/// A range of the keys of one bucket, in order.
#[derive(Clone, Copy, Debug)]
pub struct KeyRange<'a> {
    /// The prefix of the bucket's storage keys.
    pub bucket: &'a [u8],
    /// The lower bound.
    pub from: Bound<&'a [u8]>,
    /// The upper bound.
    pub to: Bound<&'a [u8]>,
}

/// A range of the terms of one index field of a bucket, ordered by term and then by key.
#[derive(Clone, Copy, Debug)]
pub struct TermRange<'a> {
    /// The prefix of the bucket's storage keys.
    pub bucket: &'a [u8],
    /// The field name, with its `_bin` or `_int`.
    pub field: &'a [u8],
    /// The first term, in the form that [`HeadTerms`] gives.
    pub from: &'a [u8],
    /// The last term, inclusive.
    pub to: &'a [u8],
    /// The term and the key of the last entry of the page before.
    pub after: Option<(&'a [u8], &'a [u8])>,
}

/// One secondary index entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermEntry {
    /// The term, in the form that sorts bytewise.
    pub term: Bytes,
    /// The key within its bucket.
    pub key: Bytes,
}

/// A consistent snapshot of a store's keys, unaffected by later writes. While it lives, it keeps
/// files from being removed.
pub trait Snapshot: Send {
    /// The next entries of a fold, at most `count_max`; empty at the end.
    fn next(&mut self, scope: &Scope<'_>, detail: Detail, count_max: usize) -> Result<Vec<FoldEntry>, StorageError>;

    /// Keys of one bucket in order, at most `count_max`. Only snapshots of
    /// [`Backend::ordered_snapshot`] have an order.
    fn keys_in_order(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<Vec<FoldEntry>, StorageError>;

    /// Index entries in order, at most `count_max`. Only snapshots of [`Backend::ordered_snapshot`]
    /// have an order.
    fn terms_in_order(&mut self, range: &TermRange<'_>, count_max: usize) -> Result<Vec<TermEntry>, StorageError>;

    /// Whether some version in the snapshot may expire. True where that is not known.
    fn may_expire(&self) -> bool {
        true
    }

    /// The version of a key in this snapshot.
    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError>;
}
