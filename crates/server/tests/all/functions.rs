//! Functions in JavaScript that an operator registers: the command line, jobs and commit hooks
//! against a running node.

use crate::support::{Home, Node, Said, ask, run_with_input};
use serde_json::{Value, json};
use std::fs;

const SETTINGS: &str = "storage_backend = memory\njavascript.call_time = 300ms";
const JSON: &str = "Content-Type: application/json\r\n";

/// A file that is called as what it becomes.
fn function(home: &Home, words: &[&str]) -> Said {
    home.run(&[&["admin", "function"], words].concat())
}

fn write(home: &Home, name: &str, source: &str) {
    fs::write(home.path().join(name), source).unwrap();
}

fn json_of(home: &Home, words: &[&str]) -> Value {
    serde_json::from_str(&function(home, &[words, &["--json"]].concat()).ok()).unwrap()
}

/// The answer of a job over the key `k` of the bucket `b`.
fn job(node: &Node, phase: &Value) -> String {
    let job = json!({"inputs": [["b", "k"]], "query": [phase]});
    ask(node, "POST", "/mapred", JSON, &job.to_string())
}

fn map(name: &str) -> Value {
    json!({"map": {"language": "javascript", "name": name}})
}

fn put(node: &Node, value: &str) -> String {
    ask(node, "PUT", "/buckets/b/keys/k", "Content-Type: text/plain\r\n", value)
}

fn set_props(node: &Node, props: &Value) {
    let answer = ask(node, "PUT", "/buckets/b/props", JSON, &json!({ "props": props }).to_string());
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

#[test]
fn functions_are_created_shown_listed_replaced_and_deleted() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    assert_eq!(function(&home, &["list"]).ok(), "no functions are registered\n");
    let source = "// Counts.\nfunction(object) {\n    return [1];\n}\n";
    write(&home, "count.js", source);
    assert_eq!(function(&home, &["create", "My.count", "count.js"]).ok(), "My.count is registered\n");
    assert_eq!(function(&home, &["show", "My.count"]).ok(), source, "byte for byte");
    let again = function(&home, &["create", "My.count", "count.js"]).failed(1);
    assert_eq!(again, "a function My.count is registered already; --replace replaces it\n");
    let create = ["admin", "function", "create", "fromInput", "-"];
    assert!(run_with_input(home.path(), &create, b"function() { return [2]; };").status.success());
    write(&home, "count.js", "function(object) { return [2]; }");
    function(&home, &["create", "My.count", "count.js", "--replace"]).ok();
    let shown = json_of(&home, &["show", "My.count"]);
    let digest = shown["digest"].as_str().unwrap().to_owned();
    let expected = json!({"name": "My.count", "bytes": 32, "digest": digest, "hook_of": [],
        "source": "function(object) { return [2]; }"});
    assert_eq!(shown, expected);
    let list = format!("My.count (32 bytes, digest {digest})\nfromInput (27 bytes, digest ");
    assert!(function(&home, &["list"]).ok().starts_with(&list));
    assert_eq!(function(&home, &["delete", "fromInput"]).ok(), "fromInput is deleted\n");
    assert_eq!(function(&home, &["delete", "fromInput"]).failed(1), "no function fromInput is registered\n");
    assert_eq!(function(&home, &["show", "fromInput"]).failed(1), "no function fromInput is registered\n");
    function(&home, &["show", ""]).failed(2);
    node.stop();
    let node = home.start();
    assert_eq!(function(&home, &["show", "My.count"]).ok(), "function(object) { return [2]; }");
    node.stop();
    home.assert_no_errors_logged();
}

#[test]
fn what_is_no_function_is_not_registered_and_the_error_names_the_line() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    let refused = |source: &str, name: &str| {
        write(&home, "f.js", source);
        function(&home, &["create", name, "f.js"]).failed(1)
    };
    let said = refused("function(object) {\n    return [;\n}", "f");
    assert!(said.starts_with("Cannot register f: SyntaxError") && said.contains("(line 2): return [;"), "{said}");
    assert!(refused("var f = 1;", "f").starts_with("Cannot register f: "));
    assert!(refused("7", "f").starts_with("Cannot register f: "));
    // What runs while it is compiled has the limits of a call.
    assert!(refused("(function() { for (;;); })()", "f").starts_with("Cannot register f: "));
    let good = "function() { return []; }";
    assert!(refused(good, "Riak.mapValues").contains("names that begin with Riak are those of built-in functions"));
    assert!(refused(good, "a b").contains("a function's name has 1 to 255 bytes"));
    assert!(refused(&" ".repeat((64 << 10) + 1), "f").contains("the source has more than 65536 bytes"));
    assert!(refused(&" ".repeat((1 << 20) + 1), "f").contains("it has more than 1048576 bytes"));
    assert!(function(&home, &["create", "f", "missing.js"]).failed(1).starts_with("missing.js cannot be read: "));
    fs::write(home.path().join("f.js"), [0xff]).unwrap();
    assert_eq!(function(&home, &["create", "f", "f.js"]).failed(1), "f.js cannot be read: it is not UTF-8\n");
    assert_eq!(function(&home, &["list"]).ok(), "no functions are registered\n");
    function(&home, &["create", "f"]).failed(2);
    function(&home, &["test", "f"]).failed(2);
    function(&home, &["test", "f", "--values", "[]", "--as", "zork"]).failed(2);
    node.stop();
}

