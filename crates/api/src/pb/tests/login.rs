//! Who may send what while security is on.

use super::*;
use crate::JobSwitches;
use crate::client_stream::test_tls::{CLIENT, InPieces, client_tls, connect, connect_with_certificate};
use crate::security::tests::SecurityOfTest;
use ombak_kv::{PutOptions, PutRequest};
use ombak_proto::messages::{RpbAuthReq, RpbContent, RpbGetReq, RpbPutReq};
use ombak_types::{Bucket, Object, Sibling, VectorClock};
use tokio::time::sleep;
use tokio_rustls::client::TlsStream;

const TLS_FIRST: &str = "Security is enabled, please STARTTLS first";
const LOGIN_FIRST: &str = "Security is enabled, please authenticate first";
const ALICE: &[&str] = &[
    "add-user alice password=secret",
    "add-source alice 127.0.0.1/32 password",
    "grant riak_kv.get on default b to alice",
];

/// A client with TLS.
pub(super) struct Secured {
    stream: TlsStream<InPieces>,
    inbox: BytesMut,
}

impl Secured {
    pub(super) async fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// The next frame; `None` at the end of the connection.
    pub(super) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = next_frame(&mut self.inbox, usize::MAX).unwrap() {
                return Some(frame);
            }
            match timeout(PATIENCE, self.stream.read_buf(&mut self.inbox)).await.expect("an answer in time") {
                Ok(1..) => {}
                _ => return None,
            }
        }
    }

    /// What the answer says: the text of an error, or the code.
    async fn answer(&mut self) -> Result<u8, String> {
        let frame = self.frame().await.expect("an answer");
        error_text(&frame).map_or(Ok(frame.code), Err)
    }

    pub(super) async fn ask(&mut self, request: &[u8]) -> Result<u8, String> {
        self.send(request).await;
        self.answer().await
    }
}

async fn with_security(test: &SecurityOfTest) -> Node {
    with_config(test, PbConfig::default()).await
}

async fn with_config(test: &SecurityOfTest, config: PbConfig) -> Node {
    let security = Some(test.security.clone());
    let policy = Some(test.security.clone() as Arc<dyn crate::AccessPolicy>);
    Node::with(PbConfig { start_tls: Some(client_tls()), security, policy, ..config }).await
}

/// A node on which these jobs are switched on.
pub(super) async fn with_security_and(test: &SecurityOfTest, jobs: JobSwitches) -> Node {
    with_config(test, PbConfig { jobs, ..PbConfig::default() }).await
}

pub(super) async fn secured(node: &Node, has_certificate: bool) -> Secured {
    let mut wire = node.connect().await;
    wire.send_bytes(&empty(code::START_TLS)).await;
    wire.expect_empty(code::START_TLS).await;
    let stream = match has_certificate {
        true => connect_with_certificate(wire.stream).await.unwrap(),
        false => connect(wire.stream).await.unwrap(),
    };
    Secured { stream, inbox: BytesMut::new() }
}

fn empty(code: u8) -> Vec<u8> {
    let mut out = Vec::new();
    write_empty(code, &mut out);
    out
}

pub(super) fn auth(user: &'static str, password: &'static str) -> Vec<u8> {
    let mut out = Vec::new();
    write_message(code::AUTH_REQ, &RpbAuthReq { user: user.into(), password: password.into() }, &mut out);
    out
}

fn get() -> Vec<u8> {
    let (mut out, request) =
        (Vec::new(), RpbGetReq { bucket: Some("b".into()), key: Some("k".into()), ..RpbGetReq::default() });
    write_message(code::GET_REQ, &request, &mut out);
    out
}

fn put() -> Vec<u8> {
    let content = Some(RpbContent { value: "v".into(), ..RpbContent::default() });
    let put = RpbPutReq { bucket: Some("b".into()), key: Some("k".into()), content, ..RpbPutReq::default() };
    let mut out = Vec::new();
    write_message(code::PUT_REQ, &put, &mut out);
    out
}

