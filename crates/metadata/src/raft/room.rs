//! Changes of the files of the metadata that wait for room on a full disk.
//!
//! openraft takes each error of what stores its log and its snapshots for the end: its core stops
//! until the next start of the node. It acknowledges nothing before the change has returned. So a
//! change that finds no room waits. What openraft is asked meanwhile it keeps in a queue without a
//! bound, so the group refuses the requests that would wait there.

use super::async_runtime::OmbakRuntime;
use crate::log::LogError;
use ombak_runtime::Pool;
use openraft::AsyncRuntime;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tracing::warn;

/// How often a change is tried that finds no room on the disk.
const ROOM_LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The thread that changes the files, in the order of the calls.
#[derive(Clone)]
pub(crate) struct PatientPool {
    pool: Pool,
    is_stopping: Arc<AtomicBool>,
    /// How many changes wait for room.
    waiting: Arc<AtomicUsize>,
}

impl PatientPool {
    pub fn new(pool: Pool) -> Self {
        Self { pool, is_stopping: Arc::default(), waiting: Arc::default() }
    }

    /// The same thread, for other changes: whether one of them waits is asked for itself.
    pub fn for_other_changes(&self) -> Self {
        Self { waiting: Arc::default(), ..self.clone() }
    }

    /// Whether a change waits for room.
    pub fn waits_for_room(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// The thread itself, for work that needs no room.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// From now on a change that finds no room fails, in place of waiting for room.
    pub fn stop_waiting(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Carries out a change. While it finds no room it is tried again: it must leave no trace then,
    /// or be one that may be repeated.
    pub async fn carry_out(
        &self,
        change: impl Fn() -> Result<(), LogError> + Clone + Send + 'static,
    ) -> Result<(), io::Error> {
        let mut waiting = None;
        loop {
            match self.pool.run(change.clone()).await {
                Ok(Err(error)) if LogError::is_full_disk(&error) && !self.is_stopping.load(Ordering::SeqCst) => {
                    if waiting.is_none() {
                        warn!(%error, "this node takes no part in decisions of the cluster until its disk has room");
                        waiting = Some(Counted::new(self.waiting.clone()));
                    }
                    OmbakRuntime::sleep(ROOM_LOOK_INTERVAL).await;
                }
                Ok(done) => return done.map_err(io::Error::other),
                Err(e) => return Err(io::Error::other(e)),
            }
        }
    }
}

/// Counts as one until it is dropped.
pub(super) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
