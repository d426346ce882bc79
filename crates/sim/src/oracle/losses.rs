//! A store that has lost writes says so (docs/design/replication.md §1).

use super::copies::peek;
use super::{DiskCopy, Oracle, Violation, storage_key_of};
use crate::cluster::Cluster;
use crate::world::HostId;

impl Oracle {
    /// A node has started. Where a version that was not synced is gone, its store must know that
    /// the newest writes may be missing: otherwise its "not found" would count.
    pub(super) fn check_losses(&mut self, cluster: &Cluster, host: HostId) {
        let may_have_lost = self.may_have_lost.remove(&host).unwrap_or_default();
        let node = cluster.node(host);
        if node.is_damaged {
            return;
        }
        for key in may_have_lost {
            // Copies for others may have been given back already.
            let store = cluster.home_of(&key).and_then(|home| Some((home, node.store(home)?)));
            let Some((home, store)) = store.filter(|_| cluster.owners_of(&key).contains(&host)) else { continue };
            let identity = store.identity();
            let knows = identity.has_lost_writes() || identity.is_new() || identity.is_restored;
            if !knows && peek(&*store, &storage_key_of(key), None, home) == DiskCopy::Absent {
                self.broken(Violation::LossNotNoticed { key: key.to_string(), host: host.0 });
            }
        }
    }
}
