//! A node whose questions and answers of exchanges are garbage does no harm: nobody panics, nothing
//! is dropped, and what it sends is bounded.

use crate::engines::cluster::{Cluster, bucket, count};
use ombak_kv::PutOptions;
use ombak_kv::replica::{COMPARE_KEYS_MAX, Held, HeldVersion};
use ombak_repair::{
    ExchangeAnswer, ExchangeClient, ExchangeConfig, ExchangePart, ExchangePeers, ExchangeQuestion, KeyHeld, KeysAnswer,
    KeysQuestion, LIST_MIXES_MAX, ListQuestion, MarkQuestion, RANGES, Repair, RootAnswer, SOME_RANGES_MAX, Standing,
};
use ombak_runtime::{Asker, BoxFuture};
use ombak_types::{Error, NodeId, VectorClock};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

const NODES: usize = 3;
const KEYS: usize = 20;
/// How many rounds a node exchanges with a hostile one.
const ROUNDS: usize = 30;

/// What a hostile node says of itself.
fn standing(number: usize) -> Standing {
    let is_odd = number % 2 == 1;
    Standing { is_full: is_odd, is_lost: !is_odd, store_id: number as u64, token: u64::MAX, seq: u64::MAX }
}

/// Garbage, another one for each number.
fn garbage(number: usize) -> ExchangeAnswer {
    let standing = standing(number);
    let nothing = KeyHeld::Readable(Held::Nothing);
    match number % 10 {
        0 => ExchangeAnswer::Sums(vec![u64::MAX; 2 * RANGES]),
        1 => ExchangeAnswer::Sums(Vec::new()),
        2 => ExchangeAnswer::Lacked((0..2 * LIST_MIXES_MAX as u64).collect()),
        3 => ExchangeAnswer::Lacked(vec![3, 2, 1]),
        4 => ExchangeAnswer::Keys(KeysAnswer { standing, known_seq: u64::MAX, held: Vec::new() }),
        5 => ExchangeAnswer::Keys(KeysAnswer { standing, known_seq: 0, held: vec![nothing; 2 * COMPARE_KEYS_MAX] }),
        6 => ExchangeAnswer::Marked(u64::MAX),
        7 => ExchangeAnswer::Outlines(vec![u64::MAX; RANGES]),
        _ => ExchangeAnswer::Root(RootAnswer { is_same: false, standing, known_seq: u64::MAX }),
    }
}

/// Questions that no node asks.
fn questions() -> Vec<ExchangePart> {
    let list = |ranges, mixes| ExchangePart::List(ListQuestion { ranges, from: 0, to: u64::MAX, mixes });
    let version = HeldVersion { key: "no storage key".into(), digest: 0, clock: VectorClock::new() };
    let keys = |versions| ExchangePart::Keys(KeysQuestion { store_id: 0, marked_seq: u64::MAX, versions });
    vec![
        ExchangePart::Some { ranges: (0..2 * SOME_RANGES_MAX as u32).collect() },
        ExchangePart::Some { ranges: vec![2, 1] },
        ExchangePart::Some { ranges: vec![u32::MAX] },
        list(vec![RANGES as u32 * 2], Vec::new()),
        list(vec![0], (0..2 * LIST_MIXES_MAX as u64).collect()),
        list(vec![0], vec![2, 1]),
        keys(vec![version.clone(); 2 * COMPARE_KEYS_MAX]),
        keys(vec![version]),
        ExchangePart::Mark(MarkQuestion { store_id: 0, seq: u64::MAX, token: u64::MAX }),
    ]
}

/// The ways of one node to the others, of which the last one is hostile.
struct Ways {
    from: NodeId,
    cluster: Weak<Cluster>,
    asked: Arc<AtomicUsize>,
}

struct Way {
    from: NodeId,
    to: NodeId,
    cluster: Weak<Cluster>,
    asked: Arc<AtomicUsize>,
}

impl ExchangePeers for Ways {
    fn client(&self, node: NodeId) -> Option<Arc<dyn ExchangeClient>> {
        let (cluster, asked) = (self.cluster.clone(), self.asked.clone());
        Some(Arc::new(Way { from: self.from, to: node, cluster, asked }))
    }
}

impl ExchangeClient for Way {
    fn ask(&self, question: ExchangeQuestion) -> BoxFuture<'static, Result<ExchangeAnswer, Error>> {
        let (from, to, cluster, asked) = (self.from, self.to, self.cluster.clone(), self.asked.clone());
        Box::pin(async move {
            let cluster = cluster.upgrade().ok_or(Error::AllNodesDown)?;
            let node = cluster.number_of(to);
            if node < NODES - 1 {
                return Repair::of(&cluster.kv(node)).answer_exchange(Asker::default(), from, question).await;
            }
            let number = asked.fetch_add(1, Ordering::SeqCst);
            // It asks back, as if it were in the middle of an exchange of its own.
            let parts = questions();
            let part = parts[number % parts.len()].clone();
            let hostile = ExchangeQuestion { part, ..question };
            let victim = Repair::of(&cluster.kv(cluster.number_of(from)));
            // Whatever it answers, it answers.
            drop(victim.answer_exchange(Asker::default(), to, hostile).await);
            Ok(garbage(number))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_of_another_node_does_no_harm() {
    let cluster = Arc::new(Cluster::of(NODES));
    let keys: Vec<String> = (0..KEYS).map(|key| format!("k{key}")).collect();
    for (number, key) in keys.iter().enumerate() {
        let options = PutOptions { w: count(3), dw: count(3), ..PutOptions::default() };
        cluster.put(number % NODES, &bucket(), key, "v", options).await.unwrap();
    }
    cluster.wait_until_settled().await;
    let before: Vec<Vec<usize>> = keys.iter().map(|key| cluster.holders(&bucket(), key)).collect();
    let asked = Arc::<AtomicUsize>::default();
    for node in 0..NODES {
        let ways = Ways { from: cluster.id(node), cluster: Arc::downgrade(&cluster), asked: asked.clone() };
        let (interval, look_again_after) = (Duration::from_secs(10_000_000), Duration::from_millis(1));
        let config = ExchangeConfig { interval, look_again_after, ..ExchangeConfig::default() };
        let kv = cluster.kv(node);
        Repair::of(&kv).start_exchanges(&kv, Arc::new(ways), config).unwrap();
    }
    for round in 1..=ROUNDS {
        (0..NODES).for_each(|node| cluster.repair(node).start_exchange_round());
        let was_asked = |_: &Cluster| asked.load(Ordering::SeqCst) >= round * questions().len();
        cluster.wait_until("the hostile node was asked", was_asked).await;
    }
    let after: Vec<Vec<usize>> = keys.iter().map(|key| cluster.holders(&bucket(), key)).collect();
    assert_eq!(after, before);
    for node in 0..NODES {
        assert_eq!(cluster.repair(node).dropped_copies().unwrap().len(), 0, "node {node}");
    }
    let failures = cluster.repair(0).exchange_figures().unwrap().classes;
    assert!(failures.values().any(|class| class.failures > 0), "{failures:?}");
}
