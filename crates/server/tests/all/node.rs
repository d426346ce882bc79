//! The life of a node seen from outside: start, refused starts, stop.

use crate::support::{DEADLINE, Home, pause, run};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const MEMORY: &str = "storage_backend = memory";

fn http(address: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    write!(stream, "{head}\r\nConnection: close\r\n\r\n").expect("writes");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("reads");
    answer
}

#[test]
fn a_node_starts_answers_and_stops() {
    let home = Home::new(MEMORY);
    let node = home.start();
    assert!(node.ready_line.starts_with("riak@127.0.0.1 is ready: HTTP 127.0.0.1:"), "{}", node.ready_line);
    assert_eq!(home.run(&["ping"]).ok(), "pong\n");
    let status = home.run(&["status"]).ok();
    assert!(status.starts_with("'riak@127.0.0.1' is up and ready (ombak "), "{status}");
    let json: serde_json::Value = serde_json::from_str(&home.run(&["status", "--json"]).ok()).expect("JSON");
    assert_eq!((&json["ready"], &json["ring_size"], &json["backend"]), (&true.into(), &8.into(), &"memory".into()));
    assert_eq!(json["pid"], node.child.id());
    assert_eq!(json["problems"], serde_json::json!([]));
    assert!(status.contains("\nmemory of requests: 0 of "), "{status}");
    let memory = &json["request_memory"];
    assert!(memory["limit_bytes"].as_u64().is_some_and(|bytes| bytes >= 256 << 20), "{memory}");
    for name in ["used_bytes", "waiting_connections", "ended_connections", "refused_requests"] {
        assert_eq!(memory[name], 0, "{name}");
    }
    assert_eq!(home.run(&["stop"]).ok(), "ok\n");
    assert_eq!(node.wait(), Some(0));
    let silent = home.run(&["ping"]).failed(1);
    assert!(silent.contains("not responding to pings") && silent.lines().count() == 1, "{silent}");
    home.assert_no_errors_logged();
}

#[test]
fn allowed_origins_and_hosts_are_configured() {
    let home = Home::new(&format!(
        "{MEMORY}\nhttp.allowed_origins = https://app.example http://tool.example:81\nhttp.allowed_hosts = db.example"
    ));
    let node = home.start();
    let status = |host: &str, origin: &str| {
        let head = format!(
            "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: {host}\r\n{origin}Content-Type: text/plain\r\nContent-Length: 0"
        );
        http(&node.http, &head).get(9..12).map(str::to_owned)
    };
    for (host, origin, expected) in [
        ("db.example:8098", "", "204"),
        ("db.example", "Origin: https://app.example\r\n", "204"),
        ("localhost", "Origin: http://tool.example:81\r\n", "204"),
        ("localhost", "Origin: http://app.example\r\n", "403"),
        ("www.db.example", "", "403"),
    ] {
        assert_eq!(status(host, origin).as_deref(), Some(expected), "{host} {origin}");
    }
    for key in ["http.allowed_origins", "http.allowed_hosts"] {
        let described = home.run(&["config", "describe", key]).ok();
        assert!(described.contains("403") && described.contains("separated by blanks"), "{described}");
    }
    assert_eq!(home.run(&["stop"]).ok(), "ok\n");
    assert_eq!(node.wait(), Some(0));
}

#[test]
fn signals_end_a_node_well() {
    let home = Home::new(MEMORY);
    for signal in [Signal::TERM, Signal::INT] {
        let node = home.start();
        node.signal(signal);
        assert_eq!(node.wait(), Some(0), "{signal:?}");
        assert!(!home.data().join("running.json").exists());
    }
    home.assert_no_errors_logged();
}

#[test]
fn a_second_start_on_the_same_directory_is_refused() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let refusal = home.run(&["start"]).failed(1);
    assert!(refusal.starts_with("Node is already running!"), "{refusal}");
    assert!(refusal.contains(&node.child.id().to_string()) && refusal.contains("data"), "{refusal}");
    assert_eq!(refusal.lines().count(), 1, "{refusal}");
    node.stop();
}

#[test]
fn a_killed_node_leaves_nothing_in_the_way() {
    let home = Home::new(MEMORY);
    home.start().kill();
    assert!(home.data().join("running.json").exists());
    home.run(&["ping"]).failed(1);
    let node = home.start();
    assert_eq!(home.run(&["ping"]).ok(), "pong\n");
    node.stop();
}

