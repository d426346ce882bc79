//! The replicas of this node.

use super::client::{Found, ReplicaClient, ReplicaRead, ReplicaStore, StoredVersion};
use crate::engine::Engine;
use crate::interface::{Kv, PutReply, PutRequest};
use crate::partition::{Access, Failure};
use ombak_runtime::BoxFuture;
use ombak_types::{Error, StoreFailure};
use std::sync::Arc;
use std::time::Instant;

/// This node's partitions. A question is answered at once when nothing has to be waited for, and
/// otherwise by a thread that may wait.
#[derive(Clone)]
pub struct LocalReplica {
    engine: Arc<Engine>,
}

impl LocalReplica {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

impl ReplicaClient for LocalReplica {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<Found, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            match engine.read_replica(&read, Access::Inline) {
                Err(Failure::WouldBlock | Failure::TooLarge(_)) => {}
                answer => return answer.map_err(refusal),
            }
            let (pool, deadline) = (engine.disk_pool.clone(), read.deadline);
            pool.run_until(deadline, move || engine.read_replica(&read, Access::Blocking)).await?.map_err(refusal)
        })
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoredVersion, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            let (partition, synced) = (store.partition, store.synced);
            let stored = match engine.store_replica(&store, Access::Inline) {
                Err(Failure::WouldBlock | Failure::TooLarge(_)) => {
                    let there = engine.clone();
                    // The deadline is checked under the key's lock, so a store that has begun is
                    // waited for.
                    let work = engine.disk_pool.run(move || there.store_replica(&store, Access::Blocking));
                    work.await?.map_err(refusal)?
                }
                stored => stored.map_err(refusal)?,
            };
            let partition = engine.partitions().find(partition)?;
            if synced || partition.store().sync_each_write() {
                engine.synced(&partition, stored.seq).await?;
            }
            Ok(StoredVersion { digest: stored.digest })
        })
    }

    fn coordinate(&self, put: PutRequest, deadline: Option<Instant>) -> BoxFuture<'static, Result<PutReply, Error>> {
        let kv = Kv { engine: self.engine.clone() };
        Box::pin(async move { kv.coordinate_here(put, deadline).await })
    }
}

fn refusal(failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) => error,
        Failure::WouldBlock | Failure::TooLarge(_) => StoreFailure::internal("a blocking call would block").into(),
    }
}
