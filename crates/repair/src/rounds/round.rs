//! One round: vote, ask, remove (docs/design/replication.md §6). The round that meets a tombstone
//! with its time ends with taking the time, and the next one removes the tombstone.

use super::answers::{has_floor, time_left_behind};
use crate::Host;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, BrokenRule, Class, RequestPlacement, is_broken};
use ombak_kv::replica::{
    AskRequest, ReapReply, Reapable, ReapingClient, RemoveRequest, ReplicaStore, Round, StoreKind, StoreMode,
    TOLD_NODES_MAX, ToldSeq, Vote, VoteRequest,
};
use ombak_runtime::{BoxFuture, RuntimeExt, within};
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

/// How long each step waits for answers.
const STEP_MAX: Duration = Duration::from_secs(5);
/// How often the order to remove is sent to a primary that does not answer.
const REMOVE_TRIES: u32 = 3;
/// Number of keys that a round repairs at the same time.
const REPAIRS_AT_ONCE: usize = 8;
/// How long a primary may take to store a tombstone that it lacks.
const PUSH_MAX: Duration = Duration::from_secs(10);

/// What a round did with the versions that it was given.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Versions that this node need not try again: they were removed, or are no longer there.
    pub(crate) done: Vec<(Bytes, u64)>,
    /// The keys that some primary lacks, or has something else of.
    pub(crate) lacked: Vec<Bytes>,
    /// The keys of which all primaries had the same on their disks.
    pub(crate) agreed: Vec<Bytes>,
    /// Whether some versions stay, because a primary lacks them or has something else, or because
    /// another member holds the key.
    pub(crate) some_stay: bool,
}

/// The state of one round on its driver.
pub(crate) struct ReapingRound {
    host: Host,
    /// The round asks the members of this placement. It counts as a request: while it is under way,
    /// this node does not confirm a later placement, which may have further members.
    _placement: RequestPlacement,
    round: Round,
    primaries: Vec<NodeId>,
    others: Vec<NodeId>,
    /// What the members have told of their stores of the partition in this round.
    told: Mutex<BTreeMap<NodeId, ToldSeq>>,
}

impl ReapingRound {
    pub(crate) fn new(host: &Host, placement: &RequestPlacement, class: Class) -> Result<Self, Error> {
        let (partition, n_val) = class;
        let number = host.runtime().random_u64()?;
        let home = placement.home(partition);
        let primaries = home.replica_set(n_val).to_vec();
        // Also those that own nothing, are down, or are leaving.
        let mut others = placement.nodes();
        others.extend(host.peers().members());
        others.retain(|node| !primaries.contains(node));
        let round = Round { partition, n_val, ring: home.version(), number };
        let (host, others) = (host.clone(), others.into_iter().collect());
        Ok(Self { host, _placement: placement.clone(), round, primaries, others, told: Mutex::default() })
    }

    /// Executes the three steps. An answer that is missing ends the round.
    pub(crate) async fn run(self, batch: Vec<(Bytes, u64)>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let (host, class, given) = (self.host.clone(), (self.round.partition, self.round.n_val), batch.clone());
        let (left, failed) = self.host.disk_pool().run(move || host.replace_hidden(class, batch)).await?;
        outcome.some_stay = !failed.is_empty();
        let (versions, floor) = self.read(&left).await?;
        let is_there = |pair: &(Bytes, u64)| versions.iter().any(|version| version.key == pair.0);
        outcome.done.extend(given.iter().filter(|pair| !is_there(pair) && !failed.contains(pair)).cloned());
        let agreed = self.vote(versions, &mut outcome).await?;
        outcome.agreed = agreed.iter().map(|(key, _)| key.clone()).collect();
        let clean = self.ask(agreed, floor, &mut outcome).await?;
        if !clean.is_empty() {
            match self.remove(&clean).await {
                true => outcome.done.extend(clean),
                false => outcome.some_stay = true,
            }
        }
        Ok(outcome)
    }

