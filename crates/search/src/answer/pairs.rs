//! A document as Protocol Buffers has it.

use super::document::Document;
use super::numbers::{double_text, erlang_text, float_text};
use super::plain::text_of;
use crate::values::Value;
use std::borrow::Cow;

/// The pairs of a document. A field with several values has several pairs, in their order. All
/// values are texts. As in Riak, which reads Solr's JSON, the score comes first and the last field
/// next, and numbers with a fraction are written as Erlang does (`1.00000000000000000000e+00`).
pub fn pairs_of(document: &Document) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    let score = document.score.map(|score| ("score", Cow::Owned(fraction(score.is_finite(), float_text(score)))));
    let fields = document
        .fields
        .iter()
        .rev()
        .flat_map(|(name, values)| values.as_slice().iter().map(move |value| (name.as_str(), pair_text(value))));
    score.into_iter().chain(fields)
}

fn pair_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Float(number) => Cow::Owned(fraction(number.is_finite(), float_text(*number))),
        Value::Double(number) => Cow::Owned(fraction(number.is_finite(), double_text(*number))),
        value => text_of(value),
    }
}

/// A number of JSON as Riak writes it. It has 64 bits there, so that one of 32 bits is the number
/// that its digits are. In JSON, numbers that are not finite are texts, which stay as they are.
fn fraction(is_finite: bool, json: String) -> String {
    if !is_finite {
        return json;
    }
    json.parse().map_or(json, erlang_text)
}
