//! The command `ombak admin fold` against a real node, and what the configuration says of folds.

use crate::support::{Home, Node, ask, ombak, pause};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The settings of a node whose jobs take as long as a test likes: a page of keys, and then
/// nothing.
const SLOW: &str = "storage_backend = bitcask\nring_size = 8\ndelete_mode = keep\nkey_queues.keys_per_second = 1";
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

/// The jobs of a node, with the state of each.
fn jobs(home: &Home) -> Vec<(u64, String)> {
    let jobs = json_of(home, &["jobs"]);
    let state = |job: &Value| (job["job"].as_u64().unwrap(), job["state"].as_str().unwrap().to_owned());
    jobs["jobs"].as_array().unwrap().iter().map(state).collect()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < end, "not in time: {what}");
        pause(Duration::from_millis(20));
    }
}

#[test]
fn objects_are_erased_and_their_tombstones_reaped_and_repairs_are_begun() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    for key in ["a", "b", "c"] {
        home.run(&["kv", "put", "b", key, "v"]).ok();
    }
    let said = home.run(&["admin", "fold", "erase", "b", "--last-key", "b"]).ok();
    assert!(said.starts_with("this selects 2 objects, tombstones included: --yes"), "{said}");
    assert_eq!(keys(&json_of(&home, &["tombstones", "b"])), Vec::<&str>::new());
    let said = home.run(&["admin", "fold", "erase", "b", "--last-key", "b", "--yes"]).ok();
    assert!(said.starts_with("2 keys are being erased"), "{said}");
    until("two keys are erased", || keys(&json_of(&home, &["tombstones", "b"])) == ["a", "b"]);
    assert_eq!(json_of(&home, &["reap", "b"]), json!({ "keys": 2 }));
    until("two tombstones are reaped", || keys(&json_of(&home, &["siblings", "b", "--above", "0"])) == ["c"]);
    assert_eq!(json_of(&home, &["repair", "b"]), json!({ "keys": 1 }));
    until("all jobs have ended", || jobs(&home).iter().all(|(_, state)| state == "done"));
    assert_eq!(jobs(&home).len(), 3);
    let said = home.run(&["admin", "fold", "reap", "b"]).ok();
    assert_eq!(said.trim(), "there is nothing to reap");
    let stats = home.run(&["admin", "status"]).ok();
    assert!(stats.contains("erase_queue_done_total : 2"), "{stats}");
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn a_job_is_paused_and_goes_on_after_the_node_was_killed() {
    let home = Home::new(SLOW);
    let node = home.start();
    for number in 0..250 {
        let path = format!("/buckets/b/keys/k{number:03}");
        let put = ask(&node, "PUT", &path, "Content-Type: text/plain\r\n", "v");
        assert!(put.starts_with("HTTP/1.1 204"), "{put}");
    }
    assert_eq!(json_of(&home, &["erase", "b", "--yes"]), json!({ "keys": 250 }));
    let (id, _) = jobs(&home)[0];
    let id = id.to_string();
    let said = home.run(&["admin", "fold", "pause", &id]).ok();
    assert!(said.starts_with(&format!("job {id} erase default/b: paused")), "{said}");
    node.kill();
    let config = home.path().join("ombak.conf");
    let slow = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, slow.replace("per_second = 1", "per_second = 100000")).unwrap();
    let node = home.start();
    until("the queues are open", || jobs(&home).len() == 1);
    assert_eq!(jobs(&home)[0].1, "paused");
    home.run(&["admin", "fold", "resume", &id]).ok();
    until("it has ended", || jobs(&home)[0].1 == "done");
    assert_eq!(json_of(&home, &["tombstones", "b"])["keys"].as_array().unwrap().len(), 250);
    let said = home.run(&["admin", "fold", "cancel", &id]).failed(1);
    assert!(said.contains(&format!("there is no job {id} that waits or works")), "{said}");
    node.stop();
}

