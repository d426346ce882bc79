//! `ombak admin backup` and `ombak restore`, as an operator uses them: a node is backed up while it
//! is written to and then dies, and another node starts from the backup.

use crate::support::{DEADLINE, Home, Node, ask, ombak, pause};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Three backends, each of which holds one of the three buckets.
const SEVERAL: &str = "storage_backend = multi\nmulti_backend.default = ordered\n\
    multi_backend.ordered.storage_backend = leveldb\nmulti_backend.ordered.leveldb.maximum_memory = 64MB\n\
    multi_backend.big.storage_backend = leveled\nmulti_backend.plain.storage_backend = bitcask";

fn put(node: &Node, n: usize) {
    let headers = format!("Content-Type: text/plain\r\nX-Riak-Index-n_int: {n}\r\n");
    let answer = ask(node, "PUT", &format!("/buckets/b{}/keys/{n}", n % 3), &headers, &format!("value {n}"));
    assert!(answer.starts_with("HTTP/1.1 204"), "{n}: {answer}");
}

fn has(node: &Node, n: usize) -> bool {
    let answer = ask(node, "GET", &format!("/buckets/b{}/keys/{n}", n % 3), "", "");
    let is_found = answer.ends_with(&format!("\r\n\r\nvalue {n}"));
    assert!(is_found || answer.starts_with("HTTP/1.1 404"), "{n}: {answer}");
    is_found
}

fn spread(node: &Node) {
    for (bucket, backend) in [("b1", "big"), ("b2", "plain")] {
        let props = format!(r#"{{"props":{{"backend":"{backend}"}}}}"#);
        let answer =
            ask(node, "PUT", &format!("/buckets/{bucket}/props"), "Content-Type: application/json\r\n", &props);
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
}

/// Waits until this many writes have been acknowledged.
fn wait_for(acknowledged: &AtomicUsize, count: usize) {
    let deadline = Instant::now() + DEADLINE;
    while acknowledged.load(Ordering::Acquire) < count {
        assert!(Instant::now() < deadline, "the node does not write");
        pause(Duration::from_millis(1));
    }
}

/// Takes a backup in the middle of writing. Returns how many writes were acknowledged before it
/// began, and how many at its end.
fn back_up_while_writing(home: &Home, node: &Node, dir: &str) -> (usize, usize) {
    let (acknowledged, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                put(node, acknowledged.load(Ordering::Acquire));
                acknowledged.fetch_add(1, Ordering::AcqRel);
            }
        });
        wait_for(&acknowledged, 60);
        let before = acknowledged.load(Ordering::Acquire);
        home.run(&["admin", "backup", dir]).ok();
        let after = acknowledged.load(Ordering::Acquire);
        wait_for(&acknowledged, after + 60);
        stop.store(true, Ordering::Release);
        (before, after)
    })
}

