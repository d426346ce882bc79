//! Who may send what while security is on.

use super::administration::admin_context;
use super::tls::https;
use super::*;
use crate::admin::AdminContext;
use crate::client_stream::test_tls::{CLIENT, connect, connect_with_certificate};
use crate::security::tests::SecurityOfTest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

const ALICE: &[&str] = &[
    "add-user alice password=se:cret",
    "add-source alice 127.0.0.1/32 password",
    "grant riak_kv.get on default b to alice",
    "enable",
];
const USE_HTTPS: &str = "Security is enabled and Riak does not accept credentials over HTTP. Try HTTPS instead.";
const PASSWORD: &str = "alice:se:cret";

/// A node with a plain listener and one with TLS.
pub(super) struct Secured {
    pub(super) server: Server,
    https: SocketAddr,
    _dir: TempDir,
}

impl Secured {
    pub(super) async fn start(test: &SecurityOfTest, monitoring: &[&str]) -> Self {
        Self::with(test, monitoring, HttpLimits::default()).await
    }

    async fn with(test: &SecurityOfTest, monitoring: &[&str], limits: HttpLimits) -> Self {
        Self::changed(test, monitoring, limits, |ctx| ctx).await
    }

    /// A node whose state `change` may change.
    pub(super) async fn changed(
        test: &SecurityOfTest,
        monitoring: &[&str],
        limits: HttpLimits,
        change: impl FnOnce(HttpContext) -> HttpContext,
    ) -> Self {
        let (dir, backups) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let config = KvConfig { ring_size: 8, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
        let jobs = JobSwitches::default();
        let monitoring = monitoring.iter().map(|range| range.parse().unwrap()).collect();
        let server = Server::changed(config, dir, MemoryLimits::default(), limits, jobs, |mut ctx| {
            let admin = admin_context(ctx.kv.clone(), &backups);
            ctx.admin = Some(AdminContext { security: Some(test.security.clone()), ..admin });
            change(ctx.with_security(test.security.clone(), monitoring))
        });
        let server = server.await;
        let https = https(&server, DEADLINE).await;
        Self { server, https, _dir: backups }
    }

    /// The answer to a request over TLS. `headers` consists of whole lines.
    pub(super) async fn request(&self, with_certificate: bool, request: &str, headers: &str) -> Answer {
        self.request_with(with_certificate, request, headers, "").await
    }

    /// The same with a body.
    pub(super) async fn request_with(
        &self,
        with_certificate: bool,
        request: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let socket = TcpStream::connect(self.https).await.unwrap();
        let mut stream = match with_certificate {
            true => connect_with_certificate(socket).await.unwrap(),
            false => connect(socket).await.unwrap(),
        };
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let text = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}{headers}\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut read = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut read)).await.unwrap().ok();
        Answer::parse(&read)
    }

    async fn get(&self, path: &str, credentials: &str) -> Answer {
        self.request(false, &format!("GET {path}"), &basic(credentials)).await
    }
}

/// The header line with these credentials; nothing for none.
pub(super) fn basic(credentials: &str) -> String {
    match credentials {
        "" => String::new(),
        some => format!("Authorization: Basic {}\r\n", STANDARD.encode(some)),
    }
}

#[tokio::test]
async fn plain_requests_are_refused_but_for_health() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    for path in ["/ping", "/stats", "/metrics", "/", "/buckets/b/keys/k", "/buckets?buckets=true", "/nonesuch"] {
        let refused = node.server.request("GET", path, &basic(PASSWORD), "").await;
        assert_eq!((refused.status, refused.text().as_str()), (426, USE_HTTPS), "{path}");
    }
    assert_eq!(node.server.get("/health/live").await.status, 200);
    let put = node.server.request("PUT", "/buckets/b/keys/k", "", "value").await;
    assert_eq!(put.status, 426);
    test.run("disable");
    assert_eq!(node.server.get("/ping").await.status, 200);
}

#[tokio::test]
async fn a_user_is_who_knows_the_password() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    for credentials in ["", "alice:wrong", "nobody:se:cret", "ALICE:se:cret", "alice:", "alice", ":"] {
        for path in ["/ping", "/buckets/b/keys/k", "/stats", "/", "/nonesuch"] {
            let refused = node.get(path, credentials).await;
            assert_eq!(refused.status, 401, "{credentials} {path}");
            assert_eq!(refused.header("www-authenticate"), Some("Basic realm=\"Riak\""));
        }
    }
    for other in ["Authorization: Bearer x\r\n", "Authorization: Basic @@@\r\n"] {
        assert_eq!(node.request(false, "GET /ping", other).await.status, 401, "{other}");
    }
    for (path, status) in [("/ping", 200), ("/buckets/b/keys/k", 404), ("/stats", 200), ("/", 200), ("/nonesuch", 404)]
    {
        assert_eq!(node.get(path, PASSWORD).await.status, status, "{path}");
    }
    let denied = node.get("/buckets/other/keys/k", PASSWORD).await;
    let text = "Permission denied: User 'alice' does not have 'riak_kv.get' on default/other";
    assert_eq!((denied.status, denied.text().as_str()), (403, text));
    assert_eq!(node.get("/types/none/buckets/b/keys/k", PASSWORD).await.status, 403, "before it is known or unknown");
}

