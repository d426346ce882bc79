//! Pauses that a process notices: all owners of a key are paused and go on together.
//!
//! A run does this at its end, when the nodes have settled and nothing else fails, because sloppy
//! quorums promise something only then: while the owners are paused, the others take writes in
//! their place. When the owners go on, they find each other up, and each has the copy of before. A
//! read of all replicas must show the writes nevertheless: through an owner at once, and through
//! another node as soon as it has found out that the owners are back (docs/cluster.md, "When a node
//! was paused").
//!
//! It draws from a random stream of its own, so that the rest of a run is what it is without it.

use crate::bucket_kinds::{BucketKind, Merging};
use crate::clients::{Clients, KEYS_PER_KIND, sibling_of};
use crate::cluster::Wiring;
use crate::oracle::{Key, Token, Violation, tokens_of};
use crate::random::Random;
use crate::settling;
use crate::world::{HostId, OUTSIDE};
use ombak_kv::{GetOptions, GetReply, PutOptions, PutRequest};
use ombak_runtime::RuntimeExt;
use ombak_types::{Object, Quorum, VectorClock};
use std::collections::BTreeSet;
use std::time::Duration;

/// Of so many seeds one has such pauses.
const ONE_SEED_OF: u64 = 4;
/// What makes the random stream another one than that of the world.
const STREAM: u64 = 0x7061_7573_6573;
/// How long the others take to find out that the owners are gone.
const NOTICED_AFTER: Duration = Duration::from_secs(4);
/// How many writes are tried.
const WRITES: usize = 3;
/// How many reads follow, and the pause between two in milliseconds, at most. They go on until
/// everybody has found out that the owners are back.
const READS: u64 = 24;
const READ_PAUSE_MS_MAX: u64 = 150;
/// Longer than a node that goes on waits for the others.
const READ_LIMIT: Duration = Duration::from_secs(3);

/// Pauses the owners of a key, and checks what is read when they go on.
pub(crate) async fn check(clients: &Clients, seed: u64) {
    let is_wanted = seed % ONE_SEED_OF == 1;
    let has_failed = clients.oracle.lock().violation.is_some();
    if !is_wanted || has_failed || clients.cluster.lock().wiring != Wiring::Streams {
        return;
    }
    let mut random = Random::new(seed ^ STREAM);
    let kinds = BucketKind::ALL.into_iter().filter(|kind| kind.merging == Merging::Siblings && kind.n > 1);
    let kinds: Vec<BucketKind> = kinds.collect();
    let key = Key { kind: *random.pick(&kinds), number: random.within(0..KEYS_PER_KIND) };
    let (owners, others) = {
        let cluster = clients.cluster.lock();
        let owners = cluster.owners_of(&key);
        let others: Vec<HostId> = cluster.member_hosts().into_iter().filter(|host| !owners.contains(host)).collect();
        (owners, others)
    };
    if others.is_empty() {
        return;
    }
    let runtime = clients.world.runtime(OUTSIDE);
    owners.iter().for_each(|host| clients.world.pause(*host));
    runtime.sleep(NOTICED_AFTER).await;
    let mut written = BTreeSet::new();
    for _ in 0..WRITES {
        written.extend(write(clients, *random.pick(&others), key).await);
    }
    owners.iter().for_each(|host| clients.world.resume(*host));
    for number in 0..READS {
        let host = *random.pick(if number % 3 == 2 { &others } else { &owners });
        if owners.contains(&host) || knows_all(clients, host, &owners) {
            read(clients, host, key, &written).await;
        }
        let pause_ms = random.within(0..READ_PAUSE_MS_MAX);
        runtime.sleep(Duration::from_millis(pause_ms)).await;
    }
    settling::settle(clients).await;
}

/// Whether a node has found out that other nodes are back. Until then it reads from fallbacks,
/// which may have delivered everything already.
fn knows_all(clients: &Clients, host: HostId, others: &[HostId]) -> bool {
    let cluster = clients.cluster.lock();
    let Some(member) = &cluster.node(host).member else { return false };
    others
        .iter()
        .filter_map(|other| cluster.node(*other).id)
        .all(|id| member.node().failure_detector().is_none_or(|failure_detector| failure_detector.liveness().is_up(id)))
}

/// Writes a value that replaces nothing. Returns its number if the write was acknowledged.
async fn write(clients: &Clients, host: HostId, key: Key) -> Option<Token> {
    let token = clients.oracle.lock().write_begins(key, BTreeSet::new(), false);
    let object = Object { clock: VectorClock::new(), siblings: vec![sibling_of(key, token, false, false)] };
    let options = PutOptions { timeout: Some(READ_LIMIT), ..PutOptions::default() };
    let request = PutRequest { bucket: key.kind.bucket(), key: Some(key.bytes()), object, options };
    let witness = clients.oracle.lock().witness.clone();
    let reply = clients.call(host, |kv| {
        Box::pin(async move {
            let reply = kv.put(request).await;
            if reply.is_ok() {
                witness.is_acknowledged(key, token, 0);
            }
            reply
        })
    });
    let is_acknowledged = matches!(reply.await, Some(Ok(_)));
    let (cluster, mut oracle) = (clients.cluster.lock(), clients.oracle.lock());
    oracle.note(key, format!("write {token} through {} while all owners are paused: {is_acknowledged}", host.0));
    oracle.write_ends(&cluster, key, token, is_acknowledged, None);
    is_acknowledged.then_some(token)
}

/// Reads all replicas. The answer must have what was written. A failure misses nothing.
async fn read(clients: &Clients, host: HostId, key: Key, written: &BTreeSet<Token>) {
    let options = GetOptions { r: Some(Quorum::All), timeout: Some(READ_LIMIT), ..GetOptions::default() };
    let found = match clients.get(host, key, options).await {
        Some(Ok(GetReply::Found(object))) => tokens_of(&object).0,
        Some(Ok(GetReply::NotFound { .. })) => BTreeSet::new(),
        Some(Err(_)) | None => return,
    };
    let mut oracle = clients.oracle.lock();
    oracle.note(key, format!("read of all through {} after a pause: {found:?}", host.0));
    if let Some(token) = written.iter().find(|token| !found.contains(token)) {
        let (key, host, token) = (key.to_string(), host.0, *token);
        oracle.broken(Violation::MissedAfterPause { key, host, token });
    }
}
