//! Random histories of clients that change sets and counters, over several engines on simulated
//! disks that are down, cut off, killed, or lose their power. When all faults have ended, all
//! copies of a key are equal, and they have what the histories say.

use crate::engines::cluster::{Cluster, count};
use crate::random::Random;
use bytes::Bytes;
use ombak_crdt::{Change, Clock, Request, SetOp, State, Value};
use ombak_datatypes::{state_of, typed_put};
use ombak_kv::{DeleteRequest, GetOptions, GetReply, PutOptions};
use ombak_runtime::TokioRuntime;
use ombak_storage::fs::sim::Loss;
use ombak_types::props::SyncOnWrite;
use ombak_types::{Bucket, PropMap, VectorClock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NODES: usize = 5;
const N_VAL: u32 = 3;
const STEPS: usize = 80;
const KEYS: u64 = 2;

/// What the history of a member allows at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Present,
    Absent,
    /// An operation failed, and may have been executed. Or the key was deleted: a copy from before
    /// that brings members back if it has something that the delete had not seen.
    Either,
}

/// What a client has read of a set.
#[derive(Clone, Default)]
struct Seen {
    clock: VectorClock,
    context: Clock,
    members: Vec<Bytes>,
}

struct History {
    /// What members have behind their names.
    padding: &'static str,
    cluster: Cluster,
    random: Random,
    sets: Bucket,
    counters: Bucket,
    fates: BTreeMap<String, BTreeMap<Bytes, Fate>>,
    seen: BTreeMap<String, Seen>,
    /// Of each counter, how many increments were acknowledged, and how many were tried.
    counted: BTreeMap<String, (i128, i128)>,
}

fn create_type(cluster: &Cluster, kind: &str) -> Bucket {
    let props: PropMap =
        [("datatype".to_owned(), kind.into()), ("n_val".to_owned(), N_VAL.into())].into_iter().collect();
    for node in 0..NODES {
        let kv = cluster.kv(node);
        kv.buckets().create_type(kind.as_bytes(), &props).unwrap();
        kv.buckets().activate_type(kind.as_bytes()).unwrap();
    }
    Bucket::typed(kind.to_owned(), "b")
}

impl History {
    /// With `grows`, sets are added to from the first member on, and soon have parts.
    fn new(seed: u64, grows: bool) -> Self {
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let padding = if grows { std::str::from_utf8(&[b'x'; 1500]).unwrap() } else { "" };
        let cluster = Cluster::configured(
            NODES,
            if grows {
                |config| config.hooks.kinds = ombak_datatypes::kinds_with(Arc::new(TokioRuntime), 64)
            } else {
                |config| config.hooks.kinds = ombak_datatypes::kinds()
            },
        );
        let (sets, counters) = (create_type(&cluster, "set"), create_type(&cluster, "counter"));
        let (fates, seen, counted) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { padding, cluster, random, sets, counters, fates, seen, counted }
    }

    fn node(&mut self) -> Option<usize> {
        let node = self.random.below(NODES as u64) as usize;
        self.cluster.is_running(node).then_some(node)
    }

    /// Whether a change was acknowledged.
    async fn change(&mut self, bucket: &Bucket, key: &str, request: Request, context: Option<Clock>) -> Option<bool> {
        let node = self.node()?;
        let w = 1 + self.random.below(u64::from(N_VAL)) as u32;
        // An acknowledged copy is on a disk, so a loss of power is no excuse.
        let options = PutOptions { w: count(w), sync_on_write: Some(SyncOnWrite::All), ..PutOptions::default() };
        let change = Change::Request { request, context };
        let put = typed_put(bucket.clone(), Some(Bytes::from(key.to_owned())), &change, options);
        Some(self.cluster.kv(node).put(put).await.is_ok())
    }

    async fn add(&mut self, key: &str, number: usize) {
        let member = Bytes::from(format!("m{number}{}", self.padding));
        let request = Request::Set(vec![SetOp::Add(member.clone())]);
        if let Some(is_acknowledged) = self.change(&self.sets.clone(), key, request, None).await {
            let fate = if is_acknowledged { Fate::Present } else { Fate::Either };
            self.fates.entry(key.to_owned()).or_default().insert(member, fate);
        }
    }

    async fn read(&mut self, key: &str) {
        let Some(node) = self.node() else { return };
        let seen = match self.fetch(node, &self.sets.clone(), key, 1).await {
            Some((clock, State::Set(set))) => {
                Seen { clock, context: set.context().clone(), members: set.members().cloned().collect() }
            }
            _ => return,
        };
        self.seen.insert(key.to_owned(), seen);
    }

    async fn fetch(&self, node: usize, bucket: &Bucket, key: &str, r: u32) -> Option<(VectorClock, State)> {
        let options = GetOptions { r: count(r), as_stored: true, ..GetOptions::default() };
        let GetReply::Found(object) = self.cluster.get(node, bucket, key, options).await.ok()? else { return None };
        let props = self.cluster.kv(node).buckets().props(bucket).unwrap();
        let state = state_of(&props, &object).unwrap();
        Some((object.clock, state))
    }

