//! Reading a job in Erlang's external term format, as the Erlang client sends it.

use super::function::{Named, ScriptSource};
use super::inputs::{IndexQuery, Inputs};
use super::{Job, JobError, PHASES_MAX, Phase, TIMEOUT_DEFAULT, Why};
use crate::LinkMatch;
use crate::filter::KeyFilter;
use crate::input::{Input, bucket_of};
use crate::term::list_items;
use ombak_types::etf::Term;
use std::time::Duration;

pub(super) fn job(request: &Term) -> Result<Job, JobError> {
    let members = request.as_list().ok_or(JobError::NotAnObject)?;
    let field = |name: &str| {
        members.iter().filter_map(|member| member.as_tuple::<2>()).find(|[key, _]| key.as_atom() == Some(name))
    };
    // Riak takes this atom for a member that is missing, and finds that it is none.
    let undefined = Term::atom("undefined");
    let member = |name: &str| field(name).map_or(&undefined, |pair| &pair[1]);
    Ok(Job {
        inputs: inputs_of(member("inputs"))?,
        phases: phases(member("query"))?,
        timeout: timeout(field("timeout").map(|pair| &pair[1])),
    })
}

fn timeout(value: Option<&Term>) -> Duration {
    let ms = value.and_then(Term::as_u64).filter(|ms| *ms > 0);
    ms.map_or(TIMEOUT_DEFAULT, |ms| Duration::from_millis(ms.min(u64::from(u32::MAX))))
}

fn inputs_of(term: &Term) -> Result<Inputs, JobError> {
    if let Some(items) = list_items(term) {
        let mut keys = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if let Term::Tuple(_) = item {
                keys.extend(Input::from_term(item));
            }
            if keys.len() == index {
                // The error has what is left of the list.
                let rest = Term::from_list(items[index..].to_vec());
                let why = Why::about("Inputs target tuples must be {B,K} or {{B,K},KeyData}:", &rest);
                return Err(JobError::Inputs(why));
            }
        }
        return Ok(Inputs::Keys(keys));
    }
    if let Some(bucket) = bucket_of(term) {
        return Ok(Inputs::Bucket { bucket, filter: KeyFilter::default() });
    }
    let Term::Tuple(items) = term else { return Err(unknown_inputs(term)) };
    let text = |term: &Term| term.as_text();
    match items.as_slice() {
        [tag, module, function, arg] if tag.as_atom() == Some("modfun") => match (module.as_atom(), function.as_atom())
        {
            (Some(module), Some(function)) => match arg_of_mapred_index(arg) {
                Some([bucket, field, low, high]) if (module, function) == ("riak_index", "mapred_index") => {
                    index(term, &bucket, &field, &low, &high)
                }
                _ => {
                    Ok(Inputs::Function { module: module.to_owned(), function: function.to_owned(), arg: arg.clone() })
                }
            },
            _ => Err(unknown_inputs(term)),
        },
        [tag, bucket, field, key] if tag.as_atom() == Some("index") => index(term, bucket, field, key, key),
        [tag, bucket, field, low, high] if tag.as_atom() == Some("index") => index(term, bucket, field, low, high),
        [tag, index, query] if tag.as_atom() == Some("search") => match (text(index), text(query)) {
            (Some(index), Some(query)) => Ok(Inputs::Search { index, query, filter: None }),
            _ => Err(unknown_inputs(term)),
        },
        [tag, index, query, filter] if tag.as_atom() == Some("search") => {
            match (text(index), text(query), text(filter)) {
                (Some(index), Some(query), Some(filter)) => {
                    Ok(Inputs::Search { index, query, filter: Some(filter).filter(|filter| !filter.is_empty()) })
                }
                _ => Err(unknown_inputs(term)),
            }
        }
        [bucket, filters @ Term::List(_)] => {
            let bucket = bucket_of(bucket).ok_or_else(|| unknown_inputs(term))?;
            Ok(Inputs::Bucket { bucket, filter: KeyFilter::parse(filters)? })
        }
        _ => Err(unknown_inputs(term)),
    }
}

