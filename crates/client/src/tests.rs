//! Tests against a scripted server: the requests that are sent, the interpretation of answers, and
//! the reaction to a faulty server.

use crate::{Client, ClientError, code};
use bytes::Bytes;
use ombak_proto::messages::{RpbContent, RpbGetReq, RpbGetResp, RpbListKeysResp, RpbPutResp};
use ombak_proto::reply::{write_empty, write_error, write_message};
use ombak_types::Bucket;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server that reads `requests` frames, sends `answer`, and closes the connection. If `requests`
/// is 0, it answers at once and waits until the client has closed the connection. Returns the
/// message codes that it read.
async fn peer(requests: usize, answer: Vec<u8>) -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut codes = Vec::new();
        for _ in 0..requests {
            let length = stream.read_u32().await.unwrap();
            let mut frame = vec![0; length as usize];
            stream.read_exact(&mut frame).await.unwrap();
            codes.push(frame[0]);
        }
        stream.write_all(&answer).await.unwrap();
        if requests == 0 {
            stream.read_to_end(&mut Vec::new()).await.unwrap();
        }
        codes
    });
    (address, task)
}

fn content(value: &'static str) -> RpbContent {
    RpbContent { value: value.into(), ..Default::default() }
}

#[tokio::test]
async fn it_gets_puts_and_tells_what_the_server_said() {
    let mut answer = Vec::new();
    let reply = RpbGetResp { content: vec![content("v")], vclock: Some("c".into()), unchanged: None };
    write_message(code::GET_RESP, &reply, &mut answer);
    write_empty(code::GET_RESP, &mut answer);
    write_message(code::PUT_RESP, &RpbPutResp { key: Some("made".into()), ..Default::default() }, &mut answer);
    write_error("modified", &mut answer);
    write_empty(code::PING_RESP, &mut answer);
    let (address, server) = peer(0, answer).await;
    let mut client = Client::connect(address).await.unwrap();
    let bucket = Bucket::untyped("b");
    let found = client.get(&bucket, b"k").await.unwrap().unwrap();
    assert_eq!((&found.siblings[0].value[..], &found.vclock[..]), (&b"v"[..], &b"c"[..]));
    assert_eq!(client.get(&bucket, b"none").await.unwrap(), None);
    assert_eq!(client.put(&bucket, None, content("v"), None).await.unwrap(), Bytes::from("made"));
    let refused = client.delete(&bucket, b"k", None).await;
    assert!(matches!(&refused, Err(ClientError::Server(text)) if text == "modified"), "{refused:?}");
    client.ping().await.expect("a refusal leaves the connection usable");
    drop(client);
    server.await.unwrap();
}

#[tokio::test]
async fn many_requests_can_be_sent_before_the_first_answer_is_read() {
    let mut answer = Vec::new();
    for n in 0..3u8 {
        let vclock = Some(Bytes::copy_from_slice(&[n]));
        write_message(code::GET_RESP, &RpbGetResp { vclock, ..Default::default() }, &mut answer);
    }
    let (address, server) = peer(3, answer).await;
    let mut client = Client::connect(address).await.unwrap();
    for _ in 0..3 {
        client.send(code::GET_REQ, &RpbGetReq::default());
    }
    for n in 0..3u8 {
        let body = client.receive(code::GET_RESP).await.unwrap();
        assert_eq!(&body[..], [18, 1, n]);
    }
    assert_eq!(server.await.unwrap(), [code::GET_REQ; 3]);
}

#[tokio::test]
async fn a_listing_arrives_in_batches_and_ends_with_done() {
    let mut answer = Vec::new();
    for keys in [vec!["a", "b"], vec![], vec!["c"]] {
        let keys = keys.into_iter().map(Bytes::from).collect();
        write_message(code::LIST_KEYS_RESP, &RpbListKeysResp { keys, done: None }, &mut answer);
    }
    write_message(code::LIST_KEYS_RESP, &RpbListKeysResp { keys: Vec::new(), done: Some(true) }, &mut answer);
    write_empty(code::PING_RESP, &mut answer);
    let (address, _server) = peer(0, answer).await;
    let mut client = Client::connect(address).await.unwrap();
    let keys = client.list_keys(&Bucket::untyped("b")).await.unwrap().collect().await.unwrap();
    assert_eq!(keys, ["a", "b", "c"]);
    client.ping().await.unwrap();
}

#[tokio::test]
async fn an_exchange_given_up_half_way_spoils_the_connection() {
    let (address, _server) = peer(2, Vec::new()).await;
    let mut client = Client::connect(address).await.unwrap();
    client.set_timeout(Duration::from_millis(20));
    assert!(matches!(client.ping().await, Err(ClientError::Timeout(_))));
    assert!(matches!(client.ping().await, Err(ClientError::OutOfStep)));
}

#[tokio::test]
async fn a_listing_left_early_spoils_the_connection() {
    let mut answer = Vec::new();
    write_message(code::LIST_KEYS_RESP, &RpbListKeysResp { keys: vec!["a".into()], done: None }, &mut answer);
    let (address, _server) = peer(1, answer).await;
    let mut client = Client::connect(address).await.unwrap();
    let mut keys = client.list_keys(&Bucket::untyped("b")).await.unwrap();
    assert_eq!(keys.next().await.unwrap(), Some(vec![Bytes::from("a")]));
    drop(keys);
    assert!(matches!(client.ping().await, Err(ClientError::OutOfStep)));
}

#[tokio::test]
async fn bad_peers_are_reported() {
    let (address, _server) = peer(1, Vec::new()).await;
    let mut client = Client::connect(address).await.unwrap();
    assert!(matches!(client.ping().await, Err(ClientError::Closed)));

    let (address, _server) = peer(1, vec![0, 0, 0, 1, code::PUT_RESP]).await;
    let mut client = Client::connect(address).await.unwrap();
    let error = client.ping().await;
    assert!(matches!(error, Err(ClientError::UnexpectedCode { expected: 2, got: 12 })), "{error:?}");

    let (address, _server) = peer(1, vec![0, 0, 0, 0]).await;
    let mut client = Client::connect(address).await.unwrap();
    assert!(matches!(client.ping().await, Err(ClientError::Frame(_))));

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let error = Client::connect(&closed[..]).await.map(drop);
    assert!(error.unwrap_err().to_string().starts_with(&format!("cannot connect to {closed}: ")));
}
