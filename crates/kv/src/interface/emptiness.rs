//! Whether a node holds anything, for changes that only an empty cluster survives: which nodes own
//! the partitions, and how many copies the keys of a bucket have.

use crate::engine::Kv;
use crate::requests::Holdings;
use ombak_storage::{Detail, Scope};
use ombak_types::Error;

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
