//! Starts of members: the first one, later ones, and those of directories that are too old.

use super::*;
use ombak_kv::Kv;
use std::fs;

async fn with_types(place: &Place) {
    // The engine of a node that is alone keeps its bucket types in a file.
    let kv = Kv::open(place.parts().await.node.kv).unwrap();
    for number in 0..3 {
        let name = format!("t{number}");
        kv.buckets().create_type(name.as_bytes(), &props(serde_json::json!({"n_val": 2}))).unwrap();
    }
    kv.buckets().activate_type(b"t1").unwrap();
    kv.buckets().set_bucket(&Bucket::typed("t1", "b"), &props(serde_json::json!({"r": 1}))).unwrap();
    for number in 0..700 {
        let bucket = Bucket::untyped(format!("b{number}"));
        kv.buckets().set_bucket(&bucket, &props(serde_json::json!({"w": 1}))).unwrap();
    }
    kv.close();
}

fn assert_has_types(node: &MemberNode) {
    let registry = node.kv().buckets();
    assert_eq!(registry.list_types().len(), 4, "with the default type");
    let bucket = registry.props(&Bucket::typed("t1", "b")).unwrap();
    assert_eq!((bucket.n_val, bucket.r), (2, Quorum::Count(1)));
    assert!(registry.props(&Bucket::typed("t2", "b")).is_err(), "not active");
    assert_eq!(registry.props(&Bucket::untyped("b699")).unwrap().w, Quorum::Count(1));
    assert_eq!((node.metadata().types().len(), node.metadata().buckets().len()), (3, 701));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_takes_its_bucket_types_into_its_cluster_once() {
    let place = Place::durable(1);
    with_types(&place).await;
    let node = place.start().await;
    assert_has_types(&node);
    assert!(!place.path().join("buckets.json").exists());
    let reset = Bucket::untyped("b7");
    let changed = reset.clone();
    change(&node, move |registry| registry.reset_bucket(&changed)).await.unwrap();
    end(node).await;
    let node = place.start().await;
    assert_ne!(node.kv().buckets().props(&reset).unwrap().w, Quorum::Count(1), "the old file has no say any more");
    assert_eq!(node.metadata().buckets().len(), 700);
    end(node).await;
}

/// A loss of power between the steps of the founding: the next start does the rest again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bucket_types_survive_a_founding_that_was_interrupted() {
    // The log of the new cluster is not in force yet.
    let place = Place::durable(1);
    with_types(&place).await;
    fs::create_dir_all(place.path().join("metadata/log-1")).unwrap();
    fs::write(place.path().join("metadata/log-1/metadata.log"), b"torn").unwrap();
    let node = place.start().await;
    assert_has_types(&node);
    end(node).await;
    // The log is in force, and the file was not put aside.
    let place = Place::durable(1);
    with_types(&place).await;
    let file = fs::read(place.path().join("buckets.json")).unwrap();
    let node = place.start().await;
    end(node).await;
    fs::write(place.path().join("buckets.json"), file).unwrap();
    let node = place.start().await;
    assert_has_types(&node);
    assert!(!place.path().join("buckets.json").exists());
    end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_a_majority_goes_on_with_the_last_ring_also_after_a_restart() {
    let places: Vec<Place> = (1..=3).map(Place::durable).collect();
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(place.start().await);
    }
    form(&nodes).await;
    put(&nodes[0], bucket(), "k", 3).await.unwrap();
    let version = nodes[2].kv().ring().version();
    stop(&nodes).await;
    drop(nodes);
    let node = places[2].start().await;
    assert_eq!((node.kv().ring().version(), node.kv().ring().node_count()), (version, 3));
    assert_eq!(node.metadata().members().len(), 3);
    let options = GetOptions { r: Some(Quorum::Count(1)), ..GetOptions::default() };
    let request = GetRequest { bucket: bucket(), key: "k".into(), options };
    assert!(matches!(node.kv().get(request).await, Ok(GetReply::Found(_))), "its own copy is enough");
    put(&node, bucket(), "k2", 1).await.unwrap();
    end(node).await;
}
