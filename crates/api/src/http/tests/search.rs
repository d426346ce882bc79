//! Search as clients see it, as far as no index has to answer.

use super::{Answer, DEADLINE, Server};
use crate::access::NotedAccesses;
use crate::http::HttpLimits;
use crate::search::testing::search_without_indexes;
use crate::{JobClass, JobSwitches, MemoryLimits};
use ombak_kv::{KvConfig, head_terms};
use ombak_search::schema::DEFAULT_SCHEMA_XML;
use ombak_storage::{MemoryConfig, MemoryFactory};
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

const JSON: &str = "Content-Type: application/json\r\n";
const XML: &str = "Content-Type: application/xml\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// A node with search.
async fn searching(jobs: JobSwitches, policy: Option<Arc<NotedAccesses>>) -> Server {
    let dir = TempDir::new().unwrap();
    let (search, hooks) = search_without_indexes(dir.path());
    let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let config = KvConfig { ring_size: 8, hooks, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
    Server::changed(config, dir, MemoryLimits::default(), HttpLimits::default(), jobs, |ctx| {
        search.attach(&ctx.kv);
        let ctx = ctx.with_search(search);
        match policy {
            Some(policy) => ctx.with_policy(policy),
            None => ctx,
        }
    })
    .await
}

async fn open() -> Server {
    searching(JobSwitches::default(), None).await
}

#[tokio::test]
async fn the_root_names_the_resources_of_search() {
    let root = open().await.request("GET", "/", "Accept: application/json\r\n", "").await.json();
    for name in ["yz_wm_extract", "yz_wm_index", "yz_wm_schema"] {
        assert_eq!(root[name], "/search", "{name}");
    }
    assert!(root["yz_wm_search"].is_string() && root["riak_kv_wm_ping"] == "/ping");
}

fn said(answer: &Answer) -> (u16, String) {
    (answer.status, answer.text())
}

#[tokio::test]
async fn an_index_is_created_shown_and_deleted() {
    let server = open().await;
    let ask = async |method: &str, path: &str| said(&server.request(method, path, "", "").await);
    assert_eq!(ask("GET", "/search/index").await, (200, "[]".into()));
    assert_eq!(ask("GET", "/search/index/people").await, (404, "not found\n".into()));
    for _ in 0..2 {
        assert_eq!(ask("PUT", "/search/index/people").await, (204, String::new()));
    }
    let created = server.request("PUT", "/search/index/a%20b?timeout=100", JSON, r#"{"n_val":5}"#).await;
    assert_eq!(created.status, 204, "{}", created.text());
    let people = r#"{"name":"people","n_val":3,"schema":"_yz_default"}"#;
    let other = r#"{"name":"a b","n_val":5,"schema":"_yz_default"}"#;
    let shown = server.get("/search/index/people").await;
    assert_eq!((shown.text().as_str(), shown.header("content-type")), (people, Some("application/json")));
    assert_eq!(ask("GET", "/search/index").await, (200, format!("[{other},{people}]")));
    assert_eq!(ask("DELETE", "/search/index/a+b").await, (204, String::new()));
    assert_eq!(ask("DELETE", "/search/index/a+b").await, (404, "not found\n".into()));
    assert_eq!(ask("GET", "/search/index").await, (200, format!("[{people}]")));
    assert_eq!(ask("POST", "/search/index/people").await.0, 405);
    assert_eq!(ask("DELETE", "/search/index").await.0, 405);
}

#[tokio::test]
async fn an_index_that_cannot_be_says_why() {
    let server = open().await;
    let put = async |path: &str, headers: &str, body: &str| said(&server.request("PUT", path, headers, body).await);
    let path = "/search/index/people";
    assert_eq!(put(path, JSON, r#"{"schema":"nosuch"}"#).await, (400, "Schema nosuch does not exist\n".into()));
    for wrong in [r#"{"n_val":0}"#, r#"{"n_val":"3"}"#, r#"{"n_val":256}"#] {
        let (status, text) = put(path, JSON, wrong).await;
        assert!(status == 400 && text.starts_with("n_val has to be"), "{wrong}: {status} {text}");
    }
    assert_eq!(put(path, JSON, "{").await.0, 400);
    assert_eq!(put(path, XML, "{}").await.0, 415);
    assert_eq!(put(path, JSON, &" ".repeat(10_000)).await.0, 413);
    for name in ["gr%C3%B6sse", "a%2Fb", "%FF"] {
        let (status, text) = put(&format!("/search/index/{name}"), "", "").await;
        assert!(status == 400 && text.starts_with("Invalid character in index name"), "{name}: {status} {text}");
    }
    assert_eq!(server.get("/search/index").await.text(), "[]");
}

#[tokio::test]
async fn an_index_that_a_bucket_names_is_not_deleted() {
    let server = open().await;
    let props = async |props: &str| {
        let answer = server.request("PUT", "/buckets/b/props", JSON, &format!("{{\"props\":{props}}}")).await;
        (answer.status, answer.text())
    };
    assert_eq!(props(r#"{"search_index":"people"}"#).await.0, 400, "there is no such index yet");
    assert_eq!(server.request("PUT", "/search/index/people", "", "").await.status, 204);
    assert_eq!(props(r#"{"search_index":"people"}"#).await, (204, String::new()));
    let refused = server.request("DELETE", "/search/index/people", "", "").await;
    assert_eq!(said(&refused), (409, "Can't delete index with associate buckets [b]\n".into()));
    assert_eq!(props(r#"{"search_index":"_dont_index_"}"#).await.0, 204);
    assert_eq!(server.request("DELETE", "/search/index/people", "", "").await.status, 204);
}

#[tokio::test]
async fn a_schema_comes_back_byte_for_byte() {
    let server = open().await;
    let default = server.get("/search/schema/_yz_default").await;
    assert_eq!(
        (default.header("content-type"), default.text().as_str()),
        (Some("application/xml"), DEFAULT_SCHEMA_XML)
    );
    let put = async |name: &str, headers: &str, body: &str| {
        said(&server.request("PUT", &format!("/search/schema/{name}"), headers, body).await)
    };
    let own = format!("{DEFAULT_SCHEMA_XML}\n<!-- ü -->\n");
    assert_eq!(put("own", XML, &own).await, (204, String::new()));
    assert_eq!(server.get("/search/schema/own").await.body, own.as_bytes());
    assert_eq!(server.request("PUT", "/search/index/i", JSON, r#"{"schema":"own"}"#).await.status, 204);
    assert_eq!(said(&server.get("/search/schema/nosuch").await), (404, "not found\n".into()));
    assert_eq!(put("other", "Content-Type: text/plain\r\n", &own).await.0, 415);
    assert_eq!(put("other", "", &own).await.0, 415);
    for (name, body) in
        [("other", &own[..own.len() / 2]), ("other", "<schema name='x' version='1.5'/>"), ("a%2Fb", &own)]
    {
        let (status, text) = put(name, XML, body).await;
        assert!(status == 400 && text.starts_with("Error storing schema: "), "{name}: {status} {text}");
    }
    assert_eq!(server.get("/search/schema/other").await.status, 404);
    assert_eq!(server.request("DELETE", "/search/schema/own", "", "").await.status, 405);
}

#[tokio::test]
async fn a_query_is_read_from_the_address_and_from_a_form() {
    let server = open().await;
    assert_eq!(server.request("PUT", "/search/index/people", "", "").await.status, 204);
    let wrong = "sort=age_i%20up&wt=json";
    let expected = async |answer: Answer| {
        let error = answer.json();
        assert_eq!((answer.status, &error["error"]["code"]), (400, &400.into()));
        assert_eq!(answer.header("content-type"), Some("application/json; charset=UTF-8"));
        let message = error["error"]["msg"].as_str().unwrap().to_owned();
        assert!(message.starts_with("sort: "), "{message}");
    };
    expected(server.get(&format!("/search/query/people?q=*:*&{wrong}")).await).await;
    expected(server.get(&format!("/solr/people/select?q=*:*&{wrong}")).await).await;
    expected(server.request("POST", "/search/query/people", FORM, &format!("q=*:*&{wrong}")).await).await;
    expected(
        server
            .request("POST", "/solr/people/select?q=*:*", &format!("{}; charset=UTF-8\r\n", FORM.trim()), wrong)
            .await,
    )
    .await;
    let head = server.request("HEAD", &format!("/search/query/people?{wrong}"), "", "").await;
    assert_eq!((head.status, head.body.len()), (400, 0));
    let xml = server.get("/search/query/people?q=a:(").await;
    assert_eq!((xml.status, xml.header("content-type")), (400, Some("application/xml; charset=UTF-8")));
    assert!(xml.text().contains("<int name=\"status\">400</int>"), "{}", xml.text());
    for (headers, body) in [(JSON, "{}"), ("Content-Type: text/plain\r\n", "q=*:*"), ("", "q=*:*"), (JSON, "")] {
        assert_eq!(server.request("POST", "/search/query/people", headers, body).await.status, 415, "{headers}");
    }
    assert_eq!(server.request("PUT", "/search/query/people", "", "").await.status, 405);
}

#[tokio::test]
async fn parameters_are_bounded_texts() {
    let server = open().await;
    assert_eq!(server.request("PUT", "/search/index/people", "", "").await.status, 204);
    let post = async |body: &str| {
        let answer = server.request("POST", "/search/query/people", FORM, body).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        answer.text()
    };
    assert!(post("q=%FF").await.contains("not in UTF-8"));
    assert!(post(&"a=b&".repeat(2_000)).await.contains("more than 1024 parameters"));
    assert!(post(&format!("q={}", "a".repeat(2 << 20))).await.contains("more than 1048576 bytes"));
    assert!(post(&"&".repeat(5 << 20)).await.contains("more than 1048576 bytes"));
}

#[tokio::test]
async fn what_cannot_be_searched_has_riaks_words() {
    let server = open().await;
    let unknown = server.get("/search/query/people?q=*:*").await;
    assert_eq!(said(&unknown), (404, "No index <<\"people\">> found.\n".into()));
    assert_eq!(unknown.header("content-type"), Some("text/plain"));
    assert_eq!(server.get("/search/query/%FF%00?q=*:*").await.text(), "No index <<255,0>> found.\n");
    assert_eq!(server.request("PUT", "/search/index/people", "", "").await.status, 204);
    let began = Instant::now();
    let nobody = server.get("/search/query/people?q=*:*").await;
    assert_eq!(said(&nobody), (503, "Not enough nodes are up to service this request.\n".into()));
    assert!(began.elapsed() < DEADLINE);
}

#[tokio::test]
async fn queries_are_switched_off_as_a_class_of_jobs() {
    let server = searching(JobSwitches::default().with(JobClass::YokozunaQuery, false), None).await;
    assert_eq!(server.request("PUT", "/search/index/people", "", "").await.status, 204);
    for path in ["/search/query/people?q=*:*", "/solr/people/select?q=*:*"] {
        let expected = (403, "Operation '{yokozuna,query}' is not enabled".to_owned());
        assert_eq!(said(&server.get(path).await), expected, "{path}");
    }
}

#[tokio::test]
async fn a_value_shows_what_it_would_have_for_an_index() {
    let server = open().await;
    let put = async |headers: &str, body: &str| said(&server.request("PUT", "/search/extract", headers, body).await);
    assert_eq!(put(JSON, r#"{"a":{"b":"c"}}"#).await, (200, r#"{"a.b":"c"}"#.into()));
    assert_eq!(put("yz-extractor: yz_xml_extractor\r\n", "<a>b</a>").await, (200, r#"{"a":"b"}"#.into()));
    let (status, text) = put(JSON, "{").await;
    assert!(status == 400 && text.starts_with("The value cannot be read: "), "{status} {text}");
    let (status, text) = put("yz-extractor: mine\r\n", "v").await;
    assert!(status == 400 && text.contains("yz_noop_extractor"), "{status} {text}");
    assert_eq!(server.get("/search/extract").await.status, 405);
}

/// Requests with the permission that each needs, and what it is for.
const REQUESTS: [(&str, &str, &str, &str); 10] = [
    ("GET", "/search/query/people?q=a", "search.query", "index/people"),
    ("POST", "/search/query/people", "search.query", "index/people"),
    ("GET", "/solr/people/select?q=a", "search.query", "index/people"),
    ("GET", "/search/index", "search.admin", "index/-"),
    ("GET", "/search/index/people", "search.admin", "index/-"),
    ("PUT", "/search/index/people", "search.admin", "index/-"),
    ("DELETE", "/search/index/people", "search.admin", "index/-"),
    ("GET", "/search/schema/_yz_default", "search.admin", "schema/-"),
    ("PUT", "/search/schema/own", "search.admin", "schema/-"),
    ("PUT", "/search/extract", "search.admin", "index/-"),
];

#[tokio::test]
async fn the_policy_is_asked_for_each_request_and_its_refusal_is_the_answer() {
    let policy = Arc::new(NotedAccesses::refusing());
    let server = searching(JobSwitches::default(), Some(policy.clone())).await;
    for (method, path, permission, place) in REQUESTS {
        let answer = server.request(method, path, "", "").await;
        assert_eq!(said(&answer), (403, format!("no {permission}")), "{method} {path}");
        assert_eq!(policy.take(), [(permission, place.to_owned())], "{method} {path}");
    }
    assert!(server.ctx.search.as_ref().unwrap().indexes().is_empty(), "nothing was created");
}

#[tokio::test]
async fn a_node_without_search_has_none_of_its_paths() {
    let policy = Arc::new(NotedAccesses::default());
    let server = Server::guarded(policy.clone()).await;
    for (method, path, ..) in REQUESTS {
        let answer = server.request(method, path, "", "").await;
        assert_eq!(answer.status, 404, "{method} {path}");
        assert!(answer.text().contains("<title>404 Not Found</title>"), "{method} {path}");
    }
    assert!(policy.take().is_empty());
}
