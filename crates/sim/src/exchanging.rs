//! Complete rounds of exchanges at the end of a run.
//!
//! A round is complete when each primary of each class has found that each other primary holds
//! everything (docs/design/anti-entropy.md §7). A class of which a copy cannot be read, and that
//! nothing can replace, takes no part.

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::oracle::{Oracle, Violation};
use crate::world::{HostId, OUTSIDE};
use ombak_kv::ClassId;
use ombak_repair::{ExchangeFigures, Repair};
use ombak_runtime::{Runtime, RuntimeExt};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a round may take. An exchange that fails is tried again after a pause.
const ROUND_MAX: Duration = Duration::from_secs(300);
/// How often to look whether a round has ended.
const LOOK: Duration = Duration::from_millis(500);
/// How long a node takes to compare all of its sums, at most.
const CHECKED_AFTER: Duration = Duration::from_secs(2);

/// One direction of an exchange: who begins it, the class, and the other primary.
type Way = (HostId, ClassId, NodeId);

/// Lets all nodes compare their sums with their stores: what has vanished from a store is no
/// difference before that.
pub(crate) async fn check_sums(clients: &Clients) {
    clients.cluster.lock().engines().iter().for_each(|(_, kv)| Repair::of(kv).check_sums());
    clients.world.runtime(OUTSIDE).sleep(CHECKED_AFTER).await;
}

/// Lets all nodes begin a round.
pub(crate) fn begin_round(cluster: &Cluster) {
    cluster.engines().iter().for_each(|(_, kv)| Repair::of(kv).start_exchange_round());
}

/// Lets all nodes begin a round, and waits until it is complete.
pub(crate) async fn complete_round(clients: &Clients) {
    let runtime = clients.world.runtime(OUTSIDE);
    let before = {
        let cluster = clients.cluster.lock();
        begin_round(&cluster);
        ended(&cluster)
    };
    let until = runtime.now() + ROUND_MAX;
    loop {
        runtime.sleep(LOOK).await;
        let left = {
            let (cluster, oracle) = (clients.cluster.lock(), clients.oracle.lock());
            left_of_round(&cluster, &oracle, &before)
        };
        if left.is_empty() {
            return;
        }
        if runtime.now() > until {
            let left = shown(&clients.cluster.lock(), &left);
            let what = format!("no complete round of exchanges within {ROUND_MAX:?}: {left}");
            return clients.oracle.lock().broken(Violation::Stuck(what));
        }
    }
}

/// The ways that are left, with what their exchanges have done, for people.
fn shown(cluster: &Cluster, left: &[Way]) -> String {
    let of_way = |(host, class, node): &Way| {
        let figures = cluster.node(*host).kv.as_ref().and_then(|kv| Repair::of(kv).exchange_figures());
        let of = figures.and_then(|figures| figures.classes.get(&(*class, *node)).copied()).unwrap_or_default();
        let to = cluster.host_of(*node).map_or(0, |host| host.0);
        let (ended, failed, repaired, withheld) = (of.exchanges, of.failures, of.repaired, of.withheld);
        let ClassId { partition, n } = class;
        let way = format!("partition {partition} n={n} from host {} to {to}", host.0);
        format!("{way}: {ended} ended, {failed} failed, {repaired} repaired, {withheld} withheld")
    };
    let ways = left.iter().map(of_way).collect::<Vec<_>>().join("; ");
    let hosts: BTreeSet<HostId> = left.iter().map(|(host, ..)| *host).collect();
    let waiting = hosts.into_iter().filter_map(|host| {
        let status = Repair::of(cluster.node(host).kv.as_ref()?).exchange_status()?;
        let is_left = |class: ClassId| left.iter().any(|way| (way.0, way.1) == (host, class));
        let reasons = status.waiting.into_iter().filter(|one| is_left(one.class)).map(|one| one.why);
        Some(format!("host {}: {:?}", host.0, reasons.collect::<BTreeSet<String>>()))
    });
    format!("{ways}; they wait: {}", waiting.collect::<Vec<_>>().join("; "))
}

/// How often each way has ended in full.
fn ended(cluster: &Cluster) -> BTreeMap<Way, u64> {
    let running = cluster.engines().into_iter();
    let figures = running.filter_map(|(host, kv)| Some((host, Repair::of(&kv).exchange_figures()?)));
    let of_host = |(host, figures): (HostId, ExchangeFigures)| {
        figures.classes.into_iter().map(move |((class, node), of)| ((host, class, node), of.exchanges))
    };
    figures.flat_map(of_host).collect()
}

/// The ways that have not ended in full since `before`.
fn left_of_round(cluster: &Cluster, oracle: &Oracle, before: &BTreeMap<Way, u64>) -> Vec<Way> {
    let ended = ended(cluster);
    let has_ended = |way: &Way| ended.get(way).copied().unwrap_or(0) > before.get(way).copied().unwrap_or(0);
    let mut left: Vec<Way> = all_ways(cluster).into_iter().filter(|way| !has_ended(way)).collect();
    if !left.is_empty() {
        let excused = classes_with_unreadable(cluster, oracle);
        left.retain(|(_, class, _)| !excused.contains(class));
    }
    left
}

/// The ways between the primaries of all classes that hold keys of the run.
fn all_ways(cluster: &Cluster) -> Vec<Way> {
    let Some(placement) = cluster.placement() else { return Vec::new() };
    let mut ways = Vec::new();
    for home in placement.homes() {
        for n in cluster.all_n_vals() {
            let class = ClassId { partition: home.home(), n };
            let set = home.replica_set(n);
            let running = |node: NodeId| cluster.host_of(node).filter(|host| cluster.node(*host).kv.is_some());
            for from in &set {
                let Some(host) = running(*from) else { continue };
                let others = set.iter().filter(|node| *node != from && running(**node).is_some());
                ways.extend(others.map(|node| (host, class, *node)));
            }
        }
    }
    ways
}

fn classes_with_unreadable(cluster: &Cluster, oracle: &Oracle) -> BTreeSet<ClassId> {
    let keys = oracle.keys().into_iter().filter(|key| !oracle.unreadable(cluster, *key).is_empty());
    keys.filter_map(|key| Some(ClassId { partition: cluster.home_of(&key)?, n: key.kind.n })).collect()
}
