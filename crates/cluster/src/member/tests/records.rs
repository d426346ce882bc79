//! Records of namespaces in a cluster.

use super::*;
use ombak_kv::BucketRegistry;
use ombak_kv::buckets::PropsError;
use ombak_kv::buckets::{FUNCTIONS, FunctionsNamespace, RecordEdit, RecordNamespace, RecordUpdate};
use parking_lot::Mutex;
use std::collections::BTreeMap;

const ONE: &str = "function() { return [1]; }";
const TWO: &str = "function() { return [2]; }";

/// A namespace that remembers what it was told.
#[derive(Debug, Default)]
struct Users(Mutex<BTreeMap<Vec<u8>, String>>);

impl RecordNamespace for Users {
    fn name(&self) -> &'static str {
        "users"
    }

    fn validate(&self, _key: &[u8], value: &str) -> Result<(), PropsError> {
        if value.is_empty() { Err(PropsError::BadRecord("a user is not empty".into())) } else { Ok(()) }
    }

    fn changed(&self, update: RecordUpdate<'_>) {
        let mut told = self.0.lock();
        match update.new {
            Some(record) => drop(told.insert(update.key.to_vec(), record.value.to_string())),
            None => drop(told.remove(&**update.key)),
        }
    }
}

impl Users {
    fn get(&self, key: &[u8]) -> Option<String> {
        self.0.lock().get(key).cloned()
    }
}

/// A place whose node knows users.
fn place(number: usize) -> (Place, Arc<Users>) {
    let users = Arc::<Users>::default();
    let place = Place::durable(number);
    let namespaces = list(&users);
    (Place { namespaces, ..place }, users)
}

fn list(users: &Arc<Users>) -> Namespaces {
    Namespaces::new(vec![Arc::<FunctionsNamespace>::default(), users.clone()])
}

/// The places and nodes of a cluster of two, and what each was told of users.
async fn two() -> (Vec<Place>, Vec<MemberNode>, Vec<Arc<Users>>) {
    let (places, users): (Vec<Place>, Vec<Arc<Users>>) = (1..=2).map(place).unzip();
    let nodes = vec![places[0].start().await, places[1].start().await];
    form(&nodes).await;
    let all_can = || nodes.iter().all(|node| node.check_all_can(Feature::OPEN_RECORDS).is_ok());
    until("the members know each other's versions", all_can).await;
    (places, nodes, users)
}

async fn set(node: &MemberNode, key: &'static str, value: &'static str) -> Result<(), PropsError> {
    let set = move |registry: &BucketRegistry| {
        registry.change_record("users", key.as_bytes(), |_| Ok(RecordEdit::Set(value.into())))
    };
    change(node, set).await
}

/// Creates a record, if there is none yet.
async fn create(node: &MemberNode, key: &'static str, value: &'static str) -> Result<(), PropsError> {
    let create = move |registry: &BucketRegistry| {
        registry.change_record("users", key.as_bytes(), |present| match present {
            None => Ok(RecordEdit::Set(value.into())),
            Some(_) => Err(PropsError::Refused("it exists".into())),
        })
    };
    change(node, create).await
}

async fn register(node: &MemberNode, source: &'static str) -> Result<(), PropsError> {
    change(node, move |registry| registry.put_function("f", source, true)).await
}