#[test]
fn a_busy_port_is_named_with_its_key() {
    for key in ["listener.http.internal", "listener.protobuf.internal"] {
        let taken = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = taken.local_addr().expect("address");
        let home = Home::new(&format!("{MEMORY}\n{key} = {address}"));
        let refusal = home.run(&["start"]).failed(1);
        let last = refusal.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("{key} = {address}: the port is in use")), "{refusal}");
    }
}

/// The names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut names: Vec<_> = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_busy_port_ends_a_start_before_any_store_is_opened() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = taken.local_addr().expect("address");
    let home = Home::new(&format!("storage_backend = bitcask\nlistener.protobuf.internal = {address}"));
    home.run(&["start"]).failed(1);
    let made = names(&home.data());
    assert!(made.iter().all(|name| ["admin.token", "log", "ombak.lock"].contains(&name.as_str())), "{made:?}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let home = Home::new(MEMORY);
    let file = home.path().join("file");
    std::fs::write(&file, "").expect("write");
    let refusal = home.run(&["start", "--data", "file/data"]).failed(78);
    assert!(refusal.contains("cannot use the data directory file/data"), "{refusal}");
    assert_eq!(refusal.lines().count(), 1, "{refusal}");
}

#[test]
fn a_wider_listener_is_warned_about() {
    let home = Home::new(&format!("{MEMORY}\nlistener.http.internal = 0.0.0.0:0"));
    let node = home.start();
    let warnings = home.logged("WARN").join("\n");
    assert!(warnings.contains("listener.http.internal = 0.0.0.0:0 can be reached from other machines"), "{warnings}");
    assert_eq!(
        home.run(&["ping"]).ok(),
        "pong\n",
        "running.json names an address that nobody can connect to as it stands"
    );
    node.stop();
}

#[test]
fn administration_is_closed_to_web_pages() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let token = home.data().join("admin.token");
    assert_eq!(std::fs::metadata(&token).expect("there").permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(token).expect("the token");
    let with_token = format!("\r\nX-Ombak-Admin: 1\r\nAuthorization: Bearer {}", token.trim());
    let ask = |extra: &str| {
        let head = format!("GET /admin/v1/node HTTP/1.1\r\nHost: {}{extra}", node.http);
        http(&node.http, &head).lines().next().unwrap_or_default().to_owned()
    };
    assert!(ask(&with_token).contains(" 200 "));
    let origin = format!("{with_token}\r\nOrigin: http://x");
    let referer = format!("{with_token}\r\nReferer: http://x/");
    for refused in ["", "\r\nX-Ombak-Admin: 1", &with_token.replace("X-Ombak-Admin: 1", "X-Y: 1"), &origin, &referer] {
        assert!(ask(refused).contains(" 403 "), "{refused:?}: {}", ask(refused));
    }
    assert!(ask("\r\nX-Ombak-Admin: 1\r\nAuthorization: Bearer x").contains(" 401 "));
    let rebound = "GET /admin/v1/node HTTP/1.1\r\nHost: evil.example\r\nX-Ombak-Admin: 1";
    assert!(http(&node.http, rebound).contains(" 403 "));
    node.stop();
}

/// Any user of the machine can connect to the port, but only the node's own user can read the
/// token.
#[test]
fn a_local_user_without_the_token_can_neither_stop_a_node_nor_take_a_backup() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let elsewhere = tempfile::tempdir().expect("tempdir");
    for command in [&["stop"][..], &["status"], &["admin", "backup", "x"], &["admin", "vnode-status"]] {
        let args: Vec<&str> = command.iter().copied().chain(["--node", &node.http]).collect();
        let said = run(elsewhere.path(), &args).failed(1);
        assert!(said.contains("admin.token") && said.contains("OMBAK_ADMIN_TOKEN"), "{command:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    // A ping is answered, because it is no secret that the node runs.
    assert_eq!(run(elsewhere.path(), &["ping", "--node", &node.http]).ok(), "pong\n");
    // A user who may read the data directory has access, from any working directory.
    let data = home.data();
    let with_data = ["status", "--node", &node.http, "--data", data.to_str().expect("UTF-8")];
    run(elsewhere.path(), &with_data).ok();
    node.stop();
}

#[test]
fn the_token_of_a_node_that_ended_is_not_shown_to_who_listens_there_now() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let address = node.http.clone();
    node.kill();
    let squatter = TcpListener::bind(&address).expect("the port is free");
    let heard = std::thread::spawn(move || {
        let mut stream = squatter.accept().expect("a command comes").0;
        let mut heard = Vec::new();
        let mut piece = [0; 4096];
        while !heard.windows(4).any(|w| w == b"\r\n\r\n") {
            let count = stream.read(&mut piece).expect("reads");
            assert!(count > 0, "the head of a request");
            heard.extend_from_slice(&piece[..count]);
        }
        String::from_utf8_lossy(&heard).to_lowercase()
    });
    home.run(&["status"]).failed(1);
    let heard = heard.join().expect("heard");
    assert!(heard.contains("/admin/v1/node") && !heard.contains("authorization"), "{heard}");
}

