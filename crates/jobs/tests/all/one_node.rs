//! Jobs on a node that is alone.

use bytes::Bytes;
use ombak_jobs::{Jobs, JobsConfig, NoPartNodes};
use ombak_kv::{Kv, KvConfig, PutOptions, PutRequest, head_terms};
use ombak_mapreduce::{Failure, InputsProblem, Job, to_json};
use ombak_runtime::TokioRuntime;
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::etf::Term;
use ombak_types::{Bucket, Object, Sibling};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;

struct Node {
    kv: Kv,
    jobs: Jobs,
    _dir: TempDir,
}

impl Node {
    fn open(config: JobsConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let mut kv_config = KvConfig::new("riak@127.0.0.1", dir.path(), backend);
        (kv_config.ring_size, kv_config.runtime) = (8, Arc::new(TokioRuntime));
        let kv = Kv::open(kv_config).unwrap();
        let jobs = Jobs::new(kv.clone(), config, Arc::new(NoPartNodes));
        Self { kv, jobs, _dir: dir }
    }

    async fn put(&self, key: &str, value: &str) {
        let object = Object::new(Sibling::new(Bytes::copy_from_slice(value.as_bytes())));
        let key = Some(Bytes::copy_from_slice(key.as_bytes()));
        let request = PutRequest { bucket: Bucket::untyped("b"), key, object, options: PutOptions::default() };
        self.kv.put(request).await.unwrap();
    }

    async fn fill(&self, count: u32) {
        for n in 0..count {
            self.put(&format!("k{n:04}"), &n.to_string()).await;
        }
    }

    /// The results of each phase.
    async fn run(&self, job: Value) -> Result<BTreeMap<usize, Vec<Term>>, Failure> {
        let mut running = self.jobs.run(Job::from_json(job.to_string().as_bytes()).unwrap(), None);
        let mut results: BTreeMap<usize, Vec<Term>> = BTreeMap::new();
        while let Some(output) = running.next().await {
            let output = output?;
            results.entry(output.phase).or_default().extend(output.values);
        }
        Ok(results)
    }

    async fn texts(&self, job: Value, phase: usize) -> Vec<String> {
        let mut results = self.run(job).await.unwrap();
        let mut texts: Vec<String> =
            results.remove(&phase).unwrap_or_default().iter().map(|value| to_json(value).unwrap()).collect();
        texts.sort();
        texts
    }
}

fn erlang(function: &str) -> Value {
    json!({"language": "erlang", "module": "riak_kv_mapreduce", "function": function})
}

