//! Changes of the ring of clusters that hold objects, while clients write.

use super::*;
use ombak_kv::Holdings;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::task::JoinHandle;

const OBJECTS: usize = 300;

/// Clients that write new keys through some nodes, until they are stopped.
struct Clients {
    written: Arc<parking_lot::Mutex<Vec<String>>>,
    failed: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Clients {
    fn start(nodes: Vec<MemberNode>) -> Self {
        let written = Arc::<parking_lot::Mutex<Vec<String>>>::default();
        let (failed, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let task = {
            let (written, failed, is_over) = (Arc::clone(&written), Arc::clone(&failed), is_over.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let key = format!("during {number}");
                    match put(&nodes[number % nodes.len()], bucket(), &key, 2).await {
                        Ok(()) => written.lock().push(key),
                        Err(_) => drop(failed.fetch_add(1, Ordering::SeqCst)),
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        };
        Self { written, failed, is_over, task }
    }

    /// Waits until some more keys were written.
    async fn write_some(&self) {
        let before = self.written.lock().len();
        until("clients write", || self.written.lock().len() > before + 20).await;
    }

    /// The keys of all acknowledged writes, and the number of writes that failed.
    async fn stop(self) -> (Vec<String>, usize) {
        self.is_over.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        let written = self.written.lock().clone();
        (written, self.failed.load(Ordering::SeqCst))
    }
}

/// A cluster with objects, and their keys.
pub(super) async fn with_objects(nodes: &[MemberNode]) -> Vec<String> {
    let keys: Vec<String> = (0..OBJECTS).map(|number| format!("before {number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        put(&nodes[number % nodes.len()], bucket(), key, 3).await.unwrap();
    }
    keys
}

pub(super) async fn carry_out(node: &MemberNode, changes: &[MemberChange]) {
    for change in changes {
        node.stage(change).await.unwrap();
    }
    assert!(node.plan().await.unwrap().is_some());
    node.commit().await.unwrap();
}

/// Waits until all homes have the goal, and no member has anything left to bring anywhere.
pub(super) async fn until_at_rest(nodes: &[&MemberNode]) {
    until("all homes have the goal", || {
        let placement = nodes[0].kv().placement();
        placement.is_settled() && nodes.iter().all(|node| node.kv().placement() == placement)
    })
    .await;
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let unsettled = nodes[0].settlement().await;
        if unsettled.is_settled() && unsettled.is_reaped() {
            return;
        }
        assert!(Instant::now() < give_up_at, "{unsettled:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// All three primaries of each key answer that they have it.
pub(super) async fn all_have(nodes: &[&MemberNode], keys: &[String]) {
    for (number, key) in keys.iter().enumerate() {
        let node = nodes[number % nodes.len()];
        let all = Some(Quorum::Count(3));
        for lacking in [Some(Quorum::Count(1)), all] {
            let options = GetOptions { pr: all, r: lacking, ..GetOptions::default() };
            let request = GetRequest { bucket: bucket(), key: Bytes::copy_from_slice(key.as_bytes()), options };
            let found = node.kv().get(request).await.unwrap_or_else(|why| panic!("{key}: {why}"));
            assert!(matches!(found, GetReply::Found(_)), "{key}");
        }
    }
    // Reads repair, so the stores are counted, too.
    let held: usize = nodes.iter().map(|node| objects_of(node)).sum();
    assert_eq!(held, keys.len() * 3, "each object is at exactly its three primaries");
}

pub(super) fn objects_of(node: &MemberNode) -> usize {
    node.kv().stores().map(|(_, store)| store.status().keys as usize).sum()
}

fn is_empty(node: &MemberNode) -> bool {
    node.kv().find_object(&Holdings::Everything).unwrap().is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_joins_while_clients_write() {
    let (_places, nodes) = alone(4).await;
    form(&nodes[..3]).await;
    let mut keys = with_objects(&nodes[..3]).await;
    let clients = Clients::start(nodes[..3].to_vec());
    nodes[3].join(nodes[0].node().listens_on()).await.unwrap();
    carry_out(&nodes[1], &[]).await;
    let all: Vec<&MemberNode> = nodes.iter().collect();
    until_at_rest(&all).await;
    clients.write_some().await;
    let (written, failed) = clients.stop().await;
    assert_eq!(failed, 0, "no request of a client failed");
    keys.extend(written);
    until_at_rest(&all).await;
    assert_eq!(nodes[0].kv().ring().node_count(), 4);
    assert!(!is_empty(&nodes[3]));
    all_have(&all, &keys).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_leaves_while_clients_write() {
    let (_places, nodes) = cluster(4).await;
    let mut keys = with_objects(&nodes).await;
    let clients = Clients::start(nodes[..3].to_vec());
    carry_out(&nodes[0], &[MemberChange::Leave(name(4))]).await;
    tokio::time::timeout(PATIENCE, nodes[3].left()).await.expect("it has left");
    clients.write_some().await;
    let (written, failed) = clients.stop().await;
    assert_eq!(failed, 0, "no request of a client failed");
    keys.extend(written);
    let stay: Vec<&MemberNode> = nodes[..3].iter().collect();
    until_at_rest(&stay).await;
    assert!(is_empty(&nodes[3]), "it has given everything away");
    all_have(&stay, &keys).await;
    stop(&nodes).await;
}

/// The member that leads the metadata, and perhaps votes alone, drives its own leave. It must not
/// go before others vote, which takes a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_leaves_and_the_others_go_on_to_decide() {
    for count in [2, 4] {
        let mut places: Vec<Place> = (1..=count + 1).map(Place::memory).collect();
        let mut nodes = Vec::new();
        for place in &mut places {
            place.timing.metadata.maintenance = Duration::from_secs(2);
            nodes.push(place.start().await);
        }
        form(&nodes[..count]).await;
        let keys = with_objects(&nodes[..count]).await;
        let leader = nodes.iter().position(|node| node.inner.metadata_node().is_leader()).unwrap();
        carry_out(&nodes[(leader + 1) % count], &[MemberChange::Leave(name(leader + 1))]).await;
        tokio::time::timeout(PATIENCE, nodes[leader].left()).await.expect("it has left");
        let left = nodes.remove(leader);
        assert!(is_empty(&left));
        let late = nodes.last().unwrap();
        // For a moment, nobody leads.
        let give_up_at = Instant::now() + PATIENCE;
        while let Err(why) = late.join(nodes[0].node().listens_on()).await {
            assert!(Instant::now() < give_up_at, "{why}");
        }
        carry_out(&nodes[0], &[]).await;
        let stay: Vec<&MemberNode> = nodes.iter().collect();
        until_at_rest(&stay).await;
        assert_eq!(nodes[0].kv().ring().node_count(), count);
        if count > 2 {
            all_have(&stay, &keys).await;
        }
        stop(&nodes).await;
        end(left).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_replaced_while_clients_write() {
    let (_places, nodes) = alone(5).await;
    form(&nodes[..4]).await;
    let mut keys = with_objects(&nodes[..4]).await;
    let clients = Clients::start(vec![nodes[0].clone(), nodes[2].clone(), nodes[3].clone()]);
    nodes[4].join(nodes[0].node().listens_on()).await.unwrap();
    carry_out(&nodes[0], &[MemberChange::Replace { node: name(2), with: name(5) }]).await;
    tokio::time::timeout(PATIENCE, nodes[1].left()).await.expect("it has left");
    clients.write_some().await;
    let (written, failed) = clients.stop().await;
    assert_eq!(failed, 0, "no request of a client failed");
    keys.extend(written);
    let stay = [&nodes[0], &nodes[2], &nodes[3], &nodes[4]];
    until_at_rest(&stay).await;
    assert!(is_empty(&nodes[1]));
    all_have(&stay, &keys).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_replicas_of_a_member_that_is_lost_are_made_anew() {
    let (_places, mut nodes) = cluster(4).await;
    let mut keys = with_objects(&nodes).await;
    let leader = nodes.iter().position(|node| node.inner.metadata_node().is_leader()).unwrap();
    let lost = (leader + 1) % 4;
    let node = nodes.remove(lost);
    end(node).await;
    let give_up_at = Instant::now() + PATIENCE;
    while let Err(why) = nodes[0].mark_down(&name(lost + 1)).await {
        assert!(Instant::now() < give_up_at, "{why}");
    }
    let clients = Clients::start(nodes.clone());
    carry_out(&nodes[0], &[MemberChange::ForceRemove(name(lost + 1))]).await;
    let stay: Vec<&MemberNode> = nodes.iter().collect();
    until_at_rest(&stay).await;
    clients.write_some().await;
    let (written, _) = clients.stop().await;
    keys.extend(written);
    until_at_rest(&stay).await;
    all_have(&stay, &keys).await;
    stop(&nodes).await;
}

/// Each member restarts in turn, in the middle of a change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_survives_restarts_of_every_member() {
    let (places, mut nodes) = alone_on_disks(4).await;
    form(&nodes[..3]).await;
    let keys = with_objects(&nodes[..3]).await;
    nodes[3].join(nodes[0].node().listens_on()).await.unwrap();
    carry_out(&nodes[0], &[]).await;
    for number in 0..4 {
        let before = nodes[number].kv().placement().version();
        let node = nodes.remove(number);
        end(node).await;
        nodes.insert(number, places[number].start().await);
        let now = nodes[number].kv().placement().version();
        assert!(now >= before, "it never goes back: {before} to {now}");
        let give_up_at = Instant::now() + PATIENCE;
        // The next one restarts when the change goes on with this one.
        while nodes[number].ring_change().await.is_some_and(|change| change.driver.is_none()) {
            assert!(Instant::now() < give_up_at, "nobody drives the change");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let all: Vec<&MemberNode> = nodes.iter().collect();
    until_at_rest(&all).await;
    assert_eq!(nodes[0].kv().ring().node_count(), 4);
    all_have(&all, &keys).await;
    stop(&nodes).await;
}
