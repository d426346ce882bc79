//! Values that expire, on every backend, with a clock that the tests move.

use crate::support::{Node, bucket, found, map, values};
use bytes::Bytes;
use ombak_kv::expiry::{TTL_LEFT_NAME, TTL_NAME};
use ombak_kv::{DeleteReply, GetReply, IndexQuery, Kv, PutCondition, PutRequest, QueryRange, head_terms};
use ombak_runtime::OtherClocks;
use ombak_storage::fs::RealFs;
use ombak_storage::{
    BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, MemoryConfig,
    MemoryFactory,
};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, IndexEntry, Object, Sibling, VectorClock};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const START_SECS: u64 = 1_800_000_000;

/// A node whose time stands still until the test moves it.
struct Timed {
    node: Node,
    secs: Arc<AtomicU64>,
    backend: String,
    default_props: serde_json::Value,
    dir: TempDir,
}

impl Timed {
    fn start() -> Self {
        Self::on("memory", json!({"allow_mult": true, "dvv_enabled": true}))
    }

    fn on(backend: &str, default_props: serde_json::Value) -> Self {
        Self::open(
            backend.to_owned(),
            default_props,
            Arc::new(AtomicU64::new(START_SECS)),
            tempfile::tempdir().unwrap(),
        )
    }

    fn open(backend: String, default_props: serde_json::Value, secs: Arc<AtomicU64>, dir: TempDir) -> Self {
        let stores = factory(&backend, &dir.path().join("stores"), secs.load(Ordering::SeqCst));
        let clock = secs.clone();
        let node = Node::configured(|config| {
            config.backend = stores;
            config.data_dir = dir.path().to_owned();
            config.ring_size = 8;
            config.maintain_interval = Duration::from_millis(5);
            config.default_props = map(default_props.clone());
            let clock = move || UnixMicros::from_secs(clock.load(Ordering::SeqCst));
            config.runtime = Arc::new(OtherClocks::of(config.runtime.clone()).with_wall_clock(clock));
        });
        Self { node, secs, backend, default_props, dir }
    }

    async fn restarted(self) -> Self {
        let Self { node, secs, backend, default_props, dir } = self;
        node.close().await;
        drop(node);
        Self::open(backend, default_props, secs, dir)
    }

    fn wait_secs(&self, secs: u64) {
        self.secs.fetch_add(secs, Ordering::SeqCst);
    }

    fn put_with(&self, key: &str, value: &str, ttl: &str, clock: VectorClock) -> PutRequest {
        let mut request = self.node.put_request(key, value, clock);
        request.object.siblings[0].meta.user_meta.push((TTL_NAME.into(), Bytes::from(ttl.to_owned())));
        request
    }

    async fn put(&self, key: &str, value: &str, ttl: &str) {
        self.node.kv.put(self.put_with(key, value, ttl, VectorClock::new())).await.unwrap();
    }

    async fn is_there(&self, key: &str) -> bool {
        matches!(self.node.get(key).await.unwrap(), GetReply::Found(_))
    }

    /// A listing passes the time to the stores, even when no maintenance has run since.
    async fn lists(&self, keys: &[&str]) {
        let listed = self.node.list_keys().await;
        assert!(listed.iter().map(String::as_str).eq(keys.iter().copied()), "{listed:?} are listed, not {keys:?}");
    }

    async fn keys_of_term(&self, term: &str) -> Vec<String> {
        let term = IndexEntry::parse(b"f_bin", term.as_bytes()).unwrap().term;
        let range = QueryRange::Terms { field: "f_bin".into(), from: term.clone(), to: term };
        let query = IndexQuery {
            bucket: bucket(),
            range,
            after: None,
            results_max: None,
            pattern: None,
            shows_tombstones: false,
        };
        let mut results = self.node.kv.query(query, None).unwrap();
        let mut keys = Vec::new();
        while let Some(batch) = results.next().await {
            keys.extend(batch.unwrap().into_iter().map(|found| String::from_utf8(found.key.to_vec()).unwrap()));
        }
        keys
    }
}

