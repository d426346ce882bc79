//! The clients of a run: they read, write and delete through random nodes.

use crate::bucket_kinds::{BucketKind, Merging};
use crate::cluster::Cluster;
use crate::oracle::{Key, Oracle, TOKEN_NAME, Token, value_of};
use crate::queries;
use crate::random::Random;
use crate::world::{HostId, HostRuntime, OUTSIDE, World};
use ombak_kv::{GetOptions, GetReply, GetRequest, Kv, PutCondition, PutOptions, PutRequest};
use ombak_runtime::{BoxFuture, Runtime, RuntimeExt, within};
use ombak_types::names::encode_storage_key;
use ombak_types::props::SyncOnWrite;
use ombak_types::{Error, Object, Quorum, Sibling, VectorClock};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How many keys each bucket type has.
pub(crate) const KEYS_PER_KIND: u64 = 5;
/// How long a client waits for an answer before it gives up.
const PATIENCE: Duration = Duration::from_secs(4);
/// The time limits that a client gives its requests.
const REQUEST_LIMITS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(2), Duration::from_millis(300)];
/// The pause between two operations of a client in milliseconds, at most.
const PAUSE_MS_MAX: u64 = 200;
/// After so many operations all keys are checked.
const CHECK_ALL_EVERY: u64 = 50;

/// All keys of a run.
pub(crate) fn all_keys() -> impl Iterator<Item = Key> {
    BucketKind::ALL.into_iter().flat_map(|kind| (0..KEYS_PER_KIND).map(move |number| Key { kind, number }))
}

/// What clients have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Reads that were answered.
    pub reads: u64,
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Deletes that were acknowledged.
    pub deletes: u64,
    /// Conditional puts that were acknowledged. They are also counted as writes.
    pub conditional: u64,
    /// Those of them whose condition was that the key has no value.
    pub created: u64,
    /// Conditional puts that were refused because the condition did not hold.
    pub refused: u64,
    /// Listings that were complete.
    pub listings: u64,
    /// Index queries that were complete.
    pub queries: u64,
    /// Folds that were complete.
    pub folds: u64,
    /// Deletes of keys that folds have found. They are also counted as deletes or failures.
    pub erased_by_folds: u64,
    /// Tombstones that were gone when folds that had found them ordered so.
    pub reaped_by_folds: u64,
    /// Operations that failed, or that nobody answered.
    pub failed: u64,
}

impl ClientCounts {
    /// The number of operations that have ended.
    pub const fn all(&self) -> u64 {
        self.reads + self.writes + self.deletes + self.refused + self.listings + self.queries + self.folds + self.failed
    }
}

/// What all clients share.
#[derive(Clone)]
pub struct Clients {
    /// The world.
    pub world: World,
    /// The nodes.
    pub cluster: Arc<Mutex<Cluster>>,
    /// The oracle.
    pub oracle: Arc<Mutex<Oracle>>,
    /// What was done so far.
    pub counts: Arc<Mutex<ClientCounts>>,
    /// How many reads clients shall do at once.
    pub rush: Arc<Mutex<Rush>>,
}

/// What a client has last seen of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) clock: VectorClock,
    pub(crate) tokens: BTreeSet<Token>,
    /// Whether the key had a value that was not a tombstone.
    pub(crate) has_value: bool,
}

/// Reads that clients are to do at once, half of them through one host.
#[derive(Clone, Copy, Debug)]
pub struct Rush {
    /// How many are left.
    pub left: u64,
    /// The host.
    pub host: HostId,
}

impl Default for Rush {
    fn default() -> Self {
        Self { left: 0, host: OUTSIDE }
    }
}

/// What a write is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub(crate) is_delete: bool,
    pub(crate) is_conditional: bool,
    /// The write of one copy is enough.
    pub(crate) is_hasty: bool,
}

/// One client.
pub(crate) struct Client {
    pub(crate) shared: Clients,
    pub(crate) random: Random,
    pub(crate) seen: BTreeMap<Key, Seen>,
}

impl Clients {
    /// Runs one client until so many operations have ended.
    pub async fn run_one(self, operations: u64) {
        let runtime = self.world.runtime(crate::world::OUTSIDE);
        let mut client = Client { random: self.world.fork_random(), shared: self, seen: BTreeMap::new() };
        for _ in 0..operations {
            let pause_ms = client.random.within(0..PAUSE_MS_MAX);
            runtime.sleep(Duration::from_millis(pause_ms)).await;
            client.operate().await;
            while let Some(host) = client.shared.takes_rush() {
                client.read_primaries(host).await;
            }
        }
    }

