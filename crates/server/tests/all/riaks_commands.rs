//! Commands that deployment and monitoring of Riak call: services, statistics by name, findings,
//! and what is said of commands that do not exist. A unit test goes through all names.

use crate::support::Home;
use serde_json::{Value, json};

const MEMORY: &str = "storage_backend = memory";

fn json_of(home: &Home, args: &[&str]) -> Value {
    serde_json::from_str(&home.run(&[args, &["--json"]].concat()).ok()).unwrap()
}

#[test]
fn services_are_listed_and_waited_for() {
    let home = Home::new(MEMORY);
    let silent = home.run(&["admin", "wait-for-service", "riak_kv", "--wait", "0"]).failed(1);
    assert!(silent.contains("no node answers"), "{silent}");
    let node = home.start();
    assert_eq!(home.run(&["admin", "services"]).ok(), "[riak_kv,riak_pipe]\n");
    assert_eq!(json_of(&home, &["admin", "services"])["services"], json!(["riak_kv", "riak_pipe"]));
    assert_eq!(home.run(&["admin", "wait-for-service", "riak_kv"]).ok(), "riak_kv is up\n");
    assert_eq!(home.run(&["admin", "wait_for_service", "riak_pipe", "riak@127.0.0.1"]).ok(), "riak_pipe is up\n");
    let unknown = home.run(&["admin", "wait-for-service", "yokozuna"]).failed(1);
    assert!(unknown.contains("yokozuna is not up") && unknown.contains("[riak_kv,riak_pipe]"), "{unknown}");
    let stranger = home.run(&["admin", "wait-for-service", "riak_kv", "b@h"]).failed(1);
    assert_eq!(stranger, "Failed: 'b@h' is not a member of the cluster.\n");
    node.stop();
}

/// A script starts a node and waits for it.
#[test]
fn a_service_is_waited_for_while_the_node_starts() {
    let home = Home::new(MEMORY);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| home.run(&["admin", "wait-for-service", "riak_kv", "--wait", "30"]).ok());
        let node = home.start();
        assert_eq!(waits.join().unwrap(), "riak_kv is up\n");
        node.stop();
    });
}

#[test]
fn statistics_are_shown_by_their_names() {
    let home = Home::new(MEMORY);
    let node = home.start();
    home.run(&["kv", "put", "b", "k", "v"]).ok();
    let shown = home.run(&["admin", "stat", "show", "node_puts_total", "vnode_*s_total"]).ok();
    assert!(shown.lines().any(|line| line == "node_puts_total : 1"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("vnode_gets_total : ")), "{shown}");
    assert!(!shown.contains("node_gets :"), "{shown}");
    assert_eq!(json_of(&home, &["admin", "stat", "show", "node_puts_total"]), json!({"node_puts_total": 1}));
    let all = home.run(&["admin", "stat", "show"]).ok();
    assert!(all.lines().count() > 100, "{all}");
    assert!(home.run(&["admin", "stat", "show", "zork*"]).failed(1).contains("no statistic has a name like zork*"));
    node.stop();
}

#[test]
fn a_node_without_findings_has_no_diagnostic_messages() {
    let home = Home::new(MEMORY);
    let node = home.start();
    assert_eq!(home.run(&["admin", "diag"]).ok(), "No diagnostic messages to report.\n");
    assert_eq!(json_of(&home, &["admin", "diag"])["messages"], json!([]));
    node.stop();
    home.run(&["admin", "diag"]).failed(1);
}

#[test]
fn commands_of_riak_that_do_not_exist_say_what_to_use() {
    let home = Home::new(MEMORY);
    for (words, expected) in [
        (&["attach"][..], "no Erlang virtual machine"),
        (&["remote_console"], "no Erlang virtual machine"),
        (&["restart"], "'ombak stop' and then 'ombak start --background'"),
        (&["admin", "join", "-f", "a@h"], "'ombak admin cluster join', then 'plan' and 'commit'"),
        (&["admin", "cluster", "resize-ring", "128"], "ring_size"),
    ] {
        let said = home.run(words).failed(2);
        assert!(said.contains(expected) && said.lines().count() == 1, "{words:?}: {said}");
    }
    let said = home.run(&["admin", "ensemble_status", "--json"]);
    assert_eq!(said.code, Some(2));
    let failure: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(failure["error"]["kind"], "usage");
    for words in [&["--help"][..], &["admin", "--help"]] {
        let help = home.run(words).ok();
        for hidden in ["attach", "ensemble-status", "daemon", "chkconfig", "reip"] {
            assert!(!help.contains(hidden), "{hidden} is in\n{help}");
        }
    }
}
