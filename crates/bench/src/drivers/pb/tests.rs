//! Tests of the Protocol Buffers driver against servers whose answers the test chooses.

use crate::drivers::testing::{Action, Server, draw, error, frame, message, plan, run};
use crate::drivers::{DONE, Outcome, Plan, Worker};
use ombak_proto::code;
use ombak_proto::messages::{
    RpbContent, RpbDelReq, RpbGetReq, RpbGetResp, RpbIndexReq, RpbIndexResp, RpbListKeysResp, RpbPair, RpbPutReq,
};
use prost::Message;
use std::collections::HashMap;
use std::time::Duration;

const DRIVER: &str = "basho_bench_driver_riakc_pb";
const KEYS: &str = "{int_to_bin_bigendian, {sequential_int, 1000}}";
const VALUES: &str = "{fixed_bin, 100}";

fn pb_plan(port: u16, more: &str, operations: &[&str]) -> Plan {
    plan(DRIVER, &format!("{{riakc_pb_port, {port}}}. {more}"), operations).unwrap()
}

async fn worker(server: &Server, more: &str, operations: &[&str]) -> Worker {
    pb_plan(server.port, more, operations).connect(1).await.unwrap()
}

fn found(value: &[u8]) -> Vec<u8> {
    let content = RpbContent {
        value: value.to_vec().into(),
        content_type: Some("text/plain".into()),
        usermeta: vec![RpbPair { key: "m".into(), value: Some("1".into()) }],
        indexes: vec![RpbPair { key: "old_bin".into(), value: Some("x".into()) }],
        ..RpbContent::default()
    };
    message(code::GET_RESP, &RpbGetResp { content: vec![content], vclock: Some("clock".into()), unchanged: None })
}

/// A server that stores objects.
fn store() -> impl FnMut(usize, &[u8]) -> Action + Send + 'static {
    let mut objects: HashMap<Option<bytes::Bytes>, Vec<u8>> = HashMap::new();
    move |_, request| {
        Action::Answer(match request[0] {
            code::GET_REQ => match objects.get(&RpbGetReq::decode(&request[1..]).unwrap().key) {
                Some(value) => found(value),
                None => frame(code::GET_RESP, b""),
            },
            code::PUT_REQ => {
                let put = RpbPutReq::decode(&request[1..]).unwrap();
                objects.insert(put.key, put.content.unwrap().value.to_vec());
                frame(code::PUT_RESP, b"")
            }
            code::DEL_REQ => {
                objects.remove(&RpbDelReq::decode(&request[1..]).unwrap().key);
                frame(code::DEL_RESP, b"")
            }
            _ => error("what?"),
        })
    }
}

#[tokio::test]
async fn requests_are_those_of_the_erlang_client() {
    let server = Server::pb(store()).await;
    let settings = "{riakc_pb_replies, 1}. {riakc_pb_dw, one}. {riakc_pb_rw, all}.";
    let mut worker = worker(&server, settings, &["get", "put", "delete"]).await;
    let mut draw = draw(KEYS, VALUES);
    for operation in 0..3 {
        assert_eq!(run(&mut worker, operation, &mut draw).await, (DONE, 0));
    }
    let requests = server.requests();
    let key = |n: u8| Some(bytes::Bytes::copy_from_slice(&[0, 0, 0, n]));
    let bucket = Some("test".into());
    let get = RpbGetReq { bucket: bucket.clone(), key: key(0), r: Some(1), ..RpbGetReq::default() };
    assert_eq!(requests[0], [&[code::GET_REQ], &get.encode_to_vec()[..]].concat());
    let put = RpbPutReq::decode(&requests[1][1..]).unwrap();
    assert_eq!((put.bucket, put.key, put.vclock), (bucket.clone(), key(1), None));
    assert_eq!((put.w, put.dw, put.pw, put.return_body), (Some(1), Some(4_294_967_294), None, None));
    let content = put.content.unwrap();
    assert_eq!((content.value.len(), content.content_type.unwrap()), (100, "application/octet-stream".into()));
    let delete = RpbDelReq { bucket, key: key(2), rw: Some(4_294_967_292), ..RpbDelReq::default() };
    assert_eq!(requests[2], [&[code::DEL_REQ], &delete.encode_to_vec()[..]].concat());
}

