//! Changes of the ring by steps: leave, replace, force-remove, and what happens in their middle.

use super::*;
use ombak_metadata::state::MemberStatus;
use ombak_ring::Ring;
use std::sync::atomic::{AtomicU64, Ordering};

/// Stages changes on a node, plans and commits.
async fn carry_out(node: &MemberNode, changes: &[MemberChange]) {
    for change in changes {
        node.stage(change).await.unwrap();
    }
    let shown = node.plan().await.unwrap();
    assert!(shown.is_some());
    node.commit().await.unwrap();
}

fn owners(ring: &Ring, node: &MemberNode) -> Vec<usize> {
    let of = |(partition, owner)| (owner == node.node().id()).then_some(partition);
    ring.owners().enumerate().filter_map(of).collect()
}

/// Waits until all of these nodes have all homes at the ring of the first one.
async fn until_settled(nodes: &[&MemberNode]) {
    until("all homes have the ring that is wanted", || {
        let placement = nodes[0].kv().placement();
        placement.is_settled() && nodes.iter().all(|node| node.kv().placement() == placement)
    })
    .await;
}

async fn until_gone(member: &MemberNode, from: &[&MemberNode]) {
    let id = member.node().id();
    until("the member is gone", || {
        from.iter().all(|node| node.metadata().was_removed(id) && !node.metadata().members().contains_key(&id))
    })
    .await;
}

