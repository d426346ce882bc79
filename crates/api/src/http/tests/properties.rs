//! Properties of buckets and types.

use super::Server;
use serde_json::json;

const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test]
async fn bucket_properties_are_set_and_reset() {
    let server = Server::start().await;
    let path = "/buckets/b/props";
    let set = server.request("PUT", path, JSON, r#"{"props":{"n_val":2,"allow_mult":true}}"#).await;
    assert_eq!((set.status, set.header("vary")), (204, Some("Accept-Encoding")));
    let props = server.get(path).await.json()["props"].clone();
    assert_eq!((&props["name"], &props["n_val"], &props["allow_mult"]), (&json!("b"), &json!(2), &json!(true)));
    assert_eq!(server.get("/riak/b").await.json()["props"], props);
    assert_eq!(server.request("PUT", "/riak/b", JSON, r#"{"props":{"n_val":1}}"#).await.status, 204);
    assert_eq!(server.request("DELETE", path, "", "").await.status, 204);
    assert_eq!(server.get(path).await.json()["props"]["n_val"], 3);
}

#[tokio::test]
async fn wrong_properties_are_named() {
    let server = Server::start().await;
    let path = "/buckets/b/props";
    let put = async |headers: &str, body: &str| {
        let answer = server.request("PUT", path, headers, body).await;
        (answer.status, answer.text())
    };
    assert_eq!(put(JSON, r#"{"props":{"n_val":"x"}}"#).await, (400, r#"{"n_val":"not_integer"}"#.into()));
    let form = "bucket PUT must be a JSON object of the form:\n{\"props\":{...bucket properties...}}";
    for body in ["{\"props\":", "{\"n_val\":2}", "[]", "{\"props\":3}", ""] {
        assert_eq!(put(JSON, body).await, (400, form.into()), "{body}");
    }
    assert_eq!(put("Content-Type: text/plain\r\n", "{\"props\":{}}").await.0, 415);
    assert_eq!(put("", "{\"props\":{}}").await.0, 415);
}

/// What Riak's library takes beyond the standard.
#[tokio::test]
async fn properties_need_not_be_strict_json() {
    let server = Server::start().await;
    let body = "{\"props\":{\"n_val\":2,},\"props\":{\"n_val\":1},}";
    assert_eq!(server.request("PUT", "/buckets/b/props", JSON, body).await.status, 204);
    assert_eq!(server.get("/buckets/b/props").await.json()["props"]["n_val"], 2, "the first member counts");
}

#[tokio::test]
async fn types_that_are_not_there() {
    let server = Server::start().await;
    let body = r#"{"props":{"n_val":1}}"#;
    assert_eq!(server.get("/types/none/buckets/b/props").await.status, 404);
    let put = server.request("PUT", "/types/none/buckets/b/props", JSON, body).await;
    assert_eq!((put.status, put.text().as_str()), (400, "\"no_type\""));
    assert_eq!(server.get("/types/none/props").await.status, 404);
    let put = server.request("PUT", "/types/none/props", JSON, body).await;
    assert_eq!((put.status, put.text().as_str()), (404, "Cannot modify unknown bucket type: <<\"none\">>"));
}

#[tokio::test]
async fn type_properties_are_shown_and_changed() {
    let server = Server::start().await;
    server.create_type("t");
    assert_eq!(server.request("PUT", "/types/t/props", JSON, r#"{"props":{"r":1}}"#).await.status, 204);
    let props = server.get("/types/t/props").await.json()["props"].clone();
    assert_eq!((&props["r"], &props["active"], props.get("name")), (&json!(1), &json!(true), None));
    assert_eq!(server.get("/types/t/buckets/b/props").await.json()["props"]["r"], 1);
}
