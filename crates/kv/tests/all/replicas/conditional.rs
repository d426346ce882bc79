//! Conditional puts over several nodes (docs/design/replication.md §17).

use crate::replicas::cluster::{Cluster, bucket, count};
use bytes::Bytes;
use ombak_kv::replica::{ForwardedPut, PutFailure, ReplicaClient};
use ombak_kv::{PutCondition, PutOptions, PutRequest, WithoutMajority};
use ombak_types::{Bucket, Error, Object, PropMap, Sibling, VectorClock};
use std::sync::atomic::Ordering;

fn absent() -> PutOptions {
    PutOptions { condition: PutCondition::IfNoneMatch, ..PutOptions::default() }
}

#[tokio::test]
async fn of_two_puts_of_an_absent_key_at_most_one_is_acknowledged() {
    let cluster = Cluster::of(3);
    for round in 0..200 {
        let key = format!("k{round}");
        let (a, b, c) = tokio::join!(
            cluster.put(0, &key, "a", absent()),
            cluster.put(1, &key, "b", absent()),
            cluster.put(2, &key, "c", absent())
        );
        let acknowledged = [&a, &b, &c].into_iter().filter(|said| said.is_ok()).count();
        assert!(acknowledged <= 1, "{a:?} {b:?} {c:?}");
        for said in [a, b, c] {
            assert!(matches!(said, Ok(()) | Err(Error::MatchFound)), "{said:?}");
        }
        assert!(!cluster.values(0, &key).await.is_empty() || acknowledged == 0);
    }
}

#[tokio::test]
async fn a_stale_primary_does_not_let_a_second_put_pass() {
    let cluster = Cluster::of(3);
    cluster.set_cut(2, true);
    cluster.put(0, "k", "v", absent()).await.unwrap();
    cluster.set_cut(2, false);
    assert_eq!(cluster.stored(2, "k"), None, "it missed the write");
    assert_eq!(cluster.put(2, "k", "w", absent()).await, Err(Error::MatchFound));
    assert_eq!(cluster.values(1, "k").await, ["v"]);
}

#[tokio::test]
async fn without_a_majority_configuration_decides() {
    for (without, then) in [
        (WithoutMajority::Refuse, Err(Error::QuorumUnsatisfied { option: "pw", need: 2, got: 1 })),
        (WithoutMajority::ApiOnly, Ok(())),
    ] {
        let cluster = Cluster::configured(3, |config| config.without_majority = without);
        cluster.set_down(1, true);
        cluster.set_down(2, true);
        assert_eq!(cluster.put(0, "k", "v", absent()).await, then, "{without:?}");
        if then.is_ok() {
            assert_eq!(cluster.put(0, "k", "v", absent()).await, Err(Error::MatchFound));
        }
    }
}

#[tokio::test]
async fn a_conditional_put_replaces_the_tombstones_that_it_has_read() {
    let cluster = Cluster::of(3);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.delete(0, "k").await;
    // The node that coordinates lacks the tombstone's clock in the request, but has read it.
    cluster.put(1, "k", "w", absent()).await.unwrap();
    cluster.wait_until_equal(&[0, 1, 2], "k").await;
    assert_eq!(cluster.values(2, "k").await, ["w"]);
}

/// A put that one node coordinates, whichever is the first.
async fn coordinate(
    cluster: &Cluster,
    node: usize,
    (bucket, key): (&Bucket, &str),
    value: &'static str,
) -> Result<(), PutFailure> {
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value)] };
    let key = Some(Bytes::copy_from_slice(key.as_bytes()));
    let request = PutRequest { bucket: bucket.clone(), key, object, options: absent() };
    let number = cluster.next_put_number();
    let put = ForwardedPut { number, request, begin_by: None, deadline: None };
    cluster.nodes[node].local_replica().coordinate(put).await.map(drop)
}

