//! The configuration commands as a user runs them: check, describe, effective, example, and
//! overrides.

use crate::support::{Node, Said, ombak, run};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn home(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("tempdir");
    std::fs::write(dir.path().join("ombak.conf"), text).expect("write");
    dir
}

fn with_variable(dir: &Path, name: &str, value: &str, args: &[&str]) -> Said {
    ombak().current_dir(dir).env(name, value).args(args).output().expect("runs").into()
}

#[test]
fn a_good_configuration_is_ok_and_a_bad_one_is_told_line_by_line() {
    assert_eq!(run(home("ring_size = 16\n").path(), &["config", "check"]).ok(), "config is OK\n");
    let bad = home("ring_sise = 16\n\nnodename = me\nstorage_backend = yessir\nwhat\n");
    let errors = run(bad.path(), &["config", "check"]).failed(1);
    for line in [
        "ombak.conf:1: unknown key 'ring_sise'; did you mean 'ring_size'?",
        "ombak.conf:3: nodename = me: must be NAME@HOST, such as riak@127.0.0.1",
        "ombak.conf:4: storage_backend = yessir: the yessir backend of Riak's tests does not exist here; use bitcask, \
         leveled, leveldb or memory",
        "ombak.conf:5: not understood; a line is a comment (#) or 'key = value'",
    ] {
        assert!(errors.lines().any(|l| l == line), "{line}\nin {errors}");
    }
    let verdict: Value = serde_json::from_str(&run(bad.path(), &["config", "check", "--json"]).out).expect("JSON");
    assert_eq!((&verdict["ok"], verdict["errors"].as_array().map(Vec::len)), (&Value::Bool(false), Some(4)));
    let refusal = run(bad.path(), &["start"]).failed(78);
    assert!(refusal.contains("did you mean 'ring_size'?"), "{refusal}");
}

#[test]
fn a_key_of_riak_without_meaning_is_accepted_with_the_reason() {
    let dir = home("distributed_cookie = mine\nhandoff.port = 8100\n");
    let said = run(dir.path(), &["config", "check"]);
    assert!(said.err.contains("ombak.conf:1: distributed_cookie has no effect: there is no Erlang"), "{}", said.err);
    assert!(
        said.err.contains("handoff.port has no effect: nodes exchange everything over listener.peer"),
        "{}",
        said.err
    );
    assert_eq!(said.ok(), "config is OK\n");
}

#[test]
fn what_a_riak_conf_switches_off_is_no_matter_and_a_second_file_is_named() {
    let dir = home("search = off\nsearch.solr.port = 8093\nstrong_consistency = off\ndistributed_cookie = riak\n");
    let said = run(dir.path(), &["config", "check"]);
    assert_eq!((said.err.as_str(), said.out.as_str()), ("", "config is OK\n"));
    std::fs::write(dir.path().join("advanced.config"), "[{riak_kv, [{x, 1}]}].").expect("write");
    let said = run(dir.path(), &["config", "check"]);
    assert!(said.err.starts_with("warning: advanced.config is not read: "), "{}", said.err);
    assert_eq!(said.ok(), "config is OK\n");
}

#[test]
fn a_node_whose_configuration_asks_for_encrypted_handoff_does_not_start_unless_a_key_accepts_that() {
    let asks = "listener.http.internal = 127.0.0.1:0\nlistener.protobuf.internal = 127.0.0.1:0\nring_size = 8\n\
                handoff.ssl.certfile = cert.pem\nlistener.peer.internal = 127.0.0.1:0\n";
    let dir = home(asks);
    for (command, code) in [(&["start"][..], 78), (&["config", "check"], 1)] {
        let refused = run(dir.path(), command).failed(code);
        assert!(refused.contains("ombak.conf:4: handoff.ssl.certfile asks for encrypted handoff"), "{refused}");
        assert!(refused.trim_end().ends_with("accept_missing.security = on"), "{refused}");
    }
    assert!(!dir.path().join("data").exists(), "the refused start made a directory");
    std::fs::write(dir.path().join("ombak.conf"), format!("{asks}accept_missing.security = on\n")).expect("write");
    let mut command = ombak();
    command.current_dir(dir.path()).arg("start");
    Node::start(command, dir.path().join("data")).stop();
    let log = std::fs::read_to_string(dir.path().join("data/log/console.log")).expect("log");
    assert_eq!(log.matches("handoff.ssl.certfile has no effect").count(), 1, "{log}");
}

#[test]
fn a_node_with_a_hook_that_cannot_run_before_puts_does_not_start() {
    let dir = home("buckets.default.precommit = a:b\n");
    let refused = run(dir.path(), &["start"]).failed(78);
    assert!(refused.contains("buckets.default.precommit asks for a function in Erlang"), "{refused}");
    let said = run(home("buckets.default.postcommit = a:b\n").path(), &["config", "check"]);
    assert!(said.err.contains("buckets.default.postcommit has no effect"), "{}", said.err);
    said.ok();
}

