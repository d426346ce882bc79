//! Phases in JavaScript, on a node that is alone.

ombak_functions::function_worker_of_tests!();

use bytes::Bytes;
use ombak_functions::{Catalogue, FunctionPool, Lane, NothingRegistered, PoolConfig};
use ombak_jobs::{JobFunctions, Jobs, JobsConfig, NoPartNodes};
use ombak_kv::{Kv, KvConfig, PutOptions, PutRequest, head_terms};
use ombak_mapreduce::{Failure, Job, to_json};
use ombak_runtime::TokioRuntime;
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::{Bucket, Object, Sibling};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Node {
    kv: Kv,
    jobs: Jobs,
    pool: FunctionPool,
    _dir: TempDir,
}

impl Node {
    fn open(allows_anonymous: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let mut kv_config = KvConfig::new("riak@127.0.0.1", dir.path(), backend);
        (kv_config.ring_size, kv_config.runtime) = (8, Arc::new(TokioRuntime));
        let kv = Kv::open(kv_config).unwrap();
        let pool = FunctionPool::new(Arc::new(TokioRuntime), PoolConfig::default(), program());
        let catalogue = Catalogue::new(Arc::new(NothingRegistered), Vec::new(), allows_anonymous);
        let functions = Some(JobFunctions { pool: pool.clone(), catalogue });
        let jobs = Jobs::new(kv.clone(), JobsConfig { functions, ..JobsConfig::default() }, Arc::new(NoPartNodes));
        Self { kv, jobs, pool, _dir: dir }
    }

    async fn put(&self, key: &str, value: &str) {
        self.put_bytes(key, value.as_bytes()).await;
    }

    async fn put_bytes(&self, key: &str, value: &[u8]) {
        let object = Object::new(Sibling::new(Bytes::copy_from_slice(value)));
        let key = Some(Bytes::copy_from_slice(key.as_bytes()));
        let request = PutRequest { bucket: Bucket::untyped("b"), key, object, options: PutOptions::default() };
        self.kv.put(request).await.unwrap();
    }

    /// The results of a job, as texts in order.
    async fn run(&self, inputs: Value, query: Value) -> Result<Vec<String>, Failure> {
        self.run_job(json!({ "inputs": inputs, "query": query })).await
    }

    async fn run_job(&self, job: Value) -> Result<Vec<String>, Failure> {
        let job = job.to_string();
        let mut running = self.jobs.run(Job::from_json(job.as_bytes()).unwrap(), None);
        let mut results = Vec::new();
        while let Some(output) = running.next().await {
            results.extend(output?.values.iter().map(|value| to_json(value).unwrap()));
        }
        results.sort();
        Ok(results)
    }
}

fn named(kind: &str, name: &str) -> Value {
    json!({ kind: { "language": "javascript", "name": name } })
}

fn source(kind: &str, source: &str) -> Value {
    json!({ kind: { "language": "javascript", "source": source } })
}