    /// This node's copies, as far as they are still what is to be removed, and the time of the
    /// newest one that needs a floor of time; 0 if none does.
    async fn read(&self, batch: &[(Bytes, u64)]) -> Result<(Vec<Reapable>, UnixMicros), Error> {
        let (host, number, batch) = (self.host.clone(), self.round.partition, batch.to_vec());
        let read = move || {
            let partition = host.partitions().find(number)?;
            let now = host.now();
            let mut floor = UnixMicros(0);
            let version = |(key, digest): (Bytes, u64)| {
                let found = partition.read_head(&key, Access::Blocking).ok()??;
                let head = partition.decode(&key, &found).ok()?;
                if found.digest != digest || !head.is_absent(now) {
                    return None;
                }
                if has_floor(&*host, &key) {
                    floor = floor.max(time_left_behind(&*host, &head));
                }
                Some(Reapable { key, digest, clock: head.clock })
            };
            let versions = batch.into_iter().filter_map(version).collect();
            Ok((versions, floor))
        };
        self.host.disk_pool().run(read).await?
    }

    /// Step 1. Returns the versions that all primaries have on their disks.
    async fn vote(&self, versions: Vec<Reapable>, outcome: &mut Outcome) -> Result<Vec<(Bytes, u64)>, Error> {
        if versions.is_empty() {
            return Ok(Vec::new());
        }
        let request = VoteRequest { round: self.round, versions };
        let votes = self.all(&self.primaries, |client| client.vote(request.clone())).await?;
        let (mut agreed, mut differing) = (Vec::new(), Vec::new());
        for (at, version) in request.versions.iter().enumerate() {
            let votes_of_key = || votes.iter().map(|(_, votes)| votes.get(at).copied().unwrap_or(Vote::Other));
            if votes_of_key().all(|vote| vote == Vote::Same) {
                agreed.push((version.key.clone(), version.digest));
                continue;
            }
            outcome.some_stay = true;
            outcome.lacked.push(version.key.clone());
            if votes_of_key().any(|vote| vote == Vote::Other) {
                differing.push(version.key.clone());
            } else {
                for (node, _) in votes.iter().filter(|(_, votes)| votes.get(at) == Some(&Vote::Less)) {
                    self.push(*node, version.key.clone());
                }
            }
        }
        self.repair(differing).await;
        Ok(agreed)
    }

    /// Repairs keys of which some primary has a version that the tombstone does not cover: a later
    /// one, one with an equal clock and other contents, or one that it cannot read. After that the
    /// primaries agree, on the tombstone or on something else, and a later round ends.
    async fn repair(&self, keys: Vec<Bytes>) {
        let repairs = keys.into_iter().map(|key| async move {
            if let Err(why) = self.host.clone().repair_key(key).await {
                debug!(partition = self.round.partition, %why, "a key that is to be reaped was not repaired");
            }
        });
        stream::iter(repairs).buffer_unordered(REPAIRS_AT_ONCE).collect::<()>().await;
    }

    /// Step 2, after all votes. Returns the versions of whose keys no other member holds anything.
    async fn ask(
        &self,
        agreed: Vec<(Bytes, u64)>,
        floor: UnixMicros,
        outcome: &mut Outcome,
    ) -> Result<Vec<(Bytes, u64)>, Error> {
        if agreed.is_empty() || is_broken(BrokenRule::OtherMembersAreAsked) {
            return Ok(agreed);
        }
        let keys = agreed.iter().map(|(key, _)| key.clone()).collect();
        let request = AskRequest { round: self.round, keys, floor };
        let answers = self.all(&self.others, |client| client.ask(request.clone())).await?;
        let is_clean = |at: usize| answers.iter().all(|(_, clean)| clean.get(at) == Some(&true));
        let count = agreed.len();
        let clean: Vec<_> = agreed.into_iter().enumerate().filter(|(at, _)| is_clean(*at)).map(|(_, v)| v).collect();
        outcome.some_stay |= clean.len() < count;
        Ok(clean)
    }

    /// Step 3. It needs no answer: what stays behind is the tombstone itself. But this node removes
    /// its own copy last, and only if all other primaries have answered. So it goes on driving
    /// rounds for what stays behind: the others would wait for long before they do. Returns whether
    /// all have answered.
    async fn remove(&self, versions: &[(Bytes, u64)]) -> bool {
        // A removal needs an answer of every member, so this is of all of them.
        let told = self.told.lock().iter().map(|(node, told)| (*node, *told)).take(TOLD_NODES_MAX).collect();
        let request = RemoveRequest { round: self.round, versions: versions.to_vec(), told };
        let here = self.host.node_id();
        let others = self.primaries.iter().copied().filter(|node| *node != here).collect();
        self.remove_at(&request, others).await && self.remove_at(&request, vec![here]).await
    }

