//! Nodes that prove themselves with certificates: real programs, real sockets, real files.

use crate::support;

use crate::support::{DEADLINE, Home, Node, ask, pause};
use ombak_tls::CertificateFiles;
use ombak_tls::test_authority::{Issued, TestAuthority, self_signed};
use rustix::process::Signal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A node of a cluster, with its directory.
struct Member {
    node: Node,
    home: Home,
    peer: String,
}

fn secured(number: u32, issued: &Issued, authorities: &str) -> Home {
    let home = plain(number);
    let files = issued.write(home.path(), authorities);
    add(&home, &settings(&files));
    home
}

fn plain(number: u32) -> Home {
    Home::new(&format!("nodename = n{number}@127.0.0.1\nlistener.peer.internal = 127.0.0.1:0\n"))
}

fn settings(files: &CertificateFiles) -> String {
    let CertificateFiles { certificate, key, authorities } = files;
    let show = |path: &Path| path.display().to_string();
    format!(
        "cluster.ssl.certfile = {}\ncluster.ssl.keyfile = {}\ncluster.ssl.cacertfile = {}\n",
        show(certificate),
        show(key),
        show(authorities)
    )
}

fn add(home: &Home, lines: &str) {
    let path = home.path().join("ombak.conf");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{text}{lines}")).unwrap();
}

impl Member {
    fn start(home: Home) -> Self {
        let node = home.start();
        let logged = home.logged("INFO");
        let line = logged.iter().find(|line| line.contains("listening for other nodes")).expect("it listens");
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let peer = line["fields"]["address"].as_str().or(line["address"].as_str()).expect("an address").to_owned();
        Self { node, home, peer }
    }

    fn join(&self, other: &str) -> support::Said {
        self.home.run(&["admin", "cluster", "join", other])
    }

    /// Waits until a line of the log has a level and some words.
    fn wait_logged(&self, level: &str, words: &str) {
        let give_up_at = Instant::now() + DEADLINE;
        while !self.home.logged(level).iter().any(|line| line.contains(words)) {
            assert!(Instant::now() < give_up_at, "no {words:?} in {:?}", self.home.logged(level));
            pause(PAUSE);
        }
    }

    /// How many lines of the log have some words.
    fn logged(&self, level: &str, words: &str) -> usize {
        self.home.logged(level).iter().filter(|line| line.contains(words)).count()
    }
}

/// Three nodes whose cluster is formed.
fn cluster(homes: [Home; 3]) -> [Member; 3] {
    let members = homes.map(Member::start);
    let seed = members[0].peer.clone();
    for member in &members[1..] {
        member.join(&seed).ok();
    }
    members[0].home.run(&["admin", "cluster", "plan"]).ok();
    members[0].home.run(&["admin", "cluster", "commit"]).ok();
    let give_up_at = Instant::now() + DEADLINE;
    while !members[2].home.run(&["admin", "ringready"]).out.starts_with("TRUE") {
        assert!(Instant::now() < give_up_at, "no ring");
        pause(PAUSE);
    }
    for member in &members {
        member.home.run(&["admin", "cluster", "settled", "--wait", "30"]).ok();
    }
    members
}

fn put(node: &Node, key: &str, value: &str) -> String {
    ask(node, "PUT", &format!("/buckets/b/keys/{key}?w=3&timeout=20000"), "Content-Type: text/plain\r\n", value)
}

fn get(node: &Node, key: &str) -> String {
    ask(node, "GET", &format!("/buckets/b/keys/{key}?r=3&timeout=20000"), "", "")
}

fn assert_stored(answer: &str) {
    assert!(answer.starts_with("HTTP/1.1 204"), "{}", &answer[..answer.len().min(300)]);
}

#[test]
fn nodes_with_certificates_form_a_cluster_and_serve_and_strangers_do_not_join() {
    let (ca, other) = (TestAuthority::new("ca"), TestAuthority::new("other"));
    let homes = [1, 2, 3].map(|number| secured(number, &ca.issue("node"), &ca.pem));
    let members = cluster(homes);
    for (key, value) in [("small", "v".to_owned()), ("large", "0123456789".repeat(1_000_000))] {
        assert_stored(&put(&members[0].node, key, &value));
        let answer = get(&members[2].node, key);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&value), "{}", &answer[..300]);
    }
    // No secret was made: certificates took its place.
    assert!(!members[0].home.data().join("cluster.secret").exists());

    let seed = &members[0].peer;
    let stranger = Member::start(secured(4, &other.issue("node"), &format!("{}{}", other.pem, ca.pem)));
    let said = stranger.join(seed).failed(1);
    assert!(said.contains("refused the certificate of this node"), "{said}");
    members[0].wait_logged("WARN", "the certificate of the other side does not come from an authority");
    let own = self_signed("node");
    let stranger = Member::start(secured(5, &own, &format!("{}{}", own.chain, ca.pem)));
    let said = stranger.join(seed).failed(1);
    assert!(said.contains("refused the certificate of this node"), "{said}");

    let without = Member::start(plain(6));
    let said = without.join(seed).failed(1);
    assert!(said.contains("the other side speaks TLS, and this node has no certificate"), "{said}");
    members[0].wait_logged("WARN", "the other side does not speak TLS");
    let late = Member::start(secured(7, &ca.issue("node"), &ca.pem));
    let said = late.join(&without.peer).failed(1);
    assert!(said.contains("it may be configured without TLS"), "{said}");
    without.wait_logged("WARN", "the other side speaks TLS");

    assert_eq!(members[1].home.run(&["admin", "member-status"]).ok().matches("n4@").count(), 0);
    for member in &members {
        member.home.assert_no_errors_logged();
    }
    for member in members {
        member.node.stop();
    }
}

