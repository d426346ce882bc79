//! The metrics about the other nodes of the cluster.

use crate::exposition::Exposition;
use ombak_stats::{ClusterFigures, PeerFigures};

/// A metric of each peer: its name, its type, its help text and its value.
type OfPeer = (&'static str, &'static str, &'static str, fn(&PeerFigures) -> u64);

const OF_EACH_PEER: [OfPeer; 7] = [
    ("peer_slow", "gauge", "Whether the node is there and answers no requests.", |peer| u64::from(peer.is_slow)),
    ("peer_up", "gauge", "Whether requests are sent to the node.", |peer| u64::from(peer.is_up)),
    ("peer_connected", "gauge", "Whether a connection with the node is open.", |peer| u64::from(peer.is_connected)),
    ("peer_requests_total", "counter", "Requests to the node.", |peer| peer.requests),
    ("peer_requests_served_total", "counter", "Requests of the node that were served.", |peer| peer.served),
    ("peer_received_bytes_total", "counter", "Bytes that came from the node.", |peer| peer.bytes_received),
    ("peer_sent_bytes_total", "counter", "Bytes that were sent to the node.", |peer| peer.bytes_sent),
];

/// Writes the metrics of a cluster. A node that is alone has none about peers.
pub(crate) fn write(out: &mut Exposition, figures: &ClusterFigures) {
    let replicas = &figures.replicas;
    let by_kind = |out: &mut Exposition, name, help, label, values: &[(&str, u64)]| {
        out.family(name, "counter", help);
        values.iter().for_each(|(text, value)| out.sample(name, &[(label, text)], value));
    };
    let sent = [
        ("read", replicas.reads_sent),
        ("store", replicas.stores_sent),
        ("put", replicas.puts_forwarded),
        ("listing", replicas.listings_sent),
    ];
    by_kind(out, "replica_requests_sent_total", "Questions to replicas of other nodes.", "kind", &sent);
    let served = [
        ("read", replicas.reads_served),
        ("store", replicas.stores_served),
        ("put", replicas.puts_coordinated),
        ("listing", replicas.listings_served),
    ];
    by_kind(out, "replica_requests_served_total", "Questions of other nodes that were executed.", "kind", &served);
    let refused = [
        ("overload", replicas.refused_overload),
        ("expired", replicas.refused_expired),
        ("lineage", replicas.refused_lineage),
        ("malformed", replicas.refused_malformed),
    ];
    by_kind(out, "replica_requests_refused_total", "Questions of other nodes that were refused.", "reason", &refused);
    work(out, figures);
    if figures.peers.is_empty() {
        return;
    }
    for (name, kind, help, value) in OF_EACH_PEER {
        out.family(name, kind, help);
        figures.peers.iter().for_each(|peer| out.sample(name, &[("peer", &peer.name)], value(peer)));
    }
    out.family("peer_request_failures_total", "counter", "Requests to the node that failed on the way.");
    for peer in &figures.peers {
        for (reason, count) in &peer.failures {
            out.sample("peer_request_failures_total", &[("peer", &peer.name), ("reason", reason)], count);
        }
    }
}

/// The metrics of the work that nodes do for each other beside requests.
fn work(out: &mut Exposition, figures: &ClusterFigures) {
    let (transfers, reaping, coverage) = (&figures.transfers, &figures.reaping, &figures.coverage);
    let singles = [
        ("hints_objects", "gauge", "Copies that this node holds for others, about.", transfers.hinted_objects),
        ("hints_bytes", "gauge", "Bytes of these copies.", transfers.hinted_bytes),
        ("hints_partitions", "gauge", "Partitions that may hold such copies.", transfers.hinted_partitions),
        ("owed_marks", "gauge", "Classes and peers that missed writes.", transfers.owed_marks),
        ("filling_classes", "gauge", "Classes that may lack something.", transfers.filling_classes),
        (
            "handoff_received_objects_total",
            "counter",
            "Copies that other nodes handed over.",
            transfers.objects_received,
        ),
        ("handoff_received_bytes_total", "counter", "Bytes of these copies.", transfers.bytes_received),
        ("handoff_rejected_total", "counter", "Handoffs to this node refused while disabled.", transfers.rejected),
        ("handoff_timeouts_total", "counter", "Questions of handoffs not answered in time.", transfers.timeouts),
        ("reaping_waiting", "gauge", "Tombstones and expired values that wait.", reaping.waiting),
        ("reaped_versions_total", "counter", "Tombstones and expired values removed.", reaping.removed),
        ("reaping_rounds_total", "counter", "Rounds of reaping driven by this node.", reaping.rounds),
        ("reaping_rounds_failed_total", "counter", "Rounds that left something.", reaping.rounds_failed),
        ("coverage_parts_total", "counter", "Parts of listings asked of replicas.", coverage.parts_asked),
        ("coverage_parts_repeated_total", "counter", "Parts asked of another replica.", coverage.parts_repeated),
    ];
    for (name, kind, help, value) in singles {
        out.single(name, kind, help, value);
    }
    for (name, kind, help, [hinted, repair, exchange]) in [
        (
            "handoff_active",
            "gauge",
            "Handoffs under way.",
            [transfers.hinted_active, transfers.repair_active, transfers.exchange_active],
        ),
        (
            "handoff_sent_objects_total",
            "counter",
            "Copies handed to other nodes.",
            [transfers.hinted_objects_sent, transfers.repair_objects_sent, transfers.exchange_objects_sent],
        ),
        (
            "handoff_sent_bytes_total",
            "counter",
            "Bytes of these copies.",
            [transfers.hinted_bytes_sent, transfers.repair_bytes_sent, transfers.exchange_bytes_sent],
        ),
    ] {
        out.family(name, kind, help);
        out.sample(name, &[("kind", "hinted")], hinted);
        out.sample(name, &[("kind", "repair")], repair);
        out.sample(name, &[("kind", "exchange")], exchange);
    }
    if !figures.peers.is_empty() {
        out.family("peer_state", "gauge", "What failure detection says of the node: 1 for its state.");
    }
    for peer in &figures.peers {
        for state in ["up", "suspect", "down", "left"] {
            out.sample("peer_state", &[("peer", &peer.name), ("state", state)], u64::from(peer.state == state));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric_rules::violations;
    use ombak_stats::{ReplicaCounts, TransferFigures};

    #[test]
    fn figures_become_metrics_by_the_rules() {
        let peer = |name: &str, is_up| PeerFigures {
            name: name.into(),
            state: if is_up { "up" } else { "down" },
            is_up,
            is_connected: true,
            requests: 7,
            failures: vec![("timeout", 2), ("closed", 0)],
            ..PeerFigures::default()
        };
        let replicas = ReplicaCounts { puts_forwarded: 5, refused_expired: 3, ..ReplicaCounts::default() };
        let peers = vec![peer("a@h", true), peer("b@h", false)];
        let transfers = TransferFigures { hinted_objects_sent: 6, owed_marks: 2, ..TransferFigures::default() };
        let figures = ClusterFigures { replicas, peers, transfers, ..ClusterFigures::default() };
        let mut out = Exposition::default();
        write(&mut out, &figures);
        let text = out.into_text();
        assert_eq!(violations(&text), Vec::<String>::new());
        let lines = [
            "ombak_replica_requests_sent_total{kind=\"put\"} 5",
            "ombak_replica_requests_refused_total{reason=\"expired\"} 3",
            "ombak_handoff_sent_objects_total{kind=\"hinted\"} 6",
            "ombak_owed_marks 2",
            "ombak_peer_state{peer=\"a@h\",state=\"up\"} 1",
            "ombak_peer_state{peer=\"b@h\",state=\"up\"} 0",
            "ombak_peer_state{peer=\"b@h\",state=\"down\"} 1",
            "ombak_peer_up{peer=\"a@h\"} 1",
            "ombak_peer_up{peer=\"b@h\"} 0",
            "ombak_peer_requests_total{peer=\"b@h\"} 7",
            "ombak_peer_request_failures_total{peer=\"a@h\",reason=\"timeout\"} 2",
        ];
        for line in lines {
            assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
        }
        // A node that is alone.
        let mut out = Exposition::default();
        write(&mut out, &ClusterFigures::default());
        assert_eq!(violations(&out.into_text()), Vec::<String>::new());
    }
}
