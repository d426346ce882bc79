//! Reading a job in JSON.

use super::function::{Named, ScriptSource};
use super::inputs::{IndexQuery, Inputs};
use super::listed::ListedJson;
use super::{Job, JobError, PHASES_MAX, Phase, TIMEOUT_DEFAULT, Why};
use crate::filter::KeyFilter;
use crate::term::bytes_as_term;
use crate::{LinkMatch, from_json};
use bytes::Bytes;
use num_bigint::Sign;
use ombak_types::etf::Term;
use ombak_types::json::{Json, beginning, member, write_object};
use ombak_types::{Bucket, DecodeBudget, TooLarge};
use std::sync::Arc;
use std::time::Duration;

type Members = [(String, Json)];

/// How often what a key filter or a query is made of is copied at most: as a term, as the steps of
/// the filter, and in an error.
const COPIES_MAX: usize = 3;

/// Reads a job. The elements of a list of inputs are in `listed`.
pub(super) fn job(request: &Members, listed: ListedJson, budget: &mut DecodeBudget) -> Result<Job, JobError> {
    let (Some(inputs), Some(query)) = (member(request, "inputs"), member(request, "query")) else {
        return Err(JobError::MissingField);
    };
    let inputs = match inputs {
        Json::List(_) => listed.finish()?,
        other => inputs_of(other, budget)?,
    };
    Ok(Job { inputs, phases: phases(query, budget)?, timeout: timeout(member(request, "timeout")) })
}

/// Counts the terms that are made of a value.
fn count_as_term(value: &Json, budget: &mut DecodeBudget) -> Result<(), TooLarge> {
    budget.take(bytes_as_term(value).saturating_mul(COPIES_MAX))
}

/// Riak takes its own time for anything that is not a positive number.
fn timeout(value: Option<&Json>) -> Duration {
    const MS_MAX: u64 = u32::MAX as u64;
    let ms = match value {
        Some(Json::Int(ms)) if *ms > 0 => ms.unsigned_abs().min(MS_MAX),
        Some(Json::Big(ms)) if ms.sign() == Sign::Plus => MS_MAX,
        Some(Json::Float(ms)) if *ms > 0.0 => ms.clamp(1.0, MS_MAX as f64) as u64,
        _ => return TIMEOUT_DEFAULT,
    };
    Duration::from_millis(ms)
}

pub(super) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn bucket_of(value: &Json) -> Option<Bucket> {
    match value {
        Json::Text(name) => Some(Bucket::untyped(bytes(name))),
        Json::List(items) => match items.as_slice() {
            [Json::Text(bucket_type), Json::Text(name)] => Some(Bucket::typed(bytes(bucket_type), bytes(name))),
            _ => None,
        },
        _ => None,
    }
}

/// Inputs that are no list.
fn inputs_of(value: &Json, budget: &mut DecodeBudget) -> Result<Inputs, JobError> {
    count_as_term(value, budget)?;
    match value {
        Json::Text(name) => Ok(Inputs::Bucket { bucket: Bucket::untyped(bytes(name)), filter: KeyFilter::default() }),
        Json::Object(members) => inputs_of_object(members, value),
        other => Err(unrecognized(other)),
    }
}

fn inputs_of_object(members: &Members, value: &Json) -> Result<Inputs, JobError> {
    let text = |name: &str| member(members, name).and_then(Json::as_str);
    if let (Some(module), Some(function), Some(arg)) = (text("module"), text("function"), member(members, "arg")) {
        return Ok(Inputs::of_function(module, function, from_json(arg)));
    }
    if let (Some(query), Some(index)) = (text("query"), text("index").or_else(|| text("bucket"))) {
        return Ok(Inputs::of_search(bytes(index), bytes(query), text("filter").map(bytes)));
    }
    let Some(bucket) = member(members, "bucket").and_then(bucket_of) else { return Err(unrecognized(value)) };
    if let Some(index) = text("index") {
        let (low, high) = match (member(members, "key"), member(members, "start"), member(members, "end")) {
            (Some(key), ..) => (key, key),
            (None, Some(low), Some(high)) => (low, high),
            _ => return Err(unrecognized(value)),
        };
        let query = IndexQuery::new(bucket, index.as_bytes(), &from_json(low), &from_json(high));
        return query.map(Inputs::Index).map_err(|why| JobError::Inputs(Why::Term(why)));
    }
    match member(members, "key_filters") {
        Some(Json::List(filters)) if !filters.is_empty() => {
            let filter = Term::List(filters.iter().map(from_json).collect());
            Ok(Inputs::Bucket { bucket, filter: KeyFilter::parse(&filter)? })
        }
        _ => Err(unrecognized(value)),
    }
}

