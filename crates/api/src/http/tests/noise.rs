//! Arbitrary bytes: the server answers or closes the connection, and then serves the next client.

use super::Server;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Bytes that resemble requests in places.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => proptest::sample::select(&[
            "GET ", "PUT ", "POST ", "DELETE ", "HEAD ", "TRACE ", " HTTP/1.1\r\n", " HTTP/1.0\r\n", "\r\n", "\r\n\r\n",
            "/buckets/b/keys/", "/types/t/buckets/b/keys/k", "/riak/b/k", "/buckets/b/props", "/b,_,1", "?keys=stream",
            "?buckets=true&timeout=", "?r=", "&vtag=%", "%00", "Host: x\r\n", "Content-Type: text/plain\r\n",
            "Content-Length: 3\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n",
            "X-Riak-Vclock: TwEA\r\n", "X-Riak-Index-a_int: 1, x\r\n", "Link: </buckets/b/keys/k>; riaktag=\"", "\"\r\n",
            "Range: bytes=1-\r\n", "If-None-Match: *\r\n", "Accept: multipart/mixed\r\n", "3\r\nabc\r\n0\r\n\r\n",
        ][..]).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

#[test]
fn any_bytes_get_an_answer_or_a_closed_connection() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = runtime.block_on(Server::start());
    server.create_type("t");
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&noise(), |bytes| {
        runtime.block_on(async {
            let answer = server.shut_exchange(&bytes).await;
            prop_assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
            Ok(())
        })
    });
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(runtime.block_on(server.get("/ping")).status, 200);
    assert!(!server.task.is_finished());
}
