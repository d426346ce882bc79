//! The audit log of a real node: what administration changes, and who was refused.

use crate::support::{DEADLINE, Home, ask, pause};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn file(home: &Home) -> PathBuf {
    home.data().join("log/audit.log")
}

fn refusals(home: &Home) -> PathBuf {
    home.data().join("log/refusals.log")
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until the log has so many lines, because requests do not wait for it.
fn wait_for(file: &Path, count: usize) -> Vec<Value> {
    let give_up_at = Instant::now() + DEADLINE;
    loop {
        let found = lines(file);
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < give_up_at, "{found:#?}");
        pause(Duration::from_millis(20));
    }
}

/// The event, the outcome, the action and the proof of a line.
fn told(line: &Value) -> Value {
    json!([line["event"], line["outcome"], line["action"], line["proof"]])
}

#[test]
fn changes_and_refusals_are_told_with_who_and_from_where_and_without_passwords() {
    let home = Home::new("storage_backend = memory\nring_size = 8");
    let node = home.start();
    home.run(&["admin", "security", "add-user", "alice", "password=horse battery"]).ok();
    home.run(&["admin", "security", "add-user", "alice", "password=again"]).failed(1);
    home.run(&["admin", "security", "print-users"]).ok();
    home.run(&["admin", "status"]).ok();
    let wrong = "X-Ombak-Admin: 1\r\nAuthorization: Bearer wrong\r\n";
    let secret = r#"{"arguments":["secret"]}"#;
    assert!(ask(&node, "POST", "/admin/v1/stop", wrong, secret).contains("bad_token"));
    let mut found = wait_for(&file(&home), 2);
    found.extend(wait_for(&refusals(&home), 1));
    let add = "POST /admin/v1/security/add-user";
    let told: Vec<Value> = found.iter().map(told).collect();
    let expected = [
        json!(["administration", "done", add, "admin_token"]),
        json!(["administration", "failed", add, "admin_token"]),
        json!(["denied", "refused", "POST /admin/v1/stop", "nothing"]),
    ];
    assert_eq!(told, expected, "{found:#?}");
    assert_eq!(found[0]["detail"]["arguments"], json!(["alice", "password=[hidden]"]));
    assert_eq!((&found[1]["why"], &found[2]["detail"]), (&json!("refused"), &Value::Null), "{found:#?}");
    assert!(found[2]["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{found:#?}");
    let text = std::fs::read_to_string(file(&home)).unwrap();
    assert!(!text.contains("horse") && !text.contains("again"), "{text}");
    for file in [file(&home), refusals(&home)] {
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "others learn from it who may do what");
    }
    assert!(home.run(&["admin", "stat", "show", "audit_administration_recorded"]).ok().contains('2'));
}

#[test]
fn a_hangup_opens_the_file_again_and_a_stop_writes_the_last_lines() {
    let home = Home::new("storage_backend = memory\nring_size = 8");
    let node = home.start();
    home.run(&["admin", "set", "logger.level=debug"]).ok();
    wait_for(&file(&home), 1);
    let moved = home.path().join("moved");
    std::fs::rename(file(&home), &moved).unwrap();
    node.signal(rustix::process::Signal::HUP);
    let give_up_at = Instant::now() + DEADLINE;
    while !file(&home).exists() {
        assert!(Instant::now() < give_up_at, "the file is not opened again");
        pause(Duration::from_millis(20));
    }
    home.run(&["admin", "set", "logger.level=info"]).ok();
    node.stop();
    let (before, after) = (lines(&moved), lines(&file(&home)));
    assert_eq!((before.len(), after.len()), (1, 1), "{before:#?} {after:#?}");
    assert_eq!(after[0]["detail"]["value"], "info");
}

#[test]
fn a_log_that_cannot_be_written_ends_the_start_with_what_to_do_and_it_can_be_off() {
    let home = Home::new("storage_backend = memory\nring_size = 8\naudit.file = /dev/null/audit.log");
    let said = home.run(&["start"]).failed(1);
    assert!(
        said.contains("cannot write the audit log /dev/null/audit.log") && said.contains("audit.log = off"),
        "{said}"
    );
    let home = Home::new("storage_backend = memory\nring_size = 8\naudit.file = /dev/null/audit.log\naudit.log = off");
    home.start().stop();
    let home = Home::new("storage_backend = memory\nring_size = 8\naudit.file = x\nlogger.file = x");
    let said = home.run(&["start"]).failed(78);
    assert!(said.contains("audit.file and logger.file are both x"), "{said}");
}
