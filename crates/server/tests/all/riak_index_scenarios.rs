//! Scenarios from Riak's own tests of secondary indexes that a single node can run, under their
//! original names. They run on every backend and over both interfaces (docs/riak/riak-test.md §2).

use crate::support::{DEADLINE, Home, Node, ask, pause};
use bytes::Bytes;
use ombak_client::messages::rpb_index_req::IndexQueryType;
use ombak_client::messages::{
    RpbContent, RpbCsBucketReq, RpbCsBucketResp, RpbIndexReq, RpbIndexResp, RpbPair, RpbPutReq,
};
use ombak_client::{Client, code};
use ombak_types::Bucket;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

const BACKENDS: [&str; 5] = [
    "storage_backend = bitcask",
    "storage_backend = leveled",
    "storage_backend = leveldb\nleveldb.maximum_memory = 64MB",
    "storage_backend = memory",
    "storage_backend = multi\nmulti_backend.default = main\nmulti_backend.main.storage_backend = leveled\n\
     multi_backend.other.storage_backend = memory",
];

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// An index query, for either interface.
#[derive(Clone, Debug, Default)]
struct Query {
    index: String,
    from: String,
    /// The end of the range. Without it, the query is for a single term.
    to: Option<String>,
    has_terms: bool,
    sorts: Option<bool>,
    pattern: Option<String>,
    results_max: Option<usize>,
    continuation: Option<String>,
    timeout_ms: Option<u32>,
}

fn exact(index: &str, term: &str) -> Query {
    Query { index: index.into(), from: term.into(), ..Query::default() }
}

fn range(index: &str, from: &str, to: &str) -> Query {
    Query { to: Some(to.into()), ..exact(index, from) }
}

impl Query {
    fn with_terms(self) -> Self {
        Self { has_terms: true, ..self }
    }

    fn matching(self, pattern: &str) -> Self {
        Self { pattern: Some(pattern.into()), ..self }
    }

    fn message(&self, stream: bool) -> RpbIndexReq {
        let (qtype, key) = match &self.to {
            None => (IndexQueryType::Eq, Some(bytes(&self.from))),
            Some(_) => (IndexQueryType::Range, None),
        };
        RpbIndexReq {
            bucket: "b".into(),
            index: bytes(&self.index),
            qtype: qtype.into(),
            key,
            range_min: self.to.as_ref().map(|_| bytes(&self.from)),
            range_max: self.to.as_deref().map(bytes),
            return_terms: self.has_terms.then_some(true),
            stream: stream.then_some(true),
            max_results: self.results_max.map(|max| max as u32),
            continuation: self.continuation.as_deref().map(bytes),
            timeout: self.timeout_ms,
            term_regex: self.pattern.as_deref().map(bytes),
            pagination_sort: self.sorts,
            ..RpbIndexReq::default()
        }
    }

    fn path(&self, stream: bool) -> String {
        let to = self.to.as_ref().map(|to| format!("/{to}")).unwrap_or_default();
        let mut path = format!("/buckets/b/index/{}/{}{to}?return_terms={}", self.index, self.from, self.has_terms);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                path += &format!("&{name}={}", value.replace('+', "%2B").replace('=', "%3D"));
            }
        };
        add("stream", stream.then(|| "true".into()));
        add("pagination_sort", self.sorts.map(|sorts| sorts.to_string()));
        add("term_regex", self.pattern.clone());
        add("max_results", self.results_max.map(|max| max.to_string()));
        add("continuation", self.continuation.clone());
        add("timeout", self.timeout_ms.map(|limit| limit.to_string()));
        path
    }
}

/// The result of a query: pairs of term and key. The terms are missing if they were not requested.
#[derive(Debug, Default, PartialEq)]
struct Found {
    entries: Vec<(Option<String>, String)>,
    continuation: Option<String>,
}

impl Found {
    fn keys(&self) -> Vec<&str> {
        self.entries.iter().map(|(_, key)| key.as_str()).collect()
    }

