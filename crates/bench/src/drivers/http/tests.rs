//! Tests of the HTTP driver against servers whose answers the test chooses.

use crate::drivers::testing::{Action, Server, draw, http, plan, run};
use crate::drivers::{DONE, Outcome, Plan, Worker};
use std::collections::HashMap;

const DRIVER: &str = "basho_bench_driver_http_raw";
const KEYS: &str = "{int_to_bin_bigendian, {sequential_int, 1000}}";
const VALUES: &str = "{fixed_char, 100}";
const CLOCK: &str = "X-Riak-Vclock: a85hYGBg\r\n";

fn http_plan(port: u16, more: &str, operations: &[&str]) -> Plan {
    plan(DRIVER, &format!("{{http_raw_port, {port}}}. {more}"), operations).unwrap()
}

async fn worker(server: &Server, more: &str, operations: &[&str]) -> Worker {
    http_plan(server.port, more, operations).connect(1).await.unwrap()
}

fn text(request: &[u8]) -> String {
    String::from_utf8_lossy(request).into_owned()
}

/// A server that stores objects.
fn store() -> impl FnMut(usize, &[u8]) -> Action + Send + 'static {
    let mut objects: HashMap<String, String> = HashMap::new();
    move |_, request| {
        let request = text(request);
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap().to_owned());
        Action::Answer(match method {
            "GET" if target == "/stats" => http(200, "", "{\"vnode_gets\":0}"),
            "GET" => match objects.get(&target) {
                Some(value) => http(200, CLOCK, value),
                None => http(404, "", "not found\n"),
            },
            "PUT" => {
                objects.insert(target, body.to_owned());
                http(204, "", "")
            }
            "POST" => http(201, "Location: /riak/test/made\r\n", ""),
            "DELETE" if objects.remove(&target).is_some() => http(204, "", ""),
            _ => http(404, "", "not found\n"),
        })
    }
}

