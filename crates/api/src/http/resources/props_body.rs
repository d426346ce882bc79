//! Bucket properties in JSON bodies, and the refusals of changes (docs/riak/http-api.md §4, §17).

use crate::http::decision_graph::{Offers, Types};
use crate::http::names::json_name;
use crate::http::offload;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::request_lines::line;
use http::{Method, StatusCode};
use ombak_kv::PropsError;
use ombak_types::json::{self, Json};
use ombak_types::{Bucket, PropMap};
use serde_json::Value;

/// The member `"props":{…}`. The name of a bucket comes first.
pub fn member(props: &PropMap, bucket: Option<&Bucket>) -> String {
    let name = bucket.map(|b| ("name".to_owned(), Value::String(json_name(&b.name))));
    let all = name.into_iter().chain(props.iter().map(|(name, value)| (name.clone(), value.clone())));
    format!("\"props\":{}", Value::Object(all.collect()))
}

/// The media types of the answer. A read is answered in JSON, a write without a body.
pub fn offers(request: &Request) -> Offers {
    if request.is_read() { Offers::json() } else { Offers { types: Types::new(), gzip: true } }
}

/// The changes that a PUT asks for. Other methods ask for none.
pub async fn changes(request: &Request) -> Result<PropMap, Reply> {
    if request.method != Method::PUT {
        return Ok(PropMap::new());
    }
    let body = request.body.clone();
    offload::run(body.len(), move || parse(&body)).await?
}

fn parse(body: &[u8]) -> Result<PropMap, Reply> {
    let props = match Json::read(body) {
        Ok(Json::Object(members)) => json::member(&members, "props").cloned().map(Json::into_value),
        _ => None,
    };
    match props {
        Some(Value::Object(props)) => Ok(props),
        _ => Err(reply::text(
            StatusCode::BAD_REQUEST,
            "bucket PUT must be a JSON object of the form:\n{\"props\":{...bucket properties...}}",
        )),
    }
}

/// Whether the content type is JSON. No other type is accepted.
pub fn is_json(request: &Request) -> bool {
    request.header(line::CONTENT_TYPE).is_some_and(|header| {
        let media_type = header.split(|&b| b == b';').next().unwrap_or_default();
        media_type.trim_ascii().eq_ignore_ascii_case(b"application/json")
    })
}

/// The answer to a refused change.
pub fn refusal(error: &PropsError) -> Reply {
    match error {
        PropsError::Invalid(errors) => reply::json(StatusCode::BAD_REQUEST, errors.to_json().to_string()),
        PropsError::Storage(_) => reply::text(StatusCode::INTERNAL_SERVER_ERROR, format!("Error:\n{error}\n")),
        _ => reply::json(StatusCode::BAD_REQUEST, Value::String(error.to_string()).to_string()),
    }
}

/// Runs a change on a blocking thread, because it waits for the disk.
pub async fn change(change: impl FnOnce() -> Result<(), PropsError> + Send + 'static) -> Result<(), PropsError> {
    match tokio::task::spawn_blocking(change).await {
        Ok(outcome) => outcome,
        Err(error) => Err(PropsError::Storage(error.to_string())),
    }
}
