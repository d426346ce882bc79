//! Forming a cluster from nodes that are alone.

use super::*;
use ombak_metadata::state::{Command, MemberStatus};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_nodes_become_one_and_every_node_reads_what_any_wrote() {
    let (_places, nodes) = cluster(5).await;
    let version = nodes[0].kv().ring().version();
    for node in &nodes {
        let ring = node.kv().ring();
        assert_eq!((ring.version(), ring.node_count()), (version, 5));
        assert!(node.kv().is_open_to_writes());
        assert!(node.metadata().members().values().all(|member| member.status == MemberStatus::Valid));
    }
    for (number, node) in nodes.iter().enumerate() {
        let key = format!("k{number}");
        put(node, bucket(), &key, 3).await.unwrap();
        for reader in &nodes {
            assert!(is_found(reader, bucket(), &key).await, "written through {number}");
        }
    }
    assert_eq!(nodes[3].ring_ready().await, RingReady::Ready(in_order(&nodes)));
    let facts = nodes[2].facts().await;
    assert_eq!(facts.members.iter().map(|member| member.partitions).sum::<u32>(), RING_SIZE);
    assert!(facts.members.iter().all(|member| member.is_up && member.partitions >= 3), "{facts:?}");
    assert!(facts.claimant.is_some() && !facts.is_closed);
    stop(&nodes).await;
}

