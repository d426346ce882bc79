//! Whether a node holds anything, for changes that only an empty cluster survives: which nodes own
//! the partitions, and how many copies the keys of a bucket have.

use super::kv::Kv;
use ombak_storage::{Detail, Scope};
use ombak_types::names::encode_bucket_prefix;
use ombak_types::{Bucket, Error};

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
    fn prefix(&self) -> Vec<u8> {
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
pub(super) fn bucket_prefix(bucket: &Bucket) -> Vec<u8> {
    let mut prefix = Vec::new();
    encode_bucket_prefix(bucket, &mut prefix);
    prefix
}

impl Kv {
    /// Holds back the writes of clients. When this returns, each write that began before has ended,
    /// or will be refused. Blocks: not for network threads.
    pub fn close_to_writes(&self) {
        self.engine.write_gate.close();
        for partition in self.engine.partitions().all_open() {
            partition.await_writers();
        }
    }

    /// Lets the writes of clients in again. Those that began before the closing stay refused,
    /// because they may have looked at another ring.
    pub fn open_to_writes(&self) {
        self.engine.write_gate.open();
    }

    /// Whether the writes of clients are let in. One bucket or type may be closed.
    pub fn is_open_to_writes(&self) -> bool {
        self.engine.write_gate.is_open()
    }

    /// Holds back the writes of clients to one bucket or type, and no others. When this returns,
    /// each of them that began before has ended, or will be refused. Blocks: not for network
    /// threads.
    pub fn close_part_to_writes(&self, part: &Holdings) {
        self.engine.write_gate.close_part(&part.prefix());
        for partition in self.engine.partitions().all_open() {
            partition.await_writers();
        }
    }

    /// Lets in the writes to the bucket or type that was closed. Those that began before the
    /// closing stay refused, because they may have looked at other properties.
    pub fn open_part_to_writes(&self) {
        self.engine.write_gate.open_part();
    }

    /// Whether this bucket or type is closed to writes, or everything is.
    pub fn is_closed_to_writes(&self, part: &Holdings) -> bool {
        let closed = self.engine.write_gate.closed_part();
        !self.is_open_to_writes() || closed.is_some_and(|closed| *closed == *part.prefix())
    }

    /// The partition of an object that lies in `holdings`, if there is one. Tombstones and expired
    /// versions are objects, too. Blocks: not for network threads.
    pub fn find_object(&self, holdings: &Holdings) -> Result<Option<u32>, Error> {
        let prefix = holdings.prefix();
        let scope = Scope { prefix: &prefix, ..Scope::EVERYTHING };
        for partition in self.engine.partitions().all_open() {
            let store = partition.store();
            if prefix.is_empty() && store.last_seq() == 0 {
                continue;
            }
            let mut snapshot = partition.snapshot().map_err(Error::from)?;
            if !snapshot.next(&scope, Detail::Keys, 1).map_err(Error::from)?.is_empty() {
                return Ok(Some(partition.number()));
            }
        }
        Ok(None)
    }
}
