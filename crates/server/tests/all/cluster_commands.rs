//! The commands about a cluster, of real programs: Riak's words, JSON, and each node asked from
//! elsewhere.

use crate::support::{DEADLINE, Home, Node, Said, ombak, pause};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// A node, with its directory.
pub struct Member {
    pub node: Node,
    pub home: Home,
    pub peer: String,
}

/// Two nodes that are alone.
pub fn two() -> [Member; 2] {
    [1, 2].map(|number| {
        let home = Home::new(&format!(
            "nodename = n{number}@127.0.0.1\nlistener.peer.internal = 127.0.0.1:0\nstorage_backend = memory\n"
        ));
        let secret = home.path().join("secret");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&secret).unwrap();
        file.write_all(b"the secret of a test that has only two nodes").unwrap();
        let config = home.path().join("ombak.conf");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(config, format!("{text}cluster.secret_file = {}\n", secret.display())).unwrap();
        let node = home.start();
        let logged = home.logged("INFO");
        let line = logged.iter().find(|line| line.contains("listening for other nodes")).expect("it listens");
        let line: Value = serde_json::from_str(line).unwrap();
        let peer = line["fields"]["address"].as_str().or(line["address"].as_str()).expect("an address").to_owned();
        Member { node, home, peer }
    })
}

impl Member {
    pub fn admin(&self, words: &[&str]) -> Said {
        self.home.run(&[&["admin"], words].concat())
    }

    /// Runs a command in a directory without a node, which names this node by its address.
    fn asked_from_elsewhere(&self, words: &[&str]) -> Said {
        let elsewhere = tempfile::tempdir().unwrap();
        let token = std::fs::read_to_string(self.node.data.join("admin.token")).unwrap();
        let mut command = ombak();
        command.current_dir(elsewhere.path()).env("OMBAK_ADMIN_TOKEN", token.trim());
        command.arg("--node").arg(&self.node.http).arg("admin").args(words);
        command.output().unwrap().into()
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let said = self.asked_from_elsewhere(&[words, &["--json"]].concat());
        // The exit code of some commands says what they found.
        serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{words:?}: {why}: {}{}", said.out, said.err))
    }
}

pub fn wait_ready(member: &Member) {
    let give_up_at = Instant::now() + DEADLINE;
    while !member.admin(&["ringready"]).out.starts_with("TRUE") {
        assert!(Instant::now() < give_up_at, "no ring");
        pause(PAUSE);
    }
}

#[test]
fn a_location_is_staged_planned_committed_and_shown() {
    let members = two();
    members[1].admin(&["cluster", "join", &members[0].peer]).ok();
    let said = members[0].admin(&["cluster", "location", "rack 1"]).ok();
    assert_eq!(said, "Success: staged changing location of node 'n1@127.0.0.1' to rack 1\n");
    let staged = members[1].json(&["cluster", "location", "rack 2", "-n", "n2@127.0.0.1"]);
    assert_eq!((&staged["staged"], &staged["node"]), (&"set-location".into(), &"n2@127.0.0.1".into()));
    assert_eq!(staged["location"], "rack 2");
    let refused = members[0].admin(&["cluster", "location", "rack 3", "-n", "n3@127.0.0.1"]).failed(1);
    assert_eq!(refused, "Failed: 'n3@127.0.0.1' is not a member of the cluster.\n");
    let refused = members[0].admin(&["cluster", "location", ""]).failed(1);
    assert_eq!(refused, "Failed: the name of a location must not be empty.\n");
    let plan = members[0].admin(&["cluster", "plan"]).ok();
    for line in [
        "set-location  'n1@127.0.0.1' to rack 1",
        "set-location  'n2@127.0.0.1' to rack 2",
        "WARNING: Not all replicas will be on distinct locations",
    ] {
        assert!(plan.lines().any(|found| found == line), "{line} is not in\n{plan}");
    }
    let said = members[1].admin(&["cluster", "commit"]).ok();
    let (done, warning) = said.split_once('\n').unwrap();
    assert_eq!(done, "Cluster changes committed");
    assert!(warning.starts_with("WARNING: Only 'n1@127.0.0.1' takes part in decisions"), "{warning}");
    assert!(warning.contains("because it has fewer than 3 members"), "{warning}");
    wait_ready(&members[0]);
    let shown = members[0].admin(&["member-status"]).ok();
    assert!(shown.contains("'n1@127.0.0.1' (rack 1)\n") && shown.contains("'n2@127.0.0.1' (rack 2)\n"), "{shown}");
    assert!(members[1].admin(&["cluster", "status"]).ok().contains("location  address\n"));
    let locations = |member: &Member| {
        let status = member.json(&["cluster", "status"]);
        let members = status["members"].as_array().unwrap().iter();
        let mut of: Vec<String> = members.map(|of| of["location"].as_str().unwrap_or("none").to_owned()).collect();
        of.sort();
        of
    };
    assert_eq!((locations(&members[0]), locations(&members[1])), (locations(&members[1]), locations(&members[0])));
    assert_eq!(locations(&members[1]), ["rack 1", "rack 2"]);
    let [first, second] = members;
    first.node.stop();
    second.node.stop();
}

