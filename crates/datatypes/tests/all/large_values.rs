//! Large values are added to: over several engines in one process, on simulated disks.

use crate::engines::cluster;

use crate::engines::cluster::{Cluster, count};
use bytes::Bytes;
use ombak_crdt::{
    Change, Field, FieldOp, FieldType, MapOp, Precision, Request, RiakCounter, RiakValue, SetOp, State, Value,
};
use ombak_datatypes::{state_of, typed_put};
use ombak_kv::{DeleteRequest, GetOptions, GetReply, PutOptions, PutRequest};
use ombak_storage::{Backend, ReadMode};
use ombak_types::names::encode_storage_key;
use ombak_types::props::DataType;
use ombak_types::{Actor, Bucket, Object, PropMap, Sibling, VectorClock, stored_object};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

const NODES: usize = 3;
const MEMBERS: usize = 5_000;
const ADDITIONS: usize = 200;
/// The bounds of an addition, on average (docs/design/datatypes.md).
const WRITTEN_BYTES_MAX: u64 = 16 << 10;

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

fn open() -> Cluster {
    Cluster::configured(NODES, |config| config.hooks.kinds = ombak_datatypes::kinds())
}

fn create_type(cluster: &Cluster, kind: DataType) -> Bucket {
    let props: PropMap = [("datatype".to_owned(), kind.name().into())].into_iter().collect();
    for node in 0..NODES {
        let kv = cluster.kv(node);
        kv.buckets().create_type(kind.name().as_bytes(), &props).unwrap();
        kv.buckets().activate_type(kind.name().as_bytes()).unwrap();
    }
    Bucket::typed(kind.name().to_owned(), "b")
}

fn member(number: usize) -> Bytes {
    Bytes::from(format!("member-{number:09}"))
}

fn add(numbers: impl IntoIterator<Item = usize>) -> Request {
    Request::Set(numbers.into_iter().map(|number| SetOp::Add(member(number))).collect())
}

fn assign(number: usize, text: &'static str) -> Request {
    let op = FieldOp::Register { value: text.into(), time_us: number as u64 };
    Request::Map(vec![MapOp::Update(Field::new(member(number % 1000), FieldType::Register), op)])
}

fn put(bucket: &Bucket, request: Request) -> PutRequest {
    let options = PutOptions { w: count(3), ..PutOptions::default() };
    typed_put(bucket.clone(), Some("k".into()), &Change::Request { request, context: None }, options)
}

/// An update that some nodes acknowledge.
async fn change_at(cluster: &Cluster, node: usize, bucket: &Bucket, request: Request, w: u32) {
    let mut put = put(bucket, request);
    (put.options.w, put.options.dw) = (count(w), count(w));
    cluster.kv(node).put(put).await.unwrap();
}

async fn delete(cluster: &Cluster, node: usize, bucket: &Bucket, clock: VectorClock, w: u32) {
    let (get, put) = (GetOptions::default(), PutOptions { w: count(w), ..PutOptions::default() });
    let request = DeleteRequest { bucket: bucket.clone(), key: "k".into(), clock: Some(clock), get, put, rw: None };
    cluster.kv(node).delete(request).await.unwrap();
}

async fn change(cluster: &Cluster, node: usize, bucket: &Bucket, request: Request) {
    cluster.kv(node).put(put(bucket, request)).await.unwrap();
}

async fn fetch(cluster: &Cluster, node: usize, bucket: &Bucket, r: u32) -> (Object, State) {
    let options = GetOptions { r: count(r), as_stored: true, ..GetOptions::default() };
    let GetReply::Found(object) = cluster.get(node, bucket, "k", options).await.unwrap() else { panic!("not found") };
    let state = state_of(&cluster.kv(node).buckets().props(bucket).unwrap(), &object).unwrap();
    (object, state)
}

async fn members(cluster: &Cluster, node: usize, bucket: &Bucket) -> BTreeSet<Bytes> {
    match fetch(cluster, node, bucket, 3).await.1.value() {
        Value::Set(members) => members.into_iter().collect(),
        other => panic!("{other:?}"),
    }
}

