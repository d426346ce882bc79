//! The engine's face.

use crate::config::KvConfig;
use crate::listing::Listing;
use crate::open_error::OpenError;
use crate::request::{DeleteReply, DeleteRequest, GetReply, GetRequest, PreflistItem, PutReply, PutRequest};
use bytes::Bytes;
use ombak_storage::Status;
use ombak_types::{Bucket, Error};
use std::sync::Arc;
use std::time::Duration;

/// The engine of one node. Cheap to clone: clones share everything.
#[derive(Clone)]
pub struct Kv {
    config: Arc<KvConfig>,
}

/// Whether a node can serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Requests are taken.
    pub ready: bool,
    /// Stores that take no writes any more, with the reason: (partition, why).
    pub poisoned: Vec<(u32, String)>,
    /// A store refused a write because its disk is full, and none has succeeded since.
    pub disk_full: bool,
}

impl Kv {
    /// Opens the node's files and stores. Blocks: not for network threads.
    pub fn open(config: KvConfig) -> Result<Self, OpenError> {
        Ok(Self { config: Arc::new(config) })
    }

    /// Reads one key.
    pub async fn get(&self, _request: GetRequest) -> Result<GetReply, Error> {
        Err(Error::Stopping)
    }

    /// Writes one key.
    pub async fn put(&self, _request: PutRequest) -> Result<PutReply, Error> {
        Err(Error::Stopping)
    }

    /// Deletes one key.
    pub async fn delete(&self, _request: DeleteRequest) -> Result<DeleteReply, Error> {
        Err(Error::Stopping)
    }

    /// The keys of a bucket, in no particular order, without deleted ones. `timeout` covers the whole listing.
    pub fn list_keys(&self, _bucket: &Bucket, _timeout: Option<Duration>) -> Result<Listing, Error> {
        Err(Error::Stopping)
    }

    /// The buckets of a type that hold at least one key, in no particular order.
    pub fn list_buckets(&self, _bucket_type: &Bytes, _timeout: Option<Duration>) -> Result<Listing, Error> {
        Err(Error::Stopping)
    }

    /// The positions of a key, all members counted as up.
    pub fn preflist(&self, _bucket: &Bucket, _key: &[u8]) -> Result<Vec<PreflistItem>, Error> {
        Err(Error::Stopping)
    }

    /// The name of this node.
    pub fn node_name(&self) -> &str {
        &self.config.node_name
    }

    /// What the store of each partition says of itself.
    pub fn vnode_status(&self) -> Vec<(u32, Status)> {
        Vec::new()
    }

    /// Whether this node can serve.
    pub fn health(&self) -> Health {
        Health::default()
    }

    /// Refuses new requests, waits for those under way, closes the stores. Blocks: not for network threads.
    pub fn close(&self) {}
}
