//! Scenarios of Riak's own tests on several nodes, under Riak's names (docs/riak/riak-test.md §1).
//! docs/compatibility.md lists all scenarios, with their tests.

mod conditional;
mod conditional_strong;
mod faults;
mod handoff;
mod kv679;
mod listings;
mod quorums;
mod siblings;

use crate::replicas::cluster::{Cluster, bucket, count};
use bytes::Bytes;
use ombak_kv::{GetOptions, GetReply, PutOptions, PutRequest};
use ombak_types::{Bucket, Error, Object, Sibling, VectorClock};

/// A put that so many positions have to acknowledge.
fn with_w(w: u32) -> PutOptions {
    PutOptions { w: count(w), ..PutOptions::default() }
}

/// A get that so many positions have to answer.
fn with_r(r: u32) -> GetOptions {
    GetOptions { r: count(r), ..GetOptions::default() }
}

/// A value and the clock that its writer has seen.
fn object(value: &str, seen: &VectorClock) -> Object {
    Object { clock: seen.clone(), siblings: vec![Sibling::new(Bytes::copy_from_slice(value.as_bytes()))] }
}

/// Puts a value by a writer who has seen a clock, and returns the clock of what is stored then.
async fn write(
    cluster: &Cluster,
    through: usize,
    key: &str,
    value: &str,
    seen: &VectorClock,
    options: PutOptions,
) -> Result<VectorClock, Error> {
    let options = PutOptions { return_body: true, ..options };
    let key = Some(Bytes::copy_from_slice(key.as_bytes()));
    let request = PutRequest { bucket: bucket(), key, object: object(value, seen), options };
    cluster.nodes[through].put(request).await.map(|reply| reply.object.expect("the stored object").clock)
}

/// What a read finds: the clock, and the values in order. A sibling that is deleted is no value.
async fn read(cluster: &Cluster, through: usize, key: &str, options: GetOptions) -> (VectorClock, Vec<String>) {
    match cluster.get(through, key, options).await.unwrap() {
        GetReply::NotFound { tombstone } => (tombstone.unwrap_or_default(), Vec::new()),
        GetReply::Found(object) => {
            let living = object.siblings.iter().filter(|sibling| !sibling.meta.deleted);
            let mut values: Vec<_> = living.map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect();
            values.sort();
            (object.clock, values)
        }
    }
}

/// The nodes of a key's preference list while all nodes are up, in order.
fn owners(cluster: &Cluster, bucket: &Bucket, key: &str) -> Vec<usize> {
    let places = cluster.nodes[0].preflist(bucket, key.as_bytes()).unwrap();
    let is_at = |node: usize, name: &str| name == cluster.name_of(node) || name == cluster.nodes[node].node_name();
    let number_of = |name: &str| (0..cluster.nodes.len()).find(|&node| is_at(node, name));
    places.iter().map(|place| number_of(&place.node).expect("a node of the cluster")).collect()
}

/// The nodes that stand in, in order, when nodes of the preference list are down.
fn stand_ins(cluster: &Cluster, owners: &[usize]) -> Vec<usize> {
    let nodes = cluster.nodes.len();
    let after = (1..nodes).map(|step| (owners[owners.len() - 1] + step) % nodes);
    after.filter(|node| !owners.contains(node)).collect()
}
