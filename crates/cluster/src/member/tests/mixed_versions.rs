//! Members that speak version 1 in a cluster with newer ones, and a cluster that is upgraded node
//! by node.

use super::ring_change_objects::carry_out;
use super::*;
use crate::member::data_types_gate::DataTypesGate;
use crate::member::tombstones_gate::TombstonesGate;
use ombak_kv::DeleteRequest;
use ombak_kv::hooks::{KindGate, ReapingGate};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(super) fn places(speak: &[Speaks]) -> Vec<Place> {
    (1..).zip(speak).map(|(number, speaks)| Place { speaks: *speaks, ..Place::durable(number) }).collect()
}

pub(super) async fn start_all(places: &[Place]) -> Vec<MemberNode> {
    let mut nodes = Vec::new();
    for place in places {
        nodes.push(place.start().await);
    }
    nodes
}

/// Why not all members have a feature; nothing if they have.
fn refusal(node: &MemberNode) -> Option<String> {
    node.check_all_can(Feature::RING_CHANGES).err().map(|refused| refused.to_string())
}

pub(super) async fn settle(nodes: &[MemberNode]) {
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let unsettled = nodes[0].settlement().await;
        if unsettled.is_settled() && unsettled.is_reaped() {
            return;
        }
        assert!(Instant::now() < give_up_at, "something is not brought where it belongs: {unsettled:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whichever version joins whichever, and whoever leads: requests, properties, hand-back and
/// reaping work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_two_versions_work_together() {
    for speak in [
        [Speaks::Version1, Speaks::Everything, Speaks::Version1, Speaks::Everything],
        [Speaks::Everything, Speaks::Version1, Speaks::Everything, Speaks::Version1],
    ] {
        let places = places(&speak);
        let mut nodes = start_all(&places).await;
        form(&nodes).await;
        for (number, node) in nodes.iter().enumerate() {
            put(node, bucket(), &format!("k{number}"), 3).await.unwrap();
        }
        let (last, first) = (nodes.pop().unwrap(), 0);
        end(last).await;
        // A replica misses this.
        for number in 0..20 {
            put(&nodes[number % 3], bucket(), &format!("while-away-{number}"), 2).await.unwrap();
        }
        nodes.push(places[3].start().await);
        settle(&nodes).await;
        for node in &nodes {
            for key in (0..4).map(|n| format!("k{n}")).chain((0..20).map(|n| format!("while-away-{n}"))) {
                assert!(is_found(node, bucket(), &key).await, "{key}");
            }
        }
        for (number, node) in nodes.iter().enumerate() {
            let request = DeleteRequest {
                bucket: bucket(),
                key: format!("k{number}").into(),
                clock: None,
                get: GetOptions { r: Some(Quorum::All), ..GetOptions::default() },
                put: PutOptions { w: Some(Quorum::All), ..PutOptions::default() },
                rw: None,
            };
            assert!(node.kv().delete(request).await.unwrap().found);
            let name = format!("t{number}");
            change(node, move |registry| registry.create_type(name.as_bytes(), &PropMap::new())).await.unwrap();
        }
        // It waits for the removal of the tombstones, too.
        settle(&nodes).await;
        until("all members know all types", || nodes.iter().all(|node| node.metadata().types().len() == 4)).await;
        assert!(refusal(&nodes[first]).is_some());
        stop(&nodes).await;
    }
}

/// Lets nodes have their addresses again after a restart. Two that restart while the other one is
/// away do not learn a new address of each other.
fn keep_addresses(places: &mut [Place], nodes: &[MemberNode]) {
    for (place, node) in places.iter_mut().zip(nodes) {
        place.listen = node.node().listens_on();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feature_needs_all_members_also_those_that_are_down() {
    let mut places = places(&[Speaks::Everything, Speaks::Everything, Speaks::Version1]);
    let mut nodes = start_all(&places).await;
    form(&nodes).await;
    keep_addresses(&mut places, &nodes);
    let of_third = "Failed: not all members know a change of the ring of a cluster that holds objects. An earlier \
                    version of ombak runs on 'node3@test': upgrade it there first.";
    let is_known = || nodes[..2].iter().all(|node| refusal(node).as_deref() == Some(of_third));
    until("both know what the third speaks", is_known).await;
    let own = refusal(&nodes[2]).unwrap();
    assert!(own.contains("An earlier version of ombak runs on") && own.contains("'node3@test'"), "{own}");
    // What it said last counts while it is down, also for a node that was started meanwhile.
    end(nodes.pop().unwrap()).await;
    assert_eq!(refusal(&nodes[0]).as_deref(), Some(of_third));
    let saved = places[0].path().join("capabilities.json");
    until("it is on the disk", || {
        std::fs::read_to_string(&saved).is_ok_and(|text| text.matches("node\"").count() == 2)
    })
    .await;
    end(nodes.remove(0)).await;
    nodes.insert(0, places[0].start().await);
    until("the second has said what it speaks", || refusal(&nodes[0]).as_deref() == Some(of_third)).await;
    // Without the file, a member that is down is unknown.
    end(nodes.remove(0)).await;
    std::fs::remove_file(&saved).unwrap();
    nodes.insert(0, places[0].start().await);
    let unknown = "Failed: not all members know a change of the ring of a cluster that holds objects. It is not known \
                   yet which version runs on 'node3@test': start it first.";
    until("the third is unknown", || refusal(&nodes[0]).as_deref() == Some(unknown)).await;
    // The upgrade of the last one lets all use the feature, and so it does until it goes back.
    for (speaks, refused) in [(Speaks::Everything, false), (Speaks::Version1, true), (Speaks::Everything, false)] {
        places[2].speaks = speaks;
        nodes.push(places[2].start().await);
        until("the others know it", || nodes[..2].iter().all(|node| refusal(node).is_some() == refused)).await;
        end(nodes.pop().unwrap()).await;
        assert_eq!(refusal(&nodes[0]).is_some(), refused, "as it said last");
    }
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_nobody_can_start_any_more_is_removed_whatever_version_it_ran() {
    let mut places = places(&[Speaks::Everything, Speaks::Everything, Speaks::Version1]);
    let mut nodes = start_all(&places).await;
    form(&nodes).await;
    keep_addresses(&mut places, &nodes);
    put(&nodes[0], bucket(), "k", 2).await.unwrap();
    let is_known = || refusal(&nodes[0]).is_some_and(|why| !why.contains("It is not known"));
    until("the first knows what the others speak", is_known).await;
    let force = MemberChange::ForceRemove(name(3));
    let refused = nodes[0].stage(&force).await.unwrap_err().to_string();
    assert!(refused.contains("An earlier version of ombak runs on 'node3@test'"), "it still answers: {refused}");
    end(nodes.pop().unwrap()).await;
    end(nodes.remove(0)).await;
    let saved = places[0].path().join("capabilities.json");
    if saved.exists() {
        std::fs::remove_file(&saved).unwrap();
    }
    nodes.insert(0, places[0].start().await);
    let is_unknown = |why: &str| why.contains("It is not known yet which version runs on 'node3@test'");
    until("the third alone is unknown", || {
        refusal(&nodes[0]).is_some_and(|why| is_unknown(&why) && !why.contains("node2@test"))
    })
    .await;
    let refused = nodes[0].stage(&MemberChange::Leave(name(2))).await.unwrap_err().to_string();
    assert!(is_unknown(&refused), "{refused}");
    nodes[0].mark_down(&name(3)).await.unwrap();
    carry_out(&nodes[0], &[force]).await;
    until("it is no member any more", || nodes[0].metadata().members().len() == 2).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_data_types_are_written_when_all_members_can_read_them() {
    let mut places = places(&[Speaks::Everything, Speaks::Everything, Speaks::Version1]);
    let mut nodes = start_all(&places).await;
    form(&nodes).await;
    keep_addresses(&mut places, &nodes);
    let cell = Arc::new(std::sync::OnceLock::from(Arc::downgrade(&nodes[0].inner)));
    let gate = DataTypesGate::new(cell);
    let refusal = || gate.may_write().err().map(|refused| refused.to_string()).unwrap_or_default();
    until("it refuses because of the third", || {
        refusal().contains("know data types. An earlier version of ombak runs on 'node3@test': upgrade it")
    })
    .await;
    end(nodes.pop().unwrap()).await;
    places[2].speaks = Speaks::Everything;
    nodes.push(places[2].start().await);
    until("the third was upgraded", || gate.may_write().is_ok()).await;
    // From now on values can be there, so an earlier version does not join.
    let properties = props(serde_json::json!({"datatype": "set", "allow_mult": true}));
    change(&nodes[0], move |registry| registry.create_type(b"sets", &properties)).await.unwrap();
    let older = Place { speaks: Speaks::Version1, ..Place::durable(4) };
    let fourth = older.start().await;
    let refused = fourth.join(nodes[0].node().listens_on()).await.unwrap_err().to_string();
    assert!(refused.contains("Unable to get ring from"), "{refused}");
    end(fourth).await;
    let newer = Place { speaks: Speaks::Everything, ..older };
    let fourth = newer.start().await;
    fourth.join(nodes[0].node().listens_on()).await.unwrap();
    nodes.push(fourth);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tombstones_lose_their_times_when_all_members_can_take_them() {
    let mut places = places(&[Speaks::Everything, Speaks::Everything, Speaks::Version1]);
    let mut nodes = start_all(&places).await;
    form(&nodes).await;
    keep_addresses(&mut places, &nodes);
    let gate = TombstonesGate::new(Arc::new(std::sync::OnceLock::from(Arc::downgrade(&nodes[0].inner))));
    until("it is known what runs on the third", || {
        nodes_refusal(&nodes[0]).contains("An earlier version of ombak runs on")
    })
    .await;
    assert_eq!(gate.may_take_times(), Some(false));
    end(nodes.pop().unwrap()).await;
    places[2].speaks = Speaks::Everything;
    nodes.push(places[2].start().await);
    until("the third was upgraded", || gate.may_take_times() == Some(true)).await;
    stop(&nodes).await;
}

fn nodes_refusal(node: &MemberNode) -> String {
    let refused = node.check_all_can(Feature::TIMELESS_TOMBSTONES).err();
    refused.map(|refused| refused.to_string()).unwrap_or_default()
}

/// Clients that write through a node that answers, and which writes were acknowledged.
struct Clients {
    nodes: Arc<Mutex<Vec<Option<MemberNode>>>>,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    failed: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Clients {
    /// Each client knows all nodes, and asks another one if the first is not there or refuses.
    async fn write(&self, client: usize) {
        for number in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let key = format!("k{client}-{number}");
            let mut is_done = false;
            for attempt in 0..3 {
                let node = self.nodes.lock().unwrap()[(client + number + attempt) % 3].clone();
                let Some(node) = node else { continue };
                is_done = put(&node, bucket(), &key, 2).await.is_ok();
                if is_done {
                    break;
                }
            }
            if is_done {
                self.acknowledged.lock().unwrap().insert(key);
            } else {
                self.failed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// Each member in turn is stopped and started with the new version, while clients write: no request
/// fails at all nodes, nothing is lost, and the new feature is there after the last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_upgraded_node_by_node_while_clients_write() {
    let mut places = places(&[Speaks::Version1; 3]);
    let nodes = start_all(&places).await;
    form(&nodes).await;
    let clients = Arc::new(Clients {
        nodes: Arc::new(Mutex::new(nodes.into_iter().map(Some).collect())),
        acknowledged: Arc::default(),
        failed: Arc::default(),
        is_over: Arc::default(),
    });
    let running: Vec<_> = (0..2)
        .map(|client| {
            let clients = clients.clone();
            tokio::spawn(async move { clients.write(client).await })
        })
        .collect();
    let written = || clients.acknowledged.lock().unwrap().len();
    let all = || clients.nodes.lock().unwrap().iter().flatten().cloned().collect::<Vec<MemberNode>>();
    for (number, place) in places.iter_mut().enumerate() {
        let before = written();
        until("clients write", || written() > before + 20).await;
        let node = clients.nodes.lock().unwrap()[number].take().unwrap();
        end(node).await;
        let before = written();
        until("clients write while a node is away", || written() > before + 20).await;
        place.speaks = Speaks::Everything;
        let node = place.start().await;
        clients.nodes.lock().unwrap()[number] = Some(node);
        let is_refused = || all().iter().all(|node| refusal(node).is_some() == (number < 2));
        until("what the members can do together is known", is_refused).await;
    }
    clients.is_over.store(true, Ordering::SeqCst);
    for client in running {
        client.await.unwrap();
    }
    let nodes = all();
    settle(&nodes).await;
    let acknowledged = clients.acknowledged.lock().unwrap().clone();
    for (number, key) in acknowledged.iter().enumerate() {
        assert!(is_found(&nodes[number % 3], bucket(), key).await, "{key}");
    }
    assert_eq!(clients.failed.load(Ordering::SeqCst), 0, "of {}", acknowledged.len());
    stop(&nodes).await;
}
