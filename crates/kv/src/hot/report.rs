//! What is hot, as it is shown.

use super::name::Name;
use super::shard::Shard;
use super::sketch::{Heavy, Sketch};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A key, and the requests for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    /// The key.
    pub name: Name,
    /// The estimated number of requests in the time of the report.
    pub requests: u64,
    /// By how much the number can be too large because other keys shared its entry. What the choice
    /// of samples adds comes on top, in both directions.
    pub error: u64,
}

/// A bucket, and the requests for its keys.
pub type HotBucket = HotKey;

/// An object that was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeObject {
    /// Its key.
    pub name: Name,
    /// The bytes of its values.
    pub bytes: u64,
}

/// The hottest keys and buckets of the last half to whole minute, the most requests first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotReport {
    /// The time that the report covers.
    pub covers: Duration,
    /// The keys.
    pub keys: Vec<HotKey>,
    /// The buckets.
    pub buckets: Vec<HotBucket>,
    /// The largest objects, the largest first.
    pub largest: Vec<LargeObject>,
}

/// Gathers shards, one after the other.
#[derive(Default)]
pub(super) struct Gathering {
    covers: Duration,
    keys: HashMap<u64, HotKey>,
    buckets: HashMap<u64, HotKey>,
    largest: HashMap<u64, LargeObject>,
}

impl Gathering {
    pub(super) fn add(&mut self, shard: &Shard, now: Instant) {
        self.covers = self.covers.max(shard.covers(now));
        for window in shard.windows() {
            add_sketch(&mut self.keys, &window.keys);
            add_sketch(&mut self.buckets, &window.buckets);
            for (id, bytes, name) in window.largest.entries() {
                let known = self.largest.entry(id).or_insert_with(|| LargeObject { name: name.clone(), bytes });
                known.bytes = known.bytes.max(bytes);
            }
        }
    }

    /// The first `count_max` of each list.
    pub(super) fn report(self, count_max: usize) -> HotReport {
        let mut largest: Vec<LargeObject> = self.largest.into_values().collect();
        largest.sort_by(|a, b| (Reverse(a.bytes), &a.name.key).cmp(&(Reverse(b.bytes), &b.name.key)));
        largest.truncate(count_max);
        HotReport {
            covers: self.covers,
            keys: hottest(self.keys, count_max),
            buckets: hottest(self.buckets, count_max),
            largest,
        }
    }
}

/// Adds the entries of a sketch. A name without an entry in one of several sketches may have been
/// in it nevertheless, but it weighs less there than its entries elsewhere.
fn add_sketch(known: &mut HashMap<u64, HotKey>, sketch: &Sketch<Name>) {
    for Heavy { id, count, error, name } in sketch.entries() {
        let entry = known.entry(id).or_insert_with(|| HotKey { name: name.clone(), requests: 0, error: 0 });
        entry.requests += count;
        entry.error += error;
    }
}

fn hottest(entries: HashMap<u64, HotKey>, count_max: usize) -> Vec<HotKey> {
    let mut entries: Vec<HotKey> = entries.into_values().collect();
    // What is certain decides, so that a rare name in an entry of others does not come first.
    let order = |entry: &HotKey| Reverse((entry.requests - entry.error, entry.requests));
    entries.sort_by(|a, b| (order(a), &a.name.key).cmp(&(order(b), &b.name.key)));
    entries.truncate(count_max);
    entries
}
