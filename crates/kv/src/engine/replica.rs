//! Answers the questions of coordinators from the partitions of this node.

use super::engine::Engine;
use crate::coordination::get::Ask;
use crate::partition::{Access, Deadline, Failure, MergeRules, Written};
use crate::replica::{Found, ReplicaRead, ReplicaStore};
use ombak_types::stored_object;

impl Engine {
    /// Reads a version in its stored form.
    pub(crate) fn read_replica(&self, read: &ReplicaRead, access: Access) -> Result<Found, Failure> {
        let partition = self.partitions.find(read.partition).map_err(ombak_types::Error::from)?;
        let found = match read.ask {
            Ask::Head => partition.read_head(&read.key, access),
            Ask::Object => partition.read(&read.key, access),
        };
        Ok(found?.map_or_else(|| Found::NotFound { full: partition.store().complete() }, Found::Version))
    }

    /// Merges a version by clock with the version that is here, and stores the result.
    pub(crate) fn store_replica(&self, store: &ReplicaStore, access: Access) -> Result<Written, Failure> {
        let partition = self.partitions.find(store.partition).map_err(ombak_types::Error::from)?;
        let incoming = stored_object::decode(&store.head, Some(&store.body)).map_err(ombak_types::Error::from)?;
        let deadline = Deadline::at_time(store.deadline, &*self.config.runtime);
        let rules = MergeRules { dvv: store.kind.dvv, now: self.now(), deadline: Some(deadline) };
        let mut locked = partition.lock(&store.key, access)?;
        locked.load_for(&incoming.clock, false)?;
        locked.merge(incoming, &rules)
    }
}
