//! Members that are lost one after the other, as docs/operations.md tells operators to deal with
//! them: each key of a bucket has two copies.

use super::ring_change_objects::carry_out;
use super::*;
use ombak_metadata::state::MemberStatus;
use serde_json::json;

const KEYS: usize = 120;

/// Nodes that detect failures, alone, numbered from 1.
async fn watchful(count: usize) -> (Vec<Place>, Vec<MemberNode>) {
    let places: Vec<Place> = (1..=count).map(|number| Place { detects: true, ..Place::memory(number) }).collect();
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(place.start().await);
    }
    (places, nodes)
}

/// Writes keys of which there are two copies.
async fn write_twice(nodes: &[MemberNode]) -> Vec<String> {
    let two = props(json!({"n_val": 2}));
    change(&nodes[0], move |registry| registry.set_bucket(&bucket(), &two)).await.unwrap();
    let keys: Vec<String> = (0..KEYS).map(|number| format!("k{number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        let give_up_at = Instant::now() + PATIENCE;
        while let Err(why) = put(&nodes[number % nodes.len()], bucket(), key, 2).await {
            assert!(Instant::now() < give_up_at, "{key}: {why}");
        }
    }
    keys
}

fn number_of_a_follower(nodes: &[MemberNode]) -> usize {
    nodes.iter().position(|node| !node.inner.metadata_node().is_leader()).unwrap()
}

/// A member that does not lead, and has the only other copy of some keys of a member that is lost.
fn number_of_a_partner(nodes: &[MemberNode], lost: NodeId) -> usize {
    let placement = nodes[0].kv().placement();
    let sets = placement.homes().map(|home| home.replica_set(2)).filter(|set| set.contains(&lost));
    let partners: BTreeSet<NodeId> = sets.flatten().collect();
    let is_partner = |node: &MemberNode| partners.contains(&node.node().id());
    nodes.iter().position(|node| is_partner(node) && !node.inner.metadata_node().is_leader()).unwrap()
}

/// Waits until all have heard of each other that nothing is owed and nothing is held for others.
async fn until_told(nodes: &[MemberNode]) {
    let is_told = |node: &MemberNode| {
        let mut others = nodes.iter().map(|other| other.node().id()).filter(|other| *other != node.node().id());
        others.all(|other| {
            node.inner.told_by(other).is_some_and(|state| state.owed.is_empty() && state.foreign_bytes.is_empty())
        })
    };
    until("all have heard of each other", || nodes.iter().all(is_told)).await;
}

/// Ends a member for ever, and marks it as down. Returns its name.
async fn lose(nodes: &mut Vec<MemberNode>, number: usize) -> String {
    let lost = nodes.remove(number);
    let lost_name = name_of(&lost);
    end(lost).await;
    let give_up_at = Instant::now() + PATIENCE;
    while let Err(why) = nodes[0].mark_down(&lost_name).await {
        assert!(Instant::now() < give_up_at, "{why}");
    }
    lost_name
}

async fn until_settlement(node: &MemberNode) {
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let settlement = node.settlement().await;
        if settlement.is_settled() {
            return;
        }
        assert!(Instant::now() < give_up_at, "{settlement:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn all_are_found(node: &MemberNode, keys: &[String]) {
    for key in keys {
        assert!(is_found(node, bucket(), key).await, "{key}");
    }
}

/// The member that joins takes nothing, so the change cannot end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_settled_only_when_the_committed_ring_is_in_force() {
    let (_places, mut nodes) = watchful(6).await;
    let late = nodes.pop().unwrap();
    form(&nodes).await;
    let keys = write_twice(&nodes).await;
    until_settlement(&nodes[0]).await;

    late.join(nodes[0].node().listens_on()).await.unwrap();
    let settlement = nodes[1].settlement().await;
    let joins = Unfinished { member: name_of(&late), status: MemberStatus::Joining };
    assert_eq!((settlement.is_settled(), settlement.unfinished), (false, vec![joins]), "the join is not committed");

    late.node().repair().set_handoff(true, false);
    nodes.iter().for_each(|node| node.node().repair().set_handoff(false, false));
    let lost = number_of_a_follower(&nodes);
    let lost_name = lose(&mut nodes, lost).await;
    let replace = MemberChange::ForceReplace { node: lost_name, with: name_of(&late) };
    carry_out(&nodes[0], &[replace]).await;
    // Whichever member is asked, and before the first step, too.
    for _ in 0..3 {
        for node in nodes.iter().chain([&late]) {
            let settlement = node.settlement().await;
            let change = settlement.ring_change.as_ref();
            assert!(!settlement.is_settled(), "{settlement:?}");
            assert!(change.is_some_and(|change| change.left() > 0), "{settlement:?}");
        }
    }
    nodes.iter().chain([&late]).for_each(|node| node.node().repair().set_handoff(true, true));
    for node in &nodes {
        node.node().repair().retry_transfers();
    }
    until_settlement(&nodes[0]).await;
    nodes.push(late);
    let placement = nodes[0].kv().placement();
    assert!(placement.is_settled() && nodes.iter().all(|node| node.kv().placement() == placement));

    // So the next loss destroys nothing.
    until_told(&nodes).await;
    let lost = number_of_a_follower(&nodes);
    let lost_name = lose(&mut nodes, lost).await;
    carry_out(&nodes[0], &[MemberChange::ForceRemove(lost_name)]).await;
    until_settlement(&nodes[0]).await;
    all_are_found(&nodes[0], &keys).await;
    stop(&nodes).await;
}

/// The second member is lost before the copies of the first one were made anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_would_destroy_data_says_so_and_needs_one_more_word() {
    let (_places, mut nodes) = watchful(6).await;
    let late = nodes.pop().unwrap();
    form(&nodes).await;
    let keys = write_twice(&nodes).await;
    until_settlement(&nodes[0]).await;
    late.join(nodes[0].node().listens_on()).await.unwrap();
    until_told(&nodes).await;
    let lost = number_of_a_follower(&nodes);
    let lost_id = nodes[lost].node().id();
    let first = lose(&mut nodes, lost).await;
    nodes.iter().chain([&late]).for_each(|node| node.node().repair().set_handoff(false, false));
    nodes[0].stage(&MemberChange::ForceReplace { node: first, with: name_of(&late) }).await.unwrap();
    let shown = nodes[0].plan().await.unwrap().unwrap();
    let losses = nodes[0].losses(&shown.plan).await.unwrap();
    assert!(!losses.is_any(), "each partition has a second copy: {losses:?}");
    nodes[0].commit().await.unwrap();

    let partner = number_of_a_partner(&nodes, lost_id);
    let second = lose(&mut nodes, partner).await;
    nodes[0].stage(&MemberChange::ForceRemove(second.clone())).await.unwrap();
    let shown = nodes[0].plan().await.unwrap().unwrap();
    let losses = nodes[0].losses(&shown.plan).await.unwrap();
    let told = losses.partition_count();
    assert!(losses.is_any() && (1..16).contains(&told), "{losses:?}");
    assert_eq!(
        losses.partitions.keys().copied().collect::<Vec<_>>(),
        [2],
        "three copies are not lost with two members"
    );
    let text = losses.text();
    assert!(text.contains(&format!("{told} of 16 partitions have no other full replica (n_val 2)")), "{text}");
    let refused = nodes[1].commit().await.unwrap_err();
    assert!(matches!(&refused, ClusterError::DestroysData(found) if **found == losses), "{refused}");
    assert!(refused.to_string().contains("nothing was committed"), "{refused}");
    assert!(nodes[0].metadata().members().values().any(|member| member.name == second), "nothing has changed");

    nodes.push(late);
    nodes[1].commit_accepting_loss().await.unwrap();
    nodes.iter().for_each(|node| node.node().repair().set_handoff(true, true));
    nodes.iter().for_each(|node| node.node().repair().retry_transfers());
    until_settlement(&nodes[0]).await;
    let mut missing = 0;
    for key in &keys {
        missing += usize::from(!is_found(&nodes[0], bucket(), key).await);
    }
    assert!(missing > 0 && missing < KEYS, "{missing} of {KEYS} keys were lost, as was said");
    stop(&nodes).await;
}

