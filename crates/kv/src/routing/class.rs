//! What the classes of this node contain.
//!
//! A class is a home partition and an n (docs/design/replication.md §1). Transfers, reaping and the
//! sums of ranges go by class.

use crate::buckets::Snapshot;
use ombak_types::BucketProps;

/// The n of the class of a bucket's keys, beside their home partitions. `None`: the copies of the
/// bucket are kept equal in another way than by transfers. No bucket is of that kind yet.
pub(crate) const fn class_of_bucket(props: &BucketProps) -> Option<u32> {
    Some(props.n_val)
}

/// The n of the class of a storage key. `None`: the key is in no class, as far as is known here,
/// because this node does not know the type of its bucket, or because of [`class_of_bucket`].
pub fn class_of_key(buckets: &Snapshot, key: &[u8]) -> Option<u32> {
    buckets.props_of_key(key).and_then(|props| class_of_bucket(props))
}

/// Whether a storage key of a home partition is in its class with this n.
pub fn is_of_class(buckets: &Snapshot, key: &[u8], n: u32) -> bool {
    class_of_key(buckets, key) == Some(n)
}

/// The n of the class in whose kept tree a storage key is. `None`, too, if its bucket is left out
/// of kept trees (`aae_tree_exclude`).
pub(crate) fn tree_class_of_key(buckets: &Snapshot, key: &[u8]) -> Option<u32> {
    let props = buckets.props_of_key(key).filter(|props| !props.aae_tree_exclude)?;
    class_of_bucket(props)
}
