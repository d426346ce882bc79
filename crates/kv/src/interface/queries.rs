//! Listings and index queries of the engine.

use super::kv::Kv;
use crate::engine::check_bucket;
use crate::listing::{ListWalk, Listing};
use crate::query::{IndexQuery, QueryResults, QueryWalk};
use bytes::Bytes;
use ombak_types::{Bucket, Error};
use std::time::Duration;

impl Kv {
    /// Lists the keys of a bucket, in no particular order, without deleted keys. `timeout` limits
    /// the whole listing; `None` means no limit.
    pub fn list_keys(&self, bucket: &Bucket, timeout: Option<Duration>) -> Result<Listing, Error> {
        check_bucket(bucket)?;
        self.engine.buckets.props(bucket)?;
        self.list(
            ListWalk::over_keys(self.engine.partitions().all_open().collect(), bucket, self.engine.now()),
            timeout,
        )
    }

    /// Lists the buckets of a type that hold at least one key, in no particular order.
    pub fn list_buckets(&self, bucket_type: &Bytes, timeout: Option<Duration>) -> Result<Listing, Error> {
        if bucket_type.is_empty() {
            return Err(Error::ZeroLength("Type"));
        }
        self.engine.buckets.type_map(bucket_type)?;
        self.list(
            ListWalk::over_buckets(self.engine.partitions().all_open().collect(), bucket_type, self.engine.now()),
            timeout,
        )
    }

    /// Returns index entries or keys of a bucket, in order. `timeout` limits the whole query:
    /// `None` means the configured time, zero means no limit.
    pub fn query(&self, mut query: IndexQuery, timeout: Option<Duration>) -> Result<QueryResults, Error> {
        let config = &self.engine.config.queries;
        self.check_query(&query.bucket).inspect_err(|_| self.engine.stats.query_failed())?;
        query.shows_tombstones &= config.shows_tombstones;
        let limit = timeout.unwrap_or(config.timeout);
        let walk = QueryWalk::new(self.engine.partitions().all_open(), query, self.engine.now());
        Ok(QueryResults::new(self.engine.clone(), walk, (!limit.is_zero()).then_some(limit)))
    }

    fn check_query(&self, bucket: &Bucket) -> Result<(), Error> {
        check_bucket(bucket)?;
        self.engine.buckets.props(bucket)?;
        if self.engine.is_open() { Ok(()) } else { Err(Error::Stopping) }
    }

    fn list(&self, walk: ListWalk, timeout: Option<Duration>) -> Result<Listing, Error> {
        if !self.engine.is_open() {
            self.engine.stats.list_failed();
            return Err(Error::Stopping);
        }
        Ok(Listing::new(self.engine.clone(), walk, timeout))
    }
}
