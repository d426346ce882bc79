//! Resources about the node, unknown paths, and features of Riak that do not exist here.

use super::Server;

#[tokio::test]
async fn the_node_tells_about_itself() {
    let server = Server::start().await;
    assert_eq!(server.get("/ping").await.text(), "OK");
    assert_eq!(server.get("/health/live").await.status, 200);
    assert_eq!(server.get("/health/ready").await.json()["ready"], true);
    let stats = server.get("/stats").await;
    assert_eq!(stats.json()["nodename"], "riak@127.0.0.1");
    assert!(stats.json()["node_gets_total"].is_u64());
    let lines = server.request("GET", "/stats", "Accept: text/plain\r\n", "").await;
    assert!(lines.text().lines().count() > 100);
    assert!(server.get("/metrics").await.text().contains("# TYPE"));
    server.kv.close();
    assert_eq!(server.get("/health/live").await.status, 200);
    assert_eq!(server.get("/health/ready").await.status, 503);
    assert_eq!(server.get("/buckets/b/keys/k").await.status, 503);
}

#[tokio::test]
async fn the_root_lists_prefixes() {
    let server = Server::start().await;
    let json = server.request("GET", "/", "Accept: application/json\r\n", "").await;
    assert!(json.text().contains("\"riak_kv_wm_buckets\":\"/buckets\",\"riak_kv_wm_buckets\":\"/riak\""));
    assert!(json.header("link").is_some_and(|l| l.contains("</mapred>; rel=\"riak_kv_wm_mapred\"")));
    assert!(server.get("/").await.text().contains("<a href=\"/ping\">riak_kv_wm_ping</a>"));
}

#[tokio::test]
async fn methods_and_paths_that_are_not_there() {
    let server = Server::start().await;
    let status = async |method, path| server.request(method, path, "", "").await.status;
    assert_eq!(status("GET", "/nonesuch").await, 404);
    assert_eq!(status("PATCH", "/buckets/b/keys/k").await, 501);
    let refused = server.request("OPTIONS", "/buckets/b/keys/k", "", "").await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("HEAD, GET, POST, PUT, DELETE")));
    assert!(refused.text().contains("<title>405 Method Not Allowed</title>"));
    assert_eq!(status("GET", "/admin/v1/node").await, 404);
}

#[tokio::test]
async fn absent_parts_of_riak_say_so() {
    let server = Server::start().await;
    for (method, path, status) in [
        ("GET", "/queuename/q", 501),
        ("GET", "/cachedtrees/nvals/3/nonesuch", 404),
        // A Riak without search does not have these paths either.
        ("GET", "/search/index/i", 404),
        ("PUT", "/search/schema/s", 404),
        ("GET", "/search/query/i", 404),
        ("GET", "/solr/i/select", 404),
    ] {
        let answer = server.request(method, path, "", "").await;
        assert_eq!((answer.status, answer.body.is_empty()), (status, false), "{method} {path}");
    }
}
