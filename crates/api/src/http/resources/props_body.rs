//! Bucket properties in JSON bodies, and the refusals of changes (docs/riak/http-api.md §4, §17).

use crate::decoding::{self, DecodeError};
use crate::http::decision_graph::{Offers, Types};
use crate::http::error_status::{self, RequestKind};
use crate::http::names::json_name;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::request_lines::line;
use bytes::Bytes;
use http::{Method, StatusCode};
use ombak_kv::Kv;
use ombak_kv::buckets::PropsError;
use ombak_types::json::{BadJsonKind, Json};
use ombak_types::{Bucket, DecodeBudget, PropMap};
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
pub async fn changes(kv: &Kv, request: &Request) -> Result<PropMap, Reply> {
    if request.method != Method::PUT {
        return Ok(PropMap::new());
    }
    let mut held = request.holds();
    let read = decoding::decode(kv, &mut held, &request.body, parse).await;
    held.keep_for_answer();
    match read {
        Ok(Ok(props)) => Ok(props),
        Ok(Err(NoProps::Bad)) => Err(reply::text(
            StatusCode::BAD_REQUEST,
            "bucket PUT must be a JSON object of the form:\n{\"props\":{...bucket properties...}}",
        )),
        Ok(Err(NoProps::TooLarge(bytes_max))) => Err(reply::text(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The properties would take more than {bytes_max} bytes of memory\n"),
        )),
        Err(error) => Err(error_status::reply_for(&error, RequestKind::Other)),
    }
}

/// Why a body has no properties.
enum NoProps {
    Bad,
    TooLarge(usize),
}

impl DecodeError for NoProps {
    fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge(_))
    }
}

/// How often properties are copied at most: as a request, as a change and as what is stored.
const COPIES_MAX: usize = 3;

fn parse(body: &Bytes, budget: &mut DecodeBudget) -> Result<PropMap, NoProps> {
    let members = match Json::read_within(body, budget) {
        Ok(Json::Object(members)) => members,
        Ok(_) => return Err(NoProps::Bad),
        Err(bad) => {
            return Err(match bad.kind {
                BadJsonKind::TooLarge { bytes_max } => NoProps::TooLarge(bytes_max),
                _ => NoProps::Bad,
            });
        }
    };
    let props = members.into_iter().find(|(name, _)| name == "props").map(|(_, props)| props).ok_or(NoProps::Bad)?;
    budget.take(COPIES_MAX * props.bytes_as_value()).map_err(|why| NoProps::TooLarge(why.bytes_max))?;
    match props.into_value() {
        Value::Object(props) => Ok(props),
        _ => Err(NoProps::Bad),
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
