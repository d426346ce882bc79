//! What a value would have for an index: `PUT /search/extract`. Nothing is stored.

use super::search_of;
use crate::http::decision_graph;
use crate::http::error_status::{self, RequestKind};
use crate::http::offload;
use crate::http::path::Call;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::request_lines::{LineName, line};
use crate::search::Administered;
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_search::extract::limits::{NAME_BYTES_MAX, PAIRS_MAX};
use ombak_search::extract::{Extracted, Extractor, Pair};
use serde_json::{Map, Value};

/// The header that names an extractor, in place of the one that belongs to the content type.
const EXTRACTOR: LineName = LineName::new("yz-extractor");

const NO_SUCH_EXTRACTOR: &str = "The header yz-extractor names none of the extractors yz_json_extractor, \
                                 yz_xml_extractor, yz_text_extractor and yz_noop_extractor\n";

pub(super) fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { answer(&call).await.unwrap_or_else(|refusal| refusal) })
}

async fn answer(call: &Call<'_>) -> Result<Reply, Reply> {
    search_of(call)?;
    let request = call.request;
    decision_graph::admit(call.ctx, request, "PUT", Some(Administered::Indexes.access())).await?;
    let bad = |text: String| reply::text(StatusCode::BAD_REQUEST, text);
    let (extractor, body) = (extractor(request)?, request.body.clone());
    // Few bytes can have many names, which repeat those around them.
    let names = body.len().min(PAIRS_MAX) * NAME_BYTES_MAX;
    let mut held = request.holds();
    let counted = held.resize((3 * body.len() + names) as u64).await;
    counted.map_err(|error| error_status::reply_for(&error, RequestKind::Other))?;
    held.keep_for_answer();
    let extracted = offload::run(body.len(), move || extractor.extract(&body).map(document)).await?;
    let document = extracted.map_err(|why| bad(format!("The value cannot be read: {why}\n")))?;
    Ok(reply::json(StatusCode::OK, document))
}

fn extractor(request: &Request) -> Result<Extractor, Reply> {
    let named = request.header(EXTRACTOR);
    let Some(name) = named else {
        let media_type = request.header(line::CONTENT_TYPE).unwrap_or_default();
        return Ok(Extractor::of_media_type(&String::from_utf8_lossy(&media_type)));
    };
    let known = std::str::from_utf8(&name).ok().and_then(|name| Extractor::of_name(name.trim()));
    known.ok_or_else(|| reply::text(StatusCode::BAD_REQUEST, NO_SUCH_EXTRACTOR))
}

/// The fields as a JSON object. A name with several values has an array of them.
fn document(pairs: Vec<Pair>) -> String {
    let mut fields = Map::new();
    for Pair { name, value } in pairs {
        let value = match value {
            Extracted::Text(text) => Value::String(text),
            Extracted::Bool(is_true) => Value::Bool(is_true),
        };
        match fields.get_mut(&name) {
            None => drop(fields.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(fields).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn extracted(headers: &[(&str, &str)], value: &str) -> Option<String> {
        let extractor = extractor(&Request::sample(Method::PUT, "/search/extract", headers)).ok()?;
        extractor.extract(value.as_bytes()).ok().map(document)
    }

    #[test]
    fn the_header_or_the_content_type_says_how_a_value_is_read() {
        let json = r#"{"a":{"b":[1,2,3]},"ok":true}"#;
        let fields = r#"{"a.b":["1","2","3"],"ok":true}"#;
        assert_eq!(extracted(&[("content-type", "application/json")], json).as_deref(), Some(fields));
        let both = [("content-type", "text/plain"), ("yz-extractor", "yz_json_extractor")];
        assert_eq!(extracted(&both, json).as_deref(), Some(fields));
        assert_eq!(extracted(&[("content-type", "text/plain")], "v").as_deref(), Some(r#"{"text":"v"}"#));
        assert_eq!(extracted(&[], "v").as_deref(), Some("{}"));
        assert_eq!(extracted(&[("yz-extractor", "my_module")], "v"), None);
        assert_eq!(extracted(&[("content-type", "application/json")], "{"), None);
    }
}
