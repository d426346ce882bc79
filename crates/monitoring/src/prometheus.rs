//! `/metrics`: the text format of Prometheus, version 0.0.4.
//!
//! Names are `ombak_…` with base units (seconds, bytes), as Prometheus' conventions require. A
//! histogram becomes a summary: its quantiles cover the last minute, and its sum and count cover
//! the time since the start.

use crate::cluster;
use crate::exposition::Exposition;
use crate::system::NodeFacts;
use ombak_stats::{Figure, Histogram, Number, Stats};
use ombak_storage::Status;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The `Content-Type` of the answer.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The unit of a histogram's values.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// Recorded in microseconds, reported in seconds.
    Seconds,
    Bytes,
    Count,
}

/// Riak's name, Ombak's name, the unit of the values, and the help text.
const SUMMARIES: [(&str, &str, Unit, &str); 12] = [
    ("node_get_fsm_time", "get_duration_seconds", Unit::Seconds, "Time to answer a get."),
    ("node_get_fsm_siblings", "get_siblings", Unit::Count, "Siblings of the objects that gets found."),
    ("node_get_fsm_objsize", "get_object_size_bytes", Unit::Bytes, "Size of the objects that gets found."),
    ("node_put_fsm_time", "put_duration_seconds", Unit::Seconds, "Time to answer a put."),
    ("vnode_get_fsm_time", "partition_get_duration_seconds", Unit::Seconds, "Time of one partition to read a key."),
    ("vnode_head_fsm_time", "partition_head_duration_seconds", Unit::Seconds, "Time of one partition to read a head."),
    ("vnode_put_fsm_time", "partition_put_duration_seconds", Unit::Seconds, "Time of one partition to write a key."),
    ("write_once_put_time", "write_once_put_duration_seconds", Unit::Seconds, "Time to answer a write_once put."),
    ("write_once_put_objsize", "write_once_put_object_size_bytes", Unit::Bytes, "Size of write_once objects put."),
    ("object_merge_time", "object_merge_duration_seconds", Unit::Seconds, "Time to merge two copies of an object."),
    ("index_fsm_results", "index_query_results", Unit::Count, "Results of index queries."),
    ("index_fsm_time", "index_query_duration_seconds", Unit::Seconds, "Time of index queries to their last result."),
];

/// Riak's name, Ombak's name, and the help text.
const COUNTERS: [(&str, &str, &str); 20] = [
    ("node_gets", "gets_total", "Gets answered."),
    ("node_get_fsm_errors", "get_errors_total", "Gets failed."),
    ("node_get_fsm_rejected", "gets_rejected_total", "Gets refused because too many were under way."),
    ("node_puts", "puts_total", "Puts answered."),
    ("node_put_fsm_rejected", "puts_rejected_total", "Puts refused because too many were under way."),
    ("vnode_gets", "partition_gets_total", "Reads by partitions."),
    ("vnode_heads", "partition_heads_total", "Reads of heads by partitions."),
    ("vnode_puts", "partition_puts_total", "Writes by partitions."),
    ("write_once_puts", "write_once_puts_total", "Puts to write_once buckets answered."),
    ("object_merge", "object_merges_total", "Copies of objects merged."),
    ("read_repairs", "read_repairs_total", "Copies repaired after reads."),
    ("skipped_read_repairs", "read_repairs_skipped_total", "Repairs left out because too many were under way."),
    ("list_fsm_create", "listings_total", "Listings of keys or buckets begun."),
    ("list_fsm_create_error", "listing_errors_total", "Listings that could not begin."),
    ("vnode_index_reads", "partition_index_reads_total", "Reads of indexes by partitions."),
    ("vnode_index_writes", "partition_index_writes_total", "Versions stored that have index entries or replace some."),
    ("vnode_index_writes_postings", "partition_index_entries_added_total", "Index entries added by partitions."),
    ("vnode_index_deletes", "partition_index_deletes_total", "Tombstones stored in place of index entries."),
    ("vnode_index_deletes_postings", "partition_index_entries_removed_total", "Index entries removed by partitions."),
    ("pbc_connects", "protobuf_connections_total", "Protocol Buffers connections accepted."),
];

