//! Members whose configuration names each other by the names of their hosts.

use super::*;
use ombak_runtime::BoxFuture;
use parking_lot::Mutex;

/// Names whose addresses a test changes.
#[derive(Default)]
struct Names(Mutex<Vec<Seed>>);

impl Names {
    fn set(&self, addresses: Result<Vec<SocketAddr>, String>) {
        *self.0.lock() = vec![Seed { name: "nodes.test".into(), addresses }];
    }
}

impl SeedNames for Names {
    fn resolve(&self) -> BoxFuture<'_, Vec<Seed>> {
        let now = self.0.lock().clone();
        Box::pin(async move { now })
    }
}

fn recorded_addresses(node: &MemberNode) -> BTreeSet<String> {
    node.metadata().members().values().map(|member| member.peer_address.clone()).collect()
}

fn listening(nodes: &[MemberNode]) -> Vec<SocketAddr> {
    nodes.iter().map(|node| node.node().listens_on()).collect()
}

/// Two members that know each other's names, on disks.
async fn two(names: &Arc<Names>) -> (Vec<Place>, Vec<MemberNode>) {
    let named = |number| Place { names: Some(names.clone()), detects: true, ..Place::durable(number) };
    let places: Vec<Place> = [1, 2].map(named).into();
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(place.start().await);
    }
    form(&nodes).await;
    (places, nodes)
}

/// Starts stopped nodes again, each at an address that nobody knows.
async fn start_elsewhere(places: &[Place], before: &[SocketAddr]) -> Vec<MemberNode> {
    let mut nodes = Vec::new();
    for place in places {
        nodes.push(place.start().await);
    }
    assert!(listening(&nodes).iter().all(|now| !before.contains(now)), "the test needs other ports");
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_have_all_moved_find_each_other_by_name_and_tell_their_addresses() {
    let names = Arc::new(Names::default());
    let (places, nodes) = two(&names).await;
    let before = listening(&nodes);
    for node in nodes {
        end(node).await;
    }
    names.set(Err("the name has no address".into()));
    let nodes = start_elsewhere(&places, &before).await;
    let now = listening(&nodes);
    // Neither has a majority, so neither could tell its address without the names.
    names.set(Ok(now.clone()));
    let expected: BTreeSet<String> = now.iter().map(SocketAddr::to_string).collect();
    for node in &nodes {
        until("the metadata has the new addresses", || recorded_addresses(node) == expected).await;
    }
    until("both can decide again", || nodes.iter().any(MemberNode::leads)).await;
    put(&nodes[0], bucket(), "k", 2).await.unwrap();
    assert!(is_found(&nodes[1], bucket(), "k").await);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_resolves_the_names_of_its_peers_until_they_answer() {
    let names = Arc::new(Names::default());
    names.set(Err("there is no such name".into()));
    let place = Place { names: Some(names.clone()), ..Place::durable(1) };
    let node = place.start().await;
    until("it says whom it waits for", || {
        node.awaits().is_some_and(|why| why.contains("nodes.test: there is no such name"))
    })
    .await;
    // It is all of its peers.
    names.set(Ok(vec![node.node().listens_on()]));
    until("it serves", || node.awaits().is_none()).await;
    node.stop().await;
}
