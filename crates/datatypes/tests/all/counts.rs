//! What nodes count about values of data types, over several engines in one process.

use crate::engines::cluster::{Cluster, bucket, count};
use bytes::Bytes;
use ombak_crdt::{Change, Field, FieldOp, FieldType, MapOp, Request, SetOp};
use ombak_datatypes::{legacy_put, typed_put};
use ombak_kv::{GetOptions, GetReply, PutOptions};
use ombak_types::{Bucket, PropMap};
use std::future::Future;

const NODES: usize = 3;

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

fn open() -> Cluster {
    Cluster::configured(NODES, |config| config.hooks.kinds = ombak_datatypes::kinds())
}

fn create_type(cluster: &Cluster, kind: &str) -> Bucket {
    let props: PropMap = [("datatype".to_owned(), kind.into())].into_iter().collect();
    for node in 0..NODES {
        let kv = cluster.kv(node);
        kv.buckets().create_type(kind.as_bytes(), &props).unwrap();
        kv.buckets().activate_type(kind.as_bytes()).unwrap();
    }
    Bucket::typed(kind.to_owned(), "b")
}

async fn change(cluster: &Cluster, node: usize, bucket: &Bucket, request: Request, w: u32) {
    let change = Change::Request { request, context: None };
    let options = PutOptions { w: count(w), ..PutOptions::default() };
    cluster.kv(node).put(typed_put(bucket.clone(), Some("k".into()), &change, options)).await.unwrap();
}

async fn fetch(cluster: &Cluster, node: usize, bucket: &Bucket) -> GetReply {
    let options = GetOptions { r: count(3), as_stored: true, ..GetOptions::default() };
    cluster.get(node, bucket, "k", options).await.unwrap()
}

fn number(cluster: &Cluster, node: usize, name: &str) -> u64 {
    let numbers = cluster.kv(node).stats().numbers();
    let found: Vec<u64> = numbers.into_iter().filter(|(is, _)| is == name).map(|(_, value)| value).collect();
    assert_eq!(found.len(), 1, "{name} is shown once");
    found[0]
}

fn sum(cluster: &Cluster, name: &str) -> u64 {
    (0..NODES).map(|node| number(cluster, node, name)).sum()
}

/// A request that changes a value of each type that Riak counts.
fn requests() -> [(&'static str, Request); 4] {
    let member = Bytes::from_static(b"m");
    let field = Field { name: "f".into(), kind: FieldType::Counter };
    [
        ("counter", Request::Counter(3)),
        ("set", Request::Set(vec![SetOp::Add(member.clone())])),
        ("map", Request::Map(vec![MapOp::Update(field, FieldOp::Counter(1))])),
        ("hll", Request::Hll(vec![member])),
    ]
}

#[test]
fn requests_and_updates_are_counted_by_their_type() {
    run(async {
        let cluster = open();
        for (kind, request) in requests() {
            let bucket = create_type(&cluster, kind);
            change(&cluster, 0, &bucket, request, 3).await;
            let GetReply::Found(found) = fetch(&cluster, 1, &bucket).await else { panic!("{kind}: nothing") };
            let asked = |name: &str| number(&cluster, 0, &name.replace('T', kind));
            assert_eq!([asked("node_puts_T"), asked("node_puts_T_total")], [1, 1], "{kind}");
            assert_eq!(asked("node_gets_T_total"), 0, "{kind}");
            assert!(asked("node_put_fsm_T_time_100") > 0, "{kind}");
            let read = |name: &str| number(&cluster, 1, &name.replace('T', kind));
            assert_eq!([read("node_gets_T"), read("node_gets_T_total"), read("node_puts_T")], [1, 1, 0], "{kind}");
            assert!(read("node_get_fsm_T_time_100") > 0, "{kind}");
            assert_eq!(read("node_get_fsm_T_siblings_100"), 1, "{kind}");
            assert_eq!(read("node_get_fsm_T_objsize_100"), found.value_bytes(), "{kind}");
            // One node has coordinated the update.
            let all = |name: &str| sum(&cluster, &name.replace('T', kind));
            assert_eq!([all("vnode_T_update"), all("vnode_T_update_total")], [1, 1], "{kind}");
            if kind == "hll" {
                assert_eq!([all("hll_bytes"), all("hll_bytes_total"), all("hll_bytes_100")], [found.value_bytes(); 3]);
            } else {
                assert_eq!(all("T_actor_counts_100"), 1, "{kind}");
            }
            // A plain get is not counted by the type.
            cluster.get(1, &bucket, "k", GetOptions::default()).await.unwrap();
            assert_eq!(read("node_gets_T_total"), 1, "{kind}");
        }
        assert_eq!(number(&cluster, 1, "node_gets_total"), 8, "all gets");
        assert_eq!(number(&cluster, 0, "node_puts_total"), 4, "all puts");
    });
}

#[test]
fn the_time_of_an_update_is_counted() {
    run(async {
        let cluster = open();
        let bucket = create_type(&cluster, "set");
        let members = (0..2000).map(|n| SetOp::Add(Bytes::from(format!("{n:010}"))));
        change(&cluster, 0, &bucket, Request::Set(members.collect()), 3).await;
        assert!(sum(&cluster, "vnode_set_update_time_100") > 0);
    });
}

#[test]
fn counters_of_riak_1_4_count_as_counters() {
    run(async {
        let cluster = open();
        let put = legacy_put(bucket(), "k".into(), 5, PutOptions { w: count(3), ..PutOptions::default() });
        cluster.kv(0).put(put).await.unwrap();
        fetch(&cluster, 0, &bucket()).await;
        let names = ["node_puts_counter_total", "node_gets_counter_total"];
        assert_eq!(names.map(|name| number(&cluster, 0, name)), [1, 1]);
        assert_eq!(["vnode_counter_update_total", "counter_actor_counts_100"].map(|name| sum(&cluster, name)), [1, 1]);
    });
}

#[test]
fn values_that_are_merged_and_copies_that_are_repaired_are_counted() {
    run(async {
        let cluster = open();
        for (kind, request) in requests() {
            let bucket = create_type(&cluster, kind);
            let [one, other] = [cluster.owners(&bucket, "k", 3)[0], cluster.owners(&bucket, "k", 3)[1]];
            cluster.set_handoffs(false);
            let all = |name: &str| sum(&cluster, &name.replace('T', kind));
            let merges = all("object_T_merge_total");
            // Two coordinators that do not hear of each other make two values. A replica that hears
            // of both merges them, or the read does.
            for (here, there) in [(one, other), (other, one)] {
                cluster.set_cut(there, true);
                change(&cluster, here, &bucket, request.clone(), 1).await;
                cluster.set_cut(there, false);
            }
            fetch(&cluster, one, &bucket).await;
            assert!(all("object_T_merge_total") > merges, "{kind}");
            assert_eq!(all("object_T_merge"), all("object_T_merge_total"), "{kind}");
            let repaired = format!("read_repairs_{kind}_total");
            cluster.wait_until("the repairs", |cluster| number(cluster, one, &repaired) > 0).await;
            assert_eq!(number(&cluster, other, &repaired), 0, "{kind}");
            cluster.set_handoffs(true);
        }
    });
}
