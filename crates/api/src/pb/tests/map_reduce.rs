//! Which jobs run while security is on, and which buckets they reach.

use super::login::{Secured, auth, secured, with_security_and};
use super::*;
use crate::map_reduce::sample_jobs::{
    ALICE, ALLOWED, DENIED, DENIED_ON_ANY, FOLLOWS_LINKS, FUNCTION_ELSEWHERE, GIVES_FOUND, LEAD_AWAY, LEADS_AWAY_LATER,
    NAMES_NO_BUCKET, READS_FOUND, SEARCH_DENIED, jobs_with_search,
};
use crate::security::tests::SecurityOfTest;
use crate::{JobClass, JobSwitches};
use ombak_proto::messages::{RpbContent, RpbMapRedReq, RpbMapRedResp, RpbPutReq};
use ombak_types::etf::{Term, encode};

/// As Riak's `~p` writes it.
const LINKS_ARE_OFF: &str = "\"Link walking is deprecated in Riak 2.0 and is not compatible with security.\"";

/// A node with the objects that the jobs read, and the user's connection. Security is on.
async fn node(test: &SecurityOfTest, jobs: JobSwitches) -> (Node, Secured) {
    let node = with_security_and(test, jobs).await;
    let mut wire = node.connect().await;
    for (bucket, value) in [("b", "open"), ("secret", "closed")] {
        let content =
            RpbContent { value: value.into(), content_type: Some("text/plain".into()), ..RpbContent::default() };
        let (bucket, content) = (Some(bucket.into()), Some(content));
        wire.send(code::PUT_REQ, &RpbPutReq { bucket, key: Some("k".into()), content, ..RpbPutReq::default() }).await;
        wire.expect_empty(code::PUT_RESP).await;
    }
    test.run("enable");
    let mut alice = secured(&node, false).await;
    assert_eq!(alice.ask(&auth("alice", "secret")).await, Ok(code::AUTH_RESP));
    (node, alice)
}

/// The results of a job, and the error with which it ends.
async fn run_as(client: &mut Secured, job: &str, content_type: &'static str) -> (Vec<String>, Option<String>) {
    let mut request = Vec::new();
    let job = RpbMapRedReq { request: job.to_owned().into(), content_type: content_type.into() };
    write_message(code::MAP_RED_REQ, &job, &mut request);
    client.send(&request).await;
    let mut results = Vec::new();
    loop {
        let frame = client.frame().await.expect("an answer");
        if let Some(error) = error_text(&frame) {
            return (results, Some(error));
        }
        assert_eq!(frame.code, code::MAP_RED_RESP);
        let answer = RpbMapRedResp::decode(frame.body).unwrap();
        if answer.done == Some(true) {
            return (results, None);
        }
        results.push(String::from_utf8(answer.response.unwrap().to_vec()).unwrap());
    }
}

async fn run(client: &mut Secured, job: &str) -> (Vec<String>, Option<String>) {
    run_as(client, job, "application/json").await
}

fn refused(why: &str) -> (Vec<String>, Option<String>) {
    (Vec::new(), Some(why.to_owned()))
}

