//! Runs of data types: many clients change counters, sets and maps while faults come and go, and
//! one node loses its disk.
//!
//! What a run checks when everything has healed and settled: every node shows the same value of a
//! key, through all replicas and through one. A counter is the sum of the acknowledged amounts, and
//! of some of those that were not acknowledged. A member is in its set if its addition was
//! acknowledged and nobody tried to remove it, and it is not if a removal was acknowledged whose
//! client had seen it. Nothing is there that nobody has added. One set is deleted at times. What
//! the client of a deletion had not seen stays; what was removed from this set may come back.
//!
//! At last clocks jump, and each assignment to a register that reaches all replicas must show
//! (`registers.rs`).
//!
//! The faults destroy no acknowledged change: a change is acknowledged when two nodes have it on
//! their disks, and only one node loses what it has.

mod client;
mod expected;
mod key;
mod registers;

pub(crate) use key::TypedKind;

use crate::clients::Clients;
use crate::cluster::{Backends, Cluster, Machines, Wiring};
use crate::faults::{FaultKind, Nemesis};
use crate::made::Made;
use crate::oracle::Oracle;
use crate::settling;
use crate::starting;
use crate::times::{CALM, DETECT_INTERVAL, RUN_LIMIT};
use crate::world::{EndOfWorld, HostId, OUTSIDE, World};
use client::TypedClient;
use expected::Expected;
use key::TypedKey;
use ombak_crdt::State;
use ombak_datatypes::WHOLE_BYTES_MAX;
use ombak_kv::{GetOptions, GetReply, GetRequest, Kv};
use ombak_runtime::{BoxFuture, Runtime, RuntimeExt};
use ombak_types::{Error, Quorum, VectorClock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const NODES: usize = 5;
const CLIENTS: usize = 8;
const OPERATIONS_PER_CLIENT: u64 = 40;
/// How many rounds of reads of all replicas may pass before the nodes show the same.
const READ_ROUNDS: usize = 6;
/// How often a read is tried whose answer is late.
const READ_TRIES_MAX: usize = 5;
/// In half of the seeds values of more bytes are added to, and members are long, so that sets and
/// maps have parts in the stores.
const GROWING_BYTES_MIN: usize = 64;
const PADDING: &str = match std::str::from_utf8(&[b'x'; 900]) {
    Ok(padding) => padding,
    Err(_) => "",
};
/// Faults that leave what is synced on a disk where it is, and one disk that is lost.
const FAULTS: [FaultKind; 11] = [
    FaultKind::Kill,
    FaultKind::PowerLoss,
    FaultKind::LostDisk,
    FaultKind::Pause,
    FaultKind::Partition,
    FaultKind::OneWay,
    FaultKind::CloggedLink,
    FaultKind::LossyLinks,
    FaultKind::DoubledMessages,
    FaultKind::ClockJump,
    FaultKind::FullDisk,
];

/// What a run of data types has shown.
#[derive(Clone, Debug, Default)]
pub struct TypedReport {
    /// The seed.
    pub seed: u64,
    /// The hash of everything that happened.
    pub trace: u64,
    /// How many changes were acknowledged.
    pub acknowledged: u64,
    /// How many of them were removals of what the client had seen.
    pub removals: u64,
    /// How many of them were deletions of a set.
    pub deletions: u64,
    /// How many changes failed, or were not answered.
    pub failed: u64,
    /// How often each fault happened.
    pub faults: BTreeMap<FaultKind, u64>,
    /// What outlives the run.
    pub left_behind: Vec<String>,
    /// What is wrong, if something is.
    pub violation: Option<String>,
}

/// What the tasks of a run share.
#[derive(Clone)]
pub(crate) struct TypedRun {
    clients: Clients,
    expected: Arc<Mutex<Expected>>,
    /// What members have behind their names.
    padding: &'static str,
}

/// Runs a seed. Seeds that are divisible by 3 connect the engines by single messages, which are
/// doubled and reordered; all others run members over streams.
pub fn run_typed_seed(seed: u64) -> TypedReport {
    let made = Made::default();
    let mut report = run_in_world(seed, &made);
    report.left_behind = made.left();
    report
}

fn run_in_world(seed: u64, made: &Made) -> TypedReport {
    let world = World::new(seed, NODES);
    let _end = EndOfWorld(world.clone());
    let wiring = if seed.is_multiple_of(3) { Wiring::Messages } else { Wiring::Streams };
    let machines = Machines { nodes: NODES, spares: 0, wiring, backends: Backends::OnlyBitcask };
    let oracle = Arc::<Mutex<Oracle>>::default();
    let mut cluster = Cluster::new(&world, machines, made, oracle.lock().witness.clone());
    let grows = seed.is_multiple_of(2);
    cluster.whole_bytes_max = Some(if grows { GROWING_BYTES_MIN } else { WHOLE_BYTES_MAX });
    let cluster = Arc::new(Mutex::new(cluster));
    let nemesis = Nemesis::new(&world, &cluster, &oracle).limited_to(&FAULTS);
    let (counts, rush) = (Arc::default(), nemesis.rush.clone());
    let clients = Clients { world: world.clone(), cluster: cluster.clone(), oracle: oracle.clone(), counts, rush };
    let padding = if grows { PADDING } else { "" };
    let run = TypedRun { clients, expected: Arc::default(), padding };
    let ended = world.run(RUN_LIMIT, run.clone().all(nemesis.clone(), seed));
    let broken = oracle.lock().violation.as_ref().map(ToString::to_string);
    cluster.lock().end();
    let expected = run.expected.lock();
    TypedReport {
        seed,
        trace: world.trace().hash(),
        acknowledged: expected.acknowledged,
        removals: expected.removals,
        deletions: expected.deletions,
        failed: expected.failed,
        faults: nemesis.counts(),
        left_behind: Vec::new(),
        violation: match ended {
            Err(stuck) => Some(stuck.to_string()),
            Ok(Err(violation)) => Some(violation),
            Ok(Ok(())) => broken,
        },
    }
}

impl TypedRun {
    async fn all(self, nemesis: Nemesis, seed: u64) -> Result<(), String> {
        let world = &self.clients.world;
        let runtime = world.runtime(OUTSIDE);
        starting::form(&self.clients.cluster).await.map_err(|error| error.to_string())?;
        let left = Arc::new(AtomicUsize::new(CLIENTS));
        runtime.spawn(Box::pin(nemesis.clone().detect(DETECT_INTERVAL)));
        for number in 0..CLIENTS {
            let (client, left) = (TypedClient::new(&self, number), left.clone());
            runtime.spawn(Box::pin(async move {
                client.run(OPERATIONS_PER_CLIENT).await;
                left.fetch_sub(1, Ordering::SeqCst);
            }));
        }
        nemesis.clone().run(|| left.load(Ordering::SeqCst) == 0).await;
        nemesis.heal().await;
        runtime.sleep(CALM).await;
        settling::settle(&self.clients).await;
        for key in TypedKey::all() {
            self.check(key).await?;
        }
        registers::check(&self, seed).await
    }

    /// Checks the value of a key that all nodes agree about.
    async fn check(&self, key: TypedKey) -> Result<(), String> {
        let runtime = self.clients.world.runtime(OUTSIDE);
        let hosts = self.clients.cluster.lock().hosts();
        for _ in 0..READ_ROUNDS {
            // A read of all replicas repairs those that lack something.
            self.read_patiently(hosts[0], key, Quorum::All).await?;
            runtime.sleep(Duration::from_secs(1)).await;
        }
        let mut first = None;
        for (host, r) in hosts.iter().flat_map(|host| [(*host, Quorum::One), (*host, Quorum::All)]) {
            let found = self.read_patiently(host, key, r).await?;
            let first = first.get_or_insert_with(|| found.clone());
            if *first != found {
                return Err(format!("{key} is {found:?} through {} with r {r:?}, and {first:?}", host.0));
            }
        }
        let value = first.flatten();
        self.expected.lock().check(key, value.as_ref()).map_err(|why| format!("{key}: {why}"))
    }

    /// Reads a key until the answer is there: a message between nodes can be late also when no
    /// fault is left.
    async fn read_patiently(&self, host: HostId, key: TypedKey, r: Quorum) -> Result<Option<State>, String> {
        let mut tries = 1;
        loop {
            match self.read(host, key, r).await {
                Err(Error::Timeout) if tries < READ_TRIES_MAX => tries += 1,
                found => return found.map_err(|error| format!("{key} through {} with r {r:?}: {error}", host.0)),
            }
        }
    }

    /// The value of a key, as one node finds it.
    pub(crate) async fn read(&self, host: HostId, key: TypedKey, r: Quorum) -> Result<Option<State>, Error> {
        Ok(self.read_with_clock(host, key, r).await?.map(|(state, _)| state))
    }

    /// The value of a key and its clock, with which it can be deleted.
    async fn read_with_clock(
        &self,
        host: HostId,
        key: TypedKey,
        r: Quorum,
    ) -> Result<Option<(State, VectorClock)>, Error> {
        let options = GetOptions { r: Some(r), as_stored: true, ..GetOptions::default() };
        let request = GetRequest { bucket: key.kind.bucket(), key: key.bytes(), options };
        let get = |kv: Kv| -> BoxFuture<'static, Result<Option<(State, VectorClock)>, Error>> {
            Box::pin(async move {
                let props = kv.buckets().props(&request.bucket)?;
                match kv.get(request).await? {
                    GetReply::Found(object) => {
                        let state = ombak_datatypes::state_of(&props, &object)?;
                        Ok(Some((state, object.clock)))
                    }
                    GetReply::NotFound { .. } => Ok(None),
                }
            })
        };
        self.clients.call(host, get).await.unwrap_or(Err(Error::Timeout))
    }
}
