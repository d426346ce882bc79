//! Merges of versions of one key give the same bytes in every order and grouping, and however often
//! a version comes. Otherwise replicas that got the same versions would differ for ever.

use super::replica::Replica;
use ombak_types::time::UnixMicros;
use ombak_types::{BucketProps, Object, Sibling, VectorClock, stored_object};
use proptest::prelude::*;
use proptest::sample::Index;

/// The time of all merges. Some values have expired by then.
const NOW_SECS: u64 = 20;

/// How a bucket treats concurrent values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Siblings { dvv: bool },
    Single { dvv: bool },
    LastWriteWins { dvv: bool },
    WriteOnce,
}

impl Kind {
    fn props(self) -> BucketProps {
        let props = BucketProps::default();
        match self {
            Self::Siblings { dvv } => BucketProps { allow_mult: true, dvv_enabled: dvv, ..props },
            Self::Single { dvv } => BucketProps { allow_mult: false, dvv_enabled: dvv, ..props },
            Self::LastWriteWins { dvv } => BucketProps { last_write_wins: true, dvv_enabled: dvv, ..props },
            Self::WriteOnce => BucketProps { write_once: true, allow_mult: true, dvv_enabled: true, ..props },
        }
    }
}

/// What a write stores.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    Value,
    ExpiredValue,
    ExpiringValue,
    Tombstone,
}

#[derive(Clone, Debug)]
enum Step {
    /// A client that has read one replica, or nothing, writes through another one.
    Write { through: usize, seen: Option<usize>, content: Content },
    /// One replica's copy reaches another.
    Send { from: usize, to: usize },
}

const REPLICAS: usize = 3;

fn kind() -> impl Strategy<Value = Kind> {
    let dvv = any::<bool>();
    prop_oneof![
        dvv.prop_map(|dvv| Kind::Siblings { dvv }),
        dvv.prop_map(|dvv| Kind::Single { dvv }),
        dvv.prop_map(|dvv| Kind::LastWriteWins { dvv }),
        Just(Kind::WriteOnce),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    use Content::{ExpiredValue, ExpiringValue, Tombstone, Value};
    let content =
        prop_oneof![3 => Just(Value), 1 => Just(ExpiredValue), 1 => Just(ExpiringValue), 1 => Just(Tombstone)];
    let write = (0..REPLICAS, prop::option::of(0..REPLICAS), content);
    prop_oneof![
        2 => write.prop_map(|(through, seen, content)| Step::Write { through, seen, content }),
        1 => (0..REPLICAS, 0..REPLICAS).prop_map(|(from, to)| Step::Send { from, to }),
    ]
}

fn sibling(content: Content, number: usize) -> Sibling {
    let mut sibling =
        if content == Content::Tombstone { Sibling::tombstone() } else { Sibling::new(vec![number as u8]) };
    sibling.meta.expires_secs = match content {
        Content::ExpiredValue => Some(NOW_SECS as u32 - 1),
        Content::ExpiringValue => Some(NOW_SECS as u32 + 10),
        Content::Value | Content::Tombstone => None,
    };
    sibling
}

fn replica(id: u64, kind: Kind) -> Replica {
    let mut replica = Replica::new(id);
    replica.set_props(kind.props());
    replica.set_time(NOW_SECS);
    replica
}

/// All versions that the replicas of a key ever held.
fn versions(kind: Kind, steps: &[Step]) -> Vec<Object> {
    let replicas: [Replica; REPLICAS] = std::array::from_fn(|id| replica(id as u64 + 1, kind));
    let mut versions = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let changed = match *step {
            Step::Write { through, seen, content } => {
                let seen = seen.and_then(|from| replicas[from].get()).map_or_else(VectorClock::new, |o| o.clock);
                let has_clock = replicas[through].get().is_some_and(|local| !local.clock.is_empty());
                if kind == Kind::WriteOnce && content != Content::Tombstone && !has_clock {
                    replicas[through].receive(&Object::new(sibling(content, number)));
                } else {
                    replicas[through].write(sibling(content, number), &seen);
                }
                through
            }
            Step::Send { from, to } => {
                if let Some(object) = replicas[from].get() {
                    replicas[to].receive(&object);
                }
                to
            }
        };
        versions.extend(replicas[changed].get());
    }
    versions
}

/// What a replica that gets these versions in this order then holds.
fn merged(kind: Kind, versions: &[Object]) -> Object {
    let replica = replica(9, kind);
    versions.iter().for_each(|version| replica.receive(version));
    replica.get().unwrap()
}

fn bytes(object: &Object) -> (Vec<u8>, Vec<u8>) {
    let mut head = Vec::new();
    stored_object::encode_head(object, &mut head);
    (head, object.siblings.iter().flat_map(|s| s.value.to_vec()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_order_and_grouping_gives_the_same_bytes(
        kind in kind(), steps in prop::collection::vec(step(), 2..14),
        picked in prop::collection::vec(any::<Index>(), 2..6),
        order in prop::collection::vec((any::<Index>(), any::<Index>()), 12),
    ) {
        let versions = versions(kind, &steps);
        if versions.is_empty() {
            return Ok(());
        }
        let picked: Vec<Object> = picked.iter().map(|at| versions[at.index(versions.len())].clone()).collect();
        let expected = bytes(&merged(kind, &picked));
        // Groups are merged with each other, and the results again, until one is left.
        let mut left = picked.clone();
        for (one, other) in order {
            let one = left.swap_remove(one.index(left.len()));
            let other = if left.is_empty() { one.clone() } else { left.swap_remove(other.index(left.len())) };
            left.push(merged(kind, &[one, other]));
        }
        prop_assert_eq!(left.len(), 1);
        prop_assert_eq!(bytes(&left[0]), expected.clone());
        // What is already merged changes nothing.
        let again: Vec<Object> = left.iter().chain(&picked).chain(&left).cloned().collect();
        prop_assert_eq!(bytes(&merged(kind, &again)), expected);
    }
}

/// The value that lives stays, whichever digest is smaller and whichever version comes last.
#[test]
fn an_expired_write_once_value_never_replaces_a_living_one() {
    for number in 0..20 {
        let living = Object::new(sibling(Content::Value, number));
        for content in [Content::ExpiredValue, Content::Tombstone] {
            let dead = Object::new(sibling(content, number + 100));
            for order in [[&living, &dead], [&dead, &living]] {
                let kept = merged(Kind::WriteOnce, &order.map(Clone::clone));
                assert!(!kept.is_absent(UnixMicros::from_secs(NOW_SECS)), "{number} {content:?}");
            }
        }
    }
}