#[tokio::test]
async fn quorums_of_primaries_are_sent_only_where_they_are_asked_for() {
    let server = Server::pb(store()).await;
    let settings = "{riakc_pb_pr, 2}. {riakc_pb_pw, quorum}. {riakc_pb_bucket, {<<\"t\">>, <<\"b\">>}}.";
    let mut worker = worker(&server, settings, &["get", "put"]).await;
    let mut draw = draw(KEYS, VALUES);
    for operation in 0..2 {
        run(&mut worker, operation, &mut draw).await;
    }
    let get = RpbGetReq::decode(&server.requests()[0][1..]).unwrap();
    assert_eq!(
        (get.r, get.pr, get.bucket, get.r#type),
        (Some(4_294_967_293), Some(2), Some("b".into()), Some("t".into()))
    );
    let put = RpbPutReq::decode(&server.requests()[1][1..]).unwrap();
    assert_eq!((put.pw, put.r#type), (Some(4_294_967_293), Some("t".into())));
}

#[tokio::test]
async fn what_is_not_there_is_fine_or_an_error() {
    let server = Server::pb(store()).await;
    let operations = ["get", "get_existing", "update", "update_existing", "put"];
    let mut worker = worker(&server, "", &operations).await;
    let mut draw = draw("<<\"k\">>", VALUES);
    let not_found = Outcome::Failed("not_found".into());
    for (operation, outcome) in [(0, DONE), (1, not_found.clone()), (3, not_found), (2, DONE), (1, DONE), (3, DONE)] {
        assert_eq!(run(&mut worker, operation, &mut draw).await.0, outcome, "{}", operations[operation]);
    }
}

#[tokio::test]
async fn an_update_hands_back_the_clock_and_the_metadata() {
    let server = Server::pb(store()).await;
    let mut worker = worker(&server, "", &["update", "update_with2i"]).await;
    let mut draw = draw("<<\"k\">>", VALUES);
    for operation in [0, 0, 1] {
        assert_eq!(run(&mut worker, operation, &mut draw).await.0, DONE);
    }
    let puts: Vec<_> = server.requests().into_iter().filter(|request| request[0] == code::PUT_REQ).collect();
    let puts: Vec<_> = puts.iter().map(|put| RpbPutReq::decode(&put[1..]).unwrap()).collect();
    let clocks: Vec<_> = puts.iter().map(|put| put.vclock.as_deref()).collect();
    assert_eq!(clocks, [None, Some(&b"clock"[..]), Some(b"clock")]);
    let content = puts[1].content.as_ref().unwrap();
    assert_eq!((content.usermeta.len(), content.indexes.len(), content.value.len()), (1, 1, 100));
    assert_eq!(content.content_type.as_deref(), Some(&b"application/octet-stream"[..]));
    let indexed = puts[2].content.as_ref().unwrap();
    assert!(indexed.indexes.iter().all(|entry| entry.key != "old_bin"), "old entries go");
    let names: Vec<_> = indexed.indexes.iter().rev().take(3).map(|entry| entry.key.as_ref()).collect();
    assert_eq!(names, [&b"lastmodified_bin"[..], b"dateofbirth_bin", b"postcode_bin"]);
}

#[tokio::test]
async fn an_error_is_counted_by_its_text_and_the_connection_stays() {
    let server = Server::pb(|n, _| Action::Answer(if n == 0 { error("overload") } else { found(b"v") })).await;
    let mut worker = worker(&server, "", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, Outcome::Failed("overload".into()));
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, DONE);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn answers_are_read_however_they_are_cut_and_checked() {
    let answers = [
        (Action::Slowly(found(&[b'v'; 300_000])), DONE),
        (Action::Answer(found(b"")), Outcome::Failed("an object with an empty value".into())),
        (Action::Answer(frame(code::PUT_RESP, b"")), Outcome::Failed("an answer of another kind".into())),
        (Action::Answer(vec![0, 0, 0, 0]), Outcome::Failed("no frame of the protocol".into())),
        (Action::Answer(vec![255; 8]), Outcome::Failed("no frame of the protocol".into())),
        (Action::Answer(frame(code::GET_RESP, b"\x0a\x05")), Outcome::Failed("an answer that cannot be read".into())),
    ];
    let (actions, outcomes): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let mut actions = actions.into_iter();
    let server = Server::pb(move |_, _| actions.next().unwrap()).await;
    let mut worker = worker(&server, "", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    for outcome in outcomes {
        assert_eq!(run(&mut worker, 0, &mut draw).await.0, outcome);
    }
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_the_next_ones() {
    let server = Server::pb(|n, _| Action::Answer(found(b"v").repeat(if n == 0 { 2 } else { 1 }))).await;
    let mut worker = worker(&server, "", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, DONE);
    let unasked = Outcome::Failed("an answer that nobody asked for".into());
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, unasked);
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, DONE);
    assert_eq!((server.requests().len(), server.connections()), (2, 2));
}

#[tokio::test]
async fn a_timeout_is_an_error_and_its_late_answer_is_not_anothers() {
    let server = Server::pb(|n, _| if n == 0 { Action::Silence } else { Action::Answer(found(b"v")) }).await;
    let mut worker = worker(&server, "{pb_timeout_read, 50}.", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await, (Outcome::Failed("timeout".into()), 0));
    assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 0));
    assert_eq!(server.connections(), 2, "the connection was opened anew");
}

#[tokio::test]
async fn deadlines_move_with_each_request() {
    let server = Server::pb(|n, _| if n < 20 { Action::Answer(found(b"v")) } else { Action::Silence }).await;
    let mut worker = worker(&server, "{pb_timeout_read, 200}.", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    let start = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(run(&mut worker, 0, &mut draw).await.0, DONE);
    }
    let asked = std::time::Instant::now();
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, Outcome::Failed("timeout".into()));
    assert!(asked.elapsed() >= Duration::from_millis(200), "{:?} of {:?}", asked.elapsed(), start.elapsed());
}

