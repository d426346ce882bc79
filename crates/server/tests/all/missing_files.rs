//! A node that lacks data which it had durably stored. It does not start, says why, and changes
//! nothing; or it starts because the operator accepts the loss, and reports the loss from then on.

use crate::support::{DEADLINE, Home, Node, ask, pause};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const KEYS: usize = 60;
/// Files that a start may create or change although it is refused.
const EXCEPTED: [&str; 5] = ["ombak.lock", "node.lock", "lock", "admin.token", "log"];

fn put_all(node: &Node, value: &str) {
    for number in 0..KEYS {
        let path = format!("/buckets/b/keys/key{number}");
        let headers = format!("Content-Type: text/plain\r\nx-riak-index-f_bin: {value}\r\n");
        let answer = ask(node, "PUT", &path, &headers, &format!("{value} {number}"));
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
}

/// The status code and the body of each key.
fn get_all(node: &Node) -> Vec<(String, String)> {
    let get = |number: usize| {
        let answer = ask(node, "GET", &format!("/buckets/b/keys/key{number}"), "", "");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head[9..12].to_owned(), body.to_owned())
    };
    (0..KEYS).map(get).collect()
}

/// Asserts that listings and index queries succeed although some keys are lost, and that they find
/// all other keys.
#[track_caller]
fn check_queries(node: &Node, found: &[(String, String)], place: &str) {
    for path in ["keys?keys=true", "index/$bucket/_", "index/$key/a/z", "index/f_bin/new", "index/f_bin/a/z"] {
        let answer = ask(node, "GET", &format!("/buckets/b/{path}"), "", "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{place}: {path}: {answer}");
        for (number, _) in found.iter().enumerate().filter(|(_, (code, _))| code == "200") {
            assert!(answer.contains(&format!("\"key{number}\"")), "{place}: {path}: no key{number}: {answer}");
        }
    }
}

/// Every file and directory below `dir`, with its content.
fn content(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if EXCEPTED.iter().any(|excepted| name == *excepted) {
            continue;
        }
        if path.is_dir() {
            found.extend(content(&path));
            found.insert(path, None);
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, Some(bytes));
        }
    }
    found
}

/// Starts a node that must refuse to start until an operator acts, and must change nothing. Returns
/// its message.
#[track_caller]
fn refused(home: &Home) -> String {
    refused_with(home, 78)
}

#[track_caller]
fn refused_with(home: &Home, code: i32) -> String {
    let before = content(&home.data());
    let output = home.start_command().output().expect("runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "{said}");
    let after = content(&home.data());
    let names = |content: &BTreeMap<PathBuf, Option<Vec<u8>>>| content.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "files came or went: {said}");
    let changed: Vec<_> = before.iter().filter(|(path, bytes)| after[*path] != **bytes).map(|(path, _)| path).collect();
    assert!(changed.is_empty(), "{changed:?} changed: {said}");
    said
}

fn start_accepting_loss(home: &Home) -> Node {
    let mut command = home.start_command();
    command.arg("--accept-loss");
    Node::start(command, home.data())
}

/// A partition that has two data files, and the newer of the two.
fn newest_of_two(root: &Path) -> (String, PathBuf) {
    let mut partitions: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    partitions.sort();
    let data_files = |dir: &PathBuf| {
        let paths = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ext| ext == "data")).collect();
        paths.sort();
        paths
    };
    let found = partitions.iter().map(|dir| (dir, data_files(dir))).find(|(_, files)| files.len() > 1);
    let (dir, mut files) = found.expect("a partition with two files");
    (dir.file_name().unwrap().to_str().unwrap().to_owned(), files.pop().unwrap())
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if from.is_dir() {
            copy_dir(&from, &to.join(name));
        } else {
            fs::copy(&from, to.join(name)).unwrap();
        }
    }
}

fn status(home: &Home) -> Value {
    serde_json::from_str(&home.run(&["status", "--json"]).ok()).expect("JSON")
}

/// Writes old values, stops cleanly, writes new values, and stops cleanly again.
fn with_two_generations(backend: &str) -> Home {
    let home = Home::new(&format!("storage_backend = {backend}"));
    for value in ["old", "new"] {
        let node = home.start();
        put_all(&node, value);
        node.stop();
    }
    home
}