    /// Calls the engine of a node on the host of that node. None if nobody answered.
    pub async fn call<T: Send + 'static>(
        &self,
        host: HostId,
        work: impl FnOnce(Kv) -> BoxFuture<'static, T>,
    ) -> Option<T> {
        let kv = self.cluster.lock().node(host).kv.clone()?;
        let (give, take) = oneshot::channel();
        let task = work(kv);
        let there: Arc<HostRuntime> = self.world.runtime(host);
        there.spawn(Box::pin(async move {
            // The client may have given up.
            drop(give.send(task.await));
        }));
        let here = self.world.runtime(crate::world::OUTSIDE);
        within(&*here, Some(here.now() + PATIENCE), take).await.ok()?.ok()
    }

    /// Reads a key through a node.
    pub async fn get(&self, host: HostId, key: Key, options: GetOptions) -> Option<Result<GetReply, Error>> {
        let request = GetRequest { bucket: key.kind.bucket(), key: key.bytes(), options };
        self.call(host, |kv| Box::pin(async move { kv.get(request).await })).await
    }

    /// The host of a read that is to be done at once.
    fn takes_rush(&self) -> Option<HostId> {
        let mut rush = self.rush.lock();
        rush.left = rush.left.checked_sub(1)?;
        Some(rush.host)
    }

    pub(crate) fn ended(&self, count: impl FnOnce(&mut ClientCounts)) {
        let all = {
            let mut counts = self.counts.lock();
            count(&mut counts);
            counts.all()
        };
        if all.is_multiple_of(CHECK_ALL_EVERY) {
            let (cluster, mut oracle) = (self.cluster.lock(), self.oracle.lock());
            oracle.check_all(&cluster);
            oracle.check_some_sums(&cluster);
        }
    }
}

impl Client {
    async fn operate(&mut self) {
        let kind = *self.random.pick(&BucketKind::ALL);
        let key = Key { kind, number: self.random.within(0..KEYS_PER_KIND) };
        let hosts = self.shared.cluster.lock().member_hosts();
        let host = *self.random.pick(&hosts);
        let put = Put { is_delete: false, is_conditional: false, is_hasty: false };
        match self.random.within(0..100) {
            0..33 => self.read(host, key, false).await,
            33..59 => self.write(host, key, put).await,
            59..67 => {
                // A write that has seen nothing.
                self.seen.remove(&key);
                self.write(host, key, put).await;
            }
            67..70 if queries::are_possible(&self.shared) => self.list(host, kind).await,
            70..73 if queries::are_possible(&self.shared) => self.query(host, kind).await,
            67..75 => self.read(host, key, true).await,
            // A value that is written once is neither deleted nor written on a condition.
            _ if kind.merging == Merging::WriteOnce => self.read(host, key, true).await,
            75..81 => {
                self.read(host, key, true).await;
                let other = *self.random.pick(&hosts);
                self.duel(key, [host, other], Put { is_conditional: true, ..put }).await;
            }
            81..89 => {
                self.read(host, key, false).await;
                self.write(host, key, Put { is_delete: true, ..put }).await;
            }
            _ => self.live_shortly(host, key, put).await,
        }
    }

    /// A life as short as it gets: copies of the value may still be under way when its tombstone is
    /// reaped.
    ///
    /// Half of the time the coordinator believes that an owner is down, so that one of the copies
    /// is on its way to another node.
    async fn live_shortly(&mut self, host: HostId, key: Key, put: Put) {
        let (wires, owners) = {
            let cluster = self.shared.cluster.lock();
            (cluster.wires.clone(), cluster.owners_of(&key))
        };
        if owners.is_empty() {
            return self.read(host, key, true).await;
        }
        let mut storage_key = Vec::new();
        encode_storage_key(&key.kind.bucket(), &key.bytes(), &mut storage_key);
        let (coordinator, suspect) = (*self.random.pick(&owners), *self.random.pick(&owners));
        let is_suspected = coordinator != suspect && self.random.chance(50);
        wires.set_straggling(&storage_key, true);
        if is_suspected {
            wires.believe(coordinator, suspect, true);
        }
        self.write(coordinator, key, Put { is_hasty: true, ..put }).await;
        if is_suspected {
            wires.believe(coordinator, suspect, false);
        }
        wires.set_straggling(&storage_key, false);
        self.read(host, key, false).await;
        self.write(host, key, Put { is_delete: true, ..put }).await;
    }

