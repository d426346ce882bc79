//! The log of slow requests: which requests it has, and where their time went.

use crate::replicas::cluster::{Cluster, count};
use crate::support;
use crate::support::faulty::FaultyFactory;
use crate::support::{Node, bucket};
use ombak_kv::{GetOptions, IndexQuery, PutOptions, QueryRange};
use ombak_types::VectorClock;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A limit that every request reaches.
const NOTHING: Option<Duration> = Some(Duration::from_micros(1));

/// The fields of a line.
type Line = BTreeMap<String, String>;

/// Collects the lines about slow requests of the test's thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ombak_kv::slow::")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Fields(Line);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
            }
        }
        let mut fields = Fields(Line::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Lines {
    /// Collects from now on.
    fn collect(&self) -> tracing::subscriber::DefaultGuard {
        tracing::subscriber::set_default(self.clone())
    }

    /// Takes the only line.
    #[track_caller]
    fn only(&self) -> Line {
        let mut lines = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }
}

fn ms(line: &Line, part: &str) -> f64 {
    line.get(part).map_or(0.0, |text| text.parse().unwrap())
}

#[track_caller]
fn assert_names(line: &Line, operation: &str, key: Option<&str>, result: &str) {
    let field = |name: &str| line.get(name).map(String::as_str);
    let expected = (Some(operation), Some("default"), Some("b"), key, Some(result));
    assert_eq!(
        (field("operation"), field("bucket_type"), field("bucket"), field("key"), field("result")),
        expected,
        "{line:?}"
    );
    assert!(ms(line, "took_ms") > 0.0, "{line:?}");
}

#[tokio::test]
async fn each_kind_of_request_is_logged_once() {
    let node = Node::configured(|config| config.slow_request = NOTHING);
    let lines = Lines::default();
    let _collects = lines.collect();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    let line = lines.only();
    assert_names(&line, "put", Some("k"), "ok");
    assert!(ms(&line, "store_ms") > 0.0 && !line.contains_key("replicas_asked"), "{line:?}");
    node.get("k").await.unwrap();
    let line = lines.only();
    assert_names(&line, "get", Some("k"), "ok");
    assert_eq!(line["store_ms"], line["took_ms"]);
    // The delete reads the clock, and writes a tombstone.
    assert!(node.delete("k").await.unwrap().found);
    assert_names(&lines.only(), "delete", Some("k"), "ok");
    node.list_keys().await;
    let line = lines.only();
    assert_names(&line, "list_keys", None, "ok");
    assert!(ms(&line, "waiting_ms") + ms(&line, "store_ms") > 0.0, "{line:?}");
    let range = QueryRange::Keys { from: Bound::Unbounded, to: Bound::Unbounded };
    let query =
        IndexQuery { bucket: bucket(), range, after: None, results_max: None, pattern: None, shows_tombstones: false };
    let results = node.kv.query(query, None).unwrap();
    // The client thinks for so long that the time can be measured.
    tokio::time::sleep(Duration::from_millis(2)).await;
    drop(results);
    assert_names(&lines.only(), "index_query", Some("$key"), "abandoned");
    for (name, expected) in [("get", 1), ("put", 1), ("delete", 1), ("list_keys", 1), ("index_query", 1), ("update", 0)]
    {
        assert_eq!(node.stat(&format!("ombak_slow_{name}")), expected, "{name}");
    }
    node.kv.set_slow_request(None);
    node.put("k", "v", VectorClock::new()).await.unwrap();
    assert!(lines.0.lock().unwrap().is_empty());
    node.close().await;
}

#[tokio::test]
async fn the_wait_for_a_thread_is_not_time_of_the_store() {
    let stores = FaultyFactory::new();
    let faults = stores.faults.clone();
    let node = Node::configured(|config| {
        config.backend = Arc::new(stores);
        config.io_threads = 1;
        config.slow_request = NOTHING;
        config.default_props = support::map(serde_json::json!({"allow_mult": true}));
    });
    node.put("k", "v", VectorClock::new()).await.unwrap();
    // Reads need a disk thread, and the only one waits in a put.
    faults.set(&faults.nothing_cached, true);
    faults.hold_puts(true);
    let (kv, put) = (node.kv.clone(), node.put_request("k", "w", VectorClock::new()));
    let reached = faults.puts.load(std::sync::atomic::Ordering::SeqCst);
    let puts = tokio::spawn(async move { kv.put(put).await });
    let deadline = Instant::now() + Duration::from_secs(20);
    while faults.puts.load(std::sync::atomic::Ordering::SeqCst) == reached {
        assert!(Instant::now() < deadline, "the put does not reach the store");
        tokio::task::yield_now().await;
    }
    let lines = Lines::default();
    let _collects = lines.collect();
    let mut request = node.get_request("k");
    request.options.timeout = Some(Duration::from_millis(60));
    assert_eq!(node.kv.get(request).await, Err(ombak_types::Error::Timeout));
    let line = lines.only();
    assert_names(&line, "get", Some("k"), "timeout");
    assert!(ms(&line, "waiting_ms") >= 50.0 && ms(&line, "store_ms") == 0.0, "{line:?}");
    faults.hold_puts(false);
    puts.await.unwrap().unwrap();
    node.close().await;
}

#[tokio::test]
async fn the_answers_of_replicas_are_told_apart_from_the_own_store() {
    let cluster = Cluster::configured(3, |config| config.slow_request = NOTHING);
    let lines = Lines::default();
    let _collects = lines.collect();
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let line = lines.only();
    assert_names(&line, "put", Some("k"), "ok");
    assert_eq!((line["replicas_asked"].as_str(), line["replicas_answered"].as_str()), ("2", "2"));
    cluster.get(0, "k", GetOptions { r: count(3), ..GetOptions::default() }).await.unwrap();
    let line = lines.only();
    assert_eq!((line["replicas_asked"].as_str(), line["replicas_answered"].as_str()), ("2", "2"), "{line:?}");
    assert!(ms(&line, "store_ms") > 0.0 && ms(&line, "replicas_ms") > 0.0, "{line:?}");
    // One node gets everything and answers nothing.
    cluster.set_stopped(2, true);
    let timeout = Some(Duration::from_millis(1_000));
    let get = cluster.get(0, "k", GetOptions { r: count(3), timeout, ..GetOptions::default() }).await;
    get.unwrap_err();
    let line = lines.only();
    assert_eq!((line["replicas_asked"].as_str(), line["replicas_answered"].as_str()), ("2", "1"), "{line:?}");
    assert!(ms(&line, "replicas_ms") >= 900.0 && ms(&line, "store_ms") < 900.0, "{line:?}");
    let put = cluster.put(0, "k", "x", PutOptions { w: count(3), timeout, ..PutOptions::default() }).await;
    put.unwrap_err();
    let line = lines.only();
    assert_eq!((line["replicas_asked"].as_str(), line["replicas_answered"].as_str()), ("2", "1"), "{line:?}");
    assert!(ms(&line, "replicas_ms") >= 900.0 && ms(&line, "store_ms") < 900.0, "{line:?}");
    assert_names(&line, "put", Some("k"), "timeout");
}
