//! Exchanges between three engines in one process: differences that nobody reads are repaired, and
//! what was removed everywhere else goes.

use crate::engines::cluster::{Cluster, bucket, count};
use ombak_kv::repair_host::Access;
use ombak_kv::replica::{TransferClient, checksum_of};
use ombak_kv::{ClassId, Kv, KvConfig, PutOptions, SLOT_SECS};
use ombak_repair::{
    ClassExchanges, ExchangeAnswer, ExchangeClient, ExchangeConfig, ExchangeFigures, ExchangePart, ExchangePeers,
    ExchangeQuestion, KeyChoice, KeysQuestion, NO_SLOTS, Repair,
};
use ombak_runtime::{Asker, BoxFuture};
use ombak_storage::fs::FileSystem;
use ombak_storage::{Backend, ReadMode};
use ombak_types::StoreFailureKind;
use ombak_types::names::encode_storage_key;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Error, NodeId, Object, Sibling, VectorClock, stored_object};
use parking_lot::Mutex;
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
    hook: Arc<Mutex<Option<Hook>>>,
}

/// What happens before a node's question arrives.
type Hook = Arc<dyn Fn(NodeId, &ExchangePart) + Send + Sync>;

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
        let hook = self.ways.hook.lock().clone();
        let to = self.ways.cluster.upgrade().and_then(|cluster| {
            let node = cluster.number_of(self.to);
            cluster.is_running(node).then(|| cluster.kv(node))
        });
        Box::pin(async move {
            asked.fetch_add(1, Ordering::SeqCst);
            if let Some(hook) = hook {
                hook(from, &question.part);
            }
            let to = to.ok_or(Error::AllNodesDown)?;
            Repair::of(&to).answer_exchange(Asker::default(), from, question).await
        })
    }
}

/// Three engines that exchange when a test says so.
pub struct World {
    pub cluster: Arc<Cluster>,
    asked: Arc<AtomicU64>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl World {
    pub async fn new() -> Self {
        Self::with_nodes(NODES).await
    }

    /// With more nodes, of which the further ones own nothing at first.
    pub async fn with_nodes(nodes: usize) -> Self {
        // A test may lose records on purpose.
        Self::of(nodes, |config| config.tolerates_sums_differences = true).await
    }

    pub async fn configured(configure: fn(&mut KvConfig)) -> Self {
        Self::of(NODES, configure).await
    }

    async fn of(nodes: usize, configure: fn(&mut KvConfig)) -> Self {
        let cluster = Arc::new(Cluster::with_owners(nodes, NODES, configure));
        let world = Self { cluster, asked: Arc::default(), hook: Arc::default() };
        for key in 0..KEYS {
            world.cluster.put(key % NODES, &bucket(), &format!("k{key}"), "v", w(3)).await.unwrap();
        }
        world.cluster.wait_until_settled().await;
        (0..nodes).for_each(|node| world.start_exchanges(node));
        world
    }

    pub fn start_exchanges(&self, node: usize) {
        self.start_exchanges_with(node, |_| ());
    }

    pub fn start_exchanges_with(&self, node: usize, change: impl FnOnce(&mut ExchangeConfig)) {
        let kv = self.cluster.kv(node);
        let from = self.cluster.id(node);
        let (asked, hook) = (self.asked.clone(), self.hook.clone());
        let ways = Ways { from, cluster: Arc::downgrade(&self.cluster), asked, hook };
        let look_again_after = Duration::from_millis(20);
        // A test starts its rounds by itself.
        let interval = Duration::from_secs(10_000_000);
        let mut config = ExchangeConfig { interval, look_again_after, ..ExchangeConfig::default() };
        change(&mut config);
        Repair::of(&kv).start_exchanges(&kv, Arc::new(ways), config).unwrap();
    }

    pub fn figures(&self, node: usize) -> ExchangeFigures {
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
    pub fn keys(&self) -> Vec<String> {
        let keys = (0..KEYS).map(|key| format!("k{key}"));
        keys.filter(|key| self.has_all_primaries(key)).collect()
    }

    pub fn has_all_primaries(&self, key: &str) -> bool {
        self.cluster.owners(&bucket(), key, 3).len() == NODES
    }

    /// The number of exchanges that have ended in full, of all nodes.
    fn exchanges(&self) -> u64 {
        (0..NODES).flat_map(|node| self.figures(node).classes.into_values()).map(|class| class.exchanges).sum()
    }

    /// Lets all nodes begin a round, and waits until every exchange has ended in full.
    pub async fn round(&self) {
        let before = self.exchanges();
        (0..NODES).for_each(|node| self.cluster.repair(node).start_exchange_round());
        self.cluster
            .wait_until("a round has ended", |_| self.exchanges() >= before + self.exchanges_of_a_round())
            .await;
    }
}

pub fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), dw: count(n), ..PutOptions::default() }
}

