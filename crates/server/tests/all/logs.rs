//! The logs of a cluster of real programs: levels, and names that people know.

use crate::support::{DEADLINE, Home, Node, ask, pause};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// A node, with its directory.
struct Member {
    node: Node,
    home: Home,
}

fn home(number: u32) -> Home {
    let home = Home::new(&format!(
        "nodename = n{number}@127.0.0.1\nlistener.peer.internal = 127.0.0.1:0\n\
         object.size.warning_threshold = 1KB\n"
    ));
    let secret = home.path().join("secret");
    std::fs::write(&secret, "the secret of a test that has three nodes").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let config = home.path().join("ombak.conf");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(config, format!("{text}cluster.secret_file = {}\n", secret.display())).unwrap();
    home
}

/// The lines of the log.
fn lines(home: &Home) -> Vec<Value> {
    let log = std::fs::read_to_string(home.data().join("log/console.log")).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line_with(home: &Home, message: &str) -> Value {
    lines(home)
        .into_iter()
        .find(|line| line["message"] == message)
        .unwrap_or_else(|| panic!("no line says {message:?}"))
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "{what}");
        pause(PAUSE);
    }
}

/// Three nodes whose cluster is formed.
fn cluster() -> Vec<Member> {
    let members: Vec<Member> =
        [1, 2, 3].map(home).into_iter().map(|home| Member { node: home.start(), home }).collect();
    let seed = line_with(&members[0].home, "listening for other nodes")["address"].as_str().unwrap().to_owned();
    for member in &members[1..] {
        member.home.run(&["admin", "cluster", "join", &seed]).ok();
    }
    members[0].home.run(&["admin", "cluster", "plan"]).ok();
    members[0].home.run(&["admin", "cluster", "commit"]).ok();
    wait_for("no ring", || members[2].home.run(&["admin", "ringready"]).out.starts_with("TRUE"));
    for member in &members {
        member.home.run(&["admin", "cluster", "settled", "--wait", "30"]).ok();
    }
    members
}

/// The name of the node that leads the decisions of the cluster.
fn leader(home: &Home) -> String {
    let said = home.run(&["admin", "cluster", "status", "--json"]);
    let status: Value = serde_json::from_str(&said.out).unwrap_or_default();
    status["claimant"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_cluster_that_loses_its_leader_and_stops_warns_of_nothing_ordinary_and_names_its_nodes() {
    let mut members = cluster();
    let numbers: Vec<String> = members
        .iter()
        .map(|member| line_with(&member.home, "listening for other nodes")["node_id"].as_str().unwrap().to_owned())
        .collect();
    let formed: Vec<usize> = members.iter().map(|member| lines(&member.home).len()).collect();

    let lost = leader(&members[0].home);
    let index = members.iter().position(|member| lost.starts_with(&format!("n{}@", number_of(member)))).unwrap();
    let Member { node, home } = members.remove(index);
    node.kill();
    wait_for("no other member leads", || {
        let now = leader(&members[0].home);
        !now.is_empty() && now != lost
    });
    let heard = |home: &Home| {
        lines(home).iter().any(|line| line["message"] == "a peer is down" && line["peer"] == lost.as_str())
    };
    wait_for("nobody says by its name that the lost leader is down", || {
        members.iter().any(|member| heard(&member.home))
    });
    members.insert(index, Member { node: home.start(), home });
    for member in &members {
        member.home.run(&["admin", "cluster", "settled", "--wait", "30"]).ok();
    }
    let homes: Vec<Home> = members
        .into_iter()
        .map(|Member { node, home }| {
            node.stop();
            home
        })
        .collect();

    for (home, formed) in homes.iter().zip(formed) {
        let lines = lines(home);
        let is_loud = |line: &&Value| line["level"] == "WARN" || line["level"] == "ERROR";
        let of_library = |line: &&Value| line["target"].as_str().is_some_and(|target| target.starts_with("openraft"));
        let loud: Vec<_> = lines.iter().filter(is_loud).filter(of_library).collect();
        assert!(loud.is_empty(), "{loud:#?}");
        let without_id = |line: &Value| {
            let mut line = line.clone();
            line.as_object_mut().unwrap().remove("node_id");
            line.to_string()
        };
        let numbered: Vec<String> = lines[formed..]
            .iter()
            .map(without_id)
            .filter(|line| numbers.iter().any(|number| line.contains(number.as_str())))
            .collect();
        assert!(numbered.is_empty(), "{numbered:#?}");
    }
}

/// The number in the name of a node.
fn number_of(member: &Member) -> char {
    member.node.ready_line.chars().nth(1).unwrap()
}

#[test]
fn keys_are_logged_by_their_names() {
    let home = home(1);
    let node = home.start();
    let put = |key: &str| {
        let answer =
            ask(&node, "PUT", &format!("/buckets/b/keys/{key}"), "Content-Type: text/plain\r\n", &"x".repeat(2000));
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    };
    put("bigk");
    put("big%0Ak");
    let large: Vec<Value> = lines(&home).into_iter().filter(|line| line["message"] == "large object").collect();
    let names: Vec<_> =
        large.iter().map(|line| ["bucket_type", "bucket", "key"].map(|name| line[name].clone())).collect();
    assert_eq!(names, [["default", "b", "bigk"], ["default", "b", "0x6269670A6B"]].map(|names| names.map(Value::from)));
    node.stop();
}
