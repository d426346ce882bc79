//! Index queries as clients send them (docs/riak/http-api.md §6, docs/riak/riak-test.md §2).

use super::*;
use crate::JobClass;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Stores twenty objects, each with a text and a number.
async fn twenty(server: &Server, prefix: &str) {
    for n in 0..20 {
        let headers = format!("x-riak-index-field1_bin: val{n:02}\r\nX-Riak-Index-Field2_int: {n}\r\n");
        let path = format!("{prefix}/buckets/b/keys/obj{n:02}");
        assert_eq!(server.put(&path, &headers, "v").await.status, 204);
    }
}

fn objects(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|n| format!("obj{n:02}")).collect()
}

/// The JSON documents of a multipart answer, whose format is checked byte by byte.
fn parts(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let content_type = answer.header("content-type").expect("a type");
    let boundary = content_type.strip_prefix("multipart/mixed;boundary=").expect("a boundary");
    let text = answer.text();
    let rest = text.strip_suffix(&format!("\r\n--{boundary}--\r\n")).expect("a closing line");
    let head = format!("\r\n--{boundary}\r\nContent-Type: application/json\r\n\r\n");
    let mut pieces = rest.split(&head);
    assert_eq!(pieces.next(), Some(""), "nothing before the first part");
    pieces.map(|json| serde_json::from_str(json).expect("JSON")).collect()
}

/// The parts of a stream, merged into one document.
fn merged(answer: &Answer, member: &str) -> Value {
    let mut list = Vec::new();
    let mut continuation = None;
    for mut part in parts(answer) {
        assert_eq!(continuation, None, "the continuation comes last");
        match part.get_mut(member) {
            Some(Value::Array(found)) => list.append(found),
            _ => continuation = part.get("continuation").cloned(),
        }
    }
    let mut out = json!({member: list});
    if let Some(text) = continuation {
        out["continuation"] = text;
    }
    out
}

impl Server {
    async fn index(&self, query: &str) -> Value {
        let answer = self.get(query).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("application/json")),
            "{}",
            answer.text()
        );
        answer.json()
    }

    /// The result of a query, which must be the same in one answer, as a stream, and in pages.
    async fn found(&self, path: &str, parameters: &str, member: &str) -> Value {
        let whole = self.index(&format!("{path}?{parameters}")).await;
        assert_eq!(merged(&self.get(&format!("{path}?stream=true&{parameters}")).await, member), whole);
        for page in [1, 7, 100] {
            for stream in [false, true] {
                let mut all = Vec::new();
                let mut from = String::new();
                loop {
                    let url = format!("{path}?max_results={page}&stream={stream}&{parameters}{from}");
                    let mut part = if stream { merged(&self.get(&url).await, member) } else { self.index(&url).await };
                    let found = part[member].as_array_mut().expect("a list");
                    let count = found.len();
                    all.append(found);
                    let Some(text) = part.get("continuation") else { break };
                    assert_eq!(count, page, "only a full page goes on");
                    from = format!(
                        "&continuation={}",
                        text.as_str().expect("text").replace('+', "%2B").replace('=', "%3D")
                    );
                }
                assert_eq!(whole, json!({ member: all }), "in pages of {page}");
            }
        }
        whole
    }
}

#[tokio::test]
async fn exact_and_range_queries_find_what_matches_in_order() {
    let server = Server::start().await;
    server.create_type("t");
    for prefix in ["", "/types/t"] {
        twenty(&server, prefix).await;
        for (query, parameters, expected) in [
            ("field1_bin/val07", "", objects(7..8)),
            ("field2_int/7", "", objects(7..8)),
            ("field1_bin/none", "", vec![]),
            ("field1_bin/val03/val05", "", objects(3..6)),
            ("field2_int/-5/3", "", objects(0..4)),
            ("field2_int/8/3", "", vec![]),
            ("$bucket/_", "", objects(0..20)),
            ("$key/obj02/obj04", "", objects(2..5)),
            ("$key/obj02", "", objects(2..3)),
            ("field1_bin/val00/val19", "term_regex=1.$", objects(10..20)),
            ("$key/a/z", "term_regex=obj0", objects(0..10)),
            ("field1_bin/val07", "return_terms=true", objects(7..8)),
            ("$key/obj02/obj04", "return_terms=TRUE&pagination_sort=False", objects(2..5)),
        ] {
            let found = server.found(&format!("{prefix}/buckets/b/index/{query}"), parameters, "keys").await;
            assert_eq!(found, json!({ "keys": expected }), "{query}?{parameters}");
        }
    }
    let none = server.index("/buckets/b/index/field1_bin").await;
    assert_eq!(none, json!({"keys": []}), "a path without a term");
}

