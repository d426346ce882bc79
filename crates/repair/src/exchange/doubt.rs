//! When the doubt of a store ends: after one complete round in which everything that it holds was
//! compared with full primaries (docs/design/anti-entropy.md §5).
//!
//! What it is not: it raises no doubt (`ombak-kv`, `transfer/losses`), and decides nothing about a
//! copy (`verdict`).

use super::pairs::Pair;
use ombak_kv::ClassId;
use ombak_kv::repair_host::RepairHost;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use tracing::info;

/// For each partition in doubt: the pairs whose exchanges have ended in full since the doubt rose
/// the last time.
#[derive(Default)]
pub(super) struct DoubtRounds(Mutex<BTreeMap<u32, Compared>>);

#[derive(Default)]
struct Compared {
    /// The seq up to which the copies were in doubt.
    up_to: u64,
    pairs: BTreeSet<Pair>,
}

impl DoubtRounds {
    /// An exchange has ended in full. Up to `began_at` copies were in doubt when it began. Ends the
    /// doubt of the partition if nothing is left to be compared.
    pub(super) fn ended(&self, host: &dyn RepairHost, pair: Pair, began_at: u64) {
        let partition = pair.0.partition;
        let up_to = host.transfers().doubt.up_to(partition);
        let mut all = self.0.lock();
        if up_to == 0 || up_to != began_at {
            if up_to == 0 {
                all.remove(&partition);
            }
            return;
        }
        let compared = all.entry(partition).or_default();
        if compared.up_to != up_to {
            *compared = Compared { up_to, pairs: BTreeSet::new() };
        }
        compared.pairs.insert(pair);
        if needed(host, partition).is_subset(&compared.pairs) {
            all.remove(&partition);
            drop(all);
            end(host, partition, up_to);
        }
    }

    /// Ends the doubt of partitions of which nothing can be compared with anybody, although this
    /// node is a primary: nobody knows more.
    pub(super) fn end_needless(&self, host: &dyn RepairHost) {
        let placement = host.placement();
        if placement.homes().all(|home| host.transfers().doubt.up_to(home.home()) == 0) {
            return;
        }
        let ns = host.buckets().snapshot().all_n_vals();
        for home in placement.homes().filter(|home| !home.is_changing()) {
            let up_to = host.transfers().doubt.up_to(home.home());
            let is_primary = || ns.iter().any(|n| home.replica_set(*n).contains(&host.node_id()));
            if up_to > 0 && is_primary() && needed(host, home.home()).is_empty() {
                end(host, home.home(), up_to);
            }
        }
    }
}

fn end(host: &dyn RepairHost, partition: u32, up_to: u64) {
    if host.transfers().doubt.end_up_to(partition, up_to) {
        info!(partition, "the store was compared with all other primaries, and is in doubt no more");
    }
}

/// The exchanges of a partition in a round: of each class of which this node is a primary, full or
/// not, with each other one.
fn needed(host: &dyn RepairHost, partition: u32) -> BTreeSet<Pair> {
    let (placement, here) = (host.placement(), host.node_id());
    let home = placement.home(partition);
    let mut pairs = BTreeSet::new();
    for n in host.buckets().snapshot().all_n_vals() {
        let set = home.replica_set(n);
        if set.contains(&here) {
            let class = ClassId { partition, n };
            pairs.extend(set.into_iter().filter(|node| *node != here).map(|node| (class, node)));
        }
    }
    pairs
}
