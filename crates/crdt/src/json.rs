//! The JSON forms of data types over HTTP (docs/riak/http-api.md §9).
//!
//! What it is: requests are read from JSON, and values are written as JSON, in Riak's forms and
//! with Riak's texts for what is refused.
//!
//! What it is not: it does not parse the text of JSON, and knows no statuses.

mod parse;

use crate::{BadBytes, Clock, Field, FieldType, FieldValue, MapOp, Request, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ombak_types::allocated;
use ombak_types::json::Json;
use ombak_types::props::DataType;

/// Why JSON is not a request. The texts are Riak's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadJson {
    /// An operation does not exist, or not for the type.
    #[error("Invalid operation on datatype '{kind}': {json}")]
    Operation {
        /// The name of the type.
        kind: &'static str,
        /// The operation.
        json: String,
    },
    /// A field's name does not end with `_` and a type of fields.
    #[error("Invalid map field name '{0}'")]
    FieldName(String),
    /// The context is no base64 text of a clock. Riak answers with a timeout then.
    #[error("Invalid context: {0}")]
    Context(String),
}

/// The memory that [`request_from_json`] makes of JSON, which it takes over.
pub fn bytes_as_request(json: &Json) -> usize {
    // A list that grows takes up to three times as much while it moves. Each value becomes at most
    // one operation, and its name a field.
    const OPERATION: usize = 3 * size_of::<MapOp>();
    match json {
        Json::Text(text) => OPERATION + allocated(text.len()),
        Json::List(items) => OPERATION + items.iter().map(bytes_as_request).sum::<usize>(),
        Json::Object(members) => {
            let member = |(name, value): &(String, Json)| allocated(name.len()) + bytes_as_request(value);
            OPERATION + members.iter().map(member).sum::<usize>()
        }
        _ => OPERATION,
    }
}

/// Reads a request with its context. `time_us` is the time of assignments to registers. Of two
/// members with one name, where only one makes sense, the first one counts, as in Riak.
///
/// # Errors
/// [`BadJson`]: the JSON is not a request for the type.
pub fn request_from_json(kind: DataType, json: Json, time_us: u64) -> Result<(Request, Option<Clock>), BadJson> {
    let Json::Object(mut members) = json else {
        return Ok((parse::request(kind, &json, time_us)?, None));
    };
    let place = members.iter().position(|(name, _)| name == "context");
    let context = place.map(|place| members.remove(place).1);
    let request = parse::request(kind, &Json::Object(members), time_us)?;
    Ok((request, context.map(|context| read_context(&context)).transpose()?))
}

fn read_context(json: &Json) -> Result<Clock, BadJson> {
    let bad = |why: &str| BadJson::Context(why.to_owned());
    let text = json.as_str().ok_or_else(|| bad("not a text"))?;
    let bytes = STANDARD.decode(text).map_err(|_| bad("not base64"))?;
    Clock::from_context(&bytes).map_err(|why: BadBytes| bad(&why.to_string()))
}

/// Writes a value with its context: `{"type":…,"value":…,"context":…}`. Without a context that
/// member is left out. Bytes that are no UTF-8 are replaced.
pub fn value_to_json(value: &Value, context: Option<&Clock>) -> Json {
    let (kind, json) = match value {
        Value::Counter(sum) => (DataType::Counter, Json::from(*sum)),
        Value::Set(members) => (DataType::Set, texts(members)),
        Value::GSet(members) => (DataType::Gset, texts(members)),
        Value::Map(fields) => (DataType::Map, fields_to_json(fields)),
        Value::Hll(count) => (DataType::Hll, Json::from(i128::from(*count))),
    };
    let mut answer = vec![("type".to_owned(), kind.name().into()), ("value".to_owned(), json)];
    if let Some(context) = context {
        answer.push(("context".to_owned(), Json::Text(STANDARD.encode(context.to_context()))));
    }
    Json::Object(answer)
}

fn text(bytes: &Bytes) -> Json {
    Json::Text(String::from_utf8_lossy(bytes).into_owned())
}

fn texts(members: &[Bytes]) -> Json {
    Json::List(members.iter().map(text).collect())
}

fn fields_to_json(fields: &[(Field, FieldValue)]) -> Json {
    let member = |(field, value): &(Field, FieldValue)| {
        let name = format!("{}_{}", String::from_utf8_lossy(&field.name), type_name(field.kind));
        let value = match value {
            FieldValue::Counter(sum) => Json::from(*sum),
            FieldValue::Register(value) => text(value),
            FieldValue::Map(fields) => fields_to_json(fields),
            FieldValue::Flag(is_enabled) => Json::Bool(*is_enabled),
            FieldValue::Set(members) => texts(members),
        };
        (name, value)
    };
    Json::Object(fields.iter().map(member).collect())
}

/// The end of a field's name.
const fn type_name(kind: FieldType) -> &'static str {
    match kind {
        FieldType::Counter => "counter",
        FieldType::Register => "register",
        FieldType::Map => "map",
        FieldType::Flag => "flag",
        FieldType::Set => "set",
    }
}

#[cfg(test)]
mod tests;
