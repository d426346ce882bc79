//! Bucket types and properties in a cluster.

use super::*;
use ombak_kv::Holdings;
use ombak_kv::buckets::PropsError;
use ombak_metadata::state::{BucketName, ClosedPart, Command};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_are_created_and_activated_from_every_node_and_usable_on_all_at_once() {
    let (_places, nodes) = cluster(3).await;
    for (number, node) in nodes.iter().enumerate() {
        let name = format!("t{number}");
        let (created, activated) = (name.clone(), name.clone());
        let wanted = props(json!({"n_val": 2, "allow_mult": true}));
        change(node, move |registry| registry.create_type(created.as_bytes(), &wanted)).await.unwrap();
        // Another node activates it at once.
        let other = &nodes[(number + 1) % 3];
        change(other, move |registry| registry.activate_type(activated.as_bytes())).await.unwrap();
        for node in &nodes {
            assert_eq!(node.kv().buckets().props(&Bucket::typed(name.clone(), "b")).unwrap().n_val, 2);
        }
    }
    let refused = change(&nodes[2], |registry| registry.create_type(b"t0", &PropMap::new())).await;
    assert_eq!(refused, Err(PropsError::AlreadyActive));
    let refused = change(&nodes[2], |registry| registry.activate_type(b"nothing")).await;
    assert_eq!(refused, Err(PropsError::NoType));
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_of_one_bucket_from_all_nodes_are_all_kept() {
    let (_places, nodes) = cluster(3).await;
    let names = ["allow_mult", "basic_quorum", "notfound_ok", "last_write_wins", "small_vclock", "big_vclock"];
    let changes = names.iter().enumerate().map(|(number, name)| {
        let node = nodes[number % 3].clone();
        async move {
            let value = if name.ends_with("vclock") { json!(77) } else { json!(number % 2 == 0) };
            let wanted = props(json!({ *name: value }));
            change(&node, move |registry| registry.set_bucket(&bucket(), &wanted)).await
        }
    });
    for changed in futures_util::future::join_all(changes).await {
        changed.unwrap();
    }
    let all = |node: &MemberNode| {
        let map = node.kv().buckets().bucket_map(&bucket()).unwrap();
        let overrides = node.metadata().buckets().get(&bucket()).map_or(0, |record| record.overrides.len());
        map["small_vclock"] == json!(77) && map["big_vclock"] == json!(77) && overrides == names.len()
    };
    until("all nodes have all changes", || nodes.iter().all(all)).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_copies_changes_only_without_objects() {
    let (_places, nodes) = cluster(3).await;
    let change_n = |node: &MemberNode, bucket: Bucket, n_val: u32| {
        let node = node.clone();
        async move {
            let wanted = props(json!({ "n_val": n_val }));
            change(&node, move |registry| registry.set_bucket(&bucket, &wanted)).await
        }
    };
    change_n(&nodes[1], bucket(), 2).await.unwrap();
    put(&nodes[0], bucket(), "k", 2).await.unwrap();
    let Err(PropsError::Refused(why)) = change_n(&nodes[2], bucket(), 3).await else { panic!("it was changed") };
    assert!(why.contains("n_val and chash_keyfun cannot change") && why.contains("holds objects"), "{why}");
    // Another bucket has none, and other properties do not move keys.
    change_n(&nodes[2], Bucket::untyped("other"), 1).await.unwrap();
    let wanted = props(json!({"allow_mult": true}));
    change(&nodes[2], move |registry| registry.set_bucket(&bucket(), &wanted)).await.unwrap();
    put(&nodes[1], bucket(), "k2", 2).await.unwrap();
    stop(&nodes).await;
}

/// Holds back what a member follows of the metadata, until the other members have a change of the
/// bucket. So the member would be late, if nobody waited for it.
fn hold_back(late: &MemberNode, others: Vec<MemberNode>, has_change: fn(&MemberNode) -> bool) {
    let late = late.clone();
    tokio::spawn(async move {
        let _adopting = late.inner.following.adopting.lock().await;
        until("the others have the change", || others.iter().all(has_change)).await;
        // Whoever does not wait for the late member has time to answer.
        tokio::time::sleep(Duration::from_millis(200)).await;
    });
}

fn allows_siblings(node: &MemberNode) -> bool {
    node.kv().buckets().props(&bucket()).unwrap().allow_mult
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_of_properties_is_known_to_every_member_when_it_is_answered() {
    let (_places, nodes) = cluster(3).await;
    hold_back(&nodes[2], nodes[..2].to_vec(), allows_siblings);
    change(&nodes[0], |registry| registry.set_bucket(&bucket(), &props(json!({"allow_mult": true})))).await.unwrap();
    assert!(nodes.iter().all(allows_siblings));
    hold_back(&nodes[0], nodes[1..].to_vec(), |node| !allows_siblings(node));
    change(&nodes[1], |registry| registry.reset_bucket(&bucket())).await.unwrap();
    assert!(!nodes.iter().any(allows_siblings));
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_that_is_not_reachable_learns_of_a_change_later() {
    let places: Vec<Place> = (1..=3).map(Place::durable).collect();
    let mut nodes = vec![places[0].start().await, places[1].start().await, places[2].start().await];
    form(&nodes).await;
    end(nodes.remove(2)).await;
    let began = Instant::now();
    change(&nodes[0], |registry| registry.set_bucket(&bucket(), &props(json!({"allow_mult": true})))).await.unwrap();
    assert!(began.elapsed() < nodes[0].inner.timing.command, "it waited for a member that cannot be reached");
    assert!(nodes.iter().all(allows_siblings));
    put(&nodes[1], bucket(), "k", 2).await.unwrap();
    nodes.push(places[2].start().await);
    until("it has the change", || allows_siblings(&nodes[2])).await;
    stop(&nodes).await;
}

/// Closes the bucket as the driver of a change does that dies then.
async fn close_bucket(node: &MemberNode) -> u64 {
    let name = BucketName { r#type: bucket().bucket_type, name: bucket().name };
    let close = Command::ClosePart { part: ClosedPart::Bucket(name) };
    node.inner.metadata_node().propose(close, Instant::now() + PATIENCE).await.unwrap()
}

fn is_bucket_closed(node: &MemberNode) -> bool {
    node.kv().is_closed_to_writes(&Holdings::Bucket(bucket()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_n_val_closes_its_bucket_alone_and_without_a_majority_it_stays_closed() {
    let closing_max = |closing_max| MemberTiming { closing_max, ..timing() };
    // Each node returns to its address, at which nobody else listens meanwhile.
    let place = |number: u8| Place {
        timing: closing_max(Duration::from_secs(3600)),
        listen: ([127, 3, 8, number], 0).into(),
        ..Place::durable(number.into())
    };
    let mut places: Vec<Place> = (1..=3).map(place).collect();
    let mut nodes = Vec::new();
    for place in &mut places {
        nodes.push(place.start().await);
        place.listen = nodes.last().unwrap().node().listens_on();
    }
    form(&nodes).await;
    until("three nodes vote", || nodes[0].inner.metadata_node().voters().len() == 3).await;
    // The driver dies after the closing, and with it the majority.
    let closing = close_bucket(&nodes[0]).await;
    until("the bucket is closed", || nodes.iter().all(is_bucket_closed)).await;
    end(nodes.remove(2)).await;
    end(nodes.remove(1)).await;
    let refused = put(&nodes[0], bucket(), "k", 1).await.unwrap_err().to_string();
    assert!(refused.contains("the bucket takes no writes"), "{refused}");
    assert!(nodes[0].kv().is_open_to_writes() && !nodes[0].facts().await.is_closed);
    put(&nodes[0], Bucket::untyped("other"), "k", 1).await.unwrap();
    let open = Command::OpenWrites { closing };
    let in_vain = Instant::now() + Duration::from_millis(500);
    nodes[0].inner.metadata_node().propose(open, in_vain).await.unwrap_err();
    assert!(is_bucket_closed(&nodes[0]), "only a majority can open it");
    nodes.push(places[1].start().await);
    assert!(is_bucket_closed(&nodes[1]), "also after a start");
    // One that starts looks after the closing, too, whichever node has begun it.
    end(nodes.remove(0)).await;
    places[0].timing = closing_max(Duration::from_millis(100));
    nodes.insert(0, places[0].start().await);
    until("a majority opens the bucket", || !nodes.iter().any(is_bucket_closed)).await;
    put(&nodes[0], bucket(), "k", 1).await.unwrap();
    stop(&nodes).await;
}

/// Clients write to the bucket and to another one all the time, while n_val changes. What was
/// acknowledged in the bucket was written before, and then nothing changes, or afterwards. The
/// other bucket never refuses a write.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledged_write_vanishes_when_clients_write_during_a_change_of_n_val() {
    let (_places, nodes) = cluster(3).await;
    let mut outcomes = std::collections::BTreeSet::new();
    for round in 0..8u64 {
        let name = format!("b{round}");
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_done = || done.load(std::sync::atomic::Ordering::SeqCst);
        let writers = (0..4).map(|writer| {
            let (node, done, name) = (nodes[writer % 3].clone(), done.clone(), name.clone());
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                tokio::time::sleep(Duration::from_millis(round * 6)).await;
                for number in 0.. {
                    if done.load(std::sync::atomic::Ordering::SeqCst) && !acknowledged.is_empty() {
                        break;
                    }
                    let key = format!("k{writer}-{number}");
                    if put(&node, Bucket::untyped(name.clone()), &key, 2).await.is_ok() {
                        acknowledged.push(key);
                    }
                    tokio::task::yield_now().await;
                }
                acknowledged
            })
        });
        let writers: Vec<_> = writers.collect();
        let beside = {
            let (node, done) = (nodes[1].clone(), done.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    put(&node, Bucket::untyped("beside"), &format!("k{round}-{number}"), 2).await.unwrap();
                    if done.load(std::sync::atomic::Ordering::SeqCst) {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            })
        };
        let changed = Bucket::untyped(name.clone());
        let changed =
            change(&nodes[0], move |registry| registry.set_bucket(&changed, &props(json!({"n_val": 2})))).await;
        assert!(!is_done());
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        outcomes.insert(changed.is_ok());
        let mut first_after_change = Vec::new();
        for writer in writers {
            first_after_change.extend(writer.await.unwrap());
        }
        beside.await.unwrap();
        for key in first_after_change {
            for node in &nodes {
                assert!(is_found(node, Bucket::untyped(name.clone()), &key).await, "round {round}: {key}");
            }
        }
        let n_val = |node: &MemberNode| node.kv().buckets().props(&Bucket::untyped(name.clone())).unwrap().n_val;
        let wanted = if changed.is_ok() { 2 } else { 3 };
        assert!(nodes.iter().all(|node| n_val(node) == wanted), "round {round}: {changed:?}");
    }
    assert!(outcomes.contains(&true), "some round changes before the writes");
    stop(&nodes).await;
}
