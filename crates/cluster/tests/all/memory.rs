//! Many large values between nodes at once take a bounded amount of memory.

use crate::support::{Cluster, soon, until, with_w};
use futures_util::future::join_all;
use ombak_kv::{GetOptions, GetReply, PutOptions};
use ombak_types::Error;

const VALUE_BYTES: usize = 3 << 20;
/// Room for five values at a time.
const BYTES_MAX: u64 = 17 << 20;
const KEYS: usize = 4;

fn small_cluster(count: usize) -> Cluster {
    Cluster::configured(count, |parts| parts.kv.replica_memory_bytes = BYTES_MAX)
}

fn value(key: usize) -> String {
    char::from(b'a' + key as u8).to_string().repeat(VALUE_BYTES)
}

/// Checks that no node held more than it may, that one had to refuse, and that all is given back.
async fn check(cluster: &Cluster) {
    let statuses = || cluster.nodes.iter().map(|test| test.node.kv().replica_memory());
    for status in statuses() {
        assert!(status.bytes_used_most <= BYTES_MAX, "{status:?}");
    }
    assert!(statuses().any(|status| status.refused_total > 0), "{:?}", statuses().collect::<Vec<_>>());
    until("all memory is given back", || statuses().all(|status| status.bytes_used == 0)).await;
}

#[tokio::test]
async fn reads_of_large_values_are_refused_beyond_a_bound() {
    let cluster = small_cluster(4);
    for key in 0..KEYS {
        soon(cluster.put(0, &format!("k{key}"), &value(key), with_w(3))).await.unwrap();
    }
    let reads = (0..60).map(|number| {
        let cluster = &cluster;
        async move {
            let key = number % KEYS;
            (key, cluster.get(number % 2, &format!("k{key}"), GetOptions::default()).await)
        }
    });
    // The answers live until all are there.
    let answers = soon(join_all(reads)).await;
    let found = answers.iter().filter(|(key, answer)| match answer {
        Ok(GetReply::Found(object)) => {
            assert_eq!(object.siblings[0].value, value(*key));
            true
        }
        Ok(GetReply::NotFound { .. }) => panic!("a value was not found"),
        Err(error) => {
            assert_eq!(*error, Error::Overload);
            false
        }
    });
    assert!(found.count() > 0);
    drop(answers);
    check(&cluster).await;
    for key in 0..KEYS {
        assert!(soon(cluster.get(3, &format!("k{key}"), GetOptions::default())).await.is_ok());
    }
    cluster.stop().await;
}

/// Bytes that nobody counts would keep to every bound. So each place at which a large value arrives
/// is looked at: the node that a put is forwarded to, the replicas that store it, and the node that
/// reads it from others.
#[tokio::test]
async fn what_arrives_is_counted_wherever_it_arrives() {
    let cluster = small_cluster(4);
    // A small value, which is not counted, shows where the key belongs.
    soon(cluster.put(0, "k", "v", with_w(3))).await.unwrap();
    let primaries = cluster.holders("k");
    let outside = (0..4).find(|node| !primaries.contains(node)).unwrap();
    let status = |node: usize| cluster.node(node).kv().replica_memory();
    let most = || (0..4).map(|node| status(node).bytes_used_most >= VALUE_BYTES as u64).collect::<Vec<_>>();
    assert_eq!((primaries.len(), most()), (3, vec![false; 4]));

    soon(cluster.put(outside, "k", &value(0), with_w(3))).await.unwrap();
    let expected: Vec<bool> = (0..4).map(|node| node != outside).collect();
    assert_eq!(most(), expected, "node {outside} forwarded the put");
    until("all memory is given back", || (0..4).all(|node| status(node).bytes_used == 0)).await;

    let answer = soon(cluster.get(outside, "k", GetOptions::default())).await.unwrap();
    assert!(matches!(&answer, GetReply::Found(object) if object.siblings[0].value == value(0)));
    assert!(status(outside).bytes_used >= VALUE_BYTES as u64, "the value lives, and takes {:?}", status(outside));
    drop(answer);
    until("all memory is given back", || (0..4).all(|node| status(node).bytes_used == 0)).await;
    cluster.stop().await;
}

#[tokio::test]
async fn forwarded_puts_of_large_values_are_refused_beyond_a_bound() {
    let cluster = small_cluster(4);
    let puts = (0..48).map(|number| {
        let cluster = &cluster;
        async move { cluster.put(number % 4, &format!("k{number}"), &value(number % KEYS), PutOptions::default()).await }
    });
    let done = soon(join_all(puts)).await;
    assert!(done.iter().any(Result::is_ok));
    for error in done.into_iter().filter_map(Result::err) {
        assert_eq!(error, Error::Overload);
    }
    check(&cluster).await;
    soon(cluster.put(0, "k", &value(0), PutOptions::default())).await.unwrap();
    cluster.stop().await;
}
