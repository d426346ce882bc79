//! The object that a pre-commit hook gives back.

use crate::Input;
use bytes::Bytes;
use ombak_types::object::{IndexEntry, IndexTerm, Link, SiblingMeta, VAL_ENCODING_TERM};
use ombak_types::{Object, Sibling};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

/// Why what a hook gave back is not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hook gave back {0}")]
pub struct BadObject(&'static str);

/// Reads what a hook gave back for an object. The clock stays that of the put, and so do what JSON
/// does not show of the siblings that are still there: expiry and unknown metadata. Bucket and key
/// cannot change.
pub fn object_from_json(input: &Input, put: &Object, json: &Value) -> Result<Object, BadObject> {
    let object = json.as_object().ok_or(BadObject("no object"))?;
    let is_same = |name: &str, expected: &[u8]| {
        object.get(name).is_none_or(|value| value.as_str().is_some_and(|text| text.as_bytes() == expected))
    };
    if !is_same("bucket", &input.bucket.name)
        || !is_same("key", &input.key)
        || !is_same("bucket_type", &input.bucket.bucket_type)
    {
        return Err(BadObject("another key"));
    }
    let values = object.get("values").and_then(Value::as_array).ok_or(BadObject("no values"))?;
    if values.is_empty() {
        return Err(BadObject("no values"));
    }
    let siblings = values.iter().enumerate().map(|(index, value)| sibling(value, put.siblings.get(index)));
    Ok(Object { clock: put.clock.clone(), siblings: siblings.collect::<Result<_, _>>()? })
}

fn sibling(json: &Value, before: Option<&Sibling>) -> Result<Sibling, BadObject> {
    let data = json.get("data").ok_or(BadObject("a value without data"))?;
    let before_meta = before.map(|sibling| sibling.meta.clone()).unwrap_or_default();
    let (value, val_encoding) = match data {
        // A stored term cannot be changed through its JSON.
        _ if before_meta.val_encoding == VAL_ENCODING_TERM => {
            (before.map(|sibling| sibling.value.clone()).unwrap_or_default(), VAL_ENCODING_TERM)
        }
        Value::String(text) => (Bytes::copy_from_slice(text.as_bytes()), before_meta.val_encoding),
        // Riak's users return values that are not texts; they are stored as JSON.
        other => (Bytes::from(other.to_string()), before_meta.val_encoding),
    };
    let meta = match json.get("metadata") {
        Some(Value::Object(members)) => metadata(members, SiblingMeta { val_encoding, ..before_meta })?,
        Some(_) => return Err(BadObject("metadata that is not an object")),
        None => SiblingMeta { val_encoding, ..before_meta },
    };
    Ok(Sibling { value, meta })
}

fn metadata(members: &Map<String, Value>, before: SiblingMeta) -> Result<SiblingMeta, BadObject> {
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(Bytes::copy_from_slice(text.as_bytes()))),
        Some(_) => Err(BadObject("a content type, charset or encoding that is not a text")),
    };
    Ok(SiblingMeta {
        content_type: text("content-type")?,
        charset: text("charset")?,
        content_encoding: text("content-encoding")?,
        links: links(members.get("Links"))?,
        indexes: indexes(members.get("index"), &before.indexes)?,
        user_meta: user_meta(members.get("X-Riak-Meta"))?,
        ..before
    })
}

fn links(json: Option<&Value>) -> Result<Vec<Link>, BadObject> {
    let bad = BadObject("links that are not lists of bucket, key and tag");
    let Some(json) = json else { return Ok(Vec::new()) };
    let links = json.as_array().ok_or_else(|| bad.clone())?.iter().map(|link| {
        let texts: Option<Vec<Bytes>> = link.as_array()?.iter().map(text_of).collect();
        let [bucket, key, tag]: [Bytes; 3] = texts?.try_into().ok()?;
        Some(Link { bucket, key, tag })
    });
    links.collect::<Option<_>>().ok_or(bad)
}

fn text_of(json: &Value) -> Option<Bytes> {
    json.as_str().map(|text| Bytes::copy_from_slice(text.as_bytes()))
}

/// The pairs of an object of which a member can have a list of values.
fn pairs(json: Option<&Value>, bad: BadObject) -> Result<Vec<(&str, &Value)>, BadObject> {
    match json {
        // An empty list is what Riak writes for no metadata.
        None => Ok(Vec::new()),
        Some(Value::Array(items)) if items.is_empty() => Ok(Vec::new()),
        Some(Value::Object(members)) => Ok(members
            .iter()
            .flat_map(|(name, value)| match value {
                Value::Array(values) => values.iter().map(|value| (name.as_str(), value)).collect(),
                value => vec![(name.as_str(), value)],
            })
            .collect()),
        Some(_) => Err(bad),
    }
}

/// A number in JavaScript has 53 bits. An integer that a hook left as it was keeps its other
/// digits.
fn indexes(json: Option<&Value>, before: &[IndexEntry]) -> Result<Vec<IndexEntry>, BadObject> {
    let bad = BadObject("an index entry that is not one");
    // The entries before, by what JavaScript sees of them. Several can look the same.
    let mut known: BTreeMap<(&[u8], u64), VecDeque<&IndexEntry>> = BTreeMap::new();
    for entry in before {
        if let IndexTerm::Int(n) = &entry.term
            && let Ok(seen) = n.to_string().parse::<f64>()
        {
            known.entry((&entry.field[..], seen.to_bits())).or_default().push_back(entry);
        }
    }
    let entries = pairs(json, bad.clone())?.into_iter().map(|(name, value)| {
        let float = value.as_f64();
        let same = float.and_then(|seen| known.get_mut(&(name.as_bytes(), seen.to_bits())));
        if let Some(same) = same.and_then(VecDeque::pop_front) {
            return Some(same.clone());
        }
        let text = match (value, float) {
            (Value::String(text), _) => text.clone(),
            // The digits of an integer that JavaScript writes with all of them.
            (Value::Number(number), Some(float)) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => value.to_string(),
        };
        let entry = IndexEntry::parse(name.as_bytes(), text.as_bytes()).ok()?;
        let fits = matches!((&entry.term, value), (IndexTerm::Int(_), _) | (IndexTerm::Bin(_), Value::String(_)));
        fits.then_some(entry)
    });
    entries.collect::<Option<_>>().ok_or(bad)
}

fn user_meta(json: Option<&Value>) -> Result<Vec<(Bytes, Bytes)>, BadObject> {
    let bad = BadObject("user metadata that is not texts");
    let all = pairs(json, bad.clone())?
        .into_iter()
        .map(|(name, value)| Some((Bytes::copy_from_slice(name.as_bytes()), text_of(value)?)));
    all.collect::<Option<_>>().ok_or(bad)
}
