//! The command `ombak admin backend convert`, as an operator uses it.

use crate::support;

use crate::support::{Home, Node, ask};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KEYS: usize = 30;

fn configure(home: &Home, backend: &str) {
    let path = home.path().join("ombak.conf");
    let text = fs::read_to_string(&path).unwrap();
    let kept = text.lines().filter(|line| !line.starts_with("storage_backend")).collect::<Vec<_>>().join("\n");
    fs::write(&path, format!("{kept}\nstorage_backend = {backend}\n")).unwrap();
}

fn convert(home: &Home, from: &str, to: &str) -> support::Said {
    home.run(&["admin", "backend", "convert", "--from", from, "--to", to, "--json"])
}

fn put(node: &Node, key: &str, headers: &str, value: &str) {
    let headers = format!("Content-Type: text/plain\r\n{headers}");
    let answer = ask(node, "PUT", &format!("/buckets/b/keys/{key}"), &headers, value);
    assert!(answer.starts_with("HTTP/1.1 204"), "{key}: {answer}");
}

/// The values, metadata and clocks of all keys, and the answers to index queries.
fn answers(home: &Home, node: &Node) -> Vec<String> {
    let get = |number: usize| {
        let said = home.run(&["kv", "get", "b", &format!("key{number}"), "--json"]);
        // The remaining time to live decreases, so it is left out.
        let ends = said.out.find("X-Ombak-Ttl-Left").map(|at| at..at + "X-Ombak-Ttl-Left\",\"86399".len());
        let text = ends.map_or(said.out.clone(), |ends| [&said.out[..ends.start], &said.out[ends.end..]].concat());
        (said.code, text)
    };
    let values = (0..KEYS + 2).map(|number| format!("{:?}", get(number)));
    let query = |path: &str| {
        let answer = ask(node, "GET", &format!("/buckets/b/index/{path}"), "", "");
        answer.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned()
    };
    let queries = ["rank_int/3/17?return_terms=true", "$bucket/b", "$key/key1/key2"].map(query);
    values.chain(queries).collect()
}

fn contents(dir: &Path) -> usize {
    fs::read_dir(dir).map_or(0, Iterator::count)
}

#[test]
fn a_converted_node_gives_the_same_answers() {
    let home = Home::new("leveldb.maximum_memory = 64MB");
    configure(&home, "bitcask");
    let node = home.start();
    for number in 0..KEYS {
        put(
            &node,
            &format!("key{number}"),
            &format!("X-Riak-Index-rank_int: {number}\r\nX-Riak-Meta-n: {number}\r\n"),
            "v",
        );
    }
    put(&node, "key3", "X-Riak-Index-rank_int: 1003\r\n", "written again, and it does not say whose it follows");
    put(&node, &format!("key{KEYS}"), "X-Ombak-Ttl: 86400\r\n", "ends by itself");
    home.run(&["kv", "del", "b", "key5"]).ok();
    let refused = convert(&home, "bitcask", "leveled").failed(1);
    assert!(refused.starts_with("Node is already running!"), "{refused}");
    node.stop();
    let node = home.start();
    let before = answers(&home, &node);
    assert!(before.len() == KEYS + 5 && before[0].contains("vclock"), "{before:?}");
    node.stop();

    for (from, to) in [("bitcask", "leveled"), ("leveled", "leveldb"), ("leveldb", "bitcask")] {
        if to == "bitcask" {
            let taken = convert(&home, from, to).failed(1);
            assert!(taken.contains("bitcask has data already"), "{taken}");
            fs::rename(home.data().join("bitcask"), home.data().join("old")).unwrap();
        }
        // A directory that an interrupted conversion has left.
        fs::create_dir_all(home.data().join(format!("{to}.converting/77"))).unwrap();
        let report: Value = serde_json::from_str(&convert(&home, from, to).ok()).unwrap();
        assert_eq!(report["complete"], true, "{report}");
        assert!(report["keys"].as_u64().unwrap() >= KEYS as u64, "{report}");
        assert!(contents(&home.data().join(from)) > 1, "the old files stay");
        let refused = home.start_command().output().unwrap();
        let refused = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.contains(&format!("lie in the {to} files")), "{refused}");
        configure(&home, to);
        let node = home.start();
        let now = answers(&home, &node);
        assert_eq!(now.len(), before.len());
        now.iter().zip(&before).for_each(|(now, before)| assert_eq!(now, before, "{from} to {to}"));
        node.stop();
        home.run(&["admin", "backend", "verify"]).ok();
    }
}

/// The data files of a backend with their content.
fn data_files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let dirs = fs::read_dir(root).unwrap().flatten().filter_map(|dir| fs::read_dir(dir.path()).ok());
    let paths = dirs.flatten().flatten().map(|file| file.path());
    let data = paths.filter(|path| path.extension().is_some_and(|e| e == "data"));
    data.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Starts a conversion and kills it as soon as this many partitions have new files. Returns false