#[tokio::test]
async fn a_change_counts_at_the_next_request_of_an_open_connection() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    let mut stream = connect(TcpStream::connect(node.https).await.unwrap()).await.unwrap();
    let text = format!("GET /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\n{}\r\n", basic(PASSWORD));
    let mut statuses = Vec::new();
    let changes =
        ["", "revoke riak_kv.get on default b from alice", "grant riak_kv.get on any to alice", "del-user alice"];
    for change in changes {
        if !change.is_empty() {
            test.run(change);
        }
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        statuses.push(whole_answer(&mut stream).await.status);
    }
    assert_eq!(statuses, [404, 403, 404, 401]);
}

/// Reads one answer, which may come in several parts.
async fn whole_answer(stream: &mut (impl AsyncReadExt + Unpin)) -> Answer {
    let mut read = Vec::new();
    loop {
        assert!(timeout(DEADLINE, stream.read_buf(&mut read)).await.unwrap().unwrap() > 0);
        if read.windows(4).any(|part| part == b"\r\n\r\n") {
            let answer = Answer::parse(&read);
            let length = answer.header("content-length").and_then(|text| text.parse().ok());
            if length == Some(answer.body.len()) {
                return answer;
            }
        }
    }
}

/// The guess for bob waits behind others for 20 seconds.
#[tokio::test]
async fn an_answer_does_not_wait_for_the_password_of_a_later_request_and_a_guess_ends_with_its_client() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    let _others = test.security.line_up("bob", 3);
    let mut stream = connect(TcpStream::connect(node.https).await.unwrap()).await.unwrap();
    let ping = |credentials: &str| format!("GET /ping HTTP/1.1\r\nHost: x\r\n{}\r\n", basic(credentials));
    stream.write_all((ping(PASSWORD) + &ping("bob:guess")).as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(whole_answer(&mut stream).await.status, 200);
    assert_eq!(test.security.guesses_waiting("bob"), 4);
    drop(stream);
    let given_back = async {
        while test.security.guesses_waiting("bob") > 3 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), given_back).await.expect("the client has gone");
}

#[tokio::test]
async fn a_body_is_not_taken_from_somebody_unknown() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    let put = "PUT /buckets/b/keys/k";
    let refused = node.request(false, put, "Expect: 100-continue\r\nContent-Length: 1000000\r\n").await;
    assert_eq!(refused.status, 401);
}

#[tokio::test]
async fn a_certificate_proves_its_user_with_and_without_a_name() {
    let (add, source) = (format!("add-user {CLIENT}"), format!("add-source {CLIENT} 127.0.0.1/32 certificate"));
    let test = SecurityOfTest::after(&[&add, &source, "enable"]);
    let node = Secured::start(&test, &[]).await;
    let named = basic(&format!("{CLIENT}:any"));
    for (has_certificate, header, status) in
        [(true, &*named, 200), (true, "", 200), (false, &*named, 401), (false, "", 401)]
    {
        assert_eq!(
            node.request(has_certificate, "GET /ping", header).await.status,
            status,
            "{has_certificate} {header}"
        );
    }
}

#[tokio::test]
async fn machines_that_monitor_need_no_user_for_figures_alone() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &["10.0.0.0/8", "127.0.0.1/32"]).await;
    for path in ["/stats", "/metrics"] {
        assert_eq!(node.server.get(path).await.status, 200, "{path}");
        assert_eq!(node.get(path, "").await.status, 200, "{path}");
    }
    assert_eq!(node.server.get("/ping").await.status, 426);
    let elsewhere = Secured::start(&test, &["10.0.0.0/8"]).await;
    assert_eq!(elsewhere.get("/stats", "").await.status, 401);
}

