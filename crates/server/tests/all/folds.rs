//! The command `ombak admin fold` against a real node, and what the configuration says of folds.

use crate::support::Home;
use serde_json::{Value, json};

const SETTINGS: &str = "storage_backend = memory\nring_size = 8\ndelete_mode = keep";

fn json_of(home: &Home, words: &[&str]) -> Value {
    let said = home.run(&[&["admin", "fold"], words, &["--json"]].concat()).ok();
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{words:?}: {why}: {said}"))
}

fn keys(answer: &Value) -> Vec<&str> {
    answer["keys"].as_array().unwrap().iter().map(|key| key["key"].as_str().unwrap()).collect()
}

#[test]
fn folds_gather_what_was_written() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    for (key, value) in [("small", "v".to_owned()), ("large", "v".repeat(5_000)), ("gone", "v".to_owned())] {
        home.run(&["kv", "put", "b", key, &value]).ok();
    }
    home.run(&["kv", "put", "other", "k", "v"]).ok();
    home.run(&["kv", "delete", "b", "gone"]).ok();
    let stats = json_of(&home, &["stats", "b"]);
    assert_eq!((&stats["objects"], &stats["siblings"]), (&json!(3), &json!([{ "siblings": 1, "objects": 3 }])));
    assert!(stats["bytes"].as_u64().is_some_and(|bytes| (5_000..6_000).contains(&bytes)), "{stats}");
    assert_eq!(keys(&json_of(&home, &["sizes", "b", "--above", "4000"])), ["large"]);
    assert_eq!(keys(&json_of(&home, &["siblings", "b"])), Vec::<&str>::new());
    assert_eq!(keys(&json_of(&home, &["siblings", "b", "--above", "0"])), ["gone", "large", "small"]);
    assert_eq!(keys(&json_of(&home, &["tombstones", "b"])), ["gone"]);
    let range = ["siblings", "b", "--above", "0", "--first-key", "h"];
    assert_eq!(keys(&json_of(&home, &range)), ["large", "small"]);
    assert_eq!(keys(&json_of(&home, &[&range[..], &["--last-key", "m"]].concat())), ["large"]);
    assert_eq!(json_of(&home, &["stats", "b", "--until", "1000"])["objects"], json!(0));
    assert_eq!(json_of(&home, &["stats", "b", "--since", "1000"])["objects"], json!(3));
    let buckets = json!([{ "bucket_type": "default", "bucket": "b" }, { "bucket_type": "default", "bucket": "other" }]);
    assert_eq!(json_of(&home, &["buckets"])["buckets"], buckets);
    assert_eq!(home.run(&["admin", "fold", "buckets"]).ok().trim(), "default/b\ndefault/other");
    assert!(home.run(&["admin", "fold", "stats", "b"]).ok().starts_with("objects 3\n"));
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn a_fold_that_cannot_be_says_why() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    let said = home.run(&["admin", "fold", "stats", "b", "-t", "nosuch"]).failed(1);
    assert!(said.contains("no_type"), "{said}");
    let said = home.run(&["admin", "fold", "stats", "b", "--first-key", "b", "--last-key", "a"]).failed(1);
    assert!(said.contains("the last key is before the first one"), "{said}");
    let said = home.run(&["admin", "fold", "stats", "b", "--since", "9", "--until", "8"]).failed(1);
    assert!(said.contains("the times end before they begin"), "{said}");
    home.run(&["admin", "fold", "sizes", "b"]).failed(2);
    node.stop();
}

#[test]
fn a_node_without_trees_finds_nothing_as_in_riak() {
    let home = Home::new("storage_backend = memory\nring_size = 8\ntictacaae_active = passive");
    let node = home.start();
    home.run(&["kv", "put", "b", "k", "v"]).ok();
    assert_eq!(json_of(&home, &["stats", "b"])["objects"], json!(0));
    assert_eq!(json_of(&home, &["buckets"])["buckets"], json!([]));
    node.stop();
}
