//! Every request passes the gate before its resource sees it.

use super::*;
use crate::access::NotedAccesses;

const REQUESTS: [(&str, &str, &str, &str); 22] = [
    ("GET", "/buckets/b/keys/k", "riak_kv.get", "default/b"),
    ("HEAD", "/riak/b/k", "riak_kv.get", "default/b"),
    ("GET", "/types/t/buckets/b/keys/k", "riak_kv.get", "t/b"),
    ("PUT", "/buckets/b/keys/k", "riak_kv.put", "default/b"),
    ("POST", "/types/t/buckets/b/keys/k", "riak_kv.put", "t/b"),
    ("POST", "/buckets/b/keys", "riak_kv.put", "default/b"),
    ("POST", "/riak/b", "riak_kv.put", "default/b"),
    ("DELETE", "/buckets/b/keys/k", "riak_kv.delete", "default/b"),
    ("GET", "/buckets/b/keys/k/_,_,1", "riak_kv.get", "default/b"),
    ("GET", "/buckets/b/keys?keys=true", "riak_kv.list_keys", "default/b"),
    ("GET", "/riak/b?keys=stream", "riak_kv.list_keys", "default/b"),
    ("GET", "/buckets?buckets=true", "riak_kv.list_buckets", "default/-"),
    ("GET", "/types/t/buckets?buckets=true", "riak_kv.list_buckets", "t/-"),
    ("GET", "/buckets/b/index/f_bin/x", "riak_kv.index", "default/b"),
    ("GET", "/buckets/b/props", "riak_core.get_bucket", "default/b"),
    ("PUT", "/types/t/buckets/b/props", "riak_core.set_bucket", "t/b"),
    ("DELETE", "/buckets/b/props", "riak_core.set_bucket", "default/b"),
    ("GET", "/riak/b", "riak_core.get_bucket", "default/b"),
    ("GET", "/types/t/props", "riak_core.get_bucket_type", "t/-"),
    ("PUT", "/types/t/props", "riak_core.set_bucket_type", "t/-"),
    ("GET", "/types/t/buckets/b/datatypes/k", "riak_kv.get", "t/b"),
    ("POST", "/types/t/buckets/b/datatypes/k", "riak_kv.put", "t/b"),
];

#[tokio::test]
pub(super) async fn the_policy_is_asked_for_each_request_and_its_refusal_is_the_answer() {
    let policy = Arc::new(NotedAccesses::refusing());
    let server = Server::guarded(policy.clone()).await;
    for (method, path, permission, place) in REQUESTS {
        let answer = server.request(method, path, "", "").await;
        assert_eq!(answer.status, 403, "{method} {path}");
        if method != "HEAD" {
            assert_eq!(answer.body, format!("no {permission}").as_bytes(), "{method} {path}");
        }
        assert_eq!(policy.take(), [(permission, place.to_owned())], "{method} {path}");
    }
    assert_eq!(server.stat("node_gets_total") + server.stat("node_puts_total"), 0, "the engine was not asked");
    for path in ["/ping", "/stats", "/health/live", "/"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    assert!(policy.take().is_empty(), "these resources need no permission");
}
