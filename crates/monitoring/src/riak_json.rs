//! Riak's `/stats`: one flat JSON object.

use crate::riak_names as names;
use crate::system::NodeFacts;
use ombak_stats::{ClusterFigures, MINUTE_SECS, PeerFigures, Stats};
use serde_json::{Map, Value, json};

/// The members of `GET /stats`, in Riak's order: names alphabetically, then disks and versions.
pub fn riak_stats(stats: &Stats, facts: &NodeFacts) -> Map<String, Value> {
    let mut out = Map::new();
    zeros(&mut out);
    measured(stats, &mut out);
    about_node(facts, &mut out);
    about_system(facts, &mut out);
    of_cluster(&facts.cluster, &mut out);
    out.sort_keys();
    let disks = facts.system.disks.iter();
    let disks = disks.map(|d| json!({"id": d.mount_point, "size": d.size_kib, "used": d.used_percent}));
    out.insert("disk".into(), disks.collect());
    for application in names::APPLICATIONS {
        out.insert(format!("{application}_version"), Value::from(names::RIAK_VERSION));
    }
    out.insert("ombak_version".into(), Value::from(env!("CARGO_PKG_VERSION")));
    out
}

fn measured(stats: &Stats, out: &mut Map<String, Value>) {
    out.extend(stats.numbers().into_iter().map(|(name, value)| (name, Value::from(value))));
    for (kind, spiral) in stats.read_repair_kinds() {
        let total = spiral.total();
        let told = |n: u64| if total == 0 { Value::from("undefined") } else { Value::from(n) };
        out.insert(format!("read_repairs_{kind}_one"), told(spiral.last_minute()));
        out.insert(format!("read_repairs_{kind}_count"), told(total));
    }
    request_rates(stats, out);
}

/// Riak throttles gets and puts by rates per second and reports these rates; Ombak computes them
/// from the last minute.
fn request_rates(stats: &Stats, out: &mut Map<String, Value>) {
    let spirals = stats.spirals();
    let last_minute =
        |wanted: &str| spirals.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, spiral)| spiral.last_minute());
    for (fsm, requests) in [("get", "node_gets"), ("put", "node_puts")] {
        let answered = last_minute(requests);
        let rejected = last_minute(&format!("node_{fsm}_fsm_rejected"));
        out.insert(format!("node_{fsm}_fsm_in_rate"), Value::from((answered + rejected) / MINUTE_SECS));
        out.insert(format!("node_{fsm}_fsm_out_rate"), Value::from(answered / MINUTE_SECS));
        out.insert(format!("node_{fsm}_fsm_active_60s"), Value::from(answered + rejected));
        out.insert(format!("node_{fsm}_fsm_rejected_60s"), Value::from(rejected));
    }
}

fn zeros(out: &mut Map<String, Value>) {
    let mut zero = |name: String| drop(out.insert(name, Value::from(0)));
    for name in names::PLAIN_NAMES {
        zero((*name).into());
    }
    for name in names::SPIRALS {
        zero((*name).into());
        zero(format!("{name}_total"));
    }
    for name in names::HISTOGRAMS {
        for suffix in ["mean", "median", "95", "99", "100"] {
            zero(format!("{name}_{suffix}"));
        }
    }
    for pool in names::WORKER_POOLS {
        for suffix in ["total", "queuetime_mean", "queuetime_100", "worktime_mean", "worktime_100"] {
            zero(format!("worker_{pool}_{suffix}"));
        }
    }
    for name in names::UNDEFINED {
        out.insert((*name).into(), Value::from("undefined"));
    }
}

fn about_node(facts: &NodeFacts, out: &mut Map<String, Value>) {
    let owners = || facts.ring.nodes().map(|(node, id)| (node, id, facts.name_of(id)));
    let members: Vec<String> = owners().map(|(_, _, name)| name).collect();
    let others: Vec<&str> = facts.cluster.peers.iter().filter(|p| p.is_connected).map(|p| p.name.as_str()).collect();
    let ownership: Vec<String> =
        owners().map(|(node, _, name)| format!("{{'{name}',{}}}", facts.ring.partitions_owned(node))).collect();
    let mine = facts.ring.node(facts.node_id).map_or(0, |node| facts.ring.partitions_owned(node));
    let partitions = facts.ring.size().get();
    let members_of_stats = [
        ("nodename", Value::from(facts.node_name())),
        ("connected_nodes", Value::from(others)),
        ("coord_redirs_total", Value::from(facts.cluster.replicas.puts_forwarded)),
        ("dropped_vnode_requests_total", Value::from(facts.cluster.replicas.refused_overload)),
        ("rejected_handoffs", Value::from(facts.cluster.transfers.rejected)),
        ("handoff_timeouts", Value::from(facts.cluster.transfers.timeouts)),
        ("ring_members", Value::from(members)),
        ("ring_ownership", Value::from(format!("[{}]", ownership.join(",")))),
        ("ring_num_partitions", Value::from(partitions)),
        ("ring_creation_size", Value::from(partitions)),
        ("riak_kv_vnodes_running", Value::from(mine)),
        ("storage_backend", Value::from(riak_backend(facts.backend))),
    ];
    out.extend(members_of_stats.map(|(name, value)| (name.to_owned(), value)));
}

