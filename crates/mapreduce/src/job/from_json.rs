//! Reading a job in JSON.

use super::function::{Named, ScriptSource};
use super::inputs::{IndexQuery, Inputs};
use super::{Job, JobError, PHASES_MAX, Phase, TIMEOUT_DEFAULT, from_json};
use crate::filter::KeyFilter;
use crate::{Input, LinkMatch};
use bytes::Bytes;
use ombak_types::Bucket;
use ombak_types::etf::Term;
use serde_json::{Map, Value};
use std::time::Duration;

type Members = Map<String, Value>;

pub(super) fn job(request: &Members) -> Result<Job, JobError> {
    let (Some(inputs), Some(query)) = (request.get("inputs"), request.get("query")) else {
        return Err(JobError::MissingField);
    };
    Ok(Job { inputs: inputs_of(inputs)?, phases: phases(query)?, timeout: timeout(request.get("timeout")) })
}

/// Riak takes its own time for anything that is not a positive number.
fn timeout(value: Option<&Value>) -> Duration {
    let ms = value.and_then(Value::as_f64).filter(|ms| *ms > 0.0);
    ms.map_or(TIMEOUT_DEFAULT, |ms| Duration::from_millis(ms.clamp(1.0, f64::from(u32::MAX)) as u64))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn bucket_of(value: &Value) -> Option<Bucket> {
    match value {
        Value::String(name) => Some(Bucket::untyped(bytes(name))),
        Value::Array(items) => match items.as_slice() {
            [Value::String(bucket_type), Value::String(name)] => Some(Bucket::typed(bytes(bucket_type), bytes(name))),
            _ => None,
        },
        _ => None,
    }
}

fn inputs_of(value: &Value) -> Result<Inputs, JobError> {
    if let Some(bucket) = bucket_of(value) {
        return Ok(Inputs::Bucket { bucket, filter: KeyFilter::default() });
    }
    match value {
        Value::Array(items) if items.is_empty() => Err(JobError::Inputs("No inputs were given.\n".to_owned())),
        Value::Array(items) => items
            .iter()
            .map(|item| key(item).ok_or_else(|| unrecognized(item)))
            .collect::<Result<_, _>>()
            .map(Inputs::Keys),
        Value::Object(members) => inputs_of_object(members, value),
        other => Err(unrecognized(other)),
    }
}

/// `[B,K]`, `[B,K,D]` or `[B,K,D,T]`.
fn key(value: &Value) -> Option<Input> {
    let items = value.as_array()?;
    let text = |index: usize| items.get(index).and_then(Value::as_str).map(bytes);
    let bucket = match items.len() {
        2 | 3 => Bucket::untyped(text(0)?),
        4 => Bucket::typed(text(3)?, text(0)?),
        _ => return None,
    };
    Some(Input { bucket, key: text(1)?, key_data: items.get(2).map(from_json) })
}

fn inputs_of_object(members: &Members, value: &Value) -> Result<Inputs, JobError> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if let (Some(module), Some(function), Some(arg)) = (text("module"), text("function"), members.get("arg")) {
        return Ok(Inputs::Function { module: module.to_owned(), function: function.to_owned(), arg: from_json(arg) });
    }
    if let (Some(query), Some(index)) = (text("query"), text("index").or_else(|| text("bucket"))) {
        return Ok(Inputs::Search { index: bytes(index), query: bytes(query), filter: text("filter").map(bytes) });
    }
    let Some(bucket) = members.get("bucket").and_then(bucket_of) else { return Err(unrecognized(value)) };
    if let Some(index) = text("index") {
        let (low, high) = match (members.get("key"), members.get("start"), members.get("end")) {
            (Some(key), ..) => (key, key),
            (None, Some(low), Some(high)) => (low, high),
            _ => return Err(unrecognized(value)),
        };
        let query = IndexQuery::new(bucket, index.as_bytes(), &from_json(low), &from_json(high));
        return query.map(Inputs::Index).map_err(JobError::Inputs);
    }
    match members.get("key_filters") {
        Some(Value::Array(filters)) if !filters.is_empty() => {
            let filter = Term::List(filters.iter().map(from_json).collect());
            Ok(Inputs::Bucket { bucket, filter: KeyFilter::parse(&filter)? })
        }
        _ => Err(unrecognized(value)),
    }
}

fn unrecognized(value: &Value) -> JobError {
    let text = shown(value);
    JobError::Inputs(format!(
        "Unrecognized format of \"inputs\" field:   {text}\n\n\
         Valid formats are:\n\
         \nKeys, with or without key data and bucket type:\n\
         \x20 - {{\"inputs\":[[\"mybucket\",\"mykey1\"], [\"mybucket\",\"mykey2\",\"mykeydata\"], \
         [\"mybucket\",\"mykey3\",\"mykeydata\",\"mytype\"], ...]}}\n\
         \nIndex query for one term:\n\
         \x20 - {{\"inputs\":{{\"bucket\":\"mybucket\", \"index\":\"myindex_bin\", \"key\":\"mykey\"}}}}\n\
         \nIndex query for a range:\n\
         \x20 - {{\"inputs\":{{\"bucket\":\"mybucket\", \"index\":\"myindex_bin\", \"start\":\"key1\", \
         \"end\":\"key2\"}}}}\n\
         \nBucket, or bucket with a type:\n\
         \x20 - {{\"inputs\":\"mybucket\"}}\n\
         \x20 - {{\"inputs\":[\"mytype\",\"mybucket\"]}}\n\
         \nBucket with key filter:\n\
         \x20 - {{\"inputs\":{{\"bucket\":\"mybucket\", \"key_filters\":[[\"matches\", \"foo.*\"]]}}}}\n\n"
    ))
}

