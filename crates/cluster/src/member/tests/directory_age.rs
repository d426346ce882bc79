//! Older copies of a node's directory, and what an operator does about them
//! (docs/design/replication.md §8).

use super::*;
use ombak_kv::{FillReason, Kv};
use ombak_metadata::state::{Command, MemberStatus};
use std::fs;

/// Copies a directory. A node that runs removes files meanwhile, and renames others: these are then
/// not in the copy.
fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
            continue;
        }
        match fs::copy(entry.path(), target) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied.unwrap()),
        }
    }
}

/// A copy of the directory of a node that does not run, or that is killed at this moment.
fn copy_of(place: &Place) -> Place {
    let copy = Place { timing: place.timing.clone(), ..Place::durable(place.number) };
    copy_dir(place.path(), copy.path());
    copy
}

/// Starts that never reach the other nodes.
async fn start_without_network(place: &Place, times: usize) {
    for _ in 0..times {
        let kv = Kv::open(place.parts().await.node.kv).unwrap();
        kv.close();
    }
}

async fn three() -> (Vec<Place>, Vec<MemberNode>) {
    let places: Vec<Place> = (1..=3).map(Place::durable).collect();
    let nodes = vec![places[0].start().await, places[1].start().await, places[2].start().await];
    form(&nodes).await;
    (places, nodes)
}

/// The reason for which a member sees another one take no part.
async fn seen_as_older(by: &MemberNode, number: usize) -> Option<String> {
    by.facts().await.members.into_iter().find(|member| member.name == name(number)).and_then(|member| member.older)
}

async fn assert_takes_no_part(node: &MemberNode, others: &[MemberNode]) {
    until("it has closed", || node.kv().directory().identity().unwrap().is_restored).await;
    assert!(!node.kv().is_open_to_writes());
    let refused = put(node, bucket(), "k", 1).await.unwrap_err().to_string();
    assert!(refused.contains("takes no part"), "{refused}");
    let request = GetRequest { bucket: bucket(), key: "k".into(), options: GetOptions::default() };
    let refused = node.kv().get(request).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("takes no part"), "{refused}");
    assert!(node.kv().list_keys(&bucket(), None).is_err());
    until("all its classes are filling", || {
        let filling = node.kv().filling_classes();
        !filling.is_empty() && filling.iter().all(|(_, reason)| *reason == FillReason::Restored)
    })
    .await;
    assert!(node.inner.logs.slot.load().is_none(), "it neither votes nor follows");
    let why = node.facts().await.members.into_iter().find_map(|member| member.older);
    assert!(why.is_some(), "its own member-status says so");
    let refused = node.plan().await.unwrap_err().to_string();
    assert!(refused.contains("put back its newest directory"), "{refused}");
    let give_up_at = Instant::now() + PATIENCE;
    for other in others {
        while seen_as_older(other, 3).await.is_none() {
            assert!(Instant::now() < give_up_at, "the others' member-status says so");
        }
        assert_eq!(other.ring_ready().await, RingReady::Down(vec![name(3)]));
    }
}

async fn assert_takes_part(node: &MemberNode, others: &[MemberNode], key: &str) {
    until("it takes writes", || node.kv().is_open_to_writes()).await;
    let give_up_at = Instant::now() + PATIENCE;
    while put(node, bucket(), key, 3).await.is_err() {
        assert!(Instant::now() < give_up_at, "all three replicas take writes");
    }
    for other in others {
        assert!(is_found(other, bucket(), key).await);
        assert_eq!(seen_as_older(other, 3).await, None);
    }
    assert_eq!(node.own_directory_older(), None);
}