/// A backup has every write that was acknowledged before it began, and no write that came after it.
fn backed_up_and_restored(settings: &str) {
    let (home, heir) = (Home::new(settings), Home::new(settings));
    let node = home.start();
    if settings.contains("backend = multi") {
        spread(&node);
    }
    let (before, after) = back_up_while_writing(&home, &node, "backup");
    node.kill();
    let backup = home.path().join("data-backups/backup");
    let backup = backup.to_str().unwrap();
    heir.run(&["restore", backup]).ok();
    let node = heir.start();
    for n in 0..before {
        assert!(has(&node, n), "{n} of {before} is lost");
    }
    // One more write may have been in progress when the backup ended.
    for n in after + 1..after + 60 {
        assert!(!has(&node, n), "{n} came after the backup");
    }
    let found = ask(&node, "GET", "/buckets/b2/index/n_int/0/8", "", "");
    assert!(found.ends_with(r#"{"keys":["2","5","8"]}"#), "{found}");
    put(&node, 1_000_000);
    node.stop();
    heir.assert_no_errors_logged();
    home.assert_no_errors_logged();
}

#[test]
fn a_node_on_bitcask_is_backed_up_and_restored() {
    backed_up_and_restored("storage_backend = bitcask");
}

#[test]
fn a_node_on_leveled_is_backed_up_and_restored() {
    backed_up_and_restored("storage_backend = leveled");
}

#[test]
fn a_node_on_leveldb_is_backed_up_and_restored() {
    backed_up_and_restored("storage_backend = leveldb\nleveldb.maximum_memory = 64MB");
}

#[test]
fn a_node_on_hanoidb_is_backed_up_and_restored() {
    backed_up_and_restored("storage_backend = hanoidb\nleveldb.maximum_memory = 64MB");
}

#[test]
fn a_node_on_several_backends_is_backed_up_and_restored() {
    backed_up_and_restored(SEVERAL);
}

#[test]
fn a_node_that_dies_in_a_backup_leaves_the_earlier_one_and_starts_again() {
    let (home, heir) = (Home::new(SEVERAL), Home::new(SEVERAL));
    let node = home.start();
    spread(&node);
    (0..30).for_each(|n| put(&node, n));
    home.run(&["admin", "backup", "backup"]).ok();
    (30..60).for_each(|n| put(&node, n));
    let mut command = ombak();
    command.current_dir(home.path()).args(["admin", "backup", "backup"]);
    let mut backup = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + DEADLINE;
    while !home.path().join("data-backups/backup/2").exists() {
        assert!(Instant::now() < deadline, "the second backup does not begin");
        std::thread::yield_now();
    }
    node.kill();
    backup.wait().unwrap();
    home.run(&["restore", "--check", "data-backups/backup"]).ok();
    let node = home.start();
    assert!((0..60).all(|n| has(&node, n)));
    home.run(&["admin", "backup", "backup"]).ok();
    node.kill();
    heir.run(&["restore", home.path().join("data-backups/backup").to_str().unwrap()]).ok();
    let node = heir.start();
    assert!((0..60).all(|n| has(&node, n)));
    node.stop();
    heir.assert_no_errors_logged();
}

#[test]
fn what_cannot_be_restored_is_refused_in_words() {
    let home = Home::new("storage_backend = bitcask");
    let node = home.start();
    put(&node, 1);
    let said = home.run(&["admin", "backup", "backup"]).ok();
    assert!(said.starts_with("backup taken in ") && said.contains(" hard links to the node's files, "), "{said}");
    let said = home.run(&["admin", "backup", "backup"]).ok();
    assert!(said.contains(": 2 there already, 1 copied ("), "{said}");
    let said = home.run(&["restore", "--check", "data-backups/backup"]).ok();
    assert!(said.contains(" is whole: ") && said.contains(" in 3 files of 1 stores"), "{said}");
    let text = home.run(&["admin", "backup", "../data/backup"]).failed(1);
    assert!(text.contains("own data directory"), "{text}");
    let text = home.run(&["restore", "data-backups/backup"]).failed(1);
    assert!(text.contains("running"), "{text}");
    node.stop();
    let text = home.run(&["restore", "data-backups/backup"]).failed(1);
    assert!(text.contains("is not empty") && text.contains("empty directories"), "{text}");
    let heir = Home::new("storage_backend = leveled");
    let backup = home.path().join("data-backups/backup");
    let text = heir.run(&["restore", backup.to_str().unwrap()]).failed(1);
    assert!(text.contains("configure storage_backend"), "{text}");
    let text = heir.run(&["restore", "nowhere"]).failed(1);
    assert!(text.contains("no backup"), "{text}");
    assert!(!heir.data().exists(), "what is refused leaves nothing behind");
    let text = home.run(&["admin", "backup", "backup"]).failed(1);
    assert!(text.contains("no node"), "{text}");
}

#[test]
fn a_backup_names_what_it_has_not_and_lies_in_no_directory_of_the_stores() {
    let home = Home::new(&format!(
        "{SEVERAL}\nplatform_backup_dir = .\nmulti_backend.big.leveled.data_root = ./elsewhere/leveled\n\
         multi_backend.cache.storage_backend = memory\nmulti_backend.sessions.storage_backend = memory"
    ));
    let node = home.start();
    put(&node, 0);
    let text = home.run(&["admin", "backup", "elsewhere/leveled/backup"]).failed(1);
    assert!(text.contains("lies in ./elsewhere/leveled, where the node has its objects"), "{text}");
    assert!(!home.path().join("elsewhere/leveled/backup").exists());
    let said = home.run(&["admin", "backup", "backup"]).ok();
    assert!(said.ends_with("\nnot included, because they have no files: cache, sessions\n"), "{said}");
    let said: serde_json::Value =
        serde_json::from_str(&home.run(&["--json", "admin", "backup", "backup"]).ok()).unwrap();
    assert_eq!(said["left_out"], serde_json::json!(["cache", "sessions"]));
    node.stop();
}

/// Even a client with the token can write backups only below platform_backup_dir.
#[test]
fn a_backup_goes_below_one_directory_whatever_its_path_looks_like() {
    let home = Home::new("storage_backend = bitcask\nplatform_backup_dir = safe/backups");
    let node = home.start();
    put(&node, 1);
    std::fs::create_dir_all(home.path().join("safe/backups")).unwrap();
    std::fs::create_dir(home.path().join("outside")).unwrap();
    std::os::unix::fs::symlink("../../outside", home.path().join("safe/backups/link")).unwrap();
    let outside = home.path().join("outside/x");
    for dir in ["/etc/ombak-backup", "link/x", "../x", "link/../x", outside.to_str().unwrap(), "."] {
        let text = home.run(&["admin", "backup", dir]).failed(1);
        assert!(text.contains("platform_backup_dir") && text.contains("safe/backups"), "{dir}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let text = home.run(&["admin", "backup", "monday", "--since", outside.to_str().unwrap()]).failed(1);
    assert!(text.contains("platform_backup_dir"), "{text}");
    assert_eq!(std::fs::read_dir(home.path().join("outside")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(home.path().join("safe")).unwrap().count(), 1);
    let said = home.run(&["admin", "backup", "weekly/monday"]).ok();
    assert!(said.starts_with("backup taken in ") && said.contains("/safe/backups/weekly/monday: "), "{said}");
    let absolute = home.path().join("safe/backups/weekly/monday");
    let said = home.run(&["admin", "backup", absolute.to_str().unwrap()]).ok();
    assert!(said.contains(" there already"), "{said}");
    let text = home.run(&["admin", "backup", "weekly/monday", "--since", "weekly/none"]).failed(1);
    assert!(text.contains("/safe/backups/weekly/none is not there"), "{text}");
    node.stop();
}

#[test]
fn a_backup_that_cannot_be_taken_leaves_no_directory() {
    let home = Home::new("storage_backend = memory");
    let node = home.start();
    let text = home.run(&["admin", "backup", "a/b"]).failed(1);
    assert!(text.contains("there is nothing to back up"), "{text}");
    assert_eq!(std::fs::read_dir(home.path().join("data-backups")).unwrap().count(), 0);
    node.stop();
}

/// The fixture is a backup in the format of the first version. It must not be regenerated.
#[test]
fn a_backup_of_format_1_is_restored() {
    let home = Home::new("");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/backup-v1");
    home.run(&["restore", "--check", fixture]).ok();
    home.run(&["restore", fixture]).ok();
    let node = home.start();
    assert_eq!(home.run(&["kv", "get", "greetings", "de"]).ok().trim_end(), "guten Tag");
    let found = ask(&node, "GET", "/buckets/greetings/index/lang_bin/fr", "", "");
    assert!(found.ends_with(r#"{"keys":["fr"]}"#), "{found}");
    assert!(home.run(&["admin", "bucket-type", "status", "carts"]).ok().contains("carts has been created"));
    node.stop();
    home.assert_no_errors_logged();
}
