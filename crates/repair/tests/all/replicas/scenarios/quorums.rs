//! Scenarios about how many nodes have to answer.

use super::{owners, read, with_r, with_w, write};
use crate::replicas::cluster::{Cluster, bucket, count};
use crate::replicas::work::Work;
use ombak_kv::{GetOptions, GetReply, GetRequest, PutOptions, PutRequest};
use ombak_types::{Bucket, Error, VectorClock};
use serde_json::json;
use std::time::Duration;

fn confirmed_put(node_confirms: u32) -> PutOptions {
    PutOptions { node_confirms: count(node_confirms), ..PutOptions::default() }
}

fn confirmed_get(node_confirms: u32, notfound_ok: bool) -> GetOptions {
    GetOptions {
        r: count(1),
        node_confirms: count(node_confirms),
        notfound_ok: Some(notfound_ok),
        ..GetOptions::default()
    }
}

/// With two of three primaries down `pw` = 2 fails, while `node_confirms` = 2 is met with
/// stand-ins, because it counts nodes. A put that failed was coordinated nevertheless. In reads a
/// replica without the key counts only with `notfound_ok`.
#[tokio::test]
async fn node_confirms_vs_pw() {
    let cluster = Cluster::of(5);
    let owners = owners(&cluster, &bucket(), "k");
    let [first, second, third] = owners[..] else { panic!("{owners:?}") };
    cluster.set_down(second, true);
    cluster.set_down(third, true);
    let none = VectorClock::new();
    let pw = PutOptions { pw: count(2), ..PutOptions::default() };
    let refused = write(&cluster, first, "k", "by pw", &none, pw).await;
    assert_eq!(refused, Err(Error::QuorumUnsatisfied { option: "pw", need: 2, got: 1 }));
    write(&cluster, first, "k", "two", &none, confirmed_put(2)).await.unwrap();
    write(&cluster, first, "k", "three", &none, confirmed_put(3)).await.unwrap();
    assert_eq!(read(&cluster, first, "k", confirmed_get(3, true)).await.1, ["three", "two"]);
    // Two nodes are left for three positions.
    let others: Vec<_> = (0..5).filter(|node| !owners.contains(node)).collect();
    cluster.set_down(others[0], true);
    let refused = write(&cluster, first, "k", "of two", &none, confirmed_put(3)).await;
    assert_eq!(refused, Err(Error::NodeConfirmsUnsatisfied { need: 3, got: 2 }));
    let refused = cluster.get(first, "k", confirmed_get(3, true)).await;
    assert_eq!(refused, Err(Error::InsufficientNodes { have: 2, need: 3 }));
    // A node that does not answer has not confirmed. The put was coordinated: its value is there.
    cluster.set_down(others[0], false);
    cluster.set_cut(others[0], true);
    cluster.set_cut(others[1], true);
    let refused = write(&cluster, first, "k", "coordinated", &none, confirmed_put(2)).await;
    assert!(
        matches!(refused, Err(Error::NodeConfirmsUnsatisfied { need: 2, got: 1 } | Error::QuorumUnsatisfied { .. })),
        "{refused:?}"
    );
    let values = read(&cluster, first, "k", with_r(1)).await.1;
    assert_eq!(values, ["coordinated", "three", "two"]);
    cluster.set_cut(others[0], false);
    cluster.set_cut(others[1], false);
    // All are up, and one replica alone has the key.
    cluster.set_down(second, false);
    cluster.set_down(third, false);
    write(&cluster, first, "lonely", "v", &none, with_w(3)).await.unwrap();
    let places = super::owners(&cluster, &bucket(), "lonely");
    cluster.drop_copy(places[1], "lonely");
    cluster.drop_copy(places[2], "lonely");
    let strict = cluster.get(places[0], "lonely", confirmed_get(2, false)).await;
    assert!(strict.is_err(), "{strict:?}");
    // The read has repaired the others, so they lose their copies once more.
    cluster.wait_until_equal(&places, "lonely").await;
    cluster.drop_copy(places[1], "lonely");
    cluster.drop_copy(places[2], "lonely");
    assert_eq!(read(&cluster, places[0], "lonely", confirmed_get(3, true)).await.1, ["v"]);
}