fn expected(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<Bytes> {
    numbers.into_iter().map(member).collect()
}

/// The bytes that the stores of a node were given.
fn put_bytes(cluster: &Cluster, node: usize) -> u64 {
    cluster.kv(node).vnode_status().into_iter().map(|(_, status)| status.put_bytes).sum()
}

fn keys(cluster: &Cluster, node: usize) -> u64 {
    cluster.kv(node).vnode_status().into_iter().map(|(_, status)| status.keys).sum()
}

/// What each of many additions writes on a node, on average. They go to all coordinators in turn.
async fn written_each(cluster: &Cluster, bucket: &Bucket, request: impl Fn(usize) -> Request) -> u64 {
    let before: Vec<u64> = (0..NODES).map(|node| put_bytes(cluster, node)).collect();
    for number in 0..ADDITIONS {
        change(cluster, number % NODES, bucket, request(number)).await;
    }
    let written = (0..NODES).map(|node| put_bytes(cluster, node) - before[node]);
    written.max().unwrap() / ADDITIONS as u64
}

#[test]
fn a_member_more_writes_little_and_is_there_everywhere() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        let written = written_each(&cluster, &bucket, |number| add([MEMBERS + number])).await;
        assert!(written < WRITTEN_BYTES_MAX, "{written} bytes each");
        for node in 0..NODES {
            assert_eq!(members(&cluster, node, &bucket).await, expected(0..MEMBERS + ADDITIONS));
            assert_eq!(keys(&cluster, node), 1, "parts are no keys");
        }
        // All copies have the same digest, so nothing was left to repair.
        let repairs =
            |node| cluster.kv(node).stats().numbers().into_iter().find(|(name, _)| name == "read_repairs_total");
        (0..NODES).for_each(|node| assert_eq!(repairs(node).map(|(_, count)| count), Some(0)));
    });
}

#[test]
fn a_field_of_a_large_map_writes_little() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Map);
        let all = (0..1000).map(|number| assign(number, "a value of a field of a map"));
        let ops = all.flat_map(|request| if let Request::Map(ops) = request { ops } else { Vec::new() }).collect();
        change(&cluster, 0, &bucket, Request::Map(ops)).await;
        let written = written_each(&cluster, &bucket, |number| assign(5_000 + number, "another value")).await;
        assert!(written < WRITTEN_BYTES_MAX, "{written} bytes each");
        let (_, state) = fetch(&cluster, 1, &bucket, 3).await;
        let Value::Map(fields) = state.value() else { panic!("a map") };
        let changed = fields.iter().filter(|(_, value)| format!("{value:?}").contains("another value")).count();
        assert_eq!((fields.len(), changed), (1000, ADDITIONS));
    });
}

#[test]
fn a_lower_precision_reduces_a_large_hyperloglog_with_the_next_member() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Hll);
        let members = |numbers: std::ops::Range<usize>| Request::Hll(numbers.map(member).collect());
        change(&cluster, 0, &bucket, members(0..MEMBERS)).await;
        change(&cluster, 1, &bucket, members(MEMBERS..MEMBERS + 1)).await;
        let (object, before) = fetch(&cluster, 2, &bucket, 3).await;
        assert!(object.value_bytes() > 8 << 10, "it is stored as a large value");
        let State::Hll(mut expected) = before else { panic!("a HyperLogLog") };
        assert_eq!(expected.precision(), Precision::DEFAULT);
        let lower: PropMap = [("hll_precision".to_owned(), 10.into())].into_iter().collect();
        let props = cluster.kv(0).buckets().props(&bucket).unwrap();
        (0..NODES).for_each(|node| cluster.kv(node).buckets().update_type(b"hll", &lower).unwrap());
        // With the new properties a read would lower the precision of what it shows.
        let stored = async |node| state_of(&props, &fetch(&cluster, node, &bucket, 1).await.0).unwrap();
        assert!(stored(0).await == State::Hll(expected.clone()), "only a put lowers what is stored");
        change(&cluster, 0, &bucket, members(MEMBERS + 1..MEMBERS + 2)).await;
        expected.reduce(Precision::new(10).unwrap());
        expected.merge_delta(&expected.delta([member(MEMBERS + 1)]));
        for node in 0..NODES {
            assert!(stored(node).await == State::Hll(expected.clone()), "node {node}");
        }
    });
}

