//! Index queries as clients send them (docs/riak/pb-api.md §10, docs/riak/riak-test.md §2).

use super::*;
use crate::jobs::{JobClass, JobSwitches};
use bytes::Bytes;
use ombak_kv::{DeleteMode, QueryConfig};
use ombak_proto::messages::rpb_index_req::IndexQueryType;
use ombak_proto::messages::{RpbContent, RpbDelReq, RpbIndexReq, RpbIndexResp, RpbPair, RpbPutReq};
use serde_json::json;

fn exact(index: &str, key: &str) -> RpbIndexReq {
    let key = Some(Bytes::copy_from_slice(key.as_bytes()));
    RpbIndexReq { key, ..named(index, IndexQueryType::Eq) }
}

fn range(index: &str, from: &str, to: &str) -> RpbIndexReq {
    let text = |text: &str| Some(Bytes::copy_from_slice(text.as_bytes()));
    RpbIndexReq { range_min: text(from), range_max: text(to), ..named(index, IndexQueryType::Range) }
}

fn named(index: &str, qtype: IndexQueryType) -> RpbIndexReq {
    let index = Bytes::copy_from_slice(index.as_bytes());
    RpbIndexReq { bucket: "b".into(), index, qtype: qtype.into(), ..RpbIndexReq::default() }
}

fn texts(list: &[Bytes]) -> Vec<&str> {
    list.iter().map(|text| std::str::from_utf8(text).unwrap()).collect()
}

fn pairs(list: &[RpbPair]) -> Vec<(&str, &str)> {
    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }
    list.iter().map(|pair| (text(&pair.key), text(pair.value.as_deref().unwrap()))).collect()
}

impl Wire {
    async fn put_indexed(&mut self, key: &str, indexes: &[(&str, &str)]) {
        self.put_indexed_in("default", key, indexes).await;
    }

    async fn put_indexed_in(&mut self, bucket_type: &str, key: &str, indexes: &[(&str, &str)]) {
        let copy = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let indexes = indexes.iter().map(|(name, value)| RpbPair { key: copy(name), value: Some(copy(value)) });
        let content = RpbContent { value: "v".into(), indexes: indexes.collect(), ..RpbContent::default() };
        let request = RpbPutReq {
            bucket: Some("b".into()),
            key: Some(copy(key)),
            content: Some(content),
            r#type: Some(copy(bucket_type)),
            ..RpbPutReq::default()
        };
        self.send(code::PUT_REQ, &request).await;
        self.expect_empty(code::PUT_RESP).await;
    }

    async fn index(&mut self, request: &RpbIndexReq) -> RpbIndexResp {
        let answer: RpbIndexResp = self.ask(code::INDEX_REQ, request, code::INDEX_RESP).await;
        assert_eq!(answer.done, None, "one answer has no end");
        answer
    }

    /// The parts of a stream, merged into one answer.
    async fn index_stream(&mut self, request: &RpbIndexReq) -> RpbIndexResp {
        let request = RpbIndexReq { stream: Some(true), ..request.clone() };
        self.send(code::INDEX_REQ, &request).await;
        let mut all = RpbIndexResp::default();
        loop {
            let part: RpbIndexResp = self.expect(code::INDEX_RESP).await;
            let is_empty = part.keys.is_empty() && part.results.is_empty();
            assert_eq!(is_empty, part.done == Some(true), "the end comes alone, and nothing before it is empty");
            if part.done == Some(true) {
                return RpbIndexResp { continuation: part.continuation, ..all };
            }
            assert_eq!(part.continuation, None);
            all.keys.extend(part.keys);
            all.results.extend(part.results);
        }
    }

    /// The result of a query, which must be the same in one answer, as a stream, and in pages of
    /// any size.
    async fn found(&mut self, request: &RpbIndexReq) -> RpbIndexResp {
        let whole = self.index(request).await;
        assert_eq!(self.index_stream(request).await, whole);
        for page in [1, 2, 5, 1000] {
            for streams in [false, true] {
                let mut all = RpbIndexResp::default();
                let mut request = RpbIndexReq { max_results: Some(page), ..request.clone() };
                loop {
                    let part = if streams { self.index_stream(&request).await } else { self.index(&request).await };
                    let count = part.keys.len() + part.results.len();
                    assert_eq!(part.continuation.is_some(), count == page as usize, "a full page goes on");
                    all.keys.extend(part.keys);
                    all.results.extend(part.results);
                    request.continuation = part.continuation;
                    if request.continuation.is_none() {
                        break;
                    }
                }
                assert_eq!(all, whole, "in pages of {page}");
            }
        }
        whole
    }