    /// Two writes of what the client has seen, at the same time through two hosts.
    async fn duel(&mut self, key: Key, [one, other]: [HostId; 2], put: Put) {
        let mut rival = Self { shared: self.shared.clone(), random: self.random.fork(), seen: self.seen.clone() };
        let (give, take) = oneshot::channel();
        let runtime = self.shared.world.runtime(OUTSIDE);
        runtime.spawn(Box::pin(async move {
            rival.write(other, key, put).await;
            // The run may be over.
            let _ = give.send(());
        }));
        self.write(one, key, put).await;
        // It ends when the other write has ended.
        drop(take.await);
    }

    /// Reads any key from primaries, half of the time through a certain host.
    async fn read_primaries(&mut self, through: HostId) {
        let kind = *self.random.pick(&BucketKind::ALL);
        let key = Key { kind, number: self.random.within(0..KEYS_PER_KIND) };
        let hosts = self.shared.cluster.lock().member_hosts();
        let host = if self.random.chance(50) { through } else { *self.random.pick(&hosts) };
        self.read(host, key, true).await;
    }

    async fn list(&self, host: HostId, kind: BucketKind) {
        let listed = queries::list(&self.shared, host, kind).await;
        self.shared.ended(|counts| *if listed.is_some() { &mut counts.listings } else { &mut counts.failed } += 1);
    }

    async fn query(&self, host: HostId, kind: BucketKind) {
        let found = queries::query(&self.shared, host, kind).await;
        self.shared.ended(|counts| *if found.is_some() { &mut counts.queries } else { &mut counts.failed } += 1);
    }

    async fn read(&mut self, host: HostId, key: Key, of_primaries: bool) {
        let primaries = Some(*self.random.pick(&[Quorum::One, Quorum::Majority])).filter(|_| of_primaries);
        let options = GetOptions {
            r: if of_primaries {
                primaries
            } else {
                *self.random.pick(&[None, None, Some(Quorum::Count(1)), Some(Quorum::All)])
            },
            pr: primaries,
            timeout: Some(*self.random.pick(&REQUEST_LIMITS)),
            ..GetOptions::default()
        };
        let asked = primaries.map_or(0, |pr| count_of(pr, key));
        let must_find = {
            let (cluster, mut oracle) = (self.shared.cluster.lock(), self.shared.oracle.lock());
            if oracle.is_unaware(&cluster, key) { BTreeSet::new() } else { oracle.must_find(key, asked) }
        };
        let reply = self.shared.get(host, key, options).await;
        let what = if of_primaries { "primaries" } else { "" };
        self.log(key, || format!("read {what} through {}: {}", host.0, shown(&reply)));
        let Some(Ok(reply)) = reply else {
            self.shared.ended(|counts| counts.failed += 1);
            return;
        };
        let seen = {
            let mut oracle = self.shared.oracle.lock();
            match reply {
                GetReply::Found(object) => {
                    let mut tokens = oracle.read(key, &format!("an answer of host {}", host.0), &object);
                    tokens.extend(oracle.deletes_in(key, &object.clock));
                    Seen { clock: object.clock, tokens, has_value: true }
                }
                GetReply::NotFound { tombstone: None } => {
                    oracle.found_nothing(key, asked, &must_find);
                    Seen::default()
                }
                GetReply::NotFound { tombstone: Some(clock) } => {
                    Seen { tokens: oracle.deletes_in(key, &clock), clock, has_value: false }
                }
            }
        };
        self.seen.insert(key, seen);
        self.shared.ended(|counts| counts.reads += 1);
    }

    pub(crate) fn log(&self, key: Key, what: impl FnOnce() -> String) {
        let text = format!("{:?} {}", self.shared.world.elapsed(), what());
        self.shared.oracle.lock().note(key, text);
    }

