//! A node that was removed from its cluster says so everywhere, and a node that leaves before it
//! has joined learns what became of it.

use crate::cluster_commands::{Member, two, wait_ready};
use crate::support::{DEADLINE, Said, ask, pause};
use serde_json::Value;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);
const NO_PART: &str = "this node was removed from its cluster";
const NO_MEMBER: &str = "this node is no member of its cluster any more";

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "{what} takes too long");
        pause(PAUSE);
    }
}

fn json(said: Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{why}: {}{}", said.out, said.err))
}

/// A cluster of two, and then of the first alone. Returns the one that stays and the one that was
/// removed by force.
fn one_removed() -> (Member, Member) {
    let [first, second] = two();
    second.admin(&["cluster", "join", &first.peer]).ok();
    first.admin(&["cluster", "plan"]).ok();
    first.admin(&["cluster", "commit"]).ok();
    wait_ready(&first);
    wait_ready(&second);
    // As in Riak, the claimant cannot be removed by force.
    let claimant = first.json(&["ring-status"])["claimant"].as_str().expect("a claimant").to_owned();
    let (stays, removed) = if claimant.starts_with("n1@") { (first, second) } else { (second, first) };
    let name = if claimant.starts_with("n1@") { "n2@127.0.0.1" } else { "n1@127.0.0.1" };
    stays.admin(&["cluster", "force-remove", name]).ok();
    stays.admin(&["cluster", "plan"]).ok();
    stays.admin(&["cluster", "commit", "--accept-loss"]).ok();
    until("the removal", || removed.home.run(&["ping"]).code != Some(0));
    (stays, removed)
}

#[test]
fn a_removed_node_says_so_everywhere() {
    let (stays, removed) = one_removed();
    let home = &removed.home;
    assert!(home.run(&["ping"]).failed(1).contains(NO_PART));
    assert_eq!(json(home.run(&["ping", "--json"]))["error"]["kind"], "takes_no_part");
    let status = home.run(&["status"]).ok();
    assert!(status.contains("is up, and takes no part in its cluster"), "{status}");
    assert!(status.contains(&format!("problem: {NO_PART}")), "{status}");
    let status = json(home.run(&["status", "--json"]));
    assert!(status["takes_no_part"].as_str().is_some_and(|why| why.starts_with(NO_PART)), "{status}");
    for words in [&["member-status"][..], &["ring-status"], &["cluster", "status"]] {
        let said = removed.admin(words).ok();
        assert!(said.starts_with(&format!("WARNING: {NO_MEMBER}")), "{words:?}: {said}");
        assert!(removed.json(words)["removed"].is_string(), "{words:?}");
    }
    for words in [&["ringready"][..], &["cluster", "settled"]] {
        let said = removed.admin(words);
        assert_eq!(said.code, Some(1), "{words:?}");
        assert!(said.out.starts_with(&format!("FALSE {NO_MEMBER}")), "{words:?}: {}", said.out);
    }
    for words in [&["cluster", "plan"][..], &["cluster", "join", &stays.peer]] {
        assert!(removed.admin(words).failed(1).contains(NO_MEMBER), "{words:?}");
    }
    assert_eq!(removed.admin(&["services"]).ok(), "[]\n");
    assert!(removed.admin(&["wait-for-service", "riak_kv", "--wait", "0"]).failed(1).contains("is not up"));
    assert!(removed.admin(&["diag"]).out.contains(NO_PART));
    for (method, path) in [
        ("GET", "/ping"),
        ("GET", "/health/ready"),
        ("GET", "/buckets/b/keys/k"),
        ("PUT", "/buckets/b/keys/k"),
        ("DELETE", "/buckets/b/keys/k"),
        ("GET", "/buckets/b/keys?keys=true"),
        ("GET", "/buckets/b/index/$bucket/_"),
    ] {
        let answer = ask(&removed.node, method, path, "Content-Type: text/plain\r\n", "");
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains(NO_PART), "{method} {path}: {answer}");
    }
    for words in [&["kv", "get", "b", "k"][..], &["kv", "put", "b", "k", "v"], &["kv", "list", "b"]] {
        assert!(home.run(words).failed(1).contains(NO_PART), "{words:?}");
    }
    // The one that stays knows nothing of this.
    assert_eq!(stays.home.run(&["ping"]).ok(), "pong\n");
    let members = stays.json(&["member-status"]);
    assert_eq!((members["members"].as_array().map(Vec::len), &members["removed"]), (Some(1), &Value::Null));
    removed.node.stop();
    stays.node.stop();
}

#[test]
fn a_node_that_leaves_before_it_has_joined_learns_what_became_of_it() {
    let [first, second] = two();
    second.admin(&["cluster", "join", &first.peer]).ok();
    let said = first.admin(&["cluster", "leave", "n2@127.0.0.1"]).ok();
    assert!(said.starts_with("Success: 'n2@127.0.0.1' does not join any more"), "{said}");
    assert_eq!(first.admin(&["cluster", "plan"]).ok(), "There are no staged changes\n");
    until("the end of the join", || second.json(&["member-status"])["members"].as_array().map(Vec::len) == Some(1));
    until("another join", || second.admin(&["cluster", "join", &first.peer]).code == Some(0));
    // The node learns of its own join a moment after the command that asked for it.
    let mut said = Value::Null;
    until("a leave of the node itself", || {
        said = second.json(&["cluster", "leave"]);
        said["staged"] == "leave"
    });
    assert_eq!(said["withdrawn"], true);
    first.node.stop();
    second.node.stop();
}
