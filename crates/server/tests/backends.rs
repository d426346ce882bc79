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

#[test]
fn buckets_lie_in_the_backend_that_they_name() {
    let home = Home::new(
        "storage_backend = prefix_multi\nmulti_backend.default = small\nmulti_backend_prefix_list = 0b:=big\n\
         multi_backend.small.storage_backend = bitcask\nmulti_backend.big.storage_backend = leveled",
    );
    let node = home.start();
    let props = |bucket: &str, body: &str| {
        ask(&node, "PUT", &format!("/buckets/{bucket}/props"), "Content-Type: application/json\r\n", body)
    };
    let refused = props("b", r#"{"props":{"backend":"other"}}"#);
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("it is one of small, big"), "{refused}");
    assert!(props("named", r#"{"props":{"backend":"big"}}"#).starts_with("HTTP/1.1 204"));
    for (bucket, key) in [("plain", "a"), ("named", "b"), ("named", "c"), ("0b:x", "d")] {
        put(&node, bucket, key, "value");
    }
    let status = home.run(&["admin", "vnode-status", "--json"]).ok();
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let keys = |name: &str| -> u64 {
        let vnodes = status["vnodes"].as_array().expect("vnodes").iter();
        vnodes.filter_map(|vnode| vnode["status"]["backends"][name]["status"]["key_count"].as_u64()).sum()
    };
    assert_eq!((keys("small"), keys("big")), (1, 3), "{status}");
    let metrics = ask(&node, "GET", "/metrics", "", "");
    assert!(metrics.contains("ombak_store_keys{backend=\"leveled\",name=\"big\"} 3"), "{metrics}");
    assert!(home.run(&["admin", "vnode-status"]).ok().contains(" leveled "));
    node.stop();
    assert!(home.data().join("leveled").is_dir() && home.data().join("bitcask").is_dir());
    let node = home.start();
    assert_eq!(ranks(&node, "named", 1, 1), r#"{"keys":["b","c"]}"#);
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn a_backend_that_has_the_objects_cannot_be_forgotten() {
    let home = Home::new("storage_backend = bitcask");
    let node = home.start();
    put(&node, "b", "k", "value");
    node.stop();
    for other in ["leveled", "leveldb", "memory"] {
        let mut start = home.start_command();
        let refused: support::Said = start.env("OMBAK_STORAGE_BACKEND", other).output().expect("runs").into();
        let said = refused.failed(1);
        assert!(said.contains("objects of this node lie in the bitcask files of"), "{said}");
        assert!(said.contains(&format!("storage_backend = {other} does not use")), "{said}");
    }
    let node = home.start();
    assert!(get(&node, "b", "k").ends_with("value"));
    node.stop();
}

#[test]
fn an_empty_node_may_become_another() {
    let home = Home::new("");
    for backend in ["leveldb", "leveled", "bitcask"] {
        let mut command = home.start_command();
        command.env("OMBAK_STORAGE_BACKEND", backend).env("OMBAK_LEVELDB__MAXIMUM_MEMORY", "64MB");
        Node::start(command, home.data()).stop();
    }
}
