//! Objects: reading, writing, deleting, siblings, conditions.

use super::Server;

#[tokio::test]
pub(super) async fn an_object_lives_and_dies() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k%2F1";
    assert_eq!(server.get(path).await.status, 404);
    assert_eq!(server.put(path, "X-Riak-Meta-foo: bar\r\n", "hello").await.status, 204);
    let got = server.get(path).await;
    assert_eq!((got.status, got.text().as_str()), (200, "hello"));
    assert_eq!(got.header("content-type"), Some("text/plain"));
    assert_eq!(got.header("x-riak-meta-foo"), Some("bar"));
    assert_eq!(got.header("link"), Some("</buckets/b>; rel=\"up\""));
    assert_eq!(got.header("vary"), Some("Accept-Encoding"));
    assert!(got.header("server").is_some_and(|s| s.starts_with("Ombak/")));
    assert!(got.header("date").is_some());
    for older in ["/riak/b/k%2F1", "/types/default/buckets/b/keys/k%2F1"] {
        assert_eq!(server.get(older).await.text(), "hello", "{older}");
    }
    assert_eq!(server.request("DELETE", path, "", "").await.status, 204);
    let gone = server.get(path).await;
    assert_eq!((gone.status, gone.header("x-riak-deleted")), (404, Some("true")));
    assert!(gone.head.starts_with("HTTP/1.1 404 Object Not Found"), "{}", gone.head);
    assert_eq!(server.request("DELETE", path, "", "").await.status, 404);
}

#[tokio::test]
async fn index_entries_are_stored_in_order_and_each_once() {
    let server = Server::start().await;
    let headers = "x-riak-index-Tag_bin: b, a\r\nx-riak-index-n_int: 10, 9, 010\r\nx-riak-index-tag_bin: a\r\n";
    assert_eq!(server.put("/buckets/b/keys/k", headers, "v").await.status, 204);
    let got = server.get("/buckets/b/keys/k").await;
    assert_eq!(got.header("x-riak-index-n_int"), Some("9, 10"));
    assert_eq!(got.header("x-riak-index-tag_bin"), Some("a, b"));
    assert_eq!(server.put("/buckets/b/keys/k", "x-riak-index-_int: 1\r\n", "v").await.status, 400, "no name");
}

#[tokio::test]
async fn head_tells_the_length_and_sends_nothing() {
    let server = Server::start().await;
    server.put("/buckets/b/keys/k", "", "hello").await;
    let head = server.request("HEAD", "/buckets/b/keys/k", "", "").await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("5")));
    assert!(head.body.is_empty());
}

#[tokio::test]
async fn a_key_can_be_made_by_the_server() {
    let server = Server::start().await;
    server.create_type("t");
    for (path, prefix) in [
        ("/buckets/b/keys", "/buckets/b/keys/"),
        ("/riak/b", "/riak/b/"),
        ("/types/t/buckets/b/keys", "/types/t/buckets/b/keys/"),
    ] {
        let made = server.request("POST", path, "Content-Type: text/plain\r\n", "posted").await;
        assert_eq!((made.status, made.text().as_str()), (201, ""), "{path}");
        let location = made.header("location").expect("a location");
        assert!(location.starts_with(prefix), "{location}");
        assert_eq!(server.get(location).await.text(), "posted");
    }
    let shown = server.request("POST", "/riak/b?returnbody=true", "Content-Type: a/b\r\n", "posted").await;
    assert_eq!((shown.status, shown.text().as_str(), shown.header("content-type")), (201, "posted", Some("a/b")));
}

