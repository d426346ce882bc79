//! Requests while home partitions are between two rings (docs/design/ring-changes.md). The tests
//! put each step of a change in force at each node by themselves, and prove what a driver would
//! have had proved.

use crate::replicas::cluster::{Cluster, bucket, count};
use crate::support::random::Random;
use bytes::Bytes;
use ombak_kv::coordination::get::Ask;
use ombak_kv::replica::{NodeCounter, ReplicaClient, ReplicaRead, ReplicaStore, StoreKind, StoreMode, StoreOutcome};
use ombak_kv::{GetOptions, GetReply, PutCondition, PutOptions};
use ombak_ring::placement::{Placement, Step, StepOf};
use ombak_ring::{KeyHash, Ring};
use ombak_types::names::encode_storage_key;
use ombak_types::{Error, NodeId, Object, Sibling};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::task::yield_now;

/// The nodes of the old set, whichever the key is.
const OLD: [usize; 3] = [0, 1, 2];
/// The nodes of the new set: node 3 takes the place of node 0.
const NEW: [usize; 3] = [3, 1, 2];
/// A node that is in no set.
const OTHER: usize = 4;

/// Five nodes, of which three own a ring of which every home changes.
struct Changing {
    cluster: Cluster,
    placement: Placement,
}

impl Changing {
    /// All nodes know the old ring, and the goal of which no home has begun.
    fn new() -> Self {
        let cluster = Cluster::with_owners(5, OLD.len());
        let placement = Placement::clone(&cluster.nodes[0].placement());
        let mut changing = Self { cluster, placement };
        changing.set_goal(NEW);
        changing
    }

    fn set_goal(&mut self, nodes: [usize; 3]) {
        let goal = Ring::from_owners(&owners(&self.cluster, nodes), self.placement.version().next()).unwrap();
        self.placement = self.placement.with_goal(Arc::new(goal), &BTreeSet::from([3])).unwrap();
        self.adopt(&[0, 1, 2, 3, OTHER]);
    }

    /// Takes a step of all homes, of which no node knows yet.
    fn step(&mut self, step: Step) {
        let of = |home: u32| StepOf { home, seen: self.placement.home(home).version().number, step };
        let steps: Vec<_> = (0..self.placement.size().get()).map(of).collect();
        self.placement = self.placement.after(&steps).unwrap();
    }

    /// Lets these nodes know the placement.
    fn adopt(&self, nodes: &[usize]) {
        nodes.iter().for_each(|&node| self.cluster.nodes[node].set_placement(self.placement.clone()).unwrap());
    }

    /// Takes a step that all nodes know at once.
    fn step_everywhere(&mut self, step: Step) {
        self.step(step);
        self.adopt(&[0, 1, 2, 3, OTHER]);
    }

    fn home_of(&self, key: &str) -> u32 {
        self.placement.goal().home_of(&KeyHash::of_key(&bucket(), key.as_bytes()))
    }

    /// Lets each node of the old set prove a key to each node of the new one.
    async fn prove(&self, key: &str, from: [usize; 3], to: [usize; 3]) {
        let (partition, ring) = (self.home_of(key), self.placement.version());
        let mut storage_key = Vec::new();
        encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
        let storage_key = Bytes::from(storage_key);
        for (giver, taker) in from.into_iter().flat_map(|giver| to.map(|taker| (giver, taker))) {
            let [giver, taker] = [giver, taker].map(|node| &self.cluster.nodes[node]);
            let noted: NodeCounter = taker.counter();
            let read =
                ReplicaRead { partition, n: 3, ring, key: storage_key.clone(), ask: Ask::Object, deadline: None };
            let Some(found) = giver.local_replica().read(read).await.unwrap().version else { continue };
            let store = ReplicaStore {
                partition,
                n: 3,
                ring,
                key: storage_key.clone(),
                head: found.head,
                body: found.body.unwrap(),
                stored_secs: None,
                kind: StoreKind { dvv: true, values: 0 },
                mode: StoreMode::Merge,
                noted: Some(noted),
                synced: false,
                deadline: None,
            };
            let reply = taker.local_replica().store(store).await.unwrap();
            assert!(matches!(reply.outcome, StoreOutcome::Stored { .. }), "{reply:?}");
        }
    }

