//! Full-text search on a real node: indexes and schemas, documents that are found over both
//! interfaces, and what the command line says of them.

use crate::support::{DEADLINE, Home, Node, ask, pause, run_with_input};
use ombak_client::messages::{RpbSearchDoc, RpbSearchQueryReq, RpbSearchQueryResp};
use ombak_client::{Client, code};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SETTINGS: &str = "storage_backend = bitcask\nsearch = on";
const JSON: &str = "Content-Type: application/json\r\n";
const XML: &str = "Content-Type: application/xml\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// The status and the body of an answer.
fn said(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {head}")), body.to_owned())
}

#[track_caller]
fn expect(node: &Node, (method, path): (&str, &str), headers: &str, body: &str, status: u16) -> String {
    let (got, text) = said(&ask(node, method, path, headers, body));
    assert_eq!(got, status, "{method} {path}: {text}");
    text
}

fn admin(home: &Home, words: &[&str]) -> Value {
    let text = home.run(&[&["admin", "search"], words, &["--json"]].concat()).ok();
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{words:?}: {why}: {text}"))
}

/// The answer to a query, as JSON.
fn found(node: &Node, index: &str, query: &str) -> Value {
    let text = expect(node, ("GET", &format!("/search/query/{index}?wt=json&{query}")), "", "", 200);
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{query}: {why}: {text}"))
}

/// Waits until a query finds so many documents.
#[track_caller]
fn until_found(node: &Node, index: &str, query: &str, count: u64) -> Value {
    let end = Instant::now() + DEADLINE;
    loop {
        let (status, text) = said(&ask(node, "GET", &format!("/search/query/{index}?wt=json&{query}"), "", ""));
        let answer: Option<Value> = serde_json::from_str(&text).ok().filter(|_| status == 200);
        match answer {
            Some(answer) if answer["response"]["numFound"] == count => return answer,
            _ => assert!(Instant::now() < end, "{query} does not find {count} documents: {status} {text}"),
        }
        pause(Duration::from_millis(50));
    }
}

fn keys(answer: &Value) -> Vec<&str> {
    let docs = answer["response"]["docs"].as_array().unwrap();
    docs.iter().map(|doc| doc["_yz_rk"].as_str().unwrap()).collect()
}

/// A node with the index `people` on the bucket `b`, and three people in it.
fn people() -> (Home, Node) {
    let home = Home::new(SETTINGS);
    let node = home.start();
    expect(&node, ("PUT", "/search/index/people"), "", "", 204);
    expect(&node, ("PUT", "/buckets/b/props"), JSON, r#"{"props":{"search_index":"people"}}"#, 204);
    for (key, name, age) in [("r", "ryan", 29), ("b", "bryan fink", 33), ("é/1", "émile", 41)] {
        let path = format!(
            "/buckets/b/keys/{}",
            percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC)
        );
        let person = json!({ "name_s": name, "age_i": age, "groups_ss": ["a", key], "ok_b": true });
        expect(&node, ("PUT", &path), JSON, &person.to_string(), 204);
    }
    until_found(&node, "people", "q=*:*", 3);
    (home, node)
}

#[test]
fn documents_are_found_over_http() {
    let (home, node) = people();
    let by_age = found(&node, "people", "q=*:*&sort=age_i+desc");
    assert_eq!(keys(&by_age), ["é/1", "b", "r"]);
    let doc = &by_age["response"]["docs"][1];
    assert_eq!((&doc["name_s"], &doc["age_i"], &doc["ok_b"]), (&json!("bryan fink"), &json!(33), &json!(true)));
    assert_eq!(
        (&doc["groups_ss"], &doc["_yz_rb"], &doc["_yz_rt"]),
        (&json!(["a", "b"]), &json!("b"), &json!("default"))
    );
    for (query, expected) in [
        ("q=name_s:ryan", vec!["r"]),
        ("q=name_s:%22bryan+fink%22", vec!["b"]),
        ("q=name_s:*ryan*&sort=age_i+asc", vec!["r", "b"]),
        ("q=age_i:%5B30+TO+33%5D", vec!["b"]),
        ("q=name_s:%C3%A9mile", vec!["é/1"]),
        ("q=*:*&fq=name_s:ryan", vec!["r"]),
        ("q=groups_ss:a+AND+NOT+name_s:ryan&sort=age_i+asc&rows=1", vec!["b"]),
        ("q=nothing&df=name_s", vec![]),
        ("q=*:*&rows=0", vec![]),
    ] {
        assert_eq!(keys(&found(&node, "people", query)), expected, "{query}");
    }
    let posted = expect(&node, ("POST", "/search/query/people"), FORM, "q=name_s:ryan&wt=json", 200);
    let posted: Value = serde_json::from_str(&posted).unwrap();
    assert_eq!(keys(&posted), ["r"]);
    let older = expect(&node, ("GET", "/solr/people/select?q=name_s:ryan&wt=json"), "", "", 200);
    assert_eq!(serde_json::from_str::<Value>(&older).unwrap()["response"], posted["response"]);
    let answer = ask(&node, "GET", "/search/query/people?q=name_s:ryan", "", "");
    let head = answer.to_ascii_lowercase();
    assert!(head.contains("content-type: application/xml; charset=utf-8\r\n"), "{answer}");
    let (_, xml) = said(&answer);
    assert!(xml.contains("<result name=\"response\" numFound=\"1\" start=\"0\""), "{xml}");
    assert!(xml.contains("<str name=\"name_s\">ryan</str>") && xml.contains("<int name=\"age_i\">29</int>"), "{xml}");
    expect(&node, ("GET", "/search/query/people?q=name_s:("), "", "", 400);
    expect(&node, ("GET", "/search/query/people?q=word"), "", "", 400);
    // A request without parameters finds nothing.
    expect(&node, ("GET", "/search/query/people"), "", "", 200);
    expect(&node, ("DELETE", "/buckets/b/keys/r"), "", "", 204);
    until_found(&node, "people", "q=name_s:ryan", 0);
    node.stop();
    home.assert_no_errors_logged();
}

