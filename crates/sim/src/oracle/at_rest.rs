//! What must be true when nothing happens any more.

use super::Key;
use super::copies::{Copies, DiskCopy, Token};
use super::rules::{Evidence, Oracle, is_held, shown};
use super::violation::Violation;
use crate::bucket_kinds::{BucketKind, Merging};
use crate::cluster::Cluster;
use crate::world::HostId;
use bytes::Bytes;
use std::collections::BTreeSet;

impl Oracle {
    /// The hosts whose copy of a key cannot be read.
    pub fn unreadable(&self, cluster: &Cluster, key: Key) -> BTreeSet<HostId> {
        let copies = self.copies(cluster, key);
        copies.into_iter().filter(|(_, copy)| *copy == DiskCopy::Unreadable).map(|(host, _)| host).collect()
    }

    /// What all hosts hold of a key, if a copy of it cannot be read.
    pub fn unreadable_text(&self, cluster: &Cluster, key: Key) -> Option<String> {
        let copies = self.copies(cluster, key);
        let unreadable = self.unreadable(cluster, key);
        let was_there: Vec<_> = unreadable.iter().map(|host| (host.0, self.witness.last_stored(*host, key))).collect();
        let owners: Vec<usize> = cluster.owners_of(&key).iter().map(|host| host.0).collect();
        let text = || format!("{key:?} of {owners:?}: {copies:?}, and unreadable are {was_there:?}");
        (!unreadable.is_empty()).then(text)
    }

    /// The hosts whose copy of a key cannot be read, and whose copy nothing can replace: an owner's
    /// copy held what no readable copy has seen, or another node's copy held another version than
    /// the owners have by now. Nobody can prove that such a copy may go
    /// (docs/design/replication.md §4, §13).
    pub fn irreplaceable(&self, cluster: &Cluster, key: Key, owners: &[HostId]) -> BTreeSet<HostId> {
        let copies = self.copies(cluster, key);
        let can_be_replaced = |host: &HostId| {
            let Some(held) = self.witness.last_stored(*host, key) else { return false };
            match owners.contains(host) {
                true => copies.values().any(|copy| held.is_covered_by(copy)),
                false => owners.iter().all(|owner| held.is_same_as(&copies[owner])),
            }
        };
        let unreadable = copies.iter().filter(|(_, copy)| **copy == DiskCopy::Unreadable).map(|(host, _)| *host);
        unreadable.filter(|host| !can_be_replaced(host)).collect()
    }

    /// Whether a host has anything of a key.
    pub fn holds(&self, cluster: &Cluster, key: Key, host: HostId) -> bool {
        self.copies(cluster, key).get(&host).is_some_and(|copy| *copy != DiskCopy::Absent)
    }

    /// Checks a key after the nodes have settled: only its owners hold copies of it.
    pub fn check_settled(&mut self, cluster: &Cluster, key: Key, owners: &[HostId]) {
        let copies = self.copies(cluster, key);
        // What an owner cannot read, others keep.
        let is_whole = owners.iter().all(|owner| copies[owner] != DiskCopy::Unreadable);
        let mut strays =
            copies.iter().filter(|(host, copy)| is_whole && !owners.contains(host) && copy.tokens().is_some());
        if let Some((host, _)) = strays.next() {
            let (key, host, copies) = (key.to_string(), host.0, shown(&copies));
            self.broken(Violation::Stray { key, host, copies });
        }
    }

    /// Checks a key after a complete round of exchanges, and before anybody has read it: its
    /// replicas are equal, whatever has made them differ. What cannot be read is left out.
    pub fn check_exchanged(&mut self, cluster: &Cluster, key: Key, owners: &[HostId]) {
        self.check_settled(cluster, key, owners);
        if !self.are_equal(cluster, key, owners) {
            let copies = shown(&self.copies(cluster, key));
            self.broken(Violation::Unequal { key: key.to_string(), copies });
        }
    }

    /// Whether all replicas of a key that can be read are equal.
    pub fn are_equal(&self, cluster: &Cluster, key: Key, owners: &[HostId]) -> bool {
        let copies = self.copies(cluster, key);
        let mut digests = owners.iter().filter_map(|host| match &copies[host] {
            DiskCopy::Version { digest, .. } => Some(Some(*digest)),
            DiskCopy::Absent => Some(None),
            DiskCopy::Unreadable => None,
        });
        let first = digests.next();
        digests.all(|digest| Some(digest) == first)
    }