    async fn keys_found(&mut self, request: &RpbIndexReq) -> Vec<String> {
        let found = self.found(request).await;
        assert!(found.results.is_empty());
        texts(&found.keys).into_iter().map(str::to_owned).collect()
    }
}

/// From riak_test `secondary_index_tests`: stores twenty objects, each with a text and a number,
/// and one object with numbers of any size.
async fn twenty(wire: &mut Wire, bucket_type: &str) {
    for n in 0..20 {
        let (key, text, number) = (format!("obj{n:02}"), format!("val{n:02}"), n.to_string());
        let indexes = [("field1_bin", text.as_str()), ("FIELD2_int", &number), ("field3_bin", "same")];
        wire.put_indexed_in(bucket_type, &key, &indexes).await;
    }
}

#[tokio::test]
pub(super) async fn exact_and_range_queries_find_what_matches_in_order() {
    let node = Node::start().await;
    node.bucket_type("t", json!({})).await;
    let mut wire = node.connect().await;
    for bucket_type in ["default", "t"] {
        twenty(&mut wire, bucket_type).await;
        let typed = |request| RpbIndexReq { r#type: Some(bucket_type.to_owned().into()), ..request };
        let objects = |numbers: std::ops::Range<u32>| numbers.map(|n| format!("obj{n:02}")).collect::<Vec<_>>();
        for (request, expected) in [
            (exact("field1_bin", "val07"), objects(7..8)),
            (exact("FIELD1_BIN", "val07"), objects(7..8)),
            (exact("field2_int", "7"), objects(7..8)),
            (exact("field2_int", "+07"), objects(7..8)),
            (exact("field3_bin", "same"), objects(0..20)),
            (exact("field3_bin", "other"), vec![]),
            (exact("other_bin", "same"), vec![]),
            (range("field1_bin", "val03", "val05"), objects(3..6)),
            (range("field1_bin", "val03", "val04zzz"), objects(3..5)),
            (range("field2_int", "8", "11"), objects(8..12)),
            (range("field2_int", "-5", "1"), objects(0..2)),
            (range("field2_int", "11", "8"), vec![]),
            (range("field1_bin", "z", "a"), vec![]),
            (range("$key", "obj03", "obj05"), objects(3..6)),
            (range("$key", "obj05", "obj03"), vec![]),
            (range("$key", "obj04", "obj04"), objects(4..5)),
            (exact("$key", "obj04"), objects(4..5)),
            (exact("$bucket", "b"), objects(0..20)),
            (range("$bucket", "ignored", ""), objects(0..20)),
            (named("$bucket", IndexQueryType::Range), objects(0..20)),
        ] {
            let request = typed(request);
            assert_eq!(wire.keys_found(&request).await, expected, "{request:?}");
            let sorted = RpbIndexReq { pagination_sort: Some(true), ..request };
            assert_eq!(wire.keys_found(&sorted).await, expected);
        }
    }
}

#[tokio::test]
async fn numbers_of_any_size_are_in_order() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let numbers = [
        "-123456789012345678901234567890",
        "-9223372036854775809",
        "-256",
        "-255",
        "-1",
        "0",
        "1",
        "255",
        "256",
        "18446744073709551616",
        "123456789012345678901234567890",
    ];
    for (n, number) in numbers.iter().enumerate().rev() {
        wire.put_indexed(&format!("k{n:02}"), &[("n_int", number)]).await;
    }
    let request = RpbIndexReq { return_terms: Some(true), ..range("n_int", numbers[0], numbers[10]) };
    let found = wire.found(&request).await;
    let terms: Vec<&str> = pairs(&found.results).into_iter().map(|(term, _)| term).collect();
    assert_eq!(terms, numbers);
    let request = RpbIndexReq { return_terms: Some(true), ..range("n_int", "-9223372036854775808", "-1") };
    assert_eq!(pairs(&wire.found(&request).await.results), [("-256", "k02"), ("-255", "k03"), ("-1", "k04")]);
}