#[test]
fn a_function_is_tested_with_the_limits_of_the_node() {
    let home = Home::new(SETTINGS);
    let node = home.start();
    let create = |name: &str, source: &str| {
        write(&home, "f.js", source);
        function(&home, &["create", name, "f.js"]).ok();
    };
    create("add", "function(values, arg) { ejsLog('f', 'adds'); return [values.reduce((a, b) => a + b, arg || 0)]; }");
    let said = function(&home, &["test", "add", "--values", "[1, 2, 3]", "--arg", "10"]).ok();
    assert!(said.starts_with("result: [16]\nlog: f: adds\ntime: ") && said.ends_with(" ms\n"), "{said}");
    write(&home, "object.json", r#"{"key": "k", "values": [{"data": "v"}]}"#);
    create("data", "function(object, keyData, arg) { return [object.values[0].data, keyData, arg]; }");
    let tested = json_of(&home, &["test", "data", "--object", "object.json"]);
    assert_eq!((&tested["result"], &tested["log"]), (&json!(["v", "undefined", null]), &json!([])));
    assert!(tested["time_us"].is_u64(), "{tested}");
    create("hook", "function(object) {\n    if (object.key == 'k') { return {fail: 'not k'}; }\n    return object;\n}");
    let as_hook = ["test", "hook", "--object", "object.json", "--as", "precommit"];
    assert!(function(&home, &as_hook).ok().starts_with("the put is refused: not k\n"));
    write(&home, "object.json", r#"{"key": "other"}"#);
    assert!(function(&home, &as_hook).ok().starts_with("the put goes on with {\"key\":\"other\"}\n"));
    create("fails", "function(object) {\n    ejsLog('f', 'before');\n    return object.values[0];\n}");
    let failed = function(&home, &["test", "fails", "--object", "object.json", "--as", "postcommit"]);
    assert_eq!((failed.code, &*failed.err), (Some(1), ""));
    assert!(
        failed.out.starts_with("failed: TypeError: ") && failed.out.contains("(line 3: return object"),
        "{}",
        failed.out
    );
    assert!(failed.out.contains("\nlog: f: before\n"), "{}", failed.out);
    create("endless", "function() { for (;;); }");
    let failed = function(&home, &["test", "endless", "--values", "[]", "--json"]);
    let tested: Value = serde_json::from_str(&failed.out).expect("one document");
    assert_eq!((failed.code, &tested["failure"]["kind"]), (Some(1), &json!("time")));
    // Built-in functions are tested, too.
    assert!(function(&home, &["test", "Riak.reduceSum", "--values", "[1,2]"]).ok().starts_with("result: [3]\n"));
    assert_eq!(function(&home, &["test", "zork", "--values", "[]"]).failed(1), "no function zork is registered\n");
    let said = function(&home, &["test", "add", "--values", "["]).failed(1);
    assert!(said.starts_with("--values is not JSON: "), "{said}");
    node.stop();
}

#[test]
fn jobs_and_hooks_find_what_is_registered_as_soon_as_it_is() {
    let home = Home::new(SETTINGS);
    let library = home.path().join("functions");
    fs::create_dir(&library).unwrap();
    fs::write(library.join("f.js"), "function f() { return ['library']; }").unwrap();
    let mut settings = fs::read_to_string(home.path().join("ombak.conf")).unwrap();
    settings.push_str("javascript.source_dir = functions\n");
    fs::write(home.path().join("ombak.conf"), settings).unwrap();
    let node = home.start();
    assert!(put(&node, "v").starts_with("HTTP/1.1 204"));
    assert!(job(&node, &map("f")).ends_with("[\"library\"]"));
    let register = |name: &str, source: &str| {
        write(&home, "f.js", source);
        function(&home, &["create", name, "f.js", "--replace"]).ok();
    };
    register("f", "function() { return ['registered']; }");
    assert!(job(&node, &map("f")).ends_with("[\"registered\"]"), "before the one of a file");
    function(&home, &["delete", "f"]).ok();
    assert!(job(&node, &map("f")).ends_with("[\"library\"]"));
    let answer = job(&node, &map("gone"));
    assert!(answer.starts_with("HTTP/1.1 500") && answer.contains("gone"), "{answer}");

    register("check", "function(object) { return {fail: 'first'}; }");
    set_props(&node, &json!({"precommit": [{"name": "check"}]}));
    let refused = |text: &str| {
        let answer = put(&node, "v");
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(text), "{answer}");
    };
    refused("first");
    register("check", "function(object) { return {fail: 'second'}; }");
    refused("second");
    register("check", "function(object) { return {fail: 'first'}; }");
    refused("first");
    let listed = json_of(&home, &["list"]);
    assert_eq!(listed["functions"][0]["hook_of"], json!(["the bucket b"]));
    let said = function(&home, &["delete", "check"]).failed(1);
    let expected = "the function check is a commit hook of the bucket b; with --force it is deleted nevertheless\n";
    assert_eq!(said, expected);
    refused("first");
    function(&home, &["delete", "check", "--force"]).ok();
    refused("check");
    register("check", "function(object) { return object; }");
    assert!(put(&node, "v").starts_with("HTTP/1.1 204"));
    node.stop();
    home.assert_no_errors_logged();
}