#[tokio::test]
async fn terms_come_with_their_keys() {
    let server = Server::start().await;
    twenty(&server, "").await;
    let headers = "x-riak-index-n_int: 123456789012345678901234567890, -1, 5\r\n";
    server.put("/buckets/b/keys/%22q%22", headers, "v").await;
    let found = server.found("/buckets/b/index/field1_bin/val01/val02", "return_terms=true", "results").await;
    assert_eq!(found, json!({"results": [{"val01": "obj01"}, {"val02": "obj02"}]}));
    let ends = "-5/123456789012345678901234567890";
    let found = server.found(&format!("/buckets/b/index/n_int/{ends}"), "return_terms=true", "results").await;
    let terms = ["-1", "5", "123456789012345678901234567890"];
    assert_eq!(found, json!({"results": terms.map(|term| json!({ term: "\"q\"" }))}));
}

/// From riak_test `verify_2i_limit`: both interfaces return the same continuation.
#[tokio::test]
async fn a_continuation_is_riaks() {
    let server = Server::start().await;
    twenty(&server, "").await;
    for (query, term) in [
        // The texts are `{<<"val01">>,<<"obj01">>}`, `{1,<<"obj01">>}` and `<<"obj01">>` in the
        // external term format.
        ("field1_bin/val00/val19", "g2gCbQAAAAV2YWwwMW0AAAAFb2JqMDE="),
        ("field2_int/0/19", "g2gCYQFtAAAABW9iajAx"),
        ("$key/obj00/obj19", "g20AAAAFb2JqMDE="),
        ("$bucket/_", "g20AAAAFb2JqMDE="),
    ] {
        let page = server.index(&format!("/buckets/b/index/{query}?max_results=2")).await;
        assert_eq!(page["continuation"], json!(term), "{query}");
    }
}

#[tokio::test]
async fn a_query_that_is_none_is_refused_in_riaks_words() {
    let server = Server::start().await;
    for (query, status, text) in [
        ("n_int/zork", 400, "Invalid query: {field_parsing_failed,{<<\"n_int\">>,<<\"zork\">>}}\n"),
        ("n_int/1/2.5", 400, "Invalid query: {field_parsing_failed,{<<\"n_int\">>,<<\"2.5\">>}}\n"),
        ("zork/1", 400, "Invalid query: {unknown_field_type,<<\"zork\">>}\n"),
        ("f_bin/a?max_results=zork", 400, "Invalid \"max_results\". \"zork\" is not a positive integer"),
        ("f_bin/a?max_results=0", 400, "Invalid \"max_results\". 0 is not a positive integer"),
        ("f_bin/a?max_results=-1", 400, "Invalid \"max_results\". -1 is not a positive integer"),
        ("f_bin/a?return_terms=zork", 400, "Invalid \"return_terms\". \"zork\" is not a boolean"),
        ("f_bin/a?pagination_sort=zork", 400, "Invalid \"pagination_sort\". \"zork\" is not a boolean"),
        ("f_bin/a?timeout=zork", 400, "Bad timeout value \"zork\". Must be a non-negative integer\n"),
        ("f_bin/a?timeout=-1", 400, "Bad timeout value \"-1\". Must be a non-negative integer\n"),
        ("n_int/1/5?term_regex=a", 400, "Can not use term regular expressions on integer queries"),
        ("f_bin/a?continuation=zork", 400, "Invalid query: {invalid_continuation,<<\"zork\">>}\n"),
    ] {
        let answer = server.get(&format!("/buckets/b/index/{query}")).await;
        assert_eq!((answer.status, answer.text().as_str()), (status, text), "{query}");
    }
    let answer = server.get("/buckets/b/index/f_bin/a/b?term_regex=(").await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with("Invalid term regular expression \"(\" : "), "{}", answer.text());
    assert_eq!(server.get("/types/none/buckets/b/index/f_bin/a").await.status, 404);
    let refused = server.request("POST", "/buckets/b/index/f_bin/a", "", "").await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")));
    let head = server.request("HEAD", "/buckets/b/index/f_bin/a", "", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(server.index("/buckets/b/index/f_bin/a?stream=zork&timeout=0").await, json!({"keys": []}));
}

