//! The command `ombak import bitcask`, as an operator uses it.

use crate::support::{Home, run};
use ombak_riak_files::bitcask::key::encode_v1;
use ombak_riak_files::bitcask::writer::FileWriter;
use ombak_types::{Bucket, Object, Sibling, VectorClock, riak_object};

/// Creates a source with one object.
fn source(home: &Home) {
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("from riak")] };
    let mut file = FileWriter::new(1);
    file.put(1_700_000_000, &encode_v1(&Bucket::untyped("greetings"), b"en"), &riak_object::encode(&object));
    file.save(&home.path().join("riak/0")).expect("write");
}

#[test]
fn a_stopped_node_takes_in_what_riak_had_and_serves_it() {
    let home = Home::new("");
    source(&home);
    let report = run(home.path(), &["import", "bitcask", "riak", "--json"]).ok();
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["complete"], &report["keys_new"]), (&true.into(), &1.into()), "{report}");

    let node = home.start();
    assert_eq!(run(home.path(), &["kv", "get", "greetings", "en"]).ok().trim_end(), "from riak");
    let refused = run(home.path(), &["import", "bitcask", "riak"]).failed(1);
    assert!(refused.starts_with("Node is already running!"), "{refused}");
    drop(node);
}

#[test]
fn what_cannot_be_imported_is_one_line() {
    let home = Home::new("");
    let missing = run(home.path(), &["import", "bitcask", "nowhere"]).failed(1);
    assert!(missing.starts_with("nowhere: ") && missing.lines().count() == 1, "{missing}");
    std::fs::create_dir(home.path().join("empty")).expect("create");
    let empty = run(home.path(), &["import", "bitcask", "empty"]).failed(1);
    assert!(empty.contains("has no partition directories") && empty.lines().count() == 1, "{empty}");
}

/// Each way in which a part of the source may not be imported, and the line of the report that says
/// so.
#[test]
fn an_import_that_leaves_something_out_fails_and_reports_it() {
    let home = Home::new("");
    source(&home);
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("typed")] };
    let mut file = FileWriter::new(1);
    file.put(1_700_000_000, &encode_v1(&Bucket::typed("carts", "c"), b"k"), &riak_object::encode(&object));
    file.save(&home.path().join("riak/1")).expect("write");
    let said = run(home.path(), &["import", "bitcask", "riak"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.out.starts_with("Imported, but not all of 2 of 2 partition directories"), "{}", said.out);
    assert!(said.out.contains("bucket type carts"), "{}", said.out);
    let said = run(home.path(), &["import", "bitcask", "riak", "--json", "--restart"]);
    assert_eq!(said.code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&said.out).expect("one document");
    assert_eq!((&report["complete"], &report["skipped_by_type"]["carts"]), (&true.into(), &1.into()), "{report}");

    std::fs::write(home.path().join("types.json"), r#"{"carts": {"props": {}}}"#).expect("write");
    let with_types = ["import", "bitcask", "riak", "--restart", "--types", "types.json"];
    assert!(run(home.path(), &with_types).ok().starts_with("Imported 2 of 2"));

    let mut file = FileWriter::new(2);
    file.put(1_700_000_000, &encode_v1(&Bucket::untyped("b"), b"k"), b"no object");
    file.save(&home.path().join("riak/1")).expect("write");
    let said = run(home.path(), &with_types);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.out.contains("Not readable: 1 places"), "{}", said.out);
}

#[test]
fn directories_of_ombak_are_refused_as_a_source_and_nothing_is_made() {
    let (home, other) = (Home::new(""), Home::new(""));
    let node = other.start();
    run(other.path(), &["kv", "put", "b", "k", "v"]).ok();
    node.stop();
    let root = other.data().join("bitcask");
    let store = std::fs::read_dir(&root).expect("list").map(|e| e.expect("entry").path()).find(|p| p.is_dir());
    for dir in [&root, &store.expect("a partition")] {
        let said = run(home.path(), &["import", "bitcask", dir.to_str().expect("UTF-8")]).failed(1);
        assert!(said.contains("one of Ombak") && said.lines().count() == 1, "{said}");
    }
    assert!(!home.data().exists(), "what is refused leaves nothing behind");
}