#[test]
fn a_shortened_or_missing_data_file_is_refused_and_never_answers_an_older_value() {
    for backend in ["bitcask", "leveled"] {
        for is_deleted in [false, true] {
            let home = with_two_generations(backend);
            let (partition, path) = newest_of_two(&home.data().join(backend));
            if is_deleted {
                fs::remove_file(&path).unwrap();
            } else {
                let file = File::options().write(true).open(&path).unwrap();
                file.set_len(file.metadata().unwrap().len() / 2).unwrap();
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            for _ in 0..2 {
                let said = refused(&home);
                for word in [name, &format!("partition {partition} "), "--accept-loss", "--repair", "restore"] {
                    assert!(said.contains(word), "{backend}: {word}: {said}");
                }
            }
            let verify = home.run(&["admin", "backend", "verify"]);
            assert!(verify.code == Some(1) && verify.out.contains(name), "{}", verify.out);

            for start in ["with the consent", "after it"] {
                let node = if start == "after it" { home.start() } else { start_accepting_loss(&home) };
                let place = format!("{backend}, deleted: {is_deleted}, start {start}");
                let found = get_all(&node);
                check_queries(&node, &found, &place);
                node.stop();
                let lost = found.iter().filter(|(code, _)| code != "200").count();
                assert!(lost > 0 && lost < KEYS / 2, "{place}: {lost} lost");
                for (number, (code, body)) in found.iter().enumerate() {
                    let is_new = code == "200" && *body == format!("new {number}");
                    assert!(is_new || code == "500", "{place}: key {number}: {code} {body}");
                }
            }
        }
    }
}

#[test]
fn a_root_that_is_not_there_is_refused() {
    for (backend, is_killed) in [("bitcask", false), ("bitcask", true), ("leveled", false), ("leveldb", false)] {
        let home = Home::new(&format!("storage_backend = {backend}\nbitcask.sync.strategy = o_sync"));
        let node = home.start();
        put_all(&node, "value");
        let root = home.data().join(backend);
        if is_killed {
            wait_for_inventories(&root);
            node.kill();
        } else {
            node.stop();
        }
        let aside = home.path().join("aside");
        fs::rename(&root, &aside).unwrap();
        let said = refused(&home);
        assert!(said.contains(backend) && said.contains("may not be mounted"), "{backend}: {said}");
        // An empty directory, as a mount point is without its file system.
        fs::create_dir(&root).unwrap();
        let said = refused(&home);
        assert!(said.contains("may not be mounted"), "{backend}: {said}");
        let verify = home.run(&["admin", "backend", "verify"]);
        assert_eq!(verify.code, Some(1), "{backend}: {}{}", verify.out, verify.err);
        fs::remove_dir_all(&root).unwrap();
        let other = if backend == "leveled" { "bitcask" } else { "leveled" };
        fs::write(home.path().join("ombak.conf"), config(other)).unwrap();
        let said = refused(&home);
        assert!(said.contains("not there") && said.contains(backend), "{backend}: {said}");
        fs::write(home.path().join("ombak.conf"), config(backend)).unwrap();
        fs::rename(&aside, &root).unwrap();
        let node = home.start();
        assert!(get_all(&node).iter().all(|(code, _)| code == "200"), "{backend}: all is there again");
        node.stop();
    }
}

fn config(backend: &str) -> String {
    format!(
        "listener.http.internal = 127.0.0.1:0\nlistener.protobuf.internal = 127.0.0.1:0\nring_size = 8\n\
         storage_backend = {backend}\n"
    )
}

/// Waits until the inventory of every store that has a permanently named data file lists a file.
fn wait_for_inventories(root: &Path) {
    let deadline = Instant::now() + DEADLINE;
    let is_noted = |dir: &Path| {
        let has_data =
            fs::read_dir(dir).unwrap().any(|entry| entry.unwrap().path().extension().is_some_and(|e| e == "data"));
        // An inventory that lists no file has 52 bytes.
        !has_data || fs::metadata(dir.join("inventory")).is_ok_and(|meta| meta.len() > 52)
    };
    let partitions = || fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    while !partitions().all(|dir| is_noted(&dir)) {
        assert!(Instant::now() < deadline, "the inventories are not written");
        pause(Duration::from_millis(10));
    }
}

#[test]
fn a_root_that_is_given_up_is_given_up_once() {
    let home = Home::new("storage_backend = bitcask");
    let node = home.start();
    put_all(&node, "value");
    node.stop();
    let (root, aside) = (home.data().join("bitcask"), home.path().join("aside"));
    fs::rename(&root, &aside).unwrap();
    fs::write(home.path().join("ombak.conf"), config("leveled")).unwrap();
    assert!(refused(&home).contains("--accept-loss"));
    start_accepting_loss(&home).stop();
    assert!(home.logged("WARN").iter().any(|line| line.contains("accepted a loss")), "the log says so");
    let node = home.start();
    put_all(&node, "another value");
    node.stop();
    // When the old files reappear, the node reports them instead of ignoring them.
    fs::rename(&aside, &root).unwrap();
    assert!(refused(&home).contains("objects of this node lie in the bitcask files"));
}

#[test]
fn stores_that_were_moved_are_the_same_stores_where_the_configuration_says() {
    let home = Home::new("storage_backend = bitcask");
    let node = home.start();
    put_all(&node, "value");
    node.stop();
    let (root, place) = (home.data().join("bitcask"), home.path().join("elsewhere"));
    fs::rename(&root, &place).unwrap();
    let settings = format!("{}bitcask.data_root = {}\n", config("bitcask"), place.display());
    fs::write(home.path().join("ombak.conf"), settings).unwrap();
    // The stores do not count as moved if one of them is missing in the new place.
    let partition = place.join("0");
    fs::rename(&partition, home.path().join("0")).unwrap();
    assert!(refused(&home).contains("not there"));
    fs::rename(home.path().join("0"), &partition).unwrap();
    for start in 0..2 {
        let node = home.start();
        let found = get_all(&node);
        assert!(
            found.iter().all(|(code, body)| code == "200" && body.starts_with("value")),
            "start {start}: {found:?}"
        );
        node.stop();
    }
    // From now on, the inventory covers the stores in the new place.
    fs::remove_dir_all(&partition).unwrap();
    assert!(refused(&home).contains("partition 0 lacks"));
}

#[test]
fn what_nobody_asked_to_sync_is_missed_after_a_kill() {
    for backend in ["bitcask", "leveled", "leveldb"] {
        let home = Home::new(&format!("storage_backend = {backend}"));
        let node = home.start();
        put_all(&node, "old");
        node.stop();
        let (root, older) = (home.data().join(backend), home.path().join("older"));
        copy_dir(&root, &older);
        let before = inventories(&root);
        let node = home.start();
        put_all(&node, "new");
        let deadline = Instant::now() + DEADLINE;
        // Wait until the inventory of every partition contains its new file.
        while inventories(&root).iter().any(|(partition, noted)| before[partition] == *noted) {
            assert!(Instant::now() < deadline, "{backend}: the new files are not noted");
            pause(Duration::from_millis(10));
        }
        node.kill();
        fs::remove_dir_all(&root).unwrap();
        fs::rename(&older, &root).unwrap();
        let said = refused(&home);
        assert!(said.contains("is an older copy of the store"), "{backend}: {said}");
    }
}

/// The content of each store's inventory, by the directory of the store.
fn inventories(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let partitions = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let read = |dir: PathBuf| fs::read(dir.join("inventory")).ok().map(|bytes| (dir, bytes));
    partitions.filter_map(read).collect()
}

#[test]
fn an_older_copy_of_the_stores_is_refused() {
    let home = Home::new("");
    let node = home.start();
    put_all(&node, "old");
    node.stop();
    let (root, older) = (home.data().join("bitcask"), home.path().join("older"));
    copy_dir(&root, &older);
    let node = home.start();
    put_all(&node, "new");
    node.stop();
    fs::remove_dir_all(&root).unwrap();
    fs::rename(&older, &root).unwrap();
    let said = refused(&home);
    assert!(said.contains("is an older copy of the store"), "{said}");
    let node = start_accepting_loss(&home);
    assert!(!status(&home)["known_losses"].as_array().unwrap().is_empty());
    node.stop();
}

/// The journal files of leveldb are deleted once its tree holds their data. So an older copy of the
/// tree lacks data that is in no journal file, and accepting the loss would not help.
#[test]
fn a_refusal_names_only_what_helps() {
    let home = with_two_generations("leveldb");
    let (root, older) = (home.data().join("leveldb"), home.path().join("older"));
    copy_dir(&root, &older);
    let node = home.start();
    put_all(&node, "newer");
    node.stop();
    fs::remove_dir_all(&root).unwrap();
    fs::rename(&older, &root).unwrap();
    let said = refused(&home);
    assert!(said.contains("is an older copy of the store") && said.contains("--repair"), "{said}");
    assert!(!said.contains("--accept-loss"), "it would be refused again: {said}");
    home.run(&["admin", "backend", "verify", "--repair"]).ok();
    let node = home.start();
    assert!(!status(&home)["known_losses"].as_array().unwrap().is_empty());
    node.stop();
}

#[test]
fn an_accepted_loss_is_told_of_from_then_on() {
    let home = with_two_generations("bitcask");
    let (partition, path) = newest_of_two(&home.data().join("bitcask"));
    fs::remove_file(&path).unwrap();
    start_accepting_loss(&home).stop();
    let node = home.start();
    let told = status(&home);
    let losses = &told["known_losses"][0];
    assert_eq!(losses["partition"].to_string(), partition, "{told}");
    assert!(losses["places"].as_u64().unwrap() > 0 && told["ready"] == true, "{told}");
    let text = home.run(&["status"]).ok();
    assert!(text.contains(&format!("partition {partition}")) && text.contains("known to be missing"), "{text}");
    let ready = ask(&node, "GET", "/health/ready", "", "");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("known_losses"), "{ready}");
    let metrics = ask(&node, "GET", "/metrics", "", "");
    let of_stores = |line: &&str| line.starts_with("ombak_store_lost_ranges{");
    assert!(metrics.lines().any(|line| of_stores(&line) && !line.ends_with(" 0")), "{metrics}");
    let stats: Value = serde_json::from_str(&home.run(&["admin", "status", "--json"]).ok()).expect("JSON");
    assert!(stats["ombak_known_losses"].as_u64().unwrap() > 0, "{stats}");
    node.stop();
    let warned = home.logged("WARN").iter().filter(|line| line.contains("known to be missing")).count();
    assert!(warned >= 2, "each start says so");
    let verify = home.run(&["admin", "backend", "verify"]);
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(verify.code == Some(1) && verify.out.contains(name) && verify.out.contains("b/key"), "{}", verify.out);

    home.run(&["admin", "backend", "verify", "--repair"]).ok();
    let node = home.start();
    for (code, body) in get_all(&node) {
        assert!(code == "404" || body.starts_with("new"), "{code} {body}");
    }
    assert!(status(&home)["known_losses"][0]["places"].as_u64().unwrap() > 0, "what is lost stays lost");
    node.stop();
}

