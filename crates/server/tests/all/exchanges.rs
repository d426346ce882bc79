//! The commands about exchanges between primaries, about the repair of a node and about the repair
//! of index entries, on a node that is alone and on members of a cluster.

use crate::cluster_commands::{Member, two};
use crate::support::{DEADLINE, Home, pause};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const NAME: &str = "riak@127.0.0.1";

fn json_of(home: &Home, words: &[&str]) -> Value {
    let said = home.run(&[words, &["--json"]].concat());
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{words:?}: {why}: {}{}", said.out, said.err))
}

#[test]
fn a_node_that_is_alone_has_nobody_to_exchange_with() {
    let home = Home::new("storage_backend = memory");
    let node = home.start();
    let said = home.run(&["admin", "aae-status"]).ok();
    assert!(said.starts_with("This node exchanges nothing with others"), "{said}");
    let status = json_of(&home, &["admin", "aae_status"]);
    assert_eq!((&status["members"][0]["state"], &status["members"][0]["name"]), (&json!("off"), &json!(NAME)));
    assert_eq!(
        home.run(&["admin", "tictacaae", "exchangetick"]).ok().trim(),
        format!("tictacaae not active on {NAME}")
    );
    assert_eq!(
        home.run(&["admin", "node", "repair", "status"]).ok().trim(),
        format!("No active node repairs on {NAME}")
    );
    for words in [
        &["admin", "tictacaae", "suspend"][..],
        &["admin", "tictacaae", "exchangetick", "5000", "-n", "all"],
        &["admin", "node", "repair", "start", "a new disk"],
    ] {
        let said = home.run(words).failed(1);
        assert!(said.contains("there is nobody to exchange with"), "{words:?}: {said}");
    }
    let said = home.run(&["admin", "node", "repair", "stop", "-n", "x@h"]).failed(1);
    assert!(said.contains("x@h"), "{said}");
    for (words, expected) in [
        (&["admin", "tictacaae", "rebuild-schedule"][..], "tictacaae_rebuildwait"),
        (&["admin", "tictacaae", "maxresults", "7"], "exchanges here have no such setting"),
        (&["admin", "tictacaae", "fold", "list-buckets"], "ombak admin fold"),
    ] {
        let said = home.run(words).failed(2);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    assert_eq!(json_of(&home, &["admin", "cluster", "settled"])["exchange_round"], Value::Null);
    node.stop();
}

#[test]
fn index_entries_are_repaired_by_command() {
    let home = Home::new("storage_backend = leveled\nring_size = 8");
    let node = home.start();
    let said = home.run(&["admin", "repair-2i", "status"]).ok();
    assert_eq!(said.trim(), "2I repair is not running, and there was none since the start");
    assert_eq!(home.run(&["admin", "repair-2i", "kill"]).ok().trim(), "2I repair is not running");
    let said = home.run(&["admin", "repair-2i", "99"]).failed(1);
    assert!(said.contains("partition 99 is not on this node"), "{said}");
    let said = home.run(&["admin", "repair-2i", "0", "3", "--speed", "50"]).ok();
    assert!(said.starts_with("Will repair 2I data on the following partitions:\n\t0\n\t3\n"), "{said}");
    let deadline = Instant::now() + DEADLINE;
    let status = loop {
        let status = json_of(&home, &["admin", "repair_2i", "status"]);
        if status["state"] == "finished" {
            break status;
        }
        assert!(Instant::now() < deadline, "{status}");
        pause(Duration::from_millis(20));
    };
    let counts = ["partitions", "finished", "speed", "added", "removed"].map(|field| status[field].clone());
    assert_eq!(counts, [2, 2, 50, 0, 0].map(|count| json!(count)));
    let all = json_of(&home, &["admin", "repair-2i"]);
    assert_eq!(all["chosen"].as_array().map(Vec::len), Some(8), "{all}");
    node.stop();
}

#[test]
fn dropped_copies_stand_beside_the_keys_of_restored_stores() {
    let home = Home::new("storage_backend = memory");
    let node = home.start();
    let listed = json_of(&home, &["admin", "cluster", "restored-keys"]);
    assert_eq!(listed["dropped_copies"], json!({ "copies": [], "more": 0 }));
    let said = home.run(&["admin", "cluster", "restored-keys", "--push-dropped", "--all"]).ok();
    assert!(said.starts_with("0 dropped copies stored again"), "{said}");
    node.stop();
}

/// Two members of one cluster, which holds everything on both.
fn cluster() -> [Member; 2] {
    let members = two();
    let [one, other] = &members;
    other.admin(&["cluster", "join", &one.peer]).ok();
    one.admin(&["cluster", "plan"]).ok();
    one.admin(&["cluster", "commit"]).ok();
    one.admin(&["cluster", "settled", "--wait", "60"]).ok();
    members
}

/// Waits until something is true of what a member says of its exchanges.
fn wait_for(member: &Member, what: &str, is_true: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let status = member.json(&["aae-status"])["members"][0].clone();
        if is_true(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "{what}: {status}");
        pause(Duration::from_millis(50));
    }
}

