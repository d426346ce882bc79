//! All consumers of a node.

use super::cursor_file::CursorFile;
use super::follower::Follower;
use super::places::Places;
use super::store_of_partition::StoreOfPartition;
use crate::buckets::BucketRegistry;
use crate::config::KvConfig;
use crate::hooks::{ChangeConsumer, ConsumerSource, ValueKind};
use crate::partition::{Partition, PartitionTable};
use ombak_runtime::Runtime;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// All consumers of a node; see the module of the feed.
pub(crate) struct Feeds {
    runtime: Arc<dyn Runtime>,
    buckets: Arc<BucketRegistry>,
    kinds: Vec<Arc<dyn ValueKind>>,
    /// Those that are there as long as the node runs.
    followers: Vec<Follower>,
    sources: Vec<Arc<dyn ConsumerSource>>,
    /// Those that the sources have at present.
    of_sources: Vec<Follower>,
    /// Whether a source does not know its consumers yet.
    awaits_sources: bool,
}

impl Feeds {
    /// The consumers that attach to a node, at their saved places; none if there are none. Asks the
    /// stores that are open to keep what the consumers need. Call this before the stores are
    /// maintained.
    pub(crate) fn open(config: &KvConfig, partitions: &PartitionTable, buckets: &Arc<BucketRegistry>) -> Option<Self> {
        if !config.hooks.follows_changes() {
            return None;
        }
        let follower = |consumer: &Arc<dyn ChangeConsumer>| {
            let in_file = || CursorFile::open(config.fs.clone(), &config.data_dir, consumer.name());
            let places = consumer.kept_places().map_or_else(|| Places::File(in_file()), Places::Consumer);
            Follower::new(consumer.clone(), places)
        };
        let mut feeds = Self {
            runtime: config.runtime.clone(),
            buckets: buckets.clone(),
            kinds: config.hooks.kinds.clone(),
            followers: config.hooks.consumers.iter().map(follower).collect(),
            sources: config.hooks.consumer_sources.clone(),
            of_sources: Vec::new(),
            awaits_sources: false,
        };
        feeds.take_consumers(&numbers(partitions));
        partitions.all_open().for_each(|partition| feeds.keep_removals(&partition));
        Some(feeds)
    }

    /// Lets each consumer go on in each partition, until `stops` is set.
    pub(crate) fn round(&mut self, partitions: &PartitionTable, stops: &AtomicBool) {
        let open = numbers(partitions);
        self.take_consumers(&open);
        self.all().for_each(|follower| follower.keep_open(|number| open.contains(&number)));
        for partition in partitions.all_open().take_while(|_| !stops.load(Ordering::Relaxed)) {
            // It may have been opened since the last round.
            self.keep_removals(&partition);
            let (buckets, kinds) = (self.buckets.clone(), self.kinds.clone());
            let (now, wall_clock) = (self.runtime.now(), self.runtime.wall_clock());
            let store = StoreOfPartition::new(&partition, &buckets, &kinds, wall_clock);
            self.all().for_each(|follower| follower.follow((&partition, &store), now));
        }
        for follower in self.all() {
            if let Err(error) = follower.keep() {
                warn!(%error, "a consumer of changes may get some again");
            }
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Follower> {
        self.followers.iter_mut().chain(&mut self.of_sources)
    }

    /// Takes the consumers that the sources have now. Those of before go on.
    fn take_consumers(&mut self, open: &BTreeSet<u32>) {
        let known: Option<Vec<_>> = self.sources.iter().map(|source| source.consumers(&self.buckets, open)).collect();
        self.awaits_sources = known.is_none();
        let Some(consumers) = known else { return };
        let mut before = std::mem::take(&mut self.of_sources);
        for consumer in consumers.into_iter().flatten() {
            let known = before.iter().position(|follower| follower.is_of(&consumer));
            self.of_sources.push(match known {
                Some(at) => before.swap_remove(at),
                None => {
                    let places = consumer.kept_places().unwrap_or_default();
                    Follower::new(consumer, Places::Consumer(places))
                }
            });
        }
    }

    /// Asks a store to keep the removals that some consumer needs. Called while no place is unsaved
    /// that was passed in an earlier round.
    fn keep_removals(&self, partition: &Partition) {
        let (number, store) = (partition.number(), partition.store());
        let (first_seq, last_seq) = (store.first_seq(), store.last_seq());
        let needs_after = |follower: &Follower| follower.needs_after(number, first_seq, last_seq);
        let after = self.followers.iter().chain(&self.of_sources).map(needs_after).min();
        let after = if self.awaits_sources { Some(0) } else { after };
        if let Err(error) = store.retain_removals(after) {
            warn!(partition = number, %error, "a store does not keep what consumers of changes need");
        }
    }
}

fn numbers(partitions: &PartitionTable) -> BTreeSet<u32> {
    partitions.all_open().map(|partition| partition.number()).collect()
}
