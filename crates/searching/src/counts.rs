//! What a node counts of search.

use crate::following::Builds;
use ombak_stats::{Feature, Figure, Histogram, Number, Spiral};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The counters of search, under Riak's names where Riak has one.
#[derive(Debug, Default)]
pub(crate) struct SearchCounts {
    pub(crate) indexed: Spiral,
    index_latency: Histogram,
    index_fail: Spiral,
    extract_fail: Spiral,
    bad_entry: Spiral,
    queries: Spiral,
    query_latency: Histogram,
    query_fail: Spiral,
}

impl SearchCounts {
    /// Changes of objects were written to an index in one commit.
    pub(crate) fn written(&self, changes: u64, refused_documents: u64, took: Duration) {
        self.indexed.add(changes);
        self.bad_entry.add(refused_documents);
        if changes > 0 {
            self.index_latency.record(micros(took));
        }
    }

    /// Changes could not be written. They are told again later.
    pub(crate) fn not_written(&self, changes: u64) {
        self.index_fail.add(changes);
    }

    /// Values could not be read.
    pub(crate) fn not_read(&self, values: u64) {
        self.extract_fail.add(values);
    }

    /// A client's query has ended.
    pub(crate) fn query_ended(&self, is_answered: bool, took: Duration) {
        if is_answered {
            self.queries.add(1);
            self.query_latency.record(micros(took));
        } else {
            self.query_fail.add(1);
        }
    }
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

/// The figures of search at `/stats` and `/metrics`.
pub(crate) struct SearchFigures {
    pub(crate) counts: Arc<SearchCounts>,
    pub(crate) builds: Arc<Builds>,
    /// The present moment.
    pub(crate) now: Box<dyn Fn() -> Instant + Send + Sync>,
}

impl fmt::Debug for SearchFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchFigures").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Feature for SearchFigures {
    fn figures(&self) -> Vec<Figure<'_>> {
        let counts = &*self.counts;
        let standing = self.builds.standing((self.now)());
        let figure =
            |name: &str, metric, help, number| Figure { name: name.to_owned(), metric, label: None, help, number };
        vec![
            figure(
                "search_index_throughput",
                "search_changes_indexed_total",
                "Changes of objects that were written to search indexes.",
                Number::OneAndCount(&counts.indexed),
            ),
            figure(
                "search_index_latency",
                "search_commit_duration_seconds",
                "Time to write changes to a search index in one commit.",
                Number::Latencies(&counts.index_latency),
            ),
            figure(
                "search_index_fail",
                "search_changes_failed_total",
                "Changes that could not be written to a search index and are told again.",
                Number::OneAndCount(&counts.index_fail),
            ),
            figure(
                "search_index_extract_fail",
                "search_values_unreadable_total",
                "Values that could not be read for a search index.",
                Number::OneAndCount(&counts.extract_fail),
            ),
            figure(
                "search_index_bad_entry",
                "search_documents_refused_total",
                "Documents that a search index cannot have.",
                Number::OneAndCount(&counts.bad_entry),
            ),
            figure(
                "search_query_throughput",
                "search_queries_total",
                "Queries of clients answered.",
                Number::OneAndCount(&counts.queries),
            ),
            figure(
                "search_query_latency",
                "search_query_duration_seconds",
                "Time to answer a query of a client.",
                Number::Latencies(&counts.query_latency),
            ),
            figure(
                "search_query_fail",
                "search_query_errors_total",
                "Queries of clients that failed or were refused.",
                Number::OneAndCount(&counts.query_fail),
            ),
            figure(
                "search_index_lag",
                "search_index_lag_seconds",
                "How far the index that is furthest behind is behind its store.",
                Number::Time(micros(standing.lag_max)),
            ),
            figure(
                "search_partitions_being_read",
                "search_partitions_being_read",
                "Partitions that are being read for an index, counted for each index.",
                Number::Gauge(standing.being_read),
            ),
        ]
    }
}
