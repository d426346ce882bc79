//! Tests of keys and terms with known values, and of operations against servers whose answers the
//! test chooses.

use super::keys::{KeyId, KeyOrder, eighty_twenty, etf_term};
use super::terms::{Terms, date};
use crate::drivers::testing::{Action, Server, draw, draw_of, error, frame, http, message, plan, run};
use crate::drivers::{DONE, Outcome, Plan, Worker};
use crate::term::Term;
use ombak_proto::code;
use ombak_proto::messages::{RpbContent, RpbDelReq, RpbGetReq, RpbGetResp, RpbPutReq};
use ombak_types::etf;
use ombak_types::time::UnixMicros;
use prost::Message;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const DRIVER: &str = "basho_bench_driver_nhs";
const KEYS: &str = "{int_to_str, {sequential_int, 1000}}";
const VALUES: &str = "{fixed_bin, 100}";

fn key(worker: usize, number: u64, order: KeyOrder) -> String {
    let mut out = b"what was there before".to_vec();
    KeyId::new(worker, &etf::Term::atom("testnode1")).write(number, order, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn keys_are_those_of_basho_bench() {
    // The hash phash2(5) is 5878562.
    let node = ombak_types::phash2::phash2(&etf::Term::atom("testnode1"));
    let of_worker = |hash: u32| format!("{:09}", (hash ^ node) >> 6);
    assert_eq!(key(5, 1, KeyOrder::Growing), format!("000000001{}", of_worker(5_878_562)));
    assert_eq!(key(5, 5, KeyOrder::Skewed), format!("005878562{}", of_worker(5_878_562)));
    assert_eq!(key(5, 123_456_789_012, KeyOrder::Growing).len(), 12 + 9, "longer counters are not cut");
}

#[test]
fn workers_and_generators_do_not_share_keys() {
    let keys: HashSet<_> = (1..=1000).map(|worker| key(worker, 7, KeyOrder::Skewed)).collect();
    // The lowest six of 27 bits are cut off, so a few of a thousand keys may be equal.
    assert!(keys.len() > 990, "{}", keys.len());
    let names = ["testnode1", "\"testnode1\"", "<<\"testnode1\">>"].map(|text| etf_term(&Term::parse(text).unwrap()));
    let ids: Vec<_> = names.map(|name| KeyId::new(1, &name.unwrap())).to_vec();
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "an atom, a list and a binary are three names");
}

#[test]
fn older_keys_are_chosen_more_often() {
    let mut draw = draw(KEYS, VALUES);
    for n in 1..20 {
        assert!((0..500).map(|_| eighty_twenty(n, &mut draw)).all(|number| (1..=n).contains(&number)), "{n}");
    }
    let (n, draws) = (1_000, 200_000);
    let mut lower = 0;
    for _ in 0..draws {
        let number = eighty_twenty(n, &mut draw);
        assert!((1..=n).contains(&number));
        lower += u32::from(number <= n / 5);
    }
    // The threshold t is uniform in 1 … 200. With probability (t - 1)/1000 the choice is above t,
    // and (200 - t)/(1000 - t) of these choices are still in the lowest fifth. Otherwise the choice
    // is below t. Together that is 0.9 plus a small part from the lowest fifth.
    let expected: f64 = (1..=200)
        .map(|t| {
            let (t, upper) = (f64::from(t), f64::from(t - 1) / 1000.0);
            (1.0 - upper) + upper * (200.0 - t) / (1000.0 - t)
        })
        .sum::<f64>()
        / 200.0;
    let share = f64::from(lower) / f64::from(draws);
    assert!((share - expected).abs() < 0.005, "{share} instead of {expected}");
}

#[test]
fn dates_are_right_in_leap_years_and_before_1970() {
    for (day, expected) in [
        (0, (1970, 1, 1)),
        (-1, (1969, 12, 31)),
        (11_016, (2000, 2, 29)),
        (11_017, (2000, 3, 1)),
        (19_782, (2024, 2, 29)),
        (-25_567, (1900, 1, 1)),
        (47_541, (2100, 3, 1)),
    ] {
        assert_eq!(date(day), expected, "{day}");
    }
}

/// The index entries of a content that has only these fields.
fn entries(fields: &[u8]) -> Vec<(String, String)> {
    let content = RpbContent::decode(&[b"\x0a\x01v", fields].concat()[..]).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    content.indexes.iter().map(|entry| (text(&entry.key), text(entry.value.as_ref().unwrap()))).collect()
}

#[test]
fn entries_have_their_forms() {
    let (mut terms, mut draw) = (Terms::default(), draw(KEYS, VALUES));
    let (mut years, mut counts) = (HashSet::new(), HashSet::new());
    for _ in 0..500 {
        let mut fields = Vec::new();
        terms.put_record(3, UnixMicros::from_secs(1_700_000_000), &mut draw, &mut fields);
        let mut entries = entries(&fields);
        assert_eq!(entries.pop().unwrap(), ("lastmodified_bin".into(), "2023-11-14T22:13:20".into()));
        let (name, birthday) = entries.pop().unwrap();
        assert_eq!((name.as_str(), birthday.len(), &birthday[8..9]), ("dateofbirth_bin", 8 + 1 + 8, "|"));
        assert!(birthday.ends_with("=="), "{birthday}");
        years.insert(birthday[..4].parse::<u32>().unwrap());
        counts.insert(entries.len());
        let people: HashSet<_> = entries.iter().map(|(_, term)| term.split_once('|').unwrap().1.to_owned()).collect();
        assert_eq!(people.len(), 1, "all postcodes of a record are one person's");
        for (name, term) in entries {
            let district = term.split_once('|').unwrap().0.to_owned();
            let (area, number) = district.split_at(district.find(|c: char| c.is_ascii_digit()).unwrap());
            assert!(name == "postcode_bin" && matches!(area.len(), 1 | 2), "{name} {term}");
            assert!((1..=26).contains(&number.parse::<u32>().unwrap()), "{term}");
        }
    }
    assert_eq!(counts, HashSet::from([1, 2, 3]));
    assert!(years.iter().all(|year| (1933..=2012).contains(year)) && years.len() > 70, "{years:?}");
}

/// One server for each interface.
struct Node {
    pb: Server,
    http: Server,
}

fn nhs_plan(node: &Node, more: &str, operations: &[&str]) -> Plan {
    let ports = format!("{{pb_port, {}}}. {{http_port, {}}}. {{node_name, testnode1}}.", node.pb.port, node.http.port);
    plan(DRIVER, &format!("{ports} {more}"), operations).unwrap()
}

fn found() -> Vec<u8> {
    let content = RpbContent { value: "v".into(), ..RpbContent::default() };
    message(code::GET_RESP, &RpbGetResp { content: vec![content], vclock: Some("clock".into()), unchanged: None })
}

fn answer_pb(request: &[u8]) -> Vec<u8> {
    match request[0] {
        code::GET_REQ => found(),
        code::PUT_REQ => frame(code::PUT_RESP, b""),
        code::DEL_REQ => frame(code::DEL_RESP, b""),
        code::INDEX_REQ => frame(code::INDEX_RESP, b""),
        _ => error("what?"),
    }
}

/// A node that supports everything.
async fn node() -> Node {
    let pb = Server::pb(|_, request| Action::Answer(answer_pb(request))).await;
    let http = Server::http(|_, request| {
        Action::Answer(match request.starts_with(b"PUT") {
            true => http(204, "", ""),
            false => http(200, "", "{\"keys\":[]}"),
        })
    });
    Node { pb, http: http.await }
}

fn gets(server: &Server) -> Vec<RpbGetReq> {
    let requests = server.requests();
    let gets = requests.iter().filter(|request| request[0] == code::GET_REQ);
    gets.map(|get| RpbGetReq::decode(&get[1..]).unwrap()).collect()
}

fn puts(server: &Server) -> Vec<RpbPutReq> {
    let requests = server.requests();
    let puts = requests.iter().filter(|request| request[0] == code::PUT_REQ);
    puts.map(|put| RpbPutReq::decode(&put[1..]).unwrap()).collect()
}

async fn worker_of(node: &Node, more: &str, operations: &[&str]) -> Worker {
    nhs_plan(node, more, operations).connect(1).await.unwrap()
}

#[tokio::test]
async fn documents_are_written_read_and_deleted_in_their_order() {
    let node = node().await;
    let operations = ["put_unique", "get_unique", "delete_unique", "put_unique_bet365"];
    let mut worker = worker_of(&node, "{unique, {2000, skew_order}}.", &operations).await;
    let mut draw = draw(KEYS, VALUES);
    // If there is nothing to delete, the operation succeeds without a request.
    assert_eq!(run(&mut worker, 2, &mut draw).await.0, DONE);
    assert_eq!(node.pb.requests().len(), 0);
    for operation in [0, 0, 1, 2, 3] {
        assert_eq!(run(&mut worker, operation, &mut draw).await.0, DONE);
    }
    let puts = puts(&node.pb);
    let of = |number| key(1, number, KeyOrder::Skewed);
    let keys: Vec<_> = puts.iter().map(|put| String::from_utf8(put.key.as_ref().unwrap().to_vec()).unwrap()).collect();
    assert_eq!(keys, [of(1), of(2), of(3)]);
    let content = puts[0].content.as_ref().unwrap();
    assert_eq!((puts[0].bucket.as_deref(), content.value.len()), (Some(&b"domainDocument"[..]), 2000));
    assert_ne!(content.value, puts[1].content.as_ref().unwrap().value, "each has bytes of its own");
    assert_eq!(content.indexes.iter().map(|e| e.key.clone()).collect::<Vec<_>>(), ["lastmodified_bin"]);
    assert_eq!(puts[2].bucket.as_deref(), Some(&b"abcdefghijklmnopqrstuvwxyz_2"[..]));
    assert!(puts[2].content.as_ref().unwrap().indexes.is_empty());
    let delete = node.pb.requests().into_iter().find(|request| request[0] == code::DEL_REQ).unwrap();
    assert_eq!(RpbDelReq::decode(&delete[1..]).unwrap().key, Some(of(1).into()));
    let read = gets(&node.pb)[0].key.clone().unwrap();
    assert!([of(2), of(3)].contains(&String::from_utf8(read.to_vec()).unwrap()));
}

#[tokio::test]
async fn records_are_read_once_there_are_enough() {
    let node = node().await;
    let operations = ["alwaysget_pb", "alwaysget_updatewith2i", "alwaysget_http", "alwaysget_updatewithout2i"];
    let mut worker = worker_of(&node, "{alwaysget, {1, 0, key_order}}.", &operations).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, Outcome::Uncounted);
    assert_eq!(run(&mut worker, 2, &mut draw).await.0, Outcome::Uncounted);
    for operation in [1, 0, 1, 3, 2] {
        assert_eq!(run(&mut worker, operation, &mut draw).await.0, DONE, "{operation}");
    }
    let puts = puts(&node.pb);
    let only: bytes::Bytes = key(1, 1, KeyOrder::Growing).into();
    assert!(puts.iter().all(|put| put.key.as_ref() == Some(&only) && put.bucket.as_deref() == Some(b"domainRecord")));
    assert!(gets(&node.pb).iter().all(|get| get.key.as_ref() == Some(&only)));
    let clocks: Vec<_> = puts.iter().map(|put| put.vclock.is_some()).collect();
    assert_eq!(clocks, [false, true, true], "a new record, then rewrites");
    let counts: Vec<_> = puts.iter().map(|put| put.content.as_ref().unwrap().indexes.len()).collect();
    assert!(counts[0] >= 3 && counts[1] >= 3 && counts[2] == 0, "{counts:?}");
    let http = String::from_utf8(node.http.requests()[0].clone()).unwrap();
    assert!(http.starts_with(&format!("GET /buckets/domainRecord/keys/{} ", key(1, 1, KeyOrder::Growing))), "{http}");
}

