//! What a walk over one store has gathered and not yet handed out.

use super::entry::GatheredEntry;
use super::stats::FoldStats;
use super::wants::{FoldWants, Found, FoundKey};
use bytes::Bytes;
use ombak_tictac::{ClockHash, Segment, Tree};
use ombak_types::{Bucket, Object};
use std::collections::BTreeSet;

/// An object, as a fold sees it.
pub(super) struct Visited<'a> {
    pub(super) bucket: Bucket,
    pub(super) key: &'a [u8],
    /// Without values.
    pub(super) object: Object,
    /// The bytes of its head and its values.
    pub(super) bytes: u64,
}

/// What is gathered of the objects of one store.
pub(super) enum Gathered {
    Keys(FoldWants, Vec<FoundKey>),
    Buckets(BTreeSet<Bucket>),
    Stats(FoldStats),
    Tree(ClockHash, Tree),
    Root(ClockHash, Tree),
}

impl Gathered {
    pub(super) fn new(wants: FoldWants) -> Self {
        match wants {
            FoldWants::Buckets => Self::Buckets(BTreeSet::new()),
            FoldWants::Stats => Self::Stats(FoldStats::default()),
            FoldWants::Tree(size, hash) => Self::Tree(hash, Tree::new(size)),
            FoldWants::Root(size, hash) => Self::Root(hash, Tree::new(size)),
            keys => Self::Keys(keys, Vec::new()),
        }
    }

    /// Adds an object.
    pub(super) fn visit(&mut self, visited: Visited<'_>) {
        match self {
            Self::Keys(wants, keys) => keys.extend(found(*wants, visited)),
            Self::Buckets(buckets) => {
                buckets.insert(visited.bucket);
            }
            Self::Stats(stats) => stats.add(visited.bytes, visited.object.siblings.len()),
            Self::Tree(hash, tree) | Self::Root(hash, tree) => {
                tree.add(Segment::of(&visited.bucket, visited.key), hash.of(&visited.object.clock));
            }
        }
    }

    /// Takes the keys that have been found. Everything else is taken at the end of the store.
    pub(super) fn take_keys(&mut self) -> Vec<GatheredEntry> {
        match self {
            Self::Keys(_, keys) => std::mem::take(keys).into_iter().map(GatheredEntry::Key).collect(),
            Self::Buckets(_) | Self::Stats(_) | Self::Tree(..) | Self::Root(..) => Vec::new(),
        }
    }

    /// Everything that has not been taken yet.
    pub(super) fn into_entries(mut self) -> Vec<GatheredEntry> {
        match self {
            Self::Keys(..) => self.take_keys(),
            Self::Buckets(buckets) => buckets.into_iter().map(GatheredEntry::Bucket).collect(),
            Self::Stats(stats) => vec![GatheredEntry::Stats(stats)],
            Self::Tree(_, tree) => {
                tree.branches().map(|branch| GatheredEntry::Branch(branch, tree.branch(branch).to_vec())).collect()
            }
            Self::Root(_, tree) => vec![GatheredEntry::Root(tree.root())],
        }
    }
}

/// What a fold for keys finds of an object.
fn found(wants: FoldWants, visited: Visited<'_>) -> Option<FoundKey> {
    let Visited { bucket, key, object, bytes } = visited;
    let siblings = object.siblings.len() as u64;
    let found = match wants {
        FoldWants::Clocks => Found::Clock(object.clock),
        FoldWants::Tombstones if object.is_deleted() => Found::Clock(object.clock),
        FoldWants::Living if !object.is_deleted() => Found::Clock(object.clock),
        FoldWants::SiblingsAbove(above) if siblings > above => Found::Number(siblings),
        FoldWants::BytesAbove(above) if bytes > above => Found::Number(bytes),
        _ => return None,
    };
    Some(FoundKey { bucket, key: Bytes::copy_from_slice(key), found })
}
