//! Conditional puts of many clients at the same time.

use super::{read, write};
use crate::replicas::cluster::Cluster;
use crate::replicas::work::Work;
use ombak_kv::{GetOptions, GetReply, PutCondition, PutOptions};
use ombak_types::{Quorum, VectorClock};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

fn if_absent() -> PutOptions {
    PutOptions { condition: PutCondition::IfNoneMatch, ..PutOptions::default() }
}

/// Clients add to a value at the same time, each on the condition that it is as the client has read
/// it. Nothing that was acknowledged is lost, with and without siblings, also while nodes go down
/// and come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_conditionalput_strong() {
    for (allow_mult, nodes_fail) in [(false, false), (true, false), (false, true), (true, true)] {
        let cluster = Cluster::configured(5, |config| {
            config.default_props.insert("allow_mult".into(), allow_mult.into());
        });
        cluster.start_transfers();
        let is_over = AtomicBool::new(false);
        let clients = async {
            let added = tokio::join!(add(&cluster, 0, "a"), add(&cluster, 1, "b"), add(&cluster, 2, "c"));
            is_over.store(true, Ordering::SeqCst);
            [added.0, added.1, added.2].concat()
        };
        let failures = async {
            // Of five nodes one at a time is down, so there is a majority of each three.
            for node in (0..5).cycle().take_while(|_| nodes_fail && !is_over.load(Ordering::SeqCst)) {
                cluster.set_down(node, true);
                tokio::task::yield_now().await;
                cluster.set_down(node, false);
                tokio::task::yield_now().await;
            }
        };
        let (acknowledged, ()) = tokio::join!(clients, failures);
        assert!(!acknowledged.is_empty());
        cluster.wait_until_settled().await;
        let all = GetOptions { r: Some(Quorum::All), ..GetOptions::default() };
        let (_, values) = read(&cluster, 4, "k", all).await;
        let found: BTreeSet<_> = values.iter().flat_map(|value| value.split(' ')).map(str::to_owned).collect();
        let lost: Vec<_> = acknowledged.iter().filter(|name| !found.contains(*name)).collect();
        assert!(lost.is_empty(), "allow_mult {allow_mult}, nodes fail {nodes_fail}: {lost:?} are lost of {values:?}");
    }
    exactly_one_creates().await;
}

/// Adds names to the value until eight additions were acknowledged, and returns their names.
async fn add(cluster: &Cluster, through: usize, client: &str) -> Vec<String> {
    const ADDITIONS: usize = 8;
    const TRIES_MAX: usize = 2_000;
    let mut acknowledged = Vec::new();
    for attempt in 0..TRIES_MAX {
        let name = format!("{client}{attempt}");
        let majority = GetOptions { r: crate::replicas::cluster::count(2), ..GetOptions::default() };
        let (condition, seen, values) = match cluster.get(through, "k", majority).await {
            Ok(GetReply::NotFound { .. }) => (PutCondition::IfNoneMatch, VectorClock::new(), Vec::new()),
            Ok(GetReply::Found(object)) => {
                let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
                let values: Vec<_> = object.siblings.iter().map(|sibling| text(&sibling.value)).collect();
                (PutCondition::IfNotModified(object.clock.clone()), object.clock, values)
            }
            Err(_) => continue,
        };
        let mut names: BTreeSet<&str> = values.iter().flat_map(|value| value.split(' ')).collect();
        names.insert(&name);
        let value = names.into_iter().collect::<Vec<_>>().join(" ");
        let options = PutOptions { condition, ..PutOptions::default() };
        match write(cluster, through, "k", &value, &seen, options).await {
            Ok(_) => acknowledged.push(name),
            Err(_) => tokio::task::yield_now().await,
        }
        if acknowledged.len() == ADDITIONS {
            return acknowledged;
        }
    }
    panic!("only {} additions of {client} were acknowledged", acknowledged.len())
}

/// Of many who create the same key at most one is told that it did.
async fn exactly_one_creates() {
    let cluster = Cluster::of(5);
    for round in 0..50 {
        let key = format!("created {round}");
        let creators = (0..5).map(|node| {
            let (cluster, key) = (&cluster, &key);
            async move { write(cluster, node, key, &node.to_string(), &VectorClock::new(), if_absent()).await.is_ok() }
        });
        let created = futures_util::future::join_all(creators).await;
        assert!(created.iter().filter(|created| **created).count() <= 1, "{created:?}");
    }
}
