//! The command `ombak admin backend verify`, as an operator uses it.

use crate::support::Home;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const KEYS: usize = 40;
const VERIFY: [&str; 3] = ["admin", "backend", "verify"];

/// Runs `verify` with more options. Returns the exit code and the JSON output.
fn verify(home: &Home, options: &[&str]) -> (Option<i32>, Value) {
    let said = home.run(&[&VERIFY[..], options, &["--json"]].concat());
    assert_eq!(said.err, "");
    (said.code, serde_json::from_str(&said.out).expect("JSON"))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The place where the value of a key lies: the file and the byte offset.
fn place_of(root: &Path, value: &str) -> (PathBuf, usize) {
    let found = files(root).into_iter().find_map(|path| {
        let bytes = fs::read(&path).unwrap();
        let at = bytes.windows(value.len()).position(|part| part == value.as_bytes())?;
        Some((path, at))
    });
    found.expect("the value is in some file as it is")
}

#[test]
fn damage_is_reported_and_taken_out_and_the_rest_is_served() {
    for backend in ["bitcask", "leveled", "leveldb"] {
        let home = Home::new(&format!("storage_backend = {backend}\nleveldb.compression = off"));
        let node = home.start();
        for number in 0..KEYS {
            home.run(&["kv", "put", "b", &format!("key{number}"), &format!("the value {number}.")]).ok();
        }
        let refused = home.run(&VERIFY).failed(1);
        assert!(refused.starts_with("Node is already running!"), "{refused}");
        node.stop();
        let whole = home.run(&VERIFY).ok();
        assert!(whole.ends_with("Nothing is damaged.\n"), "{whole}");

        let root = home.data().join(backend);
        let (path, at) = place_of(&root, "the value 17.");
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let (code, report) = verify(&home, &[]);
        assert_eq!((code, &report["complete"], &report["damaged"]), (Some(1), &true.into(), &1.into()), "{report}");
        let finding = &report["stores"][0]["findings"][0];
        assert!(path.ends_with(finding["file"].as_str().unwrap().trim_start_matches("./")), "{report}");
        assert!(backend == "leveldb" || finding["key"] == "key17", "{report}");
        assert_eq!(verify(&home, &[]).1, report, "looking changes nothing");

        let (code, repaired) = verify(&home, &["--repair"]);
        assert_eq!(
            (code, &repaired["damaged"], &repaired["damaged_left"]),
            (Some(0), &1.into(), &0.into()),
            "{repaired}"
        );
        let quarantined = files(&root.join("quarantine"));
        let is_report = |path: &&PathBuf| path.to_str().unwrap().ends_with("-report-1.txt");
        let list = fs::read_to_string(quarantined.iter().find(is_report).expect("a report")).unwrap();
        assert!(list.lines().count() == 2 && (backend == "leveldb" || list.contains("default\tb\tkey17\n")), "{list}");
        let copies = quarantined.iter().filter(|path| !is_report(path));
        let flipped = bytes[at..at + 8].to_vec();
        let has_it = |path: &PathBuf| fs::read(path).unwrap().windows(8).any(|part| part == flipped);
        assert_eq!(copies.filter(|path| has_it(path)).count(), 1, "a copy of the damage: {quarantined:?}");
        assert_eq!(verify(&home, &[]).1["damaged"], 0);
        let node = home.start();
        let is_there = |number: &usize| home.run(&["kv", "get", "b", &format!("key{number}")]).code == Some(0);
        let kept: Vec<usize> = (0..KEYS).filter(is_there).collect();
        // A block of leveldb's tree holds several keys; a record holds one.
        assert!(
            !kept.contains(&17) && kept.len() >= if backend == "leveldb" { KEYS / 2 } else { KEYS - 1 },
            "{kept:?}"
        );
        node.stop();
    }
}

#[test]
fn files_of_the_node_itself_are_examined_and_refused_at_a_start() {
    let home = Home::new("");
    let node = home.start();
    let props = r#"{"props":{"n_val":2}}"#;
    for arguments in [&["create", "strings", props][..], &["activate", "strings"]] {
        home.run(&[&["admin", "bucket-type"], arguments].concat()).ok();
    }
    home.run(&["kv", "put", "b", "key", "value"]).ok();
    node.stop();
    assert_eq!(verify(&home, &[]).0, Some(0));
    for (name, starts) in
        [("node.json", false), ("stores.json", false), ("buckets.json", false), ("buckets.json.previous", true)]
    {
        let path = home.data().join(name);
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        // Changes a digit of a number or a letter of a name, so that the file is still valid JSON.
        let at = bad.iter().rposition(u8::is_ascii_alphanumeric).unwrap();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        let (code, report) = verify(&home, &["--repair"]);
        let said = report["node_files"][0].as_str().unwrap_or_default().to_owned();
        assert!(code == Some(1) && report["damaged_left"] == 1 && said.contains(name), "{name}: {report}");
        let text = home.run(&VERIFY);
        assert!(
            text.out.ends_with("--repair does not repair such files; the lines above say what to do.\n"),
            "{}",
            text.out
        );
        if starts {
            home.start().stop();
        } else {
            let refused = home.start_command().output().unwrap();
            let refused = String::from_utf8(refused.stderr).unwrap();
            assert!(refused.contains(name) && refused.contains("checksum"), "{refused}");
        }
        fs::write(&path, good).unwrap();
    }
}

#[test]
fn a_start_without_the_identity_of_its_data_says_so() {
    let home = Home::new("");
    let identity = home.data().join("node.json");
    let warned = || home.logged("WARN").iter().any(|line| line.contains("node.json was missing"));
    home.start().stop();
    let first = fs::read(&identity).unwrap();
    fs::remove_file(&identity).unwrap();
    let node = home.start();
    assert!(!warned(), "nothing was stored yet");
    home.run(&["kv", "put", "b", "key", "value"]).ok();
    node.stop();
    fs::remove_file(&identity).unwrap();
    home.start().stop();
    assert!(warned() && fs::read(&identity).unwrap() != first);
}

#[test]
fn a_node_of_the_first_versions_of_its_files_goes_on() {
    let home = Home::new("");
    fs::create_dir(home.data()).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/node-v1");
    for path in files(&fixture) {
        fs::copy(&path, home.data().join(path.file_name().unwrap())).unwrap();
    }
    let identity = |name: &str| -> Value {
        serde_json::from_slice::<Value>(&fs::read(home.data().join("node.json")).unwrap()).unwrap()[name].take()
    };
    let before = identity("node_id");
    home.start().stop();
    assert_eq!((identity("node_id"), identity("boot"), identity("format")), (before, 3.into(), 3.into()));
    assert!(!home.data().join("clean.json").exists(), "this version has no such file");
    assert_eq!(verify(&home, &[]).0, Some(0), "buckets.json is as it was");
    let node = home.start();
    let props = home.run(&["admin", "bucket-type", "status", "strings"]).ok();
    assert!(props.contains("strings is active") && props.contains("n_val: 2"), "{props}");
    home.run(&["admin", "bucket-type", "update", "strings", r#"{"props":{"n_val":1}}"#]).ok();
    node.stop();
    let text = fs::read_to_string(home.data().join("buckets.json")).unwrap();
    assert!(text.contains("checksum") && text.contains("a%25b"), "{text}");
    assert_eq!(verify(&home, &[]).0, Some(0));
}

#[test]
fn what_cannot_be_examined_is_one_line() {
    let home = Home::new("");
    let nowhere = home.run(&VERIFY).failed(1);
    assert!(nowhere.contains("there is no node in ./data") && nowhere.lines().count() == 1, "{nowhere}");
    home.start().stop();
    let other = home.run(&[&VERIFY[..], &["--backend", "leveled"]].concat()).failed(1);
    assert!(other.contains("leveled: there are no files") && other.lines().count() == 1, "{other}");
    let unknown = home.run(&[&VERIFY[..], &["--backend", "bitcsk"]].concat()).failed(1);
    assert!(unknown.contains("there is no backend 'bitcsk'") && unknown.lines().count() == 1, "{unknown}");
}
