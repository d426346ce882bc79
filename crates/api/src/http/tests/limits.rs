//! Tests of the limits that protect the server from its clients.

use super::{DEADLINE, Server};
use crate::JobSwitches;
use crate::http::HttpLimits;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

async fn limited(limits: HttpLimits) -> Server {
    Server::with(limits, JobSwitches::default()).await
}

fn starts_with(answer: &[u8], status: &str) -> bool {
    answer.starts_with(format!("HTTP/1.1 {status}").as_bytes())
}

#[tokio::test]
pub(super) async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let put = "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\r\nv";
    let get = "GET /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\n\r\n";
    let end = "GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let text = String::from_utf8_lossy(&server.exchange(format!("{put}{get}{end}").as_bytes()).await).into_owned();
    let statuses: Vec<&str> = text.match_indices("HTTP/1.1 ").map(|(at, _)| &text[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["204", "200", "200"], "{text}");
    assert!(text.ends_with("OK"), "{text}");
}

#[tokio::test]
pub(super) async fn a_client_that_sends_no_more_gets_its_answer() {
    let server = Server::start().await;
    let answer = server.shut_exchange(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(starts_with(&answer, "200") && answer.ends_with(b"OK"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
pub(super) async fn a_client_may_ask_before_it_sends() {
    let server = Server::start().await;
    let mut stream = server.connect().await;
    let head = "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\
                Expect: 100-continue\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut go = [0; 25];
    timeout(DEADLINE, stream.read_exact(&mut go)).await.expect("an answer").expect("read");
    assert_eq!(&go, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"v").await.expect("sent");
    let mut rest = Vec::new();
    timeout(DEADLINE, stream.read_to_end(&mut rest)).await.expect("an end").expect("read");
    assert!(starts_with(&rest, "204"));
}

#[tokio::test]
pub(super) async fn large_heads_and_bodies_are_refused() {
    let limits = HttpLimits { head_bytes_max: 8192, headers_max: 20, body_bytes_max: 1000, ..HttpLimits::default() };
    let server = limited(limits).await;
    let long = format!("GET /ping HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(20_000));
    let answer = server.exchange(long.as_bytes()).await;
    assert!(starts_with(&answer, "431"), "{}", String::from_utf8_lossy(&answer));
    let many = format!("GET /ping HTTP/1.1\r\n{}\r\n", "X-Many: 1\r\n".repeat(30));
    assert!(starts_with(&server.exchange(many.as_bytes()).await, "431"));
    assert_eq!(server.put("/buckets/b/keys/k", "", &"x".repeat(1001)).await.status, 413);
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let chunked = format!(
        "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n\
         {chunk}{chunk}0\r\n\r\n"
    );
    assert!(starts_with(&server.exchange(chunked.as_bytes()).await, "413"));
    assert_eq!(server.put("/buckets/b/keys/k", "", &"x".repeat(1000)).await.status, 204);
}

#[tokio::test]
pub(super) async fn slow_clients_are_cut_off() {
    let short = Duration::from_millis(100);
    let limits = HttpLimits { head_timeout: short, body_pause_timeout: short, ..HttpLimits::default() };
    let server = limited(limits).await;
    // Neither request is ever completed. `exchange` returns because the server closes the
    // connection.
    let head = server.exchange(b"GET /ping HTTP/1.1\r\nHost:").await;
    assert!(head.is_empty() || starts_with(&head, "408"), "{}", String::from_utf8_lossy(&head));
    let body = "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Length: 9\r\n\r\nv";
    assert!(starts_with(&server.exchange(body.as_bytes()).await, "408"));
    assert!(server.exchange(b"").await.is_empty());
}

#[tokio::test]
async fn connections_beyond_the_limit_are_turned_away() {
    let server = limited(HttpLimits { connections_max: 1, ..HttpLimits::default() }).await;
    let mut first = server.connect().await;
    first.write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
    let mut start = [0; 12];
    timeout(DEADLINE, first.read_exact(&mut start)).await.expect("an answer").expect("read");
    assert_eq!(&start, b"HTTP/1.1 200");
    assert!(starts_with(&server.exchange(b"").await, "503"));
    drop(first);
    // The slot is free once the server has noticed the end of the first connection.
    let freed = async {
        while server.get("/ping").await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, freed).await.expect("the place is given back");
}

#[tokio::test]
async fn a_stopping_server_finishes_what_it_has_begun() {
    let server = Server::start().await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
    let mut start = [0; 12];
    timeout(DEADLINE, idle.read_exact(&mut start)).await.expect("an answer").expect("read");
    let mut busy = server.connect().await;
    let put = "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\
               Expect: 100-continue\r\n\r\n";
    busy.write_all(put.as_bytes()).await.expect("sent");
    // The answer to `Expect` shows that the request has begun.
    let mut go = [0; 25];
    timeout(DEADLINE, busy.read_exact(&mut go)).await.expect("an answer").expect("read");
    server.shutdown.send(true).expect("the server listens");
    let mut rest = Vec::new();
    timeout(DEADLINE, idle.read_to_end(&mut rest)).await.expect("idle connections end").expect("read");
    busy.write_all(b"vw").await.expect("sent");
    let mut answer = Vec::new();
    timeout(DEADLINE, busy.read_to_end(&mut answer)).await.expect("an end").expect("read");
    assert!(starts_with(&answer, "204"), "{}", String::from_utf8_lossy(&answer));
    timeout(DEADLINE, server.task).await.expect("the server ends").expect("no panic");
}

#[tokio::test]
pub(super) async fn a_stopping_server_does_not_wait_for_a_client_that_takes_nothing() {
    let patient = Duration::from_secs(600);
    let server = limited(HttpLimits { write_timeout: patient, drain_timeout: patient, ..HttpLimits::default() }).await;
    let put = "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nConnection: close\r\n\
               Content-Length: 1048576\r\n\r\n";
    let put = [put.as_bytes(), &[b'v'; 1 << 20]].concat();
    assert!(starts_with(&server.exchange(&put).await, "204"));
    let mut client = server.connect().await;
    client.write_all(&b"GET /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\n\r\n".repeat(200)).await.expect("sent");
    timeout(DEADLINE, client.readable()).await.expect("the answers begin").expect("readable");
    server.shutdown.send(true).expect("the server listens");
    timeout(DEADLINE, server.task).await.expect("the server ends in time").expect("no panic");
}

#[tokio::test]
async fn a_client_that_sends_many_requests_at_once_does_not_delay_the_others_of_its_thread() {
    const REQUESTS: usize = 2_000;
    let server = Server::start().await;
    let get = b"GET /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut greedy = server.send_on_this_thread(&get.repeat(REQUESTS)).await;
    let mut modest = server.send_on_this_thread(get).await;
    let mut start = [0; 12];
    timeout(DEADLINE, modest.read_exact(&mut start)).await.expect("an answer").expect("read");
    let answered = server.stat("node_gets_total");
    assert!(answered < REQUESTS as u64, "all {answered} requests of the other connection came first");
    greedy.shutdown().await.expect("closed");
    let mut answers = Vec::new();
    timeout(DEADLINE, greedy.read_to_end(&mut answers)).await.expect("an end").expect("read");
    assert_eq!(answers.windows(9).filter(|start| start == b"HTTP/1.1 ").count(), REQUESTS);
}