/// `pr`, `pw` and `dw`: more than `n_val` is refused; a primary that does not answer leads to a
/// timeout; a stand-in does not count as a primary; a store that fails does not count for `dw`. The
/// properties of a bucket type have the same effect as the options of a request.
#[tokio::test]
async fn pr_pw() {
    let cluster = Cluster::of(5);
    cluster.create_type("strict", json!({"pr": 3, "pw": 3, "allow_mult": true}).as_object().unwrap());
    let owners = owners(&cluster, &bucket(), "k");
    let [first, second, third] = owners[..] else { panic!("{owners:?}") };
    let none = VectorClock::new();
    let pr = |pr| GetOptions { pr: count(pr), timeout: Some(Duration::from_secs(30)), ..GetOptions::default() };
    let pw = |pw| PutOptions { pw: count(pw), ..PutOptions::default() };
    let dw = |dw| PutOptions { dw: count(dw), ..PutOptions::default() };
    write(&cluster, first, "k", "v", &none, pw(3)).await.unwrap();
    assert_eq!(read(&cluster, first, "k", pr(3)).await.1, ["v"]);
    assert_eq!(cluster.get(first, "k", pr(4)).await, Err(Error::NValViolation(3)));
    assert_eq!(write(&cluster, first, "k", "x", &none, pw(4)).await, Err(Error::NValViolation(3)));

    // A primary is asked and does not answer.
    cluster.set_stopped(third, true);
    let brief = Some(Duration::from_millis(100));
    let late = cluster.get(first, "k", GetOptions { timeout: brief, ..pr(3) }).await;
    assert_eq!(late, Err(Error::Timeout));
    let late = write(&cluster, first, "k", "x", &none, PutOptions { timeout: brief, ..pw(3) }).await;
    assert_eq!(late, Err(Error::Timeout));
    assert_eq!(read(&cluster, first, "k", pr(2)).await.1, ["v", "x"], "a quorum of primaries answers");
    write(&cluster, first, "k", "y", &none, pw(2)).await.unwrap();
    // Two do not answer: there is no quorum either.
    cluster.set_stopped(second, true);
    let late = cluster.get(first, "k", GetOptions { timeout: brief, ..with_r(2) }).await;
    assert_eq!(late, Err(Error::Timeout));
    let late = write(&cluster, first, "k", "x", &none, PutOptions { timeout: brief, ..with_w(2) }).await;
    assert_eq!(late, Err(Error::Timeout));
    cluster.set_stopped(second, false);
    cluster.set_stopped(third, false);

    // A stand-in takes the place of a primary that is down.
    cluster.set_down(third, true);
    let shown = cluster.nodes[first].preflist(&bucket(), b"k").unwrap();
    assert_eq!(shown.iter().map(|place| place.primary).collect::<Vec<_>>(), [true, true, false]);
    assert!(shown.iter().all(|place| place.node != cluster.name_of(third)), "{shown:?}");
    let unsatisfied = |option, need, got| Err(Error::QuorumUnsatisfied { option, need, got });
    assert_eq!(cluster.get(first, "k", pr(3)).await.map(drop), unsatisfied("pr", 3, 2));
    assert_eq!(write(&cluster, first, "k", "z", &none, pw(3)).await.map(drop), unsatisfied("pw", 3, 2));
    assert!(cluster.get(first, "k", with_r(3)).await.is_ok());
    write(&cluster, first, "k", "z", &none, with_w(3)).await.unwrap();
    cluster.set_down(third, false);
    assert!(cluster.get(first, "k", pr(3)).await.is_ok());

    // The store of one primary takes nothing.
    let faults = &cluster.faults[third];
    faults.set(&faults.writes_fail, true);
    assert_eq!(write(&cluster, first, "k", "full", &none, dw(3)).await.map(drop), unsatisfied("dw", 3, 2));
    write(&cluster, first, "k", "full", &none, dw(2)).await.unwrap();
    faults.set(&faults.writes_fail, false);
    properties_of_a_type_decide_too(&cluster).await;
}

