//! The mark of a clean end.

use super::identity::hex;
use crate::partition::Ticket;
use serde::{Deserialize, Serialize};

/// Written last by a process that closed all its stores, consumed first by the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanMark {
    /// Version of this file.
    pub format: u32,
    /// The boot number of the process that ended.
    pub boot: u64,
    /// The random part of its actors.
    #[serde(with = "hex")]
    pub actor: u64,
    /// The epochs it drew are below this.
    pub next_ticket: Ticket,
    /// Epochs below this are never continued, in no partition.
    pub floor: Ticket,
    /// Which stores were closed, at which boot.
    #[serde(with = "hex")]
    pub stores: u64,
    /// Where this file was written: one that is elsewhere is a copy, and proves nothing.
    #[serde(with = "hex")]
    pub inode: u64,
    /// When the file was created, in nanoseconds since 1970.
    #[serde(with = "hex")]
    pub created_ns: u64,
}