pub fn storage_key(key: &str) -> Vec<u8> {
    let mut storage_key = Vec::new();
    encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
    storage_key
}

/// Removes a key, as a removal does that this node took part in: its sums know of it.
fn remove(kv: &Kv, key: &str) {
    let key = storage_key(key);
    let (number, store) = kv.stores().find(|(_, store)| holds(&**store, &key)).unwrap();
    let host = kv.repair_host();
    let partition = host.partitions().find(number).unwrap();
    let digest = store.head(&key, ReadMode::Blocking).unwrap().unwrap().digest;
    let locked = partition.lock(&key, Access::Blocking).unwrap();
    assert!(locked.remove_proven(digest).unwrap());
}

/// Removes the record of a key behind the back of a node: only its sums still know of it.
fn lose(kv: &Kv, key: &str) {
    let key = storage_key(key);
    let (_, store) = kv.stores().find(|(_, store)| holds(&**store, &key)).unwrap();
    assert!(store.delete(&key).unwrap().is_some());
}

fn holds(store: &dyn Backend, key: &[u8]) -> bool {
    store.head(key, ReadMode::Blocking).unwrap().is_some()
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
    TransferClient::push(&cluster.kv(0).local_replica(), push).await.unwrap();
    // A version that one node has not, and its sums agree.
    remove(&cluster.kv(1), lost);
    // A key that was removed, and that one node still holds, or holds again.
    remove(&cluster.kv(0), removed);
    remove(&cluster.kv(1), removed);
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
    let settled: Vec<_> = (0..NODES).map(|node| world.cluster.repair(node).settled().transfers).collect();
    assert_eq!(settled, [0; NODES]);
}

/// A record that vanishes is the fault of the store that had it, by its own knowledge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_vanishes_without_a_write_is_noticed_and_comes_back() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let key = &world.keys()[0];
    world.round().await;
    lose(&cluster.kv(1), key);
    // The sums have the record still, so no exchange sees that it is gone.
    world.round().await;
    assert_eq!(cluster.holders(&bucket, key), [0, 2]);
    cluster.repair(1).check_sums();
    cluster.wait_until("the loss is noticed", |c| c.kv(1).sums_differences() > 0).await;
    cluster.wait_until("the record is back", |c| c.holders(&bucket, key) == [0, 1, 2]).await;
    // The store that has lost something is compared with the others before it takes part again.
    cluster.wait_until_settled().await;
    world.round().await;
    let noticed = [0, 1, 2].map(|node| cluster.kv(node).sums_differences() > 0);
    assert_eq!(noticed, [false, true, false]);
    assert!(cluster.repair(0).dropped_copies().unwrap().is_empty());
}

/// Copies that expire disappear at different moments. What expires later is compared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_expire_soon_are_not_brought_to_others() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let keys = (0..).map(|number| format!("expires{number}")).filter(|key| world.has_all_primaries(key));
    let keys: Vec<String> = keys.take(2).collect();
    let now_secs = cluster.kv(0).repair_host().now().secs() as u32;
    for (key, lifetime_secs) in keys.iter().zip([SLOT_SECS / 2, 10 * 86_400]) {
        let mut push = cluster.push_of(&bucket, key, "w");
        let mut sibling = Sibling::new("w");
        sibling.meta.expires_secs = Some(now_secs + lifetime_secs);
        let mut head = Vec::new();
        stored_object::encode_head(&Object { clock: VectorClock::new(), siblings: vec![sibling] }, &mut head);
        push.copies[0].head = head.into();
        push.checksum = Some(checksum_of(&push.copies));
        TransferClient::push(&cluster.kv(0).local_replica(), push).await.unwrap();
    }
    world.round().await;
    assert_eq!(cluster.holders(&bucket, &keys[0]), [0], "it may have expired elsewhere");
    cluster.wait_until("what expires later is everywhere", |c| c.holders(&bucket, &keys[1]) == [0, 1, 2]).await;
    let before = world.asked.load(Ordering::SeqCst);
    world.round().await;
    assert_eq!(world.asked.load(Ordering::SeqCst) - before, world.exchanges_of_a_round(), "nothing differs");
}