/// So little fits into a piece that each job takes many of them.
fn tiny() -> JobsConfig {
    JobsConfig { piece_bytes_max: 200, keys_bytes_max: 300, ..JobsConfig::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_mapped_once_whatever_fits_into_a_piece() {
    for config in [JobsConfig::default(), tiny()] {
        let node = Node::open(config);
        node.fill(300).await;
        let values: Vec<String> = {
            let mut values: Vec<String> = (0..300).map(|n| format!("\"{n}\"")).collect();
            values.sort();
            values
        };
        let map = json!({"map": erlang("map_object_value")});
        assert_eq!(node.texts(json!({"inputs": "b", "query": [map.clone()]}), 0).await, values);
        let count = json!([map, {"reduce": erlang("reduce_count_inputs")}]);
        assert_eq!(node.texts(json!({"inputs": "b", "query": count}), 1).await, ["300"]);
        let filtered = json!({"bucket": "b", "key_filters": [["ends_with", "7"]]});
        let count = json!([{"reduce": erlang("reduce_count_inputs")}]);
        assert_eq!(node.texts(json!({"inputs": filtered, "query": count}), 0).await, ["30"]);
        assert_eq!(node.run(json!({"inputs": "b", "query": []})).await.unwrap()[&0].len(), 300);
        assert_eq!(node.texts(json!({"inputs": "empty", "query": count}), 0).await, ["0"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_filter_cannot_work_on_is_left_out_and_the_job_goes_on() {
    let node = Node::open(JobsConfig::default());
    for key in ["1", "7", "12", "no number", "7a"] {
        node.put(key, key).await;
    }
    let query = json!([{"map": erlang("map_object_value")}]);
    let less = json!([["string_to_int"], ["less_than", 10]]);
    let small = json!({"bucket": "b", "key_filters": less});
    assert_eq!(node.texts(json!({"inputs": small, "query": query}), 0).await, ["\"1\"", "\"7\""]);
    let large = json!({"bucket": "b", "key_filters": [["not", less]]});
    assert_eq!(node.texts(json!({"inputs": large, "query": query}), 0).await, ["\"12\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_keys_are_mapped_once_and_in_order_of_no_importance() {
    let node = Node::open(tiny());
    node.fill(250).await;
    let keys: Vec<Value> = (0..250).map(|n| json!(["b", format!("k{n:04}")])).collect();
    let query = json!([{"map": erlang("map_object_value")}, {"reduce": erlang("reduce_string_to_integer")},
                       {"reduce": erlang("reduce_sum")}]);
    let sum: u32 = (0..250).sum();
    assert_eq!(node.texts(json!({"inputs": keys, "query": query}), 2).await, [sum.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_to_the_function() {
    let node = Node::open(JobsConfig::default());
    let missing = |arg: &str| {
        let mut map = erlang("map_object_value");
        map["arg"] = json!(arg);
        json!({"inputs": [["b", "missing", "data"]], "query": [{"map": map}]})
    };
    assert_eq!(node.texts(missing("filter_notfound"), 0).await, Vec::<String>::new());
    assert_eq!(node.texts(missing("include_keydata"), 0).await, ["\"data\""]);
    match node.run(missing("zork")).await.unwrap_err() {
        Failure::Phase(failure) => {
            assert_eq!((failure.phase, failure.error.as_str()), (0, "function_clause"));
            assert_eq!(failure.input.unwrap(), "{{error,notfound},{<<\"b\">>,<<\"missing\">>},<<\"data\">>}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_time_times_out() {
    let node = Node::open(tiny());
    node.fill(300).await;
    let job = json!({"inputs": "b", "query": [{"map": erlang("map_object_value")}], "timeout": 1});
    let mut running = node.jobs.run(Job::from_json(job.to_string().as_bytes()).unwrap(), None);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let mut last = None;
    while let Some(output) = running.next().await {
        last = Some(output);
    }
    assert_eq!(last, Some(Err(Failure::Timeout)));
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_of_erlang_functions_are_refused_and_those_of_indexes_and_searches_say_what_to_use() {
    let node = Node::open(JobsConfig::default());
    let refused = async |module: &str| {
        let inputs = json!({"module": module, "function": "mapred_index", "arg": ["b", ["eq", "n_int", 1]]});
        match node.run(json!({"inputs": inputs, "query": []})).await.unwrap_err() {
            Failure::Other(why) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused("zork").await, "map_reduce_error", "Riak's words");
    let why = refused("riak_index").await;
    assert!(why.contains("[Bucket,{eq,Field,Term}]") && why.contains("index query"), "{why}");
    let failed = async |inputs: Value| match node.run(json!({"inputs": inputs, "query": []})).await.unwrap_err() {
        Failure::Inputs(failure) => (failure.problem, failure.why),
        other => panic!("{other:?}"),
    };
    let bad = json!({"module": "yokozuna", "function": "mapred_search", "arg": ["i"]});
    let (problem, why) = failed(bad).await;
    assert!(problem == InputsProblem::Bad && why.contains("[Index,Query,Filter]"), "{why}");
    let (problem, why) = failed(json!({"index": "i", "query": "a:b"})).await;
    assert!(problem == InputsProblem::Missing && why.contains("search = on"), "{why}");
}