/// The figures of the cluster: those of handoffs under the names of later versions of Riak
/// (docs/riak/semantics.md §14), and Ombak's own.
fn of_cluster(cluster: &ClusterFigures, out: &mut Map<String, Value>) {
    let (transfers, replicas, reaping) = (&cluster.transfers, &cluster.replicas, &cluster.reaping);
    let numbers = [
        ("hinted_handoff_bytes_sent", transfers.hinted_bytes_sent),
        ("hinted_handoff_objects_sent", transfers.hinted_objects_sent),
        ("hinted_outbound_active_transfers", transfers.hinted_active),
        ("repair_handoff_bytes_sent", transfers.repair_bytes_sent),
        ("repair_handoff_objects_sent", transfers.repair_objects_sent),
        ("repair_outbound_active_transfers", transfers.repair_active),
        ("ombak_handoff_bytes_received", transfers.bytes_received),
        ("ombak_handoff_objects_received", transfers.objects_received),
        ("ombak_hints_objects", transfers.hinted_objects),
        ("ombak_hints_bytes", transfers.hinted_bytes),
        ("ombak_hints_partitions", transfers.hinted_partitions),
        ("ombak_owed_marks", transfers.owed_marks),
        ("ombak_filling_classes", transfers.filling_classes),
        ("ombak_replica_reads_sent", replicas.reads_sent),
        ("ombak_replica_stores_sent", replicas.stores_sent),
        ("ombak_replica_reads_served", replicas.reads_served),
        ("ombak_replica_stores_served", replicas.stores_served),
        ("ombak_puts_coordinated_for_others", replicas.puts_coordinated),
        ("ombak_replica_refused_overload", replicas.refused_overload),
        ("ombak_replica_refused_expired", replicas.refused_expired),
        ("ombak_coverage_parts_asked", cluster.coverage.parts_asked),
        ("ombak_coverage_parts_repeated", cluster.coverage.parts_repeated),
        ("ombak_coverage_parts_sent", replicas.listings_sent),
        ("ombak_coverage_parts_served", replicas.listings_served),
        ("ombak_reaping_waiting", reaping.waiting),
        ("ombak_reaping_removed", reaping.removed),
        ("ombak_reaping_rounds", reaping.rounds),
        ("ombak_reaping_rounds_failed", reaping.rounds_failed),
    ];
    out.extend(numbers.map(|(name, value)| (name.to_owned(), Value::from(value))));
    let peer = |peer: &PeerFigures| {
        let failures: u64 = peer.failures.iter().map(|(_, count)| count).sum();
        json!({
            "name": peer.name,
            "state": peer.state,
            "slow": peer.is_slow,
            "up": peer.is_up,
            "connected": peer.is_connected,
            "requests": peer.requests,
            "failures": failures,
        })
    };
    out.insert("ombak_peers".into(), cluster.peers.iter().map(peer).collect());
}

/// Statistics of Erlang's run-time system. Ombak answers with the equivalents for its own process,
/// where there are any.
fn about_system(facts: &NodeFacts, out: &mut Map<String, Value>) {
    let s = &facts.system;
    let [avg1, avg5, avg15] = s.load_average_256;
    let members_of_stats = [
        ("cpu_nprocs", Value::from(s.processes)),
        ("cpu_avg1", Value::from(avg1)),
        ("cpu_avg5", Value::from(avg5)),
        ("cpu_avg15", Value::from(avg15)),
        ("mem_total", Value::from(s.memory_total_bytes)),
        ("mem_allocated", Value::from(s.memory_used_bytes)),
        ("memory_total", Value::from(s.resident_bytes)),
        ("memory_system", Value::from(s.resident_bytes)),
        ("sys_driver_version", Value::from("")),
        ("sys_global_heaps_size", Value::from("deprecated")),
        ("sys_heap_type", Value::from("shared")),
        ("sys_logical_processors", Value::from(s.processors)),
        ("sys_otp_release", Value::from("")),
        ("sys_port_count", Value::from(s.open_files)),
        ("sys_process_count", Value::from(s.threads)),
        ("sys_smp_support", Value::from(true)),
        ("sys_system_architecture", Value::from(format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))),
        ("sys_system_version", Value::from(concat!("Ombak ", env!("CARGO_PKG_VERSION")))),
        ("sys_thread_pool_size", Value::from(s.threads)),
        ("sys_threads_enabled", Value::from(true)),
        ("sys_wordsize", Value::from(size_of::<usize>())),
    ];
    out.extend(members_of_stats.map(|(name, value)| (name.to_owned(), value)));
}

