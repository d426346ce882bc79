//! A member that has just started, and has to hear of the others.

use super::*;

/// Five members on disks that detect failures.
async fn cluster_that_detects() -> (Vec<Place>, Vec<MemberNode>) {
    let mut places: Vec<Place> = (1..=5).map(|number| Place { detects: true, ..Place::durable(number) }).collect();
    let mut nodes = Vec::new();
    for place in &mut places {
        let node = place.start().await;
        place.listen = node.node().listens_on();
        nodes.push(node);
    }
    form(&nodes).await;
    for node in &nodes {
        let others: Vec<NodeId> = nodes.iter().map(|node| node.inner.id()).collect();
        until("all members are up", || others.iter().all(|other| node.inner.is_up(*other))).await;
    }
    (places, nodes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_has_just_started_finds_what_the_others_have() {
    const KEYS: usize = 60;
    let (places, mut nodes) = cluster_that_detects().await;
    for number in 0..KEYS {
        put(&nodes[0], bucket(), &format!("k{number}"), 3).await.unwrap();
    }
    end(nodes.remove(1)).await;
    let node = places[1].start().await;
    node.wait_for_members_up().await;
    for number in 0..KEYS {
        assert!(is_found(&node, bucket(), &format!("k{number}")).await, "key {number}");
    }
    nodes.push(node);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_has_just_joined_knows_who_is_up() {
    let (_places, mut nodes) = cluster_that_detects().await;
    let place = Place { detects: true, ..Place::memory(6) };
    let joiner = place.start().await;
    joiner.join(nodes[2].node().listens_on()).await.unwrap();
    joiner.wait_for_all_members_up().await;
    for node in &nodes {
        assert!(joiner.inner.is_up(node.inner.id()), "{}", name_of(node));
    }
    nodes.push(joiner);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_does_not_wait_for_those_that_do_not_run() {
    let (places, mut nodes) = cluster_that_detects().await;
    end(nodes.remove(4)).await;
    end(nodes.remove(1)).await;
    let node = places[1].start().await;
    let began_at = Instant::now();
    node.wait_for_members_up().await;
    assert!(began_at.elapsed() < node.inner.timing.question, "it waited for a member that does not run");
    for other in &nodes {
        assert!(node.inner.is_up(other.inner.id()));
    }
    nodes.push(node);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_held_up_for_one_question_by_one_that_has_answered_and_is_not_up() {
    let place = Place { detects: true, ..Place::memory(1) };
    let node = place.start().await;
    node.inner.own_directory.note_answered(NodeId::new(7));
    let began_at = Instant::now();
    node.wait_for_members_up().await;
    assert!(began_at.elapsed() >= node.inner.timing.question, "it took a member for up of which it has not heard");
    end(node).await;
}