#[tokio::test]
async fn a_record_that_is_missing_is_an_error_and_a_lost_write_is_no_record() {
    let pb = Server::pb(|n, request| match (n, request[0]) {
        (0, _) => Action::Answer(error("overload")),
        (1, _) => Action::Close(Vec::new()),
        (_, code::GET_REQ) => Action::Answer(frame(code::GET_RESP, b"")),
        _ => Action::Answer(answer_pb(request)),
    })
    .await;
    let node = Node { pb, ..node().await };
    let operations = ["alwaysget_updatewithout2i", "alwaysget_pb", "get_pb"];
    let mut worker = worker_of(&node, "{alwaysget, {10, 0, key_order}}.", &operations).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await, (Outcome::Failed("overload".into()), 0));
    assert_eq!(run(&mut worker, 1, &mut draw).await.0, Outcome::Uncounted, "nothing has been written");
    assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 1));
    assert_eq!(run(&mut worker, 1, &mut draw).await.0, Outcome::Failed("not_found".into()));
    assert_eq!(run(&mut worker, 2, &mut draw).await.0, DONE);
    let puts = puts(&node.pb);
    assert!(puts.iter().all(|put| put.key == puts[0].key), "the first record until it is there");
}

#[tokio::test]
async fn queries_ask_for_ranges() {
    let node = node().await;
    let mut worker = worker_of(&node, "", &["postcodequery_http", "dobquery_http", "force_aae", "list_keys"]).await;
    let mut draw = draw(KEYS, VALUES);
    for operation in 0..4 {
        assert_eq!(run(&mut worker, operation, &mut draw).await.0, DONE);
    }
    let requests: Vec<_> = node.http.requests().iter().map(|r| String::from_utf8(r.clone()).unwrap()).collect();
    assert_eq!(requests.len(), 2, "worker 1 does nothing that one does for all");
    let target = |n: usize| requests[n].split(' ').nth(1).unwrap().to_owned();
    let postcode = target(0);
    let parts: Vec<_> = postcode.rsplitn(3, '/').collect();
    assert_eq!(parts[2], "/buckets/domainRecord/index/postcode_bin");
    let (from, to) = (parts[1].split_once("%7C").unwrap(), parts[0].split_once("%7C").unwrap());
    assert_eq!((from.0, to.1), (to.0, "gd"));
    assert!(["ba", "ca", "da", "ea", "fa", "ga", "gb", "gc"].contains(&from.1), "{postcode}");
    let birthday = target(1);
    assert!(birthday.ends_with("05?term_regex=%5B0-9%5D%7B8%7D...%5Ba-d%5D"), "{birthday}");
    assert!(birthday.starts_with("/buckets/domainRecord/index/dateofbirth_bin/"), "{birthday}");
}

