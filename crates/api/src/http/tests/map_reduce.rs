//! Which jobs run while security is on, and which buckets they reach.

use super::Server;
use super::login::{Secured, basic};
use crate::http::{HttpContext, HttpLimits};
use crate::map_reduce::sample_jobs::{
    ALICE, ALLOWED, DENIED, DENIED_ON_ANY, FOLLOWS_LINKS, FUNCTION_ELSEWHERE, GIVES_FOUND, LEAD_AWAY, LEADS_AWAY_LATER,
    NAMES_NO_BUCKET, READS_FOUND, SEARCH_DENIED, jobs_with_search,
};
use crate::security::tests::SecurityOfTest;
use crate::{JobClass, JobSwitches, MemoryLimits};
use ombak_kv::{KvConfig, head_terms};
use ombak_mapreduce::{Failure, InputsFailure, InputsProblem};
use ombak_storage::{MemoryConfig, MemoryFactory};
use std::sync::Arc;
use tempfile::TempDir;

const LINKS_ARE_OFF: &str = "Link walking is deprecated in Riak 2.0 and is not compatible with security.";

/// A node with the objects that the jobs read. Security is off.
async fn node(test: &SecurityOfTest) -> Secured {
    filled(Secured::start(test, &[]).await).await
}

/// The node with these objects.
async fn filled(node: Secured) -> Secured {
    for (path, value) in [("/buckets/b/keys/k", "open"), ("/buckets/secret/keys/k", "closed")] {
        assert_eq!(node.server.put(path, "", value).await.status, 204, "{path}");
    }
    node
}

/// The answer to a job of the user.
async fn run(node: &Secured, job: &str, is_chunked: bool) -> (u16, String) {
    let headers = format!("Content-Type: application/json\r\n{}", basic("alice:secret"));
    let request = format!("POST /mapred?chunked={is_chunked}");
    let answer = node.request_with(false, &request, &headers, job).await;
    (answer.status, answer.text())
}

#[tokio::test]
async fn a_job_reads_no_bucket_without_permission_wherever_its_keys_come_from() {
    let test = SecurityOfTest::after(ALICE);
    let node = node(&test).await;
    for job in LEAD_AWAY {
        assert_eq!(run(&node, job, false).await, (200, "[\"closed\"]".to_owned()), "security is off: {job}");
    }
    test.run("enable");
    assert_eq!(run(&node, ALLOWED, false).await, (200, "[\"open\"]".to_owned()));
    for job in [&LEAD_AWAY[..], &[FUNCTION_ELSEWHERE]].concat() {
        for is_chunked in [false, true] {
            assert_eq!(run(&node, job, is_chunked).await, (403, DENIED.to_owned()), "{job}");
        }
    }
    test.run("grant riak_kv.mapreduce on default secret to alice");
    for job in LEAD_AWAY {
        assert_eq!(run(&node, job, false).await, (200, "[\"closed\"]".to_owned()), "{job}");
    }
}