#[test]
fn a_replica_that_missed_additions_gets_the_whole_value() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        cluster.set_handoffs(false);
        let other = cluster.owners(&bucket, "k", 3)[1];
        let here = cluster.owners(&bucket, "k", 3)[0];
        cluster.set_cut(other, true);
        change_at(&cluster, here, &bucket, add([MEMBERS]), 2).await;
        cluster.set_cut(other, false);
        // The replica lacks what this one builds on.
        change(&cluster, here, &bucket, add([MEMBERS + 1])).await;
        let (_, state) = fetch(&cluster, other, &bucket, 1).await;
        let Value::Set(members) = state.value() else { panic!("a set") };
        assert_eq!(members.into_iter().collect::<BTreeSet<_>>(), expected(0..MEMBERS + 2));
        cluster.set_handoffs(true);
    });
}

#[test]
fn additions_at_several_coordinators_at_once_are_all_kept() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        for round in 0..10 {
            let first = MEMBERS + round * NODES;
            let puts = (0..NODES).map(|node| {
                let (kv, put) = (cluster.kv(node), put(&bucket, add([first + node])));
                tokio::spawn(async move { kv.put(put).await })
            });
            for put in puts.collect::<Vec<_>>() {
                put.await.unwrap().unwrap();
            }
        }
        for node in 0..NODES {
            assert_eq!(members(&cluster, node, &bucket).await, expected(0..MEMBERS + 10 * NODES));
        }
    });
}

#[test]
fn what_a_removal_without_context_names_must_be_there() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        let remove = |number| Request::Set(vec![SetOp::Remove(member(number))]);
        change(&cluster, 1, &bucket, remove(3)).await;
        let refused = cluster.kv(2).put(put(&bucket, remove(3))).await.unwrap_err();
        assert!(refused.to_string().contains("not_present"), "{refused}");
        assert_eq!(members(&cluster, 0, &bucket).await, expected((0..MEMBERS).filter(|number| *number != 3)));
    });
}

#[test]
fn a_put_can_return_the_value_that_it_added_to() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        // The second time, more than a request may read without asking for room.
        let mut count = MEMBERS;
        for _ in 0..2 {
            let mut wanted = put(&bucket, add([count]));
            wanted.options.return_body = true;
            let object = cluster.kv(0).put(wanted).await.unwrap().object.unwrap();
            let state = state_of(&cluster.kv(0).buckets().props(&bucket).unwrap(), &object).unwrap();
            assert_eq!(state.value(), Value::Set(expected(0..=count).into_iter().collect()));
            change(&cluster, 0, &bucket, add(count + 1..5 * MEMBERS)).await;
            count = 5 * MEMBERS;
        }
    });
}

#[test]
fn plain_gets_and_puts_have_riaks_bytes() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        change(&cluster, 1, &bucket, add([MEMBERS])).await;
        let options = GetOptions { r: count(3), ..GetOptions::default() };
        let GetReply::Found(object) = cluster.get(2, &bucket, "k", options).await.unwrap() else { panic!("found") };
        let (_, state) = fetch(&cluster, 0, &bucket, 3).await;
        assert_eq!(object.siblings[0].value, RiakValue::of(state, RiakCounter::Typed).to_bytes());

        let mut theirs = State::new(DataType::Set, Precision::DEFAULT);
        let delta = theirs.delta(&add([MEMBERS + 7]), &Actor::new(b"elsewhere"), None).unwrap();
        theirs.merge_delta(&delta).unwrap();
        let value = Sibling::new(RiakValue::of(theirs, RiakCounter::Typed).to_bytes());
        let options = PutOptions { w: count(3), ..PutOptions::default() };
        let object = Object { clock: VectorClock::new(), siblings: vec![value] };
        cluster.kv(1).put(PutRequest { bucket: bucket.clone(), key: Some("k".into()), object, options }).await.unwrap();
        let all = (0..=MEMBERS).chain([MEMBERS + 7]);
        assert_eq!(members(&cluster, 2, &bucket).await, expected(all));
    });
}