#[test]
fn riak_admin_tictacaae_console_tests() {
    let [one, other] = cluster();
    let status = wait_for(&one, "there are exchanges", |status| status["exchanges_in_round"].as_u64() > Some(0));
    assert_eq!((&status["state"], &status["interval_ms"]), (&json!("active"), &json!(480_000)));

    let said = one.admin(&["tictacaae", "exchangetick", "60000", "-n", "all"]).ok();
    let expected = "Set exchangetick to 60000 on n1@127.0.0.1\nSet exchangetick to 60000 on n2@127.0.0.1";
    let mut lines: Vec<&str> = said.trim().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.join("\n"), expected);
    assert_eq!(other.admin(&["tictacaae", "exchangetick"]).ok().trim(), "exchangetick on n2@127.0.0.1 is 60000");

    one.admin(&["tictacaae", "suspend", "-n", "n2@127.0.0.1"]).ok();
    assert!(other.admin(&["aae-status"]).ok().starts_with("Exchanges are suspended."));
    let said = other.admin(&["node", "repair", "start", "a new disk"]).failed(1);
    assert!(said.contains("exchanges are suspended"), "{said}");
    other.admin(&["tictacaae", "resume"]).ok();

    let said = other.admin(&["node", "repair", "start", "a new disk", "-n", "all"]).ok();
    assert!(said.contains("Node repair started on n1@127.0.0.1."), "{said}");
    for member in [&one, &other] {
        wait_for(member, "the round ends", |status| !status["round_ended_secs"].is_null());
        let status = wait_for(member, "the repair ends", |status| status["node_repair"].is_null());
        let exchange = &status["exchanges"][0];
        assert!(exchange["ended"].as_u64() > Some(0) && exchange["repaired"] == 0, "{status}");
    }
    assert_eq!(other.admin(&["node", "repair", "stop"]).ok().trim(), "No active node repairs on n2@127.0.0.1");
    let text = one.admin(&["aae-status"]).ok();
    assert!(text.contains("= Exchanges =") && text.contains("= Keys Repaired ="), "{text}");
    let settled = one.json(&["cluster", "settled"]);
    assert_eq!(settled["exchange_round"]["repaired"], 0, "{settled}");
    assert!(one.admin(&["cluster", "settled"]).ok().contains("the last full round of exchanges ended"));
    let said = one.admin(&["tictacaae", "suspend", "-n", "nobody@h"]).failed(1);
    assert!(said.contains("'nobody@h' is not a member"), "{said}");
    [one, other].into_iter().for_each(|member| member.node.stop());
}

#[test]
fn a_passive_member_begins_nothing() {
    let home = Home::new("storage_backend = memory\nlistener.peer.internal = 127.0.0.1:0\nanti_entropy = passive");
    let node = home.start();
    let status = json_of(&home, &["admin", "aae-status"]);
    assert_eq!(status["members"][0]["state"], "suspended", "{status}");
    node.stop();
}
