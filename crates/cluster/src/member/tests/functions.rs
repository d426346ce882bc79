//! Registered functions in a cluster.

use super::*;
use ombak_kv::BucketRegistry;
use ombak_kv::buckets::{BucketRecord, FUNCTIONS, RecordName};
use ombak_kv::buckets::{ProposedChange, PropsError, RecordChange, Undecided};

const ONE: &str = "function() { return [1]; }";
const TWO: &str = "function() { return [2]; }";

async fn register(
    node: &MemberNode,
    name: &'static str,
    source: &'static str,
    replaces: bool,
) -> Result<(), PropsError> {
    change(node, move |registry| registry.put_function(name, source, replaces)).await
}

async fn delete(node: &MemberNode, name: &'static str) -> Result<(), PropsError> {
    change(node, move |registry| registry.delete_function(name, false)).await
}

fn source(node: &MemberNode, name: &str) -> Option<String> {
    node.kv().buckets().function(name).map(|record| record.source.to_string())
}

/// Three members, each of which knows what the others can.
async fn acquainted_cluster() -> (Vec<Place>, Vec<MemberNode>) {
    let (places, nodes) = cluster(3).await;
    let all_can = || nodes.iter().all(|node| node.check_all_can(Feature::FUNCTIONS).is_ok());
    until("the members know each other's versions", all_can).await;
    (places, nodes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_is_known_to_every_member_when_its_registration_is_answered() {
    let (_places, nodes) = acquainted_cluster().await;
    register(&nodes[0], "f", ONE, false).await.unwrap();
    assert!(nodes.iter().all(|node| source(node, "f").as_deref() == Some(ONE)));
    assert_eq!(register(&nodes[1], "f", TWO, false).await, Err(PropsError::FunctionExists));
    register(&nodes[1], "f", TWO, true).await.unwrap();
    assert!(nodes.iter().all(|node| source(node, "f").as_deref() == Some(TWO)));
    delete(&nodes[2], "f").await.unwrap();
    assert!(nodes.iter().all(|node| source(node, "f").is_none()));
    assert_eq!(delete(&nodes[0], "f").await, Err(PropsError::NoFunction));
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_registrations_of_one_name_one_is_acknowledged() {
    let (_places, nodes) = acquainted_cluster().await;
    let all = nodes.iter().map(|node| register(node, "f", ONE, false));
    let done = futures_util::future::join_all(all).await;
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1, "{done:?}");
    assert!(done.iter().all(|done| matches!(done, Ok(()) | Err(PropsError::FunctionExists))), "{done:?}");
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_survive_a_restart_and_those_of_a_node_that_was_alone_are_taken_over() {
    let place = Place::durable(1);
    let alone = BucketRegistry::open(Arc::new(RealFs), place.path(), "node1@test", &PropMap::new()).unwrap();
    alone.put_function("before", ONE, false).unwrap();
    drop(alone);
    let node = place.start().await;
    assert_eq!(source(&node, "before").as_deref(), Some(ONE));
    assert!(!place.path().join("buckets.json").exists());
    register(&node, "after", TWO, false).await.unwrap();
    end(node).await;
    let node = place.start().await;
    let both = (source(&node, "before"), source(&node, "after"));
    assert_eq!(both, (Some(ONE.into()), Some(TWO.into())));
    end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_functions_joins_a_cluster_that_has_the_same() {
    let (_places, nodes) = alone(2).await;
    register(&nodes[1], "f", ONE, false).await.unwrap();
    let join = || nodes[1].join(nodes[0].node().listens_on());
    let refused = join().await.unwrap_err().to_string();
    assert!(refused.contains("the function 'f' is registered here, and not in the cluster"), "{refused}");
    register(&nodes[0], "f", TWO, false).await.unwrap();
    let refused = join().await.unwrap_err().to_string();
    assert!(refused.contains("the function 'f' has another source in the cluster"), "{refused}");
    register(&nodes[0], "f", ONE, true).await.unwrap();
    register(&nodes[0], "g", TWO, true).await.unwrap();
    join().await.unwrap();
    until("it has both", || source(&nodes[1], "f").is_some() && source(&nodes[1], "g").is_some()).await;
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_are_registered_when_all_members_know_them_and_older_nodes_do_not_join_any_more() {
    let mut places: Vec<Place> = (1..=2).map(Place::durable).collect();
    places[1].speaks = Speaks::Version1;
    let mut nodes = vec![places[0].start().await, places[1].start().await];
    form(&nodes).await;
    for (place, node) in places.iter_mut().zip(&nodes) {
        place.listen = node.node().listens_on();
    }
    let refused = register(&nodes[0], "f", ONE, false).await.unwrap_err().to_string();
    assert!(
        refused.contains("not all members know registered functions") && refused.contains("node2@test"),
        "{refused}"
    );
    assert!(!nodes[0].metadata().has_had_records(FUNCTIONS));
    end(nodes.pop().unwrap()).await;
    places[1].speaks = Speaks::Everything;
    nodes.push(places[1].start().await);
    until("the second was upgraded", || nodes[0].check_all_can(Feature::FUNCTIONS).is_ok()).await;
    register(&nodes[0], "f", ONE, false).await.unwrap();
    // The log has the entries even when the function is gone.
    delete(&nodes[0], "f").await.unwrap();
    let older = Place { speaks: Speaks::Version1, ..Place::durable(3) };
    let third = older.start().await;
    let refused = third.join(nodes[0].node().listens_on()).await.unwrap_err().to_string();
    assert!(refused.contains("Unable to get ring from"), "{refused}");
    end(third).await;
    stop(&nodes).await;
}

/// What a node proposes that knows the function, and no hook that names it.
fn proposed(change: RecordChange, expected: Option<u64>, functions: Vec<Arc<str>>) -> ProposedChange {
    ProposedChange { change, expected, type_expected: None, moves: None, functions, unless_named: true }
}

/// The second node acts on what it knew before the first one was faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hook_and_the_deletion_of_its_function_the_first_takes_effect() {
    let (_places, nodes) = acquainted_cluster().await;
    register(&nodes[0], "f", ONE, false).await.unwrap();
    let version = nodes[0].kv().buckets().function("f").unwrap().version;
    let hooks: PropMap = serde_json::from_str(r#"{"precommit": [{"name": "f"}]}"#).unwrap();
    let bucket = |name: &'static str| Bucket::untyped(name);

    let of_first = hooks.clone();
    change(&nodes[0], move |registry| registry.set_bucket(&bucket("first"), &of_first)).await.unwrap();
    let deletion = || proposed(RecordChange::Open(RecordName::new(FUNCTIONS, b"f"), None), Some(version), Vec::new());
    assert_eq!(nodes[1].decide_properties(deletion()).await, Err(Undecided::Overtaken));
    assert!(matches!(delete(&nodes[1], "f").await, Err(PropsError::FunctionUsed(users)) if users.len() == 1));
    assert!(nodes.iter().all(|node| source(node, "f").as_deref() == Some(ONE)));

    change(&nodes[0], move |registry| registry.reset_bucket(&bucket("first"))).await.unwrap();
    delete(&nodes[0], "f").await.unwrap();
    let record = BucketRecord { overrides: Arc::new(hooks), version: 0 };
    let hook = RecordChange::Bucket(bucket("second"), Some(record));
    let hook = proposed(hook, None, vec!["f".into()]);
    assert_eq!(nodes[1].decide_properties(hook).await, Err(Undecided::Overtaken));
    let has_hook = |node: &MemberNode| !node.kv().buckets().props(&bucket("second")).unwrap().precommit.is_empty();
    assert!(!nodes.iter().any(has_hook));
    stop(&nodes).await;
}
