//! Nodes that are started in the background.

use crate::support::{Home, Said};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

const MEMORY: &str = "storage_backend = memory";

/// Stops the node of a directory when the test ends, whatever its outcome.
struct Stopped<'a>(&'a Home);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.run(&["stop"]);
    }
}

#[test]
fn a_start_in_the_background_returns_when_the_node_is_ready() {
    for words in [&["start", "--background"][..], &["daemon"]] {
        let home = Home::new(MEMORY);
        let _stopped = Stopped(&home);
        let said = home.run(words).ok();
        assert!(said.contains("riak@127.0.0.1 is ready: HTTP 127.0.0.1:"), "{said}");
        assert_eq!(home.run(&["ping"]).ok(), "pong\n");
        home.run(&["kv", "put", "b", "k", "v"]).ok();
        assert_eq!(home.run(&["kv", "get", "b", "k"]).ok(), "v");
        assert_eq!(home.run(&["stop"]).ok(), "ok\n");
        home.assert_no_errors_logged();
        let said: Value = serde_json::from_str(&home.run(&[words, &["--json"]].concat()).ok()).unwrap();
        assert_eq!(said["ready"], true);
        assert_eq!(home.run(&["getpid"]).ok(), format!("{}\n", said["pid"]));
    }
}

#[test]
fn a_node_that_does_not_get_ready_leaves_its_code_and_its_last_error() {
    let home = Home::new("storage_backend = memory\nno.such.key = 1");
    let said = home.run(&["start", "--background"]).failed(78);
    assert!(said.contains("no.such.key"), "{said}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let home = Home::new(&format!("{MEMORY}\nlistener.http.internal = {address}"));
    let said = home.run(&["daemon"]).failed(1);
    assert!(said.contains("the port is in use") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_second_start_in_the_background_is_refused() {
    let home = Home::new(MEMORY);
    let node = home.start();
    assert!(home.run(&["start", "--background"]).failed(1).starts_with("Node is already running!"));
    assert_eq!(home.run(&["ping"]).ok(), "pong\n");
    node.stop();
}

/// The options reach the node.
#[test]
fn a_node_in_the_background_has_the_directory_and_the_configuration_that_were_named() {
    let home = Home::new(MEMORY);
    let config = home.path().join("ombak.conf");
    std::fs::rename(&config, home.path().join("other.conf")).unwrap();
    let options = ["--data", "there", "--config", "other.conf"];
    home.run(&[&["start", "--background"], &options[..]].concat()).ok();
    let (there, here) = (home.path().join("there/running.json").exists(), home.data().exists());
    assert_eq!(home.run(&[&["stop"], &options[..]].concat()).ok(), "ok\n");
    assert!(there && !here);
}

/// As Riak's users expect: `riak start` returns.
#[test]
fn riak_start_is_a_start_in_the_background() {
    let home = Home::new(MEMORY);
    let _stopped = Stopped(&home);
    let riak = home.path().join("riak");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ombak"), &riak).unwrap();
    let run = |program: &Path, word: &str| -> Said {
        let mut command = Command::new(program);
        command.current_dir(home.path()).arg(word).stdin(Stdio::null()).output().unwrap().into()
    };
    assert!(run(&riak, "start").ok().contains("is ready"));
    assert_eq!(run(&riak, "ping").ok(), "pong\n");
    assert_eq!(run(&riak, "stop").ok(), "ok\n");
}