    /// Waits until every node has confirmed the placement.
    async fn confirm(&self) {
        let all = || self.cluster.nodes.iter().all(|node| node.confirmed_placement() == self.placement.version());
        self.cluster.wait_until("the placement is confirmed", all).await;
    }
}

fn owners(cluster: &Cluster, nodes: [usize; 3]) -> Vec<NodeId> {
    nodes.into_iter().cycle().take(8).map(|node| cluster.id(node)).collect()
}

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), sloppy_quorum: false, ..PutOptions::default() }
}

fn r(n: u32) -> GetOptions {
    GetOptions { r: count(n), sloppy_quorum: false, ..GetOptions::default() }
}

fn values(reply: GetReply) -> Vec<String> {
    let GetReply::Found(object) = reply else { return Vec::new() };
    let mut values: Vec<_> = object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect();
    values.sort();
    values
}

/// Whether a request has come to its end, after everything that can happen by itself has happened.
async fn has_ended<T>(request: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
    for _ in 0..50 {
        let ended = poll_fn(|cx| {
            Poll::Ready(match request.as_mut().poll(cx) {
                Poll::Ready(done) => Some(done),
                Poll::Pending => None,
            })
        });
        if let Some(done) = ended.await {
            return Some(done);
        }
        yield_now().await;
    }
    None
}

#[tokio::test]
async fn a_put_during_a_change_needs_both_sets() {
    for flips in [false, true] {
        let mut changing = Changing::new();
        changing.step_everywhere(Step::Begin);
        if flips {
            changing.step_everywhere(Step::Flip);
        }
        let cluster = &changing.cluster;
        cluster.put(1, "all", "v", w(3)).await.unwrap();
        assert_eq!(cluster.holders("all"), [0, 1, 2, 3]);
        // One node is missing in one set.
        for (cut, key) in [(0, "without 0"), (3, "without 3")] {
            cluster.set_cut(cut, true);
            cluster.put(1, key, "v", w(2)).await.unwrap();
            let refused = cluster.put(1, key, "v", w(3)).await;
            assert_misses(refused, ("w", 3));
            let pw = PutOptions { pw: count(3), ..w(1) };
            let refused = cluster.put(1, key, "v", pw).await;
            assert_misses(refused, ("pw", 3));
            let nodes = PutOptions { node_confirms: count(3), ..w(1) };
            let refused = cluster.put(1, key, "v", nodes).await;
            assert_misses(refused, ("node_confirms", 3));
            cluster.set_cut(cut, false);
        }
        // Two nodes of one set are missing, and one of the other.
        for missing in [0, 3] {
            cluster.set_cut(missing, true);
            cluster.set_cut(2, true);
            let refused = cluster.put(1, "k", "v", w(2)).await;
            assert_misses(refused, ("w", 2));
            cluster.set_cut(missing, false);
            cluster.set_cut(2, false);
        }
    }
}

/// The history of docs/design/replication.md §3 (c), and its mirror image.
#[tokio::test]
async fn what_was_acknowledged_during_a_change_is_there_after_its_end_and_after_its_abort() {
    for (end, set) in [(Step::Flip, NEW), (Step::Abort, OLD)] {
        let mut changing = Changing::new();
        changing.step_everywhere(Step::Begin);
        let mut acknowledged = Vec::new();
        for missing in 0..16u32 {
            let key = format!("k{missing}");
            let is_cut = |node: usize| missing & (1 << node) != 0;
            (0..4).filter(|node| is_cut(*node)).for_each(|node| changing.cluster.set_cut(node, true));
            let through = (0..4).find(|node| !is_cut(*node)).unwrap_or(0);
            if changing.cluster.put(through, &key, "v", w(2)).await.is_ok() {
                acknowledged.push(key);
            }
            (0..4).for_each(|node| changing.cluster.set_cut(node, false));
        }
        assert!(acknowledged.len() > 4, "{acknowledged:?}");
        changing.confirm().await;
        changing.step_everywhere(end);
        if end == Step::Flip {
            changing.step_everywhere(Step::Finish);
        }
        for key in &acknowledged {
            for away in set {
                changing.cluster.set_down(away, true);
                let found = changing.cluster.get(OTHER, key, r(2)).await.unwrap();
                assert_eq!(values(found), ["v"], "{key} after {end:?}, without {away}");
                changing.cluster.set_down(away, false);
            }
        }
    }
}

