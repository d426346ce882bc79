//! A client that sends several requests at once and does not read the answers.

use super::{DEADLINE, Server};
use crate::bulk::{give_way, in_turns};
use ombak_runtime::Tenant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// The size of the buffers of the sockets, in bytes. The kernel takes some times as many.
const SOCKET_BYTES: u32 = 4 << 10;
/// The value of a key, in bytes. Four of them do not fit into the buffers of the sockets, and the
/// node collects them before it sends anything.
const VALUE_BYTES: usize = 14_000;

/// A listener, and a connection to it, whose buffers are small on both sides.
async fn with_small_buffers() -> (TcpListener, TcpStream) {
    let listener = TcpSocket::new_v4().expect("a socket");
    // Accepted connections have the buffers of their listener.
    listener.set_send_buffer_size(SOCKET_BYTES).expect("set");
    listener.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = listener.listen(1).expect("a listener");
    let client = TcpSocket::new_v4().expect("a socket");
    client.set_recv_buffer_size(SOCKET_BYTES).expect("set");
    let stream = client.connect(listener.local_addr().expect("an address")).await.expect("a connection");
    (listener, stream)
}

/// How many bytes such a connection takes from a sender while nobody reads.
async fn taken_unread() -> usize {
    let (listener, _client) = with_small_buffers().await;
    let (sender, _) = listener.accept().await.expect("the connection");
    sender.writable().await.expect("writable");
    let mut taken = 0;
    while let Ok(bytes) = sender.try_write(&[0; VALUE_BYTES]) {
        taken += bytes;
    }
    taken
}

/// Works in turns until it is aborted, and counts the turns.
async fn count_turns(turns: Arc<AtomicU64>) {
    loop {
        turns.fetch_add(1, Relaxed);
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(250) {}
        give_way().await;
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waits = async {
        while !is_so() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(DEADLINE, waits).await.unwrap_or_else(|_| panic!("{what}"));
}

/// A listing waits for its turn while the answers before it wait for their client. It takes the
/// turn that it is given, although the client reads nothing: nobody else on the thread would have
/// one again.
#[tokio::test]
async fn a_listing_behind_answers_that_nobody_reads_takes_its_turn() {
    assert!(taken_unread().await < 3 * VALUE_BYTES, "some of four answers wait for their client");
    let server = Server::start().await;
    assert_eq!(server.put("/buckets/b/keys/k", "", &"v".repeat(VALUE_BYTES)).await.status, 204);
    let turns = Arc::new(AtomicU64::new(0));
    // One of two always waits for the next turn, so the listing has to wait, too.
    let busy = [0, 1].map(|member| {
        let of = Tenant { group: u64::MAX, member };
        tokio::spawn(in_turns(of, count_turns(turns.clone())))
    });
    let get = b"GET /buckets/b/keys/k HTTP/1.1\r\nHost: h\r\n\r\n";
    let list = b"GET /buckets/b/keys?keys=true HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let (listener, client) = with_small_buffers().await;
    let mut client = server.send_and_serve(client, listener, &[&get.repeat(4)[..], list].concat()).await;
    until("the listing begins", || server.stat("list_fsm_create_total") == 1).await;
    until("the listing has its turns", || server.stat("list_fsm_active") == 0).await;
    let before = turns.load(Relaxed);
    until("others have turns", || turns.load(Relaxed) > before + 10).await;
    let mut answers = Vec::new();
    timeout(DEADLINE, client.read_to_end(&mut answers)).await.expect("an end").expect("read");
    let text = String::from_utf8_lossy(&answers);
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 5);
    assert!(text.contains("{\"keys\":[\"k\"]}"));
    busy.iter().for_each(|task| task.abort());
}