fn factory(backend: &str, dir: &Path, opened_at_secs: u64) -> Arc<dyn BackendFactory> {
    let config = JournalConfig { opened_at_secs, ..JournalConfig::default() };
    let (fs, ledger) = (Arc::new(RealFs), LedgerConfig::default());
    match backend {
        "memory" => {
            let config = MemoryConfig { opened_at_secs, ..MemoryConfig::default() };
            Arc::new(MemoryFactory::with_terms(config, head_terms()))
        }
        "bitcask" => Arc::new(BitcaskFactory::with_terms(fs, dir, config, &ledger, head_terms()).unwrap()),
        "leveled" => Arc::new(LeveledFactory::new(fs, dir, config, ledger, head_terms()).unwrap()),
        "leveldb" => Arc::new(LeveldbFactory::new(fs, dir, config, ledger, head_terms()).unwrap()),
        other => panic!("no backend {other}"),
    }
}

async fn on_every_backend(check: impl AsyncFn(Timed)) {
    for backend in ["memory", "bitcask", "leveled", "leveldb"] {
        check(Timed::on(backend, json!({"allow_mult": true, "dvv_enabled": true}))).await;
    }
}

#[tokio::test]
async fn a_value_ends_with_its_time() {
    on_every_backend(async |timed| {
        let mut request = timed.put_with("short", "v", "60", VectorClock::new());
        request.object.siblings[0].meta.indexes.push(IndexEntry::parse(b"f_bin", b"t").unwrap());
        timed.node.kv.put(request).await.unwrap();
        timed.node.put("stays", "v", VectorClock::new()).await.unwrap();
        timed.wait_secs(60);
        assert!(timed.is_there("short").await, "it counts to the end of its last second");
        timed.lists(&["short", "stays"]).await;
        assert_eq!(timed.keys_of_term("t").await, ["short"]);
        timed.wait_secs(1);
        assert_eq!(timed.node.get("short").await.unwrap(), GetReply::NotFound { tombstone: None });
        assert!(timed.is_there("stays").await);
        timed.lists(&["stays"]).await;
        assert_eq!(timed.keys_of_term("t").await, [""; 0]);
        assert_eq!(timed.node.delete("short").await, Ok(DeleteReply { found: false }));
        timed.node.put("short", "again", VectorClock::new()).await.unwrap();
        assert_eq!(values(&found(timed.node.get("short").await.unwrap())), ["again"], "alone: it has no sibling");
        timed.lists(&["short", "stays"]).await;
    })
    .await;
}

/// Each start sweeps the stores, so the test need not wait for the next sweep.
#[tokio::test]
async fn an_expired_value_is_reaped_in_every_delete_mode() {
    for backend in ["bitcask", "leveled", "leveldb"] {
        let timed = Timed::on(backend, json!({"allow_mult": true, "dvv_enabled": true}));
        timed.put("short", "v", "10").await;
        timed.node.put("stays", "v", VectorClock::new()).await.unwrap();
        timed.node.put("gone", "v", VectorClock::new()).await.unwrap();
        timed.node.delete("gone").await.unwrap();
        timed.wait_secs(11);
        timed.lists(&["stays"]).await;
        timed.node.wait_for_keys_stored(3).await;
        let timed = timed.restarted().await;
        // The tombstone is there: the delete mode is `keep`.
        timed.node.wait_for_keys_stored(2).await;
        assert!(timed.is_there("stays").await);
        assert!(matches!(timed.node.get("gone").await, Ok(GetReply::NotFound { tombstone: Some(_) })));
    }
}

#[tokio::test]
async fn a_buckets_values_live_as_its_property_says_unless_they_say_it_themselves() {
    let timed = Timed::start();
    let set_ttl = |ttl: u64| timed.node.kv.buckets().set_bucket(&bucket(), &map(json!({"ttl": ttl}))).unwrap();
    set_ttl(10);
    timed.node.put("as the bucket", "v", VectorClock::new()).await.unwrap();
    timed.put("longer", "v", "20").await;
    timed.put("never", "v", "0").await;
    set_ttl(0);
    timed.node.put("later", "v", VectorClock::new()).await.unwrap();
    timed.wait_secs(11);
    timed.lists(&["later", "longer", "never"]).await;
    timed.wait_secs(10);
    timed.lists(&["later", "never"]).await;
    timed.wait_secs(1_000_000);
    timed.lists(&["later", "never"]).await;
}