async fn properties_of_a_type_decide_too(cluster: &Cluster) {
    let strict = Bucket::typed("strict", "b");
    let [first, _, third] = owners(cluster, &strict, "k")[..] else { panic!("three owners") };
    let put = |value| {
        let (bucket, object) = (strict.clone(), super::object(value, &VectorClock::new()));
        let request = PutRequest { bucket, key: Some("k".into()), object, options: PutOptions::default() };
        cluster.nodes[first].put(request)
    };
    let get = || {
        let (bucket, options) = (strict.clone(), GetOptions::default());
        cluster.nodes[first].get(GetRequest { bucket, key: "k".into(), options })
    };
    put("v").await.unwrap();
    get().await.unwrap();
    cluster.set_down(third, true);
    let unsatisfied = |option| Err(Error::QuorumUnsatisfied { option, need: 3, got: 2 });
    assert_eq!(get().await.map(drop), unsatisfied("pr"));
    assert_eq!(put("w").await.map(drop), unsatisfied("pw"));
    cluster.set_down(third, false);
    put("w").await.unwrap();
    get().await.unwrap();
}

/// Objects that are written once: quorums above `n_val` are refused; the smaller side of a parted
/// cluster fails strict quorums; each side reads what was written on it; and after the sides meet
/// again all replicas have one of the values.
#[tokio::test]
async fn verify_write_once() {
    let cluster = Cluster::of(5);
    cluster.create_type("once", json!({"write_once": true}).as_object().unwrap());
    let once = Bucket::typed("once", "b");
    let put = |through: usize, key: &'static str, value: &str, options: PutOptions| {
        let (bucket, object) = (once.clone(), super::object(value, &VectorClock::new()));
        cluster.nodes[through].put(PutRequest { bucket, key: Some(key.into()), object, options })
    };
    let get = |through: usize, key: &'static str| {
        let (cluster, bucket) = (&cluster, once.clone());
        async move {
            let request = GetRequest { bucket, key: key.into(), options: GetOptions::default() };
            match cluster.nodes[through].get(request).await.unwrap() {
                GetReply::Found(object) => object.siblings[0].value.clone(),
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(put(0, "k", "v", with_w(4)).await.map(drop), Err(Error::NValViolation(3)));
    let pw = |pw| PutOptions { pw: count(pw), ..PutOptions::default() };
    assert_eq!(put(0, "k", "v", pw(4)).await.map(drop), Err(Error::NValViolation(3)));
    let [first, second, third] = owners(&cluster, &once, "k")[..] else { panic!("three owners") };
    let others: Vec<_> = (0..5).filter(|node| ![first, second, third].contains(node)).collect();
    let (small, large) = ([first, others[0]], [second, third, others[1]]);
    cluster.set_parted(&small, &large, true);
    let strict = PutOptions { sloppy_quorum: false, ..with_w(2) };
    let refused = put(first, "k", "small", strict).await.map(drop);
    assert_eq!(refused, Err(Error::InsufficientVnodes { have: 1, need: 2 }));
    let refused = put(second, "k", "large", pw(3)).await.map(drop);
    assert_eq!(refused, Err(Error::QuorumUnsatisfied { option: "pw", need: 3, got: 2 }));
    put(first, "k", "small", with_w(2)).await.unwrap();
    put(second, "k", "large", with_w(2)).await.unwrap();
    assert_eq!(get(first, "k").await, "small");
    assert_eq!(get(second, "k").await, "large");
    cluster.set_parted(&small, &large, false);
    cluster.start_transfers();
    cluster.wait_until_settled().await;
    let agreed = get(first, "k").await;
    for node in 0..5 {
        assert_eq!(get(node, "k").await, agreed, "node {node}");
    }
    let merges = |node: usize| {
        let numbers = cluster.nodes[node].stats().numbers();
        numbers.into_iter().find(|(name, _)| name == "write_once_merge").unwrap().1
    };
    assert!((0..5).any(|node| merges(node) > 0));
}
