//! The log of slow requests of a real node, over both protocols.

use crate::support::{DEADLINE, Home, Node, ask, pause};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Reading, checking and copying a value of this size takes longer than a millisecond.
const LARGE_BYTES: usize = 8 << 20;

fn slow_lines(home: &Home) -> Vec<Value> {
    let lines = home.logged("WARN");
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["message"] == "slow request").collect()
}

/// Waits until the log has a line about such a request.
#[track_caller]
fn wait_for(home: &Home, operation: &str, key: &Value) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let lines = slow_lines(home);
        if let Some(line) = lines.iter().find(|line| line["operation"] == operation && line["key"] == *key) {
            return line.clone();
        }
        assert!(Instant::now() < deadline, "no line about {operation} {key}: {lines:#?}");
        pause(Duration::from_millis(5));
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn large_node(limit: &str) -> (Home, Node) {
    let home = Home::new(&format!("log.slow_request = {limit}\nlogger.max_file_size = 10MB"));
    let node = home.start();
    (home, node)
}

#[test]
fn slow_requests_over_both_protocols_are_logged_with_their_parts() {
    let (home, node) = large_node("1ms");
    let value = "v".repeat(LARGE_BYTES);
    assert_eq!(status(&ask(&node, "PUT", "/buckets/b/keys/http", "Content-Type: text/plain\r\n", &value)), "204");
    let line = wait_for(&home, "put", &"http".into());
    assert_eq!(
        (&line["bucket_type"], &line["bucket"], &line["result"]),
        (&"default".into(), &"b".into(), &"ok".into())
    );
    assert_eq!(line["target"], "ombak_kv::slow::put");
    let (took, store) = (line["took_ms"].as_f64().unwrap(), line["store_ms"].as_f64().unwrap());
    assert!(took >= 1.0 && store > 0.0 && store <= took, "{line}");
    assert_eq!(home.run(&["kv", "get", "b", "http"]).ok().len(), LARGE_BYTES);
    wait_for(&home, "get", &"http".into());
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn the_limit_is_changed_while_the_node_runs() {
    let (home, node) = large_node("off");
    let value = "v".repeat(LARGE_BYTES);
    let put = |key: &str| {
        let path = format!("/buckets/b/keys/{key}");
        assert_eq!(status(&ask(&node, "PUT", &path, "Content-Type: text/plain\r\n", &value)), "204");
    };
    put("before");
    assert_eq!(home.run(&["admin", "set", "log.slow_request=1ms"]).ok(), "log.slow_request = 1ms\n");
    assert_eq!(home.run(&["admin", "show", "log.slow_request"]).ok(), "log.slow_request = 1ms\n");
    put("after");
    wait_for(&home, "put", &"after".into());
    home.run(&["admin", "set", "log.slow_request=fast"]).failed(1);
    home.run(&["admin", "set", "log.slow_request=off"]).ok();
    put("later");
    node.stop();
    let keys: Vec<Value> = slow_lines(&home).iter().map(|line| line["key"].clone()).collect();
    assert_eq!(keys, ["after"]);
}

/// Each kind of request has lines of its own: many slow reads do not silence a write.
#[test]
fn one_kind_does_not_silence_another_and_omitted_lines_are_counted() {
    let (home, node) = large_node("1ms");
    let value = "v".repeat(LARGE_BYTES);
    assert_eq!(status(&ask(&node, "PUT", "/buckets/b/keys/k", "Content-Type: text/plain\r\n", &value)), "204");
    for _ in 0..24 {
        assert_eq!(status(&ask(&node, "GET", "/buckets/b/keys/k", "", "")), "200");
    }
    assert_eq!(status(&ask(&node, "PUT", "/buckets/b/keys/last", "Content-Type: text/plain\r\n", &value)), "204");
    wait_for(&home, "put", &"last".into());
    node.stop();
    let lines = slow_lines(&home);
    let gets = lines.iter().filter(|line| line["operation"] == "get").count();
    assert!((20..24).contains(&gets), "{gets} of 24 reads have lines");
    let reports = home.logged("WARN");
    let left_out = reports.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let left_out: Vec<Value> = left_out.filter(|line| line["message"] == "log lines were left out").collect();
    assert!(!left_out.is_empty(), "{gets} lines of reads, and no line says what was left out");
    let counted: u64 = left_out.iter().filter_map(|line| line["count"].as_u64()).sum();
    assert_eq!((gets as u64 + counted, &left_out[0]["from"]), (24, &"ombak_kv::slow::get".into()), "{left_out:?}");
}
