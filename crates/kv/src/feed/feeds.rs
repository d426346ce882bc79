//! All consumers of a node.

use super::cursor_file::CursorFile;
use super::follower::Follower;
use super::led::{Followed, Led, Taken};
use super::places::Places;
use crate::buckets::BucketRegistry;
use crate::config::KvConfig;
use crate::hooks::{ChangeConsumer, ConsumerSource};
use crate::partition::{Partition, PartitionTable};
use ombak_runtime::{FairPool, FairPoolConfig, PAUSE_MAX_OF_TRANSFERS, Pool, Tenant};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::warn;

/// How many consumers are led at a time. They wait for disks more than they compute.
const LED_AT_ONCE_MAX: usize = 4;
/// How many wait for a thread. Further ones wait for the next round.
const WAITING_MAX: usize = 1_024;
/// The time between two looks at which consumers and partitions there are.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// All consumers of a node; see the module of the feed.
pub(crate) struct Feeds {
    followed: Arc<Followed>,
    pool: FairPool,
    /// Those that are there as long as the node runs.
    consumers: Vec<Arc<Led>>,
    sources: Vec<Arc<dyn ConsumerSource>>,
    /// Those that the sources have at present.
    of_sources: Vec<Arc<Led>>,
    /// Whether a source does not know its consumers yet.
    awaits_sources: bool,
    /// The number of the next consumer.
    next_number: u64,
    /// When it last looked at which consumers and partitions there are.
    looked: Option<Instant>,
}

impl Feeds {
    /// The consumers that attach to a node, at their saved places; none if there are none. Asks the
    /// stores that are open to keep what the consumers need. Call this before the stores are
    /// maintained.
    ///
    /// # Errors
    /// Those of the system, if no thread can be started.
    pub(crate) fn open(
        config: &KvConfig,
        (partitions, buckets): (&Arc<PartitionTable>, &Arc<BucketRegistry>),
        stops: &Arc<AtomicBool>,
    ) -> io::Result<Option<Self>> {
        if !config.hooks.follows_changes() {
            return Ok(None);
        }
        let led = |(number, consumer): (usize, &Arc<dyn ChangeConsumer>)| {
            let in_file = || CursorFile::open(config.fs.clone(), &config.data_dir, consumer.name());
            let places = consumer.kept_places().map_or_else(|| Places::File(in_file()), Places::Consumer);
            Arc::new(Led::new(number as u64, consumer.clone(), Follower::new(consumer.clone(), places)))
        };
        let pool_config = FairPoolConfig {
            name: "ombak-feed",
            threads: LED_AT_ONCE_MAX,
            jobs_max: WAITING_MAX,
            comes_behind: false,
            pause_max: PAUSE_MAX_OF_TRANSFERS,
            times: None,
        };
        let mut feeds = Self {
            followed: Arc::new(Followed {
                runtime: config.runtime.clone(),
                partitions: partitions.clone(),
                buckets: buckets.clone(),
                kinds: config.hooks.kinds.clone(),
                stops: stops.clone(),
            }),
            pool: FairPool::start(&config.runtime, pool_config)?,
            consumers: config.hooks.consumers.iter().enumerate().map(led).collect(),
            next_number: config.hooks.consumers.len() as u64,
            sources: config.hooks.consumer_sources.clone(),
            of_sources: Vec::new(),
            awaits_sources: false,
            looked: None,
        };
        feeds.take_consumers();
        feeds.keep_removals();
        Ok(Some(feeds))
    }

    /// The threads that lead consumers. Whoever stops the rounds stops them, too.
    pub(crate) const fn pool(&self) -> &FairPool {
        &self.pool
    }

    /// Has each consumer led that no thread leads and whose last turn began some time ago.
    pub(crate) fn round(&mut self) {
        let now = self.followed.runtime.now();
        if self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_INTERVAL) {
            self.looked = Some(now);
            self.take_consumers();
            // Partitions may have been opened meanwhile.
            self.keep_removals();
        }
        if self.followed.stops.load(Ordering::Relaxed) {
            return;
        }
        for led in self.consumers.iter().chain(&self.of_sources) {
            if let Some(taken) = led.take(now) {
                let pool = self.pool.of(Tenant { group: led.number, member: 0 });
                lead(&self.followed, &pool, taken);
            }
        }
    }

    /// Takes the consumers that the sources have now. Those of before go on.
    fn take_consumers(&mut self) {
        let open: BTreeSet<u32> = self.followed.partitions.all_open().map(|partition| partition.number()).collect();
        let consumers = |source: &Arc<dyn ConsumerSource>| source.consumers(&self.followed.buckets, &open);
        let known: Option<Vec<_>> = self.sources.iter().map(consumers).collect();
        self.awaits_sources = known.is_none();
        let Some(consumers) = known else { return };
        let mut before = std::mem::take(&mut self.of_sources);
        for consumer in consumers.into_iter().flatten() {
            let known = before.iter().position(|led| led.is_of(&consumer));
            self.of_sources.push(match known {
                Some(at) => before.swap_remove(at),
                None => {
                    let places = Places::Consumer(consumer.kept_places().unwrap_or_default());
                    let number = self.next_number;
                    self.next_number += 1;
                    Arc::new(Led::new(number, consumer.clone(), Follower::new(consumer, places)))
                }
            });
        }
        before.iter().for_each(|led| led.drop_it());
    }

    fn keep_removals(&self) {
        self.followed.partitions.all_open().for_each(|partition| self.keep_removals_of(&partition));
    }

    /// Asks a store to keep the removals that some consumer needs. Only places that were kept
    /// count, because a restart goes on from these. A consumer that keeps its places itself, and
    /// had nothing else to write, may write them a little later: then a restart in between can have
    /// it begin anew.
    fn keep_removals_of(&self, partition: &Partition) {
        let (number, store) = (partition.number(), partition.store());
        let (first_seq, last_seq) = (store.first_seq(), store.last_seq());
        let needs_after = |led: &Arc<Led>| led.needs_after(number, first_seq, last_seq);
        let after = self.consumers.iter().chain(&self.of_sources).map(needs_after).min();
        let after = if self.awaits_sources { Some(0) } else { after };
        if let Err(error) = store.retain_removals(after) {
            warn!(partition = number, %error, "a store does not keep what consumers of changes need");
        }
    }
}

/// Has a consumer led for a turn, and for a further one behind the others as long as there is more
/// to tell. If there is no room, it waits for the next round.
fn lead(followed: &Arc<Followed>, pool: &Pool, taken: Taken) {
    let (followed, again) = (Arc::clone(followed), pool.clone());
    let turn = move || {
        if taken.turn(&followed) {
            lead(&followed, &again, taken);
        }
    };
    // What is refused is dropped, and with it the consumer is free again.
    let _ = pool.submit(turn);
}