/// The history of docs/design/replication.md §3 (b).
#[tokio::test]
async fn a_coordinator_that_does_not_know_of_a_change_counts_anew() {
    let mut changing = Changing::new();
    changing.step(Step::Begin);
    changing.adopt(&[1, 2, 3]);
    let cluster = &changing.cluster;
    let mut put: Pin<Box<dyn Future<Output = _>>> = Box::pin(cluster.put(0, "k", "v", w(2)));
    assert_eq!(has_ended(&mut put).await, None, "only the coordinator has acknowledged it");
    assert_eq!(cluster.holders("k"), [0, 1, 2], "it is stored nevertheless");
    assert_eq!(cluster.nodes[0].confirmed_placement(), cluster.nodes[0].placement_version());
    changing.adopt(&[0]);
    put.await.unwrap();
    cluster.wait_until_equal(&[0, 1, 2, 3], "k").await;
    assert_eq!(values(cluster.get(1, "k", r(2)).await.unwrap()), ["v"], "there is one event");
    // The other way round, from two sets to one.
    changing.step_everywhere(Step::Abort);
    changing.step(Step::Begin);
    changing.step(Step::Abort);
    changing.adopt(&[1, 2]);
    let cluster = &changing.cluster;
    let mut put: Pin<Box<dyn Future<Output = _>>> = Box::pin(cluster.put(0, "k2", "v", w(2)));
    assert_eq!(has_ended(&mut put).await, None);
    changing.adopt(&[0]);
    put.await.unwrap();
    assert_eq!(changing.cluster.holders("k2"), [0, 1, 2]);
}

#[tokio::test]
async fn a_coordinator_that_hears_nothing_of_the_change_ends_with_a_timeout() {
    let mut changing = Changing::new();
    changing.step(Step::Begin);
    changing.adopt(&[1, 2, 3]);
    let options = PutOptions { timeout: Some(std::time::Duration::from_millis(200)), ..w(2) };
    assert_eq!(changing.cluster.put(0, "k", "v", options).await, Err(Error::Timeout));
    let options = GetOptions { timeout: Some(std::time::Duration::from_millis(200)), ..r(2) };
    assert_eq!(changing.cluster.get(0, "k", options).await, Err(Error::Timeout));
}

/// What was written after a change is read by a node that has not heard of it.
#[tokio::test]
async fn a_reader_that_does_not_know_of_a_change_begins_anew() {
    let mut changing = Changing::new();
    changing.cluster.put(1, "k", "old", w(3)).await.unwrap();
    let GetReply::Found(seen) = changing.cluster.get(1, "k", r(3)).await.unwrap() else { panic!("it is not there") };
    for step in [Step::Begin, Step::Flip, Step::Finish] {
        changing.step(step);
        changing.adopt(&[0, 1, 2, 3]);
        changing.prove("k", OLD, NEW).await;
    }
    let cluster = &changing.cluster;
    cluster.set_cut(2, true);
    let object = Object { clock: seen.clock, siblings: vec![Sibling::new("new")] };
    cluster.put_object(1, "k", object, w(2)).await.unwrap();
    cluster.set_cut(2, false);
    cluster.set_down_for(OTHER, 1);
    let mut get: Pin<Box<dyn Future<Output = _>>> = Box::pin(cluster.get(OTHER, "k", r(2)));
    let at_once = has_ended(&mut get).await;
    assert!(at_once.is_none(), "{at_once:?}");
    changing.adopt(&[OTHER]);
    assert_eq!(values(get.await.unwrap()), ["new"]);
}