#[tokio::test]
pub(super) async fn siblings_are_listed_shown_and_resolved() {
    let server = Server::start().await;
    server.create_type("t");
    let path = "/types/t/buckets/s/keys/k";
    server.put(path, "x-riak-index-a_bin: 1\r\n", "v2").await;
    let second = server.put(&format!("{path}?returnbody=true"), "X-Riak-Meta-w: one\r\n", "v1").await;
    assert_eq!(second.status, 300);

    let list = server.get(path).await;
    assert_eq!((list.status, list.header("vary")), (300, Some("Accept, Accept-Encoding")));
    let text = list.text();
    let tags: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(tags.len(), 2, "{text}");
    let mut values = Vec::new();
    for tag in &tags {
        values.push(server.get(&format!("{path}?vtag={tag}")).await.text());
    }
    assert_eq!(values, ["v1", "v2"], "in the order of their values, not of writing");
    assert_eq!(server.get(&format!("{path}?vtag=zork")).await.status, 404);

    let parts = server.request("GET", path, "Accept: multipart/mixed\r\n", "").await;
    assert_eq!(parts.status, 300);
    let boundary = parts.header("content-type").and_then(|t| t.split_once("boundary=")).expect("a boundary").1;
    let text = parts.text();
    assert_eq!(text.matches(&format!("--{boundary}\r\n")).count(), 2);
    assert!(text.ends_with(&format!("\r\n--{boundary}--\r\n")), "{text}");
    assert!(
        text.contains("X-Riak-Meta-W: one\r\n\r\nv1") && text.contains("x-riak-index-a_bin: 1\r\n\r\nv2"),
        "{text}"
    );
    assert_eq!(server.request("GET", path, "Accept: application/json\r\n", "").await.status, 406);

    let last_wins = server.request("GET", path, "Accept: */*, multipart/mixed\r\n", "").await;
    assert!(last_wins.header("content-type").is_some_and(|t| t.starts_with("multipart/mixed")), "{}", last_wins.head);

    let etag = list.header("etag").expect("a tag");
    let same = server.request("GET", path, &format!("If-None-Match: {etag}\r\n"), "").await;
    assert_eq!((same.status, same.header("etag")), (304, Some(etag)));

    let clock = format!("X-Riak-Vclock: {}\r\n", list.clock());
    let resolved = server.put(&format!("{path}?returnbody=true"), &clock, "resolved").await;
    assert_eq!((resolved.status, resolved.text().as_str()), (200, "resolved"));
}

#[tokio::test]
async fn a_copy_that_is_known_already_is_shown_with_its_value() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    let clock = server.put(&format!("{path}?returnbody=true"), "", "value").await.clock();
    let again =
        server.put(&format!("{path}?returnbody=true&asis=true"), &format!("X-Riak-Vclock: {clock}\r\n"), "x").await;
    assert_eq!((again.status, again.text().as_str(), again.clock()), (200, "value", clock));
}

#[tokio::test]
async fn a_tombstone_among_siblings_is_shown_as_one() {
    let server = Server::start().await;
    server.create_type("t");
    let path = "/types/t/buckets/s/keys/k";
    server.put(path, "", "v1").await;
    let clock = format!("X-Riak-Vclock: {}\r\n", server.get(path).await.clock());
    server.put(path, &clock, "v2").await;
    assert_eq!(server.request("DELETE", path, &clock, "").await.status, 204);
    let parts = server.request("GET", path, "Accept: multipart/mixed\r\n", "").await;
    assert_eq!(parts.status, 300);
    let text = parts.text();
    assert!(text.contains("Content-Type: application/octet-stream\r\n") && text.contains("X-Riak-Deleted: true\r\n"));
}

#[tokio::test]
async fn conditions_guard_writes() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    let put = async |headers: &str| server.put(path, headers, "v").await.status;
    assert_eq!(put("If-Match: \"zork\"\r\n").await, 412);
    assert_eq!(put("If-None-Match: *\r\n").await, 204);
    assert_eq!(put("If-None-Match: *\r\n").await, 412);
    let current = server.get(path).await;
    assert_eq!(put("If-Match: \"zork\"\r\n").await, 412);
    assert_eq!(put(&format!("If-Match: {}\r\n", current.header("etag").expect("a tag"))).await, 204);
    let unchanged = format!("X-Riak-If-Not-Modified: {}\r\n", current.clock());
    assert_eq!(put(&unchanged).await, 409);
    let current = format!("X-Riak-If-Not-Modified: {}\r\n", server.get(path).await.clock());
    assert_eq!(put(&current).await, 204);
    assert_eq!(server.put("/buckets/b/keys/none", &current, "v").await.status, 409);
    assert_eq!(put("X-Riak-If-Not-Modified: zork\r\n").await, 204);
    assert_eq!(put("If-Unmodified-Since: Thu, 01 Jan 2015 00:00:00 GMT\r\n").await, 412);
    let delete = server.request("DELETE", path, "If-Match: \"zork\"\r\n", "").await;
    assert_eq!((delete.status, server.get(path).await.status), (412, 200));
}

