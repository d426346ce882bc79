//! What a node has still to do until everything lies where it belongs, as it tells the others.

use ombak_repair::{Repair, Settled};
use serde::{Deserialize, Serialize};

/// The counts of what a member has still to bring to where it belongs, or to remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsettledCounts {
    /// Partitions that may hold copies for other nodes.
    pub partitions_with_hints: u64,
    /// Classes and peers that missed writes.
    pub owed_marks: u64,
    /// Classes that may lack something.
    pub filling_classes: u64,
    /// Transfers under way or ordered.
    pub transfers: u64,
    /// Versions that the member cannot read and that nothing has replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable_keys: u64,
    /// Tombstones and expired versions of which the member has found that another primary lacks
    /// them. They are among `versions_to_reap`. Earlier versions do not say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub versions_lacked: u64,
    /// Tombstones and expired versions that wait for their time or for their removal.
    #[serde(default)]
    pub versions_to_reap: u64,
    /// Whether the member still looks through its stores for tombstones of the time before.
    #[serde(default)]
    pub looks_for_tombstones: bool,
    /// Jobs of keys that have not ended. They keep the member from leaving, and not from being
    /// settled. Earlier versions do not say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub key_jobs: u64,
    /// The last round in which every exchange of the member ended in full; none: not since its
    /// start. It does not keep the member from being settled. Earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange_round: Option<ExchangeRound>,
}

/// A round of exchanges that has ended in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeRound {
    /// When it ended, in Unix seconds.
    pub ended_secs: u64,
    /// How many keys it repaired.
    pub repaired: u64,
}

impl ExchangeRound {
    /// The last one of a node.
    fn of(repair: &Repair) -> Option<Self> {
        let figures = repair.exchange_figures()?;
        Some(Self { ended_secs: figures.round_ended_at?.secs(), repaired: figures.round_repaired })
    }
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<Settled> for UnsettledCounts {
    fn from(now: Settled) -> Self {
        Self {
            partitions_with_hints: now.partitions_with_hints,
            owed_marks: now.owed_marks,
            filling_classes: now.filling_classes,
            transfers: now.transfers,
            unreadable_keys: now.unreadable_keys,
            versions_lacked: now.versions_lacked,
            versions_to_reap: now.versions_to_reap,
            looks_for_tombstones: now.looks_for_tombstones,
            key_jobs: 0,
            exchange_round: None,
        }
    }
}

impl UnsettledCounts {
    /// The counts of a node, which may be a node without a cluster. Not for network threads.
    pub fn of(repair: &Repair) -> Self {
        Self { exchange_round: ExchangeRound::of(repair), ..repair.settled().into() }
    }

    /// Whether everything lies where it belongs. What only waits for its removal does not count.
    pub fn is_settled(&self) -> bool {
        let reaping = Self {
            versions_to_reap: self.versions_to_reap,
            looks_for_tombstones: self.looks_for_tombstones,
            key_jobs: self.key_jobs,
            exchange_round: self.exchange_round,
            ..Self::default()
        };
        *self == reaping
    }

    /// Whether nothing waits for its removal.
    pub const fn is_reaped(&self) -> bool {
        self.versions_to_reap == 0 && !self.looks_for_tombstones
    }
}
