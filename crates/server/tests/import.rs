//! `ombak import bitcask` as an operator uses it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use ombak_storage::riak_bitcask::key::encode_v1;
use ombak_storage::riak_bitcask::writer::FileWriter;
use ombak_types::{Bucket, Object, Sibling, VectorClock, riak_object};
use support::{Home, run};

/// A source with one object.
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