#[tokio::test]
async fn answers_say_how_long_it_is_and_a_write_begins_anew() {
    let timed = Timed::start();
    let meta = |object: &Object| -> Vec<(String, String)> {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        object.siblings[0].meta.user_meta.iter().map(|(name, value)| (text(name), text(value))).collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    timed.put("k", "v", "60").await;
    timed.wait_secs(50);
    let read = found(timed.node.get("k").await.unwrap());
    assert_eq!(meta(&read), [pair(TTL_NAME, "60"), pair(TTL_LEFT_NAME, "10")]);
    timed.wait_secs(10);
    let last_second = found(timed.node.get("k").await.unwrap());
    assert_eq!(meta(&last_second)[1], pair(TTL_LEFT_NAME, "1"), "0 would read as no end");
    // A client that writes back the metadata that it read.
    let mut request = timed.node.put_request("k", "w", read.clock.clone());
    request.object.siblings[0].meta.user_meta = read.siblings[0].meta.user_meta.clone();
    request.options.return_body = true;
    let written = timed.node.kv.put(request).await.unwrap().object.unwrap();
    assert_eq!(meta(&written), [pair(TTL_NAME, "60"), pair(TTL_LEFT_NAME, "60")]);
    timed.wait_secs(60);
    assert!(timed.is_there("k").await);
    timed.wait_secs(1);
    assert!(!timed.is_there("k").await);
}

#[tokio::test]
async fn a_time_to_live_that_cannot_be_is_refused_and_nothing_is_written() {
    let timed = Timed::start();
    for bad in ["", "-1", "soon", "1.5", "1000000001", "99999999999999999999", "60 ", "+60"] {
        let refused = timed.node.kv.put(timed.put_with("k", "v", bad, VectorClock::new())).await;
        let Err(Error::BadTtl(text)) = refused else { panic!("{bad:?}: {refused:?}") };
        let expected = "must be a whole number of seconds from 1 to 1000000000, or 0 for no end";
        assert_eq!(text, format!("{TTL_NAME} {expected}, not '{bad}'"));
    }
    let mut twice = timed.put_with("k", "v", "60", VectorClock::new());
    twice.object.siblings[0].meta.user_meta.push(("x-riak-meta-X-OMBAK-TTL".into(), "61".into()));
    assert!(matches!(timed.node.kv.put(twice).await, Err(Error::BadTtl(_))));
    assert!(!timed.is_there("k").await);
    for ttl in [json!(-1), json!("soon"), json!(1_000_000_001), json!(null), json!(1.5), json!(true)] {
        let refused = timed.node.kv.buckets().set_bucket(&bucket(), &map(json!({"ttl": ttl})));
        assert!(format!("{refused:?}").contains("must be a whole number of seconds"), "{refused:?}");
    }
}

#[tokio::test]
async fn an_expired_sibling_is_not_shown_beside_a_living_one() {
    on_every_backend(async |timed| {
        timed.put("k", "short", "10").await;
        timed.put("k", "long", "100").await;
        timed.node.put("mixed", "stays", VectorClock::new()).await.unwrap();
        timed.put("mixed", "short", "10").await;
        let both = found(timed.node.get("k").await.unwrap());
        assert_eq!(values(&both), ["long", "short"]);
        timed.wait_secs(11);
        assert_eq!(values(&found(timed.node.get("k").await.unwrap())), ["long"]);
        // A writer without a context: the expired sibling does not reappear beside its value.
        timed.put("k", "new", "100").await;
        assert_eq!(values(&found(timed.node.get("k").await.unwrap())), ["long", "new"]);
        // A writer that saw only the expired sibling.
        timed.wait_secs(90);
        assert_eq!(values(&found(timed.node.get("k").await.unwrap())), ["new"]);
        timed.lists(&["k", "mixed"]).await;
        timed.wait_secs(11);
        assert!(!timed.is_there("k").await);
        timed.lists(&["mixed"]).await;
        assert_eq!(values(&found(timed.node.get("mixed").await.unwrap())), ["stays"]);
    })
    .await;
}

#[tokio::test]
async fn the_index_entries_of_a_sibling_end_with_it() {
    on_every_backend(async |timed| {
        let indexed = |value, ttl, terms: &[&str]| {
            let mut request = timed.put_with("k", value, ttl, VectorClock::new());
            let terms = terms.iter().map(|term| IndexEntry::parse(b"f_bin", term.as_bytes()).unwrap());
            request.object.siblings[0].meta.indexes.extend(terms);
            request
        };
        let put = async |request| timed.node.kv.put(request).await.unwrap();
        put(indexed("short", "10", &["a", "both"])).await;
        put(indexed("long", "100", &["b", "both"])).await;
        let of = async |terms: [&str; 3]| {
            let mut found = Vec::new();
            for term in terms {
                found.push(timed.keys_of_term(term).await.len());
            }
            found
        };
        assert_eq!(of(["a", "b", "both"]).await, [1, 1, 1]);
        timed.wait_secs(11);
        assert_eq!(of(["a", "b", "both"]).await, [0, 1, 1], "what both have is still the other one's");
        // There are more expired entries than a page holds; the key after them must be found.
        for n in 0..500 {
            let mut request = indexed("short", "10", &["page"]);
            request.key = Some(format!("key {n:03}").into());
            put(request.clone()).await;
            request.object.siblings[0] = Sibling::new("stays");
            put(request).await;
        }
        let mut last = indexed("v", "0", &["page"]);
        last.key = Some("z".into());
        put(last).await;
        assert_eq!(timed.keys_of_term("page").await.len(), 501);
        timed.wait_secs(11);
        assert_eq!(timed.keys_of_term("page").await, ["z"]);
    })
    .await;
}

#[tokio::test]
async fn a_tombstone_has_no_time_and_holds_nothing() {
    on_every_backend(async |timed| {
        timed.put("k", "v", "10").await;
        assert_eq!(timed.node.delete("k").await, Ok(DeleteReply { found: true }));
        timed.wait_secs(1000);
        assert!(matches!(timed.node.get("k").await, Ok(GetReply::NotFound { tombstone: Some(_) })));
        // The tombstone stands beside a value that the deleting client had not seen.
        timed.put("both", "old", "10").await;
        let old = found(timed.node.get("both").await.unwrap());
        timed.put("both", "new", "10").await;
        let mut delete = timed.node.delete_request("both");
        delete.clock = Some(old.clock);
        timed.node.kv.delete(delete).await.unwrap();
        assert_eq!(found(timed.node.get("both").await.unwrap()).siblings.len(), 2);
        timed.lists(&["both"]).await;
        timed.wait_secs(11);
        assert!(!timed.is_there("both").await);
        timed.lists(&[]).await;
    })
    .await;
}

#[tokio::test]
async fn what_the_newest_value_replaced_does_not_come_back_when_it_ends() {
    let timed = Timed::on("memory", json!({"allow_mult": false}));
    timed.node.put("k", "old", VectorClock::new()).await.unwrap();
    timed.put("k", "new", "10").await;
    assert_eq!(values(&found(timed.node.get("k").await.unwrap())), ["new"]);
    timed.wait_secs(11);
    assert!(!timed.is_there("k").await);
    timed.lists(&[]).await;
    // Two copies that were written independently are merged, as replicas do.
    let sibling = |value: &'static str, at_secs: u64, expires_secs| {
        let mut sibling = Sibling::new(value);
        sibling.meta.last_modified = Some(UnixMicros::from_secs(at_secs));
        sibling.meta.expires_secs = expires_secs;
        sibling
    };
    let now_secs = timed.secs.load(Ordering::SeqCst);
    let siblings = vec![sibling("old", now_secs - 5, None), sibling("new", now_secs, Some(now_secs as u32 + 10))];
    import(&timed.node.kv, "merged", Object { clock: VectorClock::new(), siblings });
    assert_eq!(values(&found(timed.node.get("merged").await.unwrap())), ["new"]);
    timed.wait_secs(11);
    assert!(!timed.is_there("merged").await);
}