#[test]
fn a_check_looks_at_the_files_with_which_a_node_proves_itself() {
    let text = "listener.peer.internal = 127.0.0.1:8099\ncluster.secret_file = the.secret\n";
    let (dir, alone) = (home(text), home("cluster.secret_file = the.secret\n"));
    assert_eq!(run(alone.path(), &["config", "check"]).ok(), "config is OK\n", "a node that is alone needs none");
    let missing = run(dir.path(), &["config", "check"]).failed(1);
    assert!(missing.starts_with("cluster.secret_file = the.secret: there is no such file; copy the one"), "{missing}");
    let (_, command) = missing.trim_end().split_once("of the node: ").expect("a command that makes it");
    let made = std::process::Command::new("sh").current_dir(dir.path()).args(["-c", command]).status().expect("runs");
    assert!(made.success(), "{command}");
    assert_eq!(run(dir.path(), &["config", "check"]).ok(), "config is OK\n");
    std::fs::set_permissions(dir.path().join("the.secret"), Permissions::from_mode(0o644)).expect("chmod");
    assert!(run(dir.path(), &["config", "check"]).failed(1).contains("chmod 600"));
    let certificates = "listener.peer.internal = 127.0.0.1:8099\ncluster.ssl.certfile = node.crt\n\
                        cluster.ssl.keyfile = node.key\ncluster.ssl.cacertfile = ca.crt\n";
    let missing = run(home(certificates).path(), &["config", "check"]).failed(1);
    assert!(missing.starts_with("cluster.ssl.") && missing.contains("node.crt"), "{missing}");
    // The default is in the data directory, where the first start makes it.
    let by_default = home("listener.peer.internal = 127.0.0.1:8099\n");
    assert_eq!(run(by_default.path(), &["config", "check"]).ok(), "config is OK\n");
    assert!(!by_default.path().join("data").exists(), "a check changes nothing");
}

#[test]
fn addresses_between_nodes_are_checked() {
    for (line, why) in [
        ("listener.peer.internal = :8099", "the host is missing"),
        ("listener.peer.internal = node-1.example", "the port is missing"),
        ("cluster.advertised_address = node-1.example:+80", "'+80' is not a port"),
        ("cluster.advertised_address = node-1.example:0", "nobody can connect to port 0"),
        ("cluster.peers = 10.0.0.1:8099 10.0.0.2:0", "'10.0.0.2:0': "),
    ] {
        let refused = run(home(&format!("{line}\n")).path(), &["config", "check"]).failed(1);
        assert!(refused.starts_with(&format!("ombak.conf:1: {line}: ")) && refused.contains(why), "{line}: {refused}");
    }
}

#[test]
fn keys_that_begin_alike_are_listed() {
    let dir = home("");
    let text = run(dir.path(), &["config", "describe", "cluster.s"]).ok();
    for part in ["cluster.suspicion_time = 1400ms\n    How long a node", "cluster.ssl.certfile not set by default"] {
        assert!(text.contains(part), "{part}\nin {text}");
    }
    assert!(!text.contains("cluster.peers"), "{text}");
    let json: Value =
        serde_json::from_str(&run(dir.path(), &["config", "describe", "tls_protocols", "--json"]).ok()).expect("JSON");
    assert_eq!((&json["prefix"], json["keys"].as_array().map(Vec::len)), (&"tls_protocols".into(), Some(5)));
    assert_eq!(json["keys"][0]["effect"], "works");
    let both = run(dir.path(), &["config", "describe", "anti_entropy"]).ok();
    assert!(both.contains("keys below it ('ombak config describe anti_entropy.')"), "{both}");
}

#[test]
fn the_environment_and_the_command_line_override() {
    let dir = home("ring_size = 16\nplatform_data_dir = ./from-file\n");
    let effective = with_variable(dir.path(), "OMBAK_RING_SIZE", "32", &["config", "effective", "--data", "x"]).ok();
    assert!(effective.contains("\nring_size = 32\n"), "{effective}");
    assert!(effective.contains("\nplatform_data_dir = x\n"), "{effective}");
    assert!(effective.contains("\nbitcask.data_root = x/bitcask\n"), "{effective}");
    let wrong = with_variable(dir.path(), "OMBAK_RING_SIZE", "33", &["config", "check"]).failed(1);
    assert!(wrong.starts_with("environment variable OMBAK_RING_SIZE: ring_size = 33"), "{wrong}");
}

#[test]
fn what_effective_prints_is_a_configuration() {
    let dir = home("bitcask.expiry = 1d\ncluster.job.riak_kv.list_keys = disabled\n");
    let effective = run(dir.path(), &["config", "effective"]).ok();
    std::fs::write(dir.path().join("again.conf"), &effective).expect("write");
    assert_eq!(run(dir.path(), &["config", "effective", "--config", "again.conf"]).ok(), effective);
}

#[test]
fn keys_are_explained() {
    let dir = home("bitcask.sync.strategy = o_sync\n");
    let text = run(dir.path(), &["config", "describe", "bitcask.sync.strategy"]).ok();
    for part in ["one of none, o_sync, interval", "o_sync (file)", "OMBAK_BITCASK__SYNC__STRATEGY"] {
        assert!(text.contains(part), "{part}\nin {text}");
    }
    let json: Value =
        serde_json::from_str(&run(dir.path(), &["config", "describe", "strong_consistency", "--json"]).ok())
            .expect("JSON");
    assert_eq!((&json["effect"], &json["default"]), (&"not yet".into(), &"off".into()));
    let unknown = run(dir.path(), &["config", "describe", "bitcask.sync.stratgy"]).failed(1);
    assert_eq!(unknown, "unknown key 'bitcask.sync.stratgy'; did you mean 'bitcask.sync.strategy'?\n");
}

#[test]
fn the_example_is_a_configuration() {
    let dir = home("");
    let example = run(dir.path(), &["config", "example"]).ok();
    std::fs::write(dir.path().join("ombak.conf"), &example).expect("write");
    assert_eq!(run(dir.path(), &["config", "check"]).ok(), "config is OK\n");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let dir = home("");
    let said = run(dir.path(), &["config", "check", "--config", "gone.conf"]).failed(1);
    assert!(said.starts_with("cannot read the configuration gone.conf: "), "{said}");
}
