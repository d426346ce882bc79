//! The command line against a running node: values, bucket types, statistics, and Riak's command
//! names.

use crate::support;
use crate::support::{Home, run_with_input};
use serde_json::{Value, json};
use std::process::Command;

const MEMORY: &str = "storage_backend = memory";

fn json_of(home: &Home, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&home.run(&args).ok()).expect("JSON")
}

#[test]
fn values_are_put_read_listed_and_deleted() {
    let home = Home::new(MEMORY);
    let node = home.start();
    assert_eq!(home.run(&["kv", "put", "greetings", "en", "hello"]).ok(), "");
    assert_eq!(home.run(&["kv", "put", "greetings", "de", "guten Tag"]).ok(), "");
    assert_eq!(home.run(&["kv", "get", "greetings", "en"]).ok(), "hello");
    assert_eq!(home.run(&["kv", "list", "greetings"]).ok(), "de\nen\n");
    assert_eq!(home.run(&["kv", "list"]).ok(), "greetings\n");
    assert_eq!(home.run(&["kv", "del", "greetings", "en"]).ok(), "greetings/en deleted\n");
    assert_eq!(home.run(&["kv", "del", "greetings", "en"]).failed(1), "greetings/en does not exist\n");
    assert_eq!(home.run(&["kv", "get", "greetings", "en"]).failed(1), "greetings/en does not exist\n");
    let text = home.run(&["kv", "put", "-t", "nonesuch", "greetings", "en", "hello"]).failed(1);
    assert!(text.contains("no active bucket type has this name"), "{text}");
    assert_eq!(home.run(&["kv", "get", "-t", "nope", "b", "k"]).failed(1).lines().count(), 1);
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn values_are_bytes() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let bytes: Vec<u8> = (0..=255).collect();
    assert!(run_with_input(home.path(), &["kv", "put", "b", "k"], &bytes).status.success());
    assert_eq!(run_with_input(home.path(), &["kv", "get", "b", "k"], b"").stdout, bytes);
    let got = json_of(&home, &["kv", "get", "b", "k"]);
    assert_eq!(got["siblings"][0]["content_type"], "application/octet-stream");
    assert!(got["siblings"][0]["value"]["base64"].as_str().is_some_and(|v| v.starts_with("AAECAwQF")), "{got}");
    node.stop();
}

#[test]
fn json_has_the_documented_shapes() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let at = json!({"bucket_type": "default", "bucket": "b", "key": "k"});
    let with = |rest: Value| {
        let mut out = at.clone();
        out.as_object_mut().expect("object").extend(rest.as_object().expect("object").clone());
        out
    };
    let put = ["kv", "put", "b", "k", "v", "--content-type", "text/x"];
    assert_eq!(json_of(&home, &put), with(json!({"stored": true, "replaced": false})));
    assert_eq!(json_of(&home, &put), with(json!({"stored": true, "replaced": true})));
    let got = json_of(&home, &["kv", "get", "b", "k"]);
    assert_eq!((&got["found"], &got["siblings"][0]["value"]), (&json!(true), &json!("v")));
    assert_eq!(got["siblings"][0]["content_type"], "text/x");
    assert!(got["vclock"].is_string());
    assert_eq!(json_of(&home, &["kv", "list", "b"]), json!({"keys": ["k"]}));
    assert_eq!(json_of(&home, &["kv", "list"]), json!({"buckets": ["b"]}));
    assert_eq!(json_of(&home, &["kv", "del", "b", "k"]), with(json!({"deleted": true})));
    assert_eq!(json_of(&home, &["ping"]), json!({"ping": "pong"}));
    assert_eq!(json_of(&home, &["admin", "test"]), json!({"node": "riak@127.0.0.1", "cycles": 1}));
    let types = json_of(&home, &["admin", "bucket-type", "list"]);
    assert_eq!(types, json!({"bucket_types": [{"name": "default", "status": "active"}]}));
    let vnodes = json_of(&home, &["admin", "vnode-status"]);
    assert_eq!(vnodes["vnodes"].as_array().map(Vec::len), Some(8));
    assert!(vnodes["vnodes"][0]["status"]["key_count"].is_u64(), "{vnodes}");
    let config = json_of(&home, &["config", "effective"]);
    assert!(
        config["config"]
            .as_array()
            .is_some_and(|c| { c.contains(&json!({"key": "ring_size", "value": "8", "origin": "file"})) })
    );
    node.stop();
}

