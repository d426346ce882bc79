//! What a node is busy with, for an operator who looks at it now.

use crate::engine::Kv;
use crate::hot::HotReport;
use crate::slow::RequestKind;
use ombak_stats::Summary;

/// Requests since the start of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads that were answered.
    pub gets: u64,
    /// Reads that failed.
    pub get_errors: u64,
    /// Writes that were answered. Deletes are not among them.
    pub puts: u64,
    /// Writes and deletes that were admitted and failed.
    pub put_errors: u64,
    /// Requests that were not admitted: too many were active, or the node stops or takes no part in
    /// its cluster.
    pub refused: u64,
    /// Listings and index queries that began.
    pub listings: u64,
    /// Requests that were slow.
    pub slow: u64,
}

/// What a node is busy with.
#[derive(Clone, Debug)]
pub struct TopOfNode {
    /// The requests since the start.
    pub counts: RequestCounts,
    /// Reads, writes, listings and index queries under way.
    pub active: [u64; 4],
    /// The times of reads in the last minute, in microseconds.
    pub get_us: Summary,
    /// The times of writes in the last minute, in microseconds.
    pub put_us: Summary,
    /// The hottest keys and buckets, and the largest objects.
    pub hot: HotReport,
}

impl Kv {
    /// What this node is busy with: at most `count_max` keys, buckets and objects. Takes each lock
    /// of the counts for a moment.
    pub fn top(&self, count_max: usize) -> TopOfNode {
        let stats = &self.engine.stats;
        let (spirals, gauges, histograms) = (stats.spirals(), stats.gauges_and_counters(), stats.histograms());
        let total = |name: &str| spirals.iter().find(|(is, _)| *is == name).map_or(0, |(_, spiral)| spiral.total());
        let gauge = |name: &str| gauges.iter().find(|(is, _)| *is == name).map_or(0, |(_, value)| *value);
        let times = |name: &str| {
            histograms.iter().find(|(is, _)| *is == name).map_or_else(Summary::default, |(_, h)| h.last_minute())
        };
        let slow = RequestKind::ALL.into_iter().map(|kind| self.engine.slow.count(kind)).sum();
        TopOfNode {
            counts: RequestCounts {
                gets: total("node_gets"),
                get_errors: total("node_get_fsm_errors"),
                puts: total("node_puts"),
                put_errors: self.engine.hot.write_errors(),
                refused: total("node_get_fsm_rejected") + total("node_put_fsm_rejected"),
                listings: total("list_fsm_create") + gauge("index_fsm_create"),
                slow,
            },
            active: ["node_get_fsm_active", "node_put_fsm_active", "list_fsm_active", "index_fsm_active"].map(gauge),
            get_us: times("node_get_fsm_time"),
            put_us: times("node_put_fsm_time"),
            hot: self.engine.hot.report(count_max, self.now()),
        }
    }
}
