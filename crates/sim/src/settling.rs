//! How a run comes to rest: the nodes bring everything to where it belongs, and reads repair what
//! only reads repair.

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::cold_decay::ColdDecay;
use crate::exchanging;
use crate::oracle::{Key, Oracle, Violation};
use crate::world::{HostId, OUTSIDE};
use ombak_kv::{ClassId, GetOptions, Kv};
use ombak_repair::Repair;
use ombak_runtime::{Runtime, RuntimeExt};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long nodes may take to settle.
const SETTLED_MAX: Duration = Duration::from_secs(600);
/// How many looks in a row, a second apart, must find that the nodes are settled.
const CALM_LOOKS: u32 = 3;
/// How many complete rounds of exchanges there are. After the first one all primaries have the same
/// values. A removal that is under way may need the second one for its tombstone.
const EXCHANGE_ROUNDS: usize = 2;
/// How many stores lose something when everything is at rest.
const COLD_DECAYS: usize = 2;
/// How many times a key is read before its replicas must be equal.
const READ_ROUNDS: usize = 6;

/// Checks all keys.
fn check_all(clients: &Clients, check: fn(&mut Oracle, &Cluster, Key, &[HostId])) {
    let (cluster, mut oracle) = (clients.cluster.lock(), clients.oracle.lock());
    for key in oracle.keys() {
        check(&mut oracle, &cluster, key, &cluster.owners_of(&key));
    }
}

/// What the nodes may still wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Excused {
    /// Copies that cannot be read: a read may repair them.
    Unreadable,
    /// Copies that cannot be read and that nothing can replace.
    Irreplaceable,
}

/// Waits until the nodes have settled, lets them exchange, and checks what they have done by
/// themselves. Then reads what only reads repair, and waits again.
pub(crate) async fn settle(clients: &Clients) {
    come_to_rest(clients).await;
    end(clients).await;
}

/// The same, and lets stores decay when everything is at rest.
pub(crate) async fn settle_and_decay(clients: &Clients, mut decay: ColdDecay) {
    come_to_rest(clients).await;
    for _ in 0..COLD_DECAYS {
        // From now on the marks cover everything.
        exchanging::complete_round(clients).await;
        wait(clients, Excused::Unreadable).await;
        decay.strike(clients).await;
        wait(clients, Excused::Unreadable).await;
    }
    end(clients).await;
}

async fn come_to_rest(clients: &Clients) {
    wait(clients, Excused::Unreadable).await;
    check_all(clients, Oracle::check_settled);
    exchanging::check_sums(clients).await;
}

async fn end(clients: &Clients) {
    for _ in 0..EXCHANGE_ROUNDS {
        exchanging::complete_round(clients).await;
        // What was brought may be a tombstone, which is due.
        wait(clients, Excused::Unreadable).await;
    }
    check_all(clients, Oracle::check_exchanged);
    {
        let (cluster, mut oracle) = (clients.cluster.lock(), clients.oracle.lock());
        oracle.check_all_sums(&cluster);
    }
    if read_what_differs(clients).await {
        wait(clients, Excused::Irreplaceable).await;
    }
}

/// Waits until the nodes themselves have brought everything to where it belongs.
async fn wait(clients: &Clients, excused: Excused) {
    let runtime = clients.world.runtime(OUTSIDE);
    let until = runtime.now() + SETTLED_MAX;
    let mut calm = 0;
    while calm < CALM_LOOKS {
        runtime.sleep(Duration::from_secs(1)).await;
        let unsettled = {
            let (cluster, oracle) = (clients.cluster.lock(), clients.oracle.lock());
            match unsettled(&cluster, &Waiting::default()) {
                at_once if at_once.is_empty() => at_once,
                _ => unsettled(&cluster, &Waiting::of(&cluster, &oracle, excused)),
            }
        };
        calm = if unsettled.is_empty() { calm + 1 } else { 0 };
        if runtime.now() > until {
            let (cluster, mut oracle) = (clients.cluster.lock(), clients.oracle.lock());
            let unreadable: Vec<String> =
                oracle.keys().into_iter().filter_map(|key| oracle.unreadable_text(&cluster, key)).collect();
            let (unsettled, unreadable) = (unsettled.join("; "), unreadable.join("; "));
            let what = format!("not settled {SETTLED_MAX:?} after healing: {unsettled}; {unreadable}");
            oracle.broken(Violation::Stuck(what));
            return;
        }
    }
}

/// Reads the keys of which a copy cannot be read, once.
pub(crate) async fn read_what_is_unreadable(clients: &Clients) {
    let unreadable: Vec<(Key, HostId)> = {
        let (cluster, oracle) = (clients.cluster.lock(), clients.oracle.lock());
        let keys = oracle.keys().into_iter().filter(|key| !oracle.unreadable(&cluster, *key).is_empty());
        keys.filter_map(|key| Some((key, cluster.owners_of(&key).first().copied()?))).collect()
    };
    for (key, host) in unreadable {
        // The answer does not matter; the repair does.
        drop(clients.get(host, key, GetOptions::default()).await);
    }
}