/// Riak's name, Ombak's name, the type, and the help text.
const GAUGES_AND_COUNTERS: [(&str, &str, &str, &str); 11] = [
    ("node_get_fsm_active", "gets_active", "gauge", "Gets under way."),
    ("node_put_fsm_active", "puts_active", "gauge", "Puts under way."),
    ("list_fsm_active", "listings_active", "gauge", "Listings under way."),
    ("index_fsm_active", "index_queries_active", "gauge", "Index queries under way."),
    ("index_fsm_create", "index_queries_total", "counter", "Index queries begun."),
    ("index_fsm_create_error", "index_query_errors_total", "counter", "Index queries that could not begin."),
    ("index_fsm_complete", "index_queries_complete_total", "counter", "Index queries answered in full."),
    ("pbc_active", "protobuf_connections_active", "gauge", "Protocol Buffers connections open."),
    ("precommit_fail", "precommit_failures_total", "counter", "Writes refused by pre-commit hooks."),
    ("postcommit_fail", "postcommit_failures_total", "counter", "Post-commit hooks that could not be run."),
    ("write_once_merge", "write_once_merges_total", "counter", "write_once keys written more than once."),
];

/// The body of `GET /metrics`. `stores` is the status of the store of each partition.
pub fn prometheus_text(stats: &Stats, facts: &NodeFacts, stores: &[(u32, Status)]) -> String {
    let mut out = Exposition::with_capacity(16 * 1024);
    out.family("build_info", "gauge", "Always 1; the labels say what runs.");
    out.sample("build_info", &[("version", env!("CARGO_PKG_VERSION")), ("node", &facts.node_name())], 1);
    for (name, spiral) in stats.spirals() {
        if let Some((_, ours, help)) = COUNTERS.iter().find(|(riak, ..)| *riak == name) {
            out.single(ours, "counter", help, spiral.total());
        }
    }
    for (name, value) in stats.gauges_and_counters() {
        if let Some((_, ours, kind, help)) = GAUGES_AND_COUNTERS.iter().find(|(riak, ..)| *riak == name) {
            out.single(ours, kind, help, value);
        }
    }
    for (name, histogram) in stats.histograms() {
        if let Some((_, ours, unit, help)) = SUMMARIES.iter().find(|(riak, ..)| *riak == name) {
            out.family(ours, "summary", help);
            summary(&mut out, ours, *unit, None, histogram);
        }
    }
    out.family("read_repairs_by_kind_total", "counter", "Copies repaired after reads, by what was wrong.");
    for (kind, spiral) in stats.read_repair_kinds() {
        out.sample("read_repairs_by_kind_total", &[("kind", kind)], spiral.total());
    }
    features(&mut out, stats);
    cluster::write(&mut out, &facts.cluster);
    self::stores(&mut out, stores);
    system(&mut out, facts);
    out.into_text()
}