    fn pairs(&self) -> Vec<(&str, &str)> {
        self.entries.iter().map(|(term, key)| (term.as_deref().expect("a term"), key.as_str())).collect()
    }

    fn add_message(&mut self, part: RpbIndexResp) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        self.entries.extend(part.keys.iter().map(|key| (None, text(key))));
        let pairs = part.results.iter().map(|pair| (Some(text(&pair.key)), text(pair.value.as_ref().expect("a key"))));
        self.entries.extend(pairs);
        self.continuation = part.continuation.map(|place| text(&place));
    }

    fn add_document(&mut self, part: &Value) {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        for key in part["keys"].as_array().into_iter().flatten() {
            self.entries.push((None, text(key)));
        }
        for pair in part["results"].as_array().into_iter().flatten() {
            let (term, key) = pair.as_object().expect("an object").iter().next().expect("a pair");
            self.entries.push((Some(term.clone()), text(key)));
        }
        self.continuation = part.get("continuation").map(text);
    }
}

/// The body of an answer, which may be chunked.
fn body(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").expect("a head");
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return rest.to_owned();
    }
    let mut out = String::new();
    loop {
        let (length, tail) = rest.split_once("\r\n").expect("a chunk");
        let length = usize::from_str_radix(length, 16).expect("a length");
        if length == 0 {
            return out;
        }
        out += &tail[..length];
        rest = &tail[length + 2..];
    }
}

