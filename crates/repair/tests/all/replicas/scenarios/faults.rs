//! Scenarios of nodes that fail, lag or refuse.

use super::{object, owners, read, with_r, with_w, write};
use crate::replicas::cluster::{Cluster, bucket, count};
use crate::replicas::work::Work;
use ombak_kv::{GetOptions, GetReply, KvConfig, ObjectLimits, PutOptions, PutRequest};
use ombak_types::{Bucket, Error, VectorClock};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The puts of a node do not end. Requests beyond its bound are refused with `overload`, for every
/// kind of bucket. When the puts go on, it takes requests again.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn overload() {
    const REQUESTS_MAX: usize = 3;
    let cluster =
        Cluster::configured(3, |config: &mut KvConfig| (config.requests_max, config.io_threads) = (REQUESTS_MAX, 4));
    cluster.create_type("single", json!({"n_val": 1}).as_object().unwrap());
    cluster.create_type("once", json!({"write_once": true}).as_object().unwrap());
    cluster.create_type("plain", json!({"allow_mult": true}).as_object().unwrap());
    write(&cluster, 0, "k", "v", &VectorClock::new(), with_w(3)).await.unwrap();
    for kind in ["single", "once", "plain"] {
        let bucket = Bucket::typed(kind, "b");
        let key = (0..).map(|number| format!("k{number}")).find(|key| owners(&cluster, &bucket, key)[0] == 0).unwrap();
        let put = |number: usize| {
            let options = PutOptions { w: count(1), ..PutOptions::default() };
            let key = Some(format!("{key} {number}").into());
            PutRequest { bucket: bucket.clone(), key, object: object("v", &VectorClock::new()), options }
        };
        let faults = &cluster.faults[0];
        let before = faults.puts.load(Ordering::SeqCst);
        faults.set(&faults.nothing_cached, true);
        faults.hold_puts(true);
        // These keys have their first replica on the node whose puts are held.
        let is_held = |number: &usize| owners(&cluster, &bucket, &format!("{key} {number}"))[0] == 0;
        let held: Vec<_> = (0..).filter(is_held).take(REQUESTS_MAX).collect();
        let requests: Vec<_> = held
            .iter()
            .map(|&number| {
                let (node, request) = (cluster.nodes[0].clone(), put(number));
                tokio::spawn(async move { node.put(request).await })
            })
            .collect();
        let node = &cluster.nodes[0];
        let under_way = || faults.puts.load(Ordering::SeqCst) - before;
        cluster.wait_until("the puts are in the store", || under_way() >= REQUESTS_MAX as u64).await;
        assert_eq!(node.put(put(1_000)).await.map(drop), Err(Error::Overload), "{kind}");
        assert_eq!(cluster.get(0, "k", with_r(1)).await.map(drop), Err(Error::Overload), "{kind}");
        // Listings have bounds of their own, and do not wait behind puts.
        assert_eq!(super::listings::keys(&cluster, 0).await.unwrap(), ["k"], "{kind}");
        faults.hold_puts(false);
        faults.set(&faults.nothing_cached, false);
        for request in requests {
            request.await.unwrap().unwrap();
        }
        node.put(put(1_000)).await.unwrap();
        assert_eq!(read(&cluster, 0, "k", with_r(3)).await.1, ["v"], "{kind}");
    }
}

/// The replicas are slow. A request with a short timeout ends with `timeout`, and one with a long
/// timeout succeeds. What timed out may be there afterwards, and nothing else is.
#[tokio::test]
async fn verify_api_timeouts() {
    let cluster = Cluster::of(3);
    let brief = Some(Duration::from_millis(50));
    write(&cluster, 0, "k", "old", &VectorClock::new(), with_w(3)).await.unwrap();
    cluster.set_stopped(1, true);
    cluster.set_stopped(2, true);
    let get = GetOptions { timeout: brief, ..with_r(2) };
    assert_eq!(cluster.get(0, "k", get.clone()).await, Err(Error::Timeout));
    let put = PutOptions { timeout: brief, ..with_w(2) };
    assert_eq!(write(&cluster, 0, "k", "new", &VectorClock::new(), put.clone()).await, Err(Error::Timeout));
    let request = ombak_kv::DeleteRequest { bucket: bucket(), key: "k".into(), clock: None, get, put, rw: None };
    assert_eq!(cluster.nodes[0].delete(request).await.map(drop), Err(Error::Timeout));
    for listed in
        [cluster.nodes[0].list_keys(&bucket(), brief), cluster.nodes[0].list_buckets(&"default".into(), brief)]
    {
        // This node answers for its own part first.
        let mut listing = listed.unwrap();
        let mut ended = listing.next().await;
        while let Some(Ok(_)) = ended {
            ended = listing.next().await;
        }
        assert_eq!(ended, Some(Err(Error::Timeout)));
    }
    cluster.set_stopped(1, false);
    cluster.set_stopped(2, false);
    let values = read(&cluster, 1, "k", with_r(3)).await.1;
    assert!(values == ["new", "old"] || values == ["old"], "{values:?}");
    let patient = PutOptions { timeout: Some(crate::replicas::cluster::LIMIT), ..with_w(3) };
    write(&cluster, 0, "k", "newer", &VectorClock::new(), patient).await.unwrap();
    assert!(read(&cluster, 2, "k", with_r(3)).await.1.contains(&"newer".to_owned()));
}

