//! Jobs for the tests of both interfaces, and who runs them. There are the objects `b/k` and
//! `secret/k`. The user may run jobs over the bucket `b` alone.

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

/// Jobs whose inputs name no bucket.
pub(crate) const NAME_NO_BUCKET: [&str; 2] = [
    r#"{"inputs":{"module":"m","function":"f","arg":1},"query":[]}"#,
    r#"{"inputs":{"bucket":"b","query":"x"},"query":[]}"#,
];

/// What their user is told.
pub(crate) const DENIED_ON_ANY: &str = "Permission denied: User 'alice' does not have 'riak_kv.mapreduce' on any";