#[test]
fn a_start_that_is_refused_for_another_reason_changes_nothing_either() {
    let home = with_two_generations("bitcask");
    let settings = fs::read_to_string(home.path().join("ombak.conf")).unwrap();
    let write = |text: String| fs::write(home.path().join("ombak.conf"), text).unwrap();

    write(settings.replace("ring_size = 8", "ring_size = 16"));
    assert!(refused(&home).contains("set ring_size = 8"));
    write(format!("{settings}\nno.such.key = 1\n"));
    assert!(refused(&home).contains("no.such.key"));
    write(settings.replace("= bitcask", "= leveled"));
    assert!(refused(&home).contains("objects of this node lie in the bitcask files"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    write(settings.replace("listener.http.internal = 127.0.0.1:0", &format!("listener.http.internal = {address}")));
    assert!(refused_with(&home, 1).contains("in use"));
    write(settings);

    // The file has the format of a later version.
    let (_, path) = newest_of_two(&home.data().join("bitcask"));
    let lost = path.parent().unwrap().join("lost");
    let mut newer = b"OMBAKLST\x09\0".to_vec();
    newer.extend_from_slice(&crc32(&newer).to_le_bytes());
    fs::write(&lost, newer).unwrap();
    assert!(refused(&home).contains("format 9"));
    fs::remove_file(&lost).unwrap();
    let node = home.start();
    assert!(get_all(&node).iter().all(|(code, body)| code == "200" && body.starts_with("new")));
    node.stop();
    home.assert_no_errors_logged();
}

/// The CRC-32 that the small files use.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(crc & 1)))
    })
}