    pub(crate) async fn write(&mut self, host: HostId, key: Key, put: Put) {
        let Put { is_delete, is_conditional, is_hasty } = put;
        let seen = self.seen.get(&key).cloned().unwrap_or_default();
        if is_delete && seen.tokens.is_empty() {
            return;
        }
        let condition = match is_conditional {
            false => PutCondition::None,
            true if !seen.has_value => PutCondition::IfNoneMatch,
            true => PutCondition::IfNotModified(seen.clock.clone()),
        };
        let replaces = format!("{:?}", seen.tokens);
        let token = self.shared.oracle.lock().write_begins(key, seen.tokens, is_delete);
        let is_indexed = queries::are_possible(&self.shared);
        let object = Object { clock: seen.clock, siblings: vec![sibling_of(key, token, is_delete, is_indexed)] };
        let limit = *self.random.pick(&REQUEST_LIMITS);
        let options = PutOptions {
            w: *self.random.pick(&[None, None, Some(Quorum::Count(1)), Some(Quorum::All)]),
            pw: *self.random.pick(&[None, Some(Quorum::One), Some(Quorum::Majority), Some(Quorum::All)]),
            condition: condition.clone(),
            sync_on_write: *self.random.pick(&[None, None, Some(SyncOnWrite::One), Some(SyncOnWrite::All)]),
            timeout: Some(limit),
            ..PutOptions::default()
        };
        let options = if is_hasty { PutOptions { w: Some(Quorum::One), pw: None, ..options } } else { options };
        let pw = options.pw;
        let text = format!(
            "{} {token} through {}, replaces {replaces}, w {:?}, pw {:?}, sync {:?}{}",
            if is_delete { "delete" } else { "write" },
            host.0,
            options.w,
            options.pw,
            options.sync_on_write,
            if is_conditional { ", conditional" } else { "" },
        );
        self.log(key, || format!("{text} begins"));
        let request = PutRequest { bucket: key.kind.bucket(), key: Some(key.bytes()), object, options };
        let began = Arc::<Mutex<Option<Duration>>>::default();
        let (begins, world) = (began.clone(), self.shared.world.clone());
        let witness = self.shared.oracle.lock().witness.clone();
        let primaries = pw.map_or(0, |pw| count_of(pw, key));
        let put = |kv: Kv| -> BoxFuture<'static, _> {
            Box::pin(async move {
                *begins.lock() = Some(world.elapsed());
                let reply = kv.put(request).await;
                if reply.is_ok() {
                    witness.is_acknowledged(key, token, primaries);
                }
                reply
            })
        };
        let reply = self.shared.call(host, put).await;
        let must_begin_by = began.lock().map(|began| began + limit);
        let is_acknowledged = matches!(reply, Some(Ok(_)));
        let is_refused =
            is_conditional && matches!(reply, Some(Err(Error::MatchFound | Error::Modified | Error::NotFound)));
        self.log(key, || format!("{text}: {:?}", reply.as_ref().map(|r| r.as_ref().map(|_| ()))));
        {
            let (cluster, mut oracle) = (self.shared.cluster.lock(), self.shared.oracle.lock());
            oracle.write_ends(&cluster, key, token, is_acknowledged, must_begin_by);
            if is_acknowledged {
                oracle.is_on_primaries(key, token, primaries);
            }
            match &condition {
                PutCondition::IfNotModified(clock) if is_acknowledged => oracle.condition_held(key, clock, token),
                PutCondition::IfNoneMatch if is_acknowledged => oracle.absence_held(key, token),
                _ => {}
            }
        }
        self.shared.ended(|counts| match (is_acknowledged, is_delete) {
            (false, _) if is_refused => counts.refused += 1,
            (false, _) => counts.failed += 1,
            (true, false) => {
                counts.writes += 1;
                counts.conditional += u64::from(is_conditional);
                counts.created += u64::from(condition == PutCondition::IfNoneMatch);
            }
            (true, true) => counts.deletes += 1,
        });
    }
}

/// The value of a write, or its tombstone.
pub(crate) fn sibling_of(key: Key, token: Token, is_delete: bool, is_indexed: bool) -> Sibling {
    let mut sibling = if is_delete { Sibling::tombstone() } else { Sibling::new(value_of(token)) };
    sibling.meta.indexes.extend(queries::entry_of(key).filter(|_| is_indexed));
    sibling.meta.user_meta.push((TOKEN_NAME.into(), token.to_string().into()));
    sibling
}

/// How many primaries a quorum of a key needs.
const fn count_of(quorum: Quorum, key: Key) -> u32 {
    match quorum {
        Quorum::All => key.kind.n,
        Quorum::Majority => key.kind.n / 2 + 1,
        _ => 1,
    }
}

/// What a read has shown, for people.
fn shown(reply: &Option<Result<GetReply, Error>>) -> String {
    match reply {
        None => "nothing".to_owned(),
        Some(Err(error)) => error.to_string(),
        Some(Ok(GetReply::NotFound { tombstone })) => format!("not found, tombstone {}", tombstone.is_some()),
        Some(Ok(GetReply::Found(object))) => format!("{:?}", crate::oracle::tokens_of(object).0),
    }
}
