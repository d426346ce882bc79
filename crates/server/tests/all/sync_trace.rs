//! The system calls of a write. If a backend is configured to sync each write, the data is synced
//! before the client gets its answer.

use crate::support::{Home, Node};
use ombak_client::Client;
use ombak_client::messages::RpbContent;
use ombak_types::Bucket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WRITES: usize = 10;
/// The write before them, for whose file a background thread soon makes the only sync that a
/// backend without syncs ever makes.
const FIRST: usize = WRITES;
/// A reply RpbPutResp without a body, as strace prints it.
const PUT_REPLY: &str = r#""\0\0\0\1\f""#;

/// Whether this machine allows a program to be traced.
fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-e", "trace=none", "true"]).stderr(Stdio::null()).status();
    let able = traced.is_ok_and(|status| status.success());
    if !able {
        println!("skipped: strace is not installed, or tracing is not allowed here");
    }
    able
}

/// The lines of a trace. For each write they show when it reached the file, when a sync ended, and
/// when the client got its answer.
struct Trace {
    lines: Vec<String>,
}

impl Trace {
    fn record(settings: &str) -> Self {
        let home = Home::new(settings);
        let file = home.path().join("trace");
        let node = Node::start(traced(&home, &file), home.data());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            let mut client = Client::connect(&node.pb).await.expect("connects");
            put(&mut client, FIRST).await;
            wait_for_sync_of_first(&file).await;
            for n in 0..WRITES {
                put(&mut client, n).await;
            }
        });
        home.run(&["stop"]).ok();
        assert_eq!(node.wait(), Some(0));
        Self::read(&file)
    }

    fn read(file: &Path) -> Self {
        Self { lines: std::fs::read_to_string(file).expect("trace").lines().map(str::to_owned).collect() }
    }

    fn position(&self, from: usize, matches: impl Fn(&str) -> bool) -> Option<usize> {
        self.lines.iter().skip(from).position(|line| matches(line)).map(|at| at + from)
    }

    /// Whether a sync ended between the write to the file and the reply.
    fn synced_before_reply(&self, n: usize) -> bool {
        let written = self.written(n).unwrap_or_else(|| panic!("{} was never written", marker(n)));
        let replied = self.position(written, |line| line.contains(PUT_REPLY)).expect("a reply");
        self.synced_after(written).is_some_and(|synced| synced < replied)
    }

    fn written(&self, n: usize) -> Option<usize> {
        self.position(0, |line| line.contains(&marker(n)) && line.contains("write"))
    }

    fn synced_after(&self, line: usize) -> Option<usize> {
        let sync_ended =
            |line: &str| (line.contains("fdatasync") || line.contains("fsync")) && line.trim_end().ends_with("= 0");
        self.position(line, sync_ended)
    }
}

async fn put(client: &mut Client, n: usize) {
    let content = RpbContent { value: marker(n).into(), ..RpbContent::default() };
    client.put(&Bucket::untyped("b"), Some(marker(n).as_bytes()), content, None).await.expect("puts");
}

async fn wait_for_sync_of_first(file: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let trace = Trace::read(file);
        if trace.written(FIRST).and_then(|written| trace.synced_after(written)).is_some() {
            return;
        }
        assert!(Instant::now() < deadline, "the file of the first write is never synced");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn marker(n: usize) -> String {
    format!("trace-marker-{n}-end")
}

fn traced(home: &Home, file: &Path) -> Command {
    let plain = home.start_command();
    let mut command = Command::new("strace");
    command
        .args(["-f", "-s", "4096", "-e", "trace=write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fdatasync,fsync"])
        .arg("-o")
        .arg(file)
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(home.path());
    for (name, value) in plain.get_envs() {
        if value.is_none() {
            command.env_remove(name);
        }
    }
    command
}

/// Checks for each of the settings that every write is synced before its reply, or that hardly any
/// is: the background's sync of a new file consists of several calls, which can fall on a write.
fn check_syncs(settings: [&str; 3], is_synced: bool) {
    if !can_trace() {
        return;
    }
    for settings in settings {
        let trace = Trace::record(settings);
        let synced = (0..WRITES).filter(|&n| trace.synced_before_reply(n)).count();
        let is_right = if is_synced { synced == WRITES } else { synced <= WRITES / 2 };
        assert!(is_right, "{settings}: {synced} of {WRITES} writes were synced before their reply");
    }
}

#[test]
fn the_disk_has_it_before_the_client_is_told() {
    let settings = [
        "bitcask.sync.strategy = o_sync",
        "storage_backend = leveled\nleveled.sync_strategy = sync",
        "storage_backend = leveldb\nleveldb.sync_on_write = on\nleveldb.maximum_memory = 64MB",
    ];
    check_syncs(settings, true);
}

/// This shows that the check can fail.
#[test]
fn without_syncs_the_trace_shows_hardly_any() {
    let settings = [
        "bitcask.sync.strategy = none",
        "storage_backend = leveled\nleveled.sync_strategy = none",
        "storage_backend = leveldb\nleveldb.sync_on_write = off\nleveldb.maximum_memory = 64MB",
    ];
    check_syncs(settings, false);
}