/// Bucket, field and both ends of `[Bucket,{eq,Field,Term}]` or `[Bucket,{range,Field,Low,High}]`.
fn arg_of_mapred_index(arg: &Term) -> Option<[Term; 4]> {
    let items = list_items(arg)?;
    let [bucket, Term::Tuple(query)] = &*items else { return None };
    let (field, low, high) = match query.as_slice() {
        [kind, field, term] if kind.as_atom() == Some("eq") => (field, term, term),
        [kind, field, low, high] if kind.as_atom() == Some("range") => (field, low, high),
        _ => return None,
    };
    Some([bucket, field, low, high].map(Term::clone))
}

fn index(inputs: &Term, bucket: &Term, field: &Term, low: &Term, high: &Term) -> Result<Inputs, JobError> {
    let (bucket, field) = bucket_of(bucket).zip(field.as_text()).ok_or_else(|| unknown_inputs(inputs))?;
    IndexQuery::new(bucket, &field, low, high).map(Inputs::Index).map_err(|why| JobError::Inputs(Why::Term(why)))
}

fn unknown_inputs(term: &Term) -> JobError {
    JobError::Inputs(Why::about(
        "Inputs must be a binary bucket, a tuple of bucket and key-filters, a list of target tuples, or a search, \
         index, or modfun tuple:",
        term,
    ))
}

fn phases(query: &Term) -> Result<Vec<Phase>, JobError> {
    let not_a_list = || JobError::Query(Why::about("Query takes a list of step tuples", query));
    let items = list_items(query).ok_or_else(not_a_list)?;
    if items.len() > PHASES_MAX {
        return Err(JobError::Query(Why::Text(format!("There are more than {PHASES_MAX} phases"))));
    }
    let last = items.len().checked_sub(1);
    items.iter().enumerate().map(|(index, item)| phase(item, index, Some(index) == last)).collect()
}

/// Reads a phase. A `Keep` that is no boolean keeps the results of the last phase and of no other,
/// as in Riak.
pub(super) fn phase(item: &Term, index: usize, is_last: bool) -> Result<Phase, JobError> {
    let bad = || JobError::Query(Why::about("A step is {map|reduce,Fun,Arg,Keep} or {link,Bucket,Tag,Keep}:", item));
    let [kind, a, b, keep] = item.as_tuple().ok_or_else(bad)?;
    let keep = match keep.as_atom() {
        Some("true") => true,
        Some("false") => false,
        _ => is_last,
    };
    match kind.as_atom() {
        Some("map") => Ok(Phase::Map { function: function(a, index)?.mapper(index)?, arg: b.clone(), keep }),
        Some("reduce") => Ok(Phase::Reduce { function: function(a, index)?.reducer(index)?, arg: b.clone(), keep }),
        Some("link") => {
            let field = |term: &Term| match term {
                Term::Atom(any) if &**any == "_" => Ok(None),
                Term::Binary(text) if &**text == b"_" => Ok(None),
                Term::Binary(text) => Ok(Some(text.clone())),
                _ => Err(bad()),
            };
            Ok(Phase::Link { links: LinkMatch { bucket: field(a)?, tag: field(b)? }, keep })
        }
        _ => Err(bad()),
    }
}

fn function(term: &Term, index: usize) -> Result<Named, JobError> {
    let bad = || JobError::Query(Why::about("not a function:", term));
    let Term::Tuple(items) = term else { return Err(bad()) };
    let kind = items.first().and_then(Term::as_atom);
    match (kind, items.as_slice()) {
        (Some("modfun"), [_, module, function]) => match (module.as_atom(), function.as_atom()) {
            (Some(module), Some(function)) => {
                Ok(Named::Erlang { module: module.to_owned(), function: function.to_owned() })
            }
            _ => Err(bad()),
        },
        (Some("qfun"), _) => Err(JobError::ErlangFun),
        (Some("strfun"), _) => Err(JobError::ErlangSource { phase: index }),
        (Some("jsfun"), [_, Term::Binary(name)]) => {
            Ok(Named::Script(ScriptSource::Named(String::from_utf8(name.to_vec()).map_err(|_| bad())?)))
        }
        (Some("jsanon"), [_, Term::Binary(source)]) => {
            Ok(Named::Script(ScriptSource::Source(String::from_utf8(source.to_vec()).map_err(|_| bad())?)))
        }
        (Some("jsanon"), [_, stored]) => {
            let stored = Input::from_term(stored).filter(|input| input.key_data.is_none()).ok_or_else(bad)?;
            Ok(Named::Script(ScriptSource::Stored { bucket: stored.bucket, key: stored.key }))
        }
        _ => Err(bad()),
    }
}
