//! Index queries on every backend: random histories against a model, and guarantees beyond the
//! results.

use crate::support;

use crate::support::stores::{self, Opener};
use crate::support::{Node, map};
use bytes::Bytes;
use num_bigint::BigInt;
use ombak_kv::{
    DeleteMode, DeleteRequest, GetOptions, GetReply, GetRequest, IndexMatch, IndexQuery, Kv, KvConfig, PutOptions,
    PutRequest, QueryConfig, QueryRange, QueryResults,
};
use ombak_types::{Bucket, Error, IndexEntry, IndexTerm, Object, Sibling, VectorClock};
use proptest::prelude::*;
use regex::bytes::Regex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

fn open(dir: &Path, opener: Opener) -> Kv {
    let mut config = KvConfig::new("riak@127.0.0.1", dir, opener(dir));
    config.ring_size = 8;
    config.delete_mode = DeleteMode::Keep;
    config.default_props = map(json!({"allow_mult": true, "dvv_enabled": true}));
    config.maintain_interval = Duration::from_millis(20);
    Kv::open(config).unwrap()
}

fn bin(term: impl Into<Bytes>) -> IndexTerm {
    IndexTerm::Bin(term.into())
}

fn terms(bucket: &Bucket, field: &'static str, from: IndexTerm, to: IndexTerm) -> IndexQuery {
    query(bucket, QueryRange::Terms { field: field.into(), from, to })
}

fn query(bucket: &Bucket, range: QueryRange) -> IndexQuery {
    IndexQuery { bucket: bucket.clone(), range, after: None, results_max: None, pattern: None, shows_tombstones: false }
}

fn all_keys(bucket: &Bucket) -> IndexQuery {
    query(bucket, QueryRange::Keys { from: Bound::Unbounded, to: Bound::Unbounded })
}

fn with_entries(bucket: &Bucket, key: impl Into<Bytes>, entries: Vec<IndexEntry>, clock: VectorClock) -> PutRequest {
    let mut sibling = Sibling::new("v");
    sibling.meta.indexes = entries;
    let object = Object { clock, siblings: vec![sibling] };
    let options = PutOptions { return_body: true, ..PutOptions::default() };
    PutRequest { bucket: bucket.clone(), key: Some(key.into()), object, options }
}

async fn put(kv: &Kv, bucket: &Bucket, key: impl Into<Bytes>, field: &'static str, term: IndexTerm) {
    let entries = vec![IndexEntry { field: field.into(), term }];
    kv.put(with_entries(bucket, key, entries, VectorClock::new())).await.unwrap();
}

async fn rest(mut results: QueryResults) -> Result<Vec<IndexMatch>, Error> {
    let mut all = Vec::new();
    while let Some(batch) = results.next().await {
        let batch = batch?;
        assert!(!batch.is_empty());
        all.extend(batch);
    }
    Ok(all)
}

async fn found(kv: &Kv, query: IndexQuery) -> Vec<IndexMatch> {
    rest(kv.query(query, None).unwrap()).await.unwrap()
}

/// Runs the query in pages, each of which begins after the previous one.
async fn found_in_pages(kv: &Kv, mut query: IndexQuery, page: usize) -> Vec<IndexMatch> {
    let mut all: Vec<IndexMatch> = Vec::new();
    query.results_max = Some(page);
    loop {
        let mut results = kv.query(query.clone(), None).unwrap();
        let before = all.len();
        while let Some(batch) = results.next().await {
            all.extend(batch.unwrap());
        }
        assert!(all.len() - before <= page);
        assert_eq!(results.is_full(), all.len() - before == page, "a full page may have another behind it");
        if !results.is_full() {
            return all;
        }
        query.after = all.last().map(|last| (last.term.clone(), last.key.clone()));
    }
}

// A random history.

