//! The administration of search.

use super::administration::admin_context;
use super::{Answer, Server};
use crate::http::HttpLimits;
use crate::search::testing::search_without_indexes;
use crate::{JobSwitches, MemoryLimits};
use ombak_kv::{KvConfig, head_terms};
use ombak_search::schema::DEFAULT_SCHEMA_XML;
use ombak_storage::{MemoryConfig, MemoryFactory};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

const HEADERS: &str = "X-Ombak-Admin: 1\r\nAuthorization: Bearer secret\r\n";

async fn administered(has_search: bool) -> Server {
    let (dir, backups) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (search, hooks) = search_without_indexes(dir.path());
    let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let config = KvConfig { ring_size: 8, hooks, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
    let (limits, jobs) = (HttpLimits::default(), JobSwitches::default());
    Server::changed(config, dir, MemoryLimits::default(), limits, jobs, |mut ctx| {
        search.attach(&ctx.kv);
        let admin = admin_context(ctx.kv.clone(), &backups);
        ctx.admin = Some(if has_search { admin.with_search(search) } else { admin });
        ctx
    })
    .await
}

async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.request(method, &format!("/admin/v1/search/{path}"), HEADERS, &body).await
}

fn refused(answer: &Answer) -> (u16, String, String) {
    let error = &answer.json()["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (answer.status, text("kind"), text("message"))
}

#[tokio::test]
async fn indexes_are_created_listed_rebuilt_and_deleted() {
    let server = administered(true).await;
    let ask = async |method: &str, path: &str, body: Value| ask(&server, method, path, &body).await;
    assert_eq!(ask("GET", "indexes", Value::Null).await.json(), json!({ "indexes": [] }));
    let expected = json!({"name": "people", "schema": "_yz_default", "n_val": 2, "build": null, "next_build": null,
        "documents": 0, "bytes": 0, "partitions": [], "last_error": null});
    let created = ask("POST", "indexes/people/create", json!({ "n_val": 2 })).await;
    assert_eq!((created.status, created.json()), (200, expected.clone()));
    assert_eq!(ask("GET", "indexes/people", Value::Null).await.json(), expected);
    assert_eq!(ask("GET", "indexes", Value::Null).await.json(), json!({ "indexes": [expected.clone()] }));
    assert_eq!(ask("POST", "indexes/people/rebuild", Value::Null).await.json(), expected);
    assert_eq!(ask("POST", "indexes/people/delete", Value::Null).await.json(), json!({ "name": "people" }));
    for (method, path) in
        [("GET", "indexes/people"), ("POST", "indexes/people/delete"), ("POST", "indexes/people/rebuild")]
    {
        let expected = (404, "no_such_index".to_owned(), "there is no index people".to_owned());
        assert_eq!(refused(&ask(method, path, Value::Null).await), expected, "{method} {path}");
    }
    let no_schema = refused(&ask("POST", "indexes/people/create", json!({ "schema": "nosuch" })).await);
    assert_eq!(no_schema, (404, "no_such_schema".to_owned(), "there is no schema nosuch".to_owned()));
    let (status, kind, why) = refused(&ask("POST", "indexes/people/create", json!({ "n_val": 0 })).await);
    assert!((status, &*kind) == (400, "bad_request") && why.starts_with("n_val has to be"), "{status} {kind} {why}");
    let (status, kind, why) = refused(&ask("POST", "indexes/people/grow", Value::Null).await);
    assert!((status, &*kind) == (404, "no_such_resource") && why.ends_with("index action 'grow'"), "{why}");
}

#[tokio::test]
async fn schemas_are_uploaded_and_shown() {
    let server = administered(true).await;
    let ask = async |method: &str, path: &str, body: Value| ask(&server, method, path, &body).await;
    let own = format!("{DEFAULT_SCHEMA_XML}<!-- ü -->");
    let kept = ask("POST", "schemas/own/upload", json!({ "source": own })).await;
    assert_eq!((&kept.json()["name"], &kept.json()["bytes"]), (&json!("own"), &json!(own.len())), "{}", kept.text());
    assert!(kept.json()["notes"].is_array());
    let default = json!({ "name": "_yz_default", "bytes": DEFAULT_SCHEMA_XML.len() });
    let all = json!({ "schemas": [default, { "name": "own", "bytes": own.len() }] });
    assert_eq!(ask("GET", "schemas", Value::Null).await.json(), all);
    // What analyzers do otherwise than in Solr is said, too.
    let filter = r#"<filter class="solr.LowerCaseFilterFactory"/>"#;
    let with_names = r#"<filter class="solr.KeywordMarkerFilterFactory" protected="names.txt"/>"#;
    let other = DEFAULT_SCHEMA_XML.replacen(filter, &format!("{with_names}{filter}"), 1);
    let noted = ask("POST", "schemas/other/upload", json!({ "source": other })).await.json();
    let [.., note] = &noted["notes"].as_array().unwrap()[..] else { panic!("{noted}") };
    assert!(note.as_str().unwrap().contains("KeywordMarkerFilter: this has no effect"), "{noted}");
    assert_eq!(noted["notes"].as_array().unwrap().len(), kept.json()["notes"].as_array().unwrap().len() + 1);
    let shown = ask("GET", "schemas/own", Value::Null).await.json();
    assert_eq!(shown, json!({ "name": "own", "bytes": own.len(), "source": own }));
    assert_eq!(ask("GET", "schemas/_yz_default", Value::Null).await.json()["source"], DEFAULT_SCHEMA_XML);
    assert_eq!(refused(&ask("GET", "schemas/nosuch", Value::Null).await).1, "no_such_schema");
    assert_eq!(refused(&ask("POST", "schemas/x/upload", json!({ "source": "<schema" })).await).1, "bad_request");
    assert_eq!(refused(&ask("POST", "schemas/x/upload", Value::Null).await).1, "bad_request");
    assert_eq!(refused(&ask("POST", "schemas/x/drop", Value::Null).await).1, "no_such_resource");
}

#[tokio::test]
async fn a_node_without_search_says_how_it_is_switched_on() {
    let server = administered(false).await;
    for (method, path, body) in [
        ("GET", "indexes", Value::Null),
        ("GET", "indexes/people", Value::Null),
        ("POST", "indexes/people/create", Value::Null),
        ("POST", "indexes/people/delete", Value::Null),
        ("POST", "indexes/people/rebuild", Value::Null),
        ("GET", "schemas", Value::Null),
        ("GET", "schemas/_yz_default", Value::Null),
        ("POST", "schemas/own/upload", json!({ "source": DEFAULT_SCHEMA_XML })),
    ] {
        let (status, kind, why) = refused(&ask(&server, method, path, &body).await);
        assert_eq!((status, &*kind), (409, "refused"), "{method} {path}");
        assert!(why.starts_with("search is off on this node; search = on"), "{method} {path}: {why}");
    }
}
