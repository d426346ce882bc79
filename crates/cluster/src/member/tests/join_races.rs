//! What else happens to a node between the steps of its join, in an order that each test forces.

use super::*;
use ombak_metadata::MetadataNode;
use ombak_metadata::state::{Command, MemberStatus};
use std::sync::atomic::Ordering;

const ALREADY_MEMBER: &str = "Failed: This node is already a member of a cluster";

fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

fn own_status(node: &MemberNode) -> MemberStatus {
    node.metadata().members()[&node.node().id()].status
}

/// The node has looked at its own cluster, in which it was alone, when another node joins it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_joined_after_its_join_began_stays_where_it_is() {
    let (_places, nodes) = alone(3).await;
    let (inner, seed) = (&nodes[0].inner, &nodes[2]);
    let before = inner.metadata_node().metadata();
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    let (seed_id, address) = (seed.node().id(), seed.node().listens_on());
    inner.node.transport().set_address(seed_id, address);
    let refused = inner.join_through(seed_id, address, &before).await.unwrap_err().to_string();
    assert_eq!(refused, ALREADY_MEMBER);
    assert_eq!(seed.metadata().members().len(), 1, "it was not added elsewhere");
    until("it is a member as before", || own_status(&nodes[0]) == MemberStatus::Valid).await;
    assert!(nodes[0].kv().is_open_to_writes());
    // The cluster of the two is whole.
    assert!(nodes[0].plan().await.unwrap().is_some());
    nodes[1].commit().await.unwrap();
    put(&nodes[1], bucket(), "k", 2).await.unwrap();
    assert!(is_found(&nodes[0], bucket(), "k").await);
    stop(&nodes).await;
}

/// The node is about to leave its own cluster when another node wants to join that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_about_to_move_cannot_be_joined() {
    let (_places, nodes) = alone(3).await;
    let (inner, address) = (&nodes[0].inner, nodes[0].node().listens_on());
    inner.is_joining.store(true, Ordering::SeqCst);
    inner.leave_own().await.unwrap();
    until("the node follows that", || own_status(&nodes[0]) == MemberStatus::Exiting).await;
    assert!(!nodes[0].kv().is_open_to_writes(), "also after another state was adopted");
    nodes[1].join(address).await.unwrap_err();
    assert_eq!(nodes[0].metadata().members().len(), 1);
    until("the other node stays", || own_status(&nodes[1]) == MemberStatus::Valid).await;
    put(&nodes[1], bucket(), "k", 1).await.unwrap();
    // It does not move after all.
    inner.is_joining.store(false, Ordering::SeqCst);
    inner.stay().await;
    until("it takes writes", || nodes[0].kv().is_open_to_writes()).await;
    nodes[2].join(address).await.unwrap();
    stop(&nodes).await;
}

/// Whoever joins whom first, no node is lost, and none takes part in two clusters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_nodes_that_join_each_other_at_most_one_moves() {
    for _round in 0..3 {
        let (_places, nodes) = alone(2).await;
        let [first, second] = [&nodes[0], &nodes[1]].map(|node| node.node().listens_on());
        let (one, other) = tokio::join!(nodes[0].join(second), nodes[1].join(first));
        assert!(one.is_err() || other.is_err(), "both have moved");
        let moved = one.is_ok() || other.is_ok();
        if !moved {
            until("both stay", || nodes.iter().all(|node| own_status(node) == MemberStatus::Valid)).await;
            nodes[1].join(first).await.unwrap();
        }
        assert!(nodes[0].plan().await.unwrap().is_some());
        nodes[0].commit().await.unwrap();
        put(&nodes[1], bucket(), "k", 2).await.unwrap();
        assert!(is_found(&nodes[0], bucket(), "k").await);
        stop(&nodes).await;
    }
}

/// A metadata node in a new directory.
async fn another_log(node: &MemberNode, founds: bool) -> Arc<MetadataNode> {
    let inner = &node.inner;
    let size = inner.kv().ring().size();
    let dirs = inner.dirs.clone();
    let dir = inner.blocking(move || dirs.begin()).await.unwrap().unwrap();
    MetadataNode::start(inner.setup(dir, founds.then_some(size))).await.unwrap()
}

/// An earlier join was decided, and its answer was lost with the log that had asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_whose_answer_was_lost_is_repeated() {
    let (_places, nodes) = alone(2).await;
    let (seed, inner) = (&nodes[0], &nodes[1].inner);
    let address = seed.node().listens_on();
    let lost = another_log(&nodes[1], false).await;
    inner.node.transport().set_address(seed.node().id(), address);
    let added = Command::AddMember(lost.describe());
    lost.propose_through(seed.node().id(), added, deadline()).await.unwrap();
    lost.stop().await;
    until("it was added", || seed.metadata().members().len() == 2).await;
    assert_eq!(nodes[1].join(address).await.unwrap(), name_of(seed));
    assert!(seed.plan().await.unwrap().is_some());
    nodes[1].commit().await.unwrap();
    put(&nodes[1], bucket(), "k", 2).await.unwrap();
    stop(&nodes).await;
}

/// The log that the node leaves has a new state, which waits while another log is put in force.
#[tokio::test]
async fn a_state_of_the_log_that_was_left_is_not_followed() {
    let (_places, nodes) = alone(1).await;
    let inner = &nodes[0].inner;
    let (old, next) = (inner.metadata_node(), another_log(&nodes[0], true).await);
    let followed = inner.followed.get().index;
    {
        let _adopting = inner.adopting.lock().await;
        let change = Command::Stage { expected: 0, changes: serde_json::json!({"of": "the old log"}) };
        old.propose(change, deadline()).await.unwrap();
        // The task that follows the old log is woken, and waits for the lock.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        inner.current.store(next);
    }
    // The lock is fair, so the task has had it by then.
    drop(inner.adopting.lock().await);
    assert_eq!((inner.followed.get().index, nodes[0].metadata().staged().0.is_null()), (followed, true));
    old.stop().await;
    stop(&nodes).await;
}