#[tokio::test]
async fn switched_off_queries_are_refused() {
    let jobs = JobSwitches::default().with(JobClass::SecondaryIndex, false);
    let server = Server::with(HttpLimits::default(), jobs).await;
    let refused = server.get("/buckets/b/index/f_bin/a").await;
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (403, "Operation '{riak_kv,secondary_index}' is not enabled")
    );
    assert_eq!(parts(&server.get("/buckets/b/index/f_bin/a?stream=true").await), [] as [Value; 0]);
    let jobs = JobSwitches::default().with(JobClass::StreamSecondaryIndex, false);
    let server = Server::with(HttpLimits::default(), jobs).await;
    assert_eq!(server.get("/buckets/b/index/f_bin/a?stream=true").await.status, 403);
    assert_eq!(server.get("/buckets/b/index/f_bin/a").await.status, 200);
}

async fn fill(server: &Server, count: usize, key: impl Fn(usize) -> String) {
    for n in 0..count {
        let mut sibling = ombak_types::Sibling::new("v");
        sibling.meta.indexes = vec![ombak_types::IndexEntry::parse(b"f_bin", b"x").expect("an entry")];
        let request = ombak_kv::PutRequest {
            bucket: ombak_types::Bucket::untyped("b"),
            key: Some(key(n).into()),
            object: ombak_types::Object::new(sibling),
            options: Default::default(),
        };
        server.kv.put(request).await.expect("stored");
    }
}

/// The scenario of riak_test `verify_2i_timeout`.
#[tokio::test]
async fn a_query_that_takes_too_long_ends_with_an_error() {
    let server = Server::start().await;
    fill(&server, 6000, |n| format!("k{n:05}")).await;
    let late = server.get("/buckets/b/index/f_bin/x?timeout=1").await;
    assert_eq!((late.status, late.text().as_str()), (503, "request timed out\n"));
    let stream = parts(&server.get("/buckets/b/index/f_bin/x?timeout=1&stream=true").await);
    assert_eq!(stream.last(), Some(&json!({"error": "timeout"})));
    let whole = server.index("/buckets/b/index/f_bin/x?timeout=0").await;
    assert_eq!(whole["keys"].as_array().expect("a list").len(), 6000);
}

/// Large answers are sent in pieces, and their content is complete.
#[tokio::test]
pub(super) async fn a_large_answer_comes_whole() {
    let server = Server::start().await;
    fill(&server, 3000, |n| format!("{n:0>300}")).await;
    let keys: Vec<String> = (0..3000).map(|n| format!("{n:0>300}")).collect();
    assert_eq!(server.index("/buckets/b/index/f_bin/x").await, json!({ "keys": keys }));
    let page = server.index("/buckets/b/index/f_bin/x?max_results=3000").await;
    assert!(page["keys"] == json!(keys) && page["continuation"].is_string());
    let pairs: Vec<Value> = keys.iter().map(|key| json!({ "x": key })).collect();
    assert_eq!(server.index("/buckets/b/index/f_bin/a/z?return_terms=true").await, json!({ "results": pairs }));
    let streamed = merged(&server.get("/buckets/b/index/f_bin/x?stream=true").await, "keys");
    assert_eq!(streamed, json!({ "keys": keys }));
}

/// From riak_test `verify_2i_hugeindex`: a term with the maximum length of a header is found, and a
/// longer one is refused.
#[tokio::test]
async fn a_huge_term_is_found() {
    let server = Server::start().await;
    let term = "t".repeat(8192);
    let header = format!("x-riak-index-f_bin: {term}\r\n");
    assert_eq!(server.put("/buckets/b/keys/k", &header, "v").await.status, 204);
    let found = server.index(&format!("/buckets/b/index/f_bin/{term}")).await;
    assert_eq!(found, json!({"keys": ["k"]}));
    let longer = format!("x-riak-index-f_bin: {}\r\n", "t".repeat(HttpLimits::default().head_bytes_max));
    assert_eq!(server.put("/buckets/b/keys/l", &longer, "v").await.status, 431);
}