#[test]
fn a_token_that_others_can_read_ends_a_start() {
    let home = Home::new(MEMORY);
    home.start().stop();
    let token = home.data().join("admin.token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).expect("chmod");
    let refusal = home.run(&["start"]).failed(78);
    let last = refusal.lines().last().unwrap_or_default();
    assert!(last.contains("mode 644") && last.contains("chmod 600"), "{refusal}");
}

#[test]
fn everything_that_a_node_makes_is_for_its_user_alone() {
    let home = Home::new("storage_backend = bitcask\nbitcask.data_root = elsewhere/bitcask\nplatform_log_dir = logs");
    std::fs::create_dir(home.data()).expect("create");
    std::fs::set_permissions(home.data(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let node = home.start();
    home.run(&["kv", "put", "b", "k", "v"]).ok();
    home.run(&["admin", "backup", "monday"]).ok();
    let mut dirs: Vec<_> = ["data", "elsewhere", "logs", "data-backups"].map(|name| home.path().join(name)).into();
    while let Some(path) = dirs.pop() {
        let mode = path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:03o}", path.display());
        if path.is_dir() {
            dirs.extend(std::fs::read_dir(&path).expect("list").map(|e| e.expect("entry").path()));
        }
    }
    node.stop();
}

#[test]
fn the_log_rotates_and_is_json() {
    let home = Home::new(&format!("{MEMORY}\nlogger.max_file_size = 300\nlogger.max_files = 3"));
    for _ in 0..4 {
        home.start().stop();
    }
    let mut names: Vec<String> = std::fs::read_dir(home.data().join("log"))
        .expect("log directory")
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["audit.log", "console.log", "console.log.0", "console.log.1", "refusals.log"]);
    home.assert_no_errors_logged();
}

#[test]
fn no_node_is_one_line_with_advice() {
    let home = Home::new(MEMORY);
    let silent = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = silent.local_addr().expect("address").to_string();
    drop(silent);
    for command in
        [&["status"][..], &["kv", "list"], &["admin", "status"], &["admin", "bucket-type", "list"], &["stop"]]
    {
        let args: Vec<&str> = command.iter().copied().chain(["--node", &address]).collect();
        let said = home.run(&args).failed(1);
        assert!(said.contains("no node answers at") && said.contains("ombak start"), "{command:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn wrong_usage_has_a_code_of_its_own() {
    let dir = tempfile::tempdir().expect("tempdir");
    run(dir.path(), &["nonsense"]).failed(2);
    run(dir.path(), &["kv", "get", "b"]).failed(2);
    run(dir.path(), &["ping", "--node", "no-port"]).failed(2);
    assert!(run(dir.path(), &["--help"]).ok().contains("Examples:"));
    assert!(run(dir.path(), &["version"]).ok().starts_with("ombak "));
    assert!(run(dir.path(), &["--version"]).ok().starts_with("ombak "));
}

/// Whether a condition becomes true before the deadline.
fn comes_true(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        pause(Duration::from_millis(2));
    }
    false
}

#[test]
fn a_hangup_reopens_the_log_and_does_not_end_the_node() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let (log, rotated) = (home.data().join("log/console.log"), home.data().join("log/rotated"));
    for _ in 0..2 {
        std::fs::rename(&log, &rotated).expect("rename");
        node.signal(Signal::HUP);
        node.signal(Signal::HUP);
        assert!(comes_true(|| !home.logged("INFO").is_empty()), "the log is not reopened");
        assert_eq!(home.run(&["ping"]).ok(), "pong\n");
    }
    run(home.path(), &["stop"]).ok();
    let said = home.logged("INFO").join("\n");
    assert!(said.contains("reopened on SIGHUP") && said.contains("stopped"), "{said}");
    assert!(std::fs::read_to_string(&rotated).expect("the old file").contains("reopened on SIGHUP"));
    assert_eq!(node.wait(), Some(0));
    home.assert_no_errors_logged();
}

#[test]
fn a_hangup_that_cannot_reopen_the_log_keeps_the_old_one() {
    let home = Home::new(MEMORY);
    let node = home.start();
    let (log, rotated) = (home.data().join("log/console.log"), home.data().join("log/rotated"));
    std::fs::rename(&log, &rotated).expect("rename");
    std::fs::create_dir(&log).expect("something in the way");
    node.signal(Signal::HUP);
    let old = || std::fs::read_to_string(&rotated).expect("the old file");
    assert!(comes_true(|| old().contains("cannot be reopened")), "{}", old());
    node.stop();
    assert!(old().contains("stopped"));
}

#[test]
fn lines_that_clients_cause_are_limited() {
    const FLOOD: usize = 300;
    let home = Home::new(MEMORY);
    let node = home.start();
    for _ in 0..FLOOD {
        let head = format!("GET /admin/v1/node HTTP/1.1\r\nHost: {}", node.http);
        assert!(http(&node.http, &head).contains(" 403 "));
    }
    node.stop();
    let warnings = home.logged("WARN");
    let of = |text: &str| warnings.iter().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let refusals = of("\"message\":\"administration refused\"").len();
    assert!((20..FLOOD).contains(&refusals), "{refusals}");
    let left_out: u64 = of("log lines were left out")
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["count"].as_u64().expect("a count"))
        .sum();
    assert_eq!(refusals as u64 + left_out, FLOOD as u64, "{warnings:?}");
}