/// The name of the backend's module in Riak.
fn riak_backend(name: &str) -> String {
    match name {
        "leveldb" => "riak_kv_eleveldb_backend".into(),
        "prefix_multi" => "riak_kv_multi_prefix_backend".into(),
        _ => format!("riak_kv_{name}_backend"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::SystemFacts;
    use ombak_ring::{Ring, RingSize, RingVersion};
    use ombak_stats::{ReadRepair, ReplicaCounts, TransferFigures};
    use ombak_types::NodeId;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    fn facts() -> NodeFacts {
        let node_id = NodeId::new(7);
        NodeFacts {
            node_id,
            node_names: BTreeMap::from([(node_id, "n@h".into())]),
            ring: Arc::new(Ring::of_one_node(node_id, RingSize::DEFAULT, RingVersion::first(1))),
            backend: "bitcask",
            cluster: ClusterFigures::default(),
            system: SystemFacts::default(),
        }
    }

    #[test]
    fn only_nodes_with_a_connection_are_connected() {
        let peer = |name: &str, is_connected| PeerFigures { name: name.into(), is_connected, ..PeerFigures::default() };
        let replicas = ReplicaCounts { puts_forwarded: 9, ..ReplicaCounts::default() };
        let transfers = TransferFigures { hinted_objects_sent: 4, rejected: 2, ..TransferFigures::default() };
        let peers = vec![peer("a@h", true), peer("b@h", false)];
        let cluster = ClusterFigures { replicas, peers, transfers, ..ClusterFigures::default() };
        let json = riak_stats(&Stats::new(Instant::now()), &NodeFacts { cluster, ..facts() });
        assert_eq!((&json["connected_nodes"], &json["coord_redirs_total"]), (&json!(["a@h"]), &json!(9)));
        assert_eq!((&json["hinted_handoff_objects_sent"], &json["rejected_handoffs"]), (&json!(4), &json!(2)));
        assert_eq!(json["ombak_peers"][1]["name"], "b@h");
    }

    #[test]
    fn what_happened_is_told_under_riaks_names() {
        let start = Instant::now();
        let stats = Stats::new(start);
        stats.node_get(100, 2, 1000);
        stats.node_get(300, 0, 0);
        stats.node_put(50);
        stats.read_repair(ReadRepair::PrimaryOutOfDate);
        let connection = stats.pbc_connected();
        let json = riak_stats(&stats, &facts());
        for (name, value) in [
            ("node_gets", json!(2)),
            ("node_gets_total", json!(2)),
            ("node_get_fsm_time_100", json!(300)),
            ("node_get_fsm_time_mean", json!(200)),
            ("node_get_fsm_siblings_100", json!(2)),
            ("node_get_fsm_objsize_mean", json!(1000)),
            ("node_puts", json!(1)),
            ("read_repairs", json!(1)),
            ("read_repairs_primary_outofdate_one", json!(1)),
            ("read_repairs_primary_notfound_one", json!("undefined")),
            ("pbc_active", json!(1)),
            ("pbc_connects_total", json!(1)),
            ("riak_kv_version", json!("3.2.3")),
            ("storage_backend", json!("riak_kv_bitcask_backend")),
            ("ring_ownership", json!("[{'n@h',64}]")),
            ("ring_members", json!(["n@h"])),
            ("connected_nodes", json!([])),
            ("riak_kv_vnodes_running", json!(64)),
        ] {
            assert_eq!(json.get(name), Some(&value), "{name}");
        }
        drop(connection);
        stats.tick(start + Duration::from_secs(120));
        let json = riak_stats(&stats, &facts());
        assert_eq!(
            (&json["pbc_active"], &json["pbc_connects"], &json["pbc_connects_total"]),
            (&json!(0), &json!(0), &json!(1))
        );
        assert_eq!((&json["node_get_fsm_time_100"], &json["node_gets_total"]), (&json!(0), &json!(2)));
    }

    #[test]
    fn the_minute_moves_on_however_unevenly_it_is_told() {
        let start = Instant::now();
        let stats = Stats::new(start);
        stats.node_put(1);
        for at_ms in (0..54_000).step_by(900) {
            stats.tick(start + Duration::from_millis(at_ms));
        }
        assert_eq!(riak_stats(&stats, &facts())["node_puts"], json!(1));
        stats.tick(start + Duration::from_secs(60));
        assert_eq!(riak_stats(&stats, &facts())["node_puts"], json!(0));
    }

    /// Whether a name is Ombak's own, or one of later versions of Riak.
    fn is_own_or_later(name: &str) -> bool {
        let later = ["hinted_handoff_", "hinted_outbound_", "repair_handoff_", "repair_outbound_"];
        name.starts_with("ombak_") || later.iter().any(|prefix| name.starts_with(prefix))
    }

    #[test]
    fn every_name_of_a_real_node_is_answered() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/recordings/http/007_stats.http");
        let recorded = std::fs::read_to_string(file).unwrap();
        let body = recorded.rsplit_once("\n{").map(|(_, body)| format!("{{{body}")).unwrap();
        let theirs: Map<String, Value> = serde_json::from_str(body.trim()).unwrap();
        let mine = riak_stats(&Stats::new(Instant::now()), &facts());
        let missing: BTreeSet<&String> =
            theirs.keys().filter(|name| !name.ends_with("_version") && !mine.contains_key(*name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let invented: BTreeSet<&String> =
            mine.keys().filter(|name| !is_own_or_later(name) && !theirs.contains_key(*name)).collect();
        assert!(invented.is_empty(), "{invented:?}");
    }
}
