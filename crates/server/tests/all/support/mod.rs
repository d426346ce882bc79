//! A real node for tests: the program itself, in a directory of its own, with ports that the
//! operating system chooses.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a test waits for anything before it fails.
pub const DEADLINE: Duration = Duration::from_secs(30);

const SETTINGS: &str =
    "listener.http.internal = 127.0.0.1:0\nlistener.protobuf.internal = 127.0.0.1:0\nring_size = 8\n";

/// A command that runs the program without the settings in the caller's environment.
pub fn ombak() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ombak"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OMBAK_") {
            command.env_remove(name);
        }
    }
    command
}

/// The output of the program.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Said {
    /// The standard output, if the program succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.out, self.err);
        self.out
    }

    /// The standard error, if the program failed with this exit code.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        self.err
    }
}

/// Runs the program in a directory.
pub fn run(dir: &Path, args: &[impl AsRef<OsStr>]) -> Said {
    ombak().current_dir(dir).args(args).stdin(Stdio::null()).output().expect("runs").into()
}

/// A directory with a configuration.
pub struct Home {
    pub dir: tempfile::TempDir,
}

impl Home {
    /// Creates a directory whose configuration has these settings, in addition to the ports and the
    /// ring size.
    pub fn new(settings: &str) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        std::fs::write(dir.path().join("ombak.conf"), format!("{SETTINGS}{settings}\n")).expect("write");
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Runs the program in this directory.
    pub fn run(&self, args: &[impl AsRef<OsStr>]) -> Said {
        run(self.path(), args)
    }

    /// A command that starts a node in this directory.
    pub fn start_command(&self) -> Command {
        let mut command = ombak();
        command.current_dir(self.path()).arg("start");
        command
    }

    /// Starts a node in this directory and waits until it is ready.
    pub fn start(&self) -> Node {
        Node::start(self.start_command(), self.data())
    }

    /// The lines of the log that have this level.
    pub fn logged(&self, level: &str) -> Vec<String> {
        let log = std::fs::read_to_string(self.data().join("log/console.log")).unwrap_or_default();
        let of_level = |line: &&str| {
            serde_json::from_str::<serde_json::Value>(line).expect("a log line is JSON")["level"] == level
        };
        log.lines().filter(of_level).map(str::to_owned).collect()
    }

    /// Fails if the log has errors. Only tests that expect errors do not call this.
    #[track_caller]
    pub fn assert_no_errors_logged(&self) {
        assert_eq!(self.logged("ERROR"), Vec::<String>::new());
    }
}

/// A running node. It is killed when this value is dropped.
pub struct Node {
    pub child: Child,
    pub data: PathBuf,
    pub ready_line: String,
    pub http: String,
    pub pb: String,
}

impl Node {
    pub fn start(mut command: Command, data: PathBuf) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("spawns");
        let stdout = child.stdout.take().expect("piped");
        let (tell, told) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = tell.send(line);
        });
        let ready_line = told.recv_timeout(DEADLINE).unwrap_or_default();
        if !ready_line.contains(" is ready: ") {
            let _ = child.kill();
            let output = child.wait_with_output().expect("ended");
            panic!("the node did not start: {}", String::from_utf8_lossy(&output.stderr));
        }
        // The messages are also in the log. The pipe is drained so that the node never blocks on
        // it.
        if let Some(mut stderr) = child.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        }
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(data.join("running.json")).expect("running.json")).expect("JSON");
        let address = |name: &str| record[name][0].as_str().expect("an address").to_owned();
        Self { http: address("http"), pb: address("pb"), child, data, ready_line }
    }

    /// Kills the node with `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("kills");
        self.child.wait().expect("waits");
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).expect("pid")).expect("pid");
        rustix::process::kill_process(pid, signal).expect("signals");
    }

    /// Waits until the node has ended, and returns its exit code.
    pub fn wait(mut self) -> Option<i32> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the node does not stop");
            pause(Duration::from_millis(2));
        }
    }

    /// Stops the node with SIGTERM. It must exit with code 0.
    #[track_caller]
    pub fn stop(self) {
        self.signal(rustix::process::Signal::TERM);
        assert_eq!(self.wait(), Some(0));
    }
}

/// Pauses between two checks of a condition that has a deadline, or until a random moment.
#[expect(clippy::disallowed_methods, reason = "another process gives no other sign")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program with `input` on its standard input.
pub fn run_with_input(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = ombak()
        .current_dir(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spawns");
    child.stdin.take().expect("piped").write_all(input).expect("writes");
    child.wait_with_output().expect("ends")
}

/// Sends an HTTP request with a body. Returns the status line of the answer and everything after
/// it.
pub fn ask(node: &Node, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(&node.http).expect("connects");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
        node.http
    )
    .expect("writes");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("reads");
    String::from_utf8_lossy(&answer).into_owned()
}
