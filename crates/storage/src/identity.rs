//! The identity of a store, and what its start knows about the end of the previous run
//! (docs/design/replication.md §1, 5, 7, 8).

use crate::error::{StorageError, io_error};
use crate::machine::Machine;
use std::path::Path;

/// The identity of a store. A node that has compared this store with others, or has relied on its
/// content, remembers this identity with that fact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreIdentity {
    /// A random number that is drawn when the store is created. A store that was removed and
    /// created again, restored from a backup or copied has another one.
    pub store_id: u64,
    /// Counts the starts of this store from 1. It is on disk before the first write of each start.
    /// 0: nothing was ever written, so nothing is on disk, and the next start draws another id.
    pub boot: u64,
    /// The previous run was closed cleanly: nothing that was written is missing.
    pub was_clean: bool,
    /// The store began as a copy or from a backup. The age of its content is unknown, and an absent
    /// key proves nothing until the store has been compared with another replica.
    pub is_restored: bool,
    /// The last start that may have found the newest acknowledged writes missing because they were
    /// not synced: the machine had gone down, a write or sync had failed, or the file system had
    /// lost them while the machine ran on. From then on an absent key proves nothing until the
    /// store has been compared.
    pub lost_writes_boot: Option<u64>,
    /// The identities of the children, for a store that consists of several.
    pub children: Vec<StoreIdentity>,
}

impl StoreIdentity {
    /// Whether the store was empty before this start.
    pub const fn is_new(&self) -> bool {
        self.boot <= 1 && !self.is_restored
    }

    /// Whether this start found exactly what the previous run left behind.
    pub const fn is_as_closed(&self) -> bool {
        self.boot == 0 || self.was_clean
    }

    /// Whether this start may have found acknowledged writes missing.
    pub fn has_lost_writes(&self) -> bool {
        self.lost_writes_boot == Some(self.boot)
    }

    /// The identity of a store that consists of others: each property is that of the worst child.
    /// The id changes when the id of a child changes, or when a child is first written to.
    pub(crate) fn of_all(children: Vec<Self>) -> Self {
        let id_of = |child: &Self| if child.boot == 0 { 0 } else { child.store_id };
        let mix = |id: u64, child: &Self| (id ^ id_of(child)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        // A child that was created later has fewer starts.
        let boot = children.iter().map(|child| child.boot).max().unwrap_or(0);
        let has_lost = children.iter().any(Self::has_lost_writes);
        Self {
            store_id: children.iter().fold(0, mix),
            boot,
            was_clean: children.iter().all(Self::is_as_closed),
            is_restored: children.iter().any(|child| child.is_restored),
            lost_writes_boot: if has_lost {
                Some(boot)
            } else {
                children.iter().filter_map(|c| c.lost_writes_boot).max()
            },
            children,
        }
    }
}

/// A random number of the machine, for something in `dir`. It is unique among stores for all
/// practical purposes.
pub(crate) fn random_id(machine: &dyn Machine, dir: &Path) -> Result<u64, StorageError> {
    machine.random_u64().map_err(|source| io_error("draw a random number for", dir, source))
}
