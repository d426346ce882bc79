//! Data types and the counters of Riak 1.4.

use super::*;
use ombak_kv::DeleteMode;
use serde_json::{Value, json};

const JSON: &str = "Content-Type: application/json\r\n";

async fn server() -> Server {
    with_types(Server::start().await)
}

fn with_types(server: Server) -> Server {
    for kind in ["counter", "set", "map"] {
        let props = json!({"datatype": kind}).as_object().cloned().expect("an object");
        server.kv.buckets().create_type(kind.as_bytes(), &props).expect("created");
        server.kv.buckets().activate_type(kind.as_bytes()).expect("activated");
    }
    server.create_type("plain");
    server
}

fn value_of(answer: &Answer) -> Value {
    let json: Value = serde_json::from_str(&answer.text()).expect("JSON");
    json["value"].clone()
}

#[tokio::test]
pub(super) async fn a_data_type_is_posted_and_read() {
    let server = server().await;
    let path = "/types/set/buckets/b/datatypes/k";
    let missing = server.request("GET", path, "", "").await;
    assert_eq!((missing.status, missing.text().as_str()), (404, r#"{"type":"set","error":"notfound"}"#));
    assert_eq!(server.request("POST", path, JSON, r#"{"add_all":["b","a"]}"#).await.status, 204);
    let read = server.request("GET", path, "", "").await;
    let json: Value = serde_json::from_str(&read.text()).expect("JSON");
    assert_eq!((&json["type"], &json["value"]), (&json!("set"), &json!(["a", "b"])));
    let removal = json!({"remove": "a", "context": json["context"]}).to_string();
    let shown = server.request("POST", &format!("{path}?returnbody=true"), JSON, &removal).await;
    assert_eq!((shown.status, value_of(&shown)), (200, json!(["b"])));
    let bare = server.request("GET", &format!("{path}?include_context=false"), "", "").await;
    assert_eq!(bare.text(), r#"{"type":"set","value":["b"]}"#);
}

#[tokio::test]
async fn operations_need_not_be_strict_json() {
    let server = server().await;
    let path = "/types/set/buckets/b/datatypes/k";
    let body = "{\"add_all\":[\"two\nlines\",\"\\d\",],}";
    assert_eq!(server.request("POST", path, JSON, body).await.status, 204);
    assert_eq!(value_of(&server.request("GET", path, "", "").await), json!(["\\d", "two\nlines"]));
}

#[tokio::test]
async fn sums_beyond_64_bits_have_all_their_digits() {
    let server = server().await;
    let (counter, map) = ("/types/counter/buckets/b/datatypes/k", "/types/map/buckets/b/datatypes/k");
    for _ in 0..3 {
        assert_eq!(server.request("POST", counter, JSON, &i64::MIN.to_string()).await.status, 204);
        let update = format!(r#"{{"update":{{"n_counter":{}}}}}"#, i64::MAX);
        assert_eq!(server.request("POST", map, JSON, &update).await.status, 204);
    }
    let shown = server.request("GET", counter, "", "").await.text();
    assert_eq!(shown, r#"{"type":"counter","value":-27670116110564327424}"#);
    let shown = server.request("GET", &format!("{map}?include_context=false"), "", "").await.text();
    assert_eq!(shown, r#"{"type":"map","value":{"n_counter":27670116110564327421}}"#);
}

#[tokio::test]
async fn a_key_is_made_if_the_path_has_none() {
    let server = server().await;
    let path = "/types/counter/buckets/b/datatypes";
    let made = server.request("POST", path, JSON, "5").await;
    assert_eq!(made.status, 201);
    let location = made.header("location").expect("an address").to_owned();
    assert!(location.starts_with("/types/counter/buckets/b/datatypes/"), "{location}");
    assert_eq!(value_of(&server.request("GET", &location, "", "").await), json!(5));
}

#[tokio::test]
async fn refusals_are_riaks() {
    let server = server().await;
    for (method, path, headers, body, status, text) in [
        (
            "POST",
            "/types/set/buckets/b/datatypes/k",
            JSON,
            r#"{"remove":"x"}"#,
            500,
            "Error:\n{precondition,{not_present,<<\"x\">>}}\n",
        ),
        (
            "POST",
            "/types/set/buckets/b/datatypes/k",
            JSON,
            r#"{"increment":1}"#,
            400,
            "Invalid operation on datatype 'set': {\"increment\":1}\n",
        ),
        (
            "GET",
            "/types/plain/buckets/b/datatypes/k",
            "",
            "",
            403,
            "Bucket datatype 'undefined' is not a supported type.\n",
        ),
        ("GET", "/types/none/buckets/b/datatypes/k", "", "", 404, "Unknown bucket type: none\n"),
    ] {
        let answer = server.request(method, path, headers, body).await;
        assert_eq!((answer.status, answer.text().as_str()), (status, text), "{method} {path} {body}");
    }
    for (method, headers, body, status) in [
        ("POST", JSON, "{", 400),
        ("POST", JSON, r#"{"remove":"x","context":"zork"}"#, 400),
        ("POST", "Content-Type: text/plain\r\n", "1", 406),
        ("PUT", JSON, "1", 405),
        ("DELETE", "", "", 405),
    ] {
        let answer = server.request(method, "/types/set/buckets/b/datatypes/k", headers, body).await;
        assert_eq!(answer.status, status, "{method} {body}");
    }
    let moved = server.request("GET", "/types/default/buckets/b/datatypes/k", "", "").await;
    assert_eq!((moved.status, moved.header("location")), (301, Some("/buckets/b/counters/k")));
}

#[tokio::test]
async fn parameters_are_riaks() {
    let server = server().await;
    let path = "/types/set/buckets/b/datatypes/k";
    let shown = server.request("POST", &format!("{path}?returnbody=TRUE&timeout=0"), JSON, r#"{"add":"a"}"#).await;
    assert_eq!((shown.status, value_of(&shown)), (200, json!(["a"])));
    let bare = server.request("GET", &format!("{path}?include_context=False&timeout=0"), "", "").await;
    assert_eq!(bare.text(), r#"{"type":"set","value":["a"]}"#);
    for (query, text) in [
        ("returnbody=zork", "returnbody query parameter must be true or false\n"),
        ("include_context=zork", "include_context query parameter must be true or false\n"),
        ("timeout=-1", "Bad timeout value \"-1\"\n"),
        ("timeout=zork", "Bad timeout value \"zork\"\n"),
    ] {
        let answer = server.request("GET", &format!("{path}?{query}"), "", "").await;
        assert_eq!((answer.status, answer.text().as_str()), (400, text), "{query}");
    }
}

#[tokio::test]
async fn a_deleted_value_is_told_from_one_that_never_was() {
    let dir = TempDir::new().expect("a directory");
    let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let hooks = Hooks { kinds: ombak_datatypes::kinds(), ..Hooks::default() };
    let delete_mode = DeleteMode::Keep;
    let config = KvConfig { ring_size: 8, hooks, delete_mode, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
    let server =
        Server::over(config, dir, MemoryLimits::default(), HttpLimits::default(), JobSwitches::default()).await;
    let server = with_types(server);
    let path = "/types/counter/buckets/b/datatypes/k";
    let missing = server.request("GET", path, "", "").await;
    assert_eq!((missing.status, missing.header("x-riak-deleted")), (404, None));
    assert_eq!(server.request("POST", path, JSON, "5").await.status, 204);
    assert_eq!(server.request("DELETE", "/types/counter/buckets/b/keys/k", "", "").await.status, 204);
    let deleted = server.request("GET", path, "", "").await;
    assert_eq!((deleted.status, deleted.header("x-riak-deleted")), (404, Some("true")));
}

#[tokio::test]
async fn counters_of_riak_1_4() {
    let server = server().await;
    let path = "/buckets/b/counters/k";
    let refused = server.request("POST", path, "", "1").await;
    assert_eq!((refused.status, refused.text().as_str()), (409, "Counters require bucket property 'allow_mult=true'"));
    let props = r#"{"props":{"allow_mult":true}}"#;
    assert_eq!(server.request("PUT", "/buckets/b/props", JSON, props).await.status, 204);
    assert_eq!(server.request("GET", path, "", "").await.status, 404);
    assert_eq!(server.request("POST", path, "", "5").await.status, 204);
    let counted = server.request("POST", &format!("{path}?returnvalue=true"), "", "-2").await;
    assert_eq!((counted.status, counted.text().as_str()), (200, "3"));
    assert_eq!(server.request("GET", path, "", "").await.text(), "3");
    for body in ["zork", "1.5"] {
        assert_eq!(server.request("POST", path, "", body).await.status, 400, "{body}");
    }
    let object = server.request("GET", "/buckets/b/keys/k", "", "").await;
    assert_eq!(object.header("content-type"), Some("application/riak_counter"));
}
