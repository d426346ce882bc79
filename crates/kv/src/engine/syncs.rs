//! Waiting for syncs, many requests at a time.

use super::io_pool::IoPool;
use crate::partition::Partition;
use ombak_types::Error;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

type Waiter = (u64, oneshot::Sender<Result<(), Error>>);

#[derive(Default)]
struct Waiting {
    waiters: Vec<Waiter>,
    /// Whether a job that will see `waiters` is queued or running.
    job: bool,
}

/// Who waits for a sync, by partition. However many wait, each partition has one job on the pool at a time, and one
/// sync serves all who came before it began. Bounded by the number of requests under way.
pub(super) struct Syncs(Arc<[Mutex<Waiting>]>);

impl Syncs {
    pub(super) fn new(partitions: usize) -> Self {
        Self((0..partitions).map(|_| Mutex::default()).collect())
    }

    /// Returns when everything up to `seq` of the partition survives a loss of power.
    pub(super) async fn wait(&self, pool: &IoPool, partition: &Arc<Partition>, seq: u64) -> Result<(), Error> {
        if partition.store().is_synced(seq) {
            return Ok(());
        }
        let (give, take) = oneshot::channel();
        let at = partition.number() as usize % self.0.len();
        let start = {
            let mut waiting = self.0[at].lock();
            waiting.waiters.push((seq, give));
            !std::mem::replace(&mut waiting.job, true)
        };
        if start {
            let (all, partition) = (self.0.clone(), partition.clone());
            if let Err(refused) = pool.submit(move || sync_all(&all[at], &partition)) {
                let mut waiting = self.0[at].lock();
                waiting.job = false;
                waiting.waiters.drain(..).for_each(|(_, give)| drop(give.send(Err(refused.clone()))));
            }
        }
        take.await.unwrap_or(Err(Error::Stopping))
    }
}

fn sync_all(waiting: &Mutex<Waiting>, partition: &Partition) {
    loop {
        let waiters = {
            let mut waiting = waiting.lock();
            if waiting.waiters.is_empty() {
                waiting.job = false;
                return;
            }
            std::mem::take(&mut waiting.waiters)
        };
        let newest = waiters.iter().map(|(seq, _)| *seq).max().unwrap_or(0);
        let synced = partition.store().sync(newest).map_err(|e| Error::Storage(e.to_string()));
        for (_, give) in waiters {
            // A request that was given up no longer listens.
            let _ = give.send(synced.clone());
        }
    }
}
