//! Search as clients see it, as far as no index has to answer (docs/riak/pb-api.md §12).

use super::login::{Secured, auth, secured};
use super::*;
use crate::access::NotedAccesses;
use crate::client_stream::test_tls::client_tls;
use crate::search::testing::search_without_indexes;
use crate::security::tests::SecurityOfTest;
use crate::{JobClass, JobSwitches};
use bytes::Bytes;
use ombak_proto::messages::{
    RpbBucketProps, RpbSearchQueryReq, RpbSetBucketReq, RpbYokozunaIndex, RpbYokozunaIndexDeleteReq,
    RpbYokozunaIndexGetReq, RpbYokozunaIndexGetResp, RpbYokozunaIndexPutReq, RpbYokozunaSchema,
    RpbYokozunaSchemaGetReq, RpbYokozunaSchemaGetResp, RpbYokozunaSchemaPutReq,
};
use ombak_search::schema::DEFAULT_SCHEMA_XML;

/// A node with search.
async fn searching(config: PbConfig) -> Node {
    let dir = tempfile::tempdir().unwrap();
    let (search, hooks) = search_without_indexes(dir.path());
    let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let kv_config = KvConfig { ring_size: 8, hooks, ..KvConfig::new("riak@127.0.0.1", dir.path(), backend) };
    Node::changed(kv_config, dir, config, MemoryLimits::default(), |ctx| {
        search.attach(&ctx.kv);
        ctx.with_search(search)
    })
    .await
}

async fn open() -> Node {
    searching(PbConfig::default()).await
}

fn query(q: &'static str, index: &'static str) -> RpbSearchQueryReq {
    RpbSearchQueryReq { q: q.into(), index: index.into(), ..RpbSearchQueryReq::default() }
}

fn index(name: &'static str) -> RpbYokozunaIndex {
    RpbYokozunaIndex { name: name.into(), ..RpbYokozunaIndex::default() }
}

fn put_index(index: RpbYokozunaIndex) -> RpbYokozunaIndexPutReq {
    RpbYokozunaIndexPutReq { index, timeout: Some(1_000) }
}

fn put_schema(name: &'static str, content: &str) -> RpbYokozunaSchemaPutReq {
    let content = Some(Bytes::copy_from_slice(content.as_bytes()));
    RpbYokozunaSchemaPutReq { schema: RpbYokozunaSchema { name: name.into(), content } }
}

impl Wire {
    async fn create(&mut self, request: RpbYokozunaIndex) {
        self.send(code::YOKOZUNA_INDEX_PUT_REQ, &put_index(request)).await;
        self.expect_empty(code::PUT_RESP).await;
    }

    async fn indexes(&mut self, name: Option<&'static str>) -> Vec<RpbYokozunaIndex> {
        let request = RpbYokozunaIndexGetReq { name: name.map(Bytes::from) };
        let answer: RpbYokozunaIndexGetResp =
            self.ask(code::YOKOZUNA_INDEX_GET_REQ, &request, code::YOKOZUNA_INDEX_GET_RESP).await;
        answer.index
    }

    async fn refused_query(&mut self, request: &RpbSearchQueryReq) -> String {
        self.ask_refused(code::SEARCH_QUERY_REQ, request).await
    }
}