impl MemberNode {
    fn own_directory_older(&self) -> Option<String> {
        self.inner.own_directory.older()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_of_a_directory_takes_no_part_however_often_it_was_started() {
    let (places, mut nodes) = three().await;
    put(&nodes[0], bucket(), "k", 3).await.unwrap();
    let victim = nodes[2].node().id();
    end(nodes.remove(2)).await;
    for starts in [0, 5] {
        let copy = copy_of(&places[2]);
        // The node runs once more, and then its older copy comes back.
        let node = places[2].start().await;
        let known = || nodes[0].metadata().members()[&victim].boot == node.kv().identity().boot;
        until("the members know its start", known).await;
        end(node).await;
        start_without_network(&copy, starts).await;
        let restored = copy.start().await;
        assert_takes_no_part(&restored, &nodes).await;
        end(restored).await;
        // Also when nobody can be asked.
        let again = copy.start().await;
        assert_takes_no_part(&again, &nodes).await;
        end(again).await;
    }
    // The operator puts the newest directory back.
    let node = places[2].start().await;
    assert_takes_part(&node, &nodes, "k2").await;
    end(node).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_made_while_the_node_ran_is_older_after_its_stop() {
    let (places, mut nodes) = three().await;
    let victim = nodes[2].node().id();
    let recorded = || nodes[2].kv().directory().identity().unwrap().milestones.is_newest_recorded();
    until("the node knows that its start is recorded", recorded).await;
    let snapshot = copy_of(&places[2]);
    let before = nodes[0].metadata().members()[&victim].milestone;
    end(nodes.remove(2)).await;
    until("the stop is recorded", || nodes[0].metadata().members()[&victim].milestone != before).await;
    let restored = snapshot.start().await;
    assert_takes_no_part(&restored, &nodes).await;
    end(restored).await;
    let node = places[2].start().await;
    assert_takes_part(&node, &nodes, "k").await;
    end(node).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_older_than_a_running_node_soon_after_it_was_made() {
    let places: Vec<Place> = (1..=3)
        .map(|number| Place {
            timing: MemberTiming { milestone: Duration::from_millis(100), ..timing() },
            ..Place::durable(number)
        })
        .collect();
    let mut nodes = vec![places[0].start().await, places[1].start().await, places[2].start().await];
    form(&nodes).await;
    let victim = nodes[2].node().id();
    let snapshot = copy_of(&places[2]);
    let before = nodes[0].metadata().members()[&victim].milestone;
    until("two more are recorded", || {
        let now = nodes[0].metadata().members()[&victim].milestone;
        now.map(|now| now.number) > before.map(|before| before.number + 1)
    })
    .await;
    // The node is killed, as far as the disk shows.
    end(nodes.remove(2)).await;
    let restored = snapshot.start().await;
    assert_takes_no_part(&restored, &nodes).await;
    end(restored).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_starts_reached_nobody_is_never_refused() {
    let (places, mut nodes) = three().await;
    end(nodes.remove(2)).await;
    start_without_network(&places[2], 4).await;
    let node = places[2].start().await;
    assert_takes_part(&node, &nodes, "k").await;
    let newest = node.kv().directory().identity().unwrap().milestones.newest();
    let id = node.node().id();
    until("its start is recorded", || nodes[0].metadata().members()[&id].milestone == newest).await;
    end(node).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_from_before_a_run_without_a_majority_takes_no_part() {
    let places: Vec<Place> =
        (1..=5).map(|number| if number == 3 { Place::durable(number) } else { Place::memory(number) }).collect();
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(place.start().await);
    }
    form(&nodes).await;
    until("five nodes vote", || nodes[0].inner.metadata_node().voters().len() == 5).await;
    end(nodes.remove(2)).await;
    let others = nodes.split_off(1);
    stop(&others).await;
    let copy = copy_of(&places[2]);
    // Two of five nodes run, so nothing is recorded.
    let node = places[2].start().await;
    until("it takes writes", || node.kv().is_open_to_writes()).await;
    end(node).await;
    let restored = copy.start().await;
    assert!(restored.own_directory_older().is_some(), "the other node knows the run");
    end(restored).await;
    let node = places[2].start().await;
    until("it takes writes again", || node.kv().is_open_to_writes()).await;
    assert_eq!(node.own_directory_older(), None);
    end(node).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_a_majority_is_known_also_after_all_its_witnesses_have_started_again() {
    let mut places: Vec<Place> =
        (1..=5).map(|number| if number <= 3 { Place::durable(number) } else { Place::memory(number) }).collect();
    // The witness returns to its address, at which nobody else listens meanwhile.
    places[0].listen = SocketAddr::from(([127, 3, 7, 1], 0));
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(place.start().await);
    }
    form(&nodes).await;
    until("five nodes vote", || nodes[0].inner.metadata_node().voters().len() == 5).await;
    end(nodes.remove(2)).await;
    let others = nodes.split_off(1);
    stop(&others).await;
    let copy = copy_of(&places[2]);
    // Two of five nodes run, so nothing is recorded.
    let node = places[2].start().await;
    until("it takes writes", || node.kv().is_open_to_writes()).await;
    end(node).await;
    places[0].listen = nodes[0].node().listens_on();
    end(nodes.remove(0)).await;
    nodes.push(places[0].start().await);
    let restored = copy.start().await;
    assert!(restored.own_directory_older().is_some(), "the other node knows the run");
    end(restored).await;
    let node = places[2].start().await;
    until("it takes writes again", || node.kv().is_open_to_writes()).await;
    assert_eq!(node.own_directory_older(), None);
    end(node).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_live_copies_the_later_one_does_not_start() {
    let places: Vec<Place> = (1..=3)
        .map(|number| Place {
            timing: MemberTiming { question: Duration::from_millis(300), ..timing() },
            ..Place::durable(number)
        })
        .collect();
    let nodes = vec![places[0].start().await, places[1].start().await, places[2].start().await];
    form(&nodes).await;
    let copy = copy_of(&places[2]);
    match copy.try_start().await {
        Err(MemberStartError::RunsTwice(_)) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
    assert_takes_part(&nodes[2], &nodes[..2], "k").await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_directory_joins_under_another_name_in_place_of_an_older_one() {
    let (places, mut nodes) = three().await;
    end(nodes.remove(2)).await;
    let copy = copy_of(&places[2]);
    let node = places[2].start().await;
    let id = node.node().id();
    let newest = node.kv().directory().identity().unwrap().milestones.newest();
    until("its start is recorded", || nodes[0].metadata().members()[&id].milestone == newest).await;
    end(node).await;
    let restored = copy.start().await;
    assert_takes_no_part(&restored, &nodes).await;
    end(restored).await;
    nodes[0].mark_down(&name(3)).await.unwrap();
    let place = Place::durable(4);
    let fresh = place.start().await;
    fresh.join(nodes[0].node().listens_on()).await.unwrap();
    assert!(nodes[0].plan().await.unwrap().is_some());
    nodes[0].commit().await.unwrap();
    until("it owns partitions", || {
        let ring = fresh.kv().ring();
        ring.node(fresh.node().id()).is_some_and(|node| ring.partitions_owned(node) > 0)
    })
    .await;
    put(&fresh, bucket(), "k", 2).await.unwrap();
    assert!(is_found(&nodes[0], bucket(), "k").await);
    end(fresh).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_its_metadata_does_not_start_and_keeps_its_log() {
    let (places, mut nodes) = three().await;
    end(nodes.remove(2)).await;
    let pointer = places[2].path().join("metadata/current.json");
    let text = fs::read(&pointer).unwrap();
    fs::remove_file(&pointer).unwrap();
    let list = || {
        let mut names: Vec<_> =
            fs::read_dir(places[2].path().join("metadata")).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = list();
    for _ in 0..2 {
        match places[2].try_start().await {
            Err(why @ MemberStartError::LostMetadata(_)) => {
                let why = why.to_string();
                assert!(why.contains("current.json is not there") && why.contains("Put back"), "{why}");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it founded a cluster"),
        }
        assert_eq!(list(), before);
    }
    fs::write(&pointer, text).unwrap();
    let node = places[2].start().await;
    assert_takes_part(&node, &nodes, "k").await;
    end(node).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_the_state_of_its_replicas_is_full_only_after_it_was_compared() {
    let (places, mut nodes) = three().await;
    put(&nodes[0], bucket(), "k", 3).await.unwrap();
    let node = nodes.remove(2);
    assert!(node.kv().filling_classes().is_empty());
    end(node).await;
    stop(&nodes).await;
    let file = places[2].path().join("replicas.json");
    assert!(file.exists());
    fs::remove_file(&file).unwrap();
    // Nobody can be asked.
    let node = places[2].start().await;
    let filling = node.kv().filling_classes();
    // What it holds is of unknown age.
    let is_right = |reason| matches!(reason, FillReason::NewStore | FillReason::Restored);
    assert!(!filling.is_empty() && filling.iter().all(|(_, reason)| is_right(*reason)), "{filling:?}");
    end(node).await;
    let node = places[2].start().await;
    assert!(!node.kv().filling_classes().is_empty(), "it is durable");
    end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_withdrawn_while_it_was_down_is_alone_after_its_start() {
    let places = [Place::durable(1), Place::durable(2)];
    let mut nodes = vec![places[0].start().await, places[1].start().await];
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    end(nodes.remove(1)).await;
    nodes[0].clear().await.unwrap();
    let node = places[1].start().await;
    let own = node.node().id();
    until("it has a cluster of its own again", || node.metadata().members().keys().copied().eq([own])).await;
    until("it takes writes", || node.kv().is_open_to_writes()).await;
    put(&node, bucket(), "k", 1).await.unwrap();
    end(node).await;
    nodes[0].stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_alone_when_the_cluster_that_withdrew_it_has_gone_elsewhere() {
    let places = [Place::durable(1), Place::durable(2), Place::durable(3)];
    let mut nodes = vec![places[0].start().await, places[1].start().await, places[2].start().await];
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    end(nodes.remove(1)).await;
    nodes[0].clear().await.unwrap();
    nodes[0].join(nodes[1].node().listens_on()).await.unwrap();
    let node = places[1].start().await;
    let own = node.node().id();
    until("it has a cluster of its own again", || node.metadata().members().keys().copied().eq([own])).await;
    end(node).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_joins_a_node_that_is_about_to_join_another_one() {
    let (_places, nodes) = alone(3).await;
    let address = nodes[0].node().listens_on();
    // The state between the steps of a join.
    let leaving =
        Command::SetStatus { node: nodes[0].node().id(), expected: MemberStatus::Valid, status: MemberStatus::Exiting };
    nodes[0].inner.following.is_joining.store(true, std::sync::atomic::Ordering::SeqCst);
    nodes[0].inner.metadata_node().propose(leaving, Instant::now() + PATIENCE).await.unwrap();
    let refused = nodes[1].join(address).await.unwrap_err().to_string();
    assert!(refused.contains("about to leave"), "{refused}");
    assert!(nodes[1].kv().is_open_to_writes());
    nodes[0].inner.following.is_joining.store(false, std::sync::atomic::Ordering::SeqCst);
    nodes[0].inner.joining.stay().await;
    // A join that is refused after that step leaves the node as it was.
    let own_props = props(serde_json::json!({ "w": 1 }));
    change(&nodes[0], move |registry| registry.set_bucket(&bucket(), &own_props)).await.unwrap();
    let refused = nodes[0].join(nodes[2].node().listens_on()).await.unwrap_err().to_string();
    assert!(refused.contains("has properties of its own here"), "{refused}");
    let own = nodes[0].node().id();
    until("it can be joined again", || nodes[0].metadata().members()[&own].status == MemberStatus::Valid).await;
    stop(&nodes).await;
}
