//! What all nodes of a cluster have sent and stored since their start.

use crate::cluster::Cluster;
use std::time::Duration;

/// What all nodes together have sent and stored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Questions to replicas and coordinators for requests of clients. Each has one answer.
    pub questions: f64,
    /// All questions between nodes, those above included. Each has one answer.
    pub calls: f64,
    /// All bytes that were sent: questions, answers, and what failure detection sends.
    pub bytes: f64,
    /// Versions that were appended to stores.
    pub appends: f64,
}

impl Traffic {
    /// What the nodes have sent and stored so far.
    pub(super) fn of(cluster: &Cluster) -> Self {
        let (mut questions, mut calls, mut bytes, mut appends) = (0, 0, 0, 0);
        for member in cluster.nodes.iter().filter_map(|node| node.member.as_ref()) {
            let counts = member.node().replica_counts();
            questions += counts.reads_sent + counts.stores_sent + counts.puts_forwarded;
            for peer in member.node().repair().cluster_figures().peers {
                calls += peer.requests;
                bytes += peer.bytes_sent;
            }
            appends += member.kv().stores().map(|(_, store)| store.last_seq()).sum::<u64>();
        }
        Self { questions: questions as f64, calls: calls as f64, bytes: bytes as f64, appends: appends as f64 }
    }

    /// What came after `before`.
    pub(super) fn since(self, before: Self) -> Self {
        self.and(before.times(-1.0))
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            questions: self.questions + other.questions,
            calls: self.calls + other.calls,
            bytes: self.bytes + other.bytes,
            appends: self.appends + other.appends,
        }
    }

    pub(super) fn times(self, factor: f64) -> Self {
        let Self { questions, calls, bytes, appends } = self;
        Self { questions: questions * factor, calls: calls * factor, bytes: bytes * factor, appends: appends * factor }
    }

    pub(super) fn per(self, time: Duration) -> Self {
        self.times(1.0 / time.as_secs_f64())
    }
}