#[tokio::test]
async fn a_clock_that_does_not_decode_is_refused() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    server.put(path, "", "v").await;
    for clock in ["zork", "!!!!"] {
        let header = format!("X-Riak-Vclock: {clock}\r\n");
        assert_eq!(server.put(path, &header, "new").await.status, 400);
        assert_eq!(server.request("DELETE", path, &header, "").await.status, 400);
    }
    assert_eq!(server.get(path).await.text(), "v");
}

#[tokio::test]
async fn ranges_and_checksums() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    let good_md5 = "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\r\n";
    assert_eq!(server.put(path, good_md5, "hello").await.status, 204);
    assert_eq!(server.put(path, "Content-MD5: zork\r\n", "other").await.status, 400);
    let part = server.request("GET", path, "Range: bytes=1-2\r\n", "").await;
    assert_eq!((part.status, part.text().as_str()), (206, "el"));
    assert_eq!(part.header("content-range"), Some("bytes 1-2/5"));
    let beyond = server.request("GET", path, "Range: bytes=9-\r\n", "").await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */5")));
    let other = server.request("GET", path, "Range: bytes=1-2\r\nIf-Range: \"zork\"\r\n", "").await;
    assert_eq!((other.status, other.text().as_str()), (200, "hello"));
}

#[tokio::test]
async fn large_texts_are_compressed_for_those_who_ask() {
    let server = Server::start().await;
    let (path, value) = ("/buckets/b/keys/k", "x".repeat(4096));
    server.put(path, "", &value).await;
    let packed = server.request("GET", path, "Accept-Encoding: gzip\r\n", "").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut plain = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed.body[..]), &mut plain).expect("gzip");
    assert_eq!(plain, value);
    let same = format!("If-None-Match: {}\r\n", packed.header("etag").expect("a tag"));
    assert_eq!(server.request("GET", path, &same, "").await.status, 304);
    assert_eq!(server.get(path).await.header("content-encoding"), None);
}

#[tokio::test]
async fn parameters_and_headers_are_checked() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    let no_type = server.request("PUT", path, "", "v").await;
    assert_eq!((no_type.status, no_type.text().as_str()), (400, "Missing Content-Type request header"));
    let bad = server.put(&format!("{path}?w=foo"), "", "v").await;
    let text = "w query parameter must be an integer or one of the following words: 'one', 'quorum' or 'all'\n";
    assert_eq!((bad.status, bad.text().as_str()), (400, text));
    let large = server.put(&format!("{path}?w=9"), "", "v").await;
    let text = "Specified w/dw/pw/node_confirms values invalid for bucket n value of 3\n";
    assert_eq!((large.status, large.text().as_str()), (400, text));
    let late = server.put(&format!("{path}?timeout=-5"), "", "v").await;
    assert_eq!((late.status, late.text().as_str()), (503, "request timed out\n"));
    assert_eq!(server.put(path, "Link: garbage\r\n", "v").await.status, 400);
    assert_eq!(server.put("/types/none/buckets/b/keys/k", "", "v").await.text(), "Unknown bucket type: none");
    assert_eq!(server.get(path).await.status, 404);
}

#[tokio::test]
async fn foreign_pages_cannot_write() {
    let server = Server::start().await;
    let path = "/buckets/b/keys/k";
    assert_eq!(server.put(path, "Referer: http://evil.example/\r\n", "v").await.status, 403);
    assert_eq!(server.put(path, "Origin: null\r\n", "v").await.status, 403);
    let own = format!("Referer: http://{}/\r\n", server.addr);
    assert_eq!(server.put(path, &own, "v").await.status, 204);
}