#[tokio::test]
async fn administration_takes_the_token_or_a_role_over_tls() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    let (header, token) = ("X-Ombak-Admin: 1\r\n", "X-Ombak-Admin: 1\r\nAuthorization: Bearer secret\r\n");
    let path = "/admin/v1/node";
    assert_eq!(node.server.request("GET", path, token, "").await.status, 200);
    assert_eq!(node.request(false, &format!("GET {path}"), token).await.status, 200);
    assert_eq!(node.server.request("GET", path, header, "").await.status, 403);
    let as_alice = format!("{header}{}", basic(PASSWORD));
    assert_eq!(node.server.request("GET", path, &as_alice, "").await.status, 401, "not without TLS");
    let denied = node.request(false, &format!("GET {path}"), &as_alice).await;
    assert_eq!((denied.status, denied.json()["error"]["kind"].as_str()), (403, Some("not_permitted")));
    test.run("grant ombak_admin.observer on any to alice");
    assert_eq!(node.request(false, &format!("GET {path}"), &as_alice).await.status, 200);
    assert_eq!(node.request(false, "POST /admin/v1/stop", &as_alice).await.status, 403);
}

#[tokio::test]
async fn an_observer_reads_the_state_of_security_and_changes_nothing() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    let as_alice = format!("X-Ombak-Admin: 1\r\n{}", basic(PASSWORD));
    let reading = ["status", "print-users", "print-groups", "print-sources"];
    for role in ["observer", "operator", "security"] {
        for name in reading {
            let path = format!("GET /admin/v1/security/{name}");
            assert_eq!(node.request(false, &path, &as_alice).await.status, 403, "{name} without {role}");
        }
        test.run(&format!("grant ombak_admin.{role} on any to alice"));
        for name in reading {
            let answer = node.request(false, &format!("GET /admin/v1/security/{name}"), &as_alice).await;
            assert_eq!(answer.status, 200, "{name} as {role}: {}", answer.text());
        }
        let unknown = node.request(false, "GET /admin/v1/security/print-user/nobody", &as_alice).await;
        assert_eq!(unknown.json()["error"]["kind"], "refused", "{}", unknown.text());
        for name in ["enable", "disable", "add-user/x", "del-user/alice"] {
            let refused = node.request(false, &format!("GET /admin/v1/security/{name}"), &as_alice).await;
            assert_ne!(refused.status, 200, "{name} as {role}");
        }
        let posted = node.request_with(false, "POST /admin/v1/security/status", &as_alice, "{}").await;
        assert_eq!(posted.status, if role == "security" { 200 } else { 403 }, "{role}");
        test.run(&format!("revoke ombak_admin.{role} on any from alice"));
    }
}

#[tokio::test]
async fn there_are_no_link_walks() {
    let test = SecurityOfTest::after(ALICE);
    let node = Secured::start(&test, &[]).await;
    let refused = node.get("/buckets/b/keys/k/_,_,_", PASSWORD).await;
    let start = "Link walking is deprecated in Riak 2.0 and is not compatible with\n    ";
    assert_eq!((refused.status, refused.text().starts_with(start), refused.text().len()), (403, true, 120));
}

#[tokio::test]
async fn plain_sessions_end_when_security_is_switched_on() {
    let test = SecurityOfTest::after(&[]);
    let node = Secured::start(&test, &[]).await;
    let mut stream = node.server.connect().await;
    stream.write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut read = vec![0; 4096];
    assert!(timeout(DEADLINE, stream.read(&mut read)).await.unwrap().unwrap() > 0);
    test.run("enable");
    assert_eq!(timeout(DEADLINE, stream.read(&mut read)).await.unwrap().unwrap(), 0);
}

/// The client takes its answer slowly, and does not pause. It would go on for seconds.
#[tokio::test]
async fn a_plain_answer_under_way_ends_soon_after_security_is_switched_on() {
    const VALUE_BYTES: usize = 40 << 20;
    let test = SecurityOfTest::after(&[]);
    let limits = HttpLimits { plain_drain_timeout: Duration::from_millis(200), ..HttpLimits::default() };
    let node = Secured::with(&test, &[], limits).await;
    let (header, value) = ("Content-Type: text/plain\r\n", "v".repeat(VALUE_BYTES));
    assert_eq!(node.server.request("PUT", "/buckets/b/keys/k", header, &value).await.status, 204);
    let mut stream = node.server.connect().await;
    stream.write_all(b"GET /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let (mut taken, mut part) = (0, vec![0; 64 << 10]);
    // An end and a connection that was cut are the same here.
    while let Ok(read @ 1..) = timeout(DEADLINE, stream.read(&mut part)).await.expect("it ends") {
        if taken == 0 {
            test.run("enable");
        }
        taken += read;
        sleep(Duration::from_millis(5)).await;
        assert!(taken < VALUE_BYTES, "the answer was sent to its end");
    }
    assert!(taken > 0);
}
