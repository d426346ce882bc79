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
}
