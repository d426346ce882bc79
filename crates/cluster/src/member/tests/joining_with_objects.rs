//! Nodes that have been alone and hold objects join a cluster (docs/design/replication.md §15).

use super::ring_change_objects::{all_have, carry_out, objects_of, until_at_rest, with_objects};
use super::*;
use ombak_kv::Holdings;
use serde_json::json;

/// What a node that is alone has: objects of its own, and one under a key that the cluster has.
async fn with_own_objects(node: &MemberNode) -> Vec<String> {
    let keys: Vec<String> = (0..100).map(|number| format!("brought {number}")).collect();
    for key in keys.iter().map(String::as_str).chain(["before 7"]) {
        put(node, bucket(), key, 1).await.unwrap();
    }
    keys
}

async fn create_type(node: &MemberNode, name: &'static str, n_val: u32) {
    let wanted = props(json!({ "n_val": n_val }));
    change(node, move |registry| registry.create_type(name.as_bytes(), &wanted)).await.unwrap();
    change(node, move |registry| registry.activate_type(name.as_bytes())).await.unwrap();
}

async fn all_found(node: &MemberNode, bucket: Bucket, keys: &[String]) {
    for key in keys {
        assert!(is_found(node, bucket.clone(), key).await, "{key}");
    }
}

fn is_alone(node: &MemberNode) -> bool {
    let (kv, own) = (node.kv(), node.node().id());
    node.metadata().members().keys().copied().eq([own])
        && kv.placement().nodes().iter().eq([&own])
        && kv.is_open_to_writes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_what_a_node_brings_after_the_commit() {
    let (_places, nodes) = alone(4).await;
    form(&nodes[..3]).await;
    let mut keys = with_objects(&nodes[..3]).await;
    let brought = with_own_objects(&nodes[3]).await;
    nodes[3].join(nodes[1].node().listens_on()).await.unwrap();
    assert!(!is_found(&nodes[3], bucket(), &brought[0]).await, "clients of the node reach the cluster");
    carry_out(&nodes[0], &[]).await;
    let all: Vec<&MemberNode> = nodes.iter().collect();
    until_at_rest(&all).await;
    keys.extend(brought);
    all_have(&all, &keys).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_moves_before_the_commit_and_a_node_that_does_not_join_after_all_keeps_everything() {
    let (_places, nodes) = alone(2).await;
    with_objects(&nodes[..1]).await;
    for node in &nodes {
        create_type(node, "t", 2).await;
    }
    let brought = with_own_objects(&nodes[1]).await;
    let typed = Bucket::typed("t", "b");
    put(&nodes[1], typed.clone(), "k", 1).await.unwrap();
    let (at_first, there) = (objects_of(&nodes[1]), objects_of(&nodes[0]));
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    // Transfers that were due would be tried at once, while clients write.
    for number in 0..200 {
        nodes[1].node().repair().retry_transfers();
        put(&nodes[1], bucket(), &format!("after the join {number}"), 1).await.unwrap();
    }
    assert_eq!((objects_of(&nodes[1]), objects_of(&nodes[0])), (at_first, there + 200));
    nodes[0].clear().await.unwrap();
    until("the node has a cluster of its own again", || is_alone(&nodes[1])).await;
    all_found(&nodes[1], bucket(), &brought).await;
    assert!(is_found(&nodes[1], typed, "k").await, "the type of the object is known");
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_commit_a_node_counts_what_it_will_hand_over_and_is_at_rest_without_objects() {
    let (_places, nodes) = alone(3).await;
    for number in 0..50 {
        put(&nodes[2], bucket(), &format!("brought {number}"), 1).await.unwrap();
    }
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    until("the empty node has nothing to hand over", || nodes[1].node().repair().settled().partitions_with_hints == 0)
        .await;
    nodes[2].join(nodes[0].node().listens_on()).await.unwrap();
    until("the other one has counted its objects", || nodes[2].node().repair().settled().hints.keys == 50).await;
    assert!(nodes[2].node().repair().settled().partitions_with_hints > 0);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_brings_what_it_has_also_over_restarts() {
    let (places, mut nodes) = alone_on_disks(2).await;
    let mut keys = with_objects_of_one(&nodes[0]).await;
    let brought = with_own_objects(&nodes[1]).await;
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    end(nodes.pop().unwrap()).await;
    nodes.push(places[1].start().await);
    assert!(nodes[1].kv().find_object(&Holdings::Everything).unwrap().is_some());
    let give_up_at = Instant::now() + PATIENCE;
    while nodes[0].plan().await.is_err() {
        assert!(Instant::now() < give_up_at, "the node that joins does not answer");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    nodes[0].commit().await.unwrap();
    end(nodes.pop().unwrap()).await;
    nodes.push(places[1].start().await);
    until_at_rest(&[&nodes[0], &nodes[1]]).await;
    keys.extend(brought);
    all_found(&nodes[0], bucket(), &keys).await;
    all_found(&nodes[1], bucket(), &keys).await;
    // Each key has two primaries, and the clusters had one key in common.
    assert_eq!(objects_of(&nodes[0]) + objects_of(&nodes[1]), keys.len() * 2);
    stop(&nodes).await;
}

async fn with_objects_of_one(node: &MemberNode) -> Vec<String> {
    with_objects(std::slice::from_ref(node)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_types_or_buckets_differ_stays_alone_and_takes_writes() {
    let (_places, nodes) = alone(3).await;
    form(&nodes[..2]).await;
    let (joiner, address) = (&nodes[2], nodes[0].node().listens_on());
    let typed = Bucket::typed("t", "b");
    create_type(joiner, "t", 2).await;
    put(joiner, typed.clone(), "k", 1).await.unwrap();
    let refused = joiner.join(address).await.unwrap_err().to_string();
    assert!(refused.contains("'t', and the cluster has not"), "{refused}");
    create_type(&nodes[0], "t", 3).await;
    let refused = joiner.join(address).await.unwrap_err().to_string();
    assert!(refused.contains("n_val 2 here and 3 in the cluster"), "{refused}");
    until("it takes writes again", || is_alone(joiner)).await;
    put(joiner, typed.clone(), "k2", 1).await.unwrap();
    let is_forgotten = || nodes.iter().take(2).all(|node| node.metadata().members().len() == 2);
    until("the cluster has forgotten it", is_forgotten).await;
    let own = props(json!({ "w": 1 }));
    change(joiner, move |registry| registry.set_bucket(&bucket(), &own)).await.unwrap();
    change(&nodes[0], |registry| registry.set_bucket(&Bucket::untyped("c"), &props(json!({ "w": 1 })))).await.unwrap();
    let refused = joiner.join(address).await.unwrap_err().to_string();
    assert!(refused.contains("n_val 2 here"), "the first difference is named first: {refused}");
    stop(&nodes).await;
}
