//! An index follows its stores.

use crate::node::{Node, bucket, text};
use ombak_kv::{BucketRegistry, Kv};
use ombak_search::document_id::DocumentId;
use ombak_searching::{Search, SearchConfig};
use ombak_storage::fs::RealFs;
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::{Bucket, VectorClock};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

#[test]
fn what_is_stored_changed_and_deleted_shows() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.put_in(&Bucket::untyped("other"), "o", r#"{"name_s":"Lion-o"}"#, VectorClock::new());
    node.associate(&bucket(), "famous");
    node.put("lion", r#"{"name_s":"Lion-o","age_i":30}"#);
    node.put("cheetah", r#"{"name_s":"Cheetara","age_i":28}"#);
    node.wait_for("famous", "*:*", &["cheetah", "lion"]);
    node.wait_for("famous", "name_s:Lion*", &["lion"]);
    node.wait_for("famous", "age_i:[25 TO 29]", &["cheetah"]);
    node.put("cheetah", r#"{"name_s":"Cheetara","age_i":31}"#);
    node.wait_for("famous", "age_i:[25 TO 29]", &[]);
    node.wait_for("famous", "age_i:31", &["cheetah"]);
    node.put("bad", "{no json");
    node.wait_for("famous", "_yz_err:1", &["bad"]);
    node.delete("lion");
    node.wait_for("famous", "*:*", &["bad", "cheetah"]);
    node.close();
}

#[test]
fn a_value_that_has_expired_is_not_found_while_its_document_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    node.put("stays", r#"{"age_i":30}"#);
    let props = json!({"search_index": "famous", "ttl": 2});
    node.kv.buckets().set_bucket(&bucket(), props.as_object().unwrap()).unwrap();
    node.put("goes", r#"{"age_i":31}"#);
    // The reaper comes once a minute.
    node.wait_for_documents("famous", 2);
    node.wait_for("famous", "*:*", &["stays"]);
    assert_eq!(node.search.index_status("famous").unwrap().documents, 2);
    node.close();
}

#[test]
fn an_index_goes_on_where_it_was_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    for n in 0..20 {
        node.put(&format!("k{n:02}"), &format!(r#"{{"n_i":{n}}}"#));
    }
    node.wait_for("famous", "n_i:[18 TO *]", &["k18", "k19"]);
    node.close();
    let node = Node::open(dir.path());
    assert_eq!(node.search.index_status("famous").map(|status| status.info.schema), Some("_yz_default".into()));
    node.put("k18", r#"{"n_i":0}"#);
    node.delete("k17");
    node.wait_for("famous", "n_i:[16 TO *]", &["k16", "k19"]);
    node.wait_for_documents("famous", 19);
    node.close();
}

#[test]
fn each_sibling_has_a_document() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    node.put_in(&bucket(), "k", r#"{"name_s":"one"}"#, VectorClock::new());
    node.put_in(&bucket(), "k", r#"{"name_s":"two"}"#, VectorClock::new());
    node.wait_for("famous", "_yz_vtag:*", &["k", "k"]);
    let answer = node.query("famous", &[("q", "name_s:two")]).unwrap();
    let id = DocumentId::read(&text(&answer.documents[0], "_yz_id")).unwrap();
    assert!(id.vtag.is_some_and(|vtag| !vtag.is_empty()), "the id of a sibling has its vtag");
    node.put("k", r#"{"name_s":"three"}"#);
    node.wait_for("famous", "*:*", &["k"]);
    node.wait_for("famous", "name_s:three", &["k"]);
    node.wait_for("famous", "_yz_vtag:*", &[]);
    node.close();
}

#[test]
fn buckets_with_data_come_into_an_index_and_leave_it() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("a", None, None).unwrap();
    node.search.create_index("b", None, None).unwrap();
    let second = Bucket::untyped("second");
    node.put("one", r#"{"n_i":1}"#);
    node.put_in(&second, "two", r#"{"n_i":2}"#, VectorClock::new());
    node.associate(&bucket(), "a");
    node.wait_for("a", "*:*", &["one"]);
    node.associate(&second, "a");
    node.wait_for("a", "*:*", &["one", "two"]);
    node.associate(&bucket(), "b");
    node.wait_for("b", "*:*", &["one"]);
    node.wait_for("a", "*:*", &["two"]);
    node.wait_for_documents("a", 1);
    node.associate(&second, "_dont_index_");
    node.wait_for("a", "*:*", &[]);
    node.wait_for_documents("a", 0);
    node.close();
}

#[test]
fn what_is_stored_just_before_another_bucket_comes_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    node.put("first", r#"{"n_i":1}"#);
    node.wait_for("famous", "n_i:1", &["first"]);
    let mut expected = vec!["first".to_owned()];
    for round in 0..10 {
        for n in 0..5 {
            let key = format!("k{round}-{n}");
            node.put(&key, r#"{"n_i":1}"#);
            expected.push(key);
        }
        node.associate(&Bucket::untyped(format!("joins{round}")), "famous");
    }
    node.delete("first");
    expected.remove(0);
    expected.sort();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    node.wait_for("famous", "n_i:1", &expected);
    node.close();
}

#[test]
fn an_index_whose_files_are_damaged_or_lost_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    for n in 0..10 {
        node.put(&format!("k{n}"), r#"{"n_i":1}"#);
    }
    node.wait_for_documents("famous", 10);
    node.close();
    let build = fs::read_dir(dir.path().join("search")).unwrap().next().unwrap().unwrap().path();
    let documents = build.join("documents");
    for entry in fs::read_dir(&documents).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "store" || extension == "idx") {
            fs::write(&path, b"damaged").unwrap();
        }
    }
    let node = Node::open(dir.path());
    node.wait_for_documents("famous", 10);
    node.wait_for("famous", "n_i:1 AND _yz_rk:k3", &["k3"]);
    node.close();
    fs::remove_dir_all(dir.path().join("search")).unwrap();
    let node = Node::open(dir.path());
    node.wait_for("famous", "n_i:1 AND _yz_rk:k3", &["k3"]);
    node.wait_for_documents("famous", 10);
    node.close();
}

#[test]
fn an_index_whose_files_go_while_the_node_runs_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    node.put("before", r#"{"n_i":1}"#);
    node.wait_for("famous", "n_i:1", &["before"]);
    fs::remove_dir_all(dir.path().join("search")).unwrap();
    node.put("after", r#"{"n_i":1}"#);
    node.wait_for("famous", "n_i:1", &["after", "before"]);
    node.close();
}

/// A member of a cluster opens its stores before it knows the records of its cluster.
#[test]
fn files_stay_until_the_records_of_the_node_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    node.put("k", r#"{"n_i":1}"#);
    node.wait_for("famous", "n_i:1", &["k"]);
    node.close();
    let files = || fs::read_dir(dir.path().join("search")).unwrap().count();
    let other = tempfile::tempdir().unwrap();
    let buckets = BucketRegistry::open(Arc::new(RealFs), other.path(), "n", &Default::default()).unwrap();
    let runtime = ombak_kv::KvConfig::new("n", other.path(), memory()).runtime;
    let search = Search::new(SearchConfig::new(dir.path().join("search")), runtime);
    let source = search.consumer_source();
    assert!(source.consumers(&buckets, &BTreeSet::new()).is_none(), "nothing is known yet");
    assert_eq!(files(), 1);
    let kv = Kv::open(ombak_kv::KvConfig::new("n", other.path(), memory())).unwrap();
    search.attach(&kv);
    assert!(source.consumers(&buckets, &BTreeSet::new()).is_some_and(|all| all.is_empty()));
    assert_eq!(files(), 0, "there is no such index");
    kv.close();
}

fn memory() -> Arc<MemoryFactory> {
    Arc::new(MemoryFactory::new(MemoryConfig::default()))
}
