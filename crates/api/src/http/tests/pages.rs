//! What web pages may do, over real connections to a loopback listener.

use super::{Answer, Server};

const EVIL: &str = "Origin: http://evil.example\r\n";

#[tokio::test]
async fn a_page_of_another_site_writes_nothing() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    assert_eq!(server.put(path, "", "value").await.status, 204);
    for (method, path) in [
        ("POST", "/buckets/b/keys"),
        ("POST", "/riak/b"),
        ("POST", path),
        ("PUT", path),
        ("DELETE", path),
        ("PUT", "/buckets/b/props"),
        ("DELETE", "/buckets/b/props"),
        ("POST", "/mapred"),
    ] {
        for origin in [EVIL, "Origin: null\r\n"] {
            let refused = server.request(method, path, &format!("Content-Type: text/plain\r\n{origin}"), "evil").await;
            assert_eq!(refused.status, 403, "{method} {path} {origin}");
            assert!(!refused.text().is_empty());
        }
    }
    let refused = server.put(path, EVIL, "evil").await;
    assert!(refused.text().contains("http.allowed_origins"), "{}", refused.text());
    let read = server.request("GET", path, EVIL, "").await;
    assert_eq!((read.status, read.text().as_str()), (200, "value"), "reading is for every page, as in Riak");
    assert_eq!(server.get("/buckets/b/keys?keys=true").await.json()["keys"], serde_json::json!(["k"]));
    let own = format!("Origin: http://{}\r\n", server.addr);
    assert_eq!(server.put(path, &own, "own").await.status, 204);
}

#[tokio::test]
async fn a_page_of_another_site_erases_nothing_with_a_get() {
    let server = Server::start().await;
    assert_eq!(server.put("/buckets/b/keys/k", "", "value").await.status, 204);
    // {"change_method":"local"}
    let filter = "?filter=eyJjaGFuZ2VfbWV0aG9kIjoibG9jYWwifQ%3D%3D";
    for path in ["/erase/buckets/b", "/reap/buckets/b", "/rangerepair/buckets/b", "/erase/types/default/buckets/b"] {
        for site in ["cross-site", "same-site"] {
            let header = format!("Sec-Fetch-Site: {site}\r\n");
            let refused = server.request("GET", &format!("{path}{filter}"), &header, "").await;
            assert_eq!(refused.status, 403, "{path} {site}");
            assert!(refused.text().contains(site), "{}", refused.text());
        }
        for foreign in [EVIL, "Referer: http://evil.example/\r\n", "Origin: null\r\n"] {
            let refused = server.request("GET", &format!("{path}{filter}"), foreign, "").await;
            assert_eq!(refused.status, 403, "{path} {foreign}");
        }
    }
    let reading = server.request("GET", "/tombs/buckets/b?filter=e30%3D", "Sec-Fetch-Site: cross-site\r\n", "").await;
    assert_eq!(reading.status, 200, "reading is for every page: {}", reading.text());
    assert_eq!(server.get("/buckets/b/keys/k").await.status, 200);
    // These reach the queues of the node, which are not open here.
    for own in ["", "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
        let served = server.request("GET", &format!("/erase/buckets/b{filter}"), own, "").await;
        assert_eq!(served.status, 503, "{own}: {}", served.text());
        assert!(served.text().contains("queues"), "{own}: {}", served.text());
    }
}

#[tokio::test]
async fn a_name_that_was_made_to_point_here_reaches_nothing() {
    let server = Server::start().await;
    let called = async |line: &str| {
        let head = format!("GET /ping HTTP/1.0\r\n{line}\r\n");
        Answer::parse(&server.exchange(head.as_bytes()).await)
    };
    let port = server.addr.port();
    for own in
        [format!("Host: localhost:{port}\r\n"), "Host: 127.0.0.1\r\n".into(), "Host: [::1]:1\r\n".into(), String::new()]
    {
        assert_eq!(called(&own).await.status, 200, "{own}");
    }
    for foreign in [format!("Host: evil.example:{port}\r\n"), "Host: 10.0.0.1\r\n".into()] {
        let refused = called(&foreign).await;
        assert_eq!(refused.status, 403, "{foreign}");
        assert!(refused.text().contains("http.allowed_hosts"), "{}", refused.text());
    }
}