/// Its seq is new, so the next round does not take it for a copy that was removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_copy_that_an_operator_pushes_comes_to_all_and_stays() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let key = &world.keys()[0];
    world.round().await;
    remove(&cluster.kv(0), key);
    remove(&cluster.kv(1), key);
    world.round().await;
    cluster.wait_until("it is dropped", |c| c.holders(&bucket, key).is_empty()).await;
    let repair = cluster.repair(2);
    let report = repair.dropped_report(10).unwrap();
    assert_eq!((report.versions.len(), report.more), (1, 0));
    assert_eq!((&report.versions[0].key[..], report.versions[0].is_held), (key.as_bytes(), false));
    assert_eq!(repair.dropped_report(0).unwrap().more, 1);
    let other = KeyChoice::Key(bucket.clone(), "other".into());
    assert_eq!(repair.push_dropped(&other).unwrap(), 0);
    assert_eq!(repair.push_dropped(&KeyChoice::All).unwrap(), 1);
    cluster.wait_until("all have it", |c| c.holders(&bucket, key) == [0, 1, 2]).await;
    assert!(repair.dropped_report(10).unwrap().versions[0].is_held);
    assert_eq!(repair.push_dropped(&KeyChoice::All).unwrap(), 0, "it is back");
    world.round().await;
    assert_eq!(cluster.holders(&bucket, key), [0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_suspends_exchanges_and_repairs_a_node() {
    let world = World::new().await;
    world.round().await;
    let repair = world.cluster.repair(0);
    repair.set_exchanges_suspended(true).unwrap();
    assert!(repair.exchange_status().unwrap().is_suspended);
    assert!(repair.start_node_repair("a reason".into()).is_err());
    repair.set_exchanges_suspended(false).unwrap();
    assert!(!repair.stop_node_repair(), "there is none");
    assert!(repair.start_node_repair("a reason".into()).unwrap());
    assert!(repair.stop_node_repair() && !repair.stop_node_repair());
    let key = &world.keys()[0];
    remove(&world.cluster.kv(0), key);
    assert!(repair.start_node_repair("a reason".into()).unwrap());
    // What this node lacks comes back by its own exchanges.
    world.cluster.wait_until("the key is back", |c| c.holders(&bucket(), key) == [0, 1, 2]).await;
    let is_over = |_: &Cluster| repair.exchange_status().is_some_and(|status| status.node_repair.is_none());
    world.cluster.wait_until("the repair ends", is_over).await;
    repair.set_exchange_interval(Duration::from_secs(5)).unwrap();
    assert_eq!(repair.exchange_status().unwrap().interval, Duration::from_secs(5));
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
    remove(&cluster.kv(0), key);
    remove(&cluster.kv(1), key);
    cluster.start(2);
    world.start_exchanges(2);
    (0..NODES).for_each(|node| cluster.repair(node).start_exchange_round());
    cluster.wait_until("the key is gone", |c| c.holders(&bucket, key).is_empty()).await;
}

/// The nodes of a world, by their ids. Of two nodes that exchange a class with each other, the one
/// with the lower id goes first.
fn by_id(cluster: &Cluster) -> [usize; NODES] {
    let mut nodes = [0, 1, 2];
    nodes.sort_by_key(|node| cluster.id(*node));
    nodes
}

/// Without the rule a node that exchanges a class all the time gets nothing of what it lacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_exchanges_a_class_with_one_node_takes_what_another_one_brings() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let ([first, second, third], key) = (by_id(cluster), &world.keys()[0]);
    world.round().await;
    // The exchange of the first node with the second one looks again after an hour.
    cluster.close(first).await;
    cluster.start(first);
    world.start_exchanges_with(first, |config| config.look_again_after = Duration::from_secs(3_600));
    cluster.repair(second).set_exchanges_suspended(true).unwrap();
    remove(&cluster.kv(first), key);
    let looks = Arc::new(AtomicU64::new(0));
    let (seen, from) = (looks.clone(), cluster.id(first));
    *world.hook.lock() = Some(Arc::new(move |by: NodeId, part: &ExchangePart| {
        let is_first_look = by == from && matches!(part, ExchangePart::Ranges { .. });
        seen.fetch_add(u64::from(is_first_look), Ordering::SeqCst);
    }));
    cluster.repair(first).start_exchange_round();
    cluster.wait_until("the first node waits for its second look", |_| looks.load(Ordering::SeqCst) > 0).await;
    // It is visited by nobody, so the third one begins at once.
    cluster.repair(third).start_exchange_round();
    cluster.wait_until("the first node has it", |c| c.holders(&bucket, key) == [0, 1, 2]).await;
    *world.hook.lock() = None;
}

/// A primary that is down may hold what another one has lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_dropped_while_a_primary_is_down() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let key = &world.keys()[0];
    world.round().await;
    cluster.close(2).await;
    remove(&cluster.kv(1), key);
    cluster.repair(0).start_exchange_round();
    let withheld = |_: &Cluster| world.figures(0).classes.values().any(|class| class.withheld == 1);
    cluster.wait_until("the first node cannot tell", withheld).await;
    assert_eq!(cluster.holders(&bucket, key), [0]);
    cluster.start(2);
    world.start_exchanges(2);
    (0..NODES).for_each(|node| cluster.repair(node).start_exchange_round());
    cluster.wait_until("all have it", |c| c.holders(&bucket, key) == [0, 1, 2]).await;
}

