//! Which keys an operator means.

use bytes::Bytes;
use ombak_types::names::decode_storage_key;
use ombak_types::{Bucket, ShownName};
use std::fmt;

/// Which keys of a list an operator means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChoice {
    /// All of this node.
    All,
    /// Those of one bucket.
    Bucket(Bucket),
    /// One key.
    Key(Bucket, Bytes),
}

impl fmt::Display for KeyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bucket = |bucket: &Bucket| {
            format!("bucket_type={} bucket={}", ShownName(&bucket.bucket_type), ShownName(&bucket.name))
        };
        match self {
            Self::All => f.write_str("all"),
            Self::Bucket(of) => f.write_str(&bucket(of)),
            Self::Key(of, key) => write!(f, "{} key={}", bucket(of), ShownName(key)),
        }
    }
}

impl KeyChoice {
    pub(crate) fn includes(&self, storage_key: &Bytes) -> bool {
        let Ok((bucket, key)) = decode_storage_key(storage_key) else { return matches!(self, Self::All) };
        match self {
            Self::All => true,
            Self::Bucket(wanted) => bucket == *wanted,
            Self::Key(wanted, wanted_key) => bucket == *wanted && key == *wanted_key,
        }
    }
}