/// The data of one node become read-only. Others coordinate and stand in: no write fails.
#[tokio::test]
async fn verify_readonly() {
    let cluster = Cluster::of(5);
    for number in 0..300 {
        if number == 100 {
            let faults = &cluster.faults[0];
            faults.set(&faults.writes_fail, true);
        }
        let key = format!("k{number}");
        write(&cluster, number % 5, &key, "v", &VectorClock::new(), PutOptions::default()).await.unwrap();
        assert_eq!(read(&cluster, (number + 1) % 5, &key, GetOptions::default()).await.1, ["v"], "{key}");
    }
}

/// One node cannot read what it has. Reads, writes and listings are complete nevertheless, and what
/// a stand-in has for that node is handed back.
#[tokio::test]
async fn verify_corruption_filtering() {
    const KEYS: usize = 60;
    let cluster = Cluster::of(5);
    let keys: Vec<_> = (0..KEYS).map(|number| format!("k{number:02}")).collect();
    for key in &keys {
        write(&cluster, 0, key, "v", &VectorClock::new(), with_w(3)).await.unwrap();
    }
    let faults = &cluster.faults[1];
    faults.set(&faults.reads_fail, true);
    for (number, key) in keys.iter().enumerate() {
        let (seen, values) = read(&cluster, number % 5, key, GetOptions::default()).await;
        assert_eq!(values, ["v"], "{key}");
        write(&cluster, (number + 1) % 5, key, "w", &seen, PutOptions::default()).await.unwrap();
    }
    assert_eq!(super::listings::keys(&cluster, 1).await.unwrap(), keys);
    // A stand-in takes writes for another node meanwhile, and gives them back.
    cluster.set_down(2, true);
    for key in &keys {
        let (seen, values) = read(&cluster, 0, key, GetOptions::default()).await;
        assert_eq!(values, ["w"], "{key}");
        write(&cluster, 0, key, "x", &seen, PutOptions::default()).await.unwrap();
    }
    cluster.set_down(2, false);
    cluster.start_transfers();
    let others = |key: &str| owners(&cluster, &bucket(), key).into_iter().filter(|node| *node != 1).collect::<Vec<_>>();
    for key in &keys {
        cluster.wait_until_equal(&others(key), key).await;
    }
    faults.set(&faults.reads_fail, false);
    for key in &keys {
        assert_eq!(read(&cluster, 3, key, with_r(3)).await.1, ["x"], "{key}");
    }
    cluster.wait_until_settled().await;
}

fn on_one_node() -> PutOptions {
    PutOptions { dw: count(1), ..with_w(1) }
}

/// Puts above the warning size succeed and puts above the maximum fail, and so for siblings. What a
/// read repairs is stored whatever its size.
#[tokio::test]
async fn verify_object_limits() {
    let limits = ObjectLimits { bytes_warn: 1_000, bytes_max: 10_000, siblings_warn: 2, siblings_max: 5 };
    let cluster = Cluster::configured_each(3, move |number, config| {
        // One node has other limits, so that it stores what the others would refuse.
        if number != 2 {
            config.limits = limits;
        }
    });
    let none = VectorClock::new();
    let put = |through, key: &'static str, len: usize| {
        let (cluster, none) = (&cluster, &none);
        async move { write(cluster, through, key, &"v".repeat(len), none, on_one_node()).await }
    };
    put(0, "small", 500).await.unwrap();
    put(0, "warned", 2_000).await.unwrap();
    assert!(matches!(put(0, "large", 20_000).await, Err(Error::TooLarge { bytes_max: 10_000, .. })));
    assert_eq!(cluster.holders("large"), [] as [usize; 0]);
    for number in 1..=5 {
        write(&cluster, 0, "siblings", &number.to_string(), &none, with_w(3)).await.unwrap();
    }
    let refused = write(&cluster, 0, "siblings", "6", &none, with_w(3)).await;
    assert_eq!(refused, Err(Error::TooManySiblings(6)));
    assert_eq!(read(&cluster, 1, "siblings", with_r(3)).await.1, ["1", "2", "3", "4", "5"]);

    // Only the node without these limits has what a read repairs then.
    cluster.set_cut(0, true);
    cluster.set_cut(1, true);
    put(2, "large", 20_000).await.unwrap();
    for number in 1..=8 {
        write(&cluster, 2, "many", &number.to_string(), &none, on_one_node()).await.unwrap();
    }
    cluster.set_cut(0, false);
    cluster.set_cut(1, false);
    for key in ["large", "many"] {
        assert_eq!(cluster.holders(key), [2]);
        assert!(matches!(cluster.get(0, key, with_r(3)).await, Ok(GetReply::Found(_))));
        cluster.wait_until_equal(&[0, 1, 2], key).await;
    }
}
