//! All consumers of a node.

use super::cursor_file::CursorFile;
use super::follower::Follower;
use crate::config::KvConfig;
use crate::hooks::ChangeConsumer;
use crate::partition::{Partition, PartitionTable};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// All consumers of a node; see the module of the feed.
pub(crate) struct Feeds {
    followers: Vec<Follower>,
}

impl Feeds {
    /// The consumers that attach to a node, at their saved places; none if there are none. Asks the
    /// stores that are open to keep what the consumers need. Call this before the stores are
    /// maintained.
    pub(crate) fn open(config: &KvConfig, partitions: &PartitionTable) -> Option<Self> {
        let consumers = &config.hooks.consumers;
        if consumers.is_empty() {
            return None;
        }
        let follower = |consumer: &Arc<dyn ChangeConsumer>| {
            let cursors = CursorFile::open(config.fs.clone(), &config.data_dir, consumer.name());
            Follower::new(consumer.clone(), cursors)
        };
        let feeds = Self { followers: consumers.iter().map(follower).collect() };
        partitions.all_open().for_each(|partition| feeds.keep_removals(&partition));
        Some(feeds)
    }

    /// Lets each consumer go on in each partition, until `stops` is set.
    pub(crate) fn round(&mut self, partitions: &PartitionTable, stops: &AtomicBool) {
        let open: BTreeSet<u32> = partitions.all_open().map(|partition| partition.number()).collect();
        self.followers.iter_mut().for_each(|follower| follower.keep_open(|number| open.contains(&number)));
        for partition in partitions.all_open().take_while(|_| !stops.load(Ordering::Relaxed)) {
            // It may have been opened since the last round.
            self.keep_removals(&partition);
            self.followers.iter_mut().for_each(|follower| follower.follow(&partition));
        }
        for follower in &mut self.followers {
            if let Err(error) = follower.save() {
                warn!(%error, "consumers of changes may get some again after a restart");
            }
        }
    }

    /// Asks a store to keep the removals that some consumer needs. Called while no place is unsaved
    /// that was passed in an earlier round.
    fn keep_removals(&self, partition: &Partition) {
        let (number, store) = (partition.number(), partition.store());
        let (first_seq, last_seq) = (store.first_seq(), store.last_seq());
        let needs_after = |follower: &Follower| follower.needs_after(number, first_seq, last_seq);
        let Some(after) = self.followers.iter().map(needs_after).min() else { return };
        if let Err(error) = store.retain_removals(Some(after)) {
            warn!(partition = number, %error, "a store does not keep what consumers of changes need");
        }
    }
}