#[derive(Clone, Debug)]
enum Step {
    /// Writes a key; a write that has not seen the stored version adds a sibling.
    Put {
        bucket: usize,
        key: usize,
        entries: Vec<(usize, usize)>,
        has_seen: bool,
    },
    Delete {
        bucket: usize,
        key: usize,
    },
    Terms {
        bucket: usize,
        field: usize,
        from: usize,
        to: usize,
        page: usize,
        pattern: usize,
    },
    Keys {
        bucket: usize,
        from: Bound<usize>,
        to: Bound<usize>,
        page: usize,
        pattern: usize,
    },
    Restart,
}

const FIELDS: [&str; 2] = ["f_bin", "g_int"];
const PATTERNS: [&str; 3] = ["", "a", "^[^b]*$"];

/// Terms that are difficult to sort: zero bytes, prefixes of each other, numbers larger than any
/// machine word.
fn term(field: usize, at: usize) -> IndexTerm {
    const TEXTS: [&[u8]; 8] = [b"", b"\0", b"a", b"a\0", b"a\0\xff", b"ab", b"b", b"\xff"];
    const NUMBERS: [&str; 8] =
        ["-98765432109876543210", "-256", "-255", "-1", "0", "255", "256", "12345678901234567890123"];
    match field {
        0 => bin(TEXTS[at]),
        _ => IndexTerm::Int(NUMBERS[at].parse::<BigInt>().unwrap()),
    }
}

fn key(at: usize) -> Bytes {
    const KEYS: [&[u8]; 12] =
        [b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"ab", b"b", b"b\xff", b"c", b"long", b"\xff", b"\xff\xff"];
    Bytes::from_static(KEYS[at])
}

/// Names with common prefixes, and another type.
fn bucket(at: usize) -> Bucket {
    [Bucket::untyped("b"), Bucket::untyped("bb"), Bucket::typed("t", "b")][at].clone()
}

fn bound() -> impl Strategy<Value = Bound<usize>> {
    prop_oneof![(0..12usize).prop_map(Bound::Included), (0..12usize).prop_map(Bound::Excluded), Just(Bound::Unbounded)]
}

fn step() -> impl Strategy<Value = Step> {
    let entries = prop::collection::vec((0..2usize, 0..8usize), 0..4);
    prop_oneof![
        36 => (0..3usize, 0..12usize, entries, any::<bool>())
            .prop_map(|(bucket, key, entries, has_seen)| Step::Put { bucket, key, entries, has_seen }),
        9 => (0..3usize, 0..12usize).prop_map(|(bucket, key)| Step::Delete { bucket, key }),
        18 => (0..3usize, 0..2usize, 0..8usize, 0..8usize, 1..12usize, 0..3usize)
            .prop_map(|(bucket, field, from, to, page, pattern)| Step::Terms { bucket, field, from, to, page, pattern }),
        12 => (0..3usize, bound(), bound(), 1..12usize, 0..3usize)
            .prop_map(|(bucket, from, to, page, pattern)| Step::Keys { bucket, from, to, page, pattern }),
        1 => Just(Step::Restart),
    ]
}

/// The knowledge of a client about each key: its clock, and the index entries of each sibling; a
/// tombstone has none.
type Model = BTreeMap<(usize, usize), (VectorClock, Vec<Option<Vec<(usize, usize)>>>)>;

struct History {
    dir: TempDir,
    opener: Opener,
    is_durable: bool,
    kv: Option<Kv>,
    model: Model,
}

impl History {
    fn new(opener: Opener, is_durable: bool) -> Self {
        let dir = stores::scratch_dir();
        let kv = open(dir.path(), opener);
        kv.buckets().create_type(b"t", &map(json!({"allow_mult": true}))).unwrap();
        kv.buckets().activate_type(b"t").unwrap();
        Self { dir, opener, is_durable, kv: Some(kv), model: Model::new() }
    }