/// The server waits for a client that reads slowly. If a client closes its connection, its query
/// ends.
#[tokio::test]
pub(super) async fn a_query_ends_with_its_client() {
    let server = Server::start().await;
    fill(&server, 20_000, |n| format!("{n:0>1000}")).await;
    for stream in [false, true] {
        let mut leaver: TcpStream = server.connect().await;
        let request = format!("GET /buckets/b/index/f_bin/x?stream={stream} HTTP/1.1\r\nHost: h\r\n\r\n");
        leaver.write_all(request.as_bytes()).await.expect("sent");
        let mut some = [0; 4096];
        timeout(DEADLINE, leaver.read_exact(&mut some)).await.expect("in time").expect("an answer");
        // An answer of 20 MB does not fit into the buffers of the sockets.
        assert_eq!(server.stat("index_fsm_active"), 1);
        drop(leaver);
        server.until_none("index_fsm_active").await;
    }
}

/// Nothing matches, so no failed send can reveal that the client has closed its connection.
#[tokio::test]
async fn a_query_that_finds_nothing_ends_with_its_client() {
    const LEAVERS: u64 = 10;
    let limits = HttpLimits { half_closed_timeout: Duration::ZERO, ..HttpLimits::default() };
    let server = Server::with(limits, JobSwitches::default()).await;
    fill(&server, 20_000, |n| format!("{n:0>1000}")).await;
    for leaver in 0..LEAVERS {
        let mut stream = server.connect().await;
        let stream_it = leaver % 2 == 0;
        let path = format!("/buckets/b/index/f_bin/x?stream={stream_it}&return_terms=true&term_regex=none");
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await.expect("sent");
        drop(stream);
    }
    let begun = timeout(DEADLINE, async {
        while server.stat("index_fsm_create") < LEAVERS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    begun.await.expect("all have begun");
    server.until_none("index_fsm_active").await;
    assert!(server.stat("index_fsm_complete") < LEAVERS, "all were run to their ends for nobody");
    // A short answer is complete before the server gives up on the client.
    let patient = Server::start().await;
    fill(&patient, 10, |n| format!("{n}")).await;
    let mut half = patient.connect().await;
    half.write_all(b"GET /buckets/b/index/f_bin/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        .await
        .expect("sent");
    half.shutdown().await.expect("one direction");
    let mut answer = String::new();
    timeout(DEADLINE, half.read_to_string(&mut answer)).await.expect("in time").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"9\""), "{answer}");
}

/// A client that has closed its sending side still gets an answer that makes progress, however
/// slowly the client reads it.
#[tokio::test]
pub(super) async fn a_client_that_sends_no_more_gets_a_long_answer() {
    let patience = Duration::from_secs(1);
    let limits = HttpLimits { half_closed_timeout: patience, ..HttpLimits::default() };
    let server = Server::with(limits, JobSwitches::default()).await;
    fill(&server, 10_000, |n| format!("{n:0>1000}")).await;
    let mut half = server.connect().await;
    let request = "GET /buckets/b/index/f_bin/x?stream=true HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    half.write_all(request.as_bytes()).await.expect("sent");
    half.shutdown().await.expect("one direction");
    let (begun, mut length, mut some) = (std::time::Instant::now(), 0, vec![0; 64 << 10]);
    let mut last = Vec::new();
    loop {
        let read = timeout(DEADLINE, half.read(&mut some)).await.expect("in time").expect("an answer");
        if read == 0 {
            break;
        }
        length += read;
        last.extend_from_slice(&some[..read]);
        last.drain(..last.len().saturating_sub(100));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(length > 10_000_000 && last.ends_with(b"--\r\n\r\n0\r\n\r\n"), "{length} bytes");
    assert!(begun.elapsed() > patience, "it was over too soon to show anything");
}