/// A value in an error.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(500).collect()
}

fn phases(query: &Value) -> Result<Vec<Phase>, JobError> {
    let Some(items) = query.as_array() else {
        let text = shown(query);
        return Err(JobError::Query(format!("The value of the \"query\" field was not a list:\n   {text}\n")));
    };
    if items.len() > PHASES_MAX {
        return Err(JobError::Query(format!("There are more than {PHASES_MAX} phases.\n")));
    }
    items.iter().enumerate().map(|(index, item)| phase(item, index, index + 1 == items.len())).collect()
}

fn phase(item: &Value, index: usize, is_last: bool) -> Result<Phase, JobError> {
    let single = item.as_object().filter(|members| members.len() == 1).and_then(|members| members.iter().next());
    let Some((kind @ ("map" | "reduce" | "link"), Value::Object(spec))) =
        single.map(|(kind, spec)| (kind.as_str(), spec))
    else {
        let text = shown(item);
        return Err(JobError::Query(format!(
            "Unrecognized format of query phase:\n   {text}\n\nValid formats are:\n   {{\"map\":{{...spec...}}}}\n   \
             {{\"reduce\":{{...spec...}}}}\n   {{\"link\":{{...spec}}}}\n"
        )));
    };
    let keep = match spec.get("keep") {
        None => is_last,
        Some(Value::Bool(keep)) => *keep,
        Some(_) => {
            let text = shown(item);
            return Err(JobError::Query(format!("The \"keep\" field was not a boolean value in:\n   {text}\n")));
        }
    };
    let arg = spec.get("arg").map_or_else(|| Term::atom("none"), from_json);
    match kind {
        "link" => Ok(Phase::Link { links: link_match(spec)?, keep }),
        "map" => Ok(Phase::Map { function: function(spec, index)?.mapper(index)?, arg, keep }),
        _ => Ok(Phase::Reduce { function: function(spec, index)?.reducer(index)?, arg, keep }),
    }
}

fn link_match(spec: &Members) -> Result<LinkMatch, JobError> {
    let field = |name: &str| match spec.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if text == "_" => Ok(None),
        Some(Value::String(text)) => Ok(Some(bytes(text))),
        Some(_) => Err(JobError::Query(format!(
            "Invalid link step specification:\n   {}\n\n \"bucket\" and \"tag\" fields must have string values.\n",
            shown(&Value::Object(spec.clone()))
        ))),
    };
    Ok(LinkMatch { bucket: field("bucket")?, tag: field("tag")? })
}

fn function(spec: &Members, index: usize) -> Result<Named, JobError> {
    let shown = || shown(&Value::Object(spec.clone()));
    match spec.get("language") {
        Some(Value::String(language)) if language == "javascript" => script(spec).map(Named::Script),
        Some(Value::String(language)) if language == "erlang" => erlang(spec, index),
        None => Err(JobError::Query(format!("No \"language\" was specified for the phase:\n   {}\n", shown()))),
        Some(other) => Err(JobError::Query(format!("Unknown language {other} in phase:\n   {}\n", shown()))),
    }
}

fn erlang(spec: &Members, index: usize) -> Result<Named, JobError> {
    let text = |name: &str| spec.get(name).and_then(Value::as_str);
    match (text("module"), text("function"), spec.contains_key("source"), text("bucket"), text("key")) {
        (Some(module), Some(function), false, None, None) => {
            Ok(Named::Erlang { module: module.to_owned(), function: function.to_owned() })
        }
        (None, None, true, None, None) | (None, None, false, Some(_), Some(_)) => {
            Err(JobError::ErlangSource { phase: index })
        }
        _ => Err(no_function(
            spec,
            "Erlang",
            "\"module\" and \"function\" fields, naming a function of riak_kv_mapreduce",
        )),
    }
}

fn script(spec: &Members) -> Result<ScriptSource, JobError> {
    let text = |name: &str| spec.get(name).and_then(Value::as_str);
    if let Some(source) = text("source") {
        return Ok(ScriptSource::Source(source.to_owned()));
    }
    if let Some(name) = text("name") {
        return Ok(ScriptSource::Named(name.to_owned()));
    }
    match (spec.get("bucket").and_then(bucket_of), text("key")) {
        (Some(bucket), Some(key)) => Ok(ScriptSource::Stored { bucket, key: bytes(key) }),
        (Some(_), None) => Err(JobError::Query(format!(
            "Javascript phase was missing a \"key\" field to match the \"bucket\" field, pointing to the function to \
             evaluate in:   {}\n",
            shown(&Value::Object(spec.clone()))
        ))),
        (None, _) => Err(no_function(
            spec,
            "Javascript",
            "a \"source\" field, with source for a Javascript function\n   - a \"name\" field, naming a predefined \
             Javascript function\n   - \"bucket\" and \"key\" fields, specifying an object that contains the source",
        )),
    }
}

fn no_function(spec: &Members, language: &str, ways: &str) -> JobError {
    let text = shown(&Value::Object(spec.clone()));
    JobError::Query(format!(
        "No function specified in {language} phase:\n   {text}\n\nFunctions may be specified by:\n   - {ways}\n"
    ))
}