/// if the conversion ended before that.
fn kill_with(home: &Home, partitions: usize) -> bool {
    // A low priority prevents the conversion from outrunning the thread that watches it.
    let (program, mut command) = (support::ombak(), Command::new("nice"));
    for (name, _) in program.get_envs().filter(|(_, value)| value.is_none()) {
        command.env_remove(name);
    }
    command.args(["-n", "19"]).arg(program.get_program());
    command.args(["admin", "backend", "convert", "--from", "bitcask", "--to", "leveled"]);
    command.current_dir(home.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + support::DEADLINE;
    while contents(&home.data().join("leveled.converting")) < partitions {
        assert!(Instant::now() < deadline, "the conversion does not come to partition {partitions}");
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        support::pause(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

#[test]
fn a_conversion_that_is_killed_leaves_the_old_data_and_begins_anew() {
    let home = Home::new("");
    let node = home.start();
    let long = "a value ".repeat(8 << 10);
    for number in 0..KEYS * 8 {
        put(&node, &format!("key{number}"), &format!("X-Riak-Index-rank_int: {number}\r\n"), &long);
    }
    let before = answers(&home, &node);
    node.stop();
    let mark = fs::read(home.data().join("stores.json")).unwrap();
    let old = data_files(&home.data().join("bitcask"));
    // Each partition has a directory and a ledger, and there is one lock.
    for partitions in [1, 5, 10] {
        assert!(kill_with(&home, partitions), "it was done before it could be killed");
        assert!(!home.data().join("leveled").exists(), "{partitions}");
        let now = data_files(&home.data().join("bitcask"));
        old.iter().for_each(|(path, bytes)| assert!(now.get(path) == Some(bytes), "{}", path.display()));
    }
    let node = home.start();
    assert_eq!(answers(&home, &node), before, "the old backend serves as before");
    node.stop();
    convert(&home, "bitcask", "leveled").ok();
    // This is the state if the conversion had ended right after the new files were renamed, before
    // anything was recorded.
    fs::write(home.data().join("stores.json"), mark).unwrap();
    let from = fs::canonicalize(home.data().join("bitcask")).unwrap();
    fs::write(home.data().join("leveled/converted-from"), from.to_str().unwrap()).unwrap();
    convert(&home, "bitcask", "leveled").ok();
    assert!(!home.data().join("leveled/converted-from").exists());
    configure(&home, "leveled");
    let node = home.start();
    assert_eq!(answers(&home, &node), before);
    node.stop();
}

#[test]
fn one_of_several_is_converted_by_its_name() {
    let several = |small: &str| {
        format!(
            "multi_backend.big.storage_backend = leveled\n{small}\nmulti_backend.default = small\n\
             leveldb.maximum_memory = 64MB"
        )
    };
    let as_bitcask = "multi_backend.small.storage_backend = bitcask\nmulti_backend.new.storage_backend = leveldb";
    let home = Home::new(&several(as_bitcask));
    configure(&home, "multi");
    let node = home.start();
    let props =
        ask(&node, "PUT", "/buckets/c/props", "Content-Type: application/json\r\n", r#"{"props":{"backend":"big"}}"#);
    assert!(props.starts_with("HTTP/1.1 204"), "{props}");
    for number in 0..KEYS {
        put(&node, &format!("key{number}"), &format!("X-Riak-Index-rank_int: {number}\r\n"), "v");
    }
    home.run(&["kv", "put", "c", "key", "in the other one"]).ok();
    let before = answers(&home, &node);
    node.stop();
    let both = convert(&home, "small", "big").failed(1);
    assert!(both.contains("has data already"), "{both}");
    let report: Value = serde_json::from_str(&convert(&home, "small", "new").ok()).unwrap();
    assert_eq!((&report["keys"], &report["backend"]), (&KEYS.into(), &"new".into()), "{report}");

    let conf = fs::read_to_string(home.path().join("ombak.conf")).unwrap();
    let conf = conf.replace(as_bitcask, "multi_backend.small.storage_backend = leveldb");
    fs::write(home.path().join("ombak.conf"), conf).unwrap();
    let node = home.start();
    assert_eq!(answers(&home, &node), before);
    assert!(home.run(&["kv", "get", "c", "key"]).ok().contains("in the other one"));
    node.stop();
    assert_eq!(home.logged("WARN"), Vec::<String>::new());
    home.run(&["admin", "backend", "verify"]).ok();
}

#[test]
fn damage_and_mistakes_leave_everything_as_it_was() {
    let home = Home::new("leveldb.maximum_memory = 64MB");
    for (from, to, expected) in [
        ("bitcask", "bitcask", "share the directory"),
        ("bitcask", "memory", "memory keeps nothing"),
        ("bitcsk", "leveled", "there is no backend 'bitcsk'"),
        ("bitcask", "leveled", "there is no node in ./data"),
    ] {
        let said = convert(&home, from, to).failed(1);
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
    }
    let node = home.start();
    put(&node, "key1", "", "a value that will be damaged");
    node.stop();
    let nothing = convert(&home, "leveled", "leveldb").failed(1);
    assert!(nothing.contains("there are no files in"), "{nothing}");
    let files = fs::read_dir(home.data().join("bitcask")).unwrap().flatten();
    let mut data = files.filter_map(|dir| fs::read_dir(dir.path()).ok()).flatten().flatten().map(|file| file.path());
    let path =
        data.find(|path| path.extension().is_some_and(|e| e == "data") && fs::metadata(path).unwrap().len() > 64);
    let path = path.unwrap();
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let damaged = convert(&home, "bitcask", "leveled").failed(1);
    assert!(damaged.contains("nothing is changed") && damaged.contains("verify"), "{damaged}");
    assert!(!home.data().join("leveled").exists() && !home.data().join("leveled.converting").exists());
    // This is more data than any current disk has room for.
    fs::File::create(path.with_file_name("0000009999.data")).unwrap().set_len(15 << 40).unwrap();
    let full = convert(&home, "bitcask", "leveled").failed(1);
    assert!(full.contains("bytes are needed") && full.contains("nothing is changed"), "{full}");
    assert!(!home.data().join("leveled.converting").exists());
    fs::remove_file(path.with_file_name("0000009999.data")).unwrap();
    home.start().stop();
}
