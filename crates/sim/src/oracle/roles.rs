//! What must be true when roles change: when a home flips, when a node becomes a primary, and when
//! a node holds a copy for others (docs/design/ring-changes.md).
//!
//! It asks who has ever stored what, not what is on disks now. So what a fault destroys afterwards
//! makes no difference.

use super::Key;
use super::copies::EventId;
use super::violation::Violation;
use super::witness::State;
use crate::bucket_kinds::Merging;
use crate::world::HostId;
use ombak_kv::{ClassId, Kv};
use ombak_ring::placement::{HomePlacement, Phase, Placement};
use ombak_types::NodeId;

impl State {
    /// Homes have flipped between two placements. What the members of the old set have held since
    /// before the begin, all members of the new set have stored ("Proof of a home").
    pub(super) fn check_flips(&mut self, before: &Placement, after: &Placement) {
        for (was, is) in before.homes().zip(after.homes()) {
            let has_this_ring = was.other().is_some_and(|ring| ring.version() == is.in_force().version());
            if was.phase() == Phase::Pending && is.phase() == Phase::Flipped && has_this_ring {
                self.check_flip(&is, was.version().number);
            }
        }
    }

    fn check_flip(&mut self, home: &HomePlacement<'_>, begun: u64) {
        let lacks = |key: Key, holder: HostId| {
            let mut held = self.holders.held_before(holder, key, begun);
            held.find_map(|event| {
                let mut hosts = home.replica_set(key.kind.n).into_iter().filter_map(|node| self.whole(node));
                hosts.find(|host| !self.has_or_needs_not(*host, key, event))
            })
        };
        let keys = self.clocked_keys(home.home()).into_iter();
        let lacking = keys.flat_map(|key| {
            let holders = home.other_set(key.kind.n).into_iter().filter_map(|node| self.whole(node));
            let holders: Vec<HostId> = holders.filter(|host| self.engines.contains_key(host)).collect();
            holders.into_iter().filter_map(move |holder| Some((key, holder, lacks(key, holder)?)))
        });
        let Some((key, holder, host)) = lacking.into_iter().next() else { return };
        let what = format!(
            "home {} flipped, and this member of its new set lacks what host {} has held since before the begin",
            home.home(),
            holder.0
        );
        self.unproven(key, host, what);
    }

    /// A node has adopted a placement. What it held for others before it became their primary, it
    /// owes to each other primary that has never had it ("Becoming a primary").
    pub(super) fn check_new_roles(&mut self, host: HostId, kv: &Kv, before: &Placement, after: &Placement) {
        if self.destroyed.contains(&host) {
            return;
        }
        let node = kv.identity().node_id;
        let changed = before.homes().zip(after.homes()).filter(|(was, is)| was.version() != is.version());
        let mut found = None;
        for (was, is) in changed {
            let becomes_primary = |key: &Key| !was.is_primary(node, key.kind.n) && is.is_primary(node, key.kind.n);
            for key in self.clocked_keys(is.home()).into_iter().filter(becomes_primary) {
                let class = ClassId { partition: is.home(), n: key.kind.n };
                let owed_to = |peer: &NodeId| *peer == node || kv.has_owed(class, *peer);
                let peers = is.primaries(key.kind.n).into_iter().filter(|peer| !owed_to(peer));
                let peers: Vec<HostId> = peers.filter_map(|peer| self.whole(peer)).collect();
                let runs = |peer: &&HostId| self.engines.contains_key(peer);
                let mut held = self.holders.held_before(host, key, is.version().number);
                let lacking = held.find_map(|event| {
                    peers.iter().filter(runs).find(|peer| !self.has_or_needs_not(**peer, key, event))
                });
                found = found.or(lacking.map(|peer| (key, *peer)));
            }
        }
        if let Some((key, peer)) = found {
            let what = format!("it became a primary, and does not owe what it held for others to host {}", peer.0);
            self.unproven(key, host, what);
        }
    }

    /// A host stores a version. It holds a copy for others only if every member knows it as a
    /// member ("Fallbacks").
    pub(super) fn check_stand_in(&mut self, host: HostId, key: Key, home: u32) {
        let (Some(newest), Some(own)) = (self.newest.clone(), self.adopted.get(&host)) else { return };
        let Some(node) = self.engines.get(&host).map(|kv| kv.identity().node_id) else { return };
        let is_primary = |placement: &Placement| placement.home(home).is_primary(node, key.kind.n);
        if own.version().lineage != newest.version().lineage || is_primary(own) || is_primary(&newest) {
            return;
        }
        let mut with_node = self.placements.iter().filter(|(_, placement)| placement.nodes().contains(&node));
        let Some(since) = with_node.next().map(|(number, _)| *number) else { return };
        let is_behind = |placement: &Placement| {
            placement.version().lineage == newest.version().lineage && placement.version().number < since
        };
        let mut others = self.adopted.iter().filter(|(other, _)| !self.gone.contains(other));
        if let Some((behind, placement)) = others.find(|(_, placement)| is_behind(placement)) {
            let (has, own) = (placement.version(), own.version());
            let what = format!(
                "it took a copy for others at {own}, and host {} at {has} does not know yet that it owns anything",
                behind.0
            );
            self.unproven(key, host, what);
        }
    }

    /// The keys of a home of which clocks tell what a version has seen.
    fn clocked_keys(&self, home: u32) -> Vec<Key> {
        let has_clocks = |key: &Key| matches!(key.kind.merging, Merging::Siblings | Merging::Single);
        self.holders.keys_of(home).into_iter().filter(has_clocks).collect()
    }

    /// The host of a member of which no fault has destroyed anything.
    fn whole(&self, node: NodeId) -> Option<HostId> {
        let host = self.nodes.get(&node).copied()?;
        (!self.destroyed.contains(&host) && !self.gone.contains(&host)).then_some(host)
    }

    fn has_or_needs_not(&self, host: HostId, key: Key, event: &EventId) -> bool {
        self.holders.has_stored(host, key, event) || self.was_reaped(key, event)
    }

    fn unproven(&mut self, key: Key, host: HostId, what: String) {
        self.violation.get_or_insert(Violation::Unproven { key: key.to_string(), host: host.0, what });
    }
}
