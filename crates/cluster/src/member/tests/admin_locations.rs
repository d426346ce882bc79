//! Where members are, and a ring that is spread over locations.

use super::*;
use ombak_ring::{Location, Ring};

fn at(node: usize, location: &str) -> MemberChange {
    MemberChange::SetLocation { node: name(node), location: location.into() }
}

/// Stages changes, plans and commits. Returns the text of the plan.
async fn carry_out(node: &MemberNode, changes: &[MemberChange]) -> String {
    for change in changes {
        node.stage(change).await.unwrap();
    }
    let shown = node.plan().await.unwrap().unwrap().text();
    node.commit().await.unwrap();
    shown
}

/// The locations of the members, by their names.
fn locations(node: &MemberNode) -> Vec<(String, Option<String>)> {
    let metadata = node.metadata();
    metadata.members().values().map(|m| (m.name.clone(), m.location.map(String::from))).collect()
}

async fn until_all_know(nodes: &[MemberNode], expected: &[Option<&str>]) {
    let mut expected: Vec<(String, Option<String>)> =
        (1..).zip(expected).map(|(number, at)| (name(number), at.map(ToOwned::to_owned))).collect();
    expected.sort();
    until("all members know all locations", || {
        nodes.iter().all(|node| {
            let mut known = locations(node);
            known.sort();
            known == expected
        })
    })
    .await;
}

async fn until_ready(node: &MemberNode) {
    let give_up_at = Instant::now() + PATIENCE;
    while !matches!(node.ring_ready().await, RingReady::Ready(_)) {
        assert!(Instant::now() < give_up_at, "{:?}", node.ring_ready().await);
    }
}

/// Whether neighbouring partitions are at distinct locations everywhere.
fn is_spread(node: &MemberNode) -> bool {
    let (ring, locations): (Arc<Ring>, _) = (node.kv().ring(), node.metadata().locations());
    let of: Vec<Location> = ring.owners().map(|owner| locations[&owner]).collect();
    (0..of.len()).all(|p| of[p] != of[(p + 1) % of.len()])
}

/// Riak's scenario: a ring is spread over locations, and another name for one moves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn location() {
    let (_places, nodes) = alone(5).await;
    form(&nodes[..4]).await;
    let refused = async |change: MemberChange| nodes[1].stage(&change).await.unwrap_err().to_string();
    assert_eq!(refused(at(5, "rack 1")).await, "Failed: 'node5@test' is not a member of the cluster.");
    assert_eq!(refused(at(1, "")).await, "Failed: the name of a location must not be empty.");
    let said = nodes[1].stage(&at(1, "rack 1")).await.unwrap();
    assert_eq!(said.text, "Success: staged changing location of node 'node1@test' to rack 1");
    let text = carry_out(&nodes[2], &[at(2, "rack 1"), at(3, "rack 2"), at(4, "rack 2")]).await;
    for line in ["set-location  'node2@test' to rack 1", "WARNING: Not all replicas will be on distinct locations"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.contains("'node4@test' (rack 2)\n"), "{text}");
    let racks = [Some("rack 1"), Some("rack 1"), Some("rack 2"), Some("rack 2")];
    until_all_know(&nodes[..4], &racks).await;
    assert!(is_spread(&nodes[0]));
    let facts = nodes[3].facts().await;
    assert!(facts.members.iter().all(|member| member.location.is_some()));

    // Another name for the same place moves nothing.
    let text = carry_out(&nodes[0], &[at(3, "cellar"), at(4, "cellar")]).await;
    assert!(!text.contains("transfers from"), "{text}");

    // A node may join and get its location with the same plan.
    nodes[4].join(nodes[0].node().listens_on()).await.unwrap();
    carry_out(&nodes[4], &[at(5, "roof")]).await;
    let after = [Some("rack 1"), Some("rack 1"), Some("cellar"), Some("cellar"), Some("roof")];
    until_all_know(&nodes, &after).await;
    until("all follow the ring", || nodes.iter().all(|node| node.kv().ring().node_count() == 5)).await;
    assert!(is_spread(&nodes[4]));
    stop(&nodes).await;
}