    /// Whether an owner has a value beside a newer deletion, in a bucket without siblings.
    pub fn hides_values(&self, cluster: &Cluster, key: Key, owners: &[HostId]) -> bool {
        let is_newest_only = matches!(key.kind.merging, Merging::Single | Merging::LastWriteWins);
        let hides = |(host, copy): (HostId, DiskCopy)| {
            owners.contains(&host) && matches!(copy, DiskCopy::Version { hides_values: true, .. })
        };
        is_newest_only && self.copies(cluster, key).into_iter().any(hides)
    }

    /// Checks what must be true of a key after healing.
    pub fn check_healed(&mut self, cluster: &Cluster, key: Key, owners: &[HostId]) {
        self.check(cluster, key);
        let all = self.copies(cluster, key);
        let copies: Copies =
            all.iter().filter(|(host, _)| owners.contains(host)).map(|(h, c)| (*h, c.clone())).collect();
        if !self.are_equal(cluster, key, owners) {
            self.broken(Violation::Unequal { key: key.to_string(), copies: shown(&all) });
            return;
        }
        let lasting = &self.unreadable(cluster, key) - &self.irreplaceable(cluster, key, owners);
        if let Some(host) = lasting.iter().find(|host| owners.contains(host)) {
            let (key, host, copies) = (key.to_string(), host.0, shown(&all));
            self.broken(Violation::NotRepaired { key, host, copies });
            return;
        }
        let history = self.history(key).clone();
        let is_readable = |copy: &&DiskCopy| !matches!(copy, DiskCopy::Unreadable);
        let Some(copy) = copies.values().find(is_readable) else { return };
        let lost = history.promised().find(|token| !is_held(&history, *token, &copies, key, Evidence::Possible));
        if let Some(token) = lost {
            self.broken(Violation::Lost { key: key.to_string(), token, copies: shown(&all) });
        }
        if self.hides_values(cluster, key, owners) {
            self.broken(Violation::NotDeleted { key: key.to_string(), copies: shown(&all) });
        }
        if matches!(key.kind.merging, Merging::LastWriteWins | Merging::WriteOnce) {
            return;
        }
        let revived = self.witness.revived(key);
        let is_value = |token: &Token| history.writes.get(token).is_some_and(|write| !write.is_delete);
        // A primary writes a deletion anew that hides values (docs/design/replication.md §6),
        // also if a later value has replaced the deletion elsewhere. That value is newer, so
        // readers get it.
        let shows_value = key.kind.merging == Merging::Single && copy.tokens().into_iter().flatten().any(is_value);
        let is_to_be_gone = |token: &&Token| !revived.contains(token) && (is_value(token) || !shows_value);
        for token in copy.tokens().into_iter().flatten().filter(is_to_be_gone) {
            if let Some(successor) = history.promised_successor(*token) {
                let key = key.to_string();
                self.broken(Violation::Back { key, token: *token, successor, copies: shown(&all) });
            }
        }
    }

    /// The keys of a bucket that have a value on all disks; none if some disk cannot be read or
    /// differs.
    pub fn living(&self, cluster: &Cluster, kind: BucketKind) -> Option<BTreeSet<Bytes>> {
        let mut living = BTreeSet::new();
        for (key, history) in self.keys.iter().filter(|(key, _)| key.kind == kind) {
            let copies = self.copies(cluster, *key);
            let is_value = |token: &Token| history.writes.get(token).is_some_and(|write| !write.is_delete);
            let has_value = |copy: &DiskCopy| copy.tokens().is_some_and(|tokens| tokens.iter().any(is_value));
            if copies.values().any(|copy| *copy == DiskCopy::Unreadable) {
                return None;
            }
            let owners = cluster.owners_of(key).len();
            match copies.values().filter(|copy| has_value(copy)).count() {
                0 => {}
                of if of == owners => drop(living.insert(key.bytes())),
                _ => return None,
            }
        }
        Some(living)
    }
}
