//! Which objects a fold visits.

use bytes::Bytes;
use ombak_tictac::{Segment, TreeSize};
use ombak_types::Bucket;
use std::collections::BTreeSet;

/// What the objects of a fold have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldOf {
    /// They are in a bucket.
    Bucket(Bucket),
    /// Their buckets have one of these n_vals.
    Classes(BTreeSet<u32>),
}

/// Which objects a fold visits: those that meet every condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldRange {
    /// The bucket, or the n_vals.
    pub of: FoldOf,
    /// The first and the last key.
    pub keys: Option<(Bytes, Bytes)>,
    /// The first and the last Unix second of the latest write of a sibling.
    pub modified: Option<(u32, u32)>,
    /// The segments of the keys.
    pub segments: Option<SegmentFilter>,
}

/// Segments of trees of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFilter {
    /// The size.
    pub size: TreeSize,
    /// The numbers of leaves.
    pub leaves: BTreeSet<u32>,
}

impl FoldRange {
    /// All objects of a bucket.
    pub const fn of_bucket(bucket: Bucket) -> Self {
        Self { of: FoldOf::Bucket(bucket), keys: None, modified: None, segments: None }
    }

    /// All objects whose buckets have one of these n_vals.
    pub fn of_classes(classes: impl IntoIterator<Item = u32>) -> Self {
        Self { of: FoldOf::Classes(classes.into_iter().collect()), keys: None, modified: None, segments: None }
    }

    /// Whether it is about a bucket without a name, which holds nothing.
    pub fn is_of_nameless_bucket(&self) -> bool {
        matches!(&self.of, FoldOf::Bucket(bucket) if bucket.name.is_empty())
    }

    /// Whether a key of the bucket, or of a bucket of the classes, is selected by its name alone.
    pub(super) fn includes_key(&self, bucket: &Bucket, key: &[u8]) -> bool {
        let in_range = self.keys.as_ref().is_none_or(|(from, to)| &**from <= key && key <= &**to);
        in_range && self.segments.as_ref().is_none_or(|segments| segments.includes(bucket, key))
    }

    /// Whether the time of a write is selected.
    pub(super) fn includes_time(&self, secs: u64) -> bool {
        self.modified.is_none_or(|(from, to)| u64::from(from) <= secs && secs <= u64::from(to))
    }
}

impl SegmentFilter {
    fn includes(&self, bucket: &Bucket, key: &[u8]) -> bool {
        self.leaves.contains(&self.size.leaf_of(Segment::of(bucket, key).number))
    }
}
