//! Gives back many foreign copies at once: what this node held as a primary until its homes changed
//! (docs/design/ring-changes.md, "After the change").
//!
//! This node and all primaries sum up ranges of key hashes. A range whose sums agree everywhere is
//! proved: each primary has synced exactly the versions that this node has. The copies of such a
//! range go, each only if it is still the version that was summed up. All others are left to the
//! pass that compares key by key.

use crate::Host;
use crate::compare;
use crate::hand_back::{Removal, remove_proven};
use crate::ranges::Ranges;
use crate::work::Work;
use futures_util::future::try_join_all;
use ombak_kv::ClassId;
use ombak_kv::repair_host::is_of_class;
use ombak_kv::replica::{SUMMARY_RANGES_MAX, Summarize, Summary};
use ombak_ring::RingVersion;
use ombak_ring::placement::Placement;
use ombak_runtime::{Asker, RuntimeExt, Waited};
use ombak_storage::{Detail, FoldEntry, Scope};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::time::Duration;
use tracing::debug;

/// Fewer copies are compared key by key: the sums cost every primary a fold over all of its keys.
const VERSIONS_MIN: u64 = 1_000;
/// How long the primaries may take to adopt the version of the home that this node has.
const SAME_VERSION_WITHIN: Duration = Duration::from_secs(3);
/// The time between two questions for sums.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// Number of entries that are removed between two looks at the placement.
const ENTRIES_AT_ONCE: usize = 1_000;

impl Work {
    /// Drops the foreign copies of a partition that all primaries have, as far as sums show it.
    pub(crate) async fn hand_back_ranges(&self, host: &Host, placement: &Placement, partition: u32) {
        for n in host.buckets().snapshot().all_n_vals() {
            let class = ClassId { partition, n };
            if host.transfers().foreign.is_foreign(class)
                && let Err(why) = self.hand_back_equal_ranges(host, placement, class).await
            {
                debug!(partition, n, %why, "copies are handed back key by key");
            }
        }
    }

    async fn hand_back_equal_ranges(&self, host: &Host, placement: &Placement, class: ClassId) -> Result<(), Error> {
        let home = placement.home(class.partition);
        let primaries = home.primaries(class.n);
        if primaries.is_empty() || !primaries.iter().all(|node| host.peers().is_up(*node)) {
            return Ok(());
        }
        let summarize = Summarize { class, ranges: SUMMARY_RANGES_MAX, synced: true };
        let there = host.clone();
        let sum_up = move |waited: &Waited<'_>| {
            // A version with a larger seq may be in the sums. It does not count as proved.
            let cut_seq = there.partitions().find(class.partition)?.store().last_seq();
            Ok::<_, Error>((cut_seq, compare::summarize(&*there, &summarize, waited)?))
        };
        let (cut_seq, own) = host.transfers().walk(Asker::default(), sum_up).await?;
        if own.ranges.iter().map(|range| range.versions).sum::<u64>() < VERSIONS_MIN {
            return Ok(());
        }
        let theirs = self.sums_of(host, &primaries, summarize, own.home_version).await?;
        if own.home_version != home.version() || theirs.iter().any(|theirs| theirs.home_version != own.home_version) {
            let why = "a primary knows another version of the home partition";
            return Err(StoreFailure::new(StoreFailureKind::Busy, why).into());
        }
        let agree = |range: &u32| {
            let at = *range as usize;
            own.ranges[at].versions > 0 && theirs.iter().all(|theirs| theirs.ranges.get(at) == Some(&own.ranges[at]))
        };
        let proved: Vec<u32> = (0..summarize.ranges).filter(agree).collect();
        if proved.is_empty() {
            return Ok(());
        }
        let (there, ranges, version) = (host.clone(), Ranges::of(summarize.ranges, &proved), home.version());
        host.transfers().walk(Asker::default(), move |_| drop_ranges(&there, class, &ranges, cut_seq, version)).await
    }

    /// The sums of other nodes. Nodes adopt the end of a change one after the other, so it waits a
    /// moment until all have the same version of the home.
    async fn sums_of(
        &self,
        host: &Host,
        nodes: &[NodeId],
        summarize: Summarize,
        home_version: RingVersion,
    ) -> Result<Vec<Summary>, Error> {
        let until = self.runtime.now() + SAME_VERSION_WITHIN;
        loop {
            let asked = nodes.iter().map(|node| host.peers().transfer(*node).summarize(summarize));
            let sums = try_join_all(asked).await?;
            let is_behind = sums.iter().any(|sums| sums.home_version < home_version);
            if !is_behind || self.runtime.now() >= until {
                return Ok(sums);
            }
            self.runtime.sleep(ASK_AGAIN).await;
        }
    }
}

/// Removes the versions of some ranges that were appended up to a seq. Blocks.
fn drop_ranges(host: &Host, class: ClassId, ranges: &Ranges, cut_seq: u64, version: RingVersion) -> Result<(), Error> {
    let partition = host.partitions().find(class.partition)?;
    let buckets = host.buckets().snapshot();
    let of_ranges = |key: &[u8]| is_of_class(&buckets, key, class.n) && ranges.include(key);
    let scope = Scope { class: Some(&of_ranges), since_seq: partition.set_aside_to(), ..Scope::KEPT };
    let mut snapshot = partition.snapshot()?;
    let (mut removed, mut stay) = (0u64, 0u64);
    loop {
        let entries = snapshot.next(&scope, Detail::Keys, ENTRIES_AT_ONCE)?;
        if entries.is_empty() {
            debug!(partition = class.partition, n = class.n, removed, stay, "copies were dropped by ranges");
            return Ok(());
        }
        let summed = entries.iter().filter(|entry: &&FoldEntry| entry.seq <= cut_seq);
        let summed: Vec<_> = summed.map(|entry| Some((entry.key.clone(), entry.digest, true))).collect();
        let removals = remove_proven(host, class, version, &summed)?;
        if removals.contains(&Removal::NoRoom) {
            // What is left is compared key by key, and proved without being removed.
            debug!(partition = class.partition, n = class.n, removed, "the disk has no room to remove more");
            return Ok(());
        }
        let gone = removals.iter().filter(|removal| **removal == Removal::Gone).count() as u64;
        removed += gone;
        stay += removals.len() as u64 - gone;
    }
}