/// A round of reaping is under way: one primary has removed the tombstone, and one still has it. At
/// a third one the record of the tombstone is lost. Without the rule the older version comes back
/// to the primary that has removed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_is_left_alone_of_which_another_primary_has_a_newer_one() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let key = &world.keys()[0];
    world.round().await;
    for node in [1, 2] {
        cluster.repair(node).set_exchanges_suspended(true).unwrap();
    }
    let mut clock = VectorClock::new();
    clock.increment(&Actor::new(b"another"), UnixMicros(1));
    // It merges what the node has, so it is newer.
    cluster.store_tombstone(2, &bucket, key, &clock).await;
    remove(&cluster.kv(1), key);
    cluster.repair(0).start_exchange_round();
    let withheld = |_: &Cluster| world.figures(0).classes.values().any(|class| class.withheld == 1);
    cluster.wait_until("the first node leaves it to the third one", withheld).await;
    assert_eq!(cluster.holders(&bucket, key), [0, 2]);
    for node in [1, 2] {
        cluster.repair(node).set_exchanges_suspended(false).unwrap();
    }
    let newer = cluster.stored(2, &bucket, key);
    world.round().await;
    assert_eq!([0, 1, 2].map(|node| cluster.stored(node, &bucket, key)), [newer; NODES]);
    assert!((0..NODES).all(|node| cluster.repair(node).dropped_copies().unwrap().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_why_exchanges_wait() {
    let world = World::new().await;
    let (cluster, key) = (&world.cluster, &world.keys()[0]);
    world.round().await;
    let waiting = |node: usize| cluster.repair(node).exchange_status().unwrap().waiting;
    assert_eq!(waiting(0), [], "nothing waits");
    let class = ClassId { partition: cluster.home_of(&bucket(), key), n: 3 };
    cluster.close(2).await;
    remove(&cluster.kv(1), key);
    let why = |node: usize, with: Option<usize>| {
        let with = with.map(|with| cluster.id(with));
        waiting(node).into_iter().find(|of| of.class == class && of.node == with).map(|of| of.why).unwrap_or_default()
    };
    assert!(why(0, Some(2)).contains("is down"));
    cluster.repair(0).start_exchange_round();
    cluster.wait_until("it is withheld", |_| why(0, Some(1)).contains("whether 1 keys were removed or lost")).await;
    // The node refuses without exchanges.
    cluster.start(2);
    cluster.repair(0).start_exchange_round();
    cluster.wait_until("it is refused", |_| why(0, Some(2)).contains("no exchanges")).await;
    world.start_exchanges(2);
    world.round().await;
    cluster.wait_until("nothing waits", |_| waiting(0).is_empty()).await;
    let host = cluster.kv(0).repair_host();
    assert!(host.transfers().found_damage(host.partitions(), class.partition, None));
    drop(host);
    cluster.set_down(1, true);
    assert!(why(0, None).contains("fills it first"), "{:?}", waiting(0));
}

/// What the store of this node may have got back during an exchange is not brought to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_ends_when_the_doubt_of_its_own_store_rises() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    world.round().await;
    let key = (0..).map(|number| format!("extra{number}")).find(|key| world.has_all_primaries(key)).unwrap();
    TransferClient::push(&cluster.kv(0).local_replica(), cluster.push_of(&bucket, &key, "w")).await.unwrap();
    let (from, partition) = (cluster.id(0), cluster.home_of(&bucket, &key));
    let host = cluster.kv(0).repair_host();
    let (transfers, seq) = (host.transfers().clone(), host.partitions().find(partition).unwrap().store().last_seq());
    drop(host);
    *world.hook.lock() = Some(Arc::new(move |by: NodeId, part: &ExchangePart| {
        if by == from && matches!(part, ExchangePart::List(_)) {
            transfers.doubt.raise(partition, seq);
        }
    }));
    cluster.repair(0).start_exchange_round();
    // The next exchange asks the others about it.
    cluster.wait_until("it is dropped", |c| c.holders(&bucket, &key).is_empty()).await;
    *world.hook.lock() = None;
    assert_eq!(cluster.repair(0).dropped_copies().unwrap().len(), 1);
    let figures = world.figures(0);
    assert!(figures.classes.values().all(|class| class.repaired == 0), "{figures:?}");
}

/// A record that vanished while the node was down would look like a removal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_says_nothing_of_keys_before_its_sums_were_checked_and_that_is_no_failure() {
    let world = World::new().await;
    let cluster = &world.cluster;
    world.round().await;
    cluster.close(1).await;
    cluster.start(1);
    world.start_exchanges_with(1, |config| config.sums_versions_per_second = 1);
    let key = &world.keys()[0];
    let (class, here) = (ClassId { partition: cluster.home_of(&bucket(), key), n: 3 }, cluster.kv(0).repair_host());
    let question = ExchangeQuestion {
        class,
        home_version: here.home_version(class.partition),
        class_print: here.buckets().snapshot().class_print(class.n),
        first_slot: NO_SLOTS,
        part: ExchangePart::Keys(KeysQuestion { store_id: 1, marked_seq: 0, versions: Vec::new() }),
    };
    drop(here);
    let answer = cluster.repair(1).answer_exchange(Asker::default(), cluster.id(0), question).await;
    let is_busy = matches!(&answer, Err(Error::Storage(why)) if why.kind == StoreFailureKind::Busy);
    assert!(is_busy, "{answer:?}");
    // Some are asked a second time, so the first refusal was noted.
    let pairs = cluster.repair(0).exchange_status().unwrap().exchanges_in_round as u64;
    let before = world.asked.load(Ordering::SeqCst);
    cluster.repair(0).start_exchange_round();
    cluster.wait_until("some were asked again", |_| world.asked.load(Ordering::SeqCst) > before + pairs).await;
    let figures = world.figures(0);
    assert!(figures.classes.values().all(|class| class.failures == 0), "{figures:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_exchanges_refuses() {
    let cluster = Cluster::of(2);
    let class = ClassId { partition: 0, n: 3 };
    let home_version = cluster.placement().home(0).version();
    let question =
        ExchangeQuestion { class, home_version, class_print: 0, first_slot: NO_SLOTS, part: ExchangePart::Groups };
    let answer = cluster.repair(0).answer_exchange(Asker::default(), cluster.id(1), question).await;
    assert!(matches!(answer, Err(Error::Unsupported(_))));
    assert_eq!(cluster.repair(0).exchange_figures(), None);
}