#[tokio::test]
async fn an_index_is_created_shown_and_deleted() {
    let node = open().await;
    let mut wire = node.connect().await;
    assert_eq!(wire.indexes(None).await, []);
    for _ in 0..2 {
        wire.create(index("people")).await;
    }
    wire.create(RpbYokozunaIndex { schema: Some("_yz_default".into()), n_val: Some(5), ..index("b") }).await;
    let shown =
        |name, n_val| RpbYokozunaIndex { schema: Some("_yz_default".into()), n_val: Some(n_val), ..index(name) };
    assert_eq!(wire.indexes(None).await, [shown("b", 5), shown("people", 3)]);
    assert_eq!(wire.indexes(Some("b")).await, [shown("b", 5)]);
    let delete = |name: &'static str| RpbYokozunaIndexDeleteReq { name: name.into() };
    wire.send(code::YOKOZUNA_INDEX_DELETE_REQ, &delete("b")).await;
    wire.expect_empty(code::DEL_RESP).await;
    assert_eq!(wire.ask_refused(code::YOKOZUNA_INDEX_DELETE_REQ, &delete("b")).await, "notfound");
    let missing = RpbYokozunaIndexGetReq { name: Some("b".into()) };
    assert_eq!(wire.ask_refused(code::YOKOZUNA_INDEX_GET_REQ, &missing).await, "notfound");
    let props = RpbBucketProps { search_index: Some("people".into()), ..RpbBucketProps::default() };
    wire.send(code::SET_BUCKET_REQ, &RpbSetBucketReq { bucket: "b".into(), props, r#type: None }).await;
    wire.expect_empty(code::SET_BUCKET_RESP).await;
    let refused = wire.ask_refused(code::YOKOZUNA_INDEX_DELETE_REQ, &delete("people")).await;
    assert_eq!(refused, "Can't delete index with associate buckets [b]");
}

#[tokio::test]
async fn an_index_that_cannot_be_says_why() {
    let node = open().await;
    let mut wire = node.connect().await;
    let mut refused = async |index| wire.ask_refused(code::YOKOZUNA_INDEX_PUT_REQ, &put_index(index)).await;
    let schema = Some("nosuch".into());
    assert_eq!(refused(RpbYokozunaIndex { schema, ..index("people") }).await, "Schema not found");
    for name in ["größe", "a/b", ""] {
        assert!(refused(index(name)).await.starts_with("Invalid character in index name"), "{name}");
    }
    let name = Bytes::from_static(b"\xff");
    assert!(refused(RpbYokozunaIndex { name, ..index("") }).await.starts_with("Invalid character in index name"));
    let said = refused(RpbYokozunaIndex { n_val: Some(0), ..index("people") }).await;
    assert!(said.starts_with("Error creating index 'people': n_val has to be"), "{said}");
}

#[tokio::test]
async fn a_schema_comes_back_byte_for_byte() {
    let node = open().await;
    let mut wire = node.connect().await;
    let own = format!("{DEFAULT_SCHEMA_XML}\n<!-- ü -->");
    wire.send(code::YOKOZUNA_SCHEMA_PUT_REQ, &put_schema("own", &own)).await;
    wire.expect_empty(code::PUT_RESP).await;
    for (name, content) in [("own", &*own), ("_yz_default", DEFAULT_SCHEMA_XML)] {
        let request = RpbYokozunaSchemaGetReq { name: name.into() };
        let answer: RpbYokozunaSchemaGetResp =
            wire.ask(code::YOKOZUNA_SCHEMA_GET_REQ, &request, code::YOKOZUNA_SCHEMA_GET_RESP).await;
        assert_eq!(answer.schema.content.as_deref(), Some(content.as_bytes()));
        assert_eq!(answer.schema.name, name);
    }
    let missing = RpbYokozunaSchemaGetReq { name: "nosuch".into() };
    assert_eq!(wire.ask_refused(code::YOKOZUNA_SCHEMA_GET_REQ, &missing).await, "notfound");
    for (name, content) in [("x", "<schema"), ("x", ""), ("a/b", &own)] {
        let said = wire.ask_refused(code::YOKOZUNA_SCHEMA_PUT_REQ, &put_schema(name, content)).await;
        assert!(said.starts_with("Error storing schema "), "{name}: {said}");
    }
    // A schema may be larger than other messages, up to a bound of its own.
    let long = format!("{own}<!-- {} -->", "x".repeat(1 << 20));
    let said = wire.ask_refused(code::YOKOZUNA_SCHEMA_PUT_REQ, &put_schema("x", &long)).await;
    assert!(said.starts_with("Error storing schema "), "{said}");
}

#[tokio::test]
async fn a_query_that_cannot_be_says_why() {
    let node = open().await;
    let mut wire = node.connect().await;
    assert_eq!(wire.refused_query(&query("", "people")).await, "Missing query");
    assert_eq!(wire.refused_query(&query("*:*", "people")).await, "No index <<\"people\">> found.");
    let other = RpbSearchQueryReq { index: Bytes::from_static(b"\xff\x00"), ..query("*:*", "") };
    assert_eq!(wire.refused_query(&other).await, "No index <<255,0>> found.");
    wire.create(index("people")).await;
    let said = wire.refused_query(&RpbSearchQueryReq { op: Some("xor".into()), ..query("*:*", "people") }).await;
    assert!(said.starts_with("op: "), "the error names the field: {said}");
    let said = wire.refused_query(&RpbSearchQueryReq { rows: Some(1_000_000), ..query("*:*", "people") }).await;
    assert!(said.starts_with("rows: ") && said.contains("out of range"), "{said}");
    let said =
        wire.refused_query(&RpbSearchQueryReq { df: Some(Bytes::from_static(b"\xff")), ..query("a", "people") }).await;
    assert!(said.starts_with("df: "), "{said}");
    assert!(!wire.refused_query(&query("name_s:(", "people")).await.is_empty());
    let nobody = wire.refused_query(&query("*:*", "people")).await;
    assert_eq!(nobody, "Not enough nodes are up to service this request.");
    wire.ping().await;
}

#[tokio::test]
async fn queries_are_switched_off_as_a_class_of_jobs() {
    let jobs = JobSwitches::default().with(JobClass::YokozunaQuery, false);
    let node = searching(PbConfig { jobs, ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    wire.create(index("people")).await;
    assert_eq!(wire.refused_query(&query("*:*", "people")).await, "Operation '{yokozuna,query}' is not enabled");
}

fn framed<M: Message>(code: u8, message: &M) -> Vec<u8> {
    let mut out = Vec::new();
    write_message(code, message, &mut out);
    out
}

/// A request with each code of search, with the permission and what it is for.
fn requests() -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let get_schema = RpbYokozunaSchemaGetReq { name: "_yz_default".into() };
    let delete = RpbYokozunaIndexDeleteReq { name: "people".into() };
    vec![
        (framed(code::SEARCH_QUERY_REQ, &query("*:*", "people")), "search.query", "index/people"),
        (framed(code::YOKOZUNA_INDEX_GET_REQ, &RpbYokozunaIndexGetReq { name: None }), "search.admin", "index/-"),
        (framed(code::YOKOZUNA_INDEX_PUT_REQ, &put_index(index("people"))), "search.admin", "index/-"),
        (framed(code::YOKOZUNA_INDEX_DELETE_REQ, &delete), "search.admin", "index/-"),
        (framed(code::YOKOZUNA_SCHEMA_GET_REQ, &get_schema), "search.admin", "schema/-"),
        (framed(code::YOKOZUNA_SCHEMA_PUT_REQ, &put_schema("own", DEFAULT_SCHEMA_XML)), "search.admin", "schema/-"),
    ]
}

#[tokio::test]
async fn the_policy_is_asked_for_each_request_and_its_refusal_is_the_answer() {
    let policy = Arc::new(NotedAccesses::refusing());
    let node = searching(PbConfig { policy: Some(policy.clone()), ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    for (bytes, permission, place) in requests() {
        wire.send_bytes(&bytes).await;
        assert_eq!(wire.expect_error().await, format!("no {permission}"));
        assert_eq!(policy.take(), [(permission, place.to_owned())]);
    }
    assert!(node.ctx.search.as_ref().unwrap().indexes().is_empty(), "nothing was created");
}

#[tokio::test]
async fn a_node_without_search_does_not_know_its_messages() {
    let policy = Arc::new(NotedAccesses::default());
    let node = Node::with(PbConfig { policy: Some(policy.clone()), ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    for (bytes, ..) in requests() {
        wire.send_bytes(&bytes).await;
        assert_eq!(wire.expect_error().await, format!("Unknown message code: {}", bytes[4]));
    }
    wire.send_bytes(&framed(code::SEARCH_QUERY_RESP, &query("", ""))).await;
    assert_eq!(wire.expect_error().await, "Unknown message code: 28");
    assert!(policy.take().is_empty());
    let node = open().await;
    let mut wire = node.connect().await;
    wire.send_bytes(&framed(code::SEARCH_QUERY_RESP, &query("", ""))).await;
    let text = "Error processing incoming message: RpbSearchQueryResp (28) is not a request";
    assert_eq!(wire.expect_error().await, text);
    for code in [27, 54, 56, 57, 58, 60] {
        wire.send_bytes(&[0, 0, 0, 5, code, 0x0a, 5, b'a', b'b']).await;
        let text = wire.expect_error().await;
        assert!(text.starts_with("Error processing incoming message: "), "{code}: {text}");
    }
}

async fn ask(client: &mut Secured, request: &[u8]) -> Result<u8, String> {
    client.ask(request).await
}

#[tokio::test]
async fn a_user_needs_grants_on_the_index_and_on_indexes_and_schemas() {
    let test = SecurityOfTest::after(&["add-user alice password=secret", "add-source alice 127.0.0.1/32 password"]);
    let security = Some(test.security.clone());
    let policy = Some(test.security.clone() as Arc<dyn crate::AccessPolicy>);
    let node = searching(PbConfig { start_tls: Some(client_tls()), security, policy, ..PbConfig::default() }).await;
    test.run("enable");
    let mut alice = secured(&node, false).await;
    assert_eq!(ask(&mut alice, &auth("alice", "secret")).await, Ok(code::AUTH_RESP));
    let denied = |permission: &str, on: &str| {
        Err(format!("Permission denied: User 'alice' does not have '{permission}' on {on}"))
    };
    let create = framed(code::YOKOZUNA_INDEX_PUT_REQ, &put_index(index("people")));
    let search = framed(code::SEARCH_QUERY_REQ, &query("", "people"));
    let read = framed(code::YOKOZUNA_SCHEMA_GET_REQ, &RpbYokozunaSchemaGetReq { name: "_yz_default".into() });
    assert_eq!(ask(&mut alice, &create).await, denied("search.admin", "index"));
    assert_eq!(ask(&mut alice, &read).await, denied("search.admin", "schema"));
    assert_eq!(ask(&mut alice, &search).await, denied("search.query", "index/people"));
    test.run("grant search.admin on index to alice");
    assert_eq!(ask(&mut alice, &create).await, Ok(code::PUT_RESP));
    assert_eq!(ask(&mut alice, &read).await, denied("search.admin", "schema"));
    test.run("grant search.admin on schema to alice");
    assert_eq!(ask(&mut alice, &read).await, Ok(code::YOKOZUNA_SCHEMA_GET_RESP));
    test.run("grant search.query on index people to alice");
    assert_eq!(ask(&mut alice, &search).await, Err("Missing query".to_owned()), "it is served");
    let other = framed(code::SEARCH_QUERY_REQ, &query("", "other"));
    assert_eq!(ask(&mut alice, &other).await, denied("search.query", "index/other"));
}
