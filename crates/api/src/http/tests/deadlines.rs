//! Writes that time out. After the answer "timeout" the write is never executed. The next request
//! on the same connection is executed.

use super::{DEADLINE, Server};
use crate::http::HttpLimits;
use crate::{JobSwitches, MemoryLimits};
use ombak_kv::KvConfig;
use ombak_storage::fs::sim::{Call, FaultyFs};
use ombak_storage::{BitcaskFactory, JournalConfig};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// The cause that delays the put until it times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldUpBy {
    /// The put's own read of the existing value: the disk does not respond.
    ItsRead,
    /// Another request, whose read occupies the only I/O thread.
    TheQueue,
}

/// Starts a server over stores on a simulated disk that the test can stop.
async fn over_a_disk(fs: &Arc<FaultyFs>, io_threads: usize) -> Server {
    let dir = TempDir::new().expect("a directory");
    let stores = BitcaskFactory::new(fs.clone(), dir.path().join("bitcask"), JournalConfig::default()).expect("stores");
    let mut config = KvConfig::new("ombak@127.0.0.1", dir.path(), Arc::new(stores));
    (config.ring_size, config.io_threads) = (8, io_threads);
    config.default_props.insert("allow_mult".into(), true.into());
    Server::over(config, dir, MemoryLimits::default(), HttpLimits::default(), JobSwitches::default()).await
}

fn put_bytes(path: &str, value: &str) -> String {
    let length = value.len();
    format!("PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{value}")
}

/// Reads until `is_there` returns true for everything that has arrived, and returns that text.
async fn read_until(stream: &mut TcpStream, is_there: impl Fn(&str) -> bool) -> String {
    let mut read = Vec::new();
    let all = timeout(DEADLINE, async {
        while !is_there(&String::from_utf8_lossy(&read)) {
            assert!(stream.read_buf(&mut read).await.expect("reads") > 0, "the connection ended");
        }
    });
    let in_time = all.await.is_ok();
    let text = String::from_utf8_lossy(&read).into_owned();
    assert!(in_time, "what came: {text:?}");
    text
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn a_put_that_timed_out(held_up_by: HeldUpBy) {
    let fs = FaultyFs::new(1);
    let server = over_a_disk(&fs, if held_up_by == HeldUpBy::TheQueue { 1 } else { 4 }).await;
    for key in ["k", "busy"] {
        assert_eq!(server.put(&format!("/buckets/b/keys/{key}"), "", "old").await.status, 204);
    }
    let keys = || server.kv.vnode_status().iter().map(|(_, status)| status.keys).sum::<u64>();
    assert_eq!(keys(), 2);

    // A put without a vector clock keeps the existing value as a sibling, so the put has to read
    // that value.
    fs.set_nothing_is_cached(true);
    fs.hold(Call::Read);
    let mut busy = server.connect().await;
    if held_up_by == HeldUpBy::TheQueue {
        busy.write_all(b"GET /buckets/b/keys/busy HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
        let held = fs.clone();
        tokio::task::spawn_blocking(move || held.wait_for_held(Call::Read)).await.expect("no panic");
    }
    let mut stream = server.connect().await;
    let late = put_bytes("/buckets/b/keys/k?timeout=50", "late");
    let next = put_bytes("/buckets/b/keys/k", "next");
    stream.write_all(format!("{late}{next}").as_bytes()).await.expect("sent");
    let refusal = read_until(&mut stream, |text| text.contains("timed out")).await;
    assert!(refusal.starts_with("HTTP/1.1 503"), "{held_up_by:?}: {refusal}");

    // Requests for other keys are served. The next request for the same key is not executed before
    // the reads continue.
    assert_eq!(server.put("/buckets/b/keys/other", "", "v").await.status, 204, "{held_up_by:?}");
    assert_eq!(keys(), 3);
    fs.release(Call::Read);
    let answer = read_until(&mut stream, |text| text.contains("\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{held_up_by:?}: {answer}");
    if held_up_by == HeldUpBy::TheQueue {
        read_until(&mut busy, |text| text.ends_with("old")).await;
    }
    // The put that timed out has left the queue once no put is active.
    until("no put is left", || server.stat("node_put_fsm_active") == 0).await;

    let siblings = server.request("GET", "/buckets/b/keys/k", "Accept: multipart/mixed\r\n", "").await;
    assert_eq!(siblings.status, 300, "{}", siblings.text());
    let text = siblings.text();
    assert!(text.contains("\r\nold\r\n") && text.contains("\r\nnext\r\n") && !text.contains("late"), "{text}");
}

#[tokio::test]
async fn a_put_that_timed_out_in_the_store_is_never_executed_and_what_follows_it_is() {
    a_put_that_timed_out(HeldUpBy::ItsRead).await;
}

#[tokio::test]
async fn a_put_that_timed_out_in_the_queue_is_never_executed_and_what_follows_it_is() {
    a_put_that_timed_out(HeldUpBy::TheQueue).await;
}

/// A put times out, and then the client deletes the key. An earlier version brought the deleted key
/// back in this case.
#[tokio::test]
async fn a_key_stays_deleted_after_a_put_of_it_timed_out() {
    let fs = FaultyFs::new(1);
    let server = over_a_disk(&fs, 1).await;
    for key in ["k", "busy"] {
        assert_eq!(server.put(&format!("/buckets/b/keys/{key}"), "", "old").await.status, 204);
    }
    fs.set_nothing_is_cached(true);
    fs.hold(Call::Read);
    let mut busy = server.connect().await;
    busy.write_all(b"GET /buckets/b/keys/busy HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
    let held = fs.clone();
    tokio::task::spawn_blocking(move || held.wait_for_held(Call::Read)).await.expect("no panic");
    let mut stream = server.connect().await;
    let late = put_bytes("/buckets/b/keys/k?timeout=50", "late");
    let delete = "DELETE /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(format!("{late}{delete}").as_bytes()).await.expect("sent");
    // The vector clock of the deleted value is in memory, so the delete is executed while the put
    // is still in the queue.
    let answers = read_until(&mut stream, |text| text.contains("HTTP/1.1 204 ") && text.ends_with("\r\n\r\n")).await;
    assert!(answers.starts_with("HTTP/1.1 503") && answers.contains("timed out"), "{answers}");
    fs.release(Call::Read);
    read_until(&mut busy, |text| text.ends_with("old")).await;
    until("no put is left", || server.stat("node_put_fsm_active") == 0).await;
    assert_eq!(server.get("/buckets/b/keys/k").await.status, 404);
}