#[test]
fn a_bucket_is_dropped() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    for key in ["a", "b", "c"] {
        home.run(&["kv", "put", "b", key, "v"]).ok();
    }
    home.run(&["kv", "put", "other", "k", "v"]).ok();
    let said = home.run(&["admin", "bucket", "drop", "default/b"]).ok();
    assert!(said.starts_with("the bucket has 3 objects, tombstones included, with "), "{said}");
    assert_eq!(json_of(&home, &["stats", "b"])["objects"], json!(3));
    let said = home.run(&["admin", "bucket", "drop", "default/b", "--yes"]).ok();
    assert!(said.trim().ends_with("drop default/b: done, 6 of 6 keys done"), "{said}");
    assert_eq!(json_of(&home, &["stats", "b"])["objects"], json!(0), "no tombstone is left either");
    assert_eq!(json_of(&home, &["stats", "other"])["objects"], json!(1));
    let said = home.run(&["admin", "bucket", "drop", "b", "--yes"]).failed(2);
    assert!(said.contains("name the bucket as TYPE/BUCKET"), "{said}");
    let said = home.run(&["admin", "bucket", "drop", "nosuch/b", "--yes"]).failed(1);
    assert!(said.contains("no_type"), "{said}");
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn kept_trees_are_shown_and_made_anew() {
    let home = Home::new("storage_backend = memory\nring_size = 8\ntictacaae_active = active");
    let node = home.start();
    let status = |words: &[&str]| -> Value {
        let said = home.run(&[&["admin", "tictacaae", "treestatus"], words, &["--json"]].concat()).ok();
        serde_json::from_str(&said).unwrap()
    };
    let built = || status(&["--show", "built"])["trees"].as_array().unwrap().len();
    until("all trees are made", || built() == 8);
    let all = status(&["--show", "all"]);
    assert_eq!((all["trees"].as_array().map(Vec::len), &all["all"]), (Some(8), &json!(8)));
    let tree = &all["trees"][3];
    assert_eq!((&tree["partition"], &tree["n_val"], &tree["status"]), (&json!(3), &json!(3), &json!("built")));
    assert!(tree["made_anew_in_secs"].as_u64().is_some_and(|secs| secs > 1_000_000), "{tree}");
    let said = home.run(&["admin", "tictacaae", "treestatus"]).ok();
    assert_eq!(said.trim(), "no tree is in such a state; '--show all' prints all 8");
    let said = home.run(&["admin", "tictacaae", "rebuild-now", "-p", "3"]).ok();
    assert_eq!(said.trim(), "1 tree is made anew now");
    let said = home.run(&["admin", "tictacaae", "rebuild-now", "-p", "all"]).ok();
    assert_eq!(said.trim(), "8 trees are made anew now, one after the other");
    until("they are made anew", || {
        let stats = home.run(&["admin", "status"]).ok();
        let line = stats.lines().find(|line| line.starts_with("ombak_kept_trees_built")).unwrap_or_default().to_owned();
        line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok()).is_some_and(|built| built >= 16)
    });
    let said = home.run(&["admin", "tictacaae", "rebuild-soon", "600", "-p", "3"]).ok();
    assert_eq!(said.trim(), "1 tree is made anew in 600 s");
    assert!(status(&["--show", "all"])["trees"][3]["made_anew_in_secs"].as_u64().is_some_and(|secs| secs <= 600));
    let said = home.run(&["admin", "tictacaae", "rebuild-now", "-p", "8"]).failed(1);
    assert!(said.contains("there is no partition 8"), "{said}");
    home.run(&["admin", "tictacaae", "treestatus", "--show", "green"]).failed(2);
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn a_node_that_keeps_no_trees_says_so() {
    let home = Home::new("storage_backend = memory\nring_size = 8\ntictacaae_active = passive");
    let node = home.start();
    for words in [&["treestatus"][..], &["rebuild-now"]] {
        let said = home.run(&[&["admin", "tictacaae"], words].concat()).failed(1);
        assert!(said.contains("tictacaae not active"), "{said}");
    }
    node.stop();
}

/// The folds that are under way on a node.
fn under_way(home: &Home, node: &Node) -> Value {
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap_or_default();
    let headers = format!("X-Ombak-Admin: 1\r\nAuthorization: Bearer {}\r\n", token.trim());
    let answer = ask(node, "GET", "/admin/v1/folds", &headers, "");
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|why| panic!("{why}: {answer}"))
}

#[test]
fn a_fold_tells_how_far_it_is_and_ends_with_its_command() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    home.run(&["kv", "put", "b", "k", "v"]).ok();
    let fold = |words: &[&str]| {
        let mut command = ombak();
        command.current_dir(home.path()).args(["admin", "fold", "stats", "b"]).args(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let told = fold(&["--progress"]).wait_with_output().unwrap();
    let (result, progress) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(result.starts_with("objects 1\n") && progress.contains("the fold has ended after"), "{result}{progress}");
    let told = fold(&[]).wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stderr), "", "no terminal, and nobody has asked");
    // A node that stands still: the request is there, and its command is not any more.
    node.signal(Signal::STOP);
    let mut command = fold(&["--progress"]);
    pause(Duration::from_millis(300));
    // A shell that starts tests in the background lets them ignore the signal of Ctrl-C.
    kill_process(Pid::from_child(&command), Signal::TERM).unwrap();
    assert_eq!(command.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    node.signal(Signal::CONT);
    until("no fold is under way", || under_way(&home, &node) == json!({ "folds": [] }));
    node.stop();
}
