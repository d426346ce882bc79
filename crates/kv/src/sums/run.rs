//! The run of a store to which saved sums belong.

use ombak_storage::{Backend, StoreIdentity};

/// What identifies the content of a store after its close, as far as the next start can see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreRun {
    /// For each store on the disk, its id and the number of its start. Both are 0 for a store to
    /// which nothing was ever written.
    pub(crate) stores: Vec<(u64, u64)>,
    pub(crate) last_seq: u64,
    pub(crate) keys: u64,
    pub(crate) lost_ranges: u64,
}

impl StoreRun {
    /// The present run of a store.
    pub(crate) fn of(store: &dyn Backend) -> Self {
        let (identity, status) = (store.identity(), store.status());
        let id_of = |leaf: &StoreIdentity| if leaf.boot == 0 { (0, 0) } else { (leaf.store_id, leaf.boot) };
        Self {
            stores: leaves(&identity).into_iter().map(id_of).collect(),
            last_seq: store.last_seq(),
            keys: status.keys,
            lost_ranges: status.lost_ranges,
        }
    }

    /// Whether anything of it outlives its process. A memory store is empty once it is closed.
    pub(crate) fn has_content(&self) -> bool {
        self.last_seq > 0 && self.stores.iter().any(|(_, boot)| *boot > 0)
    }

    /// Whether a store that was just opened has exactly what this run left behind.
    ///
    /// A start has the next number, or the same one if this run wrote nothing. If there was another
    /// run that wrote something, then either the number is higher, or that run was not closed
    /// cleanly, or the last seq is another one.
    pub(crate) fn is_left_in(&self, store: &dyn Backend) -> bool {
        let (identity, now) = (store.identity(), Self::of(store));
        let follows = |(earlier, leaf): (&(u64, u64), &StoreIdentity)| match *earlier {
            (_, 0) => leaf.boot == 0,
            (id, boot) => {
                let is_next = leaf.boot == boot || leaf.boot == boot.saturating_add(1);
                id == leaf.store_id && is_next && leaf.was_clean && !leaf.has_lost_writes()
            }
        };
        let leaves = leaves(&identity);
        leaves.len() == self.stores.len()
            && self.stores.iter().zip(leaves).all(follows)
            && (now.last_seq, now.keys, now.lost_ranges) == (self.last_seq, self.keys, self.lost_ranges)
    }
}

/// The identities of the stores on the disk.
fn leaves(identity: &StoreIdentity) -> Vec<&StoreIdentity> {
    if identity.children.is_empty() {
        return vec![identity];
    }
    identity.children.iter().flat_map(leaves).collect()
}
