//! Changes of the files of the metadata that wait for room on a full disk.
//!
//! openraft takes each error of what stores its log and its snapshots for the end: its core stops
//! until the next start of the node. It acknowledges nothing before the change has returned. So a
//! change that finds no room waits, and to the other nodes this one looks slow.

use super::async_runtime::OmbakRuntime;
use crate::log::LogError;
use ombak_runtime::Pool;
use openraft::AsyncRuntime;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::warn;

/// How often a change is tried that finds no room on the disk.
const ROOM_LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The thread that changes the files, in the order of the calls.
#[derive(Clone)]
pub(crate) struct PatientPool {
    pool: Pool,
    is_stopping: Arc<AtomicBool>,
}

impl PatientPool {
    pub fn new(pool: Pool) -> Self {
        Self { pool, is_stopping: Arc::default() }
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
        let mut is_waiting = false;
        loop {
            match self.pool.run(change.clone()).await {
                Ok(Err(error)) if LogError::is_full_disk(&error) && !self.is_stopping.load(Ordering::SeqCst) => {
                    if !is_waiting {
                        warn!(%error, "this node takes no part in decisions of the cluster until its disk has room");
                    }
                    is_waiting = true;
                    OmbakRuntime::sleep(ROOM_LOOK_INTERVAL).await;
                }
                Ok(done) => return done.map_err(io::Error::other),
                Err(e) => return Err(io::Error::other(e)),
            }
        }
    }
}
