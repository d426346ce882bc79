//! The part of a node's data that a question is about.

use ombak_types::Bucket;
use ombak_types::names::encode_bucket_prefix;

/// Where to look for objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holdings {
    /// Everywhere.
    Everything,
    /// In one bucket type.
    Type(bytes::Bytes),
    /// In one bucket.
    Bucket(Bucket),
}

impl Holdings {
    /// What the storage keys begin with.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        match self {
            Self::Everything => Vec::new(),
            Self::Type(name) => {
                let mut prefix = bucket_prefix(&Bucket::typed(name.clone(), bytes::Bytes::new()));
                // The length of the bucket's name comes after that of the type.
                prefix.truncate(prefix.len() - 2);
                prefix
            }
            Self::Bucket(bucket) => bucket_prefix(bucket),
        }
    }
}

/// What the storage keys of a bucket begin with.
pub(crate) fn bucket_prefix(bucket: &Bucket) -> Vec<u8> {
    let mut prefix = Vec::new();
    encode_bucket_prefix(bucket, &mut prefix);
    prefix
}
