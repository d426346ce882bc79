//! Sums over ranges of key hashes, which the oracle makes by itself from what stores hold.
//!
//! What it checks: the sums that a node keeps of a class are those of its store at that moment, and
//! at the end of a run all primaries of a class have equal sums.
//!
//! It shares no code with the sums of nodes: it knows the formula, because that is a part of the
//! protocol between nodes. It takes over the hash of a key and the digest of a version.

use super::copies::set_aside_to;
use super::rules::Oracle;
use super::violation::Violation;
use super::{Key, storage_keys};
use crate::cluster::Cluster;
use crate::world::HostId;
use ombak_kv::{ClassId, Kv, SumsState};
use ombak_storage::{Backend, Detail, Scope, key_hash};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of ranges in which sums are compared, as a power of two.
const RANGES_LOG2: u32 = 6;
/// How many entries are taken from a snapshot at a time.
const ENTRIES: usize = 1_000;

/// The number of versions in a range, and the wrapping sum of their mixes.
type RangeSum = (u64, u64);

/// The sums of a class by range.
type Sums = Vec<RangeSum>;

/// What a version adds to the sum of its range.
const fn mix(hash: u64, digest: u64) -> u64 {
    let mixed = (hash ^ digest.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ digest
}

/// The sums of each class of a store, by its n, without what is set aside; none if the store cannot
/// be read, or holds a key that is none of the run.
fn sums_of(kv: &Kv, partition: u32, store: &dyn Backend) -> Option<BTreeMap<u32, Sums>> {
    let scope = Scope { since_seq: set_aside_to(Some(kv), partition), ..Scope::EVERYTHING };
    let mut sums = BTreeMap::<u32, Sums>::new();
    let mut snapshot = store.snapshot().ok()?;
    loop {
        let entries = snapshot.next(&scope, Detail::Keys, ENTRIES).ok()?;
        if entries.is_empty() {
            return Some(sums);
        }
        for entry in &entries {
            let hash = key_hash(&entry.key);
            let of_class = sums.entry(storage_keys().get(&entry.key[..])?.kind.n).or_insert_with(nothing);
            let (versions, sum) = &mut of_class[(hash >> (64 - RANGES_LOG2)) as usize];
            *versions += 1;
            *sum = sum.wrapping_add(mix(hash, entry.digest));
        }
    }
}

fn nothing() -> Sums {
    vec![(0, 0); 1 << RANGES_LOG2]
}

/// The sums that a node keeps of a class; none while it does not say that they are exact.
fn kept_by(kv: &Kv, class: ClassId) -> Option<Sums> {
    let cut = kv.cut_of_class(class).filter(|_| kv.sums_state(class) == SumsState::Exact)?;
    Some(cut.sums.ranges(1 << RANGES_LOG2).iter().map(|range| (range.versions, range.sum)).collect())
}

impl Oracle {
    /// Checks in one partition that the sums that nodes keep are those of their stores. Which one
    /// changes from call to call, because all of them would take too long.
    pub fn check_some_sums(&mut self, cluster: &Cluster) {
        let Some(ring) = cluster.ring() else { return };
        let partition = (self.sums_checks % u64::from(ring.size().get())) as u32;
        self.sums_checks += 1;
        self.check_kept_sums(cluster, partition);
    }

    /// Returns the sums by what lies in the stores.
    fn check_kept_sums(&mut self, cluster: &Cluster, partition: u32) -> BTreeMap<HostId, BTreeMap<u32, Sums>> {
        let mut all = BTreeMap::new();
        for (host, kv, store) in with_stores(cluster, partition) {
            let Some(folded) = sums_of(&kv, partition, &*store) else { continue };
            for n in cluster.all_n_vals() {
                let Some(kept) = kept_by(&kv, ClassId { partition, n }) else { continue };
                self.sums_compared += 1;
                if kept == folded.get(&n).cloned().unwrap_or_else(nothing) {
                    continue;
                }
                // A record that vanished is in the sums until the node has compared them.
                if !self.robbed.contains(&(host, partition)) {
                    let what = format!("partition {partition} n={n}: the sums are not those of the store");
                    self.broken(Violation::Sums { host: host.0, what });
                }
            }
            all.insert(host, folded);
        }
        all
    }

    /// The record of a key has vanished from the store of a primary, behind the back of its node. A
    /// read may meet that primary alone, and finds nothing. The primary may have acknowledged a
    /// write that is under way.
    pub fn note_robbed(&mut self, host: HostId, partition: u32, key: Key) {
        self.robbed.insert((host, partition));
        for write in self.history(key).writes.values_mut() {
            write.robbed += 1;
        }
    }

    /// Checks, when nothing happens any more, that all primaries of a class have the same sums by
    /// what lies in their stores. What cannot be read is left out.
    pub fn check_all_sums(&mut self, cluster: &Cluster) {
        let (Some(placement), Some(ring)) = (cluster.placement(), cluster.ring()) else { return };
        for partition in 0..ring.size().get() {
            let folded = self.check_kept_sums(cluster, partition);
            for n in cluster.all_n_vals() {
                let primaries = placement.home(partition).replica_set(n);
                let of_primary = |node| {
                    let host = cluster.host_of(node)?;
                    Some((host, folded.get(&host)?.get(&n).cloned().unwrap_or_else(nothing)))
                };
                let sums: BTreeMap<HostId, Sums> = primaries.into_iter().filter_map(of_primary).collect();
                let first = sums.values().next();
                let other = sums.iter().find(|(_, sums)| Some(*sums) != first);
                if let Some((host, _)) = other.filter(|_| !self.has_unreadable_in(cluster, partition, n)) {
                    let what = format!("partition {partition} n={n}: the sums differ after a round of exchanges");
                    self.broken(Violation::Sums { host: host.0, what });
                }
            }
        }
    }

    fn has_unreadable_in(&self, cluster: &Cluster, partition: u32, n: u32) -> bool {
        let of_class = |key: &Key| key.kind.n == n && cluster.home_of(key) == Some(partition);
        self.keys.keys().filter(|key| of_class(key)).any(|key| !self.unreadable(cluster, *key).is_empty())
    }
}

/// The running nodes that have the store of a partition open.
fn with_stores(cluster: &Cluster, partition: u32) -> Vec<(HostId, Kv, Arc<dyn Backend>)> {
    let with_store = |(host, kv)| Some((host, kv, cluster.node(host).store(partition)?));
    cluster.engines().into_iter().filter_map(with_store).collect()
}

#[cfg(test)]
mod tests {
    use super::mix;

    /// The same numbers as in `ombak_kv`: the formula is a part of the protocol.
    #[test]
    fn the_formula_is_that_of_the_protocol() {
        let numbers = [(0, 0), (1, 0), (0, 1), (0x2D06_8005_38D3_94C2, 0xD1D1_E911_DEA7_C27B)];
        let expected = [0, 0xCA00_9717_327D_1F6E, 0x1071_9956_6433_A169, 0xAE25_C882_2AA4_F886];
        assert_eq!(numbers.map(|(hash, digest)| mix(hash, digest)), expected);
    }
}
