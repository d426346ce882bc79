//! Scenarios about values that were written side by side, and about clocks.

use super::{owners, read, with_r, with_w, write};
use crate::replicas::cluster::{Cluster, bucket};
use crate::replicas::work::Work;
use bytes::Bytes;
use ombak_kv::{GetOptions, GetReply, PutOptions};
use ombak_types::{Object, Sibling, VectorClock};
use std::collections::BTreeSet;

/// Two clients read, resolve and write in turn, and each writes with the clock of its own last
/// read, which lacks the other's newest write. With dotted version vectors there are at most two
/// siblings, and every write is represented.
#[tokio::test]
async fn sibling_explosion() {
    const WRITES: usize = 40;
    let cluster = Cluster::configured(3, |config| {
        config.default_props.insert("dvv_enabled".into(), true.into());
    });
    let mut clients = [(VectorClock::new(), BTreeSet::new()), (VectorClock::new(), BTreeSet::new())];
    for number in 0..WRITES {
        let (seen, known) = &mut clients[number % 2];
        // The client adds its number to what it has seen.
        known.insert(number);
        let value = known.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        write(&cluster, number % 3, "k", &value, seen, with_w(3)).await.unwrap();
        // The other client reads before this one writes again.
        let (clock, values) = read(&cluster, (number + 1) % 3, "k", with_r(3)).await;
        assert!(values.len() <= 2, "{values:?}");
        let all = || values.iter().flat_map(|value| value.split(' ')).map(|number| number.parse::<usize>().unwrap());
        assert_eq!(all().collect::<BTreeSet<_>>(), (0..=number).collect());
        clients[number % 2] = (clock, all().collect());
    }
}

/// Two writers who know nothing of each other write through two primaries. With allow_mult all
/// replicas have both values. Without it every node shows the later one.
#[tokio::test]
async fn verify_siblingmerge_basic() {
    for allow_mult in [true, false] {
        let cluster = Cluster::configured(3, move |config| {
            config.default_props.insert("allow_mult".into(), allow_mult.into());
        });
        write(&cluster, 0, "k", "first", &VectorClock::new(), with_w(3)).await.unwrap();
        write(&cluster, 1, "k", "second", &VectorClock::new(), with_w(3)).await.unwrap();
        cluster.wait_until_equal(&[0, 1, 2], "k").await;
        let expected: &[&str] = if allow_mult { &["first", "second"] } else { &["second"] };
        for node in 0..3 {
            // The other nodes are not asked: each shows what its own store has.
            let others: Vec<_> = (0..3).filter(|other| *other != node).collect();
            others.iter().for_each(|&other| cluster.set_down(other, true));
            assert_eq!(read(&cluster, node, "k", with_r(1)).await.1, expected, "node {node}");
            others.iter().for_each(|&other| cluster.set_down(other, false));
        }
    }
}

/// A value comes back as it was written, a key that was never written is absent, and an update with
/// the clock of a read replaces what was read.
#[tokio::test]
async fn verify_vclock() {
    let cluster = Cluster::of(4);
    for number in 0..20 {
        let key = format!("k{number}");
        assert_eq!(
            cluster.get(number % 4, &key, GetOptions::default()).await.unwrap(),
            GetReply::NotFound { tombstone: None }
        );
        write(&cluster, number % 4, &key, "old", &VectorClock::new(), with_w(3)).await.unwrap();
        let (seen, values) = read(&cluster, (number + 1) % 4, &key, with_r(2)).await;
        assert_eq!(values, ["old"]);
        let newer = write(&cluster, (number + 2) % 4, &key, "new", &seen, with_w(3)).await.unwrap();
        assert!(newer.descends(&seen) && !seen.descends(&newer));
        assert_eq!(read(&cluster, (number + 3) % 4, &key, with_r(2)).await, (newer, vec!["new".to_owned()]));
    }
}

/// A put with `asis` stores the object with the clock that it carries. Every node shows that clock.
#[tokio::test]
async fn verify_asis_put() {
    let cluster = Cluster::of(4);
    let clock = write(&cluster, 0, "k", "v", &VectorClock::new(), with_w(3)).await.unwrap();
    let asis = || PutOptions { asis: true, ..with_w(3) };
    for (through, key) in [(0, "copy"), (3, "k")] {
        let object = Object { clock: clock.clone(), siblings: vec![Sibling::new("asis")] };
        cluster.put_object(through, key, object, asis()).await.unwrap();
    }
    for node in 0..4 {
        assert_eq!(read(&cluster, node, "copy", with_r(3)).await, (clock.clone(), vec!["asis".to_owned()]));
        assert_eq!(read(&cluster, node, "k", with_r(3)).await.0, clock, "no event was added");
    }
}

/// Plain values whose first byte is the tag of Riak's data types stay ordinary bytes: as siblings,
/// with a stand-in, and when they are handed back.
#[tokio::test]
async fn overlap_with_crdt_tag() {
    let cluster = Cluster::of(5);
    let values: Vec<Bytes> = [&b"\x45"[..], b"\x45\x01\x00", b"\x45\x02riak_dt_orswot", b"\x45\xff\xff\xff\xff"]
        .iter()
        .map(|value| Bytes::from_static(value))
        .collect();
    let owners = owners(&cluster, &bucket(), "k");
    let put = |through: usize, value: &Bytes| {
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value.clone())] };
        cluster.put_object(through, "k", object, with_w(3))
    };
    put(owners[0], &values[0]).await.unwrap();
    put(owners[1], &values[1]).await.unwrap();
    cluster.set_down(owners[0], true);
    put(owners[1], &values[2]).await.unwrap();
    put(owners[2], &values[3]).await.unwrap();
    cluster.set_down(owners[0], false);
    cluster.start_transfers();
    cluster.wait_until_settled().await;
    cluster.wait_until_equal(&owners, "k").await;
    for node in 0..5 {
        let GetReply::Found(object) = cluster.get(node, "k", with_r(3)).await.unwrap() else { panic!("not found") };
        let found: BTreeSet<_> = object.siblings.iter().map(|sibling| sibling.value.clone()).collect();
        assert_eq!(found, values.iter().cloned().collect(), "node {node}");
    }
}