#[tokio::test]
async fn requests_say_what_the_settings_say() {
    let server = Server::http(store()).await;
    let settings = "{http_raw_path, \"/buckets/b/keys\"}. {http_raw_params, \"?w=1\"}. \
                    {http_raw_append_headers, [{'X-One', \"1\"}]}.";
    let mut worker = worker(&server, settings, &["get", "put", "insert", "delete"]).await;
    let mut draw = draw(KEYS, VALUES);
    for operation in 0..4 {
        assert_eq!(run(&mut worker, operation, &mut draw).await, (DONE, 0), "{operation}");
    }
    let host = format!("Host: 127.0.0.1:{}\r\nX-One: 1\r\n", server.port);
    let requests: Vec<_> = server.requests().iter().map(|request| text(request)).collect();
    assert_eq!(requests[0], format!("GET /buckets/b/keys/%00%00%00%00?w=1 HTTP/1.1\r\n{host}\r\n"));
    let (head, value) = requests[1].split_once("\r\n\r\n").unwrap();
    let headers = "X-Riak-ClientId: AAAAAQ==\r\nContent-Type: application/octet-stream\r\nContent-Length: 100";
    assert_eq!(head, format!("PUT /buckets/b/keys/%00%00%00%01?w=1 HTTP/1.1\r\n{host}{headers}"));
    assert_eq!(value.len(), 100);
    assert!(requests[2].starts_with(&format!("POST /buckets/b/keys?w=1 HTTP/1.1\r\n{host}Content-Type: ")));
    assert_eq!(requests[3], format!("DELETE /buckets/b/keys/%00%00%00%03?w=1 HTTP/1.1\r\n{host}\r\n"));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_is_not_there_is_fine_or_an_error() {
    let server = Server::http(store()).await;
    let operations = ["get", "get_existing", "update", "update_existing", "delete", "stat"];
    let mut worker = worker(&server, "", &operations).await;
    let mut draw = draw("<<\"k\">>", VALUES);
    let not_found = Outcome::Failed("not_found".into());
    let expected = [
        (0, DONE),
        (1, not_found.clone()),
        (3, not_found),
        (2, DONE),
        (1, DONE),
        (3, DONE),
        (4, DONE),
        (4, DONE),
        (5, DONE),
    ];
    for (operation, outcome) in expected {
        assert_eq!(run(&mut worker, operation, &mut draw).await.0, outcome, "{}", operations[operation]);
    }
    let puts: Vec<_> = server.requests().iter().map(|r| text(r)).filter(|r| r.starts_with("PUT")).collect();
    assert_eq!(puts.iter().map(|put| put.contains(CLOCK)).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn bodies_are_read_to_their_end_however_they_come() {
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").into_bytes();
    let answers = [
        (Action::Slowly(chunked("3\r\nabc\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: 1\r\n\r\n")), DONE),
        (Action::Answer(chunked("3\r\nabc\r\n0\r\n\r\n")), DONE),
        (Action::Slowly(http(200, CLOCK, &"v".repeat(300_000))), DONE),
        (
            Action::Answer([&b"HTTP/1.1 100 Continue\r\n\r\n"[..], &http(300, CLOCK, "Siblings:\na\nb\n")].concat()),
            DONE,
        ),
        (Action::Close(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec()), DONE),
        (Action::Answer(http(200, "Connection: close\r\n", "v")), DONE),
        (Action::Answer(http(200, "", "")), Outcome::Failed("an object with an empty value".into())),
        (Action::Answer(http(503, "", "overload\nmore\n")), Outcome::Failed("http_error 503 overload".into())),
        (Action::Answer(chunked("zz\r\n")), Outcome::Failed("an answer in chunks that cannot be read".into())),
        (Action::Answer(chunked("1\r\nabc\r\n")), Outcome::Failed("an answer in chunks that cannot be read".into())),
        (Action::Answer(b"SSH-2.0-x\r\n\r\n".to_vec()), Outcome::Failed("an answer that is no HTTP".into())),
        (Action::Answer(http(200, CLOCK, "v")), DONE),
    ];
    let (actions, outcomes): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let mut actions = actions.into_iter();
    let server = Server::http(move |_, _| actions.next().unwrap()).await;
    let mut worker = worker(&server, "", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    for (n, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(run(&mut worker, 0, &mut draw).await, (outcome, 0), "{n}");
    }
}

#[tokio::test]
async fn a_timeout_is_an_error_and_its_late_answer_is_not_anothers() {
    let server = Server::http(|n, _| if n == 0 { Action::Silence } else { Action::Answer(http(200, "", "v")) }).await;
    let mut worker = worker(&server, "{http_raw_request_timeout, 50}.", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await, (Outcome::Failed("timeout".into()), 0));
    assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 0));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_lost_operation_goes_on_with_the_same_key() {
    let mut store = store();
    let server = Server::http(move |n, request| match n {
        0 => Action::Close(Vec::new()),
        2 => Action::Close(b"HTTP/1.1 204 No".to_vec()),
        _ => store(n, request),
    })
    .await;
    let mut worker = worker(&server, "", &["update"]).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 2));
    let requests = server.requests();
    assert_eq!((requests.len(), &requests[0], &requests[2]), (4, &requests[1], &requests[3]));
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_opened_again_without_a_word() {
    let server = Server::http(|_, _| Action::Close(http(200, "", "v"))).await;
    let mut worker = worker(&server, "", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    for _ in 0..3 {
        assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 0));
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn connections_are_left_as_often_as_configured() {
    let server = Server::http(store()).await;
    let mut worker = worker(&server, "{http_raw_disconnect_frequency, {ops, 2}}.", &["get"]).await;
    let mut draw = draw(KEYS, VALUES);
    for _ in 0..5 {
        run(&mut worker, 0, &mut draw).await;
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn servers_take_turns() {
    let (one, two) = (Server::http(store()).await, Server::http(store()).await);
    let settings = format!("{{http_raw_ips, [{{\"127.0.0.1\", [{}, {}]}}]}}.", one.port, two.port);
    let mut worker = plan(DRIVER, &settings, &["get"]).unwrap().connect(1).await.unwrap();
    let mut draw = draw(KEYS, VALUES);
    for _ in 0..5 {
        run(&mut worker, 0, &mut draw).await;
    }
    assert_eq!((one.requests().len(), two.requests().len()), (2, 3));
}

#[tokio::test]
async fn searches_are_counted() {
    let server =
        Server::http(|_, _| Action::Answer(http(200, "", "{\"response\":{\"numFound\":12,\"start\":0}}"))).await;
    let operations = ["{search, {\"a:b c\", 12}}", "{search, {\"a\", 1}}"];
    let mut worker = worker(&server, "", &operations).await;
    let mut draw = draw(KEYS, VALUES);
    assert_eq!(run(&mut worker, 0, &mut draw).await.0, DONE);
    let other = Outcome::Failed("another number of results than expected".into());
    assert_eq!(run(&mut worker, 1, &mut draw).await.0, other);
    assert!(text(&server.requests()[0]).starts_with("GET /solr/test/select?q=a%3Ab%20c&wt=json&fl=id HTTP/1.1\r\n"));
}

#[tokio::test]
async fn files_are_written_once_in_order() {
    let dir = tempfile::tempdir().unwrap();
    for (name, value) in [("b", "2"), ("a", "1")] {
        std::fs::write(dir.path().join(name), value).unwrap();
    }
    let server = Server::http(store()).await;
    let mut plan = http_plan(server.port, &format!("{{file_dir, {:?}}}.", dir.path()), &["put_file"]);
    plan.prepare(false).await.unwrap();
    let mut worker = plan.connect(1).await.unwrap();
    let mut draw = draw(KEYS, VALUES);
    for outcome in [DONE, DONE, Outcome::Stop] {
        assert_eq!(run(&mut worker, 0, &mut draw).await.0, outcome);
    }
    let puts: Vec<_> = server.requests().iter().skip(1).map(|request| text(request)).collect();
    assert!(puts[0].starts_with("PUT /riak/test/a ") && puts[0].ends_with("\r\n\r\n1"), "{}", puts[0]);
    assert!(puts[1].starts_with("PUT /riak/test/b "), "{}", puts[1]);
}

#[tokio::test]
async fn preparing_asks_the_server_what_it_has() {
    let server = Server::http(|_, request| {
        let is_key = request.starts_with(b"GET /riak/test/");
        Action::Answer(if is_key { http(404, "", "not found\n") } else { http(501, "", "Not in this version\n") })
    })
    .await;
    let mut plan = http_plan(server.port, "", &["get", "{search, {\"a\", 1}}", "stat"]);
    let why = "the server refuses it: http_error 501 Not in this version".to_owned();
    assert_eq!(plan.prepare(false).await.unwrap().unsupported, [(1, why.clone()), (2, why)]);

    let server = Server::http(|_, _| Action::Answer(http(500, "", "no\n"))).await;
    let why = http_plan(server.port, "", &["get"]).prepare(false).await.unwrap_err().to_string();
    assert!(why.ends_with("refuses to read a key: http_error 500 no"), "{why}");
}

#[test]
fn settings_are_refused_by_name() {
    for (text, operations, what) in [
        ("{http_use_ssl, true}.", ["get"], "http_use_ssl: ombak-bench does not speak TLS"),
        ("", ["gte"], "operations: there is no operation 'gte'; there are get, "),
        ("", ["search"], "operations: 'search' cannot be done: "),
        ("", ["put_file"], "file_dir: put_file needs the directory"),
        ("{http_raw_path, \"riak\"}.", ["get"], "http_raw_path: a path such as"),
        ("{http_raw_append_headers, [{\"a\", \"b\\r\\nc\"}]}.", ["get"], "http_raw_append_headers: a list of"),
        ("{http_raw_disconnect_frequency, 0}.", ["get"], "http_raw_disconnect_frequency: infinity, "),
    ] {
        let why = plan(DRIVER, text, &operations).unwrap_err().to_string();
        assert!(why.starts_with(what), "{why}");
    }
    assert!(plan("basho_bench_driver_http_ibrowse", "", &["get"]).is_ok());
}