#[test]
fn a_delete_takes_all_parts() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        for number in 0..50 {
            change(&cluster, number % NODES, &bucket, add([MEMBERS + number])).await;
        }
        let (object, _) = fetch(&cluster, 0, &bucket, 3).await;
        delete(&cluster, 1, &bucket, object.clock, 3).await;
        let live = |cluster: &Cluster, node| {
            cluster.kv(node).vnode_status().into_iter().map(|(_, status)| status.live_bytes).sum::<u64>()
        };
        cluster.wait_until("the parts are gone", |cluster| (0..NODES).all(|node| live(cluster, node) < 1000)).await;
        change(&cluster, 2, &bucket, add([1])).await;
        assert_eq!(members(&cluster, 0, &bucket).await, expected([1]));
    });
}

/// The store of a node that has the key `k`, and its storage key.
fn store_of(cluster: &Cluster, node: usize, bucket: &Bucket) -> (Arc<dyn Backend>, Vec<u8>) {
    let mut key = Vec::new();
    encode_storage_key(bucket, b"k", &mut key);
    let kv = cluster.kv(node);
    let has_it = |store: &Arc<dyn Backend>| store.head(&key, ReadMode::Blocking).unwrap().is_some();
    let store = kv.stores().map(|(_, store)| store).find(has_it).expect("the node has the key");
    (store, key)
}

/// Removes the first part of a value, as damage to the disk does. No version is told.
fn lose_part(store: &dyn Backend, key: &[u8]) {
    let first = |generation: u64| [&[1], key, &generation.to_be_bytes()[..], &[0; 4]].concat();
    let lost = (0..=store.last_seq()).filter(|generation| store.delete(&first(*generation)).unwrap().is_some());
    assert_eq!(lost.count(), 1);
    assert!(store.get(key, ReadMode::Blocking).is_err());
}

#[test]
fn a_value_with_a_lost_part_is_repaired_from_another_replica() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        change(&cluster, 0, &bucket, add([MEMBERS])).await;
        let owners = cluster.owners(&bucket, "k", 3);
        let (store, key) = store_of(&cluster, owners[1], &bucket);
        lose_part(&*store, &key);
        // Others still show everything, and the copy is written anew.
        assert_eq!(members(&cluster, owners[0], &bucket).await, expected(0..=MEMBERS));
        fetch(&cluster, owners[1], &bucket, 2).await;
        cluster.wait_until("the copy is whole", |_| store.get(&key, ReadMode::Blocking).is_ok()).await;
        // Where the head alone is needed, damage does not show. The value is never taken for
        // absent.
        lose_part_of_new(&cluster, owners[2], &bucket).await;
    });
}

/// An addition to a value whose part is lost is kept, and the value is repaired afterwards.
async fn lose_part_of_new(cluster: &Cluster, node: usize, bucket: &Bucket) {
    change(cluster, node, bucket, add([MEMBERS + 1])).await;
    let (store, key) = store_of(cluster, node, bucket);
    lose_part(&*store, &key);
    change(cluster, node, bucket, add([MEMBERS + 2])).await;
    let options = GetOptions { r: count(2), as_stored: true, ..GetOptions::default() };
    cluster.get(node, bucket, "k", options).await.unwrap();
    cluster.wait_until("the copy is whole", |_| store.get(&key, ReadMode::Blocking).is_ok()).await;
    for node in 0..NODES {
        assert_eq!(members(cluster, node, bucket).await, expected(0..=MEMBERS + 2));
    }
}