/// Several coordinators compete, messages take different times, and no siblings are allowed.
/// Whatever the losers have left behind, the value that was acknowledged is the one that is read.
#[tokio::test]
async fn a_put_that_failed_does_not_hide_the_one_that_was_acknowledged() {
    let cluster = Cluster::configured(3, |config| {
        config.default_props.insert("allow_mult".into(), false.into());
    });
    let mut acknowledged = 0;
    for round in 0..300 {
        cluster.delay_messages(round * 7 + 1);
        let (bucket, key) = (bucket(), format!("k{round}"));
        let at = (&bucket, &key[..]);
        let (a, b, c) = tokio::join!(
            coordinate(&cluster, 0, at, "a"),
            coordinate(&cluster, 1, at, "b"),
            coordinate(&cluster, 2, at, "c")
        );
        let values: Vec<_> = [(a, "a"), (b, "b"), (c, "c")].into_iter().filter(|(said, _)| said.is_ok()).collect();
        assert!(values.len() <= 1, "{values:?}");
        let Some((_, value)) = values.first() else { continue };
        acknowledged += 1;
        // All copies meet.
        for through in 0..3 {
            assert_eq!(cluster.get_all(through, &key).await, [*value], "round {round}");
        }
    }
    assert!(acknowledged > 100, "{acknowledged}");
}

/// Without a clock, copies cannot tell which put has seen the other.
#[tokio::test]
async fn buckets_that_are_written_once_keep_the_promise_too() {
    let cluster = Cluster::of(3);
    for node in &cluster.nodes {
        let props: PropMap = [("write_once".to_owned(), true.into())].into_iter().collect();
        node.buckets().create_type(b"once", &props).unwrap();
        node.buckets().activate_type(b"once").unwrap();
    }
    let bucket = Bucket::typed("once", "b");
    let mut acknowledged = 0;
    for round in 0..100 {
        cluster.delay_messages(round * 7 + 1);
        let key = format!("k{round}");
        let at = (&bucket, &key[..]);
        let (a, b) = tokio::join!(coordinate(&cluster, 0, at, "a"), coordinate(&cluster, 1, at, "b"));
        assert!(a.is_err() || b.is_err(), "{a:?} {b:?}");
        if a.is_ok() || b.is_ok() {
            acknowledged += 1;
            let again = coordinate(&cluster, 2, at, "later").await;
            assert_eq!(again, Err(PutFailure::Refused(Error::MatchFound)));
        }
    }
    assert!(acknowledged > 30, "{acknowledged}");
}

#[tokio::test]
async fn a_copy_that_cannot_be_read_is_no_part_of_a_majority() {
    let cluster = Cluster::of(3);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let condition = |clock| PutOptions { condition: PutCondition::IfNotModified(clock), ..PutOptions::default() };
    let clock = cluster.clock(0, "k").await;
    cluster.faults[1].reads_fail.store(true, Ordering::SeqCst);
    cluster.put(0, "k", "w", condition(clock)).await.unwrap();
    let clock = cluster.clock(0, "k").await;
    cluster.set_cut(2, true);
    let refused = cluster.put(0, "k", "x", condition(clock.clone())).await;
    assert!(matches!(refused, Err(Error::QuorumUnsatisfied { option: "pw", need: 2, .. })), "{refused:?}");
    cluster.set_cut(2, false);
    cluster.put(0, "k", "x", condition(clock)).await.unwrap();
}

/// The value and a later tombstone of another replica are concurrent. The tombstone hides the value
/// from readers (docs/design/replication.md §6), so the condition sees an absent key.
#[tokio::test]
async fn a_condition_sees_no_value_that_a_later_tombstone_hides() {
    let cluster = Cluster::configured(3, |config| {
        config.delete_mode = ombak_kv::DeleteMode::Keep;
        config.default_props.insert("allow_mult".into(), false.into());
    });
    cluster.set_cut(2, true);
    cluster.put(0, "k", "v", PutOptions { w: count(2), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(2, false);
    // Node 2 lacks the value, and writes a tombstone that has not seen it.
    let tombstone = Object { clock: VectorClock::new(), siblings: vec![Sibling::tombstone()] };
    for other in [0, 1] {
        cluster.set_cut(other, true);
    }
    let one = PutOptions { w: count(1), dw: count(1), ..PutOptions::default() };
    cluster.put_object(2, "k", tombstone, one).await.unwrap();
    cluster.set_cut(0, false);
    cluster.put(0, "k", "w", absent()).await.unwrap();
    cluster.set_cut(1, false);
    assert_eq!(cluster.values(0, "k").await, ["w"]);
    assert_eq!(cluster.put(1, "k", "x", absent()).await, Err(Error::MatchFound));
}
