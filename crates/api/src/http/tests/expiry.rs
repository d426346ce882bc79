//! Values that expire.

use super::{HttpLimits, JobSwitches, Server};
use ombak_runtime::{OtherClocks, TokioRuntime};
use ombak_types::time::UnixMicros;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const JSON: &str = "Content-Type: application/json\r\n";

/// A server whose clock stands still until the returned function moves it.
async fn timed() -> (Server, impl Fn(u64)) {
    let secs = Arc::new(AtomicU64::new(1_800_000_000));
    let clock = secs.clone();
    let clock = move || UnixMicros::from_secs(clock.load(Ordering::SeqCst));
    let runtime = Arc::new(OtherClocks::of(Arc::new(TokioRuntime)).with_wall_clock(clock));
    let server = Server::timed(HttpLimits::default(), JobSwitches::default(), runtime).await;
    (server, move |wait_secs| {
        secs.fetch_add(wait_secs, Ordering::SeqCst);
    })
}

#[tokio::test]
async fn a_header_says_how_long_a_value_lives() {
    let (server, wait_secs) = timed().await;
    let path = "/buckets/b/keys/k";
    assert_eq!(server.put(path, "X-Ombak-Ttl: 60\r\n", "v").await.status, 204);
    wait_secs(20);
    for method in ["GET", "HEAD"] {
        let got = server.request(method, path, "", "").await;
        assert_eq!((got.status, got.header("x-ombak-ttl")), (200, Some("60")), "{method}");
        assert_eq!(got.header("x-ombak-ttl-left"), Some("40"), "{method}");
    }
    // The headers combine those of a client that can only send user metadata and those of a client
    // that sends back everything it has read.
    let meta = "X-Riak-Meta-X-Ombak-Ttl: 30\r\nX-Riak-Meta-X-Ombak-Ttl-Left: 9\r\nX-Ombak-Ttl-Left: 9\r\n";
    let shown = server.put(&format!("{path}?returnbody=true"), meta, "w").await;
    assert_eq!((shown.status, shown.header("x-riak-meta-x-ombak-ttl")), (200, Some("30")));
    assert_eq!(shown.header("x-ombak-ttl-left"), Some("30"));
    assert_eq!(shown.header("x-riak-meta-x-ombak-ttl-left"), None);
    wait_secs(31);
    let gone = server.get(path).await;
    assert_eq!((gone.status, gone.header("x-riak-deleted")), (404, None));
    assert_eq!(server.put(path, "If-None-Match: *\r\n", "again").await.status, 204);
    let stays = server.get(path).await;
    assert_eq!((stays.status, stays.header("x-ombak-ttl"), stays.header("x-ombak-ttl-left")), (200, None, None));
}

#[tokio::test]
async fn a_time_to_live_that_cannot_be_is_a_bad_request() {
    let (server, _) = timed().await;
    let path = "/buckets/b/keys/k";
    for (header, given) in [("X-Ombak-Ttl: soon\r\n", "soon"), ("X-Ombak-Ttl: 1\r\nX-Ombak-Ttl: 2\r\n", "1, 2")] {
        let refused = server.put(path, header, "v").await;
        assert_eq!(refused.status, 400, "{header}");
        let text = "X-Ombak-Ttl must be a whole number of seconds from 1 to 1000000000, or 0 for no end";
        assert_eq!(refused.text(), format!("{text}, not '{given}'\n"));
    }
    let refused = server.put(path, "X-Ombak-Ttl: 1\r\nX-Riak-Meta-X-Ombak-Ttl: 2\r\n", "v").await;
    assert_eq!((refused.status, refused.text().as_str()), (400, "X-Ombak-Ttl was given more than once\n"));
    assert_eq!(server.get(path).await.status, 404);
}

#[tokio::test]
async fn siblings_end_one_by_one() {
    let (server, wait_secs) = timed().await;
    server.create_type("t");
    let path = "/types/t/buckets/b/keys/k";
    server.put(path, "X-Ombak-Ttl: 10\r\n", "short").await;
    server.put(path, "X-Ombak-Ttl: 20\r\n", "long").await;
    let parts = server.request("GET", path, "Accept: multipart/mixed\r\n", "").await;
    assert_eq!(parts.status, 300);
    assert!(parts.text().contains("X-Ombak-Ttl-Left: 10\r\n") && parts.text().contains("X-Ombak-Ttl-Left: 20\r\n"));
    wait_secs(11);
    let alone = server.get(path).await;
    assert_eq!((alone.status, alone.text().as_str()), (200, "long"));
    wait_secs(10);
    assert_eq!(server.get(path).await.status, 404);
}

#[tokio::test]
async fn a_bucket_has_a_time_to_live() {
    let (server, wait_secs) = timed().await;
    let props = "/buckets/b/props";
    let set = async |ttl: &str| server.request("PUT", props, JSON, format!("{{\"props\":{{\"ttl\":{ttl}}}}}")).await;
    assert_eq!(server.get(props).await.json()["props"].get("ttl"), None, "Riak has no such property");
    assert_eq!(set("60").await.status, 204);
    assert_eq!(server.get(props).await.json()["props"]["ttl"], 60);
    server.put("/buckets/b/keys/k", "", "v").await;
    let got = server.get("/buckets/b/keys/k").await;
    assert_eq!((got.header("x-ombak-ttl"), got.header("x-ombak-ttl-left")), (None, Some("60")));
    let refused = set("-1").await;
    let text = "must be a whole number of seconds from 1 to 1000000000, or 0 for no end";
    assert_eq!((refused.status, refused.json()), (400, json!({ "ttl": text })));
    assert_eq!(set("0").await.status, 204);
    server.put("/buckets/b/keys/k2", "", "v").await;
    wait_secs(61);
    assert_eq!(server.get("/buckets/b/keys/k").await.status, 404);
    assert_eq!(server.get("/buckets/b/keys/k2").await.status, 200);
}
