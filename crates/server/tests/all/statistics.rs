//! The statistics of data types, commit hooks and MapReduce at `/stats` and `/metrics` of a real
//! node.

use crate::support::{DEADLINE, Home, Node, ask, pause};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const FUNCTIONS: &str = "
function silent(object) { return 'fail'; }
function endless(object) { for (;;); }
function broken(object) { throw new Error('on purpose'); }
";

const JSON: &str = "Content-Type: application/json\r\n";

struct Counting {
    home: Home,
    node: Node,
}

impl Counting {
    /// A node whose functions may take the usual time.
    fn start() -> Self {
        Self::with("")
    }

    fn with(settings: &str) -> Self {
        let common = "storage_backend = memory\njavascript.source_dir = ./functions\njavascript.hook_pool_size = 1";
        let home = Home::new(&format!("{common}\n{settings}"));
        let functions = home.path().join("functions");
        std::fs::create_dir(&functions).unwrap();
        std::fs::write(functions.join("hooks.js"), FUNCTIONS).unwrap();
        let node = home.start();
        Self { home, node }
    }

    /// Sends a request, and returns the status of the answer.
    fn send(&self, method: &str, path: &str, body: &str) -> String {
        let answer = ask(&self.node, method, path, JSON, body);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    fn create_type(&self, kind: &str) {
        let props = format!(r#"{{"props":{{"datatype":"{kind}","allow_mult":true}}}}"#);
        self.home.run(&["admin", "bucket-type", "create", kind, &props]).ok();
        self.home.run(&["admin", "bucket-type", "activate", kind]).ok();
    }

    fn set_hook(&self, bucket: &str, hooks: &str, name: &str) {
        let props = format!(r#"{{"props":{{"{hooks}":[{{"name":"{name}"}}]}}}}"#);
        assert_eq!(self.send("PUT", &format!("/buckets/{bucket}/props"), &props), "204");
    }

    fn stats(&self) -> Value {
        let answer = ask(&self.node, "GET", "/stats", "Accept: application/json\r\n", "");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn metrics(&self) -> BTreeMap<String, f64> {
        let answer = ask(&self.node, "GET", "/metrics", "", "");
        let samples = answer.lines().filter(|line| line.starts_with("ombak_"));
        samples
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(id, value)| (id.into(), value.parse().unwrap()))
            .collect()
    }

    /// Waits until the node shows these numbers: `/stats` has its numbers from a second ago.
    #[track_caller]
    fn shows(&self, expected: &[(&str, u64)], metrics: &[(&str, f64)]) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let (stats, samples) = (self.stats(), self.metrics());
            let mut wrong: Vec<String> = Vec::new();
            for (name, value) in expected.iter().filter(|(name, value)| stats[*name] != *value) {
                wrong.push(format!("{name} is {}, not {value}", stats[*name]));
            }
            for (id, value) in metrics.iter().filter(|(id, value)| samples.get(*id) != Some(value)) {
                wrong.push(format!("{id} is {:?}, not {value}", samples.get(*id)));
            }
            if wrong.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{wrong:#?}");
            pause(Duration::from_millis(50));
        }
    }
}

#[test]
fn data_types_are_counted() {
    let counting = Counting::start();
    for (kind, body) in [
        ("counter", "3"),
        ("set", r#"{"add":"x"}"#),
        ("map", r#"{"update":{"n_counter":1}}"#),
        ("hll", r#"{"add":"x"}"#),
    ] {
        counting.create_type(kind);
        let path = format!("/types/{kind}/buckets/b/datatypes/k");
        assert_eq!(counting.send("POST", &path, body), "204", "{kind}");
        assert_eq!(counting.send("GET", &path, ""), "200", "{kind}");
        assert_eq!(counting.send("GET", &path, ""), "200", "{kind}");
        let name = |pattern: &str| pattern.replace('T', kind);
        counting.shows(
            &[
                (&name("node_puts_T"), 1),
                (&name("node_puts_T_total"), 1),
                (&name("node_gets_T"), 2),
                (&name("node_gets_T_total"), 2),
                (&name("node_get_fsm_T_siblings_mean"), 1),
                (&name("vnode_T_update"), 1),
                (&name("vnode_T_update_total"), 1),
                (&name("object_T_merge_total"), 0),
                (&name("read_repairs_T_total"), 0),
            ],
            &[
                (&name("ombak_data_type_gets_total{type=\"T\"}"), 2.0),
                (&name("ombak_data_type_puts_total{type=\"T\"}"), 1.0),
                (&name("ombak_data_type_updates_total{type=\"T\"}"), 1.0),
                (&name("ombak_data_type_get_duration_seconds_count{type=\"T\"}"), 2.0),
                (&name("ombak_data_type_put_duration_seconds_count{type=\"T\"}"), 1.0),
                (&name("ombak_data_type_update_duration_seconds_count{type=\"T\"}"), 1.0),
                (&name("ombak_data_type_get_siblings{type=\"T\",quantile=\"1\"}"), 1.0),
            ],
        );
        let stats = counting.stats();
        for positive in ["node_get_fsm_T_time_100", "node_put_fsm_T_time_mean", "node_get_fsm_T_objsize_95"] {
            assert!(stats[name(positive)].as_u64().unwrap() > 0, "{positive} of {kind}");
        }
        if kind == "hll" {
            assert!(stats["hll_bytes_total"].as_u64().unwrap() > 0 && stats["hll_bytes_mean"] == stats["hll_bytes"]);
        } else {
            assert_eq!([&stats[name("T_actor_counts_mean")], &stats[name("T_actor_counts_100")]], [1, 1], "{kind}");
        }
    }
    let before = counting.stats();
    assert_eq!(counting.send("POST", "/buckets/old/counters/k", "2"), "409", "siblings are needed");
    assert_eq!(counting.send("PUT", "/buckets/old/props", r#"{"props":{"allow_mult":true}}"#), "204");
    assert_eq!(counting.send("POST", "/buckets/old/counters/k", "2"), "204");
    assert_eq!(counting.send("GET", "/buckets/old/counters/k", ""), "200");
    let more = |name: &str, by: u64| before[name].as_u64().unwrap() + by;
    let names = ["node_puts_counter_total", "node_gets_counter_total", "vnode_counter_update_total"];
    counting.shows(&names.map(|name| (name, more(name, 1))), &[]);
    // `admin status` has the same names.
    let status = counting.home.run(&["admin", "status"]).ok();
    assert!(status.contains("node_puts_set_total : 1\n"), "{status}");
    counting.node.stop();
}

#[test]
fn hooks_and_the_threads_of_functions_are_counted() {
    // Endless functions reach this limit. The others end before it also beside other work.
    let counting = Counting::with("javascript.call_time = 500ms");
    for (bucket, hooks, name) in [
        ("silent", "precommit", "silent"),
        ("endless", "precommit", "endless"),
        ("broken", "postcommit", "broken"),
        ("missing", "postcommit", "zork"),
        ("slow", "postcommit", "endless"),
    ] {
        counting.set_hook(bucket, hooks, name);
        let expected = if hooks == "precommit" { "403" } else { "204" };
        assert_eq!(counting.send("PUT", &format!("/buckets/{bucket}/keys/k"), "{}"), expected, "{bucket}");
    }
    let props = r#"{"props":{"postcommit":[{"mod":"m","fun":"f"}]}}"#;
    assert_eq!(counting.send("PUT", "/buckets/erlang/props", props), "204");
    assert_eq!(counting.send("PUT", "/buckets/erlang/keys/k", "{}"), "204");
    counting.shows(
        &[
            ("precommit_fail", 2),
            ("postcommit_fail", 4),
            ("ombak_precommit_timeouts", 1),
            ("ombak_postcommit_timeouts", 1),
            // The function that does not exist, and the one in Erlang.
            ("ombak_postcommit_dropped", 2),
            ("ombak_postcommit_waiting_bytes", 0),
            ("ombak_functions_precommit_threads", 1),
            ("ombak_functions_precommit_busy", 0),
            ("ombak_functions_precommit_waiting", 0),
            ("ombak_functions_postcommit_refused", 0),
        ],
        &[
            ("ombak_precommit_failures_total", 2.0),
            ("ombak_postcommit_failures_total", 4.0),
            ("ombak_hook_timeouts_total{lane=\"precommit\"}", 1.0),
            ("ombak_hook_timeouts_total{lane=\"postcommit\"}", 1.0),
            ("ombak_postcommit_dropped_total", 2.0),
            ("ombak_functions_threads{lane=\"precommit\"}", 1.0),
            ("ombak_functions_threads{lane=\"map\"}", 0.0),
        ],
    );
    counting.node.stop();
}

#[test]
fn jobs_are_counted() {
    let counting = Counting::start();
    for n in 0..20 {
        assert_eq!(counting.send("PUT", &format!("/buckets/b/keys/k{n}"), "1"), "204");
    }
    let job = |inputs: &str, map: &str| {
        let body = format!(r#"{{"inputs":{inputs},"query":[{{"map":{{"language":"javascript","name":"{map}"}}}}]}}"#);
        counting.send("POST", "/mapred", &body)
    };
    assert_eq!(job(r#""b""#, "Riak.mapValuesJson"), "200");
    assert_eq!(job(r#""b""#, "Riak.zork"), "500");
    assert_eq!(job(r#"{"module":"m","function":"f","arg":1}"#, "Riak.mapValuesJson"), "500");
    counting.shows(
        &[
            ("pipeline_create_count", 2),
            ("pipeline_create_one", 2),
            ("pipeline_create_error_count", 1),
            ("pipeline_create_error_one", 1),
            ("pipeline_active", 0),
            ("executing_mappers", 0),
            ("ombak_jobs_failed", 1),
            ("ombak_jobs_abandoned", 0),
            ("ombak_job_pieces_active", 0),
            ("ombak_job_pieces_waiting", 0),
            ("ombak_job_pieces_redone", 0),
            ("riak_pipe_vnodes_running", 0),
        ],
        &[("ombak_jobs_total", 2.0), ("ombak_jobs_refused_total", 1.0), ("ombak_jobs_failed_total", 1.0)],
    );
    let pieces = counting.stats()["ombak_job_pieces"].as_u64().unwrap();
    // Each of the eight partitions is one part of the first job.
    assert!(pieces >= 8, "{pieces}");
    counting.node.stop();
}
