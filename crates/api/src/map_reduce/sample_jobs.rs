//! Jobs for the tests of both interfaces, and who runs them. There are the objects `b/k` and
//! `secret/k`. The user may run jobs over the bucket `b` alone.

use bytes::Bytes;
use ombak_jobs::{Failure, FoundInputs, InputSearch, InputSearches, Jobs, JobsConfig, NoPartNodes};
use ombak_kv::Kv;
use ombak_runtime::BoxFuture;
use ombak_types::Bucket;
use std::future::ready;
use std::sync::Arc;

/// The commands that make the user.
pub(crate) const ALICE: &[&str] = &[
    "add-user alice password=secret",
    "add-source alice 127.0.0.1/32 password",
    "grant riak_kv.mapreduce on default b to alice",
];

/// A job that its user may run.
pub(crate) const ALLOWED: &str = r#"{"inputs":[["b","k"]],"query":[
    {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value"}}]}"#;

/// Jobs whose first phase makes a key of another bucket, for a phase that reads its object.
pub(crate) const LEAD_AWAY: [&str; 2] = [
    r#"{"inputs":[["b","missing",["secret","k"]]],"query":[
        {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value","arg":"include_keydata"}},
        {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value"}}]}"#,
    r#"{"inputs":[["b","missing",["secret","k"]]],"query":[
        {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value","arg":"include_keydata"}},
        {"reduce":{"language":"erlang","module":"riak_kv_mapreduce","function":"reduce_identity"}},
        {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value"}}]}"#,
];

/// A job that gives results before one of its phases makes a key of another bucket.
pub(crate) const LEADS_AWAY_LATER: &str = r#"{"inputs":[["b","missing",["b","missing",["secret","k"]]]],"query":[
    {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value","arg":"include_keydata","keep":true}},
    {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value","arg":"include_keydata"}},
    {"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value"}}]}"#;

/// What the user of all these jobs is told.
pub(crate) const DENIED: &str = "Permission denied: User 'alice' does not have 'riak_kv.mapreduce' on default/secret";

/// A job whose function is the value of an object of another bucket.
pub(crate) const FUNCTION_ELSEWHERE: &str = r#"{"inputs":[["b","k"]],"query":[
    {"map":{"language":"javascript","bucket":"secret","key":"k"}}]}"#;

/// A job that follows links.
pub(crate) const FOLLOWS_LINKS: &str = r#"{"inputs":[["b","k"]],"query":[{"link":{"bucket":"_","tag":"_"}}]}"#;

/// A job whose inputs name no bucket.
pub(crate) const NAMES_NO_BUCKET: &str = r#"{"inputs":{"module":"m","function":"f","arg":1},"query":[]}"#;

/// What its user is told.
pub(crate) const DENIED_ON_ANY: &str = "Permission denied: User 'alice' does not have 'riak_kv.mapreduce' on any";

/// A job that reads what a search finds.
pub(crate) const READS_FOUND: &str = r#"{"inputs":{"module":"yokozuna","function":"mapred_search","arg":["people","x"]},
    "query":[{"map":{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value"}}]}"#;

/// A job that gives what a search finds.
pub(crate) const GIVES_FOUND: &str = r#"{"inputs":{"index":"people","query":"x"},"query":[]}"#;

/// What a user without permission for the search is told.
pub(crate) const SEARCH_DENIED: &str = "Permission denied: User 'alice' does not have 'search.query' on index/people";

/// Searches that find a key, or fail.
struct FixedSearch(Result<(Bucket, Bytes), Failure>);

impl InputSearches for FixedSearch {
    fn find(&self, _: &InputSearch, _: Option<&str>) -> BoxFuture<'static, Result<FoundInputs, Failure>> {
        let found = self.0.clone().map(|key| FoundInputs { keys: vec![key], next: None });
        Box::pin(ready(found))
    }
}

/// Jobs whose searches find the key `k` of this bucket, or fail.
pub(crate) fn jobs_with_search(kv: &Kv, finds: Result<&'static str, Failure>) -> Jobs {
    let found = finds.map(|bucket| (Bucket::untyped(bucket), Bytes::from_static(b"k")));
    let searches: Option<Arc<dyn InputSearches>> = Some(Arc::new(FixedSearch(found)));
    Jobs::new(kv.clone(), JobsConfig { searches, ..JobsConfig::default() }, Arc::new(NoPartNodes))
}
