//! What else happens to a node between the steps of its join, in an order that each test forces.

use super::ring_change_objects::carry_out;
use super::*;
use ombak_metadata::MetadataNode;
use ombak_metadata::state::{Command, MemberStatus};
use ombak_node_files::UnfinishedJoin;
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
    let refused = inner
        .joining
        .join_through(UnfinishedJoin { seed: seed_id, address }, &before, false)
        .await
        .unwrap_err()
        .to_string();
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
    inner.following.is_joining.store(true, Ordering::SeqCst);
    inner.joining.leave_own().await.unwrap();
    until("the node follows that", || own_status(&nodes[0]) == MemberStatus::Exiting).await;
    assert!(!nodes[0].kv().is_open_to_writes(), "also after another state was adopted");
    nodes[1].join(address).await.unwrap_err();
    assert_eq!(nodes[0].metadata().members().len(), 1);
    until("the other node stays", || own_status(&nodes[1]) == MemberStatus::Valid).await;
    put(&nodes[1], bucket(), "k", 1).await.unwrap();
    // It does not move after all.
    inner.following.is_joining.store(false, Ordering::SeqCst);
    inner.joining.stay().await;
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
    let dirs = inner.logs.dirs.clone();
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
        let _adopting = inner.following.adopting.lock().await;
        let change = Command::Stage { expected: 0, changes: serde_json::json!({"of": "the old log"}) };
        old.propose(change, deadline()).await.unwrap();
        // The task that follows the old log is woken, and waits for the lock.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        inner.logs.current.store(next);
    }
    // The lock is fair, so the task has had it by then.
    drop(inner.following.adopting.lock().await);
    assert_eq!((inner.followed.get().index, nodes[0].metadata().staged().0.is_null()), (followed, true));
    old.stop().await;
    stop(&nodes).await;
}

/// Begins to join, and stops in the middle: the cluster has added the node, and the node has not
/// put the metadata of the cluster in force.
async fn join_half(node: MemberNode, seed: &MemberNode) -> MemberNode {
    let node = Arc::new(node);
    let (joiner, address) = (node.clone(), seed.node().listens_on());
    let join = tokio::spawn(async move { joiner.join(address).await.map(drop) });
    while !node.inner.following.is_joining.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    // The new log is put in force under this lock.
    let adopting = node.inner.following.adopting.lock().await;
    let id = node.node().id();
    until("the cluster has added the node", || seed.metadata().members().contains_key(&id)).await;
    assert!(!join.is_finished());
    join.abort();
    join.await.unwrap_err();
    drop(adopting);
    // The process ends with the log that has asked.
    node.inner.logs.slot.swap(None).unwrap().stop().await;
    Arc::try_unwrap(node).ok().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_ends_in_the_middle_of_its_join_withdraws_after_its_start() {
    let (places, mut nodes) = alone_on_disks(3).await;
    form(&nodes[..2]).await;
    let joiner = join_half(nodes.pop().unwrap(), &nodes[1]).await;
    end(joiner).await;
    nodes.push(places[2].start().await);
    assert_eq!(nodes[2].metadata().members().len(), 1, "it is alone as it was");
    let is_forgotten = || nodes.iter().take(2).all(|node| node.metadata().members().len() == 2);
    until("the cluster has forgotten it", is_forgotten).await;
    until("the node has forgotten it", || unfinished_join(&nodes[2]).is_none()).await;
    // Both sides go on.
    carry_out(&nodes[0], &[MemberChange::SetLocation { node: name(1), location: "rack-1".into() }]).await;
    put(&nodes[2], bucket(), "k", 1).await.unwrap();
    nodes[2].join(nodes[0].node().listens_on()).await.unwrap();
    assert_eq!(unfinished_join(&nodes[2]), None);
    carry_out(&nodes[0], &[]).await;
    stop(&nodes).await;
}

fn unfinished_join(node: &MemberNode) -> Option<UnfinishedJoin> {
    node.kv().directory().read_unfinished_join().unwrap()
}

/// Nothing of the cluster arrives at the node that joins, so the node gives up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_gives_up_its_join_withdraws() {
    let mut places = [Place::memory(1), Place::memory(2)];
    places[1].timing.command = Duration::from_millis(500);
    let nodes = [places[0].start().await, places[1].start().await];
    let (seed, id, inner) = (&nodes[0], nodes[1].node().id(), &nodes[1].inner);
    let alone = inner.metadata_node();
    let silence = async {
        while inner.logs.slot.load_full().is_none_or(|slot| Arc::ptr_eq(&slot, &alone)) {
            tokio::task::yield_now().await;
        }
        inner.logs.slot.store(None);
        until("the cluster has added the node", || seed.metadata().members().contains_key(&id)).await;
    };
    let (joined, ()) = tokio::join!(nodes[1].join(seed.node().listens_on()), silence);
    let why = joined.unwrap_err().to_string();
    assert!(why.contains("the change may take effect or not"), "{why}");
    until("the cluster has forgotten it", || seed.metadata().members().len() == 1).await;
    until("the node has forgotten it", || unfinished_join(&nodes[1]).is_none()).await;
    until("it is as it was", || own_status(&nodes[1]) == MemberStatus::Valid).await;
    put(&nodes[1], bucket(), "k", 1).await.unwrap();
    stop(&nodes).await;
}

