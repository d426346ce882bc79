//! Scenarios of conditional puts.

use super::{read, with_r, with_w, write};
use crate::replicas::cluster::Cluster;
use crate::replicas::work::Work;
use ombak_kv::{DeleteRequest, GetOptions, GetReply, PutCondition, PutOptions};
use ombak_types::{Error, VectorClock};

fn if_absent() -> PutOptions {
    PutOptions { condition: PutCondition::IfNoneMatch, ..PutOptions::default() }
}

fn if_seen(clock: &VectorClock) -> PutOptions {
    PutOptions { condition: PutCondition::IfNotModified(clock.clone()), ..PutOptions::default() }
}

/// The steps of each client of Riak's test, through another node each time: put, get, delete with
/// the clock, not found, reaped, put afresh; then each condition with a stale clock, with the
/// current one, with siblings, and on a key that is absent.
#[tokio::test]
async fn verify_conditionalput_api() {
    let cluster = Cluster::of(3);
    cluster.start_reaping();
    let none = VectorClock::new();
    let first = write(&cluster, 0, "k", "1", &none, with_w(3)).await.unwrap();
    assert_eq!(read(&cluster, 1, "k", with_r(2)).await, (first.clone(), vec!["1".to_owned()]));
    let request = DeleteRequest {
        bucket: crate::replicas::cluster::bucket(),
        key: "k".into(),
        clock: Some(first),
        get: GetOptions::default(),
        put: with_w(3),
        rw: None,
    };
    assert!(cluster.nodes[2].delete(request).await.unwrap().found);
    assert!(matches!(cluster.get(0, "k", with_r(2)).await, Ok(GetReply::NotFound { .. })));
    cluster.wait_until("the tombstone is reaped", || cluster.holders("k").is_empty()).await;
    let fresh = write(&cluster, 1, "k", "2", &none, with_w(3)).await.unwrap();

    assert_eq!(write(&cluster, 2, "k", "x", &none, if_absent()).await, Err(Error::MatchFound));
    let current = write(&cluster, 0, "k", "3", &fresh, with_w(3)).await.unwrap();
    write(&cluster, 1, "other", "1", &none, if_absent()).await.unwrap();
    assert_eq!(write(&cluster, 2, "k", "x", &fresh, if_seen(&fresh)).await, Err(Error::Modified));
    let current = write(&cluster, 0, "k", "4", &current, if_seen(&current)).await.unwrap();
    assert_eq!(read(&cluster, 1, "k", with_r(3)).await.1, ["4"]);

    // A second writer makes siblings.
    write(&cluster, 2, "k", "5", &none, with_w(3)).await.unwrap();
    assert_eq!(write(&cluster, 0, "k", "x", &current, if_seen(&current)).await, Err(Error::Modified));
    let (merged, values) = read(&cluster, 1, "k", with_r(3)).await;
    assert_eq!(values, ["4", "5"]);
    write(&cluster, 2, "k", "6", &merged, if_seen(&merged)).await.unwrap();
    assert_eq!(read(&cluster, 0, "k", with_r(3)).await.1, ["6"]);
    assert_eq!(write(&cluster, 1, "missing", "x", &merged, if_seen(&merged)).await, Err(Error::NotFound));
    assert_eq!(cluster.holders("missing"), [] as [usize; 0]);
}
