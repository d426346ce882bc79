//! A node that does not listen for others answers the commands about a cluster as a cluster of one.

use crate::support::Home;
use serde_json::Value;

const LONE: &str = "storage_backend = memory";
const MEMBER: &str = "storage_backend = memory\nlistener.peer.internal = 127.0.0.1:0";
const NAME: &str = "riak@127.0.0.1";

fn json(home: &Home, words: &[&str]) -> Value {
    let said = home.run(&[&["admin"], words, &["--json"]].concat());
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{words:?}: {why}: {}{}", said.out, said.err))
}

/// The names of all members of a JSON value, at any depth.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        _ => Value::Null,
    }
}

#[test]
fn a_lone_node_says_what_a_cluster_of_one_says() {
    let (lone, member) = (Home::new(LONE), Home::new(MEMBER));
    let (of_lone, of_member) = (lone.start(), member.start());
    member.run(&["admin", "cluster", "settled", "--reaped", "--wait", "30"]).ok();
    for words in [
        &["member-status"][..],
        &["ring-status"],
        &["ringready"],
        &["transfers"],
        &["transfer-limit"],
        &["transfer-limit", "2"],
        &["transfer-limit", NAME, "3", "--rate", "5MB"],
        &["handoff", "status"],
        &["handoff", "config"],
        &["handoff", "summary"],
        &["handoff", "details"],
        &["handoff", "details", "-n", NAME],
        &["handoff", "disable", "outbound"],
        &["handoff", "enable", "both", "--all"],
        &["cluster", "plan"],
        &["cluster", "clear"],
        &["cluster", "settled", "--reaped", "--wait", "30"],
        &["cluster", "partitions"],
        &["cluster", "partition-count"],
        &["cluster", "partition-count", "-n", NAME],
        &["cluster", "partition", "id=1"],
        &["cluster", "restored-keys"],
        &["cluster", "unreadable-keys"],
        &["services"],
        &["wait-for-service", "riak_kv", NAME],
        &["diag"],
    ] {
        let args = [&["admin"], words].concat();
        assert_eq!(lone.run(&args).ok(), member.run(&args).ok(), "{words:?}");
        assert_eq!(shape(&json(&lone, words)), shape(&json(&member, words)), "{words:?}");
    }
    for words in [
        &["cluster", "commit"][..],
        &["cluster", "leave"],
        &["cluster", "leave", NAME],
        &["cluster", "leave", "b@h"],
        &["cluster", "force-remove", NAME],
        &["cluster", "force-remove", "b@h"],
        &["down", NAME],
        &["down", "b@h"],
        &["transfer-limit", "b@h", "3"],
        &["handoff", "disable", "both", "-n", "b@h"],
        &["handoff", "details", "-n", "b@h"],
    ] {
        let args = [&["admin"], words].concat();
        assert_eq!(lone.run(&args).failed(1), member.run(&args).failed(1), "{words:?}");
    }
    of_lone.stop();
    of_member.stop();
    lone.assert_no_errors_logged();
}

/// What deployment tools and monitoring look for.
#[test]
fn a_lone_node_is_one_valid_member_with_the_whole_ring() {
    let home = Home::new(LONE);
    let node = home.start();
    let said = |words: &[&str]| home.run(&[&["admin"], words].concat()).ok();
    assert_eq!(said(&["ringready"]), format!("TRUE All nodes agree on the ring ['{NAME}']\n"));
    assert_eq!(said(&["transfers"]), "No transfers active\n");
    let members = said(&["member-status"]);
    assert!(members.contains(&format!("valid     100.0%      --      '{NAME}'")), "{members}");
    assert!(members.contains("Valid:1 / Leaving:0 / Exiting:0 / Joining:0 / Down:0"), "{members}");
    assert!(said(&["ring-status"]).contains("Ring Ready: true"));
    assert!(said(&["cluster", "status"]).contains("valid    up     100.0    100.0  --\n"));
    let status = json(&home, &["cluster", "status"]);
    assert_eq!((&status["members"][0]["address"], &status["members"][0]["partitions"]), (&Value::Null, &8.into()));
    assert_eq!(said(&["cluster", "plan"]), "There are no staged changes\n");
    node.stop();
}

#[test]
fn a_lone_node_says_what_needs_a_cluster() {
    let home = Home::new(LONE);
    let node = home.start();
    for words in [
        &["cluster", "join", "127.0.0.1:1"][..],
        &["cluster", "rejoin"],
        &["cluster", "alone"],
        &["cluster", "replace", NAME, "b@h"],
        &["cluster", "force-replace", NAME, "b@h"],
        &["cluster", "location", "rack1"],
    ] {
        let refused = home.run(&[&["admin"], words].concat()).failed(1);
        assert!(refused.contains("set listener.peer.internal"), "{words:?}: {refused}");
    }
    assert_eq!(json(&home, &["cluster", "rejoin"])["error"]["kind"], "refused");
    node.stop();
}
