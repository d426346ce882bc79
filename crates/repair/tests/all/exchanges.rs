//! Exchanges between three engines in one process: differences that nobody reads are repaired, and
//! what was removed everywhere else goes.

use crate::engines::cluster::{Cluster, bucket, count};
use ombak_kv::{Kv, PutOptions};
use ombak_repair::{
    ClassExchanges, ExchangeAnswer, ExchangeClient, ExchangeConfig, ExchangeFigures, ExchangePart, ExchangePeers,
    ExchangeQuestion, Repair,
};
use ombak_runtime::{Asker, BoxFuture};
use ombak_storage::ReadMode;
use ombak_storage::fs::FileSystem;
use ombak_types::names::encode_storage_key;
use ombak_types::{Error, NodeId};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

const NODES: usize = 3;
const KEYS: usize = 40;

/// The ways of one node to the others.
#[derive(Clone)]
struct Ways {
    from: NodeId,
    cluster: Weak<Cluster>,
    asked: Arc<AtomicU64>,
}

struct Way {
    ways: Ways,
    to: NodeId,
}

impl ExchangePeers for Ways {
    fn client(&self, node: NodeId) -> Option<Arc<dyn ExchangeClient>> {
        Some(Arc::new(Way { ways: self.clone(), to: node }))
    }
}

impl ExchangeClient for Way {
    fn ask(&self, question: ExchangeQuestion) -> BoxFuture<'static, Result<ExchangeAnswer, Error>> {
        let (from, asked) = (self.ways.from, self.ways.asked.clone());
        let to = self.ways.cluster.upgrade().and_then(|cluster| {
            let node = cluster.number_of(self.to);
            cluster.is_running(node).then(|| cluster.kv(node))
        });
        Box::pin(async move {
            asked.fetch_add(1, Ordering::SeqCst);
            let to = to.ok_or(Error::AllNodesDown)?;
            Repair::of(&to).answer_exchange(Asker::default(), from, question).await
        })
    }
}

/// Three engines that exchange when a test says so.
struct World {
    cluster: Arc<Cluster>,
    asked: Arc<AtomicU64>,
}

impl World {
    async fn new() -> Self {
        let cluster = Arc::new(Cluster::of(NODES));
        let world = Self { cluster, asked: Arc::default() };
        for key in 0..KEYS {
            world.cluster.put(key % NODES, &bucket(), &format!("k{key}"), "v", w(3)).await.unwrap();
        }
        world.cluster.wait_until_settled().await;
        (0..NODES).for_each(|node| world.start_exchanges(node));
        world
    }

    fn start_exchanges(&self, node: usize) {
        let kv = self.cluster.kv(node);
        let from = self.cluster.id(node);
        let ways = Ways { from, cluster: Arc::downgrade(&self.cluster), asked: self.asked.clone() };
        let look_again_after = Duration::from_millis(20);
        // A test starts its rounds by itself.
        let interval = Duration::from_secs(10_000_000);
        let config = ExchangeConfig { interval, look_again_after, ..ExchangeConfig::default() };
        Repair::of(&kv).start_exchanges(&kv, Arc::new(ways), config).unwrap();
    }

    fn figures(&self, node: usize) -> ExchangeFigures {
        self.cluster.repair(node).exchange_figures().unwrap()
    }

    /// The number of exchanges of a round: each class from each primary to each other one. Where
    /// the ring closes, a home has two primaries.
    fn exchanges_of_a_round(&self) -> u64 {
        let placement = self.cluster.placement();
        let of_home = |primaries: usize| (primaries * (primaries - 1)) as u64;
        placement.homes().map(|home| of_home(home.replica_set(3).len())).sum()
    }

    /// The keys that are stored and have all nodes as primaries.
    fn keys(&self) -> Vec<String> {
        let keys = (0..KEYS).map(|key| format!("k{key}"));
        keys.filter(|key| self.has_all_primaries(key)).collect()
    }

    fn has_all_primaries(&self, key: &str) -> bool {
        self.cluster.owners(&bucket(), key, 3).len() == NODES
    }

    /// The number of exchanges that have ended in full, of all nodes.
    fn exchanges(&self) -> u64 {
        (0..NODES).flat_map(|node| self.figures(node).classes.into_values()).map(|class| class.exchanges).sum()
    }

    /// Lets all nodes begin a round, and waits until every exchange has ended in full.
    async fn round(&self) {
        let before = self.exchanges();
        (0..NODES).for_each(|node| self.cluster.repair(node).start_exchange_round());
        self.cluster
            .wait_until("a round has ended", |_| self.exchanges() >= before + self.exchanges_of_a_round())
            .await;
    }
}

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), dw: count(n), ..PutOptions::default() }
}