/// A node that is behind the coordinator may be no replica any more.
#[tokio::test]
async fn the_not_found_of_a_node_that_is_behind_proves_nothing() {
    let mut changing = Changing::new();
    changing.step(Step::Begin);
    changing.adopt(&[0, 1, 2, 3]);
    let cluster = &changing.cluster;
    let strict = GetOptions { pr: count(2), ..r(2) };
    assert_eq!(values(cluster.get(1, "k", strict.clone()).await.unwrap()), [""; 0]);
    changing.step(Step::Abort);
    changing.adopt(&[1]);
    let refused = changing.cluster.get(1, "k", strict).await;
    assert!(matches!(refused, Err(Error::QuorumUnsatisfied { option: "pr", .. })), "{refused:?}");
    changing.cluster.put(1, "k", "v", w(3)).await.unwrap();
}

#[tokio::test]
async fn a_placement_is_confirmed_when_the_requests_under_earlier_ones_have_ended() {
    let mut changing = Changing::new();
    let before = changing.placement.version();
    // The messages to the other replicas are on their way when the client has its answer.
    changing.cluster.delay_messages(5);
    changing.cluster.put(1, "k", "v", w(1)).await.unwrap();
    changing.step_everywhere(Step::Begin);
    assert_eq!(changing.cluster.nodes[0].confirmed_placement(), changing.placement.version());
    assert_eq!(changing.cluster.nodes[1].confirmed_placement(), before, "it still stores at other nodes");
    changing.confirm().await;
    assert_eq!(changing.cluster.holders("k"), OLD);
}

#[tokio::test]
async fn the_positions_that_are_shown_are_those_of_the_ring_in_force() {
    let mut changing = Changing::new();
    let shown = |changing: &Changing| {
        let list = changing.cluster.nodes[1].preflist(&bucket(), b"k").unwrap();
        list.into_iter().map(|item| item.node).collect::<BTreeSet<_>>()
    };
    changing.step_everywhere(Step::Begin);
    let newcomer = changing.cluster.name_of(3);
    assert!(!shown(&changing).contains(&newcomer));
    changing.step_everywhere(Step::Flip);
    assert!(shown(&changing).contains(&newcomer));
}

/// The put missed this quorum. How many have answered by then depends on the order of the answers.
fn assert_misses(refused: Result<(), Error>, missed: (&str, u32)) {
    let found = match &refused {
        Err(Error::QuorumUnsatisfied { option, need, .. }) => Some((*option, *need)),
        Err(Error::NodeConfirmsUnsatisfied { need, .. }) => Some(("node_confirms", *need)),
        _ => None,
    };
    assert_eq!(found, Some(missed), "{refused:?}");
}

fn absent() -> PutOptions {
    PutOptions { condition: PutCondition::IfNoneMatch, ..PutOptions::default() }
}

#[tokio::test]
async fn conditional_puts_need_a_majority_of_both_sets() {
    let mut changing = Changing::new();
    changing.step_everywhere(Step::Begin);
    let cluster = &changing.cluster;
    cluster.put(1, "k", "v", absent()).await.unwrap();
    assert_eq!(cluster.put(3, "k", "w", absent()).await, Err(Error::MatchFound));
    for missing in [0, 3] {
        cluster.set_down(missing, true);
        cluster.put(1, &format!("without {missing}"), "v", absent()).await.unwrap();
        cluster.set_down(2, true);
        let refused = cluster.put(1, &format!("without {missing} and 2"), "v", absent()).await;
        assert_misses(refused, ("pw", 2));
        cluster.set_down(missing, false);
        cluster.set_down(2, false);
    }
}

