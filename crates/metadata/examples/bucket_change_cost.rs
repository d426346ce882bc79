//! Prints what a change of one bucket's properties costs among ten buckets and among 100,000.
//!
//! cargo run --release -p ombak-metadata --example bucket_change_cost

#![allow(clippy::expect_used)]

use ombak_metadata::state::{BucketName, Command, Lineage, Metadata, NewMember, RaftId};
use ombak_ring::{Ring, RingSize, RingVersion};
use ombak_types::{Bucket, NodeId, PropMap};
use std::time::{Duration, Instant};

const CHANGES: u64 = 2_000;
const ROUNDS: usize = 7;

fn founded() -> Metadata {
    let node = NodeId::new(1);
    let ring = Ring::of_one_node(node, RingSize::DEFAULT, RingVersion::first(1));
    let (name, peer_address) = ("n@h".into(), "h:1".into());
    let member = NewMember { node, name, peer_address, log: RaftId::new(1), boot: 1, milestone: None };
    let mut state = Metadata::default();
    let lineage = Lineage { id: 1, forced_from: None };
    state.apply(1, Command::Found { lineage, member, ring }).expect("the first command");
    state
}

fn put(state: &mut Metadata, index: u64, number: u64) {
    let bucket = Bucket::untyped(format!("bucket-{number}"));
    let expected = state.buckets().get(&bucket).map(|record| record.version);
    let name = BucketName { r#type: bucket.bucket_type, name: bucket.name };
    let mut overrides = PropMap::new();
    overrides.insert("n_val".into(), (index % 5 + 1).into());
    let command = Command::PutBucket { bucket: name, expected, type_expected: None, overrides: Some(overrides) };
    state.apply(index, command).expect("the version is the present one");
}

/// The time for one change. Each change is published: readers hold the state before it.
fn change_time(state: &mut Metadata, buckets: u64, index: &mut u64) -> Duration {
    let begin = Instant::now();
    for change in 0..CHANGES {
        let held_by_readers = state.clone();
        *index += 1;
        put(state, *index, change * 7919 % buckets);
        drop(held_by_readers);
    }
    begin.elapsed() / CHANGES as u32
}

fn main() {
    let mut states = [10, 100_000].map(|buckets| {
        let mut state = founded();
        for number in 0..buckets {
            put(&mut state, number + 2, number);
        }
        (buckets, state, buckets + 2, Vec::new())
    });
    for _ in 0..ROUNDS {
        for (buckets, state, index, times) in &mut states {
            times.push(change_time(state, *buckets, index));
        }
    }
    for (buckets, _, _, times) in &mut states {
        times.sort_unstable();
        println!("{buckets} buckets: {:?} for a change", times[times.len() / 2]);
    }
}
