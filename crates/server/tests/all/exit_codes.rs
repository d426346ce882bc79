//! The exit code 78 of a node that must not be started again until an operator has acted. Tests of
//! missing files, certificates and tokens expect it, too.

use crate::support::Home;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const MEMBER: &str = "storage_backend = memory\nlistener.peer.internal = 127.0.0.1:0";

#[test]
fn a_missing_or_open_secret_needs_an_operator() {
    let home = Home::new(&format!("{MEMBER}\ncluster.secret_file = elsewhere/secret"));
    let said = home.run(&["start"]).failed(78);
    assert!(said.contains("cluster.secret_file") && said.contains("there is no such file"), "{said}");
    fs::create_dir(home.path().join("elsewhere")).unwrap();
    let secret = home.path().join("elsewhere/secret");
    fs::write(&secret, "a secret that is long enough for a test").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(home.run(&["start"]).failed(78).contains("chmod 600"));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    home.start().stop();
}

#[test]
fn a_configuration_that_cannot_be_used_needs_an_operator() {
    let home = Home::new("storage_backend = memory\nno.such.key = 1");
    let said = home.run(&["start", "--json"]);
    assert_eq!(said.code, Some(78), "{}", said.err);
    let failure: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(failure["error"]["kind"], "needs_operator");
    // To look at a configuration is another thing than to start with it.
    home.run(&["config", "check"]).failed(1);
    home.run(&["start", "--config", "gone.conf"]).failed(78);
}

#[test]
fn metadata_that_is_lost_needs_an_operator() {
    let home = Home::new(MEMBER);
    home.start().stop();
    let alone = Home::new("storage_backend = memory");
    fs::rename(home.data(), alone.data()).unwrap();
    assert!(alone.run(&["start"]).failed(78).contains("set listener.peer.internal again"));
}

#[test]
fn what_may_pass_by_itself_has_another_code() {
    let home = Home::new("storage_backend = memory");
    let node = home.start();
    assert!(home.run(&["start"]).failed(1).contains("Node is already running!"));
    node.stop();
}