#[test]
fn the_level_of_the_log_is_changed_while_the_node_runs() {
    let home = Home::new(&format!("{MEMORY}\nlogger.level = error"));
    let node = home.start();
    assert_eq!(home.run(&["admin", "show", "logger.level"]).ok(), "logger.level = error\n");
    assert_eq!(home.logged("INFO"), Vec::<String>::new());
    assert_eq!(home.run(&["admin", "set", "logger.level=info"]).ok(), "logger.level = info\n");
    assert_eq!(home.logged("INFO").len(), 1, "the change itself");
    let json = home.run(&["admin", "show", "logger.level", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json, serde_json::json!({"key": "logger.level", "value": "info", "origin": "administration"}));
    for (assignment, words) in [
        ("logger.level=loud", "must be"),
        ("ring_size=16", "cannot be changed while the node runs"),
        ("ring_sise=16", "did you mean 'ring_size'?"),
    ] {
        let said = home.run(&["admin", "set", assignment]).failed(1);
        assert!(said.contains(words) && said.lines().count() == 1, "{assignment}: {said}");
    }
    home.run(&["admin", "set", "logger.level"]).failed(2);
    home.run(&["admin", "set", "logger.level=none"]).ok();
    let before = home.logged("INFO").len();
    home.run(&["stop"]).ok();
    assert_eq!(node.wait(), Some(0));
    assert_eq!(home.logged("INFO").len(), before);
}

#[test]
fn the_copy_of_the_log_on_standard_error_can_be_switched_off() {
    for (setting, is_silent) in [("", false), ("logger.stderr = off", true)] {
        let home = Home::new(&format!("{MEMORY}\n{setting}"));
        let mut command = home.start_command();
        let errors = std::fs::File::create(home.path().join("stderr")).expect("create");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let mut child = command.spawn().expect("spawns");
        assert!(comes_true(|| home.data().join("running.json").exists()), "the node does not start");
        home.run(&["admin", "set", "logger.level=debug"]).ok();
        home.run(&["stop"]).ok();
        assert!(child.wait().expect("ends").success());
        let said = std::fs::read_to_string(home.path().join("stderr")).expect("read");
        assert_eq!(said.is_empty(), is_silent, "{said}");
        assert!(home.logged("INFO").iter().any(|line| line.contains("stopped")));
    }
}

/// The program that started a node may end, so that nobody reads what the node prints.
#[test]
fn a_closed_standard_error_does_not_disturb_a_node() {
    let home = Home::new(MEMORY);
    let mut command = home.start_command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("spawns");
    drop(child.stderr.take());
    assert!(comes_true(|| home.data().join("running.json").exists()), "the node does not start");
    run(home.path(), &["stop"]).ok();
    assert!(child.wait().expect("ends").success());
    home.assert_no_errors_logged();
}