/// A file system that shut itself down and was mounted again has lost what was not synced, and the
/// machine ran on. Neither the boot id nor any file shows it; the append marks in memory do.
#[test]
fn writes_that_a_file_system_loses_while_the_machine_runs_on_are_noticed() {
    for (backend, marks) in [("bitcask", "/dev/shm"), ("leveled", "/dev/shm"), ("bitcask", "off")] {
        let home = Home::new(&format!("storage_backend = {backend}\nappend_marks_dir = {marks}"));
        let node = home.start();
        let put = |value: &str| {
            let answer = ask(&node, "PUT", "/buckets/b/keys/k", "Content-Type: text/plain\r\n", value);
            assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        };
        put("synced");
        let deadline = Instant::now() + DEADLINE;
        // The first sync of a file gives it this name.
        let synced = loop {
            let files = content(&home.data().join(backend)).into_keys();
            if let Some(path) = files.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "data")) {
                break path;
            }
            assert!(Instant::now() < deadline, "{backend}: the file is not synced");
            pause(Duration::from_millis(20));
        };
        let kept = fs::metadata(&synced).unwrap().len();
        put("not synced");
        node.kill();
        let file = File::options().write(true).open(&synced).unwrap();
        assert!(file.metadata().unwrap().len() > kept);
        file.set_len(kept).unwrap();
        let node = home.start();
        let answer = ask(&node, "GET", "/buckets/b/keys/k", "", "");
        assert!(answer.ends_with("\r\n\r\nsynced"), "{answer}");
        let noticed = home.logged("ERROR").iter().filter(|line| line.contains("are missing")).count();
        assert_eq!(noticed, usize::from(marks != "off"), "{backend}, {marks}");
        node.kill();
        let node = home.start();
        node.stop();
        let noticed = home.logged("ERROR").iter().filter(|line| line.contains("are missing")).count();
        assert_eq!(noticed, usize::from(marks != "off"), "{backend}, {marks}: a kill has lost nothing");
    }
}
