//! Which jobs run while security is on, and which buckets they reach.

use super::login::{Secured, basic};
use crate::map_reduce::sample_jobs::{
    ALICE, ALLOWED, DENIED, DENIED_ON_ANY, FOLLOWS_LINKS, FUNCTION_ELSEWHERE, LEAD_AWAY, LEADS_AWAY_LATER,
    NAME_NO_BUCKET,
};
use crate::security::tests::SecurityOfTest;

const LINKS_ARE_OFF: &str = "Link walking is deprecated in Riak 2.0 and is not compatible with security.";

/// A node with the objects that the jobs read. Security is off.
async fn node(test: &SecurityOfTest) -> Secured {
    let node = Secured::start(test, &[]).await;
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
    for job in NAME_NO_BUCKET {
        assert_eq!(run(&node, job, false).await, (403, DENIED_ON_ANY.to_owned()), "{job}");
    }
    test.run("grant riak_kv.mapreduce on any to alice");
    for job in NAME_NO_BUCKET {
        assert_eq!(run(&node, job, false).await.0, 500, "there are no such inputs here: {job}");
    }
}