/// The first value has seen the actor's event, so it would take the new member for one that it has
/// removed (docs/design/datatypes.md).
#[test]
fn a_new_value_does_not_go_on_with_an_actor_of_the_deleted_one() {
    run(async {
        for kind in [DataType::Set, DataType::Counter] {
            let cluster = open();
            let bucket = create_type(&cluster, kind);
            let request = |number: usize| match kind {
                DataType::Set => add([number]),
                _ => Request::Counter([5, 100, 10, 2][number]),
            };
            let owners = cluster.owners(&bucket, "k", 3);
            let [a, b, c] = [owners[0], owners[1], owners[2]];
            change(&cluster, a, &bucket, request(0)).await;
            let (object, _) = fetch(&cluster, a, &bucket, 3).await;
            cluster.set_handoffs(false);
            // A node that is cut off hears nothing, so the others are while C works alone.
            [a, b].iter().for_each(|node| cluster.set_cut(*node, true));
            change_at(&cluster, c, &bucket, request(1), 1).await;
            [a, b].iter().for_each(|node| cluster.set_cut(*node, false));
            cluster.set_cut(c, true);
            delete(&cluster, a, &bucket, object.clock, 2).await;
            change_at(&cluster, b, &bucket, request(2), 2).await;
            change_at(&cluster, a, &bucket, request(3), 2).await;
            cluster.set_cut(c, false);
            cluster.set_handoffs(true);
            let (_, state) = fetch(&cluster, b, &bucket, 3).await;
            let is_there = match state.value() {
                Value::Set(members) => members.contains(&member(2)) && members.contains(&member(3)),
                // What was deleted beside the cut off update may be counted or not.
                Value::Counter(sum) => [112, 117].contains(&sum),
                other => panic!("{other:?}"),
            };
            assert!(is_there, "{:?}", state.value());
        }
    });
}

#[test]
fn a_removal_shrinks_a_value_that_has_reached_the_size_limit() {
    run(async {
        let cluster = Cluster::configured(NODES, |config| {
            config.hooks.kinds = ombak_datatypes::kinds();
            config.limits.bytes_max = 130_000;
        });
        let bucket = create_type(&cluster, DataType::Set);
        change(&cluster, 0, &bucket, add(0..MEMBERS)).await;
        let mut count = MEMBERS;
        let refused = loop {
            match cluster.kv(0).put(put(&bucket, add([count]))).await {
                Ok(_) => count += 1,
                Err(refused) => break refused,
            }
        };
        assert!(refused.to_string().contains("large"), "{refused}");
        let (_, state) = fetch(&cluster, 0, &bucket, 3).await;
        let context = state.context().cloned();
        let remove = Request::Set((0..10).map(|number| SetOp::Remove(member(number))).collect());
        let change = Change::Request { request: remove, context };
        let options = PutOptions { w: cluster::count(3), ..PutOptions::default() };
        cluster.kv(0).put(typed_put(bucket.clone(), Some("k".into()), &change, options)).await.unwrap();
        assert_eq!(members(&cluster, 1, &bucket).await, expected(10..count));
    });
}

/// The copy of a node, without what other nodes have.
fn copy_of(cluster: &Cluster, node: usize, bucket: &Bucket) -> State {
    let (store, key) = store_of(cluster, node, bucket);
    let stored = store.get(&key, ReadMode::Blocking).unwrap().unwrap();
    let object = stored_object::decode(&stored.head, stored.body.as_ref()).unwrap();
    state_of(&cluster.kv(node).buckets().props(bucket).unwrap(), &object).unwrap()
}

/// The clock of a copy has the events of a value that was deleted, and its new value has not. An
/// addition to the old value brings all of that.
#[test]
fn an_addition_to_a_deleted_value_brings_the_whole_of_it() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, DataType::Gset);
        let add = |numbers: std::ops::Range<usize>| Request::GSet(numbers.map(member).collect());
        let owners = cluster.owners(&bucket, "k", 3);
        change(&cluster, owners[0], &bucket, add(0..MEMBERS)).await;
        let (object, _) = fetch(&cluster, owners[0], &bucket, 3).await;
        cluster.set_handoffs(false);
        cluster.set_cut(owners[0], true);
        delete(&cluster, owners[1], &bucket, object.clock, 2).await;
        change_at(&cluster, owners[1], &bucket, add(MEMBERS..2 * MEMBERS), 2).await;
        cluster.set_cut(owners[0], false);
        change(&cluster, owners[0], &bucket, add(2 * MEMBERS..2 * MEMBERS + 1)).await;
        let all = expected(0..=2 * MEMBERS).into_iter().collect();
        assert_eq!(copy_of(&cluster, owners[1], &bucket).value(), Value::GSet(all));
    });
}