    fn kv(&self) -> &Kv {
        self.kv.as_ref().unwrap()
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Put { bucket, key, entries, has_seen } => self.put(bucket, key, entries, has_seen).await,
            Step::Delete { bucket, key } => self.delete(bucket, key).await,
            Step::Terms { bucket, field, from, to, page, pattern } => {
                self.terms(bucket, field, (from, to), page, pattern).await;
            }
            Step::Keys { bucket, from, to, page, pattern } => self.keys(bucket, from, to, page, pattern).await,
            Step::Restart if self.is_durable => {
                self.kv().close();
                self.kv = None;
                self.kv = Some(open(self.dir.path(), self.opener));
            }
            Step::Restart => {}
        }
    }

    async fn put(&mut self, at: usize, k: usize, entries: Vec<(usize, usize)>, has_seen: bool) {
        let known = self.model.entry((at, k)).or_default();
        let clock = if has_seen { known.0.clone() } else { VectorClock::new() };
        let entry = |(field, t): &(usize, usize)| IndexEntry { field: FIELDS[*field].into(), term: term(*field, *t) };
        let request = with_entries(&bucket(at), key(k), entries.iter().map(entry).collect(), clock);
        let kv = self.kv.as_ref().unwrap();
        let object = kv.put(request).await.unwrap().object.unwrap();
        if has_seen {
            known.1.clear();
        }
        known.1.push(Some(entries));
        known.0 = object.clock;
        assert_eq!(object.siblings.len(), known.1.len());
    }

    async fn delete(&mut self, at: usize, k: usize) {
        let Some(known) = self.model.get_mut(&(at, k)) else { return };
        let (bucket, key) = (bucket(at), key(k));
        let (get, put) = (GetOptions::default(), PutOptions::default());
        let clock = Some(known.0.clone());
        let kv = self.kv.as_ref().unwrap();
        kv.delete(DeleteRequest { bucket: bucket.clone(), key: key.clone(), clock, get, put, rw: None }).await.unwrap();
        let reply = kv.get(GetRequest { bucket, key, options: GetOptions::default() }).await.unwrap();
        let GetReply::NotFound { tombstone: Some(clock) } = reply else { panic!("{reply:?}") };
        *known = (clock, vec![None]);
    }

    async fn terms(&self, at: usize, field: usize, (from, to): (usize, usize), page: usize, pattern: usize) {
        let pattern = if field == 0 { PATTERNS[pattern] } else { "" };
        let matcher = Regex::new(&format!("(?-u){pattern}")).unwrap();
        let mut expected = BTreeSet::new();
        for ((_, k), (_, siblings)) in self.model.iter().filter(|((b, _), _)| *b == at) {
            for (_, t) in siblings.iter().flatten().flatten().filter(|(f, t)| *f == field && (from..=to).contains(t)) {
                let term = term(field, *t);
                if !matches!(&term, IndexTerm::Bin(text) if !matcher.is_match(text)) {
                    expected.insert((Some(term), key(*k)));
                }
            }
        }
        let mut query = terms(&bucket(at), FIELDS[field], term(field, from), term(field, to));
        query.pattern = Some(matcher);
        self.compare(query, expected, page).await;
    }

    async fn keys(&self, at: usize, from: Bound<usize>, to: Bound<usize>, page: usize, pattern: usize) {
        let matcher = Regex::new(&format!("(?-u){}", PATTERNS[pattern])).unwrap();
        let after = |k: usize| match from {
            Bound::Unbounded => true,
            Bound::Included(from) => key(k) >= key(from),
            Bound::Excluded(from) => key(k) > key(from),
        };
        let before = |k: usize| match to {
            Bound::Unbounded => true,
            Bound::Included(to) => key(k) <= key(to),
            Bound::Excluded(to) => key(k) < key(to),
        };
        let alive = self.model.iter().filter(|(_, (_, siblings))| siblings.iter().any(Option::is_some));
        let keys = alive.map(|(place, _)| *place).filter(|(b, k)| *b == at && after(*k) && before(*k));
        let expected = keys.map(|(_, k)| (None, key(k))).filter(|(_, key)| matcher.is_match(key)).collect();
        let mut query = query(&bucket(at), QueryRange::Keys { from: from.map(key), to: to.map(key) });
        query.pattern = Some(matcher);
        self.compare(query, expected, page).await;
    }

    async fn compare(&self, query: IndexQuery, expected: BTreeSet<(Option<IndexTerm>, Bytes)>, page: usize) {
        let expected: Vec<IndexMatch> = expected.into_iter().map(|(term, key)| IndexMatch { term, key }).collect();
        assert_eq!(found(self.kv(), query.clone()).await, expected);
        assert_eq!(found_in_pages(self.kv(), query, page).await, expected);
    }
}