#[tokio::test]
async fn a_refusal_behind_results_is_a_part_of_the_answer_or_its_status() {
    let test = SecurityOfTest::after(ALICE);
    let node = node(&test).await;
    test.run("enable");
    assert_eq!(run(&node, LEADS_AWAY_LATER, false).await, (403, DENIED.to_owned()));
    let (status, parts) = run(&node, LEADS_AWAY_LATER, true).await;
    assert_eq!(status, 200, "results have been sent");
    assert!(parts.contains(r#"{"phase":0,"data":[["b","missing",["secret","k"]]]}"#), "{parts}");
    assert!(parts.contains(&format!("{{\"error\":\"{DENIED}\"}}")), "{parts}");
    assert!(!parts.contains("closed"), "{parts}");
}

#[tokio::test]
async fn jobs_follow_no_links_while_security_is_on() {
    let test = SecurityOfTest::after(ALICE);
    let node = node(&test).await;
    assert_eq!(run(&node, FOLLOWS_LINKS, false).await.0, 200);
    test.run("enable");
    assert_eq!(run(&node, FOLLOWS_LINKS, false).await, (403, LINKS_ARE_OFF.to_owned()));
    test.run("revoke riak_kv.mapreduce on default b from alice");
    let denied = DENIED.replace("secret", "b");
    assert_eq!(run(&node, FOLLOWS_LINKS, false).await, (403, denied), "permissions come first, as in Riak");
}

#[tokio::test]
async fn inputs_that_name_no_bucket_need_the_permission_on_any() {
    let test = SecurityOfTest::after(ALICE);
    test.run("grant riak_kv.mapreduce on default to alice");
    let node = node(&test).await;
    test.run("enable");
    assert_eq!(run(&node, NAMES_NO_BUCKET, false).await, (403, DENIED_ON_ANY.to_owned()));
    test.run("grant riak_kv.mapreduce on any to alice");
    assert_eq!(run(&node, NAMES_NO_BUCKET, false).await.0, 500, "there are no such inputs here");
}

#[tokio::test]
async fn a_search_as_inputs_needs_its_permission_and_those_of_the_buckets_that_it_finds() {
    for (bucket, read, given) in [("b", r#"["open"]"#, r#"[["b","k",{}]]"#), ("secret", "", "")] {
        let test = SecurityOfTest::after(ALICE);
        let change = |ctx: HttpContext| {
            let jobs = jobs_with_search(&ctx.kv, Ok(bucket));
            ctx.with_map_reduce(jobs)
        };
        let node = filled(Secured::changed(&test, &[], HttpLimits::default(), change).await).await;
        test.run("enable");
        for job in [READS_FOUND, GIVES_FOUND] {
            assert_eq!(run(&node, job, false).await, (403, SEARCH_DENIED.to_owned()), "{job}");
        }
        test.run("grant search.query on index people to alice");
        for (job, results) in [(READS_FOUND, read), (GIVES_FOUND, given)] {
            for is_chunked in [false, true] {
                let (status, text) = run(&node, job, is_chunked).await;
                match bucket {
                    "b" => assert!(status == 200 && text.contains(results), "{job}: {status} {text}"),
                    _ => assert_eq!((status, text.as_str()), (403, DENIED), "{job}"),
                }
            }
        }
    }
}

/// A server whose searches find this for jobs.
async fn searching(jobs: JobSwitches, finds: Result<&'static str, Failure>) -> Server {
    let dir = TempDir::new().unwrap();
    let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let config = KvConfig { ring_size: 8, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
    Server::changed(config, dir, MemoryLimits::default(), HttpLimits::default(), jobs, |ctx| {
        let jobs = jobs_with_search(&ctx.kv, finds);
        ctx.with_map_reduce(jobs)
    })
    .await
}

/// The answer to a job over a search.
async fn over_search(server: &Server, is_chunked: bool) -> (u16, String) {
    let path = format!("/mapred?chunked={is_chunked}");
    let answer = server.request("POST", &path, "Content-Type: application/json\r\n", GIVES_FOUND).await;
    (answer.status, answer.text())
}

#[tokio::test]
async fn a_search_that_fails_as_inputs_has_the_status_of_a_search() {
    for (problem, status) in
        [(InputsProblem::Missing, 404), (InputsProblem::Bad, 400), (InputsProblem::Unavailable, 503)]
    {
        let failure = Failure::Inputs(InputsFailure { problem, why: "no".to_owned() });
        let server = searching(JobSwitches::default(), Err(failure)).await;
        for is_chunked in [false, true] {
            let text = r#"{"error":"Error sending inputs: no"}"#.to_owned();
            assert_eq!(over_search(&server, is_chunked).await, (status, text));
        }
    }
    let server = Server::start().await;
    for is_chunked in [false, true] {
        let (status, text) = over_search(&server, is_chunked).await;
        assert!(status == 404 && text.contains("this node has no search"), "{status} {text}");
    }
}

#[tokio::test]
async fn jobs_over_searches_are_switched_off_with_searches_or_with_jobs() {
    let on = searching(JobSwitches::default(), Ok("b")).await;
    assert_eq!(over_search(&on, false).await, (200, r#"[["b","k",{}]]"#.to_owned()));
    for class in [JobClass::YokozunaQuery, JobClass::MapReduce] {
        let off = searching(JobSwitches::default().with(class, false), Ok("b")).await;
        let text = format!("Operation '{}' is not enabled", class.term());
        for is_chunked in [false, true] {
            assert_eq!(over_search(&off, is_chunked).await, (403, text.clone()));
        }
        if class == JobClass::YokozunaQuery {
            let answer = off.request("POST", "/mapred", "Content-Type: application/json\r\n", ALLOWED).await;
            assert_ne!(answer.status, 403, "another job");
        }
    }
}