fn value(node: &MemberNode, key: &str) -> Option<String> {
    node.kv().buckets().record("users", key.as_bytes()).map(|record| record.value.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_known_to_every_member_and_its_observer_when_it_is_acknowledged() {
    let (_places, nodes, users) = two().await;
    set(&nodes[0], "u", "one").await.unwrap();
    assert!(nodes.iter().all(|node| value(node, "u").as_deref() == Some("one")));
    assert!(users.iter().all(|users| users.get(b"u").as_deref() == Some("one")));
    assert!(matches!(set(&nodes[1], "u", "").await, Err(PropsError::BadRecord(_))));
    let remove = |registry: &BucketRegistry| registry.change_record("users", b"u", |_| Ok(RecordEdit::Remove));
    change(&nodes[1], remove).await.unwrap();
    assert!(nodes.iter().all(|node| value(node, "u").is_none()));
    assert!(users.iter().all(|users| users.get(b"u").is_none()));
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_creations_of_one_record_one_is_acknowledged() {
    let (_places, nodes, _) = two().await;
    let all = [create(&nodes[0], "u", "a"), create(&nodes[1], "u", "b"), create(&nodes[0], "u", "c")];
    let done = futures_util::future::join_all(all).await;
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1, "{done:?}");
    assert!(done.iter().all(|done| matches!(done, Ok(()) | Err(PropsError::Refused(_)))), "{done:?}");
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_a_node_that_was_alone_are_taken_over_and_survive_restarts() {
    let (mut place, users) = place(1);
    let alone = BucketRegistry::open(Arc::new(RealFs), place.path(), "node1@test", &PropMap::new()).unwrap();
    let alone = alone.with_namespaces(list(&Arc::default()));
    alone.change_record("users", b"before", |_| Ok(RecordEdit::Set("one".into()))).unwrap();
    alone.put_function("f", ONE, false).unwrap();
    drop(alone);
    let node = place.start().await;
    assert_eq!((value(&node, "before").as_deref(), users.get(b"before").as_deref()), (Some("one"), Some("one")));
    assert!(node.kv().buckets().function("f").is_some());
    assert!(!place.path().join("buckets.json").exists());
    set(&node, "after", "two").await.unwrap();
    end(node).await;
    let users = Arc::<Users>::default();
    place.namespaces = list(&users);
    let node = place.start().await;
    assert_eq!((users.get(b"before").as_deref(), users.get(b"after").as_deref()), (Some("one"), Some("two")));
    end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_records_joins_a_cluster_that_has_the_same() {
    let (places, users): (Vec<Place>, Vec<Arc<Users>>) = (1..=2).map(place).unzip();
    let nodes = [places[0].start().await, places[1].start().await];
    set(&nodes[1], "u", "one").await.unwrap();
    let join = || nodes[1].join(nodes[0].node().listens_on());
    let refused = join().await.unwrap_err().to_string();
    assert!(refused.contains("the record 'u' of users is set here, and not in the cluster"), "{refused}");
    set(&nodes[0], "u", "two").await.unwrap();
    let refused = join().await.unwrap_err().to_string();
    assert!(refused.contains("the record 'u' of users has another value in the cluster"), "{refused}");
    set(&nodes[0], "u", "one").await.unwrap();
    set(&nodes[0], "v", "two").await.unwrap();
    join().await.unwrap();
    until("its observer knows both", || users[1].get(b"u").is_some() && users[1].get(b"v").is_some()).await;
    stop(&nodes).await;
}

/// The second member runs the version before: it knows functions, and no other records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_set_when_all_members_know_them_and_functions_before() {
    let (first, _) = place(1);
    let before = [Feature::RING_CHANGES, Feature::LOCATIONS, Feature::DATA_TYPES, Feature::FUNCTIONS];
    let of_before = |place| Place { speaks: Speaks::Version1, features: before.to_vec(), ..place };
    let mut second = of_before(Place::durable(2));
    let mut nodes = vec![first.start().await, second.start().await];
    form(&nodes).await;
    second.listen = nodes[1].node().listens_on();
    until("the second knows functions", || nodes[0].check_all_can(Feature::FUNCTIONS).is_ok()).await;
    let refused = set(&nodes[0], "u", "one").await.unwrap_err().to_string();
    assert!(
        refused.contains("not all members know records of namespaces") && refused.contains("node2@test"),
        "{refused}"
    );
    register(&nodes[0], ONE).await.unwrap();
    let metadata = nodes[0].metadata();
    assert!(metadata.has_had_records(FUNCTIONS) && !metadata.has_used_open_records());

    end(nodes.pop().unwrap()).await;
    second = Place { speaks: Speaks::Everything, features: Vec::new(), ..second };
    nodes.push(second.start().await);
    until("the second was upgraded", || nodes[0].check_all_can(Feature::OPEN_RECORDS).is_ok()).await;
    register(&nodes[0], TWO).await.unwrap();
    assert!(nodes[0].metadata().has_used_open_records());
    let source = |node: &MemberNode| node.kv().buckets().function("f").map(|function| function.source.to_string());
    until("both know the new source", || nodes.iter().all(|node| source(node).as_deref() == Some(TWO))).await;
    set(&nodes[0], "u", "one").await.unwrap();
    until("it is kept where the namespace is not known", || value(&nodes[1], "u").as_deref() == Some("one")).await;

    let third = of_before(Place::durable(3)).start().await;
    let refused = third.join(nodes[0].node().listens_on()).await.unwrap_err().to_string();
    assert!(refused.contains("Unable to get ring from"), "{refused}");
    end(third).await;
    stop(&nodes).await;
}

/// What a node had of its own was in the cluster, too, or the node would not have joined.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_holds_nothing_and_does_not_join_after_all_keeps_its_records_and_types() {
    let (places, users): (Vec<Place>, Vec<Arc<Users>>) = (1..=2).map(place).unzip();
    let nodes = [places[0].start().await, places[1].start().await];
    for node in &nodes {
        set(node, "u", "one").await.unwrap();
        register(node, ONE).await.unwrap();
        change(node, |registry| registry.create_type(b"t", &PropMap::new())).await.unwrap();
    }
    nodes[1].join(nodes[0].node().listens_on()).await.unwrap();
    nodes[0].clear().await.unwrap();
    let own = nodes[1].node().id();
    until("it is alone again", || nodes[1].metadata().members().keys().copied().eq([own])).await;
    assert_eq!((value(&nodes[1], "u").as_deref(), users[1].get(b"u").as_deref()), (Some("one"), Some("one")));
    assert!(nodes[1].kv().buckets().function("f").is_some());
    assert!(nodes[1].metadata().types().contains_key(&b"t"[..]));
    stop(&nodes).await;
}