fn histories(opener: Opener, is_durable: bool) {
    let runtime = support::runtime();
    let config =
        ProptestConfig { cases: 32, failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), 40..240))| {
        let mut history = History::new(opener, is_durable);
        for step in steps {
            runtime.block_on(history.step(step));
        }
        history.kv().close();
    });
}

#[test]
fn memory_answers_as_the_model() {
    histories(stores::memory, false);
}

#[test]
fn bitcask_answers_as_the_model() {
    histories(stores::bitcask, true);
}

#[test]
fn leveled_answers_as_the_model() {
    histories(stores::leveled, true);
}

#[test]
fn leveldb_answers_as_the_model() {
    histories(stores::leveldb, true);
}

#[test]
fn multi_answers_as_the_model() {
    histories(stores::multi, true);
}

// Guarantees beyond the results.

/// Every key that exists during the whole query appears once and in order, whatever is written
/// meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_stable_while_others_write() {
    for opener in [stores::memory, stores::bitcask, stores::leveled, stores::leveldb] {
        let dir = stores::scratch_dir();
        let (kv, b) = (open(dir.path(), opener), Bucket::untyped("b"));
        for n in 0..60 {
            put(&kv, &b, format!("stays{n:03}"), "f_bin", bin(format!("t{n:03}"))).await;
        }
        let writer = {
            let (kv, b) = (kv.clone(), b.clone());
            tokio::spawn(async move {
                for n in 0.. {
                    let n = n % 40;
                    put(&kv, &b, format!("moves{n:03}"), "f_bin", bin(format!("t{:03}", n * 7 % 60))).await;
                    tokio::task::yield_now().await;
                }
            })
        };
        for page in [1, 7, 50] {
            let of_field = terms(&b, "f_bin", bin("t"), bin("u"));
            for query in [of_field, all_keys(&b)] {
                let results = found_in_pages(&kv, query, page).await;
                let places: Vec<_> = results.iter().map(|found| (found.term.clone(), found.key.clone())).collect();
                assert!(places.is_sorted_by(|a, b| a < b), "in order, none twice");
                let stayed = results.iter().filter(|found| found.key.starts_with(b"stays")).count();
                assert_eq!(stayed, 60);
            }
        }
        writer.abort();
        let _ = writer.await;
    }
}

/// A partition's results show the moment at which the partition was opened, not later writes.
#[tokio::test]
async fn a_stream_shows_what_was_there_when_it_began() {
    for opener in [stores::memory, stores::bitcask, stores::leveled, stores::leveldb] {
        let dir = stores::scratch_dir();
        let (kv, b) = (open(dir.path(), opener), Bucket::untyped("b"));
        for n in 0..1200 {
            put(&kv, &b, format!("k{n:04}"), "f_bin", bin("t")).await;
        }
        let mut results = kv.query(all_keys(&b), None).unwrap();
        let first = results.next().await.unwrap().unwrap();
        assert!(first.len() < 1200, "batches are bounded");
        for n in 0..1200 {
            put(&kv, &b, format!("l{n:04}"), "f_bin", bin("t")).await;
        }
        assert_eq!(first.len() + rest(results).await.unwrap().len(), 1200);
    }
}