#[tokio::test]
async fn a_job_reads_no_bucket_without_permission_wherever_its_keys_come_from() {
    let test = SecurityOfTest::after(ALICE);
    let (_node, mut alice) = node(&test, JobSwitches::default()).await;
    assert_eq!(run(&mut alice, ALLOWED).await, (vec!["[\"open\"]".to_owned()], None));
    for job in [&LEAD_AWAY[..], &[FUNCTION_ELSEWHERE]].concat() {
        assert_eq!(run(&mut alice, job).await, refused(DENIED), "{job}");
    }
    let first = vec![r#"[["b","missing",["secret","k"]]]"#.to_owned()];
    assert_eq!(run(&mut alice, LEADS_AWAY_LATER).await, (first, Some(DENIED.to_owned())));
    test.run("grant riak_kv.mapreduce on default secret to alice");
    for job in LEAD_AWAY {
        assert_eq!(run(&mut alice, job).await, (vec!["[\"closed\"]".to_owned()], None), "{job}");
    }
}

#[tokio::test]
async fn jobs_follow_no_links_while_security_is_on() {
    let test = SecurityOfTest::after(ALICE);
    let (_node, mut alice) = node(&test, JobSwitches::default()).await;
    assert_eq!(run(&mut alice, FOLLOWS_LINKS).await, refused(LINKS_ARE_OFF));
    test.run("revoke riak_kv.mapreduce on default b from alice");
    assert_eq!(run(&mut alice, FOLLOWS_LINKS).await, refused(&DENIED.replace("secret", "b")));
}

#[tokio::test]
async fn inputs_that_name_no_bucket_need_the_permission_on_any() {
    let test = SecurityOfTest::after(ALICE);
    test.run("grant riak_kv.mapreduce on default to alice");
    let (_node, mut alice) = node(&test, JobSwitches::default()).await;
    assert_eq!(run(&mut alice, NAMES_NO_BUCKET).await, refused(DENIED_ON_ANY));
    test.run("grant riak_kv.mapreduce on any to alice");
    assert_eq!(run(&mut alice, NAMES_NO_BUCKET).await, refused(r#"{"error":"map_reduce_error"}"#));
}

#[tokio::test]
async fn a_search_as_inputs_needs_its_permission() {
    let test = SecurityOfTest::after(ALICE);
    let (_node, mut alice) = node(&test, JobSwitches::default()).await;
    for job in [READS_FOUND, GIVES_FOUND] {
        assert_eq!(run(&mut alice, job).await, refused(SEARCH_DENIED), "{job}");
    }
    test.run("grant search.query on index people to alice");
    let no_search = "Error sending inputs: this node has no search; `search = on` in its configuration switches it on";
    for job in [READS_FOUND, GIVES_FOUND] {
        assert_eq!(run(&mut alice, job).await, refused(no_search), "{job}");
    }
}

#[tokio::test]
async fn jobs_over_searches_are_switched_off_with_searches() {
    let test = SecurityOfTest::after(ALICE);
    let (_node, mut alice) = node(&test, JobSwitches::default().with(JobClass::YokozunaQuery, false)).await;
    assert_eq!(run(&mut alice, ALLOWED).await, (vec!["[\"open\"]".to_owned()], None));
    assert_eq!(run(&mut alice, GIVES_FOUND).await, refused(SEARCH_DENIED));
    test.run("grant search.query on index people to alice");
    assert_eq!(run(&mut alice, GIVES_FOUND).await, refused("Operation '{yokozuna,query}' is not enabled"));
}

#[tokio::test]
async fn what_a_search_finds_is_given_in_the_encoding_of_the_request() {
    let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let dir = tempfile::tempdir().unwrap();
    let kv_config = KvConfig { ring_size: 8, ..KvConfig::new("riak@127.0.0.1", dir.path(), backend) };
    let change = |ctx: PbContext| PbContext { map_reduce: jobs_with_search(&ctx.kv, Ok("b")), ..ctx };
    let node = Node::changed(kv_config, dir, PbConfig::default(), MemoryLimits::default(), change).await;
    let mut wire = node.connect().await;
    let atom = Term::atom;
    let texts = |texts: &[&str]| Term::List(texts.iter().map(|text| Term::binary(text.as_bytes())).collect());
    let search = Term::Tuple(vec![
        atom("modfun"),
        atom("yokozuna"),
        atom("mapred_search"),
        texts(&["people", "name_s:*", "age_i:1"]),
    ]);
    let job = Term::List(vec![Term::pair(atom("inputs"), search), Term::pair(atom("query"), Term::nil())]);
    let request = RpbMapRedReq { request: encode(&job).into(), content_type: "application/x-erlang-binary".into() };
    let answer: RpbMapRedResp = wire.ask(code::MAP_RED_REQ, &request, code::MAP_RED_RESP).await;
    let key = Term::pair(Term::binary(b"b"), Term::binary(b"k"));
    let found = Term::List(vec![Term::pair(key, Term::pair(atom("struct"), Term::nil()))]);
    assert_eq!(answer.response.unwrap(), encode(&found));
    let done: RpbMapRedResp = wire.expect(code::MAP_RED_RESP).await;
    assert_eq!(done.done, Some(true));
}

#[tokio::test]
async fn a_switch_answers_after_the_permissions_and_before_what_else_is_wrong() {
    let test = SecurityOfTest::after(ALICE);
    let (_node, mut alice) = node(&test, JobSwitches::default().with(JobClass::MapReduce, false)).await;
    let off = refused("Operation '{riak_kv,map_reduce}' is not enabled");
    for job in [ALLOWED, FOLLOWS_LINKS, "no job"] {
        assert_eq!(run(&mut alice, job).await, off, "{job}");
    }
    assert_eq!(run_as(&mut alice, ALLOWED, "text/plain").await, off);
    test.run("revoke riak_kv.mapreduce on default b from alice");
    assert_eq!(run(&mut alice, ALLOWED).await, refused(&DENIED.replace("secret", "b")));
}
