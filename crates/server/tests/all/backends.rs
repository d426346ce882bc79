//! A node on each backend: it keeps what is written to it, answers index queries, and restarts.

use crate::support;
use crate::support::{DEADLINE, Home, Node, ask, pause};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The backends that keep their data, each with the settings that the tests need.
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
        let said = refused.failed(78);
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

#[test]
fn hanoidb_is_leveldb_in_a_directory_of_its_own_and_says_so() {
    let home = Home::new("storage_backend = hanoidb\nleveldb.maximum_memory = 64MB");
    let node = home.start();
    put(&node, "b", "k", "value");
    assert!(home.run(&["admin", "vnode-status"]).ok().contains(" leveldb "));
    node.stop();
    assert!(home.data().join("hanoidb").is_dir() && !home.data().join("leveldb").exists());
    let warnings = home.logged("WARN").join("\n");
    assert!(
        warnings.contains("storage_backend = hanoidb is the leveldb backend here, in ./data/hanoidb"),
        "{warnings}"
    );
}

/// As docs/backends.md says, the property takes effect at once and moves no objects.
#[test]
fn a_bucket_whose_property_changes_looks_elsewhere() {
    let home = Home::new(
        "storage_backend = multi\nmulti_backend.a.storage_backend = bitcask\nmulti_backend.b.storage_backend = leveled",
    );
    let mut node = home.start();
    let props = |node: &Node, body: &str| {
        let answer = ask(node, "PUT", "/buckets/b/props", "Content-Type: application/json\r\n", body);
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    };
    let keys = |node: &Node| {
        let answer = ask(node, "GET", "/buckets/b/keys?keys=true", "", "");
        answer.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned()
    };
    put(&node, "b", "old", "first");
    props(&node, r#"{"props":{"backend":"b"}}"#);
    for _ in 0..2 {
        assert!(get(&node, "b", "old").starts_with("HTTP/1.1 404"));
        assert_eq!((keys(&node), ranks(&node, "b", 0, 9)), (r#"{"keys":[]}"#.into(), r#"{"keys":[]}"#.into()));
        node.stop();
        node = home.start();
    }
    put(&node, "b", "old", "second");
    put(&node, "b", "new", "third");
    assert_eq!(ranks(&node, "b", 0, 9), r#"{"keys":["new","old"]}"#);
    props(&node, r#"{"props":{"backend":"a"}}"#);
    assert!(get(&node, "b", "old").ends_with("first"));
    assert_eq!((keys(&node), ranks(&node, "b", 0, 9)), (r#"{"keys":["old"]}"#.into(), r#"{"keys":["old"]}"#.into()));
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn a_directory_of_bitcask_is_readable_with_any_compression() {
    let home = Home::new("");
    let value = "a value that is worth compressing, ".repeat(100);
    let start = |compression: &str| {
        let mut command = home.start_command();
        command.env("OMBAK_BITCASK__COMPRESSION", compression);
        Node::start(command, home.data())
    };
    let mut live_bytes = Vec::new();
    let settings = ["none", "lz4", "zstd", "none"];
    for (round, compression) in settings.iter().enumerate() {
        let node = start(compression);
        for (earlier, written) in settings.iter().enumerate().take(round) {
            let found = get(&node, "b", &format!("{earlier}"));
            assert!(found.ends_with(&value), "written with {written}, read with {compression}: {found}");
        }
        put(&node, "b", &format!("{round}"), &value);
        live_bytes.push(total(&home)["live_bytes"].as_u64().expect("a number"));
        node.stop();
    }
    let grown: Vec<u64> = live_bytes.windows(2).map(|two| two[1] - two[0]).collect();
    let plain = value.len() as u64;
    assert!(grown[0] < plain / 2 && grown[1] < plain / 2 && grown[2] > plain, "lz4, zstd, none: {grown:?}");
    home.assert_no_errors_logged();
}

/// Settings for small files and frequent merges, for each backend on disk.
const EAGER: [(&str, &str); 3] = [
    (
        "bitcask",
        "bitcask.max_file_size = 64KB\nbitcask.merge_check_interval = 1s\nbitcask.merge.thresholds.small_file = 0",
    ),
    (
        "leveled",
        "leveled.journal_size = 64KB\nleveled.compaction_runs_perday = 86400\nleveled.compression_method = none",
    ),
    ("leveldb", "leveldb.maximum_memory = 16MB\nleveldb.write_buffer_size_max = 64KB"),
];

fn total(home: &Home) -> Value {
    status(home)["total"].clone()
}

fn status(home: &Home) -> Value {
    serde_json::from_str(&home.run(&["admin", "vnode-status", "--json"]).ok()).expect("JSON")
}

/// The status of each partition's store, or of the named backend's store in each partition.
fn stores<'a>(status: &'a Value, name: Option<&str>) -> Vec<&'a Value> {
    let vnodes = status["vnodes"].as_array().expect("vnodes").iter().map(|vnode| &vnode["status"]);
    vnodes.map(|store| name.map_or(store, |name| &store["backends"][name]["status"])).collect()
}

fn metric(metrics: &str, name: &str, labels: &str) -> f64 {
    let line = format!("ombak_store_{name}{{{labels}}} ");
    let value = metrics.lines().find_map(|l| l.strip_prefix(&line));
    value.unwrap_or_else(|| panic!("no {line}in {metrics}")).parse().expect("a number")
}

/// Overwrites keys until each of the backends has merged something. Returns the status at that
/// time.
fn overwrite_until_merged(home: &Home, node: &Node, buckets: &[(&str, Option<&str>)]) -> Value {
    let (deadline, value) = (Instant::now() + DEADLINE, "0123456789abcdef".repeat(256));
    loop {
        for (bucket, _) in buckets {
            (0..40).for_each(|key| put(node, bucket, &format!("{key}"), &value));
        }
        let status = status(home);
        let merged = |name| stores(&status, name).iter().any(|store| !store["last_merge"].is_null());
        if buckets.iter().all(|(_, name)| merged(*name)) {
            return status;
        }
        assert!(Instant::now() < deadline, "nothing is merged: {status}");
        pause(Duration::from_millis(20));
    }
}

/// Checks the numbers of keys, live and dead bytes, write amplification, index memory, pending
/// compaction, and the last merge.
fn assert_tells_all(status: &Value, metrics: &str, name: Option<&str>, labels: &str) {
    let stores = stores(status, name);
    let sum = |of: &str| stores.iter().map(|store| store[of].as_f64().expect(of)).sum::<f64>();
    assert_eq!(sum("key_count"), 40.0, "{labels}");
    assert_eq!(metric(metrics, "keys", labels), 40.0);
    // The live bytes contain each value at least once.
    assert!(sum("live_bytes") > 40.0 * 4096.0, "{labels}: {status}");
    assert!(sum("index_bytes") > 0.0 && sum("dead_bytes") >= 0.0 && sum("merge_pending_bytes") >= 0.0, "{status}");
    for store in &stores {
        assert!(store["write_amplification"].as_f64().is_some_and(|factor| factor > 0.9), "{labels}: {store}");
    }
    let merged = stores.iter().find(|store| !store["last_merge"].is_null()).expect("merged");
    let merge = |of: &str| merged["last_merge"][of].as_u64().expect("a number");
    assert!(merge("bytes_before") > 0 && merge("ended_at_secs") > 1_500_000_000, "{merged}");
    for name in ["live_bytes", "index_bytes", "merges_total", "last_merge_timestamp_seconds", "write_amplification"] {
        assert!(metric(metrics, name, labels) > 0.0, "{name} {labels}");
    }
    for name in ["dead_bytes", "merge_pending_bytes"] {
        assert!(metric(metrics, name, labels) >= 0.0, "{name} {labels}");
    }
}

/// Waits for a condition that merging makes true.
fn wait_for_merges(home: &Home, what: &str, is_there: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let status = status(home);
        if is_there(&status) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {status}");
        pause(Duration::from_millis(20));
    }
}

/// Large objects are overwritten, while the small objects between them stay.
#[test]
fn leveled_compacts_by_the_scores_that_are_set() {
    const MB: u64 = 1 << 20;
    let home = Home::new(
        "storage_backend = leveled\nleveled.journal_size = 1MB\nleveled.compaction_runs_perday = 86400\n\
         leveled.compression_method = none\nleveled.compaction_bytes_per_second = 1GB",
    );
    let start = |of_file: &str, of_journal: &str| {
        let mut command = home.start_command();
        command.env("OMBAK_LEVELED__SINGLEFILE_COMPACTIONPERCENTAGE", of_file);
        command.env("OMBAK_LEVELED__MAXRUNLENGTH_COMPACTIONPERCENTAGE", of_journal);
        Node::start(command, home.data())
    };
    let dead = |status: &Value| -> Vec<u64> {
        stores(status, None).iter().map(|store| store["dead_bytes"].as_u64().expect("a number")).collect()
    };
    let value = "v".repeat(60_000);
    let node = start("0", "0");
    for n in 0..1000 {
        put(&node, "b", &format!("hot{}", n % 40), &value);
        put(&node, "b", &format!("cold{n}"), "stays");
    }
    let before = status(&home);
    assert!(stores(&before, None).iter().all(|store| store["last_merge"].is_null()), "{before}");
    assert!(dead(&before).iter().any(|dead| *dead > 8 * MB), "{before}");
    node.stop();
    let node = start("0", "59");
    // The remaining dead bytes are too few for the score of the whole journal.
    wait_for_merges(&home, "the journal's score", |now| dead(now).iter().all(|dead| *dead <= 4 * MB));
    node.stop();
    let node = start("90", "0");
    wait_for_merges(&home, "the score of a file", |now| dead(now).iter().all(|dead| *dead <= MB));
    for n in 0..1000 {
        assert!(get(&node, "b", &format!("cold{n}")).ends_with("\r\n\r\nstays"), "cold{n}");
    }
    assert!(get(&node, "b", "hot39").ends_with(&value));
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn leveled_compresses_when_it_compacts_if_told_so() {
    let home = Home::new(
        "storage_backend = leveled\nleveled.journal_size = 64KB\nleveled.compaction_runs_perday = 86400\n\
         leveled.compression_method = zstd\nleveled.compression_point = on_compact",
    );
    let node = home.start();
    let value = "a value that is worth compressing, ".repeat(100);
    let live = |status: &Value| status["total"]["live_bytes"].as_u64().expect("a number");
    let plain = 40 * value.len() as u64;
    for n in 0..40 {
        put(&node, "b", &format!("kept{n}"), &value);
        put(&node, "b", &format!("hot{n}"), "small");
    }
    let received = live(&status(&home));
    assert!(received > plain, "stored as received: {received}");
    // Objects are written and deleted until compaction has copied the objects between them.
    let deadline = Instant::now() + DEADLINE;
    while live(&status(&home)) > plain / 2 {
        assert!(Instant::now() < deadline, "never compressed: {}", status(&home));
        (0..40).for_each(|n| put(&node, "b", &format!("hot{n}"), "small"));
    }
    node.stop();
    let node = home.start();
    (0..40).for_each(|n| assert!(get(&node, "b", &format!("kept{n}")).ends_with(&value), "kept{n}"));
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn each_backend_tells_what_it_wrote_and_merged() {
    for (backend, settings) in EAGER {
        let home = Home::new(&format!("storage_backend = {backend}\n{settings}"));
        let node = home.start();
        let status = overwrite_until_merged(&home, &node, &[("b", None)]);
        let metrics = ask(&node, "GET", "/metrics", "", "");
        assert_tells_all(&status, &metrics, None, &format!("backend=\"{backend}\""));
        node.stop();
        home.assert_no_errors_logged();
    }
}

#[test]
fn several_backends_tell_it_one_by_one() {
    let mut settings = "storage_backend = multi".to_owned();
    for (backend, own) in EAGER {
        settings += &format!("\nmulti_backend.my-{backend}.storage_backend = {backend}");
        own.lines().for_each(|line| settings += &format!("\nmulti_backend.my-{backend}.{line}"));
    }
    let home = Home::new(&settings);
    let node = home.start();
    let names = EAGER.map(|(backend, _)| format!("my-{backend}"));
    for name in &names {
        let body = format!(r#"{{"props":{{"backend":"{name}"}}}}"#);
        let answer = ask(&node, "PUT", &format!("/buckets/{name}/props"), "Content-Type: application/json\r\n", &body);
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
    let buckets: Vec<_> = names.iter().map(|name| (name.as_str(), Some(name.as_str()))).collect();
    let status = overwrite_until_merged(&home, &node, &buckets);
    let metrics = ask(&node, "GET", "/metrics", "", "");
    for ((backend, _), name) in EAGER.iter().zip(&names) {
        assert_tells_all(&status, &metrics, Some(name), &format!("backend=\"{backend}\",name=\"{name}\""));
    }
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn memory_tells_what_it_has() {
    let home = Home::new("storage_backend = memory");
    let node = home.start();
    (0..10).for_each(|key| put(&node, "b", &format!("{key}"), "value"));
    let metrics = ask(&node, "GET", "/metrics", "", "");
    assert_eq!(metric(&metrics, "keys", "backend=\"memory\""), 10.0);
    let total = total(&home);
    assert!(total["live_bytes"].as_u64() > Some(50) && total["index_bytes"].as_u64() > Some(0), "{total}");
    node.stop();
}