#[tokio::test]
async fn a_lost_operation_goes_on_with_the_same_key() {
    let mut store = store();
    // The server closes the connection on the 1st, 3rd and 4th request, the last time after half of
    // an answer.
    let server = Server::pb(move |n, request| match n {
        0 | 2 => Action::Close(Vec::new()),
        3 => Action::Close(vec![0, 0, 0, 9, code::PUT_RESP]),
        _ => store(n, request),
    })
    .await;
    let mut worker = worker(&server, "", &["update", "get"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 3));
    let requests = server.requests();
    assert_eq!(requests.iter().map(|request| request[0]).collect::<Vec<_>>(), [9, 9, 11, 11, 11]);
    assert_eq!(requests[0], requests[1]);
    assert!(requests[2] == requests[3] && requests[3] == requests[4]);
    assert_eq!(run(&mut worker, 1, &mut draw).await, (DONE, 0));
    assert_eq!(RpbGetReq::decode(&server.requests()[5][1..]).unwrap().key, Some(vec![0, 0, 0, 1].into()));
}

#[tokio::test]
async fn a_worker_stops_when_its_keys_end() {
    let server = Server::pb(store()).await;
    let mut worker = worker(&server, "", &["put", "update"]).await;
    let mut draw = draw("{int_to_str, {sequential_int, 2}}", VALUES);
    for outcome in [DONE, DONE, Outcome::Stop] {
        assert_eq!(run(&mut worker, 0, &mut draw).await, (outcome, 0));
    }
    assert_eq!(run(&mut worker, 1, &mut draw).await, (Outcome::Stop, 0));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_pipeline_keeps_its_order_and_writes_at_once() {
    let mut store = store();
    let server =
        Server::pb(move |n, request| if n == 2 { Action::Answer(error("overload")) } else { store(n, request) });
    let server = server.await;
    let mut worker = worker(&server, "{riakc_pb_pipeline, 4}.", &["put", "get_existing"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(worker.depth(), 4);
    assert_eq!(worker.receive().await, None);
    for operation in [0, 1, 0, 0] {
        assert_eq!(worker.send(operation, &mut draw), None);
    }
    assert!(matches!(worker.send(0, &mut draw), Some(Outcome::Failed(_))), "it is full");
    let not_found = Outcome::Failed("not_found".into());
    for expected in [(0, DONE), (1, not_found), (0, Outcome::Failed("overload".into())), (0, DONE)] {
        assert_eq!(worker.receive().await, Some(expected));
    }
    assert_eq!(worker.receive().await, None);
    assert_eq!((server.requests().len(), server.connections()), (4, 1));
}

#[tokio::test]
async fn what_was_in_a_pipeline_that_broke_fails_and_the_next_goes_through() {
    let mut store = store();
    let server = Server::pb(move |n, request| if n == 1 { Action::Close(Vec::new()) } else { store(n, request) }).await;
    let mut worker = worker(&server, "{riakc_pb_pipeline, 3}.", &["put"]).await;
    let mut draw = draw(KEYS, VALUES);
    for _ in 0..3 {
        assert_eq!(worker.send(0, &mut draw), None);
    }
    assert_eq!(worker.receive().await, Some((0, DONE)));
    let lost = Outcome::Failed("disconnected".into());
    assert_eq!(worker.receive().await, Some((0, lost.clone())));
    assert_eq!(worker.send(0, &mut draw), None);
    assert_eq!(worker.receive().await, Some((0, lost)));
    assert_eq!(worker.receive().await, Some((0, DONE)));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_pipeline_may_be_left_and_come_back_to() {
    let server = Server::pb(|n, _| if n == 0 { Action::Silence } else { Action::Answer(found(b"v").repeat(2)) }).await;
    let mut worker = worker(&server, "{riakc_pb_pipeline, 2}.", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(worker.send(0, &mut draw), None);
    let waited = tokio::time::timeout(Duration::from_millis(20), worker.receive()).await;
    assert!(waited.is_err(), "there is no answer yet");
    assert_eq!(worker.send(0, &mut draw), None);
    for _ in 0..2 {
        assert_eq!(worker.receive().await, Some((0, DONE)));
    }
}

#[tokio::test]
async fn a_pipeline_times_out() {
    let server = Server::pb(|n, _| if n < 2 { Action::Silence } else { Action::Answer(found(b"v")) }).await;
    let mut worker = worker(&server, "{riakc_pb_pipeline, 2}. {pb_timeout_read, 50}.", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    for _ in 0..2 {
        assert_eq!(worker.send(0, &mut draw), None);
    }
    assert_eq!(worker.receive().await, Some((0, Outcome::Failed("timeout".into()))));
    assert_eq!(worker.receive().await, Some((0, Outcome::Failed("disconnected".into()))));
    assert_eq!(worker.send(0, &mut draw), None);
    assert_eq!(worker.receive().await, Some((0, DONE)));
}

#[tokio::test]
async fn preparing_asks_the_server_what_it_has() {
    let server = Server::pb(|_, request| {
        Action::Answer(match request[0] {
            code::GET_REQ => frame(code::GET_RESP, b""),
            code::INDEX_REQ => error("Operation '{riak_kv,secondary_index}' is not enabled"),
            code::PUT_REQ => frame(code::PUT_RESP, b""),
            code::DEL_REQ => frame(code::DEL_RESP, b""),
            _ => error("what?"),
        })
    })
    .await;
    let operations = ["get", "query_postcode", "update_with2i", "search", "{counter, value}"];
    let prepared = pb_plan(server.port, "", &operations).prepare(false).await.unwrap();
    let no_indexes = "the server has no secondary indexes: Operation '{riak_kv,secondary_index}' is not enabled";
    let expected = [(1, no_indexes), (3, "ombak-bench has no full-text search"), (4, "ombak-bench has no data types")];
    assert_eq!(prepared.unsupported, expected.map(|(place, why)| (place, why.to_owned())));
    let index = server.requests().iter().find(|request| request[0] == code::INDEX_REQ).unwrap().clone();
    assert_eq!(RpbIndexReq::decode(&index[1..]).unwrap().bucket, "test");
}

#[tokio::test]
async fn preparing_fails_clearly() {
    let server = Server::pb(|_, _| Action::Answer(error("no_type"))).await;
    let why = pb_plan(server.port, "", &["get"]).prepare(false).await.unwrap_err().to_string();
    assert!(why.ends_with("refuses to read from the bucket of riakc_pb_bucket: no_type"), "{why}");
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let why = pb_plan(closed, "", &["get"]).prepare(false).await.unwrap_err().to_string();
    assert!(why.starts_with(&format!("no server that speaks Protocol Buffers at 127.0.0.1:{closed}: ")), "{why}");
}

#[tokio::test]
async fn queries_are_ranges() {
    let server = Server::pb(|_, _| Action::Answer(message(code::INDEX_RESP, &RpbIndexResp::default()))).await;
    let mut worker = worker(&server, "", &["query_postcode", "query_dob"]).await;
    let mut draw = draw(KEYS, VALUES);
    for operation in 0..2 {
        assert_eq!(run(&mut worker, operation, &mut draw).await.0, DONE);
    }
    let queries: Vec<_> = server.requests().iter().map(|q| RpbIndexReq::decode(&q[1..]).unwrap()).collect();
    let range = |n: usize| {
        let text = |bytes: &Option<bytes::Bytes>| String::from_utf8(bytes.as_ref().unwrap().to_vec()).unwrap();
        (text(&queries[n].range_min), text(&queries[n].range_max))
    };
    let (from, to) = range(0);
    assert!(from.ends_with("|a") && to.ends_with("|b") && from[..from.len() - 1] == to[..to.len() - 1], "{from} {to}");
    let (from, to) = range(1);
    let (from, to): (u32, u32) = (from.parse().unwrap(), to.parse().unwrap());
    assert!((19_500_101..20_200_101).contains(&from) && from < to && to < 20_200_101, "{from} {to}");
    assert!(queries.iter().all(|query| query.qtype == 1 && query.return_terms == Some(true)));
}

#[tokio::test]
async fn one_worker_lists_keys_in_the_background() {
    let part = |done| message(code::LIST_KEYS_RESP, &RpbListKeysResp { keys: vec!["k".into()], done });
    let server = Server::pb(move |_, _| Action::Answer([part(None), part(Some(true))].concat())).await;
    let plan = pb_plan(server.port, "", &["listkeys"]);
    let mut draw = draw(KEYS, VALUES);
    let mut other = plan.connect(2).await.unwrap();
    assert_eq!(run(&mut other, 0, &mut draw).await.0, DONE);
    let mut nominated = plan.connect(1).await.unwrap();
    assert_eq!(server.requests().len(), 0);
    assert_eq!(run(&mut nominated, 0, &mut draw).await.0, DONE);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while server.requests().is_empty() {
        assert!(std::time::Instant::now() < deadline, "no listing");
        tokio::task::yield_now().await;
    }
    assert_eq!(server.requests()[0][0], code::LIST_KEYS_REQ);
}

#[test]
fn settings_are_refused_by_name() {
    for (text, operations, what) in [
        ("", ["gte"], "operations: basho_bench_driver_riakc_pb has no operation 'gte'; it has get, "),
        ("{riakc_pb_pipeline, 0}.", ["get"], "riakc_pb_pipeline: a number of requests from 1 to"),
        ("{riakc_pb_pipeline, 2}.", ["update"], "riakc_pb_pipeline: 'update' takes more than one request"),
        ("{riakc_pb_bucket, 7}.", ["get"], "riakc_pb_bucket: <<\"bucket\">>"),
        ("{riakc_pb_r, most}.", ["get"], "riakc_pb_r: a number of replies"),
    ] {
        let why = plan(DRIVER, text, &operations).unwrap_err().to_string();
        assert!(why.starts_with(what), "{why}");
    }
}
