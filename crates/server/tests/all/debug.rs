//! The command `ombak admin debug`: what is in a bundle, and what must not be.

use crate::support::{Home, Said, ombak};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MEMORY: &str = "storage_backend = memory";

/// The files of a bundle, without the name of their common directory.
fn unpack(path: &Path) -> BTreeMap<String, String> {
    let packed = std::fs::File::open(path).expect("opens");
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut tar).expect("unpacks");
    let mut files = BTreeMap::new();
    let mut rest = &tar[..];
    while rest[0] != 0 {
        let (header, content) = rest.split_at(512);
        let text = |from: usize, to: usize| {
            String::from_utf8(header[from..to].iter().copied().take_while(|byte| *byte != 0).collect()).expect("text")
        };
        let len = usize::from_str_radix(&text(124, 136), 8).expect("a length");
        let (_, name) =
            text(0, 100).split_once('/').map(|(dir, name)| (dir.to_owned(), name.to_owned())).expect("a directory");
        files.insert(name, String::from_utf8_lossy(&content[..len]).into_owned());
        rest = &content[len.next_multiple_of(512)..];
    }
    files
}

fn manifest(files: &BTreeMap<String, String>) -> Value {
    serde_json::from_str(&files["manifest.json"]).expect("JSON")
}

fn failed(files: &BTreeMap<String, String>) -> Vec<String> {
    let manifest = manifest(files);
    let parts = manifest["parts"].as_array().expect("parts");
    parts
        .iter()
        .filter(|part| part["ok"] == false)
        .map(|part| part["file"].as_str().expect("a name").to_owned())
        .collect()
}

/// Secrets in every place where a node can have some.
const PLANTED: [&str; 8] = [
    "planted-in-the-admin-token",
    "planted-in-the-cluster-secret",
    "planted-in-a-configuration-value",
    "planted-in-a-comment",
    "planted-in-the-environment",
    "planted-in-the-log-as-a-password",
    "cGxhbnRlZC1pbi1hLXByaXZhdGUta2V5",
    "planted-in-an-address",
];

