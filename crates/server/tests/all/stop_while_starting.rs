//! Signals that reach a node before it is ready. The start ends in order and logs it, and the next
//! start finds all data.
//!
//! A test replaces a file by a named pipe. A start that reads this file then waits at that point
//! for as long as the test wants.

use crate::support::{DEADLINE, Home, Node, ask, pause};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const KEYS: usize = 40;
/// The files and directories that a start may create before it opens a store.
const BEFORE_STORES: [&str; 4] = ["admin.token", "log", "node.lock", "ombak.lock"];

/// A start that is not ready yet. It is killed when it is dropped.
struct Start {
    child: Child,
}

impl Start {
    fn of(home: &Home) -> Self {
        let mut command = home.start_command();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("spawns");
        Self { child }
    }

    fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).expect("pid")).expect("pid");
        rustix::process::kill_process(pid, signal).expect("signals");
    }

    /// Waits for the end and returns the exit code; `None` if a signal ended the process.
    fn wait(mut self) -> Option<i32> {
        let mut code = None;
        wait_until("the start ends", || {
            code = self.child.try_wait().expect("waits").map(|status| status.code());
            code.is_some()
        });
        code.flatten()
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited for: {what}");
        pause(Duration::from_millis(2));
    }
}

/// A named pipe in the place of a file, and the content that the file had.
struct Pipe {
    path: PathBuf,
    content: Vec<u8>,
}

impl Pipe {
    fn in_place_of(path: &Path) -> Self {
        let content = fs::read(path).expect("reads");
        fs::remove_file(path).expect("removes");
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
        Self { path: path.to_owned(), content }
    }

    /// Waits until a process has opened the pipe to read from it. That process then waits for data
    /// in the pipe.
    fn wait_for_reader(&self) -> File {
        let mut writer = None;
        wait_until("the start reads the pipe", || {
            writer = open(&self.path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok();
            writer.is_some()
        });
        writer.expect("opened").into()
    }

    /// Puts the file back.
    fn restore(self) {
        fs::remove_file(&self.path).expect("removes");
        fs::write(&self.path, &self.content).expect("writes");
    }
}

fn put_all(node: &Node) {
    for number in 0..KEYS {
        let path = format!("/buckets/b/keys/key{number}");
        let answer = ask(node, "PUT", &path, "Content-Type: text/plain\r\n", &format!("value {number}"));
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
}

#[track_caller]
fn check_all(node: &Node) {
    for number in 0..KEYS {
        let answer = ask(node, "GET", &format!("/buckets/b/keys/key{number}"), "", "");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&format!("\r\n\r\nvalue {number}")), "{answer}");
    }
}

/// Finds the files in this directory and those below whose names end in `end`, and returns them
/// with their content.
fn files(dir: &Path, end: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_str().expect("UTF-8").ends_with(end) {
            found.insert(path.clone(), fs::read(&path).expect("reads"));
        }
    }
    found
}

#[track_caller]
fn assert_logged(home: &Home, words: &str) {
    let lines = home.logged("INFO");
    assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:?}");
}

/// A stopped node that was started and written to twice, so that its stores have hint files.
fn with_hints(backend: &str) -> Home {
    let home = Home::new(&format!("storage_backend = {backend}"));
    for _ in 0..2 {
        let node = home.start();
        put_all(&node);
        node.stop();
    }
    home
}

#[test]
fn a_signal_while_stores_are_opened_ends_the_start_in_order() {
    for (backend, signal, name) in
        [("bitcask", Signal::TERM, "SIGTERM"), ("bitcask", Signal::INT, "SIGINT"), ("leveled", Signal::TERM, "SIGTERM")]
    {
        let home = with_hints(backend);
        let data_files = files(&home.data(), ".data");
        let hint = files(&home.data(), ".hint").into_keys().next().expect("a store has a hint file");
        let pipe = Pipe::in_place_of(&hint);

        let start = Start::of(&home);
        let _writer = pipe.wait_for_reader();
        start.signal(signal);
        assert_eq!(start.wait(), Some(0), "{backend}, {name}");
        assert_logged(&home, &format!("stopped on {name} while the node was starting"));
        home.assert_no_errors_logged();
        assert!(!home.data().join("running.json").exists(), "{backend}, {name}");
        assert_eq!(files(&home.data(), ".data"), data_files, "{backend}, {name}: data files changed");

        pipe.restore();
        let node = home.start();
        check_all(&node);
        node.stop();
        home.run(&["admin", "backend", "verify"]).ok();
        home.assert_no_errors_logged();
    }
}

