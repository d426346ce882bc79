//! A node on each backend: it keeps what it is given, answers index queries, and starts again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::{Home, Node, ask};

/// Each with the settings that a test needs; all keep their data.
const ON_DISK: [(&str, &str); 6] = [
    ("bitcask", "storage_backend = bitcask"),
    ("bitcask, compressed", "storage_backend = bitcask\nbitcask.compression = zstd"),
    ("leveled", "storage_backend = leveled"),
    ("leveldb", "storage_backend = leveldb\nleveldb.maximum_memory = 64MB"),
    ("hanoidb", "storage_backend = hanoidb\nleveldb.maximum_memory = 64MB"),
    (
        "multi",
        "storage_backend = multi\nmulti_backend.default = ordered\n\
         multi_backend.ordered.storage_backend = leveldb\nmulti_backend.ordered.leveldb.maximum_memory = 64MB\n\
         multi_backend.big.storage_backend = leveled",
    ),
];

#[track_caller]
fn put(node: &Node, bucket: &str, key: &str, value: &str) {
    let headers = format!("Content-Type: text/plain\r\nX-Riak-Index-rank_int: {}\r\n", key.len());
    let answer = ask(node, "PUT", &format!("/buckets/{bucket}/keys/{key}"), &headers, value);
    assert!(answer.starts_with("HTTP/1.1 204"), "{bucket}/{key}: {answer}");
}

fn get(node: &Node, bucket: &str, key: &str) -> String {
    ask(node, "GET", &format!("/buckets/{bucket}/keys/{key}"), "", "")
}

fn ranks(node: &Node, bucket: &str, from: usize, to: usize) -> String {
    let answer = ask(node, "GET", &format!("/buckets/{bucket}/index/rank_int/{from}/{to}"), "", "");
    answer.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned()
}

#[test]
fn a_node_on_each_backend_keeps_what_it_was_given() {
    let value = "a value that is worth compressing, ".repeat(30);
    for (name, settings) in ON_DISK {
        let home = Home::new(settings);
        let node = home.start();
        for key in ["a", "bb", "ccc"] {
            put(&node, "b", key, &value);
        }
        node.stop();
        let node = home.start();
        assert!(get(&node, "b", "bb").ends_with(&value), "{name}");
        assert!(get(&node, "b", "x").starts_with("HTTP/1.1 404"), "{name}");
        assert_eq!(ranks(&node, "b", 2, 9), r#"{"keys":["bb","ccc"]}"#, "{name}");
        put(&node, "b", "a", "another");
        node.kill();
        let node = home.start();
        assert!(get(&node, "b", "a").ends_with("\r\n\r\nanother"), "{name}");
        assert_eq!(ranks(&node, "b", 1, 1), r#"{"keys":["a"]}"#, "{name}");
        node.stop();
        home.assert_no_errors_logged();
    }
}
