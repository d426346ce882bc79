//! Listings and index queries of the engine.

use crate::coverage::{EntriesRun, Planner, list_buckets, list_keys};
use crate::engine::{Kv, check_bucket};
use crate::listing::{ListWalk, Listing, Walk};
use crate::partition::Partition;
use crate::query::{Matches, QueryResults, QueryWalk, SharedWalk};
use crate::requests::IndexQuery;
use crate::slow::{Course, RequestKind};
use bytes::Bytes;
use ombak_types::{Bucket, Error};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Kv {
    /// Lists the keys of a bucket, in no particular order, without deleted keys. `timeout` limits
    /// the whole listing; `None` means no limit.
    pub fn list_keys(&self, bucket: &Bucket, timeout: Option<Duration>) -> Result<Listing, Error> {
        check_bucket(bucket)?;
        let n = self.engine.buckets.props(bucket)?.n_val;
        let course = Course::begin(RequestKind::ListKeys, bucket.clone(), Bytes::new(), self.now());
        self.list(timeout, course, || {
            let Some(planner) = self.planner(timeout)? else {
                return Ok(Walk::Local(ListWalk::over_keys(self.all_partitions(), bucket, self.engine.now())));
            };
            Ok(Walk::Cluster(Box::new(list_keys(planner, bucket.clone(), n)?)))
        })
    }

    /// Lists the buckets of a type that hold at least one key, in no particular order. In a
    /// cluster, what no replica can answer for is left out, as in Riak.
    pub fn list_buckets(&self, bucket_type: &Bytes, timeout: Option<Duration>) -> Result<Listing, Error> {
        if bucket_type.is_empty() {
            return Err(Error::ZeroLength("Type"));
        }
        self.engine.buckets.type_map(bucket_type)?;
        let of_type = Bucket { bucket_type: bucket_type.clone(), name: Bytes::new() };
        let course = Course::begin(RequestKind::ListBuckets, of_type, Bytes::new(), self.now());
        self.list(timeout, course, || {
            let Some(planner) = self.planner(timeout)? else {
                let partitions = self.all_partitions();
                return Ok(Walk::Local(ListWalk::over_buckets(partitions, bucket_type, self.engine.now())));
            };
            let classes = self.engine.buckets.snapshot().n_vals(bucket_type);
            Ok(Walk::Cluster(Box::new(list_buckets(planner, bucket_type.clone(), &classes)?)))
        })
    }

    /// Returns index entries or keys of a bucket, in order. `timeout` limits the whole query:
    /// `None` means the configured time, zero means no limit.
    pub fn query(&self, mut query: IndexQuery, timeout: Option<Duration>) -> Result<QueryResults, Error> {
        let config = &self.engine.config.queries;
        let limit = Some(timeout.unwrap_or(config.timeout)).filter(|limit| !limit.is_zero());
        query.shows_tombstones &= config.shows_tombstones;
        let matches = self.matches(query, limit).inspect_err(|_| self.engine.stats.query_failed())?;
        Ok(QueryResults::new(self.engine.clone(), matches, limit))
    }

    fn matches(&self, query: IndexQuery, limit: Option<Duration>) -> Result<Matches, Error> {
        check_bucket(&query.bucket)?;
        let n = self.engine.buckets.props(&query.bucket)?.n_val;
        self.engine.check_open()?;
        let Some(planner) = self.planner(limit)? else {
            let partitions = self.engine.partitions();
            let walk = QueryWalk::new(partitions.all_open(), query, self.engine.now());
            return Ok(Matches::Local(SharedWalk::new(walk, partitions.snapshot_holders().clone())));
        };
        Ok(Matches::Cluster(Box::new(EntriesRun::new(planner, query, n)?)))
    }

    /// All partitions. Each listing begins with another one: a listing holds a snapshot of one
    /// store at a time, and a store has a bounded number of them. Listings whose clients do not
    /// read would otherwise all hold snapshots of the first store.
    fn all_partitions(&self) -> Vec<Arc<Partition>> {
        let mut partitions: Vec<_> = self.engine.partitions().all_open().collect();
        let turn = self.engine.listing_tenant(0).member % (partitions.len().max(1) as u64);
        partitions.rotate_left(turn as usize);
        partitions
    }

    fn list(
        &self,
        timeout: Option<Duration>,
        course: Course,
        walk: impl FnOnce() -> Result<Walk, Error>,
    ) -> Result<Listing, Error> {
        let walk = self.engine.check_open().and_then(|()| walk());
        let walk = walk.inspect_err(|_| self.engine.stats.list_failed())?;
        Ok(Listing::new(self.engine.clone(), walk, timeout, course))
    }

    /// A plan over the nodes of the cluster; `None` if this node is alone.
    fn planner(&self, limit: Option<Duration>) -> Result<Option<Planner>, Error> {
        if self.engine.is_alone_in(&self.engine.placement()) {
            return Ok(None);
        }
        let now: Instant = self.engine.config.runtime.now();
        let deadline = limit.and_then(|limit| now.checked_add(limit));
        Planner::new(self.engine.clone(), deadline).map(Some)
    }
}
