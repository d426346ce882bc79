//! Indexes and schemas are created, deleted and rebuilt.

use crate::node::{Node, bucket};
use ombak_search::schema::DEFAULT_SCHEMA_XML;
use ombak_searching::{AdminError, SearchError};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn an_index_is_not_deleted_while_a_bucket_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    let refused = node.kv.buckets().set_bucket(&bucket(), json!({"search_index": "a"}).as_object().unwrap());
    assert!(refused.is_err(), "there is no such index");
    node.search.create_index("a", None, None).unwrap();
    node.search.create_index("a", Some("none"), None).unwrap();
    node.associate(&bucket(), "a");
    node.put("one", r#"{"n_i":1}"#);
    node.wait_for("a", "*:*", &["one"]);
    let refused = node.search.delete_index("a").unwrap_err().to_string();
    assert_eq!(refused, "Can't delete index with associate buckets [people]");
    node.associate(&bucket(), "_dont_index_");
    node.search.delete_index("a").unwrap();
    assert!(matches!(node.search.delete_index("a"), Err(AdminError::NotFound)));
    let error = node.query("a", &[("q", "*:*")]).unwrap_err();
    assert!(matches!(error, SearchError::NoIndex(_)));
    assert_eq!(error.to_string(), "No index <<\"a\">> found.");
    let deadline = Instant::now() + Duration::from_secs(20);
    while fs::read_dir(dir.path().join("search")).unwrap().next().is_some() {
        assert!(Instant::now() < deadline, "the files of the index go");
        std::thread::yield_now();
    }
    // An index of the same name is another one.
    node.search.create_index("a", None, None).unwrap();
    node.wait_for("a", "*:*", &[]);
    node.close();
}

#[test]
fn what_an_index_cannot_be_created_with_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    let create = |name, schema, n_val| node.search.create_index(name, schema, n_val).unwrap_err().to_string();
    assert!(create("a/b", None, None).starts_with("Invalid character in index name"));
    assert_eq!(create("a", Some("none"), None), "Schema none does not exist");
    assert_eq!(create("a", None, Some(0)), "n_val has to be an integer from 1 to 255");
    assert!(node.search.indexes().is_empty());
    let refused = node.search.put_schema("s", b"<schema>").unwrap_err();
    assert!(matches!(refused, AdminError::BadSchema(_)), "{refused}");
    node.search.put_schema("s", DEFAULT_SCHEMA_XML.as_bytes()).unwrap();
    assert_eq!(node.search.schema("s").unwrap(), DEFAULT_SCHEMA_XML.as_bytes());
    node.close();
}

#[test]
fn a_rebuild_takes_the_new_schema_and_the_old_build_answers_until_then() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.put_schema("own", DEFAULT_SCHEMA_XML.as_bytes()).unwrap();
    node.search.create_index("a", Some("own"), None).unwrap();
    node.associate(&bucket(), "a");
    node.put("one", r#"{"zipcode":"12345","name_s":"x"}"#);
    node.wait_for("a", "name_s:x", &["one"]);
    let field = r#"<field name="zipcode" type="string" indexed="true" stored="true"/>"#;
    let changed = DEFAULT_SCHEMA_XML.replacen("<fields>", &format!("<fields>{field}"), 1);
    assert_ne!(changed, DEFAULT_SCHEMA_XML);
    node.search.put_schema("own", changed.as_bytes()).unwrap();
    node.wait_for("a", "name_s:x", &["one"]);
    node.search.rebuild_index("a").unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while node.search.index_status("a").unwrap().builds != (Some(1), None) {
        assert_eq!(node.keys("a", "name_s:x").0, ["one"], "some build answers all the time");
        assert!(Instant::now() < deadline, "{:?}", node.search.index_status("a"));
    }
    node.wait_for("a", "zipcode:12345", &["one"]);
    while fs::read_dir(dir.path().join("search")).unwrap().count() > 1 {
        assert!(Instant::now() < deadline, "the files of the build of before go");
        std::thread::yield_now();
    }
    node.close();
}
