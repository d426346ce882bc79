//! Nodes that know each other by the names of their hosts: real programs, real sockets.

use crate::support::{DEADLINE, Home, Node, Said, pause, run};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// A node with its directory.
struct Member {
    node: Node,
    home: Home,
}

/// A directory for a node with the secret of the test.
fn home(number: u32, settings: &str) -> Home {
    let home = Home::new(&format!("nodename = n{number}@localhost\n{settings}"));
    let secret = home.path().join("secret");
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&secret).unwrap();
    file.write_all(b"the secret of a test with names of hosts").unwrap();
    add(&home, &format!("cluster.secret_file = {}\n", secret.display()));
    home
}

fn add(home: &Home, settings: &str) {
    let mut file = OpenOptions::new().append(true).open(home.path().join("ombak.conf")).unwrap();
    file.write_all(settings.as_bytes()).unwrap();
}

/// A port of the loopback address that is free.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Member {
    fn start(home: Home) -> Self {
        Self { node: home.start(), home }
    }

    fn admin(&self, words: &[&str]) -> Said {
        self.home.run(&[&["admin"], words].concat())
    }

    /// The addresses of all members, as this one knows them.
    fn addresses(&self) -> Vec<String> {
        let said = self.admin(&["cluster", "status", "--json"]).ok();
        let status: Value = serde_json::from_str(&said).unwrap();
        let members = status["members"].as_array().unwrap().iter();
        let mut addresses: Vec<String> = members.map(|of| of["address"].as_str().unwrap().to_owned()).collect();
        addresses.sort();
        addresses
    }

    fn wait_for(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let give_up_at = Instant::now() + DEADLINE;
        while !holds(self) {
            assert!(Instant::now() < give_up_at, "it never came true: {what}");
            pause(PAUSE);
        }
    }
}

fn sorted(mut addresses: Vec<String>) -> Vec<String> {
    addresses.sort();
    addresses
}

/// Replaces the port of the node in its configuration.
fn move_to(home: &Home, from: u16, to: u16) {
    let path = home.path().join("ombak.conf");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace(&format!(":{from}\n"), &format!(":{to}\n"))).unwrap();
}

#[test]
fn nodes_with_names_form_a_cluster_and_find_each_other_when_all_have_moved() {
    let [first, second, third, fourth] = [(); 4].map(|()| free_port());
    let one = Member::start(home(1, &format!("listener.peer.internal = localhost:{first}\n")));
    let of_two =
        format!("listener.peer.internal = 127.0.0.1:{second}\ncluster.advertised_address = localhost:{second}\n");
    let two = Member::start(home(2, &of_two));
    let joined = two.admin(&["cluster", "join", &format!("n1@localhost:{first}")]).ok();
    assert_eq!(joined, "Success: staged join request for 'n2@localhost' to 'n1@localhost'\n");
    one.admin(&["cluster", "plan"]).ok();
    one.admin(&["cluster", "commit"]).ok();
    // The members know addresses, not names.
    let expected = sorted(vec![format!("127.0.0.1:{first}"), format!("127.0.0.1:{second}")]);
    one.wait_for("both know both", |one| one.addresses() == expected && two.addresses() == expected);

    // Both come back at other addresses, as when all containers of a cluster were replaced. Neither
    // finds the other where it was, and so neither can tell its address.
    let homes = [(one, first, third), (two, second, fourth)].map(|(Member { node, home }, from, to)| {
        node.stop();
        move_to(&home, from, to);
        add(&home, &format!("cluster.peers = localhost:{third} localhost:{fourth} \n"));
        home
    });
    let [one, two] = homes.map(Member::start);
    let expected = sorted(vec![format!("127.0.0.1:{third}"), format!("127.0.0.1:{fourth}")]);
    one.wait_for("the new addresses are known", |one| one.addresses() == expected && two.addresses() == expected);
    one.wait_for("all are up", |one| one.admin(&["ringready"]).out.starts_with("TRUE"));
    one.node.stop();
    two.node.stop();
}

#[test]
fn a_name_without_an_address_ends_a_start_and_a_join_with_that_name() {
    let nowhere = home(1, "listener.peer.internal = no-such-host.invalid:8099\n");
    let refused = run(nowhere.path(), &["start"]).failed(1);
    assert!(refused.contains("listener.peer.internal = no-such-host.invalid:8099: the "), "{refused}");
    assert!(!nowhere.data().join("node.json").exists(), "the refused start made a node");
    let alone = Member::start(home(2, "listener.peer.internal = 127.0.0.1:0\n"));
    for (to, why) in [
        // Without a server for names, the look-up takes too long.
        ("no-such-host.invalid:8099", "the "),
        ("riak@10.0.0.1", "the port is missing"),
        ("localhost:+80", "'+80' is not a port"),
        ("localhost:0", "nobody can connect to port 0"),
        (":8099", "the host is missing"),
    ] {
        let refused = alone.admin(&["cluster", "join", to]).failed(1);
        assert!(refused.contains(&format!("{to}: ")) && refused.contains(why), "{to}: {refused}");
    }
    alone.node.stop();
}

#[test]
fn an_address_that_leads_each_machine_to_itself_is_warned_about_among_other_machines() {
    let settings = "listener.peer.internal = 0.0.0.0:0\ncluster.advertised_address = localhost:8099\n";
    let of_other_machines = home(1, &format!("{settings}cluster.peers = 127.0.0.1:1 192.0.2.1:8099\n"));
    let mut command = of_other_machines.start_command();
    // It waits for its peers, so it is not ready.
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let give_up_at = Instant::now() + DEADLINE;
    let is_warned =
        || of_other_machines.logged("WARN").iter().any(|line| line.contains("leads every machine to itself"));
    while !is_warned() && Instant::now() < give_up_at {
        pause(PAUSE);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_warned());
    let of_this_machine = Member::start(home(2, settings));
    assert!(!of_this_machine.home.logged("WARN").iter().any(|line| line.contains("leads every machine to itself")));
    of_this_machine.node.stop();
}

#[test]
fn a_join_and_a_plan_name_members_with_other_times_of_detection() {
    let peer = "listener.peer.internal = 127.0.0.1:0\n";
    let members = [
        Member::start(home(1, peer)),
        Member::start(home(2, &format!("{peer}cluster.suspicion_time = 5s\n"))),
        Member::start(home(3, peer)),
    ];
    let status: Value = serde_json::from_str(&members[0].home.run(&["status", "--json"]).ok()).unwrap();
    let first = status["cluster"]["peer_address"].as_str().unwrap().to_owned();
    let said = members[2].admin(&["cluster", "join", &first]).ok();
    assert_eq!(said.lines().count(), 1, "all have the same: {said}");
    let said = members[1].admin(&["cluster", "join", &first]).ok();
    let warning = said.lines().nth(1).unwrap_or_default();
    assert!(warning.starts_with("WARNING: cluster.suspicion_time is 1400ms on 'n"), "{said}");
    assert!(warning.contains(", and 5s on 'n2@localhost': "), "{said}");
    let plan = members[0].admin(&["cluster", "plan"]).ok();
    assert!(plan.contains("\nWARNING: cluster.suspicion_time is 1400ms on 'n"), "{plan}");
    let json: Value = serde_json::from_str(&members[2].admin(&["cluster", "plan", "--json"]).ok()).unwrap();
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(1), "{json}");
    for member in members {
        member.node.stop();
    }
}