pub(super) fn unrecognized(value: &Json) -> JobError {
    let text = shown(value);
    bad_inputs(format!(
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
         \nSearch, with or without a filter:\n\
         \x20 - {{\"inputs\":{{\"index\":\"myindex\", \"query\":\"name_s:*\", \"filter\":\"age_i:1\"}}}}\n\
         \x20 - {{\"inputs\":{{\"module\":\"yokozuna\", \"function\":\"mapred_search\", \
         \"arg\":[\"myindex\", \"name_s:*\"]}}}}\n\
         \nBucket, or bucket with a type:\n\
         \x20 - {{\"inputs\":\"mybucket\"}}\n\
         \x20 - {{\"inputs\":[\"mytype\",\"mybucket\"]}}\n\
         \nBucket with key filter:\n\
         \x20 - {{\"inputs\":{{\"bucket\":\"mybucket\", \"key_filters\":[[\"matches\", \"foo.*\"]]}}}}\n\n"
    ))
}

pub(super) fn bad_inputs(text: String) -> JobError {
    JobError::Inputs(Why::Text(text))
}

fn bad_query(text: String) -> JobError {
    JobError::Query(Why::Text(text))
}

/// The maximum length of a value in an error, in characters.
const SHOWN_CHARS_MAX: usize = 500;

/// The beginning of a value in an error.
fn shown(value: &Json) -> String {
    value.beginning(SHOWN_CHARS_MAX)
}

fn shown_object(members: &Members) -> String {
    beginning(SHOWN_CHARS_MAX, |out| write_object(members, out))
}

fn phases(query: &Json, budget: &mut DecodeBudget) -> Result<Vec<Phase>, JobError> {
    let Some(items) = query.as_list() else {
        let text = shown(query);
        return Err(bad_query(format!("The value of the \"query\" field was not a list:\n   {text}\n")));
    };
    if items.len() > PHASES_MAX {
        return Err(bad_query(format!("There are more than {PHASES_MAX} phases.\n")));
    }
    count_as_term(query, budget)?;
    items.iter().enumerate().map(|(index, item)| phase(item, index, index + 1 == items.len())).collect()
}

fn phase(item: &Json, index: usize, is_last: bool) -> Result<Phase, JobError> {
    let single = item.as_object().filter(|members| members.len() == 1).and_then(|members| members.first());
    let Some((kind @ ("map" | "reduce" | "link"), Json::Object(spec))) =
        single.map(|(kind, spec)| (kind.as_str(), spec))
    else {
        let text = shown(item);
        return Err(bad_query(format!(
            "Unrecognized format of query phase:\n   {text}\n\nValid formats are:\n   {{\"map\":{{...spec...}}}}\n   \
             {{\"reduce\":{{...spec...}}}}\n   {{\"link\":{{...spec}}}}\n"
        )));
    };
    let keep = match member(spec, "keep") {
        None => is_last,
        Some(Json::Bool(keep)) => *keep,
        Some(_) => {
            let text = shown(item);
            return Err(bad_query(format!("The \"keep\" field was not a boolean value in:\n   {text}\n")));
        }
    };
    let arg = Arc::new(member(spec, "arg").map_or_else(|| Term::atom("none"), from_json));
    match kind {
        "link" => Ok(Phase::Link { links: link_match(spec)?, keep }),
        "map" => Ok(Phase::Map { function: function(spec, index)?.mapper(index)?, arg, keep }),
        _ => Ok(Phase::Reduce { function: function(spec, index)?.reducer(index)?, arg, keep }),
    }
}

fn link_match(spec: &Members) -> Result<LinkMatch, JobError> {
    let field = |name: &str| match member(spec, name) {
        None => Ok(None),
        Some(Json::Text(text)) if text == "_" => Ok(None),
        Some(Json::Text(text)) => Ok(Some(bytes(text))),
        Some(_) => Err(bad_query(format!(
            "Invalid link step specification:\n   {}\n\n \"bucket\" and \"tag\" fields must have string values.\n",
            shown_object(spec)
        ))),
    };
    Ok(LinkMatch { bucket: field("bucket")?, tag: field("tag")? })
}

fn function(spec: &Members, index: usize) -> Result<Named, JobError> {
    let shown_spec = || shown_object(spec);
    match member(spec, "language") {
        Some(Json::Text(language)) if language == "javascript" => script(spec).map(Named::Script),
        Some(Json::Text(language)) if language == "erlang" => erlang(spec, index),
        None => Err(bad_query(format!("No \"language\" was specified for the phase:\n   {}\n", shown_spec()))),
        Some(other) => Err(bad_query(format!("Unknown language {} in phase:\n   {}\n", shown(other), shown_spec()))),
    }
}

fn erlang(spec: &Members, index: usize) -> Result<Named, JobError> {
    let text = |name: &str| member(spec, name).and_then(Json::as_str);
    match (text("module"), text("function"), member(spec, "source").is_some(), text("bucket"), text("key")) {
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
    let text = |name: &str| member(spec, name).and_then(Json::as_str);
    if let Some(source) = text("source") {
        return Ok(ScriptSource::Source(source.to_owned()));
    }
    if let Some(name) = text("name") {
        return Ok(ScriptSource::Named(name.to_owned()));
    }
    match (member(spec, "bucket").and_then(bucket_of), text("key")) {
        (Some(bucket), Some(key)) => Ok(ScriptSource::Stored { bucket, key: bytes(key) }),
        (Some(_), None) => Err(bad_query(format!(
            "Javascript phase was missing a \"key\" field to match the \"bucket\" field, pointing to the function to \
             evaluate in:   {}\n",
            shown_object(spec)
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
    let text = shown_object(spec);
    bad_query(format!(
        "No function specified in {language} phase:\n   {text}\n\nFunctions may be specified by:\n   - {ways}\n"
    ))
}