    async fn remove_at(&self, request: &RemoveRequest, mut left: Vec<NodeId>) -> bool {
        for _ in 0..REMOVE_TRIES {
            let answers = join_all(left.iter().map(|node| self.one(*node, |client| client.remove(request.clone()))));
            let answers: Vec<_> = answers.await;
            left = left.iter().zip(answers).filter(|(_, answer)| answer.is_err()).map(|(node, _)| *node).collect();
            if left.is_empty() {
                return true;
            }
        }
        debug!(partition = self.round.partition, ?left, "some primaries did not answer to a removal");
        false
    }

    /// Sends a primary the tombstone that it lacks, so that a later round succeeds.
    fn push(&self, node: NodeId, key: Bytes) {
        let (host, round) = (self.host.clone(), self.round);
        self.host.runtime().spawn(Box::pin(async move {
            if let Err(why) = push(&host, round, node, key).await {
                debug!(%node, %why, "a primary could not be given the tombstone that it lacks");
            }
        }));
    }

    /// Asks nodes side by side. All must answer.
    async fn all<T>(
        &self,
        nodes: &[NodeId],
        question: impl Fn(Arc<dyn ReapingClient>) -> BoxFuture<'static, Result<ReapReply<T>, Error>>,
    ) -> Result<Vec<(NodeId, Vec<T>)>, Error> {
        let answers = join_all(nodes.iter().map(|node| self.one(*node, &question))).await;
        nodes.iter().zip(answers).map(|(node, answer)| Ok((*node, answer?))).collect()
    }

    async fn one<T>(
        &self,
        node: NodeId,
        question: impl Fn(Arc<dyn ReapingClient>) -> BoxFuture<'static, Result<ReapReply<T>, Error>>,
    ) -> Result<Vec<T>, Error> {
        if self.host.home_version(self.round.partition) != self.round.ring {
            let why = "the home partition has changed since the round began";
            return Err(StoreFailure::new(StoreFailureKind::Busy, why).into());
        }
        let runtime = &**self.host.runtime();
        let answer = question(self.host.clone().reaping_client(node));
        let reply = within(runtime, Some(runtime.now() + STEP_MAX), answer).await.map_err(|_| Error::Timeout)??;
        self.host.reaping().counters.note(node, reply.counter);
        if let Some(told) = reply.told {
            self.told.lock().insert(node, told);
        }
        Ok(reply.answers)
    }
}

/// Sends a node this node's copy of a key. An exchange decides about a copy that a mark covers, or
/// that is in doubt: the tombstone may have been removed everywhere else
/// (docs/design/anti-entropy.md §5).
async fn push(host: &Host, round: Round, node: NodeId, key: Bytes) -> Result<(), Error> {
    let dvv = dvv_of(host, &key);
    // The counter is noted before the copy is read.
    let noted = host.counter_of(node);
    let (there, number, storage_key) = (host.clone(), round.partition, key.clone());
    let read = move || there.partitions().find(number).map(|partition| partition.read(&storage_key, Access::Blocking));
    let Ok(Some(found)) = host.disk_pool().run(read).await?? else { return Ok(()) };
    let class = ClassId { partition: round.partition, n: round.n_val };
    if host.transfers().is_left_to_exchanges(class, found.seq) {
        // Without room for it, a later round asks again.
        host.transfers().other_ways.exchange_key(class, &key);
        return Ok(());
    }
    let store = ReplicaStore {
        partition: round.partition,
        n: round.n_val,
        ring: round.ring,
        key,
        head: found.head,
        body: found.body.unwrap_or_default(),
        stored_secs: found.stored_secs,
        kind: StoreKind { dvv, values: 0 },
        mode: StoreMode::Merge,
        noted,
        synced: false,
        deadline: Some(host.runtime().now() + PUSH_MAX),
    };
    let reply = host.clone().replica_client(node).store(store).await?;
    host.reaping().counters.note(node, reply.counter);
    Ok(())
}

fn dvv_of(host: &Host, key: &Bytes) -> bool {
    let bucket = ombak_types::names::decode_storage_key(key).ok().map(|(bucket, _)| bucket);
    bucket.and_then(|bucket| host.buckets().props(&bucket).ok()).is_some_and(|props| props.dvv_enabled)
}
