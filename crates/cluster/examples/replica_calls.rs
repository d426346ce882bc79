//! Measures what a question to a replica of another node costs: processor time of both nodes for
//! one read and one store of 1 KiB over loopback, beside an echo of as many bytes over the same
//! transport. Run it with
//! `cargo run --release -p ombak-cluster --example replica_calls [CALLS]`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_cluster::{ClusterNode, Liveness, Member, NodeParts, RequestOutcome};
use ombak_kv::coordination::get::Ask;
use ombak_kv::replica::{NodeCounter, ReplicaRead, ReplicaStore, StoreKind, StoreMode};
use ombak_kv::{KvConfig, Peers};
use ombak_peer::frame::Priority;
use ombak_peer::handshake::Secret;
use ombak_peer::{Incoming, Lane, Outgoing, Responder, RingVersion};
use ombak_runtime::TcpNetwork;
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::{NodeId, Object, Sibling, stored_object};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ECHO: u16 = 60_000;
const VALUE_BYTES: usize = 1024;
const KEYS: usize = 1_000;

/// Every node is up.
struct AllUp;

impl Liveness for AllUp {
    fn is_up(&self, _node: NodeId) -> bool {
        true
    }

    fn ended(&self, _node: NodeId, _outcome: RequestOutcome, _took: Duration) {}
}

fn main() {
    let calls: usize = std::env::args().nth(1).map_or(50_000, |n| n.parse().expect("a number of calls"));
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(measure(calls));
}

async fn measure(calls: usize) {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [here, there] = dirs.each_ref().map(|dir| start(dir.path()));
    let there_as_member = Member { id: there.id(), name: "there".into(), address: there.listens_on() };
    here.set_members(vec![there_as_member]);
    // Both nodes act on a ring of one lineage.
    let owners: Vec<NodeId> = [here.id(), there.id()].into_iter().cycle().take(8).collect();
    for node in [&here, &there] {
        let ring = ombak_ring::Ring::from_owners(&owners, ombak_ring::RingVersion::first(7)).unwrap();
        node.kv().set_ring(ring).unwrap();
    }
    let replica = here.peers().replica(there.id());
    let counter = replica.read(read(0)).await.unwrap().counter;
    for number in 0..KEYS {
        replica.store(store(number, counter)).await.unwrap();
    }
    let (transport, to, body) = (here.transport().clone(), there.id(), Bytes::from(vec![7; VALUE_BYTES]));
    for at_once in [1, 64] {
        let echo = |_| {
            let (transport, outgoing) = (transport.clone(), outgoing(body.clone()));
            async move { drop(transport.call(to, outgoing).await.unwrap()) }
        };
        let echo_us = timed(calls, at_once, echo).await;
        let read_us = timed(calls, at_once, |n| {
            let read = replica.read(read(n));
            async move { assert!(read.await.unwrap().version.is_some()) }
        });
        let read_us = read_us.await;
        let store_us = timed(calls, at_once, |n| {
            let store = replica.store(store(n, counter));
            async move { assert!(store.await.is_ok()) }
        });
        let store_us = store_us.await;
        println!(
            "{at_once:3} at once: echo {echo_us:.2} µs, read {read_us:.2} µs ({:.2} echoes), store {store_us:.2} µs ({:.2} echoes)",
            read_us / echo_us,
            store_us / echo_us,
        );
    }
    here.stop().await;
    there.stop().await;
}

fn start(dir: &std::path::Path) -> ClusterNode {
    let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
    let mut kv = KvConfig::new("node", dir, stores);
    kv.ring_size = 8;
    let secret = Secret::new(b"the secret of the measurement").unwrap();
    let any_port = "127.0.0.1:0".parse().unwrap();
    let mut parts = NodeParts::new(kv, Arc::new(TcpNetwork::default()), any_port, (1, secret), Arc::new(AllUp));
    let echo = |request: Incoming, answer: Responder| answer.answer(request.body().clone());
    parts.services.register(ECHO, "echo", Arc::new(echo)).unwrap();
    ClusterNode::start(parts).unwrap()
}

fn outgoing(body: Bytes) -> Outgoing {
    Outgoing {
        lane: Lane::Requests,
        service: ECHO,
        priority: Priority::Request,
        ring: RingVersion { lineage: 7, number: 1 },
        age: Duration::ZERO,
        deadline: in_a_minute(),
        body: body.into(),
    }
}

fn in_a_minute() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn key(number: usize) -> Bytes {
    format!("\x02\0\x05benchkey{:08}", number % KEYS).into()
}

fn read(number: usize) -> ReplicaRead {
    let ring = ombak_ring::RingVersion::first(7);
    ReplicaRead { partition: 0, n: 3, ring, key: key(number), ask: Ask::Object, deadline: Some(in_a_minute()) }
}

fn store(number: usize, counter: NodeCounter) -> ReplicaStore {
    let object = Object::new(Sibling::new(Bytes::from(vec![b'x'; VALUE_BYTES])));
    let mut head = Vec::new();
    stored_object::encode_head(&object, &mut head);
    ReplicaStore {
        partition: 0,
        n: 3,
        ring: ombak_ring::RingVersion::first(7),
        key: key(number),
        head: head.into(),
        body: object.siblings[0].value.clone(),
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 0 },
        mode: StoreMode::Merge,
        noted: Some(counter),
        synced: false,
        deadline: Some(in_a_minute()),
    }
}

/// Keeps `at_once` calls under way. Returns the processor time of each in microseconds.
async fn timed<F: Future<Output = ()>>(calls: usize, at_once: usize, mut call: impl FnMut(usize) -> F) -> f64 {
    let began = processor_time();
    let mut under_way = FuturesUnordered::new();
    for number in 0..calls {
        if under_way.len() == at_once {
            under_way.next().await;
        }
        under_way.push(call(number));
    }
    while under_way.next().await.is_some() {}
    (processor_time() - began).as_secs_f64() * 1e6 / calls as f64
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
