//! The store of a partition, as a consumer of its changes sees it.

use ombak_types::props::BucketProps;
use ombak_types::{Error, Object};
use std::sync::Arc;

/// The store of a partition; see the module.
pub trait FollowedStore {
    /// The number of the partition.
    fn number(&self) -> u32;

    /// Versions up to this seq are set aside (docs/design/replication.md §8): a client does not see
    /// them, and nobody is told of them. 0: none is. They can come back without a change of theirs.
    fn set_aside_to(&self) -> u64;

    /// What a client sees at present of a storage key; `None` if it sees nothing. It is durable
    /// when this returns. Blocks. A version that cannot be read is an error.
    fn present(&self, key: &[u8]) -> Result<Option<PresentVersion>, Error>;
}

/// The present version of a key.
#[derive(Clone, Debug)]
pub struct PresentVersion {
    /// Its living values, one at least. Those of data types are merged, and as they are stored.
    pub object: Object,
    /// The properties of its bucket.
    pub props: Arc<BucketProps>,
}
