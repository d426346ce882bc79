//! Finds the counts of requests for values of a kind. Requests for plain values have none.

use super::engine::Engine;
use ombak_stats::KindCounts;
use ombak_types::{Bucket, BucketProps};
use std::sync::Arc;

impl Engine {
    /// The counts of a read that wants values as they are stored.
    #[cold]
    pub(crate) fn counts_of_read(&self, bucket: &Bucket) -> Option<Arc<KindCounts>> {
        let buckets = self.buckets.snapshot();
        self.counts_of_kind(buckets.props(bucket).ok()?)
    }

    /// The same for a bucket with these properties.
    pub(super) fn counts_of_kind(&self, props: &BucketProps) -> Option<Arc<KindCounts>> {
        self.config.hooks.kinds.iter().find_map(|kind| kind.counts(props))
    }

    /// The counts of a put that is an operation on values of the kind with a number.
    #[cold]
    pub(crate) fn counts_of_operation(&self, bucket: &Bucket, number: u16) -> Option<Arc<KindCounts>> {
        let buckets = self.buckets.snapshot();
        self.config.hooks.numbered(number)?.counts(buckets.props(bucket).ok()?)
    }
}