/// The scenario of riak_test `verify_2i_returnterms`.
#[tokio::test]
async fn terms_come_with_ranges_of_fields_only() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    twenty(&mut wire, "default").await;
    let with_terms = |request| RpbIndexReq { return_terms: Some(true), ..request };
    let found = wire.found(&with_terms(range("field1_bin", "val01", "val02"))).await;
    assert_eq!(pairs(&found.results), [("val01", "obj01"), ("val02", "obj02")]);
    let found = wire.found(&with_terms(range("field2_int", "9", "10"))).await;
    assert_eq!(pairs(&found.results), [("9", "obj09"), ("10", "obj10")]);
    for request in [exact("field1_bin", "val01"), range("$key", "obj01", "obj01"), exact("$bucket", "b")] {
        let found = wire.found(&with_terms(request)).await;
        assert!(found.results.is_empty() && !found.keys.is_empty());
    }
}

/// From riak_test `verify_2i_limit`: an object with several terms is found once for each of them,
/// also across pages.
#[tokio::test]
async fn an_object_comes_once_for_each_of_its_terms() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let many = [("f_bin", "a"), ("f_bin", "b"), ("f_bin", "c"), ("f_bin", "b"), ("f_int", "1"), ("f_int", "2")];
    wire.put_indexed("one", &many).await;
    wire.put_indexed("two", &[("f_bin", "b")]).await;
    let request = RpbIndexReq { return_terms: Some(true), ..range("f_bin", "a", "c") };
    let found = wire.found(&request).await;
    assert_eq!(pairs(&found.results), [("a", "one"), ("b", "one"), ("b", "two"), ("c", "one")]);
    assert_eq!(wire.keys_found(&range("f_bin", "a", "c")).await, ["one", "one", "two", "one"]);
    assert_eq!(wire.keys_found(&range("f_int", "0", "9")).await, ["one", "one"]);
}

#[tokio::test]
async fn a_pattern_selects_terms_or_keys() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    twenty(&mut wire, "default").await;
    let matching = |pattern: &'static str, request| RpbIndexReq { term_regex: Some(pattern.into()), ..request };
    for (request, expected) in [
        (matching("^val.[27]$", range("field1_bin", "val00", "val15")), &["obj02", "obj07", "obj12"][..]),
        (matching("0[34]", range("$key", "obj00", "obj03")), &["obj03"]),
        (matching("[89]$", exact("$bucket", "b")), &["obj08", "obj09", "obj18", "obj19"]),
        (matching("nothing", range("field1_bin", "a", "z")), &[]),
        (matching("^same$", exact("field3_bin", "same")), &["obj00"]),
    ] {
        let found = wire.keys_found(&request).await;
        assert_eq!(found[..expected.len()], expected[..], "{request:?}");
        assert_eq!(found.len(), if expected == ["obj00"] { 20 } else { expected.len() });
    }
}

