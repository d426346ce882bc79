//! Which buckets an index has.

use ombak_kv::buckets::IndexUsers;
use ombak_types::names::split_storage_key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The buckets of an index, as the properties of types and buckets name them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Association {
    /// Types whose buckets are in the index, unless they are excluded.
    types: BTreeSet<Vec<u8>>,
    /// Buckets that are in the index by their own properties: type and name.
    buckets: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Buckets of these types that are not in the index.
    excluded: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Association {
    /// What the properties say.
    pub(crate) fn of(users: &IndexUsers) -> Self {
        let pair = |bucket: &ombak_types::Bucket| (bucket.bucket_type.to_vec(), bucket.name.to_vec());
        Self {
            types: users.types.iter().map(|name| name.to_vec()).collect(),
            buckets: users.buckets.iter().map(pair).collect(),
            excluded: users.excluded.iter().map(pair).collect(),
        }
    }

    /// Whether the objects of the bucket of a storage key are in the index.
    pub(crate) fn covers(&self, storage_key: &[u8]) -> bool {
        let Ok((bucket_type, name, _)) = split_storage_key(storage_key) else { return false };
        if self.types.contains(bucket_type) {
            self.excluded.is_empty() || !self.excluded.contains(&(bucket_type.to_vec(), name.to_vec()))
        } else {
            !self.buckets.is_empty() && self.buckets.contains(&(bucket_type.to_vec(), name.to_vec()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ombak_types::Bucket;
    use ombak_types::names::encode_storage_key;

    fn key(bucket: &Bucket) -> Vec<u8> {
        let mut key = Vec::new();
        encode_storage_key(bucket, b"k", &mut key);
        key
    }

    #[test]
    fn buckets_of_types_are_in_an_index_unless_they_are_excluded() {
        let users = IndexUsers {
            types: vec![Bytes::from_static(b"t")],
            buckets: vec![Bucket::untyped("own")],
            excluded: vec![Bucket::typed("t", "not")],
        };
        let association = Association::of(&users);
        for (bucket, is_covered) in [
            (Bucket::typed("t", "any"), true),
            (Bucket::typed("t", "not"), false),
            (Bucket::typed("other", "any"), false),
            (Bucket::untyped("own"), true),
            (Bucket::untyped("any"), false),
        ] {
            assert_eq!(association.covers(&key(&bucket)), is_covered, "{bucket:?}");
        }
        assert!(!association.covers(b""));
    }
}