#[test]
fn no_secret_is_in_a_bundle_and_the_file_is_new_and_private() {
    let [token, secret, value, comment, environment, logged, key, address] = PLANTED;
    let home = Home::new(&format!("{MEMORY}\ndistributed_cookie = {value}\n# old.password = {comment}"));
    std::fs::create_dir_all(home.data()).unwrap();
    for (name, content) in [
        ("admin.token", token.to_owned()),
        ("cluster.secret", secret.to_owned()),
        ("private.pem", format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n")),
    ] {
        let path = home.data().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let node = home.start();
    // The node's log has lines of others, too: those of functions, or of clients.
    let mut log = std::fs::read_to_string(home.data().join("log/console.log")).unwrap();
    for line in [
        format!(r#"{{"level":"INFO","message":"connected with password={logged}"}}"#),
        format!(r#"{{"level":"INFO","message":"{token} and {secret} in the middle of {value} and {comment}"}}"#),
        format!(r#"{{"level":"INFO","message":"fetched https://user:{address}@example.org/x"}}"#),
        format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----"),
    ] {
        log.push_str(&line);
        log.push('\n');
    }
    std::fs::write(home.data().join("log/console.log"), log).unwrap();
    let debug = |file: &str| -> Said {
        let mut command = ombak();
        command
            .current_dir(home.path())
            .env("SERVICE_SECRET", environment)
            .env("OMBAK_DISTRIBUTED_COOKIE", environment);
        command.args(["admin", "debug", "-o", file]).output().expect("runs").into()
    };
    let said = debug("bundle.tar.gz").ok();
    let path = home.path().join("bundle.tar.gz");
    assert!(said.starts_with("bundle.tar.gz has "), "{said}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let files = unpack(&path);
    for planted in PLANTED {
        let with: Vec<&String> =
            files.iter().filter(|(_, text)| text.contains(planted)).map(|(name, _)| name).collect();
        assert!(with.is_empty(), "{planted} is in {with:?}");
    }
    assert!(files["log/console.log"].contains("connected with password=[removed]"), "{}", files["log/console.log"]);
    assert!(files["log/console.log"].contains("https://[removed]@example.org/x"));
    assert!(files["config/effective.conf"].contains("distributed_cookie = [removed]"));
    assert!(files["config/effective.conf"].contains("ring_size = 8 "));
    node.stop();
    let before = std::fs::read(&path).unwrap();
    let refusal = debug("bundle.tar.gz").failed(1);
    assert!(refusal.contains("exists already"), "{refusal}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// Lines of it may be anywhere, without the lines that say what they are.
#[test]
fn no_private_key_of_tls_is_in_a_bundle() {
    let keys = ["planted-in-the-key-for-clients", "planted-in-the-key-for-nodes"];
    let home = Home::new(&format!("{MEMORY}\nssl.keyfile = clients.key\ncluster.ssl.keyfile = nodes.key"));
    for (name, key) in ["clients.key", "nodes.key"].into_iter().zip(keys) {
        std::fs::write(home.path().join(name), format!("-----BEGIN PRIVATE KEY-----\n{key}\n")).unwrap();
    }
    std::fs::create_dir_all(home.data().join("log")).unwrap();
    let line = format!(r#"{{"level":"INFO","message":"{} and {}"}}"#, keys[0], keys[1]);
    std::fs::write(home.data().join("log/console.log"), format!("{line}\n")).unwrap();
    home.run(&["admin", "debug", "-o", "bundle.tar.gz"]).ok();
    let files = unpack(&home.path().join("bundle.tar.gz"));
    assert!(files["log/console.log"].contains("[removed] and [removed]"), "{}", files["log/console.log"]);
}

#[test]
fn a_bundle_of_a_running_node_is_complete_and_one_of_a_stopped_node_has_the_rest() {
    let home = Home::new("storage_backend = memory\nlistener.peer.a = 127.0.0.1:0");
    let node = home.start();
    home.run(&["kv", "put", "b", "k", "the value of a client"]).ok();
    home.run(&["admin", "debug", "-o", "running.tar.gz", "--also", "127.0.0.1:1"]).ok();
    let files = unpack(&home.path().join("running.tar.gz"));
    let without_other: Vec<String> = failed(&files).into_iter().filter(|name| name.starts_with("node/")).collect();
    assert_eq!(without_other, Vec::<String>::new());
    assert!(failed(&files).iter().any(|name| name == "other-node-1/stats.json"), "{:?}", failed(&files));
    for name in [
        "config/effective.conf",
        "log/console.log",
        "files/data-directory.txt",
        "files/disks.txt",
        "machine/machine.txt",
        "machine/process.txt",
        "node/status.json",
        "node/running-config.json",
        "node/vnodes.json",
        "node/stats.json",
        "node/metrics.txt",
        "node/cluster/member-status.json",
        "node/cluster/ring-status.json",
        "node/cluster/transfers.json",
        "node/cluster/settled.json",
    ] {
        assert!(files.get(name).is_some_and(|text| !text.is_empty()), "{name} is missing: {:?}", files.keys());
    }
    assert!(serde_json::from_str::<Value>(&files["node/stats.json"]).expect("JSON")["node_puts_total"].is_u64());
    assert!(files.values().all(|text| !text.contains("the value of a client")));
    node.stop();
    let said = home.run(&["admin", "debug", "-o", "stopped.tar.gz", "--json"]).ok();
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["file"], "stopped.tar.gz");
    assert!(
        said["failed"].as_array().is_some_and(|failed| failed.iter().any(|part| part["file"] == "node/stats.json"))
    );
    let files = unpack(&home.path().join("stopped.tar.gz"));
    assert!(failed(&files).contains(&"node/status.json".to_owned()));
    assert!(files["log/console.log"].contains("node closed") && files.contains_key("config/effective.conf"));
    // A configuration that cannot be read is a reason to ask for help, too.
    std::fs::write(home.path().join("ombak.conf"), "ring_sise = 8\nmy.password = planted-in-a-broken-file\n").unwrap();
    home.run(&["admin", "debug", "-o", "broken.tar.gz"]).ok();
    let files = unpack(&home.path().join("broken.tar.gz"));
    assert!(files["config/problems.txt"].contains("unknown key 'ring_sise'"), "{}", files["config/problems.txt"]);
    assert!(files.values().all(|text| !text.contains("planted-in-a-broken-file")));
}