#[tokio::test]
async fn a_write_to_the_peer_is_waited_for() {
    let node = node().await;
    // The peer is read on the cluster's port, so one server plays both roles. It has the document
    // after a few reads.
    let pb = Server::pb(|n, request| match request[0] {
        code::GET_REQ if n < 4 => Action::Answer(frame(code::GET_RESP, b"")),
        _ => Action::Answer(answer_pb(request)),
    });
    let node = Node { pb: pb.await, ..node };
    let mut worker = worker_of(&node, "", &["put_unique_checkrepl"]).await;
    assert_eq!(run(&mut worker, 0, &mut draw(KEYS, VALUES)).await.0, DONE);
    assert_eq!((puts(&node.pb).len(), gets(&node.pb).len(), node.pb.connections()), (1, 4, 2));
}

#[tokio::test]
async fn preparing_sets_the_properties_of_both_buckets() {
    let node = node().await;
    let settings = "{record_bucket, \"recordBucket\"}. {node_confirms, 1}. {document_sync, \"all\"}.";
    let prepared = nhs_plan(&node, settings, &["alwaysget_pb", "put_unique"]).prepare(false).await.unwrap();
    assert_eq!((prepared.unsupported.len(), prepared.notes.len()), (0, 0), "{prepared:?}");
    let puts: Vec<_> = node.http.requests().iter().map(|r| String::from_utf8(r.clone()).unwrap()).collect();
    let expected = [
        ("recordBucket", "{\"props\":{\"node_confirms\":1}}"),
        ("recordBucket", "{\"props\":{\"sync_on_write\":\"one\"}}"),
        ("domainDocument", "{\"props\":{\"node_confirms\":1}}"),
        ("domainDocument", "{\"props\":{\"sync_on_write\":\"all\"}}"),
    ];
    assert_eq!(puts.len(), expected.len());
    for (put, (bucket, body)) in puts.iter().zip(expected) {
        assert!(put.starts_with(&format!("PUT /buckets/{bucket}/props HTTP/1.1\r\n")), "{put}");
        assert!(put.contains("Content-Type: application/json\r\n") && put.ends_with(body), "{put}");
    }
}