/// From riak_test `secondary_index_tests`: queries reflect writes, deletes and siblings at once.
#[tokio::test]
async fn entries_follow_their_objects() {
    let node = Node::start().await;
    node.bucket_type("sibs", json!({"allow_mult": true})).await;
    let mut wire = node.connect().await;
    wire.put_indexed("k", &[("f_bin", "a"), ("f_bin", "b")]).await;
    wire.put_indexed("k", &[("f_bin", "b"), ("f_bin", "c")]).await;
    assert_eq!(wire.keys_found(&range("f_bin", "a", "c")).await, ["k", "k"]);
    assert!(wire.keys_found(&exact("f_bin", "a")).await.is_empty());
    let delete = RpbDelReq { bucket: Some("b".into()), key: Some("k".into()), ..RpbDelReq::default() };
    wire.send(code::DEL_REQ, &delete).await;
    wire.expect_empty(code::DEL_RESP).await;
    for request in [range("f_bin", "a", "c"), exact("$key", "k"), exact("$bucket", "b")] {
        assert!(wire.keys_found(&request).await.is_empty());
    }
    wire.put_indexed("k", &[("f_bin", "d")]).await;
    assert_eq!(wire.keys_found(&range("f_bin", "a", "z")).await, ["k"]);

    // Siblings are found under the entries of each, and only once under entries that they share.
    wire.put_indexed_in("sibs", "s", &[("f_bin", "one"), ("f_bin", "both")]).await;
    wire.put_indexed_in("sibs", "s", &[("f_bin", "two"), ("f_bin", "both")]).await;
    for term in ["one", "two", "both"] {
        let request = RpbIndexReq { r#type: Some("sibs".into()), ..exact("f_bin", term) };
        assert_eq!(wire.keys_found(&request).await, ["s"], "{term}");
    }
}

/// The scenario of riak_test `verify_2i_delete`.
#[tokio::test]
async fn kept_tombstones_show_under_their_keys_where_configured() {
    for shows_tombstones in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), stores);
        config.ring_size = 8;
        config.delete_mode = DeleteMode::Keep;
        config.queries = QueryConfig { shows_tombstones, ..QueryConfig::default() };
        let node = Node::configured(config, dir, PbConfig::default()).await;
        let mut wire = node.connect().await;
        wire.put_indexed("k", &[("f_bin", "a")]).await;
        let delete = RpbDelReq { bucket: Some("b".into()), key: Some("k".into()), ..RpbDelReq::default() };
        wire.send(code::DEL_REQ, &delete).await;
        wire.expect_empty(code::DEL_RESP).await;
        let expected: &[&str] = if shows_tombstones { &["k"] } else { &[] };
        assert_eq!(wire.keys_found(&range("$key", "a", "z")).await, expected);
        assert!(wire.keys_found(&exact("$bucket", "b")).await.is_empty());
        assert!(wire.keys_found(&exact("f_bin", "a")).await.is_empty());
    }
}

#[tokio::test]
async fn a_query_that_is_none_is_refused_and_the_connection_stays() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let regex = |pattern: &'static str, request| RpbIndexReq { term_regex: Some(pattern.into()), ..request };
    let from = |text: &'static str, request| RpbIndexReq { continuation: Some(text.into()), ..request };
    for (request, text) in [
        (named("f_bin", IndexQueryType::Eq), "Invalid equality query undefined"),
        (named("f_bin", IndexQueryType::Range), "Invalid range query: undefined -> undefined"),
        (
            RpbIndexReq { range_min: Some("a".into()), ..named("f_bin", IndexQueryType::Range) },
            "Invalid range query: <<\"a\">> -> undefined",
        ),
        (exact("zork", "1"), "{unknown_field_type,<<\"zork\">>}"),
        (exact("n_int", "1.5"), "{field_parsing_failed,{<<\"n_int\">>,<<\"1.5\">>}}"),
        (range("n_int", "1", ""), "{field_parsing_failed,{<<\"n_int\">>,<<>>}}"),
        (regex("a", exact("n_int", "1")), "Can not use term regular expression in integer query"),
        (from("zork", range("f_bin", "a", "z")), "{invalid_continuation,<<\"zork\">>}"),
        (from("g20AAAABaw==", range("f_bin", "a", "z")), "{invalid_continuation,<<\"g20AAAABaw==\">>}"),
        (RpbIndexReq { r#type: Some("none".into()), ..exact("f_bin", "a") }, "no_type"),
        (RpbIndexReq { bucket: Bytes::new(), ..exact("f_bin", "a") }, "Bucket cannot be zero-length"),
    ] {
        for stream in [None, Some(true)] {
            let request = RpbIndexReq { stream, ..request.clone() };
            assert_eq!(wire.ask_refused(code::INDEX_REQ, &request).await, text, "{request:?}");
        }
    }
    let text = wire.ask_refused(code::INDEX_REQ, &regex("(", range("f_bin", "a", "z"))).await;
    assert!(text.starts_with("Invalid term regular expression <<\"(\">> : "), "{text}");
    // The error names a feature that Riak's regular expressions have and these do not.
    let text = wire.ask_refused(code::INDEX_REQ, &regex("(?=a)", range("f_bin", "a", "z"))).await;
    assert!(text.contains("look-around"), "{text}");
    wire.ping().await;
}

#[tokio::test]
async fn no_results_are_asked_for_and_none_come() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    wire.put_indexed("k", &[("f_bin", "a")]).await;
    let request = RpbIndexReq { max_results: Some(0), ..exact("f_bin", "a") };
    assert_eq!(wire.index(&request).await, RpbIndexResp::default());
    assert_eq!(wire.index_stream(&request).await, RpbIndexResp::default());
    assert_eq!(wire.index_stream(&exact("f_bin", "none")).await, RpbIndexResp::default());
}

