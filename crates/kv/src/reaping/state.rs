//! All that a node knows of the removal of tombstones and expired versions.

use super::{DueVersions, Fences, Floors, TakesTimes};
use crate::config::KvConfig;
use crate::replica::KnownCounters;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// All that a node knows of the removal of tombstones and expired versions.
pub(crate) struct ReapingState {
    /// What this node refuses because it was read too early.
    pub(crate) fences: Fences,
    /// The counters of fences of the peers.
    pub(crate) counters: KnownCounters,
    /// Tombstones and expired versions that wait for a round.
    pub(crate) due: Arc<DueVersions>,
    /// The floors of time of buckets without siblings.
    pub(crate) floors: Floors,
    /// Whether tombstones lose their time before they are removed.
    pub(crate) takes_times: TakesTimes,
    /// Whether the rounds were started.
    pub(crate) is_started: AtomicBool,
}

impl ReapingState {
    /// The state of a process that starts, with what was saved. `boot` is the number of the start.
    pub(crate) fn new(floors: Floors, due: Arc<DueVersions>, config: &KvConfig, boot: u64) -> Self {
        Self {
            fences: Fences::new(boot),
            counters: KnownCounters::default(),
            due,
            floors,
            takes_times: TakesTimes::new(config.hooks.reaping_gate.is_some()),
            is_started: AtomicBool::new(false),
        }
    }
}
