//! All that a node knows of the removal of tombstones and expired versions.

use super::{DueVersions, Fences, Floors, TakesTimes};
use crate::config::KvConfig;
use crate::replica::KnownCounters;
use std::sync::Arc;

/// All that a node knows of the removal of tombstones and expired versions.
pub struct ReapingState {
    /// What this node refuses because it was read too early.
    pub fences: Fences,
    /// The counters of fences of the peers.
    pub counters: KnownCounters,
    /// Tombstones and expired versions that wait for a round.
    pub due: Arc<DueVersions>,
    /// The floors of time of buckets without siblings.
    pub floors: Floors,
    /// Whether tombstones lose their time before they are removed.
    pub(crate) takes_times: TakesTimes,
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
        }
    }
}