/// A cluster that does not know the node may still get the request to add it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_to_be_added_that_arrives_after_a_withdrawal_is_withdrawn_too() {
    let (mut places, mut nodes) = alone_on_disks(2).await;
    let joiner = nodes.pop().unwrap();
    let seed = &nodes[0];
    let join = UnfinishedJoin { seed: seed.node().id(), address: seed.node().listens_on() };
    joiner.inner.joining.note_join(join).await.unwrap();
    let lost = another_log(&joiner, false).await;
    let added = lost.describe();
    lost.stop().await;
    drop(lost);
    end(joiner).await;
    places[1].timing.command = Duration::from_secs(3);
    let joiner = places[1].start().await;
    joiner.inner.node.transport().set_address(join.seed, join.address);
    let withdrawal = Command::WithdrawMember { node: joiner.node().id() };
    let refused = joiner.inner.metadata_node().propose_through(join.seed, withdrawal, deadline()).await;
    assert!(refused.is_err(), "the cluster does not know the node");
    seed.inner.metadata_node().propose(Command::AddMember(added), deadline()).await.unwrap();
    until("the node has forgotten it", || unfinished_join(&joiner).is_none()).await;
    until("the cluster has forgotten it", || seed.metadata().members().len() == 1).await;
    stop(&[joiner]).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_plan_names_a_node_that_joins_and_stays_alone() {
    let (_places, nodes) = alone(2).await;
    let (seed, inner) = (&nodes[0], &nodes[1].inner);
    inner.node.transport().set_address(seed.node().id(), seed.node().listens_on());
    let lost = another_log(&nodes[1], false).await;
    lost.propose_through(seed.node().id(), Command::AddMember(lost.describe()), deadline()).await.unwrap();
    lost.stop().await;
    until("it was added", || seed.metadata().members().len() == 2).await;
    let refused = seed.plan().await.unwrap_err().to_string();
    assert!(refused.contains("Cannot plan until cluster state has converged"), "{refused}");
    let expected = "These nodes do not follow the ring of this cluster yet: ['node2@test']. Wait for them.\n\
                    Take back the join of a node that stays alone ('ombak admin cluster leave NODE').";
    assert!(refused.ends_with(expected), "{refused}");
    // What it says helps.
    seed.stage(&MemberChange::Leave(name(2))).await.unwrap();
    until("it was forgotten", || seed.metadata().members().len() == 1).await;
    stop(&nodes).await;
}