/// Conditional puts of absent keys through each node, while the nodes learn of steps one after the
/// other.
#[tokio::test]
async fn of_conditional_puts_in_several_placements_at_most_one_is_acknowledged() {
    let (mut acknowledged, mut random) = (0, Random(7));
    let mut changing = Changing::new();
    let (mut from, mut to) = (OLD, NEW);
    for round in 0..60 {
        let mut steps = vec![Step::Begin, Step::Flip, Step::Finish];
        if random.one_in(3) {
            steps = vec![Step::Begin, Step::Abort];
        }
        let flips = steps.contains(&Step::Flip);
        for step in steps {
            changing.step(step);
            let key = format!("{round} {step:?}");
            changing.cluster.delay_messages(random.below(1 << 32) + 1);
            let mut order = vec![0, 1, 2, 3, OTHER];
            let learn = async {
                while !order.is_empty() {
                    let node = order.remove(random.below(order.len() as u64) as usize);
                    changing.adopt(&[node]);
                    for _ in 0..random.below(30) {
                        yield_now().await;
                    }
                }
            };
            let cluster = &changing.cluster;
            let put = |through, value| cluster.put(through, &key, value, absent());
            let (a, b, c, d, ()) = tokio::join!(put(0, "a"), put(1, "b"), put(2, "c"), put(3, "d"), learn);
            let said = [a, b, c, d];
            let ok: Vec<_> =
                said.iter().zip(["a", "b", "c", "d"]).filter(|(said, _)| said.is_ok()).map(|(_, v)| v).collect();
            assert!(ok.len() <= 1, "{key}: {said:?}");
            acknowledged += ok.len();
            changing.confirm().await;
            changing.prove(&key, from, to).await;
            let found = values(changing.cluster.get(1, &key, r(2)).await.unwrap());
            assert!(ok.iter().all(|value| found == [*value]), "{key}: {ok:?} was acknowledged, and {found:?} is there");
        }
        if flips {
            (from, to) = (to, from);
            changing.set_goal(to);
            changing.confirm().await;
        }
    }
    assert!(acknowledged > 60, "{acknowledged}");
}

/// Random puts, of which each acknowledged one must be there after each step, whichever node of the
/// set in force is away.
#[tokio::test]
async fn random_puts_during_changes_are_not_lost() {
    for seed in 1..=6 {
        let mut random = Random(seed);
        let mut changing = Changing::new();
        let (mut from, mut to) = (OLD, NEW);
        let mut acknowledged: Vec<(String, &str)> = Vec::new();
        for round in 0..8 {
            let flips = !random.one_in(3);
            let steps =
                if flips { vec![Step::Begin, Step::Flip, Step::Finish] } else { vec![Step::Begin, Step::Abort] };
            for step in steps {
                changing.step(step);
                let mut order = vec![0, 1, 2, 3, OTHER];
                let cluster = &changing.cluster;
                let mut puts = Vec::new();
                for number in 0..4 {
                    let through = random.below(5) as usize;
                    puts.push((format!("{round} {step:?} {number}"), through));
                }
                cluster.delay_messages(random.below(1 << 32) + 1);
                // One node gets nothing for a while. It adopts the step late.
                let away = random.below(4) as usize;
                cluster.set_cut(away, true);
                let write = futures_util::future::join_all(
                    puts.iter().map(|(key, through)| cluster.put(*through, key, "v", w(2))),
                );
                let learn = async {
                    while !order.is_empty() {
                        let node = order.remove(random.below(order.len() as u64) as usize);
                        changing.adopt(&[node]);
                        for _ in 0..random.below(30) {
                            yield_now().await;
                        }
                    }
                };
                let (said, ()) = tokio::join!(write, learn);
                let cluster = &changing.cluster;
                cluster.set_cut(away, false);
                acknowledged.extend(
                    puts.into_iter().zip(said).filter(|(_, said)| said.is_ok()).map(|((key, _), _)| (key, "v")),
                );
                changing.confirm().await;
                if step == Step::Begin {
                    for (key, _) in &acknowledged {
                        changing.prove(key, from, to).await;
                    }
                }
                let in_force = if matches!(step, Step::Begin | Step::Abort) { from } else { to };
                let away = in_force[random.below(3) as usize];
                changing.cluster.set_down(away, true);
                for (key, value) in &acknowledged {
                    let found = changing.cluster.get(OTHER, key, r(2)).await.unwrap();
                    assert_eq!(values(found), [*value], "seed {seed}: {key} after {step:?} in round {round}");
                }
                changing.cluster.set_down(away, false);
            }
            if flips {
                (from, to) = (to, from);
                changing.set_goal(to);
                changing.confirm().await;
            }
        }
        assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    }
}