async fn serves_nobody(node: &MemberNode) {
    let id = node.node().id();
    until("the node serves nobody", || !node.kv().is_open()).await;
    let refused = put(node, bucket(), "k", 1).await.unwrap_err().to_string();
    assert!(refused.contains("was removed from its cluster"), "{id}: {refused}");
    let why = node.plan().await.unwrap_err().to_string();
    assert!(why.contains("is no member of its cluster any more"), "{id}: {why}");
    assert!(why.contains("only with an empty data directory"), "{id}: {why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_hands_over_and_leaves_and_its_process_may_end() {
    let (_places, nodes) = cluster(4).await;
    let said = nodes[1].stage(&MemberChange::Leave(name(4))).await.unwrap();
    assert_eq!((said.text.as_str(), said.is_withdrawal), ("Success: staged leave request for 'node4@test'", false));
    let not_planned = nodes[0].commit().await.unwrap_err().to_string();
    assert!(not_planned.contains("The plan has changed") || not_planned.contains("must verify"), "{not_planned}");
    let text = nodes[2].plan().await.unwrap().unwrap().text();
    assert!(text.contains("leave          'node4@test'"), "{text}");
    nodes[0].commit().await.unwrap();
    let again = nodes[0].stage(&MemberChange::Leave(name(4))).await.unwrap_err().to_string();
    assert_eq!(again, "'node4@test' is already in the process of leaving the cluster.");
    let stay: Vec<&MemberNode> = nodes[..3].iter().collect();
    tokio::time::timeout(PATIENCE, nodes[3].left()).await.expect("it has left");
    until_gone(&nodes[3], &stay).await;
    until_settled(&stay).await;
    assert_eq!(nodes[0].kv().ring().node_count(), 3);
    assert!(nodes[0].ring_change().await.is_none(), "nothing changes any more");
    serves_nobody(&nodes[3]).await;
    put(&nodes[0], bucket(), "k", 3).await.unwrap();
    assert!(is_found(&nodes[2], bucket(), "k").await);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_takes_exactly_the_partitions_of_the_member_that_it_replaces() {
    let (_places, nodes) = alone(4).await;
    form(&nodes[..3]).await;
    let replaced = owners(&nodes[0].kv().ring(), &nodes[1]);
    let change = MemberChange::Replace { node: name(2), with: name(4) };
    let refused = nodes[0].stage(&change).await.unwrap_err().to_string();
    assert_eq!(refused, "Failed: 'node4@test' is not a member of the cluster.");
    nodes[3].join(nodes[0].node().listens_on()).await.unwrap();
    let member = MemberChange::Replace { node: name(2), with: name(3) };
    let refused = nodes[0].stage(&member).await.unwrap_err().to_string();
    assert!(refused.contains("is not a valid replacement candidate"), "{refused}");
    carry_out(&nodes[0], &[change]).await;
    let stay = [&nodes[0], &nodes[2], &nodes[3]];
    until_gone(&nodes[1], &stay).await;
    until_settled(&stay).await;
    assert_eq!(owners(&nodes[0].kv().ring(), &nodes[3]), replaced);
    serves_nobody(&nodes[1]).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_lost_is_removed_by_force_and_told_so_when_it_returns() {
    let (places, mut nodes) = alone_on_disks(4).await;
    form(&nodes).await;
    let leader = nodes.iter().position(|node| node.inner.metadata_node().is_leader()).unwrap();
    let refused = nodes[leader].stage(&MemberChange::ForceRemove(name(leader + 1))).await.unwrap_err().to_string();
    assert!(refused.contains("is the claimant"), "{refused}");
    let lost = if leader == 3 { 2 } else { 3 };
    end(nodes.remove(lost)).await;
    nodes[0].mark_down(&name(lost + 1)).await.unwrap();
    let force = MemberChange::ForceRemove(name(lost + 1));
    carry_out(&nodes[0], &[force]).await;
    let stay: Vec<&MemberNode> = nodes.iter().collect();
    until_settled(&stay).await;
    assert_eq!((nodes[0].kv().ring().node_count(), nodes[0].metadata().members().len()), (3, 3));
    for start in 0..2 {
        let returned = places[lost].start().await;
        serves_nobody(&returned).await;
        let ended = tokio::time::timeout(Duration::from_millis(20), returned.left()).await;
        assert!(ended.is_err(), "start {start}: it stays, so that an operator sees why");
        end(returned).await;
    }
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_plan_or_commit_names_the_nodes_that_do_not_answer_and_what_to_do() {
    let (_places, nodes) = alone(5).await;
    form(&nodes[..4]).await;
    nodes[4].join(nodes[0].node().listens_on()).await.unwrap();
    nodes[0].stage(&MemberChange::Leave(name(2))).await.unwrap();
    assert!(nodes[0].plan().await.unwrap().is_some());
    nodes[3].stop().await;
    let down = "Mark a member that is lost as down ('ombak admin down NODE').";
    let take_back = "Take back the join of a node that is lost ('ombak admin cluster leave NODE').";
    let refused = nodes[0].commit().await.unwrap_err().to_string();
    let named = "These nodes do not answer: ['node4@test']. Start them.";
    assert!(refused.contains("The plan has changed"), "{refused}");
    assert!(refused.ends_with(&format!("\n{named}\n{down}")), "{refused}");
    nodes[4].stop().await;
    let refused = nodes[0].plan().await.unwrap_err().to_string();
    assert!(refused.contains("Cannot plan until cluster state has converged"), "{refused}");
    let text = format!("These nodes do not answer: ['node4@test','node5@test']. Start them.\n{down}\n{take_back}");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (said, expected) = (lines(&refused), lines(&text));
    assert_eq!(said[said.len() - 2..], expected[1..]);
    assert!(["node4@test", "node5@test"].iter().all(|node| said[said.len() - 3].contains(node)), "{refused}");
    // What it says helps.
    nodes[0].mark_down(&name(4)).await.unwrap();
    nodes[0].stage(&MemberChange::Leave(name(5))).await.unwrap();
    // The other members have to hear of both first.
    let end = Instant::now() + PATIENCE;
    while let Err(refused) = nodes[0].plan().await {
        assert!(Instant::now() < end, "{refused}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    carry_out(&nodes[0], &[]).await;
    stop(&nodes).await;
}

/// The member returns when nobody is there who could tell it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_left_knows_that_at_its_next_start() {
    let places: Vec<Place> = (1..=2).map(Place::durable).collect();
    let nodes = [places[0].start().await, places[1].start().await];
    form(&nodes).await;
    carry_out(&nodes[0], &[MemberChange::Leave(name(2))]).await;
    tokio::time::timeout(PATIENCE, nodes[1].left()).await.expect("it has left");
    serves_nobody(&nodes[1]).await;
    stop(&nodes).await;
    drop(nodes);
    let node = places[1].start().await;
    serves_nobody(&node).await;
    end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_goes_on_when_its_driver_dies() {
    let (_places, nodes) = cluster(5).await;
    until("three or five vote", || nodes[0].inner.metadata_node().voters().len() >= 3).await;
    let leader = nodes.iter().position(|node| node.inner.metadata_node().is_leader()).unwrap();
    let leaver = (leader + 1) % 5;
    let other = (leader + 2) % 5;
    carry_out(&nodes[other], &[MemberChange::Leave(name(leaver + 1))]).await;
    nodes[leader].stop().await;
    let give_up_at = Instant::now() + PATIENCE;
    while let Err(why) = nodes[other].mark_down(&name(leader + 1)).await {
        assert!(Instant::now() < give_up_at, "{why}");
    }
    tokio::time::timeout(PATIENCE, nodes[leaver].left()).await.expect("it has left");
    let stay: Vec<&MemberNode> = (2..5).map(|nth| &nodes[(leader + nth) % 5]).collect();
    until_gone(&nodes[leaver], &stay).await;
    until_settled(&stay).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_waits_for_a_member_that_restarts_in_its_middle() {
    let (places, mut nodes) = alone_on_disks(4).await;
    form(&nodes).await;
    let leader = nodes.iter().position(|node| node.inner.metadata_node().is_leader()).unwrap();
    let (leaver, restarted) = ((leader + 1) % 4, (leader + 2) % 4);
    carry_out(&nodes[leader], &[MemberChange::Leave(name(leaver + 1))]).await;
    let node = nodes.remove(restarted);
    node.stop().await;
    let before = node.kv().placement().version();
    end(node).await;
    nodes.insert(restarted, places[restarted].start().await);
    assert!(nodes[restarted].kv().placement().version() >= before, "it never goes back");
    let facts = nodes[restarted].ring_change().await;
    assert!(facts.is_none_or(|facts| facts.homes == RING_SIZE));
    tokio::time::timeout(PATIENCE, nodes[leaver].left()).await.expect("it has left");
    let stay: Vec<&MemberNode> = (0..4).filter(|number| *number != leaver).map(|number| &nodes[number]).collect();
    until_gone(&nodes[leaver], &stay).await;
    until_settled(&stay).await;
    assert!(stay.iter().all(|node| node.metadata().members().values().all(|m| m.status == MemberStatus::Valid)));
    stop(&nodes).await;
}

/// Nobody else would do what they have left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_leaves_when_its_jobs_have_ended() {
    let (_places, nodes) = cluster(4).await;
    let jobs = Arc::new(AtomicU64::new(2));
    let counted = jobs.clone();
    nodes[3].kv().count_jobs_with(Box::new(move || counted.load(Ordering::SeqCst)));
    carry_out(&nodes[0], &[MemberChange::Leave(name(4))]).await;
    let stay: Vec<&MemberNode> = nodes[..3].iter().collect();
    until_settled(&stay).await;
    until("it knows that it leaves", || nodes[3].kv().is_leaving()).await;
    let said = nodes[0].settlement().await;
    let of_leaver = said.members.iter().find(|member| member.member == name(4)).and_then(|member| member.counts);
    assert_eq!(of_leaver.map(|counts| counts.key_jobs), Some(2));
    assert!(tokio::time::timeout(Duration::from_secs(2), nodes[3].left()).await.is_err(), "it has jobs");
    let status = |node: &MemberNode| node.metadata().members().get(&nodes[3].node().id()).map(|member| member.status);
    assert_eq!(status(&nodes[0]), Some(MemberStatus::Leaving));
    jobs.store(0, Ordering::SeqCst);
    tokio::time::timeout(PATIENCE, nodes[3].left()).await.expect("it has left");
    until_gone(&nodes[3], &stay).await;
    stop(&nodes).await;
}
