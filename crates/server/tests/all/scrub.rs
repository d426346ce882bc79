//! The commands `ombak admin scrub` against a real node, with damage on a real disk.

use crate::support::{DEADLINE, Home, pause};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const BITCASK: &str = "storage_backend = bitcask\nscrub.interval = 1h\nscrub.bytes_per_second_max = 0";

fn status(home: &Home) -> Value {
    serde_json::from_str(&home.run(&["admin", "scrub", "status", "--json"]).ok()).expect("JSON")
}

fn sum(report: &Value, count: &str) -> u64 {
    let stores = report["stores"].as_array().expect("stores");
    stores.iter().map(|store| store[count].as_u64().expect("a count")).sum()
}

/// Waits until something is true of the state of scrubbing.
fn wait_until(home: &Home, what: &str, is_true: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let report = status(home);
        if is_true(&report) {
            return report;
        }
        assert!(Instant::now() < deadline, "{what}: {report}");
        pause(Duration::from_millis(50));
    }
}

/// The data file with some bytes, and where they are.
fn place_of(home: &Home, bytes: &[u8]) -> (PathBuf, usize) {
    let stores = std::fs::read_dir(home.data().join("bitcask")).expect("the backend's directory");
    let dirs = stores.filter_map(|store| std::fs::read_dir(store.ok()?.path()).ok()).flatten();
    let files = dirs.map(|file| file.expect("a file").path()).filter(|path| path.extension() == Some("data".as_ref()));
    let found = files.into_iter().find_map(|path| {
        let content = std::fs::read(&path).expect("a data file");
        let at = content.windows(bytes.len()).position(|part| part == bytes)?;
        Some((path, at))
    });
    found.expect("the bytes are on the disk")
}

fn flip(path: &PathBuf, at: usize) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("opens");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).expect("reads");
    file.write_all_at(&[byte[0] ^ 4], at as u64).expect("writes");
    file.sync_all().expect("syncs");
}

#[test]
fn damage_of_the_only_copy_is_found_and_reported_and_stays() {
    let home = Home::new(BITCASK);
    let node = home.start();
    for n in 0..20 {
        home.run(&["kv", "put", "cold", &format!("key{n}"), &format!("the value with the number {n:03}")]).ok();
    }
    node.stop();
    let (path, at) = place_of(&home, b"the value with the number 013");
    flip(&path, at + 5);
    let node = home.start();
    home.run(&["admin", "scrub", "start"]).ok();
    // The node may have begun a round by itself before, which counts the same damage.
    let report = wait_until(&home, "the damage is found", |report| sum(report, "damaged") >= 1);
    assert_eq!(report["interval_secs"], 3_600);
    let report = wait_until(&home, "the round is over", |report| report["state"] == "waiting");
    assert!(sum(&report, "round_bytes") > 20 * 60, "{report}");
    let text = home.run(&["admin", "scrub", "status"]).ok();
    assert!(text.starts_with("Scrubbing has read everything") && text.contains("|damaged|"), "{text}");
    let listed: Value =
        serde_json::from_str(&home.run(&["admin", "cluster", "unreadable-keys", "--json"]).ok()).expect("JSON");
    assert_eq!((&listed["keys"][0]["bucket"], &listed["keys"][0]["key"]), (&"cold".into(), &"key13".into()));
    let is_named = |line: &String| line.contains("a stored version is damaged") && line.contains("key13");
    assert!(home.logged("ERROR").iter().any(is_named), "the log names the key");
    home.run(&["kv", "get", "cold", "key13"]).failed(1);
    // Nothing was removed: what was mended is there again.
    flip(&path, at + 5);
    let deadline = Instant::now() + DEADLINE;
    while home.run(&["kv", "get", "cold", "key13"]).code != Some(0) {
        assert!(Instant::now() < deadline, "the value is not there again");
        pause(Duration::from_millis(50));
    }
    node.stop();
}

#[test]
fn scrubbing_is_paused_and_goes_on() {
    let home = Home::new(BITCASK);
    let node = home.start();
    let paused: Value = serde_json::from_str(&home.run(&["admin", "scrub", "pause", "--json"]).ok()).expect("JSON");
    assert_eq!(paused["state"], "paused");
    assert!(home.run(&["admin", "scrub", "status"]).ok().starts_with("Scrubbing is paused"));
    home.run(&["admin", "scrub", "resume"]).ok();
    assert_ne!(status(&home)["state"], "paused");
    node.stop();
    home.assert_no_errors_logged();
    let off = Home::new("scrub.enabled = off");
    let node = off.start();
    assert_eq!(
        off.run(&["admin", "scrub", "status"]).ok().trim(),
        "Scrubbing is off (scrub.enabled).\nNo store of this node has anything on a disk."
    );
    assert!(off.run(&["admin", "scrub", "start"]).failed(1).contains("scrub.enabled = on"));
    node.stop();
}