/// The numbers of features. Those with the same name form one family, which is written at the place
/// of the first of them.
fn features(out: &mut Exposition, stats: &Stats) {
    let mut families: Vec<(&'static str, Exposition)> = Vec::new();
    stats.each_figure(|figure| {
        let known = families.iter_mut().find(|(name, _)| *name == figure.metric);
        if let Some((_, family)) = known {
            return samples(family, &figure);
        }
        let mut family = Exposition::default();
        let kind = match figure.number {
            Number::Spiral(_) | Number::OneAndCount(_) | Number::Total(_) => "counter",
            Number::Times(_) | Number::Latencies(_) | Number::MeanAndMost(_) | Number::Bytes(_) | Number::Counts(_) => {
                "summary"
            }
            Number::Gauge(_) | Number::Time(_) => "gauge",
        };
        family.family(figure.metric, kind, figure.help);
        samples(&mut family, &figure);
        families.push((figure.metric, family));
    });
    families.into_iter().for_each(|(_, family)| out.append(family));
}

fn samples(out: &mut Exposition, figure: &Figure<'_>) {
    let (name, label) = (figure.metric, figure.label);
    match figure.number {
        Number::Spiral(spiral) | Number::OneAndCount(spiral) => out.sample(name, label.as_slice(), spiral.total()),
        Number::Times(times) | Number::Latencies(times) | Number::MeanAndMost(times) => {
            summary(out, name, Unit::Seconds, label, times)
        }
        Number::Bytes(sizes) => summary(out, name, Unit::Bytes, label, sizes),
        Number::Counts(counts) => summary(out, name, Unit::Count, label, counts),
        Number::Time(us) => out.sample(name, label.as_slice(), us as f64 / 1e6),
        Number::Total(value) | Number::Gauge(value) => out.sample(name, label.as_slice(), value),
    }
}

fn summary(out: &mut Exposition, name: &str, unit: Unit, label: Option<(&str, &str)>, histogram: &Histogram) {
    let scale = |value: u64| if unit == Unit::Seconds { value as f64 / 1e6 } else { value as f64 };
    let s = histogram.last_minute();
    for (quantile, value) in [("0.5", s.median), ("0.95", s.p95), ("0.99", s.p99), ("1", s.max)] {
        // Without a value in the last minute there is no quantile. A 0 would distort every
        // dashboard.
        let value = if s.count == 0 { "NaN".to_owned() } else { scale(value).to_string() };
        let labels: Vec<_> = label.into_iter().chain([("quantile", quantile)]).collect();
        out.sample(name, &labels, value);
    }
    out.sample(&format!("{name}_sum"), label.as_slice(), scale(histogram.sum()));
    out.sample(&format!("{name}_count"), label.as_slice(), histogram.count());
}

/// The statistics of all partitions' stores, summed by backend; with several backends, by their
/// names.
fn stores(out: &mut Exposition, stores: &[(u32, Status)]) {
    type Number = fn(&Status) -> u64;
    const NUMBERS: [(&str, &str, &str, Number); 19] = [
        ("store_keys", "gauge", "Keys with a value or a tombstone.", |s| s.keys),
        ("store_live_bytes", "gauge", "Bytes of current versions.", |s| s.live_bytes),
        ("store_dead_bytes", "gauge", "Bytes of superseded versions still kept.", |s| s.dead_bytes),
        ("store_files", "gauge", "Data files.", |s| s.files),
        ("store_index_bytes", "gauge", "Memory of the key index, keys included.", |s| s.index_bytes),
        ("store_key_bytes", "gauge", "Memory of the keys alone.", |s| s.key_bytes),
        ("store_put_bytes_total", "counter", "Bytes of puts: keys, heads and values.", |s| s.put_bytes),
        ("store_written_bytes_total", "counter", "Bytes written, merging and compaction included.", |s| {
            s.bytes_written
        }),
        ("store_merges_total", "counter", "Merges finished.", |s| s.merges),
        ("store_merge_pending_bytes", "gauge", "Bytes of files that are to be merged.", |s| s.merge_pending_bytes),
        ("store_last_merge_timestamp_seconds", "gauge", "End of the last merge; 0: none since the start.", |s| {
            s.last_merge.map_or(0, |merge| merge.ended_at_secs)
        }),
        ("store_ledger_disk_bytes", "gauge", "Bytes of the ordered index on disk.", |s| {
            s.ledger.map_or(0, |ledger| ledger.disk_bytes)
        }),
        ("store_ledger_memory_bytes", "gauge", "Bytes of it that are in memory only.", |s| {
            s.ledger.map_or(0, |ledger| ledger.memory_bytes)
        }),
        ("store_ledger_first_level_tables", "gauge", "Runs of tables that wait to be compacted.", |s| {
            s.ledger.map_or(0, |ledger| ledger.first_level_tables)
        }),
        ("store_ledger_pending_bytes", "gauge", "Bytes of those tables.", |s| {
            s.ledger.map_or(0, |ledger| ledger.pending_bytes)
        }),
        (
            "store_read_errors_total",
            "counter",
            "Reads of versions that are damaged or that the disk does not give back.",
            |s| s.read_errors,
        ),
        ("store_lost_ranges", "gauge", "Places of which it is known that something is missing.", |s| s.lost_ranges),
        ("store_poisoned", "gauge", "Partitions that take no writes.", |s| u64::from(s.poisoned.is_some())),
        ("store_disk_full", "gauge", "Partitions that wait for room on their disk.", |s| u64::from(s.disk_full)),
    ];
    let mut by_backend: BTreeMap<(&str, &str), Vec<&Status>> = BTreeMap::new();
    for status in
        stores.iter().flat_map(
            |(_, status)| {
                if status.children.is_empty() { std::slice::from_ref(status) } else { &status.children }
            },
        )
    {
        by_backend.entry((status.backend, &status.name)).or_default().push(status);
    }
    for (name, kind, help, number) in NUMBERS {
        out.family(name, kind, help);
        // Timestamps are not summed: the latest one is reported.
        let is_a_time = name.ends_with("_timestamp_seconds");
        let together = if is_a_time { u64::max } else { u64::saturating_add };
        for (backend, statuses) in &by_backend {
            let sum = statuses.iter().map(|s| number(s)).fold(0, together);
            sample_of_store(out, name, *backend, sum);
        }
    }
    out.family("store_write_amplification", "gauge", "Bytes written for each byte put; NaN: nothing was put.");
    for (backend, statuses) in &by_backend {
        let sum = |number: Number| statuses.iter().map(|s| number(s) as f64).sum::<f64>();
        sample_of_store(out, "store_write_amplification", *backend, sum(|s| s.bytes_written) / sum(|s| s.put_bytes));
    }
}

/// `backend` is the backend's kind, and its name when the node has several backends.
fn sample_of_store(out: &mut Exposition, name: &str, backend: (&str, &str), value: impl Display) {
    let labels = [("backend", backend.0), ("name", backend.1)];
    out.sample(name, if backend.1.is_empty() { &labels[..1] } else { &labels }, value);
}

fn system(out: &mut Exposition, facts: &NodeFacts) {
    let s = &facts.system;
    out.single("ring_partitions", "gauge", "Partitions of the ring.", facts.ring.size().get());
    out.single("ring_members", "gauge", "Nodes that own partitions.", facts.ring.node_count());
    out.single("process_resident_memory_bytes", "gauge", "Memory of this process.", s.resident_bytes);
    out.single("process_threads", "gauge", "Threads of this process.", s.threads);
    out.single("process_open_fds", "gauge", "Files and sockets open.", s.open_files);
    out.family("disk_size_bytes", "gauge", "Size of the disks that the node writes to.");
    for disk in &s.disks {
        out.sample("disk_size_bytes", &[("mount", &disk.mount_point)], disk.size_kib.saturating_mul(1024));
    }
    out.family("disk_used_ratio", "gauge", "How full these disks are, 0 to 1.");
    for disk in &s.disks {
        out.sample("disk_used_ratio", &[("mount", &disk.mount_point)], disk.used_percent as f64 / 100.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric_rules::violations;
    use crate::system::SystemFacts;
    use ombak_ring::{Ring, RingSize, RingVersion};
    use ombak_stats::{ClusterFigures, Feature, KindCounts};
    use ombak_types::NodeId;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Instant;

    fn exposition(stats: &Stats, stores: &[(u32, Status)]) -> String {
        let node_id = NodeId::new(7);
        let facts = NodeFacts {
            node_id,
            node_names: BTreeMap::from([(node_id, "n\"@h".into())]),
            ring: Arc::new(Ring::of_one_node(node_id, RingSize::DEFAULT, RingVersion::first(1))),
            backend: "memory",
            cluster: ClusterFigures::default(),
            system: SystemFacts::default(),
        };
        prometheus_text(stats, &facts, stores)
    }

    #[test]
    fn every_number_that_is_counted_is_exported() {
        let stats = Stats::new(Instant::now());
        for (name, _) in stats.spirals() {
            assert!(COUNTERS.iter().any(|(riak, ..)| *riak == name), "{name}");
        }
        for (name, _) in stats.gauges_and_counters() {
            assert!(GAUGES_AND_COUNTERS.iter().any(|(riak, ..)| *riak == name), "{name}");
        }
        for (name, _) in stats.histograms() {
            assert!(SUMMARIES.iter().any(|(riak, ..)| *riak == name), "{name}");
        }
    }

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let stats = Stats::new(Instant::now());
        stats.node_get(1500, 1, 10);
        let store = |keys| Status { backend: "memory", keys, ..Status::default() };
        let child = |keys| Status { name: "a".into(), backend: "leveled", keys, ..Status::default() };
        let several = Status { backend: "multi", children: vec![child(4), child(5)], ..Status::default() };
        let text = exposition(&stats, &[(0, store(2)), (1, store(3)), (2, several)]);
        for line in [
            "# TYPE ombak_gets_total counter",
            "ombak_gets_total 1",
            "# TYPE ombak_get_duration_seconds summary",
            "ombak_get_duration_seconds{quantile=\"1\"} 0.0015",
            "ombak_get_duration_seconds_sum 0.0015",
            "ombak_get_duration_seconds_count 1",
            "ombak_put_duration_seconds{quantile=\"0.5\"} NaN",
            "ombak_store_keys{backend=\"memory\"} 5",
            "ombak_store_keys{backend=\"leveled\",name=\"a\"} 9",
            "ombak_ring_partitions 64",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(text.contains(r#"node="n\"@h""#));
    }

    #[derive(Debug, Default)]
    struct Two(KindCounts, KindCounts);

    impl Feature for Two {
        fn figures(&self) -> Vec<Figure<'_>> {
            [self.0.figures("one"), self.1.figures("other")].into_iter().flatten().collect()
        }
    }

    #[test]
    fn the_numbers_of_a_feature_are_families_with_labels() {
        let (stats, feature) = (Stats::new(Instant::now()), Arc::new(Two::default()));
        stats.attach(feature.clone());
        feature.0.get(1500, 1, 10);
        feature.1.put(100);
        let text = exposition(&stats, &[]);
        for line in [
            "# TYPE ombak_data_type_gets_total counter",
            "ombak_data_type_gets_total{type=\"one\"} 1",
            "ombak_data_type_gets_total{type=\"other\"} 0",
            "# TYPE ombak_data_type_get_duration_seconds summary",
            "ombak_data_type_get_duration_seconds{type=\"one\",quantile=\"1\"} 0.0015",
            "ombak_data_type_get_duration_seconds_count{type=\"one\"} 1",
            "ombak_data_type_put_duration_seconds_count{type=\"other\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert_eq!(violations(&text), Vec::<String>::new());
    }

    #[test]
    fn the_rules_of_prometheus_are_kept() {
        let stats = Stats::new(Instant::now());
        let child = |name: &str| Status { name: name.into(), backend: "leveled", keys: 1, ..Status::default() };
        let several = Status { backend: "multi", children: vec![child("a"), child("b")], ..Status::default() };
        let one = Status { backend: "bitcask", ..Status::default() };
        for stores in [vec![], vec![(0, one.clone()), (1, one)], vec![(0, several.clone()), (1, several)]] {
            assert_eq!(violations(&exposition(&stats, &stores)), Vec::<String>::new());
        }
    }
}