fn error<T>(text: &str) -> Result<T, String> {
    Err(text.to_owned())
}

#[tokio::test]
async fn tls_comes_first_and_then_the_user_and_then_what_is_granted() {
    let test = SecurityOfTest::after(ALICE);
    test.run("enable");
    let node = with_security(&test).await;
    let mut wire = node.connect().await;
    for request in [empty(code::PING_REQ), get(), auth("alice", "secret"), empty(99)] {
        wire.send_bytes(&request).await;
        assert_eq!(wire.expect_error().await, TLS_FIRST);
    }
    let mut client = secured(&node, false).await;
    for request in [empty(code::PING_REQ), get(), empty(code::START_TLS), empty(99)] {
        assert_eq!(client.ask(&request).await, error(LOGIN_FIRST));
    }
    assert_eq!(client.ask(&auth("alice", "wrong")).await, error("Authentication failed"));
    assert_eq!(client.ask(&auth("alice", "secret")).await, Ok(code::AUTH_RESP));
    assert_eq!(client.ask(&empty(code::PING_REQ)).await, Ok(code::PING_RESP));
    assert_eq!(client.ask(&get()).await, Ok(code::GET_RESP));
    let denied = "Permission denied: User 'alice' does not have 'riak_kv.put' on default/b";
    assert_eq!(client.ask(&put()).await, error(denied));
    assert_eq!(client.ask(&auth("alice", "secret")).await, error("Unknown message code: 253"));
    let no_tls = "Security not enabled; STARTTLS not allowed.";
    assert_eq!(client.ask(&empty(code::START_TLS)).await, error(no_tls));
}

/// Requests that were sent together with one that is refused are looked at one by one.
#[tokio::test]
async fn a_revoked_grant_counts_at_the_next_request_of_an_open_connection() {
    let test = SecurityOfTest::after(ALICE);
    test.run("enable");
    let node = with_security(&test).await;
    let mut client = secured(&node, false).await;
    // What follows a login in one write is served as the user.
    client.send(&[auth("alice", "secret"), get()].concat()).await;
    assert_eq!([client.answer().await, client.answer().await], [Ok(code::AUTH_RESP), Ok(code::GET_RESP)]);
    test.run("revoke riak_kv.get on default b from alice");
    let denied = "Permission denied: User 'alice' does not have 'riak_kv.get' on default/b";
    client.send(&[get(), get(), empty(code::PING_REQ)].concat()).await;
    assert_eq!([client.answer().await, client.answer().await], [error(denied), error(denied)]);
    assert_eq!(client.answer().await, Ok(code::PING_RESP));
    test.run("grant riak_kv.get on any to alice");
    assert_eq!(client.ask(&get()).await, Ok(code::GET_RESP));
    test.run("del-user alice");
    assert_eq!(client.ask(&get()).await, error(denied));
}

#[tokio::test]
async fn the_third_failure_ends_the_connection() {
    let test = SecurityOfTest::after(ALICE);
    test.run("enable");
    let node = with_security(&test).await;
    let mut client = secured(&node, false).await;
    for _ in 0..3 {
        assert_eq!(client.ask(&auth("nobody", "secret")).await, error("Authentication failed"));
    }
    assert!(client.frame().await.is_none());
    let mut client = secured(&node, false).await;
    client.send(&empty(code::AUTH_REQ)).await;
    assert!(client.frame().await.is_none(), "without any field it ends at once");
}

