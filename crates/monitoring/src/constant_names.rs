//! The statistics at `/stats` that never change, and why.

use crate::riak_json::riak_stats;
use crate::system::{Disk, NodeFacts, SystemFacts};
use ombak_ring::{Ring, RingSize, RingVersion};
use ombak_stats::{ClusterFigures, PeerFigures, ReadRepair, ReplicaCounts, Stats, TransferFigures};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

const NO_FOLDS: &str = "there are no folds over a cluster yet";
const NO_REPLICATION: &str = "there is no replication between clusters yet";
const NO_MAILBOX: &str = "partitions have no mailboxes, so none is ever loaded";
const NO_GOSSIP: &str = "rings do not travel by gossip: members decide about a ring together";
const NO_ERLANG: &str = "Erlang's run-time system has it, and Ombak has no such part";
const OF_THE_PROGRAM: &str = "a fact about the program, which does not change while it runs";

/// Each name, or a beginning and an end around a star, with the reason why its value never changes.
const CONSTANT: &[(&str, &str)] = &[
    ("clusteraae_fsm_*", NO_FOLDS),
    ("consistent_*", "there is no strong consistency yet"),
    ("converge_delay_*", NO_GOSSIP),
    ("coord_local_soft_loaded_total", NO_MAILBOX),
    ("coord_local_unloaded_total", NO_MAILBOX),
    ("coord_redir_least_loaded_total", NO_MAILBOX),
    ("coord_redir_loaded_local_total", NO_MAILBOX),
    ("coord_redir_unloaded_total", NO_MAILBOX),
    ("gossip_received", NO_GOSSIP),
    ("ignored_gossip_total", NO_GOSSIP),
    ("late_put_fsm_coordinator_ack", "a put has one coordinator: nobody acknowledges a put that was given up"),
    ("leveldb_read_block_error", "only LevelDB in Riak counts it"),
    ("memory_atom*", NO_ERLANG),
    ("memory_binary", NO_ERLANG),
    ("memory_code", NO_ERLANG),
    ("memory_ets", NO_ERLANG),
    ("memory_processes*", NO_ERLANG),
    ("ngrfetch_*", NO_REPLICATION),
    ("ngrrepl_*", NO_REPLICATION),
    ("rebalance_delay_*", NO_GOSSIP),
    ("riak_kv_vnodeq_*", NO_MAILBOX),
    ("riak_pipe_vnode*", "MapReduce has no pipes"),
    ("rings_reconciled*", NO_GOSSIP),
    ("soft_loaded_vnode_mbox_total", NO_MAILBOX),
    ("sys_driver_version", NO_ERLANG),
    ("sys_global_heaps_size", NO_ERLANG),
    ("sys_heap_type", NO_ERLANG),
    ("sys_monitor_count", NO_ERLANG),
    ("sys_otp_release", NO_ERLANG),
    ("sys_smp_support", OF_THE_PROGRAM),
    ("sys_system_architecture", OF_THE_PROGRAM),
    ("sys_system_version", OF_THE_PROGRAM),
    ("sys_threads_enabled", OF_THE_PROGRAM),
    ("sys_wordsize", OF_THE_PROGRAM),
    ("tictacaae_*", "exchanges of Ombak have no such end"),
    ("ttaaefs_*", NO_REPLICATION),
    ("vnode_mbox_check_timeout_total", NO_MAILBOX),
    ("worker_be_pool_*", "no work of Ombak is of this class"),
    ("worker_unregistered_*", "each pool has a name"),
    ("riak_*_version", OF_THE_PROGRAM),
];

/// What the features of a node count under Riak's names. They are attached to the statistics when
/// the node starts (`crates/datatypes`, `crates/jobs`).
const OF_FEATURES: &[&str] = &[
    "executing_mappers",
    "hll_bytes*",
    "node_get_fsm_counter_*",
    "node_get_fsm_hll_*",
    "node_get_fsm_map_*",
    "node_get_fsm_set_*",
    "node_gets_*",
    "node_put_fsm_counter_*",
    "node_put_fsm_hll_*",
    "node_put_fsm_map_*",
    "node_put_fsm_set_*",
    "node_puts_*",
    "object_counter_*",
    "object_hll_*",
    "object_map_*",
    "object_set_*",
    "pipeline_*",
    "read_repairs_counter*",
    "read_repairs_hll*",
    "read_repairs_map*",
    "read_repairs_set*",
    "tictacaae_clock_compare*",
    "tictacaae_error*",
    "tictacaae_exchange*",
    "tictacaae_root_compare*",
    "*_actor_counts_95",
    "*_actor_counts_99",
    "*_actor_counts_100",
    "*_actor_counts_mean",
    "*_actor_counts_median",
    "vnode_counter_update*",
    "vnode_hll_update*",
    "vnode_index_refreshes*",
    "vnode_map_update*",
    "vnode_set_update*",
    "worker_af1_pool_*",
    "worker_af2_pool_*",
    "worker_af3_pool_*",
    "worker_af4_pool_*",
    "worker_node_worker_pool_*",
    "worker_vnode_pool_*",
];

fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
        None => name == pattern,
    }
}

/// The facts of a node, in which everything depends on `n`.
fn facts(n: u64) -> NodeFacts {
    let node_id = NodeId::new(n);
    let replicas = ReplicaCounts { puts_forwarded: n, refused_overload: n, ..ReplicaCounts::default() };
    let transfers = TransferFigures { rejected: n, timeouts: n, ..TransferFigures::default() };
    let peers = vec![PeerFigures { name: format!("peer{n}"), is_connected: true, ..PeerFigures::default() }];
    let ring_size = RingSize::new(if n == 1 { 8 } else { 16 }).unwrap();
    NodeFacts {
        node_id,
        node_names: BTreeMap::from([(node_id, format!("n{n}@h"))]),
        ring: Arc::new(Ring::of_one_node(node_id, ring_size, RingVersion::first(1))),
        backend: if n == 1 { "bitcask" } else { "memory" },
        cluster: ClusterFigures { replicas, transfers, peers, ..ClusterFigures::default() },
        system: SystemFacts {
            load_average_256: [n; 3],
            processes: n,
            processors: n,
            memory_total_bytes: n,
            memory_used_bytes: n,
            resident_bytes: n,
            threads: n,
            open_files: n,
            disks: vec![Disk { mount_point: "/".into(), size_kib: n, used_percent: n }],
        },
    }
}

/// Records everything that the engine can record, so often that each rate is above 0.
fn record_everything(stats: &Stats) {
    for _ in 0..100 {
        stats.node_get(100, 2, 1000);
        stats.node_get_error();
        stats.node_get_rejected();
        stats.node_put(50);
        stats.node_put_rejected();
    }
    stats.vnode_get(1);
    stats.vnode_head(1);
    stats.vnode_put(1);
    stats.vnode_index_write(1, 1);
    stats.vnode_index_delete(1);
    stats.write_once_put(1, 1);
    stats.write_once_merged();
    stats.object_merged(1);
    stats.read_repair_skipped();
    for kind in [
        ReadRepair::PrimaryNotFound,
        ReadRepair::PrimaryOutOfDate,
        ReadRepair::FallbackNotFound,
        ReadRepair::FallbackOutOfDate,
    ] {
        stats.read_repair(kind);
    }
    stats.list_started();
    stats.list_failed();
    stats.query_started(1);
    stats.query_ended(true, 1, 1);
    stats.query_started(1);
    stats.query_failed();
    stats.precommit_failed();
    stats.postcommit_failed(1);
}

#[test]
fn every_statistic_that_never_changes_has_a_reason() {
    let (untouched, used) = (Stats::new(Instant::now()), Stats::new(Instant::now()));
    record_everything(&used);
    let _active = (used.node_get_active(), used.node_put_active(), used.pbc_connected());
    let (before, after) = (riak_stats(&untouched, &facts(1)), riak_stats(&used, &facts(2)));
    let is_riaks = |name: &str| {
        !name.starts_with("ombak_") && !name.contains("_handoff_") && !name.ends_with("_outbound_active_transfers")
    };
    let names = before.keys().filter(|name| is_riaks(name) && !OF_FEATURES.iter().any(|of| fits(name, of)));
    let same: BTreeSet<&str> = names.filter(|name| before[*name] == after[*name]).map(String::as_str).collect();
    let reasons = |name: &str| CONSTANT.iter().filter(|(pattern, _)| fits(name, pattern)).count();
    let unexplained: Vec<_> = same.iter().filter(|name| reasons(name) != 1).collect();
    assert!(unexplained.is_empty(), "these never change, and do not have exactly one reason: {unexplained:?}");
    for (pattern, _) in CONSTANT {
        assert!(same.iter().any(|name| fits(name, pattern)), "{pattern} changes, or does not exist");
    }
    let changing = before.keys().filter(|name| reasons(name) > 0 && before[*name] != after[*name]);
    assert_eq!(changing.collect::<Vec<_>>(), Vec::<&String>::new());
}