#[test]
fn siblings_are_never_mixed_up() {
    let home = Home::new(MEMORY);
    let node = home.start();
    home.run(&["admin", "bucket-type", "create", "carts", r#"{"props":{"allow_mult":true}}"#]).ok();
    home.run(&["admin", "bucket-type", "activate", "carts"]).ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let mut client = ombak_client::Client::connect(&node.pb).await.expect("connects");
        for value in ["one", "two"] {
            let content = ombak_client::messages::RpbContent { value: value.into(), ..Default::default() };
            let bucket = ombak_types::Bucket::typed("carts", "b");
            client.put(&bucket, Some(b"k"), content, None).await.expect("puts");
        }
    });
    let refusal = home.run(&["kv", "get", "-t", "carts", "b", "k"]).failed(1);
    assert!(refusal.contains("2 siblings; choose one with --sibling N"), "{refusal}");
    let mut both = [
        home.run(&["kv", "get", "-t", "carts", "b", "k", "--sibling", "1"]).ok(),
        home.run(&["kv", "get", "-t", "carts", "b", "k", "--sibling", "2"]).ok(),
    ];
    both.sort();
    assert_eq!(both, ["one", "two"]);
    home.run(&["kv", "get", "-t", "carts", "b", "k", "--sibling", "3"]).failed(2);
    home.run(&["kv", "put", "-t", "carts", "b", "k", "merged"]).ok();
    assert_eq!(home.run(&["kv", "get", "-t", "carts", "b", "k"]).ok(), "merged");
    node.stop();
}

