//! The command `ombak admin top` against a real node.

use crate::support::{DEADLINE, Home, ombak, pause};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

const MEMORY: &str = "storage_backend = memory";

#[test]
fn the_hottest_keys_and_the_largest_objects_are_shown() {
    let home = Home::new(MEMORY);
    let node = home.start();
    home.run(&["kv", "put", "cold", "once", &"x".repeat(5_000)]).ok();
    home.run(&["kv", "put", "hot", "often", "v"]).ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let mut client = ombak_client::Client::connect(&node.pb).await.expect("connects");
        for _ in 0..40 {
            client.get(&ombak_types::Bucket::untyped("hot"), b"often").await.expect("reads");
        }
    });
    let json: Value =
        serde_json::from_str(&home.run(&["admin", "top", "--once", "--interval", "0.1", "--json"]).ok()).expect("JSON");
    assert_eq!(json["node"], "riak@127.0.0.1");
    assert!(json["counts"]["gets"].as_u64().is_some_and(|gets| gets >= 40), "{json}");
    assert!(json["last_minute_us"]["get"]["p99"].as_u64().is_some_and(|us| us > 0), "{json}");
    let hottest = &json["hot"]["keys"][0];
    assert_eq!(
        (&hottest["bucket_type"], &hottest["bucket"], &hottest["key"]),
        (&"default".into(), &"hot".into(), &"often".into())
    );
    assert!(hottest["requests"].as_u64().is_some_and(|requests| requests >= 15), "{json}");
    assert_eq!(json["hot"]["buckets"][0]["bucket"], "hot");
    let largest = &json["hot"]["largest_objects"][0];
    assert_eq!((&largest["key"], &largest["bytes"]), (&"once".into(), &5_000.into()));
    assert!(json["per_second"]["gets"].is_f64(), "{json}");
    let text = home.run(&["admin", "top", "--once", "--interval", "0.1"]).ok();
    assert!(text.starts_with("riak@127.0.0.1   up "), "{text}");
    assert!(text.contains("  default/hot/often\n") && text.contains("  default/cold/once"), "{text}");
    home.run(&["admin", "top", "--once", "--interval", "0"]).failed(2);
    node.stop();
    home.run(&["admin", "top", "--once"]).failed(1);
    home.assert_no_errors_logged();
}

#[test]
fn the_picture_is_renewed_until_the_node_is_gone() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let mut top = ombak()
        .current_dir(home.path())
        .args(["admin", "top", "--interval", "0.1", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("spawns");
    let mut lines = BufReader::new(top.stdout.take().expect("piped")).lines();
    for _ in 0..3 {
        let line = lines.next().expect("a picture").expect("text");
        assert!(serde_json::from_str::<Value>(&line).expect("JSON")["hot"].is_object());
    }
    node.stop();
    let deadline = Instant::now() + DEADLINE;
    let status = loop {
        if let Some(status) = top.try_wait().expect("waits") {
            break status;
        }
        assert!(Instant::now() < deadline, "top goes on without a node");
        pause(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(1));
}