    /// Removes what a client has seen.
    async fn remove(&mut self, key: &str) {
        let Seen { context, members, .. } = self.seen.get(key).cloned().unwrap_or_default();
        let Some(member) = members.get(self.random.below(members.len().max(1) as u64) as usize) else { return };
        let request = Request::Set(vec![SetOp::Remove(member.clone())]);
        if let Some(is_acknowledged) = self.change(&self.sets.clone(), key, request, Some(context)).await {
            let fate = if is_acknowledged { Fate::Absent } else { Fate::Either };
            self.fates.entry(key.to_owned()).or_default().insert(member.clone(), fate);
        }
    }

    async fn delete(&mut self, key: &str) {
        let Some(Seen { clock, members, .. }) = self.seen.get(key).cloned() else { return };
        let Some(node) = self.node() else { return };
        let request = DeleteRequest {
            bucket: self.sets.clone(),
            key: Bytes::from(key.to_owned()),
            clock: Some(clock),
            get: GetOptions::default(),
            put: PutOptions { w: count(1), sync_on_write: Some(SyncOnWrite::All), ..PutOptions::default() },
            rw: None,
        };
        drop(self.cluster.kv(node).delete(request).await);
        for (member, fate) in self.fates.entry(key.to_owned()).or_default() {
            if *fate == Fate::Absent || members.contains(member) {
                *fate = Fate::Either;
            }
        }
    }

    async fn count(&mut self, key: &str) {
        if let Some(is_acknowledged) = self.change(&self.counters.clone(), key, Request::Counter(1), None).await {
            let (acknowledged, tried) = self.counted.entry(key.to_owned()).or_default();
            *acknowledged += i128::from(is_acknowledged);
            *tried += 1;
        }
    }

    async fn step(&mut self, number: usize) {
        let key = format!("k{}", self.random.below(KEYS));
        match self.random.below(20) {
            0..8 => self.add(&key, number).await,
            8..11 => self.read(&key).await,
            11..14 => self.remove(&key).await,
            14 => self.delete(&key).await,
            _ => self.count(&key).await,
        }
    }

    /// Makes or ends a fault.
    async fn disturb(&mut self, stopped: &mut BTreeSet<usize>) {
        let (cluster, random) = (&self.cluster, &mut self.random);
        let node = random.below(NODES as u64) as usize;
        match random.below(8) {
            0 => cluster.set_down(node, true),
            1 | 2 if !stopped.contains(&node) => cluster.set_down(node, false),
            3 => cluster.set_cut(node, true),
            4 => cluster.set_cut(node, false),
            // At most two nodes are stopped at a time.
            5 if stopped.len() < 2 && stopped.insert(node) => {
                let loss = if random.one_in(2) { Loss::Everything } else { Loss::Nothing };
                cluster.stop(node, loss).await;
            }
            6 | 7 => {
                if let Some(node) = stopped.pop_first() {
                    cluster.start(node);
                }
            }
            _ => {}
        }
    }

    async fn heal(&self, stopped: &BTreeSet<usize>) {
        stopped.iter().for_each(|&node| self.cluster.start(node));
        (0..NODES).for_each(|node| {
            self.cluster.set_cut(node, false);
            self.cluster.set_down(node, false);
        });
        self.cluster.wait_until_settled().await;
    }

    async fn check(&self, seed: u64) {
        for (key, fates) in &self.fates {
            let at_end = self.fetch(0, &self.sets, key, N_VAL).await;
            let members: BTreeSet<Bytes> = match at_end.map(|(_, state)| state.value()) {
                Some(Value::Set(members)) => {
                    self.cluster.assert_only_owners_hold(&self.sets, key, N_VAL);
                    members.into_iter().collect()
                }
                _ => BTreeSet::new(),
            };
            for (member, fate) in fates {
                let is_present = members.contains(member);
                let is_right = match fate {
                    Fate::Present => is_present,
                    Fate::Absent => !is_present,
                    Fate::Either => true,
                };
                assert!(is_right, "seed {seed}: {member:?} of {key} should be {fate:?}: {members:?}");
            }
            assert!(members.iter().all(|member| fates.contains_key(member)), "seed {seed}: {members:?}");
        }
        for (key, (acknowledged, tried)) in &self.counted {
            let sum = match self.fetch(0, &self.counters, key, N_VAL).await.map(|(_, state)| state.value()) {
                Some(Value::Counter(sum)) => sum,
                other => panic!("seed {seed}: {key} is {other:?}"),
            };
            assert!((*acknowledged..=*tried).contains(&sum), "seed {seed}: {acknowledged} <= {sum} <= {tried}");
        }
    }
}

async fn run(seed: u64, grows: bool) {
    let mut history = History::new(seed, grows);
    let mut stopped = BTreeSet::new();
    for number in 0..STEPS {
        history.step(number).await;
        if history.random.one_in(2) {
            history.disturb(&mut stopped).await;
        }
    }
    history.heal(&stopped).await;
    history.check(seed).await;
    assert!(!history.fates.is_empty() && !history.counted.is_empty());
}

fn run_seeds(grows: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for seed in 0..12 {
        println!("seed {seed}");
        runtime.block_on(run(seed, grows));
    }
}

#[test]
fn when_all_faults_have_ended_every_value_has_what_its_history_says() {
    run_seeds(false);
}

#[test]
fn when_all_faults_have_ended_values_that_are_added_to_have_what_their_histories_say() {
    run_seeds(true);
}
