//! The HTTP protocol itself: the spelling of names, the ends of requests and answers, and refusals.

use super::{Answer, DEADLINE, Server};
use crate::JobSwitches;
use crate::http::HttpLimits;
use bytes::Bytes;
use ombak_types::{Bucket, IndexEntry, Object, Sibling};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// The statuses of several answers on one connection, which the server closes at the end.
fn statuses(answers: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(answers).into_owned();
    text.match_indices("HTTP/1.").map(|(at, _)| text[at + 9..at + 12].to_owned()).collect()
}

#[tokio::test]
async fn names_of_headers_are_spelled_as_riak_spells_them() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    let headers = "X-RIAK-INDEX-Name_bin: a\r\nx-riak-meta-two-words: w\r\nX-Riak-Index-n_int: 1\r\n";
    assert_eq!(server.put(path, headers, "v").await.status, 204);
    let got = server.get(path).await;
    let mut names: Vec<&str> = got.head.lines().skip(1).filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    names.sort_unstable();
    let expected = [
        "Connection",
        "Content-Length",
        "Content-Type",
        "Date",
        "ETag",
        "Last-Modified",
        "Link",
        "Server",
        "Vary",
        "X-Riak-Meta-Two-Words",
        "X-Riak-Vclock",
        "x-riak-index-n_int",
        "x-riak-index-name_bin",
    ];
    assert_eq!(names, expected);
    let part = server.request("GET", path, "Range: bytes=0-0\r\n", "").await;
    assert!(part.head.contains("\r\nContent-Range: bytes 0-0/1\r\nAccept-Ranges: bytes\r\n"), "{}", part.head);
    let made = server.request("POST", "/buckets/b/keys", "Content-Type: a/b\r\n", "v").await;
    assert!(made.head.contains("\r\nLocation: /buckets/b/keys/"), "{}", made.head);
    let refused = server.request("POST", "/ping", "", "").await;
    assert!(refused.head.contains("\r\nAllow: GET, HEAD"), "{}", refused.head);
}

/// An object with more header lines than a header map can hold.
#[tokio::test]
async fn an_object_of_very_many_pairs_is_answered() {
    const PAIRS: usize = 40_000;
    let server = Server::start().await;
    let mut sibling = Sibling::new("v");
    let pair = |n: usize| (Bytes::from(format!("X-Riak-Meta-{n}")), Bytes::from(n.to_string()));
    sibling.meta.user_meta = (0..PAIRS).map(pair).collect();
    sibling.meta.indexes = vec![IndexEntry::parse(b"name_bin", b"x").expect("an entry")];
    let request = ombak_kv::PutRequest {
        bucket: Bucket::untyped("b"),
        key: Some("k".into()),
        object: Object::new(sibling),
        options: Default::default(),
    };
    server.kv.put(request).await.expect("stored");
    let got = server.get("/buckets/b/keys/k").await;
    assert_eq!((got.status, got.text().as_str()), (200, "v"));
    assert_eq!(got.head.matches("\r\nX-Riak-Meta-").count(), PAIRS);
    assert!(
        got.head.contains("\r\nX-Riak-Meta-39999: 39999\r\n") && got.head.contains("\r\nx-riak-index-name_bin: x\r\n")
    );
}

#[tokio::test]
async fn a_request_with_two_meanings_is_refused_and_ends_the_connection() {
    let server = Server::start().await;
    let start = "PUT /buckets/b/keys/k HTTP/1.1\r\nContent-Type: a/b\r\n";
    let smuggled = "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n";
    for (lines, body, status) in [
        ("Host: x\r\nHost: y\r\nContent-Length: 0\r\n", "", "400"),
        ("Host: x\r\nHost: x\r\nContent-Length: 0\r\n", "", "400"),
        ("Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", "400"),
        ("Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n", "400"),
        ("Host: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n", "v", "400"),
        ("Host: x\r\nTransfer-Encoding: gzip\r\n", "", "400"),
        ("Host: x\r\nTransfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", "501"),
        ("Host: x\r\nTransfer-Encoding: chunked\r\n", "0\n\n", "400"),
        ("Host: x\r\nTransfer-Encoding: chunked\r\n", "1\r\nvv\r\n0\r\n\r\n", "400"),
        ("Host: x\r\nContent-Length : 1\r\n", "v", "400"),
        ("Host: x\r\n folded\r\nContent-Length: 1\r\n", "v", "400"),
    ] {
        let answers = server.exchange(format!("{start}{lines}\r\n{body}{smuggled}").as_bytes()).await;
        assert_eq!(statuses(&answers), [status], "{lines}");
    }
    assert_eq!(server.get("/buckets/b/keys/k").await.status, 404);
}

#[tokio::test]
async fn a_chunk_beyond_the_limit_is_refused_before_it_comes() {
    let limits = HttpLimits { body_bytes_max: 1000, ..HttpLimits::default() };
    let server = Server::with(limits, JobSwitches::default()).await;
    let start = "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n";
    for size in ["3e9", "7fffffffffffffff", "ffffffffffffffffff", "3e8\r\n", "1\r\nv\r\n3e8"] {
        let mut stream = server.connect().await;
        stream.write_all(format!("{start}{size}").as_bytes()).await.expect("sent");
        let mut first = [0; 12];
        let answered = timeout(DEADLINE, stream.read_exact(&mut first));
        if size == "3e8\r\n" {
            // This much is accepted, so the body continues.
            stream.write_all(format!("{}\r\n0\r\n\r\n", "x".repeat(1000)).as_bytes()).await.expect("sent");
            let mut first = [0; 12];
            timeout(DEADLINE, stream.read_exact(&mut first)).await.expect("an answer").expect("read");
            assert_eq!(&first, b"HTTP/1.1 204");
            continue;
        }
        answered.await.expect("an answer before the chunk").expect("read");
        assert_eq!(&first, b"HTTP/1.1 413", "{size}");
    }
}

