//! Histories of conditional puts (docs/design/replication.md §17).

use super::world::{Faults, Shown, World, bucket, key};
use ombak_kv::{BrokenRule, PutCondition, PutOptions, PutRequest, break_rule};
use ombak_types::{Object, Sibling, VectorClock};
use std::time::Duration;

/// Runs puts with the same precondition through several nodes at once, again and again, while links
/// break and nodes do not agree on which of them are up. Returns how many were acknowledged at most
/// of those with one precondition, and how many in all.
fn run_conditional(seed: u64, rule: Option<BrokenRule>) -> (usize, usize) {
    break_rule(rule);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let ended = tokio.block_on(async {
        let mut world = World::new(seed, Faults::Network, Shown::Siblings);
        let (mut most, mut all) = (0, 0);
        for round in 0..6 {
            for _ in 0..world.network.random.below(4) {
                world.fault();
            }
            let condition = match world.keys[0].contexts.last() {
                Some((clock, _)) if round > 0 => PutCondition::IfNotModified(clock.clone()),
                _ => PutCondition::IfNoneMatch,
            };
            let puts: Vec<_> = (0..4)
                .map(|number| {
                    let (node, condition) = (world.any_node().clone(), condition.clone());
                    let begins = Duration::from_millis(world.network.random.below(400) as u64);
                    let value = (round * 4 + number).to_string();
                    tokio::spawn(async move {
                        tokio::time::sleep(begins).await;
                        let options = PutOptions { condition, ..PutOptions::default() };
                        let clock = match &options.condition {
                            PutCondition::IfNotModified(clock) => clock.clone(),
                            _ => VectorClock::new(),
                        };
                        let object = Object { clock, siblings: vec![Sibling::new(value)] };
                        node.put(PutRequest { bucket: bucket(), key: Some(key(0)), object, options }).await.is_ok()
                    })
                })
                .collect();
            let mut acknowledged = 0;
            for put in puts {
                acknowledged += usize::from(put.await.unwrap());
            }
            most = most.max(acknowledged);
            all += acknowledged;
            world.keys[0].contexts.clear();
            world.read(0, 2).await;
        }
        world.end();
        (most, all)
    });
    break_rule(None);
    ended
}

/// The promise of docs/design/replication.md §17.
#[test]
fn of_puts_with_the_same_precondition_at_most_one_is_acknowledged() {
    let mut all = 0;
    for seed in 1..=150 {
        let (most, acknowledged) = run_conditional(seed, None);
        assert!(most <= 1, "seed {seed}: {most} puts with the same precondition were acknowledged");
        all += acknowledged;
    }
    assert!(all > 150, "only {all} puts were acknowledged");
}

#[test]
fn it_is_found_that_primaries_do_not_check_the_expected_clock() {
    let found = (1..=150).any(|seed| run_conditional(seed, Some(BrokenRule::PrimariesCheckConditions)).0 > 1);
    assert!(found, "the check can be left out, and nobody notices");
}
