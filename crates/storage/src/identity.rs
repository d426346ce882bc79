//! Who a store is, and what its start knows of the end of the run before (docs/design/replication.md §1, 5, 7, 8).

/// Who a store is. Whoever has compared a store with others, or has counted on what it held, remembers this with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Random, drawn when the store began. A store that was removed and begun anew, restored from a backup or copied has
    /// another.
    pub store_id: u64,
    /// Counts the starts of this store, from 1; on disk before the first write of each. 0: nothing was ever written, so there
    /// is nothing on disk, and the next start draws another id.
    pub boot: u64,
    /// The run before was closed in order: nothing that was written is missing.
    pub was_clean: bool,
    /// It began as a copy or from a backup: what it holds is of an unknown age, and an absent key proves nothing until it
    /// has been compared with another replica.
    pub is_restored: bool,
    /// The last start that may have found the end of what was acknowledged before missing, because it was not synced: the
    /// machine had gone down, or a write or sync had failed. From then on an absent key proves nothing until the store has
    /// been compared.
    pub tail_lost_boot: Option<u64>,
    /// Of a store that consists of others: theirs.
    pub children: Vec<StoreIdentity>,
}

impl StoreIdentity {
    /// Whether nothing was there before this start.
    pub const fn is_new(&self) -> bool {
        self.boot <= 1 && !self.is_restored
    }

    /// Whether this start found exactly what the run before left behind.
    pub const fn is_as_closed(&self) -> bool {
        self.boot == 0 || self.was_clean
    }

    /// Whether this start may have found acknowledged writes missing.
    pub fn has_lost_tail(&self) -> bool {
        self.tail_lost_boot == Some(self.boot)
    }

    /// Of a store that consists of others: as good as the worst of them. Its id changes when one of theirs does, or is first
    /// written to.
    pub(crate) fn of_all(children: Vec<Self>) -> Self {
        let id_of = |child: &Self| if child.boot == 0 { 0 } else { child.store_id };
        let mix = |id: u64, child: &Self| (id ^ id_of(child)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        // A child that began later has fewer starts behind it.
        let boot = children.iter().map(|child| child.boot).max().unwrap_or(0);
        let has_lost = children.iter().any(Self::has_lost_tail);
        Self {
            store_id: children.iter().fold(0, mix),
            boot,
            was_clean: children.iter().all(Self::is_as_closed),
            is_restored: children.iter().any(|child| child.is_restored),
            tail_lost_boot: if has_lost { Some(boot) } else { children.iter().filter_map(|c| c.tail_lost_boot).max() },
            children,
        }
    }
}

/// A number that no other store has.
pub(crate) fn random_id() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