/// A single node without secondary indexes. It refuses reads that more nodes must confirm,
/// according to the request or, if the request does not say, to the last property that was set.
async fn lone_node() -> Node {
    let property = Arc::new(AtomicU32::new(0));
    let known = property.clone();
    let pb = Server::pb(move |_, request| {
        Action::Answer(match request[0] {
            code::GET_REQ => {
                let asked = RpbGetReq::decode(&request[1..]).unwrap().node_confirms;
                match asked.unwrap_or_else(|| known.load(Ordering::SeqCst)) {
                    0 | 1 => found(),
                    need => error(&format!("{{insufficient_nodes,1,need,{need}}}")),
                }
            }
            code::INDEX_REQ => error("Operation '{riak_kv,secondary_index}' is not enabled"),
            _ => answer_pb(request),
        })
    });
    let http = Server::http(move |_, request| {
        let text = String::from_utf8_lossy(request);
        if let Some((_, number)) = text.rsplit_once("{\"node_confirms\":") {
            property.store(number.trim_end_matches('}').parse().unwrap(), Ordering::SeqCst);
        }
        Action::Answer(http(204, "", ""))
    });
    Node { pb: pb.await, http: http.await }
}

#[tokio::test]
async fn too_few_nodes_are_named_or_taken_as_they_are() {
    let node = lone_node().await;
    let mut plan = nhs_plan(&node, "", &["alwaysget_pb"]);
    let why = plan.prepare(false).await.unwrap_err().to_string();
    assert_eq!(why, "node_confirms is 2 and the server has 1 node: set {node_confirms, 1}");
    assert!(node.http.requests().is_empty(), "a start that is refused leaves the properties as they were");
    let prepared = plan.prepare(true).await.unwrap();
    assert_eq!(prepared.notes, ["node_confirms is 2 and the server has 1 node: it was set to 1"]);
    assert!(!node.http.requests().iter().any(|put| put.ends_with(b"{\"node_confirms\":2}}")));
}