#[test]
fn certificates_are_replaced_while_requests_run() {
    let (ca, next) = (TestAuthority::new("ca"), TestAuthority::new("next"));
    let both = format!("{}{}", ca.pem, next.pem);
    let homes = [1, 2, 3].map(|number| secured(number, &ca.issue("node"), &ca.pem));
    let mut members = cluster(homes);
    let (stop, stored) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (stop, stored, node) = (&stop, &stored, &members[0].node);
        let requests = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let number = stored.load(Ordering::Relaxed);
                assert_stored(&put(node, &format!("k{number}"), &"x".repeat(20_000)));
                stored.fetch_add(1, Ordering::Relaxed);
            }
        });
        // First everybody trusts both authorities, then the certificates change, then the old
        // authority goes.
        let rounds: [(&TestAuthority, &str); 3] = [(&ca, &both), (&next, &both), (&next, &next.pem)];
        for (round, (authority, trusted)) in rounds.into_iter().enumerate() {
            for member in &members {
                authority.issue("node").write(member.home.path(), trusted);
                member.node.signal(Signal::HUP);
                let give_up_at = Instant::now() + DEADLINE;
                while member.logged("INFO", "the certificates were read again") <= round {
                    assert!(Instant::now() < give_up_at, "round {round}");
                    pause(PAUSE);
                }
            }
            let before = stored.load(Ordering::Relaxed);
            let give_up_at = Instant::now() + DEADLINE;
            while stored.load(Ordering::Relaxed) < before + 3 && !requests.is_finished() {
                assert!(Instant::now() < give_up_at, "requests stand still");
                pause(PAUSE);
            }
        }
        stop.store(true, Ordering::Relaxed);
        requests.join().expect("all requests succeeded");
    });
    // Files that cannot be used change nothing.
    std::fs::write(members[2].home.path().join("node.crt"), "nothing").unwrap();
    members[2].node.signal(Signal::HUP);
    members[2].wait_logged("ERROR", "node.crt: has no certificate");
    members[2].wait_logged("ERROR", "the certificates that were read before stay in force");

    // A node that starts again has to connect anew, with the new certificates.
    let Member { node, home, .. } = std::mem::replace(&mut members[1], Member::start(plain(9)));
    node.stop();
    let again = Member::start(home);
    assert_stored(&put(&again.node, "after", "v"));
    let last = stored.load(Ordering::Relaxed) - 1;
    assert!(get(&again.node, &format!("k{last}")).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_node_with_unusable_certificates_says_which_file_is_wrong_and_does_not_start() {
    let (ca, other) = (TestAuthority::new("ca"), TestAuthority::new("other"));
    let refused = |issued: &Issued, authorities: &str| {
        let home = secured(1, issued, authorities);
        let said = support::run(home.path(), &["start"]).failed(78);
        assert!(!home.data().join("node.json").exists(), "the refused start made a node");
        said
    };
    let said = refused(&ca.issue_for_years("node", 2001, 2002), &ca.pem);
    assert!(said.contains("cluster.ssl.certfile = ") && said.contains("node.crt: has expired"), "{said}");
    let said = refused(&ca.issue("node"), &other.pem);
    assert!(said.contains("node.crt: does not come from an authority") && said.contains("ca.crt"), "{said}");
    let mixed = Issued { key: ca.issue("another").key, ..ca.issue("node") };
    let said = refused(&mixed, &ca.pem);
    assert!(said.contains("cluster.ssl.keyfile = ") && said.contains("does not belong to the certificate"), "{said}");

    let home = plain(1);
    add(&home, "cluster.ssl.certfile = node.crt\n");
    let said = support::run(home.path(), &["start"]).failed(78);
    assert!(said.contains("cluster.ssl.keyfile and cluster.ssl.cacertfile has no value"), "{said}");
}