fn import(kv: &Kv, key: &str, object: Object) {
    kv.importer().import(&bucket(), key.as_bytes(), object).unwrap();
}

#[tokio::test]
async fn conditions_take_the_expired_for_absent() {
    on_every_backend(async |timed| {
        timed.put("k", "v", "10").await;
        let seen = found(timed.node.get("k").await.unwrap()).clock;
        let conditional = |condition| {
            let mut request = timed.node.put_request("k", "w", seen.clone());
            request.options.condition = condition;
            timed.node.kv.put(request)
        };
        assert_eq!(conditional(PutCondition::IfNoneMatch).await, Err(Error::MatchFound));
        timed.wait_secs(11);
        assert_eq!(conditional(PutCondition::IfNotModified(seen.clone())).await, Err(Error::NotFound));
        conditional(PutCondition::IfNoneMatch).await.unwrap();
        assert_eq!(values(&found(timed.node.get("k").await.unwrap())), ["w"]);
    })
    .await;
}

#[tokio::test]
async fn buckets_that_are_written_once_can_be_written_again() {
    let timed = Timed::start();
    let types = timed.node.kv.buckets();
    types.create_type(b"once", &map(json!({"write_once": true, "ttl": 10}))).unwrap();
    types.activate_type(b"once").unwrap();
    let once = Bucket::typed("once", "b");
    for value in ["1", "2", "3"] {
        let mut put = timed.node.put_request("k", value, VectorClock::new());
        put.bucket = once.clone();
        timed.node.kv.put(put).await.unwrap();
        let mut get = timed.node.get_request("k");
        get.bucket = once.clone();
        assert_eq!(values(&found(timed.node.kv.get(get.clone()).await.unwrap())), [value]);
        timed.wait_secs(11);
        assert!(matches!(timed.node.kv.get(get).await.unwrap(), GetReply::NotFound { .. }));
    }
}