/// The guess for bob waits behind others for 20 seconds.
#[tokio::test]
async fn an_answer_does_not_wait_for_a_password_and_a_guess_ends_with_its_client() {
    let test = SecurityOfTest::after(ALICE);
    test.run("enable");
    let node = with_security(&test).await;
    let _others = test.security.line_up("bob", 3);
    let mut client = secured(&node, false).await;
    client.send(&[empty(code::PING_REQ), auth("bob", "guess")].concat()).await;
    assert_eq!(client.answer().await, error(LOGIN_FIRST));
    let waiting = async |guesses: usize| {
        while test.security.guesses_waiting("bob") != guesses {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), waiting(4)).await.expect("the guess waits");
    drop(client);
    timeout(Duration::from_secs(10), waiting(3)).await.expect("the client has gone");
}

#[tokio::test]
async fn a_certificate_proves_its_user() {
    let (add, source) = (format!("add-user {CLIENT}"), format!("add-source {CLIENT} 127.0.0.1/32 certificate"));
    let test = SecurityOfTest::after(&[&add, &source, "enable"]);
    let node = with_security(&test).await;
    assert_eq!(secured(&node, true).await.ask(&auth(CLIENT, "")).await, Ok(code::AUTH_RESP));
    assert_eq!(secured(&node, false).await.ask(&auth(CLIENT, "")).await, error("Authentication failed"));
}

#[tokio::test]
async fn plain_sessions_end_when_security_is_switched_on_and_are_back_when_it_is_off() {
    let test = SecurityOfTest::after(ALICE);
    let node = with_security(&test).await;
    let mut wire = node.connect().await;
    wire.send_bytes(&empty(code::START_TLS)).await;
    assert_eq!(wire.expect_error().await, "Security not enabled; STARTTLS not allowed.");
    wire.send_bytes(&auth("alice", "secret")).await;
    assert_eq!(wire.expect_error().await, "Unknown message code: 253");
    wire.ping().await;
    test.run("enable");
    assert_eq!(wire.frame().await, None, "the session has ended although nothing was asked");
    let mut wire = node.connect().await;
    wire.send_bytes(&empty(code::PING_REQ)).await;
    assert_eq!(wire.expect_error().await, TLS_FIRST);
    test.run("disable");
    wire.ping().await;
}

/// The client takes its answer slowly, and does not pause. It would go on for seconds.
#[tokio::test]
async fn a_plain_answer_under_way_ends_soon_after_security_is_switched_on() {
    const VALUE_BYTES: usize = 40 << 20;
    let test = SecurityOfTest::after(ALICE);
    let plain_drain_timeout = Duration::from_millis(200);
    let node = with_config(&test, PbConfig { plain_drain_timeout, ..PbConfig::default() }).await;
    store(&node, vec![b'v'; VALUE_BYTES]).await;
    let mut wire = node.connect().await;
    wire.send_bytes(&get()).await;
    let (mut taken, mut part) = (0, vec![0; 64 << 10]);
    // An end and a connection that was cut are the same here.
    while let Ok(read @ 1..) = timeout(PATIENCE, wire.stream.read(&mut part)).await.expect("it ends") {
        if taken == 0 {
            test.run("enable");
        }
        taken += read;
        sleep(Duration::from_millis(5)).await;
        assert!(taken < VALUE_BYTES, "the answer was sent to its end");
    }
    assert!(taken > 0);
}

async fn store(node: &Node, value: Vec<u8>) {
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value)] };
    let (bucket, options) = (Bucket::untyped("b"), PutOptions::default());
    node.kv.put(PutRequest { bucket, key: Some("k".into()), object, options }).await.unwrap();
}

#[tokio::test]
async fn a_session_that_went_on_with_tls_does_not_end_with_plain_ones() {
    let test = SecurityOfTest::after(ALICE);
    test.run("enable");
    let node = with_security(&test).await;
    let mut client = secured(&node, false).await;
    assert_eq!(client.ask(&auth("alice", "secret")).await, Ok(code::AUTH_RESP));
    test.run("disable");
    let mut plain = node.connect().await;
    plain.ping().await;
    test.run("enable");
    assert_eq!(plain.frame().await, None, "the plain sessions have ended");
    assert_eq!(client.ask(&get()).await, Ok(code::GET_RESP));
}
