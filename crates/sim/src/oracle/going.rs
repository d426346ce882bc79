//! Members that go, and nodes that do not come.

use super::Key;
use super::copies::Token;
use super::rules::{Evidence, Oracle, is_held};
use super::violation::Violation;
use crate::bucket_kinds::Merging;
use crate::cluster::{Cluster, MemberStage};
use crate::world::HostId;

impl Oracle {
    /// A node is no member any more. A member that has left has given away everything that it held
    /// (docs/design/replication.md §15), or has proved it if its disk has no room for removals.
    /// What only a member held that was removed by force counts as destroyed.
    pub fn node_goes(&mut self, cluster: &mut Cluster, host: HostId, is_forced: bool) {
        let before = self.all_copies(cluster);
        if !is_forced && !cluster.node(host).leaves_on_full_disks {
            let held = before.iter().find_map(|(key, copies)| Some((*key, copies.get(&host)?.tokens()?)));
            if let Some((key, tokens)) = held {
                let what = format!("it was removed because it leaves, and it still holds {tokens:?}");
                self.broken(Violation::Unproven { key: key.to_string(), host: host.0, what });
            }
        }
        cluster.node_mut(host).stage = MemberStage::Gone;
        self.witness.note_gone(host);
        if is_forced {
            self.destructive_faults += 1;
            for (key, before) in before {
                let after = self.copies(cluster, key);
                self.mark_destroyed(key, &before, &after, cluster.world.elapsed());
            }
        }
        self.check_all(cluster);
    }

    /// The join of a node was taken back. It is alone again with all that it has written.
    pub fn check_has_all(&mut self, cluster: &Cluster, host: HostId, brought: &[(Key, Token)]) {
        // Elsewhere than among siblings, a write that a fault has destroyed here does not count as
        // destroyed as long as the key has any other version.
        for (key, token) in brought.iter().filter(|(key, _)| key.kind.merging == Merging::Siblings) {
            let own = self.copies(cluster, *key).into_iter().filter(|(of, _)| *of == host).collect();
            let history = self.history(*key);
            let is_promised = history.promised().any(|promised| promised == *token);
            if is_promised && !is_held(history, *token, &own, *key, Evidence::OnDisk) {
                let what = format!("its join was taken back, and it does not have its write {token} any more");
                self.broken(Violation::Unproven { key: key.to_string(), host: host.0, what });
            }
        }
    }
}