#[tokio::test]
pub(super) async fn bodies_may_come_in_pieces() {
    let server = Server::start().await;
    let head = "PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\n";
    let value = "0123456789".repeat(20_000);
    let chunks: String = value
        .as_bytes()
        .chunks(30_000)
        .map(|c| format!("{:X}\r\n{}\r\n", c.len(), String::from_utf8_lossy(c)))
        .collect();
    let bodies = [
        format!("{head}Content-Length: {}\r\n\r\n{value}", value.len()),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\nTrailer: t\r\n\r\n"),
    ];
    for request in bodies {
        server.request("DELETE", "/buckets/b/keys/k", "", "").await;
        let mut stream = server.connect().await;
        for piece in request.as_bytes().chunks(7001) {
            stream.write_all(piece).await.expect("sent");
            stream.flush().await.expect("sent");
        }
        stream.write_all(b"GET /buckets/b/keys/k HTTP/1.1\r\nConnection: close\r\n\r\n").await.expect("sent");
        let mut answers = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut answers)).await.expect("an end").expect("read");
        assert_eq!(statuses(&answers), ["204", "200"]);
        assert!(answers.ends_with(value.as_bytes()));
    }
}

#[tokio::test]
async fn many_requests_that_were_sent_ahead_are_answered_in_order() {
    let server = Server::start().await;
    let mut requests = String::new();
    for n in 0..200 {
        let (path, body) = (format!("/buckets/b/keys/{n}"), "v".repeat(n * 100));
        let length = body.len();
        requests += &format!("PUT {path} HTTP/1.1\r\nContent-Type: a/b\r\nContent-Length: {length}\r\n\r\n{body}");
        requests += &format!("GET {path} HTTP/1.1\r\n\r\n");
    }
    requests += "GET /none HTTP/1.1\r\nConnection: close\r\n\r\n";
    let mut answers = server.exchange(requests.as_bytes()).await;
    for n in 0..200 {
        for (status, length) in [(204, 0), (200, n * 100)] {
            let end = answers.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
            let answer = Answer::parse(&answers[..end]);
            assert_eq!(answer.status, status);
            if status == 200 {
                assert_eq!(answer.header("content-length"), Some(&*length.to_string()));
            }
            answers.drain(..end + length);
        }
    }
    assert_eq!(statuses(&answers), ["404"]);
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let server = Server::start().await;
    server.put("/buckets/b/keys/k", "", "value").await;
    let heads = ["/buckets/b/keys/k", "/buckets/b/keys?keys=stream", "/nonesuch", "/ping"];
    let mut requests: String = heads.iter().map(|path| format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
    requests += "HEAD /buckets/b/keys/k HTTP/1.1\r\nConnection: close\r\n\r\n";
    let answers = server.exchange(requests.as_bytes()).await;
    assert_eq!(statuses(&answers), ["200", "200", "404", "200", "200"]);
    let text = String::from_utf8_lossy(&answers).into_owned();
    assert_eq!(text.matches("Content-Length: 5\r\n").count(), 2);
    assert!(text.ends_with("\r\n\r\n") && text.matches("\r\n\r\n").count() == 5, "{text}");
}

#[tokio::test]
pub(super) async fn older_clients_are_spoken_to_in_their_version() {
    let server = Server::start().await;
    server.put("/buckets/b/keys/k", "", "value").await;
    let closed = server.exchange(b"GET /buckets/b/keys/k HTTP/1.0\r\n\r\n").await;
    assert!(closed.starts_with(b"HTTP/1.0 200 OK\r\n") && closed.ends_with(b"value"));
    let kept = server.exchange(b"GET /ping HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /ping HTTP/1.0\r\n\r\n").await;
    assert_eq!(statuses(&kept), ["200", "200"]);
    assert_eq!(String::from_utf8_lossy(&kept).matches("Connection: keep-alive\r\n").count(), 1);
    // For HTTP/1.0 a stream has no chunks, so it ends with the connection.
    let stream = server.exchange(b"GET /buckets/b/keys?keys=stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    assert!(stream.ends_with(b"\r\n\r\n{\"keys\":[\"k\"]}{\"keys\":[]}"), "{}", String::from_utf8_lossy(&stream));
}

#[tokio::test]
async fn a_client_that_is_refused_gets_to_read_why() {
    let limits = HttpLimits { body_bytes_max: 1000, ..HttpLimits::default() };
    let server = Server::with(limits, JobSwitches::default()).await;
    // When the answer is written, much more data is in flight than the buffers of the sockets can
    // hold.
    let refused = server.put("/buckets/b/keys/k", "", &"x".repeat(300_000)).await;
    assert_eq!(refused.status, 413);
    let asked =
        "PUT /buckets/b/keys/k HTTP/1.1\r\nContent-Type: a/b\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n";
    let refused = server.exchange(asked.as_bytes()).await;
    assert_eq!(statuses(&refused), ["413"]);
}

#[tokio::test]
pub(super) async fn a_refused_head_says_why() {
    let server = Server::start().await;
    let many = "A: b\r\n".repeat(2000);
    let long = "x".repeat(70_000);
    for (request, words) in [
        ("GET /ping HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n".to_owned(), "in more than one way which host"),
        (format!("GET /ping HTTP/1.1\r\n{many}\r\n"), "1024 header lines"),
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), "address in the request is too long"),
        ("PUT /x HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_owned(), "transfer coding"),
    ] {
        let answer = server.exchange(request.as_bytes()).await;
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(body.contains(words) && body.ends_with('\n'), "{text}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{text}");
        assert!(head.contains("\r\nContent-Type: text/plain\r\n"), "{text}");
    }
}