#[tokio::test]
async fn switched_off_queries_are_refused() {
    for (off, stream) in [(JobClass::SecondaryIndex, None), (JobClass::StreamSecondaryIndex, Some(true))] {
        let jobs = JobSwitches::default().with(off, false);
        let node = Node::with(PbConfig { jobs, ..PbConfig::default() }).await;
        let mut wire = node.connect().await;
        let text = wire.ask_refused(code::INDEX_REQ, &RpbIndexReq { stream, ..exact("f_bin", "a") }).await;
        let name = if stream.is_none() { "secondary_index" } else { "stream_secondary_index" };
        assert_eq!(text, format!("Operation '{{riak_kv,{name}}}' is not enabled"));
    }
}

/// The scenario of riak_test `verify_2i_timeout`.
#[tokio::test]
async fn a_query_that_takes_too_long_ends_with_an_error() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    twenty(&mut wire, "default").await;
    // The results fill more than one batch, so that no machine can finish within a millisecond.
    for n in 0..6000 {
        let key = format!("k{n:05}");
        wire.put_indexed(&key, &[("many_bin", "x")]).await;
    }
    let query = |timeout, stream| RpbIndexReq { timeout: Some(timeout), stream, ..exact("many_bin", "x") };
    assert_eq!(wire.ask_refused(code::INDEX_REQ, &query(1, None)).await, "timeout");
    assert_eq!(wire.index(&query(0, None)).await.keys.len(), 6000, "zero is no limit");
    wire.send(code::INDEX_REQ, &query(1, Some(true))).await;
    loop {
        let frame = wire.frame().await.unwrap();
        if frame.code == code::INDEX_RESP {
            continue;
        }
        assert_eq!(error_text(&frame).as_deref(), Some("timeout"));
        break;
    }
    wire.ping().await;
}

#[tokio::test]
pub(super) async fn a_query_ends_with_its_client() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    for n in 0..3000 {
        wire.put_indexed(&format!("k{n:05}"), &[("f_bin", "x")]).await;
    }
    for _ in 0..20 {
        let mut leaver = node.connect().await;
        // Nothing matches, so no failed send can reveal that the client has closed its connection.
        let request = RpbIndexReq { term_regex: Some("none".into()), stream: Some(true), ..exact("f_bin", "x") };
        leaver.send(code::INDEX_REQ, &request).await;
        drop(leaver);
    }
    drop(wire);
    until("no query is left", async || node.stat("index_fsm_active") == 0 && node.connections() == 0).await;
}

/// The server waits for a client that reads slowly and does not collect more results meanwhile.
#[tokio::test]
async fn results_that_nobody_takes_are_not_made() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let key = |n: usize| format!("{n:0>1000}");
    for n in 0..30_000 {
        wire.put_indexed(&key(n), &[]).await;
    }
    wire.send(code::INDEX_REQ, &RpbIndexReq { stream: Some(true), ..exact("$bucket", "b") }).await;
    let first: RpbIndexResp = wire.expect(code::INDEX_RESP).await;
    assert!(!first.keys.is_empty() && first.keys.len() <= 500);
    // An answer of 30 MB does not fit into the buffers of the sockets, so the query cannot end
    // before the client reads.
    assert_eq!((node.stat("index_fsm_active"), node.stat("index_fsm_complete")), (1, 0));
    let mut count = first.keys.len();
    loop {
        let part: RpbIndexResp = wire.expect(code::INDEX_RESP).await;
        count += part.keys.len();
        if part.done == Some(true) {
            break;
        }
    }
    assert_eq!(count, 30_000);
}

#[tokio::test]
async fn an_answer_that_no_frame_can_hold_is_refused() {
    let node = Node::with(PbConfig { frame_bytes_max: 2000, ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    for n in 0..40 {
        wire.put_indexed(&format!("{n:0>100}"), &[("f_bin", "x")]).await;
    }
    let text = wire.ask_refused(code::INDEX_REQ, &exact("f_bin", "x")).await;
    assert!(text.contains("2000 bytes") && text.contains("stream=true or max_results"), "{text}");
    assert_eq!(wire.index(&RpbIndexReq { max_results: Some(10), ..exact("f_bin", "x") }).await.keys.len(), 10);
}