#[test]
fn each_command_asks_each_node_from_elsewhere_and_speaks_json() {
    let members = two();
    members[1].admin(&["cluster", "join", &members[0].peer]).ok();
    for member in &members {
        assert!(member.json(&["cluster", "plan"])["plan"].is_object());
    }
    assert_eq!(members[1].json(&["cluster", "commit"])["committed"], true);
    wait_ready(&members[0]);
    for member in &members {
        for (words, field) in [
            (&["member-status"][..], "members"),
            (&["ring-status"], "claimant"),
            (&["ringready"], "ring_ready"),
            (&["cluster", "status"], "members"),
            (&["cluster", "plan"], "plan"),
            (&["cluster", "clear"], "cleared"),
            (&["cluster", "settled"], "settled"),
            (&["cluster", "partitions"], "partitions"),
            (&["cluster", "partition-count"], "partitions"),
            (&["cluster", "partition", "id=1"], "index"),
            (&["cluster", "restored-keys"], "keys"),
            (&["cluster", "unreadable-keys"], "keys"),
            (&["transfers"], "members"),
            (&["transfer-limit"], "members"),
            (&["handoff", "status"], "members"),
            (&["handoff", "config"], "members"),
            (&["handoff", "summary"], "members"),
            (&["handoff", "details"], "transfers"),
            (&["handoff", "disable", "outbound", "-n", "n2@127.0.0.1"], "members"),
            (&["handoff", "enable", "both", "--all"], "members"),
            (&["transfer-limit", "n1@127.0.0.1", "3"], "members"),
        ] {
            let answer = member.json(words);
            assert!(answer.get(field).is_some(), "{words:?}: {answer}");
            assert!(answer.get("text").is_none(), "{words:?}: {answer}");
        }
        for words in [
            &["cluster", "join", &members[0].peer][..],
            &["cluster", "leave", "n3@127.0.0.1"],
            &["cluster", "force-remove", "n3@127.0.0.1"],
            &["cluster", "replace", "n3@127.0.0.1", "n2@127.0.0.1"],
            &["cluster", "force-replace", "n3@127.0.0.1", "n2@127.0.0.1"],
            &["cluster", "location", "rack 1", "-n", "n3@127.0.0.1"],
            &["cluster", "commit"],
            &["down", "n2@127.0.0.1"],
            &["handoff", "details", "-n", "n3@127.0.0.1"],
        ] {
            let said = member.asked_from_elsewhere(words).failed(1);
            assert!(!said.contains("not reach") && said.trim().len() > 10, "{words:?}: {said}");
        }
    }
    let [first, second] = members;
    first.node.stop();
    second.node.stop();
}

#[test]
fn handoff_and_its_limits_have_riaks_words() {
    let members = two();
    members[1].admin(&["cluster", "join", &members[0].peer]).ok();
    members[0].admin(&["cluster", "plan"]).ok();
    members[0].admin(&["cluster", "commit"]).ok();
    wait_ready(&members[0]);
    members[0].admin(&["cluster", "settled", "--wait", "30"]).ok();
    let first_line = |words: &[&str]| {
        let said = members[0].admin(words).ok();
        said.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first_line(&["transfers"]), "No transfers active");
    assert_eq!(first_line(&["handoff", "details", "--all"]), "No ongoing transfers.");
    let summary = members[1].admin(&["handoff", "summary"]).ok();
    let lines: Vec<&str> = summary.lines().collect();
    assert_eq!(lines[3], "|      Node      |Total|Ownership|Resize|Hinted|Repair|");
    assert_eq!(lines.len(), 8, "{summary}");
    assert_eq!(first_line(&["handoff", "disable", "inbound"]), "Handoff setting successfully updated");
    assert_eq!(first_line(&["handoff", "enable", "both", "-a"]), "All nodes successfully updated");
    assert_eq!(first_line(&["transfer-limit", "7"]), "Setting transfer limit to 7 across the cluster");
    let said = first_line(&["transfer-limit", "n2@127.0.0.1", "9"]);
    assert_eq!(said, "Set transfer limit for 'n2@127.0.0.1' to 9");
    let limits = members[1].json(&["transfer-limit"]);
    let of = limits["members"].as_array().unwrap().iter();
    let mut of: Vec<(&str, u64)> =
        of.map(|m| (m["name"].as_str().unwrap(), m["transfer_limit"].as_u64().unwrap())).collect();
    of.sort_unstable();
    assert_eq!(of, [("n1@127.0.0.1", 7), ("n2@127.0.0.1", 9)]);
    let [first, second] = members;
    second.node.stop();
    let refused = first.admin(&["transfer-limit", "5"]).failed(1);
    assert!(refused.contains("did not answer and were not changed. The other members were changed"), "{refused}");
    assert!(first.admin(&["handoff", "summary"]).ok().ends_with("(unreachable): n2@127.0.0.1\n"));
    first.node.stop();
}