/// The JSON documents of a multipart answer.
fn documents(answer: &str) -> Vec<Value> {
    let body = body(answer);
    body.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A node on one backend, with a Protocol Buffers connection to it.
struct Riak {
    home: Home,
    node: Node,
    pb: Client,
}

impl Riak {
    async fn start(settings: &str) -> Self {
        let home = Home::new(settings);
        let node = home.start();
        let pb = Client::connect(node.pb.as_str()).await.unwrap();
        Self { home, node, pb }
    }

    async fn put(&mut self, key: &str, entries: &[(&str, &str)]) {
        self.send_put(key, entries);
        self.pb.receive(code::PUT_RESP).await.unwrap();
    }

    /// Sends a put without waiting for the answer.
    fn send_put(&mut self, key: &str, entries: &[(&str, &str)]) {
        let indexes = entries.iter().map(|(field, term)| RpbPair { key: bytes(field), value: Some(bytes(term)) });
        let content = RpbContent { value: bytes(key), indexes: indexes.collect(), ..RpbContent::default() };
        let request = RpbPutReq {
            bucket: Some("b".into()),
            key: Some(bytes(key)),
            content: Some(content),
            ..RpbPutReq::default()
        };
        self.pb.send(code::PUT_REQ, &request);
    }

    /// From riak_test `secondary_index_tests`: objects with a text field, a number field, and a
    /// field with the same value in all objects.
    async fn put_numbered(&mut self, numbers: Range<u32>) {
        for n in numbers {
            let (key, number) = (object(n), n.to_string());
            self.put(&key, &[("field1_bin", &format!("val{n:02}")), ("field2_int", &number), ("all_bin", "all")]).await;
        }
    }

    async fn delete(&mut self, key: &str) {
        let bucket = Bucket::untyped("b");
        let clock = self.pb.get(&bucket, key.as_bytes()).await.unwrap().expect("it is there").vclock;
        self.pb.delete(&bucket, key.as_bytes(), Some(clock)).await.unwrap();
    }

    async fn found_over_pb(&mut self, query: &Query, stream: bool) -> Found {
        let mut found = Found::default();
        self.pb.send(code::INDEX_REQ, &query.message(stream));
        loop {
            let part = RpbIndexResp::decode(self.pb.receive(code::INDEX_RESP).await.unwrap()).unwrap();
            let is_last = !stream || part.done == Some(true);
            found.add_message(part);
            if is_last {
                return found;
            }
        }
    }

    fn found_over_http(&self, query: &Query, stream: bool) -> Found {
        let answer = ask(&self.node, "GET", &query.path(stream), "", "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{query:?}: {answer}");
        let mut found = Found::default();
        if stream {
            documents(&answer).iter().for_each(|part| found.add_document(part));
        } else {
            found.add_document(&serde_json::from_str(&body(&answer)).expect("JSON"));
        }
        found
    }

    /// The result of a query, which must be the same in all four ways to ask for it.
    async fn found(&mut self, query: &Query) -> Found {
        let found = self.found_over_pb(query, false).await;
        assert_eq!(self.found_over_pb(query, true).await, found, "{query:?}, streamed");
        for stream in [false, true] {
            assert_eq!(self.found_over_http(query, stream), found, "{query:?} over HTTP, streamed: {stream}");
        }
        found
    }

    async fn keys(&mut self, query: &Query) -> Vec<String> {
        self.found(query).await.keys().into_iter().map(str::to_owned).collect()
    }

    /// The whole result, fetched page by page. Both interfaces must return the same continuations.
    async fn in_pages(&mut self, query: &Query, page: usize) -> Found {
        let mut all = Found::default();
        let mut query = Query { results_max: Some(page), ..query.clone() };
        loop {
            let found = self.found(&query).await;
            assert_eq!(found.continuation.is_some(), found.entries.len() == page, "a full page goes on, no other");
            all.entries.extend(found.entries);
            query.continuation = found.continuation;
            if query.continuation.is_none() {
                return all;
            }
        }
    }

    fn stop(self) {
        self.node.stop();
        self.home.assert_no_errors_logged();
    }
}

fn object(n: u32) -> String {
    format!("obj{n:02}")
}

fn objects(numbers: Range<u32>) -> Vec<String> {
    numbers.map(object).collect()
}

#[tokio::test]
async fn secondary_index_tests() {
    for settings in BACKENDS {
        let mut riak = Riak::start(&format!("{settings}\ndelete_mode = immediate")).await;
        riak.put_numbered(0..20).await;
        let queries = [
            (exact("field1_bin", "val05"), objects(5..6)),
            (exact("field2_int", "5"), objects(5..6)),
            (exact("all_bin", "all"), objects(0..20)),
            (range("field1_bin", "val10", "val14"), objects(10..15)),
            (range("field2_int", "8", "11"), objects(8..12)),
            (range("$key", "obj06", "obj08"), objects(6..9)),
            (range("$key", "obj06", "obj06"), objects(6..7)),
            (range("field1_bin", "val00", "val19").matching("l0[2-4]$"), objects(2..5)),
            (range("$key", "obj00", "obj19").matching("j1"), objects(10..20)),
        ];
        for (query, expected) in queries {
            for sorts in [None, Some(false), Some(true)] {
                let query = Query { sorts, ..query.clone() };
                assert_eq!(riak.keys(&query).await, expected, "{settings}: {query:?}");
            }
        }
        // The object is deleted and then written again.
        riak.delete("obj05").await;
        for query in [exact("field1_bin", "val05"), exact("field2_int", "5"), exact("$key", "obj05")] {
            assert_eq!(riak.keys(&query).await, [] as [&str; 0], "{settings}: {query:?}");
        }
        riak.put_numbered(5..6).await;
        assert_eq!(riak.keys(&range("field2_int", "4", "6")).await, objects(4..7), "{settings}");
        siblings_are_found_under_the_terms_of_each(&mut riak).await;
        numbers_have_no_bounds(&mut riak).await;
        riak.stop();
    }
}

async fn siblings_are_found_under_the_terms_of_each(riak: &mut Riak) {
    let keeps = ask(
        &riak.node,
        "PUT",
        "/buckets/b/props",
        "Content-Type: application/json\r\n",
        r#"{"props":{"allow_mult":true}}"#,
    );
    assert!(keeps.starts_with("HTTP/1.1 204"), "{keeps}");
    riak.put("sibling", &[("sib_bin", "one"), ("sib_bin", "both")]).await;
    riak.put("sibling", &[("sib_bin", "two"), ("sib_bin", "both")]).await;
    for term in ["one", "two", "both"] {
        assert_eq!(riak.keys(&exact("sib_bin", term)).await, ["sibling"]);
    }
}

async fn numbers_have_no_bounds(riak: &mut Riak) {
    let numbers = ["-18446744073709551617", "-1", "0", "1", "9223372036854775807", "18446744073709551617"];
    for (n, number) in numbers.iter().enumerate().rev() {
        riak.put(&format!("big{n}"), &[("big_int", number)]).await;
    }
    let found = riak.found(&range("big_int", numbers[0], numbers[5]).with_terms()).await;
    assert_eq!(found.pairs().into_iter().map(|(term, _)| term).collect::<Vec<_>>(), numbers);
}

#[tokio::test]
async fn verify_2i_delete() {
    for settings in BACKENDS {
        let mut riak = Riak::start(&format!("{settings}\ndelete_mode = keep\ndollarkey_readtombs = enabled")).await;
        riak.put_numbered(0..3).await;
        riak.delete("obj01").await;
        assert_eq!(riak.keys(&range("$key", "obj00", "obj09")).await, objects(0..3), "{settings}");
        assert_eq!(riak.keys(&range("field2_int", "0", "9")).await, ["obj00", "obj02"], "{settings}");
        riak.stop();

        let mut riak = Riak::start(&format!("{settings}\ndelete_mode = 100ms\ndollarkey_readtombs = enabled")).await;
        riak.put_numbered(0..3).await;
        riak.delete("obj01").await;
        let deadline = Instant::now() + DEADLINE;
        let query = range("$key", "obj00", "obj09");
        while riak.found_over_pb(&query, false).await.entries.len() > 2 {
            assert!(Instant::now() < deadline, "{settings}: the tombstone stays");
            pause(Duration::from_millis(10));
        }
        assert_eq!(riak.keys(&query).await, ["obj00", "obj02"], "{settings}");
        riak.stop();
    }
}

#[tokio::test]
async fn verify_2i_hugeindex() {
    for settings in BACKENDS {
        let mut riak = Riak::start(settings).await;
        let huge = "x".repeat(8192);
        let headers = |term: &str| format!("Content-Type: text/plain\r\nX-Riak-Index-huge_bin: {term}\r\n");
        let stored = ask(&riak.node, "PUT", "/buckets/b/keys/http", &headers(&huge), "v");
        assert!(stored.starts_with("HTTP/1.1 204"), "{settings}: {stored}");
        riak.put("pb", &[("huge_bin", &huge)]).await;
        assert_eq!(riak.keys(&exact("huge_bin", &huge)).await, ["http", "pb"], "{settings}");
        let refused = ask(&riak.node, "PUT", "/buckets/b/keys/larger", &headers(&"x".repeat(300 * 1024)), "v");
        assert!(refused.starts_with("HTTP/1.1 431"), "{settings}: {}", &refused[..refused.len().min(300)]);
        riak.stop();
    }
}

#[tokio::test]
async fn verify_2i_limit() {
    for settings in BACKENDS {
        let mut riak = Riak::start(settings).await;
        riak.put_numbered(0..20).await;
        riak.put("many", &[("many_bin", "a"), ("many_bin", "b"), ("many_bin", "c"), ("field1_bin", "val00")]).await;
        riak.put("more", &[("many_bin", "b")]).await;
        let queries = [
            range("$key", "obj00", "obj19"),
            exact("field1_bin", "val00"),
            exact("field2_int", "7"),
            exact("all_bin", "all"),
            exact("$bucket", "b"),
            range("field1_bin", "val00", "val19").with_terms(),
            range("field2_int", "0", "19").with_terms(),
            range("many_bin", "a", "c").with_terms(),
        ];
        for query in queries {
            let whole = riak.found(&query).await;
            assert!(!whole.entries.is_empty());
            for page in [1, 2, 7] {
                assert_eq!(riak.in_pages(&query, page).await, whole, "{settings}: {query:?} in pages of {page}");
            }
        }
        let found = riak.in_pages(&range("many_bin", "a", "c").with_terms(), 2).await;
        assert_eq!(found.pairs(), [("a", "many"), ("b", "many"), ("b", "more"), ("c", "many")], "{settings}");
        riak.stop();
    }
}

#[tokio::test]
async fn verify_2i_returnterms() {
    for settings in BACKENDS {
        let mut riak = Riak::start(settings).await;
        riak.put_numbered(0..12).await;
        let found = riak.found(&range("field1_bin", "val02", "val03").with_terms()).await;
        assert_eq!(found.pairs(), [("val02", "obj02"), ("val03", "obj03")], "{settings}");
        let found = riak.found(&range("field2_int", "9", "10").with_terms()).await;
        assert_eq!(found.pairs(), [("9", "obj09"), ("10", "obj10")], "{settings}");
        for query in [exact("field1_bin", "val02"), range("$key", "obj02", "obj02"), exact("$bucket", "b")] {
            let without = riak.found(&query).await;
            assert!(!without.entries.is_empty());
            assert_eq!(riak.found(&query.with_terms()).await, without, "{settings}");
        }
        riak.stop();
    }
}

/// The terms come in order, whatever the order of writing, also if the stream has more than one
/// part.
#[tokio::test]
async fn verify_2i_stream() {
    const COUNT: u32 = 1500;
    for settings in BACKENDS {
        let mut riak = Riak::start(settings).await;
        for n in 0..COUNT {
            let number = n * 7 % COUNT;
            riak.send_put(&format!("k{n:04}"), &[("n_int", &number.to_string()), ("t_bin", &format!("t{number:04}"))]);
        }
        for _ in 0..COUNT {
            riak.pb.receive(code::PUT_RESP).await.unwrap();
        }
        let found = riak.found(&range("n_int", "0", &COUNT.to_string()).with_terms()).await;
        let terms: Vec<u32> = found.pairs().into_iter().map(|(term, _)| term.parse().expect("a number")).collect();
        assert_eq!(terms, (0..COUNT).collect::<Vec<_>>(), "{settings}");
        let by_text = riak.found(&range("t_bin", "t", "u")).await;
        assert_eq!(by_text.keys(), found.keys(), "{settings}");
        let keys: Vec<String> = (0..COUNT).map(|n| format!("k{n:04}")).collect();
        assert_eq!(riak.keys(&exact("$bucket", "b")).await, keys, "{settings}");
        assert_eq!(riak.keys(&range("$key", "k", "l")).await, keys, "{settings}");
        riak.stop();
    }
}

#[tokio::test]
async fn verify_2i_timeout() {
    const COUNT: u32 = 6000;
    for settings in BACKENDS {
        let mut riak = Riak::start(&format!("{settings}\nsecondary_index_timeout = 1")).await;
        for n in 0..COUNT {
            riak.send_put(&format!("k{n:04}"), &[("f_bin", "x")]);
        }
        for _ in 0..COUNT {
            riak.pb.receive(code::PUT_RESP).await.unwrap();
        }
        for timeout_ms in [None, Some(1)] {
            let query = Query { timeout_ms, ..exact("f_bin", "x") };
            riak.pb.send(code::INDEX_REQ, &query.message(false));
            let late = riak.pb.receive(code::INDEX_RESP).await.unwrap_err();
            assert!(late.to_string().contains("timeout"), "{settings}: {late}");
            let late = ask(&riak.node, "GET", &query.path(false), "", "");
            assert!(late.starts_with("HTTP/1.1 503") && late.ends_with("request timed out\n"), "{settings}: {late}");
            let parts = documents(&ask(&riak.node, "GET", &query.path(true), "", ""));
            assert_eq!(parts.last().expect("a part")["error"], "timeout", "{settings}");
        }
        let query = Query { timeout_ms: Some(0), ..exact("f_bin", "x") };
        assert_eq!(riak.keys(&query).await.len(), COUNT as usize, "{settings}: zero is no limit");
        riak.stop();
    }
}

#[tokio::test]
async fn verify_cs_bucket() {
    for settings in BACKENDS {
        let mut riak = Riak::start(&format!("{settings}\ndelete_mode = immediate")).await;
        riak.put_numbered(0..20).await;
        let from =
            |n: u32| RpbCsBucketReq { bucket: "b".into(), start_key: object(n).into(), ..RpbCsBucketReq::default() };
        let to = |n: u32, request| RpbCsBucketReq { end_key: Some(object(n).into()), ..request };
        let (after, through) = (Some(false), Some(true));
        for (request, expected) in [
            (from(0), 0..20),
            (from(17), 17..20),
            (to(5, from(3)), 3..5),
            (RpbCsBucketReq { start_incl: after, ..to(5, from(3)) }, 4..5),
            (RpbCsBucketReq { end_incl: through, ..to(5, from(3)) }, 3..6),
            (RpbCsBucketReq { start_incl: after, end_incl: through, ..to(5, from(3)) }, 4..6),
            (to(3, from(3)), 0..0),
            (to(3, from(5)), 0..0),
        ] {
            for page in [None, Some(1), Some(3)] {
                let request = RpbCsBucketReq { max_results: page, ..request.clone() };
                assert_eq!(cs_bucket(&mut riak.pb, request).await, objects(expected.clone()), "{settings}");
            }
        }
        riak.delete("obj04").await;
        assert_eq!(cs_bucket(&mut riak.pb, to(6, from(3))).await, ["obj03", "obj05"], "{settings}");
        riak.stop();
    }
}

/// If query logging is enabled, the log has a line for each query with its bucket, index, number of
/// results and outcome. Terms and keys do not appear in the log.
#[tokio::test]
async fn queries_are_logged() {
    let mut riak = Riak::start("log_index_fsm = enabled").await;
    riak.put_numbered(0..3).await;
    riak.found_over_http(&exact("field1_bin", "val01"), false);
    riak.found_over_pb(&range("$key", "obj00", "obj09"), true).await;
    let told = |home: &Home| -> BTreeSet<String> {
        let lines = home.logged("INFO").into_iter().filter(|line| line.contains("index query"));
        lines
            .map(|line| serde_json::from_str(&line).expect("JSON"))
            .map(|line: Value| format!("{} {} {}", line["index"], line["results"], line["outcome"]))
            .collect()
    };
    // The answer may arrive before its log line is written.
    let deadline = Instant::now() + DEADLINE;
    while told(&riak.home).len() < 2 {
        assert!(Instant::now() < deadline, "{:?}", told(&riak.home));
        pause(Duration::from_millis(10));
    }
    let expected = ["\"field1_bin\" 1 \"complete\"", "\"$key\" 3 \"complete\""].map(str::to_owned);
    assert_eq!(told(&riak.home), expected.into());
    riak.stop();
}

/// Reads the keys of the objects in a range, page by page. Each object must have its own body.
async fn cs_bucket(pb: &mut Client, mut request: RpbCsBucketReq) -> Vec<String> {
    let mut keys = Vec::new();
    loop {
        pb.send(code::CS_BUCKET_REQ, &request);
        let continuation = loop {
            let part = RpbCsBucketResp::decode(pb.receive(code::CS_BUCKET_RESP).await.unwrap()).unwrap();
            for found in part.objects {
                assert_eq!(found.object.content[0].value, found.key, "a value is its key here");
                assert!(found.object.vclock.is_some());
                keys.push(String::from_utf8(found.key.to_vec()).unwrap());
            }
            if part.done == Some(true) {
                break part.continuation;
            }
        };
        if continuation.is_none() {
            return keys;
        }
        request.continuation = continuation;
    }
}