/// More queries than a store has snapshots, none of which is read to its end: other work goes on,
/// and so do they. No key that existed all the time is missing or comes twice.
#[tokio::test]
async fn queries_that_wait_for_their_clients_give_their_snapshots_back() {
    for opener in [stores::memory, stores::bitcask, stores::leveled, stores::leveldb] {
        let dir = stores::scratch_dir();
        let (kv, b) = (open(dir.path(), opener), Bucket::untyped("b"));
        // More of them than a page in each partition.
        for n in 0..3000 {
            put(&kv, &b, format!("k{n:04}"), "f_bin", bin(format!("t{n:04}"))).await;
        }
        let mut unread = Vec::new();
        for at in 0..100 {
            let query = if at % 2 == 0 { all_keys(&b) } else { terms(&b, "f_bin", bin("t"), bin("u")) };
            let mut results = kv.query(query, None).unwrap();
            let first = results.next().await.unwrap().unwrap();
            assert!(first.len() < 3000, "batches are bounded");
            unread.push((results, first));
        }
        for n in 0..1200 {
            put(&kv, &b, format!("l{n:04}"), "f_bin", bin(format!("a{n:04}"))).await;
        }
        let mut listing = kv.list_keys(&b, None).unwrap();
        let mut listed = 0;
        while let Some(names) = listing.next().await {
            listed += names.unwrap().len();
        }
        assert_eq!(listed, 4200);
        // They go on by turns, and take each other's snapshots.
        let mut ended = 0;
        while ended < unread.len() {
            ended = 0;
            for (results, all) in &mut unread {
                match results.next().await {
                    Some(batch) => all.extend(batch.unwrap()),
                    None => ended += 1,
                }
            }
        }
        for (_, all) in unread {
            let keys: Vec<_> = all.iter().map(|found| &found.key[..]).filter(|key| key.starts_with(b"k")).collect();
            assert!(all.is_sorted_by(|a, b| (&a.term, &a.key) < (&b.term, &b.key)), "in order, none twice");
            assert_eq!(keys.len(), 3000);
        }
    }
}

#[tokio::test]
async fn tombstones_show_where_they_were_asked_for_and_allowed() {
    for shows_tombstones in [false, true] {
        let queries = QueryConfig { shows_tombstones, ..QueryConfig::default() };
        let node = Node::configured(|c| c.queries = queries);
        for key in ["a", "b"] {
            node.put(key, "v", VectorClock::new()).await.unwrap();
        }
        node.delete("a").await.unwrap();
        let keys = IndexQuery { shows_tombstones: true, ..all_keys(&support::bucket()) };
        assert_eq!(found(&node.kv, keys).await.len(), 1 + usize::from(shows_tombstones));
        assert_eq!(found(&node.kv, all_keys(&support::bucket())).await.len(), 1);
    }
}