/// The names of the nodes, in the order of their identities.
fn in_order(nodes: &[MemberNode]) -> Vec<String> {
    let mut nodes: Vec<_> = nodes.iter().map(|node| (node.node().id(), name_of(node))).collect();
    nodes.sort();
    nodes.into_iter().map(|(_, name)| name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_makes_the_ring_that_was_planned_on_any_member() {
    let (_places, nodes) = alone(3).await;
    let address = nodes[0].node().listens_on();
    let not_planned = nodes[0].commit().await.unwrap_err().to_string();
    assert!(not_planned.contains("must verify the plan"), "{not_planned}");
    assert!(nodes[0].plan().await.unwrap().is_none(), "nothing is staged");
    nodes[1].join(address).await.unwrap();
    let shown = nodes[1].plan().await.unwrap().unwrap();
    assert!(shown.text().contains("join           'node2@test'"), "{}", shown.text());
    nodes[2].join(address).await.unwrap();
    let changed = nodes[0].commit().await.unwrap_err().to_string();
    assert!(changed.contains("The plan has changed"), "{changed}");
    let shown = nodes[2].plan().await.unwrap().unwrap();
    nodes[1].commit().await.unwrap();
    for node in &nodes {
        assert_eq!(*node.kv().ring(), shown.plan.ring);
    }
    let again = nodes[1].join(address).await.unwrap_err().to_string();
    assert_eq!(again, "Failed: This node is already a member of a cluster");
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_a_cluster_with_objects_go_by_steps() {
    let (_places, nodes) = alone(3).await;
    let address = nodes[0].node().listens_on();
    nodes[2].join(address).await.unwrap();
    nodes[0].plan().await.unwrap();
    put(&nodes[2], bucket(), "k", 1).await.unwrap();
    nodes[0].commit().await.unwrap();
    assert!(nodes[0].kv().is_open_to_writes());
    put(&nodes[0], bucket(), "k3", 1).await.unwrap();
    assert!(is_found(&nodes[2], bucket(), "k3").await);
    let has_goal = || nodes[2].kv().placement().is_settled() && nodes[2].kv().ring().node_count() == 2;
    until("all homes have the goal", has_goal).await;
    for key in ["k", "k3"] {
        assert!(is_found(&nodes[2], bucket(), key).await);
    }
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_differs_a_silent_address_and_the_node_itself_are_named() {
    let (_places, nodes) = alone(1).await;
    let address = nodes[0].node().listens_on();
    let stranger = Place { secret: b"another secret of another cluster", ..Place::memory(2) };
    let node = stranger.start().await;
    let refused = node.join(address).await.unwrap_err().to_string();
    assert!(refused.contains("cluster.secret_file"), "{refused}");
    let refused = node.join("127.0.0.1:1".parse().unwrap()).await.unwrap_err().to_string();
    assert!(refused.starts_with("Node 127.0.0.1:1 is not reachable!"), "{refused}");
    let refused = nodes[0].join(address).await.unwrap_err().to_string();
    assert_eq!(refused, "Failed: This node cannot join itself in a cluster");
    put(&node, bucket(), "k", 1).await.unwrap();
    node.stop().await;
    stop(&nodes).await;
}

/// The id of the cluster that a node tells in its handshakes.
async fn told_by(node: &MemberNode, to: &MemberNode) -> Result<u64, String> {
    let told = to.node().transport().identify(node.node().listens_on(), Instant::now() + PATIENCE).await;
    told.map(|identity| identity.cluster).map_err(|refused| refused.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_refuse_the_members_of_another_cluster_with_the_same_secret() {
    let places: Vec<Place> = (1..=5).map(Place::durable).collect();
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(place.start().await);
    }
    assert_eq!(told_by(&nodes[1], &nodes[0]).await, Ok(0), "it belongs to no cluster yet");
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    assert_eq!(told_by(&nodes[1], &nodes[4]).await, Ok(0), "it may still leave again");
    nodes[0].plan().await.unwrap();
    nodes[0].commit().await.unwrap();
    form(&nodes[2..4]).await;
    let own = nodes[0].metadata().lineage().unwrap().id;
    for node in &nodes[..2] {
        assert_eq!(told_by(node, &nodes[4]).await, Ok(own));
    }
    assert_eq!(told_by(&nodes[0], &nodes[1]).await, Ok(own));
    let capability = "coverage.1";
    assert!(nodes[0].node().transport().shares(nodes[1].node().id(), capability), "while they are connected");
    for _ in 0..2 {
        let refused = told_by(&nodes[2], &nodes[0]).await.unwrap_err();
        assert!(refused.contains("the clusters differ: node"), "{refused}");
        let refused = told_by(&nodes[0], &nodes[2]).await.unwrap_err();
        assert!(refused.contains("the clusters differ: node"), "{refused}");
        // It knows its cluster from its own disk, too, before it has asked anybody.
        let third = nodes.remove(2);
        end(third).await;
        nodes.insert(2, places[2].start().await);
    }
    assert_eq!(told_by(&nodes[4], &nodes[0]).await, Ok(0), "whoever is alone may want to join");
    nodes[4].join(nodes[2].node().listens_on()).await.unwrap();
    stop(&nodes).await;
}

/// A node that joins knows no address but the one that it is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_joins_through_any_member() {
    let (_places, nodes) = alone(5).await;
    form(&nodes[..3]).await;
    let leader = nodes[..3].iter().position(|node| node.inner.metadata_node().is_leader()).unwrap();
    for (joiner, seed) in [(3, (leader + 1) % 3), (4, (leader + 2) % 3)] {
        nodes[joiner].join(nodes[seed].node().listens_on()).await.unwrap();
    }
    assert!(nodes[4].plan().await.unwrap().is_some());
    nodes[3].commit().await.unwrap();
    until("all are owners", || nodes.iter().all(|node| node.kv().ring().node_count() == 5)).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_do_not_join_after_all_are_useful_alone_and_can_join_again() {
    let (_places, nodes) = alone(2).await;
    let address = nodes[0].node().listens_on();
    nodes[1].join(address).await.unwrap();
    assert!(nodes[0].plan().await.unwrap().is_some());
    nodes[0].clear().await.unwrap();
    assert!(nodes[0].plan().await.unwrap().is_none());
    let own = nodes[1].node().id();
    let is_alone = || nodes[1].metadata().members().keys().copied().eq([own]);
    until("the node has a cluster of its own again", is_alone).await;
    until("it takes writes", || nodes[1].kv().is_open_to_writes()).await;
    assert_eq!(nodes[1].kv().ring().node_count(), 1);
    form(&nodes).await;
    put(&nodes[1], bucket(), "k", 2).await.unwrap();
    assert!(is_found(&nodes[0], bucket(), "k").await);
    stop(&nodes).await;
}

/// Clients write to all nodes all the time, while the nodes try to form a cluster. Whatever was
/// acknowledged is there afterwards: either it was before, and then the cluster is refused, or it
/// was after.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledged_write_vanishes_when_clients_write_during_the_commit() {
    let mut outcomes = BTreeSet::new();
    for round in 0..6u64 {
        let (_places, nodes) = alone(3).await;
        for node in &nodes[1..] {
            node.join(nodes[0].node().listens_on()).await.unwrap();
        }
        nodes[0].plan().await.unwrap();
        let (done, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let (node, done, begun) = (nodes[writer % 3].clone(), done.clone(), begun.clone());
                tokio::spawn(async move {
                    let mut acknowledged = Vec::new();
                    // Some rounds begin with the commit, others with the writes.
                    tokio::time::sleep(Duration::from_millis(round * 3)).await;
                    for number in 0.. {
                        if done.load(Ordering::SeqCst) {
                            break;
                        }
                        begun.fetch_add(1, Ordering::SeqCst);
                        let key = format!("k{writer}-{number}");
                        if put(&node, bucket(), &key, 2).await.is_ok() {
                            acknowledged.push(key);
                        }
                        tokio::task::yield_now().await;
                    }
                    acknowledged
                })
            })
            .collect();
        let committed = nodes[0].commit().await.is_ok();
        outcomes.insert(committed);
        // Writes go on under the new ring, or the old one.
        let so_far = begun.load(Ordering::SeqCst);
        until("writes go on", || begun.load(Ordering::SeqCst) > so_far + 20).await;
        done.store(true, Ordering::SeqCst);
        for writer in writers {
            for key in writer.await.unwrap() {
                for node in &nodes {
                    assert!(is_found(node, bucket(), &key).await, "round {round}, committed {committed}: {key}");
                }
            }
        }
        assert_eq!(nodes[0].kv().ring().node_count(), if committed { 3 } else { 1 });
        stop(&nodes).await;
    }
    assert!(outcomes.contains(&true), "some round comes before the writes");
}

/// The same for the join itself, where the node leaves its own cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledged_write_vanishes_when_clients_write_during_the_join() {
    for round in 0..6u64 {
        let (_places, nodes) = alone(2).await;
        let done = Arc::new(AtomicBool::new(false));
        let writer = {
            let (node, done) = (nodes[1].clone(), done.clone());
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                tokio::time::sleep(Duration::from_millis(round * 4)).await;
                for number in 0.. {
                    if done.load(Ordering::SeqCst) && !acknowledged.is_empty() {
                        break;
                    }
                    let key = format!("k{number}");
                    if put(&node, bucket(), &key, 1).await.is_ok() {
                        acknowledged.push(key);
                    }
                    // A put on a node that is alone never waits, and other tasks need this thread.
                    tokio::task::yield_now().await;
                }
                acknowledged
            })
        };
        nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
        done.store(true, Ordering::SeqCst);
        let acknowledged = writer.await.unwrap();
        nodes[1].plan().await.unwrap();
        nodes[1].commit().await.unwrap();
        ring_change_objects::until_at_rest(&[&nodes[0], &nodes[1]]).await;
        for key in acknowledged {
            assert!(is_found(&nodes[1], bucket(), &key).await, "round {round}: {key}");
        }
        stop(&nodes).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_do_not_wait_for_ever_for_a_driver_that_died() {
    let places: Vec<Place> = (1..=2)
        .map(|number| Place {
            timing: MemberTiming { closing_max: Duration::from_millis(300), ..timing() },
            ..Place::memory(number)
        })
        .collect();
    let nodes = [places[0].start().await, places[1].start().await];
    form(&nodes).await;
    let deadline = Instant::now() + PATIENCE;
    // A driver closes the cluster, and does nothing more.
    let closing = nodes[1].inner.metadata_node().propose(Command::CloseWrites, deadline).await.unwrap();
    until("all take no writes", || nodes.iter().all(|node| !node.kv().is_open_to_writes())).await;
    until("all take writes again", || nodes.iter().all(|node| node.kv().is_open_to_writes())).await;
    put(&nodes[0], bucket(), "k", 2).await.unwrap();
    // It comes back, and is too late.
    let change = Command::Stage { expected: 0, changes: serde_json::Value::Null };
    let late = Command::WhileClosed { closing, command: Box::new(change) };
    let refused = nodes[1].inner.metadata_node().propose(late, deadline).await.unwrap_err().to_string();
    assert!(refused.contains("opened to writes again"), "{refused}");
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_again_while_the_cluster_is_closed_takes_no_writes() {
    let place = Place::durable(1);
    let node = place.start().await;
    let deadline = Instant::now() + PATIENCE;
    let closing = node.inner.metadata_node().propose(Command::CloseWrites, deadline).await.unwrap();
    end(node).await;
    let node = place.start().await;
    assert!(!node.kv().is_open_to_writes());
    node.inner.metadata_node().propose(Command::OpenWrites { closing }, deadline).await.unwrap();
    until("it takes writes", || node.kv().is_open_to_writes()).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_marked_as_down_only_if_it_does_not_answer() {
    let (places, nodes) = cluster(3).await;
    let refused = nodes[0].mark_down("node3@test").await.unwrap_err().to_string();
    assert_eq!(refused, "Failed: node3@test is up");
    let refused = nodes[0].mark_down("nobody").await.unwrap_err().to_string();
    assert_eq!(refused, "Failed: 'nobody' is not a member of the cluster.");
    nodes[2].stop().await;
    let down = nodes[0].ring_ready().await;
    assert_eq!(down, RingReady::Down(vec!["node3@test".into()]));
    nodes[0].mark_down("node3@test").await.unwrap();
    let status = |node: &MemberNode| node.metadata().members()[&nodes[2].node().id()].status;
    until("it is marked", || status(&nodes[0]) == MemberStatus::Down).await;
    drop(places);
    stop(&nodes[..2]).await;
}