fn search(node: &Node, request: &RpbSearchQueryReq) -> RpbSearchQueryResp {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = Client::connect(&node.pb).await.unwrap();
        client.call(code::SEARCH_QUERY_REQ, request, code::SEARCH_QUERY_RESP).await.unwrap()
    })
}

fn pairs(doc: &RpbSearchDoc) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    doc.fields.iter().map(|pair| (text(&pair.key), text(pair.value.as_deref().unwrap_or_default()))).collect()
}

#[test]
fn documents_are_found_over_protocol_buffers() {
    let (_home, node) = people();
    let query = |q: &'static str| RpbSearchQueryReq { q: q.into(), index: "people".into(), ..Default::default() };
    let bryan = search(&node, &query("name_s:\"bryan fink\""));
    assert_eq!(bryan.num_found, Some(1));
    let score = bryan.max_score.unwrap();
    assert!(score > 0.0, "{score}");
    let pairs_of_bryan = pairs(&bryan.docs[0]);
    assert_eq!(pairs_of_bryan[0].0, "score");
    for (name, value) in [("name_s", "bryan fink"), ("age_i", "33"), ("ok_b", "true"), ("_yz_rk", "b"), ("_yz_rb", "b")]
    {
        assert!(pairs_of_bryan.contains(&(name.to_owned(), value.to_owned())), "{name}: {pairs_of_bryan:?}");
    }
    let groups = pairs_of_bryan.iter().filter(|(name, _)| name == "groups_ss");
    assert_eq!(groups.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["a", "b"], "one pair for each value");
    let few = RpbSearchQueryReq {
        sort: Some("age_i desc".into()),
        rows: Some(2),
        start: Some(1),
        fl: vec!["age_i".into()],
        ..query("*:*")
    };
    let few = search(&node, &few);
    assert_eq!(few.num_found, Some(3));
    let ages: Vec<_> =
        few.docs.iter().map(|doc| pairs(doc).into_iter().find(|(name, _)| name == "age_i").unwrap().1).collect();
    assert_eq!(ages, ["33", "29"]);
    let nothing = search(&node, &query("name_s:nobody"));
    assert_eq!((nothing.num_found, nothing.max_score, nothing.docs.len()), (Some(0), Some(0.0), 0));
    node.stop();
}

