//! Jobs whose inputs a search finds, page by page.

use bytes::Bytes;
use ombak_jobs::{
    Failure, FoundInputs, InputSearch, InputSearches, InputsFailure, InputsProblem, Jobs, JobsConfig, NoPartNodes,
    RunningJob,
};
use ombak_kv::{Kv, KvConfig, PutOptions, PutRequest, head_terms};
use ombak_mapreduce::{Job, to_json};
use ombak_runtime::{BoxFuture, TokioRuntime};
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::{Bucket, Object, Sibling};
use serde_json::{Value, json};
use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

const KEYS: u32 = 300;
/// Keys of a page.
const PAGE: u32 = 7;

/// A search that finds the keys of the bucket.
#[derive(Default)]
struct Pages {
    asked: AtomicU32,
    /// The key at which a page fails.
    fails_at: Option<u32>,
    /// The key at which a page never comes.
    hangs_at: Option<u32>,
}

impl InputSearches for Pages {
    fn find(&self, search: &InputSearch, from: Option<&str>) -> BoxFuture<'static, Result<FoundInputs, Failure>> {
        assert_eq!((&search.index[..], &search.query[..]), (&b"people"[..], &b"x:y"[..]));
        self.asked.fetch_add(1, Ordering::SeqCst);
        let first: u32 = from.map_or(0, |from| from.parse().unwrap());
        if self.hangs_at == Some(first) {
            return Box::pin(pending());
        }
        if self.fails_at == Some(first) {
            return Box::pin(ready(Err(failure())));
        }
        let end = (first + PAGE).min(KEYS);
        let keys = (first..end).map(|n| (Bucket::untyped("b"), Bytes::from(format!("k{n}")))).collect();
        Box::pin(ready(Ok(FoundInputs { keys, next: (end < KEYS).then(|| end.to_string()) })))
    }
}

fn failure() -> Failure {
    Failure::Inputs(InputsFailure { problem: InputsProblem::Unavailable, why: "a part is missing".to_owned() })
}

struct Node {
    jobs: Jobs,
    pages: Arc<Pages>,
    _dir: TempDir,
}

impl Node {
    async fn with(pages: Pages) -> Self {
        let (dir, pages) = (tempfile::tempdir().unwrap(), Arc::new(pages));
        let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let mut kv_config = KvConfig::new("riak@127.0.0.1", dir.path(), backend);
        (kv_config.ring_size, kv_config.runtime) = (8, Arc::new(TokioRuntime));
        let kv = Kv::open(kv_config).unwrap();
        for n in 0..KEYS {
            let object = Object::new(Sibling::new(Bytes::from(n.to_string())));
            let (bucket, key) = (Bucket::untyped("b"), Some(Bytes::from(format!("k{n}"))));
            kv.put(PutRequest { bucket, key, object, options: PutOptions::default() }).await.unwrap();
        }
        let searches: Option<Arc<dyn InputSearches>> = Some(pages.clone());
        let jobs = Jobs::new(kv, JobsConfig { searches, ..JobsConfig::default() }, Arc::new(NoPartNodes));
        Self { jobs, pages, _dir: dir }
    }

    fn begin(&self, query: &Value) -> RunningJob {
        let inputs = json!({"module": "yokozuna", "function": "mapred_search", "arg": ["people", "x:y"]});
        let job = json!({"inputs": inputs, "query": query, "timeout": 5_000});
        self.jobs.run(Job::from_json(job.to_string().as_bytes()).unwrap(), None)
    }

    /// The results of a job, as texts.
    async fn run(&self, query: &Value) -> Result<Vec<String>, Failure> {
        let (mut running, mut results) = (self.begin(query), Vec::new());
        while let Some(output) = running.next().await {
            results.extend(output?.values.iter().map(|value| to_json(value).unwrap()));
        }
        Ok(results)
    }

    fn asked(&self) -> u32 {
        self.pages.asked.load(Ordering::SeqCst)
    }
}

fn sum() -> Value {
    let erlang = |name: &str| json!({"language": "erlang", "module": "riak_kv_mapreduce", "function": name});
    json!([
        {"map": erlang("map_object_value")},
        {"reduce": erlang("reduce_string_to_integer")},
        {"reduce": erlang("reduce_sum")},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_are_inputs_once() {
    let node = Node::with(Pages::default()).await;
    assert_eq!(node.run(&sum()).await, Ok(vec![(0..KEYS).sum::<u32>().to_string()]));
    assert_eq!(node.asked(), KEYS.div_ceil(PAGE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_fails_fails_the_job() {
    for fails_at in [0, PAGE, KEYS - KEYS % PAGE] {
        let node = Node::with(Pages { fails_at: Some(fails_at), ..Pages::default() }).await;
        assert_eq!(node.run(&sum()).await, Err(failure()), "{fails_at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_does_not_come_ends_with_the_time_of_the_job() {
    let node = Node::with(Pages { hangs_at: Some(PAGE), ..Pages::default() }).await;
    tokio::time::timeout(std::time::Duration::from_millis(100), node.run(&sum())).await.unwrap_err();
    assert_eq!(node.run(&sum()).await, Err(Failure::Timeout));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_asked_for_as_fast_as_the_client_takes_results() {
    let node = Node::with(Pages::default()).await;
    let mut running = node.begin(&json!([]));
    assert_eq!(node.asked(), 0);
    for page in 1..4 {
        let output = running.next().await.unwrap().unwrap();
        assert_eq!((output.values.len() as u32, node.asked()), (PAGE, page));
    }
    drop(running);
    assert_eq!(node.asked(), 3);
}
