//! A node with search, over a directory that outlives it.

use bytes::Bytes;
use ombak_kv::buckets::Namespaces;
use ombak_kv::hooks::Hooks;
use ombak_kv::{
    DeleteMode, DeleteRequest, GetOptions, GetReply, GetRequest, Kv, KvConfig, PutOptions, PutRequest, UncountedMemory,
};
use ombak_search::answer::{FieldValues, SearchAnswer};
use ombak_search::values::Value;
use ombak_searching::{FoundKeys, KeySearch, Search, SearchConfig, SearchError};
use ombak_storage::fs::RealFs;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::{Bucket, Object, Sibling, VectorClock};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Node {
    pub kv: Kv,
    pub search: Arc<Search>,
    tokio: tokio::runtime::Runtime,
}

pub fn bucket() -> Bucket {
    Bucket::untyped("people")
}

impl Node {
    pub fn open(dir: &Path) -> Self {
        let stores = BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), JournalConfig::default()).unwrap();
        let mut config = KvConfig::new("riak@127.0.0.1", dir, Arc::new(stores));
        config.delete_mode = DeleteMode::Immediate;
        config.io_threads = 2;
        config.ring_size = 8;
        let search = Search::new(SearchConfig::new(dir.join("search")), config.runtime.clone());
        config.hooks = Hooks {
            kinds: ombak_datatypes::kinds(),
            namespaces: Namespaces::new(vec![search.namespace()]),
            consumer_sources: vec![search.consumer_source()],
            features_asked: vec![search.feature_answers()],
            ..Hooks::default()
        };
        let kv = Kv::open(config).unwrap();
        search.attach(&kv);
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { kv, search, tokio }
    }

    pub fn close(self) {
        let kv = self.kv.clone();
        self.tokio.block_on(async move { tokio::task::spawn_blocking(move || kv.close()).await.unwrap() });
    }

    /// Sets the index of a bucket.
    pub fn associate(&self, bucket: &Bucket, index: &str) {
        let props = json!({"search_index": index, "allow_mult": true});
        self.kv.buckets().set_bucket(bucket, props.as_object().unwrap()).unwrap();
    }

    pub fn put_in(&self, bucket: &Bucket, key: &str, value: &str, clock: VectorClock) {
        let mut sibling = Sibling::new(Bytes::from(value.to_owned()));
        sibling.meta.content_type = Some(Bytes::from_static(b"application/json"));
        let object = Object { clock, siblings: vec![sibling] };
        let request = PutRequest {
            bucket: bucket.clone(),
            key: Some(key.to_owned().into()),
            object,
            options: PutOptions::default(),
        };
        self.tokio.block_on(self.kv.put(request)).unwrap();
    }

    /// Replaces what is there.
    pub fn put(&self, key: &str, value: &str) {
        self.replace(&bucket(), key, value);
    }

    /// Replaces what is there.
    pub fn replace(&self, bucket: &Bucket, key: &str, value: &str) {
        self.put_in(bucket, key, value, self.clock_of(bucket, key));
    }

    fn clock_of(&self, bucket: &Bucket, key: &str) -> VectorClock {
        let options = GetOptions::default();
        let request = GetRequest { bucket: bucket.clone(), key: key.to_owned().into(), options };
        match self.tokio.block_on(self.kv.get(request)).unwrap() {
            GetReply::Found(object) => object.clock,
            GetReply::NotFound { tombstone } => tombstone.unwrap_or_default(),
        }
    }

    pub fn delete(&self, key: &str) {
        let request = DeleteRequest {
            bucket: bucket(),
            key: key.to_owned().into(),
            clock: None,
            get: GetOptions::default(),
            put: PutOptions::default(),
            rw: None,
        };
        self.tokio.block_on(self.kv.delete(request)).unwrap();
    }

    pub fn query(&self, index: &str, parameters: &[(&str, &str)]) -> Result<SearchAnswer, SearchError> {
        let parameters: Vec<(String, String)> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found = self.tokio.block_on(self.search.query(index, &parameters, &mut UncountedMemory));
        found.map(|found| found.answer)
    }

    /// A page of the keys that a query finds.
    pub fn page(&self, search: &KeySearch, from: Option<&str>) -> Result<FoundKeys, SearchError> {
        self.tokio.block_on(self.search.keys(search, from))
    }

    /// The keys that a query finds, each as often as it has documents, and whether the answer is
    /// partial.
    pub fn keys(&self, index: &str, query: &str) -> (Vec<String>, bool) {
        let answer = self.query(index, &[("q", query), ("rows", "1000")]).unwrap();
        let is_partial = answer.header.as_ref().is_some_and(|header| header.is_partial);
        let mut keys: Vec<String> = answer.documents.iter().map(|document| text(document, "_yz_rk")).collect();
        keys.sort();
        assert_eq!(keys.len() as u64, answer.found_count);
        (keys, is_partial)
    }

    /// Waits until a query finds these keys.
    pub fn wait_for(&self, index: &str, query: &str, expected: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (keys, is_partial) = self.keys(index, query);
            if keys == expected && !is_partial {
                return;
            }
            assert!(Instant::now() < deadline, "{query} finds {keys:?} and not {expected:?} (partial: {is_partial})");
        }
    }

    /// The newest number in a value that is stored.
    pub fn value_of(&self, bucket: &Bucket, key: &str) -> Option<String> {
        let options = GetOptions::default();
        let request = GetRequest { bucket: bucket.clone(), key: key.to_owned().into(), options };
        match self.tokio.block_on(self.kv.get(request)).unwrap() {
            GetReply::Found(object) => {
                let values = object.siblings.iter().map(|sibling| {
                    let value: serde_json::Value = serde_json::from_slice(&sibling.value).unwrap();
                    value["v_i"].to_string()
                });
                Some(values.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(","))
            }
            GetReply::NotFound { .. } => None,
        }
    }

    /// Waits until an index has exactly these documents: `bucket/key=number`.
    pub fn wait_for_all(&self, index: &str, expected: &[String]) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let answer = self.query(index, &[("q", "*:*"), ("rows", "1000")]).unwrap();
            let is_partial = answer.header.as_ref().is_some_and(|header| header.is_partial);
            let shown =
                |document| format!("{}/{}={}", text(document, "_yz_rb"), text(document, "_yz_rk"), number(document));
            let mut found: Vec<String> = answer.documents.iter().map(shown).collect();
            found.sort();
            if found == expected && !is_partial {
                return;
            }
            assert!(Instant::now() < deadline, "{found:?} and not {expected:?} (partial: {is_partial})");
        }
    }

    /// Waits until an index has as many documents, whichever partitions they are of.
    pub fn wait_for_documents(&self, index: &str, count: u64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let status = self.search.index_status(index).unwrap();
            if status.documents == count {
                return;
            }
            assert!(Instant::now() < deadline, "{status:?}");
            std::thread::yield_now();
        }
    }
}

/// The text of a field of a document.
pub fn text(document: &ombak_search::answer::Document, name: &str) -> String {
    let field = document.fields.iter().find(|(field, _)| field == name);
    match field.map(|(_, values)| values) {
        Some(FieldValues::One(Value::String(text) | Value::Text(text))) => text.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn number(document: &ombak_search::answer::Document) -> String {
    let field = document.fields.iter().find(|(field, _)| field == "v_i");
    match field.map(|(_, values)| values) {
        Some(FieldValues::One(Value::Int(number))) => number.to_string(),
        other => panic!("v_i: {other:?}"),
    }
}