#[test]
fn an_index_with_a_schema_of_its_own_lives_and_dies() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    let default = expect(&node, ("GET", "/search/schema/_yz_default"), "", "", 200);
    let own = format!("{default}<!-- own -->\n");
    expect(&node, ("PUT", "/search/schema/own"), XML, &own, 204);
    assert_eq!(expect(&node, ("GET", "/search/schema/own"), "", "", 200), own);
    expect(&node, ("PUT", "/search/index/i"), JSON, r#"{"schema":"own","n_val":3}"#, 204);
    let shown = expect(&node, ("GET", "/search/index/i"), "", "", 200);
    assert_eq!(shown, r#"{"name":"i","n_val":3,"schema":"own"}"#);
    home.run(&["admin", "bucket-type", "create", "maps", r#"{"props":{"search_index":"i"}}"#]).ok();
    home.run(&["admin", "bucket-type", "activate", "maps"]).ok();
    let meta = "Content-Type: text/plain\r\nX-Riak-Meta-yz-tags: x-riak-meta-mark_s\r\nX-Riak-Meta-mark_s: red\r\n";
    expect(&node, ("PUT", "/types/maps/buckets/b/keys/k"), meta, "some words", 204);
    let tagged = until_found(&node, "i", "q=mark_s:red", 1);
    assert_eq!((keys(&tagged), &tagged["response"]["docs"][0]["_yz_rt"]), (vec!["k"], &json!("maps")));
    until_found(&node, "i", "q=text:words", 1);
    expect(&node, ("PUT", "/types/maps/buckets/b/keys/bad"), JSON, "{", 204);
    assert_eq!(keys(&until_found(&node, "i", "q=_yz_err:1", 1)), ["bad"]);
    let refused = expect(&node, ("DELETE", "/search/index/i"), "", "", 409);
    assert!(refused.starts_with("Can't delete index with associate buckets [type maps]"), "{refused}");
    home.run(&["admin", "bucket-type", "update", "maps", r#"{"props":{"search_index":"_dont_index_"}}"#]).ok();
    expect(&node, ("DELETE", "/search/index/i"), "", "", 204);
    expect(&node, ("GET", "/search/query/i?q=*:*"), "", "", 404);
    let fields = expect(&node, ("PUT", "/search/extract"), JSON, r#"{"a":{"b_s":["c","d"]}}"#, 200);
    assert_eq!(fields, r#"{"a.b_s":["c","d"]}"#);
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn the_command_line_administers_search() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    assert_eq!(home.run(&["admin", "search", "index", "list"]).ok(), "there are no indexes\n");
    let schema = home.run(&["admin", "search", "schema", "show", "_yz_default"]).ok();
    std::fs::write(home.path().join("own.xml"), &schema).unwrap();
    let kept = home.run(&["admin", "search", "schema", "upload", "own", "own.xml"]).ok();
    assert!(kept.starts_with("the schema own is kept"), "{kept}");
    assert_eq!(home.run(&["admin", "search", "schema", "show", "own"]).ok(), schema);
    let upload = ["admin", "search", "schema", "upload", "bad", "-"];
    assert_eq!(run_with_input(home.path(), &upload, b"<schema").status.code(), Some(1));
    assert_eq!(home.run(&["admin", "search", "schema", "show", "bad"]).failed(1), "there is no schema bad\n");
    let created = admin(&home, &["index", "create", "i", "--schema", "own", "--n-val", "3"]);
    assert_eq!((&created["name"], &created["schema"], &created["n_val"]), (&json!("i"), &json!("own"), &json!(3)));
    expect(&node, ("PUT", "/buckets/b/props"), JSON, r#"{"props":{"search_index":"i"}}"#, 204);
    expect(&node, ("PUT", "/buckets/b/keys/k"), JSON, r#"{"name_s":"v"}"#, 204);
    until_found(&node, "i", "q=name_s:v", 1);
    let end = Instant::now() + DEADLINE;
    loop {
        let status = admin(&home, &["index", "status", "i"]);
        let partitions = status["partitions"].as_array().unwrap();
        let is_complete = partitions.iter().all(|partition| partition["lag_ms"].is_u64());
        if !partitions.is_empty() && is_complete && status["documents"].as_u64() >= Some(1) {
            assert!(status["bytes"].as_u64() > Some(0) && status["last_error"].is_null(), "{status}");
            break;
        }
        assert!(Instant::now() < end, "not complete: {status}");
        pause(Duration::from_millis(50));
    }
    let listed = home.run(&["admin", "search", "index", "list"]).ok();
    assert!(listed.starts_with("i (schema own, n_val 3): ") && listed.contains(" behind"), "{listed}");
    let rebuilt = home.run(&["admin", "search", "index", "rebuild", "i"]).ok();
    assert!(rebuilt.starts_with("the index i is being built anew"), "{rebuilt}");
    let end = Instant::now() + DEADLINE;
    loop {
        // Queries are answered while it is built, and afterwards.
        assert_eq!(found(&node, "i", "q=name_s:v")["response"]["numFound"], 1);
        let status = admin(&home, &["index", "status", "i"]);
        if status["build"] == 1 && status["next_build"].is_null() {
            break;
        }
        assert!(Instant::now() < end, "not built: {status}");
        pause(Duration::from_millis(50));
    }
    let refused = home.run(&["admin", "search", "index", "delete", "i"]).failed(1);
    assert!(refused.starts_with("Can't delete index with associate buckets [b]"), "{refused}");
    expect(&node, ("DELETE", "/buckets/b/props"), "", "", 204);
    assert_eq!(home.run(&["admin", "search", "index", "delete", "i"]).ok(), "the index i is deleted\n");
    assert_eq!(home.run(&["admin", "search", "index", "delete", "i"]).failed(1), "there is no index i\n");
    home.run(&["admin", "search", "index", "create", ""]).failed(2);
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn what_was_found_is_found_after_a_restart() {
    let (home, node) = people();
    node.stop();
    let node = home.start();
    until_found(&node, "people", "q=name_s:*ryan*", 2);
    assert_eq!(
        expect(&node, ("GET", "/search/index"), "", "", 200),
        r#"[{"name":"people","n_val":3,"schema":"_yz_default"}]"#
    );
    node.stop();
}

#[test]
fn a_node_without_search_says_so() {
    let home = Home::new("storage_backend = memory");
    let node = home.start();
    for words in [&["index", "list"][..], &["index", "create", "i"], &["index", "status"], &["schema", "show", "s"]] {
        let refused = home.run(&[&["admin", "search"], words].concat()).failed(1);
        let expected = "search is off on this node; search = on in its configuration turns it on";
        assert!(refused.starts_with(expected), "{words:?}: {refused}");
    }
    expect(&node, ("GET", "/search/index"), "", "", 404);
    expect(&node, ("GET", "/search/query/i?q=*:*"), "", "", 404);
    node.stop();
}