/// The goal of a change by steps brings the locations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_location_is_set_while_another_member_leaves_and_survives_restarts() {
    let (places, mut nodes) = alone_on_disks(3).await;
    form(&nodes).await;
    carry_out(&nodes[0], &[at(1, "east"), at(3, "west"), MemberChange::Leave(name(3))]).await;
    tokio::time::timeout(PATIENCE, nodes[2].left()).await.expect("it has left");
    until_all_know(&nodes[..2], &[Some("east"), None]).await;
    until_ready(&nodes[1]).await;
    carry_out(&nodes[1], &[at(2, "west")]).await;
    until_all_know(&nodes[..2], &[Some("east"), Some("west")]).await;
    for (number, place) in places.iter().enumerate().take(2) {
        end(nodes.remove(number)).await;
        nodes.insert(number, place.start().await);
    }
    until_all_know(&nodes[..2], &[Some("east"), Some("west")]).await;
    stop(&nodes).await;
}

/// Riak's scenario: the location of a member goes with it, and the location of a replacement is set
/// when it is a member.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn location_leave() {
    let (_places, nodes) = alone(4).await;
    form(&nodes[..3]).await;
    carry_out(&nodes[0], &[at(1, "east"), at(2, "west"), at(3, "west")]).await;
    nodes[3].join(nodes[0].node().listens_on()).await.unwrap();
    nodes[0].stage(&at(4, "withdrawn")).await.unwrap();
    let said = nodes[0].stage(&MemberChange::Leave(name(4))).await.unwrap();
    assert!(said.is_withdrawal && said.text.starts_with("Success: 'node4@test' does not join any more"), "{said:?}");
    assert!(nodes[0].plan().await.unwrap().is_none(), "what was staged for the node goes with its join");
    let give_up_at = Instant::now() + PATIENCE;
    while let Err(why) = nodes[3].join(nodes[0].node().listens_on()).await {
        assert!(Instant::now() < give_up_at, "{why}");
    }
    nodes[0].stage(&MemberChange::Replace { node: name(3), with: name(4) }).await.unwrap();
    let refused = nodes[0].stage(&at(4, "west")).await.unwrap_err().to_string();
    assert!(refused.starts_with("Failed: 'node4@test' is staged to replace another node."), "{refused}");
    nodes[0].clear().await.unwrap();
    until("the joiner is gone", || nodes[..3].iter().all(|node| node.metadata().members().len() == 3)).await;
    until_ready(&nodes[1]).await;
    let text = carry_out(&nodes[1], &[MemberChange::Leave(name(3))]).await;
    assert!(text.contains("WARNING: Not all replicas will be on distinct locations"), "{text}");
    tokio::time::timeout(PATIENCE, nodes[2].left()).await.expect("it has left");
    until_all_know(&nodes[..2], &[Some("east"), Some("west")]).await;
    assert!(is_spread(&nodes[0]));
    stop(&nodes).await;
}

/// Riak's scenario: some members run an earlier version. It understands neither a staged location
/// nor a member that has one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn location_upgrade() {
    let place = |number, speaks| Place { speaks, ..Place::durable(number) };
    let mut places = [place(1, Speaks::Everything), place(2, Speaks::Version1), place(3, Speaks::Version1)];
    let mut nodes = [places[0].start().await, places[1].start().await].to_vec();
    form(&nodes).await;
    for (place, node) in places.iter_mut().zip(&nodes) {
        place.listen = node.node().listens_on();
    }
    let refused = nodes[0].stage(&at(1, "rack 1")).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "Failed: not all members know locations of nodes. An earlier version of ombak runs on 'node2@test': upgrade it \
         there first."
    );
    assert!(nodes[0].plan().await.unwrap().is_none(), "nothing is staged");
    places[1].speaks = Speaks::Everything;
    end(nodes.pop().unwrap()).await;
    nodes.push(places[1].start().await);
    until("the first knows what the second speaks now", || nodes[0].check_all_can(Feature::LOCATIONS).is_ok()).await;
    until_ready(&nodes[0]).await;
    carry_out(&nodes[0], &[at(1, "rack 1")]).await;
    until_all_know(&nodes, &[Some("rack 1"), None]).await;
    let older = places[2].start().await;
    let refused = older.join(nodes[0].node().listens_on()).await.unwrap_err().to_string();
    assert!(refused.starts_with("Failed: Unable to get ring from"), "{refused}");
    assert_eq!(nodes[0].metadata().members().len(), 2);
    end(older).await;
    places[2].speaks = Speaks::Everything;
    nodes.push(places[2].start().await);
    nodes[2].join(nodes[0].node().listens_on()).await.unwrap();
    carry_out(&nodes[0], &[]).await;
    until_all_know(&nodes, &[Some("rack 1"), None, None]).await;
    stop(&nodes).await;
}