/// A replicated write keeps its time of writing, so it expires when the original does.
#[tokio::test]
async fn a_write_as_it_is_ends_when_it_would_have_where_it_was_made() {
    let timed = Timed::start();
    let mut request = timed.put_with("k", "v", "60", VectorClock::new());
    request.options.asis = true;
    request.object.siblings[0].meta.last_modified = Some(UnixMicros::from_secs(START_SECS - 50));
    timed.node.kv.put(request).await.unwrap();
    assert!(timed.is_there("k").await);
    timed.wait_secs(11);
    assert!(!timed.is_there("k").await);
}

/// After a restart the order of keys and index entries is correct too, and the store knows whether
/// it holds anything that expires.
#[tokio::test]
async fn what_was_to_expire_expires_after_a_restart() {
    for backend in ["bitcask", "leveled", "leveldb"] {
        let mut timed = Timed::on(backend, json!({"allow_mult": true, "dvv_enabled": true}));
        for (key, ttl) in [("short", "10"), ("stays", "0")] {
            let mut request = timed.put_with(key, "v", ttl, VectorClock::new());
            request.object.siblings[0].meta.indexes.push(IndexEntry::parse(b"f_bin", b"t").unwrap());
            timed.node.kv.put(request).await.unwrap();
        }
        timed.wait_secs(5);
        timed = timed.restarted().await;
        timed.lists(&["short", "stays"]).await;
        assert_eq!(timed.keys_of_term("t").await, ["short", "stays"], "{backend}");
        timed.wait_secs(6);
        assert!(!timed.is_there("short").await, "{backend}");
        timed.lists(&["stays"]).await;
        assert_eq!(timed.keys_of_term("t").await, ["stays"], "{backend}");
        timed = timed.restarted().await;
        assert_eq!(timed.node.get("short").await.unwrap(), GetReply::NotFound { tombstone: None }, "{backend}");
        timed.lists(&["stays"]).await;
        assert_eq!(timed.keys_of_term("t").await, ["stays"], "{backend}");
    }
}
