//! New nodes whose configuration names peers, and the return of a member whose directory is lost.

use super::ring_change_objects::{all_have, until_at_rest, with_objects};
use super::*;
use ombak_kv::NoPart;
use ombak_metadata::state::MemberStatus;
use std::sync::atomic::{AtomicU8, Ordering};

fn refuses(node: &MemberNode) -> bool {
    node.kv().no_part() == Some(NoPart::AwaitsPeers)
}

fn addresses(nodes: &[MemberNode]) -> Vec<SocketAddr> {
    nodes.iter().map(|node| node.node().listens_on()).collect()
}

/// An address at which nobody listens: no other test uses its host.
fn nowhere() -> SocketAddr {
    static HOSTS: AtomicU8 = AtomicU8::new(1);
    let host = [127, 0, 251, HOSTS.fetch_add(1, Ordering::Relaxed)];
    std::net::TcpListener::bind(SocketAddr::from((host, 0))).unwrap().local_addr().unwrap()
}

/// An empty place for the node with a number, which listens where another one did.
fn in_place_of(place: &Place, peers: Vec<SocketAddr>) -> Place {
    Place { listen: place.listen, peers, ..Place::durable(place.number) }
}

async fn start_and_wait_for_answers(place: &Place) -> MemberNode {
    let node = place.start().await;
    let told = |node: &MemberNode| node.awaits().is_none_or(|why| why != "its peers have not answered yet");
    until("its peers have answered", || told(&node)).await;
    node
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_directory_is_lost_serves_nobody_and_rejoins_under_its_name() {
    let (places, nodes) = alone_on_disks(4).await;
    form(&nodes).await;
    let keys = with_objects(&nodes).await;
    let (lost_id, lost_name) = (nodes[3].node().id(), name_of(&nodes[3]));
    nodes[3].stop().await;
    let place = in_place_of(&places[3], addresses(&nodes));
    let back = start_and_wait_for_answers(&place).await;
    assert!(refuses(&back), "it would answer that nothing is there");
    assert!(!back.settlement().await.is_settled(), "it knows nothing of the others");
    let why = back.awaits().unwrap();
    assert!(why.contains("member 'node4@test'") && why.contains("cluster rejoin"), "{why}");
    let request = GetRequest { bucket: bucket(), key: "before 0".into(), options: GetOptions::default() };
    let refused = back.kv().get(request).await.unwrap_err().to_string();
    assert!(refused.contains("waits for its peers"), "{refused}");
    // It does so after a restart, too: it has a directory by now.
    end(back).await;
    let back = start_and_wait_for_answers(&place).await;
    assert!(refuses(&back));
    assert_eq!(back.rejoin(None).await.unwrap(), lost_name);
    assert!(!refuses(&back) && back.awaits().is_none());
    assert!(is_found(&back, bucket(), &keys[0]).await, "its clients reach the members");
    let staged = nodes[0].plan().await.unwrap().unwrap();
    assert!(staged.text().contains("All of 'node4@test' replicas will be lost"), "{}", staged.text());
    nodes[0].commit().await.unwrap();
    let members: Vec<&MemberNode> = nodes[..3].iter().chain([&back]).collect();
    until_at_rest(&members).await;
    all_have(&members, &keys).await;
    let has_its_name = |node: &MemberNode| {
        let metadata = node.metadata();
        let member = metadata.members().get(&back.node().id()).cloned();
        !metadata.members().contains_key(&lost_id)
            && member.is_some_and(|member| member.name == lost_name && member.status == MemberStatus::Valid)
    };
    until("it has its name again", || members.iter().all(|node| has_its_name(node))).await;
    // It is no new node any more.
    end(back).await;
    let back = place.start().await;
    assert!(back.awaits().is_none() && !refuses(&back));
    stop(&nodes[..3]).await;
    back.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_rejoin_is_taken_back_serves_nobody_again() {
    let (places, nodes) = alone_on_disks(3).await;
    form(&nodes).await;
    nodes[2].stop().await;
    let back = start_and_wait_for_answers(&in_place_of(&places[2], addresses(&nodes))).await;
    back.rejoin(Some(nodes[0].node().listens_on())).await.unwrap();
    assert!(!refuses(&back));
    nodes[0].clear().await.unwrap();
    until("it waits again", || refuses(&back) && back.awaits().is_some()).await;
    back.rejoin(None).await.unwrap();
    assert!(!refuses(&back));
    stop(&nodes[..2]).await;
    back.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_runs_is_not_lost() {
    let (_places, nodes) = alone_on_disks(3).await;
    form(&nodes).await;
    // It has the name of a member, and another address.
    let twin = Place { peers: addresses(&nodes), ..Place::durable(3) };
    let twin = start_and_wait_for_answers(&twin).await;
    assert!(refuses(&twin));
    let refused = twin.rejoin(None).await.unwrap_err().to_string();
    assert!(refused.contains("'node3@test' runs at"), "{refused}");
    assert!(refuses(&twin));
    assert_eq!(nodes[0].metadata().members().len(), 3);
    stop(&nodes).await;
    twin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_whose_peers_do_not_know_it_is_a_cluster_of_its_own_and_joins() {
    let (_places, nodes) = cluster(2).await;
    let place = Place { peers: addresses(&nodes), ..Place::memory(3) };
    let node = place.start().await;
    assert!(node.awaits().is_none() && !refuses(&node));
    put(&node, bucket(), "k", 1).await.unwrap();
    node.join(nodes[0].node().listens_on()).await.unwrap();
    stop(&nodes).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_answer_a_new_node_waits_until_peers_answer_or_an_operator_decides() {
    let silent = nowhere();
    let place = Place { peers: vec![silent], ..Place::durable(1) };
    let node = start_and_wait_for_answers(&place).await;
    let why = node.awaits().unwrap();
    assert!(refuses(&node) && why.contains(&silent.to_string()) && why.contains("cluster alone"), "{why}");
    // Nobody joins a node that may be the ruin of a member.
    let other = Place::memory(2).start().await;
    let refused = other.join(node.node().listens_on()).await;
    assert!(refused.is_err(), "{refused:?}");
    node.go_on_alone().await.unwrap();
    assert!(node.awaits().is_none() && !refuses(&node));
    assert!(node.go_on_alone().await.is_err(), "it does not wait");
    end(node).await;
    let node = place.start().await;
    assert!(node.awaits().is_none() && !refuses(&node), "an operator has decided");
    node.stop().await;
    // The same without an operator, when the peer is there.
    let place = Place { peers: vec![silent], ..Place::memory(3) };
    let node = start_and_wait_for_answers(&place).await;
    assert!(refuses(&node));
    let peer = Place { listen: silent, ..Place::memory(4) }.start().await;
    until("its peer has answered", || node.awaits().is_none() && !refuses(&node)).await;
    stop(&[node, peer, other]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_a_new_cluster_that_name_each_other_go_on_when_all_are_there() {
    let peers: Vec<SocketAddr> = (0..3).map(|_| nowhere()).collect();
    let places: Vec<Place> = (0..3)
        .map(|number| Place { listen: peers[number], peers: peers.clone(), ..Place::memory(number + 1) })
        .collect();
    let mut nodes = vec![start_and_wait_for_answers(&places[0]).await, start_and_wait_for_answers(&places[1]).await];
    assert!(refuses(&nodes[0]) && refuses(&nodes[1]), "the third may know them");
    nodes.push(places[2].start().await);
    until("all serve", || !nodes.iter().any(refuses)).await;
    form(&nodes).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_of_an_earlier_version_cannot_say_whether_it_knows_a_new_node() {
    let old = Place { speaks: Speaks::Version1, ..Place::memory(1) }.start().await;
    let node =
        start_and_wait_for_answers(&Place { peers: addresses(std::slice::from_ref(&old)), ..Place::memory(2) }).await;
    assert!(refuses(&node) && node.awaits().unwrap().contains("an earlier version of ombak runs there"));
    stop(&[old, node]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_data_or_a_cluster_asks_nobody() {
    let mut place = Place::durable(1);
    let node = place.start().await;
    put(&node, bucket(), "k", 1).await.unwrap();
    end(node).await;
    place.peers = vec![nowhere()];
    let node = place.start().await;
    assert!(node.awaits().is_none() && !refuses(&node));
    assert!(is_found(&node, bucket(), "k").await);
    node.stop().await;
}
