//! Waits for syncs on behalf of many requests.

use crate::partition::Partition;
use ombak_runtime::Pool;
use ombak_types::Error;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

type Waiter = (u64, oneshot::Sender<Result<(), Error>>);

#[derive(Default)]
struct Waiting {
    waiters: Vec<Waiter>,
    /// Whether a job that will handle `waiters` is queued or running.
    job: bool,
}

/// The requests that wait for a sync, by partition. However many requests wait, a partition has at
/// most one job on the pool, and one sync serves all requests that arrived before it began. The
/// number of active requests bounds the memory.
pub(super) struct SyncQueue(Arc<[Mutex<Waiting>]>);

impl SyncQueue {
    pub(super) fn new(partitions: usize) -> Self {
        Self((0..partitions).map(|_| Mutex::default()).collect())
    }

    /// Returns when all appends of the partition up to `seq` survive a power loss.
    pub(super) async fn wait(&self, pool: &Pool, partition: &Arc<Partition>, seq: u64) -> Result<(), Error> {
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
                waiting.waiters.drain(..).for_each(|(_, give)| drop(give.send(Err(refused.into()))));
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
        let synced = partition.store().sync(newest).map_err(Error::from);
        for (_, give) in waiters {
            // Sending fails when the request was given up.
            let _ = give.send(synced.clone());
        }
    }
}