#[test]
fn bucket_types_live_in_riaks_words() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let say = |args: &[&str]| home.run(&[&["admin", "bucket-type"], args].concat());
    assert_eq!(say(&["list"]).ok(), "default (active)\n");
    assert_eq!(say(&["status", "t"]).failed(1), "t is not an existing bucket type\n");
    assert_eq!(say(&["activate", "t"]).failed(1), "t is not an existing bucket type\n");
    assert_eq!(say(&["create", "t", r#"{"props":{"n_val":2}}"#]).ok(), "t created\n");
    assert!(say(&["status", "t"]).ok().starts_with("t has been created and may be activated\n"));
    assert_eq!(say(&["list"]).ok(), "default (active)\nt (not active)\n");
    assert_eq!(say(&["activate", "t"]).ok(), "t has been activated\n");
    let status = say(&["status", "t"]).ok();
    assert!(status.starts_with("t is active\n\n") && status.contains("\nn_val: 2\n"), "{status}");
    assert_eq!(say(&["update", "t", r#"{"props":{"r":"one"}}"#]).ok(), "t updated\n");
    assert!(say(&["status", "t"]).ok().contains("\nr: one\n"));
    assert_eq!(say(&["reset", "t"]).ok(), "t reset\n");
    assert!(say(&["status", "t"]).ok().contains("\nr: quorum\n"));
    for (props, words) in [
        ("{", "Cannot create bucket type u: invalid json\n"),
        ("{}", "Cannot create bucket type u: no props field found in json\n"),
        (r#"{"props":{"n_val":"x"}}"#, "Error creating bucket type u:\nn_val: not_integer\n"),
    ] {
        assert_eq!(say(&["create", "u", props]).failed(1), words);
    }
    assert!(say(&["create", "t"]).failed(1).starts_with("Error creating bucket type t:\n"));
    assert!(say(&["create", "maps", r#"{"props":{"datatype":"map"}}"#]).ok().contains("maps created"));
    assert_eq!(say(&["activate", "maps"]).ok(), "maps has been activated\n");
    node.stop();
}

#[test]
fn statistics_are_those_of_http() {
    let home = Home::new(MEMORY);
    let node = home.start();
    home.run(&["kv", "put", "b", "k", "v"]).ok();
    let text = home.run(&["admin", "status"]).ok();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("1-minute stats for 'riak@127.0.0.1'"));
    assert!(lines.next().is_some_and(|l| l.chars().all(|c| c == '-')));
    let names: Vec<&str> = lines.filter_map(|l| l.split_once(" : ")).map(|(name, _)| name).collect();
    let json = json_of(&home, &["admin", "status"]);
    assert_eq!(names.len(), json.as_object().expect("object").len());
    assert!(names.contains(&"node_puts_total") && names.contains(&"ring_members"), "{names:?}");
    assert!(
        home.run(&["admin", "test"]).ok().starts_with("Successfully completed 1 read/write cycle to 'riak@127.0.0.1'")
    );
    assert!(home.run(&["admin", "vnode-status"]).ok().contains("index B/key"));
    node.stop();
}

#[test]
fn either_port_leads_to_the_node() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let elsewhere = tempfile::tempdir().expect("tempdir");
    for address in [&node.http, &node.pb] {
        support::run(elsewhere.path(), &["kv", "put", "b", "k", "v", "--node", address]).ok();
        assert_eq!(support::run(elsewhere.path(), &["kv", "get", "b", "k", "--node", address]).ok(), "v");
    }
    let refusal = support::run(elsewhere.path(), &["status", "--node", &node.pb]).failed(1);
    assert!(refusal.contains("does not speak HTTP"), "{refusal}");
    node.stop();
}

#[test]
fn riaks_names_lead_to_the_same_commands() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let link = |name: &str| {
        let path = home.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ombak"), &path).expect("link");
        path
    };
    let (riak, riak_admin) = (link("riak"), link("riak-admin"));
    let say = |program: &std::path::Path, args: &[&str]| {
        let output = Command::new(program).current_dir(home.path()).args(args).output().expect("runs");
        support::Said::from(output).ok()
    };
    assert_eq!(say(&riak, &["ping"]), "pong\n");
    assert_eq!(say(&riak, &["chkconfig"]), "config is OK\n");
    assert!(say(&riak, &["version"]).contains("3.2.3"));
    assert_eq!(say(&riak, &["getpid"]), format!("{}\n", node.child.id()));
    assert_eq!(say(&riak, &["admin", "bucket-type", "create", "t", r#"{"props":{}}"#]), "t created\n");
    assert_eq!(say(&riak_admin, &["bucket-type", "activate", "t"]), "t has been activated\n");
    assert_eq!(say(&riak_admin, &["bucket_type", "list"]), "default (active)\nt (active)\n");
    assert!(say(&riak_admin, &["status"]).starts_with("1-minute stats for"));
    assert_eq!(say(&riak, &["stop"]), "ok\n");
    assert_eq!(node.wait(), Some(0));
}

#[test]
fn switched_off_requests_have_riaks_error() {
    let home = Home::new(&format!("{MEMORY}\ncluster.job.riak_kv.stream_list_keys = disabled"));
    let node = home.start();
    let refusal = home.run(&["kv", "list", "b"]).failed(1);
    assert_eq!(refusal, "Operation '{riak_kv,stream_list_keys}' is not enabled\n");
    node.stop();
}

#[test]
fn json_is_printed_for_failures_too() {
    let home = Home::new(MEMORY);
    let failure = |args: &[&str], code: i32| -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let said = home.run(&args);
        assert_eq!(said.code, Some(code), "{args:?}: {}", said.err);
        serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {:?}", said.out))
    };
    let kind = |args: &[&str], code: i32| {
        let said = failure(args, code);
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty() && !message.contains('\n'), "{args:?}: {said}");
        said["error"]["kind"].as_str().unwrap_or_default().to_owned()
    };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = silent.local_addr().expect("address").to_string();
    drop(silent);
    for command in
        [&["status"][..], &["stop"], &["ping"], &["kv", "list"], &["admin", "test"], &["admin", "backup", "x"]]
    {
        let args: Vec<&str> = command.iter().copied().chain(["--node", &address]).collect();
        assert_eq!(kind(&args, 1), "no_node", "{command:?}");
    }
    for usage in [&["nonsense"][..], &["kv", "get", "b"], &["ping", "--node", "no-port"]] {
        assert_eq!(kind(usage, 2), "usage", "{usage:?}");
    }
    for failed in [&["config", "describe", "nonsense"][..], &["import", "bitcask", "nowhere"], &["restore", "nowhere"]]
    {
        assert_eq!(kind(failed, 1), "failed", "{failed:?}");
    }
    let node = home.start();
    assert_eq!(kind(&["start"], 1), "failed");
    assert_eq!(kind(&["admin", "bucket-type", "status", "t"], 1), "no_such_type");
    assert_eq!(kind(&["admin", "backup", "/etc/x"], 1), "refused");
    assert_eq!(kind(&["kv", "get", "-t", "nope", "b", "k"], 1), "failed");
    // If a result reports the failure, it is the only document.
    assert_eq!(failure(&["kv", "get", "b", "k"], 1)["found"], false);
    assert_eq!(failure(&["kv", "del", "b", "k"], 1)["deleted"], false);
    node.stop();
}