fn error_of(result: Result<Vec<String>, Failure>) -> String {
    match result {
        Err(Failure::Phase(failure)) => failure.error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_functions_map_and_reduce() {
    let node = Node::open(false);
    for n in 0..100 {
        node.put(&format!("k{n}"), &n.to_string()).await;
    }
    let sum = json!([named("map", "Riak.mapValuesJson"), named("reduce", "Riak.reduceSum")]);
    assert_eq!(node.run(json!("b"), sum.clone()).await.unwrap(), ["4950"]);
    let missing = json!([["b", "k1"], ["b", "missing", "data"]]);
    assert_eq!(node.run(missing.clone(), sum).await.unwrap(), ["1"]);
    let found = node.run(missing, json!([named("map", "Riak.mapValues")])).await.unwrap();
    assert_eq!(found, ["\"1\"", r#"{"not_found":{"bucket":"b","key":"missing","keydata":"data"}}"#]);
    let end = Instant::now() + Duration::from_secs(10);
    while node.pool.open_sessions(Lane::Map) + node.pool.open_sessions(Lane::Reduce) > 0 {
        assert!(Instant::now() < end, "the sessions of jobs that have ended stay open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_run_where_that_is_allowed() {
    let node = Node::open(true);
    node.put("k", "3").await;
    node.put("source", "function(o) { return [o.key + '!']; }").await;
    let twice = source("map", "function(o, data, arg) { return [2 * JSON.parse(o.values[0].data)]; }");
    assert_eq!(node.run(json!([["b", "k"]]), json!([twice])).await.unwrap(), ["6"]);
    let stored = json!({ "map": { "language": "javascript", "bucket": "b", "key": "source" } });
    assert_eq!(node.run(json!([["b", "k"]]), json!([stored])).await.unwrap(), ["\"k!\""]);
    let keys = source("reduce", "function(keys) { return [keys.length, keys[0][1]]; }");
    assert_eq!(node.run(json!([["b", "k"]]), json!([keys])).await.unwrap(), ["\"k\"", "1"]);
    let refused = error_of(Node::open(false).run(json!([["b", "k"]]), json!([twice])).await);
    assert!(refused.contains("not allowed"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_not_utf8_is_null_and_its_key_is_seen() {
    let node = Node::open(true);
    node.put_bytes("bytes", b"\xff\xfe").await;
    node.put("text", "t").await;
    let seen = source("map", "function(o) { return [[o.bucket, o.key, o.values[0].data]]; }");
    let all = node.run(json!("b"), json!([seen])).await.unwrap();
    assert_eq!(all, [r#"["b","bytes",null]"#, r#"["b","text","t"]"#]);
    let by_fields = json!({ "map": { "language": "javascript", "name": "Riak.mapByFields", "arg": { "a": 1 } } });
    assert!(node.run(json!([["b", "bytes"]]), json!([by_fields])).await.unwrap().is_empty());
}

/// While a function runs, more values come than the memory of an engine has room for.
#[tokio::test(flavor = "multi_thread")]
async fn a_reduce_function_gets_as_many_values_as_its_memory_has_room_for() {
    const KEYS: usize = 60_000;
    let node = Node::open(true);
    let inputs: Vec<Value> = (0..KEYS).map(|n| json!(["b", format!("key{n:08}")])).collect();
    let count = "function(values) {
        return [values.reduce(function(n, v) { return n + (typeof v === 'number' ? v : 1); }, 0)];
    }";
    let counted = node.run(json!(inputs), json!([source("reduce", count)])).await.unwrap();
    assert_eq!(counted, [KEYS.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_fails_or_does_not_exist_fails_the_job_and_says_why() {
    let node = Node::open(true);
    node.put("k", "3").await;
    let failing = source("map", "function(o) { return zork; }");
    let error = error_of(node.run(json!("b"), json!([failing])).await);
    assert!(error.contains("lineno") && error.contains("zork is not defined"), "{error}");
    let error = error_of(node.run(json!("b"), json!([named("map", "Riak.zork")])).await);
    assert!(error.contains("Riak.zork"), "{error}");
}

/// A call of a function ends with the job, so its error comes at the same time as the end of the
/// job. The functions in this test are shorter than the limit of a call.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_time_is_over_during_a_call_has_timed_out() {
    let node = Node::open(true);
    node.put("k", "1").await;
    let map = json!([source("map", "function(o) { for (;;); }")]);
    let reduce = json!([source("reduce", "function(values) { for (;;); }")]);
    for query in [map, reduce] {
        for _ in 0..10 {
            let ended = node.run_job(json!({ "inputs": [["b", "k"]], "query": query, "timeout": 50 })).await;
            assert_eq!(ended, Err(Failure::Timeout));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_client_leaves_ends_here_and_is_counted() {
    let node = Node::open(true);
    for n in 0..10 {
        node.put(&format!("k{n}"), "1").await;
    }
    let number = |name: &str| node.kv.stats().numbers().into_iter().find(|(is, _)| is == name).unwrap().1;
    let endless = source("map", "function(o) { for (;;); }");
    let job = json!({ "inputs": "b", "query": [endless] }).to_string();
    let mut running = node.jobs.run(Job::from_json(job.as_bytes()).unwrap(), None);
    let client = tokio::spawn(async move { running.next().await });
    let end = Instant::now() + Duration::from_secs(60);
    let until = async |what: &str, holds: &dyn Fn() -> bool| {
        while !holds() {
            assert!(Instant::now() < end, "{what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    until("no function runs", &|| node.pool.counts(Lane::Map).busy > 0 && number("executing_mappers") > 0).await;
    assert_eq!((number("pipeline_active"), number("ombak_jobs_abandoned")), (1, 0));
    client.abort();
    until("the job goes on", &|| number("pipeline_active") == 0 && number("executing_mappers") == 0).await;
    assert_eq!((number("ombak_jobs_abandoned"), number("ombak_jobs_failed")), (1, 0));
    until("the functions go on", &|| node.pool.counts(Lane::Map).busy == 0).await;
    until("the sessions stay", &|| node.pool.open_sessions(Lane::Map) == 0).await;
}