#[tokio::test]
async fn what_the_server_lacks_is_told_by_operation() {
    let node = lone_node().await;
    let operations = ["put_unique", "postcodequery_http", "dobquery_http", "aae_query", "alwaysget_pb"];
    let prepared = nhs_plan(&node, "{node_confirms, 1}.", &operations).prepare(false).await.unwrap();
    let no_indexes = "the server has no secondary indexes: Operation '{riak_kv,secondary_index}' is not enabled";
    let obsolete = "servers since Riak 2.9 do not have its kind of query";
    let expected = [(1, no_indexes), (2, no_indexes), (3, obsolete)].map(|(place, why)| (place, why.to_owned()));
    assert_eq!(prepared.unsupported, expected);
    assert!(prepared.notes[0].contains("it takes index entries"), "{:?}", prepared.notes);

    let pb = Server::pb(|_, request| {
        Action::Answer(match request[0] {
            code::PUT_REQ | code::INDEX_REQ => error("no"),
            _ => answer_pb(request),
        })
    });
    let node = Node { pb: pb.await, ..node };
    let prepared = nhs_plan(&node, "{node_confirms, 1}.", &operations[..1]).prepare(false).await.unwrap();
    assert_eq!(prepared.unsupported, [(0, "the server takes no index entries: no".to_owned())]);
}

#[test]
fn settings_are_refused_by_name() {
    for (text, operation, what) in [
        ("", "gte", "operations: basho_bench_driver_nhs has no operation 'gte'; it has get_pb, "),
        ("{alwaysget, {1, 1}}.", "get_pb", "alwaysget: {MaxKeysPerWorker, MinKeysPerWorker, Order} is needed"),
        ("{alwaysget, {1, 1, order}}.", "get_pb", "alwaysget: the order has to be key_order or skew_order"),
        ("{unique, {0, key_order}}.", "get_pb", "unique: {ValueBytes, Order} is needed"),
        ("{record_sync, \"on\"}.", "get_pb", "record_sync: one of"),
        ("{postcode_indexcount, 0}.", "get_pb", "postcode_indexcount: a number from 1 to 100"),
    ] {
        let why = plan(DRIVER, text, &[operation]).unwrap_err().to_string();
        assert!(why.starts_with(what), "{why}");
    }
}

#[tokio::test]
async fn two_workers_write_two_sets_of_keys() {
    let node = node().await;
    let plan = nhs_plan(&node, "{unique, {10, key_order}}.", &["put_unique"]);
    for worker in 1..=2 {
        let mut draw = draw_of(KEYS, VALUES, worker);
        let mut worker = plan.connect(worker).await.unwrap();
        assert_eq!(run(&mut worker, 0, &mut draw).await.0, DONE);
    }
    let keys: Vec<_> = puts(&node.pb).into_iter().map(|put| put.key.unwrap()).collect();
    assert_eq!(keys, [key(1, 1, KeyOrder::Growing), key(2, 1, KeyOrder::Growing)]);
}