/// Reads the keys whose replicas differ or cannot be read, or have a value that a newer deletion
/// hides: a node that was started anew learns of such a value from a read. Returns whether there
/// are any.
async fn read_what_differs(clients: &Clients) -> bool {
    let runtime = clients.world.runtime(OUTSIDE);
    for round in 0..READ_ROUNDS {
        let differing: Vec<(Key, HostId)> = {
            let (cluster, oracle) = (clients.cluster.lock(), clients.oracle.lock());
            let differs = |key: &Key| {
                let owners = cluster.owners_of(key);
                let unreadable = oracle.unreadable(&cluster, *key);
                // Others ask a replica for its head alone, which may well be readable.
                let through = owners.iter().find(|owner| unreadable.contains(owner));
                let is_at_rest = through.is_none()
                    && oracle.are_equal(&cluster, *key, &owners)
                    && !oracle.hides_values(&cluster, *key, &owners);
                (!is_at_rest).then(|| through.or(owners.first()).copied())?
            };
            oracle.keys().into_iter().filter_map(|key| Some((key, differs(&key)?))).collect()
        };
        if differing.is_empty() {
            return round > 0;
        }
        for (key, host) in differing {
            // The answer does not matter; the repair does.
            drop(clients.get(host, key, GetOptions::default()).await);
        }
        runtime.sleep(Duration::from_secs(1)).await;
    }
    true
}

/// What waits for copies that cannot be read.
#[derive(Default)]
struct Waiting {
    /// The classes of the keys of which an owner cannot read its copy. It cannot prove that it
    /// holds all of the class, and so no other owner can know that it does.
    classes: BTreeSet<ClassId>,
    /// The partitions of which a host holds copies for others that have to stay.
    hints: BTreeSet<(HostId, u32)>,
    /// How many tombstones each host may hold that have to stay.
    tombstones: BTreeMap<HostId, usize>,
}

impl Waiting {
    fn of(cluster: &Cluster, oracle: &Oracle, excused: Excused) -> Self {
        let mut waiting = Self::default();
        let keys: Vec<(Key, u32)> =
            oracle.keys().into_iter().filter_map(|key| Some((key, cluster.home_of(&key)?))).collect();
        let mut stuck = BTreeSet::new();
        for (key, partition) in &keys {
            let owners = cluster.owners_of(key);
            let hosts = match excused {
                Excused::Unreadable => oracle.unreadable(cluster, *key),
                Excused::Irreplaceable => oracle.irreplaceable(cluster, *key, &owners),
            };
            if hosts.is_empty() {
                continue;
            }
            stuck.insert(*key);
            if hosts.iter().any(|host| owners.contains(host)) {
                waiting.classes.insert(ClassId { partition: *partition, n: key.kind.n });
            }
            let others = cluster.present_hosts().into_iter().filter(|host| !owners.contains(host));
            let holders = others.filter(|host| oracle.holds(cluster, *key, *host));
            waiting.hints.extend(holders.map(|host| (host, *partition)));
        }
        for (key, partition) in keys {
            if stuck.contains(&key) || waiting.classes.contains(&ClassId { partition, n: key.kind.n }) {
                for owner in cluster.owners_of(&key) {
                    *waiting.tombstones.entry(owner).or_default() += 1;
                }
            }
        }
        waiting
    }

    fn is_nothing(&self) -> bool {
        self.classes.is_empty() && self.hints.is_empty()
    }

    /// Whether everything that a node still has to do waits for such copies.
    fn is_all_of(&self, host: HostId, kv: &Kv) -> bool {
        let mut classes = kv.owed_marks().into_iter().map(|(class, _)| class);
        let mut filling = kv.filling_classes().into_iter().map(|(class, _)| class);
        !self.is_nothing()
            && classes.all(|class| self.classes.contains(&class))
            && filling.all(|class| self.classes.contains(&class))
            && kv.hints().into_iter().all(|(partition, _)| self.hints.contains(&(host, partition)))
            && kv.versions_to_reap() <= self.tombstones.get(&host).copied().unwrap_or(0)
    }
}

/// What each node still has to bring to where it belongs, for nodes that have something.
fn unsettled(cluster: &Cluster, waiting: &Waiting) -> Vec<String> {
    let running = cluster.nodes.iter().filter_map(|node| Some((node.host, node.kv.as_ref()?)));
    let is_unsettled = |kv: &Kv| !Repair::of(kv).settled().is_settled() || kv.versions_to_reap() > 0;
    let unsettled = running.filter(|(host, kv)| is_unsettled(kv) && !waiting.is_all_of(*host, kv));
    let text = |(host, kv): (HostId, &Kv)| {
        let (marks, filling) = (kv.owed_marks(), kv.filling_classes());
        let (settled, to_reap) = (Repair::of(kv).settled(), kv.versions_to_reap());
        format!("host {}: {settled:?}, {to_reap} to reap, owed {marks:?}, filling {filling:?}", host.0)
    };
    unsettled.map(text).collect()
}