fn storage_key(key: &str) -> Vec<u8> {
    let mut storage_key = Vec::new();
    encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
    storage_key
}

/// Removes the record of a key from a store, as if it had never been there.
fn remove_behind_its_back(kv: &Kv, key: &str) {
    let key = storage_key(key);
    let (_, store) = kv.stores().find(|(_, store)| store.head(&key, ReadMode::Blocking).unwrap().is_some()).unwrap();
    assert!(store.delete(&key).unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_round_repairs_what_nobody_reads() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    world.round().await;
    let (lost, removed) = (&world.keys()[0], &world.keys()[1]);
    let extra = (0..).map(|number| format!("extra{number}")).find(|key| world.has_all_primaries(key)).unwrap();
    // A version that only the first node has.
    let push = cluster.push_of(&bucket, &extra, "w");
    ombak_kv::replica::TransferClient::push(&cluster.kv(0).local_replica(), push).await.unwrap();
    // A record that one node has lost.
    remove_behind_its_back(&cluster.kv(1), lost);
    // A key that was removed, and that one node still holds, or holds again.
    remove_behind_its_back(&cluster.kv(0), removed);
    remove_behind_its_back(&cluster.kv(1), removed);
    world.round().await;
    let is_equal = |c: &Cluster| {
        let has_come_back = [lost, &extra].into_iter().all(|key| c.holders(&bucket, key) == [0, 1, 2]);
        has_come_back && c.holders(&bucket, removed).is_empty()
    };
    cluster.wait_until("all are equal", is_equal).await;
    let dropped = cluster.repair(2).dropped_copies().unwrap();
    assert_eq!(dropped.iter().map(|copy| &copy.key[..]).collect::<Vec<_>>(), [storage_key(removed)]);
    let sum = |of: fn(&ClassExchanges) -> u64| -> u64 {
        (0..NODES).flat_map(|node| world.figures(node).classes.into_values()).map(|class| of(&class)).sum()
    };
    // Two nodes lacked the one key, and one the other.
    let is_counted = |_: &Cluster| sum(|class| class.dropped) == 1 && sum(|class| class.repaired) >= 3;
    cluster.wait_until("it is counted", is_counted).await;
    assert_eq!(sum(|class| class.withheld), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_replicas_ask_one_question_each() {
    let world = World::new().await;
    world.round().await;
    let before = world.asked.load(Ordering::SeqCst);
    world.round().await;
    assert_eq!(world.asked.load(Ordering::SeqCst) - before, world.exchanges_of_a_round());
    assert_eq!(world.cluster.pushed(), 0);
}

/// A node whose marks were set back learns from the others what was included there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_that_were_lost_here_are_known_there() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let key = &world.keys()[0];
    world.round().await;
    cluster.close(2).await;
    cluster.disk(2).remove_file(Path::new("/data/sync-marks.json")).unwrap();
    remove_behind_its_back(&cluster.kv(0), key);
    remove_behind_its_back(&cluster.kv(1), key);
    cluster.start(2);
    world.start_exchanges(2);
    (0..NODES).for_each(|node| cluster.repair(node).start_exchange_round());
    cluster.wait_until("the key is gone", |c| c.holders(&bucket, key).is_empty()).await;
}

/// A primary that is down may hold what another one has lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_dropped_while_a_primary_is_down() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let key = &world.keys()[0];
    world.round().await;
    cluster.close(2).await;
    remove_behind_its_back(&cluster.kv(1), key);
    cluster.repair(0).start_exchange_round();
    let withheld = |_: &Cluster| world.figures(0).classes.values().any(|class| class.withheld == 1);
    cluster.wait_until("the first node cannot tell", withheld).await;
    assert_eq!(cluster.holders(&bucket, key), [0]);
    cluster.start(2);
    world.start_exchanges(2);
    (0..NODES).for_each(|node| cluster.repair(node).start_exchange_round());
    cluster.wait_until("all have it", |c| c.holders(&bucket, key) == [0, 1, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_exchanges_refuses() {
    let cluster = Cluster::of(2);
    let class = ombak_kv::ClassId { partition: 0, n: 3 };
    let home_version = cluster.placement().home(0).version();
    let question = ExchangeQuestion { class, home_version, part: ExchangePart::Groups };
    let answer = cluster.repair(0).answer_exchange(Asker::default(), cluster.id(1), question).await;
    assert!(matches!(answer, Err(Error::Unsupported(_))));
    assert_eq!(cluster.repair(0).exchange_figures(), None);
}