/// A write has reached one of its two replicas, and that one is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_member_still_owed_to_others_counts_as_lost() {
    let (_places, mut nodes) = watchful(4).await;
    form(&nodes).await;
    let _ = write_twice(&nodes).await;
    until_settlement(&nodes[0]).await;
    let lost = number_of_a_follower(&nodes);
    let lost_name = name_of(&nodes[lost]);
    // Nothing is handed over from now on, so what it owes stays owed.
    nodes.iter().for_each(|node| node.node().repair().set_handoff(false, false));
    // A put with a smaller n_val owes the copies that it does not make.
    let mut number = 0;
    while nodes[lost].kv().owed_marks().is_empty() {
        number += 1;
        let key = Some(Bytes::from(format!("owed{number}")));
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("v")] };
        let options = PutOptions { n_val: Some(1), w: Some(Quorum::Count(1)), ..PutOptions::default() };
        nodes[lost].kv().put(PutRequest { bucket: bucket(), key, object, options }).await.unwrap();
        assert!(number < 1000, "this member coordinates no put");
    }
    let (class, peer) = nodes[lost].kv().owed_marks()[0];
    let is_told = |node: &MemberNode, of: NodeId| {
        node.inner
            .told_by(of)
            .is_some_and(|state| state.owed.get(&peer).is_some_and(|owed| owed.contains(class.partition, 2)))
    };
    let lost_id = nodes[lost].node().id();
    let others: Vec<MemberNode> = nodes.iter().filter(|node| node.node().id() != lost_id).cloned().collect();
    until("the others have heard what it owes", || others.iter().all(|node| is_told(node, lost_id))).await;
    lose(&mut nodes, lost).await;
    nodes[0].stage(&MemberChange::ForceRemove(lost_name)).await.unwrap();
    let shown = nodes[0].plan().await.unwrap().unwrap();
    let losses = nodes[0].losses(&shown.plan).await.unwrap();
    assert_eq!(losses.partitions.get(&2), Some(&vec![class.partition]), "{losses:?}");
    assert!(matches!(nodes[0].commit().await, Err(ClusterError::DestroysData(_))));
    stop(&nodes).await;
}