#[test]
fn a_signal_at_any_moment_of_a_start_ends_it_in_order() {
    const MOMENTS: u32 = 6;
    for (backend, signal) in [("bitcask", Signal::TERM), ("leveled", Signal::INT), ("leveldb", Signal::TERM)] {
        let home = with_hints(backend);
        let began = Instant::now();
        home.start().stop();
        let whole = began.elapsed();
        for moment in 0..MOMENTS {
            let _ = fs::remove_dir_all(home.data().join("log"));
            let start = Start::of(&home);
            // The node opens its log after it has taken over the signals.
            wait_until("there is a log", || home.data().join("log/console.log").exists());
            pause(whole * moment / MOMENTS / 2);
            start.signal(signal);
            assert_eq!(start.wait(), Some(0), "{backend}, moment {moment}");
            assert_logged(&home, if signal == Signal::TERM { " on SIGTERM" } else { " on SIGINT" });
            home.assert_no_errors_logged();
        }
        let node = home.start();
        check_all(&node);
        node.stop();
        home.run(&["admin", "backend", "verify"]).ok();
        home.assert_no_errors_logged();
    }
}

#[test]
fn a_signal_before_the_configuration_is_read_is_not_lost() {
    for (signal, words) in [(Signal::TERM, " on SIGTERM"), (Signal::INT, " on SIGINT")] {
        let home = Home::new("storage_backend = bitcask");
        let pipe = Pipe::in_place_of(&home.path().join("ombak.conf"));
        let start = Start::of(&home);
        let mut writer = pipe.wait_for_reader();
        start.signal(signal);
        writer.write_all(&pipe.content).expect("writes");
        drop(writer);
        assert_eq!(start.wait(), Some(0), "{words}");
        assert_logged(&home, words);
        home.assert_no_errors_logged();
        // If the signal was seen before the stores were opened, the start created no other files.
        if home.logged("INFO").iter().any(|line| line.contains("while the node was starting")) {
            for entry in fs::read_dir(home.data()).expect("lists") {
                let name = entry.expect("an entry").file_name();
                assert!(BEFORE_STORES.iter().any(|allowed| name == *allowed), "{name:?} was made");
            }
        }
        pipe.restore();
        home.start().stop();
    }
}

#[test]
fn a_hangup_before_the_log_is_open_does_not_end_the_start() {
    let home = Home::new("storage_backend = memory");
    let pipe = Pipe::in_place_of(&home.path().join("ombak.conf"));
    let start = Start::of(&home);
    let mut writer = pipe.wait_for_reader();
    start.signal(Signal::HUP);
    writer.write_all(&pipe.content).expect("writes");
    drop(writer);
    wait_until("the node is ready", || home.data().join("running.json").exists());
    start.signal(Signal::TERM);
    assert_eq!(start.wait(), Some(0));
    assert_logged(&home, "stopped");
}

/// The configuration is on a disk that does not respond. The process ends nevertheless, after the
/// time that a stop may take.
#[test]
fn a_start_that_hangs_before_it_has_a_configuration_is_ended_by_a_signal() {
    let home = Home::new("storage_backend = memory");
    let pipe = Pipe::in_place_of(&home.path().join("ombak.conf"));
    let errors = home.path().join("errors");
    let mut command = home.start_command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&errors).expect("creates"));
    let start = Start { child: command.spawn().expect("spawns") };
    let _writer = pipe.wait_for_reader();
    start.signal(Signal::TERM);
    assert_eq!(start.wait(), Some(1));
    let said = fs::read_to_string(&errors).expect("reads");
    assert!(said.contains("the node has not stopped within 20 s"), "{said}");
    assert!(!home.data().exists());
}
