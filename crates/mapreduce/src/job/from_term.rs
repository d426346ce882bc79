//! Reading a job in Erlang's external term format, as the Erlang client sends it.

use super::function::{Named, ScriptSource};
use super::inputs::{IndexQuery, Inputs};
use super::listed::ListedTerms;
use super::{Job, JobError, PHASES_MAX, Phase, TIMEOUT_DEFAULT, Why};
use crate::LinkMatch;
use crate::filter::KeyFilter;
use crate::input::{Input, bucket_of};
use crate::term::{bytes_held, list_items};
use ombak_types::etf::Term;
use ombak_types::{DecodeBudget, TooLarge};
use std::sync::Arc;
use std::time::Duration;

/// How often the inputs or a query are copied at most: for the job, for the steps of a key filter,
/// and in an error. Room that the allocator adds is counted with it.
const COPIES_MAX: usize = 4;

/// Reads a job. The elements of a list of inputs are in `listed`.
pub(super) fn job(request: &Term, listed: ListedTerms, budget: &mut DecodeBudget) -> Result<Job, JobError> {
    let members = request.as_list().ok_or(JobError::NotAnObject)?;
    // Riak takes this atom for a member that is missing, and finds that it is none.
    let undefined = Term::atom("undefined");
    let member = |name: &str| field(members, name).unwrap_or(&undefined);
    let inputs = match member("inputs") {
        Term::List(items) if items.is_empty() => listed.finish()?,
        other => inputs_of(other, budget)?,
    };
    let query = member("query");
    count_copies(query, budget)?;
    Ok(Job { inputs, phases: phases(query)?, timeout: timeout(field(members, "timeout")) })
}

/// The value of the first member with a name.
fn field<'a>(members: &'a [Term], name: &str) -> Option<&'a Term> {
    let mut pairs = members.iter().filter_map(|member| member.as_tuple::<2>());
    pairs.find(|[key, _]| key.as_atom() == Some(name)).map(|[_, value]| value)
}

/// Whether the listed inputs end with something else than a list.
pub(super) fn has_bad_tail(request: &Term) -> bool {
    let inputs = request.as_list().and_then(|members| field(members, "inputs"));
    matches!(inputs, Some(Term::ImproperList(items, _)) if items.is_empty())
}

/// Counts the copies that are made of a term.
fn count_copies(term: &Term, budget: &mut DecodeBudget) -> Result<(), TooLarge> {
    budget.take(bytes_held(term).saturating_mul(COPIES_MAX))
}

fn timeout(value: Option<&Term>) -> Duration {
    let ms = value.and_then(Term::as_u64).filter(|ms| *ms > 0);
    ms.map_or(TIMEOUT_DEFAULT, |ms| Duration::from_millis(ms.min(u64::from(u32::MAX))))
}

fn inputs_of(term: &Term, budget: &mut DecodeBudget) -> Result<Inputs, JobError> {
    count_copies(term, budget)?;
    if let Some(items) = list_items(term) {
        let mut listed = ListedTerms::default();
        items.into_iter().try_for_each(|item| listed.add(item, budget))?;
        return listed.finish();
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
                _ => Ok(Inputs::of_function(module, function, arg.clone())),
            },
            _ => Err(unknown_inputs(term)),
        },
        [tag, bucket, field, key] if tag.as_atom() == Some("index") => index(term, bucket, field, key, key),
        [tag, bucket, field, low, high] if tag.as_atom() == Some("index") => index(term, bucket, field, low, high),
        [tag, index, query] if tag.as_atom() == Some("search") => match (text(index), text(query)) {
            (Some(index), Some(query)) => Ok(Inputs::of_search(index, query, None)),
            _ => Err(unknown_inputs(term)),
        },
        [tag, index, query, filter] if tag.as_atom() == Some("search") => {
            match (text(index), text(query), text(filter)) {
                (Some(index), Some(query), Some(filter)) => Ok(Inputs::of_search(index, query, Some(filter))),
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
        term.clone(),
    ))
}

fn phases(query: &Term) -> Result<Vec<Phase>, JobError> {
    let not_a_list = || JobError::Query(Why::about("Query takes a list of step tuples", query.clone()));
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
    let bad =
        || JobError::Query(Why::about("A step is {map|reduce,Fun,Arg,Keep} or {link,Bucket,Tag,Keep}:", item.clone()));
    let [kind, a, b, keep] = item.as_tuple().ok_or_else(bad)?;
    let keep = match keep.as_atom() {
        Some("true") => true,
        Some("false") => false,
        _ => is_last,
    };
    match kind.as_atom() {
        Some("map") => Ok(Phase::Map { function: function(a, index)?.mapper(index)?, arg: Arc::new(b.clone()), keep }),
        Some("reduce") => {
            Ok(Phase::Reduce { function: function(a, index)?.reducer(index)?, arg: Arc::new(b.clone()), keep })
        }
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
    let bad = || JobError::Query(Why::about("not a function:", term.clone()));
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
