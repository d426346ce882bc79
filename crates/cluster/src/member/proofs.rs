//! What this node says about a change of the ring.

use ombak_kv::{Holdings, Kv};
use ombak_ring::placement::{LackingHome, ProofOrder, ProvedHome, Report};
use ombak_types::Error;
use std::collections::{BTreeMap, BTreeSet};

/// The report of this node. A node that holds nothing proves any home. Blocks.
pub(super) fn report(kv: &Kv, orders: &[ProofOrder]) -> Result<Report, Error> {
    let placement = kv.placement();
    let mut lacking: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (class, _) in kv.filling_classes() {
        if placement.home(class.partition).is_changing() {
            lacking.entry(class.partition).or_default().insert(class.n);
        }
    }
    let is_begun = |order: &&ProofOrder| placement.home(order.home).version().number == order.begun;
    let is_empty = orders.is_empty() || kv.find_object(&Holdings::Everything)?.is_none();
    let ns = kv.buckets().snapshot().all_n_vals();
    let is_full = |home: u32, n: u32| !lacking.get(&home).is_some_and(|ns| ns.contains(&n));
    let full = |home: u32| ns.iter().copied().filter(|n| is_full(home, *n)).collect();
    let proved = orders.iter().filter(is_begun).filter(|_| is_empty);
    Ok(Report {
        confirmed: placement.version(),
        proved: proved
            .map(|order| ProvedHome { home: order.home, begun: order.begun, full: full(order.home) })
            .collect(),
        lacking: lacking.into_iter().map(|(home, ns)| LackingHome { home, ns }).collect(),
    })
}
