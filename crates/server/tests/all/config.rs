//! The configuration commands as a user runs them: check, describe, effective, example, and
//! overrides.

use crate::support::{Said, ombak, run};
use serde_json::Value;
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
    let refusal = run(bad.path(), &["start"]).failed(1);
    assert!(refusal.contains("did you mean 'ring_size'?"), "{refusal}");
}

#[test]
fn a_key_of_riak_without_meaning_is_accepted_with_the_reason() {
    let dir = home("distributed_cookie = riak\nhandoff.port = 8099\n");
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
        serde_json::from_str(&run(dir.path(), &["config", "describe", "anti_entropy", "--json"]).ok()).expect("JSON");
    assert_eq!((&json["effect"], &json["default"]), (&"not yet".into(), &"passive".into()));
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