#[tokio::test]
async fn a_query_is_given_its_time_or_the_configured_one() {
    let queries = QueryConfig { timeout: Duration::from_nanos(1), ..QueryConfig::default() };
    let node = Node::configured(|c| c.queries = queries);
    node.put("k", "v", VectorClock::new()).await.unwrap();
    let ask = |limit| rest(node.kv.query(all_keys(&support::bucket()), limit).unwrap());
    assert_eq!(ask(None).await, Err(Error::Timeout));
    assert_eq!(ask(Some(Duration::ZERO)).await.unwrap().len(), 1, "zero is no limit");
    assert_eq!(ask(Some(PATIENCE)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn queries_are_counted() {
    let node = Node::start();
    for n in 0..1000 {
        node.put(&format!("k{n}"), "v", VectorClock::new()).await.unwrap();
    }
    assert_eq!(found(&node.kv, all_keys(&support::bucket())).await.len(), 1000);
    let mut left = node.kv.query(all_keys(&support::bucket()), None).unwrap();
    left.next().await.unwrap().unwrap();
    assert_eq!(node.stat("index_fsm_active"), 1);
    drop(left);
    let missing = Bucket::typed("none", "b");
    assert_eq!(node.kv.query(all_keys(&missing), None).err(), Some(Error::NoType(missing)));
    let counted = ["index_fsm_active", "index_fsm_create", "index_fsm_complete", "index_fsm_create_error"];
    assert_eq!(counted.map(|name| node.stat(name)), [0, 2, 1, 1]);
    assert_eq!((node.stat("index_fsm_results_100"), node.stat("vnode_index_reads_total")), (1000, 128));
}

#[tokio::test]
async fn writes_of_index_entries_are_counted() {
    const NAMES: [&str; 4] = [
        "vnode_index_writes_total",
        "vnode_index_writes_postings_total",
        "vnode_index_deletes_total",
        "vnode_index_deletes_postings_total",
    ];
    let node = Node::start();
    let entries = |texts: &[&'static str]| {
        texts.iter().map(|text| IndexEntry { field: "f_bin".into(), term: bin(*text) }).collect::<Vec<_>>()
    };
    node.put("plain", "v", VectorClock::new()).await.unwrap();
    node.put("plain", "v2", VectorClock::new()).await.unwrap();
    assert_eq!(NAMES.map(|name| node.stat(name)), [0; 4], "objects without entries");
    let put =
        |texts: &[&'static str]| node.kv.put(with_entries(&support::bucket(), "k", entries(texts), VectorClock::new()));
    put(&["a", "b", "b"]).await.unwrap();
    assert_eq!(NAMES.map(|name| node.stat(name)), [1, 2, 0, 0], "an entry counts once");
    put(&["b", "c", "d"]).await.unwrap();
    assert_eq!(NAMES.map(|name| node.stat(name)), [2, 4, 0, 1], "what stays is neither added nor removed");
    node.delete("k").await.unwrap();
    assert_eq!(NAMES.map(|name| node.stat(name)), [2, 4, 1, 4]);
    put(&["a"]).await.unwrap();
    put(&[]).await.unwrap();
    assert_eq!(NAMES.map(|name| node.stat(name)), [4, 5, 1, 5], "a value without entries replaces one with some");
    node.delete("plain").await.unwrap();
    assert_eq!(NAMES.map(|name| node.stat(name)), [4, 5, 1, 5]);
}

/// Expired versions are in no answer, whether they were swept or not.
#[tokio::test]
async fn what_has_expired_is_not_found() {
    use ombak_storage::fs::RealFs;
    use ombak_storage::{
        BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveledFactory, MemoryConfig, MemoryFactory,
    };
    use std::sync::Arc;
    let dir = stores::scratch_dir();
    let journal = JournalConfig { expiry_secs: Some(1), ..JournalConfig::default() };
    let (fs, terms_of) = (Arc::new(RealFs), ombak_kv::head_terms);
    let order = LedgerConfig::default();
    let backends: [Arc<dyn BackendFactory>; 3] = [
        Arc::new(MemoryFactory::with_terms(MemoryConfig { ttl_secs: Some(1), ..MemoryConfig::default() }, terms_of())),
        Arc::new(BitcaskFactory::with_terms(fs.clone(), dir.path().join("b"), journal, &order, terms_of()).unwrap()),
        Arc::new(LeveledFactory::new(fs, dir.path().join("l"), journal, order, terms_of()).unwrap()),
    ];
    let nodes = backends.map(|backend| Node::configured(|c| c.backend = backend));
    let b = support::bucket();
    for node in &nodes {
        put(&node.kv, &b, "k", "f_bin", bin("t")).await;
    }
    for node in &nodes {
        let deadline = Instant::now() + PATIENCE;
        for query in [terms(&b, "f_bin", bin("t"), bin("t")), all_keys(&b)] {
            while !found(&node.kv, query.clone()).await.is_empty() {
                assert!(Instant::now() < deadline, "{} still finds it", query.bucket.name.escape_ascii());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}
